"""Errors and warnings about labels, columns and classes, provoked as users do it.

A message names the fault and the cure. Where the cure is code, it is followed to the
letter here, and must give the number of the plain spelling.
"""

import re

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

from skcalib import (
    CrossFittedClassifier,
    OnlineRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
    TemperatureScaling,
    expand_soft_labels,
)
from skcalib.__main__ import main
from skcalib.displays import ReliabilityDisplay
from skcalib.engines import PredictionTable
from skcalib.metrics import calibration_by_group, calibration_error, get_scorer
from skcalib.monitoring import CalibrationMonitor, calibration_change

pytest.importorskip("matplotlib")
pd = pytest.importorskip("pandas")

RANDOM = np.random.default_rng(0)
N = 300
P = RANDOM.beta(2, 2, N)
Y = (RANDOM.random(N) < P).astype(int)
TEXT = np.where(Y == 1, "Yes", "No").astype(object)
P3 = RANDOM.dirichlet([2, 1, 1], N)
Y3 = (P3.cumsum(axis=1) > RANDOM.random((N, 1))).argmax(axis=1)
CLASSES = np.array(["high", "low", "mid"])
TEXT3 = CLASSES[Y3]
TABLE3 = pd.DataFrame(P3, columns=CLASSES)
X = RANDOM.normal(size=(N, 2)) + Y[:, None]
FIRST = np.arange(N) < 50
SEVENTH = np.arange(N) == 7
THIRD = np.where(FIRST, "Unknown", TEXT).astype(object)
MARKED = np.where(FIRST, -1, Y)
MARKED3 = np.where(FIRST, -1, Y3)
BLANKS = np.where(FIRST & (Y == 1), " Yes", TEXT).astype(object)
PERCENT = np.array([f"{100 * score:.10f} %" for score in P])
COMMA = np.array([f"{score:.12f}".replace(".", ",") for score in P])
COMMA_PERCENT = np.char.replace(PERCENT, ".", ",")
ERROR = calibration_error(Y, P)
ERROR3 = calibration_error(Y3, P3)


def event(fitted, scores=P):
    """Return the mean probability of the second class."""
    return fitted.predict_proba(scores)[:, 1].mean()


PLATT = event(PlattScaling().fit(P, Y))
PLATT3 = event(TemperatureScaling().fit(P3, Y3), P3)


