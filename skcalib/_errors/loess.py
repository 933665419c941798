"""A smooth calibration curve (loess), and its distance from the scores: mean, quantiles and maximum."""

import numpy as np

from skcalib._errors.power import Power

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
        last = np.minimum(np.count_nonzero(below, axis=-1, keepdims=True), len(self.scores) - 1)
        return np.take_along_axis(gap, np.take_along_axis(order, last, axis=-1), axis=-1)[..., 0]


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
    last = np.count_nonzero(held < (np.floor(most) or most) - 2e-5, axis=1, keepdims=True)
    width = np.take_along_axis(distance, np.take_along_axis(order, last, axis=1), axis=1)
    u = np.divide(offset, width, out=np.sign(offset), where=width > 0)
    kernel = weight * np.maximum(1 - np.abs(u) ** 3, 0) ** 3
    kernel /= kernel.sum(axis=1, keepdims=True)
    powers = np.stack([kernel * u**k for k in range(5)])
    moments = powers.sum(axis=2)[np.add.outer(range(3), range(3))]  # (3, 3, m)
    first = np.linalg.pinv(moments.transpose(2, 0, 1), rcond=1e-10, hermitian=True)[:, 0]
    return np.einsum("mk,kmj->mj", first, powers[:3])
