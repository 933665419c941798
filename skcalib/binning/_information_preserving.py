"""Bins that lose the least information about the event."""

import math

import numpy as np

from skcalib._input.scalars import check_number
from skcalib.binning._base import BaseBinning, edges_above, resolve_n_bins
from skcalib.binning._distinct_scores import DistinctScores
from skcalib.binning._least_loss import least_loss_cuts


class InformationPreserving(BaseBinning):
    """Bins that lose the least information: one-dimensional clusters under the Kullback-Leibler divergence.

    Where the scores are calibrated, replacing each by the mean of its bin costs in expected log-loss the divergence of
    the score from that mean. These edges minimise the sum of that: they are finer near 0 and 1, and where scores
    are many. No label is used. Scaling-binning with them is hardly worse than its smooth family.

    Parameters
    ----------
    n_bins : int, {"sqrt", "cube_root"} or callable, default=None
        Number of bins, or a rule for it: see `EqualWidth`. None means ``4 n^(1/3)``, or with `max_loss` as many as
        that takes.
    max_loss : float, default=None
        Makes the fewest bins that lose at most this share of the mean entropy of the scores, such as 1e-3.

    See Also
    --------
    skcalib.binning.EqualMass : Bins with equally many rows.
    skcalib.ScalingBinning : A smooth map whose values are then binned.

    Notes
    -----
    Exact by dynamic programming for up to 1000 distinct scores. With more distinct scores, neighbours are joined first.

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman divergences. Wang and Song (2011),
    Ckmeans.1d.dp: optimal k-means clustering in one dimension by dynamic programming.

    Examples
    --------
    The probabilities 0.001 and 0.1 carry more different information than 0.4 and 0.6.

    >>> import numpy as np
    >>> from skcalib.binning import InformationPreserving
    >>> scores = np.array([0.001, 0.1, 0.4, 0.6])
    >>> InformationPreserving(3).bin_edges(scores).round(6).tolist()
    [0.0, 0.0505, 0.25, 1.0]
    """

    def __init__(self, n_bins=None, max_loss=None):
        self.n_bins = n_bins
        self.max_loss = max_loss

    def _edges(self, scores, y, sample_weight):
        if self.max_loss is not None:
            check_number(self.max_loss, "max_loss", above=0)
        as_many_as_needed = self.n_bins is None and self.max_loss is not None
        rule = _four_cube_roots if self.n_bins is None else self.n_bins
        n_bins = None if as_many_as_needed else resolve_n_bins(rule, len(scores), sample_weight)
        table = DistinctScores.from_rows(scores, np.zeros(len(scores), dtype=bool), sample_weight)
        below = least_loss_cuts(table, n_bins, self.max_loss or 0.0)
        return edges_above(table.scores, below[1:-1] - 1)


def _four_cube_roots(n_rows):
    return math.ceil(4 * math.cbrt(n_rows) - 1e-9)
