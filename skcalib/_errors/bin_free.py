"""Errors without bins from the cells alone: cumulative differences, neighbours, and a
smooth curve (loess).
"""

from dataclasses import dataclass

import numpy as np

from skcalib._errors.binned import check_norm
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib._input.scalars import check_int
from skcalib.binning._base import WEIGHT_TOLERANCE


@dataclass(frozen=True, eq=False, kw_only=True)
class KolmogorovSmirnovError(CalibrationError):
    """The largest cumulative difference; see `kolmogorov_smirnov_calibration_error`."""

    def of_task(self, task, most=None):
        """See `CalibrationError`."""
        return KolmogorovSmirnovPower(task.cells(most))


@dataclass(frozen=True, eq=False, kw_only=True)
class KuiperError(CalibrationError):
    """The range of the cumulative differences; see `kuiper_calibration_error`."""

    def of_task(self, task, most=None):
        """See `CalibrationError`."""
        return KuiperPower(task.cells(most))


@dataclass(frozen=True, eq=False, kw_only=True)
class NeighborhoodError(CalibrationError):
    """The error over neighbours in score; see `neighborhood_calibration_error`."""

    n_neighbors: int | None = None

    def __post_init__(self):
        self._set(norm=check_norm(self.norm))

    def of_task(self, task, most=None):
        """See `CalibrationError`."""
        n_neighbors = _resolved(self.n_neighbors, task.n_rows)
        share = n_neighbors / task.n_rows
        return NeighborhoodPower(task.cells(most), norm=self.norm, neighbor_share=share)


@dataclass(frozen=True, eq=False, kw_only=True)
class LoessError(CalibrationError):
    """The mean distance of the smooth curve from the scores; see `LoessPower`."""

    def of_task(self, task, most=None):
        """See `CalibrationError`: more scores than the curve is computed at are pooled
        in any case.
        """
        return LoessPower(task.cells(min(most or _MOST_CELLS, _MOST_CELLS)))


class KolmogorovSmirnovPower(ErrorPower):
    """The largest absolute sum of w (y - s) over the scores up to one of them (Gupta et
    al., Eq. 5).
    """

    def power(self, frequency):
        """See `ErrorPower`."""
        return self._of(np.cumsum(self.share * (frequency - self.scores), axis=-1))

    @property
    def observed(self):
        """The power of the labels, in fewer passes over the samples."""
        residuals = self.cells.weighted_label - self.cells.weighted_score
        return float(self._of(np.cumsum(residuals, out=residuals)) / self.weight.sum())

    def _of(self, sums):
        return np.maximum(sums.max(axis=-1), -sums.min(axis=-1))


class KuiperPower(KolmogorovSmirnovPower):
    """The range of these sums (Arrieta-Ibarra et al., ECCE-R)."""

    def _of(self, sums):
        return range_of(sums)


def range_of(sums):
    """Return the range of cumulative sums (..., m) that begin at 0."""
    return np.maximum(sums.max(axis=-1), 0) - np.minimum(sums.min(axis=-1), 0)


class NeighborhoodPower(ErrorPower):
    """The mean over rows of |s_i - mean label of the neighbours of s_i|^p (Roelofs et
    al., Eq. 2).
    """

    def __init__(self, cells, *, norm=1, neighbor_share):
        super().__init__(cells, norm=norm)
        self.scores = self.scores.astype(np.float64)
        cumulative = np.append(0, np.cumsum(self.weight))
        # weights that are no integers add up to a little less than they should
        needed = (neighbor_share - WEIGHT_TOLERANCE) * cumulative[-1]
        self.left, self.right = _nearest(self.scores, cumulative, needed)
        self.near = cumulative[self.right] - cumulative[self.left]

    def power(self, frequency):
        """See `ErrorPower`."""
        positives = np.zeros((*frequency.shape[:-1], len(self.weight) + 1))
        np.cumsum(self.weight * frequency, axis=-1, out=positives[..., 1:])
        nearby = positives[..., self.right] - positives[..., self.left]
        return self.norm_of(np.abs(nearby / self.near - self.scores))


def _resolved(n_neighbors, n_rows):
    """Return the number of neighbours that `n_neighbors` means for this number of
    samples, which weights give up to rounding.
    """
    if n_neighbors is None:
        return min(np.ceil(np.sqrt(n_rows * (1 - WEIGHT_TOLERANCE))), n_rows)
    maximum = int(n_rows * (1 + WEIGHT_TOLERANCE))
    return check_int(n_neighbors, "n_neighbors", maximum=maximum)


