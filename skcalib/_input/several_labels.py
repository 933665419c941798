"""Several labels per row (multilabel): an indicator matrix with a column for each
label, and probabilities of the same shape.
"""

import numpy as np
from scipy import sparse

from skcalib._input.classes import classes_of_names
from skcalib._input.device_scores import (
    DeviceLabels,
    device_scores,
    sums_of_rows,
)
from skcalib._input.labels import missing_values, no_vector, plain_labels, shown
from skcalib._input.scores import check_scores
from skcalib._input.tensors import as_array, column_names, first_index

# Largest distance of the sum of a row's scores from 1 with which they are taken for the
# probabilities of classes that exclude each other.
NORMALISED = 1e-2
_ONE_AT_A_TIME = (
    "For several labels per row, pass one column of y_true and of y_proba at a time."
)


def refuse_several_labels(y_true, shape):
    """Raise the error for labels of several columns, of this shape, in a function that
    takes one label per row.
    """
    if sparse.issparse(y_true):
        raise TypeError(
            "y_true must be a dense vector of class labels, found a sparse matrix."
        )
    raise no_vector(y_true, "y_true", "y_proba", shape, _ONE_AT_A_TIME)


def check_several_labels(y_true, y_proba, *, multiclass, pos_label, labels):
    """Validate several labels per row.

    Parameters
    ----------
    y_true : array-like or sparse array of shape (n, L)
        1 where a row has a label, else 0.
    y_proba : array-like of shape (n, L), or list of L arrays of shape (n, 2)
        The probability of each label. A list is what `predict_proba` of scikit-learn's
        `MultiOutputClassifier`, forests, trees and neighbours returns.
    multiclass : str
        Labels are judged one by one: "auto" or "marginal".
    pos_label : None
        The event is that a row has the label.
    labels : array-like of shape (L,) or None
        Names of the labels; None takes those of the columns, or numbers.

    Returns
    -------
    scores : ndarray or DeviceScores of shape (n, L)
        The probabilities, which stay on a device if the labels are there as well.
    indicators : ndarray of bool or DeviceLabels, shape (n, L)
        Which labels the rows have.
    names : ndarray of shape (L,)
        Names of the labels, in the order of the columns.

    Raises
    ------
    ValueError
        For shapes that differ, values other than 0 and 1, options that have no meaning
        here, and rows of one label and probabilities that sum to 1, which may also be
        classes.
    """
    if isinstance(multiclass, str) and multiclass not in ("auto", "marginal"):
        raise ValueError(
            f"multiclass={multiclass!r} is for mutually exclusive classes, but y_true"
            ' has several labels per row: omit multiclass ("marginal" treats each'
            " label separately)."
        )
    if pos_label is not None:
        raise ValueError(
            f"pos_label={pos_label!r} does not apply to a y_true with several columns:"
            " the event is 1, meaning that a row has the label."
        )
    scores = device_scores(y_proba, rows_sum_to_one=False)
    indicators = None
    if scores is not None:
        indicators = DeviceLabels.beside(scores, y_true)
    if indicators is None:
        indicators = _indicators(y_true)
        if isinstance(y_proba, (list, tuple)) and np.ndim(y_proba[0]) == 2:
            y_proba = positive_columns(y_proba, indicators.shape[1])
        scores = check_scores(y_proba, name="y_proba", rows_sum_to_one=False)
    n_labels = indicators.shape[1]
    if scores.shape != indicators.shape:
        raise ValueError(
            f"y_true has shape {indicators.shape} and y_proba {scores.shape}: one"
            " column of probabilities is needed for each label."
        )
    if multiclass == "auto" and _is_one_hot(indicators, scores):
        raise ValueError(
            "y_true has one 1 in each row and the rows of y_proba sum to 1, as for"
            f" {n_labels} mutually exclusive classes: pass the classes,"
            " y_true.argmax(axis=1). If a row may have several of these labels, pass"
            ' multiclass="marginal".'
        )
    return scores, indicators, _names(y_true, y_proba, labels, n_labels)


