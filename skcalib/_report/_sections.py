"""Sentences of the sections of a report's page."""

from skcalib._report._evidence import classes_off
from skcalib._report._phrases import MOST_WORST, best_of, gains, listed, series
from skcalib._report._statistics import SIGNIFICANCE_LEVEL
from skcalib._verdicts import interval_words, rounded


def comparisons(models):
    """Return for each model but the first whether its Brier score is lower or higher;
    nothing for one model.
    """
    first = models[0]["name"]
    lines = []
    for model in models[1:]:
        name = model["name"]
        difference = model["brier_difference"]
        estimate = difference["estimate"]
        low = difference["low"]
        high = difference["high"]
        if low <= 0 <= high:
            shown = interval_words(estimate, low, high)
            lines.append(
                f"{name}: not told apart from {first} by its Brier score, difference"
                f" {shown}."
            )
            continue
        side = "higher (worse)" if estimate > 0 else "lower (better)"
        # without the sign, which the side tells
        low, high = sorted((abs(low), abs(high)))
        shown = interval_words(abs(estimate), low, high)
        lines.append(
            f"{name}: its Brier score is {side} than that of {first} by {shown}."
        )
    return lines


def segment_sentence(rows):
    """Return how many segments are off, with limits that hold for all together."""
    n = len(rows)
    if n == 1:
        return "There is one segment only."
    off = []
    n_fine = 0
    n_unclear = 0
    for row in rows:
        kind = row["verdict"]["kind"]
        if kind in ("off", "off, size unclear"):
            off.append(row["segment"])
        n_fine += kind == "fine"
        n_unclear += kind == "cannot tell"
    named = f" ({listed(off)})" if off else ""
    are_off = "is" if len(off) == 1 else "are"
    are_fine = "is" if n_fine == 1 else "are"
    return (
        f"Of {n} segments {len(off) or 'none'} {are_off} off{named}, {n_fine or 'none'}"
        f" {are_fine} fine to within the tolerance, and for {n_unclear or 'none'} the"
        " samples cannot tell."
    )


def class_sentence(rows):
    """Return the sentence on the classes as text."""
    return classes_off(rows).text


def rest_sentence(rows):
    """Return what the classes that a page leaves out have in common."""
    errors = [row["estimate"] for row in rows if row["estimate"] is not None]
    off = sum(row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    between = ""
    if errors:
        low = rounded(100 * min(errors), 2)
        high = rounded(100 * max(errors), 2)
        between = f" have errors from {low} to {high} points"
    verb = "is" if off == 1 else "are"
    return (
        f"The other {len(rows)} classes{between}; {off or 'none'} of these {verb} more"
        " than chance explains."
    )


def decision_sentence(row):
    """Return whether scores are of use at a threshold, and what their miscalibration
    costs there.
    """
    benefit = row["net_benefit"]  # of the scores, against treating none
    against = row["against_treating_all"]
    cost = row["cost_of_miscalibration"]
    other = "none" if benefit["estimate"] < against["estimate"] else "all samples"
    if _is_above(benefit) and _is_above(against):
        words = "the scores are better than treating all samples and than treating none"
    elif _is_below(benefit) or _is_below(against):
        words = f"treating {other} would be better than following the scores"
    else:
        words = (
            f"the samples do not show that the scores are better than treating {other}"
        )
    words = f"At {rounded(100 * row['threshold'])} % {words}"
    if cost is None:
        return f"{words}."
    if not _is_above(cost):
        return f"{words}; no cost of miscalibration is measurable there."
    loss = interval_words(cost["estimate"], cost["low"], cost["high"], scale=100)
    return f"{words}; miscalibration costs {loss} true positives in 100 samples."


def _is_above(interval):
    """Return whether an interval lies above 0; one without limits does not."""
    return interval["low"] is not None and interval["low"] > 0


def _is_below(interval):
    return interval["high"] is not None and interval["high"] < 0


def nothing_to_gain(rows):
    """Return that no recalibrator helps, and what the best of them would save."""
    before, best = best_of(rows)
    saved = interval_words(*gains(best, before["log_loss"]), unit="%")
    return (
        f"None of {len(rows) - 1} recalibrators is measurably better. The best,"
        f" {best['name']}, would save {saved} of the log-loss."
    )


def certificate_sentence(rows, of_classes):
    """Return one row of the guarantees as a sentence, that of 10 bins if there is
    one.
    """
    rows = [row for row in rows if row["conditional"] < 1]
    if not rows:
        return None
    row = next((row for row in rows if row["n_bins"] == 10), rows[-1])
    event = "the frequency of the event"
    if of_classes:
        event = "the frequency with which the predicted class is right"
    return (
        f"For example, with {row['n_bins']} bins each recalibrated probability lies"
        f" within {rounded(100 * row['conditional'])} percentage points of {event} in"
        " its bin."
    )


def monitor_sentence(rows):
    """Return when monitors raised an alarm, and when the change is likely to have
    been.
    """
    off = [row for row in rows if row["alarm"]]
    if not off:
        return "No monitor raised an alarm."
    named = []
    for row in off[:MOST_WORST]:
        named.append(
            f"{row['group']} in {row['alarm_time']}, the change at about"
            f" {row['change_time']}"
        )
    return (
        f"{len(off)} of {len(rows)} monitors raised an alarm:"
        f" {series(named, len(off), '; ')}."
    )
