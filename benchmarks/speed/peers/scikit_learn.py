"""scikit-learn: the calibration curve, and the calibrators of
`CalibratedClassifierCV`.
"""

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from benchmarks.speed.peers import Contender


class _Given(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose decision function is its input."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def _calibrated(method, scores, labels):
    scores = scores[:, None] if scores.ndim == 1 else scores
    model = FrozenEstimator(_Given().fit(None, labels))
    return (
        CalibratedClassifierCV(model, method=method, ensemble=False)
        .fit(scores, labels)
        .predict_proba(scores)
    )


def _log_odds(problem):
    scores = np.clip(problem.scores, 2**-52, 1 - 2**-52)
    return np.log(scores) - np.log1p(-scores)


def _isotonic(problem):
    return (
        IsotonicRegression(out_of_bounds="clip")
        .fit(problem.scores, problem.labels)
        .predict(problem.scores)
    )


def _logistic(problem):
    known, fresh = problem.halves()
    centred = [
        part.logits - part.logits.mean(axis=1, keepdims=True) for part in (known, fresh)
    ]
    return (
        LogisticRegression(C=np.inf, max_iter=1000)
        .fit(centred[0], known.labels)
        .predict_proba(centred[1])
    )


def _curve(strategy):
    def run(problem):
        return calibration_curve(
            problem.labels, problem.scores, n_bins=15, strategy=strategy
        )

    def expected_calibration_error(curve, problem):
        cuts = np.linspace(0, 1, 16)
        edges = (
            cuts if strategy == "uniform" else np.percentile(problem.scores, cuts * 100)
        )
        count = np.bincount(np.searchsorted(edges[1:-1], problem.scores))
        return float(
            np.abs(curve[0] - curve[1]) @ count[count > 0] / len(problem.scores)
        )

    return Contender(run, expected_calibration_error)


JOBS = {
    "equal-width ECE": _curve("uniform"),
    "equal-mass ECE": _curve("quantile"),
    "equal-mass ECE, debiased": Contender(
        _curve("quantile").run, lambda *_: np.nan, "a plugin curve"
    ),
    "matrix scaling, unpenalised": Contender(_logistic),
    "isotonic": Contender(_isotonic),
    "Platt": Contender(
        lambda problem: _calibrated("sigmoid", _log_odds(problem), problem.labels)
    ),
}
# which brought temperature scaling
if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8):
    JOBS |= {
        f"temperature, {n_classes} classes": Contender(
            lambda problem: _calibrated("temperature", problem.logits, problem.labels)
        )
        for n_classes in (1000, 100)
    }