def positive_columns(y_proba, n_labels):
    """Return the probabilities (n, L) of `n_labels` labels, for a list with an array
    (n, 2) for each: the probabilities that a row lacks the label, and that it has it.
    """
    if len(y_proba) != n_labels:
        raise ValueError(
            f"y_proba is a list of {len(y_proba)} arrays, and y_true has"
            f" {n_labels} columns: one array for each label is needed."
        )
    columns = []
    for number, part in enumerate(y_proba):
        values, _ = as_array(part)
        if values.ndim != 2 or values.shape[1] != 2:
            raise ValueError(
                f"y_proba[{number}] has shape {values.shape}, not (n, 2): a classifier"
                " fitted to one class only does not show which class it is. Pass an"
                " array (n, n_labels) with the probability of each label."
            )
        columns.append(values[:, 1])
    return np.column_stack(columns)


def _indicators(y_true):
    """Return whether each row has each label as booleans (n, L), or raise unless
    `y_true` holds 0 and 1.
    """
    if sparse.issparse(y_true):
        y_true = y_true.toarray()
    values, _ = as_array(y_true, "y_true")
    if values.dtype.kind == "O":
        missing = missing_values(values.ravel())
        if missing.any():
            row = int(np.argmax(missing)) // values.shape[1]
            raise ValueError(
                f"y_true contains a missing value (NaN) in row {row}: the label of each"
                " row must be known. Drop such rows."
            )
        values = plain_labels(values.ravel()).reshape(values.shape)
    if values.dtype.kind == "b":
        return values
    positive = values == 1
    other = ~(positive | (values == 0))
    if other.any():
        row, column = first_index(other)
        found = shown(values[row, column : column + 1])
        raise ValueError(
            "A y_true with several columns must contain 0 and 1 for whether a row has"
            f" each label, found {found} in row {row}. For mutually exclusive classes,"
            " y_true should be a 1d array of labels, got an array of shape"
            f" {values.shape} instead; if these are the scores, pass them as y_proba;"
            " for distributions of labels, use skcalib.expand_soft_labels."
        )
    return positive


def _is_one_hot(indicators, scores):
    """Return whether each row has one label, and probabilities that sum to 1."""
    if np.any(sums_of_rows(indicators) != 1):
        return False
    return bool(np.all(np.abs(sums_of_rows(scores) - 1) < NORMALISED))


def _refuse_other_order(label_columns, other, fix, name="y_proba"):
    """Raise if the names of the columns of y_true, and those of another table or list,
    `name`, are the same labels in another order; `fix` shows what to write.
    """
    if not label_columns:
        return
    named = classes_of_names(other, np.array(label_columns, dtype=object))
    if named is None:
        return
    # The label of each of the other columns.
    classes, positions = named
    label_of_other = np.empty(len(classes), dtype=object)
    label_of_other[positions] = classes
    if label_of_other.tolist() != label_columns:
        raise ValueError(
            f"The columns of y_true and {name} have the same names in a different"
            f" order: {shown(label_columns)} and {shown(other)}. Use the same order:"
            f" {fix}."
        )


def _names(y_true, y_proba, labels, n_labels):
    """Return the names of the labels (n_labels,): the user's `labels`, else the names
    of the columns, else 0, 1, ...
    """
    label_columns = column_names(y_true)
    score_columns = column_names(y_proba)
    _refuse_other_order(label_columns, score_columns, "y_proba[y_true.columns]")
    if labels is not None:
        labels = list(labels)
        fix = "labels=list(y_true.columns)"
        _refuse_other_order(label_columns, labels, fix, "labels")
    if labels is None:
        labels = label_columns or score_columns or range(n_labels)
    names = plain_labels(np.asarray(list(labels)))
    if names.shape != (n_labels,) or len(set(names.tolist())) < n_labels:
        raise ValueError(
            f"labels must name each of the {n_labels} columns of y_true once, found"
            f" {shown(names)}."
        )
    return names
