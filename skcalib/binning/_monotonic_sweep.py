"""The most bins whose event frequencies rise with the score."""

from bisect import bisect_left

import numpy as np

from skcalib._rows.blocks import row_blocks
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._base import BaseBinning, edges_above
from skcalib.binning._equal_mass import EqualMass
from skcalib.binning._equal_width import EqualWidth


class MonotonicSweep(BaseBinning):
    """The most bins whose event frequencies still rise with the score.

    Starting from two bins, one bin more is tried as long as no bin has a lower event frequency than the one before.
    There are at most as many bins as distinct scores. Empty bins are ignored. Where the frequency rises from each
    distinct score to the next, equal-mass bins end as one per score. With these bins a binned error from few rows has
    less bias than with a fixed number of bins. It is still too large for a model that is calibrated or nearly so.

    Parameters
    ----------
    base : EqualMass or EqualWidth, default=None
        Where the bins are cut; None means ``EqualMass()``. Its `n_bins` is not used.

    See Also
    --------
    skcalib.binning.PoolAdjacentViolators : The bins of the isotonic fit.
    skcalib.metrics.sweep_calibration_error : The error in the most bins that stay increasing.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error estimation.

    Examples
    --------
    Frequencies 0 and 1/2 rise; of three bins the last one would have fallen from 1 to 0.

    >>> import numpy as np
    >>> from skcalib.binning import MonotonicSweep
    >>> scores, y = np.array([0.1, 0.2, 0.4, 0.5, 0.7, 0.8]), np.array([0, 0, 0, 1, 0, 0], dtype=bool)
    >>> MonotonicSweep().bin_edges(scores, y).round(6).tolist()
    [0.0, 0.45, 1.0]
    """

    needs_labels = True
    _default_objects = {"base": EqualMass}

    def __init__(self, base=None):
        self.base = base

    @property
    def needs_unit_interval(self):
        """Whether the base strategy needs scores on [0, 1]."""
        return cuts_of(self.base) is EqualWidthCuts

    def _edges(self, scores, y, sample_weight):
        cuts = cuts_of(self.base)
        table = DistinctScores.from_rows(scores, y, sample_weight)
        n_bins, below = sweep(cuts(table))
        return np.linspace(0, 1, n_bins + 1) if cuts is EqualWidthCuts else edges_above(table.scores, below[1:-1] - 1)


def cuts_of(base):
    """Return the class of the cuts that a sweep with this base goes through."""
    for strategy, cuts in ((EqualMass, EqualMassCuts), (EqualWidth, EqualWidthCuts)):
        if isinstance(EqualMass() if base is None else base, strategy):
            return cuts
    raise TypeError(f"base of MonotonicSweep must be EqualMass() or EqualWidth(), found {base!r}.")


# Cuts (of all bin counts in a block) that are looked at in one go: the temporaries stay in the cache.
_BLOCK_CUTS = 1 << 16


