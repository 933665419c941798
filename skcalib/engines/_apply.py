"""A fitted recalibrator, or one for each segment, as one more column of a table."""

from functools import partial
from importlib import import_module
from math import comb
from typing import NamedTuple

import numpy as np

from skcalib._defaults import check_fitted
from skcalib._fitting.wrapped import refuse_features
from skcalib.engines._columns import check_value, free_name
from skcalib.engines._histogram import coarse_cell, coarse_place
from skcalib.engines._native import joinable, nw, with_sql
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

# The inputs of the calibration maps are two columns: the score of a row, and the index
# of the map that applies to it, among the maps of all segments.
_ROW = Scores(2)
_SCORE = OneColumn(_ROW, 0)
_MAP_INDEX = OneColumn(_ROW, 1)
# Piecewise maps with as many cuts are not written as CASE: their pieces are joined.
_FEWEST_CUTS_TO_JOIN = 64
# Number of cells of [0, 1] by which pieces are joined: of one map, and of all together.
_LEAST_CELLS = 2**8
_MOST_CELLS = 2**16
_MOST_CELLS_OF_ALL_MAPS = 2**18


def with_forecasts(columns, recalibrator, output, default=None):
    """Return the user's table with the forecasts as the new column `output`.

    It is NULL where the score is missing or outside [0, 1], and in segments that have
    no map. Databases and Spark get the maps as SQL; for other engines `predict_proba`
    is called with NumPy arrays of scores.

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
    engine = frame.implementation
    is_database = engine.is_duckdb() or engine.is_ibis() or engine.is_spark_like()
    _check_output(output, columns.names, is_database)
    maps = _maps_by_segment(columns, recalibrator, default)
    # A function of scores and map indices, for engines that call Python.
    if maps is None:
        predict = partial(_forecasts_of_one, recalibrator)
    else:
        predict = partial(_forecasts_of_several, _choice_by_index(maps.maps))
    if isinstance(frame, nw.DataFrame):
        return _in_memory(columns, maps, predict, output)

    prefix = free_name(frame.collect_schema().names())
    score = f"{prefix}_score"
    map_index = f"{prefix}_map_index"
    frame = _with_score_and_index(columns, maps, score, map_index)
    if is_database:
        all_maps = (map_of(recalibrator, _SCORE),) if maps is None else maps.maps
        frame = _with_sql_forecasts(frame, all_maps, score, map_index, output)
        return frame.select(*columns.names, output).to_native()
    add_forecasts = _by_batch if engine.is_polars() else _by_partition
    native = add_forecasts(frame.to_native(), score, map_index, output, predict)
    frame = nw.from_native(native)
    return frame.select(*columns.names, _without_nan(output)).to_native()


def _in_memory(columns, maps, predict, output):
    """Return the user's table with the forecasts of ``predict(scores, map_indices)`` as
    the column `output`; `maps` is None for a single map.
    """
    frame = columns.frame
    score = free_name(frame.collect_schema().names())
    scores = frame.select(columns.score.alias(score))[score].to_numpy()
    if maps is None:
        map_index = np.zeros(len(scores), dtype=np.int64)
    else:
        map_index = _map_index_in_memory(columns, maps)
    forecasts = _forecasts_or_nan(scores, map_index, predict)
    engine = frame.implementation
    series = nw.new_series(output, forecasts, nw.Float64, backend=engine)
    frame = frame.select(columns.names).with_columns(series)
    return frame.with_columns(_without_nan(output)).to_native()


def _with_score_and_index(columns, maps, score, map_index):
    """Return the lazy frame with each row's score and the index of its map (0 without
    `maps`), in columns of the given names. Rows of a segment without a map get the
    score NULL, and no forecast.
    """
    frame = columns.frame
    frame = frame.with_columns(columns.score.alias(score), nw.lit(0).alias(map_index))
    if maps is None:
        return frame
    keys = columns.keys(prefix=f"{score}_")
    frame = frame.with_columns(**keys)
    frame = _with_map_index(columns, frame, keys, maps, map_index)
    # -1 stands for no map. Without a score any index will do: these rows get 0.
    has_map = nw.col(map_index) >= 0
    score_if_map = nw.when(has_map).then(nw.col(score))
    index_or_zero = nw.when(has_map).then(nw.col(map_index)).otherwise(nw.lit(0))
    return frame.with_columns(score_if_map.alias(score), index_or_zero.alias(map_index))


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
                f" cannot distinguish it from {name!r}."
            )


class _MapsBySegment(NamedTuple):
    """The calibration maps of a table's segments.

    Attributes
    ----------
    maps : tuple of maps
        The distinct maps, functions of `_SCORE`.
    index_of_segment : dict of int
        Index in `maps` by the key of the segment, a tuple of values.
    default_index : int
        Index in `maps` for segments that are not in the dict, -1 for no map.
    """

    maps: tuple
    index_of_segment: dict
    default_index: int


def _maps_by_segment(columns, recalibrator, default):
    """Return the `_MapsBySegment` of what the user gave as `recalibrator` and
    `default`; None if one map applies to all rows.
    """
    if isinstance(recalibrator, dict):
        return _maps_of_dict(columns, recalibrator, default)
    _check_recalibrator(recalibrator)
    if default is not None:
        raise ValueError(
            "default applies only to a dict of recalibrators: a single recalibrator"
            " already covers every row."
        )
    if type(recalibrator) is not GroupwiseRecalibrator:
        return None
    # Its map is a `Choice` among the maps of the groups, with the index of each group's
    # map in `key.cases`, or a single map that is the same for all groups.
    groupwise_map = map_of(recalibrator, _SCORE)
    if not _chooses_by_group(groupwise_map):
        return None
    if len(columns.by) != 1:
        raise ValueError(
            "GroupwiseRecalibrator takes the groups of rows from one column: name it"
            " with by=."
        )
    index_of_group = groupwise_map.key.cases
    index_of_segment = {(group,): index for group, index in index_of_group.items()}
    _check_keys(columns, index_of_segment, "a group of the recalibrator")
    # Other groups have the pooled map.
    pooled_index = groupwise_map.key.otherwise
    return _MapsBySegment(groupwise_map.cases, index_of_segment, pooled_index)


def _chooses_by_group(node):
    """Return whether a map chooses among several by the group of a row."""
    return isinstance(node, Choice) and isinstance(node.key, GroupOf)


def _maps_of_dict(columns, recalibrators, default):
    """Return the `_MapsBySegment` of a dict of fitted recalibrators, whose keys are
    segments (tuples of values), and of the recalibrator `default` for other segments,
    or None.
    """
    if not columns.by:
        raise ValueError(
            "a dict of recalibrators is for a table with groups: name their columns"
            " with by=."
        )
    if not recalibrators:
        raise ValueError(
            "a dict of recalibrators must contain one for each group, but it is empty."
        )
    _check_keys(columns, recalibrators, "a key of the dict")
    index_of_segment = {key: index for index, key in enumerate(recalibrators)}
    models = list(recalibrators.values())
    default_index = -1  # no map
    if default is not None:
        default_index = len(models)
        models.append(default)
    maps = []
    for recalibrator in models:
        _check_recalibrator(recalibrator)
        segment_map = map_of(recalibrator, _SCORE)
        if _chooses_by_group(segment_map):
            raise ValueError(
                "a dict of recalibrators cannot contain a GroupwiseRecalibrator, which"
                " has its own groups."
            )
        maps.append(segment_map)
    return _MapsBySegment(tuple(maps), index_of_segment, default_index)


def _check_keys(columns, keys, what):
    """Raise a ValueError for keys that cannot be segments of the table: tuples with a
    value of each column of `columns.by`. Messages call a key `what`.
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


