"""The result of a report in sentences that a person can act on.

Every sentence of a summary stands in `CLAIMS` under a name, and the numbers of a report
list the names of those that it prints. `tests/test_claims_of_report.py` has for each of
them worlds in which it is true and worlds in which it is false.
"""

from typing import NamedTuple

from skcalib._report._judged import read_verdict
from skcalib._verdicts import (
    count_words,
    decimals,
    fixed,
    interval_words,
    percent_decimals,
    percent_words,
    pvalue_words,
    rounded,
    rounded_up,
)

SIGNIFICANCE_LEVEL = 0.05
_MOST_NAMED, _MOST_WORST = 5, 3
_HIDDEN = 2  # times the bias of all rows, from which the average hides a segment
_RARE = 5  # a tolerance of more than a fifth of the event frequency hides everything
CLAIMS = {
    # What is worst, and what to do.
    "do not use the segment": (
        "Do not use the {subject} of {segment} as they are: {size}{since}."
    ),
    "nor these segments": "Nor those of {segments}.",
    "check the segment": (
        "Check {segment} before use: its {subject} are {size}{since}."
    ),
    "others are fine": "The other {others} fine to within {limit} points.",
    "others cannot be told": "For {which} the samples cannot tell{needed}.",
    "segments cannot be told": (
        "For {number} of {n} segments the samples cannot tell{needed}."
    ),
    "do not use": "Do not use the {subject} as they are: {size} on average{since}.",
    "check": (
        "The {subject} are {size} on average{since}; {n} samples do not tell whether"
        " this is more than {tolerance} points."
    ),
    "do not take at face value": (
        "Do not take single {subject} at face value: their mean absolute calibration"
        " error is {size}{direction}."
    ),
    "check the error": (
        "Check single {subject} before use: their mean absolute calibration error is"
        " between {low} and {high} points."
    ),
    "usable": (
        "The {subject} can be used as they are: right on average to within {limit}"
        " points, with a mean absolute calibration error of at most {error} points."
    ),
    "right on average": (
        "The {subject} are right on average to within {limit} points. Whether single"
        " ones are, {n} samples cannot tell: the mean absolute calibration error may be"
        " {error} points{needed}."
    ),
    "cannot tell": (
        "{n} samples cannot tell whether the {subject} are right on average to within"
        " {tolerance} points: the bias lies between {low} and {high} points. Keep the"
        " {subject} until {needed} samples are at hand."
    ),
    "tolerance too large": (
        "Events are rarer ({frequency}) than this tolerance can judge: say --tolerance"
        " {smaller}."
    ),
    # The evidence.
    "means": "{What} is {mean}, and {frequency} {of}{bias}.",
    "error": (
        "The mean absolute calibration error{of} is {size}; the test of calibration"
        " gives {pvalue}."
    ),
    "nothing but the shift": (
        "Apart from this shift, no miscalibration is detectable."
    ),
    "below the bias": "It is below the bias because label noise is subtracted from it.",
    "too extreme": (
        "The likelier outcome happens less often than predicted, by {size}: the scores"
        " are too extreme."
    ),
    "too cautious": (
        "The likelier outcome happens more often than predicted, by {size}: the scores"
        " are too cautious."
    ),
    "classes off": (
        "{share} classes {have} an error that chance does not explain{names}. The"
        " largest is that of class {first}{size}{bias}."
    ),
    "no class off": "No class of {n} has an error that chance does not explain.",
    "segments off": "By {column}, {share} segments {are} off{names}.",
    "average hides": (
        "The average of all samples ({bias} points) hides how they differ."
    ),
    "changed": (
        "Since {since} {whose} are {after} on average; before, they were {before}."
    ),
    "trend": (
        "From {first} to {last} the bias has moved by {size} ({pvalue} for no trend)."
    ),
    "dependent": (
        "The errors of samples that follow each other in time are alike"
        " (autocorrelation {size}): intervals are too short and p-values too small."
        " Samples of one day or one case belong together: say --cluster."
    ),
    # The advice.
    "too few to recalibrate": (
        "There are too few samples of one class to recalibrate."
    ),
    "cluster first": (
        "No recalibration is advised before --cluster {column} is given: its values"
        " repeat, so that a map would be judged on samples of the same {column} that it"
        " was fitted to."
    ),
    "leave": (
        "Leave the {subject} unchanged: no recalibrator is measurably better{since}"
        "{most}."
    ),
    "no recalibrator": (
        "No recalibrator is measurably better{since}{most}, so none is advised."
    ),
    "shift classes": "{Shift} the class frequencies{since} with PriorShift().",
    "shift": (
        "{Shift} the base rate{since}: PriorShift() adds one number to all log-odds."
    ),
    "recalibrate": "{Recalibrate}{since} with {name}().",
    "recalibrate segments": (
        "{Recalibrate} {segments}{since} with {name}(), {each}; the other segments keep"
        " their {subject}."
    ),
    "recalibrate by segment": (
        "{Recalibrate} by {column}{since} with {name}: {whose}."
    ),
    "gain": (
        "On held-out samples this lowers the log-loss by {size}. Fit it again when the"
        " model changes or a monitor (skcalib.monitoring) raises an alarm."
    ),
    "samples needed": (
        "It takes about {number} labelled samples to keep nine tenths of what it gains"
        " over {simpler}."
    ),
}


