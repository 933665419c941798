"""Kuiper and Kolmogorov-Smirnov calibration errors of a table, exact by refinement."""

import numpy as np

from skcalib.engines._histogram import ScoreHistogram
from skcalib.engines._weighted import mean_rows

_SLACK = 1e-12  # of the total weight: sums that decide what need not be looked at are rounded


def exact_cumulative_error(columns, metric, *, two_sided):
    """Return a metric that depends on the cumulative sum C of w (y - s) by score through its extremes, by segment.

    `two_sided` is whether it is max C - min C (Kuiper); else it is max |C|. Within a cell C rises at most by its sum of
    w (1 - s) over events, and falls at most by its sum of w s over the others. Cells that cannot pass an extreme are
    left whole.
    """
    histogram = ScoreHistogram(columns, ("weighted_score", "weighted_score_label"))
    histogram.refine(lambda cells: _may_hold_extreme(cells, two_sided))
    return {key: _error(cells, metric) for key, cells in histogram.by_segment().items()}


def _may_hold_extreme(cells, two_sided):
    after = np.cumsum(cells.weighted_label - cells.weighted_score)
    before = np.append(0.0, after[:-1])
    highest = before + cells.weighted_label - cells.weighted_score_label
    lowest = before - (cells.weighted_score - cells.weighted_score_label)
    most, least = max(after.max(), 0.0), min(after.min(), 0.0)
    if not two_sided:
        most = max(most, -least)
        least = -most
    slack = _SLACK * cells.weight.sum()
    return (highest >= most - slack) | (lowest <= least + slack)


def _error(cells, metric):
    y_true, y_proba, weight = mean_rows(cells)
    return metric(y_true, y_proba, sample_weight=weight, labels=[0, 1])
