"""The advice of a report in sentences."""

from skcalib._report._claims import claim
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    OF_ESTIMATES,
    best_of,
    from_words,
    gains,
    limits_words,
    listed,
    points_digits,
    points_words,
)
from skcalib._verdicts import fixed, interval_words, rounded, rounded_up


def advice(words, is_usable, suggested=None):
    """Return a list of claims on what to do, what it gains and what it needs.

    `words` are the `ModelWords`; `is_usable` says that the headline calls the scores
    usable, so that any step is optional. `suggested` is the tolerance that the headline
    suggests, in points as text; None if it suggests none.
    """
    model = words.model
    found = model["advice"]
    since = ""
    if found["since"]:
        since = f" on the samples{from_words(found['since'])}"
    if not model["recalibrators"]:
        return [claim("too few to recalibrate")]
    if found["needs_cluster"] is not None:
        return [claim("cluster first", column=found["needs_cluster"])]
    if found["kind"] == "none":
        return [_nothing_to_do(words, since, is_usable)]
    size = interval_words(
        *gains(found, found["log_loss"]), unit="%", level=OF_ESTIMATES
    )
    which = from_words(found["since"])
    where = ""
    if found["segments"]:
        which = f" of all segments together{which}"
        where = f", over the samples{which},"
    steps = [
        _what_to_do(words, found, is_usable),
        _error_left(words, found, where, suggested),
        claim("gain", which=which, size=size, brier=_brier_gain(words, found)),
    ]
    if found["rows_needed"] is not None:
        steps.append(_samples_needed(words, found))
    return steps


def _nothing_to_do(words, since, is_usable):
    """Return the claim that no recalibrator helps, and what the best one may save at
    most.
    """
    before, best = best_of(words.model["recalibrators"])
    _, _, high = gains(best, before["log_loss"])
    most = max(high, 0.0)  # percent of the log-loss
    words_of_most = ""
    # That at most 100 % can be saved is always true, and not worth saying.
    if not since and most < 100:
        words_of_most = (
            f" (the best, {best['name']}, may save at most {rounded(most, 2)} % of the"
            " log-loss)"
        )
    name = "leave" if is_usable else "no recalibrator"
    return claim(name, subject=words.subject, since=since, most=words_of_most)


def _brier_gain(words, found):
    """Return words on the Brier score if the interval of its gain has 0, else none.

    The table of candidates knows it, unless the advice is about later samples only.
    """
    if found["since"] is not None:
        return ""
    for row in words.model["recalibrators"]:
        is_advised = row["name"] == found["recalibrator"] and (
            row.get("segments", []) == found["segments"]
            and row.get("others") == found["others"]
        )
        if is_advised and row.get("brier_gain_low", 1) <= 0 <= row["brier_gain_high"]:
            return "; a gain in the Brier score is not measurable"
    return ""


def _samples_needed(words, found):
    """Return the claim on the number of samples that keeps nine tenths of the gain over
    the next simpler step. `words` are the `ModelWords`, `found` is the advice, a dict.
    """
    simpler = found["simpler"]
    if simpler == "as it is":
        simpler = f"the unchanged {words.subject}"
    number = rounded_up(found["rows_needed"])
    fewest = rounded_up(found["rows_needed_low"])
    if fewest != number:
        number = f"{fewest} to {number}"
    return claim("samples needed", number=number, simpler=simpler)


def _error_left(words, found, where, suggested):
    """Return the claim on the error that is left after the advised step: whether it is
    within the tolerance, and if not, which candidate leaves less than half of it.
    `words` are the `ModelWords`, `found` is the advice, a dict; `where` says which
    samples it is about, `suggested` is the tolerance that the headline suggests.
    """
    left = read_verdict(found["error_left"])
    if left.kind == "fine":
        _, high = limits_words(left)
        further = ""
        if suggested is not None:
            verb = "is" if 100 * left.high <= float(suggested) else "may not be"
            further = f", which {verb} within the suggested {suggested} points"
        return claim("error left fine", where=where, limit=high, suggested=further)
    better = ""
    # Only a candidate with a lower loss is named. The table of candidates is about all
    # samples, and cannot be compared with advice for those since a change.
    loss = found["log_loss"] - found["gain"]
    rows = [row for row in words.model["recalibrators"] if row["log_loss"] < loss]
    if found["since"] is None and rows:
        least = min(rows, key=lambda row: row["calibration_error"])
        if least["calibration_error"] < left.estimate / 2:
            size = fixed(100 * least["calibration_error"], points_digits(left))
            better = f"; {least['name']} leaves {size}"
    name = "error left" if left.kind == "off" else "error left unclear"
    return claim(
        name,
        where=where,
        size=points_words(left),
        tolerance=words.tolerance_words,
        better=better,
    )


def _shared_words(words, found, is_usable):
    """Return words that all sentences on an advised step have: the samples since a
    change, and the verb that they begin with; see `_what_to_do`.
    """
    since = ""
    if found["since"]:
        since = (
            f", fitted to the samples{from_words(found['since'])} and applied to all"
            " new scores"
        )
    only = ""
    if words.model.get("is_inferior"):
        only = f"Only if {words.model['name']} must be used: "
    elif is_usable:
        only = "Optional: "
    verbs = {}
    for verb in ("Shift", "Recalibrate"):
        verbs[verb] = f"{only}{verb.lower()}" if only else verb
    return {"since": since, **verbs}


def _what_to_do(words, found, is_usable):
    """Return the claim on the advised step, as an option if the scores are usable or
    another model is better. `found` is the advice, a dict.
    """
    name = found["recalibrator"]
    named = _shared_words(words, found, is_usable)
    if name == "PriorShift" and words.is_of_classes:
        return claim("shift classes", **named)
    if name == "PriorShift":
        return claim("shift", **named)
    if not found["segments"]:
        return claim("recalibrate", name=name, **named)
    n_segments = sum(
        row["column"] == found["column"] for row in words.model["segments"]
    )
    has_others = len(found["segments"]) < n_segments
    if found["others"] == "unchanged" and has_others:
        # "PlattScaling", of "GroupwiseRecalibrator(PlattScaling())".
        inner = name.split("(")[1]
        each = "each fitted to its own samples"
        if len(found["segments"]) == 1:
            each = "fitted to its samples"
        each += from_words(found["since"])
        return claim(
            "recalibrate segments",
            segments=listed(found["segments"]),
            name=inner,
            each=each,
            subject=words.subject,
            **named,
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
