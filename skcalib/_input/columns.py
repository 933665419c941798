"""Columns of a table by name or position, whatever kind of table it is."""

from numbers import Integral

import numpy as np
from scipy import sparse

from skcalib._input.sklearn_private import safe_indexing


def column_positions(X, keys, *, name):
    """Return the positions of the columns that `keys`, given as the parameter `name`, stand for."""
    if not keys:
        return []
    columns = list(getattr(X, "columns", ()))
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    n_columns = shape[1] if len(shape) == 2 else 0
    for key in keys:
        if isinstance(key, str) and key not in columns:
            found = f"X has the columns {columns}" if columns else "X has no column names: give positions"
            raise ValueError(f"{name} names the column {key!r}, but {found}.")
        if isinstance(key, Integral) and not -n_columns <= key < n_columns:
            raise ValueError(f"{name} asks for column {key}, but X has {n_columns} columns.")
    return [columns.index(key) if isinstance(key, str) else key % n_columns for key in keys]


def select_columns(X, positions):
    """Return some columns: a table of its own kind for a DataFrame, else a dense array."""
    if hasattr(X, "columns"):
        return safe_indexing(X, positions, axis=1)
    return X[:, positions].toarray() if sparse.issparse(X) else np.asarray(X)[:, positions]
