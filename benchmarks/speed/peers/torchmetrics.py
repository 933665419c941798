"""torchmetrics: binned errors on torch tensors."""

import torch
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

from benchmarks.speed.peers import Contender


def _binary(problem):
    scores, labels = torch.from_numpy(problem.scores), torch.from_numpy(problem.labels)
    return float(binary_calibration_error(scores, labels, n_bins=15))


def _top_label(problem):
    scores, labels = torch.from_numpy(problem.scores), torch.from_numpy(problem.labels)
    return float(
        multiclass_calibration_error(
            scores, labels, num_classes=scores.shape[1], n_bins=15
        )
    )


JOBS = {"equal-width ECE": Contender(_binary), "top-label ECE": Contender(_top_label)}
