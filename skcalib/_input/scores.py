"""Checks of scores and weights: real numbers in rows and columns, probabilities inside
[0, 1] that sum to 1.
"""

import re

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from skcalib._guide import see
from skcalib._input.classes import in_fitted_order
from skcalib._input.device_scores import device_scores
from skcalib._input.limits import MAX_MAGNITUDE, ROUNDING
from skcalib._input.scalars import as_numbers, first_string
from skcalib._input.tensors import (
    as_array,
    first_index,
    refuse_repeated_names,
)
from skcalib._input.warn import warn
from skcalib._rows.blocks import inside_unit_interval, row_blocks, taken

_FIRST_ROWS = 64  # rows that are looked at before all are
# With at least this many rows, logits that all lie in [0, 1] give a warning: among
# fewer that may be chance.
_TELLING_ROWS = 20

_LARGE_LOGIT = 20
_PERCENT = re.compile(r"\s*[+-]?[\d.,\s]*\d\s*%\s*")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*")

_LOGIT_HINT = (
    'For a decision function or logits, set input="logit". If X holds features, put'
    " CrossFittedClassifier(classifier) before this step to turn them into scores."
)


def only_zero_and_one(scores):
    """Return whether all scores are 0 or 1."""
    # The first rows mostly show that they are not.
    for values in (scores[:_FIRST_ROWS], scores):
        values = np.asarray(values)
        if not np.all((values == 0) | (values == 1)):
            return False
    return True


def refuse_swapped(y, scores, *, name, scores_name):
    """Raise if the labels `y` look like probabilities and the scores like labels. The
    names are those of the user's arguments: labels that are called "y" come after the
    scores, others before them.
    """
    if y.dtype.kind != "f" or not only_zero_and_one(scores):
        return
    between = (y > 0) & (y < 1)
    if between.any() and y.min() >= 0 and y.max() <= 1:
        row = int(np.argmax(between))
        order = [name, scores_name]
        if name == "y":
            order = ["the scores", "y"]
        raise ValueError(
            f"{name} contains probabilities (row {row} is {y[row]:.6g}) and"
            f" {scores_name} contains only 0 and 1: the arguments are swapped. Pass"
            f" {order[0]} first, then {order[1]}."
        )


def check_scores(scores, *, name, input="probability", rows_sum_to_one=True):
    """Return scores as float32 or float64 of shape (n, C): finite and, as
    probabilities, inside [0, 1].
    """
    checked, _, _ = checked_scores(
        scores, name=name, input=input, rows_sum_to_one=rows_sum_to_one
    )
    return checked


def check_estimator_scores(estimator, X, *, input, reset):
    """Return the validated scores (n, C) that a recalibrator is given as `X`, and set
    (`reset`) or check its number and names of features.

    Columns whose names are the labels are put into the order of the classes. In `fit`,
    which knows the labels, this is done before (`in_class_order`).
    """
    if not reset:
        X = in_fitted_order(estimator, X)
    scores = check_scores(X, name="X", input=input)
    if not reset and scores.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {scores.shape[1]} features, but {type(estimator).__name__} is"
            f" expecting {estimator.n_features_in_} features as input: pass scores with"
            " the same number of columns as in fit. Reshape your data: X.reshape(1,"
            " -1) turns a vector into one row."
        )
    if reset and input == "logit":
        _warn_of_probabilities(scores)
    has_no_names = type(X) is np.ndarray and not hasattr(estimator, "feature_names_in_")
    if has_no_names and not reset:
        return scores
    refuse_repeated_names(X)
    # Values were checked above: scikit-learn records, or compares, only the number of
    # columns and, of a table, their names.
    has_names = hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2
    validate_data(
        estimator, X if has_names else scores, skip_check_array=True, reset=reset
    )
    return scores


def _warn_of_probabilities(scores):
    """Warn if logits (n, C) look like probabilities: all lie in [0, 1], and rows of
    several columns sum to 1.
    """
    low = scores.min()
    high = scores.max()
    if len(scores) < _TELLING_ROWS or low == high or not (low >= 0 and high <= 1):
        return
    sums = ""
    if scores.shape[1] > 1:
        # Row sums that are farther from 1 would be refused as probabilities.
        tolerance, _ = ROUNDING[scores.dtype.name]
        if not np.abs(scores.sum(axis=1) - 1).max() <= tolerance:
            return
        sums = " and every row sums to 1"
    warn(
        'X looks like probabilities, but input="logit": every score is in [0,'
        f' 1]{sums}. If the scores are probabilities, set input="probability".'
    )


