"""The blocks of the isotonic fit."""

import numpy as np
from scipy.optimize import isotonic_regression

from skcalib._input.tensors import as_array, library_of
from skcalib._rows.namespaces import differences, in_double, placed, runs
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._base import BaseBinning, edges_above, edges_between

# On a device, blocks are pooled until so few are left, or a round pools less than a
# tenth of them.
_FEW_BLOCKS, _SHRINKS = 1 << 8, 0.9


class PoolAdjacentViolators(BaseBinning):
    """Blocks of the isotonic fit, whose event frequencies increase.

    The number of bins does not have to be chosen. The blocks are the bins of the CORP
    reliability diagram and score decomposition.

    See Also
    --------
    skcalib.binning.MonotonicSweep : The largest number of bins whose event frequencies
        increase.
    skcalib.IsotonicCalibration : A non-decreasing map without a parametric form.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for
    probabilistic classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import PoolAdjacentViolators
    >>> scores, y = np.array([0.1, 0.2, 0.4, 0.6]), np.array([False, True, False, True])
    >>> PoolAdjacentViolators().bin_edges(scores, y).round(6).tolist()
    [0.0, 0.15, 0.5, 1.0]
    """

    needs_unit_interval = False
    needs_labels = True
    _sorts_up_to = float("inf")

    def _edges(self, scores, y, sample_weight):
        """Return the edges of the isotonic fit's blocks, runs of scores with the same
        fitted frequency.
        """
        return self._edges_of_table(DistinctScores.from_rows(scores, y, sample_weight))

    def _edges_of_table(self, table):
        """Return the same for `DistinctScores`, which may be on a device."""
        # `blocks` holds the position of the first score of each block, and at its end
        # the number of scores. The last score of a block lies before the next block.
        xp = table.xp
        if xp is np:
            weight = np.diff(table.weight)
            fit = isotonic_regression(table.event_frequency, weights=weight)
            last_of_block = fit.blocks[1:-1] - 1
            return edges_above(table.scores, last_of_block)
        # On a device the positions are those of pooled scores.
        weight = table.weight[1:] - table.weight[:-1]
        events = table.positives[1:] - table.positives[:-1]
        fit, pooled = isotonic_in_place(weight, events)
        first = placed(xp, fit.blocks[1:-1], pooled)
        above = xp.searchsorted(pooled, first)
        lower, _ = as_array(xp.take(table.scores, above - 1))
        upper, _ = as_array(xp.take(table.scores, above))
        return edges_between(lower, upper)


def isotonic_in_place(weight, events):
    """Return the isotonic fit to event frequencies on a device, that of SciPy to few
    blocks of pooled cells, and the block (m,) of each cell; `weight` and `events` (m,)
    are sums of weights, and of those of events.

    Neighbouring blocks whose frequencies do not rise are pooled together, round after
    round. When few blocks are left, or few are pooled, SciPy fits those that remain.
    """
    xp = library_of(weight)
    weight = in_double(xp, weight)
    events = in_double(xp, events)
    block_of_cell = xp.arange(weight.shape[0], device=weight.device)
    n_before = np.inf
    while _FEW_BLOCKS < weight.shape[0] < _SHRINKS * n_before:
        n_before = weight.shape[0]
        frequency = events / weight
        rises = frequency[1:] > frequency[:-1]
        is_first = xp.concat((xp.ones_like(rises[:1]), rises))
        block, last = runs(xp, is_first)
        block_of_cell = xp.take(block, block_of_cell)
        weight, events = (
            differences(xp, xp.take(xp.cumulative_sum(values), last))
            for values in (weight, events)
        )
    frequency, _ = as_array(events / weight)
    fit = isotonic_regression(frequency, weights=as_array(weight)[0])
    return fit, block_of_cell
