"""The picture of a change: what is drawn are differences at equal scores, with
intervals that cover.
"""

import numpy as np
import pytest

from skcalib._verdicts import pvalue_words
from skcalib.binning import FixedEdges
from skcalib.metrics import BinStatistics
from skcalib.monitoring import calibration_change

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import ChangeDisplay  # noqa: E402

QUICK = {"n_resamples": 19, "random_state": 0}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _samples(seed, shift, n=2000):
    rng = np.random.default_rng(seed)
    before, after = rng.beta(1, 4, n), rng.beta(1.5, 4, n)
    return (
        rng.random(n) < before,
        before,
        rng.random(n) < np.minimum(after + shift, 1),
        after,
    )


def test_points_are_differences_of_residuals_in_common_bins():
    y_before, before, y_after, after = samples = _samples(0, 0.1)
    display = ChangeDisplay.from_predictions(
        *samples, binning=FixedEdges([0, 0.2, 0.5, 1]), **QUICK
    )
    for k, (low, high) in enumerate(((0, 0.2), (0.2, 0.5), (0.5, 1))):
        inside = [(scores > low) & (scores <= high) for scores in (before, after)]
        residuals = [
            (y - s)[rows].mean()
            for y, s, rows in zip(
                (y_before, y_after), (before, after), inside, strict=True
            )
        ]
        assert display.difference[k] == pytest.approx(residuals[1] - residuals[0])
    assert np.all(display.low < display.difference)
    assert np.all(display.difference < display.high)
    np.testing.assert_allclose(display.line_.get_ydata(), 100 * display.difference)
    segments = np.array(display.intervals_.lines[2][0].get_segments())
    np.testing.assert_allclose(
        segments[:, :, 1], 100 * np.stack((display.low, display.high), axis=1)
    )
    change = calibration_change(*samples, **QUICK)
    assert display.change.pvalue == change.pvalue
    assert display.ax_.get_title(loc="left").endswith(
        f"same curve: {pvalue_words(change.pvalue)}"
    )


def test_statistics_give_the_same_points():
    y_before, before, y_after, after = samples = _samples(0, 0.1)
    edges = [0, 0.2, 0.5, 0.9, 1]
    sums = [
        BinStatistics.from_predictions(y, s, edges)
        for s, y in ((before, y_before), (after, y_after))
    ]
    rows = ChangeDisplay.from_predictions(*samples, binning=FixedEdges(edges), **QUICK)
    display = ChangeDisplay.from_predictions(*sums, **QUICK)
    np.testing.assert_allclose(display.difference, rows.difference)
    assert len(display.histograms_) == 2
    assert display.plot(histogram=False, legend=False).legend_ is None
    assert display.histograms_ == []


def test_bins_without_rows_of_both_are_left_out():
    display = ChangeDisplay.from_predictions(
        [0, 1] * 50,
        np.repeat([0.2, 0.4], 50),
        [1, 0] * 50,
        np.repeat([0.4, 0.9], 50),
        binning=FixedEdges([0, 0.3, 0.6, 1]),
        **QUICK,
    )
    assert display.scores.tolist() == [pytest.approx(0.4)]


@pytest.mark.slow
def test_intervals_cover_the_difference_of_the_bins():
    covered = []
    for seed in range(60):
        y_before, before, y_after, after = _samples(seed, 0.1, 600)
        edges = [0, 0.1, 0.3, 1]
        sums = [
            BinStatistics.from_predictions(y, s, edges)
            for s, y in ((before, y_before), (after, y_after))
        ]
        display = ChangeDisplay(None, sums)
        after_inside = [
            np.minimum(after + 0.1, 1)[(after > a) & (after <= b)].mean()
            for a, b in zip(edges, edges[1:], strict=False)
        ]
        truth = np.array(after_inside) - [
            after[(after > a) & (after <= b)].mean()
            for a, b in zip(edges, edges[1:], strict=False)
        ]
        covered.append((display.low <= truth) & (truth <= display.high))
    assert 0.84 < np.mean(covered) < 0.97


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="y_proba_before is missing"):
        ChangeDisplay.from_predictions([0, 1])
    with pytest.raises(ValueError, match="confidence_level"):
        ChangeDisplay.from_predictions(*_samples(0, 0.0, 50), confidence_level=90)
