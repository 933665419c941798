"""What a fitted classifier says of samples, as scores with one column for each
class.
"""

import numpy as np

from skcalib._input.classes import in_order_of
from skcalib._input.scores import checked_scores
from skcalib._input.sklearn_private import num_samples
from skcalib._input.tensors import (
    as_array,
    dispatched_namespace,
    like,
    namespace_of,
)
from skcalib._rows.links import log_odds

# The columns of a decision function are not classes if the largest one is not the
# predicted class in more than this share of the rows and two rows more. Support vector
# machines break ties between votes otherwise than `predict` does: up to .15 of the rows
# were seen.
_LARGEST_SHARE_OFF = 0.25
_ROWS_OFF_BY_CHANCE = 2


def classifier_scores(
    model,
    X,
    classes,
    response_method,
    *,
    rows_sum_to_one=True,
    check_columns=False,
    keep_tensor=False,
):
    """Return a classifier's scores with one column for each of `classes`, or one column
    for a decision between two.

    This is the only place that asks a classifier for scores. A class that the model
    does not know gets probability 0, as a logit the row's smallest plus log(2^-52).

    Parameters
    ----------
    model : classifier
        A fitted classifier.
    X : array-like, sparse matrix or table
        Samples, in any container that the classifier accepts.
    classes : ndarray of shape (n_classes,)
        Sorted labels, among which are those of the classifier.
    response_method : {"predict_proba", "decision_function"}
        What the classifier is asked for.
    rows_sum_to_one : bool, default=True
        Whether rows of probabilities must sum to 1.
    check_columns : bool, default=False
        Whether the largest of more than two columns of a decision function is compared
        with what the classifier predicts.
    keep_tensor : bool, default=False
        Whether scores that are a tensor stay one, not yet validated, if its columns are
        those of `classes` and scikit-learn dispatches to the array API.

    Returns
    -------
    scores : array of float32 or float64, shape (n, 1) or (n, n_classes)
        The validated scores.
    """
    labels = _labels_of(model)
    is_logit = response_method == "decision_function"
    keep_tensor = keep_tensor and np.array_equal(labels, classes)
    scores = _response_scores(
        model, X, labels, response_method, rows_sum_to_one, keep_tensor
    )
    # From here on classes are sorted, also those in order of appearance.
    order = np.argsort(labels)
    if not isinstance(scores, np.ndarray):
        if check_columns and is_logit and len(labels) > 2:
            _check_columns_are_classes(scores, model, X, labels)
        return scores
    if not np.array_equal(order, np.arange(len(labels))):
        labels = labels[order]
        if scores.shape[1] > 1:
            scores = scores[:, order]
        elif is_logit:
            scores = -scores  # the decision for the other class
    if check_columns and is_logit and len(labels) > 2:
        _check_columns_are_classes(scores, model, X, labels)
    # A column for each class, also for those that the classifier does not know.
    if is_logit and len(labels) == 2:
        # Two logits whose difference is the log-odds of the single column.
        half = scores / 2
        scores = np.hstack([-half, half])
    scores = _with_absent_classes(scores, labels, classes, is_logit)
    if is_logit and len(classes) == 2:
        return scores[:, 1:] - scores[:, :1]  # one column again
    return scores


def _response_scores(model, X, labels, response_method, rows_sum_to_one, keep_tensor):
    """Return the validated scores of a classifier for the rows of X: a column for each
    of its `labels`, or one column for a decision between two. With `keep_tensor`,
    a tensor stays a tensor (n, C), and its values are not checked.
    """
    is_logit = response_method == "decision_function"
    name = f"{response_method} of {type(model).__name__}"
    response = getattr(model, response_method)(X)
    _check_columns(response, model, labels, response_method, is_logit)
    response = in_order_of(
        response,
        labels,
        name=name,
        classes_name=f"the classes_ of {type(model).__name__}",
    )
    xp, _ = dispatched_namespace(response)  # None unless it is a tensor
    if keep_tensor and xp is not None and response.shape[0] == num_samples(X):
        return xp.reshape(response, (response.shape[0], -1))
    scores, _, _ = checked_scores(
        response,
        name=name,
        input="logit" if is_logit else "probability",
        rows_sum_to_one=rows_sum_to_one,
    )
    # A model that was loaded from a JSON document has no classifiers: X holds their
    # scores, (n_pairs, n, C) for several, and so may differ in its number of rows.
    has_rows = not getattr(model, "_is_given_scores", False)
    if has_rows and len(scores) != num_samples(X):
        raise ValueError(
            f"{name} returned {len(scores)} rows for {num_samples(X)} rows of X: a"
            " classifier must return one row of scores for each."
        )
    if rows_sum_to_one and not is_logit:
        given, _ = as_array(response)
        if given.dtype.itemsize < 4:
            # Sums that are 1 up to the rounding of half precision are made 1 in double
            # precision.
            scores = scores / scores.sum(axis=1, keepdims=True, dtype=np.float64)
    return scores


