"""Where cuts of equal mass fall among many scores, without sorting them all."""

import numpy as np

from skcalib._blocks import row_blocks

__all__ = ["cut_search_pays", "joined_rows"]

_CELLS = 1 << 14  # of equal width; what is summed for them stays in the cache
_LEAST_ROWS = 8 * _CELLS  # for fewer a sort is as fast
_CELLS_PER_BIN = 16
_LEAST_RANGE = 1e-300  # the inverse of a smaller one may be infinite: its scores are sorted
_MARGIN = 1e-9  # share of the total weight that rounding of the sums cannot reach


def cut_search_pays(n_rows, n_bins):
    """Return whether rows should be joined before so many cuts are looked for."""
    return n_rows >= _LEAST_ROWS and n_bins * _CELLS_PER_BIN <= _CELLS


def joined_rows(scores, sample_weight, n_bins):
    """Return fewer scores, and their weights, that have the same cuts into bins of equal mass.

    The range of the scores is divided into cells. Rows of a cell in which no cut can fall become one row, with a score
    of theirs and all their weight. In the cells that hold cuts, and in those just above, equal scores are joined at
    most.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Finite scores.
    sample_weight : ndarray of shape (n,) or None
        Positive weights; None counts rows.
    n_bins : int
        Number of bins.

    Returns
    -------
    scores, weight : ndarray of shape (m,)
        In no order. The sums of counts are exact.
    """
    cell_of = _cells(scores)
    mass, member = np.zeros(_CELLS), np.zeros(_CELLS, dtype=scores.dtype)
    for rows in row_blocks(len(scores)):
        cells = cell_of(scores[rows])
        mass += np.bincount(cells, None if sample_weight is None else sample_weight[rows], _CELLS)
        member[cells] = scores[rows]
    is_near = _near_cuts(mass, n_bins)
    near = np.concatenate(
        [
            rows.start + np.flatnonzero(_stays(scores[rows], cell_of, is_near, member))
            for rows in row_blocks(len(scores))
        ]
    )
    weight = np.ones(len(near)) if sample_weight is None else sample_weight[near]
    filled = np.flatnonzero(mass)
    mass = np.maximum(mass - np.bincount(cell_of(scores[near]), weight, _CELLS), 0)
    return np.concatenate((scores[near], member[filled])), np.concatenate((weight, mass[filled]))


def _cells(scores):
    """Return the function that gives the cells of scores: it never falls."""
    low, high = float(scores.min()), float(scores.max())
    scale = (_CELLS - 1) / (high - low) if high - low > _LEAST_RANGE else 0.0

    def cell_of(block):
        position = np.subtract(block, low, dtype=np.float64)
        position *= scale
        return position.astype(np.intp)

    return cell_of


def _near_cuts(mass, n_bins):
    """Return for each cell whether a cut may fall in it, or in the filled cell before it."""
    filled = np.flatnonzero(mass)
    cumulative = np.cumsum(mass[filled])
    reached = np.arange(1, n_bins) * (cumulative[-1] / n_bins)
    first = np.searchsorted(cumulative, reached * (1 - _MARGIN))
    last = np.searchsorted(cumulative, reached * (1 + _MARGIN)) + 1
    changes = np.zeros(len(filled) + 3, dtype=np.intp)  # how many of the ranges first, ..., last begin or have ended
    np.add.at(changes, first, 1)
    np.add.at(changes, last + 1, -1)
    is_near = np.zeros(len(mass), dtype=bool)
    is_near[filled] = np.cumsum(changes)[: len(filled)] > 0
    return is_near


def _stays(scores, cell_of, is_near, member):
    """Return which rows stay rows: those near a cut that have not the score of their cell's joined row."""
    cells = cell_of(scores)
    return is_near[cells] & (scores != member[cells])
