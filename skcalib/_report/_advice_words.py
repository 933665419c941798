"""The advice of a report in sentences."""

from skcalib._report._claims import claim
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    OF_ESTIMATES,
    best_of,
    clip_words,
    from_words,
    gains,
    group_words,
    limits_words,
    listed,
    points_digits,
    points_words,
)
from skcalib._verdicts import fixed, interval_words, rounded, rounded_up

_NO_BRIER_GAIN = "; no gain in the Brier score is measurable"


def advice_sentences(facts, is_usable, suggested_tolerance=None):
    """Return a list of sentences on the advice for a model: what to do, the calibration
    error that it leaves, the log-loss that it gains and the samples that it needs.

    Parameters
    ----------
    facts : ModelFacts
        The verdicts and numbers of the model.
    is_usable : bool
        Whether the headline calls the scores usable, so that any step is optional.
    suggested_tolerance : str, default=None
        The tolerance that the headline suggests, in points; None if it suggests none.
    """
    advice = facts.model["advice"]
    if not facts.model["recalibrators"]:
        return [claim("too few to recalibrate")]
    if advice["needs_cluster"] is not None:
        return [claim("cluster first", column=advice["needs_cluster"])]
    if advice["kind"] == "none":
        return [_nothing_to_do(facts, is_usable)]
    size = _percent_words(gains(advice, advice["log_loss"]))
    # The samples that gain and error are about, if not all.
    which = from_words(advice["since"])
    if advice["segments"]:
        which = f" of all groups{which}"
    sentences = [
        _what_to_do(facts, is_usable),
        _error_left(facts, suggested_tolerance),
        claim(
            "gain",
            which=which,
            size=size,
            brier=_no_brier_gain(facts.model),
            clip=f"{_brier_first(facts.model)}{clip_words(facts.model)}",
        ),
    ]
    if advice["rows_needed"] is not None:
        sentences.append(_samples_needed(facts))
    return sentences


def _nothing_to_do(facts, is_usable):
    """Return the sentence that no recalibrator is significantly better, with the upper
    limit of what the best one may gain.
    """
    period = facts.model["advice"]["since"]
    since = f" on the samples{from_words(period)}" if period else ""
    unchanged, best = best_of(facts.model["recalibrators"])
    _, _, high = gains(best, unchanged["log_loss"])
    largest_gain = max(high, 0.0)  # percent of the log-loss
    words_of_gain = ""
    # The gains are about all samples. That at most 100 % can be saved is always true,
    # and not worth saying.
    if not since and largest_gain < 100 and not clip_words(facts.model):
        words_of_gain = (
            f" (the best, {best['name']}, may reduce the log-loss by at most"
            f" {rounded(largest_gain, 2)} %)"
        )
    name = "leave" if is_usable else "no recalibrator"
    return claim(name, subject=facts.subject, since=since, most=words_of_gain)


def _percent_words(sizes):
    """Return a gain with its limits, as percentages, as text."""
    return interval_words(*sizes, unit="%", level=OF_ESTIMATES)


def _no_brier_gain(model):
    """Return a clause if the advised recalibrator's gain in the Brier score is known
    and not significant, else "".
    """
    row = _advised_row(model)
    if row is None or row["brier_gain_low"] > 0 or row["brier_gain_high"] < 0:
        return ""
    return _NO_BRIER_GAIN


def _brier_first(model):
    """Return a clause on the gain in the Brier score, which goes before that in the
    log-loss where this is clipped; an empty text if it is not, or without such a gain.
    """
    row = _advised_row(model)
    if not clip_words(model) or row is None or row["brier_gain_low"] <= 0:
        return ""
    before, _ = best_of(model["recalibrators"])
    saved = [row[key] for key in ("brier_gain", "brier_gain_low", "brier_gain_high")]
    shares = [100 * value / before["brier"] for value in saved]
    return f"the Brier score is lower by {_percent_words(shares)} and, "


def _advised_row(model):
    """Return the row of the advised recalibrator in the table of candidates; None if it
    is not there, or without the gain in the Brier score.
    """
    advice = model["advice"]
    # Advice for the samples since a change is not in the table of candidates.
    if advice["since"] is not None:
        return None
    for row in model["recalibrators"]:
        is_advised = (
            row["name"] == advice["recalibrator"]
            and row.get("segments", []) == advice["segments"]
            and row.get("others") == advice["others"]
        )
        if is_advised and "brier_gain_low" in row:
            return row
    return None


def _samples_needed(facts):
    """Return the sentence on the number of samples that keep nine tenths of the advised
    recalibrator's gain over the next simpler one.
    """
    advice = facts.model["advice"]
    simpler = advice["simpler"]
    if simpler == "as it is":
        simpler = f"the unchanged {facts.subject}"
    number = rounded_up(advice["rows_needed"])
    fewest = rounded_up(advice["rows_needed_low"])
    if fewest != number:
        number = f"{fewest} to {number}"
    return claim("samples needed", number=number, simpler=simpler)


