"""The sweep's error of many draws of the labels at once: the cuts of each number of
bins are the same for all.
"""

from functools import cached_property

import numpy as np

from skcalib._errors.error import ErrorPower
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._monotonic_sweep import cuts_of, finest_cuts, sweep

# bins up to which all draws are swept together; few go on, unless the labels are nearly
# separable
_TOGETHER = 64
# differences of frequencies, and of sums of events, that are rounding
_TIED, _ROUNDING = 1e-12, 1e-6


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
        cumulative = _sums_before(self.weight)
        self.table = DistinctScores(self.scores, cumulative, cumulative)
        self.below = cuts_of(base)
        self.expected = _sums_before(self.weight * self.scores)

    @property
    def observed(self):
        """The power of the labels."""
        positives = _sums_before(self.cells.weighted_label)
        return float(self._binned(positives[None], self._sweep(positives))[0])

    def power(self, frequency):
        """See `ErrorPower`; for frequencies (draws, m)."""
        positives = np.zeros((len(frequency), len(self.scores) + 1))
        np.cumsum(frequency * self.weight, axis=1, out=positives[:, 1:])
        if np.abs(positives[0] - np.rint(positives[0])).max() < _ROUNDING:
            np.rint(positives, out=positives)  # counts, free of rounding
        powers = np.empty(len(frequency))
        # Draws whose frequencies rise all the way end at the finest bins.
        rising = np.all(np.diff(frequency, axis=1) >= -_TIED, axis=1)
        finest = finest_cuts(self.table, self.below)
        powers[rising] = self._binned(positives[rising], finest)
        # The others go through 2, 3, ... bins together. A draw whose frequencies fall
        # has its error in the bins before.
        swept = np.flatnonzero(~rising)
        before = np.array([0, len(self.scores)])
        for below in self.partitions:
            events = np.diff(positives[np.ix_(swept, below)], axis=1)
            frequencies = events / np.diff(self.table.weight[below])
            falling = np.any(frequencies[:, 1:] < frequencies[:, :-1] - _TIED, axis=1)
            stopped = swept[falling]
            powers[stopped] = self._binned(positives[stopped], before)
            swept = swept[~falling]
            before = below
            if not len(swept):
                break
        # Few draws are left after many bins: each is swept by itself.
        for draw in swept:
            cuts = self._sweep(positives[draw])
            powers[draw] = self._binned(positives[draw : draw + 1], cuts)[0]
        return powers

    @cached_property
    def partitions(self):
        """How many scores lie below each cut of 2, 3, ... bins."""
        n_bins = range(2, min(len(self.scores), _TOGETHER) + 1)
        return [
            np.unique(self.below(self.table, count, np.arange(count + 1)))
            for count in n_bins
        ]

    def _sweep(self, positives):
        """Return the cuts of the sweep for cumulative events (m + 1,)."""
        _, cuts = sweep(self.table._replace(positives=positives), self.below)
        return cuts

    def _binned(self, positives, below):
        """Return the plugin powers for cumulative events (draws, m + 1) and cuts."""
        below = np.unique(below)
        weight = np.diff(self.table.weight[below])
        excess = np.diff(self.expected[below] - positives[:, below], axis=1)
        gap = np.abs(excess) / weight
        if self.norm == np.inf:
            return gap.max(axis=1, initial=0)
        return gap**self.norm @ (weight / self.table.weight[-1])

    def noiseless(self, frequency):
        """Return the power of the error of each score."""
        return float(self.norm_of(np.abs(frequency - self.scores)))


def _sums_before(values):
    """Return the sums of the values before each place, and of all; of their dtype."""
    return np.append(values[:1] * 0, np.cumsum(values))
