"""Platt scaling against a logistic regression on the log-odds, and the conditions of a
minimum by hand.
"""

import math

import numpy as np
import pytest
from _twins import repeated
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib import BetaCalibration, PlattScaling, QuadraticScaling, SplineCalibration


def _sample(n=400, slope=0.6, intercept=0.4):
    rng = np.random.default_rng(0)
    log_odds = rng.normal(scale=2, size=n)
    return log_odds, rng.random(n) < expit(slope * log_odds + intercept)


def _slopes(function, slope, intercept, step=1e-6):
    """Return the two central differences of a loss."""
    return (
        (function(slope + step, intercept) - function(slope - step, intercept))
        / (2 * step),
        (function(slope, intercept + step) - function(slope, intercept - step))
        / (2 * step),
    )


def _loss(z, targets, weights, kind):
    def value(slope, intercept):
        total = 0.0
        for zi, t, w in zip(z.tolist(), targets, weights, strict=True):
            p = 1 / (1 + math.exp(-(slope * zi + intercept)))
            total += w * (
                (p - t) ** 2
                if kind == "squared"
                else -t * math.log(p) - (1 - t) * math.log(1 - p)
            )
        return total / sum(weights)

    return value


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("loss", "smooth_targets"),
    [("log", True), ("log", False), ("squared", True), ("squared", False)],
)
def test_fit_is_the_minimum(loss, smooth_targets, weighted):
    z, y = _sample()
    weights = (np.arange(len(y)) % 3 + 0.5).tolist() if weighted else [1.0] * len(y)
    model = PlattScaling(loss=loss, smooth_targets=smooth_targets, input="logit").fit(
        z, y, weights if weighted else None
    )
    positives = sum(w for w, event in zip(weights, y, strict=True) if event)
    negatives = sum(weights) - positives
    if smooth_targets and loss == "log":
        targets = [
            (positives + 1) / (positives + 2) if event else 1 / (negatives + 2)
            for event in y
        ]
    else:
        targets = [float(event) for event in y]
    value = _loss(z, targets, weights, loss)
    assert max(map(abs, _slopes(value, model.slope_, model.intercept_))) < 1e-8
    assert all(
        value(model.slope_, model.intercept_)
        < value(model.slope_ + a, model.intercept_ + b)
        for a, b in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3))
    )


def test_without_smoothing_it_is_logistic_regression():
    z, y = _sample()
    model = PlattScaling(smooth_targets=False, input="logit").fit(z, y)
    twin = LogisticRegression(C=1e12, tol=1e-12, max_iter=1000).fit(z[:, None], y)
    assert model.slope_ == pytest.approx(twin.coef_[0, 0], rel=1e-5)
    assert model.intercept_ == pytest.approx(twin.intercept_[0], rel=1e-5)


def test_it_works_on_log_odds():
    z, y = _sample()
    on_logits = PlattScaling(input="logit").fit(z, y)
    on_probabilities = PlattScaling().fit(expit(z), y)
    assert on_probabilities.slope_ == pytest.approx(on_logits.slope_)
    assert on_probabilities.intercept_ == pytest.approx(on_logits.intercept_)
    columns = np.column_stack((1 + 0 * z, z + 1))  # two logits: their difference counts
    two = PlattScaling(input="logit").fit(columns, y)
    assert two.slope_ == pytest.approx(on_logits.slope_)
    np.testing.assert_allclose(two.predict_proba(columns), on_logits.predict_proba(z))


def test_map_is_the_sigmoid_it_says():
    z, y = _sample()
    model = PlattScaling().fit(expit(z), y)
    scores = np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        model.predict_proba(scores)[:, 1],
        expit(model.slope_ * logit(scores) + model.intercept_),
        rtol=1e-12,
    )


@pytest.mark.parametrize("loss", ["log", "squared"])
@pytest.mark.parametrize(
    ("scale", "shift"), [(1e-6, 0), (1e6, 0), (1, 1e4), (1e-3, -7), (1e50, 0)]
)
def test_slope_and_intercept_follow_the_scale_of_the_scores(loss, scale, shift):
    z, y = _sample()
    model = PlattScaling(loss=loss, input="logit").fit(z, y)
    other = PlattScaling(loss=loss, input="logit").fit(scale * z + shift, y)
    np.testing.assert_allclose(
        other.predict_proba(scale * z + shift), model.predict_proba(z), atol=1e-7
    )


