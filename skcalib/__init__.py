"""Calibrated probabilities for scikit-learn: recalibrators, honest metrics, pluggable bins."""

from skcalib.cross_fitting import CrossFittedClassifier
from skcalib.recalibrated_classifier import RecalibratedClassifierCV
from skcalib.recalibrators import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PriorShift,
    QuadraticScaling,
    ScalingBinning,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    UniformMassBinning,
    VectorScaling,
    VennAbers,
    estimate_target_prior,
)

__version__ = "0.1.0"
__all__ = [
    "BetaCalibration",
    "ClasswiseTemperatureScaling",
    "CrossFittedClassifier",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "GroupwiseRecalibrator",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PlattScaling",
    "PriorShift",
    "QuadraticScaling",
    "RecalibratedClassifierCV",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
    "TemperatureScaling",
    "UniformMassBinning",
    "VectorScaling",
    "VennAbers",
    "estimate_target_prior",
    "__version__",
]
