"""Beta calibration against a general-purpose solver under the constraints, and the
refit of its authors.
"""

import math

import numpy as np
import pytest
from _catalog import refused
from _twins import repeated
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib import BetaCalibration, PlattScaling


def _sample(a=1.5, b=0.5, c=0.3, n=300, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.9, 0.9, n)
    log_odds = a * np.log(scores) - b * np.log(1 - scores) + c
    return scores, rng.random(n) < 1 / (1 + np.exp(-log_odds))


def _loss(parameters, scores, y, weights):
    a, b, c = parameters
    total = 0.0
    for s, label, weight in zip(scores, y, weights, strict=True):
        z = a * math.log(s) - b * math.log(1 - s) + c
        total += weight * (math.log1p(math.exp(-abs(z))) + max(z, 0) - label * z)
    return total


def _twin(kind, scores, y, weights):
    """Return the constrained optimum (a, b, c) by SLSQP on the plain loss."""
    expand = {
        "abm": lambda free: free,
        "am": lambda free: (free[0], free[0], free[1]),
        "ab": lambda free: (free[0], free[1], (free[0] - free[1]) * math.log(2)),
    }[kind]
    n_slopes = 1 if kind == "am" else 2
    start = [1.0] * n_slopes + [0.0] * (kind != "ab")
    bounds = [(0, None)] * n_slopes + [(None, None)] * (kind != "ab")
    found = minimize(
        lambda free: _loss(expand(free), scores, y, weights),
        start,
        method="SLSQP",
        bounds=bounds,
        options={"ftol": 1e-13, "maxiter": 500},
    )
    return expand(found.x), found.fun


@pytest.mark.parametrize("kind", ["abm", "am", "ab"])
@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(
    "truth",
    [(1.5, 0.5, 0.3), (0.8, 0.8, -1), (-1, 2, 0), (2, -0.6, 0.5), (-1, -1, 0.2)],
)
def test_fit_is_the_constrained_minimum(kind, smooth, truth):
    scores, y = _sample(*truth, n=150)
    weights = np.random.default_rng(1).random(len(y))
    model = BetaCalibration(kind, alpha=0, smooth_targets=smooth).fit(
        scores, y, weights
    )
    events, others = weights[y].sum(), weights[~y].sum()
    targets = (
        np.where(y, (events + 1) / (events + 2), 1 / (others + 2)) if smooth else y
    )
    parameters, loss = _twin(kind, scores, targets, weights)
    assert min(model.a_, model.b_) >= 0
    assert _loss(
        (model.a_, model.b_, model.c_), scores, targets, weights
    ) == pytest.approx(loss, abs=1e-7)
    np.testing.assert_allclose((model.a_, model.b_, model.c_), parameters, atol=2e-3)
    if kind == "am":
        assert model.a_ == model.b_
    if kind == "ab":
        assert model.predict_proba([0.5])[0, 1] == pytest.approx(0.5, abs=1e-12)


def test_a_negative_parameter_is_left_out_and_the_others_refitted():
    scores, y = _sample(2, -0.6, 0.5, n=400)
    features = np.column_stack((np.log(scores), -np.log(1 - scores)))
    free = (
        LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000).fit(features, y).coef_[0]
    )
    assert free[1] < 0
    refit = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000).fit(
        features[:, :1], y
    )
    model = BetaCalibration(alpha=0, smooth_targets=False, clip=None).fit(scores, y)
    assert model.b_ == 0
    assert model.a_ == pytest.approx(refit.coef_[0, 0], abs=1e-4)
    assert model.c_ == pytest.approx(refit.intercept_[0], abs=1e-4)


def test_equal_slopes_are_platt_scaling():
    scores, y = _sample()
    for smooth in (False, True):
        expected = (
            PlattScaling(smooth_targets=smooth).fit(scores, y).predict_proba(scores)
        )
        found = (
            BetaCalibration("am", alpha=0, smooth_targets=smooth)
            .fit(scores, y)
            .predict_proba(scores)
        )
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_scores_that_follow_beta_distributions_are_mended_exactly():
    # Beta(4, 1) for the events, Beta(2, 3) for the others: the likelihood ratio is s^2
    # / (1 - s)^-2 up to a constant, so that a = 4 - 2 and b = 3 - 1 (Kull et al.,
    # Section 3).
    rng = np.random.default_rng(0)
    y = np.arange(200_000) % 2
    scores = np.where(y == 1, rng.beta(4, 1, len(y)), rng.beta(2, 3, len(y)))
    model = BetaCalibration().fit(scores, y)
    assert (model.a_, model.b_) == pytest.approx((2, 2), abs=0.05)


