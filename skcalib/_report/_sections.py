"""Sentences of the sections of a report's page."""

from math import isnan

from skcalib._report._claims import claim
from skcalib._report._evidence import classes_off
from skcalib._report._headline import clearest_changes
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    CLIPPED,
    MOST_WORST,
    OF_ESTIMATES,
    best_of,
    gains,
    listed,
    series,
)
from skcalib._report._samples import SIGNIFICANCE_LEVEL
from skcalib._verdicts import decimals, fixed, interval_words, rounded

_WIDEST_GUARANTEE = 0.2  # largest tolerance of the guarantee that is shown


def comparisons(models):
    """Return a list of sentences, one for each model but the first: whether it should
    replace the first, by the difference in Brier score.

    If the report advises to recalibrate one of two models, the difference after the
    advised recalibration decides, and is told too. `models` are dicts, the numbers of
    each model.
    """
    first = models[0]["name"]
    if models[0].get("advice", {}).get("needs_cluster") is not None:
        return []  # the limits of the difference are those of independent samples
    sentences = []
    for model in models[1:]:
        sign = difference_from_first(model)
        # Each difference is told, unless it contradicts the one that decides.
        sizes = []
        if _significant_sign(model["brier_difference"]) == sign:
            sizes.append(_difference_words(model["brier_difference"]))
        advised = model["brier_difference_as_advised"]
        if advised is not None and _significant_sign(advised) == sign:
            size = _difference_words(advised)
            sizes.append(f"{size} after the recalibration advised below")
        if sign > 0:
            template = "worse than the first"
        elif sign < 0:
            template = "better than the first"
        else:
            template = "not told apart"
        size = " and by ".join(sizes)
        sentences.append(claim(template, name=model["name"], first=first, size=size))
    return sentences


def difference_from_first(model):
    """Return the sign of a model's difference in Brier score from the first model: 1 if
    it is worse, -1 if it is better, and 0 if the difference is not significant.

    The difference after the advised recalibration decides, if one is advised.
    """
    difference = model["brier_difference_as_advised"]
    if difference is None:
        difference = model["brier_difference"]
    return _significant_sign(difference)


def _significant_sign(difference):
    """Return the sign of a difference (a dict with its limits), or 0 if its interval
    contains 0 or does not exist.
    """
    if _is_above(difference):
        return 1
    if _is_below(difference):
        return -1
    return 0


def _difference_words(difference):
    """Return a difference with its interval as text; without its sign if that is
    significant, since the sentence tells the direction.
    """
    estimate = difference["estimate"]
    low = difference["low"]
    high = difference["high"]
    if low is None or isnan(low):
        size = rounded(estimate)
        return f"{size} (no interval, because {difference['reason']})"
    if _significant_sign(difference) != 0:
        estimate = abs(estimate)
        low, high = sorted((abs(low), abs(high)))
    return interval_words(estimate, low, high, level=OF_ESTIMATES)


def error_sentence(model):
    """Return the sentence that explains why the calibration error is smaller than the
    bias; None if it is not.

    It is also None if calibration has changed: the summary then tells the bias since
    the change, while the error is about all samples.
    """
    bias = read_verdict(model["verdicts"]["bias"])
    error = read_verdict(model["verdicts"]["error"])
    has_changed = any(row["group"] is None for row in clearest_changes(model))
    if bias.is_off and not has_changed and error.estimate < abs(bias.estimate):
        return claim("below the bias")
    return None


def segment_sentence(rows):
    """Return the sentence on how many segments are off, fine or unclear. `rows` are
    dicts, the rows of the table of segments.
    """
    if len(rows) == 1:
        return claim("one segment")
    return claim("segments", counts=_counts(rows, "segment", "group"))


def period_sentence(rows):
    """Return the sentence on how many periods are off, fine or unclear. `rows` are
    dicts, the rows of the table of periods.
    """
    return claim("periods", counts=_counts(rows, "period", "period"))


def _counts(rows, key, kind):
    """Return a clause on how many groups or periods are off, fine and unclear, as in
    "1 of 5 groups is off (north); for the other 4, the data are
    inconclusive".

    `rows` are the dicts of the table of groups or periods; `key` is the key of a name
    in them; `kind` is "group" or "period".
    """
    n = len(rows)
    off = []  # names
    n_fine = 0
    n_unclear = 0
    for row in rows:
        verdict = row["verdict"]["kind"]
        if verdict in ("off", "off, size unclear"):
            off.append(row[key])
        n_fine += verdict == "fine"
        n_unclear += verdict == "cannot tell"
    if n_unclear == n:
        return f"the data are inconclusive for all {n} {kind}s"
    # Pairs: how many groups have a finding, and the words for it.
    counts = []
    if off:
        counts.append((len(off), f"off ({listed(off)})"))
    if n_fine:
        counts.append((n_fine, "fine to within the tolerance"))
    first_count, first_words = counts[0]
    if first_count == n:
        return f"all {n} {kind}s are {first_words}"
    verb = "is" if first_count == 1 else "are"
    clauses = f"{first_count} of {n} {kind}s {verb} {first_words}"
    for count, words in counts[1:]:
        verb = "is" if count == 1 else "are"
        clauses += f"; {count} {verb} {words}"
    if n_unclear:
        clauses += f"; for the other {n_unclear}, the data are inconclusive"
    return clauses


