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
    """Return a share in [0, 1] as a percentage, with the digits that n samples support;
    a dash for None.
    """
    if share is None:
        return "–"
    return tight(percent_words(share, n))  # no line break before the sign


# In the next functions `values` is a dict with "estimate", "low" and "high", and `kind`
# a key of `_KINDS`.


def estimate(values, kind):
    """Return an estimate as text, with the digits that its interval supports."""
    return _shown(values["estimate"], values, kind)


def limits(values, kind):
    """Return an interval as text, as in "1.2 to 3.4 %", followed by the reason why the
    estimate lies outside, if it does.

    `values` is a dict with "low", "high" and maybe "reason", and `kind` a key of
    `_KINDS`, such as "percent".
    """
    _, unit, _ = _KINDS[kind]
    low = _shown(values["low"], values, kind).removesuffix(unit)  # the unit once
    high = _shown(values["high"], values, kind)
    reason = f" ({values['reason']})" if values.get("reason") else ""
    return f"{low} to {high}{reason}"


def bias(row):
    """Return the bias of a group and its limits as two texts in percentage points, as
    in ("4.0 too high", "3.1 to 4.9 points") or ("+0.2 fine", "-0.5 to +0.9 points").
    The second is "no interval" if there are no limits.

    `row` is the dict of a segment, class or period; its "verdict" is a dict with
    "estimate", "low" and "high" as probabilities.
    """
    verdict = row["verdict"]
    if verdict["low"] is None:
        return estimate(verdict, "points"), "no interval"
    if is_off(row):
        side = "too high" if verdict["estimate"] > 0 else "too low"
        # Words tell the side, so that numbers have no sign. Without it -5 to -3 is
        # 3 to 5: the limits change places.
        low, high = sorted((abs(verdict["low"]), abs(verdict["high"])))
        size = {"estimate": abs(verdict["estimate"]), "low": low, "high": high}
        return f"{estimate(size, 'size')} {side}", f"{limits(size, 'size')} points"
    shown = estimate(verdict, "points")
    if verdict["kind"] == "fine":
        shown = f"{shown} fine"
    return shown, f"{limits(verdict, 'points')} points"


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
    shares = {"low": None, "high": None}
    for name, number in (
        ("estimate", row[key]),
        ("low", row[f"{key}_low"]),
        ("high", row[f"{key}_high"]),
    ):
        if number is not None:  # limits that are not known
            # A loss cannot fall by more than all of it.
            shares[name] = min(1.0, number / before[score])
    return shares


def pvalue(value):
    """Return a p-value for a column that is headed p."""
    return pvalue_words(value).removeprefix("p ").removeprefix("= ")


def evidence(e_value):
    """Return an e-value, the evidence of a monitor for a change, as text. Above a
    million and below .01 its exact size does not matter.
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


def _shown(value, interval, kind):
    """Return a number as text, with as many decimals as the limits "low" and "high" of
    its interval (or None) support; None is a dash. `kind` is a key of `_KINDS`.
    """
    scale, unit, sign = _KINDS[kind]
    if value is None:
        return "–"
    if interval.get("low") is None:
        text = rounded(scale * value)
    else:
        n_decimals = decimals(scale * interval["low"], scale * interval["high"])
        text = fixed(scale * value, n_decimals)
    if sign and value > 0:
        text = sign + text
    return text + unit
