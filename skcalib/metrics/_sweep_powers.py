"""The sweep's error of many draws of the labels at once: the cuts of each number of bins are the same for all."""

import numpy as np

from skcalib.binning._distinct_scores import DistinctScores
from skcalib.binning._monotonic_sweep import cuts_of
from skcalib.binning._sweep import sweep

__all__ = ["SweepPower"]

_TOGETHER = 64  # bins up to which all draws are swept together; few go on, unless the labels are nearly separable
_TIED = 1e-12  # frequencies that differ by rounding


class SweepPower:
    """Powers of the sweep's error; see `_bin_free_powers`.

    Parameters
    ----------
    weight, scores : ndarray of shape (m,)
        Weights, of integer dtype where they are counts, and distinct scores in increasing order.
    norm : float, default=1
        The norm.
    base : EqualMass or EqualWidth, default=None
        See `sweep_calibration_error`.
    """

    def __init__(self, weight, scores, *, norm=1, base=None):
        self.weight, self.scores, self.norm = weight, scores, norm
        cumulative = np.append(weight[:1] * 0, np.cumsum(weight))
        self.table = DistinctScores(scores, cumulative, cumulative)
        self.make_cuts = cuts_of(base)
        self.cuts = self.make_cuts(self.table)
        self.expected = np.append(0.0, np.cumsum(weight * scores))

    def power(self, frequency):
        """Map event frequencies (draws, m) to powers (draws,)."""
        positives = _whole(np.pad(np.cumsum(self.weight * frequency, axis=1), ((0, 0), (1, 0))))
        powers = np.empty(len(frequency))
        rising = np.all(np.diff(frequency, axis=1) >= -_TIED, axis=1)
        powers[rising] = self._binned(positives[rising], self.cuts.finest()[1])
        left, before = np.flatnonzero(~rising), np.array([0, len(self.scores)])
        limit = min(len(self.scores), _TOGETHER)
        for n_bins in range(2, limit + 1):
            below = np.unique(self.cuts.below(n_bins, np.arange(n_bins + 1)))
            sums = np.diff(positives[left][:, below], axis=1) / np.diff(self.table.weight[below])
            falling = np.any(np.diff(sums, axis=1) < -_TIED, axis=1)
            powers[left[falling]] = self._binned(positives[left[falling]], before)
            left, before = left[~falling], below
            if not len(left):
                break
        for draw in left:
            cuts = self.make_cuts(self.table._replace(positives=positives[draw]))
            powers[draw] = self._binned(positives[draw : draw + 1], sweep(cuts)[1])[0]
        return powers

    def _binned(self, positives, below):
        below = np.unique(below)
        weight = np.diff(self.table.weight[below])
        gap = np.abs(np.diff(self.expected[below] - positives[:, below], axis=1)) / weight
        return gap.max(axis=1, initial=0) if self.norm == np.inf else gap**self.norm @ (weight / self.table.weight[-1])

    def error_power(self, frequency):
        """Return the power of the error of each score for frequencies (m,) without noise."""
        gap = np.abs(frequency - self.scores)
        return float(gap.max() if self.norm == np.inf else gap**self.norm @ self.weight / self.weight.sum())

    def at(self, frequency):
        """Return itself: see `_bin_free_powers`."""
        return self


def _whole(sums):
    """Return sums of events, free of rounding where they are counts."""
    whole = np.rint(sums)
    return whole if np.abs(sums - whole).max() < 1e-6 else sums
