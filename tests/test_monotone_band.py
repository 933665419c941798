"""A band for the whole calibration curve: proof by blocks, coverage, refusals."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from skcalib._intervals.monotone_band import monotone_band
from skcalib.metrics import BinStatistics, reliability_curve


def _all_pairs(scores, labels, level):
    """Every run of scores, at an equal share of the error: the plain twin."""
    order = np.argsort(scores, kind="stable")
    scores, labels = scores[order], labels[order]
    distinct = np.unique(scores)
    m = len(distinct)
    error = (1 - level) / (m * (m + 1))
    low, high = np.zeros(m), np.ones(m)
    for j in range(m):
        for k in range(j, m):
            inside = (scores >= distinct[j]) & (scores <= distinct[k])
            n, d = inside.sum(), labels[inside].sum()
            if d > 0:
                limit = beta.ppf(error, d, n - d + 1)
                low[k:] = np.maximum(low[k:], limit)
            if d < n:
                limit = beta.ppf(1 - error, d + 1, n - d)
                high[: j + 1] = np.minimum(high[: j + 1], limit)
    return distinct, low, high


@pytest.mark.slow
@pytest.mark.parametrize("digits", [1, 6])
def test_blocks_are_narrower_than_all_pairs(digits):
    rng = np.random.default_rng(0)
    scores = rng.beta(2, 2, 100).round(digits)
    labels = rng.random(100) < scores
    score, low, high = monotone_band(scores, labels, 0.9)
    distinct, pair_low, pair_high = _all_pairs(scores, labels, 0.9)
    assert score.tolist() == distinct.tolist()
    if digits == 6:
        assert np.mean(high - low) < np.mean(pair_high - pair_low)
    # Both contain the curve, so they overlap.
    assert (np.maximum(low, pair_low) <= np.minimum(high, pair_high)).all()


def test_limits_of_one_block_are_those_of_clopper_and_pearson():
    # Four samples of one score are the only block, with 2 limits at .05 each.
    score, low, high = monotone_band(np.full(4, 0.3), np.arange(4) < 1, 0.9)
    assert score.tolist() == [0.3]
    assert 1 - binom.cdf(0, 4, low[0]) == pytest.approx(0.05)
    assert binom.cdf(1, 4, high[0]) == pytest.approx(0.05)


@pytest.mark.parametrize("order", ["events first", "events last"])
def test_the_order_of_ties_does_not_matter(order):
    rng = np.random.default_rng(1)
    scores = rng.random(300).round(1)
    labels = rng.random(300) < scores
    by_label = np.argsort(labels if order == "events last" else ~labels)
    expected = monotone_band(scores, labels, 0.9)
    found = monotone_band(scores[by_label], labels[by_label], 0.9)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["line", "flat", "rare", "step", "ties"])
@pytest.mark.parametrize("n", [10, 60])
def test_the_whole_curve_lies_inside(shape, n):
    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(150):
        scores = rng.random(n)
        if shape == "ties":
            scores = scores.round(1)

        def truth(s):
            if shape == "flat":
                return np.full(len(s), 0.3)
            if shape == "rare":
                return 0.02 * s
            return np.where(s > 0.5, 0.8, 0.2) if shape == "step" else s

        labels = rng.random(n) < truth(scores)
        score, low, high = monotone_band(scores, labels, 0.9)
        curve = truth(score)
        missed += bool(((curve < low) | (curve > high)).any())
    # 10 % and three standard errors; measured: 0 to 4 %
    assert missed / 150 < 0.1 + 3 * 0.025


@pytest.mark.slow
def test_a_million_samples_have_few_blocks():
    from skcalib._intervals.monotone_band import _block_lengths, _block_starts

    lengths = _block_lengths(1_000_000)
    assert sum(len(_block_starts(length, 1_000_000)) for length in lengths) < 100_000


def test_sentences_say_where_the_diagonal_is_excluded():
    rng = np.random.default_rng(0)
    scores = rng.random(4000)
    draws = rng.random(4000)
    calibrated = reliability_curve(draws < scores, scores, simultaneous=True)
    assert str(calibrated).startswith("No miscalibration is detectable")
    assert list(calibrated.columns()) == ["score", "low", "high"]
    high = reliability_curve(draws < scores**2, scores, simultaneous=True)
    assert "The scores are too high from 0." in str(high)
    falling = reliability_curve(draws < 1 - scores, scores, simultaneous=True)
    assert "not monotone" in str(falling)
    wide = reliability_curve(
        draws < scores, scores, simultaneous=True, confidence_level=0.99
    )
    assert np.mean(wide.high - wide.low) > np.mean(calibrated.high - calibrated.low)


def test_each_class_has_its_band():
    rng = np.random.default_rng(0)
    y_proba = rng.dirichlet([1, 1, 1], 100)
    bands = reliability_curve(
        rng.integers(0, 3, 100), y_proba, multiclass="marginal", simultaneous=True
    )
    assert [len(band.score) for band in bands] == [100, 100, 100]


@pytest.mark.parametrize(
    "options",
    [{"sample_weight": np.ones(20)}, {"clusters": np.arange(20)}, {"binning": 5}],
)
def test_what_breaks_the_proof_is_refused(options):
    scores = np.linspace(0, 1, 20)
    with pytest.raises(ValueError, match=f"does not support {next(iter(options))}"):
        reliability_curve(scores > 0.5, scores, simultaneous=True, **options)
    bins = BinStatistics.from_predictions(scores > 0.5, scores, [0, 0.5, 1])
    with pytest.raises(ValueError, match="does not support BinStatistics"):
        reliability_curve(bins, simultaneous=True)


def test_the_picture_has_the_band_and_says_what_it_excludes():
    pytest.importorskip("matplotlib")
    from skcalib.displays import ReliabilityDisplay

    rng = np.random.default_rng(0)
    scores = rng.random(4000)
    labels = rng.random(4000) < scores**2
    display = ReliabilityDisplay.from_predictions(labels, scores, band="simultaneous")
    expected = reliability_curve(labels, scores, simultaneous=True)
    (curve,) = display.curves
    assert curve.bars is None
    at = np.searchsorted(curve.band.scores, 0.5) - 1
    before = np.searchsorted(expected.score, 0.5) - 1
    assert curve.band.low[at] == expected.low[before]
    title = display.ax_.get_title(loc="left")
    assert "too high from 0." in title
    for options in ({"curve": "smooth"}, {"sample_weight": np.ones(4000)}):
        with pytest.raises(ValueError, match="simultaneous"):
            ReliabilityDisplay.from_predictions(
                labels, scores, band="simultaneous", **options
            )
