"""Columns of files: CSV and Parquet files in memory, many files and large ones by
DuckDB.
"""

import csv
import gzip
import warnings
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

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
        ``read(names, words=(), most=2_000_000, seed=0)`` returns a dict of arrays by
        name, with NaN or None where a value is missing, and the number of rows of the
        file. `words` are the columns that may hold text, in which only an empty cell is
        missing. From a file that DuckDB reads it takes a random sample of at most
        `most` rows.

    Raises
    ------
    ReportError
        If the file cannot be read or has no such column.
    """
    path = Path(path)
    try:
        source = _duckdb_source(path)
        if source is not None:
            yield source.header, partial(_read_columns, path, source)
            return
        with _binary(path) as file:
            if _is_parquet(path, file):
                source = _ParquetSource(file)
            else:
                source = _CsvSource(path, file)
            yield source.header, partial(_read_columns, path, source)
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


def _read_columns(path, source, names, words=(), most=_MOST_ROWS, seed=0):
    """Return some columns of a source as arrays, a dict by name, and the number of rows
    of the file; the arguments after `source` are those of ``read`` in `opened`.
    """
    names = list(dict.fromkeys(names))
    _check_names(path, names, source.header)
    frame, n_rows = source.frame(names, words, min(most, _MOST_ROWS), seed)
    return {name: _from_series(frame[name]) for name in names}, n_rows


def _binary(path):
    """Return an open file that can be read more than once: for a pipe a copy in
    memory.
    """
    if not path.exists():
        raise ReportError(f"there is no file {path}.")
    if path.is_dir():
        raise ReportError(f"{path} is a folder, not a file.")
    return path.open("rb") if path.is_file() else BytesIO(path.read_bytes())


class _CsvSource:
    """A CSV file.

    Parameters
    ----------
    path : Path
        Its name, for messages and the suffix ``.gz``.
    file : binary file
        The open file.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    """

    def __init__(self, path, file):
        file.seek(0)
        if path.suffix.lower() == ".gz":
            file = gzip.GzipFile(fileobj=file)
        first_line = file.readline().decode("utf-8-sig").strip("\r\n")
        if not first_line.strip():
            raise ReportError(f"{path} is empty: its first line must name the columns.")
        self._file = file
        self._separator = _separator(first_line)
        self.header = next(csv.reader([first_line], delimiter=self._separator))

    def frame(self, names, words, most, seed):
        """Return a DataFrame of all columns and rows, and the number of rows.

        Only the columns in `words` matter of the arguments: in these, which may hold
        text, only an empty field is missing, since "NA" may be a name.
        """
        import pandas as pd

        missing = {}
        for name in self.header:
            missing[name] = [""] if name in words else list(_MISSING)
        self._file.seek(0)
        with warnings.catch_warnings():
            # pandas warns of a row with more values than columns.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # All columns are read: with usecols= such a row would go unnoticed.
            frame = pd.read_csv(
                self._file,
                sep=self._separator,
                index_col=False,
                na_values=missing,
                keep_default_na=False,
                low_memory=False,
                encoding="utf-8-sig",
            )
        return frame, len(frame)


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


def _is_parquet(path, file):
    """Return whether an open file is a Parquet file: by its suffix or, since a pipe has
    none, by its first bytes.
    """
    return path.suffix.lower() in _PARQUET or file.read(4) == b"PAR1"


class _ParquetSource:
    """A Parquet file, given as an open binary file; `header` is a list of the names of
    its columns.
    """

    def __init__(self, file):
        from pyarrow.parquet import ParquetFile

        self._parquet = ParquetFile(file)
        self.header = self._parquet.schema_arrow.names

    def frame(self, names, words, most, seed):
        """Return a DataFrame of the named columns with all rows, and the number of
        rows. The other arguments do not matter for a Parquet file.
        """
        # Without its metadata a column that pandas wrote as an index is a column.
        table = self._parquet.read(columns=names)
        frame = table.to_pandas(ignore_metadata=True)
        return frame, self._parquet.metadata.num_rows


def _duckdb_source(path):
    """Return a glob, a Parquet file with many rows or a large CSV file as a source that
    DuckDB reads; None for another file, or if DuckDB is not installed.
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
    source = _DuckdbSource(relation)
    if is_parquet and is_file and source.n_rows <= _MOST_ROWS:
        return None
    return source


class _DuckdbSource:
    """A DuckDB relation.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    n_rows : int
        The number of rows.
    """

    def __init__(self, relation):
        self._relation = relation
        self.header = list(relation.columns)
        ((self.n_rows,),) = relation.aggregate("count(*)").fetchall()

    def frame(self, names, words, most, seed):
        """Return a DataFrame of the named columns, with all rows or with a random
        sample of about `most`, and the number of all rows.
        """
        wanted = ", ".join(map(_quoted, names))
        if self.n_rows <= most:
            return self._relation.project(wanted).df(), self.n_rows
        # A row is drawn if the hash of its number, modulo 2^32, is below the wanted
        # share of 2^32: the sample is the same for any number of threads. A multiple of
        # 2^32 is added to the number, the seed, so that seeds do not share hashes.
        rows = f"SELECT {wanted}, row_number() OVER () AS skcalib_row FROM skcalib_file"
        is_drawn = (
            f"hash(skcalib_row + {int(seed) * 2**32}) % {2**32} <"
            f" {int(2**32 * most / self.n_rows)}"
        )
        query = f"SELECT {wanted} FROM ({rows}) WHERE {is_drawn}"
        return self._relation.query("skcalib_file", query).df(), self.n_rows


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


def _quoted(name):
    """Return the name of a column as DuckDB reads it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
