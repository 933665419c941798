"""Columns that are named by the labels: the names say which column is which class."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib import (
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    OnlineRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
    TemperatureScaling,
    expand_soft_labels,
)
from skcalib.displays import ReliabilityDisplay
from skcalib.metrics import BinStatistics, calibration_error, calibration_test
from skcalib.monitoring import CalibrationMonitor, estimated_performance

pytest.importorskip("matplotlib")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

RANDOM = np.random.default_rng(0)
ORDER = ["mid", "low", "high"]
TABLE = pd.DataFrame(RANDOM.dirichlet([1, 2, 4], 600), columns=ORDER)
Y = np.array(ORDER)[(TABLE.to_numpy().cumsum(1) > RANDOM.random((600, 1))).argmax(1)]
RIGHT = TABLE[sorted(ORDER)].to_numpy()
CODES = np.searchsorted(sorted(ORDER), Y)
NUMBERS = TABLE.rename(columns={"high": 0, "low": 1, "mid": 2})

SPELLINGS = {
    "labels": (TABLE, Y),
    "prefix": (TABLE.add_prefix("p_"), Y),
    "both": (TABLE.rename(columns=lambda name: f"P (class={name})"), Y),
    "case and blanks": (TABLE.rename(columns=lambda name: f" {name.upper()}"), Y),
    "polars": (pl.from_pandas(TABLE), Y),
    "arrow": (pa.Table.from_pandas(TABLE), Y),
    "category": (TABLE, pd.Categorical(Y, [*ORDER, "never"])),
    "objects": (TABLE, Y.astype(object)),
    "numbers": (NUMBERS, CODES),
    "text of numbers": (NUMBERS.rename(columns=str), CODES),
    "decimals": (NUMBERS.rename(columns=lambda name: f"{name}.0"), CODES),
    "number beside text": (NUMBERS, CODES.astype(str)),
    "floats": (NUMBERS, CODES.astype(float)),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_gives_the_same_answer(spelling):
    table, y = SPELLINGS[spelling]
    expected = calibration_error(CODES, RIGHT)
    assert calibration_error(y, table) == expected
    fitted = TemperatureScaling().fit(table, y)
    expected_fit = TemperatureScaling().fit(RIGHT, CODES)
    assert fitted.temperature_ == expected_fit.temperature_
    proba = expected_fit.predict_proba(RIGHT)
    np.testing.assert_allclose(fitted.predict_proba(table), proba, rtol=1e-12)


def same_curves(shown, expected):
    for curve, other in zip(shown.curves, expected.curves, strict=True):
        assert repr(curve.statistics) == repr(other.statistics)
        np.testing.assert_allclose(curve.bars, other.bars)


def test_doors():
    """Tests, displays, sums of bins, monitors, and online fits read the names, too."""
    pvalue = calibration_test(CODES, RIGHT, random_state=0).pvalue
    assert calibration_test(Y, TABLE, random_state=0).pvalue == pvalue
    edges = np.linspace(0, 1, 11)
    sums = BinStatistics.from_predictions(Y, TABLE, edges)
    expected = BinStatistics.from_predictions(CODES, RIGHT, edges)
    np.testing.assert_array_equal(sums.count, expected.count)
    logits = np.log(TABLE)
    sums = BinStatistics.from_predictions(Y, logits, edges, input="logit")
    np.testing.assert_array_equal(sums.count, expected.count)
    monitor = CalibrationMonitor(classes=sorted(ORDER)).partial_fit(TABLE, Y)
    expected = CalibrationMonitor(classes=[0, 1, 2]).partial_fit(RIGHT, CODES)
    assert monitor.e_value_ == expected.e_value_
    online = OnlineRecalibrator().partial_fit(TABLE[:300], Y[:300], sorted(ORDER))
    online.partial_fit(TABLE[300:], Y[300:])
    expected = OnlineRecalibrator().partial_fit(RIGHT[:300], CODES[:300], [0, 1, 2])
    expected.partial_fit(RIGHT[300:], CODES[300:])
    proba = expected.predict_proba(RIGHT)
    np.testing.assert_array_equal(online.predict_proba(TABLE), proba)
    shown = ReliabilityDisplay.from_predictions(Y, TABLE, random_state=0)
    expected = ReliabilityDisplay.from_predictions(CODES, RIGHT, random_state=0)
    same_curves(shown, expected)
    performance = estimated_performance(Y, RIGHT, TABLE[:200]).to_frame()
    expected = estimated_performance(Y, RIGHT, RIGHT[:200]).to_frame()
    pd.testing.assert_frame_equal(performance, expected)


def test_new_scores_in_another_order():
    """After a fit to one order a table in another order is understood, and an array is
    in the order of the classes.
    """
    fitted = PlattScaling().fit(TABLE, Y)
    expected = PlattScaling().fit(RIGHT, CODES).predict_proba(RIGHT)
    np.testing.assert_array_equal(
        fitted.predict_proba(TABLE[["high", "mid", "low"]]), expected
    )
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(fitted.predict_proba(RIGHT), expected)


@pytest.mark.parametrize("position", [0, 2, 3])
def test_scores_beside_other_columns(position):
    """The columns of scores are put in order, those of groups stay where they are."""
    group = np.arange(600) % 2
    table = TABLE.copy()
    table.insert(position, "group", group)
    for groups in ("group", position):
        fitted = GroupwiseRecalibrator(PlattScaling(), groups=groups).fit(table, Y)
        expected = GroupwiseRecalibrator(PlattScaling(), groups=3).fit(
            np.column_stack((RIGHT, group)), CODES
        )
        proba = expected.predict_proba(np.column_stack((RIGHT, group)))
        np.testing.assert_array_equal(fitted.predict_proba(table), proba)


def test_two_columns():
    """The event is the same label however the columns are ordered."""
    both = pd.DataFrame({"no": 1 - TABLE["high"], "high": TABLE["high"]})
    y = np.where(Y == "high", "high", "no")
    for event in (None, "high", "no"):
        scores = both[["high", "no"]].to_numpy()
        expected = calibration_error(y, scores, pos_label=event)
        assert calibration_error(y, both, pos_label=event) == expected
    fitted = PlattScaling().fit(scores, y)
    proba = fitted.predict_proba(scores[:1])
    score = fitted.inverse_transform(proba)
    frame = pd.DataFrame(proba, columns=["high", "no"])
    assert fitted.inverse_transform(frame[["no", "high"]]) == score


def test_classes_that_do_not_occur():
    """Names also tell the class that has no rows, so that no `classes=` is needed."""
    is_known = Y != "high"
    fitted = TemperatureScaling().fit(TABLE[is_known], Y[is_known])
    assert fitted.classes_.tolist() == ["high", "low", "mid"]
    expected = TemperatureScaling(classes=["high", "low", "mid"])
    expected.fit(RIGHT[is_known], Y[is_known])
    assert fitted.temperature_ == expected.temperature_
    # a default numbering is none of labels: 1 and 2 may be two of 1, 2, 3
    numbered = pd.DataFrame(RIGHT[is_known])
    with pytest.raises(ValueError, match="labels="):
        calibration_error(CODES[is_known], numbered)


def test_names_and_classes():
    """`labels=` says which labels there are: other names are an error."""
    expected = calibration_error(CODES, RIGHT)
    for labels in (["high", "low", "mid"], ["mid", "low", "high"]):
        assert calibration_error(Y, TABLE, labels=labels) == expected
    other = TABLE.rename(columns={"mid": "middle"})
    with pytest.raises(ValueError, match="'middle' is not one of them"):
        calibration_error(Y, other, labels=["high", "low", "mid"])
    with pytest.raises(ValueError, match="'middle' is not one of them"):
        PlattScaling(classes=["high", "low", "mid"]).fit(other, Y)
    with pytest.warns(UserWarning, match="only 'low', 'high' are labels"):
        value = calibration_error(Y, other)
    assert value == calibration_error(Y, TABLE.to_numpy())


@pytest.mark.parametrize(
    "names", [["a", "b", "c"], [0, 1, 2], ["p0", "p1", "p2"], [10, 20, 30]]
)
def test_names_of_other_things_stay_positional(names):
    table = pd.DataFrame(RIGHT, columns=names)
    assert calibration_error(Y, table) == calibration_error(Y, RIGHT)
    # a numbering from 0 beside labels from 1, without a warning
    assert calibration_error(CODES + 1, table) == calibration_error(Y, RIGHT)


def test_repeated_names():
    table = pd.DataFrame(RIGHT, columns=["high", "high", "low"])
    with pytest.raises(ValueError, match="2 columns named 'high'"):
        calibration_error(Y, table)


def test_soft_labels():
    soft = pd.get_dummies(Y).astype(float)
    scores, y, weight = expand_soft_labels(TABLE, soft)
    np.testing.assert_array_equal(scores, RIGHT)
    np.testing.assert_array_equal(y, CODES)


def test_several_labels_in_another_order():
    indicators = pd.DataFrame(RANDOM.random((600, 3)) < 0.5, columns=ORDER)
    with pytest.raises(ValueError, match="different order"):
        calibration_error(indicators, TABLE[sorted(ORDER)].add_prefix("p_"))
    with pytest.raises(ValueError, match="different order"):
        calibration_error(indicators, TABLE, labels=sorted(ORDER))


class TableModel(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are a table with the columns in reversed order."""

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        proba = pd.DataFrame(self.model_.predict_proba(X), columns=self.classes_)
        return proba[list(self.classes_[::-1])]


