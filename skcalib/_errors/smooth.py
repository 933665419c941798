"""The smooth error: residuals on a grid, smoothed as much as the error itself is
large.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from skcalib._cells.device_columns import rows_in_place
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
from skcalib._rows.namespaces import in_double, placed

# For the value: grid cells per standard deviation of the Gaussian, and cells of the
# coarsest and of the finest grid on [0, 1]. They keep the rounding of scores to the
# grid below 1e-3 of the width.
_CELLS_PER_WIDTH = 32
_COARSEST_GRID, _FINEST_GRID = 1 << 11, 1 << 16
_STEP = 1e-3  # relative step of a numerical derivative
# The same for draws: the variance of a Gaussian is then right within .5 %.
_DRAWS_CELLS_PER_WIDTH, _DRAWS_COARSEST, _DRAWS_FINEST = 8, 1 << 7, 1 << 11
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
        """Return the error of a binary problem as a function of its event frequencies:
        smoothed by the user's bandwidth, or without one by as much as the error itself.

        With `most` None it is that of the rows; else, for drawn labels, that of scores
        pooled to at most `most` cells.
        """
        cells = rows_in_place(task) if most is None else task.cells(most)
        if self.bandwidth is not None:
            return FixedWidthPower(cells, width=self.bandwidth)
        return SmoothPower(cells)


class SmoothPower(ErrorPower):
    """The sigma at which smECE_sigma = sigma (Blasiok and Nakkiran, Definition 2), or
    smECE at a fixed `width` sigma, where smECE_sigma is the mean absolute residual
    after smoothing by a reflected Gaussian of standard deviation sigma.
    """

    def __init__(self, cells, *, width=None):
        super().__init__(cells)
        self.width = width  # the sigma, or None for that at which smECE_sigma = sigma

    @property
    def observed(self):
        """The error of the observed labels; without a fixed width it is exact, while
        `power` is rounded.
        """
        labels = self.cells.event_frequency
        if self.width is None:
            return _fixed_point(self.scores, labels, self.weight)
        return float(self._observed_at_width(labels))

    def _observed_at_width(self, labels):
        """Return smECE at the fixed width for labels (n,), where they are."""
        if library_of(labels) is np:
            return self.power(labels)
        residual = self.share * (labels - self.scores)
        residuals = self._grid.rounded(self.scores, lambda rows: (residual,))[0, :]
        return _smoothed_error(cosine_coefficients(residuals), self.width)

    def noiseless(self, frequency):
        """Return the sigma at which smECE_sigma = sigma for frequencies (m,) without
        noise.
        """
        return _fixed_point(self.scores, frequency, self.weight)

    def at(self, frequency):
        """Return a power that is faster to compute, and says of the same drawn labels
        that their error is above that of event frequencies (m,).

        Let w be the error of `frequency`. smECE_sigma never rises in sigma, and the
        error of labels is the sigma that it equals. So that error is above w exactly if
        the smECE of the labels at the fixed width w is above w: no width is searched
        for each draw.
        """
        width = self.noiseless(frequency)
        if width == 0:
            return self
        return SmoothPower(self.cells, width=width)

    def power(self, frequency):
        """Return the error (...) for event frequencies (..., m) of the cells.

        It is smECE_sigma, the mean absolute residual after smoothing by a Gaussian of
        width sigma: for the fixed width, or for the sigma that it equals, to 2^-15.
        """
        residuals = (frequency - self.scores) @ self._rounding
        coefficients = cosine_coefficients(residuals)
        if self.width is not None:
            return _smoothed_error(coefficients, self.width)
        # smECE_sigma falls in sigma: bisection, for all draws at once
        low = np.zeros(frequency.shape[:-1])
        high = np.ones(frequency.shape[:-1])
        for _ in range(_STEPS):
            middle = (low + high) / 2
            is_above = _smoothed_error(coefficients, middle[..., None]) > middle
            low = np.where(is_above, middle, low)
            high = np.where(is_above, high, middle)
        return (low + high) / 2

    @cached_property
    def _rounding(self):
        """The matrix (m, points) that brings values of the m scores onto the points of
        a grid on [0, 1]: 8 grid cells per width, enough for drawn labels, or the finest
        grid without a fixed width.
        """
        wanted = _DRAWS_FINEST
        if self.width is not None:
            wanted = _DRAWS_CELLS_PER_WIDTH / self.width
        power_of_two = 2 ** np.ceil(np.log2(wanted))
        n_cells = int(np.clip(power_of_two, _DRAWS_COARSEST, _DRAWS_FINEST))
        return rounding(self.share, self.scores, ScoreGrid(n_cells, 0, n_cells))


class FixedWidthPower(SmoothPower):
    """smECE_sigma at a sigma that the user gives, which is the error itself."""

    def noiseless(self, frequency):
        """Return smECE_sigma for frequencies (m,) without noise."""
        return float(self.power(frequency))

    def at(self, frequency):
        """Return the power itself: its width is the same for every frequency."""
        return self

    @cached_property
    def _rounding(self):
        """The matrix (m, points) that brings values of the m scores onto the points of
        a grid on [0, 1] with 32 grid cells per width, enough for the reported error.
        """
        return rounding(self.share, self.scores, self._grid)

    @property
    def _grid(self):
        """The grid of the reported error."""
        wanted = _CELLS_PER_WIDTH / self.width
        power_of_two = int(2 ** np.ceil(np.log2(wanted)))
        n_cells = int(np.clip(power_of_two, _COARSEST_GRID, _FINEST_GRID))
        return ScoreGrid(n_cells, 0, n_cells)


def _smoothed_error(coefficients, width):
    """Return smECE_sigma (...), the mean absolute residual after smoothing by a
    Gaussian of width sigma, reflected at 0 and 1. `coefficients` (..., points) are
    those of the residuals' cosine series, `width` is sigma (a number or (..., 1)).
    """
    # In a cosine series, smoothing multiplies the k-th coefficient by the Gaussian's
    # characteristic function exp(-(pi k sigma)^2 / 2).
    xp = library_of(coefficients)
    numbers = placed(xp, np.arange(coefficients.shape[-1]), coefficients)
    wave = np.pi * width * numbers
    gaussian = xp.exp(-(wave**2) / 2)
    smoothed = cosine_transform(coefficients * gaussian)  # residuals at the points
    return trapezoid(xp.abs(smoothed))


def _fixed_point(scores, labels, sample_weight):
    """Return the smooth error: the sigma at which smECE_sigma = sigma (Blasiok and
    Nakkiran, Definition 2). `scores`, `labels` (or event frequencies) and
    `sample_weight` (or None) are (n,).

    smECE_sigma, the error of residuals smoothed by a Gaussian of width sigma, never
    rises in sigma: there is one solution. It is computed on the coarsest grid of which
    `_CELLS_PER_WIDTH` cells are narrower than the solution.
    """
    xp = library_of(scores)
    total = scores.shape[0]
    if sample_weight is not None:
        total = float(xp.sum(sample_weight))

    def residual(rows):
        """Return the weighted residuals of a slice of rows, divided by the total
        weight, as a tuple of one array, which `ScoreGrid.rounded` takes.
        """
        weight = 1
        if sample_weight is not None:
            weight = in_double(xp, sample_weight[rows])
        return (weight / total * _gap(labels[rows], scores[rows]),)

    # 1. The residuals on the finest grid.
    grid = ScoreGrid(_FINEST_GRID, 0, _FINEST_GRID)
    finest = grid.rounded(scores, residual)[0, :]
    if not xp.any(finest != 0):
        return 0.0

    # 2. The coarsest grid that is fine enough: smECE at the narrowest width that it can
    # show is still above that width, so that the solution is wider. A quarter of the
    # coefficients is enough to tell, since the smoothing makes the others nearly 0.
    fineness = _COARSEST_GRID
    while True:
        coefficients = cosine_coefficients(_coarsened(finest, fineness))
        narrowest = _CELLS_PER_WIDTH / fineness
        first_quarter = coefficients[: fineness // 4 + 1]
        if _smoothed_error(first_quarter, narrowest) > narrowest:
            break
        if fineness == _FINEST_GRID:
            # The solution is at most the narrowest width of the finest grid. The error
            # at that width, at most the solution, stands in for it.
            return float(_smoothed_error(coefficients, narrowest))
        fineness *= 2

    def excess(sigma, coefficients=first_quarter):
        """Return smECE_sigma less sigma, which is 0 at the solution; from a quarter of
        the coefficients unless others are given.
        """
        return float(_smoothed_error(coefficients, sigma)) - sigma

    # 3. The solution with a quarter of the coefficients, and one step of Newton's
    # method with all of them.
    if excess(1.0) >= 0:
        return 1.0
    sigma = brentq(excess, narrowest, 1.0, xtol=1e-9)
    slope = (excess(sigma * (1 + _STEP)) - excess(sigma)) / (sigma * _STEP)
    return min(sigma - excess(sigma, coefficients) / slope, 1.0)


def _gap(labels, scores):
    """Return labels less scores (n,) in double precision."""
    if isinstance(scores, np.ndarray):
        return np.subtract(labels, scores, dtype=np.float64)
    return labels - scores  # of distinct scores on a device, which has it


def _coarsened(masses, fineness):
    """Return masses at the points of a coarser grid, (fineness + 1,), for `masses` at
    the points of a grid of [0, 1] whose cells are parts of its `fineness` cells.
    """
    xp = library_of(masses)
    n_parts = (masses.shape[0] - 1) // fineness
    # A point of the finer grid shares its mass between the ends of the coarse cell.
    upper_share = np.linspace(0, 1, n_parts, endpoint=False)
    by_cell = xp.reshape(masses[:-1], (fineness, n_parts))
    shares = np.column_stack((1 - upper_share, upper_share))
    of_ends = by_cell @ placed(xp, shares, masses)
    lower_mass = xp.concat((of_ends[:, 0], masses[-1:]))
    return lower_mass + xp.concat((xp.zeros_like(masses[:1]), of_ends[:, 1]))
