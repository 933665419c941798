"""How an advice relates to the library's default method for scores."""

import numpy as np

from skcalib._verdicts import interval_words, level_words, pvalue_words
from skcalib.evaluation._advice_search import (
    MOST_SCORES_OF_STACK,
    STACK,
    UNCHANGED,
)
from skcalib.recalibrators import Recalibrator

_LEVEL = level_words(0.9)


def why_not_the_default(search, chosen, since=None):
    """Return one sentence on why the advice differs from what `Recalibrator` does with
    the same samples; an empty text if it does not differ.

    `search` is the `Search` of all samples, `chosen` the advised `Candidate`, and
    `since` the first time of the samples that it is fitted to, None for all.
    """
    samples = search.samples
    if samples.n_columns > 1 and samples.scores.size > MOST_SCORES_OF_STACK:
        return (
            "Recalibrator(), the default method, was not compared: with so many scores"
            " it takes long to fit."
        )
    default = Recalibrator(classes=np.arange(max(samples.n_columns, 2)))
    default.fit(samples.scores, samples.labels.astype(int), samples.sample_weight)
    is_unchanged = type(default.chosen_).__name__ != STACK
    name = "Recalibrator(), the default method,"
    if is_unchanged and chosen == UNCHANGED:
        return ""
    if since is not None or chosen.column is not None:
        what = "groups" if chosen.column is not None else "times"
        does = "would keep the scores" if is_unchanged else "fits one map"
        return f"{name} {does} for all samples: it knows neither {what} nor changes."
    if chosen.name == STACK and not is_unchanged:
        return ""
    gain = interval_words(*default.gain_, unit="nats", level=_LEVEL)
    if chosen == UNCHANGED:
        return (
            f"{name} would recalibrate: half a standard error of gain is enough for it,"
            f" and its own estimate is {gain}; a step that is advised needs p < .05."
        )
    if is_unchanged:
        return (
            f"{name} would keep the scores, because it fits a mixture of several"
            f" recalibrators, which needs more samples: its gain is {gain}."
        )
    return f"{name} would mix several recalibrators; {_as_good(search, chosen)}."


def _as_good(search, chosen):
    """Return a clause that the advised `Candidate` is as good as a stack, with the
    evidence: the gain of the stack over it or, if that was not cross-validated, of the
    best candidate with more parameters.
    """
    others = [candidate for candidate in search.candidates if candidate.column is None]
    larger = others[others.index(chosen) + 1 :]
    rival = min(larger, key=search.loss)
    for candidate in larger:
        if candidate.name == STACK:
            rival = candidate
    gain, pvalue = search.evidence(chosen, rival)
    words = interval_words(*gain, unit="nats", level=_LEVEL)
    return (
        f"{chosen.name}, which is simpler, is as good: the gain of {rival.name} over it"
        f" is {words}, {pvalue_words(pvalue)}"
    )
