"""Spline calibration: the objective written plainly, exact leave-one-out, knots, tails,
monotone fits.
"""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.special import expit, logit

from skcalib import SplineCalibration
from skcalib._solvers.temperature import smoothed_inverse_temperature
from skcalib.recalibrators._spline import _leave_one_out_loss, _quantile_knots


def sample(n=300, seed=0):
    """Event frequencies that bend both ways in the log-odds."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, n)
    return z, rng.random(n) < expit(0.7 * z + np.sin(1.5 * z))


def objective(values, knots, z, y, weights, inverse_temperature, roughness_penalty):
    """Log-loss, curvature integral and ridge of the natural spline through (knots,
    values), term by term.
    """
    spline = CubicSpline(knots, values, bc_type="natural")
    total = 0.0
    for x, label, weight in zip(z, y, weights, strict=True):
        inside = min(max(x, knots[0]), knots[-1])
        eta = float(spline(inside) + spline(inside, 1) * (x - inside))
        total += weight * (math.log1p(math.exp(-abs(eta))) + max(eta, 0) - label * eta)
    # d^2 g / d(bz)^2 = g'' / b^2 and d(bz) = b dz: the integral of g''^2 over z,
    # divided by b^3
    pieces = zip(knots, knots[1:], strict=False)
    bend = (
        sum(quad(lambda x: float(spline(x, 2)) ** 2, a, b)[0] for a, b in pieces)
        / inverse_temperature**3
    )
    ridge = sum(
        (v - inverse_temperature * k) ** 2 for v, k in zip(values, knots, strict=True)
    )
    return total + roughness_penalty / 2 * bend + 0.1 / 2 * ridge


@pytest.mark.parametrize("roughness_penalty", [0.1, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_is_the_minimum_of_the_objective(roughness_penalty, weighted):
    z, y = sample(80)
    weights = (
        np.random.default_rng(1).integers(1, 4, 80).astype(float)
        if weighted
        else np.ones(80)
    )
    model = SplineCalibration(
        5, roughness_penalty=roughness_penalty, input="logit", clip=None
    ).fit(z, y, sample_weight=weights)
    b = smoothed_inverse_temperature(z, y, weights)
    assert b * (model.knots_[-1] - model.knots_[0]) > 1

    def at(values):
        return objective(values, model.knots_, z, y, weights, b, roughness_penalty)

    lowest = at(model.knot_log_odds_)
    # the derivative vanishes in every coordinate, and the objective rises
    for j in range(5):
        step = 1e-3 * np.eye(5)[j]
        up, down = at(model.knot_log_odds_ + step), at(model.knot_log_odds_ - step)
        assert min(up, down) > lowest
        assert abs(up - down) / 2e-3 < 1e-4


@pytest.mark.slow
def test_penalty_is_the_one_of_least_leave_one_out_loss():
    # Refit without each row in turn, with the temperature and the knots of all rows.
    z, y = sample(30, seed=3)
    chosen = SplineCalibration(5, input="logit", clip=None).fit(z, y).roughness_penalty_
    b = smoothed_inverse_temperature(z, y, None)
    knots = _quantile_knots(z, y, None, 5)
    losses = {}
    for roughness_penalty in (0.1, 1.0, 10.0, 100.0, 1e4):
        loss = 0.0
        for i in range(30):
            rest = np.arange(30) != i
            values = _refit(z[rest], y[rest], knots, b, roughness_penalty)
            eta = _evaluate(values, knots, z[i])
            loss += np.logaddexp(0, eta) - y[i] * eta
        losses[roughness_penalty] = loss
    assert losses[chosen] <= min(losses.values()) * 1.01


def _refit(z, y, knots, b, roughness_penalty):
    """Newton's method on the knot values, in the cardinal basis."""
    basis = np.column_stack([_evaluate(row, knots, z) for row in np.eye(len(knots))])
    bend = np.array(
        [
            CubicSpline(knots, row, bc_type="natural")(knots, 2)
            for row in np.eye(len(knots))
        ]
    )
    h = np.diff(knots)
    mass = (
        np.diag(np.append(h, 0) + np.append(0, h)) / 3
        + np.diag(h, 1) / 6
        + np.diag(h, -1) / 6
    )
    penalty = roughness_penalty * bend @ mass @ bend.T / b**3 + 0.1 * np.eye(len(knots))
    values = b * knots
    for _ in range(50):
        p = expit(basis @ values)
        gradient = basis.T @ (p - y) + penalty @ (values - b * knots)
        values = values - np.linalg.solve(
            (basis.T * (p * (1 - p))) @ basis + penalty, gradient
        )
    return values


def _evaluate(values, knots, x):
    spline = CubicSpline(knots, values, bc_type="natural")
    inside = np.clip(x, knots[0], knots[-1])
    return spline(inside) + spline(inside, 1) * (x - inside)


