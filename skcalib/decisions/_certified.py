"""A certified threshold: a promise about the decisions that it makes, in sentences, with what must be true for it."""

from dataclasses import dataclass, field

import numpy as np

from skcalib._inference.results import ResultTable
from skcalib._input.scalars import (
    check_confidence_level,
    check_int,
    check_number,
    check_option,
    invalid,
)
from skcalib._input.scores import check_scores, checked_scores
from skcalib.guarantees._certificate import sentences_html

# Promise: the rule, what holds, and what was seen.
_ANSWER = "Give the predicted class where its probability is at least {t}, and abstain elsewhere."
_EVENT = "Predict the event where its probability is at least {t}."
_ROUTE = "Let the small model answer where its confidence is at least {t}, and the large model elsewhere."
_ANSWERED = "answered ({share}), {w} of them wrongly."
_PREDICTED = "predicted to be events ({share})"
_FALSE = f"{_PREDICTED}, and {{w}} of them are not."
_LOST = (
    "left to the small model ({share}), and {w} correct answers are lost on balance."
)
PROMISES = {
    "error_when_answered": (
        _ANSWER,
        "at most {target} of the answers are wrong",
        _ANSWERED,
    ),
    "answered_and_wrong": (
        _ANSWER,
        "at most {target} of all rows are answered wrongly",
        _ANSWERED,
    ),
    "precision": (
        _EVENT,
        "at least {target} of the predicted events are events",
        _FALSE,
    ),
    "recall": (
        _EVENT,
        "at least {target} of the events are predicted",
        f"{_PREDICTED}; {{w}} events are missed.",
    ),
    "false_positive_rate": (
        _EVENT,
        "at most {target} of the rows without the event are predicted to be one",
        _FALSE,
    ),
    "routing": (
        _ROUTE,
        "at most {target} of the answers are lost against the large model alone",
        _LOST,
    ),
}
MODEL = (
    "The probabilities come from one model that was fitted on other rows. A recalibrator that was fitted on these rows "
    "is not noticed here: maps of at most two parameters a class did no harm in simulations, all others need rows of "
    "their own (fit the recalibrator on one half of the rows, find the threshold on the other)."
)
FIXED = "The promise, its target and the thresholds were fixed before the labels of these rows were seen."
ANSWERS = (
    "error_when_answered",
    "answered_and_wrong",
)  # about the predicted class; the others are about an event


