"""Rows in the order of their scores, by one sort of plain numbers, and what lies below
each distinct score.
"""

from typing import Any, NamedTuple

import numpy as np

from skcalib._rows.blocks import bits_of, row_blocks, taken

# To find scores near given ranks without sorting all rows, the rows are counted by
# cells of scores, and only the rows of few cells are sorted.
_N_CELLS = 1 << 16
# Number of the last of 32 bits of a float that are dropped: the sign, 8 bits of the
# exponent and 8 of the fraction are left.
_DROPPED_BITS = 15
# Fewer rows are quicker to sort. With weights, whose sort is one of positions, counting
# takes .15 to .9 of the time of the error from there on. Without, it depends on the
# machine: 1,000,000 scores take .3 to .5 of the time where NumPy sorts them one by one
# (.053 s), and .9 to 2.3 of it where it has vector instructions (AVX2, .010 s).
FEWEST_ROWS = 1 << 18
_FEWEST_WEIGHTED = 1 << 16
_MANY_SCORES = 1 << 10  # that may be looked at without need
_SAMPLE = 1 << 12  # number of rows by which it is judged whether counting is quicker
# If a larger share of the rows would have to be sorted, a plain sort is quicker.
_LARGEST_SHARE = 0.25


def distinct_values(values):
    """Return the sorted distinct values, and the position among them (n,) of each."""
    if (
        values.dtype.kind in "iu"
        and len(values)
        and int(values.max()) - int(values.min()) < len(values)
    ):
        # Integers within a range shorter than their number are counted, which takes a
        # fifth of the time of sorting 50,000 labels. Differences may overflow, and are
        # right as unsigned integers.
        offset = (values - values.min()).view(f"u{values.itemsize}").astype(np.intp)
        is_seen = np.bincount(offset) > 0
        found = np.flatnonzero(is_seen).astype(values.dtype) + values.min()
        position_of_offset = np.cumsum(is_seen) - 1
        return found, position_of_offset[offset]
    return np.unique(values, return_inverse=True)


def in_order(scores):
    """Return whether scores (n,) never decrease."""
    n_rows = len(scores)
    # Of many scores a few are looked at first: if there is no order, they show it.
    if n_rows > _MANY_SCORES and not in_order(scores[:_MANY_SCORES]):
        return False
    return np.count_nonzero(scores[:-1] <= scores[1:]) >= n_rows - 1


def first_rows(ordered):
    """Return the first position of each distinct score among sorted scores."""
    is_first = np.empty(len(ordered), dtype=bool)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first.nonzero()[0]


def sorted_scores(scores):
    """Return the sorted scores: themselves if they are sorted, else a copy."""
    return scores if in_order(scores) else np.sort(scores)


def sorted_rows(scores, labels):
    """Return the scores (n,) in increasing order, and the boolean labels that go with
    them; of tied scores those with the label False come first.

    One sort of integers orders both. Floats from 0 up to 2 have the same order as their
    bits, and the highest two bits are 0. Shifted to the left by one bit, they leave the
    last bit for the label.
    """
    bits, bits_of_two = bits_of(2, scores.dtype)
    if scores.view(bits).max() >= bits_of_two:  # a score is negative, or 2 or more
        order = np.lexsort((labels, scores))
        return scores[order], labels[order]
    keys = scores.view(bits) << 1
    keys |= labels
    keys.sort()
    # The last bit is the label; shifted back, the others are the score. NumPy converts
    # 0 and 1 to booleans in small buffers, without another array of integers.
    sorted_labels = np.empty(len(keys), dtype=bool)
    np.bitwise_and(keys, 1, out=sorted_labels, casting="unsafe")
    keys >>= 1
    return keys.view(scores.dtype), sorted_labels


def mid_rank_cells(scores, n_cells, weight=None):
    """Return the number of the equal-mass cell (n,) that each score lies in, from 0 on,
    and how many cells hold scores, at most `n_cells`.

    Cells divide the total weight into equal parts. Tied scores share a cell, that of
    the middle of their weight; `weight` is (n,), or None for 1.
    """
    rank = np.unique(scores, return_inverse=True)[1]
    mass = np.bincount(rank, weight)  # weight of each distinct score
    # The weight below a score plus half of its own; in place, since there may be as
    # many scores as rows.
    total = mass.sum()
    cell_number = np.cumsum(mass, dtype=np.float64)
    cell_number -= mass / 2
    cell_number *= n_cells
    cell_number /= total
    np.floor(cell_number, out=cell_number)
    # Cells, in increasing order, are numbered again without the empty ones.
    begins = cell_number[1:] != cell_number[:-1]
    cell_of_rank = np.append(0, np.cumsum(begins))
    return cell_of_rank[rank], int(cell_of_rank[-1]) + 1


