"""Calibrated probabilities for scikit-learn: recalibrators, honest metrics, pluggable bins."""

from skcalib.cross_fitting import CrossFittedClassifier
from skcalib.recalibrated_classifier import RecalibratedClassifierCV
from skcalib.recalibrators import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    QuadraticScaling,
    ScalingBinning,
    TemperatureScaling,
    UniformMassBinning,
    VectorScaling,
)

__version__ = "0.1.0"
__all__ = [
    "BetaCalibration",
    "ClasswiseTemperatureScaling",
    "CrossFittedClassifier",
    "DirichletCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PlattScaling",
    "QuadraticScaling",
    "RecalibratedClassifierCV",
    "ScalingBinning",
    "TemperatureScaling",
    "UniformMassBinning",
    "VectorScaling",
    "__version__",
]