def checked_scores(
    scores,
    *,
    name,
    input="probability",
    rows_sum_to_one=True,
    predict_from=np.inf,
    may_stay=False,
):
    """Return the checked scores (n, C), and the predicted column of each row and its
    score, (n,) each; these two are None with fewer than `predict_from` columns.

    Probabilities must lie in [0, 1] and their rows sum to 1, unless `rows_sum_to_one`
    is False; logits must be finite, or -inf beside a finite one. The predicted column
    is the first of the largest ones. All is done in one pass, if they are valid. With
    `may_stay`, probabilities of several columns on a device that NumPy cannot read
    become `DeviceScores`.
    """
    if may_stay:
        on_device = device_scores(scores, rows_sum_to_one=rows_sum_to_one)
        if on_device is not None:
            top_label = (None, None)
            if on_device.shape[1] >= predict_from:
                top_label = on_device.top_label
            return on_device, *top_label
    matrix, given_type = score_matrix(scores, name)
    if input == "logit":
        return _check_range(matrix, name, input), None, None
    return checked_probabilities(
        matrix,
        given_type,
        name=name,
        rows_sum_to_one=rows_sum_to_one,
        predict_from=predict_from,
    )


def checked_probabilities(scores, given_type, *, name, rows_sum_to_one, predict_from):
    """Return the checked probabilities (n, C), and the predicted column of each row and
    its probability, (n,) each, or None with fewer than `predict_from` columns.

    `scores` (n, C) are float32 or float64, and `given_type` names the type that they
    had, which decides how much rounding is tolerated. `rows_sum_to_one` says whether
    the sums of rows are checked, and `name` is the user's argument, for messages.
    """
    # Row sums that are farther than `refused` from 1 are an error, those within
    # `untouched` are left as they are, and rows between are divided by their sum.
    refused, untouched = ROUNDING.get(given_type, ROUNDING["float64"])
    needs_sums = rows_sum_to_one and scores.shape[1] > 1
    predicts = scores.shape[1] >= predict_from
    summary = _row_summary(scores, needs_sums, predicts)
    if summary is None:
        # A score is outside [0, 1]: by rounding, which is undone, or it is an error.
        scores = _check_range(scores, name, "probability", refused)
        summary = _row_summary(scores, needs_sums, predicts)
    total, predicted, largest = summary
    if not needs_sums:
        return scores, predicted, largest
    total = _doubtful_in_double(total, scores, untouched)
    normalized = _normalize_rows(scores, total, name, refused, untouched)
    if normalized is not scores and predicted is not None:
        largest = np.take_along_axis(normalized, predicted[:, None], axis=1)[:, 0]
    return normalized, predicted, largest


def is_probability_vector(scores):
    """Return whether scores are an array (n,) of NumPy, of single or double precision,
    all of which are probabilities and no -0: `checked_scores` would change their shape
    alone.
    """
    return (
        type(scores) is np.ndarray
        and scores.ndim == 1
        and len(scores) > 0
        and scores.dtype.char in "fd"
        and scores.dtype.isnative
        and bool(inside_unit_interval(scores))
    )


def score_matrix(scores, name):
    """Return `scores` as float32 or float64 of shape (n, C), and the name of the type
    that they had. Their values are checked by `checked_probabilities`.
    """
    if sparse.issparse(scores):
        raise TypeError(
            f"{name} must be dense scores, found a sparse matrix. Convert it with"
            " .toarray()."
        )
    if hasattr(scores, "collect"):
        raise TypeError(
            f"{name} must be scores in memory, found a {type(scores).__name__}. Collect"
            " it first, or use skcalib.engines."
        )
    try:
        array, given_type = as_array(scores, name)
    except ValueError:
        if isinstance(scores, np.ndarray):  # it is masked
            raise
        raise ValueError(
            f"{name} must be a rectangular array of scores, found rows of different"
            " lengths."
        ) from None
    if array.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} must contain real scores, found"
            f" {array.dtype}."
        )
    if array.dtype.kind not in "biuf":
        array = _from_objects(array, name)
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} must have shape (n,) or (n, n_classes), found {array.shape}."
            " Reshape your data."
        )
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(
            f"{name} is empty: found array with {array.shape[0]} sample(s) and"
            f" {array.shape[1]} feature(s) (shape={array.shape}) while a minimum of 1"
            " is required."
        )
    is_single = array.dtype.itemsize <= 4 and array.dtype.kind == "f"
    return array.astype(np.float32 if is_single else np.float64, copy=False), given_type