def label_scores(model, X):
    """Return the probabilities (n, L) of L labels, of which a row may have several.

    A classifier gives them as an array (n, L), or as a list of L arrays with a column
    for each class of a label, 0 and 1 as in the list `classes_`. A label that all or no
    training samples had has one class, and one column.
    """
    response = model.predict_proba(X)
    if not isinstance(response, (list, tuple)):
        return response
    columns = []
    for proba, classes in zip(response, model.classes_, strict=True):
        proba, _ = as_array(proba)
        classes, _ = as_array(classes)
        if not np.isin(classes, (0, 1)).all():
            raise ValueError(
                f"The labels of {type(model).__name__} are not 0 and 1 but"
                f" {classes.tolist()}: several labels per row need an indicator matrix."
            )
        # The column of 1; no column, and the sum 0, if 0 is the only class.
        columns.append(proba[:, classes == 1].sum(axis=1))
    return np.column_stack(columns)


def _labels_of(model):
    """Return the `classes_` of a classifier (n_classes,), or raise if it has none."""
    labels = getattr(model, "classes_", None)
    if labels is None:
        raise TypeError(
            f"{type(model).__name__} has no classes_ after fit: a classifier must"
            " define the label of each column of its scores."
        )
    labels, _ = as_array(labels)
    if labels.ndim != 1:
        raise ValueError(
            f"classes_ of {type(model).__name__} has shape {labels.shape}: one label"
            " for each column is needed. Classifiers with several outputs have no"
            " single set of classes."
        )
    return labels


def _check_columns(response, model, labels, response_method, is_logit):
    """Raise unless the response of a classifier has one column for each of its labels,
    or one column for a decision function (`is_logit`) of two classes.
    """
    shape = np.shape(response) if not hasattr(response, "shape") else response.shape
    shape = tuple(shape)
    if is_logit and len(labels) == 2:
        fits = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
        wanted = (
            "this needs one column (the decision for the second of two classes) and at"
            " least two classes in the training part of every fold."
        )
    else:
        fits = len(shape) == 2 and shape[1] == len(labels)
        # A decision is one between two classes at least.
        fits = fits and (len(labels) > 1 or not is_logit)
        wanted = "this needs one column per class"
        if is_logit:
            wanted += " and at least two classes in the training part of every fold"
        wanted += "."
    if not fits:
        raise ValueError(
            f"{response_method} of {type(model).__name__} has shape {shape}, and it was"
            f" fitted on the classes {labels.tolist()}: {wanted}"
        )


def _check_columns_are_classes(scores, model, X, labels):
    """Raise if the largest column of a decision function, `scores` (n, n_classes), is
    often not that of the class that the `model` predicts for X.

    Columns may compare pairs of classes; with three classes there are three pairs.
    """
    if not hasattr(model, "predict"):
        return
    predicted, _ = as_array(model.predict(X))
    # The column of the predicted class; of several largest columns any may be it.
    position = np.searchsorted(labels, predicted).clip(0, len(labels) - 1)
    xp = namespace_of(scores)
    n_rows, n_columns = scores.shape
    place = like(scores, np.arange(n_rows) * n_columns + position)
    predicted_score = xp.take(xp.reshape(scores, (-1,)), place, axis=0)
    is_smaller, _ = as_array(predicted_score < xp.max(scores, axis=1))
    is_unknown = labels[position] != predicted
    n_off = int(np.count_nonzero(is_smaller | is_unknown))
    if n_off > _ROWS_OFF_BY_CHANCE + _LARGEST_SHARE_OFF * n_rows:
        raise ValueError(
            f"In {n_off} of {n_rows} rows, the largest value of decision_function of"
            f" {type(model).__name__} is not that of the predicted class: its columns"
            " are not scores of the classes. A support vector machine with"
            ' decision_function_shape="ovo" compares pairs of classes: use "ovr", or a'
            " classifier with predict_proba."
        )


def _with_absent_classes(scores, labels, classes, is_logit):
    """Return scores (n, n_labels) with a column for each of `classes`, also for those
    that are not among `labels`: 0, or a logit far below the others.
    """
    # The columns of the labels that the model knows.
    known = np.searchsorted(classes, labels)
    if np.array_equal(known, np.arange(len(classes))):
        return scores
    # The score of an absent class in each row, (n, 1).
    absent = np.zeros((len(scores), 1))
    if is_logit:
        smallest = scores.min(
            axis=1, keepdims=True, where=np.isfinite(scores), initial=np.inf
        )
        # log(2^-52), the log-odds of a clipped probability of 0
        absent = smallest + log_odds(np.zeros(1))
    columns = np.repeat(absent.astype(scores.dtype), len(classes), axis=1)
    columns[:, known] = scores
    return columns
