"""The columns of a prediction table as expressions: score, label, weight, segments, and
which rows are valid.

K score columns become binary problems: is the predicted class right, or each class
against the rest.
"""

from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import add, and_, or_

import numpy as np

from skcalib._input.classes import (
    classes_of_names,
    refuse_look_alikes,
    with_counts,
)
from skcalib._input.labels import plain_labels
from skcalib._input.scalars import check_option
from skcalib.engines._native import fetched, hidden_nan, numbered, nw, wrapped

_REASONS = ("missing", "score", "label", "weight")
# How far a row sum may be off by rounding, in double and in single precision; the same
# as in metrics.
_ROUNDING, _ROUNDING_SINGLE = 1e-6, 1e-3
_INVALID = 2.0  # a score and a label that are none: such a row is counted as invalid
# What a Python value can be compared with: the first kind whose types it is an instance
# of. Booleans come first, since they are integers as well.
_KINDS = (
    (bool | np.bool_, "boolean"),
    (str, "text"),
    (int | float | np.number, "number"),
)


class PredictionColumns:
    """Score, label, weight and segments of a table as expressions of Narwhals.

    A missing value is NULL or NaN; a label that is neither event nor non-event is
    a number other than 0 and 1.

    Parameters
    ----------
    frame : narwhals DataFrame or LazyFrame
        The table.
    score, label : narwhals Expr
        The score as float64, and the label as 0 or 1.
    weight : str or None
        Column of the weights.
    by : list of str
        Columns whose values define the segments.
    on_invalid : {"raise", "drop"}
        What to do with rows that are not valid.
    added_column : str, default=None
        A column of `frame` that is not one of the user's.
    named_event : tuple of (str, object, object), default=None
        Column of the labels, the label of the event, and the other label or None, if
        the user named the event.
    """

    def __init__(
        self,
        frame,
        score,
        label,
        weight,
        by,
        on_invalid,
        added_column=None,
        named_event=None,
    ):
        check_option(on_invalid, "on_invalid", ("raise", "drop"))
        self.frame = frame
        self.score = score
        self.label = label
        self.weight = None if weight is None else nw.col(weight).cast(nw.Float64)
        self.by = by
        self.on_invalid = on_invalid
        self.added_column = added_column
        self.named_event = named_event
        self._labels_are_checked = False
        # The conditions that a valid row meets, by the reason that a row is invalid.
        self.valid = {
            "score": (score >= 0) & (score <= 1),
            "label": (label == 0) | (label == 1),
        }
        if weight is not None:
            self.valid["weight"] = (self.weight >= 0) & (self.weight < float("inf"))

    def rows(self):
        """Return a lazy frame of the valid rows of positive weight, the names of its
        key columns, and the `Segments`.

        The frame has the columns `score`, `label`, `weight` (if there are weights) and
        the keys by0, by1, ... The rows do not get the numbers of their segments, since
        joining all rows takes longer than joining the groups that are made of them.
        """
        keys = self.keys(prefix="")
        columns = {"score": self.score, "label": self.label.cast(nw.Int8), **keys}
        is_valid = reduce(and_, self.valid.values())
        if self.weight is not None:
            columns["weight"] = self.weight
            is_valid = is_valid & (self.weight > 0)
        valid_rows = self.frame.lazy().filter(is_valid).select(**columns)
        return valid_rows, list(keys), self.segments(keys)

    def segments(self, keys):
        """Return the `Segments` of the table's rows, valid or not: the combinations of
        values of the columns `keys`, a dict of expressions by name. To filter the rows
        first would take longer.
        """
        if not keys:
            return Segments(keys=[], values=[], tables=[])
        try:
            return Segments.of(self.frame.lazy().select(**keys), list(keys))
        except (TypeError, NotImplementedError) as error:
            # The values are lists, or of a type that Arrow does not know.
            raise ValueError(
                f"by={self.by!r}: its values cannot name groups: cast them to text."
                f" {error}"
            ) from error

    def keys(self, prefix):
        """Return the columns that define segments as a dict of expressions, whose names
        are by0, by1, ... after the prefix.
        """
        expressions = {}
        for position, name in enumerate(self.by):
            expressions[f"{prefix}by{position}"] = self._key(name)
        return expressions

    def pooled(self):
        """Return the columns of the same table without segments: all rows are one."""
        columns = copy(self)
        columns.by = []
        return columns

    @property
    def names(self):
        """Names of the user's columns."""
        names = self.frame.collect_schema().names()
        return [name for name in names if name != self.added_column]

    def check_rows(self, sums):
        """Raise if the table has invalid rows, except those with missing values that
        are to be dropped; raise as well for weights that are too large, and for an
        event that does not occur.

        The valid rows were summed in groups: `sums` holds arrays (n_groups,) by name,
        such as the number of rows `count`. Only if they count fewer rows than the table
        has are the invalid ones looked for.
        """
        self._check_labels()
        self._check_sums(sums)
        n_used = int(sums["count"].sum())
        n_rows = fetched(self.frame.lazy().select(nw.len().alias("n")))["n"][0]
        if n_used == n_rows:
            return
        counts = self._rows_by_reason()
        reasons = [name for name in _REASONS if counts[name] > 0]
        if self._has_other_label and "label" in reasons:
            reasons.remove("label")  # left out, as the user asked
        if self.on_invalid == "drop" and "missing" in reasons:
            reasons.remove("missing")
        if reasons:
            shown = ", ".join(f"{counts[name]} ({name})" for name in reasons)
            cures = ""
            if "score" in reasons:
                cures += " Scores must lie in [0, 1]: divide percentages by 100."
            if "label" in reasons:
                cures += (
                    " Labels must be 0 and 1; otherwise, name them, as with pos_label=."
                )
            if "missing" in reasons:
                cures += " on_invalid='drop' omits rows with missing values."
            raise ValueError(
                f"The table has invalid rows: {shown}. See invalid_rows().{cures}"
            )
        if counts["used"] != n_used:
            raise table_changed()

    @property
    def _has_other_label(self):
        """Whether the user named both labels: rows with further ones are left out."""
        return self.named_event is not None and self.named_event[2] is not None

    def _check_labels(self):
        """Raise for a `neg_label` that does not occur. If the user named only the label
        of the event, raise for more than two labels, and for labels that differ only in
        case or blanks.
        """
        if self.named_event is None or self._labels_are_checked:
            return
        name, pos_label, neg_label = self.named_event
        column = nw.col(name)
        present = _present(column, self.frame.collect_schema()[name])
        frame = self.frame.lazy().filter(present)
        if self.weight is not None:
            frame = frame.filter(self.weight > 0)
        frame = frame.select(name)
        labels, table = numbered(frame, name)
        if neg_label is not None:
            # A date or time may be given as text.
            if neg_label not in labels and str(neg_label) not in map(str, labels):
                counts = _counts_of_values(frame, table, name)
                raise ValueError(
                    f"neg_label={neg_label!r} does not occur in the column {name!r},"
                    f" whose labels are {with_counts(labels, counts)}."
                )
        elif pos_label in labels or str(pos_label) in map(str, labels):
            # An event that does not occur is refused in `_check_sums`.
            folded = {str(label).strip().casefold() for label in labels}
            if len(labels) > 2 or len(folded) < len(labels):
                counts = _counts_of_values(frame, table, name)
                what = f"the column {name!r}"
                refuse_look_alikes(labels, counts, what)
                raise ValueError(
                    f"{what} has {len(labels)} labels: {with_counts(labels, counts)}."
                    " Name the label of the non-events with neg_label=: rows that have"
                    f" neither it nor {pos_label!r} are then left out."
                )
        self._labels_are_checked = True

    def _check_sums(self, sums):
        """Refuse weights whose sums overflow, and a `pos_label` that does not occur.

        `sums` holds sums over groups of valid rows, arrays (n_groups,) by name.
        """
        with np.errstate(over="ignore"):
            is_too_large = any(np.isinf(values.sum()) for values in sums.values())
        if is_too_large:
            raise ValueError(
                "weight is too large: its sums are infinite. Divide the weights by a"
                " constant."
            )
        if self.named_event is None or len(sums["count"]) == 0:
            return
        if np.any(sums["weighted_label"] > 0):  # weights of events
            return
        name, pos_label, _ = self.named_event
        labels, _ = numbered(self.frame.lazy().select(name), name)
        shown = _first_few([repr(label) for label in labels], 10)
        raise ValueError(
            f"pos_label={pos_label!r} does not occur in the column {name!r}, whose"
            f" labels are {shown}."
        )

    def invalid_rows(self):
        """Return the number of invalid rows by reason."""
        self._check_labels()
        counts = self._rows_by_reason()
        return {name: counts[name] for name in _REASONS}

    def _rows_by_reason(self):
        """Return a dict with the number of rows that are "used", that are invalid for
        one of `_REASONS` (the first that applies), or that have "no weight", a weight
        of 0.
        """
        outcomes = ("used", *_REASONS, "no weight")
        code_of = {name: code for code, name in enumerate(outcomes)}
        values = {"score": self.score, "label": self.label.cast(nw.Float64)}

        # A row has the code of the first reason that applies: "missing", "score", ...
        # Each `when` overrides those before it, so that they are in reverse order.
        code = nw.lit(code_of["used"])
        if self.weight is not None:
            values["weight"] = self.weight
            without_weight = nw.lit(code_of["no weight"])
            code = nw.when(self.weight == 0).then(without_weight).otherwise(code)
        for name, is_valid in reversed(self.valid.items()):
            code = nw.when(~is_valid).then(nw.lit(code_of[name])).otherwise(code)
        is_missing = [value.is_null() | value.is_nan() for value in values.values()]
        missing = nw.lit(code_of["missing"])
        code = nw.when(reduce(or_, is_missing)).then(missing).otherwise(code)

        frame = self.frame.lazy().select(code.alias("code"), **values)
        sums = [nw.col(name).sum() for name in values]
        result = fetched(frame.group_by("code").agg(nw.len().alias("n"), *sums))
        is_used = result["code"] == code_of["used"]
        check_no_hidden_nan(*(result[name][is_used] for name in values))
        counts = dict(zip(result["code"].tolist(), result["n"].tolist(), strict=True))
        return {name: counts.get(code_of[name], 0) for name in outcomes}

    def _key(self, name):
        """Return the expression for a column that defines segments, in which values of
        one segment are equal: NaN is NULL, -0.0 is 0.0, and categories are text.
        """
        column = nw.col(name)
        dtype = self.frame.collect_schema()[name]
        if dtype.is_float():
            zero = nw.lit(0.0).cast(dtype)
            without_minus_zero = nw.when(column != 0).then(column).otherwise(zero)
            return nw.when(~column.is_nan()).then(without_minus_zero)
        is_unknown = dtype == nw.Unknown
        has_unknown_values = is_unknown and self._has_values(name)
        if dtype.is_nested() or dtype == nw.Binary or has_unknown_values:
            raise ValueError(
                f"by={name!r} is a column of {dtype}, whose values cannot name"
                " groups: cast it to text first."
            )
        if is_unknown:  # a column without a type, and all of it NULL
            return nw.when(~column.is_null()).then(nw.lit(""))
        if dtype in (nw.Categorical, nw.Enum):
            return column.cast(nw.String)
        return column

    def _has_values(self, name):
        """Return whether a column has a value that is not NULL."""
        n_values = (~nw.col(name).is_null()).cast(nw.Int64).sum()
        result = fetched(self.frame.lazy().select(n_values.alias("n")))
        return result["n"][0] > 0


