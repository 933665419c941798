"""An even grid over the scores, and the cosine series that smooth masses on it with
reflection at 0 and at 1.
"""

from typing import NamedTuple

import numpy as np
from scipy.fft import dct, next_fast_len
from scipy.sparse import csr_array

from skcalib._input.tensors import library_of
from skcalib._rows.blocks import row_blocks
from skcalib._rows.namespaces import placed, sums_by_code
from skcalib._rows.sorting import first_rows, in_order

# Samples in a cell, on average, from which on runs are summed at once.
_LONG_RUNS = 8


class ScoreGrid(NamedTuple):
    """The part of an even grid of [0, 1] that smoothed scores reach.

    An end that is 0 or 1 reflects. The other ends reflect too, but no kernel reaches
    them: the result equals the result on the whole grid.

    Parameters
    ----------
    fineness : int
        Number of cells of the whole grid.
    first : int
        Number of the first cell of the part.
    n_cells : int
        Cells of the part, which has one point more.
    """

    fineness: int
    first: int
    n_cells: int

    @classmethod
    def around(cls, low, high, fineness, reach):
        """Return the grid for scores from `low` to `high` and `reach` cells beyond them
        on both sides, half the width of a kernel.

        `fineness` is the number of cells of the whole grid on [0, 1]. The part is made
        a little longer, so that a cosine transform of it is fast.
        """
        first = max(int(low * fineness) - reach, 0)
        last = min(int(high * fineness) + 1 + reach, fineness)
        n_cells = min(next_fast_len(last - first, real=True), fineness)
        # The rounded up length may need an earlier start to end at 1.
        first = min(first, fineness - n_cells)
        return cls(fineness, first, n_cells)

    @property
    def points(self):
        """The scores (n_cells + 1,) at the points of the grid."""
        return (self.first + np.arange(self.n_cells + 1)) / self.fineness

    def shares(self, scores):
        """Return the cell (n,) of each score (n,), and the share (n,) of its mass that
        goes to the upper point of the cell.
        """
        xp = library_of(scores)
        if xp is not np:
            position = scores * self.fineness - self.first
            cell = xp.clip(xp.astype(position, xp.int64), None, self.n_cells - 1)
            return cell, position - xp.astype(cell, xp.float64)
        position = np.multiply(scores, self.fineness, dtype=np.float64)
        position -= self.first
        cell = np.minimum(position.astype(np.intp), self.n_cells - 1)
        return cell, np.subtract(position, cell, out=position)

    def rounded(self, scores, masses):
        """Return sums of masses at the points of the grid, with each sample's mass
        shared linearly between its two neighbours.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Scores.
        masses : callable
            ``masses(rows)`` returns, for a slice of the samples, a tuple of arrays of
            their masses.

        Returns
        -------
        sums : ndarray of shape (n_masses, n_cells + 1)
            A row for each array of masses.
        """
        xp = library_of(scores)
        if xp is not np:
            return self._rounded_in_place(xp, scores, masses(slice(None)))
        # Two sums by cell, (n_masses, n_points) each: of the masses, and of their parts
        # that go to the upper point of the cell. There is one cell less than points:
        # the last column is 0.
        cell_mass = 0.0
        upper_mass = 0.0
        n_points = self.n_cells + 1
        for rows in row_blocks(len(scores), at_least=2 * self.n_cells):
            cell, upper_share = self.shares(scores[rows])
            masses_of_rows = list(masses(rows))
            cell_mass = cell_mass + _stacked_sums(cell, masses_of_rows, n_points)
            # A generator: only one product is in memory at a time.
            upper_parts = (mass * upper_share for mass in masses_of_rows)
            upper_mass = upper_mass + _stacked_sums(cell, upper_parts, n_points)
        # A point has the lower parts of its cell and the upper parts of the cell before
        # it.
        point_mass = cell_mass
        point_mass -= upper_mass
        point_mass[:, 1:] += upper_mass[:, :-1]
        return point_mass

    def _rounded_in_place(self, xp, scores, masses):
        """Return the sums of `rounded` on the device of the scores."""
        cell, upper_share = self.shares(scores)
        columns = [*masses, *(mass * upper_share for mass in masses)]
        sums = sums_by_code(xp, cell, columns, self.n_cells)
        cell_mass, upper_mass = sums[: len(masses), :], sums[len(masses) :, :]
        beyond = xp.zeros_like(cell_mass[:, :1])
        lower_mass = xp.concat((cell_mass - upper_mass, beyond), axis=1)
        return lower_mass + xp.concat((beyond, upper_mass), axis=1)


def _stacked_sums(cell, arrays, n_cells):
    """Return the sums by cell (n_arrays, n_cells) of several arrays of values (n,);
    `cell` (n,) are the cells.
    """
    return np.stack([_summed(cell, values, n_cells) for values in arrays])


def _summed(cell, values, n_cells):
    """Return the sums (n_cells,) of values (n,) by their `cell` (n,). Long runs in one
    cell are summed at once: `np.bincount` waits for each addition before the next one.
    """
    if in_order(cell):
        starts = first_rows(cell)
        if len(starts) * _LONG_RUNS <= len(cell):
            sums = np.zeros(n_cells)
            sums[cell[starts]] = np.add.reduceat(values, starts)
            return sums
    return np.bincount(cell, values, n_cells)


def cosine_coefficients(masses):
    """Return the coefficients (..., points) of the cosine series of masses on a grid
    (..., points).

    The series continues a function by reflection at the ends of the grid. Multiplied by
    a kernel's characteristic function it is the convolution with that kernel, with all
    that would leak out reflected back.
    """
    xp = library_of(masses)
    # The ends are their own mirror images.
    if xp is np:
        masses = masses.copy()
        masses[..., [0, -1]] *= 2
    else:
        ends = np.zeros(masses.shape[-1])
        ends[[0, -1]] = 1
        masses = masses + masses * placed(xp, ends, masses)
    return cosine_transform(masses) / 2


def cosine_transform(values):
    """Return the cosine transform of type 1 of values (..., points): on a device, the
    Fourier transform of the values and their mirror image.
    """
    xp = library_of(values)
    if xp is np:
        return dct(values, type=1)
    mirrored = xp.concat((values, xp.flip(values[..., 1:-1], axis=-1)), axis=-1)
    return xp.real(xp.fft.rfft(mirrored))


def trapezoid(values):
    """Return the mean over the length of a grid (...) of values at its points (...,
    points), by the trapezoidal rule.
    """
    ends = values[..., 0] + values[..., -1]
    total = library_of(values).sum(values, axis=-1)
    return (total - ends / 2) / (values.shape[-1] - 1)


def rounding(share, scores, grid):
    """Return the sparse matrix R (m, points) that brings values of m cells onto a
    `ScoreGrid`: ``values @ R`` is (..., points) for values (..., m).

    The value of a cell is multiplied by the cell's share of the weight and divided
    linearly between the two points beside its score. `share` and `scores` are (m,).
    """
    lower, upper_share = grid.shares(scores)
    entries = np.column_stack((share * (1 - upper_share), share * upper_share))
    columns = np.column_stack((lower, lower + 1))
    row_starts = 2 * np.arange(len(scores) + 1)
    return csr_array(
        (entries.ravel(), columns.ravel(), row_starts),
        shape=(len(scores), grid.n_cells + 1),
    )
