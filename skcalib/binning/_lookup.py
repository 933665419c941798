"""Which bin a score belongs to, without a search for each score."""

from functools import lru_cache

import numpy as np

from skcalib._input.scores import inside_unit_interval
from skcalib._rows.ranks import score_cells

__all__ = ["BinLookup"]

# Number of cells: a power of two, so that the product with a score is exact. Many cells a bin, and few enough for the
# cache.
_LEAST_CELLS, _MOST_CELLS, _CELLS_PER_BIN = 1 << 12, 1 << 16, 32
_FEW_CUTS = 64  # up to this number, each cut is compared with all scores: quicker than a search for each score


class BinLookup:
    """The bins of right-closed edges, for many scores.

    [0, 1] is divided into cells; a table gives the bin of each cell. Scores in the few cells that hold an edge are
    searched for. Where they are many, all scores are compared with the first edge of their cells. The result is that of
    ``np.searchsorted(edges[1:-1], scores, side="left")``.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges in increasing order.
    n_rows : int
        How many scores are going to be looked up.
    """

    def __init__(self, edges, n_rows):
        self.cuts = np.asarray(edges[1:-1], dtype=np.float64)
        self.table, self.is_crowded = None, False
        n_cells = max(_LEAST_CELLS, 1 << (_CELLS_PER_BIN * len(self.cuts)).bit_length())
        # For few rows a table is not worth making.
        if n_cells <= min(_MOST_CELLS, 2 * n_rows) and edges[0] == 0 and edges[-1] == 1:
            self.n_cells, self.table = n_cells, _table(self.cuts.tobytes(), n_cells)

    def __call__(self, scores):
        """Return the bin of each score (n,)."""
        if self.table is None:
            return _search(self.cuts, scores)
        if not self.is_crowded:
            bins = self.table.take(self._cells(scores), mode="clip")
            if not self._crowds(unsure := np.flatnonzero(bins < 0), scores):
                bins[unsure] = _search(self.cuts, scores[unsure])
                return bins
        return self._compared(scores)

    def _compared(self, scores):
        """Return the bins by the first cut of each score's cell: scores crowd in cells that hold one."""
        first, cut, is_even = _first_cuts(self.cuts.tobytes(), self.n_cells)
        cells = self._cells(scores) if is_even else score_cells(scores)
        bins = first.take(cells, mode="clip")
        bins += scores > cut.take(cells, mode="clip")
        unsure = np.flatnonzero(bins < 0)
        if len(self.cuts) <= _FEW_CUTS and self._crowds(unsure, scores):
            self.table = None
            return _search(self.cuts, scores)
        bins[unsure] = _search(self.cuts, scores[unsure])
        return bins

    def values(self, scores, values):
        """Return the value of each score's bin, ``values[self(scores)]``, in one look-up."""
        if self.table is not None and not self.is_crowded:
            of_cell = np.where(self.table < 0, np.nan, values[self.table])
            found = of_cell.take(self._cells(scores), mode="clip")
            if not self._crowds(unsure := np.flatnonzero(np.isnan(found)), scores):
                found[unsure] = values[_search(self.cuts, scores[unsure])]
                return found
        return values[self(scores)]

    def _cells(self, scores):
        cells = np.multiply(scores, self.n_cells, dtype=np.float64)
        # Scores beyond the outer edges may be too large for integers.
        if not inside_unit_interval(scores):
            np.clip(cells, 0, self.n_cells, out=cells)
        return cells.astype(np.intp)

    def _crowds(self, unsure, scores):
        """Return whether many scores are in cells that do not tell their bin, and remember it."""
        self.is_crowded |= (is_crowded := len(unsure) > len(scores) // 8)
        return is_crowded


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


@lru_cache(maxsize=8)
def _first_cuts(cuts, n_cells):
    """Return how many cuts lie below each cell, -2 where it holds several, the first cut from there on, and a bool.

    It says whether the cells are even. Those of `score_cells` are taken where more cuts have one for themselves.
    """
    cuts = np.frombuffer(cuts)
    firsts = [np.searchsorted(cuts, np.arange(n_cells + 1) / n_cells, side="left")]
    if len(cuts) > _FEW_CUTS:
        firsts.append(np.searchsorted(score_cells(cuts), np.arange(1 << 16), side="left"))
    held = [np.diff(first, append=len(cuts)) for first in firsts]
    best = max(range(len(firsts)), key=lambda k: np.count_nonzero(held[k] == 1))
    first = firsts[best]
    cut = np.append(cuts, np.inf)[first]
    first[held[best] > 1] = -2
    return first, cut, best == 0
