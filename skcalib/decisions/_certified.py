"""A certified threshold: a guarantee about the decisions that it makes, in sentences,
with what must be true for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcalib._inference.results import ResultTable
from skcalib._input.classes import check_classes, in_order_of
from skcalib._input.scalars import (
    check_confidence_level,
    check_int,
    check_number,
    check_option,
    invalid,
)
from skcalib._input.scores import check_scores, checked_scores
from skcalib._verdicts import (
    conditions_words,
    fixed,
    joined,
    level_words,
    percent_words,
    rounded,
    rounded_up,
    sentences_html,
)

_ANSWER = (
    "Give the predicted class where its probability is at least {t}, and abstain"
    " elsewhere"
)
_ABSTAIN = "Give the answer where its confidence is at least {t}, and abstain elsewhere"
_EVENT = "Predict the event where its probability is at least {t}"
_ROUTE = (
    "Let the small model answer where its confidence is at least {t}, and the large"
    " model elsewhere"
)
_ANSWERED = "({share}) are answered"
_PREDICTED = "({share}) are predicted to be events"
_LEFT = "({share}) are left to the small model"
_NO_ERROR = "0 of them wrongly"


class _Texts(NamedTuple):
    """What is said about a guarantee.

    Parameters
    ----------
    rule : str
        The rule for decisions at the threshold {t}.
    claim : str
        What holds, with the {target}.
    accepted : str
        What accepted samples are, with their {share}.
    wrong : str
        What the number {w} of errors, `n_wrong`, counts.
    """

    rule: str
    claim: str
    accepted: str
    wrong: str


PROMISES = {
    "error_when_answered": _Texts(
        _ANSWER,
        "at most {target} of the answers are wrong",
        _ANSWERED,
        "{w} of them wrongly",
    ),
    "answered_and_wrong": _Texts(
        _ANSWER,
        "at most {target} of all samples are answered wrongly",
        _ANSWERED,
        "{w} of them wrongly",
    ),
    "abstention": _Texts(
        _ABSTAIN,
        "at most {target} of the answers that are given are wrong",
        _ANSWERED,
        "{w} of them wrongly",
    ),
    "precision": _Texts(
        _EVENT,
        "at least {target} of the predicted events occur",
        _PREDICTED,
        "{w} of them wrongly",
    ),
    "recall": _Texts(
        _EVENT,
        "at least {target} of the events are predicted",
        _PREDICTED,
        "{w} events are missed",
    ),
    "false_positive_rate": _Texts(
        _EVENT,
        "at most {target} of the non-events are predicted to be events",
        _PREDICTED,
        "{w} of them wrongly",
    ),
    "accuracy": _Texts(
        _EVENT,
        "at least {target} of all samples are predicted correctly",
        _PREDICTED,
        "{w} of all samples are predicted wrongly",
    ),
    "routing": _Texts(
        _ROUTE,
        "at most {target} of the answers are lost compared with the large model alone",
        _LEFT,
        "{w} more correct answers are lost than gained",
    ),
}
# Guarantees about the predicted class, and those about an event.
ANSWER_PROMISES = ("error_when_answered", "answered_and_wrong")
EVENT_PROMISES = ("precision", "recall", "false_positive_rate", "accuracy")
# All that `certified_threshold` takes.
ONE_MODEL_PROMISES = ANSWER_PROMISES + EVENT_PROMISES

# Why no threshold was found, by the field `reason`.
_REASONS = {
    "few_rows": (
        "There are too few samples: even if none of them were an error, no threshold"
        " would pass the test."
    ),
    "start": (
        "Other thresholds would meet the target, but the search does not reach them: it"
        " starts where the scores predict success, and there they are overconfident."
        " Recalibrate them on other samples, or pass a start= that was chosen before"
        " the labels of these samples were seen."
    ),
    "sequence": (
        "Other thresholds would meet the target, but the tests go from strict to"
        " lenient thresholds and stop before they reach them."
    ),
    "rates": (
        "The observed rates do not meet the target: a better model is needed, or far"
        " more samples."
    ),
    "margin": "The observed rates meet the target, but not by enough.",
    "together": (
        "Each guarantee can be given alone, but no threshold is both strict enough for"
        " the others and lenient enough for recall."
    ),
}


@dataclass(frozen=True, kw_only=True, repr=False)
class CertifiedThreshold(ResultTable):
    """Threshold with a guarantee about its decisions, which ``print`` explains.

    Parameters
    ----------
    threshold : float
        Samples at or above the threshold are accepted. It is infinite if no threshold
        was found, so that no sample is accepted.
    promise : str or tuple of str
        The guaranteed rate: one or more options of `certified_threshold`, "routing" for
        `certified_routing`, or "abstention" for `certified_abstention`.
    target : float or tuple of float
        The limit: a lower limit for precision, recall and accuracy, and an upper limit
        for all other rates. One per guarantee.
    confidence_level : float
        Probability with which the guarantee holds, in (0, 1).
    n_samples : int
        Number of calibration samples.
    n_accepted : int
        Number of calibration samples at or above the threshold.
    n_wrong : int or tuple of int
        Number of errors that count against each guarantee: accepted samples that are
        wrong; for recall, events that are not accepted; for accuracy, all misclassified
        samples; for routing, answers lost minus answers gained.
    pvalue : float
        P-value of the hypothesis that the threshold violates the guarantee; 1 if no
        threshold was found.
    assumptions : tuple of str
        Conditions for the guarantee to hold, and statements about which part of it is
        exact, one sentence each.
    n_needed : int, default=None
        If no threshold was found: approximate number of calibration samples required at
        the observed error rates; None if more samples would not help.
    column : int, default=1
        For guarantees about an event, the column of the event if probabilities have two
        columns.
    reason : {"few_rows", "margin", "start", "sequence", "rates", "together"}, default=None
        The reason why no threshold was found. "few_rows": there are too few samples,
        even if none were errors. "margin": the rates are within the target, but not by
        a sufficient margin. "start" and "sequence": the search starts where
        overconfident scores predict success, or ends at a stricter threshold. "rates":
        the rates are beyond the target. "together": the guarantees hold only at
        different thresholds.
    n_clusters : int, default=None
        Number of clusters, if `clusters` were given.
    classes : tuple, default=None
        For guarantees about an event, both labels, sorted: `accepts` recognises the
        columns of a table by them. None if they are not known.

    See Also
    --------
    certified_threshold : The function that returns this object.
    certified_abstention : Threshold for answers that have a confidence score.
    certified_routing : Threshold for routing between two models.
    """  # noqa: E501

    _prints_table = False

    threshold: float
    promise: str | tuple[str, ...]
    target: float | tuple[float, ...]
    confidence_level: float
    n_samples: int
    n_accepted: int
    n_wrong: int | tuple[int, ...]
    pvalue: float
    assumptions: tuple[str, ...]
    n_needed: int | None = None
    column: int = 1
    reason: str | None = None
    n_clusters: int | None = None
    classes: tuple | None = None

    def __post_init__(self):
        """Check the fields, which may come from a file."""
        n_samples = check_int(self.n_samples, "n_samples")
        promises = as_tuple(self.promise)
        targets = as_tuple(self.target)
        numbers_wrong = as_tuple(self.n_wrong)
        for promise in promises:
            check_option(promise, "promise", tuple(PROMISES))
        for target in targets:
            check_number(target, "target", above=0, below=1)
        for number in numbers_wrong:
            # The number is negative if routing gains more right answers than it loses.
            check_int(number, "n_wrong", minimum=-n_samples, maximum=n_samples)
        if not len(promises) == len(targets) == len(numbers_wrong) > 0:
            raise invalid("target", "one number for each guarantee", self.target)
        check_confidence_level(self.confidence_level)
        check_int(self.n_accepted, "n_accepted", minimum=0, maximum=n_samples)
        check_number(self.threshold, "threshold", at_least=0, infinite=True)
        check_number(self.pvalue, "pvalue", at_least=0, at_most=1)
        is_text = isinstance(self.assumptions, tuple) and all(
            isinstance(sentence, str) for sentence in self.assumptions
        )
        if not is_text:
            raise invalid("assumptions", "a tuple of sentences", self.assumptions)
        if self.n_needed is not None:
            check_int(self.n_needed, "n_needed")
        check_int(self.column, "column", minimum=0, maximum=1)
        check_option(self.reason, "reason", (None, *_REASONS))
        if self.n_clusters is not None:
            check_int(self.n_clusters, "n_clusters", maximum=n_samples)
        if self.classes is not None:
            check_classes(self.classes, 2, "classes")

    @property
    def found(self) -> bool:
        """Whether a threshold meets the guarantee at the required confidence level."""
        return self.threshold < np.inf

    @property
    def accepted(self) -> float:
        """Share of the calibration samples at or above the threshold."""
        return self.n_accepted / self.n_samples

    def accepts(self, y_proba: ArrayLike) -> np.ndarray:
        """Return which samples are at or above the threshold.

        Parameters
        ----------
        y_proba : array-like of shape (n,), (n, 2) or (n, K)
            Probabilities in the same format as those used to find the threshold; for
            routing and abstention, confidences. If the columns of a table have the
            names of the labels, they may be in any order.

        Returns
        -------
        accepted : ndarray of bool, shape (n,)
            Whether each sample is answered, predicted to be an event, or answered by
            the small model.

        Raises
        ------
        ValueError
            If the values are not probabilities, or have a different format.
        """
        if self.classes is not None:
            classes = np.array(self.classes)
            y_proba = in_order_of(
                y_proba, classes, name="y_proba", classes_name="classes"
            )
        # Guarantees that share a threshold are about the same scores: the first of them
        # says whether these are for an event, an answer or confidences.
        first_promise = as_tuple(self.promise)[0]
        scores = deciding_scores(y_proba, first_promise, self.column)
        return scores >= self.threshold

    def columns(self) -> dict:
        """Return `found`, `accepted` and the fields as columns.

        Returns
        -------
        columns : dict
            Maps each name to a list that contains its value. Assumptions and classes
            are left out.
        """
        left_out = ("assumptions", "classes")
        names = [name for name in vars(self) if name not in left_out]
        return {name: [getattr(self, name)] for name in ("found", "accepted", *names)}

    def _sentences(self):
        """Say the rule with its guarantee, what was seen, and what it needs."""
        level = level_words(self.confidence_level)
        # `PROMISES` has the texts of each guarantee, with places for numbers.
        promises = as_tuple(self.promise)
        claims = []
        for promise, target in zip(promises, as_tuple(self.target), strict=True):
            claims.append(PROMISES[promise].claim.format(target=level_words(target)))
        guaranteed = joined(claims)
        if self.found:
            rule = PROMISES[promises[0]].rule.format(t=shown_threshold(self.threshold))
            lines = [f"{rule}: with {level} confidence, {guaranteed}.", self._seen()]
        else:
            lines = [
                f"No threshold was found: with these {self.n_samples:,} samples, none"
                f" guarantees with {level} confidence that {guaranteed}.",
                self._why_not(),
            ]
        return "\n".join([*lines, conditions_words(self.assumptions)])

    def _seen(self):
        """Return a sentence on how many samples are accepted, and how many of them
        wrongly.
        """
        promises = as_tuple(self.promise)
        numbers_wrong = []
        for promise, number in zip(promises, as_tuple(self.n_wrong), strict=True):
            phrase = PROMISES[promise].wrong.format(w=f"{number:,}")
            if phrase == _NO_ERROR:
                phrase = "none of them wrongly"
            if phrase not in numbers_wrong:
                numbers_wrong.append(phrase)
        share = percent_words(self.accepted, self.n_samples)
        accepted = PROMISES[promises[0]].accepted.format(share=share)
        # These errors are not among the accepted rows, of which the sentence speaks so
        # far: a semicolon separates them.
        link = "; " if promises[0] in ("recall", "accuracy", "routing") else ", "
        clusters = ""
        if self.n_clusters is not None:
            clusters = f" in {self.n_clusters:,} clusters"
        return (
            f"Of {self.n_samples:,} calibration samples{clusters},"
            f" {self.n_accepted:,} {accepted}{link}{'; '.join(numbers_wrong)}."
        )

    def _why_not(self):
        """Return sentences on why no threshold was found, and how many samples would
        be enough.
        """
        reason = _REASONS.get(self.reason, "")
        if self.n_needed is None:
            return reason or _REASONS["rates"]
        unit = "calibration samples are needed, if the rates stay the same."
        return f"{reason} About {rounded_up(self.n_needed)} {unit}".lstrip()

    def _repr_html_(self):
        return sentences_html(str(self))


def as_tuple(value):
    """Return a tuple unchanged, and any other value as a tuple of length 1."""
    return value if isinstance(value, tuple) else (value,)


def shown_threshold(threshold):
    """Return a threshold as text, with six significant digits of its distance from 0 or
    1, whichever is nearer.
    """
    distance = min(threshold, 1 - threshold)
    if not 0 < distance < inf:
        return rounded(threshold)
    # The first digit that is not 0 is at this decimal; five more follow.
    first_decimal = -floor(log10(distance))
    return fixed(threshold, first_decimal + 5).rstrip("0")


def deciding_scores(y_proba, promise, column=1):
    """Return the scores (n,) that are compared with the threshold, from the user's
    probabilities or confidences.

    They are the probability of the predicted class for a guarantee about answers
    (`ANSWER_PROMISES`), the probability of the event for one about an event, and the
    confidence itself for "routing" and "abstention". If there are two columns, `column`
    is that of the event.
    """
    if promise in ANSWER_PROMISES:
        # From two columns on, the largest probability of each row is returned as well.
        scores, _, largest = checked_scores(
            y_proba, name="y_proba", predict_from=2, may_stay=True
        )
        if largest is not None:
            return largest
        # A single column: the predicted class is the event or the other class.
        return np.maximum(scores[:, 0], 1 - scores[:, 0])
    name = "y_proba"
    most_columns = 2
    if promise in ("routing", "abstention"):
        name = "confidence"
        most_columns = 1
    scores = check_scores(y_proba, name=name)
    if scores.shape[1] > most_columns:
        raise ValueError(
            f"promise={promise!r} needs one score per row, found {scores.shape[1]}"
            " columns: pass the probability of the event, or the confidence of the"
            " answer."
        )
    if scores.shape[1] == 1:
        column = 0
    return scores[:, column]
