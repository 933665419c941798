"""Reliability diagrams of cross-validated models: all tested samples, and the folds as
thin lines.
"""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import (
    KFold,
    RepeatedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skcalib.binning import EqualWidth, PoolAdjacentViolators
from skcalib.metrics import calibration_error_interval, reliability_curve

pytest.importorskip("matplotlib", reason="displays need matplotlib (extra plot)").use(
    "Agg"
)
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import ReliabilityDisplay  # noqa: E402

X, Y = load_breast_cancer(return_X_y=True)
QUICK = {"n_resamples": 19, "random_state": 0}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _cross_validated(cv=5, model=None, X=X, y=Y):
    return cross_validate(
        GaussianNB() if model is None else model,
        X,
        y,
        cv=cv,
        return_estimator=True,
        return_indices=True,
    )


def _points(line):
    """Return the points of a line without the gaps in it."""
    return [values[~np.isnan(values)] for values in line.get_data()]


def test_the_curve_is_that_of_all_out_of_fold_probabilities():
    cv = KFold(4, shuffle=True, random_state=0)
    display = ReliabilityDisplay.from_cv_results(
        _cross_validated(cv), X, Y, binning=EqualWidth(5), **QUICK
    )
    pooled = cross_val_predict(GaussianNB(), X, Y, cv=cv, method="predict_proba")[:, 1]
    bins = reliability_curve(Y, pooled, binning=EqualWidth(5))
    mean_score, frequency = _points(display.lines_[0])
    assert mean_score == pytest.approx(bins.mean_score)
    assert frequency == pytest.approx(bins.event_frequency)
    error = calibration_error_interval(Y, pooled, binning=EqualWidth(5), **QUICK)
    assert display.curves[0].error == pytest.approx(error)
    assert display.ax_.get_title(loc="left").startswith("GaussianNB, n = 569")


def test_thin_lines_are_those_of_the_folds():
    found = _cross_validated(3)
    weight = np.random.default_rng(0).integers(0, 3, len(Y))
    display = ReliabilityDisplay.from_cv_results(
        found, X, Y, binning=EqualWidth(4), sample_weight=weight, metric=None, **QUICK
    )
    assert len(display.fold_lines_) == 3
    for line, model, test in zip(
        display.fold_lines_, found["estimator"], found["indices"]["test"], strict=True
    ):
        proba = model.predict_proba(X[test])[:, 1]
        bins = reliability_curve(
            Y[test], proba, binning=EqualWidth(4), sample_weight=weight[test]
        )
        x, y = _points(line)
        assert x == pytest.approx(bins.mean_score[bins.weight > 0])
        assert y == pytest.approx(bins.event_frequency[bins.weight > 0])
        assert line.get_linewidth() < display.lines_[0].get_linewidth() / 2
        assert line.get_color() == display.lines_[0].get_color()
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert "one fold" in labels
    again = display.plot(fold_kw={"lw": 0.3})
    assert {line.get_linewidth() for line in again.fold_lines_} == {0.3}


@pytest.mark.parametrize(
    "options", [{"curve": "smooth"}, {"binning": PoolAdjacentViolators()}], ids=str
)
def test_smooth_curves_and_steps_of_folds(options):
    display = ReliabilityDisplay.from_cv_results(
        _cross_validated(3), X, Y, metric=None, **options, **QUICK
    )
    for line in display.fold_lines_:
        x, y = line.get_data()
        assert (np.diff(x) >= 0).all()
        assert 0 <= y.min() <= y.max() <= 1
        if "binning" in options:
            assert (np.diff(y) >= 0).all()


def test_samples_that_are_never_tested_are_left_out():
    found = _cross_validated(TimeSeriesSplit(4))
    display = ReliabilityDisplay.from_cv_results(found, X, Y, metric=None, **QUICK)
    tested = np.concatenate(found["indices"]["test"])
    assert display.curves[0].statistics.total_weight == len(tested) < len(Y)


def test_several_models_share_the_axes_and_tables_are_taken():
    pd = pytest.importorskip("pandas", reason="a table of pandas")
    frame, names = pd.DataFrame(X), pd.Series(np.where(Y, "benign", "malignant"))
    models = {"bayes": GaussianNB(), "tree": DecisionTreeClassifier(max_depth=3)}
    found = {
        name: _cross_validated(3, model, frame, names) for name, model in models.items()
    }
    display = ReliabilityDisplay.from_cv_results(
        found, frame, names, pos_label="malignant", metric=None, **QUICK
    )
    assert [curve.model for curve in display.curves] == ["bayes", "tree"]
    assert len(display.fold_lines_) == 6
    colors = [line.get_color() for line in display.fold_lines_]
    assert colors == [colors[0]] * 3 + [colors[3]] * 3
    assert display.event == "malignant"


def test_a_class_that_a_fold_does_not_know_and_panels_of_classes():
    X, y = load_iris(return_X_y=True)
    # In the order of the classes: each fold lacks the one that it tests.
    found = _cross_validated(KFold(3), None, X, y)
    display = ReliabilityDisplay.from_cv_results(
        found, X, y, multiclass="marginal", metric=None, **QUICK
    )
    assert [curve.panel for curve in display.curves] == ["0", "1", "2"]
    assert len(display.fold_lines_) == 9


def test_what_is_refused():
    plain = cross_validate(GaussianNB(), X, Y, cv=3)
    with pytest.raises(ValueError, match="return_estimator=True, return_indices=True"):
        ReliabilityDisplay.from_cv_results(plain, X, Y)
    with pytest.raises(TypeError, match="the result of cross_validate"):
        ReliabilityDisplay.from_cv_results(GaussianNB(), X, Y)
    repeated = _cross_validated(RepeatedKFold(n_splits=2, n_repeats=2, random_state=0))
    with pytest.raises(ValueError, match="in two folds"):
        ReliabilityDisplay.from_cv_results(repeated, X, Y)
    found = _cross_validated(3)
    with pytest.raises(ValueError, match="X has 100 rows"):
        ReliabilityDisplay.from_cv_results(found, X[:100], Y[:100])
    with pytest.raises(ValueError, match="did not test the same rows"):
        ReliabilityDisplay.from_cv_results(
            {"a": found, "b": _cross_validated(TimeSeriesSplit(3))}, X, Y
        )
    with pytest.raises(ValueError, match="the keys of the dict"):
        ReliabilityDisplay.from_cv_results({"a": found}, X, Y, name="model")
    machine = _cross_validated(3, LinearSVC(), X / X.max(axis=0))
    with pytest.raises(ValueError, match="LinearSVC has no predict_proba"):
        ReliabilityDisplay.from_cv_results(machine, X, Y)


@pytest.mark.slow
def test_clusters_are_those_of_the_tested_samples():
    """Of a time series the first samples are not tested, nor are their clusters."""
    cv = TimeSeriesSplit(3)
    clusters = np.arange(len(Y)) // 10
    display = ReliabilityDisplay.from_cv_results(
        _cross_validated(cv), X, Y, clusters=clusters, metric=None, **QUICK
    )
    tested = np.sort(np.concatenate([test for _, test in cv.split(X)]))
    proba = np.empty(len(Y))
    for train, test in cv.split(X):
        model = GaussianNB().fit(X[train], Y[train])
        proba[test] = model.predict_proba(X[test])[:, 1]
    expected = ReliabilityDisplay.from_predictions(
        Y[tested], proba[tested], clusters=clusters[tested], metric=None, **QUICK
    )
    np.testing.assert_array_equal(display.curves[0].bars, expected.curves[0].bars)
