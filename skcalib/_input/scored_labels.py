"""The input of a metric: scores with the labels and weights that belong to them."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcalib._guide import see
from skcalib._input.classes import (
    encode_labels,
    hint_at_event,
    in_order_of,
    named_classes,
    names_of_scores,
    positive_class,
    reordered,
    with_counted_labels,
    zero_one,
    zero_one_classes,
)
from skcalib._input.device_scores import device_scores
from skcalib._input.label_weights import LabelWeights
from skcalib._input.labels import (
    check_label_vector,
    other_length,
    several_labels_shape,
)
from skcalib._input.scores import (
    check_sample_weight,
    check_scores,
    checked_probabilities,
    drop_zero_weight,
    is_probability_vector,
    refuse_swapped,
    score_matrix,
)
from skcalib._input.several_labels import (
    check_several_labels,
    refuse_several_labels,
)
from skcalib._input.tensors import as_array, column_names, refuse_repeated_names
from skcalib._input.warn import warn

_WHOLE_NUMBERS = "?bhilqBHILQ"  # types of NumPy: booleans and integers
_FEW_ROWS = 10  # with fewer, scores of only 0 and 1 give no warning


class ScoredLabels(NamedTuple):
    """Validated input of a metric.

    `scores` is (n,) with boolean `labels` (True = the positive class) for one score a
    row, else (n, K) with the column index of each label. Two columns are one score,
    that of the positive class, where `multiclass` is "auto". Rows of weight zero are
    gone; `sample_weight` is None or float64 (n,). `classes` holds the labels:
    (negative, positive) for one score, else in the order of the columns. `predicted`
    (n,) is the column of the first of the largest scores and `confidence` (n,) that
    score: None for one score per row, where `multiclass` is "marginal" or "pooled", and
    for scores on a device.

    Of several labels per row (multilabel) `labels` is boolean (n, L), like the scores,
    and `classes` holds the names of the labels, in the order of the columns.

    Scores (n, K) of a tensor that NumPy cannot read stay on its device, as
    `DeviceScores`, and so do several labels per row beside them, as `DeviceLabels`.

    `label_weights` is None unless the weights are of importance (`counted_rows` sets
    it); it says what is known about the weights of the other label.
    """

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
    classes: np.ndarray
    predicted: np.ndarray | None = None
    confidence: np.ndarray | None = None
    label_weights: LabelWeights | None = None

    @property
    def is_binary(self):
        """Whether the scores are those of one positive class."""
        return self.scores.ndim == 1

    @property
    def is_multilabel(self):
        """Whether a row may have several labels, each with a score of its own."""
        return self.labels.ndim == 2

    @property
    def kept(self):
        """The indices of the samples of positive weight."""
        if self.sample_weight is None:
            return np.arange(len(self.scores))
        return np.flatnonzero(self.sample_weight)

    def copied(self):
        """Return the same with scores and labels of NumPy, for results that need those
        of all classes.
        """
        return self._replace(
            scores=np.asarray(self.scores), labels=np.asarray(self.labels)
        )

    def at(self, rows):
        """Return the `ScoredLabels` of some rows: a mask or an array of positions."""
        chosen = {}
        for name, array in self._asdict().items():
            if name != "classes" and array is not None:
                chosen[name] = array[rows]
        return self._replace(**chosen)


def check_scored_labels(
    y_true,
    y_proba,
    *,
    multiclass="auto",
    sample_weight=None,
    pos_label=None,
    labels=None,
    drop=True,
    multilabel=False,
):
    """Return the validated input of a metric as `ScoredLabels`.

    With `drop=False` rows of weight zero are kept. With `multilabel` an indicator
    matrix (n, L) of labels stands for several labels per row; otherwise it is refused.
    """
    if y_proba is None:
        raise ValueError(
            "y_proba must have shape (n,) or (n, n_classes), found None (), with a"
            f" {type(y_true).__name__}. This function needs the score and the label of"
            " each row, but a BinStatistics contains only sums by bin."
        )
    if sample_weight is None and pos_label is None and labels is None:
        data = _usual_rows(y_true, y_proba)
        if data is not None:
            return data
    # Indices can differ only between two arguments that have one.
    if type(y_true) is not np.ndarray or sample_weight is not None:
        hint_at_two_indices(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
    shape = several_labels_shape(y_true)
    if shape is not None:
        if not multilabel:
            refuse_several_labels(y_true, shape)
        if shape[0] == 1:
            warn(
                f"y_true has shape {shape}, which is one sample with {shape[1]} labels:"
                " if they belong to different samples, pass y_true.ravel() and"
                " y_proba.ravel()."
            )
        scores, indicators, names = check_several_labels(
            y_true,
            y_proba,
            multiclass=multiclass,
            pos_label=pos_label,
            labels=labels,
        )
        sample_weight = check_sample_weight(sample_weight, len(scores))
        data = ScoredLabels(scores, indicators, sample_weight, names)
    else:
        data = _one_label_per_row(
            y_true, y_proba, multiclass, sample_weight, pos_label, labels
        )
    if drop and data.sample_weight is not None and data.sample_weight.min() <= 0:
        return data.at(data.kept)
    return data


def _usual_rows(y_true, y_proba):
    """Return the `ScoredLabels` of the most usual input: one probability of a row and
    the label 0 or 1, both as arrays of NumPy that need no change. None for any other
    input, be it valid or not: `check_scored_labels` then looks at it step by step.
    """
    is_vector = type(y_true) is np.ndarray and y_true.ndim == 1
    if not is_vector or y_true.dtype.char not in _WHOLE_NUMBERS:
        return None
    if not is_probability_vector(y_proba) or len(y_proba) != len(y_true):
        return None
    is_event = zero_one(y_true)
    if is_event is None:
        return None
    return ScoredLabels(y_proba, is_event, None, zero_one_classes(y_true.dtype))


def _one_label_per_row(y_true, y_proba, multiclass, sample_weight, pos_label, labels):
    """Return the `ScoredLabels` of a metric's input with one label per row, rows of
    weight zero included.

    `y_true` (n,), `y_proba` (n,) or (n, K), `sample_weight`, `pos_label` and `labels`
    (the labels of the columns) are as the user gave them, the last three perhaps None.
    """
    # 1. Arrays: scores that NumPy cannot read stay on their device.
    by_class = multiclass in ("marginal", "pooled")
    scores = device_scores(y_proba, rows_sum_to_one=not by_class)
    given_type = None
    if scores is None:
        scores, given_type = score_matrix(y_proba, "y_proba")
    # 2. Labels and weights. The labels of rows without weight are no classes.
    y_true = check_label_vector(y_true, None, name="y_true", scores_name="y_proba")
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, len(scores))
        y_true = with_counted_labels(
            y_true, sample_weight, scores, labels, name="y_true", labels_name="labels"
        )
    # 3. Scores: the columns of a table in the order of the classes that their names
    # say. A predicted class is found in the same pass, unless nothing needs it.
    names = names_of_scores(y_proba)
    if names is not None:
        refuse_repeated_names(y_proba, "y_proba")
        named = named_classes(
            names, y_true, labels, name="y_proba", y_name="y_true", labels_name="labels"
        )
        if named is not None:
            labels, order = named
            scores = reordered(scores, order)
    predicted = confidence = None
    if given_type is not None:  # scores of NumPy
        # the number of columns from which the predicted class is needed
        predict_from = 3 if multiclass == "auto" else 2
        if by_class:
            predict_from = np.inf
        scores, predicted, confidence = checked_probabilities(
            scores,
            given_type,
            name="y_proba",
            rows_sum_to_one=not by_class,
            predict_from=predict_from,
        )
    if len(y_true) != len(scores):
        raise other_length(y_true, len(scores), "y_true", "y_proba")
    refuse_swapped(y_true, scores, name="y_true", scores_name="y_proba")
    data = ScoredLabels(scores, y_true, sample_weight, labels, predicted, confidence)
    return _with_classes(data, multiclass, pos_label, given_type)


def _with_classes(data, multiclass, pos_label, given_type):
    """Return `ScoredLabels` with codes in place of valid labels, and with the classes
    in place of the user's `labels`. `given_type` names the type of the user's scores;
    None on a device.
    """
    scores, y_true, _, labels, *_ = data
    # 1. Several classes: the label of a row is the number of its column.
    n_columns = scores.shape[1]
    if n_columns > 2:
        if pos_label is not None:
            raise ValueError(
                f"pos_label={pos_label!r} does not apply to the {n_columns} columns of"
                " y_proba. For one class, pass its column and y_true =="
                f" {pos_label!r}."
            )
        classes, codes = encode_labels(
            y_true,
            n_columns,
            labels,
            name="y_true",
            classes_name="labels",
            column_numbers=True,
        )
        return data._replace(labels=codes, classes=classes)
    # 2. Two classes: `column` is that of the positive class in the scores.
    is_positive, classes, column = positive_class(y_true, n_columns, pos_label, labels)
    if n_columns == 2 and multiclass != "auto":
        # Both columns stay as they were given: 1 - s can lie in another bin, and
        # marginal rows need not sum to 1. A label is then the index of its column;
        # `classes` are (negative, positive), and are put into the order of the columns.
        if column == 0:
            classes = classes[::-1]
            codes = (~is_positive).astype(np.intp)
        else:
            codes = is_positive.astype(np.intp)
        return data._replace(labels=codes, classes=classes)
    # 3. One event: the scores are the column of the positive class.
    if n_columns == 1:
        if given_type is not None and given_type.startswith(("bool", "int", "uint")):
            hint_at_labels(scores[:, 0])
        if pos_label is None and labels is None:
            hint = f"say so: pos_label={classes[:1].tolist()[0]!r}."
            hint_at_event(scores[:, 0], is_positive, classes, hint)
    return ScoredLabels(scores[:, column], is_positive, data.sample_weight, classes)


def check_one_event(data, what):
    """Raise if `ScoredLabels` have more than two classes. `what` names the result that
    is about one event.
    """
    if not data.is_binary:
        raise ValueError(
            f"y_proba has {data.scores.shape[1]} columns, but {what} is about one"
            " event: pass the column of the event, and as y_true whether it happened."
        )


def check_score_column(scores, labels, sample_weight, *, labels_name, name="scores"):
    """Return validated scores (n,), boolean labels (n,) or None, and weights (n,) or
    None, without the rows of weight zero. Labels must be 0 and 1 or booleans.
    """
    scores = check_scores(scores, name=name)
    if scores.shape[1] != 1:
        raise ValueError(
            f"{name} must be one column, the scores of one event, found"
            f" {scores.shape[1]} columns."
        )
    scores = scores[:, 0]
    if labels is not None:
        labels = check_label_vector(
            labels, len(scores), name=labels_name, scores_name=name
        )
        refuse_swapped(labels, scores, name=labels_name, scores_name=name)
        labels = zero_one(labels)
        if labels is None:
            raise ValueError(
                f"{labels_name} must be 0 and 1, or booleans: compare them with the"
                " positive label first."
            )
    sample_weight = check_sample_weight(sample_weight, len(scores))
    return drop_zero_weight(sample_weight, scores, labels)


def expand_soft_labels(
    scores: ArrayLike, soft_labels: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expand labels that are distributions into weighted samples with one label each.

    A sample that three of four annotators call an event becomes two samples with the
    same score: an event with weight .75 and a non-event with weight .25. Any `fit`,
    metric or display accepts the three arrays.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, K)
        Scores: probabilities or logits.
    soft_labels : array-like of shape (n,), (n, 2) or (n, K)
        The distribution of each sample's label: the probability of the event, or one
        column for each class. Rows sum to 1.
    sample_weight : array-like of shape (n,), default=None
        Weights of the samples.

    Returns
    -------
    scores : ndarray of shape (m,) or (m, K)
        The scores, repeated for each label with positive probability.
    y : ndarray of int, shape (m,)
        Labels: the column indices of `soft_labels`, or 0 and 1 if it contains only
        probabilities of the event.
    sample_weight : ndarray of float64, shape (m,)
        The weight of each sample times the probability of its label.

    Raises
    ------
    ValueError
        If the distributions do not sum to 1, or if their shape does not match that of
        the scores.

    See Also
    --------
    skcalib.TemperatureScaling : Can be fitted to such samples.
    skcalib.metrics.calibration_error : A metric for such samples.

    Notes
    -----
    Estimates and fits are the same as those based on the distributions themselves. The
    samples from one distribution are not independent, so intervals and tests for the
    expanded samples need ``clusters``: ``np.arange(n)``, with each number repeated as
    often as its sample.

    Examples
    --------
    Three samples, for the second of which the annotators disagree:

    >>> from skcalib import PlattScaling, expand_soft_labels
    >>> scores, y, weight = expand_soft_labels([0.2, 0.6, 0.9], [0.0, 0.75, 1.0])
    >>> y.tolist(), weight.tolist()
    ([0, 0, 1, 1], [1.0, 0.25, 0.75, 1.0])
    >>> PlattScaling().fit(scores, y, sample_weight=weight).classes_.tolist()
    [0, 1]
    """
    soft_names = column_names(soft_labels)
    if len(soft_names) > 1:
        classes = np.array(soft_names, dtype=object)
        scores = in_order_of(
            scores, classes, name="scores", classes_name="the columns of soft_labels"
        )
    scores, _ = as_array(scores)
    soft = check_scores(soft_labels, name="soft_labels")
    if len(soft) != len(scores):
        raise ValueError(
            f"soft_labels has {len(soft)} rows but scores has {len(scores)}: their"
            " lengths must agree."
        )
    soft = soft.astype(np.float64)
    if soft.shape[1] == 1:
        soft = np.column_stack((1 - soft[:, 0], soft[:, 0]))
    n_columns = scores.shape[1] if scores.ndim == 2 else 1
    if soft.shape[1] != max(n_columns, 2):
        raise ValueError(
            f"soft_labels has {soft.shape[1]} classes but the scores have"
            f" {max(n_columns, 2)}."
        )
    weight = check_sample_weight(sample_weight, len(scores))
    row, label = np.nonzero(soft)
    label_weight = soft[row, label]
    if weight is not None:
        label_weight = label_weight * weight[row]
    return scores[row], label, label_weight


