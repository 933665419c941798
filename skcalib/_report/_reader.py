"""The one reader: columns of files as people have them, of several files and of
databases.
"""

import re
import shutil
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from skcalib._install import install
from skcalib._report._database import (
    duckdb_relation,
    is_url,
    parts_of,
    postgres_frame,
    postgres_relation,
    sqlite_frame,
    without_passwords,
)
from skcalib._report._error import ReportError
from skcalib._report._formats import format_of, is_packed, unpacked
from skcalib._report._sources import (
    ArrowSource,
    CsvSource,
    DuckdbSource,
    ExcelSource,
    InMemory,
    SeveralFiles,
    literal,
    text_source,
    words_option,
)
from skcalib._report._text import layout_of
from skcalib._report._values import (
    PERCENT_SIGNS,
    as_numbers,
    refuse_points_beside_commas,
)

_PARQUET = (".parquet", ".pq")
_MOST_ROWS = 2_000_000  # that are held in memory as they are
_LARGE_CSV = 2**28  # bytes, from which a CSV file is not read by pandas
_LARGE_PACKED_CSV = 2**26
STANDARD_INPUT = "-"
_NEW_SCORES = "new_scores.csv"


@contextmanager
def opened(path, table=None, query=None):
    """Open a file, several files, or a table of a database.

    Parameters
    ----------
    path : str or list of str
        File, glob, several of these, "-" for standard input, or the URL of a database
        (``duckdb:``, ``sqlite:``, ``postgresql:``).
    table, query : str, default=None
        The table or the SQL query of a database; `table` is also the sheet of a
        workbook and the file in a ZIP archive.

    Yields
    ------
    file : OpenedFile
        Its names of columns, and what reads them.

    Raises
    ------
    ReportError
        If the file cannot be read or has no such column.
    """
    given = [path] if isinstance(path, str | Path) else list(path)
    name = shown_source(given)
    try:
        with TemporaryDirectory(prefix="skcalib_") as folder:
            source = _source(given, name, Path(folder), table, query)
            yield OpenedFile(name, source)
    except ReportError:
        raise
    except ImportError as error:
        package = error.name or ""
        needed = "pandas and pyarrow"
        if package not in ("pandas", "pyarrow", "pyarrow.parquet", ""):
            needed = package
        raise ReportError(
            f"{name} needs {needed} to be read: {install('report')}."
        ) from error
    except UnicodeError as error:
        raise ReportError(
            f"{name} is not a text table in the encoding that its first bytes indicate:"
            " save it as CSV in UTF-8."
        ) from error
    except MemoryError as error:
        raise ReportError(
            f"{name} does not fit into memory: save it as Parquet and install DuckDB"
            f" ({install('engine')}), which reads a sample of its rows."
        ) from error
    except Exception as error:  # the readers' errors have no common class
        raise ReportError(
            f"{name} cannot be read: {str(error) or type(error).__name__}"
        ) from error


def shown_source(given):
    """Return the names of files as a text: all of up to three, or their number. A
    password in a URL is left out.
    """
    texts = [without_passwords(str(path)) for path in given]
    if texts == [STANDARD_INPUT]:
        return "standard input"
    if len(texts) > 3:
        return f"{len(texts)} files ({texts[0]}, ..., {texts[-1]})"
    return ", ".join(texts)


