"""The closed test of updates against likelihood ratios of our own."""

import numpy as np
import pytest
from _catalog import refused
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import chi2

from skcalib.evaluation import update_test


def _world(n, seed, a=0.0, b=1.0, c=0.0):
    """Return events, probabilities and a feature; a, b and c are what the probabilities
    lack.
    """
    rng = np.random.default_rng(seed)
    z, u = rng.normal(size=n, scale=1.5), rng.normal(size=n)
    return rng.random(n) < expit(a + b * z + c * u), expit(z), u


def _tested(n, seed, **lacks):
    """Return the test of such a world."""
    y, p, u = _world(n, seed, **lacks)
    return update_test(y, p, features=u)


def _likelihood(columns, y, offset):
    """Return the largest log-likelihood by a general method."""

    def loss(coef):
        z = columns @ coef + offset
        return np.sum(np.logaddexp(0, z) - y * z), columns.T @ (expit(z) - y)

    start = np.zeros(columns.shape[1])
    return -minimize(loss, start, jac=True, method="BFGS").fun


def test_is_the_likelihood_ratio_of_each_step_against_the_last():
    y, p, u = _world(400, 0, a=0.2, b=0.8, c=0.1)
    u = 50 + 10 * u
    result = update_test(y, p, features=u)
    z = np.log(p / (1 - p))
    ones, standard = np.ones(400), (u - 50) / 10
    none = -np.sum(np.logaddexp(0, z) - y * z)
    expected = [
        none,
        _likelihood(ones[:, None], y, z),
        _likelihood(np.column_stack((ones, z)), y, 0),
        _likelihood(np.column_stack((ones, z, standard)), y, 0),
    ]
    np.testing.assert_allclose(result.log_likelihood, expected, atol=1e-6)
    assert result.degrees_of_freedom.tolist() == [3, 2, 1, 0]
    statistic = 2 * (expected[-1] - np.array(expected))
    np.testing.assert_allclose(result.statistic, statistic, atol=1e-5)
    np.testing.assert_allclose(
        result.pvalue[:3], chi2.sf(statistic[:3], [3, 2, 1]), atol=1e-6
    )
    rejected = result.pvalue <= 0.05
    assert result.chosen == result.step[np.argmin(rejected)]


@pytest.mark.parametrize(
    ("lacks", "chosen", "words"),
    [
        ({}, "none", "Keep the probabilities"),
        ({"a": 0.8}, "intercept", "Update the intercept alone"),
        ({"a": 0.3, "b": 0.5}, "slope", "Update the intercept and the slope: updating"),
        ({"c": 0.5}, "features", "every simpler step is rejected"),
    ],
)
def test_names_the_step_that_pays(lacks, chosen, words):
    result = _tested(3000, 1, **lacks)
    assert result.chosen == chosen
    assert words in str(result).splitlines()[0]
    assert len(result) == 4


def test_without_features_the_slope_is_the_last_step():
    y, p, _ = _world(1000, 0, b=0.5)
    result = update_test(y, p)
    assert result.step.tolist() == ["none", "intercept", "slope"]
    assert result.chosen == "slope"
    assert result.pvalue[-1] == 1


def test_columns_that_say_nothing_are_no_coefficients():
    y, p, u = _world(500, 0)
    z = np.log(p / (1 - p))
    features = np.column_stack((u, 3 * u + 1, np.full(500, 7.0), z))
    result = update_test(y, p, features=features)
    assert result.degrees_of_freedom.tolist() == [3, 2, 1, 0]
    np.testing.assert_allclose(
        result.log_likelihood, update_test(y, p, features=u).log_likelihood, atol=1e-6
    )
    same = update_test(y, p, features=np.full(500, 7.0))
    assert same.degrees_of_freedom.tolist() == [2, 1, 0, 0]
    assert same.pvalue[2] == 1


def test_refusals_and_few_events():
    y, p, u = _world(200, 0)
    hole = u.copy()
    hole[3] = np.nan
    with refused(ValueError, "features", "missing value in row 3"):
        update_test(y, p, features=hole)
    with refused(ValueError, "features has 100 rows", "200"):
        update_test(y, p, features=u[:100])
    with refused(ValueError, "one event"):
        update_test(np.arange(90) % 3, np.full((90, 3), 1 / 3))
    with refused(ValueError, "one class only"):
        update_test(np.ones(50), p[:50])
    with pytest.warns(UserWarning, match="The rarer label has .* for 3 coefficients"):
        update_test(y[:40], p[:40], features=u[:40])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacks", "steps"),
    [({}, ["none"]), ({"a": 0.5}, ["none", "intercept"])],
)
def test_larger_steps_are_rarely_taken_without_need(lacks, steps):
    """The level of the closed test: .05, here within the error of 600 runs."""
    chosen = [_tested(500, k, **lacks).chosen for k in range(600)]
    assert np.mean([step not in steps for step in chosen]) < 0.05 + 3 * 0.009
