"""The table of doors: what the user wrote is read alike wherever it is given.

Each case is one spelling of labels and scores whose truth is known (two or three
classes), or a fault. Each door must give the answer of the truth, or raise an error
that says the same words as those of all other doors.
"""

import json
import warnings
from functools import cache

import numpy as np
import pytest
from _catalog import check_each, refused
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier

from skcalib import (
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    IsotonicCalibration,
    OnlineRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
    TemperatureScaling,
)
from skcalib.__main__ import main
from skcalib.binning import EqualMass
from skcalib.displays import ReliabilityDisplay
from skcalib.engines import PredictionTable
from skcalib.evaluation import compare
from skcalib.export import to_javascript, to_python, to_sql
from skcalib.metrics import (
    BinStatistics,
    calibration_by_group,
    calibration_error,
    calibration_test,
    expected_calibration_error,
    get_scorer,
    kuiper_calibration_error,
)
from skcalib.monitoring import CalibrationMonitor, calibration_change

plt = pytest.importorskip("matplotlib.pyplot")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

RANDOM = np.random.default_rng(1)
N = 240
P2 = RANDOM.beta(2, 2, N)
Y2 = (RANDOM.random(N) < P2).astype(int)
TWO = np.column_stack((1 - P2, P2))
P3 = RANDOM.dirichlet([2, 1, 1], N)
Y3 = (P3.cumsum(axis=1) > RANDOM.random((N, 1))).argmax(axis=1)
EDGES = np.linspace(0, 1, 6)
GROUPS = np.arange(N) % 3


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are those that X holds: a table stays a table."""

    def fit(self, X, y):
        self.classes_ = np.unique(np.asarray(y))
        return self

    def predict_proba(self, X):
        return X

    def predict(self, X):
        return self.classes_[np.asarray(X).argmax(axis=1)]


# --- the doors: functions of labels, scores and options -------------------------------


def _metric(metric):
    def door(y, scores, **options):
        return metric(y, scores, **options)

    return door


def _fit(recalibrator, logit=False):
    def door(y, scores, labels=None):
        fitted = recalibrator.__class__(classes=labels).fit(scores, y)
        return fitted.predict_proba(scores)

    return door


def _test(y, scores, **options):
    return calibration_test(y, scores, random_state=0, n_resamples=50, **options).pvalue


def _groups(y, scores, **options):
    table = calibration_by_group(
        y, scores, GROUPS, n_resamples=9, random_state=0, **options
    )
    return table.to_frame()["bias"].to_numpy()


def _display(y, scores, **options):
    shown = ReliabilityDisplay.from_predictions(y, scores, random_state=0, **options)
    plt.close("all")
    return np.asarray(shown.curves[0].statistics.weighted_label)


def _sums(y, scores, **options):
    return BinStatistics.from_predictions(y, scores, EDGES, **options).weighted_label


def _compare(y, scores, **options):
    table = compare(
        y, {"model": scores}, metrics=("log_loss",), n_resamples=9, **options
    )
    return table.to_frame()["estimate"].to_numpy()


def _change(y, scores, **options):
    half = N // 2
    parts = (y[:half], scores[:half], y[half:], scores[half:])
    change = calibration_change(*parts, n_resamples=9, random_state=0, **options)
    return change.bias_before.estimate, change.bias_after.estimate


def _scorer(y, scores, labels=None):
    model = Given().fit(None, y)
    return get_scorer("neg_expected_calibration_error")(model, scores, y)


def _monitor(y, scores, labels=None):
    classes = np.unique(np.asarray(y)) if labels is None else labels
    return CalibrationMonitor(classes=list(classes)).partial_fit(scores, y).e_value_


def _online(y, scores, labels=None):
    fitted = OnlineRecalibrator().partial_fit(scores, y, labels)
    return fitted.predict_proba(scores)


def _grouped(y, scores, labels=None):
    wrapped = PlattScaling(classes=labels)
    fitted = GroupwiseRecalibrator(wrapped).fit(scores, y, groups=GROUPS)
    return fitted.predict_proba(scores, groups=GROUPS)


def _recalibrated(y, scores, labels=None):
    model = RecalibratedClassifierCV(Given(), PlattScaling(), cv=2, ensemble=False)
    return model.fit(scores, y).predict_proba(scores)


def _cross_fitted(y, scores, labels=None):
    return CrossFittedClassifier(Given(), cv=2).fit_transform(scores, y)


OF_SCORES = {
    "calibration_error": _metric(calibration_error),
    "expected_calibration_error": _metric(expected_calibration_error),
    "kuiper": _metric(kuiper_calibration_error),
    "test": _test,
    "by_group": _groups,
    "display": _display,
    "sums": _sums,
    "compare": _compare,
    "Platt": _fit(PlattScaling()),
    "temperature": _fit(TemperatureScaling()),
    "isotonic": _fit(IsotonicCalibration()),
    "groupwise": _grouped,
    "online": _online,
}
# Doors that take a classifier's scores, with a column for each class, or that need the
# classes.
OF_CLASSES = {
    "scorer": _scorer,
    "monitor": _monitor,
    "recalibrated": _recalibrated,
    "cross-fitted": _cross_fitted,
}
ALL = OF_SCORES | OF_CLASSES
# Those that take longer than all others together.
_LONG = ("display", "groupwise", "by_group", "recalibrated")
EACH = [
    pytest.param(door, marks=[pytest.mark.slow] if door in _LONG else [])
    for door in ALL
]


# --- the cases: labels and scores, and the truth of three or of two classes -----------


def _words(names, codes):
    return np.array(names)[codes]


LOW = ["high", "low", "mid"]  # sorted
FRAME3 = pd.DataFrame(P3, columns=LOW)[["mid", "low", "high"]]
CODED3 = pd.DataFrame(P3, columns=[0, 1, 2])[[2, 1, 0]]
FRAME2 = pd.DataFrame(TWO, columns=["no", "yes"])[["yes", "no"]]
CODED2 = pd.DataFrame(TWO, columns=[0, 1])[[1, 0]]

THREE = {
    "plain integers": (Y3, P3),
    "floats": (Y3.astype(float), P3),
    "small integers": (Y3.astype(np.int8), P3),
    "text": (_words(LOW, Y3), P3),
    "objects": (_words(LOW, Y3).astype(object), P3),
    "pandas text": (pd.Series(_words(LOW, Y3)), P3),
    "nullable text": (pd.Series(_words(LOW, Y3), dtype="string"), P3),
    "polars text": (pl.Series(_words(LOW, Y3)), P3),
    "nullable integers": (pd.Series(Y3, dtype="Int64"), P3),
    "categories, one unused": (pd.Categorical(_words(LOW, Y3), ["zero", *LOW]), P3),
    "categories in another order": (pd.Categorical(_words(LOW, Y3), LOW[::-1]), P3),
    "integer categories": (pd.Categorical(Y3 + 1, [4, 3, 2, 1]), P3),
    "codes 1, 2, 3": (Y3 + 1, P3),
    "a list": (_words(LOW, Y3).tolist(), P3.tolist()),
    "names in order": (_words(LOW, Y3), FRAME3[LOW]),
    "names in another order": (_words(LOW, Y3), FRAME3),
    "names, objects": (_words(LOW, Y3).astype(object), FRAME3),
    "names of a polars frame": (_words(LOW, Y3), pl.from_pandas(FRAME3)),
    "names with a prefix": (_words(LOW, Y3), FRAME3.add_prefix("p_")),
    "names with a suffix": (_words(LOW, Y3), FRAME3.add_suffix(" (%)")),
    "names with both": (_words(LOW, Y3), FRAME3.add_prefix("P(").add_suffix(")")),
    "names in capitals": (_words(LOW, Y3), FRAME3.rename(columns=str.upper)),
    "names in blanks": (_words(LOW, Y3), FRAME3.add_prefix(" ").add_suffix(" ")),
    "names 2, 1, 0": (Y3, CODED3),
    'names "2", "1", "0"': (Y3, CODED3.rename(columns=str)),
    "names 2.0, 1.0, 0.0": (Y3, CODED3.rename(columns=float)),
    'labels "0", names 0': (Y3.astype(str), CODED3),
    "names of codes from 1": (Y3 + 1, CODED3.rename(columns=lambda k: f"p{k + 1}")),
    "a numbering beside codes from 1": (Y3 + 1, pd.DataFrame(P3)),
    "names of other things": (Y3, pd.DataFrame(P3, columns=["x", "a", "m"])),
}
TWO_CASES = {
    "plain integers": (Y2, TWO),
    "booleans": (Y2 == 1, TWO),
    "nullable booleans": (pd.Series(Y2 == 1, dtype="boolean"), TWO),
    "-1 and 1": (2 * Y2 - 1, TWO),
    "codes 1 and 2": (Y2 + 1, TWO),
    "codes 2 and 4": (2 * Y2 + 2, TWO),
    "text": (_words(["no", "yes"], Y2), TWO),
    "names in another order": (_words(["no", "yes"], Y2), FRAME2),
    "names 1, 0": (Y2, CODED2),
    "names True, False": (Y2 == 1, CODED2.rename(columns=bool)),
    "names 1, 0 of booleans": (Y2 == 1, CODED2),
    "names p1, p0": (Y2, CODED2.add_prefix("p")),
    "names of -1 and 1": (2 * Y2 - 1, CODED2.rename(columns=lambda k: 2 * k - 1)),
    "names 2, 1 of codes": (Y2 + 1, CODED2.rename(columns=lambda k: k + 1)),
}
ONE_COLUMN = {
    "integers": (Y2, P2),
    "a column": (Y2, P2[:, None]),
    "a series": (pd.Series(Y2), pd.Series(P2, name="score")),
    "booleans": (Y2 == 1, P2),
    "text": (_words(["no", "yes"], Y2), P2),
    "codes 1 and 2": (Y2 + 1, P2),
    "-1 and 1": (2 * Y2 - 1.0, P2),
}


def _of(door, y, scores, **options):
    """Return the answer of a door without warnings that are about other things."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*valid feature names")
        return np.asarray(door(y, scores, **options), dtype=float)


