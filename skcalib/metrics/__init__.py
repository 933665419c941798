"""Calibration metrics with intervals and tests, and their scikit-learn scorers."""

from skcalib._cells.class_statistics import ClassBinStatistics
from skcalib._cells.statistics import BinStatistics
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib.metrics._bin_curves import (
    reliability_curve,
    validity_curve,
)
from skcalib.metrics._bin_free import (
    kde_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
    smooth_calibration_error,
)
from skcalib.metrics._binned import (
    calibration_error,
    expected_calibration_error,
    maximum_calibration_error,
    sweep_calibration_error,
)
from skcalib.metrics._by_group import calibration_by_group
from skcalib.metrics._canonical import kernel_calibration_error
from skcalib.metrics._decision import decision_calibration_error
from skcalib.metrics._decomposition import brier_decomposition, log_loss_decomposition
from skcalib.metrics._group_errors import groupwise_calibration_error
from skcalib.metrics._interval import calibration_error_interval
from skcalib.metrics._ranked import (
    ranked_probability_decomposition,
    ranked_probability_score,
)
from skcalib.metrics._registry import (
    Metric,
    get_scorer,
    get_scorer_names,
    register_metric,
)
from skcalib.metrics._segment_test import segment_calibration_test
from skcalib.metrics._slope import calibration_slope_intercept
from skcalib.metrics._tests import calibration_test
from skcalib.metrics._two_bin import two_bin_calibration_error

__all__ = [
    "BinStatistics",
    "CalibrationError",
    "ClassBinStatistics",
    "ErrorPower",
    "Metric",
    "brier_decomposition",
    "calibration_by_group",
    "calibration_error",
    "calibration_error_interval",
    "calibration_slope_intercept",
    "calibration_test",
    "decision_calibration_error",
    "expected_calibration_error",
    "get_scorer",
    "get_scorer_names",
    "groupwise_calibration_error",
    "kde_calibration_error",
    "kernel_calibration_error",
    "kolmogorov_smirnov_calibration_error",
    "kuiper_calibration_error",
    "log_loss_decomposition",
    "maximum_calibration_error",
    "neighborhood_calibration_error",
    "ranked_probability_decomposition",
    "ranked_probability_score",
    "register_metric",
    "reliability_curve",
    "segment_calibration_test",
    "smooth_calibration_error",
    "sweep_calibration_error",
    "two_bin_calibration_error",
    "validity_curve",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
