"""Newton's method inside a bracket: the minimum of whatever is convex."""

import numpy as np
import pytest
from scipy.optimize import brentq

from skcalib._solvers.newton import minimise_convex

BOUNDS = 1e-3, 1e3


def _counted(function):
    def derivatives(at):
        derivatives.calls += 1
        return function(at)

    derivatives.calls = 0
    return derivatives


def test_separate_functions_are_minimised_together():
    at = np.array([0.01, 0.5, 3.0, 700.0, 1e-3, 1e3])

    def derivatives(x):
        return np.arctan(np.log(x / at)), 1 / (x * (1 + np.log(x / at) ** 2))

    for start in (1.0, 1e-3, 1e3):
        np.testing.assert_allclose(
            minimise_convex(derivatives, np.full(6, start), BOUNDS), at, rtol=1e-10
        )


@pytest.mark.parametrize("target", [1e-9, 1e9])
def test_minima_beyond_the_bounds_are_on_them(target):
    def derivatives(x):
        return x - target, np.ones_like(x)

    derivatives = _counted(derivatives)
    assert minimise_convex(derivatives, np.ones(1), BOUNDS) == np.clip(target, *BOUNDS)
    assert derivatives.calls < 10


def test_steps_that_overshoot_are_halved():
    def slope(x):
        # of which Newton's step is five times too long
        return np.sign(x - 2) * np.abs(x - 2) ** 0.2

    def derivatives(x):
        return slope(x), 0.2 * np.abs(x - 2) ** -0.8

    found = minimise_convex(derivatives, np.array([7.3]), BOUNDS, tolerance=1e-12)[0]
    assert found == pytest.approx(brentq(slope, 1, 3), rel=1e-9)


def test_a_kink_is_a_minimum():
    def derivatives(x):
        return np.where(x < 0.3, -1.0, 1.0), np.zeros_like(x)

    assert minimise_convex(derivatives, np.ones(1), BOUNDS)[0] == pytest.approx(
        0.3, rel=1e-9
    )


def test_a_function_that_ends_flat_has_its_minimum_there():
    def derivatives(x):
        return np.where(x < 50, -1.0, 0.0), np.zeros_like(x)

    assert minimise_convex(derivatives, np.ones(1), BOUNDS)[0] >= 50
    assert minimise_convex(lambda x: (0 * x, 0 * x), np.array([3.0]), BOUNDS)[0] == 3


def test_a_settled_function_waits_for_the_others():
    def derivatives(x):
        return x - np.array([1.0, 500.0]), np.array([1.0, 1e-3])

    np.testing.assert_allclose(
        minimise_convex(derivatives, np.ones(2), BOUNDS), [1, 500], rtol=1e-10
    )


def test_a_start_at_the_minimum_takes_one_evaluation():
    # The slope is below the rounding of the point, but not 0.
    points = []

    def derivatives(at):
        points.append(at.copy())
        return (at - 1) - 1e-18, np.ones(1)

    assert minimise_convex(derivatives, np.array([1.0]), (0.1, 10.0)).tolist() == [1.0]
    assert len(points) == 1
