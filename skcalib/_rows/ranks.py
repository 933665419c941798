"""Scores near given ranks without a sort of all rows: the rows are counted by cells, and few cells are looked into."""

import numpy as np

from skcalib._rows.blocks import row_blocks

__all__ = ["counting_pays", "score_cells", "scores_near"]

_N_CELLS = 1 << 16
# Of single precision's 32 bits these are dropped: the sign, 8 bits of the exponent and 8 of the fraction are left.
_DROPPED_BITS = 15
_FEWEST_ROWS = 1 << 16  # fewer rows are quicker to sort
_SAMPLE = 1 << 12  # number of rows that are looked at first
_MOST_KEPT = 0.25  # if a larger share of the rows lies in the cells of the cuts, a plain sort is quicker


def score_cells(scores):
    """Return the number of each score's cell, uint16: it never falls where scores rise.

    Cells are narrow next to 0 and to 1: their width is about 1/256 of the distance to the nearer end. Their number is
    given by the highest bits of min(s, 1 - s), from 0 upwards below 1/2 and from the last cell downwards above. 1 - s
    is exact there. Scores outside [0, 1] share a cell with 0 or 1.
    """
    distance = np.minimum(scores, 1 - scores)
    np.maximum(distance, 0, out=distance)
    with np.errstate(under="ignore"):
        bits = distance.astype(np.float32, copy=False).view(np.uint32)
    bits >>= _DROPPED_BITS
    cells = bits.astype(np.uint16)
    cells ^= np.negative((scores > 0.5).view(np.uint8), dtype=np.uint16)  # all bits above 1/2: the order is turned
    return cells


def counting_pays(scores, cuts):
    """Return whether `scores_near` is quicker than a sort, as some of the rows let expect: see there for `cuts`."""
    if len(scores) < _FEWEST_ROWS:
        return False
    sample = np.sort(scores[:: len(scores) // _SAMPLE])
    cells = score_cells(sample)
    near = np.unique(cells[cuts(np.arange(1, len(sample) + 1))])
    first, last = (np.searchsorted(cells, near, side=side) for side in ("left", "right"))
    usual = sample[(first + last) // 2]
    tied = np.searchsorted(sample, usual, side="right") - np.searchsorted(sample, usual, side="left")
    return np.sum(last - first - tied) < _MOST_KEPT * len(sample)


def scores_near(scores, sample_weight, cuts):
    """Return some of the scores in order and the cumulative weight at each, which is that among all rows.

    These are the rows from the cells of the cuts, of the next distinct scores above, and of the largest score. All
    that is asked of the order of all rows near a cut can be asked of them.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores.
    sample_weight : ndarray of shape (n,) or None
        Weights; None counts rows.
    cuts : callable
        Given cumulative weights it returns the position of each cut: where they first reach what it asks for.
    """
    total = _weight_by_cell(scores, sample_weight)
    held = np.flatnonzero(total)
    cut = cuts(np.cumsum(total[held]))
    last = len(held) - 1
    is_near = np.zeros(_N_CELLS, dtype=bool)
    is_near[held[np.concatenate((cut, np.minimum(cut + 1, last), [last]))]] = True
    near, weight = _rows_in_cells(scores, sample_weight, is_near, total)
    elsewhere = np.cumsum(np.where(is_near, 0, total))
    return near, np.cumsum(weight) + elsewhere[score_cells(near)]


def _weight_by_cell(scores, sample_weight):
    total = np.zeros(_N_CELLS, dtype=np.int64 if sample_weight is None else np.float64)
    for rows in row_blocks(len(scores), at_least=8 * _N_CELLS):
        cells = np.concatenate([score_cells(scores[rows][part]) for part in row_blocks(len(scores[rows]))])
        total += np.bincount(cells, None if sample_weight is None else sample_weight[rows], _N_CELLS)
    return total


def _rows_in_cells(scores, sample_weight, is_near, total):
    """Return the scores in some cells in order, and their weights. Ties with a usual score of a cell are one row."""
    sample = scores[:: max(1, len(scores) // _SAMPLE)]
    usual = np.full(_N_CELLS, np.nan, dtype=scores.dtype)
    usual[score_cells(sample)] = sample
    kept, weight = [], []
    for rows in row_blocks(len(scores)):
        cells = score_cells(scores[rows])
        near = np.flatnonzero(is_near.take(cells))
        near = near[scores[rows][near] != usual[cells[near]]]
        kept.append(scores[rows][near])
        if sample_weight is not None:
            weight.append(sample_weight[rows][near])
    kept = np.concatenate(kept)
    if sample_weight is None:
        kept.sort()
        weight = np.ones(len(kept), dtype=np.int64)
    else:
        order = np.argsort(kept)
        kept, weight = kept[order], np.concatenate(weight)[order]
    tied = np.flatnonzero(is_near & ~np.isnan(usual))  # cells, and so their usual scores in order
    rest = total - np.bincount(score_cells(kept), None if sample_weight is None else weight, _N_CELLS)
    place = np.searchsorted(kept, usual[tied])
    return np.insert(kept, place, usual[tied]), np.insert(weight, place, rest[tied])
