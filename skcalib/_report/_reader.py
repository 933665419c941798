"""The one reader: columns of files as people have them, of several files and of
databases.
"""

import re
import shutil
import sys
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from glob import glob
from importlib.util import find_spec
from json import dumps
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
from skcalib._report._json import json_columns
from skcalib._report._text import layout_of, refuse_short_lines
from skcalib._report._values import (
    MISSING,
    PERCENT_SIGNS,
    as_numbers,
    refuse_points_beside_commas,
)

_PARQUET = (".parquet", ".pq")
_MOST_ROWS = 2_000_000  # that are held in memory as they are
_LARGE_CSV = 2**28  # bytes, from which a CSV file is not read by pandas
_LARGE_PACKED_CSV = 2**26
STANDARD_INPUT = "-"
_MOST_TITLE_ROWS = 20
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
            f"{name} is no table of text in the encoding that its first bytes state:"
            " save it as CSV in UTF-8."
        ) from error
    except MemoryError as error:
        raise ReportError(
            f"{name} does not fit into memory: save it as Parquet and install DuckDB"
            f" ({install('engine')}), which reads a sample."
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
        if isinstance(self.source, _ExcelSource):
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
        if isinstance(source, _SeveralFiles):
            source = source.first
        if isinstance(source, _CsvSource):
            return source.code(path=_NEW_SCORES, keep_words=keep_words)
        return f"pd.read_csv({literal(_NEW_SCORES)}{_words_option(keep_words)})"

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
        is_text = isinstance(self.source, _CsvSource | _SeveralFiles | _DuckdbSource)
        if is_text and any("decimal commas" in note for note in self.notes):
            for name in set(names) - set(words) - set(self.conversions):
                refuse_points_beside_commas(columns[name], name)
        return columns, n_rows

    def glance(self, names):
        """Return columns whose roles are not known yet, as `read` does; those that do
        not hold numbers are returned as they are in the file.
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
                    " If there is a column for each class, make one of them that names"
                    " the class: df[columns].idxmax(axis=1)."
                )
            elif len(header) == 1 and isinstance(self.source, _CsvSource):
                hint = (
                    " If they are several, their separator is none of commas,"
                    " semicolons, tabs, bars and blanks: use one of these."
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
    a list of texts. `folder` takes files that are unpacked.
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
    return _SeveralFiles(parts, files)


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
    """Return what reads the columns of one file; `name` is that for messages."""
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
            f" in a ZIP archive, but {name} is none of them: omit it."
        )
    readers = {
        "parquet": _ArrowSource,
        "arrow": _ArrowSource,
        "arrow stream": _ArrowSource,
        "excel": _ExcelSource,
        "text": _text_source,
    }
    if kind == "excel":
        return _ExcelSource(path, original, name, table)
    source = readers[kind](path, original, name, kind)
    if unpacked_as:
        source.notes.insert(0, f"Unpacked: {', '.join(unpacked_as)}.")
        source.pack(unpacked_as)
    return source


def _text_source(path, original, name, kind):
    """Return what reads the columns of a text: JSON if it begins like it, else values
    with separators.
    """
    with path.open("rb") as file:
        first = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if re.match(rb"\{|\[\s*[\[{\]]", first):
        return _JsonSource(path, original, name)
    return _CsvSource(path, original, name)


class _CsvSource:
    """A file of separated values.

    Parameters
    ----------
    path : Path
        The plain file.
    original : Path
        The user's file, for code.
    name : str
        What the user calls it, for messages.

    Attributes
    ----------
    header, notes : list of str
        The names of the columns, and what was assumed.
    """

    def __init__(self, path, original, name):
        self._path = path
        self._original = original
        self._name = name
        self._layout = layout_of(path, name)
        self._compression = None
        self.header = self._layout.header
        self.notes = self._layout.notes

    def pack(self, packing):
        """Note how the user's file is packed, for the code that reads it."""
        suffixes = (".gz", ".bz2", ".xz", ".zst", ".zip")
        if not str(self._original).lower().endswith(suffixes):
            self._compression = packing[0].split()[0].lower()

    def frame(self, names, words, most, seed):
        """Return a DataFrame of all columns and rows, and the number of rows.

        Only the columns in `words` matter of the arguments: in these, which may hold
        text, only an empty field is missing, since "NA" may be a name.
        """
        import pandas as pd

        layout = self._layout
        refuse_short_lines(self._path, layout, self._name)
        missing = {}
        for number, name in enumerate(self.header):
            missing[number] = [""] if name in words else list(MISSING)
        with warnings.catch_warnings():
            # pandas warns of a row with more values than columns.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # All columns are read: with usecols= such a row would go unnoticed.
            try:
                frame = pd.read_csv(
                    self._path,
                    sep=layout.separator,
                    header=None,
                    names=range(len(self.header)),
                    skiprows=layout.n_skipped,
                    index_col=False,
                    na_values=missing,
                    keep_default_na=False,
                    skipinitialspace=layout.has_spaces,
                    low_memory=False,
                    encoding=layout.encoding,
                    compression=None,
                )
            except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
                raise self._unequal_lines(error) from error
        frame.columns = self.header
        return frame, len(frame)

    def _unequal_lines(self, error):
        """Return the error for lines that do not fit the names of the columns."""
        expected = re.search(
            r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error)
        )
        n_columns = len(self.header)
        if expected:
            _, line, n_values = expected.groups()
            what = f"line {line} has {n_values} values"
        elif "EOF inside string" in str(error):
            return ReportError(
                f"{self._name} cannot be read: a quotation mark that begins a value is"
                " never closed."
            )
        else:
            what = "a line has more values"
        return ReportError(
            f"{self._name} cannot be read: {what}, but its first line names {n_columns}"
            f" columns ({', '.join(self.header[:6])}). Put values that contain a"
            f" {self._layout.separator!r} into quotation marks."
        )

    def code(self, *, keep_words, path=None):
        """Return the pandas expression that reads the file, or another one of the same
        format at `path`.
        """
        layout = self._layout
        text = f"pd.read_csv({literal(path or str(self._original))}"
        if layout.separator != ",":
            text += f", sep={literal(layout.separator)}"
        if layout.encoding not in ("utf-8", "utf-8-sig"):
            text += f", encoding={literal(layout.encoding)}"
        if layout.is_commented:
            text += f", header=None, names={literal(self.header)}"
        # `n_skipped` includes the line of names, which pandas reads itself, unless the
        # names are in a comment.
        n_before = layout.n_skipped - (not layout.is_commented)
        if n_before:
            text += f", skiprows={n_before}"
        if layout.has_spaces:
            text += ", skipinitialspace=True"
        if self._compression is not None and path is None:
            text += f", compression={literal(self._compression)}"
        text += f"{_words_option(keep_words)})"
        if layout.is_padded:
            text += ".rename(columns=str.strip)"
        return text