def hint_at_labels(scores):
    """Warn if scores (n,), which the user gave as integers or booleans, are 0 and 1:
    they may be predicted labels.

    Floats may be: a tree, or a recalibrator with pure bins, may predict only 0 and 1.
    """
    if len(scores) >= _FEW_ROWS and scores.min() < scores.max():
        warn(
            "y_proba is exactly 0 or 1 in every row, like predicted labels."
            " Calibration metrics need probabilities: pass predict_proba(X)[:, 1] if"
            f" these are labels.{see('predicted-labels')}"
        )


def hint_at_two_indices(**arguments):
    """Warn if two pandas objects of one length have different indices, since rows are
    matched by position. `arguments` are the user's, by name.

    An index in which labels occur twice does not name samples, and gives no warning.
    """
    indices = {}
    for name, argument in arguments.items():
        index = getattr(argument, "index", None)
        if hasattr(index, "equals"):
            indices[name] = index
    for (first, index), (second, next_index) in pairwise(indices.items()):
        are_names = index.is_unique and next_index.is_unique
        if len(index) == len(next_index) and are_names and not index.equals(next_index):
            warn(
                f"{first} and {second} have different indices. Rows are matched by"
                " position: bring them into the same order first, or pass .to_numpy()"
                f" if their rows already match.{see('indices')}"
            )
