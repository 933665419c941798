"""Scorers: by name, with labels of any type, on folds in which a class is missing,
inside searches.
"""

import pickle

import numpy as np
import pytest
from _catalog import metrics_, refused
from sklearn import config_context, metrics
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.svm import LinearSVC

from skcalib._input.scalars import resolve_norm
from skcalib.binning import EqualWidth
from skcalib.metrics import (
    calibration_error,
    expected_calibration_error,
    get_scorer,
    get_scorer_names,
)
from skcalib.metrics._registry import scorers

X, Y = make_classification(200, n_features=6, random_state=0)
X3, Y3 = make_classification(
    200, n_features=6, n_informative=4, n_classes=3, random_state=0
)
NAMES = np.array(["no", "yes"])
ECE = "neg_expected_calibration_error"

# The refinement fits recalibrators in folds: once with the fast tests is enough.
every_scorer = pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=pytest.mark.slow if name.startswith("neg_refinement") else []
        )
        for name in get_scorer_names()
    ],
)
OPTIONS = {"neg_neighborhood_calibration_error": {"n_neighbors": 20}}
# Words have no order of their own.
ORDERED = ("neg_ranked_probability_score",)


def _three_labels(name):
    return np.array([1, 2, 3] if name in ORDERED else ["a", "b", "c"])


class Told(ClassifierMixin, BaseEstimator):
    """A classifier that says the probabilities it is given as X."""

    def __init__(self, classes=(0, 1)):
        self.classes = classes

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def _scorer(name, **options):
    return get_scorer(name, **OPTIONS.get(name, {}), **options)


@every_scorer
def test_scorer_is_minus_the_metric(name):
    metric, defaults = scorers()[name]
    options = {**defaults, **OPTIONS.get(name, {})}
    model = LogisticRegression().fit(X, Y)
    assert _scorer(name)(model, X, Y) == pytest.approx(
        -metric(Y, model.predict_proba(X), **options)
    )
    model = LogisticRegression().fit(X3, Y3)
    assert _scorer(name)(model, X3, Y3) == pytest.approx(
        -metric(Y3, model.predict_proba(X3), **options)
    )


def test_names():
    assert get_scorer_names() == sorted(get_scorer_names())
    assert {
        "neg_calibration_error",
        "neg_expected_calibration_error",
        "neg_maximum_calibration_error",
        "neg_squared_calibration_error",
    } <= set(get_scorer_names())
    with refused(ValueError, "'ece'", ECE):
        get_scorer("ece")
    # one name each: no two scorers have the same metric with the same norm
    meanings = [
        (metric, str({**options, "norm": resolve_norm(options.get("norm", 2))}))
        for metric, options in scorers().values()
    ]
    assert len(set(meanings)) == len(meanings)


@every_scorer
@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(NAMES[Y], id="str"),
        pytest.param(Y == 1, marks=pytest.mark.slow, id="bool"),
        pytest.param(Y + 1, marks=pytest.mark.slow, id="1,2"),
        pytest.param(2 * Y - 1, marks=pytest.mark.slow, id="-1,1"),
        pytest.param(NAMES.astype(object)[Y], marks=pytest.mark.slow, id="object"),
    ],
)
def test_labels_of_any_type_score_the_same(name, labels):
    expected = _scorer(name)(LogisticRegression().fit(X, Y), X, Y)
    assert _scorer(name)(
        LogisticRegression().fit(X, labels), X, labels
    ) == pytest.approx(expected)
    assert _scorer(name)(
        LogisticRegression().fit(X, labels), X, labels.tolist()
    ) == pytest.approx(expected)


def test_labels_of_pandas_and_polars_score_the_same():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    model = LogisticRegression().fit(X, NAMES[Y])
    expected = get_scorer(ECE)(model, X, NAMES[Y])
    assert (
        get_scorer(ECE)(model, X, pandas.Series(NAMES[Y], index=range(7, 207)))
        == expected
    )
    assert get_scorer(ECE)(model, X, polars.Series(NAMES[Y])) == expected


