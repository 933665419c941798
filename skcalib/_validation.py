"""The single gate: every label, score and weight passes here, and nothing else imports private scikit-learn."""

import warnings
from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics._scorer import _BaseScorer as BaseScorer
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_params
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _num_samples as num_samples
from sklearn.utils.validation import validate_data

from skcalib._blocks import row_blocks

__all__ = [
    "BaseScorer",
    "HasMethods",
    "Interval",
    "ScoredLabels",
    "StrOptions",
    "check_estimator_scores",
    "check_groups",
    "check_feature_names_in",
    "check_method_params",
    "check_sample_weight",
    "check_scored_labels",
    "check_scores",
    "drop_zero_weight",
    "encode_labels",
    "num_samples",
    "safe_indexing",
    "safe_split",
    "validate_params",
]

# How far a probability or a row sum may be off by rounding: (refused beyond, left untouched within).
_ROUNDING = {"float16": (1e-2, 1e-3), "float32": (1e-3, 1e-6), "float64": (1e-6, 1e-12)}

# Larger logits, and weights that are larger or (the largest of them) smaller than the inverse, are refused: their
# squares and sums would leave the range of float64.
_MAX_MAGNITUDE = 1e100

_LOGIT_HINT = 'For a decision function or logits set input="logit".'


class ScoredLabels(NamedTuple):
    """Validated input of a metric.

    `scores` is (n,) with boolean `labels` (True = the positive class) for one score a row, else (n, K) with the column
    index of each label. Two columns are one score, that of the positive class, where `multiclass` is "auto". Rows of
    weight zero are gone; `sample_weight` is None or float64 (n,). `classes` holds the labels: (negative, positive)
    for one score, else in the order of the columns. `predicted` (n,) is the column of the first of the largest scores
    and `confidence` (n,) that score: None for one score a row and for `multiclass="marginal"`.
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
        return ScoredLabels(*(array if array is None or array is self.classes else array[rows] for array in self))


def check_scored_labels(
    y_true, y_proba, *, multiclass="auto", sample_weight=None, pos_label=None, labels=None, drop=True
):
    """Validate the input of a metric; see `ScoredLabels`. With `drop=False` rows of weight zero are kept."""
    scores, *top = _checked_scores(
        y_proba,
        name="y_proba",
        rows_sum_to_one=multiclass != "marginal",
        predict_from=np.inf if multiclass == "marginal" else 3 if multiclass == "auto" else 2,
    )
    y_true = _check_label_vector(y_true, len(scores), name="y_true", scores_name="y_proba")
    sample_weight = check_sample_weight(sample_weight, len(scores))
    if scores.shape[1] <= 2:
        codes, classes, column = _positive_class(y_true, scores.shape[1], pos_label, labels)
        if scores.shape[1] == 2 and multiclass != "auto":
            # Both columns as they were given: 1 - s can lie in another bin, and marginal rows need not sum to 1.
            classes, codes = (classes, codes) if column == 1 else (classes[::-1], ~codes)
            codes = codes.astype(np.intp)
        else:
            scores, top = scores[:, column], (None, None)
    else:
        if pos_label is not None:
            raise ValueError(f"pos_label={pos_label!r} has no meaning for the {scores.shape[1]} columns of y_proba.")
        classes, codes = encode_labels(y_true, scores.shape[1], labels, name="y_true", classes_name="labels")
    data = ScoredLabels(scores, codes, sample_weight, classes, *top)
    return data if sample_weight is None or not drop or sample_weight.min() > 0 else data.at(data.kept)


def check_estimator_scores(estimator, X, *, input, reset):
    """Validate what a recalibrator is given as `X` and record or compare its width; return scores (n, C)."""
    scores = check_scores(X, name="X", input=input)
    if not reset and scores.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {scores.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input: give it scores of the width that fit had. Reshape your data: X.reshape(1, -1) makes "
            "one row of a vector."
        )
    has_names = hasattr(X, "columns") and len(getattr(X, "shape", ())) == 2
    validate_data(estimator, X if has_names else scores, skip_check_array=True, reset=reset)
    return scores


def check_scores(scores, *, name, input="probability", rows_sum_to_one=True):
    """Return scores as float32 or float64 of shape (n, C): finite and, as probabilities, inside [0, 1]."""
    return _checked_scores(scores, name=name, input=input, rows_sum_to_one=rows_sum_to_one)[0]


def check_sample_weight(sample_weight, n_samples):
    """Return weights as float64 (n,), or None: finite, not negative, not all zero."""
    if sample_weight is None:
        return None
    _refuse_masked(sample_weight, "sample_weight")
    weight = np.asarray(sample_weight)
    if weight.dtype.kind not in "biufO" or (weight.dtype.kind == "O" and _first_string(weight) is not None):
        raise ValueError(f"sample_weight must be real numbers, found {weight.dtype}.")
    try:
        weight = weight.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be real numbers ({error}).") from None
    if weight.ndim != 1 or len(weight) != n_samples:
        raise ValueError(f"sample_weight must have shape ({n_samples},), found {weight.shape}.")
    low, high = weight.min(), weight.max()
    if not (np.isfinite(low) and np.isfinite(high) and low >= 0):
        row = _first(~np.isfinite(weight) | (weight < 0))[0]
        raise ValueError(f"sample_weight must be finite and not negative, but row {row} is {weight[row]}.")
    if high == 0:
        raise ValueError("sample_weight is zero in every row: at least one row must count.")
    if not 1 / _MAX_MAGNITUDE <= high <= _MAX_MAGNITUDE:
        row = int(np.argmax(weight))
        raise ValueError(f"sample_weight is out of range: the largest, in row {row}, is {high}. Rescale the weights.")
    return weight


def check_groups(groups, n_samples, *, scores_name="y_proba"):
    """Return the distinct groups, sorted, and the index of each row's group among them."""
    groups = _check_label_vector(groups, n_samples, name="groups", scores_name=scores_name)
    return _sorted_labels(groups, "groups")


