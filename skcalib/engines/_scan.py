"""Parquet and CSV files as a lazy table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from skcalib._install import install
from skcalib.export._sql_text import DIALECTS

_DUCKDB = DIALECTS["duckdb"]
_PARQUET = (".parquet", ".pq")


def scan(path: str | Path | Sequence[str | Path]) -> Any:
    r"""Open one or more Parquet or CSV files as a lazy DuckDB table.

    The metadata of many Parquet files state that a column contains no NaN even if it
    does. DuckDB relies on these metadata, so its filters keep NaN. This function
    disables their use.

    Parameters
    ----------
    path : str or Path
        A file, or a glob such as ``"log/*.parquet"``. Files whose names end in
        ``.parquet`` or ``.pq`` are read as Parquet, all others as CSV with a header
        (which may be compressed). A path that exists is not treated as a glob. Folder
        names such as ``country=FR`` become a column, unless the files have a column
        with this name. If types differ between Parquet files, the wider type is used.

    Returns
    -------
    relation : duckdb.DuckDBPyRelation
        The table, on DuckDB's default connection, whose settings apply:
        ``duckdb.sql("SET memory_limit = '1GB'")``.

    Raises
    ------
    ImportError
        If DuckDB is not installed.
    FileNotFoundError
        If no file matches.
    ValueError
        If DuckDB cannot read a file, or if a CSV header contains a column name twice.

    See Also
    --------
    skcalib.engines.PredictionTable : Errors and fits computed where the table is
        stored.

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
        raise ImportError(f"scan needs DuckDB: {install('engine')}.") from error
    if not isinstance(path, str | Path):
        raise TypeError(
            f"path must be a string or a Path, found {type(path).__name__}."
        )
    is_parquet = str(path).lower().endswith(_PARQUET)
    if Path(path).is_dir():
        raise ValueError(
            f"{path} is a folder: name its files with a glob, such as"
            f" {Path(path) / '*.parquet'}."
        )
    # A path that exists is that file, and no pattern: [*] stands for the character *.
    pattern = str(path)
    if Path(path).exists():
        pattern = re.sub(r"[*?\[]", r"[\g<0>]", pattern)
    # Columns of several files are matched by name. Otherwise the types and the order of
    # the first file would hold for all, and fractions could become integers.
    file_options = f"{_DUCKDB.text(pattern)}, union_by_name = true"
    # A call without its closing bracket: options are appended below.
    if is_parquet:
        reader = f"read_parquet({file_options}, can_have_nan = true"
    else:
        reader = f"read_csv({file_options}, header = true"
    try:
        reader = _without_clash(duckdb, reader, pattern)
        if is_parquet:
            return duckdb.sql(f"SELECT * FROM {reader})")
        return _csv(duckdb, reader, path)
    except duckdb.IOException as error:
        if "No files found" in str(error):
            raise FileNotFoundError(f"There is no file {path}.") from None
        raise ValueError(f"{path} cannot be read: {error}") from error
    except duckdb.Error as error:
        raise ValueError(f"{path} cannot be read: {error}") from error


def _without_clash(duckdb, reader, pattern):
    """Return a call of a DuckDB reader in which no folder named ``name=value`` replaces
    a column. `reader` and the result are calls such as ``read_csv('log.csv', header =
    true``, without the closing bracket, so that options can be appended.
    """
    found = duckdb.sql(f"SELECT file FROM glob({_DUCKDB.text(pattern)})").fetchall()
    files = [pattern, *(file for (file,) in found)]
    # The names before the = of such folders, in the paths of the files.
    folder_names = set()
    for file in files:
        for name in re.findall(r"([^/\\=]+)=[^/\\]*[/\\]", file):
            folder_names.add(name.lower())
    if not folder_names:
        return reader
    without_folders = f"{reader}, hive_partitioning = false"
    columns = duckdb.sql(f"SELECT * FROM {without_folders})").columns
    if folder_names.isdisjoint(name.lower() for name in columns):
        return reader
    return without_folders


def _check_distinct(duckdb, reader, names, path):
    """Raise if the header of a CSV file names a column twice: DuckDB would call the
    second column p by the name p_1. `reader` is the text of a call of DuckDB's reader
    without the closing bracket, and `names` are the columns that it finds.
    """
    # The header is read again only if there is a name such as p_1 besides p: one that
    # is the name of a column once the text from the last _ on is removed.
    lower_names = {name.lower() for name in names}
    without_suffix = {name.rpartition("_")[0] for name in lower_names}
    if without_suffix.isdisjoint(lower_names):
        return
    row = duckdb.sql(
        f"SELECT * FROM {reader.replace('header = true', 'header = false')},"
        " all_varchar = true) LIMIT 1"
    )
    header = [str(text).lower() for text in row.fetchall()[0]]
    for text in header:
        if header.count(text) > 1:
            raise ValueError(
                f"{path} has {header.count(text)} columns called {text!r}: rename all"
                " but one."
            )


def _csv(duckdb, reader, path):
    """Return a relation of CSV files in which a fraction in a column that begins with
    integers is an error; DuckDB would round it. `reader` is the text of a call of
    DuckDB's reader without the closing bracket.
    """
    # DuckDB guesses the types from the first rows.
    sniffed = duckdb.sql(f"SELECT * FROM {reader})")
    _check_distinct(duckdb, reader, sniffed.columns, path)
    # Columns that begin with integers are read as texts, which are then checked.
    as_texts = []
    as_integers = []
    for name, guessed_type in zip(sniffed.columns, sniffed.types, strict=True):
        if str(guessed_type) == "BIGINT":
            as_texts.append(f"{_DUCKDB.text(name)}: 'VARCHAR'")
            integer = _whole_number(name, path)
            as_integers.append(f"{integer} AS {_DUCKDB.identifier(name)}")
    if not as_texts:
        return sniffed
    return duckdb.sql(
        f"SELECT * REPLACE ({', '.join(as_integers)}) FROM {reader},"
        f" types = {{{', '.join(as_texts)}}})"
    )


def _whole_number(name, path):
    """Return an SQL expression that casts a column of texts to integers and fails at
    any other text than an integer.
    """
    column = _DUCKDB.identifier(name)
    number = f"TRY_CAST({column} AS DOUBLE)"
    whole = f"TRY_CAST({column} AS BIGINT)"
    # A text such as 01 is a code, not the number 1. (In LIKE, _ is any character and %
    # any text.)
    is_number = (
        f"{number} = {whole} AND NOT ({column} LIKE '0_%' AND {column} NOT LIKE '0.%')"
    )
    message = (
        f"the column {name} of the CSV {path} begins with whole numbers, but later"
        " there is "
    )
    hint = (
        f". Open it with duckdb.read_csv({str(path)!r}, sample_size=-1), which looks at"
        " all rows first."
    )
    failure = f"error(concat({_DUCKDB.text(message)}, {column}, {_DUCKDB.text(hint)}))"
    return f"CASE WHEN {column} IS NULL OR {is_number} THEN {whole} ELSE {failure} END"
