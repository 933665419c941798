"""How an advice relates to the library's default method for scores."""

import numpy as np

from skcalib._verdicts import interval_words, level_words, pvalue_words
from skcalib.evaluation._advice_search import STACK, UNCHANGED
from skcalib.evaluation._cross_validate import UNCALIBRATED
from skcalib.recalibrators import Recalibrator, StackedRecalibrator


def why_not_the_default(search, chosen, since=None):
    """Return one sentence on why the advice differs from what `Recalibrator` does with
    the same samples; an empty text if it does not differ.

    `search` is the `Search` of all samples, `chosen` the advised `Candidate`, and
    `since` the first time of the samples that it is fitted to, None for all.
    """
    samples = search.samples
    if StackedRecalibrator not in samples.kinds:
        return (
            "Recalibrator(), the default method, was not compared: it takes too long to"
            " fit to this many scores."
        )
    # Labels are positions of classes; one column is about two classes.
    default = Recalibrator(classes=np.arange(max(samples.n_columns, 2)))
    default.fit(samples.scores, samples.labels.astype(int), samples.sample_weight)
    is_unchanged = type(default.chosen_).__name__ != STACK
    action = "would combine several recalibrators"
    if is_unchanged:
        action = "would keep the scores"
    if since is not None or chosen.column is not None:
        reason = "it treats all samples alike and uses neither groups nor times"
    elif chosen.name == (UNCALIBRATED if is_unchanged else STACK):
        return ""
    elif chosen == UNCHANGED:
        reason = (
            "it accepts any gain of at least half a standard error (it estimates"
            f" {_nats(default.gain_)}), whereas the advice requires p < 0.05"
        )
    elif is_unchanged:
        reason = (
            "it considers only a combination of recalibrators, which needs more samples"
            f" and gains {_nats(default.gain_)}"
        )
    else:
        reason = _as_good(search, chosen)
    return f"Recalibrator(), the default method, {action}, but {reason}."


def _nats(gain):
    return interval_words(*gain, unit="nats", level=level_words(0.9))


def _as_good(search, chosen):
    """Return a clause that the advised `Candidate` is as good as a stack, with the gain
    of the stack over it as evidence or, if that was not cross-validated, of the best
    candidate with more parameters.
    """
    # Candidates without segments, the simplest first.
    others = [candidate for candidate in search.candidates if candidate.column is None]
    larger = others[others.index(chosen) + 1 :]
    rival = min(larger, key=search.loss)
    for candidate in larger:
        if candidate.name == STACK:
            rival = candidate
    gain, pvalue = search.evidence(chosen, rival)
    return (
        f"{chosen.name} is simpler, and {rival.name} brings no detectable gain over it:"
        f" {_nats(gain)}, {pvalue_words(pvalue)}"
    )
