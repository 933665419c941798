"""The columns of a prediction table as expressions: score, label, weight, segments, and which rows are valid."""

from copy import copy
from typing import NamedTuple

import numpy as np

from skcalib._input.scalars import check_option
from skcalib.engines._native import fetched, hidden_nan, narwhals, numbered, wrapped
from skcalib.engines._segments import Segments, table_changed

_REASONS = ("missing", "score", "label", "weight")
_TYPES = ((bool | np.bool_, "is_boolean"), (str, "is_text"), (int | float | np.number, "is_numeric"))


class PredictionColumns:
    """Expressions on a frame: `score` and `weight` as float64, `label` as 0 or 1.

    A missing value is NULL or NaN; a label that is neither event nor non-event is another number. `own` names a column
    of the frame that is not the user's.
    """

    def __init__(self, frame, score, label, weight, by, on_invalid, own=None):
        check_option(on_invalid, "on_invalid", ("raise", "drop"))
        self.frame, self.score, self.label, self.weight = frame, score, label, weight
        self.by, self.on_invalid, self.own = by, on_invalid, own
        self.event = None  # the label's column and the label that a user named

    @classmethod
    def from_names(cls, data, *, label, score, weight, by, pos_label, on_invalid):
        """Check names and types, and return the expressions."""
        nw, frame = narwhals(), wrapped(data)
        by = names_of("by", by)
        names = {"label": label, "score": score} | ({} if weight is None else {"weight": weight})
        schema = check_names(frame, [*names.items(), *(("by", name) for name in by)])
        for what in ("score", "weight"):
            if what in names and not schema[names[what]].is_numeric():
                raise ValueError(f"{what} must be a column of numbers, but {names[what]!r} is {schema[names[what]]}.")
        columns = cls(
            frame,
            nw.col(score).cast(nw.Float64),
            _event(schema[label], label, pos_label),
            None if weight is None else nw.col(weight).cast(nw.Float64),
            by,
            on_invalid,
        )
        columns.event = None if pos_label is None else (label, pos_label)
        return columns

    def rows(self):
        """Return the rows that count, and how they name segments: numbers that are made anew for each job."""
        nw = narwhals()
        valid = self._is_valid_score & self._is_valid_label
        if self.weight is not None:
            valid = valid & self._is_valid_weight & (self.weight > 0)
        own = {"score": self.score, "label": self.label.cast(nw.Int8)}
        own |= {} if self.weight is None else {"weight": self.weight}
        keys = self.keys("")
        rows = self.frame.lazy().filter(valid).select(**own, **keys)
        return ValidRows(rows, list(keys), self.segments(keys))

    def segments(self, keys):
        """Return the segments of all rows, which are read faster than the valid ones alone."""
        try:
            return Segments.of(self.frame.lazy().select(**keys), list(keys)) if keys else Segments([], [], [])
        except (TypeError, NotImplementedError) as error:  # values that are lists, types that Arrow does not know
            raise ValueError(f"by={self.by!r}: its values cannot name segments, cast them to text. {error}") from error

    def keys(self, prefix):
        """Return the columns of segments as expressions, by names of ours."""
        return {f"{prefix}by{position}": self._key(name) for position, name in enumerate(self.by)}

    def pooled(self):
        """Return the same columns without segments."""
        columns = copy(self)
        columns.by = []
        return columns

    @property
    def names(self):
        """Names of the user's columns."""
        return [name for name in self.frame.collect_schema().names() if name != self.own]

    def check_rows(self, sums):
        """Refuse invalid rows, which are looked for only where fewer rows were used than there are."""
        n_used = int(sums["count"].sum())
        self._check_events(sums)
        if self.on_invalid == "drop":
            return
        if n_used == int(fetched(self.frame.lazy().select(narwhals().len().alias("n")))["n"][0]):
            return
        counts = self._rows_by_reason()
        if any(counts[name] for name in _REASONS):
            shown = ", ".join(f"{counts[name]} ({name})" for name in _REASONS if counts[name])
            raise ValueError(
                f"The table has invalid rows: {shown}. See invalid_rows(); on_invalid='drop' leaves them out."
            )
        if counts["used"] != n_used:
            raise table_changed()

    def _check_events(self, sums):
        """Refuse a `pos_label` that does not occur, and sums that are no floats."""
        with np.errstate(over="ignore"):
            is_too_large = any(np.isinf(values.sum()) for values in sums.values())
        if is_too_large:
            raise ValueError("weight is too large: its sums are infinite. Divide the weights by a number.")
        if self.event is None or not len(sums["count"]) or np.any(sums.get("label", sums.get("weighted_label")) > 0):
            return
        name, pos_label = self.event
        labels, _ = numbered(self.frame.lazy().select(name), name)
        shown = ", ".join(map(repr, labels[:10])) + ", ..." * (len(labels) > 10)
        raise ValueError(f"pos_label={pos_label!r} does not occur in the column {name!r}, whose labels are {shown}.")

    def invalid_rows(self):
        """Return the number of invalid rows by reason."""
        counts = self._rows_by_reason()
        return {name: counts[name] for name in _REASONS}

    def _rows_by_reason(self):
        """Return the same with the number of rows that are used and of those whose weight is 0."""
        nw = narwhals()
        reason = nw.lit(0)
        if self.weight is not None:
            reason = nw.when(self.weight == 0).then(nw.lit(5)).otherwise(reason)
            reason = nw.when(~self._is_valid_weight).then(nw.lit(4)).otherwise(reason)
        reason = nw.when(~self._is_valid_label).then(nw.lit(3)).otherwise(reason)
        reason = nw.when(~self._is_valid_score).then(nw.lit(2)).otherwise(reason)
        columns = [self.score, self.label.cast(nw.Float64)] + ([] if self.weight is None else [self.weight])
        missing = columns[0].is_null() | columns[0].is_nan()
        for column in columns[1:]:
            missing = missing | column.is_null() | column.is_nan()
        reason = nw.when(missing).then(nw.lit(1)).otherwise(reason)
        columns = [column.alias(f"value{i}") for i, column in enumerate(columns)]
        frame = self.frame.lazy().select(reason.alias("reason"), *columns)
        sums = [nw.col(f"value{i}").sum().alias(f"value{i}") for i in range(len(columns))]
        result = fetched(frame.group_by("reason").agg(nw.len().alias("n"), *sums))
        valid = result["reason"] == 0
        check_no_hidden_nan(*(result[f"value{i}"][valid] for i in range(len(columns))))
        counts = dict(zip(result["reason"].tolist(), result["n"].tolist(), strict=True))
        return {name: counts.get(code, 0) for code, name in enumerate(("used", *_REASONS, "no weight"))}

    @property
    def _is_valid_score(self):
        return (self.score >= 0) & (self.score <= 1)

    @property
    def _is_valid_label(self):
        return (self.label == 0) | (self.label == 1)

    @property
    def _is_valid_weight(self):
        return (self.weight >= 0) & (self.weight < float("inf"))

    def _key(self, name):
        """Return a segment column in which a missing value is NULL, -0.0 is 0.0, and categories are text."""
        nw = narwhals()
        column, dtype = nw.col(name), self.frame.collect_schema()[name]
        if dtype.is_float():
            return nw.when(~column.is_nan()).then(nw.when(column != 0).then(column).otherwise(nw.lit(0.0).cast(dtype)))
        if dtype.is_nested() or dtype == nw.Binary or (dtype == nw.Unknown and self._has_values(name)):
            raise ValueError(
                f"by={name!r} is a column of {dtype}, whose values cannot name segments: cast it to text first."
            )
        if dtype == nw.Unknown:
            return nw.when(~column.is_null()).then(nw.lit(""))  # a column without a type, and all of it NULL
        return column.cast(nw.String) if dtype in (nw.Categorical, nw.Enum) else column

    def _has_values(self, name):
        n_values = (~narwhals().col(name).is_null()).cast(narwhals().Int64).sum()
        return fetched(self.frame.lazy().select(n_values.alias("n")))["n"][0] > 0