def class_sentence(rows):
    """Return the sentence on the classes that are off."""
    return classes_off(rows)


def rest_sentence(rows):
    """Return the sentence on the classes that a page leaves out: the range of their
    calibration errors, and how many of these are significant. `rows` are the dicts of
    these classes in the table of classes.
    """
    errors = [row["estimate"] for row in rows if row["estimate"] is not None]
    n_off = sum(row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    between = ""
    if errors:
        low = rounded(100 * min(errors), 2)
        high = rounded(100 * max(errors), 2)
        between = f" have errors from {low} to {high} points"
    verb = "is" if n_off <= 1 else "are"
    number = "none" if n_off == 0 else f"{n_off}"
    return claim(
        "other classes",
        n=f"{len(rows)}",
        between=between,
        off=f"{number} of these {verb}",
    )


def decision_sentence(row):
    """Return the sentence on whether decisions by the scores are better than treating
    all samples alike, at one threshold, and what miscalibration costs there. `row` is
    the dict of the threshold in the table of decisions.
    """
    # How much higher the net benefit is than that of treating no sample, and than that
    # of treating all: dicts with "estimate", "low" and "high".
    over_none = row["net_benefit"]
    over_all = row["against_treating_all"]
    cost = row["cost_of_miscalibration"]
    other = "all samples"  # the better one of these two
    if over_none["estimate"] < over_all["estimate"]:
        other = "none"
    name = "not better than one"
    if _is_above(over_none) and _is_above(over_all):
        name = "better than both"
    elif _is_below(over_none) or _is_below(over_all):
        name = "worse than one"
    costs = ""
    if cost is not None and not _is_above(cost):
        costs = "; no cost of miscalibration is measurable there"
    elif cost is not None:
        loss = interval_words(
            cost["estimate"], cost["low"], cost["high"], scale=100, level=OF_ESTIMATES
        )
        costs = f"; miscalibration costs {loss} true positives per 100 samples"
    threshold = rounded(100 * row["threshold"])
    return claim(name, threshold=threshold, other=other, cost=costs)


def _is_above(interval):
    """Return whether an interval lies above 0; one without limits does not."""
    return interval["low"] is not None and interval["low"] > 0


def _is_below(interval):
    """Return whether an interval lies below 0; one without limits does not."""
    return interval["high"] is not None and interval["high"] < 0


def cluster_first(advice):
    """Return the sentence that no recalibrator was judged, since a column of ids
    repeats.
    """
    return claim("cluster first", column=advice["needs_cluster"])


def nothing_to_gain(rows, n_impossible=0):
    """Return the sentence that no recalibrator is significantly better, with the change
    in log-loss by the best one. `rows` are the dicts of the table of recalibrators, the
    unchanged scores among them; `n_impossible` samples happened although their
    probability was 0.
    """
    unchanged, best = best_of(rows)
    # In percent of the log-loss; a gain above 0 lowers it.
    gain, low, high = gains(best, unchanged["log_loss"])
    digits = decimals(low, high)
    bracket = "no interval"
    if not isnan(low):
        limits = []
        for limit in (high, low):  # the largest gain comes first
            side = "lower" if limit > 0 else "higher"
            limits.append(f"{fixed(abs(limit), digits)} % {side}")
        bracket = f"{OF_ESTIMATES}: {' to '.join(limits)}"
    size = f"{fixed(abs(gain), digits)} % ({bracket})"
    return claim(
        "nothing to gain",
        name=best["name"],
        change="lower" if gain > 0 else "raise",
        size=size,
        clip=f", {CLIPPED}" if n_impossible else "",
    )


def certificate_sentence(rows, of_classes):
    """Return the sentence on the guarantee that binning would give, for one number of
    bins as an example; None if there is no guarantee.

    The example is 10 bins or, if these have a wide tolerance, as many as have not; if
    all are wide, the narrowest. `rows` are dicts with the tolerance ("conditional", a
    probability) for a number of bins ("n_bins") each, the fewest bins first;
    `of_classes` says whether there are several classes.
    """
    rows = [row for row in rows if row["conditional"] < 1]  # 1 is no guarantee
    if not rows:
        return None
    narrow = [row for row in rows if row["conditional"] <= _WIDEST_GUARANTEE]
    if narrow:
        row = next((row for row in narrow if row["n_bins"] == 10), narrow[-1])
    else:
        row = min(rows, key=lambda row: row["conditional"])
    event = "the event frequency"
    if of_classes:
        event = "the frequency with which the predicted class is right"
    epsilon = rounded(100 * row["conditional"])
    return claim("guarantee", n_bins=f"{row['n_bins']}", epsilon=epsilon, event=event)


def monitor_sentence(rows):
    """Return the sentence on the monitors that raised an alarm: when, and when the
    change probably happened. `rows` are the dicts of the table of monitors.
    """
    with_alarm = [row for row in rows if row["alarm"]]
    if not with_alarm:
        return claim("no alarm")
    named = []
    for row in with_alarm[:MOST_WORST]:
        named.append(
            f"in {row['alarm_time']} for {row['group']} (change near"
            f" {row['change_time']})"
        )
    names = series(named, len(with_alarm), "; ")
    lead = " " if len(with_alarm) == 1 else ": "
    which = f"{len(with_alarm)} of {len(rows)} monitors"
    if len(rows) == 1:
        which = "the monitor"
    return claim("alarm", which=which, names=lead + names)
