"""The rows of fits and forecasts: validated scores, with the classes marked that are
impossible, and the labels and weights of a fit.
"""

from typing import Any, NamedTuple

import numpy as np

from skcalib._input.labels import check_clusters
from skcalib._input.scores import (
    check_estimator_scores,
    check_sample_weight,
    check_scores,
    drop_zero_weight,
)
from skcalib._input.tensors import (
    dispatched_namespace,
    namespace_of,
    tensor_on_processor,
)
from skcalib._rows.links import LARGEST_GAP, impossible
from skcalib._rows.namespaces import without_impossible
from skcalib.recalibrators._tensor_rows import fits_tensors, tensor_rows

_MOST_MARKS = 2  # distinct finite logits that mark impossible classes, at most


class FitRows(NamedTuple):
    """The validated rows of a fit, without those of weight zero.

    Attributes
    ----------
    scores : array of shape (n, C)
        Probabilities or logits, in which impossible classes are marked; a tensor for a
        method that fits tensors.
    codes : ndarray of shape (n,)
        Column of each label's class.
    sample_weight : ndarray of shape (n,) or None
        The weights.
    clusters : ndarray of shape (n,) or None
        The number of each row's cluster.
    features : ndarray of shape (n, n_features) or None
        Numbers beside the scores.
    """

    scores: Any
    codes: np.ndarray
    sample_weight: np.ndarray | None
    clusters: np.ndarray | None = None
    features: np.ndarray | None = None


class ValidationMixin:
    """Validates what the fit and the forecasts of a recalibrator are given.

    A logit of -inf, or more than 700 below the largest of its row, marks an impossible
    class. It becomes -inf, or of two classes 700 below the other: the log-odds stay
    finite.
    """

    # Which classes must have rows: "all", "two" (any two of them) or "any". The
    # `classes` parameter names the others.
    _needs_classes = "all"

    def _rows_of_fit(self, X, y, sample_weight, clusters, features=None):
        """Set `classes_`, and return what a fit is given, validated, as `FitRows`:
        scores `X`, labels `y` and, each None or with n rows, weights, clusters and
        features.
        """
        if clusters is not None:
            clusters = check_clusters(clusters, len(y))
        if fits_tensors(self):
            # a loss of the user's gets the labels as they were given
            self._has_label_tensor = dispatched_namespace(y)[0] is not None
            y = tensor_on_processor(y)
            sample_weight = tensor_on_processor(sample_weight)
        y = self._with_counted_labels(y, sample_weight, X)
        rows = None
        if fits_tensors(self) and clusters is None and features is None:
            rows = tensor_rows(self, X, y, sample_weight)
        if rows is None:
            rows = self._rows_of_arrays(X, y, sample_weight, clusters, features)
        rows = FitRows(*rows)
        self._check_classes_present(rows.codes)
        return rows

    def _rows_of_arrays(self, X, y, sample_weight, clusters, features):
        """Return the scores (n, C), codes, weights, clusters and features of a fit,
        validated by NumPy; the last three may be None. Rows without weight, or that are
        certain by their logits, are left out.
        """
        # A logit far below the others marks an impossible class, until the rows of this
        # fit show otherwise.
        vars(self).pop("_has_wide_logits_", None)
        X, classes = self._in_class_order(X, y)
        scores, is_impossible = self._possible_scores(X, reset=True)
        codes = self._encoded(y, scores, classes)
        if is_impossible is not None:
            logits = check_scores(X, name="X", input=self.input)  # without marks
            if _are_wide_logits(logits, is_impossible, codes):
                self._read_wide_logits()
                scores, is_impossible = self._possible_scores(X, reset=True)
        refuse_impossible_labels(is_impossible, codes)
        weight = check_sample_weight(sample_weight, len(scores))
        if is_impossible is not None:
            weight = _zero_for_certain_rows(weight, is_impossible)
        scores, codes, clusters, features, weight = drop_zero_weight(
            weight, scores, codes, clusters, features
        )
        if sample_weight is None:
            # The rows that are left have the weight 1: no weights at all are faster.
            weight = None
        return scores, codes, weight, clusters, features

    def _read_rows(self, X):
        """Return the validated scores (n, C) of new rows, and their features (n,
        n_features) or None.
        """
        scores = check_estimator_scores(self, X, input=self.input, reset=False)
        return scores, None

    @property
    def _has_wide_logits(self):
        """Whether only a logit of -inf marks an impossible class: the samples of the
        fit showed that finite logits far below others are of possible classes.
        """
        return getattr(self, "_has_wide_logits_", False)

    def _read_wide_logits(self):
        """Take no finite logit for the mark of an impossible class."""
        self._has_wide_logits_ = True

    def _possible_scores(self, X, reset=False):
        """Return the validated scores (n, C) with impossible classes marked, and which
        they are in each row: booleans (n, C), None if none is.
        """
        scores = check_estimator_scores(self, X, input=self.input, reset=reset)
        return self._with_marks(scores)

    def _with_marks(self, scores):
        """Return validated scores (n, C) with impossible classes marked, by logits of
        -inf or, of two classes, far below the other; and which they are: booleans (n,
        C), None if none is.
        """
        is_impossible = None
        if self.input == "logit":
            gap = LARGEST_GAP
            if self._has_wide_logits:
                gap = np.inf
            is_impossible = impossible(scores, gap)
        if is_impossible is None:
            return scores, None
        if scores.shape[1] > 2:
            mark = scores.dtype.type(-np.inf)
        else:
            mark = scores.max(axis=1, keepdims=True) - LARGEST_GAP
        return np.where(is_impossible, mark, scores), is_impossible

    def _impossible_classes(self, scores):
        """Return which of more than two classes have a logit of -inf, and so are
        impossible in their rows: booleans (n, K), None if none is.
        """
        if self.input != "logit" or scores.shape[1] <= 2:
            return None
        xp = namespace_of(scores)
        if xp.min(scores) > -np.inf:
            return None
        return scores == -np.inf

    def _restricted(self, probabilities, is_impossible):
        """Return probabilities (n, K) with 0 where `is_impossible` (n, K) is true; None
        changes nothing.

        The rest of a row is made larger to sum to 1, unless the method does not
        normalise.
        """
        rescale = getattr(self, "normalize", True) or probabilities.shape[1] == 2
        return without_impossible(np, probabilities, is_impossible, rescale=rescale)

    def _check_classes_present(self, codes):
        """Raise a ValueError unless `codes` (n,), the classes of the rows, have the
        classes that the method needs: see `_needs_classes`.
        """
        if self._needs_classes == "any":
            return
        if len(self.classes_) == 2:
            n_events = np.count_nonzero(codes)  # in a tenth of the time of `bincount`
            is_present = np.array([n_events < len(codes), n_events > 0])
        else:
            is_present = np.bincount(codes, minlength=len(self.classes_)) > 0
        if is_present.all():
            return
        if self._needs_classes == "two" and np.count_nonzero(is_present) > 1:
            return
        needed = "every class"
        if self._needs_classes == "two":
            (present,) = self.classes_[is_present].tolist()  # there is only one
            needed = f"two classes, found {present!r} only"
        first_missing, *_ = self.classes_[~is_present].tolist()
        raise ValueError(
            f"{type(self).__name__} needs rows of {needed}: there are none (of positive"
            f" weight) of the class {first_missing!r}."
        )


