"""The difference of two independent estimates."""

import numpy as np

from skcalib._inference.results import IntervalEstimate


def square_and_add(first, second):
    """Return the interval of the difference, first minus second, of two independent
    estimates by Newcombe's "square and add" method, and the centre of the interval.

    Both arguments are (estimate, low, high). The squared distances from the estimates
    to their limits are added. An estimate may lie outside its own interval, if it
    contains label noise that the interval excludes: the nearer limit then replaces it
    in the centre, so that the centre may differ from the difference of the estimates.
    """
    # Each estimate, moved to its nearer limit if it lies outside of its interval.
    estimate, low, high = first
    other, other_low, other_high = second
    inner = min(max(estimate, low), high)
    other_inner = min(max(other, other_low), other_high)
    centre = inner - other_inner
    below = np.hypot(inner - low, other_high - other_inner)
    above = np.hypot(high - inner, other_inner - other_low)
    interval = IntervalEstimate(
        estimate - other, float(centre - below), float(centre + above)
    )
    return interval, centre
