"""Checks of labels and groups: a vector without a missing value, and the class of each
sample.
"""

from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import type_of_target

from skcalib._input.scores import first_index, refuse_masked
from skcalib._input.tensors import as_array
from skcalib._input.warn import warn
from skcalib._rows.blocks import row_blocks


def check_groups(groups, n_samples, *, name="groups", scores_name="y_proba"):
    """Return the distinct groups, sorted, and the code (n_samples,) of each sample's
    group, its position among them; none may be missing.
    """
    groups = check_label_vector(groups, n_samples, name=name, scores_name=scores_name)
    return sorted_labels(groups, name)


def hint_at_alphabet(scores, codes, classes, hint):
    """Warn if the event is the last label in alphabetical order and has the lower
    scores: the user may mean the other label.

    `scores` are (n,), `codes` (n,) are 1 or True for the event, the second of the two
    `classes`, and `hint` says what to write.
    """
    if not isinstance(classes[1], str):
        return
    is_event = np.asarray(codes) == 1
    if is_event.all() or not is_event.any():
        return
    event_mean = scores[is_event].mean()
    other_mean = scores[~is_event].mean()
    if event_mean < other_mean:
        other, event = (str(label) for label in classes)
        warn(
            f"The event is {event!r}, the last label in alphabetical order, but"
            f" its scores are lower: {event_mean:.3g} on average, those of {other!r}"
            f" {other_mean:.3g}. If the scores are those of {other!r}, {hint}"
        )


def encode_labels(y, n_columns, classes, *, name, classes_name, column_numbers=False):
    """Return the sorted classes, one per column, and the column index (n,) of each
    label.

    One column stands for two classes. Without `classes` each column must occur among
    the labels, since otherwise it is not known which label a column belongs to. With
    `column_numbers`, and more than two columns, labels that are integers from 0 to
    n_columns - 1 are taken as column indices even if some do not occur. `name` and
    `classes_name` are the user's arguments, for errors.
    """
    n_classes = max(n_columns, 2)
    if classes is None:
        classes, codes = unique_labels(y, name)
        is_number = (
            classes.dtype.kind in "iu" and classes[0] == 0 and classes[-1] < n_columns
        )
        are_some_absent = len(classes) < n_columns
        if column_numbers and n_columns > 2 and are_some_absent and is_number:
            return np.arange(n_columns), classes[codes].astype(np.intp)
    else:
        classes = check_classes(classes, n_classes, classes_name)
        codes = _lookup(y, classes, name, classes_name)
    if len(classes) > n_classes:
        columns = "one column" if n_columns == 1 else f"{n_columns} columns"
        raise ValueError(
            f"{name} has {len(classes)} classes but the scores have {columns}. Give one"
            " column for each class. Reshape your data: X.reshape(1, -1) if it is a"
            " single row."
        )
    if len(classes) < n_classes:
        raise ValueError(
            f"{name} has {len(classes)} class{'es' * (len(classes) > 1)}"
            f" ({shown(classes)}) but the scores those of {n_classes} classes. It is"
            " not clear which columns are missing: name the labels of all columns with"
            f" {classes_name}=."
        )
    return classes, codes


def zero_one(y):
    """Return labels (n,) that are all 0 and 1 as booleans, without sorting them; None
    for other labels.
    """
    if y.dtype.kind == "b":
        return y
    if y.dtype.kind not in "iuf":
        return None
    positive = np.empty(len(y), dtype=bool)
    for rows in row_blocks(len(y)):
        block = y[rows]
        is_one = positive[rows]  # a view
        np.equal(block, 1, out=is_one)
        if y.dtype.kind == "f":
            n_zero_or_one = np.count_nonzero(is_one) + np.count_nonzero(block == 0)
            has_other = n_zero_or_one < len(block)
        else:
            # As unsigned integers, negative numbers are large.
            has_other = block.view(f"u{block.itemsize}").max() > 1
        if has_other:
            return None
    return positive


def _as_codes(positive):
    """Return booleans as the codes 0 and 1, a view without a copy. It is read-only,
    since the booleans may be the user's array.
    """
    codes = positive.view(np.int8)
    codes.flags.writeable = False
    return codes


def unique_labels(y, name):
    """Return the sorted classes of labels, and the code (n,) of each label; raise for
    values that are no class labels.
    """
    # Booleans, and integers that are 0 and 1, need no sort.
    positive = zero_one(y) if y.dtype.kind in "biu" else None
    if positive is not None and positive.any() and not positive.all():
        return np.array([0, 1]).astype(y.dtype), _as_codes(positive)
    classes, codes = sorted_labels(y, name)
    # What kind of target scikit-learn takes the labels for, or why for none.
    try:
        kind = type_of_target(classes, input_name=name)
    except (TypeError, ValueError) as error:
        kind = str(error)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. {name} must contain class labels, found"
            f" {shown(classes)}."
        )
    return classes, codes


