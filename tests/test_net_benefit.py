"""Intervals of net benefit: score limits beside plain twins, rare outcomes, weights,
clusters, and what the rows do not determine.
"""

import math

import numpy as np
import pytest
from _catalog import refused
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import t as student

from skcalib._intervals.influence import intraclass_design_effect
from skcalib._intervals.score import score_limits
from skcalib.decisions import net_benefit

Z = ndtri(0.95)


# --- Score limits ---------------------------------------------------------------------


def score_twin(n, t, true_positives, false_positives, value):
    """Z of "the net benefit is `value`", with the variance of the likeliest trinomial
    distribution that has it: the larger root q of A q^2 - B q - C = 0.
    """
    price = t / (1 - t)
    a = n * price * (1 + price)
    b = price * (1 - value) * (true_positives + false_positives)
    b -= value * (1 + price) * (n - true_positives)
    c = false_positives * value * (1 - value)
    q = max((b + math.sqrt(max(b**2 + 4 * a * c, 0))) / (2 * a), 0, -value / price)
    variance = value + price * (1 + price) * q - value**2
    gained = true_positives - price * false_positives
    return (gained - n * value) / math.sqrt(n * variance)


def limits_of(n, t, true_positives, false_positives):
    labels = np.zeros(n, dtype=int)
    labels[:true_positives] = 1
    scores = np.zeros(n)
    scores[: true_positives + false_positives] = 1
    found = net_benefit(labels, scores, thresholds=[t], labels=[0, 1])
    assert found.reason[0] == ""
    return found.net_benefit[0], found.low[0], found.high[0]


def test_published_limits():
    # computed from the quadratic equation by hand and bisection
    assert limits_of(100, 0.5, 10, 2) == pytest.approx((0.08, 0.0260, 0.1437), abs=5e-5)
    assert limits_of(500, 0.95, 25, 0) == pytest.approx(
        (0.05, -0.0525, 0.0686), abs=5e-5
    )


@pytest.mark.parametrize(
    ("n", "t", "a", "b"),
    [(100, 0.5, 10, 2), (500, 0.95, 25, 1), (300, 0.05, 100, 150), (80, 0.9, 3, 0)],
)
def test_limits_invert_the_score_test(n, t, a, b):
    estimate, low, high = limits_of(n, t, a, b)
    lowest = -t / (1 - t)
    twin = [
        brentq(lambda v: score_twin(n, t, a, b, v) - Z, lowest + 1e-9, estimate),
        brentq(lambda v: score_twin(n, t, a, b, v) + Z, estimate, 1 - 1e-9),
    ]
    assert [low, high] == pytest.approx(twin, abs=1e-8)


def test_everybody_or_nobody_treated_has_wilson_limits():
    """Nobody treated of 50: true positives may be up to Wilson's z^2 / (n + z^2)."""
    estimate, low, high = limits_of(50, 0.2, 0, 0)
    assert estimate == 0
    assert high == pytest.approx(Z**2 / (50 + Z**2))
    # and the false positives as well, each worth -1/4
    assert low == pytest.approx(-(Z**2) / (50 + Z**2) / 4)


@pytest.mark.slow
def test_limits_of_a_ratio_meet_their_critical_value():
    """Profiled over all distributions by brute force, on a grid of the simplex."""
    counts = np.array([[3.0, 2.0, 4.0, 11.0]])
    values = np.array([[1.0, -0.5, 0.0, 0.0]])
    base = np.array([[1.0, 0.0, 1.0, 0.0]])
    low, high = score_limits(
        counts, values, base, np.ones((1, 4), dtype=bool), np.array([Z])
    )
    share = counts[0] / 20
    for theta, z in ((low[0], Z), (high[0], -Z)):
        x = values[0] - theta * base[0]
        slopes = np.linspace(-1 / x.max(), -1 / x.min(), 2_000_001)[1:-1]
        means = (share * x / (1 + slopes[:, None] * x)).sum(axis=1)
        probability = share / (1 + slopes[np.abs(means).argmin()] * x)
        variance = probability @ x**2
        assert share @ x * math.sqrt(20 / variance) == pytest.approx(z, abs=1e-3)


def test_against_everybody_is_the_same_with_labels_exchanged():
    """Against treating everybody the untreated rows count, with the price of the
    untreated events: the others are worth w, the events -1.
    """
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    labels = (rng.random(200) < scores).astype(int)
    found = net_benefit(labels, scores, thresholds=[0.2], reference="all")
    mirrored = net_benefit(1 - labels, 1 - scores, thresholds=[0.8], labels=[0, 1])
    for name in ("net_benefit", "low", "high"):
        assert getattr(found, name)[0] == pytest.approx(
            0.25 * getattr(mirrored, name)[0], abs=1e-9
        )


