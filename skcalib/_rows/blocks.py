"""Passes over blocks of rows that are small enough for the cache: fewer weighted rows
for many, a hash of them, and weights that are None where each row counts once.
"""

from functools import cache
from hashlib import blake2b
from tempfile import TemporaryFile

import numpy as np

# Up to this number of columns, NumPy is quicker if the numbers of a column, and not
# those of a row, are next to each other.
MANY_COLUMNS = 16
_BLOCK_ELEMENTS = 1 << 16


def row_blocks(n_rows, n_columns=1, *, at_least=1):
    """Return slices of rows: blocks that fit the cache for this number of columns, of
    `at_least` rows or more.
    """
    size = max(_BLOCK_ELEMENTS // n_columns, at_least)
    if 0 < n_rows <= size:
        return [slice(0, size)]
    return [slice(start, start + size) for start in range(0, n_rows, size)]


def few_columns_apart(values):
    """Return an array (n, K) with the numbers of each column next to each other, if
    NumPy is quicker with them; other arrays, and tensors, as they are.
    """
    if isinstance(values, np.ndarray) and 2 < values.shape[1] <= MANY_COLUMNS:
        return np.asfortranarray(values)
    return values


def empty_in_place_of(array, dtype):
    """Return an array of the shape of another one for values that take its place: in a
    temporary file if it is read from one, because it may not fit in memory.
    """
    # A view of an array in a file has it as its base.
    source = array
    while source is not None and not isinstance(source, np.memmap):
        source = getattr(source, "base", None)
    if source is None:
        return np.empty(array.shape, dtype)
    with TemporaryFile() as file:  # which stays mapped
        return np.memmap(file, dtype, "w+", shape=array.shape)


_FEWEST_ROWS = 1 << 15  # fewer are not condensed
# There is at least one cell for this many rows, up to `_MOST_CELLS`: with 32,768 rows
# a cell holds two on average.
_ROWS_A_CELL = 4
_MOST_CELLS = 1 << 15
# Probabilities have log-odds from -36 to 36. Wider ones would make the cells too wide
# to be exact.
_WIDEST = 80.0


def condensed(
    log_odds, labels, sample_weight, *, fewest_rows=_FEWEST_ROWS, most_cells=_MOST_CELLS
):
    """Return log-odds, labels and weights of fewer rows that stand for many in fits of
    a smooth function of the log-odds.

    The range of the log-odds is cut into cells of equal width, and the rows of one cell
    with the same label become one row with their mean log-odds and total weight. If the
    log-odds span 80, a cell is .005 wide for 32,768 rows and .0025 from 131,072 on,
    less if they span less. A sum over the rows then changes by less than a millionth of
    a log-loss for each row. That is enough to compare fits, and to find a start for the
    fit to all rows.

    Parameters
    ----------
    log_odds : ndarray of shape (n,)
        Log-odds. If they span more than 80, all rows are returned as they are.
    labels : ndarray of bool, shape (n,)
        Labels.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    fewest_rows : int
        Fewer rows are returned as they are.
    most_cells : int
        The largest number of cells.

    Returns
    -------
    log_odds, labels, sample_weight : ndarray of shape (m,)
        The rows that stand for all; unchanged arguments if these were returned.
    """
    n_rows = len(log_odds)
    low = float(log_odds.min())
    high = float(log_odds.max())
    if n_rows < fewest_rows or high - low > _WIDEST:
        return log_odds, labels, sample_weight
    # The power of two next above a cell for each `_ROWS_A_CELL` rows.
    n_cells = min(most_cells, 1 << (n_rows // _ROWS_A_CELL).bit_length())
    cells_per_unit = 0.0
    if high > low:
        # Half a cell less than there are, so that rounding cannot put the highest
        # log-odds beyond the last cell.
        cells_per_unit = (n_cells - 0.5) / (high - low)
    # Sums by cell and label in one array: those of cell k at 2 k without the event, and
    # at 2 k + 1 with it.
    weight = np.zeros(2 * n_cells)
    weighted_sum = np.zeros(2 * n_cells)
    for rows in row_blocks(n_rows, at_least=2 * n_cells):
        cell = ((log_odds[rows] - low) * cells_per_unit).astype(np.intp)
        cell *= 2
        cell += labels[rows]
        row_weight = taken(sample_weight, rows)
        weighted = log_odds[rows]
        if row_weight is not None:
            weighted = row_weight * weighted
        weight += np.bincount(cell, row_weight, 2 * n_cells)
        weighted_sum += np.bincount(cell, weighted, 2 * n_cells)
    filled = np.flatnonzero(weight)
    mean_log_odds = np.clip(weighted_sum[filled] / weight[filled], low, high)
    is_event = filled % 2 == 1
    return mean_log_odds, is_event, weight[filled]


# Odd constants of SplitMix64.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def row_hash(scores, codes, sample_weight=None):
    """Return 16 hexadecimal digits that identify a set of rows in any order: the sum,
    modulo 2^64, of a hash of each row's scores (n, C), code (n,) of the label and
    weight (n,).

    A sum does not depend on the order of the rows, so that nothing is sorted: a million
    scores take 4 ms where sorting takes 70. Equal rows give equal hashes in float32 and
    float64. The hash finds changes and mistakes, and is no protection against forgery.
    """
    total = 0
    columns = scores.shape[1]
    # 1. The bits of a row are combined into one number. Each column has an odd factor
    # of its own, so that columns are not exchangeable.
    factors = np.arange(1, columns + 1, dtype=np.uint64) * _STEP | np.uint64(1)
    # Codes are unsigned, as the hashes are, and from 1 on: a row of score 0 and code 0
    # would have the hash 0, which a sum does not show.
    codes = codes.view(f"u{codes.dtype.itemsize}") + np.uint8(1)
    for rows in row_blocks(*scores.shape):
        bits = np.ascontiguousarray(scores[rows], dtype=np.float64).view(np.uint64)
        if columns == 1:
            mixed = bits[:, 0] * _STEP
        else:  # two thirds of the time of `@`, which has no BLAS for integers
            mixed = np.einsum("nk,k->n", bits, factors)
        mixed += codes[rows]
        if sample_weight is not None:
            weight = np.asarray(sample_weight[rows], dtype=np.float64)
            mixed ^= weight.view(np.uint64) * _FIRST
        # 2. The number is hashed by the last steps of the random number generator
        # SplitMix64, in which every bit of the number reaches every bit of the hash.
        for shift, factor in ((32, _FIRST), (29, _SECOND)):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= factor
        total += int(mixed.sum(dtype=np.uint64))
    return f"{total % 2**64:016x}"


def label_hash(codes):
    """Return a hash, 16 hexadecimal digits, of label codes (n,) in the order of their
    rows.

    Codes are first replaced by ranks: the label of the first row has rank 0, the next
    different one rank 1, and so on. So the hash depends neither on the names of the
    labels nor on absent classes. It does not depend on scores, so that rows are
    recognised after a map was applied to their scores.
    """
    codes = np.asarray(codes)
    digest = blake2b(digest_size=8)
    if len(codes) and codes.max() <= 1:
        # Two classes are common, and need no table of ranks: the label of the first row
        # has rank 0, the other one rank 1.
        for rows in row_blocks(len(codes)):
            digest.update((codes[rows] != codes[0]).tobytes())
        return digest.hexdigest()
    # The first row with each code, or the number of rows for a code that is absent. Of
    # several rows with a code the last to be written stays: they are written from the
    # last to the first.
    first = np.full(int(codes.max(initial=0)) + 1, len(codes))
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    # The rank of each code, in the order of first rows: one byte if that is enough for
    # all ranks, as for two classes above.
    n_present = np.count_nonzero(first < len(codes))
    rank = np.empty(len(first), dtype="u1" if n_present <= 256 else "<u4")
    rank[np.argsort(first, kind="stable")] = np.arange(len(first)).astype(rank.dtype)
    for rows in row_blocks(len(codes)):
        digest.update(rank[codes[rows]].tobytes())
    return digest.hexdigest()


@cache
def bits_of(number, dtype):
    """Return the unsigned integer type as long as a type of floats, and the bits of a
    number of that type as such an integer.
    """
    unsigned = np.dtype(f"u{dtype.itemsize}")
    (bits,) = np.full(1, number, dtype).view(unsigned)
    return unsigned, bits


def inside_unit_interval(scores):
    """Return whether no score is negative (-0 included), above 1 or NaN, without a
    temporary array.

    The bits of nonnegative floats, read as unsigned integers, have the order of the
    floats; those of negative floats and of NaN are larger than those of 1.
    """
    unsigned, bits_of_one = bits_of(1, scores.dtype)
    return scores.view(unsigned).max(initial=0) <= bits_of_one


def taken(values, rows):
    """Return the rows of an array that `rows` selects (a slice, a mask or positions);
    None, which stands for an array that is not given, stays None.
    """
    if values is None:
        return None
    return values[rows]


def weights_or_ones(sample_weight, n_rows):
    """Return the weights, or ones where every row counts once."""
    if sample_weight is None:
        return np.ones(n_rows)
    return sample_weight


def total_weight(sample_weight, n_rows):
    """Return the sum of the weights, or the number of rows where each counts once."""
    if sample_weight is None:
        return n_rows
    return sample_weight.sum()


def effective_size(total, squares):
    """Return Kish's effective number of rows, (sum w)^2 / sum w^2, from the sums of the
    weights and of their squares, numbers or arrays; 0 where these are 0.
    """
    size = np.zeros(np.shape(squares))
    return np.divide(total**2, squares, out=size, where=squares > 0)[()]
