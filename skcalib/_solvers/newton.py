"""Newton's method kept safe: inside a bracket for functions of one variable, by shorter
steps for many.
"""

from contextlib import suppress

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

_MAX_STEPS = 100
_MAX_HALVINGS = 40
_NARROW = 1e-11  # relative width of a bracket that is not halved any more
_DAMPING = 1e-8  # the least that is added to a unit diagonal


def minimise_convex(derivatives, start, bounds, tolerance=1e-6):
    """Return the minima of separate convex functions of one positive variable each, by
    Newton's steps inside brackets, or Halley's where third derivatives are known.

    A step out of its bracket is replaced by the middle of the bracket on a logarithmic
    scale, and no step changes a variable more than tenfold.

    Parameters
    ----------
    derivatives : callable
        ``derivatives(points)`` takes one point for each function, (m,), and returns
        their first and their second derivatives there, (m,) each; it may also return
        their third ones.
    start : ndarray of shape (m,)
        Where to start.
    bounds : tuple of two floats
        Limits of the minima, 0 < low <= high.
    tolerance : float, default=1e-6
        A step that is shorter than this, relative to the point, is the last one. What
        it leaves is of the order of its square, or its cube with third derivatives.

    Returns
    -------
    minima : ndarray of shape (m,)
        A minimum of each function within the bounds. A function that falls for ever,
        and ends flat in floating point, has it where its slope is 0.
    """
    low, high = bounds
    point = np.clip(start, low, high)
    # Each minimum is between `bracket_low`, where the slope is negative, and
    # `bracket_high`, where it is positive; at first these are the bounds.
    bracket_low = np.full_like(point, low)
    bracket_high = np.full_like(point, high)
    is_settled = np.zeros(len(point), dtype=bool)
    for _ in range(_MAX_STEPS):
        slope, curvature, *higher = derivatives(point)
        bracket_low = np.where(slope < 0, point, bracket_low)
        bracket_high = np.where(slope > 0, point, bracket_high)
        # Newton's step, infinite where there is no curvature or next to none; it
        # changes a variable at most tenfold.
        with np.errstate(over="ignore"):
            step = np.divide(
                slope, curvature, out=np.copysign(np.inf, slope), where=curvature > 0
            )
        if higher:
            step = _halley_step(step, curvature, *higher)
        smallest = np.maximum(point / 10, low)
        largest = np.minimum(point * 10, high)
        newton = np.minimum(np.maximum(point - step, smallest), largest)
        # An end of the bracket is not inside, unless it is a bound: a minimum may lie
        # there.
        is_inside = (bracket_low < newton) & (newton < bracket_high)
        is_inside |= (newton == bracket_low) & (bracket_low == low)
        is_inside |= (newton == bracket_high) & (bracket_high == high)
        middle = np.sqrt(bracket_low) * np.sqrt(bracket_high)
        proposal = np.where(is_inside, newton, middle)
        # A point stays where it is once it is settled, where its slope is 0, and where
        # its Newton step is below its rounding.
        stays = is_settled | (slope == 0) | (newton == point)
        proposal = np.where(stays, point, proposal)
        settling_distance = np.where(is_inside, tolerance, _NARROW) * point
        is_settled |= np.abs(proposal - point) <= settling_distance
        point = proposal
        if is_settled.all():
            break
    return point


def _halley_step(newton_step, curvature, third):
    """Return Halley's steps (m,) to roots of slopes with these Newton steps, first
    derivatives `curvature` and second derivatives `third`, (m,) each.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shortening = 1 - newton_step * third / (2 * curvature)
    # far from the root, and where a third derivative overflows, about Newton's step
    shortening = np.where(np.isfinite(shortening), shortening, 1.0)
    return newton_step / np.clip(shortening, 0.5, 2.0)


def line_search(evaluate, coef, step, current, lower=-np.inf, loss_of=float):
    """Return the first of the points ``coef - step``, ``coef - step / 2``, ... that
    lowers the loss.

    Points beyond a lower bound are moved onto it (Bertsekas's projected Newton method).

    Parameters
    ----------
    evaluate : callable
        ``evaluate(point)`` returns the loss at a point, or an object with the loss in
        it.
    coef, step : ndarray of shape (d,)
        The current point, and what is subtracted from it.
    current : float
        The loss at `coef`.
    lower : ndarray of shape (d,), default=-inf
        Lower bounds.
    loss_of : callable, default=float
        ``loss_of(evaluated)`` takes the loss out of what `evaluate` returned.

    Returns
    -------
    coef : ndarray of shape (d,)
        The new point; the current one if no point lowers the loss.
    evaluated : object
        What `evaluate` returned at the new point; None if no point lowers the loss.
    """
    for halving in range(_MAX_HALVINGS):
        proposal = np.maximum(coef - step * 0.5**halving, lower)
        evaluated = evaluate(proposal)
        if loss_of(evaluated) < current:
            return proposal, evaluated
    return coef, None


def damped_solution(hessian, right):
    """Return ``inv(hessian) @ right`` for a Hessian that may be singular; see
    `damped_factor`.

    Parameters
    ----------
    hessian : ndarray of shape (d, d)
        A symmetric matrix without negative curvature, except for rounding; it is
        overwritten.
    right : ndarray of shape (d,) or (d, m)
        The right side, one column for each system.

    Returns
    -------
    solution : ndarray of the shape of `right`
    """
    return damped_factor(hessian)(right)


def damped_factor(hessian):
    """Return a function that solves ``hessian @ x = right`` for x, given `right` (d,)
    or (d, m). The Hessian (d, d) is factorised once, and overwritten.

    A little is added to the diagonal, relative to it, for directions that do not change
    the loss, and more if rounding has made a curvature negative.
    """
    diagonal = hessian.diagonal()
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))
    hessian *= scale[:, None] * scale  # now with a diagonal of ones
    # the least damping for which the Cholesky factor exists
    for damping in _DAMPING * 100.0 ** np.arange(10):
        np.fill_diagonal(hessian, 1 + damping)
        with suppress(LinAlgError):
            factor = cho_factor(hessian)
            break
    else:
        raise AssertionError(
            "a matrix of numbers up to 1 with 1e10 on its diagonal is positive definite"
        )

    def solve(right):
        # The factor is of the scaled Hessian, so that rows are multiplied by `scale`
        # (d,); transposed, that is the same expression for vectors and matrices.
        solution = cho_solve(factor, (scale * right.T).T)
        return (scale * solution.T).T

    return solve
