"""What a weight says about the label: the one place that decides which variance weights
of importance have.

Let w1 and w0 be the weights that a sample with the score s would have with and without
the event. If the scores are calibrated, the mean of w (y - s) is 0, its variance is w1
w0 s (1 - s), and a sample has the event with probability s w0 / (s w0 + (1 - s) w1).
Only where the label does not change the weight is the variance w^2 s (1 - s).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from skcalib._guide import see
from skcalib._input.scalars import check_option
from skcalib._input.warn import warn
from skcalib._rows.blocks import effective_size
from skcalib._rows.links import log_odds

# With fewer effective events, or non-events, the observed squares w^2 (y - s)^2 are
# hardly more than a function of the scores: tests then reject up to 62 % of 5 %.
FEWEST_EVENTS = 20.0
# Weights of each label that are only seen, not declared, need samples of both labels.
# Where 3 samples of the rarer label are expected, 1 in 20 data sets has none, and
# refusing those changes little. Data sets with 10 such samples are never refused.
_FEWEST_EXPECTED, _FEWEST_SEEN = 3.0, 10
# In fewer rows counts may be one number for each label by chance.
_FEWEST_ROWS = 20
_WEIGHT_TYPES = ("frequency", "importance")


@dataclass(frozen=True)
class LabelWeights:
    """Weights of importance, and what is known about those of the other label.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Positive weights of the samples with the labels that they have.
    other : ndarray of shape (n,) or None
        Weights that they would have with the other label; None where these are unknown.
    form : {"constant", "label", "declared", "observed"}
        Why they are known: one weight for samples of both labels, one for each label,
        or declared.
        "observed" where they are not: variances are then observed squares.
    """

    weight: np.ndarray
    other: np.ndarray | None
    form: str

    @property
    def is_known(self):
        """Whether the weight of the other label is known."""
        return self.other is not None

    def __getitem__(self, rows):
        """Return the `LabelWeights` of some rows: a mask, a slice or positions."""
        other = self.other
        if other is not None:
            other = other[rows]
        return replace(self, weight=self.weight[rows], other=other)

    def scaled(self, factor):
        """Return the weights times a positive number."""
        other = self.other
        if other is not None:
            other = factor * other
        return replace(self, weight=factor * self.weight, other=other)

    @property
    def other_or_same(self):
        """The weights (n,) that enter a variance beside those of the samples: those of
        the other label, and where these are unknown the same ones.
        """
        return self.other if self.is_known else self.weight

    @property
    def row_factor(self):
        """The factor with which the weights add up to the number of random rows that
        they are worth, (sum w)^2 / sum w1 w0: many more than there are where one label
        is rare and the other one was sampled. Kish's number if w1 w0 is unknown.
        """
        return float(self.weight.sum() / (self.weight @ self.other_or_same))

    def null_variance(self, scores):
        """Return w1 w0 s (1 - s) of each row (n,): the variance of w (y - s) for
        calibrated scores. The weight of the other label must be known.
        """
        return self.weight * self.other * scores * (1 - scores)

    def variance(self, scores, labels):
        """Return the variance of w (y - s) of each row (n,), for a test of calibration:
        that of calibrated scores, or the observed w^2 (y - s - b)^2 about the bias b
        where the weight of the other label is unknown.
        """
        if self.is_known:
            return self.null_variance(scores)
        residual = labels - scores
        bias = self.weight @ residual / self.weight.sum()
        return (self.weight * (residual - bias)) ** 2

    def event_probability(self, scores, labels):
        """Return the probability (n,) of the event in the sample, s w0 / (s w0 + (1 -
        s) w1), and the weights w1 and w0 (n,) with and without it.
        """
        labels = np.asarray(labels, dtype=bool)
        with_event = np.where(labels, self.weight, self.other)
        without_event = np.where(labels, self.other, self.weight)
        odds_of_event = scores * without_event
        odds_of_none = (1 - scores) * with_event
        probability = odds_of_event / (odds_of_event + odds_of_none)
        return probability, with_event, without_event

    def reason(self, labels):
        """Return why the observed squares say too little; "" where they do not, or
        where they are not needed.
        """
        if self.is_known:
            return ""
        return few_effective_events(labels, self.weight)


_DECLARE = (
    "the weights of the other label are unknown: pass them as"
    " weight_type={label: weight}"
)


def few_effective_events(labels, weight, why=_DECLARE):
    """Return why labels (n,) with weights (n,) hold too few events, or non-events, for
    the observed squares of residuals; "" where there are enough.

    Events are worth Kish's number of events of equal weight. `why` says why these
    squares are needed.
    """
    labels = np.asarray(labels, dtype=bool)
    for name, is_one in (("events", labels), ("non-events", ~labels)):
        found = weight[is_one]
        worth = effective_size(found.sum(), found @ found)
        if worth < FEWEST_EVENTS * (1 - 1e-9):
            return (
                f"the effective number of {name} is {worth:.2g}, below"
                f" {FEWEST_EVENTS:g}, and {why}"
            )
    return ""


def weight_of_event(weight, labels, scores):
    """Return how many times heavier an event is than a non-event of the same score; 1
    where their weights overlap.

    By a regression of the log-weights on the label and a cubic function of the
    log-odds. It says how heavy a row could be, not which variance weights have.
    `weight`, boolean `labels` and `scores` are (n,).
    """
    seen = weight > 0
    z = log_odds(scores[seen])
    log_weight = np.log(weight[seen])
    design = np.column_stack((labels[seen], np.ones(len(z)), z, z**2, z**3))
    coefficients = np.linalg.lstsq(design, log_weight, rcond=None)[0]
    label_coefficient = coefficients[0]
    largest_residual = np.abs(log_weight - design @ coefficients).max(initial=0.0)
    if largest_residual >= abs(label_coefficient) / 2:
        return 1.0  # weights of both labels overlap
    return float(np.exp(label_coefficient))


def weight_of_each_label(labels, weight):
    """Return the weights (w0, w1) without and with the event where the weight is a
    function of the label on all rows, and differs; else None.

    `labels` (n,) are boolean and `weight` (n,) positive. Both labels must occur, and
    one of them twice.
    """
    labels = np.asarray(labels, dtype=bool)
    found = weight[~labels], weight[labels]
    if len(weight) < 3 or not len(found[0]) or not len(found[1]):
        return None
    for weights in found:
        if weights.max() > weights.min() * (1 + 1e-9):
            return None
    without_event = float(found[0][0])
    with_event = float(found[1][0])
    if abs(with_event - without_event) <= 1e-9 * with_event:
        return None
    return without_event, with_event


def check_weight_type(weight_type):
    """Return `weight_type`, "frequency", "importance" or a dict that holds the weight
    of each label; raise for anything else.
    """
    if isinstance(weight_type, Mapping):
        return weight_type
    return check_option(weight_type, "weight_type", _WEIGHT_TYPES)


def is_importance(weight_type):
    """Return whether a `weight_type` says that each sample was seen once, whatever its
    weight: "importance", or a dict that holds the weight of each label.
    """
    return check_weight_type(weight_type) != "frequency"


def label_weights(
    labels, weight, weight_type="importance", classes=(0, 1), *, scores=None
):
    """Return the `LabelWeights` of importance weights, or None for counts of rows.

    The form is decided by the structure of the weights alone, on all rows: call it
    once, before rows are split into groups or folds, and index the result.

    Parameters
    ----------
    labels : ndarray of shape (n,) or (n, L)
        Labels: boolean for one event, else class indices or several labels per row.
    weight : ndarray of shape (n,) or None
        Weights; None stands for 1. Rows of weight zero say nothing.
    weight_type : {"frequency", "importance"} or dict, default="importance"
        Meaning of the weights; a dict gives the weight of each of the two labels, a
        number or an array (n,).
    classes : array-like of length 2, default=(0, 1)
        The negative and the positive label, the keys of such a dict.
    scores : ndarray of shape (n,), default=None
        Scores of one event, which say how many of the rarer label are expected: a
        weight that only few show is unknown. None asks for the structure alone.

    Returns
    -------
    weights : LabelWeights or None
        None for "frequency".
    """
    labels = np.asarray(labels)
    if weight is None:
        weight = np.ones(len(labels))
    if isinstance(check_weight_type(weight_type), Mapping):
        return _declared(labels, weight, weight_type, classes)
    if weight_type == "frequency":
        return None
    is_used = weight > 0
    present = weight[is_used]
    is_one_event = labels.dtype.kind == "b" and labels.ndim == 1
    # Labels of one class do not say what another label would weigh.
    is_one_class = is_one_event and len(np.unique(labels[is_used])) < 2
    if present.max() <= present.min() * (1 + 1e-9) and not is_one_class:
        return LabelWeights(weight, weight, "constant")
    if is_one_event:
        by_label = weight_of_each_label(labels[is_used], weight[is_used])
        if by_label is not None:
            other = np.where(labels, by_label[0], by_label[1])
            known = LabelWeights(weight, np.where(is_used, other, 0.0), "label")
            if scores is None or _shows_both(known[is_used], labels, scores, is_used):
                return known
    return LabelWeights(weight, None, "observed")


def _shows_both(weights, labels, scores, is_used):
    """Return whether another sample of this size would show the weights of both labels
    nearly always: the scores (n,) must let expect enough rows of the rarer label, or
    the data contain enough. `is_used` (n,) says which rows have a positive weight, and
    `weights` are the `LabelWeights` of these.
    """
    labels = labels[is_used]
    scores = scores[is_used].astype(np.float64)
    probability, _, _ = weights.event_probability(scores, labels)
    expected = min(probability.sum(), np.sum(1 - probability))
    seen = min(np.count_nonzero(labels), np.count_nonzero(~labels))
    return expected >= _FEWEST_EXPECTED or seen >= _FEWEST_SEEN


def _declared(labels, weight, by_label, classes):
    """Return the `LabelWeights` of a dict `by_label` from label to weight, a number or
    an array (n,), checked against the `weight` (n,) of the samples with boolean
    `labels` (n,). `classes` are the negative and the positive label.
    """
    if labels.dtype.kind != "b" or labels.ndim != 1:
        raise ValueError(
            "weight_type={label: weight} is for two classes: with more, use"
            ' weight_type="importance".'
        )
    names = list(classes)
    found = []
    for name in names:
        given = [value for key, value in by_label.items() if key == name]
        if len(given) != 1 or len(by_label) != 2:
            raise ValueError(
                "weight_type must hold a weight for each of the two labels"
                f" {names[0]!r} and {names[1]!r}, found the keys {list(by_label)!r}."
            )
        value = np.asarray(given[0], dtype=np.float64)
        if value.shape not in ((), weight.shape):
            raise ValueError(
                f"weight_type[{name!r}] must be a number or an array of shape"
                f" ({len(weight)},), found shape {value.shape}."
            )
        if not np.all(np.isfinite(value)) or not np.all(value >= 0):
            raise ValueError(
                f"weight_type[{name!r}] must hold finite weights of at least 0."
            )
        found.append(np.broadcast_to(value, weight.shape))
    without_event, with_event = found
    expected = np.where(labels, with_event, without_event)
    is_used = weight > 0
    if not np.allclose(weight[is_used], expected[is_used], rtol=1e-6, atol=0):
        row = np.flatnonzero(is_used & ~np.isclose(weight, expected, rtol=1e-6))[0]
        raise ValueError(
            "sample_weight must be the weight that weight_type gives to the label of"
            f" each row: row {row} has {weight[row]:g}, not {expected[row]:g}."
        )
    other = np.where(labels, without_event, with_event)
    if not np.all(other[is_used] > 0):
        raise ValueError(
            "weight_type must hold, for each row of positive weight, a positive weight"
            " under each of the two labels."
        )
    return LabelWeights(weight, np.where(is_used, other, 0.0), "declared")


def looks_like_counts(labels, weight):
    """Return whether weights (n,) or None may be numbers of equal rows: whole numbers
    that are not one number for each label, as where one label was sampled.

    `labels` are boolean (n,) for one event; others, and fewer than 20 rows, say
    nothing.
    """
    if weight is None:
        return True
    if (weight % 1).any():
        return False
    return sampled_labels(labels, weight) is None


def sampled_labels(labels, weight):
    """Return the weights (w0, w1) without and with the event if there are at least 20
    rows and all of one boolean label (n,) have the same weight; else None. The weights
    (n,) then look as if one label had been sampled.
    """
    if labels is None or weight is None:
        return None
    labels = np.asarray(labels)
    is_used = weight > 0
    few = np.count_nonzero(is_used) < _FEWEST_ROWS
    if few or labels.dtype.kind != "b" or labels.ndim != 1:
        return None
    return weight_of_each_label(labels[is_used], weight[is_used])


def warn_of_counts(labels, weight):
    """Warn of weights (n,) or None that are taken for counts of rows though they do not
    look like counts: they are no whole numbers, or one number for each of the boolean
    labels (n,).
    """
    if weight is not None and (weight % 1).any():
        warn(
            "sample_weight contains weights that are not integers, but"
            ' weight_type="frequency" counts a weight of 2 as two rows. Use'
            ' weight_type="importance" for weights that correct for sampling; round'
            f" or scale weights that are counts.{see('weights')}"
        )
        return
    by_label = sampled_labels(labels, weight)
    if by_label is not None:
        warn(
            f"sample_weight contains {by_label[1]:g} for all samples with the event and"
            f" {by_label[0]:g} for all others, as if one label had been sampled, but"
            ' weight_type="frequency" counts repeated rows. Use'
            ' weight_type="importance" for weights that correct for sampling.'
        )
