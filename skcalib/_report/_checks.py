"""Checks of a file's columns, whose errors name the column and the row."""

import numpy as np

from skcalib._input.classes import refuse_look_alikes, with_counts
from skcalib._report._columns import is_identifier, shown
from skcalib._report._error import ReportError

_MOST_SEGMENTS = 500
_FEW_CLUSTERS = 20
_EXACT = 1e-9  # how far a row's sum may be off by the rounding of sums
# how far a row's sum may be off where the scores of a file were rounded
_ROUNDED = 0.01
COUNTING = "Rows are counted from 0, without the header."


def distinct(column, name=None, what=""):
    """Return the distinct values of a column, a list, and the position of each row's
    value in this list, (n_rows,), which is -1 where the value is missing.

    With the `name` of the column, raise for a missing value; `what` says in the message
    what the row lacks, such as "label".
    """
    import pandas as pd

    positions, values = pd.factorize(column)
    if name is not None and (positions < 0).any():
        row = int(positions.argmin())
        raise ReportError(
            f"column {name!r}: row {row} has no {what}: to leave out such rows, give"
            f" --missing drop. {COUNTING}"
        )
    return values.tolist(), positions


def checked_column(column_name, check, *args, **kwargs):
    """Return ``check(*args, **kwargs)``; its error becomes a `ReportError` that names
    the column.
    """
    try:
        return check(*args, **kwargs)
    except (TypeError, ValueError) as error:
        raise ReportError(f"column {column_name!r}: {error} {COUNTING}") from error


def events(column, name, positive, negative=None):
    """Return whether each row is the event, (n_rows,), the label of the event as text,
    and which rows have a label of neither event nor non-event, (n_rows,).

    `column` holds labels and `name` is its name; `positive` is the label that the user
    calls the event, as text, and `negative` the other one. None means the labels 1 and
    0, or that there are only two labels.
    """
    values, positions = distinct(column, name, what="label")
    counts = np.bincount(positions, minlength=len(values)).tolist()
    order = sorted(range(len(values)), key=lambda k: str(values[k]))
    present = [values[k] for k in order]
    found = with_counts(values, counts)
    if positive is None:
        if negative is not None:
            raise ReportError(
                f"--negative {negative} names the label of the non-events: also name"
                " that of the event with --positive."
            )
        _refuse_probabilities(values, counts, name)
        _refuse_look_alikes(values, counts, name)
        if not _is_one_the_event(present):
            several = ""
            if len(present) > 2:
                several = (
                    " To leave out rows with other labels, use --negative. Or give one"
                    " score column per class: --score 'p_*'."
                )
                if {str(value) for value in values} in ({"-1", "0", "1"},):
                    several = (
                        " If -1 marks rows without a label, --positive 1 --negative 0"
                        " leaves them out."
                    )
            raise ReportError(
                f"column {name!r} holds {found}: say with --positive which label is the"
                f" event.{several}"
            )
        # The label of the event as it is written in the file: 1, 1.0 or True.
        event = next((value for value in present if value == 1), 1)
        return column == 1, str(event), np.zeros(len(column), dtype=bool)
    is_positive = _matching(values, positive, name, found)
    if negative is None:
        _refuse_look_alikes(values, counts, name)
        if len(values) > 2:
            raise ReportError(
                f"column {name!r} holds {found}: say with --negative which label is the"
                " non-event; rows with other labels are then left out."
            )
        is_left_out = np.zeros(len(values), dtype=bool)
    else:
        is_negative = _matching(values, negative, name, found)
        if np.any(is_positive & is_negative):
            raise ReportError(
                f"--positive {positive} and --negative {negative} are the same label."
            )
        is_left_out = ~(is_positive | is_negative)
    return is_positive[positions], positive, is_left_out[positions]


def _refuse_look_alikes(values, counts, name):
    """Raise for labels of the column `name` that differ only in case or in blanks."""
    try:
        refuse_look_alikes(values, counts, f"column {name!r}")
    except ValueError as error:
        raise ReportError(
            f"{error} If they differ, name both with --positive and --negative."
        ) from error


