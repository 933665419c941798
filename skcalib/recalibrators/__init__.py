"""Recalibrators: estimators that turn scores into calibrated probabilities."""

from skcalib.recalibrators._base import BaseRecalibrator
from skcalib.recalibrators._beta import BetaCalibration
from skcalib.recalibrators._binary import BinaryRecalibrator
from skcalib.recalibrators._classwise import ClasswiseTemperatureScaling
from skcalib.recalibrators._groupwise import GroupwiseRecalibrator
from skcalib.recalibrators._histogram import HistogramBinning
from skcalib.recalibrators._isotonic import IsotonicCalibration
from skcalib.recalibrators._logit import LogitRecalibrator
from skcalib.recalibrators._matrix import (
    DirichletCalibration,
    MatrixScaling,
    VectorScaling,
)
from skcalib.recalibrators._multicalibrated import MulticalibratedRecalibrator
from skcalib.recalibrators._online import OnlineRecalibrator
from skcalib.recalibrators._prior_shift import PriorShift, estimate_target_prior
from skcalib.recalibrators._quadratic import QuadraticScaling
from skcalib.recalibrators._recalibrator import Recalibrator, renamed
from skcalib.recalibrators._scaling import PlattScaling
from skcalib.recalibrators._scaling_binning import ScalingBinning
from skcalib.recalibrators._spline import SplineCalibration
from skcalib.recalibrators._stacked import StackedRecalibrator
from skcalib.recalibrators._temperature import (
    EnsembleTemperatureScaling,
    TemperatureScaling,
)
from skcalib.recalibrators._uniform_mass import UniformMassBinning
from skcalib.recalibrators._venn_abers import VennAbers

__all__ = [
    "BaseRecalibrator",
    "BetaCalibration",
    "BinaryRecalibrator",
    "ClasswiseTemperatureScaling",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "GroupwiseRecalibrator",
    "HistogramBinning",
    "IsotonicCalibration",
    "LogitRecalibrator",
    "MatrixScaling",
    "MulticalibratedRecalibrator",
    "OnlineRecalibrator",
    "PlattScaling",
    "PriorShift",
    "QuadraticScaling",
    "Recalibrator",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
    "TemperatureScaling",
    "UniformMassBinning",
    "VectorScaling",
    "VennAbers",
    "estimate_target_prior",
]


def __getattr__(name):
    """Return a class by the name that it had before."""
    return renamed(name, __name__)


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