@pytest.mark.slow
def test_leave_one_out_is_exact_to_second_order():
    rng = np.random.default_rng(4)
    features = np.column_stack((np.ones(200), rng.standard_normal((200, 2))))
    y = (rng.random(200) < expit(features @ [0.2, 1, -1])).astype(float)
    penalty = np.diag([0.1, 1.0, 1.0])

    def fit(rows):
        coef = np.zeros(3)
        for _ in range(50):
            p = expit(features[rows] @ coef)
            hessian = (features[rows].T * (p * (1 - p))) @ features[rows] + penalty
            coef = coef - np.linalg.solve(
                hessian, features[rows].T @ (p - y[rows]) + penalty @ coef
            )
        return coef

    everything = np.ones(200, dtype=bool)
    exact = 0.0
    for i in range(200):
        eta = features[i] @ fit(np.arange(200) != i)
        exact += np.logaddexp(0, eta) - y[i] * eta
    in_sample = np.sum(
        np.logaddexp(0, features @ fit(everything)) - y * (features @ fit(everything))
    )
    approximate = _leave_one_out_loss(features.T, y, None, fit(everything), penalty)
    assert abs(approximate - exact) < 0.02 * (exact - in_sample)
    twice = _leave_one_out_loss(
        features.T, y, np.full(200, 2.0), fit(everything), 2 * penalty
    )
    rows = np.repeat(np.arange(200), 2)
    repeated = _leave_one_out_loss(
        features[rows].T, y[rows], None, fit(everything), 2 * penalty
    )
    assert twice == pytest.approx(repeated, rel=1e-12)


def test_follows_what_a_straight_line_cannot():
    z, y = sample(6000)
    fit, held_out = slice(0, 3000), slice(3000, None)
    losses = {}
    for roughness_penalty in (None, 1e8):
        model = SplineCalibration(
            roughness_penalty=roughness_penalty, input="logit", clip=None
        ).fit(z[fit], y[fit])
        p = model.predict_proba(z[held_out])
        losses[roughness_penalty] = -np.mean(
            np.log(p[np.arange(3000), y[held_out].astype(int)])
        )
    truth = expit(0.7 * z[held_out] + np.sin(1.5 * z[held_out]))
    best = -np.mean(np.log(np.where(y[held_out], truth, 1 - truth)))
    assert losses[None] < best + 0.005
    assert losses[1e8] > best + 0.02


def test_stays_stiff_where_there_is_nothing_to_bend_for():
    rng = np.random.default_rng(5)
    z = rng.normal(0, 2, 2000)
    model = SplineCalibration(input="logit", clip=None).fit(
        z, rng.random(2000) < expit(z / 2)
    )
    assert model.roughness_penalty_ >= 100
    np.testing.assert_allclose(
        model.predict_proba([-3.0, 0.0, 3.0])[:, 1], expit([-1.5, 0, 1.5]), atol=0.05
    )


def test_tails_are_straight_in_the_log_odds():
    z, y = sample()
    model = SplineCalibration(input="logit", clip=None).fit(z, y)
    for beyond in (
        model.knots_[-1] + np.array([0.0, 1.0, 2.0]),
        model.knots_[0] - np.array([0.0, 1.0, 2.0]),
    ):
        steps = np.diff(logit(model.predict_proba(beyond)[:, 1]))
        assert steps[0] == pytest.approx(steps[1], rel=1e-6)


def test_knots_are_quantiles():
    # Four knots of ten scores: the first, the smallest with 1/3 and 2/3 of the rows (4
    # and 7 of 10), the last.
    z = np.arange(10.0)
    assert _quantile_knots(z, z > 5, None, 4).tolist() == [0, 3, 6, 9]
    assert _quantile_knots(np.repeat(z, 3), np.repeat(z > 5, 3), None, 4).tolist() == [
        0,
        3,
        6,
        9,
    ]
    assert _quantile_knots(z, z > 5, np.array([97.0] + [1.0 / 3] * 9), 4).tolist() == [
        0,
        9,
    ]
    assert len(_quantile_knots(np.full(5, 2.0), np.ones(5, dtype=bool), None, 4)) == 2


@pytest.mark.parametrize("seed", range(5))
def test_monotone_fits_never_fall(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, 200)
    y = rng.random(200) < expit(3 * np.sin(z))
    grid = np.linspace(-9, 9, 2001)
    free, monotone = (
        SplineCalibration(
            roughness_penalty=0.1, monotone=one, input="logit", clip=None
        ).fit(z, y)
        for one in (False, True)
    )
    assert np.diff(free.predict_proba(grid)[:, 1]).min() < -1e-3
    assert np.diff(monotone.predict_proba(grid)[:, 1]).min() > -1e-12


