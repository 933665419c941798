"""Errors without bins from the cells alone: cumulative differences, neighbours, and a smooth curve (loess)."""

import numpy as np

from skcalib._errors.power import Power
from skcalib._input.scalars import check_int


class KolmogorovSmirnovPower(Power):
    """The largest absolute sum of w (y - s) over the scores up to one of them (Gupta et al., Eq. 5)."""

    def power(self, frequency):
        """See `Power`."""
        return self._of(np.cumsum(self.share * (frequency - self.scores), axis=-1))

    @property
    def observed(self):
        """The power of the labels, in fewer passes over the rows."""
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


class NeighborhoodPower(Power):
    """The mean over rows of |s_i - mean label of the neighbours of s_i|^p (Roelofs et al., Eq. 2)."""

    def __init__(self, cells, *, norm=1, n_neighbors=None):
        super().__init__(cells, norm=norm)
        self.scores = self.scores.astype(np.float64)
        cumulative = np.append(0, np.cumsum(self.weight))
        n_neighbors = _resolved(n_neighbors, cumulative[-1])
        self.left, self.right = _nearest(self.scores, cumulative, n_neighbors)
        self.near = cumulative[self.right] - cumulative[self.left]

    def power(self, frequency):
        """See `Power`."""
        positives = np.zeros((*frequency.shape[:-1], len(self.weight) + 1))
        np.cumsum(self.weight * frequency, axis=-1, out=positives[..., 1:])
        return self.norm_of(
            np.abs(
                (positives[..., self.right] - positives[..., self.left]) / self.near
                - self.scores
            )
        )


def _resolved(n_neighbors, n_rows):
    """Return the number of neighbours that `n_neighbors` means for this number of rows."""
    if n_neighbors is None:
        return min(
            np.ceil(np.sqrt(n_rows)), n_rows
        )  # weights may add up to less than 1
    return check_int(n_neighbors, "n_neighbors", maximum=n_rows)


def _nearest(distinct, cumulative, n_neighbors):
    """Return for each distinct score the range [left, right) of those within the least distance that holds enough."""
    own = np.arange(len(distinct))
    # Narrowest window from each left end that is heavy enough: its right end, infinity where there is none.
    end = np.searchsorted(cumulative, cumulative[:-1] + n_neighbors, side="left") - 1
    end_score = np.append(distinct, np.inf)[end]
    start = _first_true(
        own, lambda a: end_score[a] - distinct >= distinct - distinct[a]
    )
    wider = np.where(start > 0, distinct - distinct[start - 1], np.inf)
    radius = np.minimum(end_score[start] - distinct, wider)
    left = _first_true(own, lambda a: distinct - distinct[a] <= radius)
    beyond = _first_true(
        own[::-1], lambda b: distinct[len(own) - 1 - b] - distinct <= radius
    )
    return left, len(own) - beyond


def _first_true(highest, holds):
    """Return, row by row, the first index in [0, highest] where `holds`; it does at `highest` and from then on."""
    low, high = np.full_like(highest, -1), highest.copy()
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 0)
        true = holds(middle)
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return high


_SPAN = 0.75  # share of the rows in the neighbourhood of a score, as in R
_MOST_CELLS = 128  # scores that the curve is computed at, of about the same weight where there are more


class LoessPower(Power):
    """The mean over rows of |c(s) - s|, c the curve of `loess_weights`."""

    def __init__(self, cells):
        super().__init__(cells)
        self.smoother = loess_weights(self.scores, self.weight).T

    @classmethod
    def of_task(cls, task, most=None):
        """See `Power`: more scores than the curve is computed at are pooled in any case."""
        return super().of_task(task, min(most or _MOST_CELLS, _MOST_CELLS))

    def curve(self, frequency):
        """Return the smooth curve at the scores for event frequencies (..., m)."""
        return np.clip(frequency @ self.smoother, 0, 1)

    def power(self, frequency):
        """See `Power`."""
        return self.distance(self.curve(frequency))

    def noiseless(self, frequency):
        """See `Power`: frequencies without noise are the curve."""
        return float(self.distance(frequency))

    def distance(self, curve, quantile=None):
        """Return the mean over rows of the distance of curves (..., m) from the scores, or a quantile (1: the most)."""
        gap = np.abs(curve - self.scores)
        if quantile is None:
            return gap @ self.share
        order = np.argsort(gap, axis=-1)
        below = np.cumsum(self.share[order], axis=-1) < quantile - 1e-12
        last = np.minimum(
            np.count_nonzero(below, axis=-1, keepdims=True), len(self.scores) - 1
        )
        return np.take_along_axis(
            gap, np.take_along_axis(order, last, axis=-1), axis=-1
        )[..., 0]


def loess_weights(scores, weight):
    """Return the matrix (m, m) that maps the event frequencies of scores to the loess curve at these scores.

    At each score a parabola is fitted to the nearest scores that hold `_SPAN` of the weight, with tricube weights: R's
    ``loess(y ~ s)``, computed at each score and not interpolated. Where the neighbourhood holds fewer than three scores
    the curve goes through their frequencies.
    """
    offset = scores - scores[:, None]
    distance = np.abs(offset)
    order = np.argsort(distance, axis=1, kind="stable")
    held = np.cumsum(weight[order], axis=1)
    most = _SPAN * weight.sum() + 1e-5  # whole rows, as in R
    last = np.count_nonzero(
        held < (np.floor(most) or most) - 2e-5, axis=1, keepdims=True
    )
    width = np.take_along_axis(
        distance, np.take_along_axis(order, last, axis=1), axis=1
    )
    u = np.divide(offset, width, out=np.sign(offset), where=width > 0)
    kernel = weight * np.maximum(1 - np.abs(u) ** 3, 0) ** 3
    kernel /= kernel.sum(axis=1, keepdims=True)
    powers = np.stack([kernel * u**k for k in range(5)])
    moments = powers.sum(axis=2)[np.add.outer(range(3), range(3))]  # (3, 3, m)
    first = np.linalg.pinv(moments.transpose(2, 0, 1), rcond=1e-10, hermitian=True)[
        :, 0
    ]
    return np.einsum("mk,kmj->mj", first, powers[:3])
