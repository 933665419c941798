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
    """Return the sums by bin of a batch of samples: a `BinStatistics`, or if
    `multiclass` is "marginal" a `ClassBinStatistics`, with one for each class.

    Parameters
    ----------
    sums : callable
        ``sums(scores, labels, weight)`` returns the `BinStatistics` of one binary
        problem: scores (n,), boolean labels (n,), and weights (n,) or None.
    class_sums : callable
        ``class_sums(data)`` returns a list of one `BinStatistics` for each class, for
        `ScoredLabels` whose scores stay on a device, such as a GPU.
    y_true, y_proba, sample_weight : array-like
        Labels (n,), probabilities or logits (n,) or (n, K), and weights (n,) or None.
    multiclass, labels, input, ignore_label
        Options of `BinStatistics.from_predictions`: "auto", "top_label" or "marginal";
        the labels of the columns; "probability" or "logit"; and a label whose samples
        are left out. `labels` and `ignore_label` may be None.
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
        # The columns are brought into the order of the sorted labels.
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
    # "marginal" means one binary problem for each class; "auto" and "top_label" one in
    # all, of the event or of the predicted class.
    resolved = resolve_multiclass(multiclass, data)
    if resolved == "marginal" and isinstance(data.scores, DeviceScores):
        statistics = class_sums(data)
    else:
        statistics = []
        for scores, events in binary_rows(data, resolved):
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
    """Return the `BinStatistics` of a batch without samples, by class if marginal: the
    classes are the `labels`, or the numbers of the columns of `y_proba`. `sums` makes
    the statistics of scores, events and weights.
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
    in their own precision. Those of a tensor on a device stay there, as `DeviceScores`.
    """
    on_device = device_scores(logits, input="logit")
    if on_device is not None:
        return on_device
    logits = check_scores(logits, name="y_proba", input="logit")
    if logits.shape[1] == 1:
        return expit(logits[:, 0])
    probabilities = np.empty_like(logits)
    for rows in row_blocks(*logits.shape):
        probabilities[rows] = row_softmax(logits[rows])
    return probabilities
