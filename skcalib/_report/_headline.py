"""What is worst about a model's scores, what to do about it, and how the rest is."""

from typing import NamedTuple

from skcalib._report._claims import claim
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    MOST_WORST,
    OF_ESTIMATES,
    OF_VERDICTS,
    between_words,
    from_words,
    group_words,
    least,
    limit_words,
    limits_words,
    points_words,
    series,
    share_of,
    size_words,
    verdict_words,
)
from skcalib._verdicts import (
    Verdict,
    count_words,
    interval_words,
    overall_verdict,
    percent_words,
    rounded,
    rounded_up,
    side_words,
)

# The sentences that the samples cannot tell.
_UNKNOWN = ("cannot tell", "right on average")

# A tolerance of more than the event frequency divided by this hides everything.
_RARE = 5


class GroupVerdict(NamedTuple):
    """The verdict on the bias of the scores of one segment, or of all samples.

    Attributes
    ----------
    name : str or None
        The segment; None for all samples.
    verdict : Verdict
        What their bias shows. If a clear change over time was found, it is about the
        samples since the change only.
    since : str or None
        The period in which the change happened; None without a change.
    """

    name: str | None
    verdict: Verdict
    since: str | None


class ModelFacts:
    """What several sentences on one model need: verdicts, and numbers as text.

    Parameters
    ----------
    model : dict
        The numbers of the model, an entry "models" of `report_numbers`.
    table : dict
        The `tolerance` (a probability) and `n_samples`, of all models, and whether
        shares of samples are weighted, `is_weighted` (False if missing).
    """

    def __init__(self, model, table):
        """`model` holds the numbers of the model, and `table` what the report knows of
        all models, such as the tolerance.
        """
        self.model = model
        self.tolerance = table["tolerance"]
        self.tolerance_words = rounded(100 * table["tolerance"])  # in points
        self.n = count_words(table["n_samples"])  # number of samples, as text
        self.is_of_classes = "classes" in model
        self.is_weighted = table.get("is_weighted", False)
        # What the sentences are about.
        self.subject = "scores"
        if self.is_of_classes:
            self.subject = "probabilities of the predicted classes"
        # The `Verdict` on all samples: on mean score minus event frequency; on the same
        # difference for the more probable outcome; on the mean absolute calibration
        # error.
        verdicts = model["verdicts"]
        self.bias = read_verdict(verdicts["bias"])
        self.over_confidence = read_verdict(verdicts["over_confidence"])
        self.error = read_verdict(verdicts["error"])

    @property
    def segments(self):
        """A list with the `GroupVerdict` of each segment."""
        changed = {row["group"]: row for row in clearest_changes(self.model)}
        segments = []
        for row in self.model["segments"]:
            name = row["segment"]
            verdict = read_verdict(row["verdict"])
            since = None
            if name in changed:
                verdict = read_verdict(changed[name]["verdict_after"])
                since = changed[name]["since"]
            shown = group_words(name, row["column"])
            segments.append(GroupVerdict(shown, verdict, since))
        return segments

    @property
    def overall(self):
        """The `GroupVerdict` of all samples."""
        for row in clearest_changes(self.model):
            if row["group"] is None:
                verdict = read_verdict(row["verdict_after"])
                return GroupVerdict(None, verdict, row["since"])
        return GroupVerdict(None, self.bias, None)


def n_impossible(model):
    """Return how many samples of a model happened although their probability was 0."""
    return model.get("impossible", {}).get("n", 0)


def clearest_changes(model):
    """Return the changes of calibration over time that a summary tells, as a list of
    dicts: one change of all samples, or those of up to three segments.

    The "changes" of `model` have the smallest p-value first. A change of all samples
    has the "group" None; it is told only if it comes first.
    """
    changes = model["changes"]
    if changes and changes[0]["group"] is not None:
        of_segments = [row for row in changes if row["group"] is not None]
        return of_segments[:MOST_WORST]
    return changes[:1]


def headline(facts):
    """Return the first sentences of a model's summary as a list of sentences: what is
    worst about the scores and what to do about it. `facts` are its `ModelFacts`.

    After a change of calibration a reminder is added to look for its cause, which may
    be labels that are late.
    """
    sentences = _worst(facts)
    slope = _slope_differs_from_one(facts)
    says_direction = sentences[0].words.get("direction")  # too extreme, or too cautious
    if slope is not None and not says_direction:
        # It is worse than not to know, and less than what else is off.
        place = 0 if sentences[0].name in _UNKNOWN else len(sentences)
        sentences.insert(place, slope)
    if facts.model["changes"]:
        sentences.append(claim("late labels"))
    return sentences


