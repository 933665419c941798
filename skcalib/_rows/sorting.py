"""Rows in the order of their scores, by one sort of plain numbers, and what lies below
each distinct score.
"""

from typing import NamedTuple

import numpy as np

from skcalib._rows.blocks import row_blocks, taken

# To find scores near given ranks without a sort of all rows, the rows are counted by
# cells, and few are looked into.
_N_CELLS = 1 << 16
# Of single precision's 32 bits these are dropped: the sign, 8 bits of the exponent and
# 8 of the fraction are left.
_DROPPED_BITS = 15
# Fewer rows are quicker to sort. With weights, whose sort is one of positions, counting
# takes .15 to .9 of the time of the error from there on. Without, it depends on the
# machine: 1,000,000 scores take .3 to .5 of the time where NumPy sorts them one by one
# (.053 s), and .9 to 2.3 of it where it has vector instructions (AVX2, .010 s).
FEWEST_ROWS, _FEWEST_WEIGHTED = 1 << 18, 1 << 16
_SAMPLE = 1 << 12  # number of rows that are looked at first
# if a larger share of the rows lies in the cells of the cuts, a plain sort is quicker
_MOST_KEPT = 0.25


def in_order(scores):
    """Return whether scores never fall.

    A few scores are looked at first: in rows without an order they mostly decide it.
    """
    n_rows = len(scores)
    for end in (min(64, n_rows), n_rows):
        if end > 1 and not np.all(scores[: end - 1] <= scores[1:end]):
            return False
    return True


