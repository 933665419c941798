"""Cells: scores with weights and events, be they distinct, condensed or bins, in the
order of the scores.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from skcalib._input.tensors import as_array, library_of
from skcalib._rows.blocks import taken
from skcalib._rows.namespaces import in_double, placed, sums_up_to
from skcalib._rows.sorting import DistinctScores

# A variance of scores, or of labels, below it is 0 but for rounding.
_ZERO_VARIANCE = 1e-12
# Where neighbours are pooled, at most this many cells remain: draws of their events
# then fit the cache.
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
    trials = noise = None  # see `Cells`

    @property
    def xp(self):
        """The namespace of the arrays."""
        return library_of(self.weight)

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
        """Return the weighted mean (m,) for the weighted sum of each cell; the midpoint
        of an empty bin.
        """
        xp = self.xp
        if xp is not np:  # cells of distinct scores, which all hold rows
            return in_double(xp, total) / in_double(xp, self.weight)
        if np.count_nonzero(self.weight) == len(self.weight):
            return total / self.weight
        mean = self.midpoint  # a new array, overwritten where the bin holds rows
        return np.divide(total, self.weight, out=mean, where=self.weight > 0)

    @property
    def score_variance(self):
        """Variance of the scores within each cell; 0 for cells of one score."""
        if self.weighted_score_squared is None:
            return np.zeros(len(self.weight))
        mean_square = self._mean(self.weighted_score_squared)
        return np.maximum(mean_square - self.mean_score**2, 0)

    @cached_property
    def score_ratio(self):
        """Variance of the scores within each cell divided by s (1 - s), s the mean
        score: (m,), in [0, 1].

        If each label is 1 with the probability s_i of its own row, the number of events
        has the variance sum s_i (1 - s_i) = n s (1 - s) (1 - ratio).
        """
        score = self.mean_score
        label_variance = score * (1 - score)
        ratio = np.divide(
            self.score_variance,
            label_variance,
            out=np.zeros(len(score)),
            where=label_variance > 0,
        )
        return np.minimum(ratio, 1)

    @cached_property
    def deviation(self):
        """Event frequency minus mean score."""
        return self.event_frequency - self.mean_score

    @cached_property
    def variance(self):
        """Variance of the event frequency of each cell if the scores are calibrated:
        the mean of s (1 - s) over its rows, divided by their number.
        """
        score = self.mean_score
        return score * (1 - score) * (1 - self.score_ratio) / self.weight

    @property
    def residual_square(self):
        """Sum of w (y - s)^2 in each cell, where the sums of w s y are known."""
        return (
            self.weighted_label
            - 2 * self.weighted_score_label
            + self.weighted_score_squared
        )

    @property
    def residual_variance(self):
        """Variance of y - s within each cell, where the sums of w s y are known."""
        mean_square = self._mean(self.residual_square)
        return np.maximum(mean_square - self.deviation**2, 0)

    @property
    def residual_factor(self):
        """Observed variance of y - s within each cell, divided by that of labels drawn
        with the event frequency f of the cell: (m,).

        Drawn labels have probabilities that differ within the cell as its scores do:
        their variance is f (1 - f) (1 - r), where r, the `score_ratio`, is the variance
        of the scores over s (1 - s). The factor is 1 where the drawn labels do not vary
        or, for lack of the sums of w s y, the observed variance is not known.
        """
        if self.weighted_score_label is None:
            return np.ones(len(self.weight))
        frequency = self.event_frequency
        drawn_variance = frequency * (1 - frequency) * (1 - self.score_ratio)
        return np.divide(
            self.residual_variance,
            drawn_variance,
            out=np.ones(len(drawn_variance)),
            where=drawn_variance > _ZERO_VARIANCE,
        )

    @property
    def total_residual_variance(self):
        """Variance of y - s over all rows, where the sums of w s y are known."""
        weighted_residual = self.weighted_label.sum() - self.weighted_score.sum()
        mean = weighted_residual / self.total_weight
        # `residual_square` holds the sum of w (y - s)^2 of each cell.
        mean_square = self.residual_square.sum() / self.total_weight
        return max(mean_square - mean**2, 0.0)


# The names of the arrays (m,) of `CellSums`, which are all fields but the edges.
_FIELDS_BY_CELL = tuple(
    field.name for field in fields(CellSums) if field.name != "edges"
)


@dataclass(frozen=True, eq=False, repr=False)
class Cells(CellSums):
    """Cells that hold rows: distinct scores, neighbours that are pooled, or the filled
    bins of a `BinStatistics`. Those of distinct scores may be tensors on a device.

    Parameters
    ----------
    trials : ndarray of shape (m,), default=None
        Numbers n of rows for which f (1 - f) / n is the variance of the event frequency
        f of each cell, where the weights do not count rows; None means the weights.
    noise : ndarray of shape (m,), default=None
        Variance of each event frequency, where it is known without `trials`.
    """

    trials: np.ndarray | None = None
    noise: np.ndarray | None = None

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
        """Return cells of one score each, for scores in increasing order, their weights
        and their sums of weighted labels, all (m,).
        """
        cells = cls(
            edges=None,
            count=None,
            weight=weight,
            weighted_score=in_double(library_of(weight), weight) * scores,
            weighted_label=weighted_label,
        )
        # Fill the cached property: a quotient of sums would round.
        object.__setattr__(cells, "mean_score", scores)
        return cells

    @classmethod
    def joined(cls, cells_of_problems):
        """Return one `Cells` object with the cells of several binary problems, one
        problem after the other.
        """
        if len(cells_of_problems) == 1:
            return cells_of_problems[0]
        sums = {}
        for name in (*_FIELDS_BY_CELL, "trials", "noise"):
            columns = [getattr(cells, name) for cells in cells_of_problems]
            # A sum that one of the problems lacks is unknown for all.
            if any(column is None for column in columns):
                sums[name] = None
            else:
                sums[name] = np.concatenate(columns)
        return cls(edges=None, **sums)

    @classmethod
    def of_bins(cls, bins):
        """Return the bins of a `BinStatistics` that hold rows."""
        is_filled = bins.weight > 0
        # An empty bin becomes a part of the next filled one.
        upper_edges = bins.edges[1:][is_filled]
        edges = np.append(bins.edges[:1], upper_edges)
        sums = {}
        for name in _FIELDS_BY_CELL:
            sums[name] = taken(getattr(bins, name), is_filled)  # None stays None
        return cls(edges=edges, **sums)

    def at(self, positions):
        """Return the cells at some positions, of any problems."""
        names = (*_FIELDS_BY_CELL, "trials", "noise")
        return Cells(
            edges=None,
            **{name: taken(getattr(self, name), positions) for name in names},
        )

    def condensed(self, most):
        """Return the cells as they are if there are at most `most`; else pool
        neighbours to that many cells of about equal weight, and to 4,096 at most.

        All scores of a pooled cell are replaced by their mean.
        """
        if self.weight.shape[0] <= most:
            return self.on_processor()
        n_cells = min(most, _MOST_CONDENSED)
        # A pooled cell ends with the old cell at which the cumulative weight reaches
        # the next of n_cells equal steps. A heavy cell reaches several steps at once,
        # but ends one pooled cell.
        xp = self.xp
        cumulative = sums_up_to(xp, self.weight)[1:]
        steps = np.arange(1, n_cells + 1) / n_cells * float(cumulative[-1])
        steps = placed(xp, steps, cumulative, dtype=xp.float64)
        last, _ = as_array(xp.searchsorted(in_double(xp, cumulative), steps))
        last = np.unique(np.minimum(last, cumulative.shape[0] - 1))
        high = _entries(xp, self.high, last)
        return Cells(
            edges=np.append(_entries(xp, self.high, last[:1] * 0), high),
            count=None,
            weight=_sums_of_runs(xp, self.weight, last),
            weighted_score=_sums_of_runs(xp, self.weighted_score, last),
            weighted_label=_sums_of_runs(xp, self.weighted_label, last),
        )

    def on_processor(self):
        """Return the cells of distinct scores as arrays of NumPy."""
        if self.xp is np:
            return self
        arrays = (self.mean_score, self.weight, self.weighted_label)
        return Cells.of_scores(*(as_array(array)[0] for array in arrays))

    def two_points(self):
        """Return scores and weights of points that stand for the rows: two in each
        cell, with the mean and the variance of its scores, or one where these are
        equal.
        """
        mean = np.clip(self.mean_score, 0, 1)
        variance = self.score_variance
        is_spread = variance > _ZERO_VARIANCE
        if not np.any(is_spread):
            return mean, self.weight
        variance = np.where(is_spread, variance, 0)
        # the weights (first row) and the scores (second row) of the points
        lower, upper = two_points(self.weight, mean, variance, 0.0, 1.0)
        weights, scores = np.concatenate((lower, upper), axis=1)
        is_used = weights > 0
        return np.clip(scores[is_used], 0, 1), weights[is_used]

    def cell_of(self, scores):
        """Return the index (n,) of the cell in which each score (n,) lies, where the
        scores are. Scores above the last cell belong to it.
        """
        xp = library_of(scores)
        if xp is np:
            return np.minimum(np.searchsorted(self.high, scores), len(self.weight) - 1)
        dtype = np.dtype(np.float64 if scores.dtype == xp.float64 else np.float32)
        cuts = rounded_down(self.high[:-1], dtype)
        return xp.searchsorted(placed(xp, cuts, scores), scores)

    @property
    def high(self):
        """Highest score of each cell (m,)."""
        if self.edges is None:
            return self.mean_score
        return self.edges[1:]


def rounded_down(cuts, dtype):
    """Return cuts in the floating type of scores, rounded down, so that a score is
    above the same cuts as before.
    """
    rounded = cuts.astype(dtype)
    below = np.nextafter(rounded, dtype.type(-np.inf))
    return np.where(rounded > cuts, below, rounded)


def _entries(xp, values, positions):
    """Return the entries of an array at positions of NumPy, as an array of NumPy."""
    if xp is np:
        return values[positions]
    positions = xp.asarray(positions, device=values.device)
    return as_array(xp.take(values, positions))[0]


def _sums_of_runs(xp, values, last):
    """Return the sums of the values of each run, as an array of NumPy; `last` are the
    positions of the last entries of the runs.
    """
    if xp is np:
        return np.add.reduceat(values, np.append(0, last[:-1] + 1))
    sums_up_to_last = _entries(xp, xp.cumulative_sum(values, dtype=values.dtype), last)
    return np.diff(sums_up_to_last, prepend=0)


def two_points(weight, mean, variance, low, high):
    """Return two weighted points in [low, high] with a given total weight, mean and
    variance, for each of m cells.

    They lie one standard deviation below and above the mean. Where one of them would
    leave [low, high] it lies at that end, and the other one farther from the mean.

    Parameters
    ----------
    weight, mean, variance : ndarray of shape (m,)
        Those that the points of each cell have together. A variance that is too large
        for [low, high] is reduced to the largest possible.
    low, high : float or ndarray of shape (m,)
        The interval that holds the points.

    Returns
    -------
    lower, upper : ndarray of shape (2, m)
        The weight (first row) and the place (second row) of the lower points, and of
        the upper points.
    """
    below = mean - low
    above = high - mean
    variance = np.clip(variance, 0, below * above)
    deviation = np.sqrt(variance)
    # Points at mean - step_down and mean + step_up, with weights that keep the mean,
    # have the variance step_down * step_up: one step gives the other.
    step_down = np.where(deviation > 0, np.minimum(deviation, below), 0.0)
    # Where the upper point would lie above `high`, step_up is `above`.
    step_down_for_end = variance / np.where(above > 0, above, 1.0)
    step_down = np.where(deviation > above, step_down_for_end, step_down)
    zeros = np.zeros(len(step_down))
    step_up = np.divide(variance, step_down, out=zeros, where=step_down > 0)
    # The share of the weight in the lower point that keeps the mean.
    both_steps = step_down + step_up
    ones = np.ones(len(both_steps))
    share = np.divide(step_up, both_steps, out=ones, where=both_steps > 0)
    lower = np.stack((weight * share, mean - step_down))
    upper = np.stack((weight * (1 - share), mean + step_up))
    return lower, upper