def _refuse_probabilities(values, counts, name):
    """Raise if the distinct labels of the column are numbers in [0, 1], some strictly
    between. `counts` are the rows of each.
    """
    if not all(isinstance(value, (int, float)) for value in values):
        return
    between = [value for value in values if 0 < value < 1]
    n_between = sum(
        count for value, count in zip(values, counts, strict=True) if 0 < value < 1
    )
    if n_between == 1 and {0, 1} <= set(values):
        raise ReportError(
            f"column {name!r} holds {between[0]:.6g} in one row, but only 0 and 1"
            " in the others: if that row is the mean of the others, remove it."
        )
    if between and min(values) >= 0 and max(values) <= 1:
        raise ReportError(
            f"column {name!r} holds probabilities such as {between[0]:.6g}, not labels:"
            " --label names the column of labels and --score that of probabilities. For"
            " labels that are distributions, use skcalib.expand_soft_labels first."
        )


def _matching(values, text, name, found):
    """Return which distinct labels are the one that the user typed, booleans; raise if
    none is. `found` shows all labels.
    """
    # The label itself, if it is there, or other spellings of a number or a boolean.
    matching = np.array([str(value) == text for value in values])
    if not matching.any():
        matching = np.array([is_same(value, text) for value in values])
    if not matching.any():
        alike = [
            str(value)
            for value in values
            if str(value).strip().casefold() == text.strip().casefold()
        ]
        hint = f" Did you mean {alike[0]!r}?" if alike else ""
        raise ReportError(
            f"column {name!r} has no label {text!r}; it contains {found}.{hint}"
        )
    return matching


def left_out_notes(column, name, is_left_out):
    """Return a list with the note for the page on rows whose label is neither that of
    the event nor that of the non-events; an empty one if there are none.
    """
    if not is_left_out.any():
        return []
    values, positions = distinct(column[is_left_out])
    counts = np.bincount(positions, minlength=len(values)).tolist()
    n_rows = int(np.count_nonzero(is_left_out))
    rows = f"{n_rows:,} rows are" if n_rows > 1 else "1 row is"
    return [
        f"{rows} left out because of other labels in {name!r}:"
        f" {with_counts(values, counts)}."
    ]


def _is_one_the_event(labels):
    """Return whether the label 1 can only be the event: among 0 and 1, or -1 and 1, as
    numbers or booleans.
    """
    if not all(isinstance(label, (bool, int, float)) for label in labels):
        return False
    numbers = {float(label) for label in labels}
    if len(numbers) < len(labels):
        return False  # one number is written in two ways, as 1 and True
    return numbers <= {0.0, 1.0} or numbers == {-1.0, 1.0}


def class_codes(column, name, classes):
    """Return the position of each row's label among the classes, (n_rows,). Raise for
    another label; `name` is the name of the column.
    """
    values, positions = distinct(column, name, what="label")
    codes = np.full(len(values), -1)  # by distinct value; -1 is no class
    for number, value in enumerate(values):
        for k, text in enumerate(classes):
            if is_same(value, text):
                codes[number] = k
                break
    if -1 in codes:
        row = int(np.argmin(codes[positions]))
        raise ReportError(
            f"column {name!r}: row {row} has the label {str(column[row])!r}, which is"
            f" not one of the classes {shown(classes)}. Name the classes with"
            f" --classes, in the order of the score columns. {COUNTING}"
        )
    return codes[positions]


