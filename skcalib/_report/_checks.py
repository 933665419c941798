"""Checks of a file's columns, whose errors name the column and the row."""

import re

import numpy as np

from skcalib._report._models import shown
from skcalib._report._reader import ReportError

_MOST_SEGMENTS = 500
_FEW_CLUSTERS = 20
_EXACT = 1e-9  # how far a row's sum may be off by the rounding of sums
# how far a row's sum may be off where the scores of a file were rounded
_ROUNDED = 0.01
_ID_WORDS = (
    "id|ids|uuid|guid|key|patient|subject|person|participant|user|customer|client|candidate|applicant|borrower|debtor|"
    "account|household|student|player|team|match|game|device|machine|site|hospital|centre|center|session|visit|"
    "question|document|doc|url"
)
_ID = re.compile(
    rf"(?i:(?:.*[\W_])?(?:{_ID_WORDS})(?:[\W_]*(?:id|no|nr|number|name|code))?)|.*[a-z]I[dD]"
)
COUNTING = "Rows are counted from 0, the header not included."


def distinct(column, name=None, what=""):
    """Return the distinct values of a column, and the place of each row's among them:
    -1 where it is missing.

    With the `name` of the column a row without a value is refused, which has no `what`.
    """
    import pandas as pd

    places, values = pd.factorize(column)
    if name is not None and (places < 0).any():
        raise ReportError(
            f"column {name!r}: row {int(places.argmin())} has no {what}. {COUNTING}"
        )
    return values.tolist(), places


def checked_column(column_name, check, *args, **kwargs):
    """Return what a check of the library returns, its error as one about a column.

    `column_name` is for the message; the check gets the other arguments.
    """
    try:
        return check(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise ReportError(f"column {column_name!r}: {error} {COUNTING}") from error


def events(column, name, positive):
    """Return whether each row is the event, and what that is called."""
    values, places = distinct(column, name, "label")
    present = sorted(values, key=str)
    if positive is None:
        if not _are_two_numbers(present):
            several = ""
            if len(present) > 2:
                several = " Or give one score column a class: --score 'p_*'."
            raise ReportError(
                f"column {name!r} holds {shown(present)}: say with --positive which"
                f" label is the event.{several}"
            )
        # as it is written in the file: 1, 1.0 or True
        event = next((value for value in present if value == 1), 1)
        return column == 1, str(event)
    matching = np.array([is_same(value, positive) for value in values])
    if not matching.any():
        raise ReportError(
            f"column {name!r} has no label {positive!r}; it holds {shown(present)}."
        )
    return matching[places], positive


def _are_two_numbers(labels):
    """Return whether labels are numbers of which 1 is the event: 0 and 1, or -1 and
    1.
    """
    if not all(isinstance(label, (bool, int, float)) for label in labels):
        return False
    numbers = {float(label) for label in labels}
    if len(numbers) < len(labels):
        return False
    return numbers <= {0.0, 1.0} or numbers == {-1.0, 1.0}


def class_codes(column, name, classes):
    """Return the position of each row's label among the classes."""
    values, places = distinct(column, name, "label")
    codes = np.full(len(values), -1)
    for number, value in enumerate(values):
        for k, text in enumerate(classes):
            if is_same(value, text):
                codes[number] = k
                break
    if -1 in codes:
        row = int(np.argmin(codes[places]))
        raise ReportError(
            f"column {name!r}: row {row} has the label {str(column[row])!r}, which is"
            f" none of the classes {shown(classes)}. Name the classes with --classes,"
            f" in the order of the score columns. {COUNTING}"
        )
    return codes[places]


def rescaled(scores, columns):
    """Return scores (n, K) whose rows sum to 1, and how far the worst row was off:
    rounded numbers are made up for.
    """
    total = scores.sum(axis=1, dtype=np.float64)
    off = np.abs(total - 1)
    row = int(off.argmax())
    if off[row] > _ROUNDED:
        raise ReportError(
            f"columns {shown(columns)}: row {row} sums to {total[row]:.6g}, but the"
            f" probabilities of a row must sum to 1. {COUNTING}"
        )
    total[off <= _EXACT] = 1
    return scores / total[:, None], float(off[row])


def is_same(value, text):
    """Return whether a label is what the user typed: ``1`` is 1.0 as well."""
    if str(value) == text:
        return True
    if isinstance(value, bool):
        return text.lower() in (("true", "1", "yes") if value else ("false", "0", "no"))
    try:
        return not isinstance(value, str) and float(value) == float(text)
    except ValueError:
        return False


def segment_columns(columns, names, notes):
    """Return the segment of each row as text, by column; of several columns also by
    their crossing.

    The segments of one column have its values as names, those of several have the
    column before them. A crossing of too many segments is left out, with a note.
    """
    if len(names) < 2:
        return {name: _segment_names(columns[name], name) for name in names}
    segments = {}
    for name in names:
        texts = _segment_names(columns[name], name).astype(str)
        segments[name] = np.char.add(f"{name} = ", texts)
    crossing, *others = segments.values()
    for texts in others:
        crossing = np.char.add(np.char.add(crossing, ", "), texts)
    n_segments = len(np.unique(crossing))
    if n_segments > _MOST_SEGMENTS:
        notes.append(
            f"The crossing of {', '.join(names)} has {n_segments:,} segments and is"
            f" left out: a report takes at most {_MOST_SEGMENTS}."
        )
        return segments
    return {**segments, " × ".join(names): crossing}


def _segment_names(column, name):
    """Return the segment of each row as text."""
    values, places = distinct(column)
    names = list(map(str, values))
    if (places < 0).any():
        names.append("(missing)")
    if len(names) > _MOST_SEGMENTS:
        raise ReportError(
            f"column {name!r} has {len(names)} different values; a report takes at most"
            f" {_MOST_SEGMENTS} segments."
        )
    return np.array(names)[places]


def identifiers(header, used):
    """Return the columns that are not used and look by their names as if they told to
    whom a row belongs.
    """
    return [name for name in header if name not in used and _ID.fullmatch(name)]


def repeats(column):
    """Return whether a column that tells whose a row is has values that many rows
    share.
    """
    n_values = len(distinct(column)[0])
    return _FEW_CLUSTERS <= n_values <= 0.9 * len(column)


def repeats_note(column, name):
    """Return a sentence on a column that tells whose a row is and that repeats."""
    n_values = len(distinct(column)[0])
    return (
        f"The column {name} repeats ({n_values:,} values in {len(column):,} rows). If"
        " rows of one value depend on each other, the intervals are too short and the"
        f" p-values too small: say --cluster {name}."
    )


def cluster_column(column, name, notes):
    """Return the cluster of each row, text where it is no number; None, and a note,
    where no two rows share one.
    """
    values, places = distinct(column, name, "cluster")
    if len(values) == 1:
        raise ReportError(
            f"column {name!r} has one value, {column[0]!s}: how clusters differ cannot"
            " be seen. Leave --cluster out."
        )
    if len(values) == len(column):
        notes.append(
            f"Each row has its own value of {name}, so that all rows are independent."
        )
        return None
    notes.append(
        f"Intervals and tests allow for rows of one {name} that depend on each other"
        f" ({len(values):,} clusters)."
    )
    if len(values) < _FEW_CLUSTERS:
        notes.append(
            "So few clusters say little about how much they differ: the intervals are"
            " rough."
        )
    if column.dtype.kind != "O":
        return column
    texts = np.array([str(value) for value in values])
    return texts[places]
