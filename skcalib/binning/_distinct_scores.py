"""Distinct scores in order, with the weight and the positives that lie below each."""

from typing import NamedTuple

import numpy as np

from skcalib._rows.sorting import first_rows, in_order, sorted_rows


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
