"""What displays draw from: the probabilities of one or several fitted models, by
name.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.reductions import binary_tasks
from skcalib._input.classifier_scores import classifier_scores, label_scores
from skcalib._input.labels import several_labels_shape
from skcalib._input.scalars import hint_at_keywords, parameters_of
from skcalib._input.scored_labels import check_scored_labels


class FromEstimator:
    """Mixin for displays, with a `from_estimator` that calls `from_predictions`.

    The error for an unknown option of `plot` names the display and, if another
    constructor accepts the option, that constructor.
    """

    def __init_subclass__(cls):
        """When a display class is defined, replace its `plot` by one whose error for an
        unknown option names the constructor, such as `from_predictions`, that takes it.
        """
        constructors = []
        for name in dir(cls):
            if name.startswith("from_") and name != "from_estimator":
                constructors.append(getattr(cls, name))
        # `from_predictions` first, as False is sorted before True: it is the one named
        # for an option that several take.
        constructors.sort(key=lambda maker: maker.__name__ != "from_predictions")
        constructor_of_option = {}
        for constructor in constructors:
            for option in parameters_of(constructor):
                constructor_of_option.setdefault(option, constructor.__name__)
        cls.plot = hint_at_keywords(cls.plot, cls.__name__, constructor_of_option)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw the display for one or several fitted classifiers or recalibrators.

        Parameters
        ----------
        estimator : classifier or dict of classifiers by name
            Fitted classifiers with `predict_proba`. A dict is accepted only by displays
            whose `from_predictions` accepts a dict.
        X : array-like of shape (n, n_features)
            Samples that were not used to fit the classifier.
        y : array-like of shape (n,) or (n, L)
            Labels. An indicator matrix for several labels per row is accepted only by
            displays whose `from_predictions` accepts it.
        name : str, default=None
            Name of the model in the figure; None means the name of its class.
        **options : dict
            Options of `from_predictions`.

        Returns
        -------
        display : object
            The drawn display, an instance of the class on which the method is called.

        Raises
        ------
        ValueError
            If the estimator has no `predict_proba`, or if `y` contains labels that are
            not among its classes.
        """
        if several_labels_shape(y) is None:
            probabilities, classes = predicted_probabilities(estimator, X, name)
            options = {"labels": classes, **options}
        else:
            probabilities = {}
            for key, model in _named_estimators(estimator, name).items():
                probabilities[key] = label_scores(model, X)
        if not isinstance(estimator, dict):
            ((name, probabilities),) = probabilities.items()
            if "name" in signature(cls.from_predictions).parameters:
                options = {"name": name, **options}
        return cls.from_predictions(y, probabilities, **options)


def _as_text(name):
    """Return the name of a model as text; None stands for no name and stays None."""
    if name is None:
        return None
    return str(name)


def named_models(models: Any, name: str | None) -> dict[str | None, Any]:
    """Return a dict that maps names to models or to their probabilities.

    Parameters
    ----------
    models : object or dict
        One model, or a dict that maps names to models.
    name : str or None
        Name of a single model. With None, no name is shown.

    Returns
    -------
    models : dict
        The models by name.

    Raises
    ------
    ValueError
        If the dict is empty, or if `name` is given together with a dict.
    """
    if not isinstance(models, dict):
        return {_as_text(name): models}
    if not models:
        raise ValueError("There is no model to plot: the dict is empty.")
    if name is not None:
        raise ValueError(
            f"name={name!r} is for a single model; for several models, the keys of the"
            " dict are the names."
        )
    return {_as_text(key): model for key, model in models.items()}


def cells_of_models(
    y_true, models, multiclass, refusal, *, same_event=False, **input_options
):
    """Return the `Cells` of each model by name: the weight and the events at each of
    its distinct scores, in increasing order.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    models : dict
        Probabilities by name.
    multiclass : {"auto", "top_label", "marginal"}
        What the event is.
    refusal : str
        Message of the error for "marginal", which has several events, and for models
        whose events must be the same but differ.
    same_event : bool
        Whether all models must have the same event. "The predicted class is right" is
        a different event for each model.
    **input_options : dict
        Further arguments of `check_scored_labels`, such as weights.
    """
    cells = {}
    for model, proba in models.items():
        data = check_scored_labels(
            y_true, proba, multiclass=multiclass, **input_options
        )
        is_marginal = resolve_multiclass(multiclass, data) == "marginal"
        events_differ = len(models) > 1 and not data.is_binary
        if is_marginal or (same_event and events_differ):
            raise ValueError(refusal)
        problem = next(binary_tasks(data, multiclass))  # the only one
        cells[model] = problem.cells()
    return cells


def _named_estimators(estimator, name):
    """Return fitted classifiers with probabilities as a dict by name. `estimator` is
    such a dict already, or a classifier that gets this `name` (None: that of its
    class).
    """
    if name is None and not isinstance(estimator, dict):
        name = type(estimator).__name__
    estimators = named_models(estimator, name)
    for key, model in estimators.items():
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"{key} has no predict_proba, but calibration needs probabilities: wrap"
                " it in RecalibratedClassifierCV, or draw its recalibrated scores with"
                " from_predictions."
            )
    for model in estimators.values():
        check_is_fitted(model)
    return estimators


def predicted_probabilities(estimator, X, name):
    """Return a dict with the probabilities (n, n_classes) that each fitted classifier
    gives the rows of X, by its name, and the labels of the columns (n_classes,).

    `estimator` is a classifier or a dict of classifiers by name, `name` that of a
    single one; None means the name of its class.
    """
    estimators = _named_estimators(estimator, name)
    classes = np.unique(next(iter(estimators.values())).classes_)
    probabilities = {}
    for key, model in estimators.items():
        if not np.array_equal(np.unique(model.classes_), classes):
            raise ValueError(
                "The estimators must have the same classes_ to be drawn together."
            )
        # Whether rows must sum to 1 is checked where the display reads them.
        probabilities[key] = classifier_scores(
            model, X, classes, "predict_proba", rows_sum_to_one=False
        )
    return probabilities, classes
