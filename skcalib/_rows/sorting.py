"""Rows in the order of their scores, by one sort of plain numbers, and what lies below each distinct score."""

from typing import NamedTuple

import numpy as np

from skcalib._rows.blocks import row_blocks


def in_order(scores):
    """Return whether scores never fall. A few scores are looked at first: they mostly decide it."""
    rows = len(scores)
    return all(bool(np.all(scores[: end - 1] <= scores[1:end])) for end in (min(64, rows), rows) if end > 1)


def first_rows(ordered):
    """Return the first row of each distinct score, for scores in order."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))[: len(ordered)]


def sorted_scores(scores):
    """Return the scores in order: a copy, or themselves where they are."""
    return scores if in_order(scores) else np.sort(scores)


def sorted_rows(scores, labels):
    """Return the scores in order, and the boolean labels that go with them (tied scores: False first).

    Floats from 0 up to 2 have the same order as their bits, and the highest two bits are 0. Shifted by one bit they
    leave room for the label. So one sort of integers orders scores and labels together.
    """
    bits = f"u{scores.itemsize}"
    if scores.view(bits).max() >= np.full(1, 2, scores.dtype).view(bits)[0]:  # negative, or 2 and more
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
    """Return the equal-mass cell of each score by its mid-rank, tied scores together, and how many cells are filled."""
    _, inverse = np.unique(scores, return_inverse=True)
    mass = np.bincount(inverse, weight)
    middle = np.cumsum(mass) - mass / 2
    filled, cells = np.unique(np.floor(n_cells * middle / mass.sum()), return_inverse=True)
    return cells[inverse], len(filled)


class DistinctScores(NamedTuple):
    """Distinct scores in increasing order, with what lies below each.

    `weight` and `positives` are cumulative, of length m + 1 for m distinct scores: entry k belongs to the first k of
    them. Weights are rounded to a multiple of 2^-52 of their total, so that these sums are exact. Their differences
    then compare as fractions do: two pure bins are tied, whatever their weights. Neither the order of the rows nor
    their grouping changes a bit. Counts are integers, of 32 bits where that is enough.
    """

    scores: np.ndarray
    weight: np.ndarray
    positives: np.ndarray

    @classmethod
    def from_rows(cls, scores, labels, sample_weight=None):
        """Sum validated rows: scores (n,), boolean labels (n,), positive weights (n,) or None."""
        if sample_weight is None:
            if not in_order(scores):
                scores, labels = sorted_rows(scores, labels)
            dtype = np.int32 if len(scores) < np.iinfo(np.int32).max else np.int64
            positives = np.zeros(len(scores) + 1, dtype=dtype)
            np.cumsum(labels, out=positives[1:])
            weight = np.arange(len(scores) + 1, dtype=dtype)
            kept = np.ones(len(scores) + 1, dtype=bool)  # where a score has its last row
            np.not_equal(scores[1:], scores[:-1], out=kept[1:-1])
            if not kept.all():
                scores, weight, positives = scores[kept[1:]], weight[kept], positives[kept]
            return cls(scores, weight, positives)
        rounded = _exactly_summable(sample_weight)
        if not in_order(scores):
            order = np.argsort(scores)
            scores, labels, rounded = scores[order], labels[order], rounded[order]
        first = first_rows(scores)
        weight = np.add.reduceat(rounded, first)
        positives = np.add.reduceat(rounded * labels, first)
        kept = weight > 0  # a weight below 2^-53 of the total is lost in every sum
        cumulative = [np.append(0.0, np.cumsum(values[kept])) for values in (weight, positives)]
        return cls(scores[first[kept]], *cumulative)

    @property
    def is_count(self):
        """Whether the weights are numbers of rows."""
        return self.weight.dtype.kind == "i"

    @property
    def event_frequency(self):
        """Share of positives at each distinct score."""
        return np.diff(self.positives) / np.diff(self.weight)


def _exactly_summable(sample_weight):
    """Round weights to a multiple of a power of two that makes all their partial sums exact in float64."""
    quantum = 2.0 ** (np.ceil(np.log2(np.sum(sample_weight))) - 52)
    return np.round(sample_weight / quantum) * quantum
