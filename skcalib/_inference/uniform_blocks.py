"""Blocks of uniform random numbers from which numbers of events are drawn, the same for
every hypothesis.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import csc_array
from scipy.special import ndtri

BLOCK = 1 << 17  # counts drawn at a time: the temporaries stay in the cache
# Many cells are drawn at least so many times at a time, up to so many counts.
_FEWEST_DRAWS, _LARGEST_BLOCK = 64, 1 << 22
MOST_STORED = 1 << 23  # random numbers that are stored; more are drawn anew each time
MOST_LISTED = 6_000_000  # the same for numbers that are listed with draw and cell
# Up to this number of values of a distribution function, each is compared with every
# draw. More are looked up in the sorted draws, which are sorted once for all
# frequencies: an interval of 50 bins of 10 rows takes half of the time. A search costs
# as much as 5,000 comparisons.
_COMPARED, _SEARCH = 12, 5_000


def block_sizes(n_draws, n_cells):
    """Return a list with the number of draws of each block, `n_draws` in total.

    A block of draws of `n_cells` cells holds `BLOCK` numbers, which fit the cache. With
    many cells it is larger, so that it has at least 64 draws, unless these would not
    fit into the memory of a large block.
    """
    fitting_cache = BLOCK // n_cells
    fitting_memory = _LARGEST_BLOCK // n_cells
    size = max(fitting_cache, min(_FEWEST_DRAWS, fitting_memory), 1)
    sizes = []
    for start in range(0, n_draws, size):
        sizes.append(min(size, n_draws - start))
    return sizes


def uniform_numbers(seed, k, shape):
    """Return uniform numbers of a shape for the k-th block of draws: always the same
    for a seed.
    """
    return np.random.default_rng([seed, k]).random(shape)


class UniformBlock:
    """Uniform random numbers (draws, m), one for each draw of the number of events in
    each of m cells.

    Their normal deviates and their order within each cell are computed when they are
    first used, and serve all hypotheses.
    """

    def __init__(self, uniform):
        self.uniform = uniform

    @property
    def n_draws(self):
        """The number of draws."""
        return len(self.uniform)

    def above(self, threshold):
        """Return the numbers above the threshold (m,) of their cell, as the draws and
        the cells that they belong to, and the numbers.
        """
        place = np.flatnonzero(self.uniform > threshold)
        draw, cell = np.divmod(place, self.uniform.shape[1])
        return draw, cell, np.take(self.uniform, place)

    @cached_property
    def normal(self):
        """Standard normal deviates (draws, m) that belong to the uniform numbers."""
        return ndtri(self.uniform)

    @cached_property
    def ranked(self):
        """For each cell, the indices of the draws in the order of their uniform
        numbers, (m, draws), and the numbers in this order, (m, draws).
        """
        columns = np.ascontiguousarray(self.uniform.T)
        order = np.argsort(columns, axis=1)
        return order, np.take_along_axis(columns, order, axis=1)

    def inverted_counts(self, cells, cumulative):
        """Return numbers of events drawn by inversion of distribution functions: how
        many values of the cell's distribution function lie below the uniform number.

        Parameters
        ----------
        cells : slice or ndarray of int, shape (m,)
            Indices of the cells; a slice stands for all cells.
        cumulative : ndarray of shape (k, m)
            P(count <= 0), P(count <= 1), ... of each of these cells.

        Returns
        -------
        counts : ndarray of shape (draws, m)
            The drawn numbers.
        """
        # A few values are each compared with every draw, which is then faster than a
        # search; see `_COMPARED`.
        if len(cumulative) <= _COMPARED + _SEARCH // len(self.uniform):
            uniform = columns_of_cells(self.uniform, cells)
            counts = np.zeros(uniform.shape, dtype=np.uint8)
            for values in cumulative:
                counts += uniform > values
            return counts
        orders, sorted_numbers = self.ranked
        order = orders[cells]
        n_cells, n_draws = order.shape
        # Position among the sorted uniform numbers of a cell, 0 to n_draws, of the
        # first one above each value of its distribution function.
        first_above = np.empty((n_cells, len(cumulative)), dtype=np.intp)
        for row, numbers, values in zip(
            first_above, sorted_numbers[cells], cumulative.T, strict=True
        ):
            row[:] = numbers.searchsorted(values)
        # How many values of a cell have each position, (n_cells, width). The positions
        # of each cell are shifted behind those of the cell before, so that one
        # `bincount` is enough for all cells.
        width = n_draws + 1
        shifted = first_above + width * np.arange(n_cells)[:, None]
        n_values = np.bincount(shifted.ravel(), minlength=n_cells * width)
        n_values = n_values.reshape(n_cells, width)
        # A sorted number exceeds all values with its position or a lower one. These
        # counts, in sorted order, are put back into the order of the draws.
        sorted_counts = np.cumsum(n_values[:, :-1], axis=1)
        counts = np.empty((n_cells, n_draws))
        np.put_along_axis(counts, order, sorted_counts, axis=1)
        return counts.T


class ListedNumbers:
    """The numbers of all blocks that are above a floor (m,), those of each cell in
    falling order. They serve all distribution functions of which no value is below it.

    Parameters
    ----------
    blocks : iterable of UniformBlock
        The numbers of some draws each.
    floor : ndarray of shape (m,)
        Numbers up to that of their cell are left out.
    n_draws : int
        Number of draws of all blocks.
    """

    def __init__(self, blocks, floor, n_draws):
        self.n_draws = n_draws
        # The binary digits of an integer hold cell, distance from 1, and draw: sorting
        # takes a third of the time of three arrays. The distance has 39 digits for
        # 1,000 draws of 15,000 cells; the others are cut off.
        self._draw_digits = n_draws.bit_length()
        self._number_digits = 63 - self._draw_digits - len(floor).bit_length()
        keys = []
        first_draw = 0
        for block in blocks:
            draw, cell, uniform = block.above(floor)
            keys.append(self._least_key(cell, uniform) + (first_draw + draw))
            first_draw += block.n_draws
        self._keys = np.concatenate(keys)
        self._keys.sort()
        # the draw of each number, and factors of 1 for `csc_array`
        self._draw = (self._keys & ((1 << self._draw_digits) - 1)).astype(np.int32)
        self._ones = np.ones(len(self._keys))
        # Where the numbers of each cell begin and end, (m,).
        cells = np.arange(len(floor) + 1, dtype=np.int64)
        limits = self._keys.searchsorted(self._least_key(cells, 1))
        self._start, self._end = limits[:-1], limits[1:]
        # The largest number of each cell, 0 where there is none.
        has_numbers = self._start < self._end
        first_key = self._keys[self._start[has_numbers]]
        distance = first_key - self._least_key(cells[:-1][has_numbers], 1)
        digits = self._number_digits + self._draw_digits
        self._largest = np.zeros(len(floor))
        self._largest[has_numbers] = 1 - distance * 2.0**-digits

    def _least_key(self, cell, number):
        """Return the integers for numbers of cells and draw 0."""
        distance = np.int64((1 - number) * 2.0**self._number_digits)
        return ((cell << self._number_digits) + distance) << self._draw_digits

    def sums(self, cumulative, tables):
        """Return the sums over the cells of functions of their numbers of events, a
        list of arrays (n_draws,).

        Parameters
        ----------
        cumulative : ndarray of shape (k, m)
            P(count <= 0), P(count <= 1), ... of each cell.
        tables : list of ndarray of shape (k + 1, m)
            The values of each function for 0, 1, ... events in each cell: 0 for none.
        """
        # A number above j values of the distribution function means j events. In each
        # cell numbers of k events come first and those of none last: all are above 0.
        values = np.vstack([np.zeros(cumulative.shape[1]), cumulative])
        values = values[::-1].T
        place = np.flatnonzero(values < self._largest[:, None])
        end = self._end_above(place // values.shape[1], values.ravel().take(place))
        # A matrix with a column for each number of events in a cell, which counts the
        # draws that have it.
        limits = np.append(0, end).astype(np.int32)
        n_of_draws = csc_array(
            (self._ones, self._draw, limits), shape=(self.n_draws, len(end))
        )
        return [n_of_draws @ table[::-1].T.ravel().take(place) for table in tables]

    def _end_above(self, cell, values):
        """Return where the numbers of a cell that are above a value end, for many cells
        and values (n,): by bisection of all at once.
        """
        end = self._start.take(cell)
        last = self._end.take(cell)
        key = self._least_key(cell, values)
        step = 1 << int(np.max(self._end - self._start, initial=0)).bit_length()
        while step > 1:
            step //= 2
            further = end + step
            is_above = self._keys.take(further - 1, mode="clip") < key
            is_above &= further <= last
            end += is_above * step
        return end


class JoinedBlock(UniformBlock):
    """Blocks of the same draws for several problems, side by side. The normal deviates
    and orders that a block has computed are used again.
    """

    def __init__(self, blocks):
        super().__init__(np.concatenate([block.uniform for block in blocks], axis=1))
        self._blocks = blocks

    @cached_property
    def normal(self):
        """Standard normal deviates (draws, m) of all blocks, side by side."""
        return np.concatenate([block.normal for block in self._blocks], axis=1)

    @cached_property
    def ranked(self):
        """Order and sorted numbers of all blocks; see `UniformBlock.ranked`."""
        orders, numbers = zip(*(block.ranked for block in self._blocks), strict=True)
        return np.concatenate(orders), np.concatenate(numbers)


def columns_of_cells(values, cells):
    """Return the columns `cells` of an array (draws, n_cells). They are given by
    indices; a slice stands for all cells.
    """
    if isinstance(cells, slice):
        return values
    return np.take(values, cells, axis=1)  # takes a third of the time of indexing