@every_scorer
def test_a_class_missing_from_the_test_fold(name):
    model = LogisticRegression().fit(X3, _three_labels(name)[Y3])
    rows = Y3 > 0
    metric, defaults = scorers()[name]
    expected = metric(
        Y3[rows],
        model.predict_proba(X3[rows]),
        labels=[0, 1, 2],
        **defaults,
        **OPTIONS.get(name, {}),
    )
    assert _scorer(name)(
        model, X3[rows], _three_labels(name)[Y3[rows]]
    ) == pytest.approx(-expected)
    # one class alone in the fold of a binary problem
    model = LogisticRegression().fit(X, NAMES[Y])
    assert np.isfinite(_scorer(name)(model, X[Y == 1], NAMES[Y[Y == 1]]))


@every_scorer
def test_a_class_missing_from_the_training_fold(name):
    seen = Y3 != 1
    model = LogisticRegression().fit(X3[seen], _three_labels(name)[Y3[seen]])
    # no probability for the class never seen
    proba = np.insert(model.predict_proba(X3), 1, 0, axis=1)
    metric, defaults = scorers()[name]
    expected = metric(Y3, proba, **defaults, **OPTIONS.get(name, {}))
    assert _scorer(name)(model, X3, _three_labels(name)[Y3]) == pytest.approx(-expected)


def test_an_estimator_of_one_class():
    model = DummyClassifier().fit(X, ["a"] * len(X))
    assert get_scorer(ECE)(model, X, ["a"] * len(X)) == 0
    # says 1 for "a" and is right for half of the rows
    assert get_scorer(ECE)(model, X, ["a", "b"] * (len(X) // 2)) == pytest.approx(-0.5)


def test_the_positive_class_may_be_chosen():
    model = LogisticRegression().fit(X, NAMES[Y])
    proba = model.predict_proba(X)
    for k, pos_label in enumerate(NAMES):
        expected = expected_calibration_error(
            NAMES[Y], proba[:, k], pos_label=pos_label
        )
        assert get_scorer(ECE, pos_label=pos_label)(
            model, X, NAMES[Y]
        ) == pytest.approx(-expected)


def test_scorers_do_not_share_a_column():
    # scikit-learn's cache of several scorers keeps the column of the first one's
    # positive class
    scoring = {
        "zero": make_scorer(
            expected_calibration_error, response_method="predict_proba", pos_label=0
        ),
        "ours": get_scorer(ECE),
    }
    together = cross_validate(LogisticRegression(), X, Y, scoring=scoring)
    alone = cross_validate(LogisticRegression(), X, Y, scoring=get_scorer(ECE))
    np.testing.assert_array_equal(together["test_ours"], alone["test_score"])


def test_both_columns_reach_the_metric():
    proba = np.array([[0.9, 0.2], [0.1, 0.8], [0.4, 0.4], [0.6, 0.7]])
    model = Told().fit(None, None)
    found = get_scorer(ECE, multiclass="marginal", binning=2)(
        model, proba, [0, 1, 0, 1]
    )
    assert found == pytest.approx(
        -expected_calibration_error(
            [0, 1, 0, 1], proba, multiclass="marginal", binning=2
        )
    )


@every_scorer
def test_weights_are_repeated_rows(name):
    model = LogisticRegression().fit(X, Y)
    weights = np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), weights)
    expected = _scorer(name)(model, X[rows], Y[rows])
    assert _scorer(name)(model, X, Y, sample_weight=weights) == pytest.approx(
        expected, abs=1e-9
    )


def test_options_reach_the_metric_or_are_refused():
    model = LogisticRegression().fit(X, Y)
    found = get_scorer(
        "neg_calibration_error", norm=1, method="plugin", binning=EqualWidth(7)
    )(model, X, Y)
    expected = calibration_error(
        Y, model.predict_proba(X), norm=1, method="plugin", binning=EqualWidth(7)
    )
    assert found == pytest.approx(-expected)
    with refused(TypeError, "n_bins", "binning"):
        get_scorer(ECE, n_bins=10)
    with refused(TypeError, "labels"):
        get_scorer(ECE, labels=[0, 1])