class ValidRows(NamedTuple):
    """The rows that count: a lazy frame of `score`, `label`, `weight` and the columns of segments.

    Parameters
    ----------
    frame : narwhals LazyFrame
        The rows.
    keys : list of str
        The columns of segments.
    segments : Segments
        Their values. What is grouped by the keys gets numbers once it is small: to join all rows takes longer.
    """

    frame: object
    keys: list
    segments: Segments


def free_name(names):
    """Return a name that none of the names begins with, whatever their case: databases do not tell it apart."""
    name = "skcalib"
    while any(other.lower().startswith(name) for other in names):
        name += "_"
    return name


def names_of(what, names):
    """Return the list of names that a user gave as None, a name or several."""
    names = [] if names is None else [names] if isinstance(names, str) else names
    if not isinstance(names, list | tuple):
        raise TypeError(f"{what} must be the name of a column or a list of names, found {names!r}.")
    return list(names)


def check_value(what, value, name, dtype):
    """Refuse a value that a column of this type cannot hold: some engines fail there, others find no row."""
    nw = narwhals()
    kinds = {"is_boolean": dtype == nw.Boolean, "is_text": dtype in (nw.String, nw.Categorical, nw.Enum)}
    kinds["is_numeric"] = dtype.is_numeric()
    expected = next((kind for types, kind in _TYPES if isinstance(value, types)), None)
    # A moment may be known by its text: see `numbered`.
    is_known = any(kinds.values()) or (expected != "is_text" and dtype.is_temporal())
    if is_known and expected is not None and not kinds[expected]:
        raise ValueError(f"{what}={value!r} is no value of the column {name!r}, which is {dtype}.")


def check_names(frame, names):
    """Return the schema of a frame that has all columns; `names` are pairs of what a column is for and its name."""
    schema = frame.collect_schema()
    for what, name in names:
        if name not in schema:
            shown = ", ".join(list(schema)[:12]) + ", ..." * (len(schema) > 12)
            raise ValueError(f"{what}={name!r} is not a column of the table; its columns are {shown}.")
    return schema


def check_no_hidden_nan(*sums):
    """Refuse a table whose engine does not find the NaN that it holds."""
    if any(np.isnan(values).any() for values in sums):
        raise hidden_nan()


def _event(dtype, name, pos_label):
    """Return the label as 1 for the event and 0 for all else."""
    nw = narwhals()
    label = nw.col(name)
    if pos_label is None:
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(
                f"label must be 0 and 1 or booleans, but {name!r} is {dtype}: say with pos_label= which label is the "
                "event."
            )
        # Comparing integers as they are is quicker.
        return label if dtype.is_integer() else label.cast(nw.Float64)
    check_value("pos_label", pos_label, name, dtype)
    if isinstance(pos_label, float) and pos_label != pos_label:
        raise ValueError(f"pos_label=nan equals no label of the column {name!r}: missing labels are invalid rows.")
    present = ~label.is_null() & ~label.is_nan() if dtype.is_float() else ~label.is_null()
    return nw.when(present).then((label == nw.lit(pos_label)).cast(nw.Float64))
