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
from skcalib.export._sql import guarded, valid_score
from skcalib.export._sql_table import pieces_by_cell
from skcalib.export._sql_text import DIALECTS
from skcalib.export._sql_writer import SqlWriter
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

# The inputs of the maps are two columns: the score of a row, and the number of its
# *case*, which says which of several maps, one for each segment, applies to it.
_ROW = Scores(2)
_SCORE = OneColumn(_ROW, 0)
_CASE = OneColumn(_ROW, 1)
_MOST_CASES = 64  # a piecewise map with more pieces is not written as CASE but joined
# Number of cells of [0, 1] by which pieces are joined: of one map, and of all together.
_LEAST_CELLS = 2**8
_MOST_CELLS = 2**16
_MOST_OF_ALL = 2**18


def with_forecasts(columns, recalibrator, output, default=None):
    """Return the native table with the forecasts as the column `output`: NULL where the
    score is missing or out of range.

    Databases and Spark get SQL; Polars and Dask call `predict_proba` for parts of the
    table as NumPy arrays.

    Parameters
    ----------
    columns : PredictionColumns
        The table.
    recalibrator : recalibrator, or dict of recalibrators by key of a segment
        What makes the forecasts, fitted.
    output : str
        Name of the new column.
    default : recalibrator, default=None
        For segments that are not in the dict.
    """
    frame = columns.frame
    names = columns.names
    engine = frame.implementation
    is_database = engine.is_duckdb() or engine.is_ibis() or engine.is_spark_like()
    _check_output(output, names, is_database)
    maps = _segment_maps(columns, recalibrator, default)
    # The forecasts as a function of score and case, for engines that call Python.
    if maps is None:
        predict = partial(_forecast, recalibrator)
    else:
        predict = _choice(maps.cases)
    prefix = free_name(frame.collect_schema().names())
    score = f"{prefix}_score"
    number = f"{prefix}_case"

    if isinstance(frame, nw.DataFrame):
        scores = frame.select(columns.score.alias(score))[score].to_numpy()
        if maps is None:
            case_of_row = np.zeros(len(scores))
        else:
            case_of_row = _cases_in_memory(columns, maps)
        forecasts = _forecasts(scores, case_of_row, predict)
        series = nw.new_series(output, forecasts, nw.Float64, backend=engine)
        frame = frame.select(names).with_columns(series)
        return frame.with_columns(_without_nan(output)).to_native()

    frame = frame.with_columns(columns.score.alias(score), nw.lit(0).alias(number))
    if maps is not None:
        keys = columns.keys(prefix=f"{score}_")
        frame = _with_case(columns, frame.with_columns(**keys), keys, maps, number)
        # Rows of a segment without a map have the case -1. They lose their score, and
        # with it the forecast; then any case will do.
        is_known = nw.col(number) >= 0
        score_of_known = nw.when(is_known).then(nw.col(score))
        case_of_known = nw.when(is_known).then(nw.col(number)).otherwise(nw.lit(0))
        frame = frame.with_columns(
            score_of_known.alias(score), case_of_known.alias(number)
        )
    if is_database:
        cases = (map_of(recalibrator, _SCORE),) if maps is None else maps.cases
        frame = _written(frame, cases, score, number, output)
        return frame.select(*names, output).to_native()
    add_forecasts = _by_batch if engine.is_polars() else _by_partition
    native = add_forecasts(frame.to_native(), score, number, output, predict)
    frame = nw.from_native(native)
    return frame.select(*names, _without_nan(output)).to_native()


def _check_output(output, names, is_database):
    """Raise unless the name of the new column is free; databases do not tell upper from
    lower case.
    """
    if not isinstance(output, str) or output in names:
        raise ValueError(f"output must be the name of a new column, found {output!r}.")
    if not is_database:
        return
    for name in names:
        if name.lower() == output.lower():
            raise ValueError(
                f"output must be the name of a new column, found {output!r}: the engine"
                f" does not tell it from {name!r}."
            )


class _SegmentMaps(NamedTuple):
    """The maps of segments.

    Attributes
    ----------
    cases : tuple of maps
        The distinct maps; the position of a map is the number of its case.
    numbers : dict of int
        Number of the case by the key of the segment, a tuple of values.
    otherwise : int
        Number of the case of other segments, -1 for no map.
    """

    cases: tuple
    numbers: dict
    otherwise: int