class DistinctScores(NamedTuple):
    """Distinct scores in increasing order, (m,), with the cumulative weight and the
    cumulative weight of positives below them.

    `weight` and `positives` have length m + 1: entry k is the sum over the first k
    distinct scores. Weights are rounded to a multiple of 2^-52 of their total, so that
    these sums are exact. Their differences then compare as fractions do: two pure bins
    are tied, whatever their weights. Neither the order of the rows nor their grouping
    changes a bit. Counts are integers, of 32 bits where that is enough.

    The arrays are those of NumPy, or tensors of the namespace `xp` on their device.
    """

    scores: Any
    weight: Any
    positives: Any
    xp: Any = np

    @classmethod
    def from_rows(cls, scores, labels, sample_weight=None):
        """Return the distinct scores of validated rows, with the cumulative sums of
        weights and of the weights of positives.

        Rows have scores (n,), boolean labels (n,), and positive weights (n,) or None.
        Weights are rounded so that their sums are exact in any order.
        """
        if sample_weight is None:
            return cls._of_single_rows(scores, labels)
        rounded = exactly_summable(sample_weight)
        if not in_order(scores):
            order = np.argsort(scores)
            scores = scores[order]
            labels = labels[order]
            rounded = rounded[order]
        first = first_rows(scores)
        weight = np.add.reduceat(rounded, first)
        positives = np.add.reduceat(rounded * labels, first)
        # A weight below 2^-53 of the total is rounded to 0.
        has_weight = weight > 0
        return cls(
            scores[first[has_weight]],
            np.append(0.0, np.cumsum(weight[has_weight])),
            np.append(0.0, np.cumsum(positives[has_weight])),
        )

    @classmethod
    def _of_single_rows(cls, scores, labels):
        """Return the distinct scores of rows without weights: cumulative numbers of
        rows and of positives, as integers.
        """
        if not in_order(scores):
            scores, labels = sorted_rows(scores, labels)
        n_rows = len(scores)
        dtype = np.int32 if n_rows < np.iinfo(np.int32).max else np.int64
        positives = np.zeros(n_rows + 1, dtype=dtype)
        np.cumsum(labels, out=positives[1:])
        weight = np.arange(n_rows + 1, dtype=dtype)
        # Which cumulative sums stay: the 0 at the start, and those after the last row
        # of each score.
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
        if self.xp is np:
            return self.weight.dtype.kind == "i"
        return self.xp.isdtype(self.weight.dtype, "integral")

    @property
    def size(self):
        """The number m of distinct scores."""
        return self.scores.shape[0]

    @property
    def event_frequency(self):
        """Share of positives at each distinct score."""
        return np.diff(self.positives) / np.diff(self.weight)


def exactly_summable(sample_weight):
    """Return weights (n,) rounded to multiples of the power of two with which all their
    partial sums are exact in float64.
    """
    # Every partial sum is a multiple of the quantum, and at most 2^52 times as large.
    quantum = 2.0 ** (np.ceil(np.log2(np.sum(sample_weight))) - 52)
    return np.round(sample_weight / quantum) * quantum


def score_cells(scores):
    """Return the number (n,), a uint16, of the narrow cell that each score lies in; it
    never decreases with the score.

    A cell's width is about 1/256 of the distance d = min(s, 1 - s) to the nearer end of
    [0, 1], so that scores near 0 and 1 are told apart. Positive floats are in the order
    of their bits, so the highest 16 bits of d number the cells of scores up to 1/2. For
    scores above 1/2, where 1 - s is exact, the numbers count down from the last cell.
    Scores below 0 have the cell of 0, and those above 1 that of 1.
    """
    distance = np.minimum(scores, 1 - scores)
    np.maximum(distance, 0, out=distance)
    with np.errstate(under="ignore"):
        bits = distance.astype(np.float32, copy=False).view(np.uint32)
    bits >>= _DROPPED_BITS
    cells = bits.astype(np.uint16)
    # Above 1/2 all bits are flipped, which gives 65,535 minus the number: the negative
    # of 1 has all bits set, that of 0 none.
    cells ^= np.negative((scores > 0.5).view(np.uint8), dtype=np.uint16)
    return cells


