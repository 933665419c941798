"""Checks of labels and groups: a vector without a missing value, and the class of each
sample.
"""

from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from skcalib._input.tensors import as_array, first_index
from skcalib._input.warn import warn
from skcalib._rows.sorting import distinct_values


def check_groups(groups, n_samples, *, name="groups", scores_name="y_proba"):
    """Return the distinct groups, sorted, and the code (n_samples,) of each sample's
    group, its position among them; none may be missing.
    """
    groups = check_label_vector(groups, n_samples, name=name, scores_name=scores_name)
    return sorted_labels(groups, name)


def check_clusters(clusters, n_samples):
    """Return the code (n_samples,) of the cluster of each sample that is fitted to, or
    None without clusters; none may be missing.
    """
    if clusters is None:
        return None
    _, codes = check_groups(clusters, n_samples, name="clusters", scores_name="X")
    return codes


def sorted_labels(y, name):
    """Return the sorted distinct labels, and the code (n,) of each label."""
    try:
        classes, codes = distinct_values(y)
        if classes.dtype.kind == "O" and len(set(classes.tolist())) < len(classes):
            raise ValueError(
                f"{name} contains values without an order, such as"
                f" {shown(classes[:1])}: use strings."
            )
        return classes, codes
    except TypeError:
        kinds = sorted({type(value).__name__ for value in y})
        raise ValueError(
            f"{name} mixes labels of the types {', '.join(kinds)}: use only one type."
        ) from None


def several_labels_shape(y_true):
    """Return the shape of labels with two or more columns, or None for a vector.

    Such labels are scikit-learn's "multilabel-indicator" target. A single column counts
    as a vector.
    """
    if isinstance(y_true, (list, tuple)):
        first = y_true[0] if len(y_true) else None
        if np.ndim(first) != 1 or isinstance(first, (str, bytes)):
            return None
        shape = len(y_true), len(first)
    else:
        shape = getattr(y_true, "shape", ())
    if len(shape) != 2 or shape[1] < 2:
        return None
    return tuple(int(length) for length in shape)


def check_label_vector(y, n_samples, *, name, scores_name, may_be_missing=False):
    """Return labels as an array (n_samples,), or raise if one is missing and must not
    be. `name` and `scores_name` are the user's arguments, for errors. None is a number
    of samples that is checked later.
    """
    if y is None:
        raise ValueError(
            f"requires {name} to be passed, but the target {name} is None."
        )
    if sparse.issparse(y):
        raise TypeError(
            f"{name} must be a dense vector of class labels, found a sparse matrix."
        )
    y, _ = as_array(y, name)
    if y.ndim == 2 and y.shape[1] == 1:
        warn(
            f"A column-vector {name} was passed when a 1d array was expected: use"
            f" {name}.ravel().",
            DataConversionWarning,
        )
        y = y.ravel()
    if y.ndim != 1:
        held = f" that holds a {type(y[()]).__name__}" if y.ndim == 0 else ""
        cure = ""
        if name == "y" and y.ndim == 2:
            cure = (
                "For several labels per row, fit one classifier for each column of y."
            )
        raise no_vector(y, name, scores_name, f"{y.shape}{held}", cure)
    if n_samples is not None and len(y) != n_samples:
        raise other_length(y, n_samples, name, scores_name)
    if not y.dtype.isnative:
        y = y.astype(y.dtype.newbyteorder("="))
    if y.dtype.kind == "S":
        raise ValueError(
            f"Unknown label type: {name} contains bytes such as {shown(y[:1])}. Decode"
            " them to strings."
        )
    if may_be_missing or y.dtype.kind not in "fOmM":  # others have no missing value
        return y
    return _known_labels(y, name)


def _known_labels(y, name):
    """Return labels (n,) of a type that has missing values, or raise if one is."""
    missing = ~np.isfinite(y) if y.dtype.kind == "f" else missing_values(y)
    if missing.any():
        kinds = {"f": "NaN or infinity", "O": "a missing value (NaN)"}
        kind = kinds.get(y.dtype.kind, "a missing value (NaT)")
        row = first_index(missing)[0]
        raise ValueError(
            f"{name} contains {kind} in row {row}: the label of each row must be known."
            " Drop such rows."
        )
    return plain_labels(y)


def other_length(y, n_samples, name, scores_name):
    """Return the error for as many labels as there are no scores."""
    return ValueError(
        f"{name} has {len(y)} rows but {scores_name} has {n_samples}: their lengths"
        " must agree."
    )


def no_vector(y, name, scores_name, shape, cure=""):
    """Return the error for labels that are no vector. `shape` is that of `y` as text,
    and `cure` says what to do with several labels per row.
    """
    text = f"{name} should be a 1d array of labels, got an array of shape {shape}"
    y, _ = as_array(y)
    is_number = y.dtype.kind in "biuf"
    if y.ndim == 2 and len(y) == 1:
        cure = f"Pass {name}.ravel() if these are the labels of {y.size} rows."
    elif y.ndim == 2 and is_number and np.any((y > 0) & (y < 1)):
        cure = (
            "It holds probabilities: if these are the scores, pass them as"
            f" {scores_name}; for labels that are distributions, use"
            " skcalib.expand_soft_labels."
        )
    elif y.ndim == 2 and is_number and np.all((y != 0).sum(axis=1) == 1):
        cure = f"If each row has one class, pass {name}.argmax(axis=1). {cure}"
    return ValueError(f"{text} instead. {cure}".strip())


def missing_values(values):
    """Return which values of an array are missing: None, NaN, NaT and pandas.NA."""
    if values.dtype.kind == "O":
        return np.fromiter(map(_is_missing, values), bool, len(values))
    if values.dtype.kind in "fmM":
        return np.isnan(values)
    return np.zeros(len(values), dtype=bool)


def _is_missing(value):
    """Return whether a value is None or, as NaN and NaT, not equal to itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


def plain_labels(labels):
    """Return an object array of numbers or booleans as an array of their own type, any
    other array unchanged.
    """
    if labels.dtype.kind != "O" or not all(isinstance(label, Real) for label in labels):
        return labels
    return np.array(labels.tolist())


def shown(values, most=6):
    """Return the first `most` values as text, without the types of NumPy."""
    texts = []
    for value in values[:most]:
        if hasattr(value, "item"):  # a scalar of NumPy
            value = value.item()
        texts.append(repr(value))
    if len(values) > most:
        texts.append("...")
    return ", ".join(texts)
