"""Decisions at the least expected cost, which may change from row to row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from skcalib._defaults import unchanged_if_refused
from skcalib._input.classes import encode_labels
from skcalib._input.classifier_scores import classifier_scores
from skcalib._input.labels import check_label_vector, shown
from skcalib._input.scalars import as_numbers
from skcalib._input.scores import check_sample_weight
from skcalib._input.tensors import first_index
from skcalib.cross_fitting import ClassifierWrapper


class WrappedClassifier(ClassifierMixin, ClassifierWrapper):
    """Base class of classifiers whose decisions use the probabilities of another
    classifier; metadata are routed to the `fit` method of that classifier.
    """

    classes_: np.ndarray
    estimator_: BaseEstimator
    n_features_in_: int
    feature_names_in_: np.ndarray

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the wrapped classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_proba : ndarray of shape (n_samples, n_classes)
            Probability of each class, in the order of `classes_`.
        """
        check_is_fitted(self)
        return classifier_scores(self.estimator_, X, self.classes_, "predict_proba")

    def _checked_fits(self, X, y, fit_params):
        """Check the data, set `classes_`, and return the `ClassifierFitter` of the
        wrapped classifier.
        """
        fits = self._checked_fitter(X, y, ("predict_proba",), fit_params)
        self.classes_ = fits.classes
        cause = self._binary_because_of()
        if cause and len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported with {cause}. The"
                f" type of the target is multiclass: y has {len(self.classes_)} classes"
                f" ({shown(self.classes_)})."
            )
        return fits

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._binary_because_of()
        return tags

    def _set_fitted(self, model):
        """Set the fitted classifier and what is copied from it; return `self`."""
        self.estimator_ = model
        self._copy_attributes(("n_features_in_", "feature_names_in_"), model)
        return self


