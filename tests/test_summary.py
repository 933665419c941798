"""The summary of a model: each number against a plain twin, its interval, and what is
said where it has no value.
"""

import math

import numpy as np
import pytest
from _catalog import refused
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import gamma
from scipy.stats import t as student

from skcalib._errors.bin_free import loess_weights
from skcalib._intervals.influence import Influence
from skcalib._intervals.rare import area_limits
from skcalib.evaluation import calibration_summary
from skcalib.metrics import calibration_slope_intercept

NAMES = (
    "observed_expected",
    "intercept",
    "slope",
    "ici",
    "e50",
    "e90",
    "emax",
    "brier_score",
    "scaled_brier_score",
    "auc",
)
QUICK = {"n_resamples": 19, "random_state": 0}


def sample(n=60, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 40, n) / 40  # tied
    return rng.random(n) < scores**1.5, scores, rng.integers(0, 4, n)


# --- Plain twins, from the formulas ---------------------------------------------------


def loess_twin(scores, frequency, weights, at):
    """A parabola by least squares over the nearest scores that hold three quarters of
    the rows, rounded down.
    """
    near = sorted((abs(s - at), w) for s, w in zip(scores, weights, strict=True))
    held, width = 0.0, None
    for distance, w in near:
        held += w
        if held >= math.floor(0.75 * sum(weights) + 1e-5) - 1e-9:
            width = distance
            break
    rows = [(s, f, w * (1 - (abs(s - at) / width) ** 3) ** 3)
            for s, f, w in zip(scores, frequency, weights, strict=True) if abs(s - at) < width]  # fmt: skip  # noqa: E501
    design = np.array([[1, s - at, (s - at) ** 2] for s, _, _ in rows]) * np.sqrt(
        [[k] for *_, k in rows]
    )
    values = np.array([f * math.sqrt(k) for _, f, k in rows])
    return min(max(np.linalg.lstsq(design, values)[0][0], 0), 1)


def influence_twins(labels, scores):
    """Estimates and influences (for a mean of n rows) by row, in loops."""
    n, events, expected = len(labels), sum(labels), sum(scores)
    ratio = events / expected
    losses = [(s - y) ** 2 for s, y in zip(scores, labels, strict=True)]
    brier, f = sum(losses) / n, events / n
    v = f * (1 - f)
    ones = [s for s, y in zip(scores, labels, strict=True) if y]
    zeros = [s for s, y in zip(scores, labels, strict=True) if not y]

    def wins(a, b):
        return 1.0 if a > b else 0.5 if a == b else 0.0

    auc = sum(wins(a, b) for a in ones for b in zeros) / (len(ones) * len(zeros))
    return {
        "observed_expected": (ratio, [(y - ratio * s) * n / events for s, y in zip(scores, labels, strict=True)]),  # noqa: E501
        "brier_score": (brier, [loss - brier for loss in losses]),
        "scaled_brier_score": (1 - brier / v, [(brier - loss) / v + brier * (1 - 2 * f) * (y - f) / v**2  # noqa: E501
                                               for loss, y in zip(losses, labels, strict=True)]),  # noqa: E501
        "auc": (auc, [
            (np.mean([wins(s, b) for b in zeros]) - auc) * n / math.sqrt(len(ones) * (len(ones) - 1)) if y  # noqa: E501
            else (np.mean([wins(a, s) for a in ones]) - auc) * n / math.sqrt(len(zeros) * (len(zeros) - 1))  # noqa: E501
            for s, y in zip(scores, labels, strict=True)
        ]),
    }  # fmt: skip


def width_twin(influence, level=0.95):
    n = len(influence)
    square, fourth = sum(i**2 for i in influence), sum(i**4 for i in influence)
    kurtosis = max(n * fourth / square**2, 5 / 3)
    return (
        student.ppf((1 + level) / 2, max(2 * n / (kurtosis - 1), 1))
        * math.sqrt(square)
        / n
    )


def ratio_limits_twin(labels, scores, estimate, influence):
    """Bisection of the tails of the number of events, from its whole distribution, for
    a common shift of the log-odds; longer where y - (O/E) s varies more than events.
    """
    k = int(labels.sum())

    def mass(delta):
        probability = np.ones(1)
        for q in expit(logit(scores) + delta):
            probability = np.convolve(probability, [1 - q, q])
        return probability

    def mean(delta):
        return expit(logit(scores) + delta).mean() / scores.mean()

    centre = brentq(lambda d: expit(logit(scores) + d).sum() - k, -20, 20)
    low = mean(brentq(lambda d: mass(d)[k:].sum() - 0.025, -20, centre))
    high = mean(brentq(lambda d: mass(d)[: k + 1].sum() - 0.025, centre, 20))
    q = expit(logit(scores) + centre)
    residual = labels - estimate * scores
    stretch = max(math.sqrt(np.sum(residual**2) / np.sum(q * (1 - q))), 1)
    return estimate - stretch * (estimate - low), estimate + stretch * (high - estimate)