class Claim(NamedTuple):
    """A sentence, and its name in `CLAIMS`."""

    name: str
    text: str


def claim(name, /, **words):
    """Return a sentence with these words in it."""
    text = CLAIMS[name].format(**words)
    return Claim(name, text[0].upper() + text[1:])


def summary(model, table):
    """Return the paragraphs of a model's summary as lists of claims: what is worst and
    what to do; the evidence; segments and time; the advice.

    Parameters
    ----------
    model : dict
        The numbers of the model.
    table : dict
        What the report knows of all models: `n_samples`, `tolerance` and the name of
        the `segment` columns.
    """
    words = _Words(model, table)
    worst = headline(words)
    is_usable = worst[0].name in ("usable", "right on average")
    paragraphs = [
        worst,
        evidence(words, worst[0].name),
        [*segments_off(words), *changes(words), *over_time(model)],
        advice(words, is_usable),
    ]
    return [paragraph for paragraph in paragraphs if paragraph]


class _Words:
    """The words and verdicts of one model that several sentences need."""

    def __init__(self, model, table):
        self.model = model
        self.tolerance = table["tolerance"]
        self.tolerance_words = rounded(100 * table["tolerance"])
        self.n = count_words(table["n_samples"])
        self.is_of_classes = "classes" in model
        self.subject = "scores"
        if self.is_of_classes:
            self.subject = "probabilities of the predicted classes"
        verdicts = model["verdicts"]
        self.bias = read_verdict(verdicts["bias"])
        self.over_confidence = read_verdict(verdicts["over_confidence"])
        self.error = read_verdict(verdicts["error"])

    @property
    def segments(self):
        """The verdict of each segment, and since when: after its change, if there is
        one.
        """
        found = [
            (row["segment"], read_verdict(row["verdict"]), None)
            for row in self.model["segments"]
        ]
        changed = {row["group"]: row for row in clearest_changes(self.model)}
        for place, (name, _, _) in enumerate(found):
            if name in changed:
                after = read_verdict(changed[name]["verdict_after"])
                found[place] = (name, after, changed[name]["since"])
        return found

    @property
    def overall(self):
        """The verdict on all rows, and since when."""
        for row in clearest_changes(self.model):
            if row["group"] is None:
                return read_verdict(row["verdict_after"]), row["since"]
        return self.bias, None


def headline(words):
    """Return the worst thing, what to do about it, and how the rest is."""
    overall, since = words.overall
    off = [found for found in words.segments if found[1].is_off]
    off.sort(key=lambda found: -_least(found[1]))
    off.sort(key=lambda found: found[1].kind != "off")
    disagree = any(found.kind == "fine" for _, found, _ in words.segments) or any(
        found.is_off and found.estimate * overall.estimate < 0
        for _, found, _ in words.segments
    )
    # The worst segment is off by more than all samples together can be.
    is_worse_in_segments = (
        off
        and off[0][1].kind == "off"
        and (overall.kind != "off" or _least(off[0][1]) > overall.limit)
    )
    if overall.is_off and not (off and (disagree or is_worse_in_segments)):
        return _all_off(words, overall, since)
    if off:
        return _segments_worst(words, off)
    if words.error.kind == "off":
        size = _points(words.error)
        direction = ""
        if words.over_confidence.is_off and not words.is_of_classes:
            too = "extreme" if words.over_confidence.estimate > 0 else "cautious"
            direction = f" (the scores are too {too})"
        return [
            claim(
                "do not take at face value",
                subject=words.subject,
                size=size,
                direction=direction,
            )
        ]
    if words.error.kind == "off, size unclear":
        low, high = _limits(words.error)
        return [claim("check the error", subject=words.subject, low=low, high=high)]
    return _nothing_found(words)


