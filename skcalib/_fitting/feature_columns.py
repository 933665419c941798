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
        """Learn how each column of X is divided into cells, ranges of numbers or single
        categories, and return the number of each value's cell, floats (n, n_columns).
        `name` is the user's argument, for messages.
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
        """Return the number of each value's cell, as `fit_transform` learned the cells,
        floats (n, n_columns). `name` is the user's argument, for messages.
        """
        columns = _plain_columns(X, name)
        if len(columns) != len(self._learned):
            raise ValueError(
                f"{name} has {len(columns)} columns, but had {len(self._learned)} in"
                " fit."
            )
        return self._encoded(columns)

    @property
    def is_category(self):
        """Which columns are categories, booleans (n_columns,)."""
        return np.array([isinstance(learned, dict) for learned in self._learned])

    def _encoded(self, columns):
        """Return the number of each value's cell as floats (n, n_columns), NaN for
        missing values and unseen categories. `columns` maps names to values (n,) and to
        which of them are missing (n,).
        """
        encoded = []
        pairs = zip(columns.items(), self._learned, strict=True)
        for (name, (values, is_missing)), learned in pairs:
            present = values[~is_missing]
            codes = np.full(len(values), np.nan)
            if isinstance(learned, dict):  # the numbers of categories, not cuts
                labels = present.astype(object).tolist()
                codes[~is_missing] = [learned.get(label, np.nan) for label in labels]
            else:
                codes[~is_missing] = cells(_numbers(name, present), learned)
            encoded.append(codes)
        return np.column_stack(encoded)


def cuts_between_cells(values):
    """Return the upper ends of the cells, or ranges, into which numbers (n,) are
    divided, increasing, without that of the last cell.

    Each of up to 254 distinct numbers is a cell; more are cut at 254 quantiles.
    """
    ends = np.unique(values)
    if len(ends) > _MOST_CELLS:
        ordered = np.sort(values)
        # the k-th quantile is the entry of rank k n / 254, rounded up
        numerators = np.arange(1, _MOST_CELLS + 1) * len(ordered)
        ranks = -(-numerators // _MOST_CELLS)
        ends = np.unique(ordered[ranks - 1])
    return ends[:-1]


def cells(values, cuts):
    """Return the number of the cell of each value."""
    return np.searchsorted(cuts, values, side="left")


def _plain_columns(X, name):
    """Return a dict: by name, each column's values (n,) and which are missing (n,)."""
    columns = {}
    for key, column in table_columns(X, name=name).items():
        columns[key] = plain_column(column, name=key)
    return columns


def _frequent(values):
    """Return the ranks, from 0, of the 254 most frequent values; the text
    breaks ties.
    """
    counts = Counter(values.tolist())
    ranked = sorted(counts, key=lambda value: (-counts[value], str(value)))
    return {value: code for code, value in enumerate(ranked[:_MOST_CELLS])}


def _numbers(name, values):
    """Return the values of a column that held numbers in fit; raise a ValueError where
    it holds other values now.
    """
    if values.dtype.kind == "O" and len(values):
        raise ValueError(
            f"{name} contained numbers when fit was called, but now contains"
            f" {values[0]!r}."
        )
    return values