# By name: what the user wrote, what the message must say, what the cure says (None
# where it is not code), and the number that it must give.
PROVOKED = {
    "other labels than the names": (
        lambda: calibration_error(
            TEXT3, TABLE3.rename(columns={"mid": "medium"}), labels=list(CLASSES)
        ),
        r"named 'high', 'low', 'medium', but labels are .*: 'medium' is not one of"
        r" them. Rename .* y_proba.to_numpy\(\)",
        lambda: calibration_error(
            TEXT3,
            TABLE3.rename(columns={"mid": "medium"}).to_numpy(),
            labels=list(CLASSES),
        ),
        ERROR3,
    ),
    "labels in another order": (
        lambda: calibration_error(
            TEXT3, P3[:, [1, 2, 0]], labels=["low", "mid", "high"]
        ),
        r"sorted .* Pass labels=\['high', 'low', 'mid'\] .* scores\[:, \[2, 0, 1\]\]\.",
        lambda: calibration_error(
            TEXT3, P3[:, [1, 2, 0]][:, [2, 0, 1]], labels=["high", "low", "mid"]
        ),
        ERROR3,
    ),
    "two labels in another order": (
        lambda: calibration_error(Y, P, labels=[1, 0]),
        r"Pass labels=\[0, 1\], .*a single column belongs to the last label",
        lambda: calibration_error(Y, P, labels=[0, 1]),
        ERROR,
    ),
    "a label named twice": (
        lambda: PlattScaling(classes=[0, 0]).fit(P, Y),
        "classes must be sorted and unique.* Name each label once",
        None,
        None,
    ),
    "one name for a column": (
        lambda: CalibrationMonitor(classes=[1]).partial_fit(P, Y),
        "names 1 label but the scores have 2 classes.*a single column needs two",
        None,
        None,
    ),
    "a third label": (
        lambda: calibration_error(THIRD, P),
        r"'No' \(\d+\).*known = np.isin\(y_true, \['No', 'Yes'\]\)",
        lambda: calibration_error(
            THIRD[np.isin(THIRD, ["No", "Yes"])], P[np.isin(THIRD, ["No", "Yes"])]
        ),
        calibration_error(Y[~FIRST], P[~FIRST]),
    ),
    "a third label beside two names": (
        lambda: ReliabilityDisplay.from_predictions(THIRD, P, labels=["No", "Yes"]),
        r"unknown label 'Unknown' in row 0.*known = np.isin\(y_true, \['No', 'Yes'\]\)",
        None,
        None,
    ),
    "a label without a column": (
        lambda: calibration_error(
            np.where(FIRST, "u", TEXT3), TABLE3[["low", "high", "mid"]]
        ),
        r"4 classes .*'u' \(50\).* leave out rows whose label has no column",
        lambda: calibration_error(
            TEXT3[~FIRST], TABLE3[["low", "high", "mid"]][~FIRST]
        ),
        calibration_error(Y3[~FIRST], P3[~FIRST]),
    ),
    "a third label in a fit": (
        lambda: PlattScaling().fit(P, THIRD),
        r"known = np.isin\(y, \['No', 'Yes'\]\), then y\[known\] and X\[known\]\. See ",
        lambda: event(PlattScaling().fit(P[~FIRST], THIRD[~FIRST])),
        event(PlattScaling().fit(P[~FIRST], Y[~FIRST])),
    ),
    "a third label in a table": (
        lambda: PredictionTable(
            pd.DataFrame({"y": THIRD, "p": P}), label="y", score="p", pos_label="Yes"
        ).bin_statistics(5),
        "3 labels: .*'Unknown' .50.* neg_label=",
        lambda: (
            PredictionTable(
                pd.DataFrame({"y": THIRD, "p": P}),
                label="y",
                score="p",
                pos_label="Yes",
                neg_label="No",
            )
            .bin_statistics(5)
            .weighted_label.sum()
        ),
        Y[~FIRST].sum(),
    ),
    "unlabelled rows": (
        lambda: calibration_error(MARKED, P),
        r"-1 \(50\).*known = np.isin\(y_true, \[0, 1\]\)",
        lambda: calibration_error(
            MARKED[np.isin(MARKED, [0, 1])], P[np.isin(MARKED, [0, 1])]
        ),
        calibration_error(Y[~FIRST], P[~FIRST]),
    ),
    "unlabelled rows of three classes": (
        lambda: TemperatureScaling().fit(P3, MARKED3),
        r"-1 \(50\).*known = y != -1, then y\[known\] and X\[known\]",
        lambda: event(
            TemperatureScaling().fit(P3[MARKED3 != -1], MARKED3[MARKED3 != -1]), P3
        ),
        event(TemperatureScaling().fit(P3[~FIRST], Y3[~FIRST]), P3),
    ),
    "blanks": (
        lambda: calibration_error(BLANKS, P),
        r"' Yes' .* and 'Yes' .*pd.Series\(y_true\).str.strip\(\).str.lower\(\)",
        lambda: calibration_error(pd.Series(BLANKS).str.strip().str.lower(), P),
        ERROR,
    ),
    "blanks beside names": (
        lambda: CalibrationMonitor(classes=["No", "Yes"]).partial_fit(P, BLANKS),
        r"' Yes' in row \d+.* differs from 'Yes' only in case or in surrounding spaces"
        r".*pd.Series\(y\).str.strip\(\)",
        lambda: (
            CalibrationMonitor(classes=["No", "Yes"])
            .partial_fit(P, pd.Series(BLANKS).str.strip())
            .e_value_
        ),
        CalibrationMonitor().partial_fit(P, Y).e_value_,
    ),
    "one label": (
        lambda: PlattScaling().fit(P, np.ones(N, dtype=int)),
        r"only the label 1.*classes=\[0, 1\]",
        None,
        None,
    ),
    "one text label": (
        lambda: calibration_error(np.full(N, "Yes"), P),
        r"one class only \('Yes'\).*labels=\['Yes', other\] or labels=\[other, 'Yes'\]",
        lambda: calibration_error(np.full(N, "Yes"), P, labels=["No", "Yes"]),
        calibration_error(np.ones(N), P),
    ),
    "percentages": (
        lambda: PlattScaling().fit(P, Y).predict_proba(100 * P),
        r"row 0 is \d+\.\d+\. Divide percentages by 100\. See ",
        lambda: event(PlattScaling().fit(P, Y), 100 * P / 100),
        PLATT,
    ),
    "percent signs": (
        lambda: calibration_error(Y, PERCENT),
        r'percent sign.*pd.Series\(column\).str.rstrip\(" %"\).astype\(float\) / 100',
        lambda: calibration_error(
            Y, pd.Series(PERCENT).str.rstrip(" %").astype(float) / 100
        ),
        ERROR,
    ),
    "percent signs and commas": (
        lambda: calibration_error(Y, COMMA_PERCENT),
        r'str.rstrip\(" %"\).str.replace\(",", "."\).astype\(float\) / 100',
        lambda: calibration_error(
            Y,
            pd.Series(COMMA_PERCENT)
            .str.rstrip(" %")
            .str.replace(",", ".")
            .astype(float)
            / 100,
        ),
        ERROR,
    ),
    "decimal commas": (
        lambda: calibration_error(Y, pd.Series(COMMA)),
        r'decimal comma: .*pd.Series\(column\).str.replace\(",", "."\)',
        lambda: calibration_error(
            Y, pd.Series(COMMA).str.replace(",", ".").astype(float)
        ),
        ERROR,
    ),
    "percent signs in a table": (
        lambda: PredictionTable(
            pd.DataFrame({"y": Y, "p": PERCENT}), label="y", score="p"
        ),
        "the column 'p' is String. Convert it: .*percent sign or a decimal comma",
        None,
        None,
    ),
    "codes in a table": (
        lambda: PredictionTable(
            pd.DataFrame({"y": Y + 1, "p": P}), label="y", score="p"
        ).bin_statistics(5),
        r"invalid rows: \d+ \(label\).*pos_label=",
        lambda: (
            PredictionTable(
                pd.DataFrame({"y": Y + 1, "p": P}), label="y", score="p", pos_label=2
            )
            .bin_statistics(5)
            .weighted_label.sum()
        ),
        Y.sum(),
    ),
    "scores in a row": (
        lambda: calibration_error(Y, P[None]),
        r"If these are the scores of 300 rows, not of one, pass y_proba.ravel\(\)",
        lambda: calibration_error(Y, P[None].ravel()),
        ERROR,
    ),
    "scores in a row for a fit": (
        lambda: PlattScaling().fit(P, Y).predict_proba(P[None]),
        r"If these are the scores of 300 rows, not of one, pass X.ravel\(\)",
        lambda: event(PlattScaling().fit(P, Y), P[None].ravel()),
        PLATT,
    ),
    "labels in a row": (
        lambda: PlattScaling().fit(P, Y[None]),
        r"shape \(1, 300\) instead. Pass y.ravel\(\)",
        lambda: event(PlattScaling().fit(P, Y[None].ravel())),
        PLATT,
    ),
    "swapped": (
        lambda: PlattScaling().fit(Y, P),
        "y contains probabilities .row 0 is .*Pass the scores first, then y",
        lambda: event(PlattScaling().fit(P, Y)),
        PLATT,
    ),
    "swapped in a monitor": (
        lambda: CalibrationMonitor().partial_fit(Y, P),
        "y contains probabilities .row 0 is .*Pass the scores first, then y",
        None,
        None,
    ),
    "swapped of three classes": (
        lambda: TemperatureScaling().fit(TEXT3, P3),
        r"\(300, 3\) instead. It holds probabilities: .*pass them as X",
        lambda: event(TemperatureScaling().fit(P3, TEXT3), P3),
        PLATT3,
    ),
    "swapped of three classes in a metric": (
        lambda: calibration_error(P3, Y3),
        "if these are the scores, pass them as y_proba",
        lambda: calibration_error(Y3, P3),
        ERROR3,
    ),
    "swapped with text": (
        lambda: calibration_by_group(P, TEXT, Y, n_resamples=9),
        "with the string '(Yes|No)'.*if these are the labels, .*are swapped",
        None,
        None,
    ),
    "soft labels": (
        lambda: calibration_error(np.where(SEVENTH, 0.5, Y), P),
        "found 0.0, 0.5, 1.0.*skcalib.expand_soft_labels",
        lambda: float(expand_soft_labels(P, np.where(SEVENTH, 0.5, Y))[2].sum()),
        N,
    ),
    "soft labels of three classes": (
        lambda: TemperatureScaling().fit(P3, P3),
        "skcalib.expand_soft_labels",
        None,
        None,
    ),
    "a class that does not occur": (
        lambda: TemperatureScaling().fit(P3[Y3 != 1], TEXT3[Y3 != 1]),
        "'high', 'mid'.*name the labels of all columns, sorted, with classes=",
        lambda: event(
            TemperatureScaling(classes=["high", "low", "mid"]).fit(
                P3[Y3 != 1], TEXT3[Y3 != 1]
            ),
            P3,
        ),
        event(TemperatureScaling().fit(P3[Y3 != 1], Y3[Y3 != 1]), P3),
    ),
    "numbers and text": (
        lambda: PlattScaling(classes=[0, 1]).fit(P, Y.astype(str)),
        "y holds '[01]', .*of a different type from classes 0, 1. Write both as",
        lambda: event(PlattScaling(classes=["0", "1"]).fit(P, Y.astype(str))),
        PLATT,
    ),
    "numbers and text in a scorer": (
        lambda: get_scorer("neg_log_loss")(
            LogisticRegression().fit(X, Y), X, Y.astype(str)
        ),
        "y_true holds '[01]', .*of a different type from classes_ 0, 1. Write both as",
        None,
        None,
    ),
    "the event as text": (
        lambda: calibration_error(Y + 1, P, pos_label="2"),
        "pos_label='2' is not one of the labels 1, 2. Write it .*: pos_label=2",
        lambda: calibration_error(Y + 1, P, pos_label=2),
        ERROR,
    ),
    "the event as text in a table": (
        lambda: PredictionTable(
            pd.DataFrame({"y": Y, "p": P}), label="y", score="p", pos_label="1"
        ),
        "not a value of the column 'y', which is Int64: write it as a number",
        None,
        None,
    ),
    "an event of three classes": (
        lambda: calibration_error(TEXT3, P3, pos_label="mid"),
        "For one class, pass its column and y_true == 'mid'",
        lambda: calibration_error(TEXT3 == "mid", P3[:, 2]),
        calibration_error(Y3 == 2, P3[:, 2]),
    ),
    "no label": (
        lambda: calibration_error(np.where(SEVENTH, None, TEXT), P),
        "missing value .*in row 7.*Drop such rows",
        lambda: calibration_error(TEXT[~SEVENTH], P[~SEVENTH]),
        calibration_error(Y[~SEVENTH], P[~SEVENTH]),
    ),
    "no label of pandas": (
        lambda: CrossFittedClassifier(LogisticRegression()).fit(
            X, pd.Series(Y, dtype="Int64").mask(SEVENTH)
        ),
        "in row 7.*Drop such rows",
        None,
        None,
    ),
    "several labels": (
        lambda: RecalibratedClassifierCV(LogisticRegression()).fit(
            X, np.column_stack((Y, Y))
        ),
        r"\(300, 2\).*fit one classifier for each column of y",
        None,
        None,
    ),
    "several labels in a monitor": (
        lambda: CalibrationMonitor().partial_fit(
            np.column_stack((P, P)), np.column_stack((Y, Y))
        ),
        r"\(300, 2\).*use one monitor for each",
        None,
        None,
    ),
    "an indicator of classes": (
        lambda: TemperatureScaling().fit(P3, np.eye(3)[Y3]),
        r"If each row has one class, pass y.argmax\(axis=1\)",
        lambda: event(TemperatureScaling().fit(P3, np.eye(3)[Y3].argmax(axis=1)), P3),
        PLATT3,
    ),
    "names that a monitor needs": (
        lambda: CalibrationMonitor().partial_fit(P, TEXT),
        "name other labels, sorted, with classes=. Found 'No', 'Yes'",
        lambda: CalibrationMonitor(classes=["No", "Yes"]).partial_fit(P, TEXT).e_value_,
        CalibrationMonitor().partial_fit(P, Y).e_value_,
    ),
    "labels of two kinds in two samples": (
        lambda: calibration_change(Y, P, Y + 1, P, n_resamples=9),
        "y_before has the labels 0, 1 and y_after 1, 2: use the same labels",
        None,
        None,
    ),
    "other labels than those of a frozen classifier": (
        lambda: RecalibratedClassifierCV(
            FrozenEstimator(LogisticRegression().fit(X, Y))
        ).fit(X, THIRD),
        r"'Unknown' in row 0, .*knows \[0, 1\]. Leave out such rows, or write",
        None,
        None,
    ),
    "a classifier without probabilities": (
        lambda: get_scorer("neg_log_loss")(LinearSVC().fit(X, Y), X, Y),
        r"found LinearSVC\(\).*RecalibratedClassifierCV",
        lambda: round(
            RecalibratedClassifierCV(LinearSVC()).fit(X, Y).predict_proba(X).sum()
        ),
        N,
    ),
    "groups of another length": (
        lambda: CrossFittedClassifier(LogisticRegression()).fit(
            X, Y, groups=np.arange(4)
        ),
        "groups has 4 rows but X has 300",
        None,
        None,
    ),
    "groups as weights": (
        lambda: PlattScaling().fit(P, Y, TEXT),
        "sample_weight must be numbers, found '(Yes|No)'.$",
        None,
        None,
    ),
    "a negative weight": (
        lambda: calibration_error(Y, P, sample_weight=np.where(SEVENTH, -1, 1)),
        "sample_weight .*not negative, but row 7 is -1.0",
        None,
        None,
    ),
}