def _all_off(words, overall, since):
    size = overall.words(scale=100, unit="points")
    name = "do not use" if overall.kind == "off" else "check"
    return [
        claim(
            name,
            subject=words.subject,
            size=size,
            since=_since(since),
            n=words.n,
            tolerance=words.tolerance_words,
        )
    ]


def _segments_worst(words, off):
    """Return the worst segment, up to three others, and how the rest is."""
    (name, worst, since), *more = off
    size = worst.words(scale=100, unit="points")
    key = "do not use the segment" if worst.kind == "off" else "check the segment"
    found = [
        claim(key, subject=words.subject, segment=name, size=size, since=_since(since))
    ]
    alike = [
        each for each in more if each[1].kind == "off" and not _is_within(each[0], off)
    ]
    if alike and worst.kind == "off":
        sizes = [
            f"{name}, {each.words(scale=100, unit='points')}{_since(start)}"
            for name, each, start in alike[:_MOST_WORST]
        ]
        names = _series(sizes, len(alike), "; ")
        found.append(claim("nor these segments", segments=names))
    return found + _other_segments(words)


def _is_within(name, off):
    """Return whether a segment of a crossing is a part of another one that is off."""
    parts = set(name.split(", "))
    return len(parts) > 1 and any(other in parts for other, _, _ in off)


def _other_segments(words):
    """Return how the segments are that are not off."""
    others = [each for _, each, _ in words.segments if not each.is_off]
    fine = [each for each in others if each.kind == "fine"]
    if not others:
        return []
    if len(fine) < len(others):
        which = f"{len(others) - len(fine)} of the other {len(others)} segments"
        if not fine:
            which = f"the other {len(others)} segments"
        if len(others) == 1:
            which = "the other segment"
        return [claim("others cannot be told", which=which, needed=_each_needs(others))]
    limit = max(fine, key=lambda each: each.limit)
    named = "segment is" if len(fine) == 1 else f"{len(fine)} segments are"
    return [claim("others are fine", others=named, limit=_limit(limit))]


def _each_needs(verdicts):
    """Return how many samples of each segment would tell, for the one that needs the
    most.
    """
    needed = [each.n_needed for each in verdicts if each.n_needed is not None]
    if not needed:
        return ""
    return f"; about {rounded_up(max(needed))} samples of each would"


def _nothing_found(words):
    """Return what the samples say where nothing is seen to be off."""
    bias, error = words.bias, words.error
    if bias.kind != "fine":
        digits = _points_digits(bias)
        needed = "more"
        if bias.n_needed is not None:
            needed = f"about {rounded_up(bias.n_needed)}"
        return [
            claim(
                "cannot tell",
                n=words.n,
                subject=words.subject,
                tolerance=words.tolerance_words,
                low=fixed(100 * bias.low, digits),
                high=fixed(100 * bias.high, digits),
                needed=needed,
            )
        ]
    if error.kind == "fine":
        found = [
            claim(
                "usable",
                subject=words.subject,
                limit=_limit(bias),
                error=_limit(error),
            )
        ]
    else:
        needed = ""
        if error.n_needed is not None:
            needed = f"; about {rounded_up(error.n_needed)} would tell"
        found = [
            claim(
                "right on average",
                subject=words.subject,
                limit=_limit(bias),
                n=words.n,
                error=_limits(error)[1],
                needed=needed,
            )
        ]
    frequency = words.model["event_frequency"]
    rarer = min(frequency, 1 - frequency)
    if words.tolerance > rarer / _RARE and not words.is_of_classes and rarer > 0:
        found.append(
            claim(
                "tolerance too large",
                frequency=percent_words(rarer),
                smaller=rounded(100 * rarer / (2 * _RARE), 1),
            )
        )
    cannot = [each for _, each, _ in words.segments if each.kind == "cannot tell"]
    if cannot:
        found.append(
            claim(
                "segments cannot be told",
                number=f"{len(cannot)}",
                n=f"{len(words.segments)}",
                needed=_each_needs(cannot),
            )
        )
    return found