class EqualMassCuts:
    """Cuts of B bins of equal mass: the library's one rule, as in `skcalib.binning.EqualMass`."""

    def __init__(self, table):
        self.table = table

    def below(self, n_bins, cut):
        """Return how many distinct scores lie below cut `cut` of `n_bins`, arrays of one shape."""
        weight = self.table.weight
        if self.table.is_count:
            reached = -(-cut * int(weight[-1]) // n_bins)
        else:
            reached = cut * (weight[-1] * (1 - 1e-12)) / n_bins  # a sum of weights counts as reached within rounding
        below = np.searchsorted(weight, np.asarray(reached, dtype=weight.dtype), side="left")
        return np.where(cut == n_bins, len(self.table.scores), below)

    def finest(self):
        """Return what the sweep ends with if no partition stops it: a bin for each distinct score."""
        m = len(self.table.scores)
        return m, np.arange(m + 1)

    def bracket(self, n_bins, first, last):
        """Return a cut below distinct score `first` and one above `last`, within a cut or two of the closest."""
        share = self.table.weight[[first, last + 1]] / self.table.weight[-1]
        return _bracket(n_bins, *share)


class EqualWidthCuts:
    """Cuts of B bins of equal width on [0, 1], as in `skcalib.binning.EqualWidth`."""

    def __init__(self, table):
        self.table = table

    def below(self, n_bins, cut):
        """Return how many distinct scores lie below cut `cut` of `n_bins`, arrays of one shape."""
        edge = cut * (1 / n_bins)  # rounds as np.linspace(0, 1, n_bins + 1) does
        below = np.searchsorted(self.table.scores, edge, side="right")
        return np.where(cut == 0, 0, np.where(cut == n_bins, len(self.table.scores), below))

    def finest(self):
        """Return what the sweep ends with if no partition stops it: as many bins as there are distinct scores."""
        m = len(self.table.scores)
        return m, self.below(m, np.arange(m + 1))

    def bracket(self, n_bins, first, last):
        """Return a cut below distinct score `first` and one above `last`, within a cut or two of the closest."""
        return _bracket(n_bins, *self.table.scores[[first, last]].astype(np.float64))


def sweep(cuts):
    """Find the largest B up to the number of distinct scores for which 2, ..., B bins all have rising frequencies.

    Parameters
    ----------
    cuts : EqualMassCuts or EqualWidthCuts
        The family of partitions to sweep through.

    Returns
    -------
    n_bins : int
        The sweep's number of bins; 1 for a single distinct score.
    below : ndarray of int
        For each cut from the lowest (0) to the highest how many distinct scores lie below it. Equal cuts are empty
        bins.
    """
    table = cuts.table
    limit = len(table.scores)
    if _rises(table):
        return cuts.finest()  # averages of rising frequencies rise, for every B
    # Bins left of the first positive have frequency 0 and bins right of the last negative 1: nothing falls there.
    first = np.searchsorted(table.positives, table.positives[:1], side="right")[0] - 1
    negatives = table.weight[-1] - table.positives[-1]
    last = bisect_left(range(limit), negatives, key=lambda below: table.weight[below] - table.positives[below]) - 1
    start, falling = 2, None
    while start <= limit and falling is None:
        low, high = cuts.bracket(start, first, last)
        size = min(start, max(1, _BLOCK_CUTS // int(high - low + 1)))
        falling = _first_falling(cuts, np.arange(start, min(start + size, limit + 1)), first, last)
        start += size
    n_bins = limit if falling is None else falling - 1
    return n_bins, cuts.below(n_bins, np.arange(n_bins + 1))


def _rises(table):
    """Return whether the event frequency never falls from a distinct score to the next."""
    for block in row_blocks(len(table.scores)):
        entries = slice(block.start, block.stop + 2)  # with the first score of the next block
        frequency = np.diff(table.positives[entries]) / np.diff(table.weight[entries])
        if np.any(frequency[1:] < frequency[:-1]):
            return False
    return True


def _first_falling(cuts, n_bins, first, last):
    """Return the first of several bin counts for which the event frequency falls from a bin to the next, or None."""
    low, high = cuts.bracket(n_bins, first, last)
    n_cuts = high - low + 1
    owner = np.repeat(np.arange(len(n_bins)), n_cuts)
    cut = np.arange(len(owner)) + np.repeat(low - (np.cumsum(n_cuts) - n_cuts), n_cuts)
    below = cuts.below(n_bins[owner], cut)
    filled = np.flatnonzero((owner[1:] == owner[:-1]) & (below[1:] > below[:-1]))  # empty bins are skipped
    left, right, owner = below[filled], below[filled + 1], owner[filled]
    weight, positives = cuts.table.weight, cuts.table.positives
    frequency = (positives[right] - positives[left]) / (weight[right] - weight[left])
    falls = (frequency[1:] < frequency[:-1]) & (owner[1:] == owner[:-1])
    return int(n_bins[owner[1:][np.argmax(falls)]]) if falls.any() else None


def _bracket(n_bins, low_share, high_share):
    # One cut more than needed on either side: rounding of the products cannot matter then.
    low = np.maximum(np.floor(n_bins * low_share) - 1, 0).astype(np.int64)
    high = np.minimum(np.ceil(n_bins * high_share) + 1, n_bins).astype(np.int64)
    return low, high
