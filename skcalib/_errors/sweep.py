"""The sweep's error of many draws of the labels at once: the cuts of each number of
bins are the same for all.
"""

from functools import cached_property

import numpy as np

from skcalib._errors.error import ErrorPower
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._monotonic_sweep import cut_rule_of, positions_of_most_bins, sweep

# All draws are swept together up to so many bins. Few go on, unless the labels are
# nearly separable.
_TOGETHER = 64
# Smaller differences of frequencies, and of a sum of events from an integer, are
# rounding.
_TIED, _ROUNDING = 1e-12, 1e-6
_FIRST_COLUMNS = 32


class SweepPower(ErrorPower):
    """The power of the sweep error: as many bins as keep the frequency rising.

    Parameters
    ----------
    cells : Cells
        The distinct scores.
    norm : float
        The norm.
    base : EqualMass, EqualWidth or None
        See `MonotonicSweep`.
    """

    def __init__(self, cells, *, norm=1, base=None):
        super().__init__(cells, norm=norm)
        # Cumulative sums over the scores, (m + 1,): of the weights w, and of w s. The
        # table needs numbers of events as well, which `_sweep` puts in: until then the
        # weights hold their place.
        cumulative = _sums_before(self.weight)
        self.table = DistinctScores(self.scores, cumulative, positives=cumulative)
        self.weighted_scores = _sums_before(self.weight * self.scores)
        # A function that gives the number of scores below each cut: see `cut_rule_of`.
        self.cut_rule = cut_rule_of(base)

    @property
    def observed(self):
        """The p-th power of the error of the observed labels."""
        positives = _sums_before(self.cells.weighted_label)
        cuts = self._sweep(positives)
        (power,) = self._binned(positives[None], cuts)
        return float(power)

    def power(self, frequency):
        """Return the p-th powers (draws,) of the error for drawn event frequencies
        (draws, m) of the scores. A draw has the largest number of bins whose event
        frequencies rise from bin to bin.
        """
        # cumulative numbers of events, (draws, m + 1)
        positives = np.zeros((len(frequency), len(self.scores) + 1))
        if (self.weight == 1).all():  # frequencies of 0 and 1 are the events
            np.cumsum(frequency, axis=1, out=positives[:, 1:])
        else:
            np.cumsum(frequency * self.weight, axis=1, out=positives[:, 1:])
            if np.abs(positives[0] - np.rint(positives[0])).max() < _ROUNDING:
                np.rint(positives, out=positives)  # they are whole numbers of events
        powers = np.empty(len(frequency))
        # Draws whose frequencies rise from score to score have the most bins.
        rising = _rising_rows(frequency)
        if len(rising):
            finest = positions_of_most_bins(self.table, self.cut_rule)
            powers[rising] = self._binned(positives[rising], np.unique(finest))
        # The others go through 2, 3, ... bins together. Few draws are left after many
        # bins: each is swept by itself.
        draws = np.delete(np.arange(len(frequency)), rising)
        draws = self._sweep_together(positives, draws, powers)
        for draw in draws:
            cuts = self._sweep(positives[draw])
            powers[draw] = self._binned(positives[draw : draw + 1], cuts)[0]
        return powers

    def _sweep_together(self, positives, draws, powers):
        """Compute the p-th powers of the errors of the draws with the indices `draws`,
        as far as 64 bins are enough, and write them into `powers` (all draws,). Return
        the indices of the other draws.

        The number of bins grows from 2 on. A draw stops at the first number for which
        its frequencies fall from a bin to the next: the number before has its error.
        `positives` (all draws, m + 1) are cumulative events.
        """
        cuts_before = np.array([0, len(self.scores)])
        for cuts in self.partitions:
            before = positives[draws[:, None], cuts]
            weight_before = self.table.weight[cuts]
            bin_frequency = before[:, 1:] - before[:, :-1]
            bin_frequency /= weight_before[1:] - weight_before[:-1]
            falls = bin_frequency[:, 1:] < bin_frequency[:, :-1] - _TIED
            has_fall = falls.any(axis=1)
            stopped = draws[has_fall]
            powers[stopped] = self._binned(positives[stopped], cuts_before)
            draws = draws[~has_fall]
            cuts_before = cuts
            if not len(draws):
                break
        return draws

    @cached_property
    def partitions(self):
        """The cuts of 2, 3, ... bins, up to 64: for each number of bins, increasing
        numbers of scores below each cut, the outer ends included.
        """
        most_bins = min(len(self.scores), _TOGETHER)
        partitions = []
        for n_bins in range(2, most_bins + 1):
            cuts = self.cut_rule(self.table, n_bins, np.arange(n_bins + 1))
            partitions.append(np.unique(cuts))
        return partitions

    def _sweep(self, positives):
        """Return the cuts at which the sweep ends (numbers of scores below each) for
        cumulative numbers of events (m + 1,).
        """
        _, cuts = sweep(self.table._replace(positives=positives), self.cut_rule)
        return np.unique(cuts)

    def _binned(self, positives, cuts):
        """Return the p-th powers (draws,) of the plugin error in the bins between cuts
        (increasing numbers of scores below each), for cumulative events (draws, m + 1).
        """
        # Sums over the scores below each cut; their differences are those of the bins.
        # `excess` is expected less observed events.
        weight_before = self.table.weight[cuts]
        weight = weight_before[1:] - weight_before[:-1]
        excess_before = self.weighted_scores[cuts] - positives[:, cuts]
        gap = np.abs(excess_before[:, 1:] - excess_before[:, :-1]) / weight
        if self.norm == np.inf:
            return gap.max(axis=1, initial=0)
        return gap**self.norm @ (weight / self.table.weight[-1])

    def noiseless(self, frequency):
        """Return the power for frequencies (m,) without noise: that of the gap of each
        score, as the finest bins have it.
        """
        return float(self.norm_of(np.abs(frequency - self.scores)))


def _rising_rows(frequency):
    """Return the positions of the rows of frequencies (draws, m) that never fall."""
    rising = np.arange(len(frequency))
    # Most rows fall among the first few columns: only the others are looked at whole.
    for end in (_FIRST_COLUMNS, frequency.shape[1]):
        columns = frequency[rising, :end]
        falls = columns[:, 1:] < columns[:, :-1] - _TIED
        rising = rising[~falls.any(axis=1)]
    return rising


def _sums_before(values):
    """Return the sums of the first 0, 1, ..., m values, (m + 1,), in the dtype of the
    values (m,).
    """
    return np.append(values[:1] * 0, np.cumsum(values))
