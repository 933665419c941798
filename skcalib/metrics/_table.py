"""The table of calibration errors: scorers, intervals, tests and documentation read it. A new error needs a row."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skcalib._errors.bin_free import KolmogorovSmirnovPower, KuiperPower, NeighborhoodPower
from skcalib._errors.binned import BinnedPower
from skcalib._errors.kernel import KernelPower
from skcalib._errors.proper_scores import brier_score, log_loss
from skcalib._errors.smooth import SmoothPower
from skcalib._errors.sweep import SweepPower
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics._bin_free import (
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
)
from skcalib.metrics._canonical import kernel_calibration_error, kernel_statistics
from skcalib.metrics._decision import DecisionPower, decision_calibration_error
from skcalib.metrics._errors import (
    calibration_error,
    error_of,
    expected_calibration_error,
    maximum_calibration_error,
)
from skcalib.metrics._groupwise import groupwise_calibration_error
from skcalib.metrics._smoothing import kde_calibration_error, smooth_calibration_error
from skcalib.metrics._sweep import sweep_calibration_error


class Metric(NamedTuple):
    """A row of the table.

    Parameters
    ----------
    function : callable
        The error, ``function(y_true, y_proba, ...)``; smaller is better.
    power : type or None
        What it is a root of, a class of `skcalib._errors`: its interval and its resampling test come from it.
    defaults : dict, default={}
        Parameters of the power where the caller of the function names none; `binning` and `method` where it is binned.
    limits : tuple of float, default=(0.0, 1.0)
        The least and the largest value.
    scorers : dict, default=None
        Options of the function by the name of the scorer; None means ``neg_`` and the name of the function, without
        options.
    statistics : callable, default=None
        Of an error that has a test and no interval, without a power: ``statistics(data, draws, **params)`` returns what
        the test compares, of the labels and of the drawn ones.
    """

    function: Callable
    power: type | None
    defaults: dict = {}  # noqa: RUF012
    limits: tuple = (0.0, 1.0)
    scorers: dict | None = None
    statistics: Callable | None = None

    def error(self, given):
        """Return the `Error` for the parameters that a caller gave; None without a power."""
        return None if self.power is None else error_of(self.power, given, self.defaults)


_NORMS = {
    "neg_calibration_error": {},
    "neg_squared_calibration_error": {"squared": True},
    "neg_l1_calibration_error": {"norm": "l1"},
}

_BY_GROUP = {"norm": 1, "binning": EqualWidth(15), "method": "plugin", "groups": "predicted_class", "reduce": "max"}
_MAXIMUM = {"norm": np.inf, "binning": EqualWidth(15), "method": "plugin"}

METRICS = {
    row.function.__name__: row
    for row in (
        Metric(
            calibration_error,
            BinnedPower,
            {"norm": 2, "binning": EqualMass(15), "method": "auto"},
            scorers=_NORMS,
        ),
        Metric(decision_calibration_error, DecisionPower),
        Metric(expected_calibration_error, BinnedPower, {"norm": 1, "binning": EqualWidth(15), "method": "plugin"}),
        Metric(groupwise_calibration_error, BinnedPower, _BY_GROUP),
        Metric(kde_calibration_error, KernelPower),
        Metric(kernel_calibration_error, None, limits=(-2.0, 2.0), statistics=kernel_statistics),
        Metric(kolmogorov_smirnov_calibration_error, KolmogorovSmirnovPower),
        Metric(kuiper_calibration_error, KuiperPower),
        Metric(maximum_calibration_error, BinnedPower, _MAXIMUM),
        Metric(neighborhood_calibration_error, NeighborhoodPower),
        Metric(smooth_calibration_error, SmoothPower),
        Metric(sweep_calibration_error, SweepPower),
    )
}


# Proper scores are no calibration errors; scikit-learn's scorers of these names fail for labels that are strings and
# for a fold in which a class is missing.
_PROPER_SCORES = {"neg_brier_score": (brier_score, {}), "neg_log_loss": (log_loss, {})}


def metric_of(function):
    """Return the row of a function; None for one that is not of this library and names no `power` of its own."""
    row = next((row for row in METRICS.values() if row.function is function), None)
    power = getattr(function, "power", None)
    return Metric(function, power) if row is None and power is not None else row


def scorers():
    """Return (function, options) of every scorer by its name."""
    errors = {
        name: (row.function, options)
        for key, row in METRICS.items()
        for name, options in (row.scorers or {f"neg_{key}": {}}).items()
    }
    return errors | _PROPER_SCORES