def sorted_labels(y, name):
    """Return the sorted distinct labels, and the code (n,) of each label."""
    if y.dtype.kind in "iu" and len(y) and int(y.max()) - int(y.min()) < len(y):
        # Integers within a range shorter than their number are counted, which takes a
        # fifth of the time of sorting 50,000 labels. Differences may overflow, and are
        # right as unsigned integers.
        offset = (y - y.min()).view(f"u{y.itemsize}").astype(np.intp)
        is_seen = np.bincount(offset) > 0
        labels = np.flatnonzero(is_seen).astype(y.dtype) + y.min()
        code_of_offset = np.cumsum(is_seen) - 1
        return labels, code_of_offset[offset]
    try:
        classes, codes = np.unique(y, return_inverse=True)
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


def check_classes(classes, n_classes, name):
    """Return the labels of the columns of scores, or raise unless they are sorted and
    as many as the columns.
    """
    classes = np.asarray(classes)
    if classes.ndim != 1:
        raise ValueError(
            f"{name} must be a list of labels, found shape {classes.shape}."
        )
    if len(classes) != n_classes:
        raise ValueError(
            f"{name} names {len(classes)} labels but the scores have {n_classes}"
            " classes."
        )
    classes = plain_labels(classes)
    if not np.array_equal(sorted_labels(classes, name)[0], classes):
        raise ValueError(
            f"{name} must be sorted and unique, in the order of the columns, found"
            f" {shown(classes)}. Reorder the columns of the scores as in scikit-learn."
        )
    return classes


def _lookup(y, classes, name, classes_name):
    """Return the code (n,) of each label among sorted classes, or raise at the first
    one that is none of them.
    """
    if y.dtype.kind == classes.dtype.kind == "b" and len(classes) == 2:
        return _as_codes(y)
    kinds = (y.dtype.kind, classes.dtype.kind)
    is_text = [kind in "US" for kind in kinds]
    try:
        # NumPy compares text and numbers as text: that would find labels by chance.
        if is_text[0] != is_text[1] and "O" not in kinds:
            raise TypeError
        # Labels beyond the last class get its code; they are refused below.
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    except TypeError:
        raise ValueError(
            f"{name} holds {shown(y[:1])}, which is of another type than {classes_name}"
            f" {shown(classes)}."
        ) from None
    unknown = classes[codes] != y
    if unknown.any():
        row = first_index(unknown)[0]
        label = shown(y[row : row + 1])
        raise ValueError(
            f"{name} has the unknown label {label} in row {row}; {classes_name} are"
            f" {shown(classes)}."
        )
    return codes


def several_labels_shape(y_true):
    """Return the shape of labels with two or more columns, or None for a vector.

    Such labels are scikit-learn's "multilabel-indicator" target. A single column counts
    as a vector.
    """
    if sparse.issparse(y_true):
        shape = y_true.shape
    elif isinstance(y_true, (list, tuple)):
        first = y_true[0] if len(y_true) else None
        if np.ndim(first) != 1 or isinstance(first, (str, bytes)):
            return None
        shape = len(y_true), len(first)
    else:
        shape = getattr(y_true, "shape", ())
    if len(shape) != 2 or shape[1] < 2:
        return None
    return tuple(int(length) for length in shape)


def check_label_vector(y, n_samples, *, name, scores_name):
    """Return labels as an array (n_samples,), or raise if one is missing. `name` and
    `scores_name` are the user's arguments, for errors.
    """
    y = label_vector(y, n_samples, name=name, scores_name=scores_name)
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


def label_vector(y, n_samples, *, name, scores_name):
    """Return labels as an array (n_samples,), in which values may be missing."""
    if y is None:
        raise ValueError(
            f"requires {name} to be passed, but the target {name} is None."
        )
    if sparse.issparse(y):
        raise TypeError(
            f"{name} must be a dense vector of class labels, found a sparse matrix."
        )
    refuse_masked(y, name)
    y, _ = as_array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warn(
            f"A column-vector {name} was passed when a 1d array was expected: use"
            f" {name}.ravel().",
            DataConversionWarning,
        )
        y = y.ravel()
    if y.ndim != 1:
        held = f" that holds a {type(y[()]).__name__}" if y.ndim == 0 else ""
        raise ValueError(
            f"{name} should be a 1d array of labels, got an array of shape"
            f" {y.shape}{held} instead."
        )
    if len(y) != n_samples:
        raise ValueError(
            f"{name} has {len(y)} rows but {scores_name} has {n_samples}: their lengths"
            " must agree."
        )
    if not y.dtype.isnative:
        y = y.astype(y.dtype.newbyteorder("="))
    if y.dtype.kind == "S":
        raise ValueError(
            f"Unknown label type: {name} contains bytes such as {shown(y[:1])}. Decode"
            " them to strings."
        )
    return y


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


def check_targets(y, n_samples):
    """Validate the `y` of a recalibrator; return a vector of labels."""
    return check_label_vector(y, n_samples, name="y", scores_name="X")


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
