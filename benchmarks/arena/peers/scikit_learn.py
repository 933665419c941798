"""scikit-learn: the methods of CalibratedClassifierCV, on a classifier whose
probabilities are given.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator


class _Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are its probabilities."""

    def __init__(self, n_classes):
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X.argmax(axis=1)

    def predict_proba(self, X):
        return X


def _calibrated(method):
    def fit_predict(probs_cal, labels_cal, probs_test):
        given = FrozenEstimator(_Given(probs_cal.shape[1]))
        return (
            CalibratedClassifierCV(given, method=method)
            .fit(probs_cal, labels_cal)
            .predict_proba(probs_test)
        )

    return fit_predict


BINARY = MULTICLASS = {
    method: _calibrated(method) for method in ("sigmoid", "isotonic", "temperature")
}
