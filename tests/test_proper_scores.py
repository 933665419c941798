"""Proper scores by row against scikit-learn's, and their scorers on labels and folds
that scikit-learn's fail on.
"""

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, cross_val_score

from skcalib._errors.proper_scores import LOSSES, brier_score, log_loss
from skcalib.metrics import get_scorer

SCORERS = ["neg_brier_score", "neg_log_loss"]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_two_classes(weighted, dtype):
    scores = RNG.random(200).astype(dtype)
    labels, weights = RNG.random(200) < scores, RNG.random(200) if weighted else None
    scores[:2], labels[:2] = (0, 1), (False, True)
    both = np.column_stack((1 - scores.astype(float), scores.astype(float)))
    expected = np.average((labels - scores.astype(float)) ** 2, weights=weights)
    assert brier_score(labels, scores, sample_weight=weights) == pytest.approx(
        expected, rel=1e-6
    )
    expected = sklearn_metrics.log_loss(labels, both, sample_weight=weights)
    assert log_loss(labels, scores, sample_weight=weights) == pytest.approx(
        expected, rel=1e-6
    )


def test_many_classes():
    proba = RNG.dirichlet(np.ones(4), 300)
    labels, weights = RNG.integers(0, 4, 300), RNG.random(300)
    expected = np.average(
        ((proba - np.eye(4)[labels]) ** 2).sum(axis=1), weights=weights
    )
    assert brier_score(labels, proba, sample_weight=weights) == pytest.approx(expected)
    expected = sklearn_metrics.log_loss(labels, proba, sample_weight=weights)
    assert log_loss(labels, proba, sample_weight=weights) == pytest.approx(expected)


def test_by_hand():
    # (.8 - 1)^2 = .04, (.3 - 0)^2 = .09; three classes: .5^2 + .3^2 + .8^2 = .98
    scores, labels = np.array([0.8, 0.3]), np.array([True, False])
    np.testing.assert_allclose(LOSSES["brier"](scores, labels), [0.04, 0.09])
    np.testing.assert_allclose(
        LOSSES["log"](scores, labels), [-np.log(0.8), -np.log(0.7)]
    )
    rows = np.array([[0.5, 0.3, 0.2]])
    np.testing.assert_allclose(LOSSES["brier"](rows, np.array([2])), [0.98])
    np.testing.assert_allclose(LOSSES["log"](rows, np.array([2])), [-np.log(0.2)])
    # certain and wrong: clipped at 2^-52
    assert LOSSES["log"](np.array([0.0]), np.array([True]))[0] == pytest.approx(
        52 * np.log(2)
    )


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_equal_scikit_learns_where_it_has_an_answer(name):
    for n_classes in (2, 3):
        X, y = make_classification(
            300, n_classes=n_classes, n_informative=4, random_state=0
        )
        model = LogisticRegression().fit(X, y)
        ours = get_scorer(name)(model, X, y)
        if n_classes == 2 or name == "neg_log_loss":
            assert ours == pytest.approx(sklearn_metrics.get_scorer(name)(model, X, y))
        else:
            assert ours == pytest.approx(
                -((model.predict_proba(X) - np.eye(3)[y]) ** 2).sum(axis=1).mean()
            )


@pytest.mark.parametrize("name", SCORERS)
def test_string_labels_and_missing_classes_in_a_search(name):
    X, y = make_classification(300, n_classes=3, n_informative=4, random_state=0)
    words, months = np.array(["no", "perhaps", "yes"])[y], np.repeat([0, 1, 2], 100)
    words[(months == 2) & (words == "yes")] = "no"  # a fold without one of the classes
    scores = cross_val_score(
        LogisticRegression(),
        X,
        words,
        groups=months,
        cv=LeaveOneGroupOut(),
        scoring=get_scorer(name),
    )
    assert np.isfinite(scores).all()
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=get_scorer(name), cv=3
    )
    assert search.fit(X, words).best_params_ == {"C": 1.0}
    binary = search.fit(X[y < 2], words[y < 2])
    assert np.isfinite(binary.cv_results_["mean_test_score"]).all()
