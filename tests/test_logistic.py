"""The engine of the parametric maps against a general-purpose solver."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from skcalib._solvers.logistic import fit_logistic


def _problem(seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rng.integers(5, 120), 3)) @ rng.normal(size=(3, 3))
    features[:, 2] = 1
    targets = (rng.random(len(features)) < 0.5).astype(float)
    root = rng.normal(size=(3, 3))
    return (
        features,
        targets,
        rng.integers(0, 4, len(targets)).astype(float),
        root @ root.T * 10.0 ** rng.integers(-2, 2),
    )


def _loss(coef, features, targets, weight, penalty, start):
    z = features @ coef
    return (
        np.sum(weight * (np.logaddexp(0, z) - targets * z))
        + (coef - start) @ penalty @ (coef - start) / 2
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "start", [np.zeros(3), np.array([0.5, 1, -2])], ids=["zero", "elsewhere"]
)
def test_bounds_and_a_full_penalty_against_slsqp(start):
    on_bound = 0
    for seed in range(150):
        features, targets, weight, penalty = _problem(seed)
        problem = (features, targets, weight, penalty, start)
        coef = fit_logistic(
            features,
            targets,
            weight,
            centre=start,
            penalty=penalty,
            lower=np.array([0, 0, -np.inf]),
        )
        twin = minimize(
            _loss,
            start,
            args=problem,
            method="SLSQP",
            bounds=[(0, None), (0, None), (None, None)],
            options={"ftol": 1e-14, "maxiter": 1000},
        )
        assert coef[:2].min() >= 0
        assert _loss(coef, *problem) <= twin.fun + 1e-9 * max(1, abs(twin.fun))
        on_bound += np.any(coef[:2] == 0)
    assert 30 < on_bound < 150  # both cases occur


def test_a_diagonal_penalty_is_a_matrix():
    features, targets, weight, _ = _problem(0)
    diagonal = np.array([1.0, 2.0, 0.5])
    vector, matrix = (
        fit_logistic(features, targets, weight, penalty=one)
        for one in (diagonal, np.diag(diagonal))
    )
    np.testing.assert_array_equal(vector, matrix)


def test_separable_classes_end_at_a_finite_point_of_tiny_loss():
    features = np.column_stack((np.linspace(-1, 1, 20), np.ones(20)))
    coef = fit_logistic(features, (features[:, 0] > 0).astype(float))
    assert np.isfinite(coef).all()
    assert (
        np.abs(
            np.maximum(0, 1 - np.sign(features @ coef) * np.sign(features[:, 0]))
        ).max()
        == 0
    )


def test_an_offset_is_a_feature_whose_coefficient_is_one():
    rng = np.random.default_rng(5)
    offset, features = (
        rng.standard_normal(2000),
        np.column_stack((np.ones(2000), rng.standard_normal(2000))),
    )
    targets = (
        rng.random(2000) < 1 / (1 + np.exp(-offset - features @ [0.3, -0.5]))
    ).astype(float)
    weights = rng.random(2000)

    def loss(coef):
        log_odds = offset + features @ coef
        return weights @ (np.logaddexp(0, log_odds) - targets * log_odds)

    expected = minimize(loss, [0, 0], options={"gtol": 1e-9}).x
    np.testing.assert_allclose(
        fit_logistic(features, targets, weights, offset=offset), expected, atol=1e-6
    )


def test_a_bound_that_holds_takes_no_more_steps():
    # The slope at the upper end of a parabola, which is not negative, is 0 at the best
    # point. It starts far from it.
    rng = np.random.default_rng(4)
    z = np.concatenate((np.repeat([-36.0, 36.0], 300), rng.uniform(-3, 3, 1400)))
    position = (z + 36) / 72
    features = np.column_stack(
        (np.ones(2000), position - position**2 / 2, position**2 / 2)
    )
    labels = rng.random(2000) < expit(np.minimum(1.5 * z, 1))
    passes = []

    def counted(rows):
        passes.append(rows)
        return features[rows].T.copy()

    coef = fit_logistic(
        counted,
        labels,
        centre=np.array([-36.0, 72, 72]),
        lower=np.array([-np.inf, 0, 0]),
    )
    assert coef[2] == 0
    np.testing.assert_allclose(
        coef[:2], fit_logistic(features[:, :2], labels), rtol=1e-6
    )
    assert len(passes) < 15


@pytest.mark.slow
@pytest.mark.parametrize("has_bounds", [False, True], ids=["free", "bounded"])
def test_starts_without_curvature_lead_to_the_minimum(has_bounds):
    """All predicted probabilities are 0 or 1 there, and a Newton step leads nowhere."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 300))
        # log-odds of a classifier that is nearly always certain, and mostly wrong
        certain = 36.0 * np.sign(rng.normal(size=n)) * (rng.random(n) < 0.95)
        features = np.column_stack((certain, np.ones(n)))
        targets = np.clip(rng.random(n) < 0.08, 0.01, 0.99)
        start = np.array([1.0, float(rng.normal() * 300)])
        penalty = np.diag([1.0, 0.0])
        lower = np.array([0.0 if has_bounds else -np.inf, -np.inf])
        weight = np.ones(n)
        coef = fit_logistic(
            features, targets, centre=start, penalty=penalty, lower=lower
        )
        problem = (features, targets, weight, penalty, start)
        twin = minimize(
            _loss,
            np.zeros(2),
            args=problem,
            method="L-BFGS-B",
            bounds=[(lower[0], None), (None, None)],
            options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000},
        )
        assert _loss(coef, *problem) <= twin.fun + 1e-6 * max(1, abs(twin.fun))
