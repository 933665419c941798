"""A fitted recalibrator, or one for each segment, as one more column of a table."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcalib.engines._columns import check_value, free_name
from skcalib.engines._expressions import ColumnWriter
from skcalib.engines._native import beside, narwhals
from skcalib.recalibrators import GroupwiseRecalibrator
from skcalib.recalibrators._map_forms import calibration_map, map_of
from skcalib.recalibrators._maps import Choice, GroupOf, Rows, Scores


def with_forecasts(columns, recalibrator, output, default=None):
    """Return the native table with the column `output`: NULL where the score is missing or out of range."""
    frame = columns.frame
    if not isinstance(output, str) or output in columns.names:
        raise ValueError(f"output must be the name of a new column, found {output!r}.")
    _check_case(output, columns)
    maps = _segment_maps(columns, recalibrator, default)
    if not isinstance(frame, narwhals().DataFrame):
        return _written(columns, maps or calibration_map(recalibrator, n_columns=1).output, output).to_native()
    if maps is None:
        return _predicted(columns, output, lambda score, _: _forecast(recalibrator, score)).to_native()
    case = _cases_in_memory(columns, maps)

    def forecast(score, valid):
        rows, out = np.flatnonzero(case[valid] >= 0), np.full(len(score), np.nan)
        out[rows] = Rows(score[rows, None], case[valid][rows])(maps.choice)[:, 0]
        return out

    return _predicted(columns, output, forecast).to_native()


def _check_case(output, columns):
    """Refuse a name that a database takes for the one of another column."""
    engine = columns.frame.implementation
    same = next((name for name in columns.names if name.lower() == output.lower()), None)
    if same is not None and (engine.is_duckdb() or engine.is_ibis() or engine.is_spark_like()):
        raise ValueError(
            f"output must be the name of a new column, found {output!r}: the engine does not tell it from {same!r}."
        )


class _SegmentMaps(NamedTuple):
    """Maps of segments: the case of each key (a tuple), and that of keys that are not there, -1 for none."""

    choice: Choice
    numbers: dict
    otherwise: int


def _segment_maps(columns, recalibrator, default):
    """Return the maps of segments; None where one map is for all rows."""
    if isinstance(recalibrator, dict):
        return _maps_of_dict(columns, recalibrator, default)
    _check(recalibrator)
    if default is not None:
        raise ValueError("default is for a dict of recalibrators: any other one has a map for every row.")
    calibration = calibration_map(recalibrator, n_columns=1) if type(recalibrator) is GroupwiseRecalibrator else None
    if calibration is None or calibration.group_key is None:
        return None
    if len(columns.by) != 1:
        raise ValueError("GroupwiseRecalibrator takes the groups of rows from one column: name it with by=.")
    choice, key = calibration.output, calibration.group_key
    _check_keys(columns, [(group,) for group in key.cases], "a group of the recalibrator")
    return _numbered_maps(choice.cases, {(group,): number for group, number in key.cases.items()}, key.otherwise)


def _maps_of_dict(columns, recalibrators, default):
    """Return the maps of what `fit` returns by segment; the keys are tuples."""
    if not columns.by or not recalibrators:
        raise ValueError(
            "a dict of recalibrators holds one for each segment, but it is empty."
            if columns.by
            else "a dict of recalibrators is for a table with segments: name their columns with by=."
        )
    _check_keys(columns, recalibrators, "a key of the dict")
    scores, cases = Scores(1), []
    for own in [*recalibrators.values(), *([] if default is None else [default])]:
        _check(own)
        check_is_fitted(own)
        cases.append(map_of(own, scores))
        if isinstance(getattr(cases[-1], "key", None), GroupOf):
            raise ValueError("a dict of recalibrators holds a GroupwiseRecalibrator, which has groups of its own.")
    numbers = {key: number for number, key in enumerate(recalibrators)}
    return _numbered_maps(cases, numbers, -1 if default is None else len(recalibrators))


def _numbered_maps(cases, numbers, otherwise):
    key = GroupOf(None, {number: number for number in range(len(cases))}, 0)
    return _SegmentMaps(Choice(key, tuple(cases)), numbers, otherwise)


def _check_keys(columns, keys, what):
    """Refuse keys that cannot be segments of the table: no row would be found."""
    schema = columns.frame.collect_schema()
    for key in keys:
        if not isinstance(key, tuple) or len(key) != len(columns.by):
            raise ValueError(f"{what}={key!r} is no tuple of one value a column of by={columns.by!r}.")
        for value, name in zip(key, columns.by, strict=True):
            check_value(what, value, name, schema[name])


def _with_case(columns, frame, keys, maps, prefix):
    """Return a lazy frame that has the columns of `keys` with the case of each row as the column `prefix`."""
    nw, segment, number = narwhals(), f"{prefix}_segment", f"{prefix}_case"
    segments = columns.segments(keys)
    frame = segments.attached(frame, segment)
    found = segments.numbers(maps.numbers)
    case = nw.lit(maps.otherwise)
    if found:
        table = {segment: list(found.values()), number: [maps.numbers[key] for key in found]}
        frame = frame.join(beside(frame, table), on=segment, how="left")
        case = nw.col(number).fill_null(maps.otherwise)
    return frame.with_columns(case.cast(nw.Int32).alias(prefix))


def _cases_in_memory(columns, maps):
    """Return the case of each row of an eager frame."""
    keys = columns.keys("")
    frame = columns.frame.select(**keys).with_row_index("row").lazy()  # Arrow joins no lists beside
    cases = _with_case(columns, frame, keys, maps, "case").select("row", "case").collect()
    return cases.sort("row")["case"].to_numpy().astype(np.int64)


def _check(recalibrator):
    if not hasattr(recalibrator, "predict_proba") or isinstance(recalibrator, type):
        raise TypeError(f"recalibrator must be a fitted recalibrator, found {type(recalibrator).__name__}.")
    name = type(recalibrator).__name__
    if len(getattr(recalibrator, "classes_", (0, 1))) != 2:
        raise ValueError(f"apply is for two classes, but {name} was fitted to {len(recalibrator.classes_)}.")
    if getattr(recalibrator, "input", "probability") != "probability":
        raise ValueError(
            f"the scores of a table are probabilities: {name} needs input='probability', found {recalibrator.input!r}."
        )


def _forecast(recalibrator, score):
    """Return what `predict_proba` gives for valid scores."""
    width = recalibrator.n_features_in_ if hasattr(recalibrator, "n_features_in_") else 1
    return recalibrator.predict_proba(np.column_stack((1 - score, score)) if width == 2 else score)[:, 1]


def _predicted(columns, output, forecast):
    """Return an eager frame with what a function of the valid scores, and of the mask of such rows, gives."""
    nw, frame = narwhals(), columns.frame
    score = frame.select(columns.score.alias("score"))["score"].to_numpy().astype(np.float64)
    valid = (score >= 0) & (score <= 1)
    forecasts = np.full(len(score), np.nan)
    if valid.any():
        forecasts[valid] = forecast(score[valid], valid)
    series = nw.new_series(output, forecasts, nw.Float64, backend=frame.implementation)
    frame = frame.select(columns.names)
    return frame.with_columns(series).with_columns(nw.when(~nw.col(output).is_nan()).then(nw.col(output)).alias(output))


def _written(columns, maps, output):
    """Return a lazy frame with the forecasts as expressions."""
    nw, frame = narwhals(), columns.frame.lazy()
    is_known, case, node = nw.lit(1) == 1, None, maps
    if isinstance(maps, _SegmentMaps):
        name = free_name(frame.collect_schema().names())
        keys = columns.keys(f"{name}_")
        frame, node = _with_case(columns, frame.with_columns(**keys), keys, maps, name), maps.choice
        is_known = nw.col(name) >= 0
        case = nw.when(is_known).then(nw.col(name)).otherwise(nw.lit(0))
    writer = ColumnWriter(frame, columns.score, case)
    forecast = writer.column(node)
    # The guard is outside: the greatest of NULL and a bound is the bound in some engines.
    guarded = nw.when(writer.is_valid() & is_known).then(forecast)
    return writer.frame.select(*columns.names, guarded.alias(output))
