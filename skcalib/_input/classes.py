"""Classes: which labels there are, which of them is the event, and which column of the
scores belongs to which class.

Metrics, fits, displays, scorers, monitors and tables all ask here.
"""

import re

import numpy as np
from sklearn.utils.multiclass import type_of_target

from skcalib._guide import see
from skcalib._input.labels import (
    check_label_vector,
    missing_values,
    plain_labels,
    shown,
    sorted_labels,
)
from skcalib._input.sklearn_private import safe_indexing
from skcalib._input.tensors import (
    as_array,
    column_names,
    first_index,
    refuse_repeated_names,
)
from skcalib._input.warn import warn
from skcalib._rows.blocks import row_blocks

# Up to this number of columns, each name is compared with each label.
_MOST_COMPARED = 100
_MOST_IN_MASK = 6  # labels that an error shows in code
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)(\.0*)?")
# For a label that is alone, both of its usual pair, as text.
_USUAL_PAIRS = {0: "[0, 1]", 1: "[0, 1]", -1: "[-1, 1]"}
_TRUTH = {"true": "1", "false": "0"}
UNLABELLED = -1  # marks samples without a label for semi-supervised classifiers
# By the scale of a recalibrator's scores: what to pass if its single column is that of
# the lesser label.
EVENT_HINTS = {
    "probability": "pass both columns here and later: np.column_stack((X, 1 - X)).",
    "logit": "pass -X here and later.",
}


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
        classes, codes = unique_labels(y, name, classes_name)
        is_number = (
            classes.dtype.kind in "iu" and classes[0] == 0 and classes[-1] < n_columns
        )
        are_some_absent = len(classes) < n_columns
        if column_numbers and n_columns > 2 and are_some_absent and is_number:
            # labels that are the column indices
            return np.arange(n_columns), classes[codes].astype(np.intp)
    else:
        classes = check_classes(classes, n_classes, classes_name)
        codes = _lookup(y, classes, name, classes_name)
    if len(classes) > n_classes:
        raise _too_many_labels(classes, codes, n_columns, None, name)
    if len(classes) == 1 and n_classes == 2:
        (label,) = classes.tolist()
        both = _USUAL_PAIRS.get(
            label, f"[{label!r}, other] or [other, {label!r}], sorted"
        )
        raise ValueError(
            f"{name} contains only the label {label!r}. If the other label merely does"
            f" not occur here, pass {classes_name}={both}."
        )
    if len(classes) < n_classes:
        raise ValueError(
            f"{name} has {len(classes)} class{'es' * (len(classes) > 1)}"
            f" ({shown(classes)}) but the scores have {n_classes} classes, and it is"
            " not clear which are missing: name the labels of all columns, sorted, with"
            f" {classes_name}=."
        )
    return classes, codes


def positive_class(y_true, n_columns, pos_label, labels):
    """Return whether each label is the positive class (n,), the two classes (negative,
    positive) as an array, and the column of the positive class in the scores.

    A single column is that of the positive class; of two columns, each is that of its
    label in sorted order. `pos_label` and `labels` are the user's arguments or None.
    """
    is_boolean = labels is None and y_true.dtype.kind == "b"
    if labels is None and pos_label is None:
        positive = zero_one(y_true)
        # Of 0 and 1, which name both classes, one alone may occur.
        if positive is not None:
            return positive, zero_one_classes(y_true.dtype), n_columns - 1
    if is_boolean:
        labels = [False, True]
    if labels is not None:
        classes, codes = encode_labels(
            y_true, n_columns, labels, name="y_true", classes_name="labels"
        )
    else:
        classes, codes = unique_labels(y_true, "y_true", "labels")
        if len(classes) > 2:
            raise _too_many_labels(classes, codes, n_columns, pos_label, "y_true")
        if len(classes) == 1:
            (label,) = classes.tolist()
            if n_columns == 2 or pos_label is None or label != pos_label:
                raise _one_label_only(label, pos_label)
            # All rows have the positive label, the only code; the other label is not
            # known.
            return codes == 0, np.array([None, pos_label], dtype=object), 0
    positive_code = 1
    if pos_label is not None:
        positive_code = _position(pos_label, classes)
    if positive_code == 0:
        classes = classes[::-1]  # (negative, positive)
    column = positive_code if n_columns == 2 else 0
    return codes == positive_code, classes, column


