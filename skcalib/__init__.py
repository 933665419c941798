"""Calibrated probabilities for scikit-learn: recalibrators, metrics, binning."""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from skcalib._input.later_scorers import LATER_SCORERS

__version__ = "0.2.0.dev0"
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
    "MulticalibratedRecalibrator",
    "OnlineRecalibrator",
    "PlattScaling",
    "PriorShift",
    "QuadraticScaling",
    "RecalibratedClassifierCV",
    "Recalibrator",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
    "TemperatureScaling",
    "UniformMassBinning",
    "VectorScaling",
    "VennAbers",
    "censored_labels",
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
    "maps",
    "metrics",
    "model_selection",
    "monitoring",
    "simulation",
)

# Further submodules, from which names of `__all__` come.
_FURTHER = ("cross_fitting", "recalibrated_classifier", "recalibrators")
# Where the names of `__all__` are that are not in `skcalib.recalibrators`.
_HOMES = {
    "CrossFittedClassifier": "skcalib.cross_fitting",
    "RecalibratedClassifierCV": "skcalib.recalibrated_classifier",
    "censored_labels": "skcalib._input.censored_labels",
    "expand_soft_labels": "skcalib._input.scored_labels",
}

if TYPE_CHECKING:
    # Editors and type checkers do not run `__getattr__`, and would take each name for
    # an attribute if they saw it.
    from skcalib import binning as binning
    from skcalib import decisions as decisions
    from skcalib import displays as displays
    from skcalib import engines as engines
    from skcalib import evaluation as evaluation
    from skcalib import export as export
    from skcalib import guarantees as guarantees
    from skcalib import maps as maps
    from skcalib import metrics as metrics
    from skcalib import model_selection as model_selection
    from skcalib import monitoring as monitoring
    from skcalib import simulation as simulation
    from skcalib._input.censored_labels import censored_labels
    from skcalib._input.scored_labels import expand_soft_labels
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
        MulticalibratedRecalibrator,
        OnlineRecalibrator,
        PlattScaling,
        PriorShift,
        QuadraticScaling,
        Recalibrator,
        ScalingBinning,
        SplineCalibration,
        StackedRecalibrator,
        TemperatureScaling,
        UniformMassBinning,
        VectorScaling,
        VennAbers,
        estimate_target_prior,
    )
else:

    def __getattr__(name):
        """Import a submodule, or the home of a name, when it is first asked for: the
        others cost no time.
        """
        if name in _SUBMODULES or name in _FURTHER:
            return import_module(f"skcalib.{name}")
        recalibrators = "skcalib.recalibrators"
        home = import_module(_HOMES.get(name, recalibrators))
        if name not in __all__:
            return home.renamed(name, __name__)
        globals()[name] = getattr(home, name)
        return globals()[name]


def _refinement_scorer(loss):
    """Return a metric and its options, for a scorer that is made when asked for."""
    from skcalib.evaluation import refinement_loss

    return refinement_loss, {"loss": loss}


LATER_SCORERS["neg_refinement_log_loss"] = partial(_refinement_scorer, "log")
LATER_SCORERS["neg_refinement_brier_score"] = partial(_refinement_scorer, "brier")


def __dir__():
    return sorted({*__all__, *_SUBMODULES})