def _are_wide_logits(logits, is_impossible, codes):
    """Return whether finite logits (n, K) far below others are those of possible
    classes: some labels name such classes, and the logits take many values, as the
    margins of a linear model with large features, where a mark is the same number
    everywhere. `is_impossible` (n, K) says which look like marks, `codes` (n,) are the
    classes.
    """
    has_impossible_label = is_impossible[np.arange(len(codes)), codes]
    if not has_impossible_label.any():
        return False
    finite_marks = logits[is_impossible & (logits > -np.inf)]
    return len(np.unique(finite_marks)) > _MOST_MARKS


def _zero_for_certain_rows(weight, is_impossible):
    """Return weights (n,) with 0 for rows in which all classes but one are impossible:
    they are certain, and show nothing about calibration.

    `weight` (n,) may be None for weights of 1. If no row would be left, all keep their
    weights.
    """
    is_open = np.count_nonzero(~is_impossible, axis=1) > 1
    if weight is None:
        weight = np.ones(len(is_open))
    weight_of_open = weight * is_open
    if weight_of_open.any():
        return weight_of_open
    return weight


def refuse_impossible_labels(is_impossible, codes):
    """Raise a ValueError if a row has a label, `codes` (n,), whose class is impossible
    according to its logits: `is_impossible` is (n, K), or None if no class is.
    """
    if is_impossible is None:
        return
    has_impossible_label = is_impossible[np.arange(len(codes)), codes]
    if has_impossible_label.any():
        row = int(np.argmax(has_impossible_label))
        raise ValueError(
            f"y has a class in row {row} that is impossible according to its logit:"
            f" -inf, or more than {LARGEST_GAP:g} below the largest logit of the row."
            " Drop such rows, or divide logits that are not logarithms of"
            " probabilities by a constant."
        )
