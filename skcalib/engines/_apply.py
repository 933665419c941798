"""A fitted recalibrator, or one for each segment, as one more column of a table."""

from functools import partial
from importlib import import_module
from math import comb
from typing import NamedTuple

import numpy as np

from skcalib._defaults import check_fitted
from skcalib.engines._columns import check_value, free_name
from skcalib.engines._histogram import coarse_cell, coarse_place
from skcalib.engines._native import beside, nw, with_sql
from skcalib.export._sql import SqlWriter, guarded, valid_score
from skcalib.export._sql_table import pieces_by_cell
from skcalib.export._sql_text import DIALECTS
from skcalib.maps import (
    Choice,
    GroupOf,
    Mixture,
    OneColumn,
    Pieces,
    Place,
    Rows,
    Scores,
    map_of,
)
from skcalib.recalibrators import GroupwiseRecalibrator

# what maps are written for: the score of a row, and the number of its case
_ROW = Scores(2)
_SCORE, _CASE = OneColumn(_ROW, 0), OneColumn(_ROW, 1)
_MOST_CASES = 64  # pieces of one CASE; more are joined
# of a map, and of the maps of all groups
_LEAST_CELLS, _MOST_CELLS, _MOST_OF_ALL = 2**8, 2**16, 2**18


def with_forecasts(columns, recalibrator, output, default=None):
    """Return the native table with the column `output`: NULL where the score is missing
    or out of range.

    Databases and Spark are given SQL; Polars and Dask call `predict_proba` for parts of
    the table, as NumPy has them.
    """
    frame, names = columns.frame, columns.names
    engine = frame.implementation
    is_database = engine.is_duckdb() or engine.is_ibis() or engine.is_spark_like()
    _check_output(output, names, is_database)
    maps = _segment_maps(columns, recalibrator, default)
    predict = partial(_forecast, recalibrator) if maps is None else _choice(maps.cases)
    score, number = (
        f"{free_name(frame.collect_schema().names())}_{what}"
        for what in ("score", "case")
    )
    if isinstance(frame, nw.DataFrame):
        scores = frame.select(columns.score.alias(score))[score].to_numpy()
        numbers = (
            np.zeros(len(scores)) if maps is None else _cases_in_memory(columns, maps)
        )
        series = nw.new_series(
            output, _forecasts(scores, numbers, predict), nw.Float64, backend=engine
        )
        frame = frame.select(names).with_columns(series)
        return frame.with_columns(_without_nan(output)).to_native()
    frame = frame.with_columns(columns.score.alias(score), nw.lit(0).alias(number))
    if maps is not None:
        keys = columns.keys(f"{score}_")
        frame = _with_case(columns, frame.with_columns(**keys), keys, maps, number)
        known, case = nw.col(number) >= 0, nw.col(number)
        of_known = (
            nw.when(known).then(nw.col(score)),
            nw.when(known).then(case).otherwise(nw.lit(0)),
        )
        frame = frame.with_columns(of_known[0].alias(score), of_known[1].alias(number))
    if is_database:
        cases = (map_of(recalibrator, _SCORE),) if maps is None else maps.cases
        return (
            _written(frame, cases, score, number, output)
            .select(*names, output)
            .to_native()
        )
    by_part = _by_batch if engine.is_polars() else _by_partition
    frame = nw.from_native(by_part(frame.to_native(), score, number, output, predict))
    return frame.select(*names, _without_nan(output)).to_native()


def _check_output(output, names, is_database):
    if not isinstance(output, str) or output in names:
        raise ValueError(f"output must be the name of a new column, found {output!r}.")
    same = next((name for name in names if name.lower() == output.lower()), None)
    if is_database and same is not None:
        raise ValueError(
            f"output must be the name of a new column, found {output!r}: the engine"
            f" does not tell it from {same!r}."
        )


class _SegmentMaps(NamedTuple):
    """Maps of segments: the case of each key (a tuple), and that of keys that are not
    there, -1 for none.
    """

    cases: tuple
    numbers: dict
    otherwise: int


def _segment_maps(columns, recalibrator, default):
    """Return the maps of segments; None where one map is for all rows."""
    if isinstance(recalibrator, dict):
        return _maps_of_dict(columns, recalibrator, default)
    _check(recalibrator)
    if default is not None:
        raise ValueError(
            "default is for a dict of recalibrators: any other one has a map for every"
            " row."
        )
    key = (
        getattr(map_of(recalibrator, _SCORE), "key", None)
        if type(recalibrator) is GroupwiseRecalibrator
        else None
    )
    if not isinstance(key, GroupOf):
        return None
    if len(columns.by) != 1:
        raise ValueError(
            "GroupwiseRecalibrator takes the groups of rows from one column: name it"
            " with by=."
        )
    numbers = {(group,): number for group, number in key.cases.items()}
    _check_keys(columns, numbers, "a group of the recalibrator")
    return _SegmentMaps(map_of(recalibrator, _SCORE).cases, numbers, key.otherwise)


