"""Checks of a file's columns, whose errors name the column and the row."""

import re
from datetime import date
from pathlib import Path

import numpy as np

from skcalib._report._models import is_same
from skcalib._report._reader import ReportError

_FEWEST_ROWS = 10
_MOST_SEGMENTS = 500
_FEW_CLUSTERS = 20
_ID_WORDS = (
    "id|ids|uuid|guid|key|patient|subject|person|participant|user|customer|client|candidate|applicant|borrower|debtor|"
    "account|household|student|player|team|match|game|device|machine|site|hospital|centre|center|session|visit|"
    "question|document|doc|url"
)
_ID = re.compile(rf"(?i:(?:.*[\W_])?(?:{_ID_WORDS})(?:[\W_]*(?:id|no|nr|number|name|code))?)|.*[a-z]I[dD]")
COUNTING = "Rows are counted from 0, the header not included."


def modified_on(path):
    """Return the day on which a file was written last, as YYYY-MM-DD; None for many files and for a pipe."""
    return date.fromtimestamp(Path(path).stat().st_mtime).isoformat() if Path(path).is_file() else None


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
        raise ReportError(f"column {column_name!r}: {message} {COUNTING}") from error


def refuse_missing(column, name, what):
    """Refuse a column in which a value is missing."""
    missing = np.fromiter((value is None or value != value for value in column.tolist()), bool, len(column))
    if missing.any():
        raise ReportError(f"column {name!r}: row {int(missing.argmax())} has no {what}. {COUNTING}")


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


def identifiers(header, used):
    """Return the columns that are not used and look by their names as if they told to whom a row belongs."""
    return [name for name in header if name not in used and _ID.fullmatch(name)]


def repeats_note(column, name):
    """Return a sentence on a column that tells whose a row is where rows share its values; else None."""
    n_rows, n_values = len(column), _n_values(column)
    if not _FEW_CLUSTERS <= n_values <= 0.9 * n_rows:
        return None
    return (
        f"The column {name} repeats ({n_values:,} values in {n_rows:,} rows). If rows of one value depend on each "
        f"other, the intervals are too short and the p-values too small: say --cluster {name}."
    )


def cluster_column(column, name, notes):
    """Return the cluster of each row, text where it is no number; None, and a note, where no two rows share one."""
    refuse_missing(column, name, "cluster")
    if column.dtype.kind == "O":
        column = np.array([str(value) for value in column.tolist()])
    n_clusters = _n_values(column)
    if n_clusters == 1:
        raise ReportError(
            f"column {name!r} has one value, {column[0]!s}: how clusters differ cannot be seen. Leave --cluster out."
        )
    if n_clusters == len(column):
        notes.append(f"Each row has its own value of {name}, so that all rows are independent.")
        return None
    notes.append(
        f"Intervals and tests allow for rows of one {name} that depend on each other ({n_clusters:,} clusters)."
    )
    if n_clusters < _FEW_CLUSTERS:
        notes.append("So few clusters say little about how much they differ: the intervals are rough.")
    return column


def _n_values(column):
    return len(set(column.tolist())) if column.dtype.kind == "O" else len(np.unique(column))
