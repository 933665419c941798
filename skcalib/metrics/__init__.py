"""Calibration metrics with honest statistics, and their scikit-learn scorers."""

from skcalib.metrics._curves import reliability_curve
from skcalib.metrics._errors import calibration_error, expected_calibration_error, maximum_calibration_error
from skcalib.metrics._scorers import get_scorer, get_scorer_names

__all__ = [
    "calibration_error",
    "expected_calibration_error",
    "get_scorer",
    "get_scorer_names",
    "maximum_calibration_error",
    "reliability_curve",
]
