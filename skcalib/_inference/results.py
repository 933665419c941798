"""How results look: tables (columns of equal length) and records (named tuples), as
HTML and as plain text.
"""

from dataclasses import fields
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

_SHOWN_ROWS = 10


class ResultTable:
    """Mixin for frozen dataclasses whose array fields, or the arrays that `columns`
    returns, are the columns of a table.
    """

    def columns(self):
        """Return the columns by name.

        Returns
        -------
        columns : dict
            Maps the name of each column to its values.
        """
        columns = {}
        for name, field in vars(self).items():
            if isinstance(field, np.ndarray):
                columns[name] = field
        return columns

    def to_frame(self) -> "DataFrame":
        """Return the table as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            One column for each array, in the same order.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise ImportError(
                f"{type(self).__name__}.to_frame needs pandas: pip install pandas."
            )
        from pandas import DataFrame

        return DataFrame(self.columns())

    def __len__(self):
        return len(next(iter(self.columns().values())))

    def __repr__(self):
        return f"{self._headline()}\n{text_table(self.columns())}"

    def _repr_html_(self):
        html = html_table(self.columns(), caption=self._headline())
        return html + _sentence_html(self)

    def _headline(self):
        """Return the line above the table."""
        return f"{type(self).__name__} ({len(self)} rows)"


class ResultRecord:
    """Mixin for frozen dataclasses of a few numbers, which unpack like tuples in the
    order of their fields.
    """

    def to_frame(self) -> "DataFrame":
        """Return the numbers as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            One row, with a column for each number.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise ImportError(
                f"{type(self).__name__}.to_frame needs pandas: pip install pandas."
            )
        from pandas import DataFrame

        return DataFrame({name: [value] for name, value in self._asdict().items()})

    def _asdict(self):
        """Return the fields by name, in order, as a named tuple does."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __iter__(self):
        return iter(self._asdict().values())

    def __len__(self):
        return len(fields(self))

    def __getitem__(self, place):
        return tuple(self)[place]

    def __eq__(self, other):
        if not isinstance(other, (tuple, type(self))):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self):
        return hash(tuple(self))

    def __repr__(self):
        return record_text(self)

    def _repr_html_(self):
        return record_html(self) + _sentence_html(self)


def _sentence_html(result):
    """Return the sentence of a result as an HTML paragraph, or nothing for a class that
    does not define `__str__`.
    """
    if type(result).__str__ is object.__str__:
        return ""
    return f"<p>{escape(str(result))}</p>"


def record_text(record):
    """Return a named tuple as one line, its numbers with four significant digits."""
    entries = []
    for name, value in record._asdict().items():
        entries.append(f"{name}={_shown(value, 4)}")
    return f"{type(record).__name__}({', '.join(entries)})"


def record_html(record):
    """Return a named tuple as an HTML table with a column for each field. If the fields
    are named tuples themselves, each is a row.
    """
    entries = record._asdict()
    title = type(record).__name__
    are_records = all(hasattr(entry, "_asdict") for entry in entries.values())
    if not are_records:
        columns = {name: [entry] for name, entry in entries.items()}
        return html_table(columns, caption=title)
    # The first column, without a title, holds the names of the fields.
    columns = {"": list(entries)}
    rows = [entry._asdict() for entry in entries.values()]
    for field in rows[0]:
        columns[field] = [row[field] for row in rows]
    return html_table(columns, caption=title)


def html_table(columns, *, caption=None):
    """Return columns (a dict of equally long sequences) as an HTML table; numbers have
    three significant digits.
    """
    columns_of_texts = []
    for values in columns.values():
        columns_of_texts.append([escape(_shown(value)) for value in values])
    rows = zip(*columns_of_texts, strict=True)
    return html_rows(map(str, columns), rows, caption=caption)


def html_rows(head, rows, *, caption=None):
    """Return an HTML table.

    Parameters
    ----------
    head : iterable of str
        Titles of the columns, as plain text.
    rows : iterable of iterables of str
        Cells, already HTML; the first one of a row is its name.
    caption : str, default=None
        Title above the table.
    """
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = []
    for name, *cells in rows:
        others = "".join(f"<td>{cell}</td>" for cell in cells)
        body.append(f'<tr><th scope="row">{name}</th>{others}</tr>')
    title = ""
    if caption is not None:
        title = f"<caption>{escape(caption)}</caption>"
    return (
        f"<table>{title}<thead><tr>{titles}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table>"
    )


def text_table(columns, *, most_rows=_SHOWN_ROWS):
    """Return columns (a dict of equally long sequences) as lines of plain text: the
    first rows, and how many more there are.
    """
    n_rows = len(next(iter(columns.values())))
    # columns of texts, each padded on the left to its longest one
    padded = []
    for name, values in columns.items():
        texts = [name, *map(_shown, values[:most_rows])]
        width = max(map(len, texts))
        padded.append([text.rjust(width) for text in texts])
    lines = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
    if n_rows > most_rows:
        lines.append(f"... {n_rows - most_rows} more")
    return "\n".join(lines)


def _shown(value, digits=3):
    """Return a value as text; a float has so many significant digits."""
    if isinstance(value, float | np.floating):
        return f"{value:.{digits}g}"
    return str(value)


class _EstimateWithLimits(NamedTuple):
    """The three numbers of an `IntervalEstimate`."""

    estimate: float
    low: float
    high: float


class IntervalEstimate(_EstimateWithLimits):
    """An estimate and the limits of its confidence interval.

    Parameters
    ----------
    estimate, low, high : float
        The estimate and the lower and upper limits; the limits are NaN if the samples
        do not determine them.
    reason : str, default=""
        The reason why the limits are NaN.

    Attributes
    ----------
    reason : str
        The reason why the limits are NaN or the estimate lies above them; otherwise
        an empty string.
    """

    _why_no_limits = ""

    def __new__(cls, estimate: float, low: float, high: float, *, reason: str = ""):
        """Make the named tuple; a reason is kept beside its three entries."""
        self = super().__new__(cls, estimate, low, high)
        if reason:
            self._why_no_limits = reason
        return self

    @property
    def reason(self):
        """The reason why the limits are NaN or the estimate lies above them; otherwise
        an empty string.
        """
        if self._why_no_limits:
            return self._why_no_limits
        if self.estimate > self.high:
            return "the estimate includes label noise"
        return ""

    def __repr__(self):
        text = record_text(self)
        if self.reason:
            return f"{text[:-1]}; {self.reason})"
        return text

    def _repr_html_(self):
        html = record_html(self)
        if self.reason:
            html += f"<p>{escape(self.reason)}</p>"
        return html
