"""What is worst about a model's scores, what to do about it, and how the rest is."""

from skcalib._report._claims import claim
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import (
    MOST_WORST,
    OF_ESTIMATES,
    OF_VERDICTS,
    from_words,
    least,
    limit_words,
    limits_words,
    points_digits,
    points_words,
    series,
    size_words,
    verdict_words,
)
from skcalib._verdicts import (
    count_words,
    fixed,
    interval_words,
    overall_verdict,
    percent_words,
    rounded,
    rounded_up,
)

# A tolerance of more than the event frequency divided by this hides everything.
_RARE = 5


class ModelWords:
    """The words and verdicts of one model that several sentences need.

    Parameters
    ----------
    model : dict
        The numbers of the model.
    table : dict
        The `tolerance` (a probability) and `n_samples`, of all models.
    """

    def __init__(self, model, table):
        self.model = model
        self.tolerance = table["tolerance"]
        self.tolerance_words = rounded(100 * table["tolerance"])  # in points
        self.n = count_words(table["n_samples"])  # as text
        self.is_of_classes = "classes" in model
        # What sentences are about.
        self.subject = "scores"
        if self.is_of_classes:
            self.subject = "probabilities of the predicted classes"
        # A `Verdict` each, on all samples.
        verdicts = model["verdicts"]
        self.bias = read_verdict(verdicts["bias"])
        self.over_confidence = read_verdict(verdicts["over_confidence"])
        self.error = read_verdict(verdicts["error"])

    @property
    def segments(self):
        """A list of triples (name, verdict, since), one for each segment.

        If a clear change was found in the segment, the verdict is about its rows from
        the period `since` on; else it is about all its rows, and `since` is None.
        """
        changed = {row["group"]: row for row in clearest_changes(self.model)}
        segments = []
        for row in self.model["segments"]:
            name = row["segment"]
            verdict = read_verdict(row["verdict"])
            since = None
            if name in changed:
                verdict = read_verdict(changed[name]["verdict_after"])
                since = changed[name]["since"]
            segments.append((name, verdict, since))
        return segments

    @property
    def overall(self):
        """A pair (verdict, since) on the bias of all segments together.

        If a clear change was found, the verdict is about the rows from the period
        `since` on; else it is about all rows, and `since` is None.
        """
        for row in clearest_changes(self.model):
            if row["group"] is None:
                return read_verdict(row["verdict_after"]), row["since"]
        return self.bias, None


def clearest_changes(model):
    """Return the changes that are clearest, a list of dicts: that of all rows together
    if it is the first, else those of up to three segments.
    """
    rows = model["changes"]
    if rows and rows[0]["group"] is not None:
        rows = [row for row in rows if row["group"] is not None]
        return rows[:MOST_WORST]
    return rows[:1]


def headline(words):
    """Return a list of claims: what is worst about the scores, what to do about it, and
    how the rest is; after a change, also that late labels would look like one.
    """
    found = _worst(words)
    if words.model["changes"]:
        found.append(claim("late labels"))
    return found


def _worst(words):
    """Return a list of claims: what is worst, what to do about it, and how the rest is.

    `words` are the `ModelWords` of a model, here and below.
    """
    overall, since = words.overall
    off = _segments_off(words)
    verdicts = [verdict for _, verdict, _ in words.segments]
    is_mixed = overall_verdict([*verdicts, overall]).kind == "mixed"
    # Whether the worst segment is off by more than all samples together can be.
    is_worse_in_segments = False
    if off:
        _, worst, _ = off[0]
        is_beyond = overall.kind != "off" or least(worst) > overall.limit
        is_worse_in_segments = worst.kind == "off" and is_beyond
    # Whether single scores are off by more than their average can be.
    is_error_worse = words.error.kind == "off" and words.error.low > overall.limit
    # All scores come first, unless segments disagree or one of them is worse.
    if overall.is_off and not (off and (is_mixed or is_worse_in_segments)):
        if is_error_worse and since is None:
            return [_error_off(words)]
        return _all_off(words, overall, since)
    if off:
        return _segments_worst(words, off)
    if words.error.kind == "off":
        return [_error_off(words)]
    if words.error.kind == "off, size unclear":
        low, high = limits_words(words.error)
        return [
            claim(
                "check the error",
                subject=words.subject,
                low=low,
                high=high,
                level=OF_ESTIMATES,
            )
        ]
    return _nothing_found(words)


