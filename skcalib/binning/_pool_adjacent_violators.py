"""The blocks of the isotonic fit."""

import numpy as np
from scipy.optimize import isotonic_regression

from skcalib._rows.sorting import DistinctScores
from skcalib.binning._base import BaseBinning, edges_above


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
        table = DistinctScores.from_rows(scores, y, sample_weight)
        fit = isotonic_regression(table.event_frequency, weights=np.diff(table.weight))
        # `blocks` holds the position of the first score of each block, and at its end
        # the number of scores. The last score of a block lies before the next block.
        last_of_block = fit.blocks[1:-1] - 1
        return edges_above(table.scores, last_of_block)
