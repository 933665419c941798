"""How results look: tables (columns of equal length) and records (named tuples), as
HTML and as plain text.
"""

from __future__ import annotations

from dataclasses import fields
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skcalib._verdicts import estimate_words, sentences_html, side_words

if TYPE_CHECKING:
    from pandas import DataFrame

_SHOWN_ROWS = 10
_NAMES_OF_LOSSES = {"log": "log-loss", "brier": "Brier score"}
_LARGEST_WHOLE = 1e15  # numbers from here on are printed with an exponent


class _Sentences:
    """Mixin for results that answer in words: `_sentences` returns them, and the first
    line holds the answer. They are the text, the representation, and the head of the
    HTML.
    """

    def __str__(self):
        return self._sentences()

    def __repr__(self):
        return str(self)


class ResultTable(_Sentences):
    """Mixin for frozen dataclasses whose array fields, or the arrays that `columns`
    returns, are the columns of a table. A class whose text is sentences only sets
    `_prints_table` to False.
    """

    _prints_table = True

    def columns(self):
        """Return the columns by name.

        Returns
        -------
        columns : dict
            Maps the name of each column to its values.
        """
        columns = {}
        for name, field in vars(self).items():
            if isinstance(field, np.ndarray) and not name.startswith("_"):
                columns[name] = field
        return columns

    def to_frame(self) -> DataFrame:
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
        return frame_of(self.columns(), type(self).__name__)

    def __len__(self):
        return len(next(iter(self.columns().values())))

    def __str__(self):
        if not self._prints_table:
            return self._sentences()
        return f"{self._sentences()}\n{text_table(self._printed_columns())}"

    def _repr_html_(self):
        return sentences_html(self._sentences()) + html_table(self._printed_columns())

    def _sentences(self):
        """Return what the table says; of a table without an answer its size."""
        return f"{type(self).__name__} with {len(self):,} rows:"

    def _printed_columns(self):
        """Return the columns that are printed, a dict as that of `columns`."""
        return self.columns()


class ResultRecord(_Sentences):
    """Mixin for frozen dataclasses of a few numbers, which unpack like tuples in the
    order of their fields.
    """

    def to_frame(self) -> DataFrame:
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
        columns = {name: [value] for name, value in self._asdict().items()}
        return frame_of(columns, type(self).__name__)

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

    def _repr_html_(self):
        return sentences_html(self._sentences()) + record_html(self)


def frame_of(columns, name):
    """Return columns (a dict) as a pandas DataFrame; `name` is the result's, for the
    error if pandas is not installed.
    """
    if find_spec("pandas") is None:
        raise ImportError(f"{name}.to_frame needs pandas: pip install pandas.")
    from pandas import DataFrame

    return DataFrame(columns)


def record_html(record):
    """Return a named tuple as an HTML table with a column for each field. If the fields
    are named tuples themselves, each is a row.
    """
    entries = record._asdict()
    are_records = all(hasattr(entry, "_asdict") for entry in entries.values())
    if not are_records:
        return html_table({name: [entry] for name, entry in entries.items()})
    # The first column, without a title, holds the names of the fields.
    columns = {"": list(entries)}
    rows = [entry._asdict() for entry in entries.values()]
    for field in rows[0]:
        columns[field] = [row[field] for row in rows]
    return html_table(columns)


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
    """Return a value as text; a float has `digits` significant digits, and all of its
    whole part.
    """
    if isinstance(value, float | np.floating):
        if 10**digits <= abs(value) < _LARGEST_WHOLE:
            return f"{value:.0f}"
        return f"{value:.{digits}g}"
    return str(value)


class _EstimateWithLimits(NamedTuple):
    """The three numbers of an `IntervalEstimate`."""

    estimate: float
    low: float
    high: float


class IntervalEstimate(_EstimateWithLimits):
    """An estimate and the limits of its confidence interval; unpacks as these three
    numbers, and ``print`` says what they are.

    Parameters
    ----------
    estimate, low, high : float
        The estimate and the lower and upper limits; the limits are NaN if the samples
        do not determine them.
    reason : str, default=""
        The reason why the limits are NaN.
    quantity : str, default=""
        What is estimated.
    confidence_level : float, default=None
        Coverage of the interval, in (0, 1); None if it is not known.
    verdict : str, default=""
        What the interval says, as a sentence.

    Attributes
    ----------
    reason : str
        The reason why the limits are NaN or the estimate lies outside them; otherwise
        an empty string.
    quantity : str
        What is estimated; an empty string if it has no name.
    confidence_level : float or None
        Coverage of the interval.
    verdict : str
        What the interval says, as a sentence; an empty string if nothing more.
    """

    _why_no_limits = ""
    quantity = ""
    confidence_level = None
    verdict = ""

    def __new__(
        cls,
        estimate: float,
        low: float,
        high: float,
        *,
        reason: str = "",
        quantity: str = "",
        confidence_level: float | None = None,
        verdict: str = "",
    ):
        """Make the named tuple; what it means is kept beside its three entries."""
        self = super().__new__(cls, estimate, low, high)
        self._why_no_limits = reason
        self.quantity = quantity
        self.confidence_level = confidence_level
        self.verdict = verdict
        return self

    @property
    def reason(self):
        """The reason why the limits are NaN or the estimate lies outside them;
        otherwise an empty string.
        """
        if self._why_no_limits:
            return self._why_no_limits
        if self.estimate > self.high:
            return "the estimate includes label noise"
        if self.estimate < self.low:
            return "the limits allow for the bias of the estimate"
        return ""

    def to_frame(self) -> DataFrame:
        """Return the numbers and what they mean as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            One row, with the columns `quantity`, `estimate`, `low`, `high`,
            `confidence_level` and `reason`.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return frame_of(self._columns(), type(self).__name__)

    def _columns(self):
        """Return the entries and what they mean as a dict of columns."""
        return {
            "quantity": [self.quantity],
            "estimate": [self.estimate],
            "low": [self.low],
            "high": [self.high],
            "confidence_level": [self.confidence_level],
            "reason": [self.reason],
        }

    def _described(self, quantity, confidence_level, verdict=""):
        """Return a copy with what it estimates, its level and what it says."""
        return type(self)(
            *self,
            reason=self._why_no_limits,
            quantity=quantity,
            confidence_level=confidence_level,
            verdict=verdict,
        )

    def __str__(self):
        return estimate_words(
            self.quantity,
            *self,
            confidence_level=self.confidence_level,
            reason=self.reason,
            verdict=self.verdict,
        )

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        return sentences_html(str(self)) + record_html(self)


def gain_estimate(
    estimate,
    low,
    high,
    confidence_level,
    *,
    reason="",
    loss="log",
    after="",
    before="",
):
    """Return a gain in a loss as an `IntervalEstimate` that says whether recalibrating
    helps, or whether the candidate `after` is better than the one `before`.
    """
    what = "recalibration"
    verdicts = (
        "Recalibrating helps.",
        "Recalibrating hurts.",
        "No gain is detectable.",
    )
    if after:
        what = f"{after} instead of {before}"
        verdicts = (
            f"{after} is better.",
            f"{after} is worse.",
            "No difference is detectable.",
        )
    above, below, neither = verdicts
    return IntervalEstimate(
        estimate,
        low,
        high,
        reason=reason,
        quantity=f"Reduction in {_NAMES_OF_LOSSES[loss]} with {what}, on held-out data",
        confidence_level=confidence_level,
        verdict=side_words(
            low,
            high,
            above=above,
            below=below,
            neither=neither,
        ),
    )
