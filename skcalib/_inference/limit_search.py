"""The search of one interval by test inversion: its limits are the errors at the
smallest and the largest c for which the observed value is not extreme among the draws.

The search is written as generators that yield a `DrawRequest` and are sent `Drawn`, so
that the draws for many intervals can be made together.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skcalib._inference.drawn_hypotheses import resampling_pvalue, share_of_draws

_GROWTH = 4  # factor of the steps of c that bracket a limit
_PRECISION = 0.002  # relative, of the c of a limit
# A share of draws this close to the tail probability, relatively, is taken to equal it.
_CLOSE = 0.02
_ROUNDING = 4 * np.finfo(np.float64).eps


class DrawRequest(NamedTuple):
    """The draws that a search needs next.

    Parameters
    ----------
    direction : ndarray of shape (m,)
        The deviation d of the hypothesis f = s + c d.
    c : float
        Its factor.
    with_distances : bool
        Whether the distances of the draws are needed.
    """

    direction: np.ndarray
    c: float
    with_distances: bool


def search_limits(hypotheses, tail):
    """Search the lower and the upper limit of the error for one `Hypotheses`, each
    wrong with probability `tail`.

    A hypothesis says that event frequencies differ from the scores by c times a
    direction, one of several deviations. The limits are errors at the smallest and the
    largest c that is not rejected.

    This is a generator, so that the draws of several searches can be made together: it
    yields a `DrawRequest`, is sent the `Drawn`, and returns (low, high). The methods of
    `_DirectionSearch` are such generators, too, and ``yield from`` runs them.
    """
    if not hypotheses.has_null:
        first = hypotheses.directions[0]
        drawn = yield DrawRequest(first, c=0.0, with_distances=True)
        hypotheses.set_null(drawn)
    searches = []
    for direction in hypotheses.directions:
        searches.append(_DirectionSearch(hypotheses, direction, tail))
    # The interval reaches from the smallest lower limit of all directions to the
    # largest upper one. If calibration is not rejected, the lower limit is 0.
    low = 0.0
    is_rejected = resampling_pvalue(hypotheses) < tail
    if is_rejected:
        low = np.inf
        for search in searches:
            low_of_direction = yield from search.lower_limit()
            low = min(low, low_of_direction)
        if low == np.inf:
            # No hypothesis reaches the observed value: the limit is the error of the
            # observed frequencies, taken to be without noise.
            low = hypotheses.error(hypotheses.cells.event_frequency)
    high = -np.inf
    for search in searches:
        high_of_direction = yield from search.upper_limit()
        high = max(high, high_of_direction)
    if not is_rejected:
        # The true frequencies may also lie on the other side of the scores: f = s - c d
        known_high = high
        for search in searches:
            opposite = _DirectionSearch(hypotheses, -search.direction, tail)
            high_of_opposite = yield from opposite.upper_limit_opposite(
                search.upper_c, known_high
            )
            high = max(high, high_of_opposite)
    return low, max(low, high)


class _DirectionSearch:
    """Search of the limits of an error among hypotheses about the event frequencies:
    f = s + c d, with the scores s, one direction d (m,) of deviations, and a size
    c >= 0. Each limit is wrong with probability `tail`.

    A method that needs draws yields a `DrawRequest` and is sent the `Drawn`. It is
    therefore a generator, and is called by ``yield from``; see `search_limits`.
    """

    def __init__(self, hypotheses, direction, tail):
        self.hypotheses = hypotheses
        self.direction = direction  # d, (m,)
        self.tail = tail  # probability that a limit is wrong
        # the c of the upper limit, once `upper_limit` has found it
        self.upper_c = None
        # The `Drawn` of each c that draws were made for, at first for c = 0.
        self._drawn_at = {0.0: hypotheses.null}

    def lower_limit(self):
        """Return the lower limit: the error at the smallest c for which enough draws,
        a share of `tail`, reach the observed value; inf if there is no such c.
        """

        def excess(c):
            """Return how far the share of draws that reach the observed value is above
            `tail`. It rises with c.
            """
            drawn = yield from self._draws(c)
            observed = self.hypotheses.observed - self.hypotheses.slack
            return self._excess_over_tail(share_of_draws(drawn.statistics >= observed))

        c = yield from self._crossing(excess)
        if c is None:
            return np.inf
        return self._error(c)

    def upper_limit(self):
        """Return the upper limit: the error at the c beyond which too few draws, less
        than a share of `tail`, are as small as the observed value.
        """

        def shortfall(c):
            """Return how far the share of draws that are as small as the observed value
            is below `tail`. The share falls with c, so this rises.
            """
            drawn = yield from self._draws(c)
            is_as_small = drawn.statistics <= self.hypotheses.upper_reference
            return -self._excess_over_tail(share_of_draws(is_as_small))

        c = yield from self._crossing(shortfall)
        if c is None:
            c = self.hypotheses.largest_c(self.direction)
        self.upper_c = c
        return self._error(c)

    def upper_limit_opposite(self, c_of_other_side, known_high):
        """Return the upper limit if `direction` is the opposite of a direction whose
        upper limit is known.

        A draw is then as extreme as the labels only if its deviation also lies as far
        on the side of the observed one.

        Parameters
        ----------
        c_of_other_side : float
            The c of the upper limit in the other direction.
        known_high : float
            The largest upper limit that was found so far. It is returned in place of a
            smaller one, which need not be searched.
        """

        def shortfall(c):
            """Return how far the share of draws as extreme as the labels is below
            `tail`. The share falls with c, so this rises.
            """
            drawn = yield from self._draws(c, with_distances=True)
            is_as_small = drawn.statistics <= self.hypotheses.upper_reference
            # as far but for rounding
            observed_distance = self.hypotheses.observed_distance * (1 - 1e-12)
            is_as_far = drawn.distances >= observed_distance
            share = min(share_of_draws(is_as_small), share_of_draws(is_as_far))
            return -self._excess_over_tail(share)

        # If the shortfall is not negative at the c of the other direction, the limit
        # lies at a smaller c. Where the error there is at most the known limit, that of
        # the limit is, too, and need not be searched: this saves half of the draws.
        if self._error(c_of_other_side) <= known_high:
            shortfall_there = yield from shortfall(c_of_other_side)
            if shortfall_there >= 0:
                return known_high
        c = yield from self._crossing(shortfall)
        if c is None:
            c = self.hypotheses.largest_c(self.direction)
        return self._error(c)

    def _draws(self, c, *, with_distances=False):
        """Return the `Drawn` of the hypothesis with this c. It is asked for once, and
        then kept.
        """
        if c not in self._drawn_at:
            self._drawn_at[c] = yield DrawRequest(self.direction, c, with_distances)
        return self._drawn_at[c]

    def _excess_over_tail(self, share):
        """Return the difference of the normal quantiles of `share` and the tail
        probability; 0 within the Monte Carlo error.
        """
        if abs(share - self.tail) <= _CLOSE * self.tail:
            return 0.0
        # The quantile of a share of 1 would be infinite.
        return ndtri(min(share, 1 - 1e-6)) - ndtri(self.tail)

    def _error(self, c):
        """Return the error of the event frequencies s + c d themselves, a float."""
        return self.hypotheses.error(self.hypotheses.frequency(self.direction, c))

    def _crossing(self, excess):
        """Return the c >= 0 at which ``excess(c)`` reaches 0, or None if it stays
        negative. `excess` is a generator function, too. As a share of draws is a step
        function of c, it rises only on the whole.
        """
        c = 0.0
        value = yield from excess(c)
        if value >= 0:
            return c
        # Growing steps until the excess is no longer negative.
        first = self.hypotheses.first_c(self.direction)
        largest = self.hypotheses.largest_c(self.direction)
        while value < 0:
            if c >= largest:
                return None
            below = _Point(c, value)
            c = min(max(_GROWTH * c, first), largest)
            value = yield from excess(c)
        if value == 0:
            return c
        # The root lies between the last two.
        return (yield from _brent_root(excess, below, _Point(c, value), _PRECISION * c))


class _Point(NamedTuple):
    """A point of a function whose root is sought."""

    x: float
    value: float


def _brent_root(function, below, above, precision):
    """Return the root of a function between two `_Point` with values of opposite sign,
    found by Brent's method with the steps of `scipy.optimize.brentq`.

    ``function(x)`` is a generator that asks for draws and returns the value; so this is
    such a generator, too. `precision` is the accepted error of the root.
    """
    # `newest` is the last point, `before` the one before it, and `other` the end of the
    # bracket on the other side of the root.
    before = below
    newest = above
    other = below
    step = 0.0
    last_step = 0.0
    while True:
        # 1. If the sign has changed, the point before is on the other side of the root.
        if before.value and newest.value and before.value * newest.value < 0:
            other = before
            step = newest.x - before.x
            last_step = step
        # 2. The search goes on from the end of the bracket with the smaller value.
        if abs(other.value) < abs(newest.value):
            before, newest, other = newest, other, newest
        least = (precision + _ROUNDING * abs(newest.x)) / 2
        half = (other.x - newest.x) / 2
        if newest.value == 0 or abs(half) < least:
            return newest.x
        # 3. An interpolated step if it shrinks well, else half of the interval.
        interpolated = np.inf
        if abs(last_step) > least and abs(newest.value) < abs(before.value):
            interpolated = _interpolated_step(before, newest, other)
        if 2 * abs(interpolated) < min(abs(last_step), 3 * abs(half) - least):
            last_step = step
            step = interpolated
        else:
            step = half
            last_step = half
        # 4. A step is at least as long as the precision.
        if abs(step) > least:
            x = newest.x + step
        elif half > 0:
            x = newest.x + least
        else:
            x = newest.x - least
        value = yield from function(x)
        before = newest
        newest = _Point(x, value)


def _interpolated_step(before, newest, other):
    """Return the step from the `_Point` `newest` to the interpolated root: of the line
    through `before` and `newest` if `before` is `other`, else of the inverse quadratic
    function through all three; inf if there is none.
    """
    if before.x == other.x:
        # the secant method
        run = newest.x - before.x
        return -newest.value * run / (newest.value - before.value)
    # Slopes of the lines from the newest point to the two others; the step is Brent's
    # formula for the inverse quadratic function in terms of these.
    slope_before = (before.value - newest.value) / (before.x - newest.x)
    slope_other = (other.value - newest.value) / (other.x - newest.x)
    denominator = slope_other * slope_before * (other.value - before.value)
    if not denominator:
        return np.inf
    numerator = other.value * slope_other - before.value * slope_before
    return -newest.value * numerator / denominator
