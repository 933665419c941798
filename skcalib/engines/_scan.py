"""Parquet and CSV files as a lazy table."""

from importlib import import_module
from pathlib import Path

__all__ = ["scan"]

_PARQUET = (".parquet", ".pq")


def scan(path):
    r"""Open a Parquet or CSV file, or many of them, as a lazy DuckDB table.

    DuckDB takes from the metadata of many Parquet files that they hold no NaN, even where they do, and then keeps NaN
    in filters. This function tells it not to.

    Parameters
    ----------
    path : str or Path
        A file, or a glob such as ``"log/*.parquet"``. Names that end in ``.parquet`` or ``.pq`` are Parquet, others
        CSV with a header (compressed ones too).

    Returns
    -------
    relation : duckdb.DuckDBPyRelation
        The table, on DuckDB's default connection, whose settings hold: ``duckdb.sql("SET memory_limit = '1GB'")``.

    Raises
    ------
    ImportError
        Without DuckDB.
    FileNotFoundError
        If there is no such file.
    ValueError
        If DuckDB cannot read it.

    See Also
    --------
    skcalib.engines.PredictionTable : Errors and fits where the rows are.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from skcalib.engines import scan
    >>> path = Path(mkdtemp()) / "log.csv"
    >>> _ = path.write_text("p,clicked\n0.25,0\n0.75,1\n")
    >>> scan(path).fetchall()
    [(0.25, 0), (0.75, 1)]
    """
    try:
        duckdb = import_module("duckdb")
    except ImportError as error:
        raise ImportError('scan needs DuckDB: pip install "skcalib[engine]".') from error
    if not isinstance(path, str | Path):
        raise TypeError(f"path must be a string or a Path, found {type(path).__name__}.")
    is_parquet = str(path).lower().endswith(_PARQUET)
    name = "'" + str(path).replace("'", "''") + "'"
    reader = f"read_parquet({name}, can_have_nan = true)" if is_parquet else f"read_csv({name}, header = true)"
    try:
        return duckdb.sql(f"SELECT * FROM {reader}")
    except duckdb.IOException as error:
        if "No files found" in str(error):
            raise FileNotFoundError(f"There is no file {path}.") from None
        raise ValueError(f"{path} cannot be read: {error}") from error
    except duckdb.Error as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
