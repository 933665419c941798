"""One bin for each distinct score."""

from skcalib._rows.sorting import first_rows, sorted_scores
from skcalib.binning._base import BaseBinning, edges_between


class UniqueScores(BaseBinning):
    """One bin for each distinct score, for models with few distinct scores.

    The edges are the midpoints between neighbouring scores.

    See Also
    --------
    skcalib.binning.FixedEdges : Bins with given edges.
    skcalib.binning.EqualMass : Bins with equal numbers of samples.

    Examples
    --------
    The bins for a model that predicts only three distinct values:

    >>> import numpy as np
    >>> from skcalib.binning import UniqueScores
    >>> scores = np.random.default_rng(0).choice([0.1, 0.4, 0.8], 500)
    >>> UniqueScores().bin_edges(scores).round(3).tolist()
    [0.0, 0.25, 0.6, 1.0]
    """

    needs_unit_interval = False
    _sorts_up_to = float("inf")

    def _edges(self, scores, y, sample_weight):
        """Return the edges (n_bins + 1,) of one bin for each distinct score."""
        ordered = sorted_scores(scores)
        distinct = ordered[first_rows(ordered)]
        return edges_between(distinct[:-1], distinct[1:])
