"""Confidence intervals of calibration errors by test inversion: the search that all metrics share.

For a number c >= 0 the event frequency that belongs to a score s is taken to be ``f = s + c d``, d an estimated
deviation. Labels are drawn from f and the metric is computed on them. The limits of the interval are the errors at the
smallest and the largest c for which the observed value is not extreme among the drawn ones. At c = 0 this is the
resampling test of calibration.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from skcalib._cells.cells import Cells
from skcalib._progress import Progress

_SMALLEST_STEP, _GROWTH = 1 / 8, 4  # of c, after 0 and from there
_PRECISION = 0.002  # of c, relative
_CLOSE = 0.02  # relative distance from a tail at which a share of draws is taken to be equal to it


@dataclass(frozen=True)
class Hypotheses:
    """A metric, and labels drawn from ``f = s + c d`` for it.

    Parameters
    ----------
    cells : Cells
        The rows.
    draw : callable
        ``draw(f, c)`` yields blocks of drawn event frequencies, of shape (draws, m); the same random numbers for every
        call.
    statistic : callable
        Maps frequencies (draws, m) to values of the metric (draws,), or of a power of it.
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

    def drawn(self, direction, c, sides=False):
        """Return the statistics at c and, if asked for, how far the draws lie on the side of the observed deviation."""
        if c == 0:
            return self.null
        return self._drawn(self.frequency(direction, c), c, sides)

    @cached_property
    def null(self):
        """The statistics for calibrated scores, and how far the draws lie on the side of the observed deviation."""
        return self._drawn(self.cells.mean_score, 0.0, True)

    def _drawn(self, frequency, c, with_sides):
        towards = self.cells.share * self.directions[0]
        values, sides = [], []
        for drawn in self.draw(frequency, c):
            values.append(self.statistic(drawn))
            if with_sides:
                sides.append(drawn @ towards - self.cells.mean_score @ towards)
            self.progress(f"{sum(map(len, values))} draws at c = {c:.3g}")
        return np.concatenate(values), np.concatenate(sides) if with_sides else None

    @property
    def side(self):
        """How far the labels lie on the side of the observed deviation."""
        return self.cells.share * self.directions[0] @ self.cells.deviation

    @property
    def slack(self):
        """Distance within which values are tied: labels with equal sums may differ in the last digit."""
        return 1e-12 * max(abs(self.observed), float(np.median(np.abs(self.null[0]))))

    def frequency(self, direction, c):
        """Return the event frequencies at c."""
        return np.clip(self.cells.mean_score + c * direction, 0, 1)

    def last(self, direction):
        """Return the c from which on all frequencies are 0 or 1, or stay what they are."""
        moved = direction != 0
        room = np.where(direction > 0, 1 - self.cells.mean_score, self.cells.mean_score)[moved]
        return float(np.max(room / np.abs(direction[moved]), initial=0))

    def first(self, direction):
        """Return a c at which the deviation is of the size of the noise."""
        share = self.cells.share
        noise, size = np.sqrt(share @ self.cells.variance), np.sqrt(share @ direction**2)
        return max(0.5 * noise / size, _SMALLEST_STEP) if size > 0 else _SMALLEST_STEP


def resampling_pvalue(hypotheses):
    """Monte Carlo p-value: the share of values, the observed one included, that are at least as large as it."""
    return _share(hypotheses.null[0] >= hypotheses.observed - hypotheses.slack)


def inverted_limits(hypotheses, tail):
    """Return the lower and the upper limit of an error, each wrong with probability `tail`."""
    low, lines = 0.0, [_Line(hypotheses, direction, tail) for direction in hypotheses.directions]
    if rejected := resampling_pvalue(hypotheses) < tail:
        low = min(line.lowest() for line in lines)
        low = low if low < np.inf else hypotheses.error(hypotheses.cells.event_frequency)
    high = max(line.highest() for line in lines)
    if not rejected:
        # The true frequencies may also lie on the other side of the scores.
        others = (_Line(hypotheses, -line.direction, tail).highest(beyond=(line.limit, high)) for line in lines)
        high = max(high, *others)
    return low, max(low, high)


class _Line:
    """The hypotheses s + c d of one direction d."""

    def __init__(self, hypotheses, direction, tail):
        self.hypotheses, self.direction, self.tail = hypotheses, direction, tail
        self._values = {}

    def lowest(self):
        """Return the error from which on the observed value is not too large for the draws; inf where there is none."""
        reached = self.hypotheses.observed - self.hypotheses.slack
        c = self._crossing(lambda c: self._excess(_share(self._statistics(c) >= reached)))
        return np.inf if c is None else self._error(c)

    def highest(self, beyond=None):
        """Return the error from which on the observed value is too small for the draws.

        `beyond` is given on the other side of the scores: a limit c and the error of this side. Where the observed
        value is too small at that c as well, the other side's limit is lower and need not be found: half of the draws.
        """
        # The median prevents an empty interval for a value that is small by chance.
        null = self.hypotheses.null[0]
        reached = max(self.hypotheses.observed, float(np.median(null))) + self.hypotheses.slack

        def excess(c):
            if beyond is None:
                return -self._excess(_share(self._statistics(c) <= reached))
            values, sides = self.hypotheses.drawn(self.direction, c, sides=True)
            # The draws must also lie on the side of the scores on which the labels lie.
            on_side = _share(sides >= self.hypotheses.side * (1 - 1e-12))
            return -self._excess(min(_share(values <= reached), on_side))

        if beyond is not None and self._error(beyond[0]) <= beyond[1] and excess(beyond[0]) >= 0:
            return beyond[1]
        c = self._crossing(excess)
        self.limit = self.hypotheses.last(self.direction) if c is None else c
        return self._error(self.limit)

    def _statistics(self, c):
        if c not in self._values:
            self._values[c] = self.hypotheses.drawn(self.direction, c)[0]
        return self._values[c]

    def _excess(self, share):
        """Return by how much a share of draws exceeds the tail, as normal deviates; 0 within its Monte Carlo error."""
        if abs(share - self.tail) <= _CLOSE * self.tail:
            return 0.0
        return ndtri(min(share, 1 - 1e-6)) - ndtri(self.tail)

    def _error(self, c):
        return self.hypotheses.error(self.hypotheses.frequency(self.direction, c))

    def _crossing(self, excess):
        """Return the c at which `excess`, a step function that rises on the whole, reaches 0, or None."""
        last = self.hypotheses.last(self.direction)
        below, c = 0.0, 0.0
        while excess(c) < 0:
            if c >= last:
                return None
            below, c = c, min(max(_GROWTH * c, self.hypotheses.first(self.direction)), last)
        return c if c == 0 or excess(c) == 0 else brentq(excess, below, c, xtol=_PRECISION * c)


def _share(hits):
    # The observed value counts as one more draw: the interval then covers for any number of draws.
    return float(1 + np.count_nonzero(hits)) / (1 + len(hits))
