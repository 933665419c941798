"""Errors without bins from the cells alone: cumulative differences, neighbours, and a
smooth curve (loess).
"""

from dataclasses import dataclass

import numpy as np

from skcalib._cells.device_columns import cells_in_place
from skcalib._errors.binned import check_norm
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib._input.scalars import check_int
from skcalib._input.tensors import library_of
from skcalib._rows.blocks import row_blocks
from skcalib._rows.namespaces import (
    as_double,
    at_least,
    at_most,
    chosen_entries,
    in_double,
    sums_up_to,
)
from skcalib.binning._base import WEIGHT_TOLERANCE


@dataclass(frozen=True, eq=False, kw_only=True)
class KolmogorovSmirnovError(CalibrationError):
    """The largest cumulative difference; see `kolmogorov_smirnov_calibration_error`."""

    def of_task(self, task, most=None):
        """Return the `KolmogorovSmirnovPower` of a binary problem, from its distinct
        scores; with `most`, from at most that many cells (see
        `CalibrationError.of_task`).
        """
        return KolmogorovSmirnovPower(cells_in_place(task, most))


@dataclass(frozen=True, eq=False, kw_only=True)
class KuiperError(CalibrationError):
    """The range of the cumulative differences; see `kuiper_calibration_error`."""

    def of_task(self, task, most=None):
        """Return the `KuiperPower` of a binary problem, from its distinct scores; with
        `most`, from at most that many cells (see `CalibrationError.of_task`).
        """
        return KuiperPower(cells_in_place(task, most))


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighborhoodError(CalibrationError):
    """The error over neighbours in score; see `neighborhood_calibration_error`."""

    n_neighbors: int | None = None

    def __post_init__(self):
        self._set(norm=check_norm(self.norm))

    def of_task(self, task, most=None):
        """Return the `NeighborhoodPower` of a binary problem, from its distinct scores;
        with `most`, from at most that many cells (see `CalibrationError.of_task`).
        """
        n_neighbors = _resolved_n_neighbors(self.n_neighbors, task.n_rows)
        return NeighborhoodPower(
            cells_in_place(task, most),
            norm=self.norm,
            neighbor_share=float(n_neighbors / task.n_rows),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class LoessError(CalibrationError):
    """The mean distance of the smooth curve from the scores; see `LoessPower`."""

    def of_task(self, task, most=None):
        """Return the `LoessPower` of a binary problem, whose scores are pooled to at
        most 128 cells, for the value as well as for draws (`most`).
        """
        most_cells = min(most or _MOST_CELLS, _MOST_CELLS)
        return LoessPower(task.cells(most_cells))


class KolmogorovSmirnovPower(ErrorPower):
    """The largest absolute sum of w (y - s) over the scores up to one of them (Gupta et
    al., Eq. 5).
    """

    def power(self, frequency):
        """Return the error (...) for event frequencies (..., m) of the cells."""
        differences = np.cumsum(self.share * (frequency - self.scores), axis=-1)
        return self._error(differences)

    @property
    def observed(self):
        """The error of the observed labels: that of `power`, with fewer passes over the
        cells, since their sums are known.
        """
        xp = library_of(self.weight)
        events = in_double(xp, self.cells.weighted_label)
        residuals = events - self.cells.weighted_score
        if xp is np:
            differences = np.cumsum(residuals, out=residuals)
        else:
            differences = xp.cumulative_sum(residuals)
        return float(self._error(differences)) / float(xp.sum(self.weight))

    def _error(self, sums):
        """Return the error (...) for cumulative sums (..., m): the largest absolute
        value.
        """
        xp = library_of(sums)
        return xp.maximum(xp.max(sums, axis=-1), -xp.min(sums, axis=-1))


class KuiperPower(KolmogorovSmirnovPower):
    """The range of the sums of w (y - s) over the scores up to one of them
    (Arrieta-Ibarra et al., ECCE-R).
    """

    def _error(self, sums):
        """Return the error (...) for cumulative sums (..., m): their range."""
        return range_of(sums)


def range_of(sums):
    """Return the range (...) of cumulative sums (..., m), with the 0 that they begin
    at.
    """
    xp = library_of(sums)
    high, low = xp.max(sums, axis=-1), xp.min(sums, axis=-1)
    zero = xp.zeros_like(high)
    return xp.maximum(high, zero) - xp.minimum(low, zero)


class NeighborhoodPower(ErrorPower):
    """The mean over rows of |s_i - mean label of the neighbours of s_i|^p (Roelofs et
    al., Eq. 2).

    Parameters
    ----------
    cells : Cells
        The distinct scores.
    norm : float, default=1
        The norm p.
    neighbor_share : float
        Share of all rows that are neighbours of each row.
    """

    def __init__(self, cells, *, norm=1, neighbor_share):
        super().__init__(cells, norm=norm)
        xp = self.cells.xp
        self.scores = as_double(xp, self.scores)
        # `cumulative[k]` is the weight of the first k scores, k = 0, ..., m. The
        # neighbours of a row hold at least the weight `needed`: a little less than
        # their share, since weights that are no integers add up only to within
        # rounding.
        cumulative = in_double(xp, sums_up_to(xp, self.weight))
        needed = (neighbor_share - WEIGHT_TOLERANCE) * float(cumulative[-1])
        # The neighbours of score k are the scores left[k], ..., right[k] - 1, and
        # neighbor_weight[k] is their weight.
        self.left, self.right = _nearest(self.scores, cumulative, needed)
        self.neighbor_weight = self._among_neighbors(cumulative)

    def _among_neighbors(self, up_to):
        """Return the sum (m,) over the neighbours of each score, for sums over the
        first 0, ..., m scores.
        """
        xp = self.cells.xp
        sums = chosen_entries(xp, up_to, self.right)
        return sums - chosen_entries(xp, up_to, self.left)

    @property
    def observed(self):
        """The p-th power of the error of the observed labels."""
        xp = self.cells.xp
        if xp is np:
            return super().observed
        events = self._among_neighbors(sums_up_to(xp, self.cells.weighted_label))
        gap = in_double(xp, events) / self.neighbor_weight - self.scores
        return float(self.norm_of(xp.abs(gap)))

    def power(self, frequency):
        """Return the p-th power (...) of the error for event frequencies (..., m) of
        the cells.
        """
        # positives[..., k] is the number of events of the first k scores.
        positives = np.zeros((*frequency.shape[:-1], len(self.weight) + 1))
        np.cumsum(self.weight * frequency, axis=-1, out=positives[..., 1:])
        gap = positives[..., self.right]
        gap -= positives[..., self.left]  # the number of events among the neighbours
        gap /= self.neighbor_weight
        gap -= self.scores
        del positives  # as long as the cells, and not needed any more
        return self.norm_of(np.abs(gap, out=gap))


def _resolved_n_neighbors(n_neighbors, n_rows):
    """Return the checked number of neighbours; None means the root of the number of
    rows (or of the sum of weights, exact to `WEIGHT_TOLERANCE`), rounded up.
    """
    if n_neighbors is None:
        # A sum that is a little above a square number is not rounded up to the next.
        root = np.sqrt(n_rows * (1 - WEIGHT_TOLERANCE))
        return min(np.ceil(root), n_rows)
    maximum = int(n_rows * (1 + WEIGHT_TOLERANCE))
    return check_int(n_neighbors, "n_neighbors", maximum=maximum)


def _nearest(scores, cumulative, needed):
    """Return the neighbours [left, right) (m,) of each of m distinct scores in
    increasing order: all within the least distance that holds the weight `needed`.
    `cumulative` (m + 1,) is the weight of the first k scores.
    """
    xp = library_of(scores)
    n_scores = scores.shape[0]
    if xp is not np:  # all at once
        index = xp.arange(n_scores, device=scores.device)
        last_score = _ends_of_windows(scores, cumulative, cumulative[:-1] + needed)
        near_first = xp.searchsorted(last_score + scores, 2 * scores)
        return _window(scores, last_score, index, near_first)
    last_score = np.empty(n_scores)
    for block in row_blocks(n_scores):
        enough = cumulative[:-1][block] + needed
        last_score[block] = _ends_of_windows(scores, cumulative, enough)
    # last_score[i] + scores[i] reaches 2 s at the window that decides the radius of s,
    # but for rounding.
    ends = last_score + scores
    position = np.min_scalar_type(-n_scores)  # the smallest integers that hold them
    left = np.empty(n_scores, dtype=position)
    right = np.empty(n_scores, dtype=position)
    for block in row_blocks(n_scores):
        index = np.arange(block.start, min(block.stop, n_scores))
        near_first = np.searchsorted(ends, 2 * scores[block])
        left[block], right[block] = _window(scores, last_score, index, near_first)
    return left, right


def _ends_of_windows(scores, cumulative, enough):
    """Return the first score (k,) up to which the cumulative weight is `enough` (k,),
    infinity where there is none.
    """
    xp = library_of(scores)
    n_scores = scores.shape[0]
    last = xp.searchsorted(cumulative, enough) - 1
    found = chosen_entries(xp, scores, at_most(xp, last, n_scores - 1))
    return xp.where(last < n_scores, found, xp.full_like(found, np.inf))


def _window(all_scores, last_score, index, near_first):
    """Return the neighbours [left, right) of the scores at some positions `index`; see
    `_nearest`, which also knows about where the windows begin that decide their radius.
    """
    xp = library_of(all_scores)
    n_scores = all_scores.shape[0]

    def score_at(positions):
        """Return the scores at some positions."""
        return chosen_entries(xp, all_scores, positions)

    def end_at(first):
        """Return the ends of the windows that begin at the positions `first`."""
        return chosen_entries(xp, last_score, first)

    scores = score_at(index)

    # The radius of a score s is the least distance within which a window fits: the
    # larger of s - scores[i], which falls with i, and last_score[i] - s, which rises.
    # It is least for the first i at which the second is the larger one, or for the i
    # before.
    def reaches_right(first):
        """Return whether a window ends at least as far above each score as it begins
        below it; `first` are the positions of the windows' first scores.
        """
        return end_at(first) - scores >= scores - score_at(first)

    first = _first_true(index, reaches_right, near_first)
    radius_before = scores - score_at(at_least(xp, first - 1, 0))
    no_radius = xp.full_like(radius_before, np.inf)
    radius_before = xp.where(first > 0, radius_before, no_radius)
    radius = xp.minimum(end_at(first) - scores, radius_before)

    # The neighbours are all scores within the radius: the first one is sought from the
    # left, the last one by its distance from the end.
    def is_within_left(candidate):
        """Return whether the score at position `candidate` is within the radius."""
        return scores - score_at(candidate) <= radius

    def is_within_right(n_from_end):
        """Return the same for positions that are counted from the last score."""
        return score_at(n_scores - 1 - n_from_end) - scores <= radius

    near_left = xp.searchsorted(all_scores, scores - radius)
    left = _first_true(index, is_within_left, near_left)
    near_right = xp.searchsorted(all_scores, scores + radius, side="right")
    from_end = n_scores - 1 - index
    n_beyond = _first_true(from_end, is_within_right, n_scores - near_right)
    return left, n_scores - n_beyond


def _first_true(highest, holds, guess):
    """Return the first index in [0, highest] at which a condition holds, for each of m
    problems at once, by bisection.

    ``holds(indices)`` says for indices (m,) whether it holds, (m,): at `highest` (m,)
    it does, and from the first such index on. The search starts next to `guess` (m,).
    """
    # `low` is an index at which it does not hold, and `high` one at which it does. They
    # are next to the guess or, where the guess is wrong, at the ends: -1 is before the
    # first index.
    xp = library_of(guess)
    low = xp.minimum(at_least(xp, guess - 1, 0), highest)
    low = xp.where(holds(low), xp.full_like(low, -1), low)
    high = xp.minimum(at_least(xp, guess + 1, 0), highest)
    high = xp.where(holds(high), high, highest)
    while xp.any(high - low > 1):
        # -1 where a search has ended between -1 and 0: `holds` is asked about 0 instead
        middle = at_least(xp, (low + high) // 2, 0)
        is_true = holds(middle)
        low = xp.where(is_true, low, middle)
        high = xp.where(is_true, middle, high)
    return high


_SPAN = 0.75  # share of the rows in the neighbourhood of a score, as in R
# The curve is computed at no more than this many scores; more scores are pooled into
# cells of equal weight.
_MOST_CELLS = 128


class LoessPower(ErrorPower):
    """The mean over rows of |c(s) - s|, c the curve of `loess_weights`."""

    def __init__(self, cells):
        super().__init__(cells)
        # the matrix (m, m) by which frequencies (..., m) are multiplied
        self.smoother = loess_weights(self.scores, self.weight).T

    def curve(self, frequency):
        """Return the smooth curve at the scores for event frequencies (..., m)."""
        return np.clip(frequency @ self.smoother, 0, 1)

    def power(self, frequency):
        """Return the error (...) for event frequencies (..., m) of the cells: the mean
        distance of their smooth curve from the scores.
        """
        return self.distance(self.curve(frequency))

    def noiseless(self, frequency):
        """Return the power for frequencies (m,) without noise, which are the curve
        themselves.
        """
        return float(self.distance(frequency))

    def distance(self, curve, quantile=None):
        """Return the mean over rows (...) of the distance of curves (..., m) from the
        scores, or its quantile for a `quantile` in (0, 1].
        """
        gap = np.abs(curve - self.scores)
        if quantile is None:
            return gap @ self.share
        # The first gap, from the smallest on, at which the cumulative share of the rows
        # reaches the quantile.
        order = np.argsort(gap, axis=-1)
        is_below = np.cumsum(self.share[order], axis=-1) < quantile - 1e-12
        rank = np.count_nonzero(is_below, axis=-1, keepdims=True)
        rank = np.minimum(rank, len(self.scores) - 1)
        cell = np.take_along_axis(order, rank, axis=-1)
        return np.take_along_axis(gap, cell, axis=-1)[..., 0]


def loess_weights(scores, weight):
    """Return the matrix (m, m) that maps the event frequencies of distinct scores (m,)
    to the loess curve at these scores.

    At each score a parabola is fitted to the nearest scores that hold `_SPAN` of the
    weight (m,), with tricube weights: R's ``loess(y ~ s)``, computed at each score and
    not interpolated (Cleveland and Devlin 1988). Where the neighbourhood holds fewer
    than three scores the curve goes through their frequencies.
    """
    # Row i is the fit at score i: offset[i, j] = scores[j] - scores[i].
    offset = scores - scores[:, None]
    distance = np.abs(offset)
    # The neighbourhood of each score are the nearest scores whose weight reaches the
    # span, in whole rows as in R. Sums of weights are taken as exact to within 1e-5.
    order = np.argsort(distance, axis=1, kind="stable")
    cumulative = np.cumsum(weight[order], axis=1)
    span = _SPAN * weight.sum() + 1e-5
    if span >= 1:
        span = np.floor(span)
    needed = span - 2e-5  # a sum that is short by rounding is enough
    rank = np.count_nonzero(cumulative < needed, axis=1, keepdims=True)
    last = np.take_along_axis(order, rank, axis=1)
    width = np.take_along_axis(distance, last, axis=1)  # (m, 1)
    # Tricube weights of the offsets u in units of the width; a width of 0 keeps the
    # score alone.
    u = np.divide(offset, width, out=np.sign(offset), where=width > 0)
    kernel = weight * np.maximum(1 - np.abs(u) ** 3, 0) ** 3
    kernel /= kernel.sum(axis=1, keepdims=True)
    # Weighted least squares of 1, u, u^2: the curve at the score is the coefficient of
    # 1. The normal equations of fit i have the moments sum_j kernel u^(k + l).
    powers = np.stack([kernel * u**k for k in range(5)])  # (5, m, m)
    exponents = np.add.outer(range(3), range(3))
    moments = powers.sum(axis=2)[exponents]  # (3, 3, m)
    # The pseudo-inverse serves neighbourhoods of fewer than three scores.
    inverse = np.linalg.pinv(moments.transpose(2, 0, 1), rcond=1e-10, hermitian=True)
    first_row = inverse[:, 0]  # (m, 3)
    return np.einsum("mk,kmj->mj", first_row, powers[:3])