# --- Weights and clusters -------------------------------------------------------------


def test_equal_importance_weights_change_nothing():
    rng = np.random.default_rng(1)
    scores = rng.random(300)
    labels = rng.random(300) < scores
    plain = net_benefit(labels, scores, standardize=True)
    weighted = net_benefit(
        labels,
        scores,
        standardize=True,
        sample_weight=np.full(300, 0.3),
        weight_type="importance",
    )
    np.testing.assert_allclose(weighted.low, plain.low, atol=1e-9)
    np.testing.assert_allclose(weighted.high, plain.high, atol=1e-9)


def test_a_few_heavy_rows_leave_few_degrees_of_freedom():
    """Two weights at random, at a threshold of 1/2: a treated event adds 1, a treated
    non-event -1. The limits are score limits of the rows that the cells are worth, with
    Student's quantile for the kurtosis of what the rows add.
    """
    rng = np.random.default_rng(3)
    scores = rng.random(400)
    labels = rng.random(400) < scores
    weight = np.where(rng.random(400) < 0.1, 20.0, 1.0)
    found = net_benefit(
        labels,
        scores,
        thresholds=[0.5],
        sample_weight=weight,
        weight_type="importance",
    )
    gain = (scores >= 0.5) * (2.0 * labels - 1)
    terms = weight * (gain - np.average(gain, weights=weight))
    kurtosis = 400 * np.sum(terms**4) / np.sum(terms**2) ** 2
    z = student.ppf(0.95, 2 * 400 / (kurtosis - 1))
    assert z > 1.02 * Z
    counts, values, row_weights = [], [], []
    for value in (1, -1, 0):
        for label in (True, False) if value == 0 else (value == 1,):
            w = weight[(gain == value) & (labels == label)]
            counts.append(w.sum() ** 2 / (w @ w))
            row_weights.append(w @ w / w.sum())
            # A heavier row may be hidden: one of those with the same treatment.
            is_alike = (gain != 0) == (value != 0)
            alike = weight[is_alike]
            counts.append(0.0)
            row_weights.append(max(row_weights[-1], alike @ alike / alike.sum()))
            values += [value, value]
    row_weights = np.array([row_weights])
    low, high = score_limits(
        np.array([counts]),
        np.array([values]) * row_weights,
        row_weights,
        np.ones(row_weights.shape, dtype=bool),
        np.array([z]),
    )
    assert (found.low[0], found.high[0]) == pytest.approx((low[0], high[0]), abs=1e-9)


def test_clusters_by_hand():
    """Eight clusters of two rows, one treated event or one treated other in some.

    At 1/2 the price is 1: the sums of d over the clusters are 2, 2, 1, 1, 0, 0, 0, -1
    with net benefit 5/16, so that the residuals are these less 5/8. Jackknifed they are
    8/7 times as large.
    """
    gains = np.array([2, 2, 1, 1, 0, 0, 0, -1])
    scores = np.zeros((8, 2))
    scores[gains == 2] = 0.9
    scores[np.abs(gains) == 1, 0] = 0.9
    labels = (scores > 0.5).astype(int)
    labels[7] = 0
    clusters = np.repeat(np.arange(8), 2)
    found = net_benefit(
        labels.ravel(), scores.ravel(), thresholds=[0.5], clusters=clusters
    )
    sums = gains - 5 / 8
    jackknifed = np.sum((sums * 8 / 7) ** 2)
    independent = 16 * (7 / 16 - (5 / 16) ** 2)
    effect = jackknifed / independent
    # clusters of equal size: eight degrees of freedom
    z = student.ppf(0.95, 8)
    counts = np.array([[6.0, 1.0, 9.0]]) / effect
    low, high = score_limits(
        counts,
        np.array([[1.0, -1.0, 0.0]]),
        np.ones((1, 3)),
        np.ones((1, 3), dtype=bool),
        np.array([z]),
    )
    assert (found.low[0], found.high[0]) == pytest.approx((low[0], high[0]), abs=1e-9)


