"""The summary of a model: each number against a plain twin, its interval, and what is said where it has no value."""

import math

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, logit
from scipy.stats import t as student

from skcalib._errors.bin_free import loess_weights
from skcalib._inference.influence import half_width
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


# --- Plain twins, from the formulas -------------------------------------------------------------------------------


def loess_twin(scores, frequency, weights, at):
    """A parabola by least squares over the nearest scores that hold three quarters of the rows, rounded down."""
    near = sorted((abs(s - at), w) for s, w in zip(scores, weights, strict=True))
    held, width = 0.0, None
    for distance, w in near:
        held += w
        if held >= math.floor(0.75 * sum(weights) + 1e-5) - 1e-9:
            width = distance
            break
    rows = [(s, f, w * (1 - (abs(s - at) / width) ** 3) ** 3)
            for s, f, w in zip(scores, frequency, weights, strict=True) if abs(s - at) < width]  # fmt: skip
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
        "observed_expected": (ratio, [(y - ratio * s) * n / events for s, y in zip(scores, labels, strict=True)]),
        "brier_score": (brier, [loss - brier for loss in losses]),
        "scaled_brier_score": (1 - brier / v, [(brier - loss) / v + brier * (1 - 2 * f) * (y - f) / v**2
                                               for loss, y in zip(losses, labels, strict=True)]),
        "auc": (auc, [
            (np.mean([wins(s, b) for b in zeros]) - auc) * n / math.sqrt(len(ones) * (len(ones) - 1)) if y
            else (np.mean([wins(a, s) for a in ones]) - auc) * n / math.sqrt(len(zeros) * (len(zeros) - 1))
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


@pytest.mark.parametrize("seed", range(3))
def test_numbers_and_limits_are_those_of_plain_twins(seed):
    labels, scores, _ = sample(seed=seed)
    found = calibration_summary(labels, scores, **QUICK)
    for name, (estimate, influence) in influence_twins(
        labels.tolist(), scores.tolist()
    ).items():
        here, width = getattr(found, name), width_twin(influence)
        limits = (estimate - width, estimate + width)
        if name == "observed_expected":
            limits = (estimate * math.exp(-width), estimate * math.exp(width))
        elif name == "auc":
            limits = expit(
                logit(estimate)
                + np.array((-1, 1)) * width / (estimate * (1 - estimate))
            )
        assert here == pytest.approx((estimate, *limits), abs=1e-9)
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
    # example(loess) of R: stopping distances of 50 cars, `cars.lo <- loess(dist ~ speed, cars)`, and what predict
    # prints at the speeds where R computes the curve. In between it interpolates: 49.824812 at 18, without 50.067148.
    speed = np.repeat(
        [4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25],
        [2, 2, 1, 1, 3, 2, 4, 4, 4, 3, 2, 3, 4, 3, 5, 1, 1, 4, 1],
    )
    distance = "2 10 4 22 16 10 18 26 34 17 28 14 20 24 28 26 34 34 46 26 36 60 80 20 26 54 32 40 32 40 50 42 56 76 84 "
    distance += "36 46 68 32 48 52 56 64 66 54 70 92 93 120 85"
    distance = np.array(distance.split(), dtype=float)
    places, place, count = np.unique(speed, return_inverse=True, return_counts=True)
    curve = loess_weights(places.astype(float), count.astype(float)) @ (
        np.bincount(place, distance) / count
    )
    published = {8: 15.281082, 10: 21.865315, 12: 29.350386, 13: 33.230660, 14: 37.167935, 15: 41.205226, 17: 48.355889,
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


# --- Sanity, weights, clusters ------------------------------------------------------------------------------------


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
        # Repeated rows tell nothing new, and equal weights nothing at all. Those of the slope alone are Wald's.
        assert [each.high - each.low for each in (two, three)] == pytest.approx(
            [one.high - one.low] * 2, rel=0.2
        ), name
    with refused(ValueError, "one cluster only"):
        calibration_summary(labels, scores, clusters=np.zeros(200), **QUICK)


def test_the_width_of_clusters_is_that_of_their_sums():
    influence, cluster = np.array([1.0, -1, 2, -2]), np.array([0, 0, 1, 2])
    # Sums 0, 2, -2: variance of their sum 8 * 3 / 2; kurtosis 3 * 32 / 64 < 5 / 3, so min(9, 2) degrees of freedom.
    assert half_width(influence, 0.9, cluster=cluster) == pytest.approx(
        student.ppf(0.95, 2) * math.sqrt(12) / 4
    )
    assert half_width(np.zeros(3), 0.9) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["clusters", "importance"])
def test_slopes_of_clusters_and_weights_cover(kind):
    # Rows are events with the probability of a normal variable below z: the true slope is that of very many rows.
    truth = _probit_limits()
    rng, covered = np.random.default_rng(1), np.zeros(2)
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
        covered += [
            one.low <= value <= one.high for one, value in zip(both, truth, strict=True)
        ]
    assert np.all(np.abs(covered / 200 - 0.9) < 0.05), covered / 200


def _probit_limits():
    rng = np.random.default_rng(2)
    z = np.repeat(rng.normal(size=100_000), 2)
    labels = 1.2 * rng.normal(size=200_000) < z
    return [one.estimate for one in calibration_slope_intercept(labels, expit(z))]


# --- What has no value, and how it looks --------------------------------------------------------------------------


def test_what_is_not_defined_is_said():
    found = calibration_summary([0] * 20, [0.25] * 20, labels=[0, 1], **QUICK)
    undefined = {name for name in NAMES if np.isnan(getattr(found, name).estimate)}
    assert (
        undefined
        == set(found.reasons)
        == {"observed_expected", "intercept", "slope", "scaled_brier_score", "auc"}
    )
    assert "one class only" in str(found)
    assert "no event is observed" in str(found)
    assert "nan" not in str(found)
    separate = calibration_summary([0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9], **QUICK)
    assert list(separate.reasons) == ["slope"]
    assert separate.auc.estimate == 1
    never = calibration_summary([0, 1, 0], [0.0, 0.0, 0.0], **QUICK)
    assert never.reasons["observed_expected"] == "no event is expected"


def test_the_paragraph_and_the_table():
    labels, scores, _ = sample(200)
    found = calibration_summary(
        np.where(labels, "dead", "alive"), scores, pos_label="dead", **QUICK
    )
    text = str(found)
    assert (
        f"{found.auc.estimate:.3f} ({found.auc.low:.3f} to {found.auc.high:.3f})"
        in text
    )
    assert "95 % CI" in text
    assert "TRIPOD+AI items 12e, 20a and 23a" in text
    table = found.columns()
    assert table["statistic"] == list(NAMES)
    assert table["low"] == [getattr(found, name).low for name in NAMES]
    assert len(found) == len(NAMES)
    assert "scaled_brier_score" in repr(found)
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
    with pytest.warns(UserWarning, match="no integers"):
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
