"""Step functions and piecewise linear functions with many pieces as a table of SQL, to
be joined to the scores.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skcalib.export._sql import check_score_names, provenance_comment, valid_score
from skcalib.export._sql_text import case, clamped, dialect_named, number
from skcalib.export._sql_warehouses import WAREHOUSES, table_text, transpiled
from skcalib.maps import Pieces, calibration_map

_CELLS_PER_PIECE = 2  # at least, on average


class SqlTable(NamedTuple):
    """Three SQL texts: the statement that creates the table, the clause that joins it
    to a table of scores, and the expression for the probability.
    """

    create: str
    join: str
    expression: str


def to_sql_table(
    recalibrator: BaseEstimator,
    *,
    table: str = "calibration",
    score: str = "p",
    dialect: str = "ansi",
) -> Any:
    """Return a piecewise map of one score as a table of its pieces.

    Use it if a CASE expression would be too long or too slow.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted `IsotonicCalibration`, `HistogramBinning`, `UniformMassBinning` or
        `VennAbers` for two classes.
    table : str, default="calibration"
        Name of the table to create.
    score : str, default="p"
        The column of the positive class's probability (its log-odds with
        ``input="logit"``).
    dialect : {"ansi", "duckdb", "spark", "postgres", "snowflake", "bigquery", \
            "redshift", "databricks", "tsql", "oracle", "mysql", "sqlite"}, \
            default="ansi"
        The SQL dialect. For Spark, a temporary view is created instead of a table. All
        but the first four require sqlglot (``pip install skcalib[sql]``).

    Returns
    -------
    texts : SqlTable
        Named tuple ``(create, join, expression)``: run ``create`` once, and then
        ``SELECT *, {expression} AS calibrated FROM my_scores {join}``. Every row occurs
        exactly once in the result.

    Raises
    ------
    ValueError
        If the map is not a piecewise function of one score.
    ImportError
        If the dialect requires sqlglot, which is not installed.

    See Also
    --------
    to_sql : Writes a single expression without a table.

    Notes
    -----
    The range of the scores is divided into cells whose width is a power of two, so that
    the cell of a score is computed exactly. Engines join on equal cells, which is fast,
    and then compare the score with the ends of the few pieces in that cell.

    Examples
    --------
    Isotonic regression on 5,000 churn scores, as a table for DuckDB:

    >>> import numpy as np
    >>> from skcalib import IsotonicCalibration
    >>> from skcalib.export import to_sql_table
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(5000)
    >>> isotonic = IsotonicCalibration().fit(scores, rng.random(5000) < scores**2)
    >>> create, join, expression = to_sql_table(
    ...     isotonic, table="churn_map", score="churn_score", dialect="duckdb"
    ... )
    >>> create[:44]
    'CREATE TABLE "churn_map" AS SELECT * FROM (V'
    >>> query = f"SELECT *, {expression} AS calibrated FROM customers {join}"  # run it after `create`
    """  # noqa: E501
    warehouse = None
    if isinstance(dialect, str) and dialect in WAREHOUSES:
        warehouse = dialect
        dialect = "postgres"  # from which it is translated
    dialect = dialect_named(dialect)
    columns = check_score_names(score)
    if len(columns) != 1 or not isinstance(table, str) or not table:
        raise ValueError(
            f"score and table must each be one name, found {score!r} and {table!r}."
        )
    as_map = calibration_map(recalibrator)
    pieces = as_map.output
    are_pieces = isinstance(pieces, Pieces) and pieces.of is as_map.scores
    if not are_pieces or len(as_map.classes) > 2:
        raise ValueError(
            f"{type(recalibrator).__name__} is not a piecewise map of one score for two"
            " classes: use to_sql."
        )
    score_text = dialect.as_double(dialect.identifier(columns[0]))
    low, high, scale = _cells(pieces.cuts, as_map.input)

    def cell_of(scores):
        """Return the number of the cell of each score, as a float."""
        return np.floor(np.clip(scores, low, high) * scale)

    # The outer pieces end where no score is.
    beyond = 2 * max(abs(low), abs(high), 1e100)
    rows = pieces_by_cell(pieces, cell_of, beyond)
    names = _names(dialect, pieces.coefficients.shape[1])
    named = dialect.identifier(table)
    # The columns of the table: a piece lies in a cell, above `lower` and up to `upper`.
    cell, lower, upper, origin, *coefficients = [f"{named}.{name}" for name in names]
    cell_text = f"FLOOR({clamped(score_text, low, high)}*{number(scale)})"
    condition = f"{cell}={cell_text} AND {lower}<{score_text} AND {upper}>={score_text}"
    # Horner's rule, from the last coefficient down
    *others, value = coefficients
    for coefficient in reversed(others):
        value = f"({value})*({score_text}-{origin})+{coefficient}"
    is_valid = " AND ".join(valid_score(score_text, as_map.input))
    expression = case([(is_valid, value)])
    values = _values(dialect, rows)
    if warehouse is None:
        create = _create(dialect, named, names, values)
    else:
        create = transpiled(table_text(warehouse, named, names, values), warehouse)
        named = transpiled(named, warehouse)
        condition = transpiled(condition, warehouse)
        expression = transpiled(expression, warehouse)
    return SqlTable(
        create + provenance_comment(recalibrator),
        f"LEFT JOIN {named} ON {condition}",
        expression,
    )


def _cells(cuts, input):
    """Return the lowest and the highest score of the range that is divided into cells,
    and how many cells one unit of the score holds: a power of two, so that the cell of
    a score is exact.
    """
    low = 0.0
    high = 1.0
    if input != "probability":
        low = min(cuts, default=0.0)
        high = max(cuts, default=1.0)
    width = 1.0
    if high > low:
        width = high - low
    wanted = max(_CELLS_PER_PIECE * len(cuts), 1) / width
    return float(low), float(high), 2.0 ** np.ceil(np.log2(wanted))


def pieces_by_cell(pieces, cell, beyond):
    """Return the rows of the table, one for each piece in each cell that it reaches:
    columns cell, above, up to, origin and coefficients.

    Parameters
    ----------
    pieces : Pieces
        The map.
    cell : callable
        From scores to the numbers of their cells; it never decreases.
    beyond : float
        Position at which the outer pieces end: above all scores or, with a minus sign,
        below them.

    Returns
    -------
    rows : ndarray of shape (n_rows, 4 + n_coefficients)
    """
    # Piece i holds for scores above above[i], up to up_to[i], in the cells from
    # first[i] to last[i].
    above = np.append(-beyond, pieces.cuts)
    up_to = np.append(pieces.cuts, beyond)
    first = cell(np.nextafter(above, np.inf))
    last = cell(up_to)
    n_cells = (last - first).astype(int) + 1
    # Of each row of the table: the piece, and its number among the cells of that piece.
    piece = np.repeat(np.arange(len(above)), n_cells)
    n_rows_before = np.cumsum(n_cells) - n_cells
    number_in_piece = np.arange(n_cells.sum()) - n_rows_before[piece]
    cell_of_row = first[piece] + number_in_piece
    return np.column_stack(
        (
            cell_of_row,
            above[piece],
            up_to[piece],
            pieces.origins[piece],
            pieces.coefficients[piece],
        )
    )


def _names(dialect, n_coefficients):
    """Return the quoted names of the table's columns, a list of str."""
    names = ["cell", "above", "up_to", "origin"]
    for j in range(n_coefficients):
        names.append(f"coefficient_{j}")
    return [dialect.identifier(f"calibration_{name}") for name in names]


def _values(dialect, rows):
    """Return the numbers of the rows as texts: a list of lists of str."""
    texts = [list(map(number, row)) for row in rows.tolist()]
    # The casts of the first row give the columns their type.
    texts[0] = [dialect.as_double(text) for text in texts[0]]
    return texts


def _create(dialect, table, names, rows):
    """Return the statement that makes the table of the pieces, from the quoted name of
    the table, those of its columns, and the texts of its rows.
    """
    values = ", ".join(f"({','.join(row)})" for row in rows)
    create = "CREATE TABLE"
    if dialect.name == "spark":
        create = "CREATE OR REPLACE TEMPORARY VIEW"
    end = ""
    if dialect.name == "ansi":
        end = " WITH DATA"
    return (
        f"{create} {table} AS SELECT * FROM (VALUES {values}) AS"
        f" pieces ({', '.join(names)}){end}"
    )