def _nearest(scores, cumulative, needed):
    """Return for each distinct score the range [left, right) of those within the least
    distance that holds the needed weight.
    """
    n_scores = len(scores)
    place = np.arange(n_scores)
    # The narrowest window from each left end that is heavy enough: its right end,
    # infinity where there is none.
    end = np.searchsorted(cumulative, cumulative[:-1] + needed, side="left") - 1
    end_score = np.append(scores, np.inf)[end]
    # A window that begins further right ends further right. The radius is that of the
    # first window which reaches as far to the right as to the left, or of the one
    # before it.
    start = _first_true(place, lambda a: end_score[a] - scores >= scores - scores[a])
    wider = np.where(start > 0, scores - scores[start - 1], np.inf)
    radius = np.minimum(end_score[start] - scores, wider)
    # All scores within the radius, from both ends.
    left = _first_true(place, lambda a: scores - scores[a] <= radius)
    beyond = _first_true(
        place[::-1], lambda b: scores[n_scores - 1 - b] - scores <= radius
    )
    return left, n_scores - beyond


def _first_true(highest, holds):
    """Return, row by row, the first index in [0, highest] where `holds`; it does at
    `highest` and from then on.
    """
    low = np.full_like(highest, -1)
    high = highest.copy()
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 0)
        is_true = holds(middle)
        low = np.where(is_true, low, middle)
        high = np.where(is_true, middle, high)
    return high


_SPAN = 0.75  # share of the rows in the neighbourhood of a score, as in R
# scores that the curve is computed at, of about the same weight where there are more
_MOST_CELLS = 128


class LoessPower(ErrorPower):
    """The mean over rows of |c(s) - s|, c the curve of `loess_weights`."""

    def __init__(self, cells):
        super().__init__(cells)
        self.smoother = loess_weights(self.scores, self.weight).T

    def curve(self, frequency):
        """Return the smooth curve at the scores for event frequencies (..., m)."""
        return np.clip(frequency @ self.smoother, 0, 1)

    def power(self, frequency):
        """See `ErrorPower`."""
        return self.distance(self.curve(frequency))

    def noiseless(self, frequency):
        """See `ErrorPower`: frequencies without noise are the curve."""
        return float(self.distance(frequency))

    def distance(self, curve, quantile=None):
        """Return the mean over rows of the distance of curves (..., m) from the scores,
        or a quantile (1: the most).
        """
        gap = np.abs(curve - self.scores)
        if quantile is None:
            return gap @ self.share
        # the first gap, from the smallest on, at which the share is reached
        order = np.argsort(gap, axis=-1)
        is_below = np.cumsum(self.share[order], axis=-1) < quantile - 1e-12
        place = np.count_nonzero(is_below, axis=-1, keepdims=True)
        place = np.minimum(place, len(self.scores) - 1)
        cell = np.take_along_axis(order, place, axis=-1)
        return np.take_along_axis(gap, cell, axis=-1)[..., 0]


def loess_weights(scores, weight):
    """Return the matrix (m, m) that maps the event frequencies of scores to the loess
    curve at these scores.

    At each score a parabola is fitted to the nearest scores that hold `_SPAN` of the
    weight, with tricube weights: R's ``loess(y ~ s)``, computed at each score and not
    interpolated. Where the neighbourhood holds fewer than three scores the curve goes
    through their frequencies.
    """
    offset = scores - scores[:, None]
    distance = np.abs(offset)
    # The neighbourhood of each score ends at the nearest scores that hold the span, in
    # whole rows as in R.
    order = np.argsort(distance, axis=1, kind="stable")
    mass = np.cumsum(weight[order], axis=1)
    span = _SPAN * weight.sum() + 1e-5
    needed = (np.floor(span) or span) - 2e-5
    place = np.count_nonzero(mass < needed, axis=1, keepdims=True)
    last = np.take_along_axis(order, place, axis=1)
    width = np.take_along_axis(distance, last, axis=1)
    # Tricube weights of the offsets in units of the width; a width of 0 keeps the score
    # alone.
    u = np.divide(offset, width, out=np.sign(offset), where=width > 0)
    kernel = weight * np.maximum(1 - np.abs(u) ** 3, 0) ** 3
    kernel /= kernel.sum(axis=1, keepdims=True)
    # Least squares of 1, u, u^2: the curve at the score is the first coefficient. The
    # pseudo-inverse serves neighbourhoods of fewer than three scores.
    powers = np.stack([kernel * u**k for k in range(5)])
    moments = powers.sum(axis=2)[np.add.outer(range(3), range(3))]  # (3, 3, m)
    inverse = np.linalg.pinv(moments.transpose(2, 0, 1), rcond=1e-10, hermitian=True)
    return np.einsum("mk,kmj->mj", inverse[:, 0], powers[:3])
