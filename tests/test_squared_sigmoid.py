"""The sigmoid of least squared loss: no lower minimum on a dense grid, and none beside
it on many rows.
"""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.special import expit

from skcalib._solvers.logistic import fit_squared_sigmoid


def loss(coef, x, labels, weight=1.0):
    return np.sum(weight * (expit(coef[0] * x + coef[1]) - labels) ** 2)


def lowest_on_a_grid(x, labels, weight):
    """The least loss over slopes in half octaves, both signs, and middles between and
    beyond the rows.
    """
    distinct = np.unique(x)
    places = np.r_[
        np.linspace(x.min() - 1, x.max() + 1, 201), (distinct[1:] + distinct[:-1]) / 2
    ]
    slopes = 2.0 ** np.arange(-8, 14, 0.5)
    lowest = min(loss((0, c), x, labels, weight) for c in np.linspace(-8, 8, 81))
    for slope in (*slopes, *-slopes):
        probability = expit(slope * (x - places[:, None]))
        lowest = min(lowest, ((probability - labels) ** 2 @ weight).min())
    return lowest


@pytest.mark.parametrize("seed", range(15))
def test_no_minimum_is_lower_than_the_one_found(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 100))
    x = rng.standard_normal(n)
    x = np.round(x, 1) if seed % 3 == 0 else x
    chance = [expit(2 * x), expit(-x), expit(3 * np.sin(4 * x)), np.full(n, 0.5)][
        seed % 4
    ]
    labels, weight = rng.random(n) < chance, rng.integers(1, 4, n).astype(float)
    found = loss(fit_squared_sigmoid(x, labels, weight), x, labels, weight)
    assert found <= lowest_on_a_grid(x, labels, weight) + 1e-7


@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_end_where_a_general_solver_does(weighted):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(60_000)
    labels = rng.random(60_000) < expit(1.5 * x - 0.3 + 0.5 * np.sin(3 * x))
    weight = rng.integers(1, 4, 60_000).astype(float) if weighted else None
    root = 1.0 if weight is None else np.sqrt(weight)
    twin = least_squares(
        lambda c: root * (expit(c[0] * x + c[1]) - labels),
        [1, 0],
        xtol=1e-13,
        ftol=1e-15,
        gtol=1e-15,
    )
    np.testing.assert_allclose(
        fit_squared_sigmoid(x, labels, weight), twin.x, rtol=1e-7
    )


def test_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    x, weight = rng.standard_normal(50), rng.integers(1, 4, 50)
    labels = rng.random(50) < expit(x)
    weighted = fit_squared_sigmoid(x, labels, weight.astype(float))
    repeated = fit_squared_sigmoid(np.repeat(x, weight), np.repeat(labels, weight))
    np.testing.assert_allclose(weighted, repeated, rtol=1e-8)


@pytest.mark.parametrize(
    "labels",
    [np.arange(20) > 9, np.arange(20) < 10, np.ones(20, bool), np.zeros(20, bool)],
)
def test_a_step_has_a_finite_slope_and_next_to_no_loss(labels):
    coef = fit_squared_sigmoid(np.linspace(-1, 1, 20), labels)
    assert np.isfinite(coef).all()
    assert loss(coef, np.linspace(-1, 1, 20), labels) < 1e-6


def test_one_position_predicts_the_base_rate():
    slope, intercept = fit_squared_sigmoid(np.zeros(12), np.arange(12) < 3)
    assert expit(intercept) == pytest.approx(0.25)
    assert np.isfinite(slope)