@pytest.mark.parametrize("kind", ["abm", "am", "ab"])
def test_the_map_never_decreases(kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = np.round(rng.random(40), 2)
        model = BetaCalibration(kind).fit(scores, rng.random(40) < rng.random())
        proba = model.predict_proba(
            np.append(np.linspace(0, 1, 301), [1e-300, 1 - 1e-16]).clip(0, 1)
        )[:, 1]
        assert np.diff(proba[:301]).min() >= -1e-15
        assert 0 < proba.min() <= proba.max() < 1


@pytest.mark.parametrize("kind", ["abm", "am", "ab"])
@pytest.mark.parametrize("smooth", [False, True])
def test_extreme_scores_give_finite_forecasts(kind, smooth):
    y = np.arange(20) % 2
    for scores in (
        y.astype(float),
        np.where(np.arange(20) < 3, 1.0, y),
        np.full(20, 0.3),
        y * 0.6 + 0.2,
        1.0 - y,
    ):
        proba = (
            BetaCalibration(kind, alpha=0, smooth_targets=smooth)
            .fit(scores, y)
            .predict_proba([0, 0.1, 0.5, 1])
        )
        assert np.isfinite(np.log(proba)).all()
    log_odds = np.array([-1e90, -800, -3, 3, 800, 1e90])
    model = BetaCalibration(kind, alpha=0, smooth_targets=smooth, input="logit").fit(
        log_odds, [0, 0, 1, 0, 1, 1]
    )
    assert np.isfinite(np.log(model.predict_proba(log_odds))).all()


def test_smoothed_targets_serve_a_missing_class_and_separable_rows():
    scores = np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])
    separable = BetaCalibration().fit(scores, scores > 0.5).predict_proba(scores)[:, 1]
    # Targets of 1/5 and 4/5: as Platt's, the map stays between sensible odds.
    assert 0.05 < separable.min() < 0.3 < 0.7 < separable.max() < 0.95
    one_class = BetaCalibration(alpha=0, classes=[0, 1]).fit(scores, np.ones(6, int))
    # (6 + 1) / (6 + 2)
    np.testing.assert_allclose(one_class.predict_proba(scores)[:, 1], 7 / 8, atol=1e-6)
    with refused(ValueError, "BetaCalibration", "class 0"):
        BetaCalibration(alpha=0, smooth_targets=False, classes=[0, 1]).fit(
            scores, np.ones(6, int)
        )


def test_integer_weights_are_repeated_rows():
    scores, y = _sample()
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    for options in ({}, {"smooth_targets": False}, {"parameters": "ab"}):
        weighted = BetaCalibration(**options).fit(scores, y, weights)
        rows = BetaCalibration(**options).fit(*repeated(weights, scores, y))
        assert (weighted.a_, weighted.b_, weighted.c_) == pytest.approx(
            (rows.a_, rows.b_, rows.c_), rel=1e-7
        )


def test_many_classes_one_against_the_rest():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    y = np.array(
        [
            rng.choice(3, p=row)
            for row in proba**2 / (proba**2).sum(axis=1, keepdims=True)
        ]
    )
    model = BetaCalibration(class_pooling=0).fit(proba, y)
    columns = [
        BetaCalibration().fit(proba[:, k], y == k).predict_proba(proba[:, k])[:, 1]
        for k in range(3)
    ]
    expected = np.column_stack(columns)
    np.testing.assert_allclose(
        model.predict_proba(proba),
        expected / expected.sum(axis=1, keepdims=True),
        atol=1e-12,
    )
    assert len(model.a_) == len(model.b_) == len(model.c_) == 3
    assert log_loss(y, model.predict_proba(proba)) < log_loss(y, proba)


def test_parameters_are_checked():
    scores, y = _sample()
    with pytest.raises(ValueError, match="'parameters' parameter"):
        BetaCalibration("bm").fit(scores, y)


