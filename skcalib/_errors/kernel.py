"""The error by kernel regression: masses on a grid, smoothed by a cosine transform."""

import numpy as np
from scipy.fft import dct
from scipy.special import hyp0f1

from skcalib._errors.power import Power
from skcalib._errors.score_grid import (
    ScoreGrid,
    cosine_coefficients,
    rounding,
    trapezoid,
)

# Grid cells per half-width of the kernel and the coarsest grid: those of the value keep the rounding of scores to the
# grid below 1e-3 of the width, those of draws are as exact as the draws need.
_VALUE_GRID, _DRAWS_GRID = (32, 1 << 10), (16, 1 << 7)
_FINEST_GRID = 1 << 16
_SERIES_END = 4.0  # of the triweight kernel's characteristic function: its closed form cancels below


class KernelPower(Power):
    """The integral of |E[Y | s] - s|^p over the estimated density of the scores (Zhang et al., Eq. 8)."""

    def __init__(self, cells, *, norm=1, bandwidth=None, grid=_DRAWS_GRID):
        super().__init__(cells, norm=norm)
        scores, total = (
            self.scores,
            len(self.scores) if self.weight is None else self.weight.sum(),
        )
        self.mean, low, high = (
            self.share @ scores,
            float(scores.min()),
            float(scores.max()),
        )
        self.one_score = low == high
        if not self.one_score:
            if bandwidth is None:  # the normal reference rule
                bandwidth = (
                    1.06
                    * np.sqrt(self.share @ (scores - self.mean) ** 2)
                    * total ** (-1 / 5)
                )
            self.grid, self.kernel = _grid_and_kernel(bandwidth, low, high, *grid)

    @classmethod
    def of_task(cls, task, most=None, **params):
        """See `Power`: the value takes the rows, which need not be sorted."""
        return (
            cls(task, grid=_VALUE_GRID, **params)
            if most is None
            else super().of_task(task, most, **params)
        )

    @property
    def observed(self):
        """The power of the labels."""
        labels = self.cells.event_frequency
        if self.one_score:
            return float(self.power(labels))
        # Both masses in one pass over the rows.
        rounded = self.grid.rounded(
            self.scores,
            lambda rows: (self.share[rows], self.share[rows] * labels[rows]),
        )
        density, events = self._smoothed(rounded)
        return float(self._of(events, density))

    def power(self, frequency):
        """See `Power`."""
        if self.one_score:
            return np.abs(frequency @ self.share - self.mean) ** self.norm
        if not hasattr(self, "rounding"):
            self.rounding = rounding(self.share, self.scores, self.grid)
            self.density = self._smoothed(np.ones(len(self.scores)) @ self.rounding)
        return self._of(self._smoothed(frequency @ self.rounding), self.density)

    def _smoothed(self, masses):
        return np.maximum(dct(cosine_coefficients(masses) * self.kernel, type=1), 0)

    def _of(self, events, density):
        frequency = np.divide(
            events, density, out=np.zeros_like(events), where=density > 0
        )
        gap = np.minimum(np.abs(frequency - self.grid.points), 1)
        return trapezoid(gap**self.norm * density) / trapezoid(density)


def _grid_and_kernel(bandwidth, low, high, cells_per_width, coarsest):
    """Return the grid for scores between two numbers, and the factors of its cosine coefficients."""
    half_width = np.clip(
        3 * bandwidth, 8 / _FINEST_GRID, None
    )  # the triweight kernel's variance is 1/9
    fineness = int(
        np.clip(
            2 ** np.ceil(np.log2(cells_per_width / half_width)), coarsest, _FINEST_GRID
        )
    )
    grid = ScoreGrid.around(
        low, high, fineness, reach=int(min(half_width, 1) * fineness) + 1
    )
    wave = np.pi * half_width * fineness / grid.n_cells * np.arange(grid.n_cells + 1)
    # Characteristic function of the density 35/32 (1 - u^2)^3 on [-1, 1]: 105 j_3(w) / w^3, by its series for small w.
    factor, large = np.empty_like(wave), wave > _SERIES_END
    factor[~large] = hyp0f1(4.5, -(wave[~large] ** 2) / 4)
    w = wave[large]
    factor[large] = (
        105 * ((15 - 6 * w**2) * np.sin(w) - (15 - w**2) * w * np.cos(w)) / w**7
    )
    return grid, factor
