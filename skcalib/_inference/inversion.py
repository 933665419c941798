"""Confidence intervals for calibration errors by test inversion: the search that all
metrics share.

For a number c >= 0 the event frequency that belongs to a score s is taken to be
``f = s + c d``, d an estimated deviation. Labels are drawn from f and the metric is
computed on them. The limits of the interval are the errors at the smallest and the
largest c for which the observed value is not extreme among the drawn ones. At c = 0
this is the resampling test of calibration.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

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


@dataclass(frozen=True)
class Hypotheses:
    """A metric, and labels drawn from ``f = s + c d`` for it.

    Parameters
    ----------
    cells : Cells
        The rows.
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
    directions : list of ndarray
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

    def drawn(self, blocks, c, sides):
        """Return the statistics of drawn event frequencies and, if asked for, how far
        these lie on the side of the observed deviation.

        Parameters
        ----------
        blocks : iterable of ndarray of shape (draws, m)
            Blocks of drawn event frequencies.
        c : float
            The hypothesis, for the progress.
        sides : bool
            Whether the second array is needed.

        Returns
        -------
        statistics : ndarray of shape (n_draws,)
            The statistic of each draw.
        distances : ndarray of shape (n_draws,) or None
            Sum of share, observed deviation and drawn deviation over the cells,
            comparable with `side`.
        """
        statistics = []
        distances = []
        if sides:
            towards = self.cells.share * self.directions[0]
            expected = self.cells.mean_score @ towards
        for drawn in blocks:
            statistics.append(self.statistic(drawn))
            if sides:
                distances.append(drawn @ towards - expected)
            if self.progress.verbose:
                n_drawn = sum(map(len, statistics))
                self.progress(f"{n_drawn} draws at c = {c:.3g}")
        if sides:
            return np.concatenate(statistics), np.concatenate(distances)
        return np.concatenate(statistics), None

    @cached_property
    def null(self):
        """What `drawn` returns for labels of calibrated scores: statistics and
        distances, arrays (n_draws,).
        """
        calibrated = self.draw(self.cells.mean_score, c=0.0)
        return self.drawn(calibrated, c=0.0, sides=True)

    @property
    def side(self):
        """How far the labels lie on the side of the observed deviation: sum of share,
        deviation and first direction over the cells.
        """
        return self.cells.share * self.directions[0] @ self.cells.deviation

    @cached_property
    def slack(self):
        """Difference of statistics within which they are tied: labels with equal sums
        may differ in the last digit.
        """
        return 1e-12 * max(abs(self.observed), float(np.median(np.abs(self.null[0]))))

    @cached_property
    def reached(self):
        """The value that draws are compared with for the upper limit: the observed
        statistic, or the median of calibrated draws if that is larger, which keeps the
        interval of a small value non-empty.
        """
        return max(self.observed, float(np.median(self.null[0]))) + self.slack

    def frequency(self, direction, c):
        """Return the event frequencies s + c d (m,) of the hypothesis c, clipped to [0,
        1], for a direction d (m,).
        """
        return (self.cells.mean_score + c * direction).clip(0, 1)

    def last(self, direction):
        """Return the largest c that matters for a direction (m,): from there on each
        frequency is 0 or 1, or equals its score.
        """
        score = self.cells.mean_score
        room = np.where(direction > 0, 1 - score, score)
        moved = direction != 0
        return float(np.max(room[moved] / np.abs(direction[moved]), initial=0))

    def first(self, direction):
        """Return the first c of a search along a direction (m,): half of that at which
        the deviation is as large as the noise, at least 1/8.
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
    return _share(hypotheses.null[0] >= hypotheses.observed - hypotheses.slack)


def inverted_limits(hypotheses, tail):
    """Return the lower and the upper limit of an error, each wrong with probability
    `tail`.
    """
    return next(limits_of_each([hypotheses], tail))


def limits_of_each(many, tail):
    """Yield the limits for each of many hypotheses, as `inverted_limits` returns them.

    A search asks for one set of draws after the other. As many searches as fill a block
    of counts go on side by side, and the draws that they ask for are made in one pass.
    With many small problems most of the time would else go into the overhead of calls.
    """
    together = []
    n_counts = 0
    for hypotheses in many:
        together.append(hypotheses)
        n_counts += hypotheses.draw.n_draws * len(hypotheses.cells.weight)
        if n_counts >= BLOCK:
            yield from _searched(together, tail)
            together = []
            n_counts = 0
    yield from _searched(together, tail)


def _searched(many, tail):
    """Return the (lower, upper) limits for each of many `Hypotheses`, whose searches go
    on in turns, so that the draws that all of them need next are made in one pass.
    """
    limits = [None] * len(many)
    searches = [_limits(hypotheses, tail) for hypotheses in many]
    # Each turn sends every search its draws and collects what it asks for next; the
    # first turn starts them.
    answers = dict.fromkeys(range(len(many)))
    while answers:
        questions = {}
        for k, answer in answers.items():
            try:
                questions[k] = searches[k].send(answer)
            except StopIteration as end:
                limits[k] = end.value
        laws = []
        for k, (direction, c, _) in questions.items():
            laws.append((many[k].draw, many[k].frequency(direction, c), c))
        answers = {}
        for k, blocks in zip(questions, _drawn_together(laws), strict=True):
            _, c, sides = questions[k]
            answers[k] = many[k].drawn(blocks, c, sides)
    return limits


def _drawn_together(laws):
    """Return the blocks of drawn event frequencies for each of several laws.

    A law is (draws, frequency, c): a `CountDraws` or `ClusterDraws`, event frequencies
    (m,), and the c of the hypothesis. Laws that are drawn as one block each are drawn
    in one call.
    """
    can_be_joined = len(laws) > 1
    for draw, _, _ in laws:
        if not (isinstance(draw, CountDraws) and draw.is_one_block):
            can_be_joined = False
    if not can_be_joined:
        return [draw(frequency, c) for draw, frequency, c in laws]
    draws, frequencies, c = zip(*laws, strict=True)
    sizes = [len(frequency) for frequency in frequencies]
    joined = CountDraws.joined(draws)
    (drawn,) = joined(np.concatenate(frequencies), np.repeat(c, sizes))
    by_law = np.split(drawn, np.cumsum(sizes)[:-1], axis=1)
    return [[block] for block in by_law]


def _limits(hypotheses, tail):
    """Search the limits of one `Hypotheses`, each wrong with probability `tail`: a
    generator that asks for draws.

    It yields (direction, c, sides), is sent what `Hypotheses.drawn` returns for them,
    and returns (low, high). The generators below do the same: `yield from` hands on
    what they ask for.
    """
    if "null" not in vars(hypotheses):
        # `null` is a cached property: its draws are made with those of other searches.
        vars(hypotheses)["null"] = yield hypotheses.directions[0], 0.0, True
    # The interval reaches from the least lower limit to the largest upper limit of all
    # directions.
    lines = [_Line(hypotheses, direction, tail) for direction in hypotheses.directions]
    low = 0.0
    is_rejected = resampling_pvalue(hypotheses) < tail
    if is_rejected:
        low = np.inf
        for line in lines:
            lowest = yield from line.lowest()
            low = min(low, lowest)
        if low == np.inf:
            # No hypothesis reaches the observed value: the limit is the error of the
            # observed frequencies, taken to be without noise.
            low = hypotheses.error(hypotheses.cells.event_frequency)
    high = -np.inf
    for line in lines:
        highest = yield from line.highest()
        high = max(high, highest)
    if not is_rejected:
        # The true frequencies may also lie on the other side of the scores.
        high_of_this_side = high
        for line in lines:
            other = _Line(hypotheses, -line.direction, tail)
            highest = yield from other.highest(beyond=(line.limit, high_of_this_side))
            high = max(high, highest)
    return low, max(low, high)


class _Line:
    """The hypotheses s + c d along one direction d (m,), and the limits of the error
    among them, each wrong with probability `tail`.

    `limit` is the c of the upper limit, once `highest` has found it.
    """

    def __init__(self, hypotheses, direction, tail):
        self.hypotheses = hypotheses
        self.direction = direction
        self.tail = tail
        # what `Hypotheses.drawn` returned, by the c it was asked for
        self._drawn = {0.0: hypotheses.null}

    def lowest(self):
        """Return the lower limit: the error at the smallest c for which the observed
        value is not too large for the draws; inf where there is none. A generator like
        `_limits`.
        """
        reached = self.hypotheses.observed - self.hypotheses.slack

        def excess(c):
            values, _ = yield from self._draws(c)
            return self._excess(_share(values >= reached))

        c = yield from self._crossing(excess)
        if c is None:
            return np.inf
        return self._error(c)

    def highest(self, beyond=None):
        """Return the upper limit: the error at the c from which on the observed value
        is too small for the draws. A generator like `_limits`.

        `beyond` is given on the other side of the scores: the c of the upper limit of
        this side, and the upper limit that is known so far. Where the observed value is
        too small at that c as well, the limit of the other side is lower and need not
        be found: half of the draws.
        """

        def excess(c):
            """Return how far c is beyond the limit: tail less share of draws, which
            rises with c.
            """
            values, distances = yield from self._draws(c, sides=beyond is not None)
            share = _share(values <= self.hypotheses.reached)
            # On the other side of the scores few draws may also lie, but for rounding,
            # as far on the side of the observed deviation as the labels do.
            if beyond is not None:
                as_far = distances >= self.hypotheses.side * (1 - 1e-12)
                share = min(share, _share(as_far))
            return -self._excess(share)

        if beyond is not None:
            c_of_this_side, high_of_this_side = beyond
            if self._error(c_of_this_side) <= high_of_this_side:
                excess_there = yield from excess(c_of_this_side)
                if excess_there >= 0:
                    return high_of_this_side
        c = yield from self._crossing(excess)
        if c is None:
            c = self.hypotheses.last(self.direction)
        self.limit = c
        return self._error(c)

    def _draws(self, c, sides=False):
        """Return what `Hypotheses.drawn` returns for c, drawn once: a generator like
        `_limits`.
        """
        if c not in self._drawn:
            self._drawn[c] = yield self.direction, c, sides
        return self._drawn[c]

    def _excess(self, share):
        """Return by how much a share of draws exceeds the tail probability, as a
        difference of normal deviates; 0 within its Monte Carlo error.
        """
        if abs(share - self.tail) <= _CLOSE * self.tail:
            return 0.0
        # below 1, where the deviate would be infinite
        return ndtri(min(share, 1 - 1e-6)) - ndtri(self.tail)

    def _error(self, c):
        """Return the error itself, without noise, at c."""
        return self.hypotheses.error(self.hypotheses.frequency(self.direction, c))

    def _crossing(self, excess):
        """Return the c at which `excess` reaches 0, or None where it stays negative. A
        generator like `_limits`.

        `excess(c)` is such a generator, too: a step function of c that rises on the
        whole.
        """
        first = self.hypotheses.first(self.direction)
        last = self.hypotheses.last(self.direction)
        # Growing steps until the excess is no longer negative.
        below = (0.0, -np.inf)
        c = 0.0
        value = yield from excess(c)
        while value < 0:
            if c >= last:
                return None
            below = (c, value)
            c = min(max(_GROWTH * c, first), last)
            value = yield from excess(c)
        if value == 0 or c == 0:
            return c
        # The root lies between the last two.
        return (yield from _root(excess, below, (c, value), _PRECISION * c))


def _root(function, before, now, precision):
    """Return the root between two points (x, value) by Brent's method, the steps of
    `scipy.optimize.brentq`. `function(x)` is a generator that returns the value, so
    that this is one, too.
    """
    # x is the newest point, x_before the one before it, and x_other the end of the
    # bracket on the other side of the root; f, f_before and f_other are their values.
    x_before, f_before = before
    x, f = now
    x_other = 0.0
    f_other = 0.0
    step = 0.0
    last_step = 0.0
    while True:
        # 1. The other end is the last point on the other side of the root.
        if f_before and f and (f_before < 0) != (f < 0):
            x_other, f_other = x_before, f_before
            step = x - x_before
            last_step = step
        # 2. The point is the better one of both ends.
        if abs(f_other) < abs(f):
            x_before, x, x_other = x, x_other, x
            f_before, f, f_other = f, f_other, f
        least = (precision + _ROUNDING * abs(x)) / 2
        half = (x_other - x) / 2
        if f == 0 or abs(half) < least:
            return x
        # 3. An interpolated step if it shrinks well, else half of the interval.
        interpolated = np.inf
        if abs(last_step) > least and abs(f) < abs(f_before):
            interpolated = _interpolated_step(
                (x_before, f_before), (x, f), (x_other, f_other)
            )
        if 2 * abs(interpolated) < min(abs(last_step), 3 * abs(half) - least):
            last_step = step
            step = interpolated
        else:
            step = half
            last_step = half
        # 4. A step of at least the precision.
        x_before, f_before = x, f
        if abs(step) > least:
            x += step
        elif half > 0:
            x += least
        else:
            x -= least
        f = yield from function(x)


def _interpolated_step(before, now, other):
    """Return the step of Brent's method from the point `now` to a root, points being
    (x, value): of the line through `before` and `now` where the two others are one
    point, else of the inverse quadratic function through all three. It is inf where
    there is none.
    """
    x_before, f_before = before
    x, f = now
    x_other, f_other = other
    if x_before == x_other:
        return -f * (x - x_before) / (f - f_before)
    # the slopes of the lines from the point to both others
    to_before = (f_before - f) / (x_before - x)
    to_other = (f_other - f) / (x_other - x)
    slope = to_other * to_before * (f_other - f_before)
    if not slope:
        return np.inf
    return -f * (f_other * to_other - f_before * to_before) / slope


def _share(hits):
    """Return the share of the draws for which `hits`, boolean (n_draws,), is True.

    The observed value counts as one more draw that hits: the interval then covers for
    any number of draws.
    """
    return float(1 + np.count_nonzero(hits)) / (1 + len(hits))