def table_changed():
    """Return the error for rows of a later pass that are not those of an earlier
    one.
    """
    return ValueError(
        "The table changed between two passes, or groups do not compare equal: later"
        " rows are not those that were counted first. Use a table that stays as it is,"
        " and cast by= to text or integers."
    )


@dataclass(frozen=True)
class Segments:
    """The segments of a table: the combinations of one value for each of the columns
    that define segments. Each has a number.

    The number is that of `np.ravel_multi_index`: the position of the first column's
    value, times the number of values of the second column, plus the position of the
    second column's value, and so on.

    A value that went through Python need not compare equal to what the engine has
    (decimals, nanoseconds, time zones): values are for showing, numbers for joining.

    Parameters
    ----------
    keys : list of str
        The columns.
    values : list of list
        For each column its Python values in order, and None as the last one, which
        stands for NULL.
    tables : list of narwhals LazyFrame
        For each column its values in the engine beside their numbers.
    """

    keys: list
    values: list
    tables: list

    @classmethod
    def of(cls, frame, keys):
        """Return the `Segments` of a lazy frame whose columns `keys` define segments;
        the distinct values of each column are fetched.
        """
        values = []
        tables = []
        for key in keys:
            # `number_table` has each value, as the engine stores it, and its position
            # in `distinct_values`. NULL is in neither: None, the last, stands for it.
            distinct_values, number_table = numbered(frame, key)
            values.append([*distinct_values, None])
            tables.append(number_table)
        return cls(keys, values, tables)

    def attached(self, frame, name="segment"):
        """Return a lazy frame with the number of each row's segment as the column
        `name`, and without the key columns.

        The number is -1 if a value is none of the known ones, which can happen in
        another frame than the one from which the segments were made.
        """
        if not self.keys:
            return frame
        segment = nw.lit(0)
        for key, values, table in zip(self.keys, self.values, self.tables, strict=True):
            frame = _with_position(frame, key, len(values), table)
            # Positions are the digits of the number, the most significant first.
            position = nw.col(f"{key}_position")
            segment = (
                nw.when((segment >= 0) & (position >= 0))
                .then(segment * len(values) + position)
                .otherwise(nw.lit(-1))
            )
        # Groups by small integers are quicker.
        n_segments = np.prod([len(values) for values in self.values], dtype=float)
        integer = nw.Int32 if n_segments < 2**31 else nw.Int64
        frame = frame.with_columns(segment.cast(integer).alias(name))
        schema = frame.collect_schema()
        for key in self.keys:
            not_needed = [key, f"{key}_number", f"{key}_position"]
            frame = frame.drop([column for column in not_needed if column in schema])
        return frame

    def found(self, sums):
        """Return the segments that occur in groups of rows: a sorted list of their keys
        (tuples of values), and for each group (n_groups,) a position in this list.

        `sums` are arrays (n_groups,) by name; `segment` holds the segment's number.
        """
        n_groups = len(sums["count"])
        if not self.values:  # all rows are one segment, if there are any
            keys = [()] if n_groups > 0 else []
            return keys, np.zeros(n_groups, dtype=np.int64)
        if not np.all(sums["segment"] >= 0):
            raise table_changed()
        numbers, segment_of_group = np.unique(
            sums["segment"].astype(np.int64), return_inverse=True
        )
        # From the numbers back to the positions of the values in each column.
        n_values = [len(values) for values in self.values]
        positions_by_column = np.unravel_index(numbers, n_values)
        columns = []
        for values, positions in zip(self.values, positions_by_column, strict=True):
            columns.append([values[position] for position in positions])
        return list(zip(*columns, strict=True)), segment_of_group

    def numbers(self, keys):
        """Return a dict from the key of a segment, a tuple of values, to its number.

        It holds those of the given `keys` whose values all occur in their columns.
        """
        n_values = [len(values) for values in self.values]
        position_of_value = []  # one dict per column
        for values in self.values:
            position_of_value.append({value: i for i, value in enumerate(values)})
        numbers = {}
        for key in keys:
            positions = []
            for position_of, value in zip(position_of_value, key, strict=True):
                positions.append(position_of.get(value))
            if None not in positions:
                numbers[key] = int(np.ravel_multi_index(positions, n_values))
        return numbers


