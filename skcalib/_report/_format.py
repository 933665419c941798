"""Numbers as the cells of tables show them, in the format of all sentences."""

from skcalib._verdicts import count_words as count
from skcalib._verdicts import decimals, fixed, percent_words, pvalue_words, rounded

__all__ = ["count", "pvalue_words", "rounded"]

_PERCENT = "\u00a0%"  # a space at which no line ends
# Up to this number all classes are shown, of more only the worst.
_FEW_CLASSES = 12
_WORST_CLASSES = 10
# By the kind of a number: a factor, its unit, and the sign before a positive one. A
# "size" is a number of percentage points like "points", without a sign.
_KINDS = {
    "percent": (100, _PERCENT, ""),
    "number": (1, "", ""),
    "points": (100, "", "+"),
    "size": (100, "", ""),
    "gained": (100, _PERCENT, "+"),
}


def percent(share, n=None):
    """Return a share as a percentage, with the digits that n samples support; a dash
    for None.
    """
    if share is None:
        return "–"
    return tight(percent_words(share, n))


# In the next functions `values` is a dict with "estimate", "low" and "high", and `kind`
# a key of `_KINDS`.


def estimate(values, kind):
    """Return an estimate as text, with the digits that its interval supports."""
    return _shown(values["estimate"], values, kind)


def limits(values, kind):
    """Return an interval as text, and why the estimate lies outside if it does."""
    _, unit, _ = _KINDS[kind]
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
    """Return the largest absolute value among the biases of several rows and their
    limits, at which the axis of their small pictures ends; 1 if all are 0.
    """
    largest = 0.0
    for row in rows:
        for value in (row["bias"], row["verdict"]["low"], row["verdict"]["high"]):
            if value is not None:
                largest = max(largest, abs(value))
    return largest or 1


def saved(row, before, key, score):
    """Return the gain of a candidate and its interval as shares of a mean loss before
    recalibration; None for the unchanged scores themselves, and for a loss of 0.

    `row` and `before` are the dicts of the candidate and of the unchanged scores;
    `key` is the key of the gain ("gain" or "brier_gain"), `score` that of the loss
    ("log_loss" or "brier").
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
    """Return an e-value as text. Beyond a million, and below .01, its size has no
    further meaning.
    """
    if e_value > 1e6:
        return "> 1,000,000"
    if e_value < 0.01:
        return "< 0.01"
    return rounded(e_value, 2)


def n_shown(classes):
    """Return how many of the classes a page shows: all of a few, else the ten worst."""
    if len(classes) <= _FEW_CLASSES:
        return len(classes)
    return _WORST_CLASSES


def tight(words):
    """Return words in which no line ends before a sign that belongs to a number."""
    return (
        words.replace(" %", _PERCENT)
        .replace(" = ", "\u00a0=\u00a0")
        .replace(" ≤ ", "\u00a0≤\u00a0")
        .replace(" points", "\u00a0points")
    )


def _shown(value, values, kind):
    """Return a number as text, with as many decimals as an interval supports.

    `value` may be None, which is shown as a dash; `values` is the dict with the limits
    "low" and "high" of the interval, and `kind` a key of `_KINDS`.
    """
    scale, unit, sign = _KINDS[kind]
    if value is None:
        return "–"
    if values.get("low") is None:
        text = rounded(scale * value)
    else:
        n_decimals = decimals(scale * values["low"], scale * values["high"])
        text = fixed(scale * value, n_decimals)
    if sign and value > 0:
        text = sign + text
    return text + unit
