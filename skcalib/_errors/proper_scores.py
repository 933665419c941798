"""Proper scores by row: the Brier score and the log-loss of validated probabilities."""

import numpy as np

from skcalib._input.scored_labels import check_scored_labels
from skcalib._rows.links import log_probability


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
    scores = scores.astype(np.float64)
    return np.vecdot(scores, scores) - 2 * scores[np.arange(len(labels)), labels] + 1


def _log(scores, labels):
    """Return the log-loss of each sample."""
    if scores.ndim == 1:
        right = np.where(labels, scores, 1 - scores)
    else:
        right = scores[np.arange(len(labels)), labels]
    return -log_probability(right)


LOSSES = {"log": _log, "brier": _brier}
