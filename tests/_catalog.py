"""What there is, in one place: the recalibrators and metrics that the tests of common properties run over."""

import traceback
from contextlib import contextmanager
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import skcalib
from skcalib import evaluation, metrics, recalibrators
from skcalib._inference.results import ResultTable

# One or more instances of every public recalibrator.
RECALIBRATORS = [
    skcalib.BetaCalibration(),
    skcalib.BetaCalibration("ab", smooth_targets=True, multiclass="top_label"),
    skcalib.CautiousRecalibrator(),
    skcalib.CautiousRecalibrator(skcalib.SplineCalibration(), cv=3),
    skcalib.ClasswiseTemperatureScaling(),
    skcalib.ClasswiseTemperatureScaling(max_deviation=0.1),
    skcalib.DirichletCalibration(),
    skcalib.EnsembleTemperatureScaling(),
    skcalib.HistogramBinning(binning=3),
    skcalib.HistogramBinning(binning=3, smoothing=1.0, multiclass="top_label"),
    skcalib.IsotonicCalibration(),
    skcalib.IsotonicCalibration(centered=True),
    skcalib.MatrixScaling(),
    skcalib.PlattScaling(),
    skcalib.PlattScaling(loss="squared", smooth_targets=False),
    skcalib.PlattScaling(multiclass="top_label"),
    skcalib.PlattScaling(class_pooling=1.0),
    skcalib.PriorShift(train_prior="balanced"),
    skcalib.QuadraticScaling(),
    skcalib.QuadraticScaling(alpha=0.1, monotone=True),
    skcalib.QuadraticScaling(class_pooling=0),
    skcalib.ScalingBinning(binning=3),
    skcalib.SplineCalibration(),
    skcalib.SplineCalibration(
        4, roughness_penalty=0.5, monotone=True, multiclass="top_label"
    ),
    skcalib.StackedRecalibrator(),
    skcalib.StackedRecalibrator(
        [skcalib.PlattScaling(), skcalib.IsotonicCalibration()], cv=3
    ),
    skcalib.TemperatureScaling(),
    skcalib.TemperatureScaling(clip=None),
    skcalib.TemperatureScaling(loss="brier"),
    skcalib.UniformMassBinning(n_bins=3),
    skcalib.VectorScaling(),
    skcalib.VennAbers(),
    skcalib.VennAbers(max_n_knots=5, multiclass="top_label"),
]
# Those whose theory has no weights.
UNWEIGHTED = (skcalib.UniformMassBinning,)
# Those that fit with `classes=` where one of three classes has no row.
FIT_MISSING_CLASS = (
    skcalib.BetaCalibration,
    skcalib.CautiousRecalibrator,
    skcalib.ClasswiseTemperatureScaling,
    skcalib.DirichletCalibration,
    skcalib.HistogramBinning,
    skcalib.IsotonicCalibration,
    skcalib.MatrixScaling,
    skcalib.QuadraticScaling,
    skcalib.ScalingBinning,
    skcalib.SplineCalibration,
    skcalib.StackedRecalibrator,
    skcalib.UniformMassBinning,
    skcalib.VectorScaling,
    skcalib.VennAbers,
)

# Options that a metric of (y_true, y_proba) cannot do without, for the few rows of the tests.
_OPTIONS = {
    "neighborhood_calibration_error": {"n_neighbors": 2},
    "calibration_by_group": {"n_resamples": 20, "random_state": 0},
    "calibration_error": {"binning": 3},
    "validity_curve": {
        "epsilons": [0.013, 0.077, 0.239, 0.613]
    },  # its own differ by rounding
    "calibration_error_interval": {"binning": 3, "n_resamples": 20, "random_state": 0},
    "calibration_test": {"n_resamples": 20, "random_state": 0},
    "calibration_summary": {"n_resamples": 20, "random_state": 0},
    "recalibration_gain": {"recalibrator": skcalib.PlattScaling(), "cv": 2},
}


def public_recalibrators():
    classes = (getattr(skcalib, name) for name in skcalib.__all__)
    return {
        one
        for one in classes
        if isinstance(one, type) and issubclass(one, recalibrators.BaseRecalibrator)
    }


# Those that are about one event, and have no meaning for more than two classes.
_ONE_EVENT = ("calibration_summary",)


def metrics_(*needs, many_classes=False):
    """Return test parameters: functions of (y_true, y_proba, **options), those that have all the parameters named.

    Functions that need more than labels and probabilities are left out, and with `many_classes` those of one event.
    """
    found = []
    for name in (*metrics.__all__, *evaluation.__all__):
        if many_classes and name in _ONE_EVENT:
            continue
        metric = getattr(metrics if hasattr(metrics, name) else evaluation, name)
        parameters = signature(metric).parameters
        first, more = list(parameters)[:2], list(parameters.values())[2:]
        needs_more = any(
            one.default is one.empty and one.kind != one.VAR_KEYWORD for one in more
        )
        if (
            first == ["y_true", "y_proba"]
            and set(needs) <= set(parameters)
            and not needs_more
        ):
            found.append(
                pytest.param(_with_options(metric, _OPTIONS.get(name, {})), id=name)
            )
    return found


def _with_options(metric, options):
    def call(y_true, y_proba, **more):
        result = metric(y_true, y_proba, **{**options, **more})
        if not isinstance(result, ResultTable):
            return result
        return [
            column
            for column in result.columns().values()
            if np.asarray(column).dtype.kind not in "US"
        ]

    call.__name__ = metric.__name__
    return call


@contextmanager
def refused(exception, *words):
    """Expect one exception, raised in our own code, whose message holds all the words."""
    with pytest.raises(exception) as caught:
        yield
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} is not in: {message}"
    raised_in = traceback.extract_tb(caught.value.__traceback__)[-1].filename
    assert Path(raised_in).is_relative_to(Path(skcalib.__file__).parent), raised_in
