"""Proper scores by row: the Brier score and the log-loss of validated probabilities."""

import numpy as np

from skcalib._input.device_scores import (
    DeviceScores,
    scores_of_labels,
    sums_of_squares,
)
from skcalib._input.scored_labels import check_scored_labels
from skcalib._rows.links import log_probability
from skcalib._rows.namespaces import clipped


def brier_score(y_true, y_proba, *, sample_weight=None, pos_label=None, labels=None):
    """Return the mean Brier score: (s - y)^2 for two classes, the sum of it over the
    classes for more.
    """
    return _mean(_brier, y_true, y_proba, sample_weight, pos_label, labels)


def log_loss(y_true, y_proba, *, sample_weight=None, pos_label=None, labels=None):
    """Return the mean log-loss in nats of probabilities clipped to [2^-52, 1 -
    2^-52].
    """
    return _mean(_log, y_true, y_proba, sample_weight, pos_label, labels)


def _mean(loss, y_true, y_proba, sample_weight, pos_label, labels):
    """Return the weighted mean of a loss by sample: ``loss(scores, labels)`` returns
    (n,) for validated scores and labels.
    """
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    return float(np.average(loss(data.scores, data.labels), weights=data.sample_weight))


def _brier(scores, labels):
    """Return the Brier score of each sample, for scores (n,) of boolean labels or (n,
    K) of column indices.
    """
    if scores.ndim == 1:
        return (scores.astype(np.float64) - labels) ** 2
    # sum_k (p_k - [y = k])^2 = sum_k p_k^2 - 2 p_y + 1
    return sums_of_squares(scores) - 2.0 * scores_of_labels(scores, labels) + 1


def largest_brier(scores):
    """Return the largest Brier score that a sample could have with another label, for
    scores (n,) of an event or (n, K) of classes.
    """
    if scores.ndim == 1:
        scores = scores.astype(np.float64)
        return float(np.max(np.maximum(scores, 1 - scores)) ** 2)
    if isinstance(scores, DeviceScores):
        return scores.largest_brier
    # Of the label with the smallest score: sum_k p_k^2 - 2 p_label + 1.
    smallest = scores.min(axis=1).astype(np.float64)
    return float(np.max(sums_of_squares(scores) - 2 * smallest + 1))


def _log(scores, labels):
    """Return the log-loss of each sample in nats, for scores (n,) of boolean labels or
    (n, K) of column indices.
    """
    if scores.ndim == 1:
        score_of_label = np.where(labels, scores, 1 - scores)
    else:
        score_of_label = scores_of_labels(scores, labels)
    return -log_probability(score_of_label)


LOSSES = {"log": _log, "brier": _brier}


def losses_by_label(scores, loss):
    """Return the loss that each sample would have with each class as its label, (n,
    n_classes), for scores (n,) of an event or (n, n_classes). `loss` is "log" or
    "brier".
    """
    if scores.ndim == 1:
        n_rows = len(scores)
        labels = (np.zeros(n_rows, dtype=bool), np.ones(n_rows, dtype=bool))
        return np.column_stack([LOSSES[loss](scores, label) for label in labels])
    return losses_of_classes(np, scores.astype(np.float64), loss)


def losses_of_classes(xp, scores, loss):
    """Return the loss with each class as the label (n, K), for scores (n, K) in the
    namespace `xp`.
    """
    if loss == "log":
        return -xp.log(clipped(xp, scores))
    return xp.sum(scores**2, axis=1, keepdims=True) - 2 * scores + 1
