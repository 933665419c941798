"""Columns of a table by name or position, and their plain values, whatever kind of
table it is.
"""

from numbers import Integral, Real

import numpy as np
from scipy import sparse

from skcalib._input.labels import missing_values
from skcalib._input.scores import MAX_MAGNITUDE
from skcalib._input.sklearn_private import safe_indexing
from skcalib._input.tensors import column_names, refuse_repeated_names

_BOOLEANS = (bool, np.bool_)


def column_positions(X, keys, *, name):
    """Return the positions of columns of a table, from `keys` (names or positions) that
    the user gave as the parameter `name`.
    """
    if not keys:
        return []
    refuse_repeated_names(X)
    columns = column_names(X)
    if hasattr(X, "shape"):
        shape = X.shape
    else:
        shape = np.shape(X)
    n_columns = 0
    if len(shape) == 2:
        n_columns = shape[1]
    positions = []
    for key in keys:
        if isinstance(key, str):
            positions.append(_position_of_name(key, columns, name))
            continue
        if isinstance(key, Integral) and not -n_columns <= key < n_columns:
            raise ValueError(
                f"{name} asks for column {key}, but X has {n_columns} columns."
            )
        positions.append(key % n_columns)  # -1 is the last column
    return positions


def column_keys(columns, *, name):
    """Return the list of the names or positions of columns that the user gave as the
    parameter `name`: one of them, or several.
    """
    keys = [columns]
    if isinstance(columns, list | tuple):
        keys = list(columns)
    are_keys = all(
        isinstance(key, str | Integral) and not isinstance(key, bool) for key in keys
    )
    if not keys or not are_keys:
        raise ValueError(
            f"{name} must be names or positions of columns of X, found {columns!r}."
        )
    return keys


def numeric_columns(table, *, name):
    """Return the columns of a table as float64 (n, n_columns); raise a ValueError if
    one has a missing value or anything but finite numbers. `name` is the parameter that
    names the columns, for messages.
    """
    arrays = []
    for column_name, column in table_columns(table).items():
        where = f"{name}: column {column_name!r}"
        values, missing = plain_column(column, name=where)
        if missing.any():
            raise ValueError(
                f"{where} has a missing value in row {int(np.argmax(missing))}. Replace"
                " missing values first, for example with SimpleImputer."
            )
        if values.dtype.kind == "O" and all(isinstance(v, _BOOLEANS) for v in values):
            values = values.astype(bool)
        if values.dtype.kind not in "biuf":
            raise ValueError(
                f"{where} must contain numbers, found {values[0]!r}. Encode categories"
                " as columns of 0 and 1, for example with OneHotEncoder."
            )
        values = values.astype(np.float64)
        is_large = ~(np.abs(values) <= MAX_MAGNITUDE)
        if is_large.any():
            row = int(np.argmax(is_large))
            raise ValueError(
                f"{where} must contain numbers of at most {MAX_MAGNITUDE:g} in absolute"
                f" value, found {values[row]} in row {row}."
            )
        arrays.append(values)
    return np.column_stack(arrays)


def _position_of_name(key, columns, name):
    """Return the position of a column, or raise if there is none of this name."""
    if key in columns:
        return columns.index(key)
    found = "X has no column names: give positions"
    if columns:
        found = f"X has the columns {columns}"
    raise ValueError(f"{name} names the column {key!r}, but {found}.")


def select_columns(X, positions):
    """Return some columns: a table of its own kind for a DataFrame, else a dense
    array.
    """
    if hasattr(X, "columns"):
        return safe_indexing(X, positions, axis=1)
    if sparse.issparse(X):
        return X[:, positions].toarray()
    return np.asarray(X)[:, positions]


def table_columns(X, *, name="X"):
    """Return a dict of the columns (n,) of a data frame, an Arrow table, an array or a
    list of rows by their names; without names they are called x0, x1 and so on.
    """
    if sparse.issparse(X):
        raise TypeError(
            f"{name} must be a dense table, found a sparse matrix. Convert it with"
            " .toarray()."
        )
    if not hasattr(X, "shape"):
        X = np.array(X, dtype=object)
    if len(X.shape) == 1:
        series_name = getattr(X, "name", None)
        if series_name in (None, ""):
            return {"x0": X}
        return {str(series_name): X}
    if len(X.shape) != 2 or X.shape[1] == 0:
        raise ValueError(
            f"{name} must have at least one column and shape (n, n_columns), found"
            f" {X.shape}."
        )
    is_arrow = hasattr(X, "column_names")
    names = [str(column) for column in column_names(X)]
    if not names:
        names = [f"x{j}" for j in range(X.shape[1])]
    columns = {}
    for k, column in enumerate(names):
        if column in columns:
            raise ValueError(
                f"{name} has two columns with the name {column!r}: rename one of them."
            )
        if is_arrow:
            columns[column] = _of_arrow(X.column(k))
        else:
            columns[column] = safe_indexing(X, k, axis=1)
    return columns


def _of_arrow(column):
    """Return a column of an Arrow table as an array."""
    # Integers and dictionary codes beside nulls would become floats, which round them.
    would_round = column.null_count and "int" in str(column.type)
    if would_round:
        return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column)


def plain_column(column, *, name):
    """Return the values of a column as an array (n,), and which of them are missing,
    booleans (n,).

    Numbers and dates are returned as an array of their own type, in which the missing
    entries have no meaning. Everything else is a category and returned as objects.
    """
    missing = None
    if isinstance(column, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(column)
    # 1. An array of the values. Types of pandas and polars that NumPy would read as
    # others are read as what they are.
    dtype = getattr(column, "dtype", None)
    if getattr(dtype, "tz", None) is not None:  # pandas: dates with a time zone
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    is_category = getattr(dtype, "name", "") == "category"
    if is_category:
        values = np.asarray(column, dtype=object)
    else:
        values = np.asarray(column)
    # Nullable integers, such as Int64 or UInt8 of pandas, that NumPy reads as floats.
    if values.dtype.kind == "f" and str(dtype).lower().lstrip("u").startswith("int"):
        # Beside missing values integers become floats, which round those above 2^53.
        values = np.array(list(column), dtype=object)
    if values.dtype.kind in "cV":
        raise ValueError(
            f"{name} must contain numbers, dates or categories, found {values.dtype}."
        )
    # 2. Objects that are all numbers become numbers, texts and booleans categories.
    if missing is None:
        missing = missing_values(values)
    if values.dtype.kind == "O" and not is_category:
        values = _of_own_type(values, missing)
    if values.dtype.kind in "bUS":  # booleans and texts are categories
        values = values.astype(object)
    return values, missing


def _of_own_type(values, missing):
    """Return an array of objects (n,) as an array of numbers, 0 where `missing` (n,) is
    True, if all others are numbers that one type holds exactly; else unchanged.
    """
    present = values[~missing]
    are_numbers = all(
        isinstance(value, Real) and not isinstance(value, bool) for value in present
    )
    if len(present) == 0 or not are_numbers:
        return values
    exact = np.array(present.tolist())
    # Large integers beside floats would be rounded.
    if exact.dtype.kind not in "iuf" or exact.tolist() != present.tolist():
        return values
    numbers = np.zeros(len(values), dtype=exact.dtype)
    numbers[~missing] = exact
    return numbers
