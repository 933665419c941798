"""The most bins whose event frequencies rise with the score."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np

from skcalib._input.tensors import as_array
from skcalib._rows.namespaces import (
    distinct_of_sorted,
    in_double,
    placed,
    true_positions,
)
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._base import WEIGHT_TOLERANCE, BaseBinning, edges_between
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
        return cut_rule_of(self.base) is equal_width_positions

    def _edges(self, scores, y, sample_weight):
        """Return the edges of the most bins whose frequencies rise, as do those of any
        smaller number of bins.
        """
        return self._edges_of_table(DistinctScores.from_rows(scores, y, sample_weight))

    def _edges_of_table(self, table):
        """Return the same for `DistinctScores`, which may be on a device."""
        cut_rule = cut_rule_of(self.base)
        n_bins, n_below_cut = sweep(table, cut_rule)
        if cut_rule is equal_width_positions:
            return np.linspace(0, 1, n_bins + 1)
        # An inner edge lies between the last score below a cut and the next one.
        xp = table.xp
        n_below_cut = distinct_of_sorted(xp, n_below_cut[1:-1])
        n_below_cut = n_below_cut[n_below_cut < table.size]
        lower, _ = as_array(xp.take(table.scores, n_below_cut - 1))
        upper, _ = as_array(xp.take(table.scores, n_below_cut))
        return edges_between(lower, upper)


def cut_rule_of(base):
    """Return the function that places the cuts of a sweep for the base strategy of a
    `MonotonicSweep`: `equal_mass_positions` for `EqualMass` or None,
    `equal_width_positions` for `EqualWidth`.
    """
    if base is None or isinstance(base, EqualMass):
        return equal_mass_positions
    if isinstance(base, EqualWidth):
        return equal_width_positions
    raise TypeError(
        f"base of MonotonicSweep must be EqualMass() or EqualWidth(), found {base!r}."
    )


def equal_mass_positions(table, n_bins, cut):
    """Return the positions of cuts into bins of equal weight: how many distinct scores
    lie below each.

    Cut number c of `n_bins` bins lies just above the first score up to which the rows
    have at least c / n_bins of all weight.

    Parameters
    ----------
    table : DistinctScores
        The distinct scores.
    n_bins : int or ndarray of int, shape (m,)
        The number of bins that each cut belongs to.
    cut : ndarray of int, shape (m,)
        Number of each cut, from 0 (below all scores) to n_bins (above all).

    Returns
    -------
    positions : array of int, shape (m,)
        Numbers of distinct scores, where the table is.
    """
    xp = table.xp
    weight_up_to = table.weight  # entry k is the weight of the first k distinct scores
    total = weight_up_to[-1]
    if table.is_count:
        # A count of rows is at least cut * total / n_bins if it is at least this
        # number rounded up, which is minus the floor of minus it.
        needed = -(-cut * int(total) // n_bins)
    else:
        # A little less than the total, so that the rounding of sums moves no cut.
        needed = cut * (float(total) * (1 - WEIGHT_TOLERANCE)) / n_bins
    needed = placed(xp, needed, weight_up_to)
    positions = xp.searchsorted(weight_up_to, needed, side="left")
    return _with_ends(table, positions, n_bins, cut)


def equal_width_positions(table, n_bins, cut):
    """Return the positions (m,) of cuts into bins of equal width: how many distinct
    scores of the `table` are at most cut / n_bins. `cut` (m,) numbers each cut from 0
    (below all scores) to `n_bins`, the number of bins that it belongs to.
    """
    xp = table.xp
    edge = cut * (1 / n_bins)  # rounds as np.linspace(0, 1, n_bins + 1) does
    if xp is not np:
        edge = placed(xp, edge, table.scores)
    positions = xp.searchsorted(table.scores, edge, side="right")
    return _with_ends(table, positions, n_bins, cut)


def _with_ends(table, positions, n_bins, cut):
    """Return positions (m,) in which the outer cuts lie below and above all scores,
    even those of exactly 0.
    """
    xp = table.xp
    is_lowest = placed(xp, cut == 0, positions, dtype=bool if xp is np else xp.bool)
    is_highest = placed(xp, cut == n_bins, is_lowest)
    positions = xp.where(is_highest, xp.full_like(positions, table.size), positions)
    return xp.where(is_lowest, xp.zeros_like(positions), positions)


def positions_of_most_bins(table, cut_rule):
    """Return the positions of the cuts into as many bins as there are distinct scores,
    the most that a sweep can reach: how many distinct scores lie below each.

    With equal mass (`cut_rule` is `equal_mass_positions`) each score then has its own
    bin.
    """
    cuts = np.arange(table.size + 1)
    if cut_rule is equal_mass_positions:
        return placed(table.xp, cuts, table.weight, dtype=table.xp.int64)
    return cut_rule(table, table.size, cuts)


def sweep(table: DistinctScores, cut_rule: Callable[..., Any]) -> tuple[int, Any]:
    """Find the largest B up to the number of distinct scores for which 2, ..., B bins
    all have increasing frequencies.

    Parameters
    ----------
    table : DistinctScores
        The distinct scores.
    cut_rule : callable
        `equal_mass_positions` or `equal_width_positions`: where the cuts of a number of
        bins lie.

    Returns
    -------
    n_bins : int
        The sweep's number of bins; 1 for a single distinct score.
    cuts : array of int
        Number of distinct scores below each cut, from the lowest (0) to the highest,
        where the table is. Equal cuts mean empty bins.
    """
    most_bins = table.size
    # If the frequencies of the single scores rise, so do those of any bins. Mostly they
    # do not, and the first scores show it: looking at these saves a look at all.
    first_scores = slice(min(_BLOCK_CUTS, most_bins + 1))
    if _rises(table, first_scores) and _rises(table, slice(None)):
        return most_bins, positions_of_most_bins(table, cut_rule)
    low, high = _mixed_range(table, cut_rule)
    # Numbers of bins are tried in blocks. A block has as many numbers as were tried
    # before it, but together at most about _BLOCK_CUTS cuts between `low` and `high`,
    # where each number has a few more than n_bins * (high - low).
    smallest = 2
    first_falling = None
    while smallest <= most_bins and first_falling is None:
        n_cuts = int(smallest * (high - low) + 5)
        size = min(smallest, max(1, _BLOCK_CUTS // n_cuts))
        block = np.arange(smallest, min(smallest + size, most_bins + 1))
        first_falling = _first_falling(table, cut_rule, block, low, high)
        smallest += size
    n_bins = most_bins
    if first_falling is not None:
        n_bins = first_falling - 1
    return n_bins, cut_rule(table, n_bins, np.arange(n_bins + 1))


def _rises(table, scores):
    """Return whether the event frequencies at the distinct scores never fall; `scores`
    is a slice that selects some of them.
    """
    positives = in_double(table.xp, table.positives[scores])
    weight = in_double(table.xp, table.weight[scores])
    frequency = (positives[1:] - positives[:-1]) / (weight[1:] - weight[:-1])
    return bool(table.xp.all(frequency[1:] >= frequency[:-1]))


def _mixed_range(table, cut_rule):
    """Return the range (low, high) in which frequencies can fall, from the lowest score
    with an event to the highest with a non-event, as shares of the weight for
    equal-mass bins, else scores. The labels must not be separable.
    """
    # `table.positives[k]` and `table.weight[k]` are sums over the first k scores. The
    # first event is at the last k with a sum of 0; this 0 has the array's own type, so
    # that the search converts nothing.
    zero = table.positives[:1]
    n_up_to_event = table.xp.searchsorted(table.positives, zero, side="right")
    lowest_event = int(n_up_to_event[0]) - 1
    # The fewest scores, from the lowest on, that have all non-events.
    n_non_events = table.weight[-1] - table.positives[-1]
    n_up_to_non_event = bisect_left(
        range(table.size),
        n_non_events,
        key=lambda k: table.weight[k] - table.positives[k],
    )
    highest_non_event = n_up_to_non_event - 1
    if cut_rule is equal_mass_positions:
        # from below the one score to above the other
        total = float(table.weight[-1])
        low = float(table.weight[lowest_event]) / total
        high = float(table.weight[highest_non_event + 1]) / total
        return low, high
    return float(table.scores[lowest_event]), float(table.scores[highest_non_event])


def _first_falling(table, cut_rule, n_bins, low, high):
    """Return the first of the numbers `n_bins` (m,) for which the event frequency falls
    from a bin to the next, or None. `cut_rule` is `equal_mass_positions` or
    `equal_width_positions`; frequencies can fall from `low` to `high`, see
    `_mixed_range`.
    """
    # 1. For each number of bins, the cuts from `low` to `high`, and one more on either
    # side, so that rounding of the products does not matter.
    first_cut = np.maximum(np.floor(n_bins * low) - 1, 0).astype(np.int64)
    last_cut = np.minimum(np.ceil(n_bins * high) + 1, n_bins).astype(np.int64)
    # All cuts are put into one array: those of the first number of bins, then those of
    # the second, and so on. `trial` says to which entry of `n_bins` a cut belongs,
    # `begins` where the cuts of an entry begin.
    n_cuts = last_cut - first_cut + 1
    trial = np.repeat(np.arange(len(n_bins)), n_cuts)
    begins = np.cumsum(n_cuts) - n_cuts
    cut = first_cut[trial] + np.arange(len(trial)) - begins[trial]
    xp = table.xp
    position = cut_rule(table, n_bins[trial], cut)
    trial = placed(xp, trial, position)
    # 2. The bins between neighbouring cuts of the same trial. Empty ones are skipped.
    is_same_trial = trial[1:] == trial[:-1]
    lower_cuts = true_positions(xp, is_same_trial & (position[1:] > position[:-1]))
    left = xp.take(position, lower_cuts)
    right = xp.take(position, lower_cuts + 1)
    trial_of_bin = xp.take(trial, lower_cuts)
    events = xp.take(table.positives, right) - xp.take(table.positives, left)
    weight = xp.take(table.weight, right) - xp.take(table.weight, left)
    frequency = in_double(xp, events) / in_double(xp, weight)
    # 3. The first fall from a bin to the next one of the same trial.
    is_same_trial = trial_of_bin[1:] == trial_of_bin[:-1]
    falls = true_positions(xp, (frequency[1:] < frequency[:-1]) & is_same_trial)
    if not falls.shape[0]:
        return None
    return int(n_bins[int(trial_of_bin[int(falls[0])])])