def brier_limits_twin(labels, scores, estimate, influence):
    """Quantiles of gamma laws with the mean and variance of the sum of losses, with one
    more row of the largest loss above, and the variance of rows without a loss below.
    """
    n, variance = len(labels), np.sum(np.square(influence))
    total, largest = n * estimate, max(scores.max(), 1 - scores.min()) ** 2

    def with_no_loss(theta):
        return variance + n * (estimate - theta) * theta

    theta = brentq(
        lambda t: n * (estimate - t) - 1.959963985 * math.sqrt(with_no_loss(t)),
        0,
        estimate,
    )
    more = with_no_loss(theta)
    low = gamma.ppf(0.025, total**2 / more, scale=more / total)
    total, variance = total + largest, variance + largest**2
    high = gamma.ppf(0.975, total**2 / variance, scale=variance / total)
    return low / n, high / n


def area_limits_twin(labels, scores, estimate, influence):
    """Newcombe's method 5, longer where DeLong's variance is larger."""
    m, n = labels.sum(), np.sum(~labels)

    def variance(t):
        rest = (m + n) / 2 - 1
        return t * (1 - t) * (1 + rest * ((1 - t) / (2 - t) + t / (1 + t))) / (m * n)

    delong = np.sum(np.square(influence)) / len(labels) ** 2
    z = 1.959963985 * math.sqrt(max(delong / variance(estimate), 1))
    return tuple(
        brentq(lambda t: abs(estimate - t) - z * math.sqrt(variance(t)), *ends)
        for ends in ((1e-9, estimate), (estimate, 1 - 1e-9))
    )


LIMIT_TWINS = {
    "observed_expected": ratio_limits_twin,
    "brier_score": brier_limits_twin,
    "auc": area_limits_twin,
}


@pytest.mark.parametrize("seed", range(3))
def test_numbers_and_limits_are_those_of_plain_twins(seed):
    labels, scores, _ = sample(seed=seed)
    found = calibration_summary(labels, scores, **QUICK)
    for name, (estimate, influence) in influence_twins(
        labels.tolist(), scores.tolist()
    ).items():
        here = getattr(found, name)
        assert here.estimate == pytest.approx(estimate, abs=1e-9)
        if name == "scaled_brier_score":
            width = width_twin(influence)
            limits = (estimate - width, estimate + width)
        else:
            limits = LIMIT_TWINS[name](labels, scores, estimate, influence)
        assert here[1:] == pytest.approx(limits, abs=1e-6), name
    both = calibration_slope_intercept(labels, scores, confidence_level=0.95)
    assert (found.slope, found.intercept) == (both.slope, both.intercept)


@pytest.mark.parametrize("seed", range(3))
def test_distances_are_those_of_a_plain_local_parabola(seed):
    labels, scores, weights = sample(seed=seed)
    weights = np.maximum(weights, 1)
    found = calibration_summary(labels, scores, sample_weight=weights, **QUICK)
    distinct = np.unique(scores)
    mass = np.array([weights[scores == s].sum() for s in distinct])
    frequency = [
        np.average(labels[scores == s], weights=weights[scores == s]) for s in distinct
    ]
    curve = [
        loess_twin(distinct.tolist(), frequency, mass.tolist(), s) for s in distinct
    ]
    gaps = sorted(zip(np.abs(curve - distinct), mass, strict=True))

    def quantile(q):
        held = 0
        for gap, w in gaps:
            held += w
            if held >= q * mass.sum() - 1e-9:
                return gap
        return gaps[-1][0]

    assert found.ici.estimate == pytest.approx(
        sum(g * w for g, w in gaps) / mass.sum(), abs=1e-9
    )
    assert [found.e50.estimate, found.e90.estimate] == pytest.approx(
        [quantile(0.5), quantile(0.9)], abs=1e-9
    )
    assert found.emax.estimate == pytest.approx(gaps[-1][0], abs=1e-9)


