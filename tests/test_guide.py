"""The user guide says what the library does: its snippets run, its figures on bundled
data are met.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib import HistogramBinning, IsotonicCalibration, PlattScaling
from skcalib.binning import EqualWidth, UniqueScores
from skcalib.guarantees import conditional_epsilon, max_n_bins
from skcalib.metrics import (
    brier_decomposition,
    calibration_error,
)

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[1] / "doc" / "which_error.md"


@pytest.fixture(scope="module")
def which_error():
    text = GUIDE.read_text(encoding="utf-8")
    namespace = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(snippet, namespace)
    return text, namespace


def test_snippet(which_error):
    _, names = which_error
    assert (
        0
        <= names["interval"].low
        <= names["interval"].estimate
        <= names["interval"].high
    )
    assert names["test"].pvalue < 0.05
    assert names["parts"].score == pytest.approx(
        brier_score_loss(names["y_test"], names["y_proba"])
    )


def test_bins_hide_errors_of_opposite_sign():
    scores = np.repeat([0.41, 0.59], 100)
    labels = np.r_[np.arange(100) < 59, np.arange(100) < 41]
    for binning, shown in ((EqualWidth(5), 0.0), (UniqueScores(), 0.18)):
        assert calibration_error(
            labels, scores, norm=1, method="plugin", binning=binning
        ) == pytest.approx(shown)


def test_many_classes():
    text, names = _page("many_classes.md")
    errors = names["by_class"]
    mean, worst, digit = re.search(
        r"the error is (\S+) on average, and (\S+) for the worst class, the digit (\d)",
        text,
    ).groups()
    assert [float(mean), float(worst)] == pytest.approx(
        [np.mean(list(errors.values())), max(errors.values())], abs=1e-3
    )
    assert max(errors, key=errors.get) == int(digit)
    new = names["new"]
    for method in (HistogramBinning, PlattScaling, IsotonicCalibration):
        model = method(multiclass="top_label").fit(
            names["scores"], names["y_calibration"]
        )
        assert np.array_equal(model.predict(new), new.argmax(axis=1))
        assert (
            0.07
            < np.mean(model.predict_proba(new).argmax(axis=1) != new.argmax(axis=1))
            < 0.11
        )


def test_snippets_on_groups():
    text = (GUIDE.parent / "which_recalibrator.md").read_text(encoding="utf-8")
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(snippet, names)
    shown = re.search(r"for model in \(pooled, by_site\)\s*\]  # (.*)", text).group(1)
    assert names["log_losses"] == pytest.approx(
        [float(one) for one in shown.split(",")], abs=5e-4
    )
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0
    )
    scores = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    model = names["top_label_binning"].fit(scores, y_test)
    np.testing.assert_array_equal(model.predict(scores), scores.argmax(axis=1))


def _page(name):
    text = (GUIDE.parent / name).read_text(encoding="utf-8")
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(snippet, names)
    return text, names


def _cells(text, start):
    """Return the numbers in the cells of the row of a table that begins so; a cell
    without a number is None.
    """
    (row,) = re.findall(rf"^\| {re.escape(start)} \|(.*)\|$", text, flags=re.M)
    return [
        float(cell) if re.fullmatch(r"\s*[\d.,]+\s*", cell) else None
        for cell in row.replace(",", "").split("|")
    ]


def test_scores():
    text, names = _page("scores.md")
    parts = dict(names["parts"], **{"naive Bayes, after Platt scaling": None})
    parts["naive Bayes, after Platt scaling"] = brier_decomposition(
        names["y_test"], names["recalibrated"]
    )
    costs = dict(
        names["costs"],
        **{"naive Bayes, after Platt scaling": names["cost"](names["recalibrated"])},
    )
    for name, part in parts.items():
        *shown, cost = _cells(text, name)
        assert shown == pytest.approx([part.score, *part], abs=1.5e-3)
        assert cost == pytest.approx(costs[name], abs=0.015)


def test_reading_a_diagram():
    text, names = _page("reading_a_diagram.md")
    for name, (slope, intercept) in names["found"].items():
        shown = re.search(
            rf"^\| {name} \|[^|]*\| (\S+) \| (\S+) \|", text, flags=re.M
        ).groups()
        assert [float(one) for one in shown] == pytest.approx(
            [slope.estimate, intercept.estimate], abs=5.1e-3
        )
    pvalue, low, high = re.search(
        r"p-value is (\S+), and the 90 % interval [^.]* is\s(\S+)\sto\s(\S+)\.", text
    ).groups()
    shown = [names["pvalue"], names["error"].low, names["error"].high]
    assert [float(pvalue), float(low), float(high)] == pytest.approx(shown, abs=5.1e-3)


def test_many_classes_of_the_page():
    text, names = _page("many_classes.md")
    for name in ("top_label", "marginal"):
        shown = re.search(rf"^{name} = .*# (\.\d+)$", text, flags=re.M).group(1)
        assert names[name] == pytest.approx(float(shown), abs=1e-3)
    assert _cells(text, "log-loss on held-out data") == pytest.approx(
        list(names["log_losses"].values()), abs=0.02
    )


def test_tables_of_bins():
    text = (GUIDE.parent / "how_many_bins.md").read_text(encoding="utf-8")
    (table,) = re.split(r"\| samples \\ ", text)[1:]
    head, _, *lines = table.split("\n\n")[0].splitlines()
    tolerances = [float(cell) for cell in head.split("|")[1:-1]]
    for line in lines:
        n_samples, *shown = line.replace(",", "").strip("| ").split("|")
        for cell, epsilon in zip(shown, tolerances, strict=True):
            if cell.strip() != "-":
                assert int(cell) == max_n_bins(int(n_samples), epsilon)
                assert conditional_epsilon(int(n_samples), int(cell)) <= epsilon
