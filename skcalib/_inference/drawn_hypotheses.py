"""A metric and the hypotheses f = s + c d, from which labels are drawn for it.

For a number c >= 0 the event frequency that belongs to a score s is taken to be
``f = s + c d``, d an estimated deviation. At c = 0 the scores are calibrated, and the
draws are those of the resampling test of calibration.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from skcalib._cells.cells import Cells
from skcalib._errors.error import ErrorPower
from skcalib._inference.count_draws import CountDraws
from skcalib._progress import Progress

# The first step of a search is at least this c.
SMALLEST_STEP = 1 / 8


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
    power : ErrorPower, default=None
        The power that is the statistic, where it is that of one problem.
    from_power : callable, default=None
        Maps such a power to the metric's own value.
    contribution : callable, default=None
        Where the statistic is a sum over cells: a function ``contribution(frequency,
        cells)`` that gives what each cell adds to it; see `CountDraws.sums`.
    """

    cells: Cells
    draw: Callable
    statistic: Callable
    error: Callable
    observed: float
    directions: list
    progress: Progress
    power: ErrorPower | None = None
    from_power: Callable | None = None
    contribution: Callable | None = None

    def drawn(self, frequency, c, *, with_distances):
        """Return the `Drawn` of drawn event frequencies: their statistics and, if asked
        for, their distances from the scores.

        A distance is the sum over the cells of a product: weight share times observed
        deviation times drawn deviation (drawn frequency minus score).

        Parameters
        ----------
        frequency : ndarray of shape (m,)
            Event frequencies of the hypothesis, from which labels are drawn.
        c : float
            Its c.
        with_distances : bool
            Whether distances are computed.
        """
        # The distance of drawn frequencies g from scores s is g @ factor - s @ factor.
        factor = self.cells.share * self.directions[0]
        of_scores = self.cells.mean_score @ factor
        if self.contribution is not None and isinstance(self.draw, CountDraws):
            # Statistics and distances are sums over cells: the draws need not be made
            # for every cell.
            contributions = [self.contribution]
            if with_distances:
                contributions.append(lambda drawn, cells: drawn * factor[cells])
            sums = self.draw.sums(contributions, frequency, c)
            self.progress(f"{sums.shape[1]} draws at c = {c:.3g}")
            distances = None
            if with_distances:
                distances = sums[1] - of_scores
            return Drawn(sums[0], distances)
        statistics = []
        distances = []
        for drawn in self.draw(frequency, c):
            statistics.append(self.statistic(drawn))
            if with_distances:
                distances.append(drawn @ factor - of_scores)
            if self.progress.verbose:
                n_drawn = sum(map(len, statistics))
                self.progress(f"{n_drawn} draws at c = {c:.3g}")
        if with_distances:
            return Drawn(np.concatenate(statistics), np.concatenate(distances))
        return Drawn(np.concatenate(statistics), None)

    @cached_property
    def null(self):
        """The `Drawn` for labels of calibrated scores, with distances."""
        return self.drawn(self.cells.mean_score, c=0.0, with_distances=True)

    @property
    def has_null(self):
        """Whether `null` has been drawn."""
        return "null" in vars(self)

    def set_null(self, drawn):
        """Keep a `Drawn` for labels of calibrated scores as `null`."""
        object.__setattr__(self, "null", drawn)

    @property
    def observed_distance(self):
        """The distance of the observed labels, in the sense of `drawn`. The observed
        deviation in it is the first direction, which may be smoothed.
        """
        return self.cells.share * self.directions[0] @ self.cells.deviation

    @cached_property
    def slack(self):
        """The difference up to which two statistics count as equal: those of labels
        with equal sums may differ by rounding.
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
            return SMALLEST_STEP
        return max(0.5 * noise / size, SMALLEST_STEP)


def resampling_pvalue(hypotheses):
    """Return the Monte Carlo p-value of calibration: the share of the statistics of
    calibrated draws, the observed one included, that are at least as large as the
    observed one.
    """
    return share_of_draws(
        hypotheses.null.statistics >= hypotheses.observed - hypotheses.slack
    )


def share_of_draws(hits):
    """Return the share of the draws for which `hits`, boolean (n_draws,), is True.

    The observed value counts as one more draw that hits: the interval then covers for
    any number of draws.
    """
    return float(1 + np.count_nonzero(hits)) / (1 + len(hits))
