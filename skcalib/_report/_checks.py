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
    """Return the list of distinct values of a column, and the position of each row's
    value in it, (n_rows,), -1 if it is missing.

    With the `name` of the column, raise for a missing value; `what` says in the message
    what the row lacks.
    """
    import pandas as pd

    places, values = pd.factorize(column)
    if name is not None and (places < 0).any():
        raise ReportError(
            f"column {name!r}: row {int(places.argmin())} has no {what}. {COUNTING}"
        )
    return values.tolist(), places


def checked_column(column_name, check, *args, **kwargs):
    """Return ``check(*args, **kwargs)``; its error becomes a `ReportError` that names
    the column.
    """
    try:
        return check(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise ReportError(f"column {column_name!r}: {error} {COUNTING}") from error


def events(column, name, positive):
    """Return whether each row is the event, (n_rows,), and the name of the event.

    `column` holds labels, `name` is the name of the column, and `positive` the label
    that the user gave, or None.
    """
    values, places = distinct(column, name, what="label")
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
        # The event as the file has it: 1, 1.0 or True.
        event = next((value for value in present if value == 1), 1)
        return column == 1, str(event)
    matching = np.array([is_same(value, positive) for value in values])
    if not matching.any():
        raise ReportError(
            f"column {name!r} has no label {positive!r}; it contains {shown(present)}."
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
        return False  # one number is written in two ways
    return numbers <= {0.0, 1.0} or numbers == {-1.0, 1.0}


def class_codes(column, name, classes):
    """Return the position (n_rows,) of each row's label among the classes, or raise."""
    values, places = distinct(column, name, what="label")
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
            f" not one of the classes {shown(classes)}. Name the classes with"
            f" --classes, in the order of the score columns. {COUNTING}"
        )
    return codes[places]


def rescaled(scores, columns):
    """Return scores (n, K) divided by the sums of their rows, and how far the worst of
    these sums is off 1.

    Numbers that were rounded for a file need not sum to 1. Raise if a sum is off by
    more than that; `columns` are the names of the columns, for the message.
    """
    total = scores.sum(axis=1, dtype=np.float64)
    off = np.abs(total - 1)
    row = int(off.argmax())
    if off[row] > _ROUNDED:
        raise ReportError(
            f"columns {shown(columns)}: row {row} sums to {total[row]:.6g}, but the"
            f" probabilities of a row must sum to 1. {COUNTING}"
        )
    total[off <= _EXACT] = 1  # off by the rounding of sums only: keep these scores
    return scores / total[:, None], float(off[row])


def is_same(value, text):
    """Return whether a label is what the user typed: ``1`` may be 1, 1.0 or True."""
    if str(value) == text:
        return True
    if isinstance(value, bool):
        spellings = ("true", "1", "yes") if value else ("false", "0", "no")
        return text.lower() in spellings
    try:
        return not isinstance(value, str) and float(value) == float(text)
    except ValueError:
        return False


def segment_columns(columns, names, notes):
    """Return the segment of each row as text, (n_rows,), by column; with several
    columns also by their crossing, which comes last.

    With one column its values are the names of segments; with several the name of the
    column is put before them. A crossing of too many segments is left out, with a note.
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
    """Return the value of each row in a column as text, "(missing)" for none."""
    values, places = distinct(column)
    names = list(map(str, values))
    if (places < 0).any():
        names.append("(missing)")
    if len(names) > _MOST_SEGMENTS:
        raise ReportError(
            f"column {name!r} has {len(names)} different values; a report has at most"
            f" {_MOST_SEGMENTS} segments."
        )
    return np.array(names)[places]


def identifiers(header, used):
    """Return the columns that are not used and whose names look like those of ids, such
    as "patient_id".
    """
    return [name for name in header if name not in used and _ID.fullmatch(name)]


def repeats(column):
    """Return whether a column of ids has values that many rows share: it may hold
    clusters.

    With fewer than 20 values it holds categories rather than ids; with more than .9
    values per row nearly each row has its own.
    """
    values, _ = distinct(column)
    return _FEW_CLUSTERS <= len(values) <= 0.9 * len(column)


def repeats_note(column, name):
    """Return a note on a column of ids that repeats."""
    values, _ = distinct(column)
    n_values = len(values)
    return (
        f"The column {name} repeats ({n_values:,} values in {len(column):,} rows). If"
        " rows of one value depend on each other, the intervals are too short and the"
        f" p-values too small: say --cluster {name}."
    )


def cluster_column(column, name, notes):
    """Return the cluster of each row, (n_rows,), as a number or text; None if no two
    rows share one. A note on the clusters is appended to `notes`.
    """
    values, places = distinct(column, name, what="cluster")
    if len(values) == 1:
        raise ReportError(
            f"column {name!r} has one value, {column[0]!s}: the variation between"
            " clusters cannot be estimated. Omit --cluster."
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
    # Objects of several types have no order: as text they have.
    texts = np.array([str(value) for value in values])
    return texts[places]
