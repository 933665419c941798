"""The most bins whose event frequencies rise with the score."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np

from skcalib._rows.sorting import DistinctScores, in_order
from skcalib.binning._base import WEIGHT_TOLERANCE, BaseBinning, edges_above
from skcalib.binning._equal_mass import EqualMass
from skcalib.binning._equal_width import EqualWidth

# Several numbers of bins are tried in one go, with about this many cuts together: few
# enough for their arrays to stay in the processor's cache.
_BLOCK_CUTS = 1 << 16


class MonotonicSweep(BaseBinning):
    """The largest number of bins whose event frequencies still increase.

    Starting from two bins, bins are added as long as no bin has a lower event frequency
    than the previous one. The number of bins is at most the number of distinct scores.
    Empty bins are ignored. If the frequency increases with every distinct score, the
    result is one bin per score. With few samples, a binned error has less bias with
    these bins than with a fixed number of bins. However, the estimated error is still
    too large for a model that is calibrated or nearly calibrated.

    Parameters
    ----------
    base : EqualMass or EqualWidth, default=None
        Strategy that places the bin edges; None means ``EqualMass()``. Its `n_bins` is
        not used.

    See Also
    --------
    skcalib.binning.PoolAdjacentViolators : The bins of the isotonic fit.
    skcalib.metrics.sweep_calibration_error : The error with these bins.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation.

    Examples
    --------
    With two bins, the frequency increases from 0 to 1/3. With three bins, it would fall
    from 1/2 to 0 in the last bin.

    >>> import numpy as np
    >>> from skcalib.binning import MonotonicSweep
    >>> scores, y = (
    ...     np.array([0.1, 0.2, 0.4, 0.5, 0.7, 0.8]),
    ...     np.array([0, 0, 0, 1, 0, 0], dtype=bool),
    ... )
    >>> MonotonicSweep().bin_edges(scores, y).round(6).tolist()
    [0.0, 0.45, 1.0]
    """

    needs_labels = True
    _sorts_up_to = float("inf")
    _default_objects = {"base": EqualMass}

    def __init__(self, base: EqualMass | EqualWidth | None = None):
        self.base = base

    @property
    def needs_unit_interval(self):
        """Whether the base strategy needs scores on [0, 1]."""
        return cuts_of(self.base) is equal_width_below

    def _edges(self, scores, y, sample_weight):
        """Return the edges of the most bins whose event frequencies rise; see
        `BaseBinning._edges`.
        """
        below = cuts_of(self.base)
        table = DistinctScores.from_rows(scores, y, sample_weight)
        n_bins, cuts = sweep(table, below)
        if below is equal_width_below:
            return np.linspace(0, 1, n_bins + 1)
        last_of_bin = cuts[1:-1] - 1
        return edges_above(table.scores, last_of_bin)


def cuts_of(base):
    """Return the function that places the cuts of a sweep, `equal_mass_below` or
    `equal_width_below`, for the base strategy of a `MonotonicSweep`; None means
    `EqualMass`.
    """
    if base is None or isinstance(base, EqualMass):
        return equal_mass_below
    if isinstance(base, EqualWidth):
        return equal_width_below
    raise TypeError(
        f"base of MonotonicSweep must be EqualMass() or EqualWidth(), found {base!r}."
    )


def equal_mass_below(table, n_bins, cut):
    """Return how many distinct scores lie below the cuts of equal-mass partitions.

    Cut c lies just above the first score up to which the rows have c / n_bins of all
    weight.

    Parameters
    ----------
    table : DistinctScores
        The distinct scores.
    n_bins : int or ndarray of int, shape (m,)
        Number of bins of each partition.
    cut : ndarray of int, shape (m,)
        Number of each cut, from 0 (below all scores) to n_bins (above all).

    Returns
    -------
    n_below : ndarray of int, shape (m,)
        Numbers of scores.
    """
    # cumulative: entry k is the weight of the first k distinct scores, the last is all
    weight_up_to = table.weight
    total = weight_up_to[-1]
    if table.is_count:
        # cut * total / n_bins, rounded up (as minus the floor of minus it): a count is
        # at least a number where it is at least that number rounded up.
        reached = -(-cut * int(total) // n_bins)
    else:
        reached = cut * (total * (1 - WEIGHT_TOLERANCE)) / n_bins
    reached = np.asarray(reached, dtype=weight_up_to.dtype)
    n_below = np.searchsorted(weight_up_to, reached, side="left")
    return np.where(cut == n_bins, len(table.scores), n_below)


def equal_width_below(table, n_bins, cut):
    """Return how many distinct scores lie below cuts of partitions of equal width, the
    cut c at c / n_bins; arguments and result are those of `equal_mass_below`.
    """
    edge = cut * (1 / n_bins)  # rounds as np.linspace(0, 1, n_bins + 1) does
    n_below = np.searchsorted(table.scores, edge, side="right")
    n_below = np.where(cut == n_bins, len(table.scores), n_below)
    return np.where(cut == 0, 0, n_below)


def finest_cuts(table, below):
    """Return the cuts for as many bins as distinct scores, at which a sweep ends if the
    frequencies increase for every number of bins.

    Each cut is given as the number of distinct scores below it. With equal mass
    (`below` is `equal_mass_below`), each score has its own bin.
    """
    n_scores = len(table.scores)
    cuts = np.arange(n_scores + 1)
    if below is equal_mass_below:
        return cuts
    return below(table, n_scores, cuts)


def sweep(table: DistinctScores, below: Callable[..., Any]) -> tuple[int, np.ndarray]:
    """Find the largest B up to the number of distinct scores for which 2, ..., B bins
    all have increasing frequencies.

    Parameters
    ----------
    table : DistinctScores
        The distinct scores.
    below : callable
        `equal_mass_below` or `equal_width_below`: the family of partitions to sweep
        through.

    Returns
    -------
    n_bins : int
        The sweep's number of bins; 1 for a single distinct score.
    cuts : ndarray of int
        Number of distinct scores below each cut, from the lowest (0) to the highest.
        Equal cuts mean empty bins.
    """
    limit = len(table.scores)
    # If the frequencies of single scores rise, so do those of bins, for every B. Where
    # they do not, the first scores mostly tell: they are looked at first.
    if _rises(table, slice(_BLOCK_CUTS)) and _rises(table, slice(None)):
        return limit, finest_cuts(table, below)

    # Bins left of the first positive have frequency 0 and bins right of the last
    # negative 1: nothing falls there. `first` and `last` are these two scores.
    n_up_to_first = np.searchsorted(table.positives, table.positives[:1], side="right")
    first = n_up_to_first[0] - 1
    # The fewest scores, from the lowest on, that have all negatives; `weight[k]` and
    # `positives[k]` are the sums of the first k scores.
    n_negatives = table.weight[-1] - table.positives[-1]
    all_negatives_at = bisect_left(
        range(limit), n_negatives, key=lambda k: table.weight[k] - table.positives[k]
    )
    last = all_negatives_at - 1
    # From `first` to `last` as shares of the mass, or of the width: only cuts between
    # `low` and `high` matter.
    if below is equal_mass_below:
        low, high = table.weight[[first, last + 1]] / table.weight[-1]
    else:
        low, high = table.scores[[first, last]].astype(float)

    # Numbers of bins are tried in blocks: as many at once as are tried already, but not
    # so many that their cuts between `low` and `high` (and a few on either side) are
    # more than _BLOCK_CUTS.
    start = 2
    falling = None  # the first number of bins for which a frequency falls
    while start <= limit and falling is None:
        cuts_of_start = int(start * (high - low) + 5)
        size = min(start, max(1, _BLOCK_CUTS // cuts_of_start))
        numbers = np.arange(start, min(start + size, limit + 1))
        falling = _first_falling(table, below, numbers, low, high)
        start += size
    n_bins = limit
    if falling is not None:
        n_bins = falling - 1
    return n_bins, below(table, n_bins, np.arange(n_bins + 1))


def _rises(table, scores):
    """Return whether the event frequencies of a slice of the distinct scores rise."""
    events = np.diff(table.positives[scores])
    return in_order(events / np.diff(table.weight[scores]))


def _first_falling(table, below, n_bins, low, high):
    """Return the first of several numbers of bins for which the event frequency falls
    from a bin to the next, or None.

    Parameters
    ----------
    table : DistinctScores
        The distinct scores.
    below : callable
        `equal_mass_below` or `equal_width_below`.
    n_bins : ndarray of int, shape (m,)
        Numbers of bins to try.
    low, high : float
        Shares of the mass, or of the width, between which frequencies may fall.
    """
    # 1. The cuts of each number that may matter. One cut more than needed on either
    # side: rounding of the products cannot matter then.
    first_cut = np.maximum(np.floor(n_bins * low) - 1, 0).astype(np.int64)
    last_cut = np.minimum(np.ceil(n_bins * high) + 1, n_bins).astype(np.int64)
    n_cuts = last_cut - first_cut + 1
    # All of them in one array: `owner` is the place of the number in `n_bins`, `cut`
    # the number of the cut, from the first to the last.
    owner = np.repeat(np.arange(len(n_bins)), n_cuts)
    start = np.cumsum(n_cuts) - n_cuts
    cut = np.arange(len(owner)) + np.repeat(first_cut - start, n_cuts)
    n_below = below(table, n_bins[owner], cut)
    # 2. The bins between them; empty ones are skipped.
    is_bin = (owner[1:] == owner[:-1]) & (n_below[1:] > n_below[:-1])
    bins = np.flatnonzero(is_bin)
    left = n_below[bins]
    right = n_below[bins + 1]
    owner = owner[bins]
    events = table.positives[right] - table.positives[left]
    frequency = events / (table.weight[right] - table.weight[left])
    # 3. The first fall from a bin to the next one of the same number.
    falls = (frequency[1:] < frequency[:-1]) & (owner[1:] == owner[:-1])
    if not falls.any():
        return None
    first_fall = np.argmax(falls)
    return int(n_bins[owner[1:][first_fall]])