def test_equal_scores_get_their_event_frequency():
    for parameters in ("ab", "am", "abm"):
        model = BetaCalibration(parameters, alpha=0, smooth_targets=False).fit(
            [0.2] * 10, [0] * 9 + [1]
        )
        assert model.predict_proba([0.2])[0, 1] == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize(
    "method",
    [BetaCalibration(), BetaCalibration("ab"), BetaCalibration("am")],
    ids=repr,
)
@pytest.mark.parametrize(
    "row", [[1 / 3, 1 / 3, 1 / 3], [0.25, 0.25, 0.5], [0.2, 0.3, 0.5]]
)
def test_equal_rows_of_many_classes_have_one_map_in_any_order_and_with_weights(
    method, row
):
    y = np.repeat([0, 1, 2], [5, 11, 24])
    scores, grid = (
        np.tile(row, (40, 1)),
        np.random.default_rng(0).dirichlet(np.ones(3), 50),
    )
    expected = method.fit(scores, y).predict_proba(grid)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(40)
        np.testing.assert_allclose(
            method.fit(scores[order], y[order]).predict_proba(grid), expected, atol=1e-7
        )
    weighted = method.fit(scores[:3], [0, 1, 2], [5, 11, 24]).predict_proba(grid)
    np.testing.assert_allclose(weighted, expected, atol=1e-7)


# --- the ridge ---


@pytest.mark.parametrize("kind", ["abm", "am", "ab"])
@pytest.mark.parametrize("alpha", [0.3, 1.0, 30.0])
def test_the_ridge_pulls_both_slopes_to_one(kind, alpha):
    """The gradient vanishes: that of SLSQP's own objective, with the ridge."""
    scores, y = _sample(n=60)
    weights = np.ones(60)

    def objective(free):
        a, b = free[0], free[0 if kind == "am" else 1]
        c = (a - b) * math.log(2)  # the midpoint is 1/2, plus its log-odds
        c += 0 if kind == "ab" else free[-1]
        ridge = alpha / 2 * ((a - 1) ** 2 + (b - 1) ** 2)
        return _loss((a, b, c), scores, y, weights) + ridge

    n_slopes = 1 if kind == "am" else 2
    start = [1.0] * n_slopes + [0.0] * (kind != "ab")
    bounds = [(0, None)] * n_slopes + [(None, None)] * (kind != "ab")
    options = {"ftol": 1e-14, "maxiter": 500}
    best = minimize(objective, start, method="SLSQP", bounds=bounds, options=options)
    model = BetaCalibration(kind, alpha=alpha, smooth_targets=False, clip=None)
    model.fit(scores, y)
    slopes = [model.a_, model.b_][:n_slopes]
    np.testing.assert_allclose(slopes, best.x[:n_slopes], atol=2e-4)


def test_the_ridge_is_the_same_under_a_swap_of_labels():
    log_odds = np.random.default_rng(3).normal(-3, 1, 40)
    y = np.arange(40) % 7 == 0
    model = BetaCalibration(input="logit").fit(log_odds, y)
    swapped = BetaCalibration(input="logit").fit(-log_odds, ~y)
    np.testing.assert_allclose([swapped.a_, swapped.b_], [model.b_, model.a_], 1e-8)
    np.testing.assert_allclose(
        swapped.predict_proba(-log_odds)[:, 0],
        model.predict_proba(log_odds)[:, 1],
        atol=1e-10,
    )


def test_scores_at_one_end_do_not_run_away():
    rng = np.random.default_rng(180)
    scores = rng.beta(1, 15, 30)
    y = rng.random(30) < scores
    assert y.sum() == 2
    free = BetaCalibration(alpha=0).fit(scores, y)
    held = BetaCalibration().fit(scores, y)
    assert free.b_ > 20
    assert 0.5 < held.b_ < 2


def test_certain_and_mostly_wrong_scores_are_mended():
    """Scores of 1 in nearly all rows, with 8 % events: Newton's first step from slopes
    of 1 makes all predictions 0 or 1, where the loss has no curvature.
    """
    rng = np.random.default_rng(0)
    scores = np.where(rng.random(1000) < 0.9, 1.0, 1e-12)
    labels = (rng.random(1000) < 0.08).astype(int)
    forecast = BetaCalibration(clip=None).fit(scores, labels).predict_proba(scores)
    frequency = labels.mean()
    assert np.abs(forecast[:, 1] - frequency).max() < 0.03
    assert log_loss(labels, forecast) < 0.35
