"""Decision curves and risk against coverage draw the numbers that they are named
after.
"""

import numpy as np
import pytest

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from sklearn.datasets import load_breast_cancer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from skcalib.decisions import certified_threshold, net_benefit  # noqa: E402
from skcalib.displays import DecisionCurveDisplay, RiskCoverageDisplay  # noqa: E402

RNG = np.random.default_rng(0)
SCORES = RNG.beta(1, 3, 800)
Y = RNG.random(800) < SCORES


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_decision_curves():
    models = {"one": SCORES, "two": SCORES**2}
    display = DecisionCurveDisplay.from_predictions(Y, models, threshold=0.155)
    for line, scores in zip(display.lines_, models.values(), strict=True):
        x, y = line.get_data()
        assert 0.155 in x
        assert y == pytest.approx(net_benefit(Y, scores, thresholds=x).net_benefit)
        assert (scores >= x[-1]).sum() >= 20  # a curve ends where fewer are treated
        assert (scores >= x[-1] + 0.011).sum() < 20 or x[-1] == 0.99
    treat_all, treat_none = display.reference_lines_
    x, y = treat_all.get_data()
    at = np.array([0.01, 0.2])
    all_treated = net_benefit(Y, np.ones(800), thresholds=at).net_benefit
    assert np.interp(at, x, y) == pytest.approx(all_treated, abs=1e-4)
    assert not treat_none.get_ydata().any()
    assert display.ax_.get_ylim()[0] < 0 < Y.mean() < display.ax_.get_ylim()[1]
    found = net_benefit(Y, SCORES, thresholds=[0.155])
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert (
        texts[0] == f"one: {found.net_benefit[0]:.3f} ({found.low[0]:.3f} to"
        f" {found.high[0]:.3f})"
    )
    assert {"treat all", "treat none", "90 % interval"} <= set(texts)


def test_standardised_curves_begin_at_1():
    display = DecisionCurveDisplay.from_predictions(
        Y, SCORES, standardize=True, thresholds=[0, 0.1, 0.2], name="one"
    )
    assert display.lines_[0].get_ydata()[0] == pytest.approx(1)
    assert display.reference_lines_[0].get_ydata()[0] == pytest.approx(1)
    assert display.ax_.get_title(loc="left") == "one, n = 800"


def test_risk_against_coverage():
    display = RiskCoverageDisplay.from_predictions(
        Y, {"one": SCORES, "two": np.round(SCORES, 1)}, target=0.1
    )
    x, y = display.lines_[0].get_data()
    confidence = np.maximum(SCORES, 1 - SCORES)
    order = np.argsort(-confidence)
    wrong = ((SCORES > 0.5) != Y)[order]
    by_hand = np.cumsum(wrong) / np.arange(1, 801)
    assert np.interp(0.5, x, y) == pytest.approx(by_hand[399])
    assert y[-1] == pytest.approx(wrong.mean())
    columns = np.column_stack((1 - SCORES, SCORES))
    found = certified_threshold(Y, columns, promise="error_when_answered", target=0.1)
    assert display.points_[0].get_xdata()[0] == found.accepted
    assert display.points_[0].get_ydata()[0] == found.n_wrong / found.n_accepted
    assert list(display.target_line_.get_ydata()) == [0.1, 0.1]


def test_nothing_certified_is_said():
    display = RiskCoverageDisplay.from_predictions(Y[:60], SCORES[:60], target=0.01)
    assert display.points_ == []
    assert "no threshold found" in display.ax_.get_title(loc="left")
    assert RiskCoverageDisplay.from_predictions(Y, SCORES).target_line_ is None


@pytest.mark.slow
def test_displays_of_estimators():
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(max_iter=10_000).fit(X[::2], y[::2])
    one = DecisionCurveDisplay.from_estimator(model, X[1::2], y[1::2])
    other = RiskCoverageDisplay.from_estimator(
        {"logistic": model}, X[1::2], y[1::2], target=0.05
    )
    assert one.ax_.get_title(loc="left").startswith("LogisticRegression, n = 284")
    assert other.curves["logistic"].certified.found


@pytest.mark.slow
def test_interventions_avoided_are_a_second_panel():
    models = {"first": SCORES, "second": 0.5 * SCORES + 0.1}
    display = DecisionCurveDisplay.from_predictions(
        Y, models, threshold=0.2, plot_options={"avoided": True}
    )
    left, right = display.ax_
    assert left.get_title(loc="left") == "Net benefit"
    assert right.get_title(loc="left") == "Interventions avoided per 100"
    assert len(display.lines_) == len(display.avoided_lines_) == 2
    for line, benefit, curve in zip(
        display.avoided_lines_, display.lines_, display.curves.values(), strict=True
    ):
        thresholds, avoided = line.get_data()
        np.testing.assert_array_equal(thresholds, benefit.get_xdata())
        at = np.searchsorted(curve.thresholds, thresholds)
        np.testing.assert_array_equal(avoided, curve.interventions_avoided[at])
