"""The Murphy diagram: what is drawn is the mean elementary score, and its area is the
Brier score.
"""

import numpy as np
import pytest
from _catalog import refused
from sklearn.metrics import brier_score_loss

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import MurphyDisplay  # noqa: E402

RNG = np.random.default_rng(0)
SCORES = np.round(RNG.random(300), 2)
Y = RNG.random(300) < SCORES


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _loss(y, scores, t, weight=None):
    """Return the mean cost of acting where the score is above t."""
    cost = np.where(scores > t, 2 * t * (y == 0), 2 * (1 - t) * (y == 1))
    return np.average(cost, weights=weight)


def test_curves_are_mean_elementary_scores():
    weight = RNG.integers(1, 4, 300)
    models = {"plain": SCORES, "sharp": SCORES**2}
    display = MurphyDisplay.from_predictions(Y, models, sample_weight=weight)
    for curve, scores, line in zip(
        display.curves, models.values(), display.lines_, strict=True
    ):
        expected = [_loss(Y, scores, t, weight) for t in display.thresholds]
        np.testing.assert_allclose(curve.loss, expected, atol=1e-12)
        np.testing.assert_array_equal(line.get_ydata(), curve.loss)
        assert curve.brier_score == pytest.approx(
            brier_score_loss(Y, scores, sample_weight=weight)
        )
        assert np.trapezoid(curve.loss, display.thresholds) == pytest.approx(
            curve.brier_score, abs=2e-3
        )
    names = [text.get_text() for text in display.legend_.get_texts()]
    assert [name.split(":")[0] for name in names] == [
        "plain",
        "sharp",
        "always or never acting",
    ]
    assert display.legend_.get_title().get_text() == "Brier score"


def test_the_reference_is_the_better_of_always_and_never():
    display = MurphyDisplay.from_predictions(Y, SCORES, name="model")
    losses = [
        [_loss(Y, np.full(300, constant), t) for t in display.thresholds]
        for constant in (0.0, 2.0)
    ]
    np.testing.assert_allclose(
        display.reference_line_.get_ydata(), np.min(losses, axis=0), atol=1e-12
    )
    assert display.ax_.get_title(loc="left").startswith(
        "model, n = 300\nBrier score 0."
    )
    assert display.plot(legend=False).legend_ is None


def test_limits():
    rare = MurphyDisplay.from_predictions(Y & (SCORES > 0.9), SCORES / 20)
    assert rare.thresholds[-1] == pytest.approx(1.05 * SCORES.max() / 20)
    own = MurphyDisplay.from_predictions(Y, SCORES, limits=(0.2, 0.4))
    assert (own.thresholds[0], own.thresholds[-1]) == (0.2, 0.4)
    for limits in ((0.4, 0.2), (0, 2), "all"):
        with refused(ValueError, "limits"):
            MurphyDisplay.from_predictions(Y, SCORES, limits=limits)


def test_classes():
    proba = np.column_stack((SCORES, (1 - SCORES) / 2, (1 - SCORES) / 2))
    labels = np.where(Y, 0, 1 + np.arange(300) % 2)
    display = MurphyDisplay.from_predictions(labels, proba)
    right = proba.argmax(axis=1) == labels
    assert display.curves[0].brier_score == pytest.approx(
        np.mean((right - proba.max(axis=1)) ** 2)
    )
    for wrong in (
        {"y_proba": proba, "multiclass": "marginal"},
        {"y_proba": {"a": proba, "b": proba}},
    ):
        with refused(ValueError, "same event", "one class at a time"):
            MurphyDisplay.from_predictions(labels, **wrong)