class _InMemory:
    """A file that is read as a whole: its `frame` is a DataFrame."""

    def __init__(self, whole, code):
        self._whole = whole
        self.header = [str(name) for name in whole.columns]
        self._whole.columns = self.header
        self._code = code
        self.notes = []

    def code(self, *, keep_words):
        """Return the expression that reads the file with pandas."""
        return self._code

    def pack(self, packing):
        """Take no note of packing: pandas knows it by the suffix."""

    def frame(self, names, words, most, seed):
        """Return the DataFrame of all columns, and the number of rows."""
        return self._whole, len(self._whole)


class _JsonSource(_InMemory):
    """A file of JSON records."""

    def __init__(self, path, original, name):
        import pandas as pd

        text = path.read_text(encoding="utf-8-sig")
        frame = pd.DataFrame(json_columns(text, name))
        are_lines = text.lstrip().startswith("{") and "\n" in text.strip()
        options = ", lines=True" if are_lines else ""
        code = f"pd.read_json({literal(str(original))}{options})"
        if any("." in column for column in frame.columns):
            records = (
                f"pd.read_json({literal(str(original))}{options}).to_dict('records')"
            )
            code = f"pd.json_normalize({records})"
        super().__init__(frame, code)


class _ExcelSource(_InMemory):
    """A sheet of a workbook; its first row that is not empty names the columns."""

    def __init__(self, path, original, name, sheet):
        import pandas as pd

        if find_spec("openpyxl") is None:
            raise ReportError(
                f"{name} is an Excel workbook, which needs openpyxl:"
                f" {install('report')}, or save the sheet as CSV."
            )
        try:
            sheets = pd.read_excel(path, sheet_name=None, header=None)
        except Exception as error:
            raise ReportError(
                f"{name} looks like an Excel workbook, but is damaged ({error}): open"
                " it in the spreadsheet and save it again, or save it as CSV."
            ) from error
        sheets = {
            title: frame.dropna(how="all").dropna(how="all", axis=1)
            for title, frame in sheets.items()
        }
        filled = [title for title, frame in sheets.items() if len(frame) > 1]
        if sheet is None and len(filled) != 1:
            found = f"{len(filled)} sheets with values ({', '.join(filled[:12])})"
            raise ReportError(f"{name} has {found}: name one with --table.")
        sheet = sheet or filled[0]
        if sheet not in sheets:
            raise ReportError(
                f"{name} has no sheet {sheet!r}; it has {', '.join(sheets)}."
            )
        frame = sheets[sheet]
        first = _row_of_names(frame)
        positions = list(frame.columns)
        row_of_values = int(frame.index[min(first + 1, len(frame) - 1)])
        names = [
            "" if value is None or value != value else str(value).strip()
            for value in frame.iloc[first]
        ]
        n_before = int(frame.index[first])
        frame = frame.iloc[first + 1 :].reset_index(drop=True).infer_objects()
        frame.columns = names
        options = f", sheet_name={literal(sheet)}"
        if n_before:
            options += f", skiprows={n_before}"
        super().__init__(frame, f"pd.read_excel({literal(str(original))}{options})")
        if len(filled) > 1:
            self.notes.append(f"The sheet {sheet} of the workbook was read.")
        self.percentages = set()
        with_percent_sign = _percentage_cells(path, sheet, row_of_values)
        for column, position in zip(names, positions, strict=True):
            if position in with_percent_sign:
                self.percentages.add(column)
                self.notes.append(f"Cells of {column} are percentages: 50 % is 0.5.")
        if first:
            self.notes.append(f"Rows before the names of the columns: {first}.")