def _maps_of_dict(columns, recalibrators, default):
    """Return the maps of what `fit` returns by segment; the keys are tuples."""
    if not columns.by or not recalibrators:
        raise ValueError(
            "a dict of recalibrators holds one for each segment, but it is empty."
            if columns.by
            else (
                "a dict of recalibrators is for a table with segments: name their"
                " columns with by=."
            )
        )
    _check_keys(columns, recalibrators, "a key of the dict")
    cases = []
    for own in [*recalibrators.values(), *([] if default is None else [default])]:
        _check(own)
        cases.append(map_of(own, _SCORE))
        if isinstance(getattr(cases[-1], "key", None), GroupOf):
            raise ValueError(
                "a dict of recalibrators holds a GroupwiseRecalibrator, which has"
                " groups of its own."
            )
    numbers = {key: number for number, key in enumerate(recalibrators)}
    return _SegmentMaps(
        tuple(cases), numbers, -1 if default is None else len(recalibrators)
    )


def _check_keys(columns, keys, what):
    """Refuse keys that cannot be segments of the table: no row would be found."""
    schema = columns.frame.collect_schema()
    for key in keys:
        if not isinstance(key, tuple) or len(key) != len(columns.by):
            raise ValueError(
                f"{what}={key!r} is no tuple of one value a column of"
                f" by={columns.by!r}."
            )
        for value, name in zip(key, columns.by, strict=True):
            check_value(what, value, name, schema[name])


def _check(recalibrator):
    if not hasattr(recalibrator, "predict_proba") or isinstance(recalibrator, type):
        raise TypeError(
            "recalibrator must be a fitted recalibrator, found"
            f" {type(recalibrator).__name__}."
        )
    check_fitted(recalibrator)
    name = type(recalibrator).__name__
    if len(getattr(recalibrator, "classes_", (0, 1))) != 2:
        raise ValueError(
            f"apply is for two classes, but {name} was fitted to"
            f" {len(recalibrator.classes_)}."
        )
    if getattr(recalibrator, "input", "probability") != "probability":
        raise ValueError(
            f"the scores of a table are probabilities: {name} needs"
            f" input='probability', found {recalibrator.input!r}."
        )


def _with_case(columns, frame, keys, maps, name):
    """Return a lazy frame that has the columns of `keys` with the case of each row as a
    column.
    """
    segment, number = f"{name}_segment", f"{name}_number"
    segments = columns.segments(keys)
    frame = segments.attached(frame, segment)
    found = segments.numbers(maps.numbers)
    of_row = nw.lit(maps.otherwise)
    if found:
        table = {
            segment: list(found.values()),
            number: [maps.numbers[key] for key in found],
        }
        frame = frame.join(beside(frame, table), on=segment, how="left")
        of_row = nw.col(number).fill_null(maps.otherwise)
    return frame.with_columns(of_row.cast(nw.Int32).alias(name))


def _cases_in_memory(columns, maps):
    """Return the case of each row of an eager frame."""
    keys = columns.keys("")
    # Arrow joins no lists beside
    frame = columns.frame.select(**keys).with_row_index("row").lazy()
    cases = (
        _with_case(columns, frame, keys, maps, "case").select("row", "case").collect()
    )
    return cases.sort("row")["case"].to_numpy()


# In NumPy.


def _choice(cases):
    """Return the map of rows whose cases are numbers from 0 on."""
    return Choice(Place(_CASE, np.arange(len(cases) - 1) + 0.5), cases)


def _forecast(recalibrator, rows):
    """Return what `predict_proba` gives for valid scores."""
    score, width = rows.inputs[0][:, 0], getattr(recalibrator, "n_features_in_", 1)
    return recalibrator.predict_proba(
        np.column_stack((1 - score, score)) if width == 2 else score
    )[:, [1]]


def _forecasts(scores, numbers, predict):
    """Return what a function of `Rows` gives where the score is valid and the case is
    no negative number, else NaN.
    """
    scores = scores.astype(np.float64)
    valid = (scores >= 0) & (scores <= 1) & (numbers >= 0)
    forecasts = np.full(len(scores), np.nan)
    if valid.any():
        forecasts[valid] = predict(Rows(np.column_stack((scores, numbers))[valid]))[
            :, 0
        ]
    return forecasts


def _by_batch(frame, score, number, output, predict):
    polars = import_module("polars")

    def forecasts(rows):
        both = rows.struct
        return polars.Series(
            _forecasts(
                both.field(score).to_numpy(), both.field(number).to_numpy(), predict
            )
        )

    rows = polars.struct(score, number)
    return frame.with_columns(
        rows.map_batches(forecasts, polars.Float64, is_elementwise=True).alias(output)
    )