def _from_objects(array, name):
    """Return an array of objects as float64, or raise an error that shows the first
    string.
    """
    problem = f"{name} must be numbers, found {array.dtype}"
    string = None
    if array.dtype.kind == "U" and array.size > 0:
        string = str(array.ravel()[0])
    elif array.dtype.kind == "O":
        string = first_string(array)
    if string is not None:
        raise ValueError(f"{problem} with the string {string!r}. {_text_hint(string)}")
    if array.dtype.kind != "O":
        raise ValueError(f"{problem}. Encode or drop columns that are not scores.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{problem} with values that are not: argument must be a string or a number"
            f" ({error})."
        ) from None


def _text_hint(text):
    """Return what to do about a score that is text."""
    if _PERCENT.fullmatch(text):
        comma = ""
        if "," in text:
            comma = '.str.replace(",", ".")'
        return (
            "It has a percent sign: remove it and divide by 100; for a column, use"
            f' pd.Series(column).str.rstrip(" %"){comma}.astype(float) / 100.'
        )
    if _DECIMAL_COMMA.fullmatch(text):
        return (
            'It has a decimal comma: read the file with decimal=",", or convert a'
            ' column with pd.Series(column).str.replace(",", ".").astype(float).'
        )
    try:
        float(text)
    except ValueError:
        return (
            "Encode or drop columns that are not scores; if these are the labels, the"
            " arguments are swapped."
        )
    return "Use .astype(float) to convert numbers stored as text."


def _row_summary(scores, add, predict):
    """Return three arrays (n,) in one pass over the scores: the sums of the rows (None
    unless `add`), the column of each row's largest score, and that score (None unless
    `predict`); None in place of all three if a score is not in [0, 1].

    Single precision is summed in it where rows are contiguous: `einsum` adds many
    partial sums, two to five times as fast as `sum`.
    """
    n = len(scores)
    dtype = scores.dtype if scores.flags.c_contiguous else np.float64
    total = None
    if add:
        total = np.empty(n, dtype)
    predicted = None
    largest = None
    if predict:
        predicted = np.empty(n, np.intp)
        largest = np.empty(n, scores.dtype)
    for rows in row_blocks(*scores.shape):
        block = scores[rows]
        if predict:
            # As unsigned integers, the bits of nonnegative floats have the order of the
            # floats. Those of negative ones, infinity and NaN are larger than any of
            # [0, 1].
            block.view(f"u{block.itemsize}").argmax(axis=1, out=predicted[rows])
            largest[rows] = block[np.arange(len(block)), predicted[rows]]
        elif not inside_unit_interval(block):
            return None
        if add and block.shape[1] == 2:  # a tenth of the time of `einsum`
            np.add(block[:, 0], block[:, 1], out=total[rows], dtype=dtype)
        elif add:
            np.einsum("nk->n", block, out=total[rows], dtype=dtype, casting="same_kind")
    # So a score outside [0, 1] is the largest of its row, and only the largest scores
    # need to be checked.
    if predict and not inside_unit_interval(largest):
        return None
    return total, predicted, largest


def _doubtful_in_double(total, scores, untouched):
    """Return row sums `total` (n,) of scores (n, C) as float64. Those that are not
    clearly within `untouched` of 1 in single precision are computed again in double
    precision.
    """
    if total.dtype == np.float64:
        return total
    total = total.astype(np.float64)
    # Half of the tolerance is left to the rounding of the sums themselves.
    doubtful = np.flatnonzero(np.abs(total - 1) > untouched / 2)
    for block in row_blocks(len(doubtful), scores.shape[1]):
        rows = doubtful[block]
        total[rows] = scores[rows].sum(axis=1, dtype=np.float64)
    return total


def _not_finite(scores, name, has_nan):
    """Return the error about the first score that is NaN or, without one, infinite."""
    if has_nan:
        row, _ = first_index(np.isnan(scores))
        found = "NaN"
    else:
        row, _ = first_index(~np.isfinite(scores))
        found = "infinity"
    return ValueError(
        f"{name} contains {found} in row {row}: every score must be finite. Drop or"
        " impute such rows."
    )


