"""Checks of weights: real numbers, none negative, not all zero."""

import numpy as np

from skcalib._input.scores import MAX_MAGNITUDE, first_index, first_string, refuse_masked
from skcalib._input.tensors import as_array


def check_sample_weight(sample_weight, n_samples):
    """Return weights as float64 (n,), or None: finite, not negative, not all zero."""
    if sample_weight is None:
        return None
    refuse_masked(sample_weight, "sample_weight")
    weight, _ = as_array(sample_weight)
    if weight.dtype.kind not in "biufO" or (weight.dtype.kind == "O" and first_string(weight) is not None):
        raise ValueError(f"sample_weight must be real numbers, found {weight.dtype}.")
    try:
        weight = weight.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be real numbers ({error}).") from None
    if weight.ndim != 1 or len(weight) != n_samples:
        raise ValueError(f"sample_weight must have shape ({n_samples},), found {weight.shape}.")
    low, high = weight.min(), weight.max()
    if not (np.isfinite(low) and np.isfinite(high) and low >= 0):
        row = first_index(~np.isfinite(weight) | (weight < 0))[0]
        raise ValueError(f"sample_weight must be finite and not negative, but row {row} is {weight[row]}.")
    if high == 0:
        raise ValueError("sample_weight is zero in every row: at least one row must count.")
    if not 1 / MAX_MAGNITUDE <= high <= MAX_MAGNITUDE:
        row = int(np.argmax(weight))
        raise ValueError(f"sample_weight is out of range: the largest, in row {row}, is {high}. Rescale the weights.")
    return weight


def drop_zero_weight(sample_weight, *arrays):
    """Return the arrays and the weights without the rows of weight zero, which must change nothing."""
    if sample_weight is None or sample_weight.min() > 0:
        return *arrays, sample_weight
    keep = sample_weight > 0
    return *(array[keep] for array in arrays), sample_weight[keep]