def drop_zero_weight(sample_weight, *arrays):
    """Return the arrays and the weights without the rows of weight zero, which must change nothing."""
    if sample_weight is None or sample_weight.min() > 0:
        return *arrays, sample_weight
    keep = sample_weight > 0
    return *(array[keep] for array in arrays), sample_weight[keep]


def encode_labels(y, n_columns, classes, *, name, classes_name):
    """Return the sorted classes, one a column, and each label's column index.

    One column stands for two classes. Without `classes` every column must occur among the labels: which label a
    column belongs to would be a guess otherwise.
    """
    n_classes = max(n_columns, 2)
    if classes is None:
        classes, codes = _unique_labels(y, name)
    else:
        classes = _check_classes(classes, n_classes, classes_name)
        codes = _lookup(y, classes, name, classes_name)
    if len(classes) > n_classes:
        if n_columns > 1:
            raise ValueError(f"{name} has {len(classes)} classes but the scores have {n_columns} columns, one a class.")
        raise ValueError(
            f"{name} has {len(classes)} classes but the scores have one column. Give one column a class. Reshape your "
            "data: X.reshape(1, -1) if it is a single row."
        )
    if len(classes) < n_classes:
        raise ValueError(
            f"{name} has {_count(len(classes), 'class', 'classes')} ({_shown(classes)}) but the scores are those of "
            f"{n_classes} classes. Which columns are missing cannot be told: name the labels of all columns with "
            f"{classes_name}=."
        )
    return classes, codes


def _positive_class(y_true, n_columns, pos_label, labels):
    """Return the boolean labels, the two classes (negative, positive) and the column of the positive class."""
    positive = _zero_one(y_true) if labels is None and pos_label is None else None
    if positive is not None:
        if y_true.dtype.kind != "b" and (positive.all() or not positive.any()):
            raise ValueError(
                f"y_true has one class only ({_shown(y_true[:1])}). If that is meant, say which classes there are with "
                "labels=, for example labels=[0, 1]."
            )
        return positive, np.array([False, True] if y_true.dtype.kind == "b" else [0, 1]), n_columns - 1
    if labels is not None or n_columns == 2:
        classes, codes = encode_labels(y_true, n_columns, labels, name="y_true", classes_name="labels")
        positive_code = 1 if pos_label is None else _position(pos_label, classes)
        return codes == positive_code, _negative_first(classes, positive_code), positive_code if n_columns == 2 else 0
    classes, codes = _unique_labels(y_true, "y_true")
    if len(classes) > 2:
        raise ValueError(f"y_true has {len(classes)} classes but y_proba has one column. Give one column a class.")
    if pos_label is None:
        if len(classes) < 2:
            raise ValueError(
                f"y_true has one class only ({_shown(classes)}). If that is meant, say which classes there are with "
                "labels=."
            )
        if not np.array_equal(classes, [-1, 1]):
            raise ValueError(
                f"y_true holds the labels {_shown(classes)}: say with pos_label= which of them y_proba is the "
                "probability of. It is inferred for {0, 1} and {-1, 1} only."
            )
        pos_label = 1
    if len(classes) == 2:
        positive_code = _position(pos_label, classes)
        return codes == positive_code, _negative_first(classes, positive_code), 0
    positive = bool(classes[0] == pos_label)  # the negative label is not known where no row has it
    return np.full(len(y_true), positive), np.array([None if positive else classes[0], pos_label], dtype=object), 0


