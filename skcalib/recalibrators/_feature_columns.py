"""Columns of a table, of any type, as the cells that histogram gradient boosting takes."""

import numpy as np

from skcalib._input.columns import plain_column, table_columns

__all__ = ["FeatureColumns", "cells", "cuts_between_cells"]

_MOST_CELLS = 254  # what histogram gradient boosting holds beside the missing values


class FeatureColumns:
    """Columns as numbers of cells, as they were in `fit`: numbers by quantiles, categories by how frequent they are.

    Missing values, and categories that are rare or were not seen in `fit`, are NaN. Histogram gradient boosting makes
    the same cells itself, but anew in each fit, which costs more than its trees.
    """

    def fit_transform(self, X, name):
        """Learn the cells of the columns; return the cell of each value as floats (n, n_columns)."""
        columns = _plain_columns(X, name)
        self._cuts, self._categories = {}, {}
        for position, (values, missing) in enumerate(columns.values()):
            if values.dtype.kind == "O":
                self._categories[position] = _frequent(values[~missing])
            else:
                self._cuts[position] = cuts_between_cells(values[~missing])
        return self._encoded(columns)

    def transform(self, X, name):
        """Return the cell of each value as floats (n, n_columns)."""
        columns = _plain_columns(X, name)
        n_columns = len(self._cuts) + len(self._categories)
        if len(columns) != n_columns:
            raise ValueError(f"{name} has {len(columns)} columns, but fit had {n_columns}.")
        return self._encoded(columns)

    @property
    def is_category(self):
        """Which columns are categories (n_columns,)."""
        return np.array([position in self._categories for position in range(len(self._cuts) + len(self._categories))])

    def _encoded(self, columns):
        encoded = []
        for position, (name, (values, missing)) in enumerate(columns.items()):
            codes = np.full(len(values), np.nan)
            if position in self._categories:
                known = self._categories[position]
                present = values[~missing].astype(object)
                codes[~missing] = [known.get(value, np.nan) for value in present.tolist()]
            else:
                codes[~missing] = cells(_numbers(name, values[~missing]), self._cuts[position])
            encoded.append(codes)
        return np.column_stack(encoded)


def cuts_between_cells(values):
    """Return the upper ends of the cells of numbers but for the last: each value, or else quantiles."""
    ordered = np.unique(values)
    if len(ordered) > _MOST_CELLS:
        ordered = np.sort(values)
        ordered = np.unique(ordered[-(-np.arange(1, _MOST_CELLS + 1) * len(ordered) // _MOST_CELLS) - 1])
    return ordered[:-1]


def cells(values, cuts):
    """Return the number of the cell of each value."""
    return np.searchsorted(cuts, values, side="left")


def _plain_columns(X, name):
    return {key: plain_column(column, name=key) for key, column in table_columns(X, name=name).items()}


def _frequent(values):
    """Return the most frequent values by their rank."""
    counts = {}
    for value in values.tolist():
        counts[value] = counts.get(value, 0) + 1
    ranked = sorted(counts, key=lambda value: (-counts[value], str(value)))
    return {value: code for code, value in enumerate(ranked[:_MOST_CELLS])}


def _numbers(name, values):
    if values.dtype.kind == "O" and len(values):
        raise ValueError(f"{name} held numbers in fit, found {values[0]!r}.")
    return values