def _check_range(scores, name, input, refused=None):
    """Return the scores, or raise if one is not finite or out of range; probabilities
    that are outside [0, 1] by no more than `refused` become 0 or 1.
    """
    low = scores.min()
    high = scores.max()
    if input == "logit" and low == -np.inf and high < np.inf:
        # a logit of minus infinity: an impossible class
        is_impossible = np.isneginf(scores)
        none_possible = is_impossible.all(axis=1)
        if none_possible.any():
            (row,) = first_index(none_possible)
            raise ValueError(
                f"{name} contains only infinite values in row {row}: at least one"
                " class must be possible. Drop such rows."
            )
        low = scores.min(where=~is_impossible, initial=np.inf)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise _not_finite(scores, name, has_nan=np.isnan(low))
    if input == "logit":
        if float(max(-low, high)) > MAX_MAGNITUDE:
            is_large = (np.abs(scores) > MAX_MAGNITUDE) & np.isfinite(scores)
            row, column = first_index(is_large)
            raise ValueError(
                f"{name} contains the logit {scores[row, column]:.6g} in row {row}:"
                " rescale the logits."
            )
        return scores
    if low < -refused or high > 1 + refused:
        row, column = first_index((scores < -refused) | (scores > 1 + refused))
        hint = "Convert logits with scipy.special.expit or softmax first."
        if name == "X":
            hint = _LOGIT_HINT
        if low >= 0 and high <= 100:
            # Logits are rarely all positive, and rarely large.
            hint = f"Divide percentages by 100. {hint if high < _LARGE_LOGIT else ''}"
            hint = hint.strip()
        raise ValueError(
            f"{name} must contain probabilities in [0, 1], but row {row} is"
            f" {scores[row, column]:.6g}. {hint}{see('percent')}"
        )
    return np.clip(scores, 0, 1) + 0  # -0 becomes 0


def _normalize_rows(scores, total, name, refused, untouched):
    """Return the scores with rows that sum to 1, for the present sums `total` (n,).

    A row that is off by more than `refused` is an error; one off by no more than
    `untouched`, which is rounding, stays as it is. `total` is overwritten. `name` is
    that of the user's argument, for messages.
    """
    difference = np.abs(total - 1)
    worst = difference.max()
    if worst > refused:
        row = first_index(difference > refused)[0]
        hint = "Normalise them, or convert logits with scipy.special.softmax first."
        if name == "X":
            hint = _LOGIT_HINT
        if len(scores) == 1:
            hint = (
                f"If these are the scores of {scores.shape[1]} rows, not of one, pass"
                f" {name}.ravel(). {hint}"
            )
        raise ValueError(
            f"The rows of {name} must sum to 1, but row {row} sums to"
            f" {total[row]:.6g}. {hint}"
        )
    if worst > untouched:
        # A row within rounding stays as it is, so that a score on the edge of a bin
        # stays there.
        total[difference <= untouched] = 1
        total = total.astype(scores.dtype)
        if scores.shape[1] == 2:  # a column at a time takes a third of the time
            shares = np.empty_like(scores)
            np.divide(scores[:, 0], total, out=shares[:, 0])
            np.divide(scores[:, 1], total, out=shares[:, 1])
            return shares
        scores = scores / total[:, None]
    return scores


def normalized_again(scores, *, name):
    """Return probabilities (n, K) that were checked and then rounded with the sums of
    their rows that `check_scores` gives them.
    """
    total, _, _ = _row_summary(scores, add=True, predict=False)
    return _normalize_rows(scores, total, name, *ROUNDING["float64"])


def check_sample_weight(sample_weight, n_samples):
    """Return weights as float64 (n,), or None: finite, not negative, not all zero."""
    if sample_weight is None:
        return None
    weight, _ = as_array(sample_weight, "sample_weight")
    weight = as_numbers(weight, "sample_weight")
    if weight.ndim != 1 or len(weight) != n_samples:
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), found {weight.shape}."
        )
    low = weight.min()
    high = weight.max()
    if not (np.isfinite(low) and np.isfinite(high) and low >= 0):
        row = first_index(~np.isfinite(weight) | (weight < 0))[0]
        raise ValueError(
            f"sample_weight must be finite and not negative, but row {row} is"
            f" {weight[row]}."
        )
    if high == 0:
        raise ValueError(
            "sample_weight is zero in every row: at least one weight must be positive."
        )
    if not 1 / MAX_MAGNITUDE <= high <= MAX_MAGNITUDE:
        row = int(np.argmax(weight))
        raise ValueError(
            f"sample_weight is out of range: the largest, in row {row}, is {high}."
            " Rescale the weights."
        )
    return weight


def drop_zero_weight(sample_weight, *arrays):
    """Return the arrays, (n, ...) or None each, and last the weights, (n,) or None,
    without the samples of weight zero.
    """
    if sample_weight is None or sample_weight.min() > 0:
        return *arrays, sample_weight
    keep = sample_weight > 0
    return (
        *(taken(array, keep) for array in arrays),
        sample_weight[keep],
    )