def _error_left(facts, suggested_tolerance):
    """Return the sentence on the calibration error after the advised recalibration:
    whether it is within the tolerance, and if not, which candidate leaves less than
    half. `suggested_tolerance` is the headline's, in points as text, or None.
    """
    advice = facts.model["advice"]
    subject = "This"
    if advice["segments"]:
        period = from_words(advice["since"])
        subject = f"Over the samples of all groups{period}, this"
    left = read_verdict(advice["error_left"])
    if left.kind == "fine":
        _, high = limits_words(left)
        further = ""
        if suggested_tolerance is not None:
            is_within = 100 * left.high <= float(suggested_tolerance)
            verb = "is" if is_within else "may not be"
            further = (
                f", which {verb} within the suggested {suggested_tolerance} points"
            )
        return claim("error left fine", This=subject, limit=high, suggested=further)
    return claim(
        "error left" if left.kind == "off" else "error left unclear",
        This=subject,
        size=points_words(left),
        tolerance=facts.tolerance_words,
        better=_smaller_error(facts.model, left),
    )


def _smaller_error(model, left):
    """Return a clause on the candidate that leaves the smallest calibration error, as
    in "; SplineCalibration leaves 0.8", among those with a lower log-loss than the
    advised one; "" if that is more than half of `left`, the `Verdict` on the advised
    one's error.
    """
    advice = model["advice"]
    # The table of candidates is about all samples, and cannot be compared with advice
    # for those since a change.
    if advice["since"] is not None:
        return ""
    advised_loss = advice["log_loss"] - advice["gain"]
    rows = [row for row in model["recalibrators"] if row["log_loss"] < advised_loss]
    if not rows:
        return ""
    smallest = min(rows, key=lambda row: row["calibration_error"])
    if smallest["calibration_error"] >= left.estimate / 2:
        return ""
    size = fixed(100 * smallest["calibration_error"], points_digits(left))
    return f"; {smallest['name']} leaves {size}"


def _opening_verbs(facts, is_usable):
    """Return the words that begin a sentence on the advised recalibrator, by verb:
    "Shift" or "Recalibrate", or after a condition, as in "Optional: shift", if the
    scores are usable or another model is better.
    """
    condition = ""
    if facts.model.get("is_inferior"):
        condition = f"Only if {facts.model['name']} must be used: "
    elif is_usable:
        condition = "Optional: "
    verbs = {}
    for verb in ("Shift", "Recalibrate"):
        verbs[verb] = f"{condition}{verb.lower()}" if condition else verb
    return verbs


def _what_to_do(facts, is_usable):
    """Return the sentence that tells to apply the advised recalibrator, as an option if
    the scores are usable or another model is better.
    """
    advice = facts.model["advice"]
    verbs = _opening_verbs(facts, is_usable)
    since = ""
    if advice["since"]:
        since = (
            f", fitted to the samples{from_words(advice['since'])} and applied to all"
            " new scores"
        )
    name = advice["recalibrator"]
    if name == "PriorShift":
        kind = "shift classes" if facts.is_of_classes else "shift"
        return claim(kind, since=since, **verbs)
    if not advice["segments"]:
        return claim("recalibrate", name=name, since=since, **verbs)
    n_segments = 0  # of the column
    for row in facts.model["segments"]:
        n_segments += row["column"] == advice["column"]
    if advice["others"] == "unchanged" and len(advice["segments"]) < n_segments:
        return _recalibrate_some_segments(facts, verbs)
    return claim(
        "recalibrate by segment",
        column=advice["column"],
        name=name,
        whose=_whose_maps(advice["segments"], n_segments),
        since=since,
        **verbs,
    )


def _recalibrate_some_segments(facts, verbs):
    """Return the sentence that advises to recalibrate some segments and to leave the
    others. `verbs` are the words that begin it, "Recalibrate" and "Shift", with a
    condition if there is one.
    """
    advice = facts.model["advice"]
    # "PlattScaling", of "GroupwiseRecalibrator(PlattScaling())".
    inner_name = advice["recalibrator"].split("(")[1]
    each = "fitted to its samples"
    if len(advice["segments"]) > 1:
        each = "each fitted to its own samples"
    return claim(
        "recalibrate segments",
        segments=listed(
            [group_words(name, advice["column"]) for name in advice["segments"]]
        ),
        name=inner_name,
        each=f"{each}{from_words(advice['since'])}",
        subject=facts.subject,
        **verbs,
    )


def _whose_maps(segments, n_segments):
    """Return a clause on which of a column's segments get a map of their own, while the
    others share one.
    """
    # With one segment left, the shared map is that segment's own.
    if len(segments) >= n_segments - 1:
        return "each group needs its own recalibration map"
    needs = "need recalibration maps of their own"
    if len(segments) == 1:
        needs = "needs its own recalibration map"
    return f"{listed(segments)} {needs}; the other groups share one"
