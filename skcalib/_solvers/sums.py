"""Sums over the rows of an array, NumPy's or a tensor, where the array lives: only the
sums come to the processor.
"""

import numpy as np

from skcalib._input.tensors import as_array, like, namespace_of, widest_dtype
from skcalib._rows.blocks import row_blocks
from skcalib._rows.namespaces import exponential

# Elements of a block of a tensor: few calls, and temporaries of 128 MB at most.
_TENSOR_ELEMENTS = 1 << 24


def blocks_of(array, n_rows, n_columns, *, at_least=1):
    """Return slices of rows for passes over `array`: blocks that fit the cache for
    NumPy, larger ones for a tensor.
    """
    if namespace_of(array) is np:
        return row_blocks(n_rows, n_columns, at_least=at_least)
    size = max(_TENSOR_ELEMENTS // n_columns, at_least)
    starts = range(0, n_rows, size)
    return [slice(start, min(start + size, n_rows)) for start in starts]


def working_dtype(array):
    """Return the floating type, one of NumPy's, in which the rows of an array are
    computed: float64, or float32 for a tensor of at most this precision.
    """
    xp = namespace_of(array)
    if xp is not np and xp.finfo(array.dtype).bits <= 32:
        return np.float32
    return np.float64


def cast(array, dtype):
    """Return a new array in a floating type of NumPy, `np.float32` or `np.float64`."""
    xp = namespace_of(array)
    if xp is np:
        return array.astype(dtype)
    return xp.astype(array, getattr(xp, np.dtype(dtype).name))


def row_weights(sample_weight, array, dtype=np.float64):
    """Return the weights (n,) of the rows of an array (n, ...), in its namespace; ones,
    of this type where the device has it, if they are None.
    """
    if sample_weight is not None:
        return sample_weight
    return like(array, np.ones(array.shape[0], dtype))


def true_entries(values, codes):
    """Return the entry of each row's true class from values (n, K), as (n,)."""
    xp = namespace_of(values)
    n_rows = values.shape[0]
    if xp is np:
        return values[np.arange(n_rows), codes]
    along_axis = getattr(xp, "take_along_axis", None)
    if along_axis is not None:
        return along_axis(values, codes[:, None], axis=1)[:, 0]
    # an older version of the standard
    place = like(values, np.arange(n_rows) * values.shape[1]) + codes
    return xp.take(xp.reshape(values, (-1,)), place, axis=0)


def column_dots(a, b):
    """Return the sums over the classes of ``a * b`` (K, n), as (n,)."""
    if namespace_of(a) is np:
        return np.einsum("kn,kn->n", a, b)
    return namespace_of(a).sum(a * b, axis=0)


def transposed(values, dtype):
    """Return values (n, K) as a new array (K, n) in a floating type of NumPy, with the
    numbers of a class next to each other.
    """
    if namespace_of(values) is np:
        return np.array(values.T, dtype, order="C")
    return cast(values, dtype).T * 1.0


def same_type(*arrays):
    """Return arrays in the widest floating type among them; NumPy's as they are."""
    xp = namespace_of(arrays[0])
    if xp is np:
        return arrays
    dtype = xp.result_type(*arrays)
    return [xp.astype(array, dtype) for array in arrays]


def weighted_sums(weight, *vectors):
    """Return the sums of vectors (n,) with weights (n,), as NumPy's float64.

    Tensors are summed in float64. On a device without it, they are summed in float32
    with the rounding errors compensated.
    """
    xp = namespace_of(weight)
    if xp is np:
        return np.array([weight @ vector for vector in vectors])
    dtype = widest_dtype(weight)
    weight = cast(weight, dtype)
    products = xp.stack([weight * cast(vector, dtype) for vector in vectors])
    if dtype == np.float64:
        sums, _ = as_array(xp.sum(products, axis=1))
        return sums
    return _compensated_sums(products)


def _compensated_sums(values):
    """Return the sums of the rows of a tensor (m, n) in single precision, as NumPy's
    float64: about as exact as if they were made in double precision.
    """
    xp = namespace_of(values)
    # In each turn the two halves of the values are added. TwoSum (Knuth) gives the
    # rounding error of each addition exactly; these errors are summed, too.
    error = values * 0.0
    while values.shape[1] > 1:
        if values.shape[1] % 2:
            padding = values[:, :1] * 0.0
            values = xp.concat((values, padding), axis=1)
            error = xp.concat((error, padding), axis=1)
        half = values.shape[1] // 2
        left, right = values[:, :half], values[:, half:]
        values = left + right
        right_part = values - left  # what the rounded sum contains of `right`
        rounding = (left - (values - right_part)) + (right - right_part)
        error = error[:, :half] + error[:, half:] + rounding
    total, _ = as_array(values[:, 0])
    lost, _ = as_array(error[:, 0])
    return total.astype(np.float64) + lost


def class_sums(codes, n_classes, *vectors):
    """Return the sums of vectors (n,) over the rows of each class, as NumPy's float64
    (n_vectors, n_classes); `codes` (n,) are the classes. None is a vector of ones.
    """
    xp = namespace_of(codes)
    if xp is np:
        return np.array([np.bincount(codes, vector, n_classes) for vector in vectors])
    dtype = widest_dtype(codes)
    values = xp.stack(
        [cast(row_weights(vector, codes, dtype), dtype) for vector in vectors]
    )
    sums = np.zeros((len(vectors), n_classes))
    # The standard has no `bincount`: a product with indicators adds in the same order.
    classes = like(codes, np.arange(n_classes))
    for rows in blocks_of(codes, codes.shape[0], n_classes):
        indicators = cast(codes[rows, None] == classes[None, :], dtype)
        sums_of_block, _ = as_array(values[:, rows] @ indicators)
        sums += sums_of_block
    return sums


def chosen(array, rows):
    """Return some rows of an array (n, ...): a slice, or indices of NumPy; None, which
    stands for an array that is not given, stays None.
    """
    if array is None:
        return None
    xp = namespace_of(array)
    if xp is np:
        return array[rows]
    if isinstance(rows, slice):
        return array[rows, ...]
    return xp.take(array, like(array, rows), axis=0)


def column_softmax(logits):
    """Return the probabilities (K, n) of logits (K, n)."""
    xp = namespace_of(logits)
    likelihood = exponential(xp, logits - xp.max(logits, axis=0))
    likelihood /= xp.sum(likelihood, axis=0)
    return likelihood


def log_sum_exp(logits, axis):
    """Return the logarithm of the summed exponentials of logits along an axis of each
    row's classes, at least one of which is possible.
    """
    xp = namespace_of(logits)
    largest = xp.max(logits, axis=axis, keepdims=True)
    total = xp.sum(xp.exp(logits - largest), axis=axis)
    return xp.log(total) + xp.squeeze(largest, axis=axis)
