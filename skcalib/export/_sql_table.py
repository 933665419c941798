"""Step functions and piecewise linear functions with many pieces as a table of SQL, to
be joined to the scores.
"""

from __future__ import annotations

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
        but the first four require sqlglot (the extra ``sql``).

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
    # Cells are intervals of equal width that cover the scores: a score is compared only
    # with the pieces in its cell.
    cells = _cells(pieces.cuts, as_map.input)

    def cell_of(scores):
        """Return the number of the cell of each score (n,), as a float."""
        return np.floor(np.clip(scores, cells.low, cells.high) * cells.per_unit)

    # The outer pieces end where no score is.
    beyond = 2 * max(abs(cells.low), abs(cells.high), 1e100)
    rows = pieces_by_cell(pieces, cell_of, beyond)
    names = _column_names(dialect, pieces.coefficients.shape[1])
    quoted_table = dialect.identifier(table)
    # A row is joined to the piece in its cell that reaches from `lower`, exclusive, to
    # `upper`, inclusive.
    qualified = [f"{quoted_table}.{name}" for name in names]
    cell, lower, upper, origin, *coefficients = qualified
    clipped = clamped(score_text, cells.low, cells.high)
    cell_text = f"FLOOR({clipped}*{number(cells.per_unit)})"
    condition = f"{cell}={cell_text} AND {lower}<{score_text} AND {upper}>={score_text}"
    # Horner's rule, from the last coefficient down
    *others, value = coefficients
    for coefficient in reversed(others):
        value = f"({value})*({score_text}-{origin})+{coefficient}"
    is_valid = " AND ".join(valid_score(score_text, as_map.input))
    expression = case([(is_valid, value)])
    values = _values(dialect, rows)
    if warehouse is None:
        create = _create(dialect, quoted_table, names, values)
    else:
        create = table_text(warehouse, quoted_table, names, values)
        create = transpiled(create, warehouse)
        quoted_table = transpiled(quoted_table, warehouse)
        condition = transpiled(condition, warehouse)
        expression = transpiled(expression, warehouse)
    return SqlTable(
        create + provenance_comment(recalibrator),
        f"LEFT JOIN {quoted_table} ON {condition}",
        expression,
    )


class _Cells(NamedTuple):
    """A division of the scores from `low` to `high` into cells, of which one unit of
    the score holds `per_unit`. That is a power of two, so that the product of a score
    and it is exact; its floor is the number of the cell.
    """

    low: float
    high: float
    per_unit: float


def _cells(cuts, input):
    """Return the `_Cells`, intervals of equal width, for pieces with these cuts
    (n_pieces - 1,): at least two cells for each piece. `input` is "probability" or
    "logit".
    """
    low = 0.0
    high = 1.0
    if input != "probability":
        low = min(cuts, default=0.0)
        high = max(cuts, default=1.0)
    width = 1.0
    if high > low:
        width = high - low
    wanted_per_unit = max(_CELLS_PER_PIECE * len(cuts), 1) / width
    # A power of two: products with it are exact in all engines.
    per_unit = 2.0 ** np.ceil(np.log2(wanted_per_unit))
    return _Cells(float(low), float(high), per_unit)


def pieces_by_cell(pieces, cell, beyond):
    """Return the rows of a table of pieces. A piece that reaches several cells has a
    row in each of them, so that a score finds its piece among the rows of its cell.

    The columns are the number of the cell, the lower and the upper end of the piece
    (which may lie outside the cell), its origin, and its coefficients from the constant
    up.

    Parameters
    ----------
    pieces : Pieces
        The map, a polynomial in (score - origin) between each two cuts.
    cell : callable
        From scores to the numbers of their cells; it never decreases.
    beyond : float
        Upper end of the last piece, above all scores; the lower end of the first one
        has the opposite sign.

    Returns
    -------
    rows : ndarray of shape (n_rows, 4 + n_coefficients)
    """
    # Piece i is for scores above lower[i], up to upper[i], and reaches the cells from
    # first_cell[i] to last_cell[i].
    lower = np.append(-beyond, pieces.cuts)
    upper = np.append(pieces.cuts, beyond)
    first_cell = cell(np.nextafter(lower, np.inf))
    last_cell = cell(upper)
    n_cells = (last_cell - first_cell).astype(int) + 1
    # The piece of each row: i is repeated n_cells[i] times.
    piece = np.repeat(np.arange(len(lower)), n_cells)
    # The rows of a piece are numbered from 0: its place among all rows less the number
    # of rows of earlier pieces. Each is for the next cell.
    n_rows_before = np.cumsum(n_cells) - n_cells
    number_in_piece = np.arange(n_cells.sum()) - n_rows_before[piece]
    return np.column_stack(
        (
            first_cell[piece] + number_in_piece,
            lower[piece],
            upper[piece],
            pieces.origins[piece],
            pieces.coefficients[piece],
        )
    )


def _column_names(dialect, n_coefficients):
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
    """Return the statement that makes the table of the pieces, from quoted names and
    the texts of its rows.
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
