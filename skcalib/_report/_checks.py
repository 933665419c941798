"""Checks of a file's columns, whose errors name the column and the row."""

import numpy as np

from skcalib._report._models import is_same
from skcalib._report._reader import ReportError

_FEWEST_ROWS = 10
_MOST_SEGMENTS = 500
_COUNTING = "Rows are counted from 0, the header not included."


def refuse_few_rows(n_rows, source):
    """Refuse fewer rows than a report takes."""
    if n_rows < _FEWEST_ROWS:
        raise ReportError(f"{source} has {n_rows} rows; a report takes at least {_FEWEST_ROWS}.")


def checked_column(column_name, check, *args, **kwargs):
    """Return what a check of the library returns, its error as one about a column."""
    try:
        return check(*args, **kwargs)
    except (TypeError, ValueError) as error:
        message = " ".join(str(error).split())
        raise ReportError(f"column {column_name!r}: {message} {_COUNTING}") from error


def refuse_missing(column, name, what):
    """Refuse a column in which a value is missing."""
    missing = np.fromiter((value is None or value != value for value in column.tolist()), bool, len(column))
    if missing.any():
        raise ReportError(f"column {name!r}: row {int(missing.argmax())} has no {what}. {_COUNTING}")


def events(column, name, positive):
    """Return whether each row is the event, and what that is called."""
    refuse_missing(column, name, "label")
    present = sorted(set(column.tolist()), key=str)
    shown = ", ".join(str(value) for value in present[:6]) + ", ..." * (len(present) > 6)
    if positive is None:
        numbers = {value: float(value) for value in present if isinstance(value, (bool, int, float))}
        if len(numbers) < len(present) or not (
            set(numbers.values()) <= {0.0, 1.0} or set(numbers.values()) == {-1.0, 1.0}
        ):
            several = " Or give one score column a class: --score 'p_*'." if len(present) > 2 else ""
            raise ReportError(f"column {name!r} holds {shown}: say with --positive which label is the event.{several}")
        return column == 1, str(next((value for value in present if value == 1), 1))
    matching = [value for value in present if is_same(value, positive)]
    if not matching:
        raise ReportError(f"column {name!r} has no label {positive!r}; it holds {shown}.")
    return np.fromiter((value in matching for value in column.tolist()), bool, len(column)), positive


def segment_names(column, name):
    """Return the segment of each row as text."""
    segments = np.array(["(missing)" if value is None or value != value else str(value) for value in column.tolist()])
    refuse_many_segments(len(np.unique(segments)), name)
    return segments


def refuse_many_segments(n_segments, name):
    """Refuse more segments than a report takes."""
    if n_segments > _MOST_SEGMENTS:
        raise ReportError(
            f"column {name!r} has {n_segments} different values; a report takes at most {_MOST_SEGMENTS} segments."
        )
