"""Bins with edges that the user gives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.scalars import as_numbers
from skcalib.binning._base import BaseBinning


class FixedEdges(BaseBinning):
    """Bins with user-defined edges, which are the same for every data set.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,)
        Increasing probabilities, from 0 to 1.

    See Also
    --------
    skcalib.binning.EqualWidth : Bins of equal width.
    skcalib.binning.UniqueScores : One bin for each distinct score.

    Examples
    --------
    >>> from skcalib.binning import FixedEdges
    >>> FixedEdges([0, 0.05, 0.2, 1]).bin_edges([0.5]).tolist()
    [0.0, 0.05, 0.2, 1.0]
    """

    def __init__(self, edges: ArrayLike):
        self.edges = edges

    def _edges(self, scores, y, sample_weight):
        """Return the edges (n_bins + 1,) that the user gave, after checks."""
        edges = as_numbers(self.edges, "edges of FixedEdges")
        if (
            edges.ndim != 1
            or len(edges) < 2
            or edges[0] != 0
            or edges[-1] != 1
            or not np.all(np.diff(edges) > 0)
        ):
            raise ValueError(
                f"edges of FixedEdges must increase from 0 to 1, found {self.edges!r}."
            )
        return edges
