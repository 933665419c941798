"""What reads the columns of one kind of file or database, and the code that does the
same with pandas.
"""

import re
import warnings
from importlib.util import find_spec
from json import dumps

from skcalib._install import install
from skcalib._report._error import ReportError
from skcalib._report._json import json_columns
from skcalib._report._text import layout_of, refuse_short_lines
from skcalib._report._values import MISSING

_MOST_TITLE_ROWS = 20


def text_source(path, original, name, kind):
    """Return what reads the columns of a text: JSON if it begins like it, else values
    with separators.
    """
    with path.open("rb") as file:
        first = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    if re.match(rb"\{|\[\s*[\[{\]]", first):
        return _JsonSource(path, original, name)
    return CsvSource(path, original, name)


class CsvSource:
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
        """`path` is the file to read, `original` that of the user, which code names,
        and `name` what messages call it.
        """
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
            f" {self._layout.separator!r} in quotation marks."
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
        text += f"{words_option(keep_words)})"
        if layout.is_padded:
            text += ".rename(columns=str.strip)"
        return text


class InMemory:
    """A file that is read as a whole: its `frame` is a DataFrame."""

    def __init__(self, whole, code):
        """`whole` is the DataFrame of all columns, `code` the Python that makes it."""
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


class _JsonSource(InMemory):
    """A file of JSON records."""

    def __init__(self, path, original, name):
        """`path` is the file to read, `original` that of the user, which code names,
        and `name` what messages call it.
        """
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


class ExcelSource(InMemory):
    """A sheet of a workbook; its first row that is not empty names the columns."""

    def __init__(self, path, original, name, sheet):
        """`path` is the file to read, `original` that of the user, which code names,
        and `name` what messages call it. `sheet` is the name of the sheet, or None.
        """
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
            self.notes.append(
                f"Rows left out before the names of the columns: {first}."
            )


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


class ArrowSource:
    """A Parquet file, or an Arrow (Feather) file."""

    def __init__(self, path, original, name, kind):
        """`path` is the file to read, `original` that of the user, which code names,
        and `name` what messages call it. `kind` is "parquet", "arrow" or "arrow
        stream".
        """
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


class SeveralFiles:
    """Several files with the same columns, one below the other."""

    def __init__(self, parts, files):
        """`parts` are the sources of the `files`, whose columns must be the same."""
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


class DuckdbSource:
    """A DuckDB relation.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    n_rows : int
        The number of rows.
    """

    def __init__(self, relation, code):
        """`relation` is the table in DuckDB, and `code` the Python that makes it."""
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


def words_option(keep_words):
    """Return the arguments of ``pd.read_csv`` for which "NA" is a word."""
    return ', keep_default_na=False, na_values=[""]' * keep_words


def literal(value):
    """Return a text, or a list of texts, as a Python literal."""
    return dumps(value, ensure_ascii=False)
