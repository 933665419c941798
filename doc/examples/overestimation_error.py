"""Overestimation: how far binned scores exceed the event frequencies."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from skcalib.binning import BaseBinning
from skcalib.metrics import CalibrationError, ErrorPower, Metric, register_metric

__all__ = ["OverestimationError", "overestimation_error"]


class OverestimationPower(ErrorPower):
    """Mean p-th power of the differences, over bins whose scores are too high."""

    is_binned = True

    def power(self, frequency):
        """Return the power for event frequencies (..., m) of the bins."""
        return self.norm_of(np.maximum(self.scores - frequency, 0))


@dataclass(frozen=True, eq=False, kw_only=True)
class OverestimationError(CalibrationError):
    """Error with the parameters of the base class, and bins."""

    binning: BaseBinning | int | None = None

    def of_task(self, task, most=None):
        """Return the power of one binary problem."""
        return OverestimationPower(task.bin_cells(self.binning), norm=self.norm)


def overestimation_error(
    y_true,
    y_proba=None,
    *,
    norm=1,
    binning=None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Return the mean excess of the scores over the event frequencies of bins."""
    error = OverestimationError(
        norm=norm, binning=binning, multiclass=multiclass, class_weight=class_weight
    )
    return error.value(
        y_true,
        y_proba,
        binning=binning,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


register_metric(Metric(overestimation_error, OverestimationError))