@pytest.mark.slow
def test_classifier_that_returns_a_table():
    X = np.log(RIGHT)
    bare = log_loss(Y, LogisticRegression().fit(X, Y).predict_proba(X))
    for recalibrator in (PlattScaling(), TemperatureScaling(), None):
        model = RecalibratedClassifierCV(TableModel(), recalibrator).fit(X, Y)
        assert log_loss(Y, model.predict_proba(X)) < bare + 0.02
    scores = CrossFittedClassifier(TableModel()).fit_transform(X, Y)
    assert log_loss(Y, scores) < bare + 0.05
    shown = ReliabilityDisplay.from_estimator(
        TableModel().fit(X, Y), X, Y, random_state=0
    )
    expected = ReliabilityDisplay.from_estimator(
        LogisticRegression().fit(X, Y), X, Y, random_state=0
    )
    same_curves(shown, expected)


class InOrderOfAppearance(ClassifierMixin, BaseEstimator):
    """A classifier whose classes are not sorted."""

    def __init__(self, order=None):
        self.order = order

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.order_ = np.searchsorted(self.model_.classes_, self.order)
        self.classes_ = np.array(self.order)
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, self.order_]

    def decision_function(self, X):
        decision = self.model_.decision_function(X)
        if decision.ndim == 1:
            return -decision
        return decision[:, self.order_]


@pytest.mark.parametrize(
    ("y", "order"), [(Y, ORDER), (np.where(Y == "low", "b", "a"), "ba")]
)
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_unsorted_classes(y, order, method):
    X = np.log(RIGHT)
    unsorted = InOrderOfAppearance(list(order))
    scores = CrossFittedClassifier(unsorted, response_method=method).fit_transform(X, y)
    expected = CrossFittedClassifier(LogisticRegression(), response_method=method)
    np.testing.assert_array_equal(scores, expected.fit_transform(X, y))
    model = RecalibratedClassifierCV(unsorted, PlattScaling()).fit(X, y)
    expected = RecalibratedClassifierCV(LogisticRegression(), PlattScaling()).fit(X, y)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    proba = expected.predict_proba(X)
    np.testing.assert_allclose(model.predict_proba(X), proba, rtol=1e-12)
    shown = ReliabilityDisplay.from_estimator(unsorted.fit(X, y), X, y, random_state=0)
    expected = ReliabilityDisplay.from_estimator(
        LogisticRegression().fit(X, y), X, y, random_state=0
    )
    same_curves(shown, expected)