@pytest.mark.parametrize("case", PROVOKED)
def test_the_message_names_the_fault_and_the_cure(case):
    wrong, pattern, cure, expected = PROVOKED[case]
    with pytest.raises((TypeError, ValueError), match=pattern) as raised:
        wrong()
    assert len(str(raised.value)) < 500
    if cure is not None:
        assert cure() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("recalibrator", [PlattScaling, OnlineRecalibrator])
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_the_scores_of_the_lesser_code(recalibrator, scale):
    # The scores are those of 1, the lesser of the codes 1 and 2.
    scores, codes = P, 2 - Y
    if scale == "logit":
        scores = np.log(P / (1 - P))
    cures = {
        "probability": (
            r"pass both columns here and later: np.column_stack\(\(X, 1 - X\)\)",
            lambda X: np.column_stack((X, 1 - X)),
        ),
        "logit": ("pass -X here and later", lambda X: -X),
    }
    pattern, cure = cures[scale]
    with pytest.warns(UserWarning, match=pattern):
        recalibrator(input=scale).fit(scores, codes)
    fitted = recalibrator(input=scale).fit(cure(scores), codes)
    found = fitted.predict_proba(cure(scores))[:, 0]
    fitted = recalibrator(input=scale).fit(scores, Y)
    expected = fitted.predict_proba(scores)[:, 1]
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", ["neg_log_loss", "neg_calibration_error"])
@pytest.mark.parametrize("weight", [None, np.arange(1, N + 1)])
def test_a_scorer_leaves_out_unlabelled_rows(name, weight):
    model = SelfTrainingClassifier(LogisticRegression()).fit(X, MARKED)
    scorer = get_scorer(name)
    labelled_weight = None if weight is None else weight[~FIRST]
    expected = scorer(model, X[~FIRST], Y[~FIRST], sample_weight=labelled_weight)
    assert scorer(model, X, MARKED, sample_weight=weight) == pytest.approx(expected)
    text = np.where(FIRST, -1, TEXT).astype(object)
    model = LogisticRegression().fit(X, TEXT)
    expected = scorer(model, X[~FIRST], TEXT[~FIRST], sample_weight=labelled_weight)
    assert scorer(model, X, text, sample_weight=weight) == pytest.approx(expected)
    with pytest.raises(ValueError, match="only the label -1: no row is labelled"):
        scorer(model, X, np.full(N, -1))


@pytest.mark.parametrize(
    ("labels", "scores", "pattern"),
    [
        (BLANKS, P, "' Yes' .* and 'Yes' .*differ only|differ only .*' Yes'"),
        (P, Y, "holds probabilities .*--label names .* --score"),
        (np.where(FIRST, 0.5, Y), P, "expand_soft_labels"),
        (np.where(SEVENTH, 0.5, Y), P, "0.5 in one row, .* remove it"),
        (Y + 1, P, "say with --positive"),
        (np.where(SEVENTH, None, TEXT), P, "row 7.*give --missing drop"),
        (Y, 100 * P, "--scores percent"),
    ],
)
def test_the_report_command(labels, scores, pattern, tmp_path, capsys):
    path = tmp_path / "table.csv"
    pd.DataFrame({"y": labels, "p": scores}).to_csv(path, index=False)
    page = str(tmp_path / "page.html")
    options = ["--label", "y", "--score", "p", "-o", page]
    assert main(["report", str(path), *options]) == 2
    (message,) = capsys.readouterr().err.strip().splitlines()
    assert re.search(pattern, message)
