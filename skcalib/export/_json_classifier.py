"""The calibration part of a `RecalibratedClassifierCV` as JSON: its recalibrators, without the classifiers."""

import numpy as np

from skcalib.export._json_values import Defect, as_json, check_keys, from_json, tried
from skcalib.recalibrated_classifier import RecalibratedClassifierCV, RecalibratedModel
from skcalib.recalibrators._attributes import fitted, labels

NAME = RecalibratedClassifierCV.__name__

_METHODS = ("predict_proba", "decision_function")


class GivenScores:
    """What stands where a classifier was: its rows are that classifier's scores already.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels that the classifier knew.
    pair, n_pairs : int
        Which of how many classifiers this is.
    """

    def __init__(self, classes, pair, n_pairs):
        self.classes_ = classes
        self.pair, self.n_pairs = pair, n_pairs

    def predict_proba(self, X):
        """Return the classifier's probabilities (n, n_classes)."""
        columns = self._columns(X)
        return np.hstack((1 - columns, columns)) if columns.shape[1] == 1 else columns

    def decision_function(self, X):
        """Return the classifier's decisions, (n,) for two classes."""
        columns = self._columns(X)
        if columns.shape[1] == 2:
            raise ValueError("X must hold one column of decisions for two classes, found 2.")
        return columns[:, 0] if columns.shape[1] == 1 else columns

    def _columns(self, X):
        """Return this classifier's columns: the same rows of scores for all classifiers, or one array for each."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim == 3 and len(X) == self.n_pairs:
            X = X[self.pair]
        X = X.reshape(-1, 1) if X.ndim == 1 else X
        widths = (1, 2) if len(self.classes_) == 2 else (len(self.classes_),)
        if X.ndim != 2 or X.shape[1] not in widths:
            raise ValueError(
                f"X must hold scores in place of rows: (n, {widths[-1]}) for all classifiers, or ({self.n_pairs}, n, "
                f"{widths[-1]}) with those of each; found the shape {X.shape}."
            )
        return X


def classifier_as_json(model, recalibrator_as_json):
    """Return the calibration part of a fitted model; the function writes a recalibrator."""
    return {
        "class": NAME,
        "classes": as_json(model.classes_, None),
        "pairs": [
            {"response_method": pair.response_method, "recalibrator": recalibrator_as_json(pair.recalibrator)}
            for pair in model.calibrated_classifiers_
        ],
    }


def classifier_from_json(document, decoder):
    """Return a `RecalibratedClassifierCV` whose `predict_proba` takes scores in place of rows."""
    check_keys(document, {"class", "classes", "pairs"}, set(), NAME)
    read = from_json(document["classes"], f"{NAME}.classes", decoder.object)
    classes = tried(lambda: labels(read), f"{NAME}.classes")
    written = document["pairs"]
    if not isinstance(written, list) or not written:
        raise Defect(f"{NAME}.pairs", "must be a list of pairs")
    model = RecalibratedClassifierCV()
    model.classes_ = classes
    model.calibrated_classifiers_ = [
        _pair(pair, f"{NAME}.pairs[{k}]", decoder, classes, k, len(written)) for k, pair in enumerate(written)
    ]
    return model


def _pair(written, where, decoder, classes, number, n_pairs):
    check_keys(written, {"response_method", "recalibrator"}, set(), where)
    method = written["response_method"]
    if method not in _METHODS:
        raise Defect(f"{where}.response_method", f"must be one of {_METHODS}, found {method!r:.60}")
    read = from_json(written["recalibrator"], f"{where}.recalibrator", decoder.object)
    recalibrator = tried(lambda: fitted(read), f"{where}.recalibrator")
    if not set(recalibrator.classes_.tolist()) <= set(classes.tolist()):
        raise Defect(f"{where}.recalibrator", f"has other classes: {recalibrator.classes_.tolist()}")
    return RecalibratedModel(GivenScores(recalibrator.classes_, number, n_pairs), recalibrator, classes, method)
