"""Calibrated probabilities for scikit-learn: recalibrators, honest metrics, pluggable bins."""

from importlib import import_module

from skcalib._input.scored_labels import expand_soft_labels
from skcalib.cross_fitting import CrossFittedClassifier
from skcalib.recalibrated_classifier import RecalibratedClassifierCV
from skcalib.recalibrators import (
    BetaCalibration,
    CautiousRecalibrator,
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    MulticalibratedRecalibrator,
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

__version__ = "0.2.0.dev0"
__all__ = [
    "BetaCalibration",
    "CautiousRecalibrator",
    "ClasswiseTemperatureScaling",
    "CrossFittedClassifier",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "GroupwiseRecalibrator",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "MulticalibratedRecalibrator",
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
    "expand_soft_labels",
    "__version__",
]

_SUBMODULES = (
    "binning",
    "decisions",
    "displays",
    "engines",
    "evaluation",
    "export",
    "guarantees",
    "metrics",
    "model_selection",
    "monitoring",
    "simulation",
)


def __getattr__(name):
    """Import a submodule when it is first asked for: what is not used costs no time."""
    if name in _SUBMODULES:
        return import_module(f"skcalib.{name}")
    raise AttributeError(f"module 'skcalib' has no attribute {name!r}")


def __dir__():
    return sorted({*__all__, *_SUBMODULES})
