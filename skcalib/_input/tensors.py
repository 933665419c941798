"""Arrays of anything that NumPy reads, and of tensors wherever they live."""

import numpy as np


def as_array(values):
    """Return values as an array and the name of the type they came in.

    Only tensors are copied to the processor.
    """
    if _is_tensor(values):
        values = values.detach().cpu()  # without its gradient, wherever it lives
        # NumPy has no such type of its own.
        if str(getattr(values, "dtype", "")).endswith("bfloat16"):
            return np.asarray(values.float()), "bfloat16"
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":  # of the package ml_dtypes, as JAX gives it
        return array.astype(np.float32), "bfloat16"
    return array, array.dtype.name


def _is_tensor(values):
    """Return whether values can be brought to the processor, as those of PyTorch."""
    return all(
        callable(getattr(values, name, None)) for name in ("detach", "cpu", "float")
    )


def column_names(table):
    """Return the names of the columns of a table as a list, an empty one for arrays."""
    # The columns of an Arrow table are its values, and have another attribute of names.
    if hasattr(table, "column_names"):
        return list(table.column_names)
    columns = getattr(table, "columns", ())
    return [] if callable(columns) else list(columns)
