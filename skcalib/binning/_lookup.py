"""Which bin a score belongs to, without a search for each score."""

from functools import lru_cache

import numpy as np

from skcalib._input.scores import inside_unit_interval

__all__ = ["BinLookup"]

# Number of cells: a power of two, so that the product with a score is exact. Many cells a bin, and few enough for the
# cache.
_LEAST_CELLS, _MOST_CELLS, _CELLS_PER_BIN = 1 << 12, 1 << 16, 32
# Up to so many cuts are compared with all scores rather than searched for each.
_FEW_CUTS = 64


class BinLookup:
    """The bins of right-closed edges, for many scores.

    [0, 1] is divided into cells; a table gives the bin of each cell. Scores in the few cells that hold an edge are
    searched for. The result is that of ``np.searchsorted(edges[1:-1], scores, side="left")``.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges in increasing order.
    n_rows : int
        How many scores are going to be looked up.
    """

    def __init__(self, edges, n_rows):
        self.cuts = np.asarray(edges[1:-1], dtype=np.float64)
        self.table = None
        n_cells = max(_LEAST_CELLS, 1 << (_CELLS_PER_BIN * len(self.cuts)).bit_length())
        # For few rows a table is not worth making.
        if n_cells <= min(_MOST_CELLS, 2 * n_rows) and edges[0] == 0 and edges[-1] == 1:
            self.n_cells, self.table = n_cells, _table(self.cuts.tobytes(), n_cells)

    def __call__(self, scores):
        """Return the bin of each score (n,)."""
        if self.table is not None:
            bins = self.table.take(self._cells(scores), mode="clip")
            if self._resolves(unsure := np.flatnonzero(bins < 0), scores):
                bins[unsure] = _search(self.cuts, scores[unsure])
                return bins
        return _search(self.cuts, scores)

    def values(self, scores, values):
        """Return the value of each score's bin, ``values[self(scores)]``, in one look-up."""
        if self.table is not None:
            of_cell = np.where(self.table < 0, np.nan, values[self.table])
            found = of_cell.take(self._cells(scores), mode="clip")
            if self._resolves(unsure := np.flatnonzero(np.isnan(found)), scores):
                found[unsure] = values[_search(self.cuts, scores[unsure])]
                return found
        return values[_search(self.cuts, scores)]

    def _cells(self, scores):
        cells = np.multiply(scores, self.n_cells, dtype=np.float64)
        # Scores beyond the outer edges may be too large for integers.
        if not inside_unit_interval(scores):
            np.clip(cells, 0, self.n_cells, out=cells)
        return cells.astype(np.intp)

    def _resolves(self, unsure, scores):
        """Return whether cells decide the bins of most scores. The table is dropped where scores crowd at the edges."""
        if len(self.cuts) <= _FEW_CUTS and len(unsure) > len(scores) // 8:
            self.table = None
        return self.table is not None


def _search(cuts, scores):
    """Return how many cuts lie below each score. For many scores a few cuts are compared one by one."""
    if not len(cuts) <= _FEW_CUTS < len(scores) // 64:
        return np.searchsorted(cuts, scores, side="left")
    scores, bins = scores.astype(np.float64, copy=False), np.zeros(len(scores), dtype=np.uint8)
    for cut in cuts:
        bins += (scores > cut).view(np.uint8)
    return bins.astype(np.intp)


@lru_cache(maxsize=8)  # the classes of a marginal error share their edges
def _table(cuts, n_cells):
    """Return the bin of each cell, -1 for one that holds a cut; the cuts are float64 bytes."""
    cuts = np.frombuffer(cuts)
    table = np.searchsorted(cuts, np.arange(n_cells + 1) / n_cells, side="left")
    table[(cuts * n_cells).astype(np.intp)] = -1
    return table
