"""The smooth error: residuals on a grid, smoothed as much as the error itself is large."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq

from skcalib._errors.power import Power
from skcalib._errors.score_grid import SKETCH, ScoreGrid, cosine_coefficients, rounding, trapezoid

# Grid cells per standard deviation of the Gaussian, coarsest and finest grid: those of the value keep the rounding of
# scores to the grid below 1e-3 of the width.
_CELLS_PER_WIDTH = 32
_COARSEST_GRID, _FINEST_GRID = 1 << 11, 1 << 16
_REACH, _STEP = 6, 1e-3  # standard deviations that a Gaussian reaches, and the relative step of a slope
# Those of draws: the variance of a Gaussian is then right within .5 %.
_DRAWS_CELLS_PER_WIDTH, _DRAWS_COARSEST, _DRAWS_FINEST = 8, 1 << 7, 1 << 14
_STEPS = 14  # bisections of the smooth error of each draw


class SmoothPower(Power):
    """The sigma at which smECE_sigma = sigma (Blasiok and Nakkiran, Definition 2), or smECE at a fixed `width`."""

    def __init__(self, cells, *, norm=1, width=None):
        super().__init__(cells, norm=norm)
        self.width = width

    @classmethod
    def of_task(cls, task, most=None, **params):
        """See `Power`: the value takes the rows, which need not be sorted."""
        return cls(task, **params) if most is None else super().of_task(task, most, **params)

    @property
    def observed(self):
        """The power of the labels."""
        labels = self.cells.event_frequency
        return self.noiseless(labels) if self.width is None else float(self.power(labels))

    def noiseless(self, frequency):
        """Return the error for frequencies (m,) without noise."""
        return _fixed_point_of(self.scores, frequency, self.weight)

    def at(self, frequency):
        """Return the smoothed residual at the width of the error: it is larger exactly where the error is."""
        width = self.noiseless(frequency)
        return SmoothPower(self.cells, width=width) if width > 0 else self

    def power(self, frequency):
        """See `Power`."""
        coefficients = cosine_coefficients((frequency - self.scores) @ self._rounding)
        if self.width is not None:
            return self._smoothed(coefficients, self.width)
        low, high = np.zeros(frequency.shape[:-1]), np.ones(frequency.shape[:-1])
        for _ in range(_STEPS):
            middle = (low + high) / 2
            above = self._smoothed(coefficients, middle[..., None]) > middle
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return (low + high) / 2

    @cached_property
    def _grid(self):
        finest = _DRAWS_FINEST if self.width is None else _DRAWS_CELLS_PER_WIDTH / self.width
        n_cells = int(np.clip(2 ** np.ceil(np.log2(finest)), _DRAWS_COARSEST, _DRAWS_FINEST // 8))
        return ScoreGrid(n_cells, 0, n_cells)

    @cached_property
    def _rounding(self):
        return rounding(self.weight / self.weight.sum(), self.scores, self._grid)

    def _smoothed(self, coefficients, width):
        wave = self._grid.waves(width)
        return trapezoid(np.abs(dct(coefficients * np.exp(-(wave**2) / 2), type=1)))


def _fixed_point_of(scores, labels, sample_weight):
    """Return the sigma at which smECE_sigma = sigma (Blasiok and Nakkiran, Definition 2); labels may be fractions.

    Grids become finer while the error is below the narrowest width that they can show. It is then near that width, so
    that the next grid need only reach a little beyond the scores.
    """
    total = len(scores) if sample_weight is None else sample_weight.sum()

    def residual(rows):
        share = (1 if sample_weight is None else sample_weight[rows]) / total
        return (share * np.subtract(labels[rows], scores[rows], dtype=np.float64),)

    finest = ScoreGrid(_FINEST_GRID, 0, _FINEST_GRID).rounded(scores, residual)[0]
    held = np.flatnonzero(finest != 0) / _FINEST_GRID
    if not len(held):
        return 0.0
    fineness, widest = _COARSEST_GRID, 1.0
    while True:
        reach = fineness if widest == 1 else int(_REACH * widest * fineness)
        grid = ScoreGrid.around(held[0], held[-1], fineness, reach)
        smoothed = _SmoothedResidual(grid, cosine_coefficients(grid.coarsened(finest)))
        narrowest = _CELLS_PER_WIDTH / fineness
        at_narrowest = smoothed.sketch(narrowest)
        if at_narrowest > narrowest:
            return _fixed_point(smoothed, narrowest, widest)
        if fineness == _FINEST_GRID:
            return smoothed(narrowest)
        widest = 2 * narrowest
        fineness *= 4 if at_narrowest < narrowest / 2 and 4 * fineness <= _FINEST_GRID else 2


class _SmoothedResidual(NamedTuple):
    """smECE_sigma: the integral over [0, 1] of the absolute residual smoothed by a reflected Gaussian."""

    grid: ScoreGrid
    coefficients: np.ndarray

    def __call__(self, sigma):
        return self._of(sigma, self.coefficients)

    def sketch(self, sigma):
        """Return it on a coarser grid, which leaves out coefficients that the smoothing makes 0."""
        return self._of(sigma, self.coefficients[: self.grid.n_cells // SKETCH + 1])

    def _of(self, sigma, coefficients):
        wave = self.grid.waves(sigma, len(coefficients))
        return trapezoid(np.abs(dct(coefficients * np.exp(-(wave**2) / 2), type=1)))


def _fixed_point(smoothed, narrowest, widest):
    """Return the sigma at which smECE_sigma = sigma, which is above `narrowest` and hardly above `widest`.

    smECE_sigma never rises in sigma, so that there is one. It is solved for on a coarser grid, and one secant step on
    the whole grid makes it exact.
    """

    def excess(sigma):
        return smoothed.sketch(sigma) - sigma

    if excess(widest) >= 0:
        return widest
    above = min(2 * narrowest, widest)
    sigma = brentq(excess, narrowest, above if excess(above) < 0 else widest, xtol=1e-9)
    slope = (excess(sigma * (1 + _STEP)) - excess(sigma)) / (sigma * _STEP)
    return min(sigma - (smoothed(sigma) - sigma) / slope, 1.0)
