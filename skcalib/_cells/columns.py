"""The columns of K classes as rows of binary problems: the predicted class, or each
class against the rest.
"""

import numpy as np

from skcalib._input.device_scores import DeviceScores
from skcalib._input.scalars import check_option
from skcalib._rows.blocks import row_blocks

# Columns that are copied at a time: each cache line of the rows is read once for 16 or
# 8 of them. A marginal error of 1,000 classes takes .75 of the time of a copy of each
# column by itself.
_COLUMNS = 32


def resolve_multiclass(multiclass, data, *, pooled=False):
    """Return which binary problems a metric's `multiclass` makes of validated data: one
    for "binary" and "top_label" (is the predicted class right), one for each class for
    "marginal" and, where `pooled` allows it, one of all pairs of a row and a class for
    "pooled". "auto" depends on the data.
    """
    if isinstance(multiclass, str) and multiclass == "auto":
        if data.is_multilabel:
            return "marginal"
        if data.is_binary:
            return "binary"
        return "top_label"
    options = ("auto", "top_label", "marginal")
    if pooled:
        options = (*options, "pooled")
    return check_option(multiclass, "multiclass", options)


def top_label(scores):
    """Return the column of the predicted class of each row (n,), the first of the
    largest scores, and its score (n,), for scores (n, K).
    """
    if isinstance(scores, DeviceScores):
        return scores.top_label
    predicted = scores.argmax(axis=1)
    confidence = np.take_along_axis(scores, predicted[:, None], axis=1)
    return predicted, confidence[:, 0]


def binary_rows(data, kind):
    """Yield the scores (n,) and the labels (n,) of the binary problems that validated
    data consist of: one for the kinds "binary" and "top_label", one for each class or
    label for "marginal". Two classes given as one score count as the columns (1 - s,
    s).
    """
    scores = data.scores
    if kind == "binary":
        yield scores, data.labels
        return
    if data.is_binary:
        scores = np.column_stack((1 - scores, scores))
    if kind == "top_label":
        predicted, confidence = data.predicted, data.confidence
        if predicted is None:
            predicted, confidence = top_label(scores)
        yield confidence, data.labels == predicted
        return
    for k, column in enumerate(_columns(scores)):
        if data.is_multilabel:
            yield column, data.labels[:, k]
        else:
            yield column, data.labels == k


def _columns(scores):
    """Yield the columns (n,) of scores (n, K) as contiguous arrays, copied in tiles
    that fit the cache.
    """
    n, n_classes = scores.shape
    if isinstance(scores, DeviceScores):
        yield from map(scores.column, range(n_classes))
        return
    for columns in row_blocks(n_classes, n, at_least=_COLUMNS):
        # the length of the slice, which may end beyond the last column
        n_columns = len(range(n_classes)[columns])
        block = np.empty((n_columns, n), dtype=scores.dtype)
        for rows in row_blocks(n, 2 * _COLUMNS):
            block[:, rows] = scores[rows, columns].T
        yield from block


def spread_top_label(scores, confidence):
    """Return probabilities (n, K) in which the predicted class of each row has
    `confidence` (n,), and the other classes share the rest in proportion to their
    scores (n, K), or equally where these are all 0.
    """
    predicted, _ = top_label(scores)
    predicted = predicted[:, None]
    others = scores.astype(np.float64)
    np.put_along_axis(others, predicted, 0, axis=1)
    total = others.sum(axis=1, keepdims=True)
    n_others = scores.shape[1] - 1
    equal_shares = np.full_like(others, 1 / n_others)
    shares = np.divide(others, total, out=equal_shares, where=total > 0)
    probability = shares * (1 - confidence)[:, None]
    np.put_along_axis(probability, predicted, confidence[:, None], axis=1)
    return probability
