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


def _log_cosine(order):
    """Return the first derivatives of log(cosh(x - 2)) - x / 2, whose minimum is at 2
    + artanh(1 / 2).
    """

    def derivatives(x):
        t = np.tanh(x - 2)
        return (t - 0.5, 1 - t**2, -2 * t * (1 - t**2))[:order]

    return _counted(derivatives)


@pytest.mark.parametrize("start", [1e-3, 2.4, 40.0])
def test_third_derivatives_save_steps(start):
    minimum = 2 + np.arctanh(0.5)
    two, three = _log_cosine(2), _log_cosine(3)
    for derivatives, tolerance in ((two, 1e-6), (three, 1e-4)):
        found = minimise_convex(derivatives, np.array([start]), BOUNDS, tolerance)
        np.testing.assert_allclose(found, minimum, rtol=1e-10)
    assert three.calls < two.calls


@pytest.mark.parametrize("third", [np.inf, -np.inf, np.nan, 1e300, -1e300])
def test_third_derivatives_that_say_nothing_do_no_harm(third):
    def derivatives(x):
        return x - 5, np.ones_like(x), np.full_like(x, third)

    found = minimise_convex(derivatives, np.ones(1), BOUNDS, 1e-12)
    np.testing.assert_allclose(found, 5, rtol=1e-10)


def test_a_start_at_the_minimum_takes_one_evaluation():
    # The slope is below the rounding of the point, but not 0.
    points = []

    def derivatives(at):
        points.append(at.copy())
        return (at - 1) - 1e-18, np.ones(1)

    assert minimise_convex(derivatives, np.array([1.0]), (0.1, 10.0)).tolist() == [1.0]
    assert len(points) == 1
