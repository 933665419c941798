"""The error by kernel regression: masses on a grid, smoothed by a cosine transform."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import hyp0f1

from skcalib._cells.device_columns import rows_in_place
from skcalib._errors.binned import check_norm
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib._errors.score_grid import (
    ScoreGrid,
    cosine_coefficients,
    cosine_transform,
    rounding,
    trapezoid,
)
from skcalib._input.scalars import check_number
from skcalib._input.tensors import library_of
from skcalib._rows.namespaces import at_least, at_most, placed

# (grid cells per half-width of the kernel, cells of the coarsest grid on [0, 1]): those
# of the value keep the rounding of scores to the grid below 1e-3 of the width, those of
# draws are as exact as the draws need.
_VALUE_GRID, _DRAWS_GRID = (32, 1 << 10), (16, 1 << 7)
_FINEST_GRID = 1 << 16
# Below this frequency the closed form of the triweight kernel's characteristic function
# cancels, and its series is used.
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
        """Return the `KdePower` of a binary problem: that of its rows with `most` None;
        else, for drawn labels, that of its scores pooled to at most `most` cells.
        """
        if most is None:
            cells = rows_in_place(task)
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

    Parameters
    ----------
    cells : BinaryTask or Cells
        The samples, or cells of scores.
    norm : float, default=1
        The norm p.
    bandwidth : float, default=None
        Standard deviation of the kernel, in units of the score; None takes the normal
        reference rule.
    n_rows : float, default=None
        Number of samples, for that rule.
    grid : (int, int)
        Grid cells per half-width of the kernel, and cells of the coarsest grid.
    """

    def __init__(self, cells, *, norm=1, bandwidth=None, n_rows=None, grid=_DRAWS_GRID):
        super().__init__(cells, norm=norm)
        xp = library_of(self.scores)
        low = float(xp.min(self.scores))
        high = float(xp.max(self.scores))
        self.mean = float(self.share @ self.scores)
        # Whether all scores are equal: the error is then that of one bin, and there is
        # no grid.
        self.one_score = low == high
        if self.one_score:
            return
        if bandwidth is None:
            # the normal reference rule, 1.06 standard deviations times n^(-1/5)
            variance = float(self.share @ (self.scores - self.mean) ** 2)
            deviation = np.sqrt(variance)
            bandwidth = 1.06 * deviation * n_rows ** (-1 / 5)
        # the `ScoreGrid`, and the factor of each cosine coefficient on it, (points,)
        cells_per_width, coarsest = grid
        self.grid, self.kernel = _grid_and_kernel(
            bandwidth, low, high, cells_per_width, coarsest
        )

    @property
    def observed(self):
        """The p-th power of the error of the observed labels."""
        labels = self.cells.event_frequency
        if self.one_score:
            return abs(float(labels @ self.share) - self.mean) ** self.norm

        def masses(rows):
            """Return the weights of a slice of rows and of the events among them, as
            shares of the total weight.
            """
            return self.share[rows], self.share[rows] * labels[rows]

        # Both are brought onto the grid in one pass over the rows, then smoothed.
        smoothed = self._smoothed(self.grid.rounded(self.scores, masses))
        return float(self._integral(smoothed[1, :], smoothed[0, :]))

    def power(self, frequency):
        """Return the p-th power (...) of the error for event frequencies (..., m) of
        the cells.
        """
        if self.one_score:
            return np.abs(frequency @ self.share - self.mean) ** self.norm
        # Smoothed events and smoothed weights at the points of the grid.
        events = self._smoothed(frequency @ self._rounding)
        return self._integral(events, self._density)

    @cached_property
    def _rounding(self):
        """The matrix (m, points) that puts the events of cells onto the grid; see
        `rounding`.
        """
        return rounding(self.share, self.scores, self.grid)

    @cached_property
    def _density(self):
        """The estimated density of the scores at the points of the grid, up to a
        factor.
        """
        return self._smoothed(np.ones(len(self.scores)) @ self._rounding)

    def _smoothed(self, masses):
        """Return masses (..., points), smoothed and reflected at 0 and 1; rounding
        below 0 is cut off.
        """
        xp = library_of(masses)
        kernel = placed(xp, self.kernel, masses)
        smoothed = cosine_transform(cosine_coefficients(masses) * kernel)
        return at_least(xp, smoothed, 0)

    def _integral(self, events, density):
        """Return the integral (...) of |frequency - s|^p, weighted by the density
        (points,); the frequency is events / density.
        """
        xp = library_of(events)
        # Where there is no density, there are no events either.
        divisor = xp.where(density > 0, density, xp.ones_like(density))
        points = placed(xp, self.grid.points, density)
        gap = at_most(xp, xp.abs(events / divisor - points), 1)
        return trapezoid(gap**self.norm * density) / trapezoid(density)


def _grid_and_kernel(bandwidth, low, high, cells_per_width, coarsest):
    """Return the `ScoreGrid` for scores from `low` to `high`, and the factors (points,)
    by which smoothing with the triweight kernel of standard deviation `bandwidth`
    multiplies the coefficients of cosine series on it.

    The grid divides [0, 1] into a power of two of cells, at least `coarsest`, and so
    many that half the width of the kernel has `cells_per_width`.
    """
    # The triweight density 35/32 (1 - u^2)^3 on [-1, 1] has the variance 1/9, so that
    # it reaches 3 standard deviations. At least 8 cells of the finest grid are kept.
    half_width = np.clip(3 * bandwidth, 8 / _FINEST_GRID, None)
    power_of_two = 2 ** np.ceil(np.log2(cells_per_width / half_width))
    fineness = int(np.clip(power_of_two, coarsest, _FINEST_GRID))
    reach = int(min(half_width, 1) * fineness) + 1
    grid = ScoreGrid.around(low, high, fineness, reach=reach)
    # The k-th cosine has the angular frequency pi k over the length of the grid; `wave`
    # is that in units of 1 / half_width.
    wave = np.pi * half_width * fineness / grid.n_cells * np.arange(grid.n_cells + 1)
    # The characteristic function of the kernel is 105 j_3(w) / w^3, with a spherical
    # Bessel function of order 3; for small w by its series.
    factor = np.empty_like(wave)
    is_large = wave > _SERIES_END
    factor[~is_large] = hyp0f1(4.5, -(wave[~is_large] ** 2) / 4)
    w = wave[is_large]
    numerator = (15 - 6 * w**2) * np.sin(w) - (15 - w**2) * w * np.cos(w)
    factor[is_large] = 105 * numerator / w**7
    return grid, factor
