"""How results look: tables (columns of equal length) and records (named tuples), as HTML and as plain text."""

from html import escape
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

_SHOWN_ROWS = 10


class ResultTable:
    """Mixin of a frozen dataclass whose fields that are arrays are columns, or whose `columns` returns such."""

    def columns(self):
        """Return the columns by name.

        Returns
        -------
        columns : dict
            From the name of each column to its values.
        """
        return {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        }

    def to_frame(self):
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
        said = f"<p>{escape(str(self))}</p>" * (
            type(self).__str__ is not object.__str__
        )
        return html_table(self.columns(), caption=self._headline()) + said

    def _headline(self):
        return f"{type(self).__name__} ({len(self)} rows)"


def record_text(record):
    """Return a named tuple as one line, its numbers with four significant digits."""
    shown = ", ".join(
        f"{name}={_shown(value, 4)}" for name, value in record._asdict().items()
    )
    return f"{type(record).__name__}({shown})"


def record_html(record):
    """Return a named tuple as an HTML table: one row, or one row an entry where the entries are named tuples."""
    entries = record._asdict()
    if not all(hasattr(value, "_asdict") for value in entries.values()):
        return html_table(
            {name: [value] for name, value in entries.items()},
            caption=type(record).__name__,
        )
    parts = list(entries.values())
    columns = {
        field: [getattr(part, field) for part in parts] for field in parts[0]._fields
    }
    return html_table({"": list(entries), **columns}, caption=type(record).__name__)


def html_table(columns, *, caption=None):
    """Return columns (a dict of equally long sequences) as an HTML table; numbers have three significant digits."""
    rows = zip(
        *([escape(_shown(value)) for value in values] for values in columns.values()),
        strict=True,
    )
    return html_rows(map(str, columns), rows, caption=caption)


def html_rows(head, rows, *, caption=None):
    """Return an HTML table of titles and rows; the cells are HTML themselves, the first of a row is its name."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
        for first, *cells in rows
    )
    title = "" if caption is None else f"<caption>{escape(caption)}</caption>"
    return (
        f"<table>{title}<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    )


def text_table(columns, *, most_rows=_SHOWN_ROWS):
    """Return columns as lines of plain text: the first rows, and how many more there are."""
    n_rows = len(next(iter(columns.values())))
    cells = [
        [name, *map(_shown, values[:most_rows])] for name, values in columns.items()
    ]
    widths = [max(map(len, column)) for column in cells]
    lines = [
        "  ".join(map(str.rjust, row, widths)).rstrip()
        for row in zip(*cells, strict=True)
    ]
    return "\n".join(lines + [f"... {n_rows - most_rows} more"] * (n_rows > most_rows))


def _shown(value, digits=3):
    return (
        f"{value:.{digits}g}" if isinstance(value, float | np.floating) else str(value)
    )


class IntervalEstimate(NamedTuple):
    """An estimate and the limits of its confidence interval.

    Parameters
    ----------
    estimate, low, high : float
        The estimate, the lower and the upper limit.
    """

    estimate: float
    low: float
    high: float

    @property
    def reason(self):
        """Why the estimate lies above the interval, in words; empty where it does not."""
        return "the estimate includes label noise" * bool(self.estimate > self.high)

    def __repr__(self):
        return f"{record_text(self)[:-1]}{self.reason and f'; {self.reason}'})"

    def _repr_html_(self):
        return record_html(self) + f"<p>{self.reason}</p>" * bool(self.reason)
