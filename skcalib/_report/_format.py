"""Numbers as the cells of a report's tables show them."""

from skcalib._report._sentences import pvalue_words

_PERCENT = "\u00a0%"  # a space at which no line ends
_FEW_CLASSES, _WORST_CLASSES = 12, 10  # that are all shown, and of more the worst


def percent(share):
    """Return a share as a percentage."""
    return "–" if share is None else f"{100 * share:.2f}{_PERCENT}"


def gained(share):
    """Return a share of what there was before, with its sign."""
    return f"{100 * share:+.1f}{_PERCENT}"


def points(share):
    """Return a share in points, with its sign."""
    return f"{100 * share:+.2f}"


def number(value):
    """Return a number."""
    return "–" if value is None else f"{value:.4f}"


def count(value):
    """Return a number of rows, or a sum of weights."""
    return f"{value:,.0f}" if value == round(value) or value >= 1e5 else f"{value:,.6g}"


def limits(shown, values):
    """Return an interval, and why the estimate lies outside of it if it does."""
    reason = f" ({values['reason']})" if values.get("reason") else ""
    return f"{shown(values['low']).removesuffix(_PERCENT)} to {shown(values['high'])}{reason}"


def bias(row, key="bias"):
    """Return a bias, or a limit of it, in points: with two digits where the interval is narrow."""
    digits = 1 if max(abs(row["bias_low"]), abs(row["bias_high"])) >= 0.0095 else 2
    return f"{100 * row[key]:+.{digits}f}"


def largest_bias(rows):
    """Return the end of the axis of the small pictures of several rows."""
    return max(max(abs(row["bias_low"]), abs(row["bias_high"])) for row in rows) or 1


def saved(row, before, key, score):
    """Return a gain and its interval as shares of the score before; None where these say nothing."""
    if row is before or not before[score]:
        return None
    return {
        name: row[key + end] / before[score]
        for name, end in (("estimate", ""), ("low", "_low"), ("high", "_high"))
    }


def pvalue(value):
    """Return a p-value for a column that is headed p."""
    return pvalue_words(value).removeprefix("p ").removeprefix("= ")


def n_shown(classes):
    """Return how many of the classes a page shows: all of a few, else the ten worst."""
    return len(classes) if len(classes) <= _FEW_CLASSES else _WORST_CLASSES


def tight(words):
    """Return words in which no line ends before a sign that belongs to a number."""
    return (
        words.replace(" %", _PERCENT)
        .replace(" = ", "\u00a0=\u00a0")
        .replace(" ≤ ", "\u00a0≤\u00a0")
    )
