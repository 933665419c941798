"""The demonstration of the command line: a recalibrated scikit-learn model end to end."""

from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline

from skcalib.binning import EqualMass, EqualWidth
from skcalib.cross_fitting import CrossFittedClassifier
from skcalib.metrics import calibration_error, expected_calibration_error, get_scorer
from skcalib.recalibrators import (
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
)

_LOADERS = {"digits": load_digits, "breast_cancer": load_breast_cancer}
_BIN_COUNTS = [5, 10, 15, 25]
_SEARCH = [{"recalibrator__binning": [EqualMass(), EqualWidth()], "recalibrator__binning__n_bins": _BIN_COUNTS}]


def run_demo(data, seed, out):
    """Print the table: an uncalibrated model and each recalibrator on rows that none of them has seen."""
    X, y = _LOADERS[data](return_X_y=True)
    X, X_held_out, y, y_held_out = train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)
    print(f"Naive Bayes on {data}: {len(y)} rows to train and calibrate, {len(y_held_out)} held out.", file=out)
    print("Bins are chosen by 3-fold GridSearchCV (log-loss); nothing is fitted on the held-out rows.\n", file=out)
    print(f"{'model':<42}{'log-loss':>10}{'Brier':>10}{'ECE':>10}{'debiased':>10}", file=out)
    for name, model in _fitted_models(X, y):
        y_proba = model.predict_proba(X_held_out)
        figures = _figures(y_held_out, y_proba, model.classes_)
        print(f"{name:<42}" + "".join(f"{figure:10.4f}" for figure in figures), file=out)
    print(
        "\nECE: 15 equal-width bins, l1, of the predicted class (two classes: of the positive one). Debiased: l2 over"
        "\n15 equal-mass bins, the bias of the label noise removed; 0 means no error that the noise does not explain.",
        file=out,
    )


def _fitted_models(X, y):
    """Yield names and fitted models, one classifier under each recalibrator."""
    yield "uncalibrated", GaussianNB().fit(X, y)
    for recalibrator in (PlattScaling(), TemperatureScaling(), IsotonicCalibration()):
        yield repr(recalibrator), _pipeline(recalibrator).fit(X, y)
    with TemporaryDirectory() as folder:  # the cache of the out-of-fold scores: they are the same for all bins
        for recalibrator in (HistogramBinning(smoothing=1), ScalingBinning()):
            search = GridSearchCV(
                _pipeline(recalibrator, memory=folder),
                _SEARCH,
                scoring={"log_loss": "neg_log_loss", "calibration": get_scorer("neg_squared_calibration_error")},
                refit="log_loss",
                cv=3,
            ).fit(X, y)
            binning = search.best_params_["recalibrator__binning"]
            n_bins = search.best_params_["recalibrator__binning__n_bins"]
            yield f"{type(recalibrator).__name__}({type(binning).__name__}({n_bins}))", search.best_estimator_


def _pipeline(recalibrator, memory=None):
    return Pipeline(
        [("classifier", CrossFittedClassifier(GaussianNB())), ("recalibrator", recalibrator)], memory=memory
    )


def _figures(y_true, y_proba, classes):
    """Return log-loss, Brier score, equal-width ECE and debiased error."""
    one_hot = y_true[:, None] == classes
    brier = np.mean(np.sum((y_proba - one_hot) ** 2, axis=1))
    return (
        log_loss(y_true, y_proba, labels=classes),
        brier,
        expected_calibration_error(y_true, y_proba, labels=classes),
        calibration_error(y_true, y_proba, labels=classes),
    )