def _segment_maps(columns, recalibrator, default):
    """Return the `_SegmentMaps`, which say what map each segment has; None where one
    map is for all rows. `recalibrator` and `default` are what the user gave.
    """
    if isinstance(recalibrator, dict):
        return _maps_of_dict(columns, recalibrator, default)
    _check(recalibrator)
    if default is not None:
        raise ValueError(
            "default applies only to a dict of recalibrators: any other recalibrator"
            " has a map for every row."
        )
    if type(recalibrator) is not GroupwiseRecalibrator:
        return None
    # The map chooses by the group among several. One that does not is the same for all
    # groups.
    groupwise_map = map_of(recalibrator, _SCORE)
    key = getattr(groupwise_map, "key", None)
    if not isinstance(key, GroupOf):
        return None
    if len(columns.by) != 1:
        raise ValueError(
            "GroupwiseRecalibrator takes the groups of rows from one column: name it"
            " with by=."
        )
    numbers = {(group,): number for group, number in key.cases.items()}
    _check_keys(columns, numbers, "a group of the recalibrator")
    return _SegmentMaps(groupwise_map.cases, numbers, key.otherwise)


def _maps_of_dict(columns, recalibrators, default):
    """Return the `_SegmentMaps` of fitted recalibrators by segment, whose keys are
    tuples of values.
    """
    if not columns.by:
        raise ValueError(
            "a dict of recalibrators is for a table with segments: name their columns"
            " with by=."
        )
    if not recalibrators:
        raise ValueError(
            "a dict of recalibrators must contain one for each segment, but it is"
            " empty."
        )
    _check_keys(columns, recalibrators, "a key of the dict")
    numbers = {key: number for number, key in enumerate(recalibrators)}
    models = list(recalibrators.values())
    otherwise = -1
    if default is not None:
        otherwise = len(models)
        models.append(default)
    cases = []
    for recalibrator in models:
        _check(recalibrator)
        case = map_of(recalibrator, _SCORE)
        if isinstance(getattr(case, "key", None), GroupOf):
            raise ValueError(
                "a dict of recalibrators cannot contain a GroupwiseRecalibrator, which"
                " has its own groups."
            )
        cases.append(case)
    return _SegmentMaps(tuple(cases), numbers, otherwise)


def _check_keys(columns, keys, what):
    """Raise for keys that cannot be segments of the table. `what` says in the message
    what a key is.
    """
    schema = columns.frame.collect_schema()
    for key in keys:
        if not isinstance(key, tuple) or len(key) != len(columns.by):
            raise ValueError(
                f"{what}={key!r} is not a tuple of one value per column of"
                f" by={columns.by!r}."
            )
        for value, name in zip(key, columns.by, strict=True):
            check_value(what, value, name, schema[name])


def _check(recalibrator):
    """Raise unless this is a fitted recalibrator of one score of two classes."""
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
            f"a table contains probabilities: {name} needs"
            f" input='probability', found {recalibrator.input!r}."
        )


def _with_case(columns, frame, keys, maps, name):
    """Return a lazy frame with the number of each row's case, which is the position of
    the map for its segment among `maps.cases`, as the column `name`.

    `frame` has the key columns, `keys` holds them as expressions by name, and `maps`
    are the `_SegmentMaps`.
    """
    segment_column = f"{name}_segment"
    number_column = f"{name}_number"
    segments = columns.segments(keys)
    frame = segments.attached(frame, segment_column)
    # number of the segment by key, for the keys that occur in the table
    segment_of_key = segments.numbers(maps.numbers)
    case = nw.lit(maps.otherwise)
    if segment_of_key:
        table = {
            segment_column: list(segment_of_key.values()),
            number_column: [maps.numbers[key] for key in segment_of_key],
        }
        frame = frame.join(beside(frame, table), on=segment_column, how="left")
        case = nw.col(number_column).fill_null(maps.otherwise)
    return frame.with_columns(case.cast(nw.Int32).alias(name))


def _cases_in_memory(columns, maps):
    """Return the case of each row (n,) of an eager frame: the position of the map for
    its segment among `maps.cases`, -1 without a map.
    """
    keys = columns.keys(prefix="")
    # Only the keys are joined: Arrow joins no table that has columns of lists.
    frame = columns.frame.select(**keys).with_row_index("row").lazy()
    cases = _with_case(columns, frame, keys, maps, "case").select("row", "case")
    return cases.collect().sort("row")["case"].to_numpy()