@pytest.mark.parametrize(
    "model", [LinearRegression().fit(X, Y), LinearSVC().fit(X, Y), LogisticRegression()]
)
def test_scorer_needs_a_fitted_classifier_with_probabilities(model):
    with refused(TypeError, "classes_", "predict_proba", type(model).__name__):
        get_scorer(ECE)(model, X, Y)


@pytest.mark.parametrize(
    "metric",
    [one for one in metrics_("labels") if one.id.endswith("calibration_error")],
)
def test_every_error_works_in_make_scorer(metric):
    scorer = make_scorer(
        metric, response_method="predict_proba", greater_is_better=False
    )
    for data, labels in ((X, Y), (X3, Y3)):
        model = LogisticRegression().fit(data, labels)
        assert scorer(model, data, labels) == pytest.approx(
            -metric(labels, model.predict_proba(data))
        )
        weights = 1.0 + np.arange(len(data)) % 2
        found = scorer(model, data, labels, sample_weight=weights)
        assert found == pytest.approx(
            -metric(labels, model.predict_proba(data), sample_weight=weights)
        )
    named = make_scorer(
        metric,
        response_method="predict_proba",
        greater_is_better=False,
        pos_label="yes",
    )
    model = LogisticRegression().fit(X, NAMES[Y])
    assert named(model, X, NAMES[Y]) == pytest.approx(
        -metric(Y, model.predict_proba(X))
    )


def test_grid_search_with_several_scorings():
    scoring = {
        "loss": "neg_log_loss",
        "ece": get_scorer(ECE),
        "square": get_scorer("neg_squared_calibration_error", binning=5),
    }
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-3, 1]}, scoring=scoring, refit="square", cv=4
    )
    results = search.fit(X, NAMES[Y]).cv_results_
    for i, C in enumerate([1e-3, 1]):
        for name, scorer in scoring.items():
            expected = cross_val_score(
                LogisticRegression(C=C), X, NAMES[Y], scoring=scorer, cv=4
            )
            np.testing.assert_allclose(
                [results[f"split{j}_test_{name}"][i] for j in range(4)], expected
            )
    assert search.best_index_ == results["mean_test_square"].argmax()


def test_weights_are_routed():
    weights = 1.0 + np.arange(len(X)) % 3
    with config_context(enable_metadata_routing=True):
        scorer = get_scorer(ECE).set_score_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=False)
        options = {
            "scoring": scorer,
            "cv": 2,
            "return_estimator": True,
            "return_indices": True,
        }
        found = cross_validate(
            model, X, Y, params={"sample_weight": weights}, **options
        )
    for score, fitted, test in zip(
        found["test_score"], found["estimator"], found["indices"]["test"], strict=True
    ):
        expected = expected_calibration_error(
            Y[test], fitted.predict_proba(X[test]), sample_weight=weights[test]
        )
        assert score == pytest.approx(-expected)
        unweighted = expected_calibration_error(Y[test], fitted.predict_proba(X[test]))
        assert abs(score + unweighted) > 1e-4


def test_scorers_pickle_and_print():
    scorer = get_scorer("neg_squared_calibration_error", binning=7)
    model = LogisticRegression().fit(X, Y)
    assert pickle.loads(pickle.dumps(scorer))(model, X, Y) == scorer(model, X, Y)
    assert clone(scorer, safe=False)(model, X, Y) == scorer(model, X, Y)
    assert "binning=7" in repr(scorer)
    assert metrics.check_scoring(model, scoring=scorer) is scorer


def test_signed_square_is_larger_is_better_and_may_be_positive():
    # 4 of 8 events at 1/2: debiased square -1/28, so that the score is 1/28
    model = Told().fit(None, None)
    found = get_scorer("neg_squared_calibration_error")(
        model, np.full((8, 2), 0.5), np.arange(8) % 2
    )
    assert found == pytest.approx(1 / 28)
