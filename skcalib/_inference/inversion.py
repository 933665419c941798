"""Confidence intervals for calibration errors by test inversion: the search that all
metrics share.

For a number c >= 0 the event frequency that belongs to a score s is taken to be
``f = s + c d``, d an estimated deviation. Labels are drawn from f and the metric is
computed on them. The limits of the interval are the errors at the smallest and the
largest c for which the observed value is not extreme among the drawn ones. At c = 0
this is the resampling test of calibration.

The search is written as generators that yield a `_Request` for draws and are sent
`Drawn`, so that the draws for many intervals can be made together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skcalib._cells.cells import Cells
from skcalib._inference.count_draws import BLOCK, CountDraws
from skcalib._progress import Progress

# Steps of c that bracket a limit: the first one at least, and the factor of the others.
_SMALLEST_STEP, _GROWTH = 1 / 8, 4
_PRECISION = 0.002  # relative, of the c of a limit
# A share of draws this close to the tail probability, relatively, is taken to equal it.
_CLOSE = 0.02
_ROUNDING = 4 * np.finfo(np.float64).eps


class Drawn(NamedTuple):
    """What a search looks at in the labels drawn for one hypothesis.

    Parameters
    ----------
    statistics : ndarray of shape (n_draws,)
        The statistic of each draw.
    distances : ndarray of shape (n_draws,) or None
        How far each draw deviates from the scores in the direction of the observed
        deviation, in the scale of `Hypotheses.observed_distance`; None if this was not
        asked for.
    """

    statistics: np.ndarray
    distances: np.ndarray | None


class _Request(NamedTuple):
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


@dataclass(frozen=True)
class Hypotheses:
    """A metric, and labels drawn from ``f = s + c d`` for it.

    Parameters
    ----------
    cells : Cells
        The rows, summed in m cells; s is the mean score of a cell.
    draw : callable
        ``draw(f, c)`` yields blocks of drawn event frequencies, of shape (draws, m);
        the same random numbers for every call.
    statistic : callable
        Maps frequencies (draws, m) to values of the metric (draws,), or of a power of
        it.
    error : callable
        Maps frequencies (m,) without noise to the metric's own value, a float.
    observed : float
        The statistic of the labels.
    directions : list of ndarray of shape (m,)
        Deviations d, the observed one first.
    progress : Progress
        What writes how many draws are done.
    """

    cells: Cells
    draw: Callable
    statistic: Callable
    error: Callable
    observed: float
    directions: list
    progress: Progress

    def drawn(self, blocks, c, *, with_distances):
        """Return the `Drawn` of blocks of drawn event frequencies: their statistics
        and, if asked for, their distances from the scores.

        A distance is the sum, over the cells, of weight share, observed deviation and
        drawn deviation (drawn frequency minus score).

        Parameters
        ----------
        blocks : iterable of ndarray of shape (draws, m)
            Blocks of drawn event frequencies.
        c : float
            The hypothesis they were drawn from, for the progress message.
        with_distances : bool
            Whether distances are computed.
        """
        statistics = []
        distances = []
        # The sum for drawn frequencies g and scores s: g @ factor - s @ factor.
        factor = self.cells.share * self.directions[0]
        of_scores = self.cells.mean_score @ factor
        for frequency in blocks:
            statistics.append(self.statistic(frequency))
            if with_distances:
                distances.append(frequency @ factor - of_scores)
            if self.progress.verbose:
                n_drawn = sum(map(len, statistics))
                self.progress(f"{n_drawn} draws at c = {c:.3g}")
        if with_distances:
            return Drawn(np.concatenate(statistics), np.concatenate(distances))
        return Drawn(np.concatenate(statistics), None)

    @cached_property
    def null(self):
        """The `Drawn` for labels of calibrated scores, with distances."""
        calibrated = self.draw(self.cells.mean_score, c=0.0)
        return self.drawn(calibrated, c=0.0, with_distances=True)

    @property
    def has_null(self):
        """Whether `null` has been drawn."""
        return "null" in vars(self)

    def set_null(self, drawn):
        """Keep a `Drawn` for labels of calibrated scores as `null`."""
        object.__setattr__(self, "null", drawn)

    @property
    def observed_distance(self):
        """Sum, over the cells, of weight share, observed deviation (smoothed: the first
        direction) and deviation of the labels; see `drawn`.
        """
        return self.cells.share * self.directions[0] @ self.cells.deviation

    @cached_property
    def slack(self):
        """Difference of statistics within which they are tied: labels with equal sums
        may differ in the last digit.
        """
        typical = float(np.median(np.abs(self.null.statistics)))
        return 1e-12 * max(abs(self.observed), typical)

    @cached_property
    def upper_reference(self):
        """The value that draws are compared with for the upper limit: the observed
        statistic, or the median of calibrated draws if that is larger, which keeps the
        interval of a small value non-empty.
        """
        median = float(np.median(self.null.statistics))
        return max(self.observed, median) + self.slack

    def frequency(self, direction, c):
        """Return the event frequencies s + c d (m,) of the hypothesis c, clipped to [0,
        1], for a direction d (m,).
        """
        return (self.cells.mean_score + c * direction).clip(0, 1)

    def largest_c(self, direction):
        """Return the largest c of the hypotheses f = s + c d that matters for a
        direction d (m,): from there on every f is 0 or 1, or equals its score.
        """
        score = self.cells.mean_score
        # How far a frequency can move: up to 1 for d > 0, down to 0 for d < 0.
        room = np.where(direction > 0, 1 - score, score)
        moves = direction != 0
        return float(np.max(room[moves] / np.abs(direction[moves]), initial=0))

    def first_c(self, direction):
        """Return the c at which a search along a direction d (m,) takes its first step
        from 0: half of the c at which the deviations c d are as large as the noise of
        the frequencies (root mean squares), at least 1/8.
        """
        share = self.cells.share
        noise = np.sqrt(share @ self.cells.variance)
        size = np.sqrt(share @ direction**2)
        if size == 0:
            return _SMALLEST_STEP
        return max(0.5 * noise / size, _SMALLEST_STEP)


def resampling_pvalue(hypotheses):
    """Return the Monte Carlo p-value of calibration: the share of the statistics of
    calibrated draws, the observed one included, that are at least as large as the
    observed one.
    """
    return _share(hypotheses.null.statistics >= hypotheses.observed - hypotheses.slack)


def inverted_limits(hypotheses, tail):
    """Return the lower and the upper limit of an error, each wrong with probability
    `tail`.
    """
    return next(limits_of_each([hypotheses], tail))


def limits_of_each(many, tail):
    """Yield the (lower, upper) limits for each of many `Hypotheses`, each limit wrong
    with probability `tail`.

    With many small problems most of the time would be spent on calls, not on numbers.
    So the problems are taken in groups whose numbers (draws times cells) fill a block,
    and the draws of a group are made together.
    """
    group = []
    n_counts = 0
    for hypotheses in many:
        group.append(hypotheses)
        n_counts += hypotheses.draw.n_draws * len(hypotheses.cells.weight)
        if n_counts >= BLOCK:
            yield from _limits_of_group(group, tail)
            group = []
            n_counts = 0
    yield from _limits_of_group(group, tail)


def _limits_of_group(group, tail):
    """Return a list with the (lower, upper) limits for each of several `Hypotheses`.

    Their searches advance together: in each turn every unfinished search, a generator
    of `_search_limits`, says which draws it needs, and all are drawn in one pass.
    """
    limits = [None] * len(group)
    searches = [_search_limits(hypotheses, tail) for hypotheses in group]
    # What each unfinished search is sent next, by its position: the `Drawn` that it
    # asked for, at first None, which starts a generator.
    answers = dict.fromkeys(range(len(group)))
    while answers:
        # 1. Continue each search. It asks for draws, or ends with its limits.
        requests = {}
        for k, answer in answers.items():
            try:
                requests[k] = searches[k].send(answer)
            except StopIteration as end:
                limits[k] = end.value
        # 2. Draw for all requests.
        frequencies = []
        for k, request in requests.items():
            frequencies.append(group[k].frequency(request.direction, request.c))
        blocks_of_each = _drawn_together(
            [group[k].draw for k in requests],
            frequencies,
            [request.c for request in requests.values()],
        )
        # 3. Compute what the searches look at.
        answers = {}
        for (k, request), blocks in zip(requests.items(), blocks_of_each, strict=True):
            answers[k] = group[k].drawn(
                blocks, request.c, with_distances=request.with_distances
            )
    return limits


def _drawn_together(draws, frequencies, factors):
    """Return the drawn event frequencies for each of several problems: a list with an
    iterable of blocks (draws, m) for each.

    If every problem is drawn as a single block, one call draws all.

    Parameters
    ----------
    draws : list of CountDraws or ClusterDraws
        What draws the numbers of events of each problem.
    frequencies : list of ndarray of shape (m,)
        Event probabilities of the cells of each problem; m may differ.
    factors : list of float
        The c of the hypothesis of each problem.
    """
    can_be_joined = len(draws) > 1
    for draw in draws:
        if not (isinstance(draw, CountDraws) and draw.is_one_block):
            can_be_joined = False
    if not can_be_joined:
        blocks_of_each = []
        for draw, frequency, c in zip(draws, frequencies, factors, strict=True):
            blocks_of_each.append(draw(frequency, c))
        return blocks_of_each
    n_cells = [len(frequency) for frequency in frequencies]
    joined = CountDraws.joined(draws)
    # a single block, with the cells of all problems side by side
    (drawn,) = joined(np.concatenate(frequencies), np.repeat(factors, n_cells))
    by_problem = np.split(drawn, np.cumsum(n_cells)[:-1], axis=1)
    return [[block] for block in by_problem]


def _search_limits(hypotheses, tail):
    """Search the lower and the upper limit of the error for one `Hypotheses`, each
    wrong with probability `tail`.

    A hypothesis says that event frequencies differ from the scores by c times a
    direction, one of several deviations. The limits are errors at the smallest and the
    largest c that is not rejected.

    This is a generator, so that the draws of several searches can be made together: it
    yields a `_Request`, is sent the `Drawn`, and returns (low, high). The methods of
    `_DirectionSearch` are such generators, too, and ``yield from`` runs them.
    """
    if not hypotheses.has_null:
        first = hypotheses.directions[0]
        drawn = yield _Request(first, c=0.0, with_distances=True)
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
    """Search of the limits of an error among the hypotheses f = s + c d along one
    direction d (m,), each limit wrong with probability `tail`.

    The methods are generators that yield a `_Request` and are sent the `Drawn`; see
    `_search_limits`.
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
        """Search the lower limit: the error at the smallest c for which enough draws,
        a share of `tail`, reach the observed value; inf if there is no such c. A
        generator; see the class.
        """

        def excess(c):
            """Return how far the share of draws that reach the observed value is above
            `tail`: it rises with c.
            """
            drawn = yield from self._draws(c)
            observed = self.hypotheses.observed - self.hypotheses.slack
            return self._excess_over_tail(_share(drawn.statistics >= observed))

        c = yield from self._crossing(excess)
        if c is None:
            return np.inf
        return self._error(c)

    def upper_limit(self):
        """Search the upper limit: the error at the c beyond which too few draws, less
        than a share of `tail`, are as small as the observed value. A generator; see the
        class.
        """

        def excess(c):
            """Return how far the share of draws that are as small as the observed value
            is below `tail`: it rises with c.
            """
            drawn = yield from self._draws(c)
            is_as_small = drawn.statistics <= self.hypotheses.upper_reference
            return -self._excess_over_tail(_share(is_as_small))

        c = yield from self._crossing(excess)
        if c is None:
            c = self.hypotheses.largest_c(self.direction)
        self.upper_c = c
        return self._error(c)

    def upper_limit_opposite(self, c_of_other_side, known_high):
        """Search the upper limit if `direction` is the opposite of a direction whose
        upper limit is known. A generator; see the class.

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

        def excess(c):
            """Return how far the share of draws as extreme as the labels is below
            `tail`: it rises with c.
            """
            drawn = yield from self._draws(c, with_distances=True)
            is_as_small = drawn.statistics <= self.hypotheses.upper_reference
            # as far but for rounding
            observed_distance = self.hypotheses.observed_distance * (1 - 1e-12)
            is_as_far = drawn.distances >= observed_distance
            share = min(_share(is_as_small), _share(is_as_far))
            return -self._excess_over_tail(share)

        # If this c lies beyond the limit, and its error below the known one, so does
        # the limit. This saves half of the draws.
        if self._error(c_of_other_side) <= known_high:
            excess_there = yield from excess(c_of_other_side)
            if excess_there >= 0:
                return known_high
        c = yield from self._crossing(excess)
        if c is None:
            c = self.hypotheses.largest_c(self.direction)
        return self._error(c)

    def _draws(self, c, *, with_distances=False):
        """Return the `Drawn` of the hypothesis c, which is drawn once. A generator; see
        the class.
        """
        if c not in self._drawn_at:
            self._drawn_at[c] = yield _Request(self.direction, c, with_distances)
        return self._drawn_at[c]

    def _excess_over_tail(self, share):
        """Return by how much a share of the draws exceeds the tail probability, as a
        difference of normal quantiles; 0 if they differ by the Monte Carlo error only.
        """
        if abs(share - self.tail) <= _CLOSE * self.tail:
            return 0.0
        # The quantile of a share of 1 would be infinite.
        return ndtri(min(share, 1 - 1e-6)) - ndtri(self.tail)

    def _error(self, c):
        """Return the error of the event frequencies s + c d themselves, a float."""
        return self.hypotheses.error(self.hypotheses.frequency(self.direction, c))

    def _crossing(self, excess):
        """Return the c >= 0 at which `excess` reaches 0, or None if it stays negative
        up to the largest c. A generator; see the class.

        ``excess(c)`` is a generator of the same kind: a step function of c that rises
        on the whole.
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
    """Return the step from the `_Point` `newest` to the root of an interpolation: of
    the line through `before` and `newest` if `before` and `other` are the same point,
    else of the inverse quadratic function through all three. It is inf if there is
    none.
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


def _share(hits):
    """Return the share of the draws for which `hits`, boolean (n_draws,), is True.

    The observed value counts as one more draw that hits: the interval then covers for
    any number of draws.
    """
    return float(1 + np.count_nonzero(hits)) / (1 + len(hits))