@pytest.mark.parametrize("params", [{}, {"smooth_targets": False}, {"loss": "squared"}])
@pytest.mark.parametrize("sign", [1, -1])
def test_separable_classes_stay_inside(params, sign):
    z, y = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 0, 1, 1])
    model = PlattScaling(input="logit", **params).fit(sign * z, y)
    assert np.isfinite([model.slope_, model.intercept_]).all()
    assert np.sign(model.slope_) == sign
    for scores in (z, np.array([-1e3, 1e3, 1e90])):
        proba = model.predict_proba(scores)
        assert proba.min() >= 2**-52
        assert proba.max() <= 1 - 2**-52
        assert np.isfinite(log_loss(np.zeros(len(scores)), proba, labels=[0, 1]))


def test_extreme_probabilities_are_clipped_at_both_ends():
    # 0 and 1 are log-odds of -+36.04, and an exact 1 may be the complement of 1e-300.
    model = PlattScaling().fit([0.2, 0.4, 0.6, 0.8, 0.5, 0.5], [0, 0, 1, 1, 1, 0])
    low, tiny, high, almost = model.predict_proba([0.0, 1e-300, 1.0, 1 - 2**-53])[:, 1]
    assert low == tiny > 0
    assert high == almost < 1


def test_platts_targets_count_weights():
    # All scores equal: the fit is the mean target, of 3 events and 1 other (weights 1):
    # (3 * 4/5 + 1/3) / 4.
    model = PlattScaling().fit([0.3] * 4, [1, 1, 1, 0])
    assert model.predict_proba([0.3])[0, 1] == pytest.approx((3 * 4 / 5 + 1 / 3) / 4)
    weighted = PlattScaling().fit([0.3] * 2, [1, 0], [3, 1])
    assert weighted.predict_proba([0.3])[0, 1] == pytest.approx((3 * 4 / 5 + 1 / 3) / 4)


@pytest.mark.parametrize("score", [0.1, 0.3, 0.5, 0.7, 0.999])
@pytest.mark.parametrize(
    "model",
    [
        PlattScaling(smooth_targets=False),
        PlattScaling(loss="squared"),
        BetaCalibration(smooth_targets=False),
    ],
)
def test_one_score_gives_the_base_rate_whatever_its_rounding(model, score):
    # The weighted mean of equal scores misses them by an ulp: a slope on that
    # difference would be 1e15.
    for scores in (
        [score, score],
        [score, np.nextafter(score, 1)] if score != 0.5 else [0.5, 0.5],
    ):
        proba = model.fit(scores, [0, 1], [2, 3]).predict_proba(scores)
        np.testing.assert_allclose(proba[:, 1], 3 / 5, atol=1e-6)


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_weights_are_repeated_rows(loss):
    z, y = _sample(100)
    weights = np.arange(100) % 4
    weighted = PlattScaling(loss=loss, input="logit").fit(z, y, weights)
    rows = PlattScaling(loss=loss, input="logit").fit(*repeated(weights, z, y))
    assert weighted.slope_ == pytest.approx(rows.slope_, rel=1e-7)
    assert weighted.intercept_ == pytest.approx(rows.intercept_, abs=1e-7)


def test_squared_loss_is_the_other_minimum():
    z, y = _sample(60)
    by_loss = {
        loss: PlattScaling(loss=loss, smooth_targets=False, input="logit").fit(z, y)
        for loss in ("log", "squared")
    }
    square = {
        loss: np.mean((model.predict_proba(z)[:, 1] - y) ** 2)
        for loss, model in by_loss.items()
    }
    logarithm = {
        loss: log_loss(y, model.predict_proba(z)) for loss, model in by_loss.items()
    }
    assert square["squared"] < square["log"]
    assert logarithm["log"] < logarithm["squared"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_columns_know_how_far_a_probability_is_from_1(dtype):
    # 1 - 1e-20 is 1 in floating point, and 1 - 1e-9 in single precision: the other
    # column still knows.
    rng = np.random.default_rng(0)
    z = np.concatenate((rng.normal(0, 6, 200), [20.0, 25.0, 30.0, -20.0, -30.0]))
    y = (rng.random(205) < expit(0.5 * z)).astype(int)
    both = np.column_stack((expit(-z), expit(z))).astype(dtype)
    for method in (PlattScaling, BetaCalibration, QuadraticScaling, SplineCalibration):
        expected = method(input="logit").fit(z, y).predict_proba(z)
        np.testing.assert_allclose(
            method().fit(both, y).predict_proba(both), expected, atol=1e-5
        )
