"""Columns of a table, of any type, as the cells that histogram gradient boosting
takes.
"""

from collections import Counter

import numpy as np

from skcalib._input.columns import plain_column, table_columns

_MOST_CELLS = 254  # what histogram gradient boosting holds beside the missing values


class FeatureColumns:
    """Columns as numbers of cells, as they were in `fit`: numbers by quantiles,
    categories by how frequent they are.

    Missing values, and categories that are rare or were not seen in `fit`, are NaN.
    Histogram gradient boosting makes the same cells itself, but anew in each fit, which
    costs more than its trees.
    """

    def fit_transform(self, X, name):
        """Learn the cells of the columns; return the cell of each value as floats (n,
        n_columns).
        """
        columns = _plain_columns(X, name)
        # What each column is cut by: a dict with the rank of its frequent categories,
        # or an array of the cuts between the cells of its numbers.
        self._learned = []
        for values, missing in columns.values():
            present = values[~missing]
            if values.dtype.kind == "O":
                self._learned.append(_frequent(present))
            else:
                self._learned.append(cuts_between_cells(present))
        return self._encoded(columns)

    def transform(self, X, name):
        """Return the cell of each value as floats (n, n_columns)."""
        columns = _plain_columns(X, name)
        if len(columns) != len(self._learned):
            raise ValueError(
                f"{name} has {len(columns)} columns, but fit had {len(self._learned)}."
            )
        return self._encoded(columns)

    @property
    def is_category(self):
        """Which columns are categories (n_columns,)."""
        return np.array([isinstance(one, dict) for one in self._learned])

    def _encoded(self, columns):
        """Return the cells of the columns as floats (n, n_columns), NaN for missing
        values and for categories that were not seen.
        """
        encoded = []
        for (name, (values, missing)), learned in zip(
            columns.items(), self._learned, strict=True
        ):
            codes = np.full(len(values), np.nan)
            if isinstance(learned, dict):
                present = values[~missing].astype(object).tolist()
                codes[~missing] = [learned.get(value, np.nan) for value in present]
            else:
                codes[~missing] = cells(_numbers(name, values[~missing]), learned)
            encoded.append(codes)
        return np.column_stack(encoded)


def cuts_between_cells(values):
    """Return the upper ends of the cells of numbers but for the last: each value, or
    else quantiles.
    """
    ordered = np.unique(values)
    if len(ordered) > _MOST_CELLS:
        ordered = np.sort(values)
        ordered = np.unique(
            ordered[-(-np.arange(1, _MOST_CELLS + 1) * len(ordered) // _MOST_CELLS) - 1]
        )
    return ordered[:-1]


def cells(values, cuts):
    """Return the number of the cell of each value."""
    return np.searchsorted(cuts, values, side="left")


def _plain_columns(X, name):
    """Return the values of each column and which are missing, by its name."""
    columns = {}
    for key, column in table_columns(X, name=name).items():
        columns[key] = plain_column(column, name=key)
    return columns


def _frequent(values):
    """Return the most frequent values by their rank."""
    counts = Counter(values.tolist())
    ranked = sorted(counts, key=lambda value: (-counts[value], str(value)))
    return {value: code for code, value in enumerate(ranked[:_MOST_CELLS])}


def _numbers(name, values):
    if values.dtype.kind == "O" and len(values):
        raise ValueError(f"{name} held numbers in fit, found {values[0]!r}.")
    return values