def _slope_differs_from_one(facts):
    """Return the sentence that the limits of the calibration slope exclude 1; None if
    they do not, if there is no slope, or if it is that of clipped scores, since what
    had the probability 0 happened.
    """
    if n_impossible(facts.model):
        return None
    for row in facts.model.get("errors", ()):
        if row["name"] != "calibration slope" or row["low"] is None:
            continue
        limits = (row["estimate"], row["low"], row["high"])
        side = side_words(
            *limits[1:], above="low", below="high", neither="", reference=1.0
        )
        if side:
            other = "high" if side == "low" else "low"
            return claim(
                "slope",
                subject=facts.subject,
                slope=interval_words(*limits, level=OF_ESTIMATES),
                # a curve may lie on one side of the diagonal
                apart="apart from the bias, " if facts.overall.verdict.is_off else "",
                high=f"too {side}",
                low=f"too {other}",
            )
    return None


def _worst(facts):
    """Return the sentences on what is worst about the scores of a model, as a list of
    sentences: on all samples, on segments, on the calibration error, or that nothing is
    off. `facts` are its `ModelFacts`.
    """
    overall = facts.overall.verdict
    segments_off = _segments_off(facts)
    # 1. All samples are off on average, unless the segments tell more: if they are off
    # in different directions, or the worst is off by more than all samples can be.
    if overall.is_off:
        verdicts = [segment.verdict for segment in facts.segments]
        is_mixed = overall_verdict([*verdicts, overall]).kind == "mixed"
        segments_tell_more = bool(segments_off) and (
            is_mixed or _is_worse(segments_off[0].verdict, overall)
        )
        if not segments_tell_more:
            # Scores may be off by more than their average, or surely by more than the
            # tolerance where the average is not: the error tells more. After a change
            # it does not, since it is about all periods.
            error_tells_more = facts.error.kind == "off" and (
                overall.kind != "off" or facts.error.low > overall.limit
            )
            if error_tells_more and facts.overall.since is None:
                return [_error_too_large(facts)]
            return [_bias_of_all(facts)]
    # 2. Some segments are off.
    if segments_off:
        return _segments_worst(facts, segments_off)
    # 3. The scores are off at some levels, but right on average.
    if facts.error.kind == "off":
        return [_error_too_large(facts)]
    if facts.error.kind == "off, size unclear":
        low, high = limits_words(facts.error)
        limit = facts.tolerance_words
        return [
            claim(
                "check the error",
                subject=facts.subject,
                low=low,
                high=high,
                level=OF_ESTIMATES,
                needed=_needed(
                    facts.error, f" whether this is more than {limit} points"
                ),
            )
        ]
    # 4. Nothing is off.
    return _nothing_found(facts)


def _needed(verdict, what=""):
    """Return a clause on the number of samples that are needed to tell `what`; empty if
    none is known.
    """
    if verdict.n_needed is None:
        return ""
    number = rounded_up(verdict.n_needed)
    samples = f"{number} samples" if what else number
    return f"; at least {samples} are needed to tell{what}, {verdict.needed_if}"


def _is_worse(worst, overall):
    """Return whether the worst segment is off by more than all samples together can be.
    Both arguments are a `Verdict`.
    """
    if worst.kind != "off":
        return False
    return overall.kind != "off" or least(worst) > overall.limit


def _segments_off(facts):
    """Return the segments whose scores are off as a list of `GroupVerdict`, the worst
    first: those off by more than the tolerance before those whose size is unclear, and
    the larger ones first.
    """

    def rank(segment):
        """Return what segments are sorted by: whether the size is unclear, and minus
        the smallest size within the interval.
        """
        verdict = segment.verdict
        return verdict.kind != "off", -least(verdict)

    return sorted(
        (segment for segment in facts.segments if segment.verdict.is_off), key=rank
    )


def _error_too_large(facts):
    """Return the sentence that the mean absolute calibration error is too large, and
    whether the scores are too extreme or too cautious.
    """
    # "Do not use the scores as they are: ...", with these words at its end
    direction = ""
    if facts.over_confidence.is_off and not facts.is_of_classes:
        too = "extreme" if facts.over_confidence.estimate > 0 else "cautious"
        direction = f", and they are too {too}"
    return claim(
        "do not take at face value",
        subject=facts.subject,
        size=points_words(facts.error),
        direction=direction,
    )


def _bias_of_all(facts):
    """Return the sentence that the scores are too high or too low on average."""
    overall = facts.overall.verdict
    name = "do not use" if overall.kind == "off" else "check"
    return claim(
        name,
        subject=facts.subject,
        size=verdict_words(overall),
        since=from_words(facts.overall.since),
        n=facts.n,
        tolerance=facts.tolerance_words,
        needed=_needed(overall),
    )