# In NumPy.


def _choice(cases):
    """Return one map of score and case, which applies to each row the map of its case,
    0 to len(cases) - 1.
    """
    # `Place` counts the cuts below a value: with cuts at .5, 1.5, ... it returns the
    # number of the case.
    cuts = np.arange(len(cases) - 1) + 0.5
    return Choice(Place(_CASE, cuts), cases)


def _forecast(recalibrator, rows):
    """Return the forecasts (n, 1) of a recalibrator for `Rows` with two columns: the
    score, and the case (which of several maps applies), which is not used here.
    """
    (inputs, *_) = rows.inputs
    scores = inputs[:, 0]  # the other column is the case
    # A recalibrator that was fitted to the scores of both classes takes both.
    if getattr(recalibrator, "n_features_in_", 1) == 2:
        scores = np.column_stack((1 - scores, scores))
    return recalibrator.predict_proba(scores)[:, [1]]


def _forecasts(scores, case_of_row, predict):
    """Return the forecasts (n,) of `predict`, a function of `Rows` of score and case,
    NaN where the score is not valid or the case is negative.

    `scores` and `case_of_row` are (n,); the case is the number of the map that applies
    to the row, negative for none.
    """
    scores = scores.astype(np.float64)
    is_valid = (scores >= 0) & (scores <= 1) & (case_of_row >= 0)
    forecasts = np.full(len(scores), np.nan)
    if is_valid.any():
        rows = np.column_stack((scores, case_of_row))
        forecasts[is_valid] = predict(Rows(rows[is_valid]))[:, 0]
    return forecasts


def _by_batch(frame, score, number, output, predict):
    """Return a lazy Polars frame with the forecasts as the column `output`, computed
    batch by batch from the columns `score` and `number` (of the map that applies).
    """
    polars = import_module("polars")

    def forecasts(rows):
        """Return the forecasts of a batch of pairs (score, number of the map)."""
        scores = rows.struct.field(score).to_numpy()
        numbers = rows.struct.field(number).to_numpy()
        return polars.Series(_forecasts(scores, numbers, predict))

    rows = polars.struct(score, number)
    column = rows.map_batches(forecasts, polars.Float64, is_elementwise=True)
    return frame.with_columns(column.alias(output))


def _by_partition(frame, score, number, output, predict):
    """Return a Dask frame with the forecasts as the column `output`, computed partition
    by partition from the columns `score` and `number` (of the map that applies).
    """

    def with_forecasts(part):
        """Return a partition, a pandas DataFrame, with the new column."""
        scores = part[score].to_numpy(np.float64, na_value=np.nan)
        forecasts = _forecasts(scores, part[number].to_numpy(), predict)
        return part.assign(**{output: forecasts})

    # Dask asks for an empty frame with the columns and types of the result.
    meta = frame._meta.assign(**{output: 0.0})
    return frame.map_partitions(with_forecasts, meta=meta)


def _without_nan(name):
    """Return a column as an expression with NULL in place of NaN."""
    return nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name)


# In SQL.


def _written(frame, cases, score, number, output):
    """Return a lazy frame of a database or of Spark with the forecasts as the column
    `output`, in SQL.

    `cases` are the maps; `score` and `number` name the columns of the score and of the
    number of the map that applies to a row.
    """
    dialect = DIALECTS["spark" if frame.implementation.is_spark_like() else "duckdb"]
    score_text = dialect.as_double(dialect.identifier(score))
    case_text = dialect.as_double(dialect.identifier(number))
    # Long piecewise maps are joined to the rows as a table of pieces; all others are
    # written as one expression.
    pieces = [_as_pieces(case) for case in cases]
    are_pieces = all(node is not None and node.of is _SCORE for node in pieces)
    if are_pieces and _needs_join(*pieces):
        # A join loses rows with NULL: those without a valid score get the score 0 here,
        # and no forecast below.
        is_inside = (nw.col(score) >= 0) & (nw.col(score) <= 1)
        inside = nw.when(is_inside).then(nw.col(score)).otherwise(nw.lit(0.0))
        name = f"{score}_inside"
        frame = frame.with_columns(inside.alias(name))
        group = number if len(pieces) > 1 else None
        frame, names = _joined(frame, name, pieces, group)
        # A polynomial in (score - origin) by Horner's rule, from the last coefficient.
        origin, *coefficients, last_coefficient = map(dialect.identifier, names)
        text = last_coefficient
        for coefficient in reversed(coefficients):
            text = f"({text})*({score_text}-{origin})+{coefficient}"
    else:
        writer = SqlWriter([score_text, case_text], dialect)
        [text] = writer.write(_choice(cases))
    is_valid = " AND ".join(valid_score(score_text, "probability"))
    return with_sql(frame, guarded(is_valid, f"({text})", dialect), output, dialect)