def _by_partition(frame, score, number, output, predict):
    def with_forecasts(part):
        scores = part[score].to_numpy(np.float64, na_value=np.nan)
        return part.assign(
            **{output: _forecasts(scores, part[number].to_numpy(), predict)}
        )

    return frame.map_partitions(
        with_forecasts, meta=frame._meta.assign(**{output: 0.0})
    )


def _without_nan(name):
    return nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name)


# In SQL.


def _written(frame, cases, score, number, output):
    """Return a lazy frame of a database or of Spark with the forecasts as the column
    `output`.
    """
    dialect = DIALECTS["spark" if frame.implementation.is_spark_like() else "duckdb"]
    x, of_row = (
        dialect.as_double(dialect.identifier(name)) for name in (score, number)
    )
    pieces = [_as_pieces(own) for own in cases]
    if all(own is not None and own.of is _SCORE for own in pieces) and _is_joined(
        *pieces
    ):
        inside = (nw.col(score) >= 0) & (nw.col(score) <= 1)
        name = f"{score}_inside"  # a join loses NULL
        frame = frame.with_columns(
            nw.when(inside).then(nw.col(score)).otherwise(nw.lit(0.0)).alias(name)
        )
        frame, names = _joined(frame, name, pieces, number if len(pieces) > 1 else None)
        origin, *coefficients, text = map(dialect.identifier, names)
        for coefficient in reversed(coefficients):
            text = f"({text})*({x}-{origin})+{coefficient}"
    else:
        [text] = SqlWriter([x, of_row], dialect).write(_choice(cases))
    return with_sql(
        frame,
        guarded(" AND ".join(valid_score(x, "probability")), f"({text})", dialect),
        output,
        dialect,
    )


def _is_joined(*maps):
    """Return whether piecewise maps of one value in [0, 1] are too long for a CASE."""
    cuts = np.concatenate([node.cuts for node in maps])
    return len(cuts) >= _MOST_CASES and cuts.min() >= 0 and cuts.max() <= 1


def _as_pieces(node):
    """Return a piecewise map, or a weighted sum of such maps of one value, as one; None
    for other nodes.
    """
    if isinstance(node, Pieces):
        return node
    parts = node.parts if isinstance(node, Mixture) else ()
    if not parts or any(
        not isinstance(part, Pieces) or part.of is not parts[0].of for part in parts
    ):
        return None
    cuts = np.unique(np.concatenate([part.cuts for part in parts]))
    if not len(cuts):
        return None
    # The end of a new piece lies within an old one of each part: no digits are lost in
    # moving the origin there.
    origins = np.append(cuts, cuts[-1])
    coefficients = np.zeros(
        (len(origins), max(part.coefficients.shape[1] for part in parts))
    )
    coefficients[:, 0] = node.constant
    for weight, part in zip(node.weights, parts, strict=True):
        piece = np.append(np.searchsorted(part.cuts, cuts, side="left"), len(part.cuts))
        shift, old = origins - part.origins[piece], part.coefficients[piece]
        for power in range(old.shape[1]):
            for lower in range(power + 1):
                coefficients[:, lower] += (
                    weight
                    * comb(power, lower)
                    * old[:, power]
                    * shift ** (power - lower)
                )
    return Pieces(parts[0].of, cuts, origins, coefficients)


def _joined(frame, name, maps, group=None):
    """Return the rows, each with its piece, and the names of the columns of the origin
    and the coefficients.

    Parameters
    ----------
    frame : narwhals LazyFrame
        The rows.
    name : str
        Column of the value, without NULL: a join loses it.
    maps : list of Pieces
        One map, or one per group.
    group : str, default=None
        Column of the number of the group, if there are several.
    """
    n_pieces = max(len(node.origins) for node in maps)
    n_cells = min(4 * n_pieces, max(n_pieces, _MOST_OF_ALL // len(maps)))
    n_cells = int(np.clip(n_cells, _LEAST_CELLS, _MOST_CELLS))
    rows = [
        pieces_by_cell(
            own,
            lambda scores: np.floor(coarse_place(np.clip(scores, 0, 1), n_cells)),
            2.0,
        )
        for own in maps
    ]
    width = max(own.shape[1] for own in rows)
    table = np.vstack(
        [np.pad(own, ((0, 0), (0, width - own.shape[1]))) for own in rows]
    ).T.copy()
    cell, low, high, *columns = (f"{name}_{number}" for number in range(width))
    table = dict(zip((cell, low, high, *columns), table, strict=True))
    table[cell], keys = table[cell].astype(np.int64), [cell]
    if group is not None:
        table[group] = np.repeat(np.arange(len(maps)), list(map(len, rows)))
        keys.append(group)
    frame = frame.with_columns(coarse_cell(n_cells, name).alias(cell))
    frame = frame.join(beside(frame, table), on=keys, how="inner")
    return (
        frame.filter((nw.col(name) > nw.col(low)) & (nw.col(name) <= nw.col(high))),
        columns,
    )
