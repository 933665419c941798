"""The input of a metric: scores with the labels and weights that belong to them."""

from typing import NamedTuple

import numpy as np

from skcalib._input.hints import hint_at_labels, hint_at_two_indices, refuse_swapped
from skcalib._input.labels import check_label_vector, encode_labels, shown, unique_labels, zero_one
from skcalib._input.scores import check_scores, checked_scores
from skcalib._input.weights import check_sample_weight


class ScoredLabels(NamedTuple):
    """Validated input of a metric.

    `scores` is (n,) with boolean `labels` (True = the positive class) for one score a row, else (n, K) with the column
    index of each label. Two columns are one score, that of the positive class, where `multiclass` is "auto". Rows of
    weight zero are gone; `sample_weight` is None or float64 (n,). `classes` holds the labels: (negative, positive)
    for one score, else in the order of the columns. `predicted` (n,) is the column of the first of the largest scores
    and `confidence` (n,) that score: None for one score per row and where `multiclass`
    is "marginal" or "pooled".
    """

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
    classes: np.ndarray
    predicted: np.ndarray | None = None
    confidence: np.ndarray | None = None

    @property
    def is_binary(self):
        """Whether the scores are those of one positive class."""
        return self.scores.ndim == 1

    @property
    def kept(self):
        """The indices of the rows of positive weight."""
        return np.arange(len(self.scores)) if self.sample_weight is None else np.flatnonzero(self.sample_weight)

    def at(self, rows):
        """Return the rows of an index."""
        by_row = {name: array for name, array in self._asdict().items() if name != "classes" and array is not None}
        return self._replace(**{name: array[rows] for name, array in by_row.items()})


def check_scored_labels(
    y_true, y_proba, *, multiclass="auto", sample_weight=None, pos_label=None, labels=None, drop=True
):
    """Validate the input of a metric; see `ScoredLabels`. With `drop=False` rows of weight zero are kept."""
    if y_proba is None:
        raise ValueError(
            f"y_proba must have shape (n,) or (n, n_classes), found None (), beside a {type(y_true).__name__}. "
            "This needs the score and the label of each row, of which a BinStatistics holds sums by bin only."
        )
    hint_at_two_indices(y_true=y_true, y_proba=y_proba, sample_weight=sample_weight)
    by_class = multiclass in ("marginal", "pooled")
    scores, *top = checked_scores(
        y_proba,
        name="y_proba",
        rows_sum_to_one=not by_class,
        predict_from=np.inf if by_class else 3 if multiclass == "auto" else 2,
    )
    y_true = check_label_vector(y_true, len(scores), name="y_true", scores_name="y_proba")
    sample_weight = check_sample_weight(sample_weight, len(scores))
    refuse_swapped(y_true, scores)
    if scores.shape[1] <= 2:
        codes, classes, column = _positive_class(y_true, scores.shape[1], pos_label, labels)
        if scores.shape[1] == 2 and multiclass != "auto":
            # Both columns as they were given: 1 - s can lie in another bin, and marginal rows need not sum to 1.
            classes, codes = (classes, codes) if column == 1 else (classes[::-1], ~codes)
            codes = codes.astype(np.intp)
        else:
            if scores.shape[1] == 1:
                hint_at_labels(y_proba, scores[:, 0])
            scores, top = scores[:, column], (None, None)
    else:
        if pos_label is not None:
            raise ValueError(f"pos_label={pos_label!r} has no meaning for the {scores.shape[1]} columns of y_proba.")
        classes, codes = encode_labels(y_true, scores.shape[1], labels, name="y_true", classes_name="labels")
    data = ScoredLabels(scores, codes, sample_weight, classes, *top)
    return data if sample_weight is None or not drop or sample_weight.min() > 0 else data.at(data.kept)


def check_one_event(data, what):
    """Raise for validated input of more than two classes."""
    if not data.is_binary:
        raise ValueError(
            f"y_proba has {data.scores.shape[1]} columns, and {what} is about one event: give the column of the event, "
            "and whether it happened as y_true."
        )


def check_score_column(scores, labels, sample_weight, *, labels_name, name="scores"):
    """Validate one column of `scores`, with labels 0 and 1 or None; return boolean labels, without weights of zero."""
    scores = check_scores(scores, name=name)
    if scores.shape[1] != 1:
        raise ValueError(f"{name} must be one column, those of one event, found {scores.shape[1]} columns.")
    scores = scores[:, 0]
    if labels is not None:
        labels = zero_one(check_label_vector(labels, len(scores), name=labels_name, scores_name=name))
        if labels is None:
            raise ValueError(f"{labels_name} must be 0 and 1 or booleans: compare them with the positive label first.")
    weight = check_sample_weight(sample_weight, len(scores))
    if weight is None or weight.min() > 0:
        return scores, labels, weight
    keep = weight > 0
    return scores[keep], None if labels is None else labels[keep], weight[keep]


def _positive_class(y_true, n_columns, pos_label, labels):
    """Return the boolean labels, the two classes (negative, positive) and the column of the positive class."""
    is_boolean = labels is None and y_true.dtype.kind == "b"
    positive = zero_one(y_true) if labels is None and pos_label is None else None
    if positive is not None and (is_boolean or (positive.any() and not positive.all())):
        return positive, np.array([False, True] if is_boolean else [0, 1]), n_columns - 1
    labels = [False, True] if is_boolean else labels
    if labels is not None:
        classes, codes = encode_labels(y_true, n_columns, labels, name="y_true", classes_name="labels")
    else:
        classes, codes = unique_labels(y_true, "y_true")
        if len(classes) > 2:
            columns = "one column" if n_columns == 1 else "two columns"
            raise ValueError(f"y_true has {len(classes)} classes but y_proba has {columns}. Give one column a class.")
        if len(classes) == 1:
            (label,) = classes.tolist()
            if n_columns == 2 or pos_label is None or label != pos_label:
                raise _one_label_only(label, pos_label)
            return codes == 0, np.array([None, pos_label], dtype=object), 0  # the other label is not known
    positive_code = 1 if pos_label is None else _position(pos_label, classes)
    return codes == positive_code, _negative_first(classes, positive_code), positive_code if n_columns == 2 else 0


def _one_label_only(label, pos_label):
    """Return the error for rows that all have one label, with the line to write."""
    label = int(label) if isinstance(label, float) else label  # fractions are no labels
    found = f"y_true has one class only ({label!r})"
    if pos_label is None or pos_label == label:
        known = {0: "[0, 1]", 1: "[0, 1]", -1: "[-1, 1]"}.get(label, f"[{label!r}, other] or labels=[other, {label!r}]")
        return ValueError(f"{found}. If that is meant, name both classes, sorted: labels={known}.")
    try:
        both = sorted([label, pos_label])
    except TypeError:
        return ValueError(f"{found}, which is of another type than pos_label={pos_label!r}.")
    return ValueError(f"{found}: no row has pos_label={pos_label!r}. If that is meant, name both: labels={both!r}.")


def _negative_first(classes, positive_code):
    return classes if positive_code == 1 else classes[::-1]


def _position(pos_label, classes):
    match = np.flatnonzero(classes == pos_label) if np.ndim(pos_label) == 0 else ()
    if len(match) != 1:
        raise ValueError(f"pos_label={pos_label!r} is not one of the labels {shown(classes)}.")
    return int(match[0])