@cache
def _truth(door, n_classes):
    """Return the answer of a door for labels 0, 1, ... and arrays of scores."""
    y, scores = {1: (Y2, P2), 2: (Y2, TWO), 3: (Y3, P3)}[n_classes]
    return _of(ALL[door], y, scores)


@pytest.mark.parametrize("door", EACH)
def test_three_classes(door):
    def check(case):
        y, scores = THREE[case]
        if door in ("cross-fitted", "recalibrated") and isinstance(scores, list):
            scores = np.array(scores)  # a classifier gives arrays or tables
        found = _of(ALL[door], y, scores)
        np.testing.assert_allclose(found, _truth(door, 3), rtol=1e-9)

    check_each(check, THREE)


@pytest.mark.parametrize("door", EACH)
def test_two_classes(door):
    def check(case):
        found = _of(ALL[door], *TWO_CASES[case])
        np.testing.assert_allclose(found, _truth(door, 2), rtol=1e-9)

    check_each(check, TWO_CASES)


@pytest.mark.parametrize("door", OF_SCORES)
def test_one_column(door):
    def check(case):
        y, scores = ONE_COLUMN[case]
        if door == "sums" and case not in ("integers", "a series", "booleans"):
            y = pd.Series(np.asarray(y)).rank(method="dense").to_numpy() - 1
        found = _of(ALL[door], y, scores)
        np.testing.assert_allclose(found, _truth(door, 1), rtol=1e-9)

    check_each(check, ONE_COLUMN)


