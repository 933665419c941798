"""The smooth error: residuals on a grid, smoothed as much as the error itself is
large.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib._errors.score_grid import (
    ScoreGrid,
    cosine_coefficients,
    rounding,
    trapezoid,
)
from skcalib._input.scalars import check_number
from skcalib._rows.blocks import total_weight

# Grid cells per standard deviation of the Gaussian, coarsest and finest grid: those of
# the value keep the rounding of scores to the grid below 1e-3 of the width.
_CELLS_PER_WIDTH = 32
_COARSEST_GRID, _FINEST_GRID = 1 << 11, 1 << 16
_STEP = 1e-3  # relative step of a slope
# Those of draws: the variance of a Gaussian is then right within .5 %.
_DRAWS_CELLS_PER_WIDTH, _DRAWS_COARSEST, _DRAWS_FINEST = 8, 1 << 7, 1 << 14
_STEPS = 14  # bisections of the smooth error of each draw


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothError(CalibrationError):
    """The smooth error; see `smooth_calibration_error`."""

    bandwidth: float | None = None

    def __post_init__(self):
        if self.bandwidth is not None:
            bandwidth = check_number(self.bandwidth, "bandwidth", above=0, below=1)
            self._set(bandwidth=bandwidth)

    def of_task(self, task, most=None):
        """See `CalibrationError`: the value takes the samples, which need no order."""
        cells = task if most is None else task.cells(most)
        if self.bandwidth is not None:
            return FixedWidthPower(cells, width=self.bandwidth)
        return SmoothPower(cells)


class SmoothPower(ErrorPower):
    """The sigma at which smECE_sigma = sigma (Blasiok and Nakkiran, Definition 2), or
    smECE at a fixed `width`.
    """

    def __init__(self, cells, *, width=None):
        super().__init__(cells)
        self.width = width

    @property
    def observed(self):
        """The power of the labels."""
        labels = self.cells.event_frequency
        if self.width is None:
            return self.noiseless(labels)
        return float(self.power(labels))

    def noiseless(self, frequency):
        """Return the error for frequencies (m,) without noise."""
        return _fixed_point_of(self.scores, frequency, self.weight)

    def at(self, frequency):
        """Return the smoothed residual at the width of the error: it is larger exactly
        where the error is.
        """
        width = self.noiseless(frequency)
        if width == 0:
            return self
        return SmoothPower(self.cells, width=width)

    def power(self, frequency):
        """See `ErrorPower`."""
        coefficients = cosine_coefficients((frequency - self.scores) @ self._rounding)
        if self.width is not None:
            return _smoothed(coefficients, self.width)
        # smECE_sigma falls in sigma: bisection, for all draws at once
        low = np.zeros(frequency.shape[:-1])
        high = np.ones(frequency.shape[:-1])
        for _ in range(_STEPS):
            middle = (low + high) / 2
            is_above = _smoothed(coefficients, middle[..., None]) > middle
            low = np.where(is_above, middle, low)
            high = np.where(is_above, high, middle)
        return (low + high) / 2

    @cached_property
    def _rounding(self):
        """Return how draws are rounded to a grid: one as fine as the width of the
        kernel needs.
        """
        wanted = _DRAWS_FINEST
        if self.width is not None:
            wanted = _DRAWS_CELLS_PER_WIDTH / self.width
        power_of_two = 2 ** np.ceil(np.log2(wanted))
        n_cells = int(np.clip(power_of_two, _DRAWS_COARSEST, _DRAWS_FINEST // 8))
        return rounding(self.share, self.scores, ScoreGrid(n_cells, 0, n_cells))


class FixedWidthPower(SmoothPower):
    """smECE_sigma at a sigma that the user gives."""

    def noiseless(self, frequency):
        """See `SmoothPower`."""
        return float(self.power(frequency))

    def at(self, frequency):
        """See `SmoothPower`: the width is the same for every frequency."""
        return self

    @cached_property
    def _rounding(self):
        wanted = _CELLS_PER_WIDTH / self.width
        power_of_two = int(2 ** np.ceil(np.log2(wanted)))
        n_cells = int(np.clip(power_of_two, _COARSEST_GRID, _FINEST_GRID))
        return rounding(self.share, self.scores, ScoreGrid(n_cells, 0, n_cells))


def _smoothed(coefficients, width):
    """Return smECE_sigma for a width: the mean absolute residual, smoothed by a
    reflected Gaussian.
    """
    wave = np.pi * width * np.arange(coefficients.shape[-1])
    return trapezoid(np.abs(dct(coefficients * np.exp(-(wave**2) / 2), type=1)))


def _fixed_point_of(scores, labels, sample_weight):
    """Return the sigma at which smECE_sigma = sigma (Blasiok and Nakkiran, Definition
    2); labels may be fractions.

    Grids become finer while the error is below the narrowest width that they can show.
    smECE_sigma never rises in sigma, so that there is one solution. It is solved for on
    a quarter of the grid, whose further coefficients the smoothing makes 0, and one
    secant step on the whole grid makes it exact.
    """
    total = total_weight(sample_weight, len(scores))

    def residual(rows):
        """Return the weighted residuals of some rows, divided by the total weight."""
        weight = 1
        if sample_weight is not None:
            weight = sample_weight[rows]
        gap = np.subtract(labels[rows], scores[rows], dtype=np.float64)
        return (weight / total * gap,)

    # 1. The residuals on the finest grid.
    finest = ScoreGrid(_FINEST_GRID, 0, _FINEST_GRID).rounded(scores, residual)[0]
    if not finest.any():
        return 0.0

    # 2. The coarsest grid that is fine enough for the solution.
    fineness = _COARSEST_GRID
    while True:
        coefficients = cosine_coefficients(_coarsened(finest, fineness))
        narrowest = _CELLS_PER_WIDTH / fineness
        sketch = coefficients[: fineness // 4 + 1]
        if _smoothed(sketch, narrowest) > narrowest:
            break
        if fineness == _FINEST_GRID:
            return _smoothed(coefficients, narrowest)
        fineness *= 2

    def excess(sigma, coefficients=sketch):
        return _smoothed(coefficients, sigma) - sigma

    # 3. The solution on a quarter of the grid, and a secant step on the whole.
    if excess(1.0) >= 0:
        return 1.0
    sigma = brentq(excess, narrowest, 1.0, xtol=1e-9)
    slope = (excess(sigma * (1 + _STEP)) - excess(sigma)) / (sigma * _STEP)
    return min(sigma - excess(sigma, coefficients) / slope, 1.0)


def _coarsened(masses, fineness):
    """Return the masses of a finer grid as if they had been rounded to one of this
    fineness: parts are nested.
    """
    share = np.linspace(0, 1, (len(masses) - 1) // fineness, endpoint=False)
    by_cell = masses[:-1].reshape(fineness, -1)
    below, above = (by_cell @ np.column_stack((1 - share, share))).T
    coarse = np.append(below, masses[-1])
    coarse[1:] += above
    return coarse
