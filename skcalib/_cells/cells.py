"""Cells: scores with weights and events, be they distinct, condensed or bins, in the
order of the scores.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from skcalib._rows.blocks import taken
from skcalib._rows.sorting import DistinctScores

_ONE_SCORE = 1e-12  # a variance below it is that of one score, rounded
# At most this many cells are kept unless more are asked for: draws of their events then
# fit the cache.
_MOST_CONDENSED = 1 << 12


@dataclass(frozen=True, eq=False, repr=False)
class CellSums:
    """Sums over the rows of each cell, where a cell is a range of scores that have one
    event frequency.

    Parameters
    ----------
    edges : ndarray of shape (m + 1,) or None
        Edges of the cells, which hold the scores above the lower edge up to the upper
        one, the first cell both. None for cells of one score, and for those of several
        problems.
    count : ndarray of int, shape (m,), or None
        Number of rows, where it is known.
    weight : ndarray of shape (m,)
        Sums of the weights w, of integer dtype where they count rows.
    weighted_score, weighted_label : ndarray of shape (m,)
        Sums of w s and of w y.
    weighted_score_squared, weighted_score_label : ndarray of shape (m,) or None
        Sums of w s^2 and of w s y. None for cells of one score, or of scores so near
        that they count as one.
    weight_squared : ndarray of shape (m,) or None
        Sums of w^2, where they are known.
    """

    # None for some cells: a type checker that knew it would ask each reader of a bin
    # for a check.
    edges: np.ndarray | Any
    count: np.ndarray | None
    weight: np.ndarray
    weighted_score: np.ndarray
    weighted_label: np.ndarray
    weighted_score_squared: np.ndarray | None = None
    weighted_score_label: np.ndarray | None = None
    weight_squared: np.ndarray | None = None

    @property
    def total_weight(self):
        """Sum of the weights of all rows."""
        return float(self.weight.sum())

    @cached_property
    def share(self):
        """Share of the total weight in each bin."""
        return self.weight / self.weight.sum()

    @property
    def midpoint(self):
        """Middle of each bin."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    @cached_property
    def mean_score(self):
        """Mean score of each bin; the midpoint of an empty bin."""
        return self._mean(self.weighted_score)

    @cached_property
    def event_frequency(self):
        """Mean label of each bin; the midpoint of an empty bin."""
        return self._mean(self.weighted_label)

    def _mean(self, total):
        if self.weight.all():
            return total / self.weight
        return np.divide(total, self.weight, out=self.midpoint, where=self.weight > 0)

    @property
    def score_variance(self):
        """Variance of the scores within each cell."""
        if self.weighted_score_squared is None:
            return np.zeros(len(self.weight))
        return np.maximum(
            self._mean(self.weighted_score_squared) - self.mean_score**2, 0
        )

    @cached_property
    def score_ratio(self):
        """Variance of the scores within each cell over s (1 - s): how much less than a
        binomial its events vary.
        """
        score = self.mean_score
        variance = self.score_variance
        spread = score * (1 - score)
        return np.minimum(
            np.divide(variance, spread, out=np.zeros(len(score)), where=spread > 0), 1
        )

    @cached_property
    def deviation(self):
        """Event frequency minus mean score."""
        return self.event_frequency - self.mean_score

    @cached_property
    def variance(self):
        """Variance of the event frequency if the scores are calibrated."""
        score = self.mean_score
        return score * (1 - score) * (1 - self.score_ratio) / self.weight

    @property
    def residual_square(self):
        """Sum of w (y - s)^2 in each cell, where the moments are known."""
        return (
            self.weighted_label
            - 2 * self.weighted_score_label
            + self.weighted_score_squared
        )

    @property
    def residual_variance(self):
        """Variance of y - s within each cell, where the moments are known."""
        return np.maximum(self._mean(self.residual_square) - self.deviation**2, 0)

    @property
    def residual_factor(self):
        """How many times as much the residuals vary as by the event frequency and
        `score_ratio`; 1 if unknown.
        """
        if self.weighted_score_label is None:
            return np.ones(len(self.weight))
        frequency = self.event_frequency
        expected = frequency * (1 - frequency) * (1 - self.score_ratio)
        return np.divide(
            self.residual_variance,
            expected,
            out=np.ones(len(expected)),
            where=expected > _ONE_SCORE,
        )

    @property
    def total_residual_variance(self):
        """Variance of y - s over all rows, where the moments are known."""
        bias = self.weighted_label.sum() - self.weighted_score.sum()
        return max(
            self.residual_square.sum() / self.total_weight
            - (bias / self.total_weight) ** 2,
            0.0,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Cells(CellSums):
    """Cells that hold rows: distinct scores, neighbours that are pooled, or the filled
    bins of a `BinStatistics`.
    """

    @classmethod
    def from_rows(cls, scores, labels, sample_weight=None):
        """Return the cells of the distinct scores of validated rows; see
        `DistinctScores.from_rows`.
        """
        table = DistinctScores.from_rows(scores, labels, sample_weight)
        return cls.of_scores(
            table.scores, np.diff(table.weight), np.diff(table.positives)
        )

    @classmethod
    def of_scores(cls, scores, weight, weighted_label):
        """Return cells of one score each, in increasing order."""
        cells = cls(None, None, weight, weight * scores, weighted_label)
        vars(cells)["mean_score"] = scores  # a quotient of sums would round
        return cells

    @classmethod
    def joined(cls, parts):
        """Return the cells of several problems, one after the other."""
        if len(parts) == 1:
            return parts[0]
        sums = {"edges": None}
        for field in fields(cls)[1:]:
            columns = [getattr(cells, field.name) for cells in parts]
            # A sum that one of the problems lacks is unknown for all.
            if any(column is None for column in columns):
                sums[field.name] = None
            else:
                sums[field.name] = np.concatenate(columns)
        return cls(**sums)

    @classmethod
    def of_bins(cls, bins):
        """Return the bins that hold rows."""
        is_filled = bins.weight > 0
        sums = {"edges": np.append(bins.edges[:1], bins.edges[1:][is_filled])}
        for field in fields(cls)[1:]:
            values = getattr(bins, field.name)
            sums[field.name] = taken(values, is_filled)
        return cls(**sums)

    def condensed(self, most):
        """Return the cells where they are at most `most`, else fewer: neighbours of
        about the same weight are pooled.

        Scores of a pooled cell count as their mean.
        """
        if len(self.weight) <= most:
            return self
        n_cells = min(most, _MOST_CONDENSED)
        reached = np.cumsum(self.weight)
        targets = np.arange(1, n_cells + 1) / n_cells * reached[-1]
        # A heavy cell may reach several targets: it ends one pooled cell.
        last = np.searchsorted(reached, targets)
        last = np.unique(np.minimum(last, len(reached) - 1))
        starts = np.append(0, last[:-1] + 1)
        return Cells(
            edges=np.append(self.high[:1], self.high[last]),
            count=None,
            weight=np.add.reduceat(self.weight, starts),
            weighted_score=np.add.reduceat(self.weighted_score, starts),
            weighted_label=np.add.reduceat(self.weighted_label, starts),
        )

    def two_points(self):
        """Return scores and weights of two points a cell that have the mean and the
        variance of its scores.
        """
        mean = np.clip(self.mean_score, 0, 1)
        variance = self.score_variance
        is_spread = variance > _ONE_SCORE
        if not np.any(is_spread):
            return mean, self.weight
        variance = np.where(is_spread, variance, 0)
        points = two_points(self.weight, mean, variance, 0.0, 1.0)
        weights, scores = np.concatenate(points, axis=1)
        is_used = weights > 0
        return np.clip(scores[is_used], 0, 1), weights[is_used]

    def of_rows(self, scores):
        """Return the cell of each score."""
        return np.minimum(np.searchsorted(self.high, scores), len(self.weight) - 1)

    @property
    def high(self):
        """The highest score of each cell."""
        return self.mean_score if self.edges is None else self.edges[1:]


def two_points(weight, mean, variance, low, high):
    """Return the weights and places of two points in [low, high] with a given mean and
    variance, (2, m) each point.

    They are as far from the mean on both sides, unless an end is nearer.
    """
    below = mean - low
    above = high - mean
    variance = np.clip(variance, 0, below * above)  # it is at most that
    deviation = np.sqrt(variance)
    # One deviation to both sides; where that leaves [low, high] a point stands at the
    # end, and the product of the two steps is the variance.
    step_down = np.where(deviation > 0, np.minimum(deviation, below), 0.0)
    to_high = variance / np.where(above > 0, above, 1.0)
    step_down = np.where(deviation > above, to_high, step_down)
    zeros = np.zeros(len(step_down))
    step_up = np.divide(variance, step_down, out=zeros, where=step_down > 0)
    # The shares that keep the mean.
    both = step_down + step_up
    share = np.divide(step_up, both, out=np.ones(len(both)), where=both > 0)
    lower = np.stack((weight * share, mean - step_down))
    upper = np.stack((weight * (1 - share), mean + step_up))
    return lower, upper