def first_rows(ordered):
    """Return the first row of each distinct score, for scores in order."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))[: len(ordered)]


def sorted_scores(scores):
    """Return the scores in order: a copy, or themselves where they are."""
    return scores if in_order(scores) else np.sort(scores)


def sorted_rows(scores, labels):
    """Return the scores in order, and the boolean labels that go with them (tied
    scores: False first).

    Floats from 0 up to 2 have the same order as their bits, and the highest two bits
    are 0. Shifted by one bit they leave room for the label. So one sort of integers
    orders scores and labels together.
    """
    bits = f"u{scores.itemsize}"
    # negative, or 2 and more
    if scores.view(bits).max() >= np.full(1, 2, scores.dtype).view(bits)[0]:
        order = np.lexsort((labels, scores))
        return scores[order], labels[order]
    keys = scores.view(bits) << 1
    for rows in row_blocks(len(keys)):
        keys[rows] |= labels[rows]
    keys.sort()
    labels = np.empty(len(keys), dtype=bool)
    for rows in row_blocks(len(keys)):
        np.not_equal(keys[rows] & 1, 0, out=labels[rows])
        keys[rows] >>= 1
    return keys.view(scores.dtype), labels


def mid_rank_cells(scores, n_cells, weight=None):
    """Return the equal-mass cell of each score by its mid-rank, tied scores together,
    and how many cells are filled.
    """
    _, inverse = np.unique(scores, return_inverse=True)
    mass = np.bincount(inverse, weight)
    middle = np.cumsum(mass) - mass / 2
    filled, cells = np.unique(
        np.floor(n_cells * middle / mass.sum()), return_inverse=True
    )
    return cells[inverse], len(filled)


class DistinctScores(NamedTuple):
    """Distinct scores in increasing order, with what lies below each.

    `weight` and `positives` are cumulative, of length m + 1 for m distinct scores:
    entry k belongs to the first k of them. Weights are rounded to a multiple of 2^-52
    of their total, so that these sums are exact. Their differences then compare as
    fractions do: two pure bins are tied, whatever their weights. Neither the order of
    the rows nor their grouping changes a bit. Counts are integers, of 32 bits where
    that is enough.
    """

    scores: np.ndarray
    weight: np.ndarray
    positives: np.ndarray

    @classmethod
    def from_rows(cls, scores, labels, sample_weight=None):
        """Sum validated rows: scores (n,), boolean labels (n,), positive weights (n,)
        or None.
        """
        if sample_weight is None:
            return cls._of_single_rows(scores, labels)
        rounded = _exactly_summable(sample_weight)
        if not in_order(scores):
            order = np.argsort(scores)
            scores = scores[order]
            labels = labels[order]
            rounded = rounded[order]
        first = first_rows(scores)
        weight = np.add.reduceat(rounded, first)
        positives = np.add.reduceat(rounded * labels, first)
        counts = weight > 0  # a weight below 2^-53 of the total is lost in every sum
        return cls(
            scores[first[counts]],
            np.append(0.0, np.cumsum(weight[counts])),
            np.append(0.0, np.cumsum(positives[counts])),
        )

    @classmethod
    def _of_single_rows(cls, scores, labels):
        """Sum rows that count once each, in integers."""
        if not in_order(scores):
            scores, labels = sorted_rows(scores, labels)
        n_rows = len(scores)
        dtype = np.int32 if n_rows < np.iinfo(np.int32).max else np.int64
        positives = np.zeros(n_rows + 1, dtype=dtype)
        np.cumsum(labels, out=positives[1:])
        weight = np.arange(n_rows + 1, dtype=dtype)
        # Of the cumulative sums, the 0 at the start and those after the last row of
        # each score.
        is_end = np.ones(n_rows + 1, dtype=bool)
        np.not_equal(scores[1:], scores[:-1], out=is_end[1:-1])
        if not is_end.all():
            scores = scores[is_end[1:]]
            weight = weight[is_end]
            positives = positives[is_end]
        return cls(scores, weight, positives)

    @property
    def is_count(self):
        """Whether the weights are numbers of rows."""
        return self.weight.dtype.kind == "i"

    @property
    def event_frequency(self):
        """Share of positives at each distinct score."""
        return np.diff(self.positives) / np.diff(self.weight)


def _exactly_summable(sample_weight):
    """Round weights to a multiple of a power of two that makes all their partial sums
    exact in float64.
    """
    quantum = 2.0 ** (np.ceil(np.log2(np.sum(sample_weight))) - 52)
    return np.round(sample_weight / quantum) * quantum


def score_cells(scores):
    """Return the cell of each score, uint16: a number that never falls where scores
    rise.

    A cell's width is about 1/256 of the distance d = min(s, 1 - s) to the nearer end,
    so that scores near 0 and 1 are told apart. Floats above 0 are in the order of their
    bits: the highest bits of d number the cells of scores up to 1/2. For scores above
    1/2, where 1 - s is exact, the numbers count down from the last cell. Scores below 0
    have the cell of 0, and those above 1 that of 1.
    """
    distance = np.minimum(scores, 1 - scores)
    np.maximum(distance, 0, out=distance)
    with np.errstate(under="ignore"):
        bits = distance.astype(np.float32, copy=False).view(np.uint32)
    bits >>= _DROPPED_BITS
    cells = bits.astype(np.uint16)
    # Above 1/2 all bits are turned: 65,535 minus the number.
    cells ^= np.negative((scores > 0.5).view(np.uint8), dtype=np.uint16)
    return cells


def counting_pays(scores, cuts, *, is_weighted=False):
    """Return whether `scores_near` is quicker than a sort, judged by some of the rows:
    see there for `cuts`.
    """
    fewest_rows = FEWEST_ROWS
    if is_weighted:
        fewest_rows = _FEWEST_WEIGHTED
    if len(scores) < fewest_rows:
        return False
    sample = np.sort(scores[:: len(scores) // _SAMPLE])
    cells = score_cells(sample)
    near = np.unique(cells[cuts(np.arange(1, len(sample) + 1))])
    first = np.searchsorted(cells, near, side="left")
    last = np.searchsorted(cells, near, side="right")
    # The rows of these cells would have to be sorted, but for those that tie with the
    # usual score of their cell.
    usual = sample[(first + last) // 2]
    first_tied = np.searchsorted(sample, usual, side="left")
    last_tied = np.searchsorted(sample, usual, side="right")
    n_sorted = np.sum(last - first - (last_tied - first_tied))
    return n_sorted < _MOST_KEPT * len(sample)


def scores_near(scores, sample_weight, cuts):
    """Return some of the scores in order and the cumulative weight at each, which is
    that among all rows.

    These are the rows from the cells of the cuts, of the next distinct scores above,
    and of the largest score. All that is asked of the order of all rows near a cut can
    be asked of them.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores.
    sample_weight : ndarray of shape (n,) or None
        Weights; None counts rows.
    cuts : callable
        Given cumulative weights it returns the position of each cut: where they first
        reach what it asks for.
    """
    # 1. The weight of each cell.
    dtype = np.int64
    if sample_weight is not None:
        dtype = np.float64
    total = np.zeros(_N_CELLS, dtype=dtype)
    for rows in row_blocks(len(scores), at_least=8 * _N_CELLS):
        in_block = scores[rows]
        cells = np.concatenate(
            [score_cells(in_block[part]) for part in row_blocks(len(in_block))]
        )
        total += np.bincount(cells, taken(sample_weight, rows), _N_CELLS)

    # 2. The cells of the cuts, the next ones above that hold rows, and the last one.
    filled = np.flatnonzero(total)
    cut = cuts(np.cumsum(total[filled]))
    last = len(filled) - 1
    next_above = np.minimum(cut + 1, last)
    is_near = np.zeros(_N_CELLS, dtype=bool)
    is_near[filled[np.concatenate((cut, next_above, [last]))]] = True

    # 3. Their rows; the weight of the other cells below counts as a whole.
    near, weight = _rows_in_cells(scores, sample_weight, is_near, total)
    elsewhere = np.cumsum(np.where(is_near, 0, total))
    return near, np.cumsum(weight) + elsewhere[score_cells(near)]


def _rows_in_cells(scores, sample_weight, is_near, total):
    """Return the scores in some cells in order, and their weights. Ties with a usual
    score of a cell are one row.
    """
    sample = scores[:: max(1, len(scores) // _SAMPLE)]
    usual = np.full(_N_CELLS, np.nan, dtype=scores.dtype)
    usual[score_cells(sample)] = sample
    # The rows of the cells, but for those of the usual score.
    untied = []
    weights = []
    for rows in row_blocks(len(scores)):
        in_block = scores[rows]
        cells = score_cells(in_block)
        near = np.flatnonzero(is_near.take(cells))
        near = near[in_block[near] != usual[cells[near]]]
        untied.append(in_block[near])
        if sample_weight is not None:
            weights.append(sample_weight[rows][near])
    untied = np.concatenate(untied)
    if sample_weight is None:
        untied.sort()
        weight = np.ones(len(untied), dtype=np.int64)
        untied_weight = np.bincount(score_cells(untied), minlength=_N_CELLS)
    else:
        order = np.argsort(untied)
        untied = untied[order]
        weight = np.concatenate(weights)[order]
        untied_weight = np.bincount(score_cells(untied), weight, _N_CELLS)
    # The usual score of a cell has what is left of its weight. Cells, and so their
    # usual scores, are in order.
    has_usual = np.flatnonzero(is_near & ~np.isnan(usual))
    rest = total - untied_weight
    place = np.searchsorted(untied, usual[has_usual])
    return (
        np.insert(untied, place, usual[has_usual]),
        np.insert(weight, place, rest[has_usual]),
    )


def rows_by_code(codes):
    """Yield each code that occurs with the rows that have it."""
    if len(codes) and codes.min() >= -1 and codes.max() < 2**15:
        small = codes.astype(np.int16)
    else:
        small = codes
    # of 16 bits by counting, some ten times as fast as by comparing
    order = np.argsort(small, kind="stable")
    if len(codes):
        starts = np.flatnonzero(np.diff(codes[order], prepend=codes[order[:1]] - 1))
    else:
        starts = order
    yield from zip(
        codes[order[starts]].tolist(), np.split(order, starts[1:]), strict=True
    )