# --- faults: one error, the same words at every door ----------------------------------

_THIRD = np.where(np.arange(N) < 20, "open", _words(["no", "yes"], Y2))
_BLANK = np.where(np.arange(N) < 20, " yes", _words(["no", "yes"], Y2))
_CASE = np.where(np.arange(N) < 20, "YES", _words(["no", "yes"], Y2))
_MARKED = np.where(np.arange(N) < 20, -1, Y2)
_NAN = np.where(np.arange(N) == 7, np.nan, Y2)
_NONE = np.where(np.arange(N) == 7, None, _words(["no", "yes"], Y2).astype(object))
_NA = pd.Series(Y2, dtype="Int64").where(np.arange(N) != 7)
_MIXED = np.where(np.arange(N) == 7, "1", Y2.astype(object))
_PERCENT = np.array([f"{100 * p:.1f}%" for p in P2], dtype=object)
_COMMA = np.array([f"{p:.4f}".replace(".", ",") for p in P2], dtype=object)
SOME = FRAME3.rename(columns={"mid": "middle"})

FAULTS = {
    "a third label": (_THIRD, P2, ["3 classes", "'open' (20)", "np.isin"]),
    "a third label, two columns": (
        _THIRD,
        TWO,
        ["3 classes", "'open' (20)", "np.isin"],
    ),
    "-1 for no label": (_MARKED, P2, ["3 classes", "-1 (20)", "[0, 1]"]),
    "blanks": (_BLANK, P2, ["surrounding", "' yes' (20", "str.strip"]),
    "case": (_CASE, P2, ["case", "'YES' (20", "str.lower"]),
    "blanks, two columns": (
        _BLANK,
        TWO,
        ["surrounding", "' yes' (20", "str.strip"],
    ),
    "NaN": (_NAN, P2, ["row 7", "Drop"]),
    "None": (_NONE, P2, ["row 7", "Drop"]),
    "pandas.NA": (_NA, P2, ["row 7", "Drop"]),
    "mixed types": (_MIXED, P2, ["mixes", "int", "str"]),
    "percent": (Y2, 100 * P2, ["Divide percentages by 100"]),
    "percent sign": (Y2, _PERCENT, ["percent sign"]),
    "decimal comma": (Y2, _COMMA, ["decimal comma"]),
    "swapped": (P2, Y2, ["swapped"]),
    "soft labels": (P2, P2, ["expand_soft_labels"]),
    "one label": (np.repeat("yes", N), P2, ["'yes'", "other"]),
    "one label, two columns": (np.repeat("yes", N), TWO, ["'yes'", "other"]),
    "two labels, four columns": (
        _words(["a", "b"], Y2),
        np.full((N, 4), 0.25),
        ["2 classes", "4 classes", "name the labels of all columns"],
    ),
    "repeated names": (
        Y3,
        pd.DataFrame(P3, columns=["a", "a", "b"]),
        ["2 columns named 'a'"],
    ),
}
FAULTS_OF_ONE_COLUMN = {
    *("a third label", "-1 for no label", "blanks", "case", "mixed types"),
    *("soft labels", "one label"),
}


