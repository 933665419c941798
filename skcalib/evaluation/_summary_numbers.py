"""The numbers of a summary that are computed from the samples alone: observed over
expected events, Brier scores, and the area under the ROC curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, stdtrit

from skcalib._inference.bias import (
    ONE_CLASS_IN_CLUSTERS,
    observed_variance_ratio,
    weight_divisor,
)
from skcalib._inference.results import IntervalEstimate
from skcalib._inference.shift_test import event_ratio_limits
from skcalib._input.label_weights import LabelWeights, is_importance
from skcalib._intervals.influence import Influence
from skcalib._intervals.rare import area_limits, mean_loss_interval
from skcalib._rows.blocks import effective_size, weights_or_ones
from skcalib._rows.sorting import distinct_values

# With fewer events or non-events a number whose variance needs both has no limits.
_FEWEST_OF_A_CLASS = 10
_ONE_CLASS = "y_true has one class only"


class SummaryRows(NamedTuple):
    """Samples of a summary, with the data that determine the variance of their means.

    Attributes
    ----------
    scores, labels, weight : ndarray of shape (n,)
        Scores in [0, 1], labels (0 or 1) as floats, and positive weights.
    is_importance : bool
        Whether each row was observed once, regardless of its weight.
    cluster : ndarray of int, shape (n,), or None
        Codes of clusters.
    level : float
        Confidence level of the intervals.
    label_weights : LabelWeights or None
        What weights of importance say about the labels.
    """

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    is_importance: bool
    cluster: np.ndarray | None
    level: float
    label_weights: LabelWeights | None = None

    @classmethod
    def of_task(cls, task, weight_type, cluster, level):
        """Return the samples of a `BinaryTask`."""
        weight = task.sample_weight
        return cls(
            task.scores.astype(np.float64),
            task.labels.astype(np.float64),
            weights_or_ones(weight, len(task.scores)),
            is_importance(weight_type),
            cluster,
            level,
            task.label_weights,
        )

    @property
    def is_plain(self):
        """Whether rows are independent and weights are frequencies."""
        return self.cluster is None and not self.is_importance

    @property
    def is_one_class(self):
        """Whether all labels are equal."""
        # Not by the weighted mean, which is 1 only up to rounding.
        return bool(self.labels.min() == self.labels.max())

    def at(self, chosen):
        """Return the rows for which the mask `chosen` (n,) is True."""
        cluster = self.cluster
        if cluster is not None:
            _, cluster = distinct_values(cluster[chosen])
        label_weights = self.label_weights
        if label_weights is not None:
            label_weights = label_weights[chosen]
        return self._replace(
            label_weights=label_weights,
            scores=self.scores[chosen],
            labels=self.labels[chosen],
            weight=self.weight[chosen],
            cluster=cluster,
        )

    def influence(self, values):
        """Return the `Influence` of the samples on an estimate, given their influence
        values (n,).
        """
        return Influence(values, self.weight, self.is_importance, self.cluster)

    def mean(self, values):
        """Return the weighted mean of values (n,)."""
        return float(self.weight @ values / self.weight.sum())

    def few_of_a_class(self):
        """Return why a class has too few rows for a normal approximation, or an empty
        string if it has enough.
        """
        for name, label in (("events", 1), ("non-events", 0)):
            weight = self.weight[self.labels == label]
            n_effective = weight.sum()
            if self.is_importance:
                n_effective = effective_size(n_effective, weight @ weight)
            if n_effective < _FEWEST_OF_A_CLASS:
                return f"fewer than {_FEWEST_OF_A_CLASS} {name}"
        return ""


# Each of the next functions returns an `IntervalEstimate`, or the reason why the number
# is not defined.


def _observed_expected(rows):
    """Return the ratio of observed to expected events in `SummaryRows` with its
    interval, or why it is not defined.

    The limits are those of a common shift of all log-odds (`event_ratio_limits`): in
    400 samples of each of ten simulations they covered .88 to .97 of .90, those of the
    logarithm .84 to .93 (rows "O/E ratio, log scale" of the page of levels).
    """
    expected = rows.mean(rows.scores)
    events = rows.mean(rows.labels)
    if expected == 0:
        return "no event is expected"
    ratio = events / expected
    residual = rows.labels - ratio * rows.scores
    # The design effect: how many rows are worth one independent row. It depends on the
    # level, since Student's quantile replaces the normal one.
    effect, reason = rows.influence(residual).design_effect(rows.level)
    mean_square = rows.mean(residual**2)
    known = rows.label_weights  # of importance weights, None for others
    if rows.cluster is not None and rows.is_one_class:
        reason = ONE_CLASS_IN_CLUSTERS
    elif known is not None and not known.is_known:
        reason = reason or known.reason(rows.labels)
    elif known is not None and rows.cluster is None:
        # The weights of both labels say how the number of events varies.
        effect = weight_divisor(known, rows.scores * (1 - rows.scores))
        stretch, probability = observed_variance_ratio(
            rows.scores, rows.labels, residual, known
        )
        if not np.isnan(stretch):
            mean_square = stretch * rows.mean(probability * (1 - probability))
    if reason:
        return IntervalEstimate(ratio, np.nan, np.nan, reason=reason)
    # The limits are those for as many independent rows as these are worth.
    weight = rows.weight / effect
    low, high = event_ratio_limits(
        rows.scores,
        float(weight @ rows.labels),
        rows.level,
        weight,
        residual_variance=mean_square,
    )
    return IntervalEstimate(ratio, low, high)


def _brier_score(rows):
    """Return the mean of (s - y)^2 over `SummaryRows`, with an interval by the gamma
    distribution.
    """
    loss = (rows.scores - rows.labels) ** 2
    brier = rows.mean(loss)
    # The largest loss that a sample could have with either label.
    largest = float(np.max(np.maximum(rows.scores, 1 - rows.scores) ** 2))
    low, high, reason = mean_loss_interval(
        loss, largest, rows.influence(loss - brier), rows.level
    )
    return IntervalEstimate(brier, low, min(high, 1.0), reason=reason)


def _scaled_brier_score(rows):
    """Return 1 - Brier / (f (1 - f)), f the event frequency, with its interval, or the
    reason why it is not defined. `rows` are `SummaryRows`.
    """
    if rows.is_one_class:
        return _ONE_CLASS
    frequency = rows.mean(rows.labels)
    loss = (rows.scores - rows.labels) ** 2
    brier = rows.mean(loss)
    label_variance = frequency * (1 - frequency)
    estimate = 1 - brier / label_variance
    reason = rows.few_of_a_class()
    if reason:
        return IntervalEstimate(estimate, np.nan, np.nan, reason=reason)
    # The delta method: derivatives by the frequency and by the Brier score.
    slope_of_frequency = brier * (1 - 2 * frequency) / label_variance**2
    influence = slope_of_frequency * (rows.labels - frequency)
    influence = influence - (loss - brier) / label_variance
    low, high, reason = rows.influence(influence).interval(estimate, rows.level)
    return IntervalEstimate(estimate, low, min(high, 1.0), reason=reason)


def _auc(rows):
    """Return the area under the ROC curve of `SummaryRows` with its interval, or why it
    is not defined: Newcombe's interval; with importance weights or clusters Student's
    for the log-odds of the area, with DeLong's variance.
    """
    if rows.is_one_class:
        return _ONE_CLASS
    area, influence = _area_and_influence(rows.scores, rows.labels == 1, rows.weight)
    error, degrees, reason = rows.influence(influence).spread()
    if rows.is_plain:
        n_events = rows.weight @ rows.labels
        n_non_events = rows.weight.sum() - n_events
        # Newcombe's interval becomes wider where DeLong's variance is larger than his;
        # 0 leaves it as it is.
        variance = 0.0 if reason else error**2
        limits = area_limits(area, n_events, n_non_events, rows.level, variance)
        return IntervalEstimate(area, *limits)
    reason = reason or rows.few_of_a_class()
    if not reason and (area in (0, 1) or error == 0):
        reason = "the classes do not overlap, so no variance can be estimated"
    if reason:
        return IntervalEstimate(area, np.nan, np.nan, reason=reason)
    # The standard error of the log-odds of the area, by the delta method.
    error_of_log_odds = error / (area * (1 - area))
    width = stdtrit(degrees, (1 + rows.level) / 2) * error_of_log_odds
    low, high = expit(logit(area) + np.array((-width, width)))
    return IntervalEstimate(area, float(low), float(high))


OF_ROWS = {
    "observed_expected": _observed_expected,
    "brier_score": _brier_score,
    "scaled_brier_score": _scaled_brier_score,
    "auc": _auc,
}


def _area_and_influence(scores, labels, weight):
    """Return the area under the ROC curve and each sample's influence on it, (n,): the
    structural components of DeLong, DeLong and Clarke-Pearson (1988).
    """
    _, rank = np.unique(scores, return_inverse=True)
    influence = np.empty(len(scores))
    for event in (False, True):
        # The component of a row: the share of the other class that lies on the right
        # side of its score (below that of an event), ties half.
        in_class = labels == event
        in_other = ~in_class
        # the weight of the other class at each distinct score
        other = np.bincount(rank[in_other], weight[in_other], rank.max() + 1)
        share_below = (np.cumsum(other) - other / 2) / other.sum()
        component = share_below[rank[in_class]]
        if not event:
            component = 1 - component
        size = weight[in_class].sum()
        area = weight[in_class] @ component / size  # the same for both classes
        # DeLong's variance divides a sum of squares by n - 1 for n rows of a class, the
        # variance of influences divides by n: the root makes up for it.
        unbiased = np.sqrt(size / max(size - 1, 1))
        # A row has weight / size in the mean of its class, but only weight / total in a
        # mean of all samples, for which influences are defined.
        class_factor = weight.sum() / size
        influence[in_class] = (component - area) * unbiased * class_factor
    return float(area), influence
