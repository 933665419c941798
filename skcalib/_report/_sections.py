"""Sentences of the sections of a report's page."""

from skcalib._report._claims import claim
from skcalib._report._evidence import classes_off
from skcalib._report._phrases import MOST_WORST, best_of, gains, listed, series
from skcalib._report._statistics import SIGNIFICANCE_LEVEL
from skcalib._verdicts import interval_words, rounded

_WIDEST_GUARANTEE = 0.2  # of an example


def comparisons(models):
    """Return for each model but the first whether its Brier score is lower or higher;
    nothing for one model.
    """
    first = models[0]["name"]
    lines = []
    for model in models[1:]:
        difference = model["brier_difference"]
        estimate = difference["estimate"]
        low = difference["low"]
        high = difference["high"]
        name = "not told apart"
        if not low <= 0 <= high:
            name = "worse than the first" if estimate > 0 else "better than the first"
            # without the sign, which the side tells
            low, high = sorted((abs(low), abs(high)))
            estimate = abs(estimate)
        size = interval_words(estimate, low, high)
        lines.append(claim(name, name=model["name"], first=first, size=size))
    return lines


def segment_sentence(rows):
    """Return how many segments are off, with limits that hold for all together."""
    n = len(rows)
    if n == 1:
        return claim("one segment")
    off = []
    n_fine = 0
    n_unclear = 0
    for row in rows:
        kind = row["verdict"]["kind"]
        if kind in ("off", "off, size unclear"):
            off.append(row["segment"])
        n_fine += kind == "fine"
        n_unclear += kind == "cannot tell"
    names = f" ({listed(off)})" if off else ""
    return claim(
        "segments",
        n=f"{n}",
        off=_counted(len(off)),
        names=names,
        fine=_counted(n_fine),
        unclear=f"{n_unclear or 'none'}",
    )


def _counted(number):
    """Return a number with its verb."""
    return f"{number or 'none'} {'is' if number == 1 else 'are'}"


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
        loss = interval_words(cost["estimate"], cost["low"], cost["high"], scale=100)
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
    saved = interval_words(*gains(best, before["log_loss"]), unit="%")
    n = f"{len(rows) - 1}"
    return claim("nothing to gain", n=n, name=best["name"], size=saved)


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
            f"{row['group']} in {row['alarm_time']}, the change at about"
            f" {row['change_time']}"
        )
    names = series(named, len(off), "; ")
    return claim("alarm", off=f"{len(off)}", n=f"{len(rows)}", names=names)