def rescaled(scores, columns, normalise=False):
    """Divide probabilities (n, K) by the sums of their rows, which differ from 1 if the
    file holds rounded numbers. Return the result, (n, K), and the largest distance of a
    sum from 1.

    Raise if that is more than rounding explains, unless the user asks to `normalise`;
    `columns` are the names of the columns, for the message.
    """
    total = scores.sum(axis=1, dtype=np.float64)
    deviation = np.abs(total - 1)
    row = int(deviation.argmax())  # the worst one
    if deviation[row] > _ROUNDED and not normalise:
        remedy = ""
        if total.min() > 1 - _ROUNDED:
            remedy = (
                " A bookmaker's odds sum to more than 1 (the overround): --normalise"
                " divides each row by its sum."
            )
        raise ReportError(
            f"columns {shown(columns)}: row {row} sums to {total[row]:.6g}, but the"
            f" probabilities of a row must sum to 1.{remedy} {COUNTING}"
        )
    if total.min() <= 0:
        raise ReportError(
            f"columns {shown(columns)}: row {int(total.argmin())} sums to"
            f" {total.min():.6g}, so it cannot be normalised. {COUNTING}"
        )
    # A deviation within the precision of floats leaves the scores unchanged.
    total[deviation <= _EXACT] = 1
    return scores / total[:, None], float(deviation[row])


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
    """Return the segments by column: a dict from the name of a column to the segment of
    each row as text, (n_rows,).

    With one column the segments are its values, such as "f". With several they have the
    column's name before them, "sex = f", and a last entry combines all columns: its
    name is "sex × site", and its segments are such as "sex = f, site = 2". It is left
    out, with a note appended to `notes`, if there are too many combinations.

    `columns` is a dict of arrays (n_rows,), `names` are the columns of segments.
    """
    if len(names) < 2:
        return {name: _segment_names(columns[name], name) for name in names}
    segments = {}
    for name in names:
        texts = _segment_names(columns[name], name).astype(str)
        segments[name] = np.char.add(f"{name} = ", texts)
    combined, *others = segments.values()
    for texts in others:
        combined = np.char.add(np.char.add(combined, ", "), texts)
    n_segments = len(np.unique(combined))
    if n_segments > _MOST_SEGMENTS:
        notes.append(
            f"The combination of {', '.join(names)} has {n_segments:,} groups and is"
            f" left out: a report takes at most {_MOST_SEGMENTS}."
        )
        return segments
    return {**segments, " × ".join(names): combined}


def _segment_names(column, name):
    """Return each row's value as text (n_rows,), "(missing)" for a missing one; raise
    if too many are distinct.
    """
    values, positions = distinct(column)
    names = list(map(str, values))
    if (positions < 0).any():
        names.append("(missing)")  # at the position -1, the last one
    if len(names) > _MOST_SEGMENTS:
        raise ReportError(
            f"column {name!r} has {len(names)} different values; a report has at most"
            f" {_MOST_SEGMENTS} groups."
        )
    return np.array(names)[positions]


def identifiers(header, used):
    """Return the columns that are not used and whose names look like those of ids, such
    as "patient_id".
    """
    return [name for name in header if name not in used and is_identifier(name)]


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
        f"Values of the column {name} repeat ({n_values:,} values in {len(column):,}"
        " rows). If rows with the same value depend on each other, the intervals are"
        f" too short and the p-values too small: use --cluster {name}."
    )


def cluster_column(column, name, notes):
    """Return the cluster of each row, (n_rows,), as a number or text; None if no two
    rows share one. A note on the clusters is appended to `notes`.
    """
    values, positions = distinct(column, name, what="cluster")
    if len(values) == 1:
        raise ReportError(
            f"column {name!r} has one value, {column[0]!s}: the variation between"
            " clusters cannot be estimated. Omit --cluster."
        )
    if len(values) == len(column):
        notes.append(
            f"Each row has its own value of {name}, so all rows are treated as"
            " independent."
        )
        return None
    notes.append(
        f"Intervals and tests allow for dependence between rows with the same value of"
        f" {name} ({len(values):,} clusters)."
    )
    if len(values) < _FEW_CLUSTERS:
        notes.append(
            "With so few clusters, it is hard to tell how much they differ: the"
            " intervals are rough."
        )
    if column.dtype.kind != "O":
        return column
    # Objects of several types have no order: as text they have.
    texts = np.array([str(value) for value in values])
    return texts[positions]
