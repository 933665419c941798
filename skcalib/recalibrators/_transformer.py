"""Classifiers that are transformers: the base of the recalibrators, and of those that take columns beside scores."""

from collections import ChainMap

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from skcalib._defaults import DefaultObjects, check_fitted, parameters
from skcalib._input.columns import column_positions, select_columns
from skcalib._input.labels import check_targets, encode_labels
from skcalib._input.scores import check_scores


class ProbabilityTransformer(
    DefaultObjects, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """Classifier and transformer in one: `transform` is `predict_proba`, so that a pipeline can hold several.

    A subclass may write its parameters as fields, ``alpha: [Interval(Real, 0, None, closed="left")] = 1.0``: with the
    constraints that scikit-learn checks in a list, and the default. It then needs no constructor. ``class
    Method(BinaryRecalibrator, positional=("alpha",))`` says which may be given without a name. Constraints, checks of
    attributes and default objects add to those of its bases.
    """

    def __init_subclass__(cls, positional=(), **options):
        super().__init_subclass__(**options)
        if any(isinstance(kind, list) for kind in cls.__annotations__.values()):
            parameters(cls, positional)
        for name in ("_parameter_constraints", "_attributes", "_default_objects"):
            setattr(
                cls,
                name,
                dict(ChainMap(*(vars(base).get(name, {}) for base in cls.__mro__))),
            )

    def _encoded(self, y, scores):
        """Set `classes_` and return the column index of each label of `y`, after a check that they fit the scores."""
        y = check_targets(y, len(scores))
        self.classes_, codes = encode_labels(
            y,
            scores.shape[1],
            self.classes,
            name="y",
            classes_name="classes",
            column_numbers=True,
        )
        self._remember_parameters()
        return codes

    # For states that are read: the check of each fitted attribute. Those of `_part_attributes` are held by each binary
    # problem where there are more than two classes. `_derived` are functions that make what is not written.
    _attributes, _part_attributes, _derived = {}, {}, {}

    def _check_attributes(self):
        """Raise a ValueError if attributes (of a binary problem, if there are several) do not fit together."""

    @property
    def _score_width(self):
        """Number of the columns given to `fit` that are scores."""
        return self.n_features_in_

    def _map_of(self, scores):
        """Return the calibration map as nodes, from scores to probabilities: of the positive class alone of two.

        A method writes ``_map``. Some of its bases bring the scores to its scale here, and join classes after it.
        """
        return self._map(scores)

    def transform(self, X):
        """Return the same as `predict_proba`, so that recalibrators can follow each other in a pipeline.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores. A method that takes more columns needs these too.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            In the order of `classes_`.
        """
        return self.predict_proba(X)

    def predict(self, X):
        """Return the most probable class.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores. A method that takes more columns needs these too.

        Returns
        -------
        labels : ndarray of shape (n,)
            The first of the classes with the largest probability.
        """
        check_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def get_feature_names_out(self, input_features=None):
        """Return one name per class.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored: the columns are the classes, whatever the scores were called.

        Returns
        -------
        names : ndarray of str objects, shape (n_classes,)
            ``recalibrator_class`` in lower case.
        """
        check_fitted(self)
        return np.array(
            [f"{type(self).__name__.lower()}_{label}" for label in self.classes_],
            dtype=object,
        )


class RecalibratorOfColumns(ProbabilityTransformer):
    """Base of the methods that wrap a recalibrator and take more columns than its scores."""

    @property
    def input(self):
        """What the recalibrator, or the first of a pipeline of them, takes: probabilities or logits."""
        first = (
            self.recalibrator[0]
            if isinstance(self.recalibrator, Pipeline)
            else self.recalibrator
        )
        return getattr(first, "input", "probability")

    @property
    def classes(self):
        """The labels of the columns that the recalibrator was told, or None."""
        return getattr(self.recalibrator, "classes", None)

    @property
    def _score_width(self):
        inner = getattr(self, "pooled_recalibrator_", None) or self.recalibrator_
        return inner.n_features_in_

    def _scores_and_columns(self, X, keys, name, *, reset):
        """Return the validated scores of X and its columns `keys`, the parameter `name`; `reset` in `fit`."""
        if sparse.issparse(X):
            raise TypeError(
                "X must be dense, found a sparse matrix. Convert it with .toarray()."
            )
        X = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
        positions = column_positions(X, keys, name=name)
        if not reset:
            validate_data(self, X, skip_check_array=True, reset=False)
        others = [column for column in range(X.shape[1]) if column not in positions]
        if not others:
            raise ValueError(
                f"{name} takes all {X.shape[1]} columns out of X, and no scores are left."
            )
        scores = check_scores(select_columns(X, others), name="X", input=self.input)
        if reset:
            validate_data(self, X, skip_check_array=True, reset=True)
        return scores, select_columns(X, positions)


def fitted_clone(recalibrator, scores, y, sample_weight=None, **given):
    """Return a clone fitted to rows; weights are handed over where there are some."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return clone(recalibrator).fit(scores, y, **weights, **given)


def tell(recalibrator, **values):
    """Set those of the parameters that the recalibrator has."""
    names = recalibrator.get_params(deep=False)
    return recalibrator.set_params(
        **{name: value for name, value in values.items() if name in names}
    )


def class_parameters(recalibrator, classes):
    """Return `classes` under each name by which the recalibrator or one inside it takes them."""
    names = recalibrator.get_params()
    return {
        name: classes
        for name in names
        if name == "classes" or name.endswith("__classes")
    }


def check_recalibrator(recalibrator, name="recalibrator"):
    """Return an object that maps scores to probabilities; the classifiers of scikit-learn map features.

    A pipeline may begin with any transformer of scores.
    """
    for method in ("fit", "predict_proba"):
        if not hasattr(recalibrator, method):
            raise TypeError(
                f"{name} must have fit and predict_proba, but {recalibrator!r} has no {method}."
            )
    inner = recalibrator
    while hasattr(inner, "estimator"):  # of a search, or of a fitted one
        inner = inner.estimator
    if type(inner).__module__.startswith("sklearn.") and not isinstance(
        inner, Pipeline
    ):
        raise TypeError(
            f"{name} must be a recalibrator of scores, such as PlattScaling(), found the classifier {recalibrator!r}."
        )
    return recalibrator
