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
    helper : str, default=None
        A column of `frame` that was added to the user's.
    event : tuple of (str, object), default=None
        Column of the labels and the label of the event, if the user named it.
    """

    def __init__(
        self, frame, score, label, weight, by, on_invalid, helper=None, event=None
    ):
        check_option(on_invalid, "on_invalid", ("raise", "drop"))
        self.frame = frame
        self.score = score
        self.label = label
        self.by = by  # names of the columns that define segments
        self.on_invalid = on_invalid
        # A column that was added to those of the user, or None.
        self.helper = helper
        self.weight = None if weight is None else nw.col(weight).cast(nw.Float64)
        # The column of the labels and the label of the event, or None.
        self.event = event
        # By the reason that a row is invalid: the condition under which it is not.
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
        """Return the `Segments` of all rows for the key columns, a dict of expressions
        by name. Reading the valid rows alone would take longer.
        """
        if not keys:
            return Segments(keys=[], values=[], tables=[])
        try:
            return Segments.of(self.frame.lazy().select(**keys), list(keys))
        except (TypeError, NotImplementedError) as error:
            # values that are lists, types that Arrow does not know
            raise ValueError(
                f"by={self.by!r}: its values cannot name segments, cast them to text."
                f" {error}"
            ) from error

    def keys(self, prefix):
        """Return the columns that define segments as expressions by the names by0, by1,
        ... with a prefix.
        """
        expressions = {}
        for position, name in enumerate(self.by):
            expressions[f"{prefix}by{position}"] = self._key(name)
        return expressions

    def pooled(self):
        """Return the same columns without segments."""
        columns = copy(self)
        columns.by = []
        return columns

    @property
    def names(self):
        """Names of the user's columns."""
        names = self.frame.collect_schema().names()
        return [name for name in names if name != self.helper]

    def check_rows(self, sums):
        """Raise for invalid rows unless they are to be dropped.

        `sums` holds arrays of sums over groups of rows, by name. Only if they count
        fewer rows than the table has are the invalid ones looked for.
        """
        self._check_events(sums)
        if self.on_invalid == "drop":
            return
        n_used = int(sums["count"].sum())
        n_rows = fetched(self.frame.lazy().select(nw.len().alias("n")))["n"][0]
        if n_used == n_rows:
            return
        counts = self._rows_by_reason()
        reasons = [name for name in _REASONS if counts[name] > 0]
        if reasons:
            shown = ", ".join(f"{counts[name]} ({name})" for name in reasons)
            raise ValueError(
                f"The table has invalid rows: {shown}. See invalid_rows();"
                " on_invalid='drop' omits them."
            )
        if counts["used"] != n_used:
            raise table_changed()

    def _check_events(self, sums):
        """Refuse a `pos_label` that does not occur, and weights whose sums overflow.

        `sums` holds arrays of sums over groups of rows, by name.
        """
        with np.errstate(over="ignore"):
            is_too_large = any(np.isinf(values.sum()) for values in sums.values())
        if is_too_large:
            raise ValueError(
                "weight is too large: its sums are infinite. Divide the weights by a"
                " constant."
            )
        if self.event is None or len(sums["count"]) == 0:
            return
        # The number of events of each group, or the sum of their weights where that is
        # what was summed.
        events = sums["label"] if "label" in sums else sums["weighted_label"]
        if np.any(events > 0):
            return
        name, pos_label = self.event
        labels, _ = numbered(self.frame.lazy().select(name), name)
        shown = _first_few([repr(label) for label in labels], 10)
        raise ValueError(
            f"pos_label={pos_label!r} does not occur in the column {name!r}, whose"
            f" labels are {shown}."
        )

    def invalid_rows(self):
        """Return the number of invalid rows by reason."""
        counts = self._rows_by_reason()
        return {name: counts[name] for name in _REASONS}

    def _rows_by_reason(self):
        """Return the number of rows by outcome: "used", a reason why they are invalid
        ("missing" before the others), or "no weight" for a weight of 0.
        """
        outcomes = ("used", *_REASONS, "no weight")
        code_of = {name: code for code, name in enumerate(outcomes)}
        values = {"score": self.score, "label": self.label.cast(nw.Float64)}

        # A row has the code of the first reason in order that holds: each `when` is put
        # in front of those that come after it.
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
        """Return a column that defines segments as an expression in which a missing
        value is NULL, -0.0 is 0.0, and categories are text.
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
                " segments: cast it to text first."
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
        "The table changed between two passes, or segments do not compare equal: later"
        " rows are not those that were counted first. Use a table that stays as it is,"
        " and cast by= to text or integers."
    )


@dataclass(frozen=True)
class Segments:
    """The distinct values of the columns that define segments, and a number for each
    combination of one value per column: that is a segment.

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
        """Return the segments of a lazy frame with these key columns, whose distinct
        values are fetched.
        """
        values = []
        tables = []
        for key in keys:
            distinct_values, table = numbered(frame, key)
            values.append([*distinct_values, None])
            tables.append(table)
        return cls(keys, values, tables)

    def attached(self, frame, name="segment"):
        """Return a lazy frame with the number of each row's segment as the column
        `name`, in place of the keys.

        A frame with other rows than those that the segments were made of may have other
        values: the number is then negative.

        The numbers are those of `np.ravel_multi_index`: the place of the first key's
        value times the number of values of the second, plus the place of the second
        key's value, and so on.
        """
        if not self.keys:
            return frame
        segment = nw.lit(0)
        for key, values, table in zip(self.keys, self.values, self.tables, strict=True):
            # The place of a row's value among those of the key, -1 for unknown values.
            # Places are the digits of the segment's number, most significant first.
            place = nw.lit(-1)
            if len(values) > 1:  # there are values besides NULL
                frame = frame.join(table, on=key, how="left")
                place = nw.col(f"{key}_number").fill_null(-1)
            place_of_null = nw.lit(len(values) - 1)  # None is the last of the values
            place = nw.when(nw.col(key).is_null()).then(place_of_null).otherwise(place)
            frame = frame.with_columns(place.alias(f"{key}_place"))
            place = nw.col(f"{key}_place")
            segment = (
                nw.when((segment >= 0) & (place >= 0))
                .then(segment * len(values) + place)
                .otherwise(nw.lit(-1))
            )
        # Groups by small integers are quicker.
        n_places = np.prod([len(values) for values in self.values], dtype=float)
        integer = nw.Int32 if n_places < 2**31 else nw.Int64
        frame = frame.with_columns(segment.cast(integer).alias(name))
        schema = frame.collect_schema()
        for key in self.keys:
            not_needed = [key, f"{key}_number", f"{key}_place"]
            frame = frame.drop([column for column in not_needed if column in schema])
        return frame

    def found(self, sums):
        """Return the keys (tuples of values) of the segments that occur, in order, and
        for each group of rows the index of its segment among them, (n_groups,).

        `sums` are arrays (n_groups,) by name, with `segment` for the segment's number.
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
        shape = [len(values) for values in self.values]
        columns = []
        places_by_column = np.unravel_index(numbers, shape)
        for values, places in zip(self.values, places_by_column, strict=True):
            columns.append([values[place] for place in places])
        return list(zip(*columns, strict=True)), segment_of_group

    def numbers(self, keys):
        """Return the numbers of segments by their keys (tuples of values), for those of
        the given keys that are segments.
        """
        shape = [len(values) for values in self.values]
        place_of_value = []
        for values in self.values:
            place_of_value.append({value: place for place, value in enumerate(values)})
        numbers = {}
        for key in keys:
            places = []
            for place_of, value in zip(place_of_value, key, strict=True):
                places.append(place_of.get(value))
            if None not in places:
                numbers[key] = int(np.ravel_multi_index(places, shape))
        return numbers


def free_name(names):
    """Return a name with which none of the names begins, in upper or lower case, which
    databases do not distinguish.
    """
    name = "skcalib"
    while any(other.lower().startswith(name) for other in names):
        name += "_"
    return name


def check_value(what, value, name, dtype):
    """Raise if a Python value cannot occur in the column `name` of type `dtype`, where
    some engines would fail and others find no row. `what` is the user's argument.
    """
    kind_of_value = None
    for types, kind in _KINDS:
        if isinstance(value, types):
            kind_of_value = kind
            break
    if kind_of_value is None:
        return
    if dtype == nw.Boolean:
        kind_of_column = "boolean"
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        kind_of_column = "text"
    elif dtype.is_numeric():
        kind_of_column = "number"
    elif dtype.is_temporal() and kind_of_value != "text":
        # A date or time may be named by its text, since some have no Python object (see
        # `numbered`). Values of the kinds above never occur in such a column.
        kind_of_column = "moment"
    else:
        return
    if kind_of_value != kind_of_column:
        raise ValueError(
            f"{what}={value!r} is not a value of the column {name!r}, which is {dtype}."
        )


def check_no_hidden_nan(*sums):
    """Raise if sums are NaN, arrays of any shape: the engine has kept rows with NaN
    that its filters should have removed.
    """
    if any(np.isnan(values).any() for values in sums):
        raise hidden_nan()


def binary_columns(data, *, label, score, weight, by, pos_label, on_invalid):
    """Return the `PredictionColumns` of one event with one score column.

    Here and below `data` is the user's table; `label`, `score`, `weight` and `by` are
    names of its columns, `scores` one for each of the `classes`.
    """
    frame, schema, by = _checked(data, label, {"score": [score]}, weight, by)
    named_event = None if pos_label is None else (label, pos_label)
    is_event = _event(schema[label], label, pos_label)
    return PredictionColumns(
        frame,
        nw.col(score).cast(nw.Float64),
        is_event,
        weight,
        by,
        on_invalid,
        event=named_event,
    )


def _checked(data, label, scores, weight, by):
    """Return the frame, its schema and `by` as a list, or raise for columns that are
    missing or of a wrong type. `scores` holds lists of names by the user's argument.
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
    numeric = dict(scores)
    if weight is not None:
        numeric["weight"] = [weight]
    for what, names in {"label": [label], **numeric, "by": by}.items():
        for name in names:
            if name not in schema:
                raise ValueError(
                    f"{what}={name!r} is not a column of the table; its columns are"
                    f" {_first_few(list(schema), 12)}."
                )
            if what in numeric and not schema[name].is_numeric():
                raise ValueError(
                    f"{what} must be numbers, but the column {name!r} is"
                    f" {schema[name]}."
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


def _event(dtype, name, pos_label):
    """Return the label column as an expression: 1 for the event and 0 for the
    non-event; other numbers of a column without `pos_label` stay and are invalid.
    """
    label = nw.col(name)
    if pos_label is None:
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(
                f"label must be 0 and 1 or booleans, but {name!r} is {dtype}: name the"
                " label of the event with pos_label=."
            )
        if dtype.is_integer():  # compared faster without a cast
            return label
        return label.cast(nw.Float64)
    check_value("pos_label", pos_label, name, dtype)
    if isinstance(pos_label, float) and pos_label != pos_label:
        raise ValueError(
            f"pos_label=nan equals no label of the column {name!r}: missing labels are"
            " invalid rows."
        )
    is_event = (label == nw.lit(pos_label)).cast(nw.Float64)
    return nw.when(_present(label, dtype)).then(is_event)


def _present(column, dtype):
    """Return the condition that a value of a column is neither NULL nor NaN."""
    if dtype.is_float():
        return ~column.is_null() & ~column.is_nan()
    return ~column.is_null()


def top_label_columns(data, *, label, scores, classes, weight, by, on_invalid):
    """Return the `PredictionColumns` of the event "the predicted class is right", whose
    score is the largest; of equal ones the first class is predicted.
    """
    frame, present, by = _checked_classes(data, label, scores, classes, weight, by)
    columns = [nw.col(name).cast(nw.Float64) for name in scores]
    are_known = [~column.is_null() & ~column.is_nan() for column in columns]
    is_known = reduce(and_, are_known)
    are_in_range = [(column >= 0) & (column <= 1) for column in columns]
    is_in_range = reduce(and_, are_in_range)
    # The largest score is a column of the frame: as an expression engines would compute
    # it again for each class, and Dask cannot compare it with others.
    helper = free_name(frame.collect_schema().names())
    frame = frame.with_columns(nw.max_horizontal(*columns).alias(helper))
    largest = nw.col(helper)
    schema = frame.collect_schema()
    is_single = any(schema[score] == nw.Float32 for score in scores)
    rounding = _ROUNDING_SINGLE if is_single else _ROUNDING
    total = reduce(add, columns)
    is_valid = is_in_range & ((total - 1).abs() <= rounding)
    # The number 2 as a score or label makes a row count as invalid; NULL, where a
    # `when` has no `otherwise`, as missing.
    largest_if_valid = nw.when(is_valid).then(largest).otherwise(nw.lit(_INVALID))
    confidence = nw.when(is_known).then(largest_if_valid)
    # Positions of the predicted class and of the label among the classes.
    predicted = _first([column == largest for column in columns])
    code = _first([nw.col(label) == nw.lit(value) for value in classes])
    is_right = (code == predicted).cast(nw.Float64)
    right_if_class = nw.when(code < 0).then(nw.lit(_INVALID)).otherwise(is_right)
    return PredictionColumns(
        frame,
        confidence,
        nw.when(present).then(right_if_class),
        weight,
        by,
        on_invalid,
        helper=helper,
    )


def marginal_columns(data, *, label, scores, classes, weight, by, on_invalid):
    """Return the `PredictionColumns` of each class against the rest, by class."""
    frame, present, by = _checked_classes(data, label, scores, classes, weight, by)
    is_known = reduce(or_, (nw.col(label) == nw.lit(value) for value in classes))
    # The label is 1 for the class and 0 for the others. It is invalid if it is none of
    # the classes, and NULL, hence missing, if there is none.
    by_class = {}
    for name, value in zip(scores, classes, strict=True):
        is_class = (nw.col(label) == nw.lit(value)).cast(nw.Float64)
        class_or_not = nw.when(is_known).then(is_class).otherwise(nw.lit(_INVALID))
        event = nw.when(present).then(class_or_not)
        score = nw.col(name).cast(nw.Float64)
        by_class[value] = PredictionColumns(frame, score, event, weight, by, on_invalid)
    return by_class


def _checked_classes(data, label, scores, classes, weight, by):
    """Return the frame, the condition that a row has a label, and `by` as a list; raise
    unless each class has one numeric score column.
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
    frame, schema, by = _checked(data, label, {"scores": scores}, weight, by)
    for value in classes:
        check_value("classes", value, label, schema[label])
    return frame, _present(nw.col(label), schema[label]), by


def _first(conditions):
    """Return an expression for the position of the first condition that holds, -1 where
    none does.
    """
    first = nw.lit(-1)
    # From the last to the first, since each condition overrides those after it.
    for position, condition in reversed(list(enumerate(conditions))):
        first = nw.when(condition).then(nw.lit(position)).otherwise(first)
    return first