def test_the_smooth_curve_meets_the_published_example_of_r():
    # example(loess) of R: stopping distances of 50 cars,
    # `cars.lo <- loess(dist ~ speed, cars)`, and what predict prints at the speeds
    # where R computes the curve. In between it interpolates: 49.824812 at 18, without
    # 50.067148.
    speed = np.repeat(
        [4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25],
        [2, 2, 1, 1, 3, 2, 4, 4, 4, 3, 2, 3, 4, 3, 5, 1, 1, 4, 1],
    )
    distance = (
        "2 10 4 22 16 10 18 26 34 17 28 14 20 24 28 26 34 34 46 26 36 60 80 20 26 54 32"
        " 40 32 40 50 42 56 76 84 "
    )
    distance += "36 46 68 32 48 52 56 64 66 54 70 92 93 120 85"
    distance = np.array(distance.split(), dtype=float)
    places, place, count = np.unique(speed, return_inverse=True, return_counts=True)
    curve = loess_weights(places.astype(float), count.astype(float)) @ (
        np.bincount(place, distance) / count
    )
    published = {8: 15.281082, 10: 21.865315, 12: 29.350386, 13: 33.230660, 14: 37.167935, 15: 41.205226, 17: 48.355889,  # noqa: E501
                 19: 51.986702, 22: 68.569313}  # fmt: skip
    assert curve[np.isin(places, list(published))] == pytest.approx(
        list(published.values()), abs=5e-7
    )
    assert curve[places == 18] == pytest.approx(50.067148, abs=5e-7)


def test_the_smooth_curve_keeps_parabolas_and_goes_through_few_scores():
    scores = np.sort(np.random.default_rng(0).random(50))
    curve = loess_weights(scores, np.ones(50)) @ (0.2 + scores - 0.7 * scores**2)
    assert curve == pytest.approx(0.2 + scores - 0.7 * scores**2, abs=1e-9)
    for few in ([0.3], [0.2, 0.9], [0.2, 0.9, 0.91]):
        weights = loess_weights(np.array(few), np.array([5.0, 90.0, 5.0][: len(few)]))
        assert weights.sum(axis=1) == pytest.approx(1)
    assert loess_weights(np.array([0.2, 0.9]), np.array([5.0, 95.0])) == pytest.approx(
        np.eye(2)
    )


# --- Sanity, weights, clusters --------------------------------------------------------


def test_twice_as_many_events_as_expected():
    found = calibration_summary([1, 0] * 30, [0.25] * 60, **QUICK)
    assert found.observed_expected.estimate == pytest.approx(2, abs=1e-9)
    assert found.intercept.estimate == pytest.approx(math.log(3), abs=1e-9)
    assert [
        getattr(found, name).estimate for name in ("ici", "e50", "e90", "emax")
    ] == pytest.approx([0.25] * 4)
    assert found.auc.estimate == 0.5
    assert np.isnan(found.slope.estimate)
    assert "one distinct score (0.25)" in found.reasons["slope"]
    assert "one distinct score (0.25)" in str(found)


def test_weights_are_repetitions():
    labels, scores, weights = sample(200)
    weighted = calibration_summary(labels, scores, sample_weight=weights, **QUICK)
    repeated = calibration_summary(
        np.repeat(labels, weights), np.repeat(scores, weights), **QUICK
    )
    assert (weighted.n, weighted.n_events) == (repeated.n, repeated.n_events)
    for name in NAMES:
        assert getattr(weighted, name) == pytest.approx(
            getattr(repeated, name), abs=1e-7
        ), name


def test_clusters_and_importance():
    labels, scores, _ = sample(200)
    alone = calibration_summary(labels, scores, **QUICK)
    twice = {"y_true": np.repeat(labels, 2), "y_proba": np.repeat(scores, 2)}
    paired = calibration_summary(
        **twice, clusters=np.repeat(np.arange(200), 2), **QUICK
    )
    weighted = calibration_summary(
        labels,
        scores,
        sample_weight=np.full(200, 7.5),
        weight_type="importance",
        **QUICK,
    )
    assert paired.n_clusters == 200
    assert "200 clusters" in str(paired)
    assert weighted.n == 200
    for name in (
        "observed_expected",
        "intercept",
        "slope",
        "brier_score",
        "scaled_brier_score",
        "auc",
    ):
        one, two, three = (getattr(found, name) for found in (alone, paired, weighted))
        assert two.estimate == pytest.approx(one.estimate, abs=1e-9)
        assert three.estimate == pytest.approx(one.estimate, abs=1e-9)
        # Repeated rows tell nothing new, and equal weights nothing at all. Those of the
        # slope alone are Wald's.
        assert [each.high - each.low for each in (two, three)] == pytest.approx(
            [one.high - one.low] * 2, rel=0.2
        ), name
    with refused(ValueError, "only one cluster"):
        calibration_summary(labels, scores, clusters=np.zeros(200), **QUICK)