@pytest.mark.parametrize("door", OF_SCORES)
def test_faults(door):
    def check(case):
        y, scores, words = FAULTS[case]
        with refused(ValueError, *words):
            _of(OF_SCORES[door], y, scores)

    cases = list(FAULTS)
    if door == "sums":  # labels of one column must be 0 and 1
        cases = [case for case in cases if case not in FAULTS_OF_ONE_COLUMN]
    check_each(check, cases)


@pytest.mark.parametrize("door", OF_SCORES)
def test_names_beside_labels(door):
    """`labels=` says which labels there are, the names which column is which."""
    y = _words(LOW, Y3)
    found = _of(OF_SCORES[door], y, FRAME3, labels=LOW)
    np.testing.assert_allclose(found, _truth(door, 3), rtol=1e-9)
    with pytest.raises(ValueError, match="'middle' is not one of them"):
        _of(OF_SCORES[door], y, SOME, labels=LOW)
    with pytest.raises(UserWarning, match="of which only 'low', 'high' are labels"):
        _of(OF_SCORES[door], y, SOME)


@pytest.mark.parametrize("door", OF_SCORES)
@pytest.mark.parametrize(
    ("y", "event"),
    [(2 - Y2, 2), (4 - 2 * Y2, 4), (_words(["yes", "no"], Y2), "yes")],
    ids=["codes", "even codes", "text"],
)
def test_the_greater_label_has_the_lower_scores(door, y, event):
    if door == "sums":
        return
    with pytest.raises(UserWarning, match=f"The event is {event!r}.* below"):
        _of(OF_SCORES[door], y, P2)


@pytest.mark.parametrize("door", OF_SCORES)
@pytest.mark.parametrize(
    "y", [1 - Y2, 1 - 2 * Y2, Y2 == 0], ids=["0, 1", "-1, 1", "bool"]
)
def test_usual_labels_name_the_event(door, y):
    """Of 0 and 1, -1 and 1, and booleans the event is known, however bad the scores."""
    if door == "sums" and y.min() == -1:
        return
    _of(OF_SCORES[door], y, P2)


