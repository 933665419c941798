"""What each recalibrator would gain on the rows of a report, by cross-validation."""

import numpy as np

from skcalib import recalibrators as catalogue
from skcalib._errors.proper_scores import LOSSES
from skcalib._report._forecasts import binary_task
from skcalib._report._statistics import CONFIDENCE_LEVEL, REPORT_BINNING, Rows, mean
from skcalib.evaluation._gain import recalibrated_by_fold
from skcalib.metrics import calibration_error
from skcalib.recalibrators._folds import cross_validation_folds
from skcalib.recalibrators._gain import gain_interval

N_FOLDS = 5
_MOST_ROWS = 20_000  # of which a random sample is taken: the gains are known well enough from it
_MOST_SCORES = 400_000
_MOST_CLASSES_OF_STACK = 20
# Of the library's recalibrators those that a report compares, with their defaults.
_OF_TWO_CLASSES = (
    "PlattScaling",
    "TemperatureScaling",
    "BetaCalibration",
    "IsotonicCalibration",
    "HistogramBinning",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
)
_OF_MORE_CLASSES = (
    "TemperatureScaling",
    "ClasswiseTemperatureScaling",
    "VectorScaling",
    "DirichletCalibration",
    "IsotonicCalibration",
    "StackedRecalibrator",
)
_SAVED = {"log": ("log_loss", "gain"), "brier": ("brier", "brier_gain")}


def most_rows(classes):
    """Return how many rows the recalibrators are tried on."""
    return _MOST_ROWS if classes is None else min(_MOST_ROWS, max(_MOST_SCORES // len(classes), 2000))


def recalibration_gains(table, name, seed, step=None):
    """Return the out-of-fold scores of each recalibrator against those of the scores as they are, the best first.

    Empty where a class (of several: all but the most frequent one) has fewer rows than there are folds. `step` is told
    the name of each recalibrator.
    """
    scores, labels, weight = table.rows(name, most_rows(table.classes), seed)
    codes = labels.astype(np.intp)
    counts = np.sort(np.bincount(codes, minlength=2))
    if counts[-2] < N_FOLDS:
        return []
    scores = scores.astype(np.float64)
    columns = scores.reshape(len(codes), -1)
    folds = cross_validation_folds(N_FOLDS, columns, codes, weight)
    found = [_measured("as it is", [scores] * len(folds), scores, labels, weight, folds)]
    for kind in _OF_TWO_CLASSES if table.classes is None else _OF_MORE_CLASSES:
        if kind == "StackedRecalibrator" and columns.shape[1] > _MOST_CLASSES_OF_STACK:
            continue
        if step is not None:
            step(kind)
        recalibrator = getattr(catalogue, kind)()
        after = [recalibrated_by_fold(recalibrator, fold, columns, codes) for fold in folds]
        found.append(_measured(kind, after, scores, labels, weight, folds))
    return sorted(found, key=lambda row: row["log_loss"])


def _measured(name, after, before, labels, weight, folds):
    """Return the scores of a recalibrator, from its probabilities for all rows by the fit of each fold."""
    rows = np.concatenate([fold.test for fold in folds])
    out_of_fold = np.concatenate([scores[fold.test] for scores, fold in zip(after, folds, strict=True)])
    test_weight = None if weight is None else np.concatenate([fold.test_weight for fold in folds])
    row = {"name": name}
    for loss, (key, gain) in _SAVED.items():
        losses = np.array([LOSSES[loss](scores, labels) for scores in after])
        estimate, low, high = gain_interval(LOSSES[loss](before, labels) - losses, folds, weight, CONFIDENCE_LEVEL)
        row[key] = mean(LOSSES[loss](out_of_fold, labels[rows]), test_weight)
        row |= {gain: estimate, f"{gain}_low": low, f"{gain}_high": high}
    task = binary_task(Rows(out_of_fold, labels[rows], test_weight))
    return {
        **row,
        "calibration_error": calibration_error(task.labels, task.scores, binning=REPORT_BINNING, **task.given),
    }
