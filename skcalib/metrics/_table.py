"""The table of calibration errors: scorers, intervals, tests and documentation read it. A new error needs a row."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skcalib.binning import EqualMass, EqualWidth, MonotonicSweep
from skcalib.metrics._bin_free import (
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
)
from skcalib.metrics._errors import calibration_error, expected_calibration_error, maximum_calibration_error
from skcalib.metrics._groupwise import groupwise_calibration_error
from skcalib.metrics._proper_scores import brier_score, log_loss
from skcalib.metrics._smoothing import kde_calibration_error, smooth_calibration_error
from skcalib.metrics._sweep import sweep_calibration_error

__all__ = ["METRICS", "Metric", "metric_of", "scorers"]


class Metric(NamedTuple):
    """A row of the table.

    Parameters
    ----------
    function : callable
        The error, ``function(y_true, y_proba, ...)``; smaller is better.
    binned : dict or None, default=None
        For an error that is a function of the sums of one set of bins per class: its `norm`, `binning` and `method`
        where the caller names none.
    limits : tuple of float, default=(0.0, 1.0)
        The least and the largest value.
    scorers : dict, default=None
        Options of the function by the name of the scorer; None means ``neg_`` and the name of the function, without
        options.
    """

    function: Callable
    binned: dict | None = None
    limits: tuple = (0.0, 1.0)
    scorers: dict | None = None


_NORMS = {
    "neg_calibration_error": {},
    "neg_squared_calibration_error": {"squared": True},
    "neg_l1_calibration_error": {"norm": "l1"},
}

METRICS = {
    row.function.__name__: row
    for row in (
        Metric(calibration_error, {"norm": 2, "binning": EqualMass(15), "method": "debiased"}, scorers=_NORMS),
        Metric(expected_calibration_error, {"norm": 1, "binning": EqualWidth(15), "method": "plugin"}),
        Metric(groupwise_calibration_error),
        Metric(kde_calibration_error),
        Metric(kolmogorov_smirnov_calibration_error),
        Metric(kuiper_calibration_error),
        Metric(maximum_calibration_error, {"norm": np.inf, "binning": EqualWidth(15), "method": "plugin"}),
        Metric(neighborhood_calibration_error),
        Metric(smooth_calibration_error),
        Metric(sweep_calibration_error, {"norm": 1, "binning": MonotonicSweep(), "method": "plugin"}),
    )
}


# Proper scores are no calibration errors; scikit-learn's scorers of these names fail for labels that are strings and
# for a fold in which a class is missing.
_PROPER_SCORES = {"neg_brier_score": (brier_score, {}), "neg_log_loss": (log_loss, {})}


def metric_of(function):
    """Return the row of a function, None for one that is not of this library."""
    return next((row for row in METRICS.values() if row.function is function), None)


def scorers():
    """Return (function, options) of every scorer by its name."""
    errors = {
        name: (row.function, options)
        for key, row in METRICS.items()
        for name, options in (row.scorers or {f"neg_{key}": {}}).items()
    }
    return errors | _PROPER_SCORES
