"""Columns of files: CSV and Parquet files in memory, many files and large ones by
DuckDB.
"""

import csv
import gzip
import warnings
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from skcalib.export._sql_text import DIALECTS

# Cells of numbers that mean "missing". In a column of words only an empty cell does:
# "NA" may be a country.
_MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
_PARQUET = (".parquet", ".pq")
_MOST_ROWS = 2_000_000  # that are held in memory as they are
_LARGE_CSV = 2**28  # bytes, from which a CSV file is not read by pandas
_LARGE_PACKED_CSV = 2**26


class ReportError(ValueError):
    """What is wrong with the user's file or options, in one line."""

    def __init__(self, message):
        super().__init__(" ".join(str(message).split()))


@contextmanager
def opened(path):
    """Yield the names of a file's columns, and a function that reads some of them.

    Parameters
    ----------
    path : str
        A CSV file (also ``.gz``; separated by comma, semicolon or tab), a Parquet file,
        or one of these through a pipe; with DuckDB a glob, too.

    Yields
    ------
    header : list of str
        The names of the columns.
    read : callable
        From names to their columns as arrays by name, with NaN or None where a value is
        missing, and the number of rows of the file. ``words`` are those among them that
        may hold words, in which only an empty cell is missing. Of more than ``most``
        rows, or two million, in files that DuckDB reads it takes a random sample, by
        ``seed``.

    Raises
    ------
    ReportError
        If the file cannot be read or has no such column.
    """
    path = Path(path)
    try:
        scanned = _scanned(path)
        # What DuckDB scans is not opened here. `table` reads some columns of the file.
        with nullcontext() if scanned else _binary(path) as file:
            header, table = scanned or _parquet(path, file) or _csv(path, file)

            def read(names, words=(), most=_MOST_ROWS, seed=0):
                """Return columns by name and the number of all rows; see `opened`."""
                names = list(dict.fromkeys(names))
                _check_names(path, names, header)
                columns, n_rows = table(names, words, min(most, _MOST_ROWS), seed)
                return {name: _from_series(columns[name]) for name in names}, n_rows

            yield header, read
    except ReportError:
        raise
    except ImportError as error:
        raise ReportError(
            f"{path} needs pandas and pyarrow to be read: pip install"
            ' "skcalib[report]".'
        ) from error
    except Exception as error:  # the readers' errors have no common class
        raise ReportError(
            f"{path} cannot be read: {str(error) or type(error).__name__}"
        ) from error


def _binary(path):
    """Return an open file that can be read more than once: for a pipe a copy in
    memory.
    """
    if not path.exists():
        raise ReportError(f"there is no file {path}.")
    if path.is_dir():
        raise ReportError(f"{path} is a folder, not a file.")
    return path.open("rb") if path.is_file() else BytesIO(path.read_bytes())


def _csv(path, file):
    """Return the names of the columns of a CSV file, and a function ``table(names,
    words, most, seed)`` that reads it, with the arguments of `opened`.

    All columns and all rows are read, whatever `names` and `most` ask for.
    """
    file.seek(0)
    if path.suffix.lower() == ".gz":
        file = gzip.GzipFile(fileobj=file)
    first = file.readline().decode("utf-8-sig").strip("\r\n")
    if not first.strip():
        raise ReportError(f"{path} is empty: its first line must name the columns.")
    separator = _separator(first)
    header = next(csv.reader([first], delimiter=separator))

    def table(names, words, most, seed):
        """Return all columns, and the number of rows."""
        import pandas as pd

        # In columns of words only an empty field is missing: "NA" may be a name.
        missing = {}
        for name in header:
            missing[name] = [""] if name in words else list(_MISSING)
        options = {
            "na_values": missing,
            "keep_default_na": False,
            "low_memory": False,
            "encoding": "utf-8-sig",
        }
        file.seek(0)
        with warnings.catch_warnings():
            # values without a column
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # All columns, for with usecols= a row of too many values goes unnoticed.
            columns = pd.read_csv(file, sep=separator, index_col=False, **options)
        return columns, len(columns)

    return header, table