def test_a_large_cluster_could_hold_what_a_small_one_holds():
    """Ten clusters of 2 rows, one of which is treated as a whole, and one of 40.

    With p = 2/60 the rows' variance is p (1 - p). All of it lies between clusters, so
    that rows of a cluster are alike: the correlation is 1, and each cluster counts as
    one draw. The variance of the sums is (10 x 2^2 + 40^2) / 60 = 27.3 times that of
    independent rows, though the sums that were seen vary 10 times as much.
    """
    scores = np.zeros(60)
    scores[:2] = 0.9
    labels = scores > 0.5
    sizes = np.array([2] * 10 + [40])
    cluster = np.repeat(np.arange(11), sizes)
    residual = labels - labels.mean()
    sums = np.bincount(cluster, residual)
    mass = sizes.astype(float)
    variance = residual.var(keepdims=True)
    effect, degrees = intraclass_design_effect(sums[:, None], mass, mass, variance)
    assert effect[0] == pytest.approx((10 * 4 + 1600) / 60)
    assert degrees[0] == pytest.approx((10 * 4 + 1600) ** 2 / (10 * 16 + 1600**2))
    assert np.sum((sums / (1 - sizes / 60)) ** 2) / (60 * residual.var()) < 11
    # Half of the treated rows in each of two clusters: pairs are as often unlike as of
    # independent rows, so that nothing is added.
    labels = np.tile([1.0, 0.0], 30)
    residual = labels - 0.5
    sums = np.bincount(cluster, residual)
    effect, _ = intraclass_design_effect(sums[:, None], mass, mass, np.array([0.25]))
    assert effect[0] == 1
    sizes = np.array([5] * 12 + [40] * 3)
    cluster = np.repeat(np.arange(15), sizes)
    scores = np.where(cluster == 0, 0.9, 0.1)
    found = net_benefit(scores > 0.5, scores, thresholds=[0.5], clusters=cluster)
    assert found.high[0] > 0.2  # one of the large clusters has 2 of 9 of the rows


def test_what_the_rows_do_not_determine_has_a_reason():
    rng = np.random.default_rng(2)
    scores = rng.random(300)
    labels = rng.random(300) < scores
    two = net_benefit(labels, scores, clusters=np.arange(300) < 150)
    assert np.isnan(two.low).all()
    assert "number of clusters is 2" in two.reason[0]
    assert "No interval at all 99 thresholds from 0.01 to 0.99: the effective" in str(
        two
    )
    nearly = scores.copy()
    nearly[:3] = 1 - nearly[:3]
    paired = net_benefit(labels, scores, reference=nearly, thresholds=[0.5])
    assert np.isnan([paired.low[0], paired.high[0]]).all()
    assert "fewer than 10 samples favour" in paired.reason[0]
    same = net_benefit(labels, scores, reference=scores, thresholds=[0.5])
    assert (same.low[0], same.high[0], same.reason[0]) == (0, 0, "")
    heavy = np.r_[1000.0, 500, np.ones(298)]
    few = net_benefit(
        labels, scores, sample_weight=heavy, weight_type="importance", thresholds=[0.5]
    )
    assert "number of samples is" in few.reason[0]


def test_light_rows_do_not_speak_for_heavy_ones():
    """All 200 heavy rows are events, and 20 of 35 light rows are not. The upper limit
    of the share of heavy non-events, by Clopper and Pearson, is 1 - .05^(1/200) =
    .0149; each costs 2 at .5.
    """
    labels = np.r_[np.ones(215), np.zeros(20)].astype(int)
    weight = np.r_[np.full(200, 80.0), np.ones(35)]
    options = {"thresholds": [0.5], "weight_type": "importance"}
    found = net_benefit(labels, np.full(235, 0.9), sample_weight=weight, **options)
    assert found.low[0] == pytest.approx(1 - 2 * 0.0149, abs=0.006)
    assert found.low[0] < found.net_benefit[0] < found.high[0]
    # With fewer, the weights that non-events would have are anybody's guess.
    few = slice(None, -1)
    found = net_benefit(
        labels[few], np.full(234, 0.9), sample_weight=weight[few], **options
    )
    assert np.isnan(found.low[0])
    assert "number of non-events is 19, below 20" in found.reason[0]


@pytest.mark.slow
def test_no_interval_of_zero_width():
    """50 thresholds of random small tables, rows that repeat, few and no events;
    `benchmarks.levels.widths` has more tables.
    """
    rng = np.random.default_rng(3)
    thresholds = np.linspace(0, 0.98, 50)
    for k in range(30):
        n = int(rng.integers(1, 30))
        scores = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], n)
        labels = rng.integers(0, 2, n) * rng.integers(0, 2)
        for reference in ("none", "all"):
            found = net_benefit(
                labels,
                scores,
                thresholds=thresholds,
                reference=reference,
                labels=[0, 1],
                clusters=np.arange(n) // 2 if k % 3 == 0 and n > 2 else None,
            )
            known = (thresholds == 0) & (reference == "all")
            zero = found.high - found.low <= 1e-9
            assert not np.any(zero & ~known)
            assert np.array_equal(np.isnan(found.low), found.reason != "")
            assert np.all(~(found.low > found.net_benefit + 1e-9))
            assert np.all(~(found.high < found.net_benefit - 1e-9))


# --- Harm, prevalence, interventions avoided ------------------------------------------