@dataclass(frozen=True, kw_only=True)
class CertifiedThreshold(ResultTable):
    """A threshold with a promise about the decisions that it makes. Printing it gives sentences.

    Parameters
    ----------
    threshold : float
        Rows at or above it are accepted; infinite if none was found, so that no row is.
    promise : {"error_when_answered", "answered_and_wrong", "precision", "recall", "false_positive_rate", "routing"}
        What is promised; "routing" comes from `certified_routing`.
    target : float
        The limit: at least this precision or recall, at most this share of anything else.
    confidence_level : float
        Probability of the promise, in (0, 1).
    n_samples : int
        Calibration rows.
    n_accepted : int
        Calibration rows at or above the threshold.
    n_wrong : int
        What speaks against the promise: accepted rows that are wrong, for recall events that are not accepted, for
        routing answers lost less answers gained.
    pvalue : float
        P-value of "the threshold breaks the promise", 1 if none was found.
    assumptions : tuple of str
        What must be true for the promise to hold, and which part of it is exact, one sentence each.
    n_needed : int, default=None
        If none was found: about how many calibration rows are needed at the error rates seen here; None where no
        number of rows would do.
    column : int, default=1
        For promises about an event, its column where probabilities have two.

    See Also
    --------
    certified_threshold : What makes it.
    certified_routing : The same for two models.
    """

    threshold: float
    promise: str
    target: float
    confidence_level: float
    n_samples: int
    n_accepted: int
    n_wrong: int
    pvalue: float
    assumptions: tuple[str, ...] = field(repr=False)
    n_needed: int | None = None
    column: int = 1

    def __post_init__(self):
        """Check the fields, which may come from a file."""
        check_option(self.promise, "promise", tuple(PROMISES))
        check_number(self.target, "target", above=0, below=1)
        check_confidence_level(self.confidence_level)
        check_int(
            self.n_accepted,
            "n_accepted",
            minimum=0,
            maximum=check_int(self.n_samples, "n_samples"),
        )
        check_int(
            self.n_wrong, "n_wrong", minimum=-self.n_samples, maximum=self.n_samples
        )
        check_number(self.threshold, "threshold", at_least=0, infinite=True)
        check_number(self.pvalue, "pvalue", at_least=0, at_most=1)
        if not isinstance(self.assumptions, tuple) or not all(
            isinstance(one, str) for one in self.assumptions
        ):
            raise invalid("assumptions", "a tuple of sentences", self.assumptions)
        if self.n_needed is not None:
            check_int(self.n_needed, "n_needed")
        check_int(self.column, "column", minimum=0, maximum=1)

    @property
    def found(self):
        """Whether a threshold keeps the promise with the wanted confidence."""
        return self.threshold < np.inf

    @property
    def accepted(self):
        """Share of the calibration rows at or above the threshold."""
        return self.n_accepted / self.n_samples

    def accepts(self, y_proba):
        """Return which rows are at or above the threshold.

        Parameters
        ----------
        y_proba : array-like of shape (n,), (n, 2) or (n, K)
            Probabilities of the form that the threshold was found with; for routing the confidences.

        Returns
        -------
        accepted : ndarray of bool, shape (n,)
            Whether a row is answered, predicted to be an event, or left to the small model.

        Raises
        ------
        ValueError
            For anything that is not a probability, or has another form.
        """
        return deciding_scores(y_proba, self.promise, self.column) >= self.threshold

    def columns(self):
        """Return one row of columns: `found`, `accepted`, and all fields except the assumptions.

        Returns
        -------
        columns : dict
            From each name to a list of its value.
        """
        return {
            name: [getattr(self, name)]
            for name in ("found", "accepted", *vars(self))
            if name != "assumptions"
        }

    def __str__(self):
        """Say rule, promise, what was seen, and the assumptions in sentences."""
        rule, promise, seen = PROMISES[self.promise]
        level, target = (
            f"{100 * self.confidence_level:.10g} %",
            f"{100 * self.target:.10g} %",
        )
        promise = f"With {level} confidence (right for at least {level} of calibration samples), {promise}."
        promise = promise.format(target=target)
        if self.found:
            seen = seen.format(
                share=f"{100 * self.accepted:.3g} %", w=f"{self.n_wrong:,}"
            )
            counted = f"Of {self.n_samples:,} calibration rows, {self.n_accepted:,} are {seen}"
            lines = [rule.format(t=repr(self.threshold)), promise, counted]
        else:
            needed = "The rates seen here are not within the target: a better model is needed, or far more rows."
            if self.n_needed is not None:
                needed = f"About {self.n_needed:,} calibration rows are needed, if the rates stay as they are here."
            none = f"No threshold is found on these {self.n_samples:,} rows, so that no row is accepted."
            lines = [none, f"The promise would be: w{promise[1:]}", needed]
        return "\n".join(
            [
                *lines,
                "This holds provided that:",
                *(f"- {one}" for one in self.assumptions),
            ]
        )

    def _repr_html_(self):
        return sentences_html(str(self))


def deciding_scores(y_proba, promise, column=1):
    """Return the score that is compared with the threshold: of the predicted class, of the event, or as it is given."""
    if promise in ANSWERS:
        scores, _, largest = checked_scores(y_proba, name="y_proba", predict_from=2)
        return (
            np.maximum(scores[:, 0], 1 - scores[:, 0]) if largest is None else largest
        )
    scores = check_scores(
        y_proba, name="confidence" if promise == "routing" else "y_proba"
    )
    if scores.shape[1] > (1 if promise == "routing" else 2):
        raise ValueError(
            f"promise={promise!r} is about one score a row, found {scores.shape[1]} columns: give the probability of "
            "the event, or the confidence of the small model."
        )
    return scores[:, column if scores.shape[1] == 2 else 0]
