"""A table as few weighted rows: one score per cell, for whatever takes `sample_weight`;
and its cumulative errors.
"""

from typing import NamedTuple

import numpy as np

from skcalib._cells.cells import two_points
from skcalib.engines._histogram import MOMENTS, ScoreHistogram, fine_cell

# Cells of a fit: at most 2^-8 wide relative to the score, 2^-6 by segment; share of the
# weight that one may hold.
_BITS, _BITS_OF_SEGMENT, _LARGEST_SHARE = 16, 14, 2.0**-8
# of the total weight: sums that decide what need not be looked at are rounded
_SLACK = 1e-12


class WeightedScores(NamedTuple):
    """Labels (1 for events), scores in [0, 1] and weights, in the order in which
    metrics and fits take them.
    """

    y_true: np.ndarray
    y_proba: np.ndarray
    sample_weight: np.ndarray


def label_pairs(columns, is_apart=None):
    """Return the rows of each cell and label as two weighted scores with their mean and
    variance, by segment.

    A sum of any smooth function of the scores is then right to the fourth power of the
    width of a cell. Cells that hold much of the weight are split further, and those in
    which `is_apart(cells)` down to distinct scores.
    """

    def is_needed(cells):
        is_heavy = cells.weight > _LARGEST_SHARE * cells.weight.sum()
        if is_apart is None:
            return is_heavy
        return is_heavy | is_apart(cells)

    bits = _BITS_OF_SEGMENT if columns.by else _BITS
    histogram = ScoreHistogram(columns, MOMENTS, fine_cell(bits))
    histogram.refine(is_needed)
    return {key: _pairs(cells) for key, cells in histogram.by_segment().items()}


def _pairs(cells):
    """Return two scores a cell and label as weighted rows."""
    # Sums over the rows of each label: weights, and their distances from the nearer of
    # 0 and 1 and its square.
    events = (cells.weighted_label, cells.distance_label, cells.distance_squared_label)
    others = (
        cells.weight - cells.weighted_label,
        cells.distance - cells.distance_label,
        cells.distance_squared - cells.distance_squared_label,
    )
    # The limits of the distance in each cell.
    is_mirrored = cells.low > 0.5
    low = np.where(is_mirrored, 1 - cells.high, cells.low)
    high = np.where(is_mirrored, 1 - cells.low, cells.high)
    labels = []
    scores = []
    weights = []
    for label, (total, distances, squares) in ((1, events), (0, others)):
        divisor = np.where(total > 0, total, 1.0)
        mean = np.clip(distances / divisor, low, high)
        variance = squares / divisor - mean**2
        for weight, distance in two_points(total, mean, variance, low, high):
            score = np.where(is_mirrored, 1 - distance, distance)
            labels.append(np.full(len(score), label))
            scores.append(score.clip(cells.low, cells.high))
            weights.append(weight)
    weights = np.concatenate(weights)
    counts = weights > 0
    return WeightedScores(
        np.concatenate(labels)[counts], np.concatenate(scores)[counts], weights[counts]
    )


def pooled(columns, bits):
    """Return the rows of each (segment, cell) at their mean score, by segment: no more
    scores than cells.
    """
    histogram = ScoreHistogram(columns, ("weighted_score",), fine_cell(bits))
    return {key: mean_rows(cells) for key, cells in histogram.by_segment().items()}


def mean_rows(cells):
    """Return cells as weighted rows at their mean scores."""
    # the quotient may round
    mean = np.clip(cells.weighted_score / cells.weight, cells.low, cells.high)
    return rows_of_cells(mean, cells.weight, cells.weighted_label)


def rows_of_cells(score, weight, weighted_label):
    """Return sums by score as weighted rows: one for the events and one for the
    others.
    """
    labels = np.repeat([1, 0], len(score))
    weights = np.concatenate((weighted_label, weight - weighted_label))
    kept = weights > 0
    return WeightedScores(labels[kept], np.tile(score, 2)[kept], weights[kept])


def exact_cumulative_error(columns, metric, *, two_sided):
    """Return a metric that depends on the cumulative sum C of w (y - s) by score
    through its extremes, by segment.

    `two_sided` is whether it is max C - min C (Kuiper); else it is max |C|. Within a
    cell C rises at most by its sum of w (1 - s) over events, and falls at most by its
    sum of w s over the others. Cells that cannot pass an extreme are left whole.
    """
    histogram = ScoreHistogram(columns, ("weighted_score", "weighted_score_label"))
    histogram.refine(lambda cells: _may_hold_extreme(cells, two_sided))
    return {key: _error(cells, metric) for key, cells in histogram.by_segment().items()}


def _may_hold_extreme(cells, two_sided):
    """Return the cells in which the cumulative difference of events and scores may be
    largest or smallest.

    Inside a cell it is at most what all its events before all its scores would make it.
    """
    after = np.cumsum(cells.weighted_label - cells.weighted_score)
    before = np.append(0.0, after[:-1])
    highest = before + cells.weighted_label - cells.weighted_score_label
    lowest = before - (cells.weighted_score - cells.weighted_score_label)
    most = max(after.max(), 0.0)
    least = min(after.min(), 0.0)
    if not two_sided:
        most = max(most, -least)
        least = -most
    slack = _SLACK * cells.weight.sum()
    return (highest >= most - slack) | (lowest <= least + slack)


def _error(cells, metric):
    y_true, y_proba, weight = mean_rows(cells)
    return metric(y_true, y_proba, sample_weight=weight, labels=[0, 1])
