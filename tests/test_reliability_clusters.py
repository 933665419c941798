"""Reliability diagrams of rows in clusters: bars and band by hand, what is refused, and
coverage for hospitals.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import norm, t

from skcalib._intervals import binomial_interval
from skcalib._intervals.clustered import bin_design, smooth_design
from skcalib.binning import EqualWidth, PoolAdjacentViolators, assign_bins
from skcalib.evaluation import calibration_summary
from skcalib.metrics import calibration_error_interval, reliability_curve

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
    design = bin_design(labels, np.zeros(120, int), 1, cluster, None, False)
    residual = labels - labels.mean()
    sums = np.bincount(cluster, residual) * 12 / 11
    expected = sums @ sums / (residual @ residual)
    expected *= (t.ppf(0.95, 12) / norm.ppf(0.95)) ** 2
    # the degrees are 12 whatever the correlation, as sizes are equal
    assert design.effect(0.9)[0] == pytest.approx(expected)
    assert expected > 1.5
    assert design.reasons == ("",)


def test_bins_of_one_label_and_of_few_clusters():
    labels = np.array([1] * 40 + [0, 1] * 20, dtype=bool)
    bins = np.array([0] * 40 + [2] * 40)
    cluster = np.array([0, 1, 2, 3, 4, 5, 6, 7] * 5 + [8, 9] * 20)
    design = bin_design(labels, bins, 4, cluster, None, False)
    effect, reasons = design.effect(0.9), design.reasons
    # Five rows of each of eight clusters are taken to be alike; two are too few.
    assert effect.tolist() == [5, 1, 20, 1]
    assert (reasons[0], reasons[1], reasons[3]) == ("", "", "")
    assert "number of clusters is 2; at least 3 are needed" in reasons[2]


def test_bars_and_band_are_those_of_effective_rows():
    y, scores, _, hospital = _hospitals(0)
    options = {"binning": EqualWidth(5), **BARE}
    plain = _curve(y, scores, **options)
    for interval in ("clopper_pearson", "wilson", "hoeffding"):
        curve = _curve(y, scores, clusters=hospital, interval=interval, **options)
        bins = assign_bins(scores, curve.statistics.edges)
        effect = bin_design(y, bins, 5, hospital, None, False).effect(0.9)
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
    with pytest.warns(
        UserWarning, match=r"4 of 4 bins have no interval.*at least 3 are"
    ):
        display = ReliabilityDisplay.from_predictions(
            y, scores, clusters=two, **options
        )
    curve = display.curves[0]
    assert np.isnan(curve.bars).all()
    assert curve.error is None
    assert all("at least 3 are" in reason for reason in curve.reasons)
    display.figure_.canvas.draw()
    assert np.isfinite(curve.limits).all()


def test_clusters_that_cannot_be_used_are_refused():
    y, scores, _, hospital = _hospitals(4)
    with refused(ValueError, "clusters has 5 rows"):
        ReliabilityDisplay.from_predictions(y, scores, clusters=hospital[:5])
    with refused(ValueError, "only one cluster"):
        ReliabilityDisplay.from_predictions(y, scores, clusters=np.zeros(len(y)))


def test_a_curve_has_the_intervals_of_the_bars():
    y, scores, _, hospital = _hospitals(5)
    weight = np.arange(len(y)) % 3
    given = {"sample_weight": weight, "clusters": hospital}
    curve = reliability_curve(y, scores, binning=EqualWidth(5), **given)
    bars = _curve(y, scores, binning=EqualWidth(5), **given, **BARE).bars
    np.testing.assert_array_equal(curve.interval(0.9), bars)
    low, high = curve.interval(0.95, interval="wilson")
    assert np.all(high - low > curve.interval(0.8)[1] - curve.interval(0.8)[0])
    # One class each, and the pairs of a row in one cluster.
    proba = np.column_stack((scores / 2, scores / 2, 1 - scores))
    codes = np.where(y, hospital % 2, 2)
    classes = {"multiclass": "marginal", "binning": EqualWidth(3)}
    of_last = reliability_curve(codes, proba, clusters=hospital, **classes)[2]
    alone = reliability_curve(
        codes == 2, proba[:, 2], clusters=hospital, binning=EqualWidth(3)
    )
    np.testing.assert_array_equal(of_last.interval(), alone.interval())
    pooled = {"multiclass": "pooled", "binning": EqualWidth(3)}
    of_pairs = reliability_curve(codes, proba, clusters=hospital, **pooled).interval()
    plain = reliability_curve(codes, proba, **pooled).interval()
    assert np.all((of_pairs[1] - of_pairs[0] > plain[1] - plain[0])[[0, 2]])


def test_sums_do_not_hold_clusters():
    y, scores, _, hospital = _hospitals(6)
    curve = reliability_curve(y, scores, binning=4, clusters=hospital)
    with refused(ValueError, "clusters", "BinStatistics"):
        reliability_curve(curve, clusters=hospital)
    with refused(ValueError, "cannot be merged"):
        curve + curve
    with refused(ValueError, "clustered samples", "pass labels"):
        calibration_error_interval(curve)
    with refused(ValueError, "weight_type='importance'"):
        curve.interval(weight_type="importance")
    two = reliability_curve(y, scores, binning=4, clusters=hospital % 2)
    assert np.isnan(two.interval()).all()


def test_a_smoother_with_equal_weights_is_a_bin():
    """A curve that is the mean of two cells everywhere has the design of one bin."""
    y, scores, _, hospital = _hospitals(7)
    cell = (scores > 0.4).astype(int)
    share = np.bincount(cell) / len(cell)
    smoother = np.tile(share, (3, 1))
    found = smooth_design(y - y.mean(), cell, smoother, hospital, None)
    expected = bin_design(y, np.zeros(len(y), int), 1, hospital, None, False)
    np.testing.assert_allclose(found.ratio, expected.ratio[0])
    np.testing.assert_allclose(found.degrees, expected.degrees[0])
    assert found.reasons == ("",) * 3


@pytest.mark.parametrize(
    "options",
    [
        {"curve": "smooth"},
        {"interval": "bootstrap", "binning": EqualWidth(4)},
        {"binning": PoolAdjacentViolators()},
    ],
    ids=["smooth", "bootstrap", "isotonic"],
)
def test_bands_of_clusters_are_wider(options):
    y, scores, _, hospital = _hospitals(0, mean_size=40)
    options = {"n_resamples": 60, **BARE, **options}
    curve = _curve(y, scores, clusters=hospital, **options)
    plain = _curve(y, scores, **options)
    for name, least in (("band", 1.1), ("consistency", 1.03)):
        of_clusters, of_rows = getattr(curve, name), getattr(plain, name)
        np.testing.assert_array_equal(of_clusters.scores, of_rows.scores)
        width = np.mean(of_clusters.high - of_clusters.low)
        assert width > least * np.mean(of_rows.high - of_rows.low)
    # a cluster for each row is no cluster, up to Student's quantile and the draws
    alone = _curve(y, scores, clusters=np.arange(len(y)), **options)
    width = np.mean(alone.band.high - alone.band.low)
    assert width == pytest.approx(np.mean(plain.band.high - plain.band.low), rel=0.25)


def test_too_few_clusters_have_no_band():
    y, scores, _, hospital = _hospitals(9)
    options = {"clusters": hospital % 2, **BARE}
    smooth = _curve(y, scores, curve="smooth", **options)
    assert np.isnan(smooth.band.low).all()
    with pytest.warns(UserWarning, match=r"band is missing.*at least 3 are"):
        curve = _curve(y, scores, interval="bootstrap", binning=4, **options)
    assert np.isnan(curve.band.high).all()
    assert np.isfinite(curve.limits).all()


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


@pytest.mark.slow
def test_bands_cover_for_24_unequal_hospitals():
    """The event frequency at a score, or of a bin, lies in the band of 90 %. The values
    of a band depend on each other: a standard error of about .04 from 20 samples.
    """
    makers = {
        "smooth": {"curve": "smooth"},
        "bootstrap": {"interval": "bootstrap", "binning": EqualWidth(5)},
        "isotonic": {"binning": PoolAdjacentViolators()},
    }
    for name, options in makers.items():
        covered = {True: [], False: []}
        for seed in range(20):
            y, scores, truth, hospital = _hospitals(seed)
            for knows in covered:
                curve = _curve(
                    y,
                    scores,
                    clusters=hospital if knows else None,
                    n_resamples=99,
                    **BARE,
                    **options,
                )
                at = np.linspace(0.1, 0.8, 15)
                expected = at**1.3
                if name == "bootstrap":
                    bins = assign_bins(scores, curve.statistics.edges)
                    expected = np.bincount(bins, truth) / np.bincount(bins)
                    at = curve.statistics.mean_score
                low = np.interp(at, curve.band.scores, curve.band.low)
                high = np.interp(at, curve.band.scores, curve.band.high)
                covered[knows].append((low <= expected) & (expected <= high))
        assert 0.83 < np.mean(covered[True]) < 0.99, name
        assert np.mean(covered[False]) < 0.86, name