def _check_recalibrator(recalibrator):
    """Raise unless this is a fitted recalibrator of probabilities of two classes."""
    if not hasattr(recalibrator, "predict_proba") or isinstance(recalibrator, type):
        raise TypeError(
            "recalibrator must be a fitted recalibrator, found"
            f" {type(recalibrator).__name__}."
        )
    check_fitted(recalibrator)
    refuse_features(recalibrator)
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


def _with_map_index(columns, frame, keys, maps, name):
    """Return a lazy frame with a new column `name`: the index of the map for the row's
    segment, -1 if there is none.

    `keys` is a dict from the key columns, which `frame` has, to their expressions.
    """
    segment_column = f"{name}_segment"
    index_column = f"{name}_of_segment"
    # The engine numbers the segments of the table; a small table translates these
    # numbers into indices of maps, for segments that have one of their own.
    segments = columns.segments(keys)
    frame = segments.attached(frame, segment_column)
    number_of_segment = segments.numbers(maps.index_of_segment)
    index = nw.lit(maps.default_index)
    if number_of_segment:
        translation = {
            segment_column: list(number_of_segment.values()),
            index_column: [maps.index_of_segment[key] for key in number_of_segment],
        }
        # the same columns as a small table of the same engine
        small_table = joinable(frame, translation)
        frame = frame.join(small_table, on=segment_column, how="left")
        index = nw.col(index_column).fill_null(maps.default_index)
    return frame.with_columns(index.cast(nw.Int32).alias(name))