def evidence(words, first):
    """Return what the headline rests on: the means, the error with its test, the
    direction, and the classes.
    """
    model, (error, test) = words.model, (words.error, words.model["test"])
    found = [_means(words, first)]
    pvalue = pvalue_words(test["pvalue"], test["smallest_pvalue"])
    of = " of the predicted class" if words.is_of_classes else ""
    found.append(claim("error", of=of, size=_points(error), pvalue=pvalue))
    segments_off = any(each.is_off for _, each, _ in words.segments)
    if words.bias.is_off and not (test["rejects"] or segments_off or model["changes"]):
        found.append(claim("nothing but the shift"))
    if words.bias.is_off and error.estimate < abs(words.bias.estimate):
        found.append(claim("below the bias"))
    sure = words.over_confidence
    if not words.is_of_classes and not words.bias.is_off and sure.is_off:
        name = "too extreme" if sure.estimate > 0 else "too cautious"
        found.append(claim(name, size=_size(sure)))
    if words.is_of_classes:
        found.append(_classes(model["classes"]))
    return found


def _means(words, first):
    """Return the mean score and the event frequency, and their difference where the
    headline does not have it.
    """
    model, bias = words.model, ""
    if words.bias.is_off and first not in ("do not use", "check"):
        bias = f": {words.bias.words(scale=100, unit='points')} on average"
    # Both have the digits that the samples support.
    digits = percent_decimals(model["event_frequency"], words.bias.n)
    what, of = "The mean score", "of the samples have the event"
    if words.is_of_classes:
        what, of = "The mean probability of the predicted class", "of them are right"
    return claim(
        "means",
        mean=f"{fixed(100 * model['mean_score'], digits)} %",
        frequency=f"{fixed(100 * model['event_frequency'], digits)} %",
        What=what,
        of=of,
        bias=bias,
    )


def _classes(rows):
    """Return which class has the largest error, and how many have one that chance does
    not explain.
    """
    off = [row for row in rows if row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL]
    if not off:
        return claim("no class off", n=f"{len(rows)}")
    first, size = off[0], ""
    bias = read_verdict(first["verdict"])
    too = ""
    if bias.is_off:
        too = f"; its probabilities are {bias.words(scale=100, unit='points')}"
        too += " on average"
    if first["estimate"] is not None:
        shown = interval_words(
            first["estimate"], first["low"], first["high"], scale=100, unit="points"
        )
        size = f": {shown}, averaged over all samples, also those of other classes"
    names = ""
    if len(off) > 1:
        names = f": {listed([row['class'] for row in off])}"
    return claim(
        "classes off",
        share=share_of(off, rows),
        have="has" if len(off) == 1 else "have",
        names=names,
        first=first["class"],
        size=size,
        bias=too,
    )


def segments_off(words):
    """Return how many segments are off, the worst by name, and whether the average
    hides them.
    """
    found, rows = [], words.model["segments"]
    for column in dict.fromkeys(row["column"] for row in rows):
        of_column = [row for row in rows if row["column"] == column]
        off = [row for row in of_column if read_verdict(row["verdict"]).is_off]
        if not off:
            continue
        off.sort(key=lambda row: -_least(read_verdict(row["verdict"])))
        shown = [
            f"{row['segment']} {_bias_words(row['verdict'])}"
            for row in off[:_MOST_WORST]
        ]
        found.append(
            claim(
                "segments off",
                column=column,
                share=share_of(off, of_column),
                are="is" if len(off) == 1 else "are",
                names=f": {_series(shown, len(off), '; ')}",
            )
        )
    off = [read_verdict(row["verdict"]) for row in rows]
    off = [each for each in off if each.is_off]
    overall = words.bias.estimate
    if off and (
        max(abs(each.estimate) for each in off) > _HIDDEN * abs(overall)
        or any(each.estimate * overall < 0 for each in off)
    ):
        bias = fixed(100 * overall, _points_digits(words.bias))
        found.append(claim("average hides", bias=bias))
    return found


def clearest_changes(model):
    """Return what changed most clearly: all rows together, or up to three segments."""
    rows = model["changes"]
    if rows and rows[0]["group"] is not None:
        rows = [row for row in rows if row["group"] is not None]
        return rows[:_MOST_WORST]
    return rows[:1]


