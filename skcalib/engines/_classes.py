"""Tables of K score columns as binary problems: is the predicted class right, or each class against the rest."""

from functools import reduce
from operator import and_, or_

from skcalib.engines._columns import PredictionColumns, check_names, check_value, free_name, names_of
from skcalib.engines._native import narwhals, wrapped

# How far a row sum may be off by rounding, in double and in single precision; the same as in metrics.
_ROUNDING, _ROUNDING_SINGLE = 1e-6, 1e-3
_INVALID = 2.0  # no score and no label: counted as such


def top_label_columns(data, *, label, scores, classes, weight, by, on_invalid):
    """Return the score of the predicted class (the first of the largest) and whether it is right, as columns."""
    nw = narwhals()
    frame, present = _checked(data, label, scores, classes, weight, by)
    columns = [nw.col(name).cast(nw.Float64) for name in scores]
    known = reduce(and_, (~column.is_null() & ~column.is_nan() for column in columns))
    # A column of its own: otherwise engines make it again for each class, and Dask cannot compare it with others.
    name = free_name(frame.collect_schema().names())
    frame = frame.with_columns(nw.max_horizontal(*columns).alias(name))
    largest, total = nw.col(name), reduce(lambda a, b: a + b, columns)
    is_valid = reduce(and_, ((column >= 0) & (column <= 1) for column in columns))
    schema = frame.collect_schema()
    is_single = any(schema[name] == nw.Float32 for name in scores)
    is_valid = is_valid & ((total - 1).abs() <= (_ROUNDING_SINGLE if is_single else _ROUNDING))
    confidence = nw.when(known).then(nw.when(is_valid).then(largest).otherwise(nw.lit(_INVALID)))
    predicted = _first([column == largest for column in columns])
    code = _first([nw.col(label) == nw.lit(value) for value in classes])
    right = nw.when(code < 0).then(nw.lit(_INVALID)).otherwise((code == predicted).cast(nw.Float64))
    return PredictionColumns(
        frame, confidence, nw.when(present).then(right), _weight(weight), names_of("by", by), on_invalid, own=name
    )


def marginal_columns(data, *, label, scores, classes, weight, by, on_invalid):
    """Return a dict of the columns of each class's problem."""
    nw = narwhals()
    frame, present = _checked(data, label, scores, classes, weight, by)
    is_known = reduce(or_, (nw.col(label) == nw.lit(value) for value in classes))
    out = {}
    for name, value in zip(scores, classes, strict=True):
        is_class = (nw.col(label) == nw.lit(value)).cast(nw.Float64)
        event = nw.when(present).then(nw.when(is_known).then(is_class).otherwise(nw.lit(_INVALID)))
        score = nw.col(name).cast(nw.Float64)
        out[value] = PredictionColumns(frame, score, event, _weight(weight), names_of("by", by), on_invalid)
    return out


def _checked(data, label, scores, classes, weight, by):
    """Return the frame, and whether a row has a label."""
    nw, frame = narwhals(), wrapped(data)
    if not isinstance(scores, list | tuple) or len(scores) < 2:
        raise ValueError(f"scores must be a list that names one column a class, two at least, found {scores!r}.")
    if not hasattr(classes, "__len__") or isinstance(classes, str):
        raise TypeError(f"classes must be a list of the labels that belong to the scores, found {classes!r}.")
    if len(classes) != len(scores) or len(set(classes)) < len(classes):
        raise ValueError(
            f"classes must be the distinct labels of the {len(scores)} columns of scores, found {list(classes)!r}."
        )
    names = [("label", label), *(("scores", name) for name in scores), *(("by", name) for name in names_of("by", by))]
    schema = check_names(frame, names + ([] if weight is None else [("weight", weight)]))
    for what, name in names[1 : len(scores) + 1] + ([] if weight is None else [("weight", weight)]):
        if not schema[name].is_numeric():
            raise ValueError(f"{what} must be columns of numbers, but {name!r} is {schema[name]}.")
    for value in classes:
        check_value("classes", value, label, schema[label])
    present = ~nw.col(label).is_null()
    return frame, present & ~nw.col(label).is_nan() if schema[label].is_float() else present


def _first(conditions):
    """Return the position of the first condition that holds, -1 where none does."""
    nw, number = narwhals(), narwhals().lit(-1)
    for position, condition in reversed(list(enumerate(conditions))):
        number = nw.when(condition).then(nw.lit(position)).otherwise(number)
    return number


def _weight(name):
    nw = narwhals()
    return None if name is None else nw.col(name).cast(nw.Float64)