def _percentage_cells(path, sheet, row):
    """Return the set of positions, from 0, of the cells of a row that show numbers with
    percent signs.
    """
    from openpyxl import load_workbook

    book = load_workbook(path, read_only=True)
    try:
        rows = book[sheet].iter_rows(min_row=row + 1, max_row=row + 1)
        cells = next(rows, ())
        return {
            position
            for position, cell in enumerate(cells)
            if isinstance(cell.value, (int, float)) and "%" in cell.number_format
        }
    finally:
        book.close()


def _row_of_names(frame):
    """Return the position of the row that names the columns: the first that holds words
    only, one per column except one at most, which may be a title above them; else 0.
    """
    n_columns = frame.shape[1]
    for position in range(min(len(frame), _MOST_TITLE_ROWS)):
        filled = frame.iloc[position].dropna()
        is_wide = len(filled) >= max(n_columns - 1, min(n_columns, 2))
        if is_wide and all(isinstance(value, str) for value in filled):
            return position
    return 0


class _ArrowSource:
    """A Parquet file, or an Arrow (Feather) file."""

    def __init__(self, path, original, name, kind):
        self._path = path
        self.notes = []
        if kind == "parquet":
            from pyarrow.parquet import ParquetFile

            with ParquetFile(path) as file:
                self.header = file.schema_arrow.names
            self._code = f"pd.read_parquet({literal(str(original))})"
            self._table = None
            return
        from pyarrow import ipc, memory_map

        opened_as = ipc.open_stream if kind == "arrow stream" else ipc.open_file
        with memory_map(str(path)) as file:
            self._table = opened_as(file).read_all()
        self.header = self._table.column_names
        self._code = f"pd.read_feather({literal(str(original))})"

    def code(self, *, keep_words):
        """Return the expression that reads the file with pandas."""
        return self._code

    def pack(self, packing):
        """Take no note of packing."""

    def frame(self, names, words, most, seed):
        """Return a DataFrame of the named columns with all rows, and the number of
        rows. The other arguments do not matter.
        """
        table = self._table
        if table is None:
            from pyarrow.parquet import ParquetFile

            with ParquetFile(self._path) as file:
                table = file.read(columns=names)
        # Without its metadata a column that pandas wrote as an index is a column.
        return table.select(names).to_pandas(ignore_metadata=True), table.num_rows


