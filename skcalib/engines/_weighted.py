"""A table as few weighted rows: one score per cell, for whatever takes `sample_weight`;
and its cumulative errors.
"""

from typing import NamedTuple

import numpy as np

from skcalib._cells.cells import two_points
from skcalib.engines._histogram import MOMENTS, ScoreHistogram, fine_cell

# Cells of a fit are at most 2^-8 wide relative to the score, with segments 2^-6, and
# hold at most this share of the weight.
_BITS = 16
_BITS_OF_SEGMENT = 14
_LARGEST_SHARE = 2.0**-8
# Allowance for rounding in sums, as a share of the total weight.
_SLACK = 1e-12


class WeightedScores(NamedTuple):
    """Labels (1 for events), scores in [0, 1] and weights, in the order in which
    metrics and fits take them.
    """

    y_true: np.ndarray
    y_proba: np.ndarray
    sample_weight: np.ndarray


def label_pairs(columns, must_be_scores=None):
    """Return `WeightedScores` by segment in which the rows of each cell and label are
    replaced by two weighted scores with the same mean and variance.

    The error of a sum of any smooth function of the scores is then in proportion to the
    fourth power of the width of a cell. Cells that hold much of the weight are split
    into distinct scores, and so are those of the mask ``must_be_scores(cells)``.
    """

    def is_needed(cells):
        """Return a mask of the cells of one segment that must be split."""
        is_heavy = cells.weight > _LARGEST_SHARE * cells.weight.sum()
        if must_be_scores is None:
            return is_heavy
        return is_heavy | must_be_scores(cells)

    bits = _BITS_OF_SEGMENT if columns.by else _BITS
    histogram = ScoreHistogram(columns, MOMENTS, fine_cell(bits))
    histogram.refine(is_needed)
    return {key: _pairs(cells) for key, cells in histogram.by_segment().items()}


def _pairs(cells):
    """Return `WeightedScores` with two scores for each cell and label, whose mean and
    variance are those of its rows. Cells lie on one side of 1/2; their sums of the
    `distance` from the nearer of 0 and 1 are more exact near 1 than those of the score.
    """
    # Sums over the rows of each label: of the weight w, of w times the distance, and of
    # w times the squared distance.
    events = (cells.weighted_label, cells.distance_label, cells.distance_squared_label)
    non_events = (
        cells.weight - cells.weighted_label,
        cells.distance - cells.distance_label,
        cells.distance_squared - cells.distance_squared_label,
    )
    # The limits of the distance in each cell. Above 1/2 it is the distance from 1.
    is_above_half = cells.low > 0.5
    low = np.where(is_above_half, 1 - cells.high, cells.low)
    high = np.where(is_above_half, 1 - cells.low, cells.high)
    # One array (n_cells,) for the lower and one for the upper point of each label.
    labels = []
    scores = []
    weights = []
    for label, (total, distances, squares) in ((1, events), (0, non_events)):
        divisor = np.where(total > 0, total, 1.0)
        mean = np.clip(distances / divisor, low, high)
        variance = squares / divisor - mean**2
        for weight, distance in two_points(total, mean, variance, low, high):
            score = np.where(is_above_half, 1 - distance, distance)
            labels.append(np.full(len(score), label))
            scores.append(score.clip(cells.low, cells.high))
            weights.append(weight)
    labels = np.concatenate(labels)
    scores = np.concatenate(scores)
    weights = np.concatenate(weights)
    has_weight = weights > 0
    return WeightedScores(labels[has_weight], scores[has_weight], weights[has_weight])


def pooled(columns, bits):
    """Return `WeightedScores` by segment in which the rows of each of about 2^bits
    cells have their mean score.
    """
    histogram = ScoreHistogram(columns, ("weighted_score",), fine_cell(bits))
    return {key: mean_rows(cells) for key, cells in histogram.by_segment().items()}


def mean_rows(cells):
    """Return cells, sums over rows of neighbouring scores, as `WeightedScores` at their
    mean scores.
    """
    # The quotient may leave the cell by rounding.
    mean = np.clip(cells.weighted_score / cells.weight, cells.low, cells.high)
    return rows_of_cells(mean, cells.weight, cells.weighted_label)


def rows_of_cells(score, weight, weighted_label):
    """Return `WeightedScores` with two rows for each of the scores (n_scores,): one
    for the events, of weight `weighted_label`, and one for the non-events, which have
    the rest of `weight`. Rows of weight 0 are left out.
    """
    labels = np.repeat([1, 0], len(score))
    scores = np.tile(score, 2)
    weights = np.concatenate((weighted_label, weight - weighted_label))
    has_weight = weights > 0
    return WeightedScores(labels[has_weight], scores[has_weight], weights[has_weight])


def exact_cumulative_error(columns, metric, *, two_sided):
    """Return a dict from the key of a segment to the value of a metric that depends
    only on the largest and the least value of a cumulative sum C.

    C adds up w (y - s), weight times label minus score, in the order of the scores.
    With `two_sided` the metric is max C - min C (Kuiper), otherwise max |C|
    (Kolmogorov-Smirnov). ``metric(y_true, y_proba, sample_weight=, labels=)`` computes
    it. Cells in which C cannot reach an extreme are not split.
    """
    histogram = ScoreHistogram(columns, ("weighted_score", "weighted_score_label"))
    histogram.refine(lambda cells: _may_hold_extreme(cells, two_sided))
    return {key: _error(cells, metric) for key, cells in histogram.by_segment().items()}


def _may_hold_extreme(cells, two_sided):
    """Return a mask of a segment's cells in which the cumulative sum C of w (y - s) may
    have an extreme.

    Within a cell C rises at most by the sum of w (1 - s) over the events, if they come
    first, and falls at most by that of w s over the non-events. Cells are in the order
    of the scores.
    """
    # C after and before each cell.
    after = np.cumsum(cells.weighted_label - cells.weighted_score)
    before = np.append(0.0, after[:-1])
    highest = before + cells.weighted_label - cells.weighted_score_label
    lowest = before - (cells.weighted_score - cells.weighted_score_label)
    # The extremes that C certainly reaches, at the ends of cells (C begins at 0): a
    # value within a cell counts only if it is as far out.
    most = max(after.max(), 0.0)
    least = min(after.min(), 0.0)
    if not two_sided:
        # The largest |C| is at least this number: within a cell C matters only if it is
        # above the number or below its negative.
        most = max(most, -least)
        least = -most
    slack = _SLACK * cells.weight.sum()
    return (highest >= most - slack) | (lowest <= least + slack)


def _error(cells, metric):
    """Return ``metric`` for the rows of cells, placed at the mean scores."""
    y_true, y_proba, weight = mean_rows(cells)
    return metric(y_true, y_proba, sample_weight=weight, labels=[0, 1])