def _counts_of_values(frame, table, name):
    """Return the number of rows with each value of the column `name`, a list; `table`
    is a lazy frame with the values and their numbers from 0 on, in the column
    `name`_number.
    """
    number = f"{name}_number"
    rows = frame.join(table, on=name, how="left").group_by(number)
    result = fetched(rows.agg(nw.len().alias("n")))
    counts = np.zeros(len(result["n"]), dtype=np.int64)
    counts[result[number]] = result["n"]
    return counts.tolist()


def _with_position(frame, key, n_values, table):
    """Return a lazy frame with the position of each row's value among a key column's
    `n_values` as KEY_position: the last one for NULL, -1 for unknown values. `table`
    has the known values and their positions as KEY_number.
    """
    position = nw.lit(-1)
    if n_values > 1:  # there are values besides NULL
        frame = frame.join(table, on=key, how="left")
        position = nw.col(f"{key}_number").fill_null(-1)
    position_of_null = nw.lit(n_values - 1)
    is_null = nw.col(key).is_null()
    position = nw.when(is_null).then(position_of_null).otherwise(position)
    return frame.with_columns(position.alias(f"{key}_position"))


def free_name(names):
    """Return a name with which none of the names begins, in upper or lower case, which
    databases do not distinguish.
    """
    name = "skcalib"
    while any(other.lower().startswith(name) for other in names):
        name += "_"
    return name


