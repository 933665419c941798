"""The error by kernel regression: masses on a grid, smoothed by a cosine transform."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import dct
from scipy.special import hyp0f1

from skcalib._errors.binned import check_norm
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib._errors.score_grid import (
    ScoreGrid,
    cosine_coefficients,
    rounding,
    trapezoid,
)
from skcalib._input.scalars import check_number

# Grid cells per half-width of the kernel and the coarsest grid: those of the value keep
# the rounding of scores to the grid below 1e-3 of the width, those of draws are as
# exact as the draws need.
_VALUE_GRID, _DRAWS_GRID = (32, 1 << 10), (16, 1 << 7)
_FINEST_GRID = 1 << 16
# of the triweight kernel's characteristic function: its closed form cancels below
_SERIES_END = 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class KdeError(CalibrationError):
    """The error by kernel regression; see `kde_calibration_error`."""

    bandwidth: float | None = None

    def __post_init__(self):
        norm = check_norm(self.norm)
        if norm == np.inf:
            raise ValueError(
                "norm=np.inf has no kernel estimate: use a finite norm or"
                " maximum_calibration_error."
            )
        if self.bandwidth is not None:
            check_number(self.bandwidth, "bandwidth", above=0)
        self._set(norm=norm)

    def of_task(self, task, most=None):
        """See `CalibrationError`: the value takes the samples, which need no order."""
        if most is None:
            cells = task
            grid = _VALUE_GRID
        else:
            cells = task.cells(most)
            grid = _DRAWS_GRID
        return KdePower(
            cells,
            norm=self.norm,
            bandwidth=self.bandwidth,
            n_rows=task.n_rows,
            grid=grid,
        )


class KdePower(ErrorPower):
    """The integral of |E[Y | s] - s|^p over the estimated density of the scores (Zhang
    et al., Eq. 8).
    """

    def __init__(self, cells, *, norm=1, bandwidth=None, n_rows=None, grid=_DRAWS_GRID):
        super().__init__(cells, norm=norm)
        low, high = float(self.scores.min()), float(self.scores.max())
        self.mean = self.share @ self.scores
        self.one_score = low == high
        if self.one_score:
            return
        if bandwidth is None:
            # the normal reference rule
            deviation = np.sqrt(self.share @ (self.scores - self.mean) ** 2)
            bandwidth = 1.06 * deviation * n_rows ** (-1 / 5)
        self.grid, self.kernel = _grid_and_kernel(bandwidth, low, high, *grid)

    @property
    def observed(self):
        """The power of the labels."""
        labels = self.cells.event_frequency
        if self.one_score:
            return float(self.power(labels))

        def masses(rows):
            return self.share[rows], self.share[rows] * labels[rows]

        # Both masses in one pass over the rows.
        density, events = self._smoothed(self.grid.rounded(self.scores, masses))
        return float(self._of(events, density))

    def power(self, frequency):
        """See `ErrorPower`."""
        if self.one_score:
            return np.abs(frequency @ self.share - self.mean) ** self.norm
        events = self._smoothed(frequency @ self._rounding)
        return self._of(events, self._density)

    @cached_property
    def _rounding(self):
        return rounding(self.share, self.scores, self.grid)

    @cached_property
    def _density(self):
        return self._smoothed(np.ones(len(self.scores)) @ self._rounding)

    def _smoothed(self, masses):
        return np.maximum(dct(cosine_coefficients(masses) * self.kernel, type=1), 0)

    def _of(self, events, density):
        frequency = np.divide(
            events, density, out=np.zeros_like(events), where=density > 0
        )
        gap = np.minimum(np.abs(frequency - self.grid.points), 1)
        return trapezoid(gap**self.norm * density) / trapezoid(density)


def _grid_and_kernel(bandwidth, low, high, cells_per_width, coarsest):
    """Return the grid for scores between two numbers, and the factors of its cosine
    coefficients.
    """
    # the triweight kernel's variance is 1/9
    half_width = np.clip(3 * bandwidth, 8 / _FINEST_GRID, None)
    fineness = int(
        np.clip(
            2 ** np.ceil(np.log2(cells_per_width / half_width)), coarsest, _FINEST_GRID
        )
    )
    grid = ScoreGrid.around(
        low, high, fineness, reach=int(min(half_width, 1) * fineness) + 1
    )
    wave = np.pi * half_width * fineness / grid.n_cells * np.arange(grid.n_cells + 1)
    # Characteristic function of the density 35/32 (1 - u^2)^3 on [-1, 1]: 105 j_3(w) /
    # w^3, by its series for small w.
    factor = np.empty_like(wave)
    large = wave > _SERIES_END
    factor[~large] = hyp0f1(4.5, -(wave[~large] ** 2) / 4)
    w = wave[large]
    factor[large] = (
        105 * ((15 - 6 * w**2) * np.sin(w) - (15 - w**2) * w * np.cos(w)) / w**7
    )
    return grid, factor
