"""What else is wrong besides the worst, in the order of the harm that it may do."""

from skcalib._report._claims import claim
from skcalib._report._headline import clearest_changes
from skcalib._report._judged import read_verdict
from skcalib._report._phrases import least, verdict_words
from skcalib._verdicts import count_words

_FEW = 20  # events, or samples without, below which every number is rough


def further_findings(facts):
    """Return a list of claims on what else may do harm, each once: one period that is
    off, and too few events. `facts` are the `ModelFacts`.
    """
    return [*_worst_period(facts), *_few_events(facts)]


def _worst_period(facts):
    """Return a list with the claim on the period that is off most, if it is off by more
    than all samples can be; an empty list if a change over time is told.
    """
    if clearest_changes(facts.model):
        return []
    off = []
    for row in facts.model.get("periods", ()):
        verdict = read_verdict(row["verdict"])
        if verdict.kind == "off":
            off.append((least(verdict), row["period"], verdict))
    if len(facts.model.get("periods", ())) < 2 or not off:
        return []
    size, period, verdict = max(off, key=lambda entry: entry[0])
    overall = facts.overall.verdict
    if overall.is_off and size <= overall.limit:
        return []
    others = "" if len(off) == 1 else f", the worst of {len(off)} periods that are off"
    return [
        claim(
            "period off",
            period=period,
            subject=facts.subject,
            size=verdict_words(verdict),
            others=others,
        )
    ]


def _few_events(facts):
    """Return a list with the claim that one of the two outcomes is so rare that all
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