def check_value(what, value, name, dtype):
    """Raise if a Python value cannot occur in the column `name` of type `dtype`, such
    as a text in a column of numbers: some engines would fail to compare them, others
    find no row. The message calls the value by the text `what`, such as "pos_label".
    """
    kind_of_value = None
    for types, kind in _KINDS:
        if isinstance(value, types):
            kind_of_value = kind
            break
    if kind_of_value is None:
        return  # such as a date, which is left to the engine
    if dtype == nw.Boolean:
        kind_of_column = "boolean"
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        kind_of_column = "text"
    elif dtype.is_numeric():
        kind_of_column = "number"
    elif dtype.is_temporal() and kind_of_value != "text":
        # A date or time may be named by its text, since some have no Python object (see
        # `numbered`), but not by a boolean or a number.
        kind_of_column = "moment"
    else:
        return
    if kind_of_value != kind_of_column:
        raise ValueError(
            f"{what}={value!r} is not a value of the column {name!r}, which is {dtype}:"
            f" write it as a {kind_of_column}."
        )


def check_no_hidden_nan(*sums):
    """Raise if sums are NaN, arrays of any shape: the engine has kept rows with NaN
    that its filters should have removed.
    """
    if any(np.isnan(values).any() for values in sums):
        raise hidden_nan()


