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
    # The bracket of each minimum: the slope is negative at its lower end and positive
    # at its upper one, except at the bounds.
    below = np.full_like(at, low)
    above = np.full_like(at, high)
    settled = np.zeros(len(at), dtype=bool)
    for _ in range(_MAX_STEPS):
        slope, curvature = derivatives(at)
        below = np.where(slope < 0, at, below)
        above = np.where(slope > 0, at, above)
        # A curvature next to nothing overflows: the step is cut below.
        with np.errstate(over="ignore"):
            step = np.divide(
                slope, curvature, out=np.copysign(np.inf, slope), where=curvature > 0
            )
        # A step changes a variable at most tenfold.
        least = np.maximum(at / 10, low)
        largest = np.minimum(at * 10, high)
        newton = np.minimum(np.maximum(at - step, least), largest)
        # A minimum may lie on a bound itself.
        inside = (below < newton) & (newton < above)
        inside |= (newton == below) & (below == low)
        inside |= (newton == above) & (above == high)
        # else the middle of the bracket on a logarithmic scale
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
    """Return the first of the points ``coef - step``, ``coef - step / 2``, ... whose
    loss is below `current`, and what `evaluate` returns there.

    `loss_of` takes the loss from what `evaluate` returns. Points beyond a lower bound
    are moved onto it (Bertsekas's projected Newton method). Where no point lowers the
    loss, the result is ``(coef, None)``.
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
    is a vector (d,) or a matrix (d, m), and so is the result; the Hessian (d, d) is
    overwritten.
    """
    diagonal = hessian.diagonal()
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1))
    hessian *= scale[:, None] * scale  # now with a diagonal of ones
    # Transposed, vectors and matrices broadcast alike against `scale` (d,).
    scaled_right = (scale * right.T).T
    for damping in _DAMPING * 100.0 ** np.arange(10):
        np.fill_diagonal(hessian, 1 + damping)
        with suppress(LinAlgError):
            solution = cho_solve(cho_factor(hessian), scaled_right)
            return (scale * solution.T).T
    raise AssertionError(
        "a matrix of numbers up to 1 with 1e10 on its diagonal is positive definite"
    )