def _map_index_in_memory(columns, maps):
    """Return for each row (n,) of a table in memory the index of the map for its
    segment, -1 if there is none.
    """
    keys = columns.keys(prefix="")
    # Only the keys are joined: Arrow joins no table that has columns of lists.
    frame = columns.frame.select(**keys).with_row_index("row").lazy()
    frame = _with_map_index(columns, frame, keys, maps, "map_index")
    # A join may change the order of the rows.
    index_by_row = frame.select("row", "map_index").collect().sort("row")
    return index_by_row["map_index"].to_numpy()


# In NumPy.


def _choice_by_index(maps):
    """Return one map of two inputs, `_SCORE` and `_MAP_INDEX`; the second says which of
    `maps` applies.
    """
    # `Place` counts the cuts below a value: with cuts at .5, 1.5, ... it returns the
    # index itself.
    cuts = np.arange(len(maps) - 1) + 0.5
    return Choice(Place(_MAP_INDEX, cuts), maps)


def _forecasts_of_one(recalibrator, scores, map_index):
    """Return the forecasts (n,) of one recalibrator for scores (n,); `map_index` is not
    used, since one map applies to all rows.
    """
    # A recalibrator that was fitted to the scores of both classes takes both.
    if getattr(recalibrator, "n_features_in_", 1) == 2:
        scores = np.column_stack((1 - scores, scores))
    return recalibrator.predict_proba(scores)[:, 1]


def _forecasts_of_several(choice, scores, map_index):
    """Return the forecasts (n,) of a map of `_choice_by_index` for scores (n,) and
    indices of maps (n,).
    """
    rows = Rows(np.column_stack((scores, map_index)))
    return choice(rows)[:, 0]


def _forecasts_or_nan(scores, map_index, predict):
    """Return the forecasts (n,) of ``predict(scores, map_index)``; NaN where the score
    is missing or outside [0, 1], or no map applies: the index is negative.
    """
    scores = scores.astype(np.float64)
    is_valid = (scores >= 0) & (scores <= 1) & (map_index >= 0)
    forecasts = np.full(len(scores), np.nan)
    if is_valid.any():
        forecasts[is_valid] = predict(scores[is_valid], map_index[is_valid])
    return forecasts


def _by_batch(frame, score, map_index, output, predict):
    """Return a lazy Polars frame with the forecasts as the column `output`, batch by
    batch by ``predict(scores, map_indices)``; `score` and `map_index` are column names.
    """
    polars = import_module("polars")

    def forecasts(rows):
        """Return the forecasts of a batch of pairs (score, index of the map)."""
        scores = rows.struct.field(score).to_numpy()
        indices = rows.struct.field(map_index).to_numpy()
        return polars.Series(_forecasts_or_nan(scores, indices, predict))

    rows = polars.struct(score, map_index)
    column = rows.map_batches(forecasts, polars.Float64, is_elementwise=True)
    return frame.with_columns(column.alias(output))


