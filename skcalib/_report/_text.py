"""How a file of separated values is written: encoding, separator, lines before the
names of the columns.
"""

import codecs
import csv
import re
from io import StringIO
from typing import NamedTuple

from skcalib._report._error import ReportError

_SAMPLE = 1 << 17  # characters that tell the separator
_BLOCK = 1 << 22
_MOST_LINES = 100  # lines that tell the separator
_MOSTLY = 0.9  # of lines that are divided by blanks, at least; others lack a value
# A separator that divides as well as another one is taken in this order: a comma may
# be a decimal comma.
_SEPARATORS = ("\t", ";", ",", "|")
_BLANKS = r"\s+"
_NAMES = {"\t": "tabs", ";": "semicolons", "|": "bars", _BLANKS: "blanks"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ENCODINGS = {
    "cp1252": (
        "The text is not UTF-8 and was read as Windows-1252: if its encoding is another"
        " one, accented letters are wrong."
    ),
    "utf-16": "The text is UTF-16.",
    "utf-16-le": "The text is UTF-16.",
    "utf-16-be": "The text is UTF-16.",
    "utf-32": "The text is UTF-32.",
}
_MOST_NULS = 0.2  # in text of two bytes a character, more bytes than this are 0


class Layout(NamedTuple):
    """How a file of separated values is written.

    Attributes
    ----------
    header : list of str
        The names of the columns.
    separator, encoding : str
        What separates values, and the encoding of the text.
    n_skipped : int
        Lines before the first row of values.
    has_spaces, is_padded, is_commented : bool
        Whether blanks follow the separators, whether blanks surround names of columns,
        and whether these are in a comment.
    notes : list of str
        What was assumed, for the page.
    """

    header: list
    separator: str
    encoding: str
    n_skipped: int
    has_spaces: bool
    is_padded: bool
    is_commented: bool
    notes: list

    @property
    def is_plain(self):
        """Whether the text is UTF-8 that begins with the names of the columns, with a
        single character between them.
        """
        is_first = self.n_skipped == 1 and not self.is_commented
        is_utf8 = self.encoding in ("utf-8", "utf-8-sig")
        return (
            is_first and is_utf8 and not self.has_spaces and self.separator != _BLANKS
        )


def layout_of(path, name):
    """Return the `Layout` of a text file; `name` is that of the user's file, for
    messages.
    """
    encoding = _encoding(path, name)
    with path.open(encoding=encoding, newline=None) as file:
        text = file.read(_SAMPLE)
        is_whole = not file.read(1)
    lines = list(StringIO(text))
    if not is_whole and len(lines) > 1:
        lines.pop()  # it may be cut off
    first, separator, comments = _first_line(lines, name)
    sample = lines[first : first + _MOST_LINES]
    if separator is None:
        separator = _separator(sample)
    rows = _rows(sample, separator)
    header, *values = rows
    n_skipped = first + 1
    about_names = ""
    if comments:
        about_names = f"Lines skipped before the column names: {len(comments)}."
    if _are_numbers(header):
        header = _commented_header(comments, separator, len(header))
        if header is None:
            raise ReportError(
                f"the first line of {name} holds numbers ({', '.join(rows[0][:4])}),"
                " but it must name the columns: add a line with their names."
            )
        about_names = "The names of the columns are in a comment before the values."
        n_skipped = first
        values = rows
    names = [field.strip() for field in header]
    is_padded = names != header
    header, about_rows = _with_unnamed(names, values, name, first)
    has_spaces = separator != _BLANKS and any(
        re.search(f"{re.escape(separator)} +\\S", line) for line in sample[:1]
    )
    notes = [
        _ENCODINGS.get(encoding, ""),
        f"Separator: {_NAMES[separator]}." if separator in _NAMES else "",
        about_names,
        about_rows,
    ]
    notes = [note for note in notes if note]
    return Layout(
        header,
        separator,
        encoding,
        n_skipped,
        has_spaces,
        is_padded,
        n_skipped == first,
        notes,
    )


def refuse_short_lines(path, layout, name):
    """Raise if blanks separate the values of a text file and a line has fewer of them
    than there are columns: one that is missing would move the others.
    """
    if layout.separator != _BLANKS:
        return
    with path.open(encoding=layout.encoding) as file:
        for number, line in enumerate(file):
            values = line.split()
            if number < layout.n_skipped or not values or '"' in line:
                continue
            if len(values) < len(layout.header):
                raise ReportError(
                    f"line {number + 1} of {name} has {len(values)} values for"
                    f" {len(layout.header)} columns: when blanks separate values, it"
                    " is unclear which one is missing. Write NA for it, or separate"
                    " values by commas."
                )


def _encoding(path, name):
    """Return the encoding of a text file: that of its mark, else UTF-8 if all of it is
    valid, UTF-16 if every other byte is 0, or else Windows-1252.
    """
    with path.open("rb") as file:
        block = file.read(_BLOCK)
        for mark, encoding in _MARKS:
            if block.startswith(mark):
                return encoding
        if b"\x00" in block:
            for encoding, offset in (("utf-16-le", 1), ("utf-16-be", 0)):
                every_other = block[offset::2]
                if every_other.count(0) > 2 * _MOST_NULS * len(every_other):
                    return encoding
            raise ReportError(
                f"{name} is not a text table, but contains data in another format: save"
                " it as CSV, Parquet or .xlsx."
            )
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block:
                decoder.decode(block)
                block = file.read(_BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return _windows(path, name)
    return "utf-8"


def _windows(path, name):
    """Return "cp1252", or raise if a file has bytes that are no text in it."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            try:
                block.decode("cp1252")
            except UnicodeDecodeError as error:
                byte = block[error.start]
                raise ReportError(
                    f"{name} is neither UTF-8 nor Windows-1252 text (the byte"
                    f" {byte:#04x} is invalid there): save it as CSV in UTF-8."
                ) from error
    return "cp1252"


def _first_line(lines, name):
    """Return the number of the line that names the columns, the separator that a line
    "sep=;" before it states (else None), and the comments before it.
    """
    separator = None
    comments = []
    for number, line in enumerate(lines):
        text = line.strip()
        stated = re.fullmatch(r'"?sep=(.|\t)"?', line.strip("\r\n "))
        if number == 0 and stated:
            separator = stated[1]
        elif text.startswith("#"):
            comments.append(text)
        elif text:
            return number, separator, comments
    raise ReportError(
        f"{name} has no rows of values: its first line must name the columns."
    )


def _separator(lines):
    """Return the separator that divides most lines into the same number of values,
    more than one; quoted text is not divided. A comma if there is no such separator.
    """
    best = (0, 1, 0)  # share of lines, number of columns, preference
    found = ","
    for preference, separator in enumerate(reversed(_SEPARATORS)):
        widths = [len(row) for row in _rows(lines, separator)]
        width = widths[0]
        if width == 1:
            continue
        # The line of names may be one value shorter, if row names have no heading.
        share = max(widths[1:].count(width), widths[1:].count(width + 1))
        rank = (share, width, preference)
        if rank > best:
            best = rank
            found = separator
    if best[1] > 1:
        return found
    widths = [len(line.split()) for line in lines if line.strip()]
    are_whole = [width in (widths[0], widths[0] + 1) for width in widths[1:]]
    if widths[0] > 1 and sum(are_whole) >= _MOSTLY * len(are_whole):
        return _BLANKS
    return ","


def _rows(lines, separator):
    """Return the values of lines as lists of texts, without empty lines."""
    if separator == _BLANKS:
        rows = csv.reader(
            [re.sub(r"[ \t]+", " ", line.strip()) for line in lines], delimiter=" "
        )
    else:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    return [row for row in rows if row]


def _are_numbers(fields):
    """Return whether all fields of a line are numbers."""
    try:
        return [float(field.replace(",", ".")) for field in fields] != []
    except ValueError:
        return False


def _commented_header(comments, separator, width):
    """Return the `width` names of columns that the last comment holds; else None."""
    if not comments:
        return None
    (fields,) = _rows([comments[-1].lstrip("# ")], separator) or [[]]
    if len(fields) != width or _are_numbers(fields):
        return None
    return fields


def _with_unnamed(header, rows, name, first):
    """Return the names of the columns, with "row names" added if the first column has
    none, and a note on it, or ""; raise if lines have more values than names.
    """
    widths = {len(row) for row in rows}
    if len(header) > 1 and header[-1] == "" and widths == {len(header) - 1}:
        return header[:-1], ""
    if widths != {len(header) + 1}:
        if rows and min(widths) > len(header):
            raise ReportError(
                f"line {first + 1} of {name} names {len(header)}"
                f" column{'s' * (len(header) > 1)} ({', '.join(header[:4])}), but the"
                f" lines after it have {len(rows[0])} values: the first line must name"
                " all columns. Remove any lines before it, such as a title."
            )
        return header, ""
    if all(row[-1].strip() == "" for row in rows):
        return [*header, ""], ""  # each line ends with a separator
    return [
        "row names",
        *header,
    ], "The first column has no name and is taken to name the rows."
