"""Many Parquet files, or one of many rows, as a report's table: read by DuckDB, and as few weighted rows if need be."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from skcalib._report._reader import ReportError

__all__ = ["is_scanned", "scanned_columns", "weighted_columns"]

_PARQUET = (".parquet", ".pq")
_MOST_ROWS = 2_000_000  # that are held in memory as they are
_BITS, _BITS_OF_SEGMENTS = 16, 12


def is_scanned(path):
    """Return whether a path is for DuckDB: a glob, or Parquet with more rows than a report holds in memory."""
    if find_spec("duckdb") is None or find_spec("narwhals") is None:
        return False
    if any(character in str(path) for character in "*?[") and not Path(path).exists():
        return True
    return str(path).lower().endswith(_PARQUET) and Path(path).is_file() and _n_rows(_opened(path)) > _MOST_ROWS


def scanned_columns(path, names):
    """Return columns as arrays, missing values as NaN or None; None where the rows are too many for that."""
    relation = _opened(path)
    missing = [name for name in names if name not in relation.columns]
    if missing:
        raise ReportError(f"{path} has no column {missing[0]!r}; its columns are {', '.join(relation.columns[:12])}.")
    if _n_rows(relation) > _MOST_ROWS:
        return None
    columns = relation.project(", ".join(_quoted(name) for name in dict.fromkeys(names))).fetchnumpy()
    return {name: _plain(values) for name, values in columns.items()}


def weighted_columns(path, *, label, score, segment, weight, events_of):
    """Return labels, scores, weights, segments and the event's name from sums over cells of the score.

    `events_of` is given the distinct labels and returns which of them are the event, and what it is called.
    """
    from skcalib.engines import PredictionTable

    relation = _opened(path)
    distinct = relation.project(_quoted(label)).distinct().limit(1000).fetchall()
    labels = np.array([value for (value,) in distinct if value is not None], dtype=object)
    is_event, name = events_of(labels)
    positive = labels[is_event].tolist()
    try:
        table = PredictionTable(
            relation, label=label, score=score, weight=weight, by=segment, positive=positive[0] if positive else None
        )
        rows = table.weighted_scores(_BITS if segment is None else _BITS_OF_SEGMENTS)
    except ValueError as error:
        raise ReportError(" ".join(str(error).split())) from error
    parts = {None: rows} if segment is None else rows
    y, scores, weights = (np.concatenate(columns) for columns in zip(*parts.values(), strict=True))
    names = np.array(["(missing)" if key is None else str(key) for key in parts])
    segments = None if segment is None else np.repeat(names, [len(part.y_true) for part in parts.values()])
    return y == 1, scores, weights, segments, name


def _opened(path):
    from skcalib.engines import scan

    try:
        return scan(str(path))
    except (FileNotFoundError, ValueError) as error:
        raise ReportError(" ".join(str(error).split())) from error


def _n_rows(relation):
    return relation.aggregate("count(*)").fetchall()[0][0]


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


def _plain(column):
    if not np.ma.is_masked(column):
        return np.asarray(column)
    if column.dtype.kind in "iuf":
        return np.ma.filled(column.astype(np.float64), np.nan)
    return np.array(column.tolist(), dtype=object)