def test_monotone_is_no_bound_where_the_free_fit_rises():
    rng = np.random.default_rng(6)
    z = rng.normal(0, 2, 3000)
    y = rng.random(3000) < expit(z + 0.3 * np.sin(z))
    models = [
        SplineCalibration(monotone=one, input="logit", clip=None).fit(z, y)
        for one in (False, True)
    ]
    np.testing.assert_allclose(
        models[0].knot_log_odds_, models[1].knot_log_odds_, atol=1e-6
    )


def test_a_model_that_ranks_the_wrong_way_round():
    rng = np.random.default_rng(7)
    scores = rng.random(1000)
    y = rng.random(1000) < 1 - scores
    free = SplineCalibration().fit(scores, y).predict_proba([0.1, 0.9])[:, 1]
    np.testing.assert_allclose(free, [0.9, 0.1], atol=0.06)
    monotone = (
        SplineCalibration(monotone=True).fit(scores, y).predict_proba([0.1, 0.9])[:, 1]
    )
    np.testing.assert_allclose(monotone, 0.5, atol=0.06)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("scores", "labels"),
    [
        (np.linspace(0.01, 0.99, 30), np.arange(30) > 14),  # separable
        (np.repeat([0.0, 1.0], 10), np.arange(20) % 10 < 2),  # exact zeros and ones
        (np.full(12, 0.3), np.arange(12) < 5),  # one score
        # two that hardly differ
        (np.array([0.3, 0.3 + 1e-13] * 10), np.arange(20) % 3 == 0),
        (np.array([0.2]), np.array([True])),  # one row
        (np.linspace(0.1, 0.9, 9), np.ones(9, dtype=bool)),  # one class
    ],
)
def test_hard_samples_stay_finite(scores, labels, monotone):
    model = SplineCalibration(classes=[False, True], monotone=monotone).fit(
        scores, labels
    )
    p = model.predict_proba(np.linspace(0, 1, 101))[:, 1]
    assert ((p > 0) & (p < 1)).all()
    at_scores = model.predict_proba(scores)[:, 1]
    if len(scores) > 1:
        assert abs(at_scores.mean() - labels.mean()) < 0.2


def test_one_score_predicts_the_base_rate():
    # The ridge of .1 at two knots weighs little against 12 rows.
    p = (
        SplineCalibration()
        .fit(np.full(12, 0.3), np.arange(12) < 5)
        .predict_proba([0.3])[0, 1]
    )
    assert abs(p - 5 / 12) < 0.005


@pytest.mark.parametrize(("n_rows", "weighted"), [(10_000, False), (40_000, True)])
def test_many_rows_have_the_fit_that_none_are_condensed_for(
    n_rows, weighted, monkeypatch
):
    z, y = sample(n_rows, seed=8)
    weight = None
    if weighted:
        weight = np.random.default_rng(9).integers(1, 4, n_rows).astype(float)
    condensed = SplineCalibration(input="logit", clip=None).fit(
        z, y, sample_weight=weight
    )
    monkeypatch.setattr(
        "skcalib.recalibrators._spline.condensed", lambda *rows, fewest_rows: rows
    )
    plain = SplineCalibration(input="logit", clip=None).fit(z, y, sample_weight=weight)
    assert condensed.roughness_penalty_ == plain.roughness_penalty_
    np.testing.assert_allclose(
        condensed.knot_log_odds_, plain.knot_log_odds_, rtol=1e-9
    )


def test_scores_that_differ_by_rounding_are_one_knot():
    scores = np.array([0.05, 0.2, 0.3, 0.45, 0.6, 0.8, 1 - 2.0**-53, 1.0])
    labels, weights = (
        np.array([0, 0, 1, 0, 1, 1, 0, 1]),
        np.array([3, 2, 1, 3, 1, 3, 1, 3]),
    )
    rows = np.repeat(np.arange(8), weights)
    for fraction in (0.03, 0.3):
        fits = {
            "weighted": (scores, labels, weights),
            "repeated": (scores[rows], labels[rows], None),
        }
        fits = [SplineCalibration(clip=fraction).fit(*given) for given in fits.values()]
        assert np.diff(fits[0].knots_).min() > 1e-6
        curves = [fit.predict_proba(np.linspace(0, 1, 99)) for fit in fits]
        np.testing.assert_allclose(*curves, atol=1e-9)
    nearly_equal = SplineCalibration(input="logit", roughness_penalty=1.0).fit(
        [1.0, 1 + 1e-15, 1 + 2e-15], [0, 1, 1]
    )
    assert 0.3 < nearly_equal.predict_proba([1.1])[0, 1] < 0.95


@pytest.mark.parametrize(("wiggles", "chosen"), [(12, 0.1), (0, 1e4)])
def test_the_documented_candidates_reach_from_wiggles_to_lines(wiggles, chosen):
    rng = np.random.default_rng(0)
    scores = rng.random(4000)
    truth = 0.5 + 0.45 * np.sin(wiggles * scores) if wiggles else scores
    assert (
        SplineCalibration().fit(scores, rng.random(4000) < truth).roughness_penalty_
        == chosen
    )
