"""The sweep's error of many draws of the labels at once: the cuts of each number of bins are the same for all."""

from functools import cached_property

import numpy as np

from skcalib._errors.binned import BinnedPower
from skcalib._errors.power import Power
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._monotonic_sweep import MonotonicSweep, cuts_of, finest_cuts, sweep

_TOGETHER = 64  # bins up to which all draws are swept together; few go on, unless the labels are nearly separable
_TIED, _ROUNDING = (
    1e-12,
    1e-6,
)  # differences of frequencies, and of sums of events, that are rounding


class SweepPower(Power):
    """The error with as many bins as keep the event frequency rising; see `sweep_calibration_error` for `base`."""

    def __init__(self, cells, *, norm=1, base=None):
        super().__init__(cells, norm=norm)
        cumulative = np.append(self.weight[:1] * 0, np.cumsum(self.weight))
        self.table = DistinctScores(self.scores, cumulative, cumulative)
        self.below = cuts_of(base)
        self.expected = np.append(0.0, np.cumsum(self.weight * self.scores))

    @classmethod
    def of_task(cls, task, most=None, *, norm=1, base=None):
        """See `Power`; the value is the plugin error of the sweep's bins."""
        if most is None:
            return BinnedPower.of_task(
                task, norm=norm, method="plugin", binning=MonotonicSweep(base)
            )
        return super().of_task(task, most, norm=norm, base=base)

    @property
    def observed(self):
        """The power of the labels."""
        positives = np.append(
            self.cells.weighted_label[:1] * 0, np.cumsum(self.cells.weighted_label)
        )
        return float(self._binned(positives[None], self._sweep(positives))[0])

    def power(self, frequency):
        """See `Power`; for frequencies (draws, m)."""
        positives = np.zeros((len(frequency), len(self.scores) + 1))
        np.cumsum(frequency * self.weight, axis=1, out=positives[:, 1:])
        if np.abs(positives[0] - np.rint(positives[0])).max() < _ROUNDING:
            np.rint(positives, out=positives)  # counts, free of rounding
        powers = np.empty(len(frequency))
        rising = np.all(np.diff(frequency, axis=1) >= -_TIED, axis=1)
        powers[rising] = self._binned(
            positives[rising], finest_cuts(self.table, self.below)
        )
        left, before = np.flatnonzero(~rising), np.array([0, len(self.scores)])
        for below in self.partitions:
            sums = np.diff(positives[np.ix_(left, below)], axis=1) / np.diff(
                self.table.weight[below]
            )
            falling = np.any(sums[:, 1:] < sums[:, :-1] - _TIED, axis=1)
            powers[left[falling]] = self._binned(positives[left[falling]], before)
            left, before = left[~falling], below
            if not len(left):
                break
        for draw in left:
            powers[draw] = self._binned(
                positives[draw : draw + 1], self._sweep(positives[draw])
            )[0]
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
        return sweep(self.table._replace(positives=positives), self.below)[1]

    def _binned(self, positives, below):
        below = np.unique(below)
        weight = np.diff(self.table.weight[below])
        gap = (
            np.abs(np.diff(self.expected[below] - positives[:, below], axis=1)) / weight
        )
        return (
            gap.max(axis=1, initial=0)
            if self.norm == np.inf
            else gap**self.norm @ (weight / self.table.weight[-1])
        )

    def noiseless(self, frequency):
        """Return the power of the error of each score."""
        return float(self.norm_of(np.abs(frequency - self.scores)))