def changes(words):
    """Return since when the calibration of all rows, or of the segments that changed
    most clearly, is another one.
    """
    found = []
    for row in clearest_changes(words.model):
        whose = f"the {words.subject}"
        if row["group"] is not None:
            whose = f"{whose} of {row['group']}"
        found.append(
            claim(
                "changed",
                since=row["since"],
                whose=whose,
                after=_bias_words(row["verdict_after"]),
                before=_bias_words(row["verdict_before"]),
            )
        )
    return found


def over_time(model):
    """Return whether the bias has a trend, and whether errors that follow each other
    are alike.
    """
    found = []
    trend = model.get("trend")
    if trend is not None and trend["pvalue"] < SIGNIFICANCE_LEVEL:
        size = interval_words(
            *(trend[key] for key in ("moved", "moved_low", "moved_high")),
            scale=100,
            unit="points",
        )
        found.append(
            claim(
                "trend",
                first=trend["first"],
                last=trend["last"],
                size=size,
                pvalue=pvalue_words(trend["pvalue"]),
            )
        )
    alike = model.get("autocorrelation")
    if alike is not None and alike["pvalue"] < SIGNIFICANCE_LEVEL:
        found.append(claim("dependent", size=rounded(alike["estimate"], 2)))
    return found


def advice(words, is_usable):
    """Return what to do, what it gains and what it costs."""
    model, found = words.model, words.model["advice"]
    since = f" on the samples since {found['since']}" if found["since"] else ""
    if not model["recalibrators"]:
        return [claim("too few to recalibrate")]
    if found["needs_cluster"] is not None:
        return [claim("cluster first", column=found["needs_cluster"])]
    if found["kind"] == "none":
        before, best = best_of(model["recalibrators"])
        most = max(gains(best, before["log_loss"])[2], 0.0)
        most = "" if since else f" (at most {rounded(most, 2)} % of the log-loss)"
        name = "leave" if is_usable else "no recalibrator"
        return [claim(name, subject=words.subject, since=since, most=most)]
    size = interval_words(*gains(found, found["log_loss"]), unit="%")
    steps = [_what_to_do(words, found, since, is_usable), claim("gain", size=size)]
    if found["rows_needed"] is not None:
        simpler = found["simpler"]
        if simpler == "as it is":
            simpler = f"the unchanged {words.subject}"
        number = rounded_up(found["rows_needed"])
        fewest = rounded_up(found["rows_needed_low"])
        if fewest != number:
            number = f"{fewest} to {number}"
        steps.append(claim("samples needed", number=number, simpler=simpler))
    return steps


def _what_to_do(words, found, since, is_usable):
    """Return the step that is advised; an option where the scores can be used."""
    name, named = found["recalibrator"], {"since": since}
    named["Shift"], named["Recalibrate"] = "Shift", "Recalibrate"
    if is_usable:
        named["Shift"], named["Recalibrate"] = (
            "Optional: shift",
            "Optional: recalibrate",
        )
    if name == "PriorShift" and words.is_of_classes:
        return claim("shift classes", **named)
    if name == "PriorShift":
        return claim("shift", **named)
    if not found["segments"]:
        return claim("recalibrate", name=name, **named)
    if found["others"] == "unchanged":
        inner = name.split("(")[1]
        each = "each with its own fit"
        if len(found["segments"]) == 1:
            each = "fitted to its samples"
        return claim(
            "recalibrate segments",
            segments=listed(found["segments"]),
            name=inner,
            each=each,
            subject=words.subject,
            **named,
        )
    n_segments = sum(
        row["column"] == found["column"] for row in words.model["segments"]
    )
    needs = "needs a map of its own"
    if len(found["segments"]) > 1:
        needs = "need maps of their own"
    whose = f"{listed(found['segments'])} {needs}; the other segments share one"
    if len(found["segments"]) >= n_segments - 1:
        whose = "each segment needs a map of its own"
    return claim(
        "recalibrate by segment",
        column=found["column"],
        name=name,
        whose=whose,
        **named,
    )


# --- Sentences of the page's sections ---------------------------------------------


