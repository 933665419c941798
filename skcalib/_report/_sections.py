"""Sentences of the sections of a report's page."""

from skcalib._report._claims import claim
from skcalib._report._evidence import classes_off
from skcalib._report._phrases import (
    MOST_WORST,
    OF_ESTIMATES,
    best_of,
    gains,
    listed,
    series,
)
from skcalib._report._statistics import SIGNIFICANCE_LEVEL
from skcalib._verdicts import interval_words, rounded

_WIDEST_GUARANTEE = 0.2  # of an example
# Sentences by the side on which the loss of a model lies.
_COMPARED = {
    -1: "better than the first",
    0: "not told apart",
    1: "worse than the first",
}


def comparisons(models):
    """Return for each model but the first whether it should replace the first, by the
    Brier score; nothing for one model.

    What counts is the difference between both as the report advises to use them:
    recalibrated, where it advises that of one of them.
    """
    first = models[0]["name"]
    lines = []
    for model in models[1:]:
        differences = [(model["brier_difference"], "")]
        advised = model["brier_difference_as_advised"]
        if advised is not None:
            differences.append((advised, " after the recalibration advised below"))
        side = _side(differences[-1][0])
        sizes = []
        for difference, which in differences:
            if _side(difference) == side:
                sizes.append(f"{_unsigned(difference, side)}{which}")
        name = _COMPARED[side]
        size = " and by ".join(sizes)
        lines.append(claim(name, name=model["name"], first=first, size=size))
    return lines


def _side(difference):
    """Return the sign of a difference, 0 where its interval has 0."""
    if difference["low"] <= 0 <= difference["high"]:
        return 0
    return 1 if difference["estimate"] > 0 else -1


def _unsigned(difference, side):
    """Return a difference in words, without its sign where the side tells it."""
    estimate = difference["estimate"]
    low = difference["low"]
    high = difference["high"]
    if side != 0:
        estimate = abs(estimate)
        low, high = sorted((abs(low), abs(high)))
    return interval_words(estimate, low, high, level=OF_ESTIMATES)


def segment_sentence(rows):
    """Return how many segments are off, with limits that hold for all together."""
    if len(rows) == 1:
        return claim("one segment")
    return claim("segments", counts=_counts(rows, "segment"))


def period_sentence(rows):
    """Return how many periods are off, with limits that hold for all together."""
    return claim("periods", counts=_counts(rows, "period"))


def _counts(rows, kind):
    """Return how many segments or periods have which verdict, without those that none
    has.
    """
    n = len(rows)
    off = []
    n_fine = 0
    n_unclear = 0
    for row in rows:
        verdict = row["verdict"]["kind"]
        if verdict in ("off", "off, size unclear"):
            off.append(row[kind])
        n_fine += verdict == "fine"
        n_unclear += verdict == "cannot tell"
    if n_unclear == n:
        return f"the samples cannot tell about any of the {n} {kind}s"
    parts = []
    if off:
        parts.append((len(off), f"off ({listed(off)})"))
    if n_fine:
        parts.append((n_fine, "fine to within the tolerance"))
    if parts[0][0] == n:
        return f"all {n} {kind}s are {parts[0][1]}"
    words = [f"{count} {'is' if count == 1 else 'are'} {how}" for count, how in parts]
    if n_unclear:
        words.append(f"the samples cannot tell about {n_unclear}")
    last = words.pop()
    comma = "," if len(words) > 1 else ""
    return f"of {n} {kind}s {', '.join(words)}{comma} and {last}"


def class_sentence(rows):
    """Return the sentence on the classes."""
    return classes_off(rows)


def rest_sentence(rows):
    """Return what the classes that a page leaves out have in common."""
    errors = [row["estimate"] for row in rows if row["estimate"] is not None]
    off = sum(row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    between = ""
    if errors:
        low = rounded(100 * min(errors), 2)
        high = rounded(100 * max(errors), 2)
        between = f" have errors from {low} to {high} points"
    of_these = f"{off or 'none'} of these {'is' if off == 1 else 'are'}"
    return claim("other classes", n=f"{len(rows)}", between=between, off=of_these)


def decision_sentence(row):
    """Return whether scores are of use at a threshold, and what their miscalibration
    costs there.
    """
    benefit = row["net_benefit"]  # of the scores, against treating none
    against = row["against_treating_all"]
    cost = row["cost_of_miscalibration"]
    other = "none" if benefit["estimate"] < against["estimate"] else "all samples"
    name = "not better than one"
    if _is_above(benefit) and _is_above(against):
        name = "better than both"
    elif _is_below(benefit) or _is_below(against):
        name = "worse than one"
    costs = ""
    if cost is not None and not _is_above(cost):
        costs = "; no cost of miscalibration is measurable there"
    elif cost is not None:
        loss = interval_words(
            cost["estimate"], cost["low"], cost["high"], scale=100, level=OF_ESTIMATES
        )
        costs = f"; miscalibration costs {loss} true positives in 100 samples"
    threshold = rounded(100 * row["threshold"])
    return claim(name, threshold=threshold, other=other, cost=costs)


def _is_above(interval):
    """Return whether an interval lies above 0; one without limits does not."""
    return interval["low"] is not None and interval["low"] > 0


def _is_below(interval):
    return interval["high"] is not None and interval["high"] < 0


def cluster_first(advice):
    """Return why no recalibrator was judged on rows whose key repeats."""
    return claim("cluster first", column=advice["needs_cluster"])


def nothing_to_gain(rows):
    """Return that no recalibrator helps, and what the best of them would save."""
    before, best = best_of(rows)
    saved, low, high = gains(best, before["log_loss"])
    changed = interval_words(
        -saved, -high, -low, unit="%", level=OF_ESTIMATES, signed=True
    )
    n = f"{len(rows) - 1}"
    return claim("nothing to gain", n=n, name=best["name"], size=changed)


def certificate_sentence(rows, of_classes):
    """Return one row of the guarantees as a sentence: that of 10 bins, or of fewer
    where 10 guarantee too little.
    """
    rows = [row for row in rows if row["conditional"] < 1]
    if not rows:
        return None
    useful = [row for row in rows if row["conditional"] <= _WIDEST_GUARANTEE]
    if useful:
        row = next((row for row in useful if row["n_bins"] == 10), useful[-1])
    else:
        row = min(rows, key=lambda row: row["conditional"])
    event = "the frequency of the event"
    if of_classes:
        event = "the frequency with which the predicted class is right"
    epsilon = rounded(100 * row["conditional"])
    return claim("guarantee", n_bins=f"{row['n_bins']}", epsilon=epsilon, event=event)


def monitor_sentence(rows):
    """Return when monitors raised an alarm, and when the change is likely to have
    been.
    """
    off = [row for row in rows if row["alarm"]]
    if not off:
        return claim("no alarm")
    named = []
    for row in off[:MOST_WORST]:
        named.append(
            f"{row['group']} in {row['alarm_time']} (the change roughly at"
            f" {row['change_time']})"
        )
    names = series(named, len(off), "; ")
    which = f"{len(off)} of {len(rows)} monitors"
    if len(rows) == 1:
        which = "the monitor"
    return claim("alarm", which=which, names=names)
