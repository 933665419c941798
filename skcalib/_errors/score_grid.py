"""An even grid over the scores, and the cosine series that smooth masses on it with
reflection at 0 and at 1.
"""

from typing import NamedTuple

import numpy as np
from scipy.fft import dct, next_fast_len
from scipy.sparse import csr_array

from skcalib._rows.blocks import row_blocks
from skcalib._rows.sorting import first_rows, in_order

_LONG_RUNS = 8  # rows of a cell, on average


class ScoreGrid(NamedTuple):
    """The part of an even grid of [0, 1] that smoothed scores reach: `n_cells` of
    `fineness` cells, from `first` on.

    An end that is 0 or 1 reflects. The other ends reflect too, but no kernel reaches
    them. The result equals the result on the whole grid.
    """

    fineness: int
    first: int
    n_cells: int

    @classmethod
    def around(cls, low, high, fineness, reach):
        """Return the grid for scores from `low` to `high` and a kernel that reaches
        this many cells.
        """
        first = max(int(low * fineness) - reach, 0)
        last = min(int(high * fineness) + 1 + reach, fineness)
        n_cells = min(next_fast_len(last - first, real=True), fineness)
        return cls(fineness, min(first, fineness - n_cells), n_cells)

    @property
    def points(self):
        """The scores of the points of the grid, one more than cells."""
        return (self.first + np.arange(self.n_cells + 1)) / self.fineness

    def shares(self, scores):
        """Return the cell of each score, and the share of its mass that the upper point
        of the cell gets.
        """
        position = np.multiply(scores, self.fineness, dtype=np.float64)
        position -= self.first
        cell = np.minimum(position.astype(np.intp), self.n_cells - 1)
        return cell, np.subtract(position, cell, out=position)

    def rounded(self, scores, masses):
        """Return the masses (., n_cells + 1) of the points, each sample's shared
        linearly between its two neighbours.

        `masses` gives, for a slice of the samples, one or more arrays of their masses:
        each has a row of the result.
        """
        below = 0.0
        above = 0.0
        n_points = self.n_cells + 1
        for rows in row_blocks(len(scores), at_least=2 * self.n_cells):
            cell, share = self.shares(scores[rows])
            of_rows = list(masses(rows))
            below = below + _stacked_sums(cell, of_rows, n_points)
            # one product at a time: the memory of the last one serves the next
            shared = (mass * share for mass in of_rows)
            above = above + _stacked_sums(cell, shared, n_points)
        # A row gives `share` of its mass to the point above its cell, the rest to the
        # one below.
        below -= above
        below[:, 1:] += above[:, :-1]
        return below


def _stacked_sums(cell, arrays, n_cells):
    """Return the sums of several arrays of values by cell, (n_arrays, n_cells)."""
    return np.stack([_summed(cell, values, n_cells) for values in arrays])


def _summed(cell, values, n_cells):
    """Return the sums (n_cells,) of values by cell.

    Long runs of values in one cell are summed at once: `np.bincount` would wait for
    each addition before the next one.
    """
    if in_order(cell):
        starts = first_rows(cell)
        if len(starts) * _LONG_RUNS <= len(cell):
            sums = np.zeros(n_cells)
            sums[cell[starts]] = np.add.reduceat(values, starts)
            return sums
    return np.bincount(cell, values, n_cells)


def cosine_coefficients(masses):
    """Return the coefficients of the cosine series of masses on a grid (..., points).

    The series continues a function by reflection at the ends of the grid. Multiplied by
    a kernel's characteristic function it is the convolution with that kernel, with all
    that would leak out reflected back.
    """
    masses = masses.copy()
    masses[..., [0, -1]] *= 2  # the ends are their own mirror images
    return dct(masses, type=1) / 2


def trapezoid(values):
    """Return the mean over the length of a grid of values on it (..., points)."""
    return (values.sum(axis=-1) - (values[..., 0] + values[..., -1]) / 2) / (
        values.shape[-1] - 1
    )


def rounding(share, scores, grid):
    """Return the matrix (m, points) that rounds the masses of frequencies linearly to a
    grid, for many draws.
    """
    lower, upper_share = grid.shares(scores)
    data = np.column_stack((share * (1 - upper_share), share * upper_share)).ravel()
    columns = np.column_stack((lower, lower + 1)).ravel()
    return csr_array(
        (data, columns, 2 * np.arange(len(scores) + 1)),
        shape=(len(scores), grid.n_cells + 1),
    )