class ExpectedCostClassifier(WrappedClassifier):
    """Classifier that takes the action with the lowest expected cost.

    Predicting the most probable class is optimal only if all errors cost the same. This
    classifier weights the probabilities by the cost of each action, so the
    probabilities should be calibrated: wrap a `skcalib.RecalibratedClassifierCV`.

    Parameters
    ----------
    estimator : classifier
        A classifier with `predict_proba`. Wrap a fitted one in a
        `sklearn.frozen.FrozenEstimator`.

    cost_matrix : array-like of shape (n_classes, n_actions), or callable
        Cost of each action (column) for each true class (row, in the order of
        `classes_`), in any unit; gains are negative costs. A callable takes X and
        returns the costs of each sample, of shape (n, n_classes, n_actions).

    actions : array-like of shape (n_actions,), default=None
        Labels of the columns, such as ``["approve", "reject", "ask a person"]``; None
        means the class labels.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The sorted labels of the classes.

    actions_ : ndarray of shape (n_actions,)
        The labels of the actions.

    estimator_ : classifier
        The fitted classifier.

    n_features_in_ : int
        Number of features, if the classifier defines this attribute.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the classifier defines this attribute.

    Raises
    ------
    ValueError
        In `fit`, if `y` has only one class, or the costs do not match the classes and
        actions.
    TypeError
        In `fit`, if `estimator` has no `predict_proba`.

    See Also
    --------
    skcalib.decisions.mean_cost : Score for comparing such classifiers.
    skcalib.decisions.certified_threshold : Limits errors instead of minimising costs.

    Notes
    -----
    The chosen action is the first action a with the smallest
    ``sum over k of p_k C[k, a]``. With two classes and errors of equal cost, an action
    "ask a person" is never taken if it costs at least half as much as an error.

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning.

    Examples
    --------
    A missed tumour costs 9 times as much as an unnecessary treatment, so the model
    treats at a probability of .1 or more. It treats more samples than are malignant.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skcalib.decisions import ExpectedCostClassifier
    >>> data = load_breast_cancer()
    >>> X, y = data.data[:, :2], data.target_names[data.target]
    >>> costs = [[0, 1], [9, 0]]  # rows: benign, malignant; columns: wait, treat
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> model = ExpectedCostClassifier(model, costs, actions=["wait", "treat"]).fit(
    ...     X[::2], y[::2]
    ... )
    >>> (
    ...     int((model.predict(X[1::2]) == "treat").sum()),
    ...     int((y[1::2] == "malignant").sum()),
    ... )
    (165, 110)
    """

    actions_: np.ndarray

    def __init__(
        self,
        estimator: BaseEstimator,
        cost_matrix: ArrayLike | Callable,
        *,
        actions: ArrayLike | None = None,
    ):
        self.estimator = estimator
        self.cost_matrix = cost_matrix
        self.actions = actions

    def fit(self, X: ArrayLike, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples, in any container that the classifier accepts.

        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings.

        **fit_params : dict
            `sample_weight` and other metadata for the classifier.

        Returns
        -------
        self : ExpectedCostClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `y` has only one class, or the costs do not match the classes and
            actions.
        TypeError
            If `estimator` has no `predict_proba`.
        """
        with unchanged_if_refused(self):
            fits = self._checked_fits(X, y, fit_params)
            actions = self.classes_
            if self.actions is not None:
                actions = np.asarray(self.actions)
            if actions.ndim != 1 or len(set(actions.tolist())) < len(actions):
                raise ValueError(
                    "actions must be a list of distinct labels, found"
                    f" {self.actions!r}."
                )
            self.actions_ = actions
            if not callable(self.cost_matrix):
                shape = (len(self.classes_), len(actions))
                _check_costs(self.cost_matrix, shape, self.classes_)
            return self._set_fitted(fits.on_all_rows())

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the action with the lowest expected cost.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        actions : ndarray of shape (n_samples,)
            Labels of the actions.
        """
        costs = self._expected_costs(X)
        return self.actions_[np.argmin(costs, axis=1)]

    def expected_cost(self, X: ArrayLike) -> np.ndarray:
        """Return the expected cost of the chosen action.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        cost : ndarray of shape (n_samples,)
            Cost in the unit of the cost matrix.
        """
        return self._expected_costs(X).min(axis=1)

    def _binary_because_of(self):
        """Return what of the cost matrix allows only two classes, for a message; ""
        without such a limit.
        """
        if np.ndim(self.cost_matrix) == 2 and len(self.cost_matrix) == 2:
            return "a cost_matrix of two rows"
        return ""

    def _expected_costs(self, X):
        """Return the expected cost of each action in each sample, (n, n_actions)."""
        proba = self.predict_proba(X)
        shape = (len(self.classes_), len(self.actions_))
        if not callable(self.cost_matrix):
            return proba @ _check_costs(self.cost_matrix, shape, self.classes_)
        by_row = (len(proba), *shape)
        costs = _check_costs(self.cost_matrix(X), by_row, self.classes_)
        # For each row n and action a, the sum over the classes k of probability times
        # cost.
        return np.einsum("nk,nka->na", proba, costs)


def mean_cost(
    y_true: ArrayLike,
    action: ArrayLike,
    cost_matrix: ArrayLike,
    *,
    actions: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean cost of the actions taken; smaller is better.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    action : array-like of shape (n,)
        The action taken for each sample, such as the predictions of an
        `ExpectedCostClassifier` or of any classifier.
    cost_matrix : array-like of shape (n_classes, n_actions) or (n, n_classes, n_actions)
        Cost of each action (column) for each true class (row).
    actions : array-like of shape (n_actions,), default=None
        Labels of the columns; None means the classes.
    labels : array-like of shape (n_classes,), default=None
        The sorted labels of the samples, required if a class does not occur in
        `y_true`.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.

    Returns
    -------
    cost : float
        Cost in the unit of the cost matrix.

    Raises
    ------
    ValueError
        If the costs do not match the classes and actions, a label or an action is
        unknown, or the lengths differ.

    See Also
    --------
    skcalib.decisions.ExpectedCostClassifier : Takes the action with the lowest expected
        cost.
    skcalib.decisions.net_benefit : Benefit of decisions on two classes, at all
        thresholds.

    References
    ----------
    Elkan (2001), The foundations of cost-sensitive learning.

    Examples
    --------
    Four samples have one missed event at a cost of 9 and one false alarm at a cost of
    1: (9 + 1) / 4.

    >>> from skcalib.decisions import mean_cost
    >>> mean_cost([0, 0, 1, 1], [0, 1, 0, 1], [[0, 1], [9, 0]])
    2.5

    As a scorer for a hyperparameter search, with `labels`, because a class may be
    missing from a fold:

    >>> from sklearn.metrics import make_scorer
    >>> scorer = make_scorer(
    ...     mean_cost,
    ...     greater_is_better=False,
    ...     cost_matrix=[[0, 1], [9, 0]],
    ...     labels=[0, 1],
    ... )
    """  # noqa: E501
    costs = np.asarray(cost_matrix)
    if costs.ndim not in (2, 3):
        raise ValueError(
            "cost_matrix must have one row per class and one column per action, found"
            f" {costs.shape}."
        )
    y_true = check_label_vector(
        y_true, np.size(action), name="y_true", scores_name="action"
    )
    classes, codes = encode_labels(
        y_true, costs.shape[-2], labels, name="y_true", classes_name="labels"
    )
    if actions is None:
        actions = classes
    actions = np.asarray(actions)
    shape = (len(codes), len(classes), len(actions))
    # Without costs of each row the first axis is missing.
    costs = _check_costs(costs, shape[-costs.ndim :], classes)
    action = check_label_vector(action, len(codes), name="action", scores_name="y_true")
    is_taken = action[:, None] == actions
    unknown = ~np.any(is_taken, axis=1)
    if unknown.any():
        row = first_index(unknown)[0]
        raise ValueError(
            f"action has {shown(action[row : row + 1])} in row {row}; the actions are"
            f" {shown(actions)}."
        )
    column = np.argmax(is_taken, axis=1)
    costs_by_row = np.broadcast_to(costs, shape)
    cost = costs_by_row[np.arange(len(codes)), codes, column]
    weight = check_sample_weight(sample_weight, len(cost))
    return float(np.average(cost, weights=weight))


def _check_costs(costs, shape, classes):
    """Return costs as a float64 array, or raise unless they are finite and have the
    shape ([n,] n_classes, n_actions).
    """
    found = as_numbers(costs, "cost_matrix")
    if found.shape != shape:
        raise ValueError(
            f"cost_matrix must have shape {shape}, a row for each of the classes"
            f" {shown(classes)} and a column for each action, found {found.shape}."
            " If the actions are not the classes, name them with actions=."
        )
    if not np.isfinite(found).all():
        at = first_index(~np.isfinite(found))
        raise ValueError(f"cost_matrix must be finite, but entry {at} is {found[at]}.")
    return found