def unique_labels(y, name, labels_name=None):
    """Return the sorted classes of labels, and the code (n,) of each label; raise for
    values that are no class labels, and for texts that differ only in case or in blanks
    around them. The error proposes the user's argument `labels_name`, which lists all
    labels, for texts that are different labels; None if there is no such argument.
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
        hint = ""
        is_soft = classes.dtype.kind == "f" and classes[0] >= 0 and classes[-1] <= 1
        if is_soft:
            hint = (
                " If they are probabilities (soft labels), turn them into weighted"
                " samples with skcalib.expand_soft_labels."
            )
        raise ValueError(
            f"Unknown label type: {kind}. {name} must contain class labels, found"
            f" {shown(classes)}.{hint}"
        )
    if classes.dtype.kind in "OU":
        counts = np.bincount(codes, minlength=len(classes))
        refuse_look_alikes(classes.tolist(), counts, name, labels_name)
    return classes, codes


def refuse_look_alikes(labels, counts, name, labels_name=None):
    """Raise if texts among distinct labels differ only in case or in blanks around
    them. `counts` are the numbers of their rows, `name` is the user's argument with the
    labels, and `labels_name` the one that lists all distinct labels, or None.
    """
    first_of = {}  # the position of the first label of each spelling
    for k, label in enumerate(labels):
        if not isinstance(label, str):
            continue
        same = first_of.setdefault(label.strip().casefold(), k)
        if same == k:  # no label before it is written alike
            continue
        cure = ""
        column = name if name.isidentifier() else "column"
        if labels_name is not None:
            cure = f", or name all labels with {labels_name}= if they differ"
        raise ValueError(
            f"{name} has labels that differ only in case or in surrounding spaces:"
            f" {labels[same]!r} ({counts[same]:,} rows) and {label!r} ({counts[k]:,})."
            " Write them alike, for example with"
            f" pd.Series({column}).str.strip().str.lower(){cure}."
        )


def with_counts(labels, counts, most=6):
    """Return distinct labels and the numbers of their rows as text, the most frequent
    first.
    """
    order = np.argsort(-np.asarray(counts), kind="stable")
    texts = [f"{labels[k]!r} ({counts[k]:,})" for k in order[:most]]
    if len(labels) > most:
        texts.append("...")
    return ", ".join(texts)


def _too_many_labels(classes, codes, n_columns, pos_label, name):
    """Return the error for more classes than the scores have columns. It names the
    labels and, where it is known, the mask that leaves out the rows of other labels.
    """
    labels = classes.tolist()
    counts = np.bincount(codes, minlength=len(labels)).tolist()
    scores_name = {"y": "X", "y_true": "y_proba"}.get(name, "the scores")
    columns = "one column" if n_columns == 1 else f"{n_columns} columns"
    text = (
        f"{name} has {len(labels)} classes but {scores_name} has {columns}:"
        f" {with_counts(labels, counts)}. Pass one column per class"
    )
    if n_columns <= 2:
        # The two classes are taken to be the event (`pos_label`) and the most frequent
        # other label; -1, which often marks rows without a label, comes last.
        order = np.argsort(-np.asarray(counts), kind="stable")
        likely = sorted(order.tolist(), key=lambda k: labels[k] == -1)
        if pos_label in labels:
            likely.remove(labels.index(pos_label))
            likely.insert(0, labels.index(pos_label))
        two = [labels[k] for k in sorted(likely[:2])]
        mask = f"np.isin({name}, {two})"
    elif len(labels) == n_columns + 1 and -1 in labels:
        mask = f"{name} != -1"
    else:
        return ValueError(
            f"{text}, or leave out rows whose label has no column.{see('third-label')}"
        )
    return ValueError(
        f"{text}, or leave out rows with other labels: known = {mask}, then"
        f" {name}[known] and {scores_name}[known].{see('third-label')}"
    )


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
        is_one = np.equal(block, 1, out=positive[rows])  # writes into `positive`
        # As unsigned integers, negative numbers are large.
        if y.dtype.kind != "f":
            has_other = block.view(f"u{block.itemsize}").max() > 1
        else:
            n_zero_or_one = np.count_nonzero(is_one) + np.count_nonzero(block == 0)
            has_other = n_zero_or_one < len(block)
        if has_other:
            return None
    return positive


def zero_one_classes(dtype):
    """Return the classes (negative, positive) of labels of a type that are 0 and 1."""
    return np.array([False, True] if dtype.kind == "b" else [0, 1])


def _as_codes(positive):
    """Return booleans as the codes 0 and 1, a view without a copy. It is read-only,
    since the booleans may be the user's array.
    """
    codes = positive.view(np.int8)
    codes.flags.writeable = False
    return codes


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
            f"{name} names {len(classes)} label{'s' * (len(classes) != 1)} but the"
            f" scores have {n_classes} classes. Name the label of each column; a single"
            " column needs two, the event and the other label."
        )
    classes = plain_labels(classes)
    sorted_classes, codes = sorted_labels(classes, name)
    if not np.array_equal(sorted_classes, classes):
        raise ValueError(
            f"{name} must be sorted and unique, in the order of the columns, found"
            f" {shown(classes)}. {_order_hint(classes, sorted_classes, codes, name)}"
        )
    return classes


def _order_hint(classes, sorted_classes, codes, name):
    """Return what the user can do about labels of columns, `classes`, that are not
    sorted, or not unique; `codes` are their positions in `sorted_classes`.
    """
    if len(sorted_classes) < len(classes):
        return "Name each label once."
    if missing_values(classes).any():
        return "Missing values cannot be named."
    hint = f"Pass {name}={sorted_classes.tolist()}"
    if len(classes) > 2:
        return (
            f"{hint} and the columns in that order: scores[:,"
            f" {np.argsort(codes).tolist()}]."
        )
    return (
        f"{hint}, and two columns in this order; a single column belongs to the last"
        " label."
    )


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
        raise of_another_type(y, classes, name, classes_name) from None
    unknown = classes[codes] != y
    if unknown.any():
        row = first_index(unknown)[0]
        (label,) = y[row : row + 1].tolist()
        cure = "Leave out such rows, or name all labels and pass their columns."
        if len(classes) <= _MOST_IN_MASK:
            mask = f"known = np.isin({name}, {classes.tolist()})"
            cure = f"Leave out such rows ({mask}), or name all labels."
        for known in classes.tolist():
            if isinstance(label, str) and _loose_spelling(label) == _loose_spelling(
                known
            ):
                cure = (
                    f"It differs from {known!r} only in case or in surrounding spaces:"
                    " use one spelling, for example with"
                    f" pd.Series({name}).str.strip()."
                )
        raise ValueError(
            f"{name} has the unknown label {label!r} in row {row}; {classes_name} are"
            f" {shown(classes)}. {cure}"
        )
    return codes


def of_another_type(y, classes, name, classes_name):
    """Return the error for labels that are text where the classes are numbers, or the
    reverse.
    """
    return ValueError(
        f"{name} holds {shown(y[:1])}, which is of a different type from {classes_name}"
        f" {shown(classes)}. Write both as text or both as numbers."
    )


def _one_label_only(label, pos_label):
    """Return the error for a `y_true` whose rows all have the same label, while the
    other class is not known.

    It says what the user can write: `labels` with both classes. If the user named a
    `pos_label` that does not occur, both are known.
    """
    if isinstance(label, float):
        label = int(label)  # shown as 1, not 1.0
    found = f"y_true has one class only ({label!r})"
    if pos_label is None or pos_label == label:
        unusual = f"[{label!r}, other] or labels=[other, {label!r}]"
        labels = _USUAL_PAIRS.get(label, unusual)
        return ValueError(
            f"{found}. If this is intended, name both classes, sorted: labels={labels}."
        )
    try:
        both = sorted([label, pos_label])
    except TypeError:
        return ValueError(
            f"{found}, which is of a different type from pos_label={pos_label!r}. Write"
            " pos_label as the labels are written, and name both labels, sorted, with"
            " labels=."
        )
    return ValueError(
        f"{found}: no row has pos_label={pos_label!r}. If this is intended, name both:"
        f" labels={both!r}."
    )


def _position(pos_label, classes):
    """Return the position of the positive label among the classes, or raise."""
    match = ()
    if np.ndim(pos_label) == 0:
        match = np.flatnonzero(classes == pos_label)
    if len(match) != 1:
        hint = ""
        for label in classes.tolist():
            if str(label) == str(pos_label):
                hint = f" Write it as the labels are written: pos_label={label!r}."
        raise ValueError(
            f"pos_label={pos_label!r} is not one of the labels {shown(classes)}.{hint}"
        )
    return int(match[0])


def hint_at_event(scores, codes, classes, hint):
    """Warn if the event is only the greater label, such as 2 of 1 and 2 or a text, and
    has the lower scores: the user may mean the other label.

    `scores` are (n,), `codes` (n,) are 1 or True for the event, the second of the two
    `classes`, and `hint` says what to write. Of 0 and 1, -1 and 1, and booleans the
    event is known.
    """
    if len(classes) != 2 or classes.dtype.kind == "b":
        return
    other, event = classes.tolist()
    if event == 1 and other in (0, -1):
        return
    is_event = np.asarray(codes) == 1
    if is_event.all() or not is_event.any():
        return
    event_mean = scores[is_event].mean()
    other_mean = scores[~is_event].mean()
    if event_mean < other_mean:
        order = "the greater label"
        if isinstance(event, str):
            order = "the last label in alphabetical order"
        warn(
            f"The event is {event!r}, {order}, but its mean score, {event_mean:.3g}, is"
            f" below that of {other!r}, {other_mean:.3g}. If the scores are those of"
            f" {other!r}, {hint}{see('event')}"
        )


def uncounted_rows(y, sample_weight):
    """Return which samples have a label that occurs only with weight zero, (n,)
    booleans; None if there are none.

    Such samples are left out, and their labels are no classes. `y` (n,) are labels and
    `sample_weight` (n,) valid weights or None.
    """
    if sample_weight is None or sample_weight.min() > 0:
        return None
    is_counted = sample_weight > 0
    counted = y[is_counted]
    if y.dtype.kind == "O":
        # without an order, which labels of several types lack
        counted = np.fromiter(dict.fromkeys(counted.tolist()), dtype=object)
    else:
        counted = np.unique(counted)
    is_uncounted = ~np.isin(y, counted)
    if not is_uncounted.any():
        return None
    return is_uncounted


def with_counted_labels(y, sample_weight, scores, labels, *, name, labels_name):
    """Return labels (n,) in which those that occur only with weight zero are replaced:
    they define no class, and their samples are left out later.

    `sample_weight` is checked elsewhere, as are labels that have another shape. Nothing
    is replaced if the user's `labels` say which classes there are. `scores` may have so
    many columns that one must be that of a replaced label, which is an error.
    """
    if sample_weight is None or labels is not None:
        return y
    weight, _ = as_array(sample_weight)
    checked, _ = as_array(y)
    is_valid = weight.ndim == 1 and weight.dtype.kind in "biuf"
    if not is_valid or checked.shape != weight.shape or not np.any(weight > 0):
        return y
    if np.any(missing_values(checked)):
        return y
    is_uncounted = uncounted_rows(checked, weight)
    if is_uncounted is None:
        return y
    counted, codes = sorted_labels(checked[~is_uncounted], name)
    shape = np.shape(scores) if not hasattr(scores, "shape") else scores.shape
    if len(shape) == 2 and shape[1] > max(len(counted), 2):
        other = shown(np.array(list(dict.fromkeys(checked[is_uncounted].tolist()))))
        raise ValueError(
            f"{name} has rows of positive weight for only {len(counted)} classes"
            f" ({shown(counted)}), but the scores have {shape[1]} columns: leave out"
            f" the columns of {other}, or name the labels of all columns with"
            f" {labels_name}=."
        )
    replaced = checked.copy()
    replaced[is_uncounted] = counted[codes[0]]
    return replaced


def in_class_order(scores, y, labels, *, name, y_name, labels_name, columns=None):
    """Return scores whose columns are in the sorted order of the classes that their
    names say, and these classes.

    Scores without names of several columns, and those whose names say nothing, are
    returned unchanged, with the user's `labels`.

    Parameters
    ----------
    scores : array-like or table of shape (n, K)
        Scores as the user gave them.
    y : array-like of shape (n,)
        Labels as the user gave them.
    labels : array-like or None
        The user's labels of the columns. The names may give another order, but no
        other labels.
    name, y_name, labels_name : str
        The user's arguments, for messages.
    columns : list of int, default=None
        Positions of the columns that are scores; None means all.

    Returns
    -------
    scores : array-like or table
        The same kind of object.
    labels : array-like or None
        The sorted classes of the columns if the names are labels.
    """
    names = names_of_scores(scores, columns)
    if names is None:
        return scores, labels
    refuse_repeated_names(scores, name)
    y = check_label_vector(y, scores.shape[0], name=y_name, scores_name=name)
    named = named_classes(
        names, y, labels, name=name, y_name=y_name, labels_name=labels_name
    )
    if named is None:
        return scores, labels
    classes, order = named
    return reordered(scores, order, columns), classes


def named_classes(names, y, labels, *, name, y_name, labels_name):
    """Return the sorted classes that the names of columns of scores are, and the
    position of each class among the columns; None if the names are no labels.

    `y` (n,) are valid labels, and `labels` the user's labels of the columns or None.
    `name`, `y_name` and `labels_name` are the user's arguments for scores and both
    kinds of labels, for messages.
    """
    if labels is not None:
        return _named_as_given(names, labels, name, labels_name)
    found, _ = unique_labels(y, y_name, labels_name)
    named = classes_of_names(names, found, may_extend=True)
    if named is None:
        _warn_of_some_labels(names, found, name)
    return named


def in_order_of(scores, classes, *, name, classes_name):
    """Return scores whose columns are in the order of known `classes` if their names
    are these labels, else unchanged.

    Raise a ValueError if only some names are among the labels. The other arguments are
    for messages.
    """
    names = names_of_scores(scores)
    if names is None:
        return scores
    named = _named_as_given(names, classes, name, classes_name)
    if named is None:
        return scores
    sorted_classes, position = named
    # The classes of a classifier may have another order than the sorted one.
    order = position[np.searchsorted(sorted_classes, classes)]
    return reordered(scores, order)


def in_fitted_order(estimator, X, columns=None):
    """Return X with its columns of scores, all or those at the positions `columns`, in
    the order of the classes of a fitted recalibrator, if their names are the labels.
    """
    names = names_of_scores(X, columns)
    if names is None:
        return X
    # The columns of `fit`, whose names were read there.
    if np.array_equal(column_names(X), getattr(estimator, "feature_names_in_", None)):
        return X
    named = classes_of_names(names, estimator.classes_)
    if named is None:
        # Names that differ from those of `fit` are refused by scikit-learn.
        if not hasattr(estimator, "feature_names_in_"):
            _warn_of_some_labels(names, estimator.classes_, "X")
        return X
    _, order = named
    return reordered(X, order, columns)


def names_of_scores(scores, columns=None):
    """Return the names of the columns of scores, all or those at the positions
    `columns`, if they are at least two and have names; else None.
    """
    # An array has no names; a lazy table, which is refused elsewhere, has no shape.
    if isinstance(scores, np.ndarray) or len(getattr(scores, "shape", ())) != 2:
        return None
    names = column_names(scores)
    if names and columns is not None:
        names = [names[k] for k in columns]
    if len(names) < 2:
        return None
    return names


def classes_of_names(names, labels, *, may_extend=False):
    """Return the sorted classes that names of columns are, and the position of each
    class among the columns, (K,) each; None if the names are no labels.

    Names are labels as they are, or after a prefix and before a suffix that all have in
    common ("p_low", "P (class=low)"). Those that differ from the labels in case,
    surrounding blanks, or how a number is written are taken for them if no others are.

    Parameters
    ----------
    names : list
        Names of K columns.
    labels : ndarray
        Distinct labels.
    may_extend : bool, default=False
        Whether names may be labels, too, that do not occur among `labels`.
    """
    if len(names) < len(labels) or (len(names) > len(labels) and not may_extend):
        return None
    for spelling in (str, _loose_spelling):
        label_of = {spelling(label): label for label in labels.tolist()}
        texts = [spelling(name) for name in names]
        if len(label_of) < len(labels) or len(set(texts)) < len(texts):
            continue  # two are the same in this spelling
        texts = _without_affixes(texts, label_of)
        if texts is None:
            continue
        # Names beyond the labels that occur, which may be labels without a row.
        further = [text for text in texts if text not in label_of]
        if further and is_numbering(names):
            return None  # says nothing about labels of which some do not occur
        for text in further:
            label_of[text] = _further_label(text, labels, spelling)
        classes = [label_of[text] for text in texts]
        if None in classes:
            return None
        if labels.dtype.kind == "O":
            classes = np.array(classes, dtype=object)
        else:
            classes = np.array(classes)
        positions = np.argsort(classes)
        return classes[positions], positions
    return None


def _loose_spelling(value):
    """Return a label or the name of a column as text without what a file may change:
    case, blanks around it, and the decimals of a whole number; booleans are 0 and 1.
    """
    text = str(value).strip().casefold()
    number = _WHOLE_NUMBER.fullmatch(text)
    if number:
        return str(int(number[1]))
    return _TRUTH.get(text, text)


def _without_affixes(names, labels):
    """Return the names without a prefix and a suffix that all have in common, so that
    all labels are among what is left; None if there are no such affixes. All are texts;
    the affixes may be empty.
    """
    wanted = set(labels)
    if wanted <= set(names):
        return names
    # Some name holds this label, between the prefix and the suffix.
    longest = max(labels, key=len)
    for prefix, suffix in _affixes(names, longest):
        middles = [name[len(prefix) : len(name) - len(suffix)] for name in names]
        if wanted <= set(middles):
            return middles
    return None


def _affixes(names, label):
    """Return the pairs (prefix, suffix) that all names have and that surround the label
    in one of them.
    """
    pairs = []
    if not label:
        return pairs
    for name in names:
        # each place at which the label stands in the name
        start = name.find(label)
        while start >= 0:
            prefix = name[:start]
            suffix = name[start + len(label) :]
            length = len(prefix) + len(suffix)
            if all(
                len(other) > length
                and other.startswith(prefix)
                and other.endswith(suffix)
                for other in names
            ):
                pairs.append((prefix, suffix))
            start = name.find(label, start + 1)
    return pairs


def _further_label(text, labels, spelling):
    """Return the label that the name of a column stands for, of the type of `labels`;
    None if the text does not tell it.
    """
    if labels.dtype.kind in "iuf":
        number = _WHOLE_NUMBER.fullmatch(text)
        if number:
            return labels.dtype.type(number[1]).item()
        return None
    are_texts = all(isinstance(label, str) for label in labels.tolist())
    if are_texts and spelling is str:
        return text
    return None


def is_numbering(names):
    """Return whether names number the columns from 0 on, perhaps after a prefix: 0, 1,
    2 or "column_0", "column_1".
    """
    texts = [str(name) for name in names]
    prefix, found, suffix = texts[0].rpartition("0")
    if not found:
        return False
    return texts == [f"{prefix}{k}{suffix}" for k in range(len(texts))]


def _names_that_are_labels(names, labels):
    """Return the names that are labels, perhaps between a prefix and a suffix that all
    names have in common.
    """
    label_texts = {_loose_spelling(label) for label in labels.tolist()}
    texts = [_loose_spelling(name) for name in names]
    # Without such names, prefix and suffix are those by which most names are labels.
    most = [k for k, text in enumerate(texts) if text in label_texts]
    if not most and len(names) <= _MOST_COMPARED:
        for label in label_texts:
            for prefix, suffix in _affixes(texts, label):
                middles = [
                    text[len(prefix) : len(text) - len(suffix)] for text in texts
                ]
                matches = [k for k, text in enumerate(middles) if text in label_texts]
                most = max(most, matches, key=len)
    return [names[k] for k in most]


def _names_that_hold_labels(names, labels):
    """Return the names in which a label stands as a word of its own."""
    words = [re.escape(_loose_spelling(label)) for label in labels.tolist()]
    pattern = re.compile(rf"(?<![^\W_])({'|'.join(words)})(?![^\W_])")
    return [name for name in names if pattern.search(_loose_spelling(name))]


def _warn_of_some_labels(names, labels, name):
    """Warn if only some names of columns are labels: the columns are then taken by
    position. A numbering from 0 on gives no warning.
    """
    if is_numbering(names) or len(names) > _MOST_COMPARED:
        return
    some = _names_that_are_labels(names, labels)
    if not some:
        some = _names_that_hold_labels(names, labels)
    elif len(some) == len(names):
        return  # labels without a column are refused later
    if some:
        warn(
            f"The columns of {name} are named {shown(names)}, of which only"
            f" {shown(some)} are labels of {shown(labels)}: they are taken by position,"
            " in the sorted order of the labels. Rename the columns, or pass"
            f" {name}.to_numpy() if this is their order.{see('columns')}"
        )


def _named_as_given(names, labels, name, labels_name):
    """Return the sorted classes that names of columns are, and the position of each
    among the columns, if they are the user's `labels`; None if they are no labels.
    Raise a ValueError if they are other labels.
    """
    labels = plain_labels(np.asarray(labels))
    if labels.ndim != 1 or len(labels) != len(names):
        return None  # the number of columns is checked elsewhere
    named = classes_of_names(names, labels)
    if named is not None or is_numbering(names):
        return named
    some = _names_that_are_labels(names, labels)
    if some:
        other = next(column for column in names if column not in some)
        raise ValueError(
            f"The columns of {name} are named {shown(names)}, but {labels_name} are"
            f" {shown(labels)}: {other!r} is not one of them. Rename the columns, or"
            f" pass {name}.to_numpy() if they are in the order of the labels."
        )
    _warn_of_some_labels(names, labels, name)
    return None


def reordered(table, order, columns=None):
    """Return a table whose columns, all or those at the positions `columns`, are in the
    order of the positions `order` among them.
    """
    if np.array_equal(order, np.arange(len(order))):
        return table
    positions = order
    if columns is not None:
        positions = np.arange(table.shape[1])
        positions[columns] = np.asarray(columns)[order]
    positions = positions.tolist()
    if hasattr(table, "column_names"):  # an Arrow table
        return table.select(positions)
    return safe_indexing(table, positions, axis=1)
