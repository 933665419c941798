"""Calibrated probabilities for scikit-learn: recalibrators, honest metrics, pluggable bins."""

from skcalib.cross_fitting import CrossFittedClassifier
from skcalib.recalibrated_classifier import RecalibratedClassifierCV
from skcalib.recalibrators import (
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
    UniformMassBinning,
)

__version__ = "0.1.0"
__all__ = [
    "CrossFittedClassifier",
    "HistogramBinning",
    "IsotonicCalibration",
    "PlattScaling",
    "RecalibratedClassifierCV",
    "ScalingBinning",
    "TemperatureScaling",
    "UniformMassBinning",
    "__version__",
]
