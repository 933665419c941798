"""Quadratic scaling against a general-purpose solver on the plain penalised loss."""

import math

import numpy as np
import pytest
from _catalog import refused
from _twins import repeated
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from skcalib import QuadraticScaling, TemperatureScaling


def _sample(n=300, seed=0, coef=(-0.5, 0.8, 0.15)):
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(scale=2, size=n)
    true = coef[0] + coef[1] * log_odds + coef[2] * log_odds**2
    return log_odds, rng.random(n) < expit(true)


def _fit(log_odds, y, alpha=1.0, weights=None, **options):
    return QuadraticScaling(alpha, input="logit", clip=None, **options).fit(
        log_odds, y, weights
    )


def _smoothed_inverse_temperature(log_odds, y, weights):
    """Return the slope without intercept that fits Platt's targets best, by
    golden-section search.
    """
    positives, negatives = weights @ y, weights @ ~y
    targets = np.where(y, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    low, high = 0.0, 10.0
    for _ in range(200):
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        losses = [
            weights @ (np.logaddexp(0, b * log_odds) - targets * b * log_odds)
            for b in (left, right)
        ]
        low, high = (low, right) if losses[0] < losses[1] else (left, high)
    return (low + high) / 2


def _loss(theta, z, y, weights, alpha):
    spread = max(math.sqrt(weights @ z**2 / weights.sum()), 0.3)
    mapped = theta[0] + theta[1] * z + theta[2] * z**2 / spread
    ridge = alpha / 2 * (theta[0] ** 2 + (theta[1] - 1) ** 2 + theta[2] ** 2)
    return weights @ (np.logaddexp(0, mapped) - y * mapped) + ridge


@pytest.mark.parametrize("alpha", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("scale", [0.02, 1.0, 10.0])
def test_fit_is_the_minimum_of_the_penalised_loss(alpha, scale):
    log_odds, y = _sample(n=200)
    log_odds = log_odds * scale
    weights = np.random.default_rng(1).random(len(y))
    inverse = (
        _smoothed_inverse_temperature(log_odds, y, weights) if scale > 0.1 else None
    )
    if inverse is None:  # beyond the twin's bracket
        inverse = _smoothed_inverse_temperature(log_odds / scale, y, weights) / scale
    z = inverse * log_odds
    best = minimize(
        _loss,
        [0, 1, 0],
        args=(z, y, weights, alpha),
        method="BFGS",
        options={"gtol": 1e-8},
    )
    spread = max(math.sqrt(weights @ z**2 / weights.sum()), 0.3)
    model = _fit(log_odds, y, alpha, weights)
    expected = [best.x[0], best.x[1] * inverse, best.x[2] * inverse**2 / spread]
    np.testing.assert_allclose(
        [model.intercept_, model.slope_, model.curvature_], expected, rtol=1e-4
    )
    theta = [
        model.intercept_,
        model.slope_ / inverse,
        model.curvature_ * spread / inverse**2,
    ]
    assert _loss(theta, z, y, weights, alpha) <= best.fun + 1e-8


def test_without_ridge_it_is_logistic_regression():
    log_odds, y = _sample()
    features = np.column_stack((log_odds, log_odds**2))
    twin = LogisticRegression(C=1e12, tol=1e-12, max_iter=10_000).fit(features, y)
    model = _fit(log_odds, y, 0)
    np.testing.assert_allclose(
        (model.slope_, model.curvature_), twin.coef_[0], atol=1e-5
    )
    assert model.intercept_ == pytest.approx(twin.intercept_[0], abs=1e-5)
    assert model.log_odds_range_ == (log_odds.min(), log_odds.max())


def test_great_ridge_is_temperature_scaling():
    log_odds, y = _sample()
    model = _fit(log_odds, y, 1e9)
    assert model.slope_ == pytest.approx(
        _smoothed_inverse_temperature(log_odds, y, np.ones(len(y))), rel=1e-6
    )
    assert (model.intercept_, model.curvature_) == pytest.approx((0, 0), abs=1e-6)


@pytest.mark.parametrize("alpha", [0, 0.1, 1, 10])
def test_monotone_fit_is_the_constrained_minimum(alpha):
    binding = 0
    for seed in range(12):
        log_odds, y = _sample(n=60, seed=seed, coef=(0, 0.6, 0.3 * (-1) ** seed))
        model = _fit(log_odds, y, alpha, monotone=True)
        inverse = _smoothed_inverse_temperature(log_odds, y, np.ones(len(y)))
        z = inverse * log_odds
        spread = max(math.sqrt(np.mean(z**2)), 0.3)
        ends = np.array([z.min(), z.max()])
        best = minimize(
            _loss,
            [0, 1, 0],
            args=(z, y, np.ones(len(y)), alpha),
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda theta, e=ends, s=spread: theta[1] + 2 * theta[2] * e / s,
            },
            options={"ftol": 1e-13, "maxiter": 500},
        )
        theta = [
            model.intercept_,
            model.slope_ / inverse,
            model.curvature_ * spread / inverse**2,
        ]
        assert _loss(theta, z, y, np.ones(len(y)), alpha) <= best.fun + 1e-6
        slopes = model.slope_ + 2 * model.curvature_ * np.array(model.log_odds_range_)
        assert slopes.min() >= -1e-12
        binding += slopes.min() < 1e-9
        wide = np.linspace(-30, 30, 500)
        assert np.diff(model.predict_proba(wide)[:, 1]).min() >= -1e-14
    assert binding > 0


def test_beyond_the_calibration_set_the_map_is_straight():
    log_odds, y = _sample()
    model = _fit(log_odds, y)
    low, high = model.log_odds_range_
    slope = model.slope_ + 2 * model.curvature_ * high
    at_end = model.intercept_ + model.slope_ * high + model.curvature_ * high**2
    found = logit(model.predict_proba([high, high + 1, high + 2])[:, 1])
    np.testing.assert_allclose(
        found, [at_end, at_end + slope, at_end + 2 * slope], rtol=1e-9
    )
    inside = np.linspace(low, high, 7)
    parabola = model.intercept_ + model.slope_ * inside + model.curvature_ * inside**2
    np.testing.assert_allclose(
        logit(model.predict_proba(inside)[:, 1]), parabola, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("alpha", [0, 1])
@pytest.mark.parametrize("monotone", [False, True])
def test_extreme_scores_give_finite_forecasts(alpha, monotone):
    y = np.arange(20) % 2
    for scores in (
        y.astype(float),
        np.where(np.arange(20) < 3, 1.0, y),
        np.full(20, 0.3),
        np.full(20, 0.5),
        1.0 - y,
    ):
        model = QuadraticScaling(alpha, monotone=monotone).fit(scores, y)
        assert np.isfinite(np.log(model.predict_proba([0, 0.1, 0.5, 1]))).all()
    for log_odds in (
        np.array([-1e90, -800, -3, 3, 800, 1e90]),
        np.array([-3e-90, -2e-90, -1e-90, 1e-90, 2e-90, 3e-90]),
    ):
        model = _fit(
            log_odds,
            np.array([False, False, True, False, True, True]),
            alpha,
            monotone=monotone,
        )
        assert np.isfinite(np.log(model.predict_proba(log_odds))).all()


def test_a_model_that_ranks_the_wrong_way_round():
    log_odds, y = _sample(coef=(0, -1.5, 0))
    free, monotone = _fit(log_odds, y, 0), _fit(log_odds, y, 0, monotone=True)
    assert free.slope_ < -1
    assert monotone.slope_ == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(
        monotone.predict_proba(log_odds)[:, 1], y.mean(), atol=1e-6
    )
    assert np.isfinite(_fit(log_odds, y).predict_proba(log_odds)).all()


def test_a_missing_class_takes_a_ridge():
    log_odds, _ = _sample()
    model = QuadraticScaling(input="logit", classes=[0, 1]).fit(
        log_odds, np.ones(len(log_odds), int)
    )
    assert model.predict_proba(log_odds)[:, 1].mean() > 0.8
    with refused(ValueError, "QuadraticScaling", "class 0"):
        QuadraticScaling(0, input="logit", classes=[0, 1]).fit(
            log_odds, np.ones(len(log_odds), int)
        )


def test_separable_rows_stay_moderate():
    # 30 rows without an error: the likelihood alone would be sure of everything.
    log_odds = np.linspace(-3, 3, 30)
    assert (
        TemperatureScaling(input="logit")
        .fit(log_odds, log_odds > 0)
        .predict_proba([4.0])[0, 1]
        < 0.9999
    )
    assert 3 < logit(_fit(log_odds, log_odds > 0).predict_proba([4.0])[0, 1]) < 20


def test_integer_weights_are_repeated_rows():
    log_odds, y = _sample()
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    for alpha, monotone in ((0, False), (1, False), (1, True)):
        weighted = _fit(log_odds, y, alpha, weights, monotone=monotone).predict_proba(
            log_odds
        )
        z, labels = repeated(weights, log_odds, y)
        # the range of the parabola is that of the rows that count
        rows = _fit(z, labels, alpha, monotone=monotone).predict_proba(log_odds)
        np.testing.assert_allclose(weighted, rows, atol=1e-9)


def test_parameters_are_checked():
    log_odds, y = _sample()
    with pytest.raises(ValueError, match="'alpha' parameter"):
        _fit(log_odds, y, -1)
    with pytest.raises(ValueError, match="'monotone' parameter"):
        _fit(log_odds, y, monotone="yes")


def test_a_slope_that_ends_a_hair_above_its_bound_does_not_end_the_fit():
    # After one step the upper slope is rounding above 0: a search along the others'
    # step would never leave.
    rng = np.random.default_rng(10)
    scores = np.round(rng.beta(0.5, 0.5, 300), 2)
    y = rng.random(300) < scores**1.5
    model = QuadraticScaling(monotone=True, clip=None).fit(scores, y)
    log_odds = logit(scores.clip(2**-52, 1 - 2**-52))
    inverse = _smoothed_inverse_temperature(log_odds, y, np.ones(300))
    z, ones = inverse * log_odds, np.ones(300)
    spread = math.sqrt(np.mean(z**2))
    best = minimize(
        _loss,
        [0, 1, 0],
        args=(z, y, ones, 1),
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": (
                lambda theta: (
                    theta[1] + 2 * theta[2] * np.array([z.min(), z.max()]) / spread
                )
            ),
        },
        options={"ftol": 1e-13, "maxiter": 500},
    )
    theta = [
        model.intercept_,
        model.slope_ / inverse,
        model.curvature_ * spread / inverse**2,
    ]
    assert _loss(theta, z, y, ones, 1) <= best.fun + 1e-6