def _negative_first(classes, positive_code):
    return classes if positive_code == 1 else classes[::-1]


def _position(pos_label, classes):
    match = np.flatnonzero(classes == pos_label) if np.ndim(pos_label) == 0 else ()
    if len(match) != 1:
        raise ValueError(f"pos_label={pos_label!r} is not one of the labels {_shown(classes)}.")
    return int(match[0])


def _zero_one(y):
    """Return labels that are already 0 and 1 as booleans without sorting them, else None."""
    if y.dtype.kind == "b":
        return y
    if y.dtype.kind not in "iuf":
        return None
    positive = np.empty(len(y), dtype=bool)
    for rows in row_blocks(len(y)):
        block, is_one = y[rows], positive[rows]
        np.equal(block, 1, out=is_one)
        if y.dtype.kind == "f":
            others = np.count_nonzero(is_one) + np.count_nonzero(block == 0) < len(block)
        else:
            others = block.view(f"u{block.itemsize}").max() > 1  # where negative numbers are large
        if others:
            return None
    return positive


def _as_codes(positive):
    """Return booleans as the codes 0 and 1, without a copy: not to be written to."""
    codes = positive.view(np.int8)
    codes.flags.writeable = False
    return codes


def _unique_labels(y, name):
    positive = _zero_one(y) if y.dtype.kind in "biu" else None
    if positive is not None and positive.any() and not positive.all():
        return np.array([0, 1]).astype(y.dtype), _as_codes(positive)
    classes, codes = _sorted_labels(y, name)
    try:
        target = type_of_target(classes, input_name=name)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Unknown label type: {name} must hold class labels, found {_shown(classes)}. {error}"
        ) from None
    if target not in ("binary", "multiclass"):
        raise ValueError(f"Unknown label type: {target}. {name} must hold class labels, found {_shown(classes)}.")
    return classes, codes


def _sorted_labels(y, name):
    try:
        return np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in y})
        raise ValueError(f"{name} mixes labels of the types {', '.join(kinds)}: use one type.") from None


def _check_classes(classes, n_classes, name):
    classes = np.asarray(classes)
    if classes.ndim != 1:
        raise ValueError(f"{name} must be a list of labels, found shape {classes.shape}.")
    if len(classes) != n_classes:
        raise ValueError(f"{name} names {len(classes)} labels but the scores are those of {n_classes} classes.")
    classes = _native(classes)
    if not np.array_equal(_sorted_labels(classes, name)[0], classes):
        raise ValueError(
            f"{name} must be sorted and without repetition, in the order of the columns, found {_shown(classes)}. "
            "Reorder the columns of the scores as scikit-learn does."
        )
    return classes


def _lookup(y, classes, name, classes_name):
    if (y.dtype.kind in "US") != (classes.dtype.kind in "US") and "O" not in (y.dtype.kind, classes.dtype.kind):
        raise ValueError(
            f"{name} holds {_shown(y[:1])}, which is of another type than {classes_name} {_shown(classes)}."
        )
    if y.dtype.kind == classes.dtype.kind == "b" and len(classes) == 2:
        return _as_codes(y)
    try:
        codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    except TypeError:
        raise ValueError(f"{name} holds labels of another type than {classes_name} {_shown(classes)}.") from None
    unknown = classes[codes] != y
    if unknown.any():
        row = _first(unknown)[0]
        label = _shown(y[row : row + 1])
        raise ValueError(f"{name} has the unknown label {label} in row {row}; {classes_name} are {_shown(classes)}.")
    return codes


