"""Sentences of the sections of a report's page."""

from skcalib._report._claims import claim
from skcalib._report._evidence import classes_off
from skcalib._report._headline import clearest_changes
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    MOST_WORST,
    OF_ESTIMATES,
    best_of,
    gains,
    listed,
    series,
)
from skcalib._report._statistics import SIGNIFICANCE_LEVEL
from skcalib._verdicts import decimals, fixed, interval_words, rounded

_WIDEST_GUARANTEE = 0.2  # largest tolerance of the guarantee that is shown
# Sentences by the side on which the loss of a model lies.
_COMPARED = {
    -1: "better than the first",
    0: "not told apart",
    1: "worse than the first",
}


def comparisons(models):
    """Return a list of claims, one for each model but the first: whether it should
    replace the first, by the Brier score.

    The difference is that between both models as the report advises to use them:
    recalibrated if it advises that for one of them.
    """
    first = models[0]["name"]
    lines = []
    if models[0].get("advice", {}).get("needs_cluster") is not None:
        return lines  # the limits of the difference are those of independent samples
    for model in models[1:]:
        # Pairs of a difference and the words that say which one it is.
        differences = [(model["brier_difference"], "")]
        advised = model["brier_difference_as_advised"]
        if advised is not None:
            differences.append((advised, " after the recalibration advised below"))
        side = compared_side(model)
        # What lies on the other side would contradict the sentence, and is left out.
        sizes = []
        for difference, which in differences:
            if _side(difference) == side:
                sizes.append(f"{_unsigned(difference, side)}{which}")
        name = _COMPARED[side]  # of the sentence
        size = " and by ".join(sizes)
        lines.append(claim(name, name=model["name"], first=first, size=size))
    return lines


def compared_side(model):
    """Return 1 if a model is worse than the first one, -1 if it is better, and 0 if
    they are not told apart. The difference as advised decides, if there is one.
    """
    advised = model["brier_difference_as_advised"]
    return _side(model["brier_difference"] if advised is None else advised)


def error_sentence(model):
    """Return the claim that the error is below the bias, and why; None if it is not.

    After a change it is not said: the bias that the summary has is another one.
    """
    bias = read_verdict(model["verdicts"]["bias"])
    error = read_verdict(model["verdicts"]["error"])
    is_of_later = any(row["group"] is None for row in clearest_changes(model))
    if bias.is_off and not is_of_later and error.estimate < abs(bias.estimate):
        return claim("below the bias")
    return None


def _side(difference):
    """Return the sign of a difference, a dict, and 0 if its interval contains 0."""
    if difference["low"] <= 0 <= difference["high"]:
        return 0
    if difference["estimate"] > 0:
        return 1
    return -1


def _unsigned(difference, side):
    """Return a difference as text, without its sign if `side` is not 0."""
    estimate = difference["estimate"]
    low = difference["low"]
    high = difference["high"]
    if side != 0:
        estimate = abs(estimate)
        low, high = sorted((abs(low), abs(high)))
    return interval_words(estimate, low, high, level=OF_ESTIMATES)


def segment_sentence(rows):
    """Return the claim on how many segments are off, fine or unclear. `rows` are dicts,
    the rows of the table of segments.
    """
    if len(rows) == 1:
        return claim("one segment")
    return claim("segments", counts=_counts(rows, "segment"))


def period_sentence(rows):
    """Return the claim on how many periods are off, fine or unclear. `rows` are dicts,
    the rows of the table of periods.
    """
    return claim("periods", counts=_counts(rows, "period"))


def _counts(rows, kind):
    """Return a clause on the numbers of segments or periods with each verdict that
    occurs. `kind` is "segment" or "period", the key of the name.
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
    counts = []
    if off:
        counts.append((len(off), f"off ({listed(off)})"))
    if n_fine:
        counts.append((n_fine, "fine to within the tolerance"))
    first_count, first_words = counts[0]
    if first_count == n:
        return f"all {n} {kind}s are {first_words}"
    clauses = []
    for count, words in counts:
        verb = "is" if count == 1 else "are"
        clauses.append(f"{count} {verb} {words}")
    if n_unclear:
        clauses.append(f"the samples cannot tell about {n_unclear}")
    last = clauses.pop()
    comma = "," if len(clauses) > 1 else ""
    return f"of {n} {kind}s {', '.join(clauses)}{comma} and {last}"


def class_sentence(rows):
    """Return the claim on the classes that are off."""
    return classes_off(rows)


def rest_sentence(rows):
    """Return the claim on the classes that a page leaves out: the range of their
    errors, and how many are off.
    """
    errors = [row["estimate"] for row in rows if row["estimate"] is not None]
    off = sum(row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    between = ""
    if errors:
        low = rounded(100 * min(errors), 2)
        high = rounded(100 * max(errors), 2)
        between = f" have errors from {low} to {high} points"
    verb = "is" if off == 1 else "are"
    of_these = f"{off or 'none'} of these {verb}"
    return claim("other classes", n=f"{len(rows)}", between=between, off=of_these)


def decision_sentence(row):
    """Return the claim on whether scores are of use at a threshold, and what their
    miscalibration costs there.
    """
    # Differences in net benefit from treating nobody and from treating everybody.
    from_none = row["net_benefit"]
    from_all = row["against_treating_all"]
    cost = row["cost_of_miscalibration"]
    other = "all samples"  # the better way of treating all samples alike
    if from_none["estimate"] < from_all["estimate"]:
        other = "none"
    name = "not better than one"
    if _is_above(from_none) and _is_above(from_all):
        name = "better than both"
    elif _is_below(from_none) or _is_below(from_all):
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
    """Return whether an interval lies below 0; one without limits does not."""
    return interval["high"] is not None and interval["high"] < 0


def cluster_first(advice):
    """Return the claim that no recalibrator was judged, since a column of ids
    repeats.
    """
    return claim("cluster first", column=advice["needs_cluster"])


def nothing_to_gain(rows):
    """Return the claim that no recalibrator helps, with the gain of the best one."""
    before, best = best_of(rows)
    saved, low, high = gains(best, before["log_loss"])
    digits = decimals(low, high)
    limits = []
    for limit in (high, low):  # what is saved most comes first
        side = "lower" if limit > 0 else "higher"
        limits.append(f"{fixed(abs(limit), digits)} {side}")
    size = f"{fixed(abs(saved), digits)} % ({OF_ESTIMATES}: {' to '.join(limits)})"
    return claim(
        "nothing to gain",
        n=f"{len(rows) - 1}",
        name=best["name"],
        change="lower" if saved > 0 else "raise",
        size=size,
    )


def certificate_sentence(rows, of_classes):
    """Return the claim on one guarantee, that for 10 bins, or for fewer if 10 bins have
    too wide a tolerance; None without a guarantee.

    `rows` are dicts with the tolerances for a number of bins each, the fewest bins
    first; `of_classes` says whether there are several classes.
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
    """Return the claim on the monitors that raised an alarm: when, and when the change
    probably happened.
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
