"""The rows of a fit whose scores are a tensor: validated where they are, so that only
labels and weights come to the processor.
"""

import numpy as np
from sklearn.utils.validation import validate_data

from skcalib._input.classes import EVENT_HINTS, encode_labels, hint_at_event
from skcalib._input.labels import check_label_vector
from skcalib._input.scores import check_sample_weight
from skcalib._input.tensors import as_array, dispatched_namespace, like
from skcalib._rows.blocks import taken
from skcalib._rows.links import LARGEST_GAP
from skcalib._solvers.sums import cast, chosen, true_entries, working_dtype
from skcalib.maps._tensors import are_valid_logits, valid_probabilities


def fits_tensors(recalibrator):
    """Return whether a recalibrator fits and predicts where a tensor of scores is."""
    # Not inherited: the methods of a subclass may support NumPy arrays only.
    return "_fits_tensors" in vars(type(recalibrator))


def tensor_decisions(recalibrator, X):
    """Return the column (n,) of the largest score of each row of a tensor, as an array
    of NumPy; None if NumPy has to validate the scores.
    """
    xp, _ = dispatched_namespace(X)
    if xp is None or hasattr(recalibrator, "feature_names_in_"):
        return None
    scores = _valid_scores(X, xp, recalibrator.input)
    if scores is None or scores.shape[1] != recalibrator.n_features_in_:
        return None
    if scores.shape[1] > 1:
        return as_array(xp.argmax(scores, axis=1))[0]
    tie = 0.0 if recalibrator.input == "logit" else 0.5
    return as_array(xp.astype(scores[:, 0] > tie, xp.int64))[0]


def tensor_rows(recalibrator, X, y, sample_weight):
    """Validate what a fit is given, if the scores are a tensor, and set `classes_`.

    Returns
    -------
    rows : tuple or None
        The scores (n, C) as a tensor of float32 or float64, in which classes are marked
        as impossible; the column index of each label, and the weights or None, (n,)
        each and NumPy's. None if NumPy has to validate the rows: scores that are no
        tensor, or that may be refused or warned of.
    """
    xp, _ = dispatched_namespace(X)
    if xp is None:
        return None
    scores = _valid_scores(X, xp, recalibrator.input)
    if scores is None:
        return None
    n_rows, n_columns = scores.shape
    labels = check_label_vector(y, n_rows, name="y", scores_name="X")
    if labels.dtype.kind == "f" and np.any((labels > 0) & (labels < 1)):
        return None  # probabilities, or soft labels
    classes, codes = encode_labels(
        labels,
        n_columns,
        recalibrator.classes,
        name="y",
        classes_name="classes",
        column_numbers=True,
    )
    codes = codes.astype(np.intp, copy=False)  # indices of tensors are of this type
    weight = check_sample_weight(sample_weight, n_rows)
    is_used = np.ones(n_rows, dtype=bool) if weight is None else weight > 0
    if recalibrator.input == "logit" and n_columns > 1:
        is_impossible = scores < xp.max(scores, axis=1, keepdims=True) - LARGEST_GAP
        if xp.any(is_impossible):
            if xp.any(true_entries(is_impossible, like(scores, codes))):
                return None
            scores = _with_impossible_marked(scores, is_impossible, xp)
            is_used &= _has_several_possible_classes(is_impossible, is_used, xp)
    recalibrator.classes_ = classes
    recalibrator._remember_parameters()
    vars(recalibrator).pop("_has_wide_logits_", None)
    validate_data(recalibrator, scores, skip_check_array=True, reset=True)
    if n_columns == 1 and recalibrator.classes is None:
        column, _ = as_array(scores[:, 0])
        hint_at_event(column, codes, classes, EVENT_HINTS[recalibrator.input])
    if not is_used.all():
        scores = chosen(scores, np.flatnonzero(is_used))
        codes = codes[is_used]
        weight = taken(weight, is_used)
    return scores, codes, weight


def _valid_scores(X, xp, input):
    """Return the scores (n, C) of a tensor as float32 or float64; None for those that
    may be refused or warned of: NumPy's validation decides about them. `xp` is the
    tensor's namespace, `input` "probability" or "logit".
    """
    if not xp.isdtype(X.dtype, "real floating") or X.ndim not in (1, 2):
        return None
    if 0 in X.shape:
        return None
    if hasattr(X, "detach"):
        X = X.detach()  # without its gradient
    scores = xp.reshape(X, (X.shape[0], -1))
    name_of_dtype = str(X.dtype).rpartition(".")[2]
    dtype = working_dtype(scores)
    if xp.finfo(X.dtype).bits < 32:
        scores = cast(scores, dtype)
    if input == "probability":
        return valid_probabilities(scores, xp, name_of_dtype)
    if not are_valid_logits(scores, xp, scores.dtype):
        return None
    # These logits may be probabilities: NumPy's validation decides, and may warn.
    if xp.min(scores) >= 0 and xp.max(scores) <= 1:
        return None
    return scores


def _with_impossible_marked(scores, is_impossible, xp):
    """Return logits (n, C) with -inf for impossible classes; of two, 700 below the
    other, so that the log-odds stay finite.
    """
    if scores.shape[1] > 2:
        return xp.where(is_impossible, -np.inf, scores)
    largest = xp.max(scores, axis=1, keepdims=True)
    return xp.where(is_impossible, largest - LARGEST_GAP, scores)


def _has_several_possible_classes(is_impossible, is_used, xp):
    """Return whether each row (n,) has two possible classes or more, without which it
    shows nothing about calibration; True for all rows if no used row has.
    """
    n_impossible = xp.sum(xp.astype(is_impossible, xp.int32), axis=1)
    n_impossible, _ = as_array(n_impossible)
    has_several = n_impossible < is_impossible.shape[1] - 1
    if not (has_several & is_used).any():
        return np.ones(len(has_several), dtype=bool)
    return has_several
