"""Numbers as the cells of tables show them, in the format of all sentences."""

from skcalib._verdicts import count_words as count
from skcalib._verdicts import decimals, fixed, percent_words, pvalue_words, rounded

__all__ = ["count", "pvalue_words", "rounded"]

_PERCENT = "\u00a0%"  # a space at which no line ends
_FEW_CLASSES, _WORST_CLASSES = 12, 10  # that are all shown, and of more the worst
# From the kind of a number: what it is multiplied by, what follows it, its sign. A
# "size" is a number of percentage points as "points" are, without a sign.
_KINDS = {
    "percent": (100, _PERCENT, ""),
    "number": (1, "", ""),
    "points": (100, "", "+"),
    "size": (100, "", ""),
    "gained": (100, _PERCENT, "+"),
}


def percent(share, n=None):
    """Return a share as a percentage, with the digits that n samples support."""
    return "–" if share is None else tight(percent_words(share, n))


def estimate(values, kind):
    """Return an estimate with the digits that its interval supports."""
    return _shown(values["estimate"], values, kind)


def limits(values, kind):
    """Return an interval, and why the estimate lies outside of it if it does."""
    unit = _KINDS[kind][1]
    low = _shown(values["low"], values, kind).removesuffix(unit)
    high = _shown(values["high"], values, kind)
    reason = f" ({values['reason']})" if values.get("reason") else ""
    return f"{low} to {high}{reason}"


def bias(row):
    """Return the bias of a group and its simultaneous limits as two texts, both in
    percentage points: with a sign, or as too high or too low where it is off. The
    second is "no interval" where there are none.
    """
    found = row["verdict"]
    if found["low"] is None:
        return estimate(found, "points"), "no interval"
    if is_off(row):
        side = "too high" if found["estimate"] > 0 else "too low"
        # Words tell the side, so that numbers have no sign. Without it -5 to -3 is
        # 3 to 5: the limits change places.
        low, high = sorted((abs(found["low"]), abs(found["high"])))
        size = {"estimate": abs(found["estimate"]), "low": low, "high": high}
        return f"{estimate(size, 'size')} {side}", f"{limits(size, 'size')} points"
    if found["kind"] == "fine":
        return f"{estimate(found, 'points')} fine", f"{limits(found, 'points')} points"
    return estimate(found, "points"), f"{limits(found, 'points')} points"


def is_off(row):
    """Return whether a group is off, whatever its size."""
    return row["verdict"]["kind"] in ("off", "off, size unclear")


def largest_bias(rows):
    """Return the end of the axis of the small pictures of several rows."""
    largest = 0.0
    for row in rows:
        for value in (row["bias"], row["verdict"]["low"], row["verdict"]["high"]):
            if value is not None:
                largest = max(largest, abs(value))
    return largest or 1


def saved(row, before, key, score):
    """Return a gain and its interval as shares of the score before; None where these
    say nothing.
    """
    if row is before or not before[score]:
        return None
    return {
        "estimate": row[key] / before[score],
        "low": row[f"{key}_low"] / before[score],
        "high": row[f"{key}_high"] / before[score],
    }


def pvalue(value):
    """Return a p-value for a column that is headed p."""
    return pvalue_words(value).removeprefix("p ").removeprefix("= ")


def evidence(e_value):
    """Return an e-value: beyond a million, and far below 1, its size says nothing
    more.
    """
    if e_value > 1e6:
        return "> 1,000,000"
    return "< 0.01" if e_value < 0.01 else rounded(e_value, 2)


def n_shown(classes):
    """Return how many of the classes a page shows: all of a few, else the ten worst."""
    return len(classes) if len(classes) <= _FEW_CLASSES else _WORST_CLASSES


def tight(words):
    """Return words in which no line ends before a sign that belongs to a number."""
    return (
        words.replace(" %", _PERCENT)
        .replace(" = ", "\u00a0=\u00a0")
        .replace(" ≤ ", "\u00a0≤\u00a0")
        .replace(" points", "\u00a0points")
    )


def _shown(value, values, kind):
    """Return a number as text, with as many decimals as its interval supports."""
    scale, unit, sign = _KINDS[kind]
    if value is None:
        return "–"
    if values.get("low") is None:
        text = rounded(scale * value)
    else:
        text = fixed(
            scale * value, decimals(scale * values["low"], scale * values["high"])
        )
    if sign and value > 0:
        text = sign + text
    return text + unit