@dataclass
class OpenedFile:
    """A file whose columns can be read.

    Attributes
    ----------
    name : str
        What the user calls it.
    source : object
        What reads the columns, with the attributes `header`, `notes` and `code`.
    notes : list of str
        What was assumed in reading.
    conversions : dict of str
        By column, the line of Python that does with a DataFrame `df` what reading did
        with its values.
    percentages : set of str
        The columns whose numbers have percent signs, of which 32 % was read as 0.32.
    """

    name: str
    source: object
    notes: list = field(default_factory=list)
    conversions: dict = field(default_factory=dict)
    percentages: set = field(default_factory=set)

    def __post_init__(self):
        self.notes += self.source.notes
        if isinstance(self.source, ExcelSource):
            self.percentages |= self.source.percentages

    @property
    def header(self):
        """The names of the columns."""
        return self.source.header

    def code(self, *, keep_words):
        """Return the expression that reads the file with pandas; with `keep_words`,
        "NA" in a CSV file is a word, and only an empty cell is a missing value.
        """
        return self.source.code(keep_words=keep_words)

    def code_of_new(self, *, keep_words):
        """Return the expression that reads new scores from a CSV file. If this file is
        a CSV file, the new one has the same format.
        """
        source = self.source
        if isinstance(source, SeveralFiles):
            source = source.first
        if isinstance(source, CsvSource):
            return source.code(path=_NEW_SCORES, keep_words=keep_words)
        return f"pd.read_csv({literal(_NEW_SCORES)}{words_option(keep_words)})"

    def read(self, names, words=(), most=_MOST_ROWS, seed=0, whole=()):
        """Return columns as a dict of arrays by name, with NaN or None where a value is
        missing, and the number of rows of the file.

        `words` are the columns that may hold text, in which only an empty cell is
        missing; the others are numbers, or arrays (n, K) of lists, and those in `whole`
        are counts. From a file that DuckDB reads, a random sample of about `most` rows
        is taken.
        """
        names = list(dict.fromkeys(names))
        self._check_names(names)
        frame, n_rows = self.source.frame(names, words, min(most, _MOST_ROWS), seed)
        columns = {}
        for name in names:
            column = _from_series(frame[name])
            if name not in words:
                column, note, line = as_numbers(column, name, are_whole=name in whole)
                if note:
                    self.notes.append(note)
                if PERCENT_SIGNS in note:
                    self.percentages.add(name)
                if line:
                    self.conversions[name] = line
            columns[name] = column
        is_text = isinstance(self.source, CsvSource | SeveralFiles | DuckdbSource)
        if is_text and any("decimal commas" in note for note in self.notes):
            for name in set(names) - set(words) - set(self.conversions):
                refuse_points_beside_commas(columns[name], name)
        return columns, n_rows

    def glance(self, names):
        """Return columns whose roles are not known yet, as arrays by name; those that
        do not hold numbers are returned as they are in the file.
        """
        frame, _ = self.source.frame(names, (), _MOST_ROWS, 0)
        columns = {}
        for name in names:
            column = _from_series(frame[name])
            with suppress(ReportError):
                column, _, _ = as_numbers(column, name)
            columns[name] = column
        return columns

    def _check_names(self, names):
        """Raise unless each name occurs once among the columns."""
        header = self.header
        missing = [name for name in names if name not in header]
        if missing:
            shown = ", ".join(map(str, header[:12]))
            if len(header) > 12:
                shown += ", ..."
            hint = ""
            alike = [name for name in header if name.lower() == missing[0].lower()]
            if alike:
                hint = f" Did you mean {alike[0]!r}?"
            elif "*" in missing[0]:
                hint = (
                    " If there is a column for each class, combine these into one"
                    " that names the class: df[columns].idxmax(axis=1)."
                )
            elif len(header) == 1 and isinstance(self.source, CsvSource):
                hint = (
                    " If there are several columns, separate them with commas,"
                    " semicolons, tabs, bars or blanks."
                )
            raise ReportError(
                f"{self.name} has no column {missing[0]!r}; its columns are {shown}."
                f"{hint}"
            )
        twice = [name for name in names if header.count(name) > 1]
        if twice:
            raise ReportError(
                f"{self.name} has {header.count(twice[0])} columns called"
                f" {twice[0]!r}: rename all but one."
            )


def _source(given, name, folder, table, query):
    """Return what reads the columns of the files or of the database that the user gave,
    a list of texts. `folder` takes files that are unpacked; `table` and `query`, texts
    or None, say what is read where there are several tables.
    """
    if len(given) == 1:
        text = str(given[0])
        if text == STANDARD_INPUT:
            return _plain_source(_copied_input(folder), name, folder, table, query)
        if is_url(text):
            return _database_source(*parts_of(text), name, table, query)
    files = []
    for text in map(str, given):
        if is_url(text) or text == STANDARD_INPUT:
            raise ReportError(f"{shown_source([text])} cannot be one of several files.")
        files += _files_of(text)
    if len(given) == 1 and _is_scanned(str(given[0]), files):
        scanned = _scanned_source(str(given[0]), name, files)
        if scanned is not None:
            return scanned
    if len(files) == 1:
        return _plain_source(files[0], name, folder, table, query)
    parts = []
    for number, file in enumerate(files):
        # Unpacked files of the same name must not overwrite each other.
        folder_of_file = folder / str(number)
        folder_of_file.mkdir()
        parts.append(_plain_source(file, str(file), folder_of_file, table, query))
    return SeveralFiles(parts, files)


def _files_of(text):
    """Return the paths of the files that a text names: one, or those of a glob."""
    path = Path(text)
    if path.is_dir():
        raise ReportError(
            f"{text} is a folder, not a file: name its files, as in {path / '*.csv'}."
        )
    if path.exists():
        return [path]
    found = []
    if re.search(r"[*?\[]", text):
        found = sorted(filter(Path.is_file, map(Path, glob(text, recursive=True))))
    if not found:
        raise ReportError(f"there is no file {text}.")
    return found


