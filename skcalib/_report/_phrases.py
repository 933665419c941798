"""Phrases that several sentences of a report share."""

from math import isnan, nan

from skcalib._report._judged import VERDICT_LEVEL, read_verdict
from skcalib._report._samples import CONFIDENCE_LEVEL
from skcalib._verdicts import (
    decimals,
    fixed,
    interval_words,
    joined,
    level_words,
    rounded,
)

_MOST_NAMED = 5
# How a log-loss is finite although an event of probability 0 happened.
CLIPPED = "with probabilities of 0 clipped to 2^-52"
MOST_WORST = 3  # segments that a sentence names
# The levels of a summary, each named where its limits are printed: of verdicts, and of
# errors and gains.
OF_VERDICTS = level_words(VERDICT_LEVEL)
OF_ESTIMATES = level_words(CONFIDENCE_LEVEL)


def share_of(some, rows):
    """Return how many of the `rows` are among `some`, as in "all 3" or "2 of 3"."""
    if len(some) == len(rows) > 1:
        return f"all {len(rows)}"
    return f"{len(some)} of {len(rows)}"


def listed(names, most=_MOST_NAMED):
    """Return the first `most` names as text, and how many more there are."""
    if len(names) <= most:
        return joined(list(names))
    return series(names[:most], len(names))


def group_words(name, column):
    """Return the name of a group, after that of its column if it is a number, which
    alone says nothing in a sentence.
    """
    return f"{column} {name}" if name.isdecimal() else name


def best_of(rows):
    """Return the candidate that changes nothing, and the best of the others. `rows` are
    those of the table of candidates, the best first.
    """
    before = next(row for row in rows if row["name"] == "as it is")
    return before, next(row for row in rows if row is not before)


def gains(row, before):
    """Return a gain and the limits of its interval, as percentages of the log-loss
    `before`; NaN for limits that JSON has as None. A loss cannot fall by more than all
    of it.
    """
    found = []
    for key in ("gain", "gain_low", "gain_high"):
        value = nan if row[key] is None else row[key]
        share = 100 * value / (before or 1)
        found.append(share if isnan(share) else min(share, 100.0))
    return found


def clip_words(model):
    """Return what precedes a statement on the log-loss of a model where an event
    happened that had the probability 0.
    """
    if not model.get("impossible", {}).get("n"):
        return ""
    return f"{CLIPPED}, "


def series(names, n_all, separator=", "):
    """Return names as text, with "and 2 more" if there are `n_all` names in all and
    these are two fewer.
    """
    shown = separator.join(names)
    if n_all > len(names):
        shown += f"{separator.rstrip(', ')} and {n_all - len(names)} more"
    return shown


def from_words(period):
    """Return " from (period) on", empty for None."""
    return f" from {period} on" if period else ""


# In the next functions `found` is a `Verdict`: an estimate with its limits, as a
# probability.


def least(found):
    """Return the smallest size within the interval of a quantity that is off."""
    return min(abs(found.low), abs(found.high))


def points_words(found):
    """Return an error with its interval in points, or why it has none."""
    words = interval_words(
        found.estimate,
        found.low,
        found.high,
        scale=100,
        unit="points",
        level=OF_ESTIMATES,
    )
    if found.reason:
        return words.replace("no interval", f"no interval, because {found.reason}")
    return words


def verdict_words(found):
    """Return a verdict on a bias in points, with the level of its limits."""
    return found.words(scale=100, unit="points", level=OF_VERDICTS)


def size_words(found):
    """Return the size of what is off, without its sign, with its interval."""
    low, high = sorted((abs(found.low), abs(found.high)))
    return interval_words(
        abs(found.estimate), low, high, scale=100, unit="points", level=OF_VERDICTS
    )


def points_digits(found):
    """Return the number of decimals of percentage points that suits the interval."""
    return decimals(100 * found.low, 100 * found.high)


def limits_words(found):
    """Return both limits as two texts, in percentage points."""
    digits = points_digits(found)
    return fixed(100 * found.low, digits), fixed(100 * found.high, digits)


def limit_words(found):
    """Return the number of points to within which a quantity is fine."""
    words = found.words(scale=100)
    return words.removeprefix("fine to within ")


def bias_words(record):
    """Return a verdict on a bias, given as a dict, as words within a sentence."""
    found = read_verdict(record)
    if found.is_off or found.kind == "fine":
        return verdict_words(found)
    if found.reason:
        side = "high" if found.estimate > 0 else "low"
        size = rounded(abs(100 * found.estimate))
        return f"{size} points too {side} (no interval, because {found.reason})"
    return between_words(found)


def between_words(found):
    """Return the limits of a bias about which the samples cannot tell: they reach from
    below 0 to above it.
    """
    digits = points_digits(found)
    low, high = (fixed(abs(100 * limit), digits) for limit in (found.low, found.high))
    return f"between {low} points too low and {high} points too high ({OF_VERDICTS})"
