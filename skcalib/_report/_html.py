"""Pieces of a report's page: tables, pictures, numbers in cells."""

from base64 import b64encode
from html import escape

from skcalib._inference.results import html_rows
from skcalib._report._sentences import SIGNIFICANCE_LEVEL, pvalue_words

_MOST_COLUMNS = 4  # that a telephone shows
_FEW_CLASSES, _WORST_CLASSES = 12, 10  # that are all shown, and of more the worst
_LETTERS = 72  # in their titles


def table(caption, head, lines):
    """Return a table in a box that scrolls by itself where the screen is narrow."""
    label = escape(caption, quote=True)
    size = " wide" * (sum(map(len, head)) > _LETTERS or len(head) > _MOST_COLUMNS)
    rows = html_rows(head, lines).replace(" %", "&nbsp;%")
    return f'<div class="scroll{size}" role="region" aria-label="{label}" tabindex="0">{rows}</div>'


def figure(picture, kind=""):
    """Return a picture inside the page: an image, so that it has a natural size and its words."""
    data = b64encode(picture.svg).decode("ascii")
    caption = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
    kind = f' class="{kind}"' if kind else ""
    return (
        f'<figure{kind}><img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.alt, quote=True)}">'
        f"{caption}</figure>"
    )


def with_interval(shown, values):
    """Return a cell with an estimate and its interval below, and why the estimate lies above it if it does."""
    if values["low"] is None:
        return shown(values["estimate"])
    low, high = shown(values["low"]), shown(values["high"])
    reason = values.get("reason") and f" ({values['reason']})"
    return f"{shown(values['estimate'])}<small>{low.removesuffix(' %')} to {high}{reason or ''}</small>"


def bias_words(row):
    """Return the bias in points, its direction in words where it is significant, and its interval."""
    direction = ""
    if row.get("adjusted_pvalue", 1.0) < SIGNIFICANCE_LEVEL:  # a period's test is about change
        direction = " too high" if row["bias"] > 0 else " too low"
    digits = 1 if max(abs(row["bias_low"]), abs(row["bias_high"])) >= 0.0095 else 2
    low, high = (f"{100 * row[key]:+.{digits}f}" for key in ("bias_low", "bias_high"))
    return f"{100 * row['bias']:+.{digits}f}{direction}<small>{low} to {high} points</small>"


def largest_bias(rows):
    """Return the end of the axis of the small pictures of several rows."""
    return max(max(abs(row["bias_low"]), abs(row["bias_high"])) for row in rows)


def bias_picture(row, widest):
    """Return a small picture of the bias and its interval around 0."""

    def at(value):
        return 60 + 56 * value / (widest or 1)

    pvalue = row["adjusted_pvalue"] if "adjusted_pvalue" in row else row["change_adjusted_pvalue"]
    color = "#d55e00" if pvalue is not None and pvalue < SIGNIFICANCE_LEVEL else "#666"
    low, high, middle = (at(row[key]) for key in ("bias_low", "bias_high", "bias"))
    return (
        '<svg class="bias" width="120" height="16" viewBox="0 0 120 16" role="img" aria-hidden="true">'
        '<line x1="60" y1="1" x2="60" y2="15" stroke="#bbb"/>'
        f'<line x1="{low:.1f}" y1="8" x2="{high:.1f}" y2="8" stroke="{color}" stroke-width="2"/>'
        f'<circle cx="{middle:.1f}" cy="8" r="3.5" fill="{color}"/></svg>'
    )


def pvalue_cell(pvalue, smallest=0.0):
    """Return a p-value for a column that is headed p."""
    return pvalue_words(pvalue, smallest).removeprefix("p ").removeprefix("= ")


def n_shown(classes):
    """Return how many of the classes a page shows: all of a few, else the ten worst."""
    return len(classes) if len(classes) <= _FEW_CLASSES else _WORST_CLASSES


def percent(share):
    """Return a share as a percentage."""
    return "–" if share is None else f"{100 * share:.2f} %"


def count(value):
    """Return a number of rows, or a sum of weights."""
    return f"{value:,.0f}" if value == round(value) or value >= 1e5 else f"{value:,.6g}"


def number(value):
    """Return a number."""
    return "–" if value is None else f"{value:.4f}"
