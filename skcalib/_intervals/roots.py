"""Roots of many monotone functions at once."""

import numpy as np

_MOST_STEPS = 100


def bracketed_root(function, low, high, *, ends=None, tolerance=1e-13):
    """Return where each function is 0, by Chandrupatla's method (1997).

    It steps by inverse quadratic interpolation where three points fit one, and halves
    the bracket elsewhere, so that it never takes longer than about three bisections.

    Parameters
    ----------
    function : callable
        Maps points (m,) to values (m,), of which each entry depends on its point alone.
        If it has a method ``at(chosen)``, which returns the functions at some
        positions, those whose roots are found are left out.
    low, high : ndarray of shape (m,)
        Ends of a bracket. Where both values have the same sign, the end whose value is
        nearer to 0 is returned.
    ends : tuple of two ndarrays of shape (m,), default=None
        The values at `low` and at `high`, if they are known.
    tolerance : float, default=1e-13
        Width of the last bracket, relative to the first.

    Returns
    -------
    root : ndarray of shape (m,)
        The roots.
    """
    # a is the newest point of each function, and b the other end of its bracket.
    a = np.array(high, dtype=np.float64)
    b = np.array(low, dtype=np.float64)
    if ends is None:
        ends = function(b), function(a)
    at_b, at_a = ends
    width = np.abs(a - b) * tolerance
    has_root = np.sign(at_a) != np.sign(at_b)
    # what is returned where the bracket holds no root
    nearer_end = np.where(np.abs(at_a) <= np.abs(at_b), a, b)
    fraction = np.full(a.shape, 0.5)  # the next step, as a fraction of the bracket
    root = np.where(has_root, a, nearer_end)
    sought = np.arange(len(a))  # positions of the functions whose roots are sought
    for _ in range(_MOST_STEPS):
        middle = a + fraction * (b - a)
        at_middle = function(middle)
        # The new bracket runs from the middle to the end of the other sign. The end
        # that it leaves is c, the third point of the interpolation.
        replaces_a = np.sign(at_middle) == np.sign(at_a)
        c = np.where(replaces_a, a, b)
        at_c = np.where(replaces_a, at_a, at_b)
        b = np.where(replaces_a, b, a)
        at_b = np.where(replaces_a, at_b, at_a)
        a = middle
        at_a = at_middle
        # The width to reach, as a fraction of the bracket, whose width may be 0.
        narrow = width / np.maximum(np.abs(b - a), 1e-300)
        is_found = ~has_root | (at_a == 0) | (narrow > 0.5)
        # A root is also found where its distance from the newest point, by the smaller
        # of the slopes to the other two points, is within that width.
        with np.errstate(all="ignore"):
            distance_per_value = np.maximum(
                np.abs((b - a) / (at_b - at_a)), np.abs((c - a) / (at_c - at_a))
            )
            is_found |= np.abs(at_a) * distance_per_value < width
        if np.all(is_found):
            break
        # If a quarter of the roots are found, the search goes on with the others.
        if hasattr(function, "at") and 4 * np.count_nonzero(is_found) > len(is_found):
            nearest = np.where(np.abs(at_a) <= np.abs(at_b), a, b)
            done = is_found & has_root
            root[sought[done]] = nearest[done]
            chosen = np.flatnonzero(~is_found)
            function = function.at(chosen)
            sought = sought[chosen]
            a, b, c, at_a, at_b, at_c, width, narrow, has_root = (
                values[chosen]
                for values in (a, b, c, at_a, at_b, at_c, width, narrow, has_root)
            )
        with np.errstate(all="ignore"):
            # Chandrupatla's condition that the inverse parabola through the three
            # points rises or falls throughout.
            xi = (a - b) / (c - b)
            phi = (at_a - at_b) / (at_c - at_b)
            fits = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            # Inverse quadratic interpolation through a, b and c, at the value 0.
            weight_of_b = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            weight_of_c = (
                (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
            )
            fraction = weight_of_b + weight_of_c
        fraction = np.where(fits & np.isfinite(fraction), fraction, 0.5)
        narrow = np.minimum(narrow, 0.5)
        fraction = np.clip(fraction, narrow, 1 - narrow)
    nearest = np.where(np.abs(at_a) <= np.abs(at_b), a, b)
    root[sought[has_root]] = nearest[has_root]
    return root