def _segments_worst(facts, segments_off):
    """Return sentences on the worst segment, on up to three others that are off, and on
    the segments that are not.

    `segments_off` is a list of `GroupVerdict`, the worst first.
    """
    worst, *others = segments_off
    is_size_known = worst.verdict.kind == "off"
    sentences = [
        claim(
            "do not use the segment" if is_size_known else "check the segment",
            subject=facts.subject,
            segment=worst.name,
            size=verdict_words(worst.verdict),
            since=from_words(worst.since),
        )
    ]
    also_off = []
    unclear = []
    for segment in others:
        size = f"{verdict_words(segment.verdict)}{from_words(segment.since)}"
        if segment.verdict.kind != "off":
            unclear.append(f"{segment.name}, {size}")
        elif not _is_within(segment.name, segments_off):
            # A part of a larger segment that is off is not named again.
            also_off.append(f"{segment.name}, {size}")
    if also_off and is_size_known:
        names = series(also_off[:MOST_WORST], len(also_off), "; ")
        sentences.append(claim("nor these segments", segments=names))
    if unclear:
        names = series(unclear[:MOST_WORST], len(unclear), "; ")
        sentences.append(claim("check more segments", segments=names))
    return sentences + _other_segments(facts)


def _is_within(name, segments_off):
    """Return whether the segment `name` of several columns, such as "sex = f,
    site = 2", is part of one of the segments of a single column that are off, such as
    "site = 2". `segments_off` is a list of `GroupVerdict`.
    """
    conditions = set(name.split(", "))
    if len(conditions) == 1:
        return False
    return any(segment.name in conditions for segment in segments_off)


def _other_segments(facts):
    """Return a list with one sentence on the segments that are not shown to be off; an
    empty list if all are off.
    """
    others = []
    fine = []
    for segment in facts.segments:
        if not segment.verdict.is_off:
            others.append(segment.verdict)
        if segment.verdict.kind == "fine":
            fine.append(segment.verdict)
    if not others:
        return []
    if len(fine) < len(others):
        return [_others_unclear(facts, len(others) - len(fine), others)]
    widest = max(fine, key=lambda verdict: verdict.limit)
    which = "group is" if len(fine) == 1 else f"{len(fine)} groups are"
    return [claim("others are fine", others=which, limit=limit_words(widest))]


def _others_unclear(facts, n_unclear, others):
    """Return the sentence that the segments in `others` (a list of `Verdict`) are not
    shown to be off, but that the samples cannot tell about `n_unclear` of them.
    """
    advice = facts.model["advice"]
    # The advice leaves these segments alone if it is to do nothing, or to recalibrate
    # only those that are off.
    can_keep = advice["kind"] == "none" or advice.get("others") == "unchanged"
    if len(others) == 1:
        which = "it is"
        clause = "The other group is not"
        if can_keep:
            clause = f"The other group can keep its {facts.subject}: it is not"
    else:
        which = "they are"
        if n_unclear < len(others):
            verb = "is" if n_unclear == 1 else "are"
            which = f"{n_unclear} of them {verb}"
        who = f"the other {len(others)} groups"
        clause = f"none of {who} is"
        if can_keep:
            clause = f"{who} can keep their {facts.subject}: none is"
    return claim(
        "others cannot be told",
        Others=clause,
        which=which,
        tolerance=facts.tolerance_words,
        needed=_each_needs(others),
    )


def _each_needs(verdicts):
    """Return a clause on the number of samples per segment that are needed at least to
    tell, for the segment that needs the most; empty if no number is known.
    """
    known = [verdict for verdict in verdicts if verdict.n_needed is not None]
    if not known:
        return ""
    most = max(known, key=lambda verdict: verdict.n_needed)
    samples = f"{rounded_up(most.n_needed)} samples"
    if len(verdicts) > 1:
        samples = f"{samples} of each"
    return f"; at least {samples} are needed, {most.needed_if}"


def _fine_bias(bias):
    """Return words on a bias within the tolerance, a `Verdict`: its direction and size
    if its interval excludes 0, else the largest size that it may have.
    """
    if bias.low <= 0 <= bias.high:
        return f"right on average to within {limit_words(bias)} points"
    side = "high" if bias.low > 0 else "low"
    return f"too {side} by {size_words(bias)} on average"