def _by_partition(frame, score, map_index, output, predict):
    """Return a Dask frame with the forecasts as the column `output`, partition by
    partition by ``predict(scores, map_indices)``; `score` and `map_index` are column
    names.
    """

    def with_forecasts(part):
        """Return a partition, a pandas DataFrame, with the new column."""
        scores = part[score].to_numpy(np.float64, na_value=np.nan)
        forecasts = _forecasts_or_nan(scores, part[map_index].to_numpy(), predict)
        return part.assign(**{output: forecasts})

    # Dask asks for an empty frame with the columns and types of the result.
    meta = frame._meta.assign(**{output: 0.0})
    return frame.map_partitions(with_forecasts, meta=meta)


def _without_nan(name):
    """Return a column as an expression with NULL in place of NaN."""
    return nw.when(~nw.col(name).is_nan()).then(nw.col(name)).alias(name)


# In SQL.


def _with_sql_forecasts(frame, maps, score, map_index, output):
    """Return a lazy frame of a database or of Spark with the forecasts, in SQL, as the
    column `output`; `score` and `map_index` name the columns of the score and of the
    index among `maps`.
    """
    dialect = DIALECTS["spark" if frame.implementation.is_spark_like() else "duckdb"]
    score_text = dialect.as_double(dialect.identifier(score))
    polynomials = [_as_pieces(one_map) for one_map in maps]
    if _need_join(polynomials):
        index_column = map_index if len(maps) > 1 else None
        frame, text = _joined_forecast(
            frame, polynomials, score, index_column, score_text, dialect
        )
    else:
        index_text = dialect.as_double(dialect.identifier(map_index))
        writer = SqlWriter([score_text, index_text], dialect)
        # one expression: a CASE of the index, among the maps
        [text] = writer.write(_choice_by_index(maps))
    is_valid = " AND ".join(valid_score(score_text, "probability"))
    return with_sql(frame, guarded(is_valid, f"({text})", dialect), output, dialect)


def _need_join(polynomials):
    """Return whether the maps must be joined as a table: all are piecewise polynomials
    of the score, with cuts in [0, 1], and together too long for a CASE expression. None
    stands for any other map.
    """
    for pieces in polynomials:
        if pieces is None or pieces.of is not _SCORE:
            return False
    cuts = np.concatenate([pieces.cuts for pieces in polynomials])
    return len(cuts) >= _FEWEST_CUTS_TO_JOIN and cuts.min() >= 0 and cuts.max() <= 1


def _joined_forecast(frame, polynomials, score, map_index, score_text, dialect):
    """Return a lazy frame whose rows are joined to the `Pieces` that hold their scores,
    and the SQL text of the forecast. `score` and `map_index` (None for a single map)
    are column names; `score_text` is the score in SQL.
    """
    # A join would lose rows whose score is NULL. Rows without a valid score are joined
    # with the score 0 instead; their forecast is not used, because the caller makes it
    # NULL.
    is_inside = (nw.col(score) >= 0) & (nw.col(score) <= 1)
    inside = nw.when(is_inside).then(nw.col(score)).otherwise(nw.lit(0.0))
    name = f"{score}_inside"
    frame = frame.with_columns(inside.alias(name))
    frame, origin, coefficients = _with_piece(frame, name, polynomials, map_index)
    # A polynomial in (score - origin) by Horner's rule, from the last coefficient.
    origin = dialect.identifier(origin)
    *others, text = map(dialect.identifier, coefficients)
    for coefficient in reversed(others):
        text = f"({text})*({score_text}-{origin})+{coefficient}"
    return frame, text


