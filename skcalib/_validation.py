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
from skcalib._score_checks import MAX_MAGNITUDE, check_scores, checked_scores, first_index, first_string, refuse_masked

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
        by_row = {name: array for name, array in self._asdict().items() if name != "classes" and array is not None}
        return self._replace(**{name: array[rows] for name, array in by_row.items()})


def check_scored_labels(
    y_true, y_proba, *, multiclass="auto", sample_weight=None, pos_label=None, labels=None, drop=True
):
    """Validate the input of a metric; see `ScoredLabels`. With `drop=False` rows of weight zero are kept."""
    scores, *top = checked_scores(
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


def check_sample_weight(sample_weight, n_samples):
    """Return weights as float64 (n,), or None: finite, not negative, not all zero."""
    if sample_weight is None:
        return None
    refuse_masked(sample_weight, "sample_weight")
    weight = np.asarray(sample_weight)
    if weight.dtype.kind not in "biufO" or (weight.dtype.kind == "O" and first_string(weight) is not None):
        raise ValueError(f"sample_weight must be real numbers, found {weight.dtype}.")
    try:
        weight = weight.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be real numbers ({error}).") from None
    if weight.ndim != 1 or len(weight) != n_samples:
        raise ValueError(f"sample_weight must have shape ({n_samples},), found {weight.shape}.")
    low, high = weight.min(), weight.max()
    if not (np.isfinite(low) and np.isfinite(high) and low >= 0):
        row = first_index(~np.isfinite(weight) | (weight < 0))[0]
        raise ValueError(f"sample_weight must be finite and not negative, but row {row} is {weight[row]}.")
    if high == 0:
        raise ValueError("sample_weight is zero in every row: at least one row must count.")
    if not 1 / MAX_MAGNITUDE <= high <= MAX_MAGNITUDE:
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
        row = first_index(unknown)[0]
        label = _shown(y[row : row + 1])
        raise ValueError(f"{name} has the unknown label {label} in row {row}; {classes_name} are {_shown(classes)}.")
    return codes


def _check_label_vector(y, n_samples, *, name, scores_name):
    if y is None:
        raise ValueError(f"requires {name} to be passed, but the target {name} is None.")
    if sparse.issparse(y):
        raise TypeError(f"{name} must be a dense vector of class labels, found a sparse matrix.")
    refuse_masked(y, name)
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
        row = first_index(~np.isfinite(y))[0]
        raise ValueError(f"{name} contains NaN or infinity in row {row}: labels must be known. Drop such rows.")
    if y.dtype.kind in "OmM":
        missing = np.isnat(y) if y.dtype.kind in "mM" else np.fromiter(map(_is_missing, y), bool, len(y))
        if missing.any():
            kind = "NaT" if y.dtype.kind in "mM" else "NaN"
            raise ValueError(
                f"{name} contains a missing value ({kind}) in row {first_index(missing)[0]}: drop such rows."
            )
        y = _native(y)
    return y


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


def _shown(values, most=6):
    shown = ", ".join(repr(getattr(value, "item", lambda value=value: value)()) for value in values[:most])
    return shown + ", ..." * (len(values) > most)


def _count(number, singular, plural):
    return f"{number} {singular if number == 1 else plural}"
