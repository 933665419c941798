"""Tensors of any library, device and type as arrays, by duck typing: no library of tensors is imported."""

import numpy as np


def as_array(values):
    """Return values as an array and the name of the type they came in; only tensors are copied to the processor."""
    if not all(callable(getattr(values, name, None)) for name in ("detach", "cpu", "float")):
        array = np.asarray(values)
    else:
        tensor = values.detach().cpu()  # without its gradient, wherever it lives
        name = str(getattr(tensor, "dtype", "")).rpartition(".")[2]
        array = np.asarray(tensor.float() if name == "bfloat16" else tensor)  # NumPy has no bfloat16 of its own
        return array, name if name == "bfloat16" else array.dtype.name
    if array.dtype.name == "bfloat16":  # of the package ml_dtypes, as JAX gives it
        return array.astype(np.float32), "bfloat16"
    return array, array.dtype.name
