"""Calibrated probabilities for scikit-learn: recalibrators, honest metrics, pluggable bins."""

from skcalib.recalibrators import (
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
)

__version__ = "0.1.0"
__all__ = [
    "HistogramBinning",
    "IsotonicCalibration",
    "PlattScaling",
    "ScalingBinning",
    "TemperatureScaling",
    "__version__",
]