def test_the_variance_of_clusters_by_hand():
    """Clusters of 2, 1, 1 and 1 rows with the sums 0, 2, -2 and 0, jackknifed.

    The sums are divided by 1 - 2/5 and 1 - 1/5: 0, 2.5, -2.5, 0. The mean square of the
    rows is 10/5 = 2, so that the squared sums 8 are as many as 4 independent rows have:
    fewer than 5, and the correlation is 0. Then the variances are as 2, 1, 1, 1.
    """
    values = np.array([1.0, -1, 2, -2, 0])
    error, degrees, reason = Influence(
        values, cluster=np.array([0, 0, 1, 2, 3])
    ).spread()
    assert reason == ""
    assert error == pytest.approx(math.sqrt(2 * 2.5**2) / 5)
    assert degrees == pytest.approx(5**2 / 7)
    # Sums 4 and -4 of two rows each and 0: all from pairs, so that the correlation is 1
    # and the variances are as 4, 4, 4.
    same = Influence(np.array([2.0, 2, -2, -2, 0, 0]), cluster=np.arange(6) // 2)
    assert same.spread().degrees == pytest.approx(3)
    # Two clusters, or one that outweighs the others, tell nothing.
    for cluster in ([0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 2]):
        found = Influence(np.arange(6) - 2.5, cluster=np.array(cluster))
        assert np.isnan(found.half_width(0.9)[0])
        assert "effective number" in found.spread().reason
    assert np.isnan(Influence(np.zeros(9)).half_width(0.9)[0])


def test_published_limits_of_areas():
    for counts, area, limits in (
        ((10, 10), 1.0, (0.800, 1)),
        ((3, 997), 1.0, (0.708, 1)),
        ((5, 100), 0.75, (0.490, 0.897)),
    ):
        assert area_limits(area, *counts, 0.95) == pytest.approx(limits, abs=6e-4)


def test_rows_that_do_not_determine_a_number():
    """100 events of 100 rows at .99: Clopper and Pearson's .9638 to 1, over .99."""
    all_events = calibration_summary([1] * 100, [0.99] * 100, labels=[0, 1], **QUICK)
    assert all_events.observed_expected == pytest.approx(
        (1 / 0.99, 0.9735, 1 / 0.99), abs=1e-4
    )
    assert all_events.brier_score.high > 0.03
    separable = calibration_summary(
        [0] * 10 + [1] * 10, np.linspace(0.1, 0.9, 20), **QUICK
    )
    assert separable.auc == pytest.approx((1, 0.8002, 1), abs=1e-3)
    assert separable.dxy == pytest.approx((1, 0.6004, 1), abs=1e-3)
    few = calibration_summary([0] * 40 + [1] * 4, np.linspace(0.1, 0.9, 44), **QUICK)
    assert np.isnan(few.scaled_brier_score.low)
    assert few.reasons["scaled_brier_score"] == "fewer than 10 events"
    assert "No interval: scaled_brier_score (fewer than 10 events)" in str(few)
    assert "(no interval)" in str(few)
    labels, scores, _ = sample(200)
    two = calibration_summary(labels, scores, clusters=np.arange(200) < 100, **QUICK)
    for name in ("observed_expected", "slope", "intercept", "brier_score", "auc"):
        assert np.isnan(getattr(two, name).low)
    for name in ("observed_expected", "brier_score", "auc"):
        assert "number of clusters is 2" in two.reasons[name]
    for name in ("slope", "intercept"):
        assert "1 degrees of freedom" in two.reasons[name]


def test_ten_rows_of_about_one_loss_do_not_exclude_smaller_ones():
    """Ten rows of loss .25: Wilson's lower limit of a share of 10 of 10 is
    1 / (1 + z^2 / 10) = .7225; that of a gamma law with this variance is near.
    """
    found = calibration_summary([0, 1] * 5, [0.5] * 10, **QUICK).brier_score
    assert found.estimate == 0.25
    assert found.low / 0.25 == pytest.approx(0.7225, abs=0.04)


@pytest.mark.slow
def test_no_interval_of_zero_width():
    rng = np.random.default_rng(5)
    for _ in range(150):
        n = int(rng.integers(2, 25))
        scores = rng.choice([0.01, 0.2, 0.5, 0.99], n)
        labels = rng.integers(0, 2, n) * rng.integers(0, 2)
        found = calibration_summary(labels, scores, labels=[0, 1], **QUICK)
        for name in ("observed_expected", "brier_score", "scaled_brier_score", "auc"):
            estimate, low, high = getattr(found, name)
            if np.isnan(low):
                assert found.reasons[name]
            else:
                assert high - low > 1e-3, (name, labels, scores)
                assert low <= estimate <= high


def test_weights_do_not_make_two_classes_of_one():
    """The weighted mean of labels of 1 is not always 1 in floats."""
    weight = np.array([1.933, 0.268, 0.757, 2.603, 11.098, 0.75, 6.073, 7.325, 3.237])
    for factor in (1, 1 / 3, 0.7, 1.1):
        found = calibration_summary(
            np.ones(9, dtype=int),
            np.full(9, 0.99),
            sample_weight=factor * weight,
            weight_type="importance",
            labels=[0, 1],
            **QUICK,
        )
        assert np.isnan(found.auc.estimate)
        assert np.isnan(found.scaled_brier_score.estimate)
        assert "class" in found.reasons["auc"]


def test_numbers_of_val_prob():
    """Six rows, with the logistic regression by R: slope 1.7415, U:Chi-sq .38903,
    U:p .8232; the likelihood ratio of the probabilities themselves is that of
    .8 x .4 x .4 x .8 x .7 x .7 over 2^-6.
    """
    found = calibration_summary(
        [0, 1, 0, 1, 1, 0], [0.2, 0.4, 0.6, 0.8, 0.7, 0.3], **QUICK
    )
    assert found.slope.estimate == pytest.approx(1.7415, abs=1e-4)
    assert found.unreliability == pytest.approx((0.38903 - 2) / 6, abs=1e-5)
    assert found.joint_pvalue == pytest.approx(0.8232, abs=1e-4)
    ratio = 2 * math.log(0.8 * 0.4 * 0.4 * 0.8 * 0.7 * 0.7 * 64)
    assert found.nagelkerke_r2 == pytest.approx(
        (1 - math.exp(-ratio / 6)) / (1 - 2**-2), abs=1e-6
    )
    assert found.dxy.estimate == pytest.approx(2 * found.auc.estimate - 1)


def test_the_joint_test_of_dependent_rows_is_close_to_the_other():
    rng = np.random.default_rng(6)
    scores = rng.random(400)
    labels = rng.random(400) < expit(0.4 + 0.8 * logit(scores))
    plain = calibration_summary(labels, scores, **QUICK).joint_pvalue
    clustered = calibration_summary(
        labels, scores, clusters=np.arange(400), **QUICK
    ).joint_pvalue
    weighted = calibration_summary(
        labels,
        scores,
        sample_weight=np.full(400, 0.2),
        weight_type="importance",
        **QUICK,
    ).joint_pvalue
    assert plain < 0.05
    assert [clustered, weighted] == pytest.approx([plain] * 2, abs=0.02)


def test_scores_of_exactly_0_and_1_are_said():
    rng = np.random.default_rng(7)
    scores = np.round(rng.random(300), 1)
    labels = rng.random(300) < 0.1 + 0.8 * scores
    with pytest.warns(
        UserWarning, match="scores are exactly 0 or 1.*without those of 0 or 1"
    ):
        found = calibration_summary(labels, scores, **QUICK)
    inner = (scores > 0) & (scores < 1)
    alone = calibration_summary(labels[inner], scores[inner], **QUICK)
    assert found.n_extreme == np.sum(~inner)
    assert found.inner_slope == pytest.approx(tuple(alone.slope))
    assert found.joint_pvalue == pytest.approx(alone.joint_pvalue)
    assert found.slope.estimate < found.inner_slope.estimate
    assert "scores are exactly 0 or 1" in str(found)
    assert alone.inner_slope == alone.slope
    assert alone.n_extreme == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clusters", "importance"])
def test_slopes_of_clusters_and_weights_cover(kind):
    # Rows are events with the probability of a normal variable below z: the true slope
    # is that of very many rows.
    truth = _probit_limits()
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(200):
        if kind == "clusters":
            options = {"clusters": np.repeat(np.arange(40), 10)}
            shared = np.repeat(rng.normal(size=40), 10)
        else:
            options = {
                "sample_weight": 1 + rng.pareto(2.2, 400),
                "weight_type": "importance",
            }
            shared = rng.normal(size=400)
        z = rng.normal(size=400)
        labels = 1.2 * shared < z
        both = calibration_slope_intercept(labels, expit(z), **options)
        # A weight far above the others leaves too few degrees of freedom.
        if np.isfinite(both).all():
            covered.append(
                [
                    one.low <= value <= one.high
                    for one, value in zip(both, truth, strict=True)
                ]
            )
    assert len(covered) > 150
    covered = np.mean(covered, axis=0)
    assert np.all(np.abs(covered - 0.91) < 0.06), covered


def _probit_limits():
    rng = np.random.default_rng(2)
    z = np.repeat(rng.normal(size=100_000), 2)
    labels = 1.2 * rng.normal(size=200_000) < z
    return [one.estimate for one in calibration_slope_intercept(labels, expit(z))]


# --- What has no value, and how it looks ----------------------------------------------


def test_what_is_not_defined_is_said():
    found = calibration_summary([0] * 20, [0.25] * 20, labels=[0, 1], **QUICK)
    undefined = {name for name in NAMES if np.isnan(getattr(found, name).estimate)}
    assert (
        undefined
        == set(found.reasons) - {"joint_pvalue"}
        == {"intercept", "slope", "scaled_brier_score", "auc"}
    )
    assert "one class only" in str(found)
    # No event of 20: the upper limit is Clopper and Pearson's 1 - .025^(1 / 20).
    assert found.observed_expected == pytest.approx(
        (0, 0, (1 - 0.025 ** (1 / 20)) / 0.25)
    )
    options = {"clusters": np.arange(20) // 2, "labels": [0, 1], **QUICK}
    with pytest.warns(UserWarning, match="5 events or non-events are expected"):
        alike = calibration_summary([0] * 20, [0.25] * 20, **options)
    assert alike.observed_expected.estimate == 0
    assert "all samples have the same label" in alike.reasons["observed_expected"]
    assert "nan" not in str(found)
    separate = calibration_summary([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], **QUICK)
    assert list(separate.reasons) == ["slope", "scaled_brier_score", "joint_pvalue"]
    assert separate.auc.estimate == 1
    never = calibration_summary([0, 1, 0], [0.0, 0.0, 0.0], **QUICK)
    assert never.reasons["observed_expected"] == "no event is expected"


def test_the_paragraph_and_the_table():
    labels, scores, _ = sample(200)
    found = calibration_summary(
        np.where(labels, "dead", "alive"), scores, pos_label="dead", **QUICK
    )
    text = str(found)
    # Half the width of the interval, about .06, supports two decimals.
    assert (
        f"{found.auc.estimate:.2f} ({found.auc.low:.2f} to {found.auc.high:.2f})"
        in text
    )
    assert "95 % CI" in text
    assert "TRIPOD+AI items 12e, 20a and 23a" in text
    table = found.columns()
    assert table["statistic"] == list(NAMES)
    assert table["low"] == [getattr(found, name).low for name in NAMES]
    assert len(found) == len(NAMES)
    assert repr(found) == text
    assert found._repr_html_().count("<tr>") == len(NAMES) + 1


def test_what_is_refused():
    labels, scores, _ = sample()
    with refused(ValueError, "y_proba has 3 columns"):
        calibration_summary([0, 1, 2], np.full((3, 3), 1 / 3))
    with refused(ValueError, "confidence_level", "95"):
        calibration_summary(labels, scores, confidence_level=95)
    with refused(ValueError, "n_resamples"):
        calibration_summary(labels, scores, n_resamples=0)
    with refused(ValueError, "weight_type"):
        calibration_summary(labels, scores, weight_type="counts")
    with refused(ValueError, "clusters"):
        calibration_summary(labels, scores, clusters=[1, 2])
    with pytest.warns(UserWarning, match="not integers"):
        calibration_summary(labels, scores, sample_weight=np.full(60, 0.5), **QUICK)


def test_a_shift_of_the_log_odds_is_the_intercept():
    rng = np.random.default_rng(3)
    scores = rng.random(20_000)
    found = calibration_summary(
        rng.random(20_000) < expit(logit(scores) - 0.5), scores, **QUICK
    )
    assert found.intercept.low < -0.5 < found.intercept.high
    assert found.slope.low < 1 < found.slope.high
    truth = np.mean(scores - expit(logit(scores) - 0.5))
    assert found.ici.low < truth < found.ici.high
    assert found.ici.estimate == pytest.approx(truth, abs=0.01)