def _as_pieces(node):
    """Return a map as one `Pieces`, a piecewise polynomial: itself, or the sum of a
    `Mixture` whose parts are piecewise polynomials of the same value; None for others.
    """
    if isinstance(node, Pieces):
        return node
    if not isinstance(node, Mixture):
        return None
    are_pieces = all(isinstance(summand, Pieces) for summand in node.parts)
    if not are_pieces or len({id(summand.of) for summand in node.parts}) > 1:
        return None
    return _sum_of_pieces(node.parts, node.weights, node.constant)


def _sum_of_pieces(summands, weights, constant):
    """Return the `Pieces` that is the weighted sum of several of the same value plus a
    constant; None without cuts. A new piece reaches from one cut of any summand to the
    next.
    """
    cuts = np.unique(np.concatenate([summand.cuts for summand in summands]))
    if len(cuts) == 0:
        return None
    # The origin of a new piece is its upper cut, which lies in or at the end of a piece
    # of each summand: a shift of the origin to it loses no precision.
    origins = np.append(cuts, cuts[-1])
    n_coefficients = max(summand.coefficients.shape[1] for summand in summands)
    coefficients = np.zeros((len(origins), n_coefficients))
    coefficients[:, 0] = constant
    for weight, summand in zip(weights, summands, strict=True):
        # Which piece of the summand holds each new piece: the number of the summand's
        # cuts below its upper cut. The last new piece lies in the last one.
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


def _with_piece(frame, name, polynomials, map_index=None):
    """Return a lazy frame whose rows are joined to the piece that holds the value in
    the column `name`, never NULL, since a join loses NULL; and the names of the columns
    of its origin and its coefficients, from the constant up. `map_index` is the column
    of the index in `polynomials`, or None.
    """
    # Databases join by equal numbers much faster than by ranges. Therefore [0, 1] is
    # divided into cells, and rows and pieces are joined if they have the same cell; the
    # comparison with the ends of a piece then picks one of the few pieces in a cell.
    n_cells = _n_cells_to_join(polynomials)

    def cell_of(scores):
        """Return the cell of each score (n,), as `coarse_cell` in SQL."""
        return np.floor(coarse_place(np.clip(scores, 0, 1), n_cells))

    # A row for each piece in each cell that it reaches: cell, lower and upper end of
    # the piece, origin, coefficients. Maps of a lower degree get coefficients of 0.
    # Scores end at 1, so that the outer pieces may end at -2 and 2.
    rows_by_map = [
        pieces_by_cell(pieces, cell_of, beyond=2.0) for pieces in polynomials
    ]
    width = max(rows.shape[1] for rows in rows_by_map)
    padded = []
    for rows in rows_by_map:
        padded.append(np.pad(rows, ((0, 0), (0, width - rows.shape[1]))))
    names = [f"{name}_{number}" for number in range(width)]
    table = dict(zip(names, np.vstack(padded).T.copy(), strict=True))
    cell, lower, upper, origin, *coefficients = names
    table[cell] = table[cell].astype(np.int64)
    join_columns = [cell]
    if map_index is not None:
        n_rows_by_map = [len(rows) for rows in rows_by_map]
        table[map_index] = np.repeat(np.arange(len(polynomials)), n_rows_by_map)
        join_columns.append(map_index)
    frame = frame.with_columns(coarse_cell(n_cells, name).alias(cell))
    frame = frame.join(joinable(frame, table), on=join_columns, how="inner")
    is_in_piece = (nw.col(name) > nw.col(lower)) & (nw.col(name) <= nw.col(upper))
    return frame.filter(is_in_piece), origin, coefficients


def _n_cells_to_join(polynomials):
    """Return the number of cells of [0, 1] for a join: four a piece, so that most hold
    one; fewer for many maps, whose cells make one table.
    """
    n_pieces = max(len(pieces.origins) for pieces in polynomials)
    most_of_a_map = max(n_pieces, _MOST_CELLS_OF_ALL_MAPS // len(polynomials))
    n_cells = min(4 * n_pieces, most_of_a_map)
    return int(np.clip(n_cells, _LEAST_CELLS, _MOST_CELLS))
