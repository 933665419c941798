"""Cumulative differences: the curve, its two marks and its band."""

import numpy as np
import pytest

from skcalib.metrics import (
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
)

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import CumulativeDifferenceDisplay  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _sample(n, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(2)
    return rng.random(n) < scores**power, scores


def test_curve_is_the_plain_running_sum():
    y, scores = _sample(300)
    weight = np.random.default_rng(1).integers(1, 4, 300)
    curve = CumulativeDifferenceDisplay.from_predictions(
        y, scores, sample_weight=weight
    ).curves[0]
    for at, share, difference in zip(
        curve.scores[1:], curve.share[1:], curve.difference[1:], strict=True
    ):
        below = scores <= at
        assert share == pytest.approx(weight[below].sum() / weight.sum())
        assert difference == pytest.approx(
            (weight * (y - scores))[below].sum() / weight.sum(), abs=1e-12
        )
    assert curve.difference[0] == 0
    assert curve.deviation == pytest.approx(
        np.sqrt(np.sum(weight * scores * (1 - scores))) / weight.sum()
    )


def test_marks_are_the_errors_and_end_where_the_curve_does():
    y, scores = _sample(500, power=1.5)
    display = CumulativeDifferenceDisplay.from_predictions(y, scores, name="a model")
    curve = display.curves[0]
    assert curve.kuiper[0] == pytest.approx(kuiper_calibration_error(y, scores))
    assert curve.kolmogorov_smirnov[0] == pytest.approx(
        kolmogorov_smirnov_calibration_error(y, scores)
    )
    kuiper, distance = (mark.get_ydata() for mark in display.marks_)
    assert np.ptp(kuiper) == pytest.approx(100 * curve.kuiper[0])
    assert np.ptp(distance) == pytest.approx(100 * curve.kolmogorov_smirnov[0])
    assert display.ax_.get_title(loc="left").startswith("a model, n = 500\nKuiper")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1), (0.5, 20), (5, 0.1)], ids=str)
def test_a_calibrated_model_stays_inside_the_band(shape):
    # 90 % wanted; 60 runs have a standard error of 3.9 points; few events make the
    # band a little wide
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(60):
        scores = rng.beta(*shape, 2000)
        display = CumulativeDifferenceDisplay.from_predictions(
            rng.random(2000) < scores, scores, legend=False
        )
        half = (
            display.band_.get_height() / 2
            if hasattr(display.band_, "get_height")
            else np.ptp(display.band_.get_xy()[:, 1]) / 2
        )
        inside += np.abs(100 * display.curves[0].difference).max() <= half
        plt.close("all")
    assert 0.8 <= inside / 60 <= 0.98


def test_many_points_are_thinned_and_keep_their_extremes():
    y, scores = np.random.default_rng(0).random((2, 20_000))
    display = CumulativeDifferenceDisplay.from_predictions(y < 0.4, scores)
    drawn = display.lines_[0].get_ydata()
    assert len(drawn) <= 2004
    assert (drawn.min(), drawn.max()) == pytest.approx(
        (
            100 * display.curves[0].difference.min(),
            100 * display.curves[0].difference.max(),
        )
    )


def test_several_models_and_bad_options():
    y, scores = _sample(200)
    display = CumulativeDifferenceDisplay.from_predictions(
        y, {"A": scores, "B": scores**2}, x="score"
    )
    assert len(display.lines_) == 2
    assert display.band_ is None
    with pytest.raises(
        ValueError, match="x must be one of 'share', 'score', found 'rank'"
    ):
        display.plot(x="rank")
    with pytest.raises(ValueError, match="one curve per class"):
        CumulativeDifferenceDisplay.from_predictions(y, scores, multiclass="marginal")


def test_scores_of_zero_and_one_have_no_band():
    display = CumulativeDifferenceDisplay.from_predictions(
        [0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0], labels=[0, 1]
    )
    assert display.curves[0].kuiper == (0.0, 1.0)