def _check_label_vector(y, n_samples, *, name, scores_name):
    if y is None:
        raise ValueError(f"requires {name} to be passed, but the target {name} is None.")
    if sparse.issparse(y):
        raise TypeError(f"{name} must be a dense vector of class labels, found a sparse matrix.")
    _refuse_masked(y, name)
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected: {name}.ravel() makes it one.",
            DataConversionWarning,
            stacklevel=2,
        )
        y = y.ravel()
    if y.ndim != 1:
        raise ValueError(f"{name} should be a 1d array of labels, got an array of shape {y.shape} instead.")
    if len(y) != n_samples:
        raise ValueError(f"{name} has {len(y)} rows but {scores_name} has {n_samples}: their lengths must agree.")
    if y.dtype.kind == "S":
        raise ValueError(f"Unknown label type: {name} holds bytes such as {_shown(y[:1])}. Decode them to strings.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = _first(~np.isfinite(y))[0]
        raise ValueError(f"{name} contains NaN or infinity in row {row}: labels must be known. Drop such rows.")
    if y.dtype.kind in "OmM":
        missing = np.isnat(y) if y.dtype.kind in "mM" else np.fromiter(map(_is_missing, y), bool, len(y))
        if missing.any():
            kind = "NaT" if y.dtype.kind in "mM" else "NaN"
            raise ValueError(f"{name} contains a missing value ({kind}) in row {_first(missing)[0]}: drop such rows.")
        y = _native(y)
    return y


def _refuse_masked(values, name):
    if np.ma.is_masked(values):
        row = _first(np.ma.getmaskarray(values))[0]
        raise ValueError(f"{name} is masked in row {row}: drop or fill such rows.")


def _is_missing(value):
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA knows no truth
        return True


def _native(labels):
    """Return an object array of numbers or booleans as an array of their own type, any other as it is."""
    if labels.dtype.kind != "O" or not all(isinstance(label, Real) for label in labels):
        return labels
    return np.array(labels.tolist())


def check_targets(y, n_samples):
    """Validate the `y` of a recalibrator; return a vector of labels."""
    return _check_label_vector(y, n_samples, name="y", scores_name="X")


def _as_float_matrix(scores, name):
    """Return `scores` as floats of shape (n, C) and the name of the precision that they came in."""
    if sparse.issparse(scores):
        raise TypeError(f"{name} must be dense scores, found a sparse matrix. Convert it with .toarray().")
    _refuse_masked(scores, name)
    try:
        array = np.asarray(scores)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of scores, found rows of different lengths.") from None
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real scores, found {array.dtype}.")
    if array.dtype.kind not in "biuf":
        array = _from_objects(array, name)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (n,) or (n, n_classes), found {array.shape}. Reshape your data.")
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(
            f"{name} is empty: found array with {array.shape[0]} sample(s) and {array.shape[1]} feature(s) "
            f"(shape={array.shape}) while a minimum of 1 is required."
        )
    precision = array.dtype.name if array.dtype.name in _ROUNDING else "float64"
    target = np.float32 if array.dtype.itemsize <= 4 and array.dtype.kind == "f" else np.float64
    return array.astype(target, copy=False), precision


def _from_objects(array, name):
    problem = f"{name} must be numbers, found {array.dtype}"
    if array.dtype.kind != "O":
        raise ValueError(f"{problem}. Encode or drop columns that are not scores.")
    string = _first_string(array)
    if string is not None:
        raise ValueError(f"{problem} with the string {string!r}. Encode or drop columns that are not scores.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{problem} with values that are not: argument must be a string or a number ({error}).") from None


def _first_string(array):
    return next((value for value in array.flat if isinstance(value, str | bytes)), None)


def _checked_scores(scores, *, name, input="probability", rows_sum_to_one=True, predict_from=np.inf):
    """Return what `check_scores` does and, from so many columns on, the first of each row's largest scores.

    That is its column and the score itself; None and None for fewer columns.
    """
    scores, precision = _as_float_matrix(scores, name)
    refused, untouched = _ROUNDING[precision]
    if input == "logit":
        return _check_range(scores, name, input, refused), None, None
    asked = rows_sum_to_one and scores.shape[1] > 1, scores.shape[1] >= predict_from
    summary = _row_summary(scores, *asked)
    if summary is None:
        scores = _check_range(scores, name, input, refused)
        summary = _row_summary(scores, *asked)
    total, predicted, largest = summary
    if total is None:
        return scores, predicted, largest
    total = _doubtful_in_double(total, scores, untouched)
    normalized = _normalize_rows(scores, total, name, refused, untouched)
    if normalized is not scores and predicted is not None:
        largest = np.take_along_axis(normalized, predicted[:, None], axis=1)[:, 0]
    return normalized, predicted, largest


def _row_summary(scores, add, predict):
    """Return the sums of the rows, and the columns of their largest scores and these, each if asked for: in one pass.

    None if a score is not in [0, 1]. Sums are in single precision for contiguous rows of it, along which NumPy adds
    pairwise.
    """
    n, dtype = len(scores), scores.dtype if scores.flags.c_contiguous else np.float64
    total = np.empty(n, dtype) if add else None
    predicted, largest = (np.empty(n, np.intp), np.empty(n, scores.dtype)) if predict else (None, None)
    for rows in row_blocks(*scores.shape):
        block = scores[rows]
        if not _inside_unit_interval(block):
            return None
        if add:
            block.sum(axis=1, out=total[rows], dtype=dtype)
        if predict:
            block.argmax(axis=1, out=predicted[rows])
            largest[rows] = block[np.arange(len(block)), predicted[rows]]
    return total, predicted, largest


def _doubtful_in_double(total, scores, untouched):
    """Return the sums of rows with those in double precision that single precision may not tell from 1."""
    if total.dtype == np.float64:
        return total
    total = total.astype(np.float64)
    doubtful = np.flatnonzero(np.abs(total - 1) > untouched / 2)
    for part in row_blocks(len(doubtful), scores.shape[1]):
        total[doubtful[part]] = scores[doubtful[part]].sum(axis=1, dtype=np.float64)
    return total


def _inside_unit_interval(scores):
    """Return whether no score is negative (-0 included), above 1 or NaN, without a temporary.

    Read as unsigned integers, the floats from 0 to 1 are the numbers up to the one that is read for 1, and all others
    are larger.
    """
    bits = f"u{scores.itemsize}"
    return scores.view(bits).max() <= np.ones(1, scores.dtype).view(bits)[0]


def _check_range(scores, name, input, refused):
    """Return the scores, those that rounding has put beyond 0 or 1 on it; raise for what is no score."""
    low, high = scores.min(), scores.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        row, column = _first(~np.isfinite(scores))
        value = "NaN" if np.isnan(scores[row, column]) else "infinity"
        raise ValueError(f"{name} contains {value} in row {row}: every score must be finite. Drop or impute such rows.")
    if input == "logit":
        if float(max(-low, high)) > _MAX_MAGNITUDE:
            row, column = _first(np.abs(scores) > _MAX_MAGNITUDE)
            raise ValueError(f"{name} holds the logit {scores[row, column]:.6g} in row {row}: rescale the logits.")
        return scores
    if low < -refused or high > 1 + refused:
        row, column = _first((scores < -refused) | (scores > 1 + refused))
        raise ValueError(
            f"{name} must hold probabilities in [0, 1], but row {row} is {scores[row, column]:.6g}. "
            f"{_LOGIT_HINT if name == 'X' else 'Convert logits with scipy.special.expit or softmax first.'}"
        )
    return np.clip(scores, 0, 1) + 0  # -0 becomes 0


def _normalize_rows(scores, total, name, refused, untouched):
    off = np.abs(total - 1)
    worst = off.max()
    if worst > refused:
        row = _first(off > refused)[0]
        raise ValueError(
            f"The rows of {name} must sum to 1, but row {row} sums to {total[row]:.6g}. "
            f"{_LOGIT_HINT if name == 'X' else 'Normalise them, or convert logits with scipy.special.softmax first.'}"
        )
    if worst > untouched:
        # A row within rounding stays as it is, so that a score on the edge of a bin stays there.
        total[off <= untouched] = 1
        scores = scores / total[:, None].astype(scores.dtype)
    return scores


def _first(mask):
    """Return the index of the first True, row by row."""
    return tuple(int(i) for i in np.unravel_index(np.argmax(mask), mask.shape))


def _shown(values, most=6):
    shown = ", ".join(repr(getattr(value, "item", lambda value=value: value)()) for value in values[:most])
    return shown + ", ..." * (len(values) > most)


def _count(number, singular, plural):
    return f"{number} {singular if number == 1 else plural}"
