"""Batches of labels and scores as sums by bin: of the event, of the predicted class, or
of each class.
"""

import numpy as np
from scipy.special import expit

from skcalib._cells.class_statistics import ClassBinStatistics
from skcalib._cells.columns import binary_rows, resolve_multiclass
from skcalib._input.classes import in_class_order
from skcalib._input.device_scores import DeviceScores, device_scores
from skcalib._input.scalars import check_option
from skcalib._input.scored_labels import check_score_column, check_scored_labels
from skcalib._input.scores import check_scores
from skcalib._input.sklearn_private import num_samples
from skcalib._input.tensors import as_array, chosen_samples
from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import row_softmax


def summed_batch(
    sums,
    class_sums,
    y_true,
    y_proba,
    sample_weight,
    *,
    multiclass,
    labels,
    input,
    ignore_label,
):
    """Return the sums by bin of a batch: `BinStatistics`, or for "marginal"
    `ClassBinStatistics`, those of each class.

    `sums(scores, labels, weight)` returns those of one binary problem, and
    `class_sums(data)` those of each class for `ScoredLabels` whose scores stay on a
    device. The other parameters are those of `BinStatistics.from_predictions`.
    """
    check_option(multiclass, "multiclass", ("auto", "top_label", "marginal"))
    check_option(input, "input", ("probability", "logit"))
    if ignore_label is not None:
        y_true, y_proba, sample_weight = _without(
            ignore_label, y_true, y_proba, sample_weight
        )
    if num_samples(y_true) == 0 and num_samples(y_proba) == 0:
        return _no_rows(sums, y_proba, multiclass, labels)
    if input == "logit":
        y_proba, labels = in_class_order(
            y_proba,
            y_true,
            labels,
            name="y_proba",
            y_name="y_true",
            labels_name="labels",
        )
        y_proba = _probabilities(y_proba)
    # One column of scores needs fewer checks.
    if np.ndim(y_proba) == 1 and labels is None and multiclass == "auto":
        scores, events, weight = check_score_column(
            y_proba, y_true, sample_weight, name="y_proba", labels_name="y_true"
        )
        return sums(scores, events, weight)
    data = check_scored_labels(
        y_true,
        y_proba,
        multiclass=multiclass,
        sample_weight=sample_weight,
        labels=labels,
        multilabel=multiclass == "marginal",
    )
    # One binary problem, or for "marginal" one for each class.
    kind = resolve_multiclass(multiclass, data)
    if kind == "marginal" and isinstance(data.scores, DeviceScores):
        statistics = class_sums(data)
    else:
        statistics = []
        for scores, events in binary_rows(data, kind):
            statistics.append(sums(scores, events, data.sample_weight))
    if multiclass != "marginal":
        return statistics[0]
    return ClassBinStatistics(dict(zip(data.classes.tolist(), statistics, strict=True)))


def _without(ignore_label, y_true, y_proba, sample_weight):
    """Return labels, scores and weights without the samples of one label."""
    labels, _ = as_array(y_true)
    is_kept = labels != ignore_label
    if np.all(is_kept):
        return y_true, y_proba, sample_weight
    if sample_weight is not None:
        weight, _ = as_array(sample_weight)
        sample_weight = weight[is_kept]
    return labels[is_kept], chosen_samples(y_proba, is_kept), sample_weight


def _no_rows(sums, y_proba, multiclass, labels):
    """Return the sums of an empty batch; marginal classes are the labels, or numbers
    for the columns of `y_proba`.
    """
    empty = sums(np.empty(0), np.empty(0, dtype=bool), None)
    if multiclass != "marginal":
        return empty
    if labels is not None:
        classes = np.asarray(labels)
    elif np.ndim(y_proba) == 2:
        classes = np.arange(np.shape(y_proba)[1])
    else:
        classes = np.arange(2)
    return ClassBinStatistics({label: empty for label in classes.tolist()})


def _probabilities(logits):
    """Return the probabilities of one column of log-odds (n,), or of K logits (n, K)
    in their own precision.
    """
    stayed = device_scores(logits, input="logit")
    if stayed is not None:
        return stayed
    logits = check_scores(logits, name="y_proba", input="logit")
    if logits.shape[1] == 1:
        return expit(logits[:, 0])
    probabilities = np.empty_like(logits)
    for rows in row_blocks(*logits.shape):
        probabilities[rows] = row_softmax(logits[rows])
    return probabilities
