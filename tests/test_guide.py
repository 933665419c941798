"""The user guide says what the library does: its snippets run, its figures on bundled data are met."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib.binning import EqualWidth, UniqueScores
from skcalib.metrics import (
    brier_decomposition,
    calibration_error,
    expected_calibration_error,
    groupwise_calibration_error,
)

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
    assert 0 <= names["interval"].low <= names["interval"].estimate <= names["interval"].high
    assert names["test"].pvalue < 0.05
    assert names["parts"].score == pytest.approx(brier_score_loss(names["y_test"], names["y_proba"]))


def test_a_constant_has_no_calibration_error(which_error):
    text, names = which_error
    y, s = names["y_test"], names["y_proba"]
    constant = np.full(len(y), y.mean())
    for name, scores in (("naive Bayes", s), ("the base rate, always", constant)):
        figures = (
            expected_calibration_error(y, scores),
            brier_score_loss(y, scores),
            *brier_decomposition(y, scores),
        )
        row = re.search(rf"\| {name} \|(.*)\|", text).group(1)
        assert [float(cell) for cell in row.split("|")] == pytest.approx(figures, abs=5e-4)


def test_bins_hide_errors_of_opposite_sign():
    scores = np.repeat([0.41, 0.59], 100)
    labels = np.r_[np.arange(100) < 59, np.arange(100) < 41]
    for binning, shown in ((EqualWidth(5), 0.0), (UniqueScores(), 0.18)):
        assert calibration_error(labels, scores, norm=1, method="plugin", binning=binning) == pytest.approx(shown)


def test_many_classes():
    X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    proba = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    options = {"norm": 1, "binning": 5}
    assert calibration_error(y_test, proba, **options) == pytest.approx(0.153, abs=1e-3)
    assert calibration_error(y_test, proba, multiclass="marginal", **options) == pytest.approx(0.020, abs=1e-3)
    assert groupwise_calibration_error(y_test, proba, reduce="mean") == pytest.approx(0.141, abs=1e-3)
    errors = groupwise_calibration_error(y_test, proba, reduce=None)
    assert max(errors, key=errors.get) == 8
    assert errors[8] == pytest.approx(0.379, abs=1e-3)


def test_snippets_on_groups():
    text = (GUIDE.parent / "which_recalibrator.md").read_text(encoding="utf-8")
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(snippet, names)
    shown = re.search(r"for model in \(pooled, by_site\)\]  # (.*)", text).group(1)
    assert names["log_losses"] == pytest.approx([float(one) for one in shown.split(",")], abs=5e-4)
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    scores = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    model = names["top_label_binning"].fit(scores, y_test)
    np.testing.assert_array_equal(model.predict(scores), scores.argmax(axis=1))