def _frequency_ratio(mean_score, frequency, bias):
    """Return words on how many times as frequent as predicted the rarer outcome is, as
    in ": events are 1.5 times as frequent as predicted".

    `bias` is the `Verdict` on mean score minus event frequency. The text is empty if
    its interval contains 0.
    """
    if bias.low <= 0 <= bias.high:
        return ""
    biases = (bias.estimate, bias.low, bias.high)
    if frequency <= 0.5:
        outcome = "events"
        predicted = mean_score
        observed = [predicted - value for value in biases]
    else:
        outcome = "samples without the event"
        predicted = 1 - mean_score
        observed = [predicted + value for value in biases]
    if predicted <= 0:
        return ""
    estimate, *limits = [value / predicted for value in observed]
    times = interval_words(estimate, *sorted(limits), unit="times", level=OF_VERDICTS)
    return f": {outcome} are {times} as frequent as predicted"


def _nothing_found(facts):
    """Return sentences on a model whose scores are nowhere shown to be off."""
    if facts.bias.kind != "fine":
        return [_bias_unclear(facts)]
    frequency = facts.model["event_frequency"]
    rarer = min(frequency, 1 - frequency)  # frequency of the rarer outcome
    # With rare events, even scores of 0 for all samples are within a large tolerance.
    is_tolerance_too_large = facts.tolerance > rarer / _RARE and rarer > 0
    if is_tolerance_too_large and not facts.is_of_classes:
        first = _tolerance_too_large(facts)
    elif facts.error.kind == "fine":
        _, largest_error = limits_words(facts.error)
        first = claim(
            "usable",
            subject=facts.subject,
            limit=limit_words(facts.bias),
            error=largest_error,
        )
    else:
        first = _error_unclear(facts)
    segments = [segment.verdict for segment in facts.segments]
    periods = []
    for row in facts.model.get("periods", ()):
        periods.append(read_verdict(row["verdict"]))
    sentences = [first]
    sentences += _cannot_be_told("segments cannot be told", "group", segments)
    sentences += _cannot_be_told("periods cannot be told", "period", periods)
    return sentences


def _bias_unclear(facts):
    """Return the sentence that the samples cannot tell whether the scores are right on
    average, and how many are needed.
    """
    bias = facts.bias
    # "more samples are needed", or "at least 900 samples are needed, if ...".
    number = total = "more"
    condition = ""
    if bias.n_needed is not None:
        number = f"at least {rounded_up(bias.n_needed)}"
        total = f"{number} in total"
        condition = f", {bias.needed_if}"
    if facts.model["advice"].get("recalibrator") is None:
        then = (
            f"Keep the {facts.subject} unchanged for now and collect more samples:"
            f" {total} are needed{condition}"
        )
    else:
        # The advice is to recalibrate now.
        capitalised = f"{number[0].upper()}{number[1:]}"
        then = (
            f"{capitalised} samples are needed to tell{condition}; the recalibration"
            " below already helps"
        )
    bias_limits = f"the bias has no interval, because {bias.reason}"
    if not bias.reason:
        bias_limits = f"they are {between_words(bias)}"
    return claim(
        "cannot tell",
        n=facts.n,
        subject=facts.subject,
        tolerance=facts.tolerance_words,
        limits=bias_limits,
        then=then,
    )


def _tolerance_too_large(facts):
    """Return the sentence that one outcome is so rare that the tolerance hides errors,
    and suggest a smaller one.
    """
    frequency = facts.model["event_frequency"]
    rarer = min(frequency, 1 - frequency)
    return claim(
        "tolerance too large",
        subject=facts.subject,
        bias=_fine_bias(facts.bias),
        limit=limit_words(facts.bias),
        tolerance=facts.tolerance_words,
        ratio=_frequency_ratio(facts.model["mean_score"], frequency, facts.bias),
        What="Events" if frequency == rarer else "Samples without the event",
        frequency=percent_words(rarer, facts.bias.n),
        # Half of the largest tolerance that is small enough, in points.
        smaller=rounded(100 * rarer / (2 * _RARE), 1),
    )


def _error_unclear(facts):
    """Return the sentence that the scores are right on average, but that the samples
    cannot tell whether their calibration error is within the tolerance.
    """
    return claim(
        "right on average",
        subject=facts.subject,
        limit=limit_words(facts.bias),
        n=facts.n,
        tolerance=facts.tolerance_words,
        needed=_needed(facts.error),
    )


def _cannot_be_told(name, kind, verdicts):
    """Return a list with the sentence about how many segments or periods the samples
    cannot tell; an empty list if there are none.

    `name` is that of the template, `kind` is "group" or "period", and `verdicts` is a
    list with the `Verdict` of each.
    """
    unclear = [verdict for verdict in verdicts if verdict.kind == "cannot tell"]
    if not unclear:
        return []
    number = f"{share_of(unclear, verdicts)} {kind}s"
    if len(verdicts) == 1:
        number = f"the only {kind}"
    none = ""
    if not any(verdict.is_off for verdict in verdicts):
        none = f"no {kind} is shown to be off, but "
    return [claim(name, none=none, number=number, needed=_each_needs(unclear))]
