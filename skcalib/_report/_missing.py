"""Rows that lack a label, a score, a weight, a time or a cluster: an error, or left out
and counted.
"""

from json import dumps

import numpy as np

from skcalib._report._error import ReportError
from skcalib._verdicts import count_words


def without_missing(columns, needed, missing, leave_out=()):
    """Return columns without the rows that lack a value, a note on how many these are
    ("" for none), and the line of Python that drops them.

    Parameters
    ----------
    columns : dict of ndarray of shape (n,)
        The columns by name, with NaN, NaT or None for missing values.
    needed : dict of list of str
        The columns in which no value may be missing, by what they hold; None stands for
        a column that there is not.
    missing : {"error", "drop"}
        What to do with rows that lack a value.
    leave_out : sequence of str, default=()
        What may be missing under "error", too: such rows are left out.
    """
    lacking = {}  # a mask of rows by (what, column)
    n_rows = len(next(iter(columns.values())))
    for what, names in needed.items():
        for name in names:
            if name is not None:
                mask = _is_missing(columns[name])
                if mask.any():
                    lacking[what, name] = mask
    if not lacking:
        return columns, "", ""
    is_dropped = np.zeros(n_rows, dtype=bool)
    for mask in lacking.values():
        is_dropped |= mask
    counts = []
    for (what, name), mask in lacking.items():
        counts.append(f"{np.count_nonzero(mask):,} without a {what} (column {name!r})")
    listed = ", ".join(counts[:6]) + ", ..." * (len(counts) > 6)
    if missing == "error" and any(what not in leave_out for what, _ in lacking):
        first = int(is_dropped.argmax())
        raise ReportError(
            f"of {n_rows:,} rows, {listed}: the first is row {first}. To leave out such"
            " rows, give --missing drop. Rows are counted from 0, without the header."
        )
    if is_dropped.all():
        raise ReportError(f"no row is complete: of {n_rows:,} rows, {listed}.")
    kept = {name: column[~is_dropped] for name, column in columns.items()}
    n_dropped = int(np.count_nonzero(is_dropped))
    verb = "was" if n_dropped == 1 else "were"
    rows = f"{count_words(n_dropped)} row{'s' * (n_dropped > 1)}"
    note = f"{rows} of {count_words(n_rows)} {verb} left out: {listed}."
    names = list(dict.fromkeys(name for _, name in lacking))
    line = f"df = df.dropna(subset={dumps(names, ensure_ascii=False)})"
    return kept, note, line


def _is_missing(column):
    """Return which values are missing, (n,) booleans."""
    if column.dtype.kind == "O":
        return np.array([value is None or value != value for value in column])
    if column.dtype.kind == "M":
        return np.isnat(column)
    if column.dtype.kind == "f":
        return np.isnan(column)
    return np.zeros(len(column), dtype=bool)
