"""Functions of the rows of an array in the namespace `xp` of its library: NumPy, or
another library of the array API standard, on whose device the arrays stay.
"""

import numpy as np

from skcalib._rows.blocks import MANY_COLUMNS
from skcalib._rows.links import PROBABILITY_CLIP
from skcalib._rows.links import row_sums as numpy_row_sums

# exp(709.78) is the largest float64, exp(-708.4) the smallest with full precision.
LARGEST_EXPONENT = 700.0
_FEW_VALUES = 1 << 10


def clipped(xp, probabilities, *, overwrite=False):
    """Return probabilities inside [2^-52, 1 - 2^-52]; `overwrite` allows to write them
    over the old ones.
    """
    high = 1 - PROBABILITY_CLIP
    return limited(xp, probabilities, PROBABILITY_CLIP, high, overwrite=overwrite)


def limited(xp, values, low, high, *, overwrite=False):
    """Return values inside [low, high], in a new array unless `overwrite` is set."""
    if xp is not np:
        return xp.clip(values, low, high)
    inside = None
    if overwrite:
        inside = values
    if values.size > _FEW_VALUES:
        return np.clip(values, low, high, out=inside)
    # a third of the time of `clip` for one row
    inside = np.maximum(values, low, out=inside)
    return np.minimum(inside, high, out=inside)


def at_least(xp, values, low):
    """Return values, none below `low`, in a new array."""
    # NumPy's `clip` takes more than twice the time for few values.
    return np.maximum(values, low) if xp is np else xp.clip(values, low, None)


def at_most(xp, values, high):
    """Return values, none above `high`, in a new array."""
    return np.minimum(values, high) if xp is np else xp.clip(values, None, high)


def exponential(xp, values):
    """Return the exponential of values in a new array, which may be overwritten."""
    if xp is not np:
        return xp.exp(values)
    return np.exp(values, out=values)


def logarithm(xp, values):
    """Return the logarithm of values in a new array, which may be overwritten."""
    if xp is not np:
        return xp.log(values)
    return np.log(values, out=values)


