"""Many classes as binary problems: top-label and one-vs-rest (marginal), once for everybody."""

from typing import NamedTuple

import numpy as np

from skcalib._bins.statistics import BinStatistics
from skcalib._rows.blocks import row_blocks
from skcalib._rows.sorting import in_order, sorted_rows

__all__ = ["BinaryTask", "binary_tasks", "resolve_multiclass", "spread_top_label", "top_label"]


_COLUMNS = 32  # that are copied at a time: each cache line of the rows is read once for 16 or 8 of them


class BinaryTask(NamedTuple):
    """One binary problem: scores of an event, whether it happened, weights or None."""

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None

    def statistics(self, strategy, *, squares=True):
        """Return the bin statistics under a binning strategy; see `BinStatistics.from_scores` for `squares`."""
        scores, labels = self.scores, self.labels
        if self.sample_weight is None and strategy._sorts(len(scores)) and not in_order(scores):
            scores, labels = sorted_rows(scores, labels)
        edges = strategy.bin_edges(scores, labels, self.sample_weight)
        return BinStatistics.from_scores(scores, labels, edges, self.sample_weight, squares=squares)


def top_label(scores):
    """Return the predicted class (first of the largest) and its score, for scores (n, K)."""
    predicted = scores.argmax(axis=1)
    return predicted, np.take_along_axis(scores, predicted[:, None], axis=1)[:, 0]


def resolve_multiclass(multiclass, data):
    """Return "binary", "top_label" or "marginal" for a metric's `multiclass` and its validated data."""
    if multiclass not in ("auto", "top_label", "marginal"):
        raise ValueError(f"multiclass must be 'auto', 'top_label' or 'marginal', found {multiclass!r}.")
    if multiclass == "auto":
        return "binary" if data.is_binary else "top_label"
    return multiclass


def binary_tasks(data, multiclass):
    """Yield the binary problems that `multiclass` makes of a metric's validated data.

    One for "auto" with two classes (the positive class) and for "top_label" (is the predicted class right), one a
    class for "marginal". Two classes given as one score count as the columns (1 - s, s).
    """
    kind = resolve_multiclass(multiclass, data)
    weight = data.sample_weight
    if kind == "binary":
        yield BinaryTask(data.scores, data.labels, weight)
    elif kind == "top_label":
        if data.is_binary:
            predicted = data.scores > 0.5
            yield BinaryTask(np.maximum(data.scores, 1 - data.scores), data.labels == predicted, weight)
        else:
            yield BinaryTask(data.confidence, data.labels == data.predicted, weight)
    elif data.is_binary:
        yield BinaryTask(1 - data.scores, ~data.labels, weight)
        yield BinaryTask(data.scores, data.labels, weight)
    else:
        for k, scores in enumerate(_columns(data.scores)):
            yield BinaryTask(scores, data.labels == k, weight)


def _columns(scores):
    """Yield the columns of scores (n, K) as contiguous arrays, tiles of rows transposed within the cache."""
    n, n_classes = scores.shape
    for columns in row_blocks(n_classes, n, at_least=_COLUMNS):
        block = np.empty((len(range(n_classes)[columns]), n), dtype=scores.dtype)
        for rows in row_blocks(n, 2 * _COLUMNS):
            block[:, rows] = scores[rows, columns].T
        yield from block


def spread_top_label(scores, confidence):
    """Return rows in which the predicted class has `confidence` and the others share the rest in proportion."""
    predicted, _ = top_label(scores)
    rest = scores.astype(np.float64)
    np.put_along_axis(rest, predicted[:, None], 0, axis=1)
    total = rest.sum(axis=1, keepdims=True)
    n_others = scores.shape[1] - 1
    rest = np.divide(rest, total, out=np.full_like(rest, 1 / n_others), where=total > 0) * (1 - confidence)[:, None]
    np.put_along_axis(rest, predicted[:, None], confidence[:, None], axis=1)
    return rest