def counting_pays(scores, cuts, *, is_weighted=False):
    """Return whether `scores_near` finds scores near given ranks faster than a sort of
    all rows, judged by a sample of them.

    `scores_near` counts rows by `score_cells` and sorts those of the cells in which the
    ranks lie, except rows that tie with the most usual score of their cell.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores.
    cuts : callable
        Takes increasing cumulative weights (m,) and returns the positions of the ranks
        among them; in the sample each row counts once.
    is_weighted : bool, default=False
        Whether the rows have weights.
    """
    fewest_rows = FEWEST_ROWS
    if is_weighted:
        fewest_rows = _FEWEST_WEIGHTED
    if len(scores) < fewest_rows:
        return False
    sample = np.sort(scores[:: len(scores) // _SAMPLE])
    cells = score_cells(sample)
    # The cells in which the ranks of the sample lie, and their rows in the sample.
    positions = cuts(np.arange(1, len(sample) + 1))
    near = np.unique(cells[positions])
    first = np.searchsorted(cells, near, side="left")
    last = np.searchsorted(cells, near, side="right")
    # The middle score of a cell stands for its most usual one.
    usual = sample[(first + last) // 2]
    first_tied = np.searchsorted(sample, usual, side="left")
    last_tied = np.searchsorted(sample, usual, side="right")
    n_in_cells = last - first
    n_tied = last_tied - first_tied
    n_sorted = np.sum(n_in_cells - n_tied)
    return n_sorted < _LARGEST_SHARE * len(sample)


def scores_near(scores, sample_weight, cuts):
    """Return some of the scores in increasing order, and the cumulative weight of all
    rows up to each of them: the scores near given ranks, found without sorting all
    rows.

    They are the scores in the cells (`score_cells`) of the ranks, of the next distinct
    scores above these, and of the largest score: enough to find the scores on both
    sides of a rank.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores.
    sample_weight : ndarray of shape (n,) or None
        Weights; None counts rows.
    cuts : callable
        Takes increasing cumulative weights (m,) and returns the positions among them at
        which the ranks are first reached.
    """
    # 1. The weight of each cell.
    dtype = np.int64
    if sample_weight is not None:
        dtype = np.float64
    total = np.zeros(_N_CELLS, dtype=dtype)
    # Large blocks, since each makes an array of all cells; cells are found in smaller
    # ones that fit the cache.
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

    # 3. The scores in these cells. Their cumulative weight is that among them, plus the
    # weight of the other cells below.
    near, weight = _rows_in_cells(scores, sample_weight, is_near, total)
    elsewhere = np.cumsum(np.where(is_near, 0, total))
    return near, np.cumsum(weight) + elsewhere[score_cells(near)]


def _rows_in_cells(scores, sample_weight, is_near, total):
    """Return, in increasing order, the scores that lie in the cells for which the mask
    `is_near` (_N_CELLS,) is True, and their weights, or counts if `sample_weight` is
    None. `total` (_N_CELLS,) is the weight of each cell.

    In each cell one score that may be frequent is returned once, with the weight of all
    its rows: so ties need not be sorted.
    """
    # 1. The frequent score of each cell: the last one of a sample that lies in it. A
    # score with many ties is likely to be it. NaN if the sample has none.
    sample = scores[:: max(1, len(scores) // _SAMPLE)]
    frequent = np.full(_N_CELLS, np.nan, dtype=scores.dtype)
    frequent[score_cells(sample)] = sample
    # 2. The other rows of the wanted cells, sorted.
    others = []
    weights = []
    for rows in row_blocks(len(scores)):
        in_block = scores[rows]
        cells = score_cells(in_block)
        near = np.flatnonzero(is_near.take(cells))
        near = near[in_block[near] != frequent[cells[near]]]
        others.append(in_block[near])
        if sample_weight is not None:
            weights.append(sample_weight[rows][near])
    others = np.concatenate(others)
    if sample_weight is None:
        others.sort()
        weight = np.ones(len(others), dtype=np.int64)
        weight_in_cell = np.bincount(score_cells(others), minlength=_N_CELLS)
    else:
        order = np.argsort(others)
        others = others[order]
        weight = np.concatenate(weights)[order]
        weight_in_cell = np.bincount(score_cells(others), weight, _N_CELLS)
    # 3. The frequent score of a cell has the rest of its weight, and is inserted. Cells
    # are in the order of their scores, and so are their frequent scores.
    has_frequent = np.flatnonzero(is_near & ~np.isnan(frequent))
    frequent_scores = frequent[has_frequent]
    frequent_weight = (total - weight_in_cell)[has_frequent]
    position = np.searchsorted(others, frequent_scores)
    near_scores = np.insert(others, position, frequent_scores)
    near_weight = np.insert(weight, position, frequent_weight)
    return near_scores, near_weight


def grouped_rows(codes):
    """Return the positions (n,) of rows in the order of their codes (n,), integers from
    0 to below 2^31; rows of one code stay in their order.

    One sort of integers that hold the code and, in their last bits, the position takes
    a fifth of the time of `argsort`.
    """
    n_bits = len(codes).bit_length()
    keys = codes.astype(np.int64) << n_bits
    keys |= np.arange(len(codes))
    keys.sort()
    keys &= (1 << n_bits) - 1
    return keys


def rows_by_code(codes):
    """Yield pairs of a code that occurs among codes (n,) and the positions of the rows
    that have it.
    """
    if len(codes) == 0:
        return
    small = codes
    if codes.min() >= -1 and codes.max() < 2**15:
        # A stable sort of 16-bit integers counts them, ten times as fast as comparing.
        small = codes.astype(np.int16)
    order = np.argsort(small, kind="stable")
    ordered = codes[order]
    # Where each code begins: where it differs from the one before. A smaller value is
    # put before the first.
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    rows_of_codes = np.split(order, starts[1:])
    yield from zip(ordered[starts].tolist(), rows_of_codes, strict=True)