def binary_columns(data, *, label, score, weight, by, pos_label, neg_label, on_invalid):
    """Return the `PredictionColumns` of one event with one score column.

    `data` is the user's table; `label`, `score`, `weight` (or None) and `by` (a name or
    several) are names of its columns. The event is the label `pos_label`; None means
    that labels are 0 and 1. Rows with neither this label nor `neg_label` are left out;
    with None there must be no others than two. `on_invalid` is "raise" or "drop".
    """
    if neg_label is not None and pos_label is None:
        raise ValueError(
            f"neg_label={neg_label!r} is the label of the non-events: also name that of"
            " the event with pos_label=."
        )
    if neg_label is not None and neg_label == pos_label:
        raise ValueError(f"neg_label and pos_label are both {pos_label!r}.")
    frame, schema, by = _checked(data, label, {"score": [score]}, weight, by)
    named_event = None
    if pos_label is not None:
        named_event = (label, pos_label, neg_label)
    is_event = _event(schema[label], label, pos_label, neg_label)
    return PredictionColumns(
        frame,
        nw.col(score).cast(nw.Float64),
        is_event,
        weight,
        by,
        on_invalid,
        named_event=named_event,
    )


def _checked(data, label, scores, weight, by):
    """Return the table as a frame of Narwhals, its schema, and `by` as a list; raise
    for columns that are missing or not numeric. `scores` holds the columns by argument,
    "score" or "scores".
    """
    frame = wrapped(data)
    if by is None:
        by = []
    elif isinstance(by, str):
        by = [by]
    if not isinstance(by, list | tuple):
        raise TypeError(
            f"by must be the name of a column or a list of names, found {by!r}."
        )
    schema = frame.collect_schema()
    # Names of columns by argument: those that must be numeric, and all.
    numeric = dict(scores)
    if weight is not None:
        numeric["weight"] = [weight]
    named = {"label": [label], **numeric, "by": by}
    for what, names in named.items():
        for name in names:
            if name not in schema:
                raise ValueError(
                    f"{what}={name!r} is not a column of the table; its columns are"
                    f" {_first_few(list(schema), 12)}."
                )
            if what in numeric and not schema[name].is_numeric():
                raise ValueError(
                    f"{what} must be numbers, but the column {name!r} is"
                    f" {schema[name]}. Convert it: numbers with a percent sign or a"
                    " decimal comma are text."
                )
    return frame, schema, list(by)


