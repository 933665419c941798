"""Reliability diagrams of rows in clusters: bars and band by hand, what is refused, and
coverage for hospitals.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import norm, t

from skcalib._intervals import binomial_interval
from skcalib._intervals.clustered import bin_design
from skcalib.binning import EqualWidth, PoolAdjacentViolators, assign_bins
from skcalib.evaluation import calibration_summary
from skcalib.metrics import calibration_error_interval

pytest.importorskip("matplotlib", reason="displays need matplotlib (extra plot)").use(
    "Agg"
)
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import ReliabilityDisplay  # noqa: E402
from skcalib.displays._reliability_curves import CurveMaker  # noqa: E402

QUICK = {"n_resamples": 19, "random_state": 0}
BARE = {"metric": None, "random_state": 0}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _hospitals(seed, n_hospitals=24, correlation=0.1, mean_size=60):
    """Return labels, scores, true probabilities and hospitals of unequal sizes and case
    mix, whose labels are correlated on the scale of a normal variable.
    """
    rng = np.random.default_rng(seed)
    sizes = mean_size * rng.lognormal(-0.32, 0.8, n_hospitals)
    hospital = np.repeat(
        np.arange(n_hospitals), np.maximum(5, np.round(sizes)).astype(int)
    )
    n = len(hospital)
    mix = 0.2 * rng.normal(size=n_hospitals)
    scores = norm.cdf(norm.ppf(rng.beta(1.5, 2, n)) + mix[hospital])
    level = np.sqrt(correlation) * rng.normal(size=n_hospitals)[hospital]
    level += np.sqrt(1 - correlation) * rng.normal(size=n)
    truth = scores**1.3
    return norm.cdf(level) < truth, scores, truth, hospital


def _curve(y, scores, *, clusters=None, sample_weight=None, **options):
    """Return the numbers of a diagram, which draws them in much more time."""
    rows = {"clusters": clusters, "sample_weight": sample_weight}
    maker = CurveMaker(**options)
    return maker.from_predictions(y, {None: scores}, **rows)["curves"][0]


def test_the_design_effect_of_a_bin_by_hand():
    """Twelve clusters of ten: their sums, jackknifed by 12 / 11, over the sum of the
    squares, with as many degrees of freedom as clusters of equal size.
    """
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(12), 10)
    labels = rng.random(120) < rng.random(12)[cluster]
    design = bin_design(labels, np.zeros(120, int), 1, cluster, None, False, 0.9)
    residual = labels - labels.mean()
    sums = np.bincount(cluster, residual) * 12 / 11
    expected = sums @ sums / (residual @ residual)
    expected *= (t.ppf(0.95, 12) / norm.ppf(0.95)) ** 2
    # the degrees are 12 whatever the correlation, as sizes are equal
    assert design.effect[0] == pytest.approx(expected)
    assert expected > 1.5
    assert design.reasons == ("",)


def test_bins_of_one_label_and_of_few_clusters():
    labels = np.array([1] * 40 + [0, 1] * 20, dtype=bool)
    bins = np.array([0] * 40 + [2] * 40)
    cluster = np.array([0, 1, 2, 3, 4, 5, 6, 7] * 5 + [8, 9] * 20)
    effect, reasons = bin_design(labels, bins, 4, cluster, None, False, 0.9)
    # Five rows of each of eight clusters are taken to be alike; two are too few.
    assert effect.tolist() == [5, 1, 20, 1]
    assert (reasons[0], reasons[1], reasons[3]) == ("", "", "")
    assert "clusters are worth 2 of equal size, fewer than 3" in reasons[2]


def test_bars_and_band_are_those_of_effective_rows():
    y, scores, _, hospital = _hospitals(0)
    options = {"binning": EqualWidth(5), **BARE}
    plain = _curve(y, scores, **options)
    for interval in ("clopper_pearson", "wilson", "hoeffding"):
        curve = _curve(y, scores, clusters=hospital, interval=interval, **options)
        bins = assign_bins(scores, curve.statistics.edges)
        effect = bin_design(y, bins, 5, hospital, None, False, 0.9).effect
        expected = binomial_interval(
            np.bincount(bins, y) / effect,
            np.bincount(bins) / effect,
            interval=interval,
        )
        np.testing.assert_allclose(curve.bars, expected)
    np.testing.assert_array_equal(
        curve.statistics.event_frequency, plain.statistics.event_frequency
    )
    width = curve.consistency.high - curve.consistency.low
    narrow = plain.consistency.high - plain.consistency.low
    assert np.all(width >= narrow)
    assert np.all((width > narrow)[2:])
    assert _curve(y, scores, clusters=hospital, interval=None, **options).bars is None
    # names of hospitals say no more than their codes, and weights of 2 are two rows
    named = np.char.add("hospital ", hospital.astype(str))
    doubled = _curve(
        np.repeat(y, 2), np.repeat(scores, 2), clusters=np.repeat(named, 2), **options
    )
    weighted = _curve(
        y, scores, clusters=named, sample_weight=np.full(len(y), 2), **options
    )
    np.testing.assert_allclose(weighted.bars, doubled.bars)
    # rows of weight 0 are not there
    kept = np.arange(len(y)) % 3 > 0
    some = _curve(y[kept], scores[kept], clusters=hospital[kept], **options)
    weighted = _curve(
        y, scores, clusters=hospital, sample_weight=kept.astype(float), **options
    )
    np.testing.assert_allclose(weighted.bars, some.bars)


def test_error_and_numbers_know_the_clusters():
    y, scores, _, hospital = _hospitals(1)
    curve = _curve(y, scores, clusters=hospital, statistics="slope", **QUICK)
    error = calibration_error_interval(
        y, scores, binning=15, clusters=hospital, labels=[False, True], **QUICK
    )
    assert curve.error == pytest.approx(error)
    slope = calibration_summary(y, scores, clusters=hospital, confidence_level=0.9)
    assert curve.numbers["slope"] == pytest.approx(slope.slope)


def test_panels_and_models_have_their_own_rows():
    y, scores, _, hospital = _hospitals(2)
    region = np.where(hospital % 2, "north", "south")
    numbers = CurveMaker(EqualWidth(3), **BARE).from_predictions(
        y, {"a": scores, "b": scores**1.2}, groups=region, clusters=hospital
    )
    assert len(numbers["curves"]) == 4
    for curve in numbers["curves"]:
        rows = region == curve.panel
        model = scores if curve.model == "a" else scores**1.2
        alone = _curve(
            y[rows],
            model[rows],
            clusters=hospital[rows],
            binning=EqualWidth(3),
            **BARE,
        )
        np.testing.assert_allclose(curve.bars, alone.bars)


def test_too_few_clusters_have_no_bars_and_a_warning():
    y, scores, _, hospital = _hospitals(3)
    two = hospital % 2
    options = {"binning": EqualWidth(4), "random_state": 0}
    with pytest.warns(UserWarning, match=r"4 of 4 bins have no interval.*fewer than 3"):
        display = ReliabilityDisplay.from_predictions(
            y, scores, clusters=two, **options
        )
    curve = display.curves[0]
    assert np.isnan(curve.bars).all()
    assert curve.error is None
    assert all("fewer than 3" in reason for reason in curve.reasons)
    display.figure_.canvas.draw()
    assert np.isfinite(curve.limits).all()


def test_what_takes_no_clusters_is_refused():
    y, scores, _, hospital = _hospitals(4)
    for options, words in (
        ({"interval": "bootstrap"}, 'interval="bootstrap"'),
        ({"curve": "smooth"}, 'curve="smooth"'),
        ({"binning": PoolAdjacentViolators()}, "PoolAdjacentViolators"),
    ):
        with refused(ValueError, "clusters=", words):
            ReliabilityDisplay.from_predictions(y, scores, clusters=hospital, **options)
    with refused(ValueError, "clusters has 5 rows"):
        ReliabilityDisplay.from_predictions(y, scores, clusters=hospital[:5])
    with refused(ValueError, "one cluster only"):
        ReliabilityDisplay.from_predictions(y, scores, clusters=np.zeros(len(y)))


def _coverage(n_samples, **options):
    """Return how often bars of 90 % hold the mean true probability of their bin, with
    clusters and without.
    """
    maker = CurveMaker(EqualWidth(5), metric=None, random_state=0)
    covered = {True: [], False: []}
    for seed in range(n_samples):
        y, scores, truth, hospital = _hospitals(seed, **options)
        for knows in covered:
            clusters = hospital if knows else None
            numbers = maker.from_predictions(y, {None: scores}, clusters=clusters)
            (curve,) = numbers["curves"]
            bins = assign_bins(scores, curve.statistics.edges)
            mean = np.bincount(bins, truth) / np.bincount(bins)
            low, high = curve.bars
            covered[knows].append((low <= mean) & (mean <= high))
    return np.mean(covered[True]), np.mean(covered[False])


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.05, 0.1])
def test_bars_cover_for_24_unequal_hospitals(correlation):
    """The five bars of a sample depend on each other: a standard error of about .012
    from 200 samples.
    """
    with_clusters, without = _coverage(200, correlation=correlation)
    assert 0.88 < with_clusters < 0.97
    assert without < 0.86
