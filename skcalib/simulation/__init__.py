"""Simulations with a known calibration curve: true errors, bias, power, and fits."""

from skcalib.simulation._curves import GlmCurve, PlattCurve, PowerCurve
from skcalib.simulation._fits import (
    fit_calibration_curve,
    fit_score_distribution,
)
from skcalib.simulation._model import CalibrationModel

__all__ = [
    "CalibrationModel",
    "GlmCurve",
    "PlattCurve",
    "PowerCurve",
    "fit_calibration_curve",
    "fit_score_distribution",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
