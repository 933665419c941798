"""A fitted recalibrator as one more column of a table."""

import numpy as np

from skcalib.engines._columns import check_value
from skcalib.engines._expressions import ColumnWriter
from skcalib.engines._native import narwhals
from skcalib.recalibrators import GroupwiseRecalibrator
from skcalib.recalibrators._map_forms import calibration_map

__all__ = ["with_forecasts"]


def with_forecasts(columns, recalibrator, output):
    """Return the native table with the column `output`: NULL where the score is missing or out of range."""
    frame = columns.frame
    if not isinstance(output, str) or output in columns.names:
        raise ValueError(f"output must be the name of a new column, found {output!r}.")
    _check_case(output, columns)
    _check(recalibrator)
    is_eager = isinstance(frame, narwhals().DataFrame)
    if is_eager and not isinstance(recalibrator, GroupwiseRecalibrator):
        return _predicted(columns, recalibrator, output).to_native()
    result = _written(columns, recalibrator, output)
    return (result.collect() if is_eager else result).to_native()


def _check_case(output, columns):
    """Refuse a name that a database takes for the one of another column."""
    engine = columns.frame.implementation
    same = next((name for name in columns.names if name.lower() == output.lower()), None)
    if same is not None and (engine.is_duckdb() or engine.is_ibis() or engine.is_spark_like()):
        raise ValueError(
            f"output must be the name of a new column, found {output!r}: the engine does not tell it from {same!r}."
        )


def _check(recalibrator):
    if not hasattr(recalibrator, "predict_proba") or isinstance(recalibrator, type):
        hint = ", whose maps belong to one segment each" if isinstance(recalibrator, dict) else ""
        raise TypeError(f"recalibrator must be a fitted recalibrator, found {type(recalibrator).__name__}{hint}.")
    name = type(recalibrator).__name__
    if len(getattr(recalibrator, "classes_", (0, 1))) != 2:
        raise ValueError(f"apply is for two classes, but {name} was fitted to {len(recalibrator.classes_)}.")
    if getattr(recalibrator, "input", "probability") != "probability":
        raise ValueError(
            f"the scores of a table are probabilities: {name} needs input='probability', found {recalibrator.input!r}."
        )


def _predicted(columns, recalibrator, output):
    """Return an eager frame with what `predict_proba` gives."""
    nw, frame = narwhals(), columns.frame
    score = frame.select(columns.score.alias("score"))["score"].to_numpy().astype(np.float64)
    valid = (score >= 0) & (score <= 1)
    forecast = np.full(len(score), np.nan)
    if valid.any():
        both = np.column_stack((1 - score[valid], score[valid]))
        width = recalibrator.n_features_in_ if hasattr(recalibrator, "n_features_in_") else 1
        forecast[valid] = recalibrator.predict_proba(both if width == 2 else score[valid])[:, 1]
    series = nw.new_series(output, forecast, nw.Float64, backend=frame.implementation)
    frame = frame.select(columns.names)
    return frame.with_columns(series).with_columns(nw.when(~nw.col(output).is_nan()).then(nw.col(output)).alias(output))


def _written(columns, recalibrator, output):
    """Return a lazy frame with the forecasts as expressions."""
    nw, frame = narwhals(), columns.frame.lazy()
    calibration = calibration_map(recalibrator, n_columns=1)
    group = nw.col(columns.by[0]) if len(columns.by) == 1 else None
    if calibration.group_key is not None and group is None:
        raise ValueError("GroupwiseRecalibrator takes the groups of rows from one column: name it with by=.")
    for value in [] if calibration.group_key is None else calibration.group_key.cases:
        check_value("a group of the recalibrator", value, columns.by[0], frame.collect_schema()[columns.by[0]])
    writer = ColumnWriter(frame, columns.score, group)
    forecast = writer.column(calibration.output)
    # The guard is outside: the greatest of NULL and a bound is the bound in some engines.
    guarded = nw.when(writer.is_valid()).then(forecast)
    return writer.frame.select(*columns.names, guarded.alias(output))
