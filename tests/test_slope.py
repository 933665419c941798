"""Calibration slope and intercept against a general-purpose fit, and their
intervals.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from skcalib.evaluation import calibration_by_cluster
from skcalib.metrics import calibration_slope_intercept


def sample(n=500, slope=0.7, intercept=0.3, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.beta(2, 2, n)
    return (
        rng.random(n) < expit(intercept + slope * logit(scores)),
        scores,
        rng.integers(0, 4, n),
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_a_general_purpose_fit(weighted):
    labels, scores, weights = sample()
    weights = weights if weighted else np.ones(len(scores))
    x = logit(scores)

    def loss(parameters):
        z = parameters[0] + parameters[1] * x
        return weights @ (np.logaddexp(0, z) - labels * z)

    slope = minimize(
        loss,
        [0, 1],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000},
    ).x[1]
    # Calibration-in-the-large: expected and observed events agree.
    intercept = brentq(lambda a: weights @ (expit(a + x) - labels), -5, 5, xtol=1e-12)
    found = calibration_slope_intercept(labels, scores, sample_weight=weights)
    assert found.slope.estimate == pytest.approx(slope, abs=1e-6)
    assert found.intercept.estimate == pytest.approx(intercept, abs=1e-8)


def test_golden_cases():
    # 10 of 40 events at s = 1/2: log(1/3); information 40 * 3/16 = 7.5, so 1.6449 /
    # sqrt(7.5) = .6006 either way.
    labels = np.r_[np.zeros(15), np.ones(5), np.zeros(15), np.ones(5)]
    scores = np.r_[np.full(20, 0.5), np.full(20, 0.5 + 1e-9)]
    found = calibration_slope_intercept(labels, scores).intercept
    assert found.estimate == pytest.approx(np.log(1 / 3), abs=1e-6)
    assert found.high - found.estimate == pytest.approx(
        1.6448536 / np.sqrt(7.5), abs=1e-6
    )
    # Half the log-odds at both scores: slope 1/2. .8 -> 2/3, .2 -> 1/3.
    labels = np.r_[[1, 1, 0], [1, 0, 0]]
    found = calibration_slope_intercept(labels, np.repeat([0.8, 0.2], 3))
    assert found.slope.estimate == pytest.approx(0.5)
    assert found.intercept.estimate == pytest.approx(0, abs=1e-8)


def test_weights_are_repetitions():
    labels, scores, weights = sample()
    weighted = calibration_slope_intercept(labels, scores, sample_weight=weights)
    repeated = calibration_slope_intercept(
        np.repeat(labels, weights), np.repeat(scores, weights)
    )
    assert np.allclose(weighted, repeated, rtol=0, atol=1e-7)


def test_wider_for_a_higher_level_and_for_fewer_rows():
    labels, scores, _ = sample()

    def width(**options):
        slope = calibration_slope_intercept(labels, scores, **options).slope
        return slope.high - slope.low

    assert width(confidence_level=0.5) < width() < width(confidence_level=0.99)
    assert width(sample_weight=np.full(500, 4)) == pytest.approx(width() / 2)


def test_many_classes_are_the_top_label():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 300)
    labels = np.array([rng.choice(3, p=row) for row in proba])
    top = calibration_slope_intercept(labels == proba.argmax(1), proba.max(1))
    assert calibration_slope_intercept(labels, proba) == top
    with refused(ValueError, "marginal", "top_label"):
        calibration_slope_intercept(labels, proba, multiclass="marginal")


@pytest.mark.filterwarnings("ignore:.*exactly 0 or 1")
def test_certain_scores_stay_finite():
    found = calibration_slope_intercept(
        [0, 1, 0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0, 0.6, 0.4]
    )
    assert np.isfinite(found).all()


def test_where_there_is_no_finite_estimate():
    with refused(ValueError, "one class only"):
        calibration_slope_intercept([1, 1], [0.2, 0.6], labels=[0, 1])
    with refused(ValueError, "one distinct score", "0.5"):
        calibration_slope_intercept([0, 1], [0.5, 0.5])
    for labels in ([0, 0, 1, 1], [1, 1, 0, 0]):
        with refused(ValueError, "separate"):
            calibration_slope_intercept(labels, [0.2, 0.5, 0.5, 0.8])
    with refused(ValueError, "confidence_level", "95"):
        calibration_slope_intercept([0, 1, 0], [0.2, 0.4, 0.6], confidence_level=95)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_have_the_fit_that_none_are_condensed_for(weighted, monkeypatch):
    labels, scores, weights = sample(40_000)
    options = {"sample_weight": weights} if weighted else {}
    found = calibration_slope_intercept(labels, scores, **options)
    monkeypatch.setattr("skcalib.metrics._slope.condensed", lambda *rows: rows)
    plain = calibration_slope_intercept(labels, scores, **options)
    for one, other in zip(found, plain, strict=True):
        assert one.estimate == pytest.approx(other.estimate, rel=1e-9)
        assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-6)


def test_scores_of_exactly_0_and_1_are_said():
    """With them the slope is .66, decided by the clipping constant."""
    rng = np.random.default_rng(7)
    scores = np.round(rng.random(300), 1)
    labels = rng.random(300) < 0.1 + 0.8 * scores
    inner = (scores > 0) & (scores < 1)
    alone = calibration_slope_intercept(labels[inner], scores[inner]).slope
    without = f"without those of 0 or 1, the slope is {alone.estimate:.2f} "
    words = f"{np.sum(~inner)} scores are exactly 0 or 1.*{without}"
    with pytest.warns(UserWarning, match=words):
        found = calibration_slope_intercept(labels, scores).slope
    assert found.estimate < 0.5 * alone.estimate
    patients = np.arange(300) // 2
    with pytest.warns(UserWarning, match=words):
        calibration_slope_intercept(labels, scores, clusters=patients)
    with pytest.warns(UserWarning, match="without those of 0 or 1, there is no slope"):
        calibration_slope_intercept([0, 1, 1, 0], [0.0, 0.0, 1.0, 1.0])
    # Those that are right say nothing, and move nothing.
    right = np.append(labels[inner], [False, True]), np.append(scores[inner], [0, 1])
    assert calibration_slope_intercept(*right).slope.estimate == pytest.approx(
        alone.estimate, rel=1e-6
    )
    with pytest.warns(UserWarning, match="exactly 0 or 1.*inner_slope"):
        calibration_by_cluster(labels, scores, np.arange(300) % 3)
