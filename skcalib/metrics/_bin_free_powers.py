"""Bin-free calibration errors of many draws of the labels at once.

Each class is made from the weights and scores of cells, in the order of their scores; `power` maps drawn event
frequencies of these cells, of shape (draws, m), to powers of the error, of shape (draws,).
"""

import numpy as np
from scipy.fft import dct
from scipy.sparse import csr_array

from skcalib.metrics._bin_free import check_n_neighbors, nearest
from skcalib._errors.score_grid import ScoreGrid, cosine_coefficients, trapezoid
from skcalib.metrics._smoothing import kde_bandwidth, kde_error_power, kde_kernel, smooth_fixed_point

__all__ = ["CumulativePower", "KernelPower", "NeighborhoodPower", "SmoothPower"]

_CELLS_PER_WIDTH = 8  # grid cells per standard deviation of a Gaussian: its variance is then right within .5 %
_COARSEST_GRID, _FINEST_GRID = 1 << 7, 1 << 14
_STEPS = 14  # bisections of the smooth error of each draw


class _BinFreePower:
    """The parts that most errors share."""

    norm = 1

    def __init__(self, weight, scores):
        self.weight, self.scores = weight, scores
        self.share = weight / weight.sum()

    def error_power(self, frequency):
        """Return the power of the error for frequencies (m,) without noise."""
        return float(self.power(frequency[None])[0])

    def at(self, frequency):
        """Return a power that orders draws around these frequencies (m,) as the error does, and is quicker."""
        return self


class CumulativePower(_BinFreePower):
    """The Kolmogorov-Smirnov error, or with `two_sided` the Kuiper error: the range of cumulative differences."""

    def __init__(self, weight, scores, *, two_sided=False):
        super().__init__(weight, scores)
        self.two_sided = two_sided

    def power(self, frequency):
        """See the module."""
        sums = np.cumsum(self.share * (frequency - self.scores), axis=1)
        high, low = sums.max(axis=1), sums.min(axis=1)
        return np.maximum(high, 0) - np.minimum(low, 0) if self.two_sided else np.maximum(high, -low)


class NeighborhoodPower(_BinFreePower):
    """The neighborhood error."""

    def __init__(self, weight, scores, *, norm=1, n_neighbors=None):
        super().__init__(weight, scores)
        self.norm = norm
        self.cumulative = np.append(0.0, np.cumsum(weight))
        n_neighbors = check_n_neighbors(n_neighbors, self.cumulative[-1])
        self.left, self.right = nearest(scores, self.cumulative, n_neighbors)

    def power(self, frequency):
        """See the module."""
        positives = np.pad(np.cumsum(self.weight * frequency, axis=1), ((0, 0), (1, 0)))
        near = (positives[:, self.right] - positives[:, self.left]) / (
            self.cumulative[self.right] - self.cumulative[self.left]
        )
        gap = np.abs(near - self.scores)
        return gap.max(axis=1) if self.norm == np.inf else gap**self.norm @ self.share


class KernelPower(_BinFreePower):
    """The error by kernel regression."""

    def __init__(self, weight, scores, *, norm=1, bandwidth=None):
        super().__init__(weight, scores)
        self.norm = norm
        self.one_score = len(scores) == 1
        bandwidth = kde_bandwidth(scores, weight) if bandwidth is None else bandwidth
        grid, self.kernel = kde_kernel(bandwidth, scores[0], scores[-1], _COARSEST_GRID, 2 * _CELLS_PER_WIDTH)
        self.points, self.rounded = grid.points, _rounding(self.share, scores, grid)
        self.density = self._smoothed(np.ones((1, len(scores))))

    def _smoothed(self, frequency):
        return np.maximum(dct(cosine_coefficients(frequency @ self.rounded) * self.kernel, type=1), 0)

    def power(self, frequency):
        """See the module."""
        if self.one_score:
            return np.abs(frequency[:, 0] - self.scores[0]) ** self.norm
        return kde_error_power(self._smoothed(frequency), self.density, self.norm, self.points)


class SmoothPower(_BinFreePower):
    """The smooth error: of each draw by bisection, or the smoothed residual at a fixed width."""

    def __init__(self, weight, scores, width=None):
        super().__init__(weight, scores)
        self.width = width
        finest = _FINEST_GRID if width is None else _CELLS_PER_WIDTH / width
        n_cells = int(np.clip(2 ** np.ceil(np.log2(finest)), _COARSEST_GRID, _FINEST_GRID // 8))
        self.grid = ScoreGrid(n_cells, 0, n_cells)
        self.rounded = _rounding(self.share, scores, self.grid)

    def power(self, frequency):
        """See the module."""
        coefficients = cosine_coefficients((frequency - self.scores) @ self.rounded)
        if self.width is not None:
            return self._smoothed(coefficients, self.width)
        low, high = np.zeros(len(frequency)), np.ones(len(frequency))
        for _ in range(_STEPS):
            middle = (low + high) / 2
            above = self._smoothed(coefficients, middle[:, None]) > middle
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return (low + high) / 2

    def _smoothed(self, coefficients, width):
        wave = self.grid.waves(width)
        return trapezoid(np.abs(dct(coefficients * np.exp(-(wave**2) / 2), type=1)))

    def error_power(self, frequency):
        """Return the error for frequencies (m,) without noise."""
        return smooth_fixed_point(self.scores, frequency, self.weight)

    def at(self, frequency):
        """Return the smoothed residual at the width of the error: it is larger exactly where the error is."""
        width = self.error_power(frequency)
        return SmoothPower(self.weight, self.scores, width) if width > 0 else self


def _rounding(share, scores, grid):
    """Return the matrix (m, points) that rounds the masses of frequencies linearly to a grid."""
    lower, upper_share = grid.shares(scores)
    data = np.column_stack((share * (1 - upper_share), share * upper_share)).ravel()
    columns = np.column_stack((lower, lower + 1)).ravel()
    return csr_array((data, columns, 2 * np.arange(len(scores) + 1)), shape=(len(scores), grid.n_cells + 1))