def _separator(first_line):
    """Return the most frequent of the usual separators."""
    return max(",;\t", key=first_line.count)


def separator_of(path):
    """Return what separates the values of a file that is read as CSV; a comma for other
    files.
    """
    path = Path(path)
    if not path.is_file() or path.suffix.lower() in _PARQUET:
        return ","
    reader = gzip.open if path.suffix.lower() == ".gz" else open
    with reader(path, "rb") as file:
        return _separator(file.readline().decode("utf-8-sig", errors="replace"))


def _parquet(path, file):
    """Return the names of a Parquet file's columns, and a function that reads it, as
    `_csv` does; None for another file.
    """
    # a pipe has no name
    if path.suffix.lower() not in _PARQUET and file.read(4) != b"PAR1":
        return None
    from pyarrow.parquet import ParquetFile

    parquet = ParquetFile(file)

    def table(names, words, most, seed):
        """Return the named columns, and the number of rows."""
        # Without its metadata a column that pandas wrote as an index is a column.
        columns = parquet.read(columns=names).to_pandas(ignore_metadata=True)
        return columns, parquet.metadata.num_rows

    return parquet.schema_arrow.names, table


def _scanned(path):
    """Return the names of the columns, and a function that reads them, as `_csv` does,
    for what DuckDB reads: a glob, a Parquet file with many rows, or a large CSV file.
    None for another file, or without DuckDB.
    """
    name = str(path).lower()
    is_file = path.is_file()
    is_parquet = name.endswith(_PARQUET)
    large = _LARGE_PACKED_CSV if name.endswith(".gz") else _LARGE_CSV
    is_glob = any(character in name for character in "*?[") and not path.exists()
    may_be_large = is_file and (is_parquet or path.stat().st_size > large)
    if not (is_glob or may_be_large):
        return None
    if find_spec("duckdb") is None or find_spec("narwhals") is None:
        return None
    from skcalib.engines import scan

    try:
        relation = scan(str(path))
    except (FileNotFoundError, ValueError) as error:
        raise ReportError(error) from error
    ((n_rows,),) = relation.aggregate("count(*)").fetchall()
    if is_parquet and is_file and n_rows <= _MOST_ROWS:
        return None

    def table(names, words, most, seed):
        """Return the named columns of at most about `most` rows, and the number of all
        rows.
        """
        wanted = ", ".join(map(DIALECTS["duckdb"].identifier, names))
        if n_rows <= most:
            return relation.project(wanted).df(), n_rows
        # A row is drawn if the hash of its number, modulo 2^32, is below the wanted
        # share of 2^32. So the sample is the same for any number of threads. The seed
        # is added above the digits of the number, so that seeds do not share hashes.
        rows = f"SELECT {wanted}, row_number() OVER () AS skcalib_row FROM skcalib_file"
        chosen = (
            f"hash(skcalib_row + {int(seed) * 2**32}) % {2**32} <"
            f" {int(2**32 * most / n_rows)}"
        )
        query = f"SELECT {wanted} FROM ({rows}) WHERE {chosen}"
        return relation.query("skcalib_file", query).df(), n_rows

    return list(relation.columns), table


def _from_series(series):
    """Return a pandas column as an array with NaN, NaT or None for missing values."""
    values = series.to_numpy()
    if values.dtype.kind != "O":
        return values
    return np.where(series.isna().to_numpy(), None, values)


def _check_names(path, names, present):
    """Raise unless each name occurs once among the columns that are `present`."""
    missing = [name for name in names if name not in present]
    if missing:
        shown = ", ".join(map(str, present[:12]))
        if len(present) > 12:
            shown += ", ..."
        raise ReportError(
            f"{path} has no column {missing[0]!r}; its columns are {shown}."
        )
    twice = [name for name in names if present.count(name) > 1]
    if twice:
        raise ReportError(
            f"{path} has {present.count(twice[0])} columns called {twice[0]!r}: rename"
            " all but one."
        )
