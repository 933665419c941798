"""Multicalibration against Newton steps by hand, and what a pipeline asks of it."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from _catalog import check_or_fail, refused
from scipy.special import expit, logit, softmax
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_common import EXPECTED_FAILURES

from skcalib import (
    CrossFittedClassifier,
    MulticalibratedRecalibrator,
    PlattScaling,
    SplineCalibration,
)
from skcalib._fitting.feature_columns import FeatureColumns

_OWN_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a leaf of the trees needs 20 rows, whatever they weigh"
    ),
}


@pytest.mark.slow
@parametrize_with_checks(
    [
        MulticalibratedRecalibrator(
            SplineCalibration(input="logit"), features=np.asarray, max_rounds=1, cv=2
        )
    ]
)
def test_estimator_checks(estimator, check):
    check_or_fail(check, estimator, EXPECTED_FAILURES | _OWN_FAILURES)


# Few rounds and folds: what is tested here does not depend on their number.
QUICK = {"max_rounds": 2, "cv": 2}


def _shifted(n=1500, seed=0, shift=1.5):
    """Scores that are too low in one half of a feature and too high in the other."""
    rng = np.random.default_rng(seed)
    log_odds, feature = rng.normal(scale=1.5, size=n), np.round(rng.normal(size=n), 1)
    y = (rng.random(n) < expit(log_odds + shift * np.sign(feature + 0.01))).astype(int)
    return np.column_stack((expit(log_odds), feature)), y


def _many(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    logits, feature = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    truth = softmax(logits + 1.5 * feature[:, None] * np.array([1, 0, -1]), axis=1)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    return np.column_stack((softmax(logits, axis=1), feature)), np.minimum(y, 2)


def _by_hand(X, y, X_new, n_rounds, weight=None):
    """Newton steps on top of Platt scaling, written out; the scores go into 254 cells,
    the feature has fewer values.
    """
    platt = PlattScaling().fit(X[:, 0], y, sample_weight=weight)
    log_odds, new = (
        logit(platt.predict_proba(rows[:, 0])[:, 1]) for rows in (X, X_new)
    )
    for _ in range(n_rounds):
        p = np.clip(expit(log_odds), 1e-6, 1 - 1e-6)
        trees = HistGradientBoostingRegressor(
            learning_rate=0.1,
            max_iter=10,
            max_leaf_nodes=16,
            l2_regularization=20.0,
            early_stopping=False,
        )
        ends = np.quantile(log_odds, np.arange(1, 254) / 254, method="inverted_cdf")
        own, others = (
            np.column_stack((rows[:, 1], [np.sum(ends < z) for z in at]))
            for rows, at in ((X, log_odds), (X_new, new))
        )
        trees.fit(
            own,
            (y - p) / (p * (1 - p)),
            sample_weight=p * (1 - p) * (1 if weight is None else weight),
        )
        log_odds, new = log_odds + trees.predict(own), new + trees.predict(others)
    return expit(new)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_rounds_are_newton_steps_after_the_global_map(weighted):
    X, y = _shifted(800)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    fitted = MulticalibratedRecalibrator(PlattScaling(), features=1, max_rounds=3).fit(
        X, y, sample_weight=weight
    )
    assert fitted.n_rounds_ == 3
    expected = _by_hand(X, y, X[:50], 3, weight)
    np.testing.assert_allclose(fitted.predict_proba(X[:50])[:, 1], expected, atol=1e-9)


@pytest.mark.slow
def test_gains_are_those_of_held_out_rows():
    X, y = _shifted(600)
    folds = [(np.arange(600) % 3 != k, np.arange(600) % 3 == k) for k in range(3)]
    folds = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in folds]
    fitted = MulticalibratedRecalibrator(
        PlattScaling(), features=1, max_rounds=2, cv=folds
    ).fit(X, y)
    for n_rounds in (1, 2):
        losses = {rounds: np.empty(600) for rounds in (0, n_rounds)}
        for train, test in folds:
            for rounds, loss in losses.items():
                p = _by_hand(X[train], y[train], X[test], rounds)
                loss[test] = -np.log(np.where(y[test] == 1, p, 1 - p))
        assert fitted.gains_[n_rounds - 1] == pytest.approx(
            np.mean(losses[0] - losses[n_rounds]), abs=1e-9
        )


def test_without_rounds_it_is_the_global_map():
    X, y = _shifted(shift=0.0)
    spline = SplineCalibration().fit(X[:, 0], y)
    for fitted in (
        MulticalibratedRecalibrator(features=1).fit(X, y),
        MulticalibratedRecalibrator(features=1, max_rounds=0).fit(X, y),
    ):
        assert fitted.n_rounds_ == 0
        np.testing.assert_array_equal(
            fitted.predict_proba(X), spline.predict_proba(X[:, 0])
        )
        assert type(fitted.recalibrator_) is SplineCalibration
    assert len(fitted.gains_) == 0


def test_it_gains_where_the_feature_matters():
    X, y = _shifted(3000)
    X_new, y_new = _shifted(3000, seed=1)
    fitted = MulticalibratedRecalibrator(features=[1], cv=2).fit(X, y)
    plain = SplineCalibration().fit(X[:, 0], y)
    assert fitted.n_rounds_ > 0
    assert fitted.gains_[fitted.n_rounds_ - 1] > 0.05
    truth = expit(logit(X_new[:, 0]) + 1.5 * np.sign(X_new[:, 1] + 0.01))
    losses = [
        log_loss(y_new, p)
        for p in (plain.predict_proba(X_new[:, 0]), fitted.predict_proba(X_new), truth)
    ]
    assert losses[1] - losses[2] < 0.1 * (losses[0] - losses[2])


def test_many_classes():
    X, y = _many()
    X_new, y_new = _many(seed=1)
    labels = np.array(["a", "b", "c"])
    fitted = MulticalibratedRecalibrator(features=3, **QUICK).fit(X, labels[y])
    assert fitted.n_rounds_ > 0
    probabilities = fitted.predict_proba(X_new)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    plain = SplineCalibration().fit(X[:, :3], y).predict_proba(X_new[:, :3])
    assert log_loss(y_new, probabilities) < log_loss(y_new, plain) - 0.05
    assert set(fitted.predict(X_new)) <= set(labels)
    assert fitted.get_feature_names_out().tolist() == [
        f"multicalibratedrecalibrator_{label}" for label in "abc"
    ]


def test_integers_from_zero_are_column_numbers_where_a_class_is_missing():
    X, y = _many(400)
    present = y < 2
    fitted = MulticalibratedRecalibrator(features=3, **QUICK).fit(
        X[present], y[present]
    )
    assert fitted.classes_.tolist() == [0, 1, 2]
    assert fitted.predict_proba(X).shape == (400, 3)


@pytest.mark.slow
def test_every_way_to_name_features_gives_the_same():
    pandas = pytest.importorskip("pandas")
    X, y = _shifted(600)
    expected = (
        MulticalibratedRecalibrator(features=1, **QUICK).fit(X, y).predict_proba(X)
    )
    frame = pandas.DataFrame({"score": X[:, 0], "age": X[:, 1]})
    for features, rows in (
        ([-1], X),
        ("age", frame),
        (["age"], frame),
        (1, frame),
        (-1, X.tolist()),
    ):
        fitted = MulticalibratedRecalibrator(features=features, **QUICK).fit(rows, y)
        np.testing.assert_allclose(fitted.predict_proba(rows), expected)
        assert fitted.n_features_in_ == 2
    assert fitted.n_rounds_ > 0
    moved = frame[["age", "score"]]
    first = MulticalibratedRecalibrator(features="age", **QUICK).fit(moved, y)
    np.testing.assert_allclose(first.predict_proba(moved), expected)
    by_function = MulticalibratedRecalibrator(
        features=lambda scores: X[:, 1:], **QUICK
    ).fit(X[:, 0], y)
    np.testing.assert_allclose(by_function.predict_proba(X[:, 0]), expected)


def test_categories_and_missing_values():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    log_odds, region = rng.normal(size=2000), rng.choice(["north", "south", None], 2000)
    y = rng.random(2000) < expit(
        log_odds + np.select([region == "north", region == "south"], [1.5, -1.5], 0.0)
    )
    frame = pandas.DataFrame(
        {
            "p": expit(log_odds),
            "region": region,
            "vip": pandas.array(y, dtype="boolean"),
        }
    )
    fitted = MulticalibratedRecalibrator(features="region", **QUICK).fit(
        frame[["p", "region"]], y
    )
    at = pandas.DataFrame(
        {"p": [0.5] * 4, "region": ["north", "south", None, "never seen"]}
    )
    north, south, missing, unseen = fitted.predict_proba(at)[:, 1]
    assert north > 0.65
    assert south < 0.35
    assert south < missing == unseen < north


def test_a_column_without_any_value_says_nothing():
    pandas = pytest.importorskip("pandas")
    X, y = _shifted(600)
    frame = pandas.DataFrame(
        {"score": X[:, 0], "age": X[:, 1], "empty": np.nan, "nothing": [None] * 600}
    )
    fitted = MulticalibratedRecalibrator(
        features=["age", "empty", "nothing"], **QUICK
    ).fit(frame, y)
    expected = MulticalibratedRecalibrator(features=1, **QUICK).fit(X, y)
    assert fitted.n_rounds_ > 0
    np.testing.assert_allclose(
        fitted.predict_proba(frame), expected.predict_proba(X), atol=1e-9
    )


def test_feature_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {
            "number": [1.5, None, 3.0],
            "kind": ["b", "a", "b"],
            "count": pandas.array([1, None, 2], dtype="Int64"),
        }
    )
    columns = FeatureColumns()
    encoded = columns.fit_transform(table, "features")
    np.testing.assert_array_equal(encoded, [[0, 0, 0], [np.nan, 1, np.nan], [1, 0, 1]])
    assert columns.is_category.tolist() == [False, True, False]
    between = pandas.DataFrame(
        {"number": [1.4, 1.6, 9.0], "kind": ["a"] * 3, "count": [0, 1, 2]}
    )
    np.testing.assert_array_equal(
        columns.transform(between, "features")[:, 0], [0, 1, 1]
    )
    table["kind"] = [None, "c", "a"]
    np.testing.assert_array_equal(
        columns.transform(table, "features")[:, 1], [np.nan, np.nan, 1]
    )
    table["number"] = ["x", "y", "z"]
    with refused(ValueError, "number", "'x'"):
        columns.transform(table, "features")
    many = np.array([f"c{k}" for k in range(300)], dtype=object)[:, None]
    encoded = FeatureColumns().fit_transform(np.vstack((many, many[:10])), "features")
    assert np.nanmax(encoded) == 253
    assert np.isnan(encoded).sum() == 300 - 254
    fine = FeatureColumns().fit_transform(
        np.random.default_rng(0).normal(size=5000), "features"
    )
    assert np.bincount(fine[:, 0].astype(int)).min() >= 5000 // 254
    assert fine.max() == 253


def test_in_a_pipeline_and_a_search():
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.normal(size=600), rng.integers(0, 2, 600)))
    y = np.array(["no", "yes"])[
        (rng.random(600) < expit(2 * X[:, 0] * (2 * X[:, 1] - 1))).astype(int)
    ]
    model = make_pipeline(
        CrossFittedClassifier(LogisticRegression(), passthrough=[0, 1]),
        MulticalibratedRecalibrator(features=[-2, -1], cv=2),
    )
    parameters = {
        "multicalibratedrecalibrator__max_rounds": [0, 2],
        "multicalibratedrecalibrator__recalibrator__n_knots": [4],
    }
    search = GridSearchCV(model, parameters, scoring="neg_log_loss", cv=2).fit(X, y)
    assert search.best_params_["multicalibratedrecalibrator__max_rounds"] == 2
    assert search.best_estimator_[-1].n_rounds_ > 0
    assert search.predict_proba(X).shape == (600, 2)


def test_the_same_rows_give_the_same_fit():
    X, y = _shifted(600)
    fitted = MulticalibratedRecalibrator(features=1, **QUICK).fit(X, y)
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    order = np.random.default_rng(0).permutation(600)
    shuffled = clone(fitted).fit(X[order], y[order])
    np.testing.assert_allclose(shuffled.gains_, fitted.gains_, atol=1e-9)


def test_rows_of_weight_zero_change_nothing():
    X, y = _shifted(600)
    weight = np.repeat([1.0, 0.0], 300)
    part = MulticalibratedRecalibrator(features=1, **QUICK).fit(
        X[:300], y[:300], sample_weight=weight[:300]
    )
    whole = MulticalibratedRecalibrator(features=1, **QUICK).fit(
        X, y, sample_weight=weight
    )
    np.testing.assert_allclose(whole.predict_proba(X), part.predict_proba(X))


def test_logits_are_scores_of_the_recalibrator():
    X, y = _shifted(600)
    logits = np.column_stack((logit(X[:, 0]), X[:, 1]))
    fitted = MulticalibratedRecalibrator(
        SplineCalibration(input="logit"), features=1, **QUICK
    ).fit(logits, y)
    expected = MulticalibratedRecalibrator(features=1, **QUICK).fit(X, y)
    assert fitted.input == "logit"
    np.testing.assert_allclose(
        fitted.predict_proba(logits), expected.predict_proba(X), atol=1e-6
    )


def test_columns_that_are_not_there():
    pandas = pytest.importorskip("pandas")
    X, y = _shifted(60)
    frame = pandas.DataFrame(X, columns=["score", "age"])
    with refused(ValueError, "features", "'size'", "score"):
        MulticalibratedRecalibrator(features="size").fit(frame, y)
    with refused(ValueError, "features", "column 2", "2 columns"):
        MulticalibratedRecalibrator(features=2).fit(X, y)
    with refused(ValueError, "features", "all 2 columns", "no scores"):
        MulticalibratedRecalibrator(features=[0, 1]).fit(X, y)
    for features in ([], [True], [1.5]):
        with refused(ValueError, "features", "names or positions"):
            MulticalibratedRecalibrator(features=features).fit(X, y)
    with refused(ValueError, "features returned 3 rows", "60 rows"):
        MulticalibratedRecalibrator(features=lambda rows: X[:3]).fit(X[:, 0], y)
    fitted = MulticalibratedRecalibrator(features=1, **QUICK).fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        fitted.predict_proba(np.column_stack((X, X[:, 1])))
    with pytest.raises(TypeError, match="features"):
        MulticalibratedRecalibrator()


def test_parameters_are_checked():
    X, y = _shifted(60)
    for name, value in {
        "max_rounds": -1,
        "learning_rate": 0,
        "regularization": -1.0,
        "cv": "five",
    }.items():
        with pytest.raises(ValueError, match=name):
            MulticalibratedRecalibrator(features=1, **{name: value}).fit(X, y)


@pytest.mark.slow
def test_the_trees_are_imported_when_they_are_needed():
    code = (
        "import sys, skcalib;"
        " print('sklearn.ensemble._hist_gradient_boosting.gradient_boosting' in"
        " sys.modules)"
    )
    assert subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    ).stdout.split() == ["False"]


@pytest.mark.slow
def test_it_is_hardly_ever_worse_than_the_global_map():
    worse = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        scores, noise = rng.beta(1, 2, (4000, 1)), rng.normal(size=(4000, 5))
        X, y = np.hstack((scores, noise)), rng.random(4000) < scores[:, 0]
        fitted = MulticalibratedRecalibrator(features=[1, 2, 3, 4, 5]).fit(
            X[:2000], y[:2000]
        )
        plain = SplineCalibration().fit(scores[:2000], y[:2000])
        losses = [
            log_loss(y[2000:], p)
            for p in (
                fitted.predict_proba(X[2000:]),
                plain.predict_proba(scores[2000:]),
            )
        ]
        worse += losses[0] > 1.005 * losses[1]
    assert worse == 0
