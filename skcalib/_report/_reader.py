"""Columns of a CSV or Parquet file."""

import csv
import gzip
import warnings
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

# Cells of numbers that mean "missing". In a column of words only an empty cell does: "NA" may be a country.
_MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None")
_PARQUET = {".parquet", ".pq"}


class ReportError(ValueError):
    """What is wrong with the user's file or options, in one line."""


def read_columns(path, names, *, words=()):
    """Read columns of a file.

    Parameters
    ----------
    path : str
        A CSV file (also ``.gz``; separated by comma, semicolon or tab) or a Parquet file.
    names : sequence of str
        The columns that are wanted.
    words : sequence of str, default=()
        Those among them that may hold words, in which only an empty cell is missing.

    Returns
    -------
    columns : dict of ndarray of shape (n,)
        By name; a missing value is NaN among numbers and None among others.

    Raises
    ------
    ReportError
        If the file cannot be read or has no such column.
    """
    names = list(dict.fromkeys(names))
    with on_disk(path) as file:
        read = _read_parquet if _is_parquet(file) else partial(_read_csv, words=words)
        return read(file, names)


def column_names(path):
    """Return the names of a file's columns."""
    with on_disk(path) as file:
        return _parquet_names(file) if _is_parquet(file) else _header(file)[0]


@contextmanager
def on_disk(path, exists=False):
    """Yield a file that can be read more than once, a copy of what comes through a pipe; errors become a ReportError.

    Messages name the path that was given. What `exists` already, such as many files, is left alone.
    """
    if exists:
        yield path
        return
    path = Path(path)
    if not path.exists():
        raise ReportError(f"there is no file {path}.")
    if path.is_dir():
        raise ReportError(f"{path} is a folder, not a file.")
    with TemporaryDirectory() if not path.is_file() else nullcontext() as folder:
        file = path
        if folder is not None:
            file = Path(folder) / "input"
            file.write_bytes(path.read_bytes())
        try:
            yield file
        except ReportError as error:
            raise ReportError(str(error).replace(str(file), str(path))) from error
        except ImportError as error:
            raise ReportError(f'{path} needs pandas and pyarrow to be read: pip install "skcalib[report]".') from error
        except Exception as error:  # the readers' errors have no common class
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ReportError(f"{path} cannot be read: {reason}".replace(str(file), str(path))) from error


def _is_parquet(path):
    if path.suffix.lower() in _PARQUET:
        return True
    with path.open("rb") as file:  # a pipe has no name
        return file.read(4) == b"PAR1"


def _header(path):
    """Return the names of the columns of a CSV file, and what stands between them."""
    with _opened(path) as lines:
        first = lines.readline()
    if not first.strip():
        raise ReportError(f"{path} is empty: its first line must name the columns.")
    separator = max(",;\t", key=first.count)
    return next(csv.reader([first], delimiter=separator), []), separator


def _read_csv(path, names, words):
    header, separator = _header(path)
    check_names(path, names, header)
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # values without a column
        # All columns, for with usecols= a row of too many values goes unnoticed.
        missing = {name: [""] if name in words else list(_MISSING) for name in header}
        options = {"na_values": missing, "keep_default_na": False, "low_memory": False, "encoding": "utf-8-sig"}
        table = pd.read_csv(path, sep=separator, index_col=False, **options)
    return {name: _from_series(table[name]) for name in names}


def _read_parquet(path, names):
    import pyarrow.parquet

    check_names(path, names, _parquet_names(path))
    # Without its metadata a column that pandas wrote as an index is a column.
    table = pyarrow.parquet.read_table(path, columns=names).to_pandas(ignore_metadata=True)
    return {name: _from_series(table[name]) for name in names}


def _parquet_names(path):
    import pyarrow.parquet

    return pyarrow.parquet.read_schema(path).names


def _from_series(series):
    """Return a pandas column as an array, missing values of every kind as NaN or None."""
    values = series.to_numpy()
    if values.dtype.kind != "O":
        return values
    return np.where(series.isna().to_numpy(), None, values)


def _opened(path):
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    return opened(path, "rt", encoding="utf-8-sig", newline="")


def check_names(path, names, present):
    """Refuse columns that are not there, or that are there twice."""
    missing = [name for name in names if name not in present]
    if missing:
        shown = ", ".join(map(str, present[:12])) + ", ..." * (len(present) > 12)
        raise ReportError(f"{path} has no column {missing[0]!r}; its columns are {shown}.")
    twice = [name for name in names if present.count(name) > 1]
    if twice:
        raise ReportError(f"{path} has {present.count(twice[0])} columns called {twice[0]!r}: rename all but one.")