def test_harm_prevalence_and_interventions_by_hand():
    """Five rows, treated at .25: two events of two, one of three others; price 1/3."""
    labels, scores = [1, 1, 0, 0, 0], [0.9, 0.3, 0.6, 0.2, 0.1]
    plain = net_benefit(labels, scores, thresholds=[0.25])
    # (1/3 - .2) x 3 x 100
    assert plain.interventions_avoided[0] == pytest.approx(40)
    harmed = net_benefit(labels, scores, thresholds=[0.25], harm=0.05)
    assert harmed.net_benefit[0] == pytest.approx(1 / 3 - 0.05)
    assert harmed.low[0] == pytest.approx(plain.low[0] - 0.05)
    assert harmed.interventions_avoided[0] == pytest.approx(40 - 0.05 * 300)
    known = net_benefit(labels, scores, thresholds=[0.25], prevalence=0.1)
    assert known.net_benefit[0] == pytest.approx(0.1 * 1 - 0.9 / 3 / 3)
    assert known.event_frequency == 0.1
    # Treated by everybody: all events and all others.
    everybody = net_benefit(
        labels, scores, thresholds=[0.25], prevalence=0.1, reference="all"
    )
    assert everybody.net_benefit[0] == pytest.approx(0 - (0.1 - 0.3))
    assert np.isnan(
        net_benefit(labels, scores, thresholds=[0]).interventions_avoided[0]
    )


def test_prevalence_of_the_sample_changes_no_estimate():
    rng = np.random.default_rng(4)
    scores = rng.random(500)
    labels = rng.random(500) < scores
    plain = net_benefit(labels, scores)
    known = net_benefit(labels, scores, prevalence=labels.mean())
    np.testing.assert_allclose(known.net_benefit, plain.net_benefit, atol=1e-12)
    np.testing.assert_allclose(
        known.interventions_avoided, plain.interventions_avoided, atol=1e-9
    )
    with refused(ValueError, "prevalence", "1.5"):
        net_benefit(labels, scores, prevalence=1.5)
    with refused(ValueError, "only one class", "prevalence"):
        net_benefit(np.zeros(9), np.linspace(0, 1, 9), labels=[0, 1], prevalence=0.1)
    with pytest.warns(UserWarning, match="not integers"):
        net_benefit(labels, scores, sample_weight=np.full(500, 0.5))


# --- Coverage -------------------------------------------------------------------------


def truth_of(t):
    """Net benefit of calibrated uniform scores, integrated by hand."""
    t = np.asarray(t, dtype=float)
    events = (1 - t**2) / 2
    return events - t / (1 - t) * (1 - t - events)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "t"), [(500, 0.95), (2000, 0.98), (300, 0.05)])
def test_intervals_cover_at_high_thresholds(n, t):
    rng, covered, above = np.random.default_rng(5), 0, 0
    for _ in range(100):
        scores = rng.random(n)
        found = net_benefit(rng.random(n) < scores, scores, thresholds=[t])
        covered += found.low[0] <= truth_of(t) <= found.high[0]
        above += found.low[0] > truth_of(t)
    assert covered / 100 > 0.81  # .9 less three standard errors
    assert above / 100 < 0.12  # .05 and three of them


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[150] * 2 + [10] * 30, [10] * 30])
def test_intervals_of_clusters_cover(sizes):
    rng, cluster = np.random.default_rng(6), np.repeat(np.arange(len(sizes)), sizes)
    n, covered = len(cluster), np.zeros(3)
    t = np.array([0.3, 0.6, 0.9])
    for _ in range(100):
        scores = rng.random(n)
        shared = rng.normal(size=len(sizes))[cluster]
        # the distribution function of the mixture, by which scores are calibrated
        mixed = math.sqrt(0.2) * shared + math.sqrt(0.8) * rng.normal(size=n)
        labels = mixed < ndtri(scores)
        found = net_benefit(labels, scores, thresholds=t, clusters=cluster)
        covered += (found.low <= truth_of(t)) & (truth_of(t) <= found.high)
    assert np.all(covered / 100 > 0.81), covered / 100


def test_limits_at_many_thresholds_are_those_at_each():
    """Only a simultaneous band needs the influence of every pattern of treatments."""
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    y = rng.random(3000) < p**1.5
    t = np.linspace(0.01, 0.9, 300)
    together = net_benefit(y, p, thresholds=t)
    for k in (0, 7, 150, 299):
        alone = net_benefit(y, p, thresholds=t[[k]])
        assert together.low[k] == pytest.approx(alone.low[0], abs=1e-12)
        assert together.high[k] == pytest.approx(alone.high[0], abs=1e-12)
    band = net_benefit(y, p, thresholds=t, simultaneous=True, random_state=0)
    assert np.all(band.high - band.low >= together.high - together.low)
