"""What each recalibrator would gain on the rows of a report, by cross-validation."""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from skcalib import recalibrators as catalogue
from skcalib._bins.reductions import BinaryTask
from skcalib._report._statistics import REPORT_BINNING, given, log_losses, mean, mean_interval
from skcalib.metrics import calibration_error

__all__ = ["MOST_ROWS", "N_FOLDS", "recalibration_gains"]

N_FOLDS = 5
MOST_ROWS = 20_000  # of which a random sample is taken: the gains are known well enough from it
# Of the library's recalibrators those that a report compares, with their defaults.
_NAMES = (
    "PlattScaling",
    "TemperatureScaling",
    "BetaCalibration",
    "IsotonicCalibration",
    "HistogramBinning",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
)


def recalibration_gains(task, seed):
    """Return the out-of-fold scores of each recalibrator against those of the scores as they are, the best first.

    Empty where a class has fewer rows than there are folds.
    """
    task = _sample(task, seed)
    if min(task.labels.sum(), (~task.labels).sum()) < N_FOLDS:
        return []
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(task.scores, task.labels))
    before = task.scores.astype(np.float64)
    found = [_measured("as it is", before, before, task)]
    for name in _NAMES:
        if hasattr(catalogue, name):
            found.append(_measured(name, _out_of_fold(getattr(catalogue, name)(), task, folds), before, task))
    return sorted(found, key=lambda row: row["log_loss"])


def _sample(task, seed):
    n_rows = len(task.scores)
    if n_rows <= MOST_ROWS:
        return task
    rows = np.sort(np.random.default_rng(seed).choice(n_rows, MOST_ROWS, replace=False))
    return BinaryTask(*(None if column is None else column[rows] for column in task))


def _out_of_fold(recalibrator, task, folds):
    after = np.empty(len(task.scores))
    for fit, test in folds:
        weight = {} if task.sample_weight is None else {"sample_weight": task.sample_weight[fit]}
        fitted = clone(recalibrator).fit(task.scores[fit], task.labels[fit], **weight)
        after[test] = fitted.predict_proba(task.scores[test])[:, 1]
    return after


def _measured(name, after, before, task):
    losses, squares = log_losses(after, task.labels), (after - task.labels) ** 2
    gain = mean_interval(log_losses(before, task.labels) - losses, task.sample_weight)
    brier_gain = mean_interval((before - task.labels) ** 2 - squares, task.sample_weight)
    return {
        "name": name,
        "log_loss": mean(losses, task.sample_weight),
        "gain": gain["estimate"],
        "gain_low": gain["low"],
        "gain_high": gain["high"],
        "brier": mean(squares, task.sample_weight),
        "brier_gain": brier_gain["estimate"],
        "brier_gain_low": brier_gain["low"],
        "brier_gain_high": brier_gain["high"],
        "calibration_error": calibration_error(task.labels, after, binning=REPORT_BINNING, **given(task)),
    }