def inverse_odds(xp, log_odds):
    """Return ``exp(-log_odds)``, the odds of the complement, without overflow."""
    exponents = limited(xp, log_odds, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    exponents *= -1.0
    return exponential(xp, exponents)


def chosen_entries(xp, values, positions):
    """Return the entries (m,) of an array (n,) at positions (m,)."""
    if xp is not np:
        return xp.take(values, positions, axis=0)
    return values.take(positions)


def entries_of_columns(xp, values, columns):
    """Return the entry (n,) of each row of values (n, K) in its column, for columns
    (n,) on the device of the values.
    """
    n, n_columns = values.shape
    if xp is np:
        return values[np.arange(n), columns]
    first = xp.arange(n, device=values.device) * n_columns
    return xp.take(xp.reshape(values, (-1,)), first + columns, axis=0)


def entries_at(xp, values, positions):
    """Return the entries (m, K) of the columns of values (n, K) at positions (m, K)."""
    n_columns = values.shape[1]
    columns = xp.arange(n_columns, device=values.device)
    flat = xp.reshape(positions * n_columns + columns, (-1,))
    entries = xp.take(xp.reshape(values, (-1,)), flat, axis=0)
    return xp.reshape(entries, positions.shape)


def side_by_side(xp, columns):
    """Return several arrays (n, ...) as one array with their columns."""
    if xp is not np or len(columns) > MANY_COLUMNS:
        return xp.concat(columns, axis=1)
    width = sum(column.shape[1] for column in columns)
    joined = np.empty((len(columns[0]), width), order="F")  # column by column in memory
    return np.concatenate(columns, axis=1, out=joined)


def chosen_rows(xp, values, positions):
    """Return the rows (m, K) of an array (n, K) at positions (m,)."""
    if xp is np and values.flags.f_contiguous:
        return values.T.take(positions, axis=1).T
    return xp.take(values, positions, axis=0)


def placed(xp, values, beside, dtype=None):
    """Return values (m,) of NumPy as an array where another one is, of that one's type
    if `dtype` is None.
    """
    if dtype is None:
        dtype = beside.dtype
    if xp is np:
        return np.asarray(values, dtype=dtype)
    return xp.asarray(values, dtype=dtype, device=beside.device)


def in_double(xp, values):
    """Return values of a tensor as float64, and those of NumPy, which converts them
    when they are divided, unchanged.
    """
    return values if xp is np else xp.astype(values, xp.float64)


def as_double(xp, values):
    """Return values as float64."""
    return values.astype(np.float64) if xp is np else xp.astype(values, xp.float64)


def count_true(xp, mask):
    """Return the number (n,) of true entries of each row of a mask (n, K)."""
    if xp is np:
        return np.count_nonzero(mask, axis=1)
    return xp.sum(xp.astype(mask, xp.int64), axis=1)


def row_cumulative_sums(xp, values):
    """Return the cumulative sums along each row of values (n, K), in float64."""
    if xp is np:
        return np.cumsum(values, axis=1, dtype=np.float64)
    return xp.cumulative_sum(xp.astype(values, xp.float64), axis=1)


def true_positions(xp, mask):
    """Return the positions of the true entries of a mask (n,)."""
    return xp.nonzero(mask)[0]


def sums_up_to(xp, values):
    """Return the sums of the first 0, 1, ..., m values, (m + 1,), in the dtype of the
    values (m,).
    """
    if xp is np:
        return np.append(values[:1] * 0, np.cumsum(values))
    sums = xp.cumulative_sum(values, dtype=values.dtype)
    return xp.concat((xp.zeros_like(values[:1]), sums))


def sums_by_code(xp, codes, columns, n_codes):
    """Return the sums (n_columns, n_codes) of columns of values, each (n,), by their
    codes (n,), integers below `n_codes`.
    """
    if xp is np:
        return np.stack([np.bincount(codes, values, n_codes) for values in columns])
    # Without a function of the standard that counts: differences of cumulative sums.
    order = xp.argsort(codes)
    ends = ends_of_codes(xp, xp.take(codes, order), n_codes)
    sums = []
    for values in columns:
        up_to = xp.take(sums_up_to(xp, xp.take(values, order)), ends)
        sums.append(differences(xp, up_to))
    return xp.stack(sums)


def ends_of_codes(xp, ordered, n_codes):
    """Return how many of the codes (n,), sorted integers on a device, are at most 0, 1,
    ..., n_codes - 1.
    """
    every_code = xp.arange(n_codes, dtype=ordered.dtype, device=ordered.device)
    return xp.searchsorted(ordered, every_code, side="right")


def runs(xp, is_first):
    """Return the number (n,) of the run, from 0 on, that each of n entries belongs to,
    and the position of the last entry of each run; `is_first` says where runs begin.
    """
    numbers = xp.astype(is_first, xp.int64)
    run = xp.cumulative_sum(numbers) - 1
    is_last = xp.concat((is_first[1:], xp.ones_like(is_first[:1])))
    return run, true_positions(xp, is_last)


def differences(xp, up_to):
    """Return cumulative sums (m,) as the m sums that they add up."""
    return xp.concat((up_to[:1], up_to[1:] - up_to[:-1]))


def distinct_of_sorted(xp, values):
    """Return the distinct ones of values (m,) in increasing order."""
    if values.shape[0] == 0:
        return values
    later = values[1:]
    is_new = later > values[:-1]
    if xp is np:
        return np.append(values[:1], later[is_new])
    return xp.concat((values[:1], later[is_new]))


def inverse_permutation(xp, order):
    """Return at which place of `order` (n,) each position stands."""
    if xp is not np:
        return xp.argsort(order)
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    return inverse


def row_sums(xp, values):
    """Return the sums of the rows of values (n, K), as (n, 1)."""
    if xp is not np:
        return xp.sum(values, axis=1, keepdims=True)
    if values.shape[1] > MANY_COLUMNS:
        return numpy_row_sums(values)
    # column by column: neither other rows nor the layout change a row's rounding
    total = values[:, :1] + 0.0
    for k in range(1, values.shape[1]):
        total += values[:, k : k + 1]
    return total


def row_maxima(xp, values):
    """Return the largest value of each row of values (n, K), as (n, 1)."""
    # NumPy compares few columns one after the other faster than within each row.
    if xp is np and values.shape[1] <= MANY_COLUMNS and len(values) > 1:
        largest = values[:, :1]
        for k in range(1, values.shape[1]):
            largest = np.maximum(largest, values[:, k : k + 1])
        return largest
    return xp.max(values, axis=1, keepdims=True)


def largest_columns(xp, values):
    """Return the column (n,) of the largest value of each row of values (n, K), the
    first of those that tie.
    """
    if xp is not np or values.shape[1] > MANY_COLUMNS or len(values) == 1:
        return xp.argmax(values, axis=1)
    # NumPy compares few columns of many rows one after the other faster than `argmax`,
    # which goes through each row.
    largest = values[:, 0]
    column = np.zeros(len(values), dtype=np.intp)
    for k in range(1, values.shape[1]):
        column[values[:, k] > largest] = k
        largest = np.maximum(largest, values[:, k])
    return column


def row_shares(xp, values, n_shares):
    """Return rows of nonnegative values (n, K) divided by their sums; a row of zeros
    becomes 1 / `n_shares` in each column.
    """
    total = row_sums(xp, values)
    is_zero = total == 0
    if not xp.any(is_zero):
        return values / total
    shares = values / xp.where(is_zero, xp.ones_like(total), total)
    return xp.where(is_zero, xp.full_like(values, 1 / n_shares), shares)


def row_exponentials(xp, logits):
    """Return ``exp(logits - largest logit of the row)`` of logits (n, K)."""
    return exponential(xp, logits - row_maxima(xp, logits))


def row_softmax(xp, logits, *, largest_is_zero=False):
    """Return the softmax of the rows of logits (n, K) of a tensor, in one pass where
    the library has it. `largest_is_zero` says that no exponential is above 1.
    """
    if hasattr(xp, "softmax"):  # PyTorch
        return xp.softmax(logits, 1)
    if largest_is_zero:
        exponentials = xp.exp(logits)
    else:
        exponentials = row_exponentials(xp, logits)
    return exponentials / row_sums(xp, exponentials)


def without_impossible(xp, probabilities, is_impossible, *, rescale=True):
    """Return probabilities (n, K) with 0 where `is_impossible` (n, K) is true; None
    changes nothing.

    With `rescale` the rest of a row with impossible classes is made larger in
    proportion, up to the sum 1. If a map gives the possible classes no probability at
    all, they share the row.
    """
    if is_impossible is None:
        return probabilities
    is_possible = xp.astype(~is_impossible, probabilities.dtype)  # 1 or 0
    possible = probabilities * is_possible
    if not rescale:
        return possible
    total = row_sums(xp, possible)
    # Equal shares where the possible classes have no probability.
    is_zero = total == 0
    possible = xp.where(is_zero, is_possible, possible)
    total = xp.where(is_zero, row_sums(xp, is_possible), total)
    # A row without impossible classes is divided by 1, so that it does not change at
    # all: its own sum may differ from 1 by rounding.
    is_unchanged = ~xp.any(is_impossible, axis=1, keepdims=True) & ~is_zero
    return possible / xp.where(is_unchanged, xp.ones_like(total), total)
