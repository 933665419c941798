"""Experiments and contenders: who is fitted to what, and the scores on the test
rows.
"""

import time
import warnings

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

import skcalib
import skcalib.binning
from skcalib._rows.links import clip_probability
from skcalib.metrics import calibration_error

# What a method gets in an experiment. The errors are signed debiased squares, whose
# means are unbiased.
SCORES = ("log_loss", "brier", "top_label_error", "marginal_error")

# The recalibrators that take part, with their defaults.
_BINARY = (
    "TemperatureScaling",
    "EnsembleTemperatureScaling",
    "PlattScaling",
    "BetaCalibration",
    "QuadraticScaling",
    "SplineCalibration",
    "VennAbers",
    "IsotonicCalibration",
    "HistogramBinning",
    "ScalingBinning",
    "StackedRecalibrator",
    "Recalibrator",
)
_MULTICLASS = (
    *_BINARY,
    "ClasswiseTemperatureScaling",
    "VectorScaling",
    "MatrixScaling",
    "DirichletCalibration",
)
# Options beside the defaults: the ridge that the default may weaken.
_OPTIONS = {
    f"{name}(alpha=1)": (name, {"alpha": 1.0})
    for name in ("VectorScaling", "MatrixScaling", "DirichletCalibration")
}


def methods(kind, wanted=None):
    """Return this library's contenders by name: functions (probs_cal, labels_cal,
    probs_test) -> probabilities.

    `wanted` may name others, as expressions: "PlattScaling(clip=None)".
    """
    contenders = {
        name: (name, {}) for name in (_BINARY if kind == "binary" else _MULTICLASS)
    }
    if kind == "multiclass":
        contenders |= _OPTIONS
    objects = {
        title: getattr(skcalib, name)(**options)
        for title, (name, options) in contenders.items()
    }
    if wanted is not None:
        objects = {
            title: objects[title] if title in objects else _of_expression(title)
            for title in wanted
        }
    return {
        title: _fit_predict(recalibrator) for title, recalibrator in objects.items()
    }


def _of_expression(title):
    names = {
        name: getattr(module, name)
        for module in (skcalib, skcalib.binning)
        for name in module.__all__
    }
    found = eval(title, names)
    return found() if isinstance(found, type) else found


def load(data, kind):
    """Return the experiments as a list, by data set, of lists of (name, scores and
    labels of both parts).
    """
    by_data_set = {}
    for path in sorted((data / "arena").glob(f"*{kind}*.npz")):
        folder = np.load(path, allow_pickle=False)
        for key in folder.files:
            data_set, model, part = key.split("/")
            by_data_set.setdefault(data_set, {}).setdefault(model, {})[part] = folder[
                key
            ]
    if not by_data_set:
        raise FileNotFoundError(f"{data / 'arena'} holds no file *{kind}*.npz.")
    return [
        [(f"{data_set}/{model}", parts) for model, parts in models.items()]
        for data_set, models in by_data_set.items()
    ]


def few_rows(data_sets, n_rows):
    """Return the experiments with so many random calibration rows, without those that
    have too few or one class.
    """
    found = [
        [(name, _part(parts, n_rows)) for name, parts in models] for models in data_sets
    ]
    return [
        [
            (name, parts)
            for name, parts in models
            if len(np.unique(parts["labels_cal"])) > 1
        ]
        for models in found
    ]


def _part(parts, n_rows):
    n_all = len(parts["labels_cal"])
    rows = np.random.default_rng(0).permutation(n_all)[
        : n_rows if n_all > n_rows else 0
    ]
    return parts | {name: parts[name][rows] for name in ("probs_cal", "labels_cal")}


def run(data_sets, contenders, n_jobs=1):
    """Return a dictionary an experiment: name, sizes, by method its scores (see
    `SCORES`) and seconds, and errors.
    """
    experiments = [(name, parts) for models in data_sets for name, parts in models]
    return Parallel(n_jobs=n_jobs)(
        delayed(_one_experiment)(name, parts, contenders) for name, parts in experiments
    )


def _fit_predict(recalibrator):
    def fit_predict(probs_cal, labels_cal, probs_test):
        # All classes are named: some calibration parts miss one. A warning would be a
        # defect.
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = (
                clone(recalibrator)
                .set_params(classes=np.arange(probs_cal.shape[1]))
                .fit(probs_cal, labels_cal)
            )
            return fitted.predict_proba(probs_test)

    fit_predict.is_ours = True
    return fit_predict


def _one_experiment(name, parts, contenders):
    probs, labels = (
        parts["probs_test"].astype(np.float64),
        parts["labels_test"].astype(int),
    )
    probs /= probs.sum(axis=1, keepdims=True)
    scores, errors = {"uncalibrated": (*_scores(probs, labels), 0.0)}, {}
    for method, fit_predict in contenders.items():
        start = time.perf_counter()
        try:
            predicted = fit_predict(
                parts["probs_cal"], parts["labels_cal"], parts["probs_test"]
            )
            predicted = np.asarray(predicted, dtype=np.float64)
            if predicted.shape != probs.shape or not np.isfinite(predicted).all():
                raise ValueError(f"shape {predicted.shape} or not finite")
        except Exception as error:
            if getattr(fit_predict, "is_ours", False):
                raise
            # A peer that fails leaves the scores as they were.
            predicted, errors[method] = probs, f"{type(error).__name__}: {error}"
        scores[method] = (*_scores(predicted, labels), time.perf_counter() - start)
    sizes = {"n_cal": len(parts["labels_cal"]), "n_classes": probs.shape[1]}
    return {"name": name, **sizes, "scores": scores, "errors": errors}


def _scores(probs, labels):
    """Return the scores in the order of `SCORES`."""
    true = np.arange(len(labels)), labels
    log_loss = -np.mean(np.log(clip_probability(probs)[true]))
    brier = np.mean(np.sum(probs**2, axis=1) - 2 * probs[true] + 1)
    forecast = np.clip(probs, 0, 1)  # float32 sums miss 1
    forecast /= forecast.sum(axis=1, keepdims=True)
    options = {"squared": True, "labels": np.arange(probs.shape[1])}
    errors = [
        calibration_error(labels, forecast, multiclass=kind, **options)
        for kind in ("top_label", "marginal")
    ]
    return float(log_loss), float(brier), *errors