class _SeveralFiles:
    """Several files with the same columns, one below the other."""

    def __init__(self, parts, files):
        self._parts = parts
        self.header = parts[0].header
        for part, file in zip(parts, files, strict=True):
            missing = [name for name in self.header if name not in part.header]
            further = [name for name in part.header if name not in self.header]
            if missing or further:
                lacks = f"lacks {missing[0]!r}" if missing else f"has {further[0]!r}"
                raise ReportError(
                    f"{file} {lacks}, unlike {files[0]}: files that are read together"
                    " must have the same columns."
                )
        self.notes = [f"{len(parts)} files were read as one table."]
        for part in parts:
            self.notes += [note for note in part.notes if note not in self.notes]
        self.first = parts[0]

    def code(self, *, keep_words):
        """Return the expression that reads the files with pandas."""
        expressions = [part.code(keep_words=keep_words) for part in self._parts]
        return f"pd.concat([{', '.join(expressions)}], ignore_index=True)"

    def frame(self, names, words, most, seed):
        """Return a DataFrame of the named columns of all files, and the number of their
        rows.
        """
        import pandas as pd

        frames = [
            part.frame(names, words, most, seed)[0][names] for part in self._parts
        ]
        whole = pd.concat(frames, ignore_index=True)
        return whole, len(whole)


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
    """Return the source that DuckDB reads, for a file or a glob; a single Parquet file
    with few rows is read as it is. None for text in which DuckDB does not find the
    columns that pandas finds.
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
                return _ArrowSource(files[0], files[0], name, "parquet")
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
    return _DuckdbSource(relation, code)


def _database_source(kind, location, name, table, query):
    """Return the source of a table or query of a database."""
    if table is not None and query is not None:
        raise ReportError("--table and --query are both given: omit one.")
    if kind == "sqlite":
        return _InMemory(*sqlite_frame(location, name, table, query))
    if kind == "duckdb":
        found = duckdb_relation(location, name, table, query)
    else:
        found = postgres_relation(location, name, table, query)
    if found is None:
        return _InMemory(*postgres_frame(location, name, table, query))
    relation, code = found
    return _DuckdbSource(relation, f"{code}.df()")


class _DuckdbSource:
    """A DuckDB relation.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    n_rows : int
        The number of rows.
    """

    def __init__(self, relation, code):
        self._relation = relation
        self._code = code
        self.notes = []
        self.header = list(relation.columns)
        ((self.n_rows,),) = relation.aggregate("count(*)").fetchall()

    def code(self, *, keep_words):
        """Return the expression that reads the table with pandas."""
        return self._code

    def frame(self, names, words, most, seed):
        """Return a DataFrame of the named columns, with all rows or with a random
        sample of about `most`, and the number of all rows.
        """
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        wanted = ", ".join(quoted)
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


def _words_option(keep_words):
    """Return the arguments of ``pd.read_csv`` for which "NA" is a word."""
    return ', keep_default_na=False, na_values=[""]' * keep_words


def literal(value):
    """Return a text, or a list of texts, as a Python literal."""
    return dumps(value, ensure_ascii=False)


def _from_series(series):
    """Return a pandas column as an array with NaN, NaT or None for missing values."""
    values = series.to_numpy()
    if values.dtype.kind != "O":
        return values
    return np.where(series.isna().to_numpy(), None, values)
