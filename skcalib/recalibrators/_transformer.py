"""Classifiers that are transformers: the base of the recalibrators, and of those that
take columns beside scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from skcalib._defaults import DefaultObjects, check_fitted
from skcalib._described import DescribedEstimator
from skcalib._input.classes import (
    EVENT_HINTS,
    encode_labels,
    hint_at_event,
    in_class_order,
    in_fitted_order,
    with_counted_labels,
)
from skcalib._input.columns import column_positions, select_columns
from skcalib._input.labels import check_label_vector, no_vector, several_labels_shape
from skcalib._input.scores import check_scores, refuse_swapped
from skcalib._input.tensors import as_array, column_names, namespace_of
from skcalib._verdicts import count_words


class ProbabilityTransformer(
    DescribedEstimator,
    DefaultObjects,
    ClassifierMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Classifier and transformer in one: `transform` is `predict_proba`, so that a
    pipeline can contain several.

    Attributes
    ----------
    _parameter_constraints : dict
        Constraints on the parameters, in the format that scikit-learn checks.
    _attributes : dict
        The check of each fitted attribute, for states that are restored.
    _part_attributes : dict
        The checks of attributes that each binary problem has if there are more than two
        classes.
    _derived : dict
        Functions that compute the attributes that are not written.

    A subclass that extends one of these dicts starts with that of its base:
    ``_attributes = {**Base._attributes, "bounds_": ...}``.
    """

    _parameter_constraints: dict = {}
    _attributes: dict = {}
    _part_attributes: dict = {}
    _derived: dict = {}

    # Whether `fit` accepts clusters, which every `fit` has as a parameter.
    _uses_clusters = True

    classes_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    provenance_: dict

    def _state_sentence(self):
        """Return what the fit was made from and, if it was measured, what it gains;
        nothing before the fit.
        """
        origin = getattr(self, "provenance_", None)
        if not origin:
            return ""
        samples = f"{count_words(origin['n_rows'])} samples"
        of_classes = f" of {len(origin['events'])} classes"
        if len(origin["events"]) == 2:
            events = count_words(origin["events"][1])
            of_classes = f" with {events} events"
        method = type(self).__name__
        if hasattr(self, "chosen_"):
            method = f"{method}, which uses {type(self.chosen_).__name__},"
        sentence = f"{method} fitted to {samples}{of_classes}."
        if hasattr(self, "gain_"):
            sentence = f"{sentence} {self.gain_}"
        return sentence

    def _with_counted_labels(self, y, sample_weight, X):
        """Return the labels of a fit (n,); another one replaces those that occur only
        with weight zero, which define no class.
        """
        shape = several_labels_shape(y)
        if shape is not None:
            cure = (
                "For several labels per row, fit one recalibrator for each column of X"
                " and of y."
            )
            raise no_vector(y, "y", "X", shape, cure)
        if sample_weight is None:
            return y
        return with_counted_labels(
            y, sample_weight, X, self.classes, name="y", labels_name="classes"
        )

    def _in_class_order(self, X, y, columns=None):
        """Return X with its score columns (those at `columns`) in the order of the
        classes that name them, and these classes; without such names X and `classes`.
        """
        return in_class_order(
            X,
            y,
            self.classes,
            name="X",
            y_name="y",
            labels_name="classes",
            columns=columns,
        )

    def _in_class_order_with_columns(self, X, y, keys, name):
        """Return the table X with its score columns in the order of the classes that
        name them, and these classes, or X and the parameter `classes`. The columns
        `keys`, which the user names by the parameter `name`, are no scores.
        """
        columns = None
        if keys and column_names(X):
            columns = self._score_positions(X, keys, name)
        return self._in_class_order(X, y, columns)

    def _score_positions(self, X, keys, name):
        """Return the positions of the columns of X that are scores; `keys` are the
        others, which the user names by the parameter `name`.
        """
        positions = column_positions(X, keys, name=name)
        score_positions = [k for k in range(X.shape[1]) if k not in positions]
        if not score_positions:
            raise ValueError(
                f"{name} uses all {X.shape[1]} columns of X, so no scores are left."
            )
        return score_positions

    def _scores_and_columns(self, X, keys, name, *, reset):
        """Return the validated scores (n, C) of X, and its other columns `keys`, which
        the parameter `name` holds.
        """
        if sparse.issparse(X):
            raise TypeError(
                "X must be dense, found a sparse matrix. Convert it with .toarray()."
            )
        if not hasattr(X, "shape"):
            X = np.asarray(X, dtype=object)
        score_positions = self._score_positions(X, keys, name)
        if not reset:
            X = in_fitted_order(self, X, score_positions)
            validate_data(self, X, skip_check_array=True, reset=False)
        score_columns = select_columns(X, score_positions)
        scores = check_scores(score_columns, name="X", input=self.input)
        if reset:
            validate_data(self, X, skip_check_array=True, reset=True)
        return scores, select_columns(X, column_positions(X, keys, name=name))

    def _encoded(self, y, scores, classes):
        """Set `classes_`; return the column index of each label (n,). Raise a
        ValueError if the labels do not fit the scores (n, C), or `classes`, the labels
        of their columns, or None.
        """
        y = check_label_vector(y, len(scores), name="y", scores_name="X")
        refuse_swapped(y, scores, name="y", scores_name="X")
        self.classes_, codes = encode_labels(
            y,
            scores.shape[1],
            classes,
            name="y",
            classes_name="classes",
            column_numbers=True,
        )
        self._remember_parameters()
        if scores.shape[1] == 1 and classes is None:
            # A warning if the column seems to hold the scores of the other class.
            hint = EVENT_HINTS[self.input]
            hint_at_event(scores[:, 0], codes, self.classes_, hint)
        return codes

    def _check_attributes(self):
        """Raise a ValueError if attributes (of a binary problem, if there are several)
        are inconsistent.
        """

    @property
    def _score_width(self):
        """Number of the columns given to `fit` that are scores."""
        return self.n_features_in_

    def _map_of(self, scores):
        """Return the node of the probabilities (of two classes, the positive one's)
        from that of the scores. Some bases bring these to the method's scale around its
        ``_map``.
        """
        return self._map(scores)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return what `predict_proba` returns, so that recalibrators can be chained in
        a pipeline.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores, and any other columns that the method requires.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.
        """
        return self.predict_proba(X)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the most probable class.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores, and any other columns that the method requires.

        Returns
        -------
        labels : ndarray of shape (n,)
            The first of the classes with the largest probability.
        """
        check_fitted(self)
        probabilities = self.predict_proba(X)
        column, _ = as_array(namespace_of(probabilities).argmax(probabilities, axis=1))
        return self.classes_[column]

    def predict_interval(
        self, X: ArrayLike, confidence_level: float = 0.9
    ) -> np.ndarray:
        """Return limits for the event frequency at each score; this method has none.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores, and any other columns that the method requires.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).

        Returns
        -------
        limits : ndarray of float64, shape (n, 2) or (n, n_classes, 2)
            Lower and upper limits.

        Raises
        ------
        ValueError
            Always; the message says why.
        """
        check_fitted(self)
        raise ValueError(self._no_interval(self._why_no_limits()))

    def _no_interval(self, reason):
        """Return the message that there are no limits for one probability."""
        return f"{type(self).__name__}.predict_interval is not available: {reason}."

    def _why_no_limits(self):
        """Return why there are no limits for one probability, else an empty text."""
        return "the method does not define how its fit varies with the samples"

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> np.ndarray:
        """Return one name per class.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored, because the columns are the classes, regardless of the names of the
            scores.

        Returns
        -------
        names : ndarray of str objects, shape (n_classes,)
            ``<recalibrator>_<label>`` for each class; the first part is the name of
            the recalibrator's class in lower case.
        """
        check_fitted(self)
        return np.array(
            [f"{type(self).__name__.lower()}_{label}" for label in self.classes_],
            dtype=object,
        )


class RecalibratorOfColumns(ProbabilityTransformer):
    """Base of the methods that wrap a recalibrator and take more columns than its
    scores.
    """

    @property
    def input(self):
        """Scale of the scores that the recalibrator, or the first one in a pipeline,
        takes: "probability" or "logit".
        """
        if isinstance(self.recalibrator, Pipeline):
            first = self.recalibrator[0]
        else:
            first = self.recalibrator
        return getattr(first, "input", "probability")

    @property
    def classes(self):
        """Labels of the columns that were passed to the recalibrator, or None."""
        return getattr(self.recalibrator, "classes", None)

    @property
    def _score_width(self):
        """Number of the columns given to `fit` that are scores."""
        inner = getattr(self, "pooled_recalibrator_", None) or self.recalibrator_
        return inner.n_features_in_