def _first_few(texts, most):
    """Return at most `most` texts with commas between them, and an ellipsis for the
    rest.
    """
    shown = ", ".join(texts[:most])
    if len(texts) > most:
        return f"{shown}, ..."
    return shown


def _event(dtype, name, pos_label, neg_label):
    """Return the label column as an expression: 1 for the event `pos_label`, 0 for
    other labels, NULL for missing ones; with a `neg_label`, further labels are invalid.
    Without `pos_label`, labels should be 0 and 1; other numbers are kept, and make
    their rows invalid.
    """
    label = nw.col(name)
    if pos_label is None:
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(
                f"label must be 0 and 1, or booleans, but {name!r} is {dtype}: name the"
                " label of the event with pos_label=."
            )
        if dtype.is_integer():  # compared faster without a cast
            return label
        return label.cast(nw.Float64)
    check_value("pos_label", pos_label, name, dtype)
    if isinstance(pos_label, float) and pos_label != pos_label:
        raise ValueError(
            f"pos_label=nan matches no label in the column {name!r}: rows with a"
            " missing label are invalid."
        )
    is_event = (label == nw.lit(pos_label)).cast(nw.Float64)
    if neg_label is not None:
        check_value("neg_label", neg_label, name, dtype)
        is_known = (label == nw.lit(pos_label)) | (label == nw.lit(neg_label))
        is_event = nw.when(is_known).then(is_event).otherwise(nw.lit(_INVALID))
    return nw.when(_present(label, dtype)).then(is_event)


def _present(column, dtype):
    """Return the condition that a value of a column is neither NULL nor NaN."""
    if dtype.is_float():
        return ~column.is_null() & ~column.is_nan()
    return ~column.is_null()


def top_label_columns(data, *, label, scores, classes, weight, by, on_invalid):
    """Return the `PredictionColumns` of the event "the predicted class is right", whose
    score is the largest; of equal ones the first class is predicted.

    `scores` are the columns of the probabilities, one for each of the labels in
    `classes`; `data` is the user's table, and `label`, `weight` (or None) and `by` are
    names of its columns. `on_invalid` is "raise" or "drop".
    """
    frame, has_label, by = _checked_classes(data, label, scores, classes, weight, by)
    columns = [nw.col(name).cast(nw.Float64) for name in scores]
    # The largest score is a column of the frame: as an expression engines would compute
    # it again for each class, and Dask cannot compare it with others.
    largest_column = free_name(frame.collect_schema().names())
    frame = frame.with_columns(nw.max_horizontal(*columns).alias(largest_column))
    largest = nw.col(largest_column)
    # NULL, where a `when` has no `otherwise`, makes a row count as missing, and
    # `_INVALID` as a score or label makes it invalid.
    schema = frame.collect_schema()
    is_single = any(schema[score] == nw.Float32 for score in scores)
    is_valid = _are_probabilities(columns, _ROUNDING_SINGLE if is_single else _ROUNDING)
    largest_if_valid = nw.when(is_valid).then(largest).otherwise(nw.lit(_INVALID))
    are_known = [~column.is_null() & ~column.is_nan() for column in columns]
    confidence = nw.when(reduce(and_, are_known)).then(largest_if_valid)
    # Positions of the predicted class and of the label among the classes, -1 for a
    # label that is none of them.
    predicted = _first([column == largest for column in columns])
    actual = _first([nw.col(label) == nw.lit(value) for value in classes])
    is_right = (actual == predicted).cast(nw.Float64)  # 1 or 0
    right_if_class = nw.when(actual < 0).then(nw.lit(_INVALID)).otherwise(is_right)
    return PredictionColumns(
        frame,
        confidence,
        nw.when(has_label).then(right_if_class),
        weight,
        by,
        on_invalid,
        added_column=largest_column,
    )


