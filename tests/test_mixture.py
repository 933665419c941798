"""Mixture weights: the conditions of an optimum, and the slow and sure way there by
expectation maximisation.
"""

import numpy as np
import pytest

from skcalib._solvers.mixture import fit_mixture_weights


def expectation_maximisation(likelihoods, weights, steps):
    mixture = [1 / len(likelihoods[0])] * len(likelihoods[0])
    for _ in range(steps):
        shares = [0.0] * len(mixture)
        for row, weight in zip(likelihoods, weights, strict=True):
            total = sum(m * p for m, p in zip(mixture, row, strict=True))
            for k, p in enumerate(row):
                shares[k] += weight * mixture[k] * p / total
        mixture = [share / sum(weights) for share in shares]
    return mixture


def draw(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 150)), int(rng.integers(1, 7))
    likelihoods = rng.random((n, m)) ** rng.choice([0.3, 1, 6])
    if seed % 3 == 0:
        likelihoods[:, 0] = likelihoods[:, -1]  # the same forecast twice
    return likelihoods, rng.integers(1, 5, n).astype(float) if seed % 2 else None


@pytest.mark.parametrize("seed", range(60))
def test_weights_meet_the_conditions_of_an_optimum(seed):
    # Kuhn and Tucker: sum_i w_i L_ik / (L_i v) / sum w is 1 where v_k > 0 and at most 1
    # elsewhere.
    likelihoods, weight = draw(seed)
    mixture = fit_mixture_weights(likelihoods, weight)
    share = (
        np.full(len(likelihoods), 1 / len(likelihoods))
        if weight is None
        else weight / weight.sum()
    )
    excess = share @ (likelihoods / (likelihoods @ mixture)[:, None]) - 1
    assert (mixture >= 0).all()
    assert mixture.sum() == pytest.approx(1, abs=1e-12)
    assert excess.max() < 1e-9
    assert abs(mixture * excess).max() < 1e-9


def test_is_where_expectation_maximisation_goes():
    rng = np.random.default_rng(1)
    likelihoods, weights = rng.random((40, 3)), rng.integers(1, 4, 40).astype(float)
    expected = expectation_maximisation(
        likelihoods.tolist(), weights.tolist(), steps=3000
    )
    np.testing.assert_allclose(
        fit_mixture_weights(likelihoods, weights), expected, atol=1e-6
    )


def test_by_hand():
    # Two forecasts that are certain of 3 rows and of 1 row, and exclude the others:
    # weights 3/4 and 1/4.
    likelihoods = np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]])
    np.testing.assert_allclose(fit_mixture_weights(likelihoods), [0.75, 0.25])
    np.testing.assert_allclose(
        fit_mixture_weights(likelihoods, np.array([1.0, 1, 1, 3])), [0.5, 0.5]
    )


def test_weights_are_repeated_rows():
    likelihoods, _ = draw(4)
    weight = np.random.default_rng(0).integers(1, 5, len(likelihoods))
    repeated = fit_mixture_weights(np.repeat(likelihoods, weight, axis=0))
    np.testing.assert_allclose(
        fit_mixture_weights(likelihoods, weight.astype(float)), repeated, atol=1e-10
    )


def test_tiny_likelihoods_are_no_trouble():
    likelihoods = np.array([[1e-300, 1e-301], [1e-200, 1e-16], [0.5, 0.1]])
    mixture = fit_mixture_weights(likelihoods)
    assert np.isfinite(mixture).all()
    assert mixture.sum() == pytest.approx(1)