def _needs_join(*maps):
    """Return whether piecewise maps of one value in [0, 1] are too long for a CASE."""
    cuts = np.concatenate([node.cuts for node in maps])
    return len(cuts) >= _MOST_CASES and cuts.min() >= 0 and cuts.max() <= 1


def _as_pieces(node):
    """Return a map as one `Pieces`: a `Pieces` itself, or a `Mixture` (a constant plus
    a weighted sum) of `Pieces` of the same value; None for other maps.

    `Pieces` are polynomials in (value - origin), one between each two cuts.
    """
    if isinstance(node, Pieces):
        return node
    if not isinstance(node, Mixture):
        return None
    summands = node.parts
    for summand in summands:
        if not isinstance(summand, Pieces) or summand.of is not summands[0].of:
            return None
    cuts = np.unique(np.concatenate([summand.cuts for summand in summands]))
    if len(cuts) == 0:
        return None
    # The origin of a new piece is its upper cut, which lies within or at the end of a
    # piece of each summand: moving the origin there loses no digits.
    origins = np.append(cuts, cuts[-1])
    n_coefficients = max(summand.coefficients.shape[1] for summand in summands)
    coefficients = np.zeros((len(origins), n_coefficients))
    coefficients[:, 0] = node.constant
    for weight, summand in zip(node.weights, summands, strict=True):
        # the summand's piece that holds each new one
        piece = np.searchsorted(summand.cuts, cuts, side="left")
        piece = np.append(piece, len(summand.cuts))
        shift = origins - summand.origins[piece]
        old = summand.coefficients[piece]
        # (x + shift)^power by the binomial theorem, x measured from the new origin
        for power in range(old.shape[1]):
            for lower in range(power + 1):
                term = comb(power, lower) * shift ** (power - lower)
                coefficients[:, lower] += weight * old[:, power] * term
    return Pieces(summands[0].of, cuts, origins, coefficients)


def _joined(frame, name, maps, group=None):
    """Return a lazy frame of the rows joined to the pieces of a piecewise polynomial
    map that hold their values, and the names of the columns of a piece's origin and
    coefficients.

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
    # Rows and pieces are joined by the cell of the value, since databases join by equal
    # numbers much faster than by ranges; then the piece is found within the cell.
    # Four cells a piece, so that most cells hold one; fewer with many maps, whose cells
    # make one table.
    n_pieces = max(len(node.origins) for node in maps)
    n_cells = min(4 * n_pieces, max(n_pieces, _MOST_OF_ALL // len(maps)))
    n_cells = int(np.clip(n_cells, _LEAST_CELLS, _MOST_CELLS))

    def cell_of(scores):
        """Return the cell of each score (n,), as `coarse_cell` in SQL."""
        return np.floor(coarse_place(np.clip(scores, 0, 1), n_cells))

    # Each map's pieces by cell: columns cell, low, high, origin and coefficients. Maps
    # of a lower degree are padded with coefficients of 0.
    rows_by_map = [pieces_by_cell(node, cell_of, beyond=2.0) for node in maps]
    width = max(rows.shape[1] for rows in rows_by_map)
    padded = []
    for rows in rows_by_map:
        padded.append(np.pad(rows, ((0, 0), (0, width - rows.shape[1]))))
    names = [f"{name}_{number}" for number in range(width)]
    table = dict(zip(names, np.vstack(padded).T.copy(), strict=True))
    cell, low, high, *columns = names
    table[cell] = table[cell].astype(np.int64)
    keys = [cell]
    if group is not None:
        n_rows = [len(rows) for rows in rows_by_map]
        table[group] = np.repeat(np.arange(len(maps)), n_rows)
        keys.append(group)
    frame = frame.with_columns(coarse_cell(n_cells, name).alias(cell))
    frame = frame.join(beside(frame, table), on=keys, how="inner")
    is_piece = (nw.col(name) > nw.col(low)) & (nw.col(name) <= nw.col(high))
    return frame.filter(is_piece), columns