def _segments_off(words):
    """Return the segments that are off as triples (name, verdict, since): those of
    known size first, and among them the largest first.
    """
    off = []
    for name, verdict, since in words.segments:
        if verdict.is_off:
            off.append((name, verdict, since))

    def key(segment):
        """Return whether the size is unclear (False sorts first), and minus the least
        size within the interval.
        """
        _, verdict, _ = segment
        return verdict.kind != "off", -least(verdict)

    return sorted(off, key=key)


def _error_off(words):
    """Return the claim that the scores are off, though neither on average nor in a
    segment.
    """
    direction = ""
    if words.over_confidence.is_off and not words.is_of_classes:
        too = "extreme" if words.over_confidence.estimate > 0 else "cautious"
        direction = f", and they are too {too}"
    return claim(
        "do not take at face value",
        subject=words.subject,
        size=points_words(words.error),
        direction=direction,
    )


def _all_off(words, overall, since):
    """Return the claim, in a list, that all scores are off on average."""
    name = "do not use" if overall.kind == "off" else "check"
    return [
        claim(
            name,
            subject=words.subject,
            size=verdict_words(overall),
            since=from_words(since),
            n=words.n,
            tolerance=words.tolerance_words,
        )
    ]


def _segments_worst(words, off):
    """Return claims on the worst segment, on up to three others, and on the rest. `off`
    are the segments that are off, the worst first.
    """
    (name, worst, since), *others = off
    key = "do not use the segment" if worst.kind == "off" else "check the segment"
    claims = [
        claim(
            key,
            subject=words.subject,
            segment=name,
            size=verdict_words(worst),
            since=from_words(since),
        )
    ]
    also_off = []
    unclear = []
    for name, verdict, since in others:
        size = f"{verdict_words(verdict)}{from_words(since)}"
        if verdict.kind != "off":
            unclear.append(f"{name}, {size}")
        elif not _is_within(name, off):  # else the larger segment says it
            also_off.append(f"{name}, {size}")
    if also_off and worst.kind == "off":
        names = series(also_off[:MOST_WORST], len(also_off), "; ")
        claims.append(claim("nor these segments", segments=names))
    if unclear:
        names = series(unclear[:MOST_WORST], len(unclear), "; ")
        claims.append(claim("check more segments", segments=names))
    return claims + _other_segments(words)


def _is_within(name, off):
    """Return whether a segment of a crossing, such as "sex = f, site = 2", is part of a
    segment of one column that is off. `off` holds triples that begin with a name.
    """
    conditions = set(name.split(", "))
    if len(conditions) == 1:
        return False
    return any(other in conditions for other, _, _ in off)


def _other_segments(words):
    """Return a claim, in a list, on the segments that are not off."""
    others = [verdict for _, verdict, _ in words.segments if not verdict.is_off]
    fine = [verdict for verdict in others if verdict.kind == "fine"]
    if not others:
        return []
    if len(fine) < len(others):
        return [_others_unclear(words, len(others) - len(fine), others)]
    widest = max(fine, key=lambda verdict: verdict.limit)
    named = "segment is" if len(fine) == 1 else f"{len(fine)} segments are"
    return [claim("others are fine", others=named, limit=limit_words(widest))]


def _others_unclear(words, n_unclear, others):
    """Return the claim that the segments in `others` (a list of verdicts) are not
    shown to be off, but that the samples cannot tell about `n_unclear` of them.
    """
    found = words.model["advice"]
    # Other advice than to leave them or to map some segments changes them, too.
    keep_theirs = found["kind"] == "none" or found.get("others") == "unchanged"
    if len(others) == 1:
        who = "The other segment"
        keep = f"{who} can keep its {words.subject}: it is not"
        known = f"{who} is not"
        which = "it"
    else:
        who = f"the other {len(others)} segments"
        keep = f"{who} can keep their {words.subject}: none is"
        known = f"none of {who} is"
        which = "them"
        if n_unclear < len(others):
            which = f"{n_unclear} of them"
    return claim(
        "others cannot be told",
        Others=keep if keep_theirs else known,
        which=which,
        tolerance=words.tolerance_words,
        needed=_each_needs(others),
    )


def _each_needs(verdicts):
    """Return words on the samples per segment that are needed at least, for the segment
    that needs the most; empty if no number is known.
    """
    known = [each for each in verdicts if each.n_needed is not None]
    if not known:
        return ""
    most = max(known, key=lambda each: each.n_needed)
    number = rounded_up(most.n_needed)
    return f"; at least {number} of each are needed, {most.needed_if}"


