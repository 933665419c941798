"""Newton's method kept safe: inside a bracket for functions of one variable, by shorter
steps for many.
"""

from contextlib import suppress

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

_MAX_STEPS = 100
_MAX_HALVINGS = 40
_NARROW = 1e-11  # relative width of a bracket that is not halved any more
_DAMPING = 1e-8


def minimise_convex(derivatives, start, bounds, tolerance=1e-6):
    """Return the minima of separate convex functions of one positive variable each, by
    Newton steps inside brackets.

    A step beyond its bracket becomes a geometric bisection, and no step is longer than
    a factor of ten.

    Parameters
    ----------
    derivatives : callable
        Takes an array of points, one a function, and returns the first and the second
        derivative of each there.
    start : ndarray of shape (m,)
        Where to start.
    bounds : tuple of two floats
        Limits of the minima, 0 < low <= high.
    tolerance : float, default=1e-6
        A Newton step that is shorter than this, relative to the point, is the last one.
        What it leaves is of the order of its square.

    Returns
    -------
    minima : ndarray of shape (m,)
        A minimum of each function within the bounds. A function that falls for ever,
        and ends flat in floating point, has it where its slope is 0.
    """
    low, high = bounds
    at = np.clip(start, low, high)
    below = np.full_like(at, low)
    above = np.full_like(at, high)
    settled = np.zeros(len(at), dtype=bool)
    for _ in range(_MAX_STEPS):
        slope, curvature = derivatives(at)
        below = np.where(slope < 0, at, below)
        above = np.where(slope > 0, at, above)
        # of a curvature that is next to nothing: the step is cut below
        with np.errstate(over="ignore"):
            newton = at - np.divide(
                slope, curvature, out=np.copysign(np.inf, slope), where=curvature > 0
            )
        newton = np.minimum(
            np.maximum(newton, np.maximum(at / 10, low)), np.minimum(at * 10, high)
        )
        inside = (below < newton) & (newton < above)
        inside |= (newton == below) & (below == low) | (newton == above) & (
            above == high
        )
        proposal = np.where(inside, newton, np.sqrt(below) * np.sqrt(above))
        # A step that rounding swallows is none, though it is not inside the bracket,
        # which begins or ends here.
        proposal = np.where(settled | (slope == 0) | (newton == at), at, proposal)
        settled |= np.abs(proposal - at) <= np.where(inside, tolerance, _NARROW) * at
        at = proposal
        if settled.all():
            break
    return at


def line_search(evaluate, coef, step, current, lower=-np.inf, loss_of=float):
    """Return the first of the points a full, a half, a quarter ... step down that
    lowers the loss, and its evaluation.

    That is what `evaluate` returns there, of which `loss_of` is the loss; None where no
    point does. Points beyond a lower bound are moved onto it (the projected Newton
    method of Bertsekas).
    """
    for halving in range(_MAX_HALVINGS):
        proposal = np.maximum(coef - step * 0.5**halving, lower)
        evaluated = evaluate(proposal)
        if loss_of(evaluated) < current:
            return proposal, evaluated
    return coef, None


def damped_solution(hessian, right):
    """Return ``inv(hessian) @ right`` for a Hessian that may be singular where the loss
    does not change.

    Directions that change no probability have no curvature. A little is added for them,
    in units of the diagonal, and more where rounding made a curvature negative. `right`
    is a vector or a matrix; the Hessian is overwritten.
    """
    diagonal = hessian.diagonal()
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))
    hessian *= scale[:, None] * scale
    for damping in _DAMPING * 100.0 ** np.arange(10):
        np.fill_diagonal(hessian, 1 + damping)
        with suppress(LinAlgError):
            return (scale * cho_solve(cho_factor(hessian), (scale * right.T).T).T).T
    raise AssertionError(
        "a matrix of numbers up to 1 with 1e10 on its diagonal is positive definite"
    )