# --- tables and the report ------------------------------------------------------------


def _report(capsys, folder, table, *options):
    path = folder / "t.csv"
    table.to_csv(path, index=False)
    status = main(
        ["report", str(path), "--label", "y", "--score", "p", "--json", *options]
    )
    written = capsys.readouterr()
    if status:
        raise ValueError(written.err)
    return json.loads(written.out)


@pytest.mark.slow
def test_third_labels_of_tables(tmp_path, capsys):
    table = pd.DataFrame({"y": _THIRD, "p": P2})
    known = _THIRD != "open"
    predictions = PredictionTable(table, label="y", score="p", pos_label="yes")
    for ask in (predictions.invalid_rows, lambda: predictions.bin_statistics(5)):
        with pytest.raises(ValueError, match=r"3 labels.*'open' \(20\).*neg_label="):
            ask()
    two = PredictionTable(table, label="y", score="p", pos_label="yes", neg_label="no")
    assert two.invalid_rows() == {"missing": 0, "score": 0, "label": 20, "weight": 0}
    sums = two.bin_statistics(5)
    assert sums.count.sum() == known.sum()
    assert sums.weighted_label.sum() == Y2[known].sum()
    with pytest.raises(ValueError, match="neg_label='nay' does not occur"):
        PredictionTable(
            table, label="y", score="p", pos_label="yes", neg_label="nay"
        ).bin_statistics(5)
    with pytest.raises(ValueError, match="pos_label="):
        PredictionTable(table, label="y", score="p", neg_label="no")
    with pytest.raises(ValueError, match=r"'open' \(20\).*--negative"):
        _report(capsys, tmp_path, table, "--positive", "yes")
    numbers = _report(capsys, tmp_path, table, "--positive", "yes", "--negative", "no")
    (model,) = numbers["models"]
    assert model["event_frequency"] == pytest.approx(Y2[known].mean())
    assert any("20 rows are left out" in note for note in numbers["notes"])


@pytest.mark.parametrize("y", [_BLANK, _CASE], ids=["blanks", "case"])
def test_look_alikes_of_tables(y, tmp_path, capsys):
    table = pd.DataFrame({"y": y, "p": P2})
    predictions = PredictionTable(table, label="y", score="p", pos_label="yes")
    with pytest.raises(ValueError, match="surrounding spaces"):
        predictions.bin_statistics(5)
    with pytest.raises(ValueError, match="surrounding spaces"):
        _report(capsys, tmp_path, table, "--positive", "yes")


def test_names_and_classes_of_a_table():
    table = FRAME3.assign(y=_words(LOW, Y3))
    names = ["mid", "low", "high"]
    found = PredictionTable.top_label(table, label="y", scores=names, classes=names)
    truth = expected_calibration_error(Y3, P3, binning=EqualMass(5))
    assert expected_calibration_error(found.bin_statistics(5)) == pytest.approx(truth)
    with pytest.raises(ValueError, match="different orders"):
        PredictionTable.top_label(table, label="y", scores=names, classes=LOW)


# --- any spelling of a known truth ----------------------------------------------------


def _spelled(rng, labels):
    """Return names of columns that spell the labels in a random way."""
    texts = [str(label) for label in labels]
    change = rng.integers(5)
    if change == 1:
        texts = [text.upper() for text in texts]
    elif change == 2:
        texts = [f" {text} " for text in texts]
    elif change == 3:
        texts = [f"p({text})" for text in texts]
    elif change == 4:
        texts = [f"model.{text}" for text in texts]
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(50), range(50, 100)], ids=str)
def test_random_spellings(seeds):
    check_each(_check_random_spellings, seeds)