def _fine_bias(bias):
    """Return words on a bias within the tolerance: its side and size, if its interval
    excludes 0.
    """
    if bias.low <= 0 <= bias.high:
        return f"right on average to within {limit_words(bias)} points"
    side = "high" if bias.low > 0 else "low"
    return f"too {side} by {size_words(bias)} on average"


def _frequency_ratio(mean_score, frequency, bias):
    """Return words on how many times as frequent as predicted the rarer outcome is;
    empty if the interval of the bias, mean score minus frequency, has 0.
    """
    if bias.low <= 0 <= bias.high:
        return ""
    expected, sign, what = mean_score, 1, "events"
    if frequency > 0.5:
        expected, sign, what = 1 - mean_score, -1, "samples without the event"
    if expected <= 0:
        return ""
    # The frequency is what is expected minus its bias.
    ratios = [
        (expected - sign * value) / expected
        for value in (bias.estimate, bias.low, bias.high)
    ]
    estimate, *limits = ratios
    times = interval_words(estimate, *sorted(limits), unit="times", level=OF_VERDICTS)
    return f": {what} are {times} as frequent as predicted"


def _nothing_found(words):
    """Return claims for a model about which nothing is seen to be off."""
    bias = words.bias
    error = words.error
    if bias.kind != "fine":
        digits = points_digits(bias)
        # "more samples are needed", or "at least 900 samples are needed, if ...".
        number = "more"
        condition = ""
        if bias.n_needed is not None:
            number = f"at least {rounded_up(bias.n_needed)}"
            condition = f", {bias.needed_if}"
        then = (
            f"Keep the {words.subject} unchanged for now and collect samples:"
            f" {number} are needed to tell{condition}"
        )
        if words.model["advice"].get("recalibrator") is not None:
            # The advice is to recalibrate now. This clause begins a sentence.
            capitalised = f"{number[0].upper()}{number[1:]}"
            then = (
                f"{capitalised} samples are needed to"
                f" tell{condition}; the recalibration below helps already"
            )
        return [
            claim(
                "cannot tell",
                n=words.n,
                subject=words.subject,
                tolerance=words.tolerance_words,
                low=fixed(100 * bias.low, digits),
                high=fixed(100 * bias.high, digits),
                level=OF_VERDICTS,
                then=then,
            )
        ]
    frequency = words.model["event_frequency"]
    rarer = min(frequency, 1 - frequency)
    # With rare events, scores of 0 for all samples would be within a large tolerance. A
    # tolerance is small enough up to rarer / _RARE; half of that is proposed.
    if words.tolerance > rarer / _RARE and not words.is_of_classes and rarer > 0:
        claims = [
            claim(
                "tolerance too large",
                subject=words.subject,
                bias=_fine_bias(bias),
                limit=limit_words(bias),
                tolerance=words.tolerance_words,
                ratio=_frequency_ratio(words.model["mean_score"], frequency, bias),
                What="Events" if frequency == rarer else "Samples without the event",
                frequency=percent_words(rarer, bias.n),
                smaller=rounded(100 * rarer / (2 * _RARE), 1),
            )
        ]
    elif error.kind == "fine":
        claims = [
            claim(
                "usable",
                subject=words.subject,
                limit=limit_words(bias),
                error=limits_words(error)[1],
            )
        ]
    else:
        needed = ""
        if error.n_needed is not None:
            number = rounded_up(error.n_needed)
            needed = f"; at least {number} are needed, {error.needed_if}"
        claims = [
            claim(
                "right on average",
                subject=words.subject,
                limit=limit_words(bias),
                n=words.n,
                tolerance=words.tolerance_words,
                needed=needed,
            )
        ]
    segments = [verdict for _, verdict, _ in words.segments]
    rows = words.model.get("periods", ())
    periods = [read_verdict(row["verdict"]) for row in rows]
    claims += _cannot_be_told("segments cannot be told", segments)
    claims += _cannot_be_told("periods cannot be told", periods)
    return claims


def _cannot_be_told(name, verdicts):
    """Return about how many segments or periods the samples cannot tell, if there are
    any.
    """
    unclear = [verdict for verdict in verdicts if verdict.kind == "cannot tell"]
    if not unclear:
        return []
    number = f"{len(unclear)} of {len(verdicts)}"
    if len(unclear) == len(verdicts):
        number = f"each of {len(verdicts)}"
    none = ""
    if not any(verdict.is_off for verdict in verdicts):
        kind = name.split()[0].removesuffix("s")  # "segment" or "period"
        none = f"no {kind} is shown to be off, but "
    return [claim(name, none=none, number=number, needed=_each_needs(unclear))]
