"""Metrics of performance as means over samples of constant + slope * label."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from skcalib._input.scalars import check_option
from skcalib._rows.links import clip_probability


@dataclass(frozen=True)
class LinearMetric:
    """A metric as a ratio of two means over samples, each linear in the label y.

    Parameters
    ----------
    constant, slope : ndarray of shape (n,)
        The numerator is ``mean(constant + slope * y)``.
    denominator_constant, denominator_slope : ndarray of shape (n,) or None
        The same for the denominator; None means that the metric is the numerator.
    """

    constant: np.ndarray
    slope: np.ndarray
    denominator_constant: np.ndarray | None = None
    denominator_slope: np.ndarray | None = None

    @property
    def is_ratio(self):
        """Whether the metric has a denominator."""
        return self.denominator_constant is not None

    def value(self, label):
        """Return the metric, a mean of ``constant + slope * label`` or a ratio of two
        such means, for the labels (n,), or for expected labels in [0, 1].
        """
        numerator = np.mean(self.constant + self.slope * label)
        if not self.is_ratio:
            return float(numerator)
        denominator = self.denominator(label)
        if denominator == 0:
            return np.nan
        return float(numerator / denominator)

    def denominator(self, label):
        """Return the denominator for the labels (n,), or for expected labels."""
        return np.mean(self.denominator_constant + self.denominator_slope * label)

    def linearised(self, label):
        """Return constant and slope (n,) of the first-order approximation to this
        metric around the given labels (n,).

        The delta method for a ratio N / D of means of n_i and d_i gives
        ``N / D + (n_i - (N / D) d_i) / D`` for each sample.
        """
        if not self.is_ratio:
            return self.constant, self.slope
        value = self.value(label)
        denominator = self.denominator(label)
        constant = (self.constant - value * self.denominator_constant) / denominator
        slope = (self.slope - value * self.denominator_slope) / denominator
        return constant + value, slope


# Each of the next functions returns the `LinearMetric` of a metric for scores (n,); one
# that needs no threshold ignores it.


def _accuracy(scores, threshold):
    predicted = scores >= threshold
    # A predicted event is right with label 1, any other prediction with label 0.
    return LinearMetric((~predicted).astype(float), np.where(predicted, 1.0, -1.0))


def _event_frequency(scores, threshold):
    return LinearMetric(np.zeros(len(scores)), np.ones(len(scores)))


def _log_loss(scores, threshold):
    clipped = clip_probability(scores)
    of_non_event = -np.log1p(-clipped)
    return LinearMetric(of_non_event, -np.log(clipped) - of_non_event)


def _brier_score(scores, threshold):
    # (s - y)^2 is s^2 + (1 - 2 s) y for labels 0 and 1.
    return LinearMetric(scores**2, 1 - 2 * scores)


def _precision(scores, threshold):
    predicted = (scores >= threshold).astype(float)
    none = np.zeros(len(scores))
    # The share of predicted events with label 1 over that of all predicted events.
    return LinearMetric(none, predicted, predicted, none)


def _recall(scores, threshold):
    predicted = (scores >= threshold).astype(float)
    none = np.zeros(len(scores))
    # The share of predicted events with label 1 over that of all labels 1.
    return LinearMetric(none, predicted, none, np.ones(len(scores)))


def _false_positive_rate(scores, threshold):
    predicted = (scores >= threshold).astype(float)
    every = np.ones(len(scores))
    # The share of predicted events with label 0, 1 - y, over that of all labels 0.
    return LinearMetric(predicted, -predicted, every, -every)


_METRICS = {
    "accuracy": _accuracy,
    "event_frequency": _event_frequency,
    "log_loss": _log_loss,
    "brier_score": _brier_score,
    "precision": _precision,
    "recall": _recall,
    "false_positive_rate": _false_positive_rate,
}
_OF_A_THRESHOLD = ("precision", "recall", "false_positive_rate")
# Metrics that are shares: their limits are kept in [0, 1].
SHARES = ("accuracy", "event_frequency", "brier_score", *_OF_A_THRESHOLD)


def linear_metrics(metrics, threshold, is_binary):
    """Return a dict from the name of a metric to what makes its `LinearMetric` for
    scores (n,) of the event, which take more memory than these.

    `metrics` is a name, a callable, or a sequence of these; the event is predicted at
    or above `threshold`, and `is_binary` is True for two classes.
    """
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    by_name = {}
    for metric in metrics:
        if callable(metric):
            name = _new_name(metric, by_name)
            by_name[name] = partial(_metric_of_callable, metric, name)
            continue
        check_option(metric, "metrics", tuple(_METRICS))
        if metric in _OF_A_THRESHOLD and not is_binary:
            raise ValueError(
                f"{metric!r} is for one event, but y_proba has more than two classes."
            )
        by_name[metric] = partial(_METRICS[metric], threshold=threshold)
    if not by_name:
        raise ValueError("metrics must name at least one metric.")
    return by_name


def _new_name(metric, taken):
    """Return the name of a callable, with a number if it is among the `taken` names."""
    name = getattr(metric, "__name__", type(metric).__name__)
    number = 1
    numbered = name
    while numbered in taken:
        number += 1
        numbered = f"{name} {number}"
    return numbered


def _metric_of_callable(metric, name, scores):
    """Return the `LinearMetric` of a user's ``metric(scores, labels)`` with a value for
    each sample: v(y) for labels 0 and 1 is v(0) + (v(1) - v(0)) y.
    """
    values = []
    for label in (0.0, 1.0):
        value = np.asarray(metric(scores, np.full(len(scores), label)), dtype=float)
        if value.shape != scores.shape or not np.isfinite(value).all():
            raise ValueError(
                f"{name} must return finite values, one for each sample: an array"
                f" of shape {scores.shape}, found {value.shape}."
            )
        values.append(value)
    if_non_event, if_event = values
    return LinearMetric(if_non_event, if_event - if_non_event)