def _are_probabilities(columns, rounding):
    """Return the condition that columns lie in [0, 1] and that their sum differs from 1
    by at most `rounding`.
    """
    are_in_range = [(column >= 0) & (column <= 1) for column in columns]
    total = reduce(add, columns)
    return reduce(and_, are_in_range) & ((total - 1).abs() <= rounding)


def marginal_columns(data, *, label, scores, classes, weight, by, on_invalid):
    """Return a dict from a class to the `PredictionColumns` of the event that the label
    is this class. `scores` are the columns of the probabilities, one for each of the
    labels in `classes`; `data` is the user's table, and `label`, `weight` (or None) and
    `by` are names of its columns. `on_invalid` is "raise" or "drop".
    """
    frame, has_label, by = _checked_classes(data, label, scores, classes, weight, by)
    is_known = reduce(or_, (nw.col(label) == nw.lit(value) for value in classes))
    # The label is 1 for the class and 0 for the others. It is invalid if it is none of
    # the classes, and NULL, hence missing, if there is none.
    by_class = {}
    for name, value in zip(scores, classes, strict=True):
        is_class = (nw.col(label) == nw.lit(value)).cast(nw.Float64)
        class_or_not = nw.when(is_known).then(is_class).otherwise(nw.lit(_INVALID))
        event = nw.when(has_label).then(class_or_not)
        score = nw.col(name).cast(nw.Float64)
        by_class[value] = PredictionColumns(frame, score, event, weight, by, on_invalid)
    return by_class


def _checked_classes(data, label, scores, classes, weight, by):
    """Return the table `data` as a frame, the condition that a row has a label, and
    `by` as a list; raise unless each of the `classes` has one numeric column in
    `scores`.
    """
    if not isinstance(scores, list | tuple) or len(scores) < 2:
        raise ValueError(
            "scores must be a list that names one column per class, at least two, found"
            f" {scores!r}."
        )
    if not hasattr(classes, "__len__") or isinstance(classes, str):
        raise TypeError(
            "classes must be a list of the labels that belong to the scores, found"
            f" {classes!r}."
        )
    if len(classes) != len(scores) or len(set(classes)) < len(classes):
        raise ValueError(
            f"classes must be the distinct labels of the {len(scores)} columns of"
            f" scores, found {list(classes)!r}."
        )
    _check_order(scores, classes)
    frame, schema, by = _checked(data, label, {"scores": scores}, weight, by)
    for value in classes:
        check_value("classes", value, label, schema[label])
    return frame, _present(nw.col(label), schema[label]), by


def _check_order(scores, classes):
    """Raise if the names of the columns of scores are the labels of `classes`, but in
    another order.
    """
    labels = plain_labels(np.array(list(classes), dtype=object))
    are_texts = all(isinstance(label, str) for label in classes)
    if labels.dtype.kind == "O" and not are_texts:
        return  # without an order, such as dates
    named = classes_of_names(list(scores), labels)
    if named is None:
        return
    in_order, positions = named
    label_of_column = dict(zip(positions.tolist(), in_order.tolist(), strict=True))
    named_labels = [label_of_column[k] for k in range(len(scores))]
    if named_labels != labels.tolist():
        raise ValueError(
            f"scores and classes have different orders: {list(scores)} and"
            f" {list(classes)}. Each class must have the position of its column:"
            f" classes={named_labels}."
        )


def _first(conditions):
    """Return an expression for the position of the first condition that holds, -1 where
    none does.
    """
    first = nw.lit(-1)
    # From the last to the first, since each condition overrides those after it.
    for position, condition in reversed(list(enumerate(conditions))):
        first = nw.when(condition).then(nw.lit(position)).otherwise(first)
    return first
