"""What else is wrong besides the worst, in the order of the harm that it may do."""

from skcalib._report._claims import claim
from skcalib._report._headline import clearest_changes, n_impossible
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import least, verdict_words
from skcalib._verdicts import count_words, impossible_words

_FEW = 20  # events, or samples without, below which every number is rough
# First sentences that nothing but a larger period goes before.
_MAIN = ("do not use the segment", "do not use", "do not take at face value")


def in_order_of_harm(facts, worst):
    """Return the sentences `worst` together with sentences on two further harms: events
    that had the probability 0, and the worst period, if its bias is larger than that of
    all samples and of the change over time can be.

    Both come first, unless `worst` begins with something worse. `facts` are the
    `ModelFacts`.
    """
    impossible = _impossible(facts)
    sentences = [*impossible, *worst]
    if worst[0].name in _MAIN:
        sentences = [*worst, *impossible]
    found = _worst_period(facts)
    if found is None:
        return sentences
    size, told = found
    segments = [least(segment.verdict) for segment in facts.segments]
    is_of_segment = worst[0].name in ("do not use the segment", "check the segment")
    if is_of_segment and max(segments) >= size:
        return [*sentences, told]
    return [told, *sentences]


def _worst_period(facts):
    """Return the smallest size that the bias of the worst period may have, and the
    sentence on it; None if no period is off, or if the verdicts on all samples and on a
    change over time say as much.
    """
    off = []
    for row in facts.model.get("periods", ()):
        verdict = read_verdict(row["verdict"])
        if verdict.kind == "off":
            off.append((least(verdict), row["period"], verdict))
    if len(facts.model.get("periods", ())) < 2 or not off:
        return None
    size, period, verdict = max(off, key=lambda entry: entry[0])
    told = [facts.overall.verdict]
    for row in clearest_changes(facts.model):
        told += [read_verdict(row[f"verdict_{when}"]) for when in ("before", "after")]
    if any(known.is_off and size <= known.limit for known in told):
        return None
    others = "" if len(off) == 1 else f", the worst of {len(off)} periods that are off"
    return size, claim(
        "period off",
        period=period,
        subject=facts.subject,
        size=verdict_words(verdict),
        others=others,
    )


def _impossible(facts):
    """Return a list with the sentence that events had the probability 0; an empty list
    if none had.
    """
    if not n_impossible(facts.model):
        return []
    found = facts.model["impossible"]
    happened = impossible_words(found["n"], found["row"])
    return [claim("impossible", happened=happened)]


def few_events(facts):
    """Return a list with the sentence that one of the two outcomes is so rare that all
    numbers are rough; an empty list if neither is.
    """
    if facts.is_of_classes:
        return []
    n_events = round(facts.model["n_events"])
    n_others = round(facts.model["n_others"])
    if min(n_events, n_others) >= _FEW:
        return []
    what = "have the event" if n_events <= n_others else "are without the event"
    number = count_words(min(n_events, n_others))
    n_samples = count_words(n_events + n_others)
    return [claim("few events", number=number, n=n_samples, what=what)]
