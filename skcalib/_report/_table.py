"""What a report is about: labels, scores, weights and segments of a file, checked."""

from dataclasses import dataclass

import numpy as np

from skcalib._input.scores import check_scores
from skcalib._input.weights import check_sample_weight
from skcalib._report._periods import named_periods
from skcalib._report._reader import ReportError, read_columns
from skcalib._report._scanned import is_scanned, scanned_columns, weighted_columns

__all__ = ["ReportTable", "read_table"]

_FEWEST_ROWS = 10
_MOST_SEGMENTS = 500
_COUNTING = "Rows are counted from 0, the header not included."


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Checked columns of equal length.

    Parameters
    ----------
    source : str
        Name of the file.
    label : str
        Name of the label column.
    event : str
        The label that is the event.
    y : ndarray of bool, shape (n,)
        Whether the event happened.
    scores : dict of ndarray of shape (n,)
        Scores by name of the column.
    weight : ndarray of shape (n,) or None
        Weights.
    segment_name : str or None
        Name of the segment column.
    segments : ndarray of str, shape (n,), or None
        The segment of each row.
    time_name : str or None
        Name of the time column.
    periods : ndarray of str, shape (n,), or None
        The period of each row.
    period_order : list of str or None
        The periods in the order of time.
    """

    source: str
    label: str
    event: str
    y: np.ndarray
    scores: dict
    weight: np.ndarray | None
    segment_name: str | None
    segments: np.ndarray | None
    time_name: str | None = None
    periods: np.ndarray | None = None
    period_order: list | None = None

    @property
    def n_rows(self):
        """Number of rows, the total weight where there are weights."""
        return float(len(self.y) if self.weight is None else self.weight.sum())


def read_table(path, *, label, scores, segment=None, weight=None, positive=None, time=None):
    """Read and check the columns of a report.

    Parameters
    ----------
    path : str
        CSV or Parquet file, or with DuckDB a glob of them; many rows become weighted ones.
    label : str
        Column of the labels.
    scores : sequence of str
        Columns of scores, probabilities of the event.
    segment, weight : str, default=None
        Columns of segments and of weights.
    positive : str, default=None
        The label that is the event; may be left out for 0 and 1, -1 and 1, and booleans.
    time : str, default=None
        Column of times: periods, or dates as YYYY-MM-DD.

    Returns
    -------
    table : ReportTable
        The columns.

    Raises
    ------
    ReportError
        For anything that makes a report impossible, in one line.
    """
    wanted = [label, *scores, *(name for name in (segment, weight, time) if name is not None)]
    if is_scanned(path):
        columns = scanned_columns(path, wanted)
        if columns is None and time is not None:
            raise ReportError(f"{path} has too many rows for --time: it needs them all in memory.")
        if columns is None:
            return _weighted_table(path, label, scores, segment, weight, positive)
    else:
        columns = read_columns(path, wanted, words=(label, segment, time))
    n_rows = len(columns[label])
    if n_rows < _FEWEST_ROWS:
        raise ReportError(f"{path} has {n_rows} rows; a report takes at least {_FEWEST_ROWS}.")
    y, event = _events(columns[label], label, positive)
    checked = {name: _checked(name, check_scores, columns[name], name="scores")[:, 0] for name in scores}
    weights = None if weight is None else _checked(weight, check_sample_weight, columns[weight], n_rows)
    segments = None if segment is None else _segments(columns[segment], segment)
    periods, order = (None, None) if time is None else named_periods(columns[time], time)
    if weights is not None:
        kept = weights > 0
        if periods is not None:
            periods = periods[kept]
            order = [name for name in order if name in set(periods.tolist())]
        y, weights = y[kept], weights[kept]
        checked = {name: values[kept] for name, values in checked.items()}
        segments = None if segments is None else segments[kept]
    return ReportTable(str(path), label, event, y, checked, weights, segment, segments, time, periods, order)


def _weighted_table(path, label, scores, segment, weight, positive):
    """Return a table of more rows than fit into memory, as weighted ones."""
    if len(scores) > 1:
        raise ReportError(f"{path} has too many rows for a comparison of models: give one --score.")
    y, score, weights, segments, event = weighted_columns(
        path,
        label=label,
        score=scores[0],
        segment=segment,
        weight=weight,
        events_of=lambda labels: _events(labels, label, positive),
    )
    segments = None if segments is None else _segments(segments, segment)
    return ReportTable(str(path), label, event, y, {scores[0]: score}, weights, segment, segments)


def _checked(column_name, check, *args, **kwargs):
    """Return what a check of the library returns, its error as one about a column."""
    try:
        return check(*args, **kwargs)
    except (TypeError, ValueError) as error:
        message = " ".join(str(error).split())
        raise ReportError(f"column {column_name!r}: {message} {_COUNTING}") from error


def _events(column, name, positive):
    """Return whether each row is the event, and what that is called."""
    missing = np.fromiter((value is None or value != value for value in column.tolist()), bool, len(column))
    if missing.any():
        raise ReportError(f"column {name!r}: row {int(missing.argmax())} has no label. {_COUNTING}")
    present = sorted(set(column.tolist()), key=str)
    shown = ", ".join(str(value) for value in present[:6]) + ", ..." * (len(present) > 6)
    if positive is None:
        numbers = {value: float(value) for value in present if isinstance(value, (bool, int, float))}
        if len(numbers) < len(present) or not (
            set(numbers.values()) <= {0.0, 1.0} or set(numbers.values()) == {-1.0, 1.0}
        ):
            raise ReportError(f"column {name!r} holds {shown}: say with --positive which label is the event.")
        return column == 1, str(next((value for value in present if value == 1), 1))
    matching = [value for value in present if _is_same(value, positive)]
    if not matching:
        raise ReportError(f"column {name!r} has no label {positive!r}; it holds {shown}.")
    return np.fromiter((value in matching for value in column.tolist()), bool, len(column)), positive


def _is_same(value, text):
    """Return whether a label is what the user typed: ``1`` is 1.0 as well."""
    if str(value) == text:
        return True
    if isinstance(value, bool):
        return text.lower() in (("true", "1", "yes") if value else ("false", "0", "no"))
    try:
        return not isinstance(value, str) and float(value) == float(text)
    except ValueError:
        return False


def _segments(column, name):
    segments = np.array(["(missing)" if value is None or value != value else str(value) for value in column.tolist()])
    n_segments = len(np.unique(segments))
    if n_segments > _MOST_SEGMENTS:
        raise ReportError(
            f"column {name!r} has {n_segments} different values; a report takes at most {_MOST_SEGMENTS} segments."
        )
    return segments