def comparisons(models):
    """Return for each model but the first whether its Brier score is lower or higher;
    nothing for one model.
    """
    first, lines = models[0]["name"], []
    for other in models[1:]:
        name, found = other["name"], other["brier_difference"]
        estimate, low, high = (found[key] for key in ("estimate", "low", "high"))
        if low <= 0 <= high:
            shown = interval_words(estimate, low, high)
            lines.append(
                f"{name}: not told apart from {first} by its Brier score, difference"
                f" {shown}."
            )
            continue
        low, high = sorted((abs(low), abs(high)))
        shown = interval_words(abs(estimate), low, high)
        side = "higher (worse)" if estimate > 0 else "lower (better)"
        lines.append(
            f"{name}: its Brier score is {side} than that of {first} by {shown}."
        )
    return lines


def segment_sentence(rows):
    """Return how many segments are off, with limits that hold for all together."""
    n = len(rows)
    if n == 1:
        return "There is one segment only."
    kinds = [row["verdict"]["kind"] for row in rows]
    off = [
        row["segment"]
        for row in rows
        if row["verdict"]["kind"] in ("off", "off, size unclear")
    ]
    fine, unclear = kinds.count("fine"), kinds.count("cannot tell")
    named = f" ({listed(off)})" if off else ""
    return (
        f"Of {n} segments {len(off) or 'none'} {'is' if len(off) == 1 else 'are'} off"
        f"{named}, {fine or 'none'} {'is' if fine == 1 else 'are'} fine to within the"
        f" tolerance, and for {unclear or 'none'} the samples cannot tell."
    )


def class_sentence(rows):
    """Return the sentence on the classes as text."""
    return _classes(rows).text


def rest_sentence(rows):
    """Return what the classes that a page leaves out have in common."""
    errors = [row["estimate"] for row in rows if row["estimate"] is not None]
    off = sum(row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL for row in rows)
    between = ""
    if errors:
        low, high = rounded(100 * min(errors), 2), rounded(100 * max(errors), 2)
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
    benefit, against = row["net_benefit"], row["against_treating_all"]
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
    named = [
        f"{row['group']} in {row['alarm_time']}, the change at about"
        f" {row['change_time']}"
        for row in off[:_MOST_WORST]
    ]
    return (
        f"{len(off)} of {len(rows)} monitors raised an alarm:"
        f" {_series(named, len(off), '; ')}."
    )


# --- Words ------------------------------------------------------------------------


def share_of(some, rows):
    """Return how many of the rows some are, in words that a noun follows."""
    if len(some) == len(rows) > 1:
        return f"all {len(rows)}"
    return f"{len(some)} of {len(rows)}"


def listed(names, most=_MOST_NAMED):
    """Return the first of some names, and how many more there are."""
    return _series(names[:most], len(names))


def best_of(rows):
    """Return the candidate that changes nothing, and the best of the others."""
    before = next(row for row in rows if row["name"] == "as it is")
    return before, next(row for row in rows if row is not before)


def gains(row, before):
    """Return a gain and its interval in percent of the log-loss before."""
    return [100 * row[key] / (before or 1) for key in ("gain", "gain_low", "gain_high")]


def _series(names, n_all, separator=", "):
    shown = separator.join(names)
    if n_all > len(names):
        shown += f" and {n_all - len(names)} more"
    return shown


def _since(period):
    return f" since {period}" if period else ""


def _least(found):
    """Return how far a quantity that is off is off at least."""
    return min(abs(found.low), abs(found.high))


def _points(found):
    """Return an estimate with its interval in points."""
    return interval_words(
        found.estimate, found.low, found.high, scale=100, unit="points"
    )


def _size(found):
    """Return the size of what is off, without its sign, with its interval."""
    low, high = sorted((abs(found.low), abs(found.high)))
    return interval_words(abs(found.estimate), low, high, scale=100, unit="points")


def _points_digits(found):
    return decimals(100 * found.low, 100 * found.high)


def _limits(found):
    digits = _points_digits(found)
    return fixed(100 * found.low, digits), fixed(100 * found.high, digits)


def _limit(found):
    """Return within how many points a quantity is fine."""
    words = found.words(scale=100)
    return words.removeprefix("fine to within ")


def _bias_words(record):
    """Return a verdict on a bias in the middle of a sentence."""
    found = read_verdict(record)
    if found.is_off or found.kind == "fine":
        return found.words(scale=100, unit="points")
    low, high = _limits(found)
    return f"between {low} and {high} points off"
