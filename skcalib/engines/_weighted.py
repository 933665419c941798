"""A table as few weighted rows: one score per cell, for whatever takes `sample_weight`."""

from typing import NamedTuple

import numpy as np

from skcalib.engines._cells import fine_cell
from skcalib.engines._columns import check_no_hidden_nan
from skcalib.engines._histogram import distinct_keys
from skcalib.engines._native import fetched, narwhals

__all__ = ["WeightedScores", "label_means", "pooled", "rows_of_cells"]


class WeightedScores(NamedTuple):
    """Labels, scores and weights, in the order in which metrics and fits take them.

    Parameters
    ----------
    y_true : ndarray of int, shape (n,)
        1 for events, else 0.
    y_proba : ndarray of shape (n,)
        Scores, in [0, 1].
    sample_weight : ndarray of shape (n,)
        Weights: numbers of rows, or sums of weights.

    See Also
    --------
    skcalib.engines.PredictionTable : Errors and fits where the rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.engines import WeightedScores
    >>> from skcalib.metrics import kolmogorov_smirnov_calibration_error
    >>> rows = WeightedScores(np.array([0, 1]), np.array([0.25, 0.25]), np.array([2.0, 1.0]))
    >>> y_true, y_proba, weight = rows
    >>> round(kolmogorov_smirnov_calibration_error(y_true, y_proba, sample_weight=weight), 6)
    0.083333
    """

    y_true: np.ndarray
    y_proba: np.ndarray
    sample_weight: np.ndarray


def label_means(columns, bits, apart=()):
    """Return the rows of each (segment, cell, label) as one, at their mean score: a dict of these by segment.

    Rows whose score is one of `apart` are not mixed with others.
    """
    return {key: rows for key, (rows, _) in _compressed(columns, bits, apart).items()}


def pooled(columns, bits):
    """Return the same at the mean score of each (segment, cell): no more scores than cells."""
    out = {}
    for key, (rows, cell) in _compressed(columns, bits).items():
        _, of = np.unique(cell, return_inverse=True)
        weight = np.bincount(of, rows.sample_weight)
        mean = np.bincount(of, rows.sample_weight * rows.y_proba) / weight
        same = _is_same_in_cell(rows.y_proba, of)  # a mean of equal numbers may round
        out[key] = rows._replace(y_proba=np.where(same, rows.y_proba, mean[of]).clip(0, 1))
    return out


def rows_of_cells(score, weight, weighted_label):
    """Return sums by score as weighted rows: one for the events and one for the others."""
    labels = np.repeat([1, 0], len(score))
    weights = np.concatenate((weighted_label, weight - weighted_label))
    kept = weights > 0
    return WeightedScores(labels[kept], np.tile(score, 2)[kept], weights[kept])


def _compressed(columns, bits, apart=()):
    """Return the rows of `label_means`, and their cells, by segment."""
    nw, keys = narwhals(), columns.keys
    frame, weighted = columns.rows.with_columns(fine_cell(bits).alias("cell")), columns.weight is not None
    if weighted:
        frame = frame.with_columns(weighted_score=nw.col("weight") * nw.col("score"))
    total = nw.col("weighted_score" if weighted else "score").sum().alias("total")
    weights = [nw.col("weight").sum().alias("weights")] if weighted else []
    extent = [nw.col("score").min().alias("low"), nw.col("score").max().alias("high")]
    groups = [*keys, "cell", "label"]
    if len(apart):
        frame, groups = frame.with_columns(nw.col("score").is_in(list(apart)).alias("apart")), [*groups, "apart"]
    grouped = frame.group_by(groups).agg(nw.len().alias("count"), total, *weights, *extent)
    sums = fetched(grouped, keys)
    columns.check_rows(int(sums["count"].sum()))
    check_no_hidden_nan(sums["total"], sums.get("weights", 0))
    weight = sums.get("weights", sums["count"]).astype(np.float64)
    score = np.clip(sums["total"] / weight, sums["low"], sums["high"])
    segments, of = distinct_keys(sums, keys)
    order = np.lexsort((sums["label"], score, of))
    ends = np.searchsorted(of[order], np.arange(len(segments) + 1))
    out = {}
    for code, key in enumerate(segments):
        rows = order[ends[code] : ends[code + 1]]
        out[key] = WeightedScores(sums["label"][rows].astype(np.int64), score[rows], weight[rows]), sums["cell"][rows]
    return out


def _is_same_in_cell(score, of):
    low, high = np.full(of.max() + 1, np.inf), np.zeros(of.max() + 1)
    np.minimum.at(low, of, score)
    np.maximum.at(high, of, score)
    return (low == high)[of]
