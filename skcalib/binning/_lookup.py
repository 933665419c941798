"""Which bin a score belongs to, without a search for each score."""

from functools import lru_cache

import numpy as np

from skcalib._input.scores import inside_unit_interval
from skcalib._rows.ranks import score_cells

# Number of even cells: a power of two, so that the product with a score is exact. Many cells a bin, and few enough for
# the cache.
_LEAST_CELLS, _MOST_CELLS, _CELLS_PER_BIN = 1 << 12, 1 << 16, 32
_SAMPLE = 1 << 12  # number of scores that show which cells suit them
_MOST_UNSURE = 1 / 32  # share of scores that may be searched for


class BinLookup:
    """The bins of right-closed edges, for many scores: those of ``np.searchsorted(edges[1:-1], scores)``.

    The scores from 0 to 1 are divided into cells. A table holds for each cell how many cuts lie below it, and the next
    cut. A score above that cut belongs to the bin after it. Only scores whose cell holds several cuts are searched for.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges in increasing order.
    scores : ndarray of shape (n,)
        All scores that are going to be looked up, block by block. For few of them no table is made.
    """

    def __init__(self, edges, scores):
        self.cuts, self.table = np.asarray(edges[1:-1], dtype=np.float64), None
        if 2 * len(scores) < _LEAST_CELLS or edges[0] != 0 or edges[-1] != 1:
            return
        wanted = max(_LEAST_CELLS, 1 << (_CELLS_PER_BIN * len(self.cuts)).bit_length())
        self.table = _table(self.cuts.tobytes(), min(wanted, _MOST_CELLS, 1 << (2 * len(scores)).bit_length() - 1))
        # Even cells are found in .8 ms for 1,000,000 scores. Those that narrow towards 0 and 1 take 1.7 ms, but tell
        # scores apart that crowd at an end: half of Beta(.05, .05) lies in even cells with several equal-mass cuts.
        sample = scores[:: -(-len(scores) // _SAMPLE)]
        if len(scores) >= _MOST_CELLS // 4 and (unsure := self._unsure(sample)) > _MOST_UNSURE:
            even, self.table = self.table, _table(self.cuts.tobytes(), None)
            self.table = even if self._unsure(sample) > unsure else self.table

    def __call__(self, scores):
        """Return the bin of each score (n,)."""
        if self.table is None:
            return np.searchsorted(self.cuts, scores)
        bins = self._bins(scores)
        if self.table[-1]:
            unsure = np.flatnonzero(bins < 0)
            bins[unsure] = np.searchsorted(self.cuts, scores[unsure])
        return bins

    def _bins(self, scores):
        n_cells, below, cut, _ = self.table
        cells = _cells(scores, n_cells)
        bins = below.take(cells, mode="clip")  # no cell is out of range, and this is quicker than "raise"
        return np.add(bins, scores > cut.take(cells, mode="clip"), out=bins, dtype=np.intp)

    def _unsure(self, scores):
        """Return the share of scores in cells with several cuts."""
        return np.mean(self._bins(scores) < 0) if self.table[-1] else 0.0


def _cells(scores, n_cells):
    """Return the cell of each score, which never falls where scores rise: even cells, or without a number others."""
    if n_cells is None:
        return score_cells(scores)
    cells = np.multiply(scores, n_cells, dtype=np.float64)
    # Scores beyond the outer edges may be too large for integers.
    if not inside_unit_interval(scores):
        np.clip(cells, 0, n_cells, out=cells)
    return cells.astype(np.intp)


@lru_cache(maxsize=8)  # the classes of a marginal error share their edges
def _table(cuts, n_cells):
    """Return the table for the bytes of cuts: cells, cuts below each, next cut, whether a cell holds several."""
    cuts = np.frombuffer(cuts)
    held = np.bincount(_cells(cuts, n_cells), minlength=_MOST_CELLS if n_cells is None else n_cells + 1)
    below = np.cumsum(held) - held
    cut = np.append(cuts, np.inf)[below]
    below[held > 1] = -2  # below 0 also where a score is above the next cut
    return n_cells, below, cut, bool((held > 1).any())