def _copied_input(folder):
    """Return the path of a copy of what standard input holds."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ReportError(
            "- is standard input, but there is none: pipe a file into it, as in cat"
            " scores.csv | python -m skcalib report - ..."
        )
    target = folder / "input"
    with target.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return target


def _plain_source(path, name, folder, table, query):
    """Return what reads the columns of the file at `path`, unpacked into `folder` if
    need be; `name` is that for messages. `table` names a sheet, a table or a file in an
    archive, `query` is for a database; both may be None.
    """
    original = path
    if not path.is_file():  # a pipe can be read once
        target = folder / "pipe"
        target.write_bytes(path.read_bytes())
        path = target
    path, unpacked_as = unpacked(path, folder, table)
    if unpacked_as and unpacked_as[0].startswith("ZIP archive"):
        table = None  # it named the file in the archive
    kind = format_of(path)
    if kind in ("sqlite", "duckdb"):
        return _database_source(kind, str(path), name, table, query)
    if query is not None:
        raise ReportError(f"--query is for a database, but {name} is a file: omit it.")
    if kind != "excel" and table is not None:
        raise ReportError(
            "--table names the table of a database, the sheet of a workbook or the file"
            f" in a ZIP archive, but {name} is not one of them: omit it."
        )
    readers = {
        "parquet": ArrowSource,
        "arrow": ArrowSource,
        "arrow stream": ArrowSource,
        "excel": ExcelSource,
        "text": text_source,
    }
    if kind == "excel":
        return ExcelSource(path, original, name, table)
    source = readers[kind](path, original, name, kind)
    if unpacked_as:
        source.notes.insert(0, f"Unpacked: {', '.join(unpacked_as)}.")
        source.pack(unpacked_as)
    return source


def _is_scanned(text, files):
    """Return whether DuckDB reads the file, or those of a glob: Parquet, and large CSV
    files, if it is installed.
    """
    if find_spec("duckdb") is None or find_spec("narwhals") is None:
        return False
    if not all(file.is_file() for file in files):
        return False
    name = text.lower()
    size = sum(file.stat().st_size for file in files)
    if name.endswith(_PARQUET):
        return all(format_of(file) == "parquet" for file in files)
    are_packed = [is_packed(file) for file in files]
    if name.endswith((".csv", ".tsv", ".txt")):
        return size > _LARGE_CSV and not any(are_packed)
    return name.endswith(".csv.gz") and size > _LARGE_PACKED_CSV and all(are_packed)


def _scanned_source(text, name, files):
    """Return the source that DuckDB reads, for the path or glob pattern `text` of
    `files`, or an `ArrowSource` for a single Parquet file with few rows. None for text
    files in which DuckDB does not find the same columns as pandas.
    """
    from skcalib.engines import scan

    is_parquet = text.lower().endswith(_PARQUET)
    layouts = []
    if not is_parquet and not text.lower().endswith(".gz"):
        layouts = [layout_of(file, str(file)) for file in files]
        if not all(layout.is_plain for layout in layouts):
            return None

    if len(files) == 1 and format_of(files[0]) == "parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(files[0]) as file:
            if file.metadata.num_rows <= _MOST_ROWS:
                # The file of the user is read itself, not a copy.
                (path,) = files
                return ArrowSource(path, original=path, name=name, kind="parquet")
    try:
        relation = scan(text)
    except (FileNotFoundError, ValueError) as error:
        if not is_parquet:
            return None  # pandas reads it, or says in one line why not
        raise ReportError(error) from error
    if any(layout.header != list(relation.columns) for layout in layouts):
        return None
    reader = "read_parquet" if is_parquet else "read_csv"
    code = f"pd.{reader}({literal(text)})"
    if len(files) > 1:
        code = (
            f"pd.concat([pd.{reader}(path) for path in"
            f" sorted(glob({literal(text)}, recursive=True))], ignore_index=True)"
        )
    return DuckdbSource(relation, code)


def _database_source(kind, location, name, table, query):
    """Return what reads the columns of a table or a query (texts or None) of a
    database: a file of the `kind` "sqlite" or "duckdb" at `location`, else a PostgreSQL
    server.
    """
    if table is not None and query is not None:
        raise ReportError("--table and --query are both given: omit one.")
    if kind == "sqlite":
        return InMemory(*sqlite_frame(location, name, table, query))
    if kind == "duckdb":
        found = duckdb_relation(location, name, table, query)
    else:
        found = postgres_relation(location, name, table, query)
    if found is None:
        return InMemory(*postgres_frame(location, name, table, query))
    relation, code = found
    return DuckdbSource(relation, f"{code}.df()")


def _from_series(series):
    """Return a pandas column as an array with NaN, NaT or None for missing values."""
    values = series.to_numpy()
    if values.dtype.kind != "O":
        return values
    return np.where(series.isna().to_numpy(), None, values)