def _check_random_spellings(seed):
    """A random spelling gives the answer of the truth or an error, never another one
    without a warning.
    """
    rng = np.random.default_rng(seed)
    n_classes = int(rng.integers(2, 6))
    proba = rng.dirichlet(np.ones(n_classes), 120)
    codes = np.append(
        np.arange(n_classes),
        (proba.cumsum(axis=1) > rng.random((120, 1))).argmax(axis=1)[n_classes:],
    )
    kinds = [
        np.arange(n_classes),
        np.arange(n_classes) + 1,
        3 * np.arange(n_classes) - 2,
        np.sort(rng.choice(list("abcdefgh"), n_classes, replace=False)),
        np.sort(
            rng.choice([f"class {k}" for k in range(20)], n_classes, replace=False)
        ),
        np.sort(rng.choice(["neg", "neutral", "pos", "none", "x"], n_classes, False)),
    ]
    labels = kinds[rng.integers(len(kinds))]
    order = rng.permutation(n_classes)
    names = np.array(_spelled(rng, labels), dtype=object)[order]
    if rng.random() < 0.2:
        names[0] = "else"  # one name that is no label
    table = pd.DataFrame(proba[:, order], columns=names)
    if rng.random() < 0.3:
        table = pl.from_pandas(table)
    y = labels[codes]
    if rng.random() < 0.3:
        y = pd.Categorical(y, labels[rng.permutation(n_classes)])
    for door in ("expected_calibration_error", "temperature", "monitor"):
        expected = _of(ALL[door], codes, proba)
        try:
            found = _of(ALL[door], y, table)
        except (ValueError, UserWarning):
            assert "else" in names
            continue
        np.testing.assert_allclose(found, expected, rtol=1e-9)


# --- several labels per row, exports, and certain scores ------------------------------


@pytest.mark.slow
def test_a_multilabel_classifier_is_drawn():
    X = RANDOM.normal(size=(N, 3))
    Y = (X + RANDOM.normal(size=(N, 3)) > 0).astype(int)
    forest = RandomForestClassifier(10, max_depth=3, random_state=0).fit(X, Y)
    shown = ReliabilityDisplay.from_estimator(forest, X, Y, random_state=0)
    expected = ReliabilityDisplay.from_predictions(
        Y, np.column_stack([p[:, 1] for p in forest.predict_proba(X)]), random_state=0
    )
    plt.close("all")
    for curve, other in zip(shown.curves, expected.curves, strict=True):
        np.testing.assert_array_equal(curve.statistics.count, other.statistics.count)
    with pytest.raises(ValueError, match="fit one recalibrator for each column"):
        PlattScaling().fit(forest.predict_proba(X)[0], Y)


def test_row_vectors_give_a_warning():
    y, scores = Y2[None], P2[None]
    with pytest.warns(UserWarning, match=r"one sample with 240 labels.*ravel\(\)"):
        expected_calibration_error(y, scores)


def test_names_that_a_language_reserves_are_refused():
    fitted = PlattScaling().fit(P2, Y2)
    for name in ("class", "Math", "await", "Number", "arguments"):
        with pytest.raises(ValueError, match="JavaScript reserves"):
            to_javascript(fitted, name=name)
    for name in ("float", "math", "bisect_left", "len"):
        with pytest.raises(ValueError, match="may use"):
            to_python(fitted, name=name)


@pytest.mark.slow
def test_groups_in_sql_server():
    """Its literals need N for characters of any language, and its columns usually do
    not tell upper case from lower.
    """
    pytest.importorskip("sqlglot")
    table = pd.DataFrame({"p": P2, "g": np.array(["日本", "de"])[GROUPS % 2]})
    fitted = GroupwiseRecalibrator(PlattScaling(), groups="g").fit(table, Y2)
    assert "N'日本'" in to_sql(fitted, dialect="tsql")
    table = table.assign(g=np.array(["DE", "de"])[GROUPS % 2])
    fitted = GroupwiseRecalibrator(PlattScaling(), groups="g").fit(table, Y2)
    for dialect in ("tsql", "mysql"):
        with pytest.raises(ValueError, match="'DE' and 'de' differ only in case"):
            to_sql(fitted, dialect=dialect)
    assert "'de'" in to_sql(fitted, dialect="postgres")


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_an_event_at_a_certain_score_costs_seven_nats_at_most(share, score):
    """log(1000) = 6.9, whatever the samples before."""
    rng = np.random.default_rng(0)
    scores = rng.random(600)
    scores[:100] = score
    y = rng.random(600) < np.where(scores == score, share, scores)
    fitted = OnlineRecalibrator().partial_fit(scores, y.astype(int), [0, 1])
    assert -np.log(fitted.predict_proba([score])[0]).min() < 7
    assert -np.log(fitted.predict_proba([score])[0]).max() < 7
