"""Recalibrators inside other estimators: what they must be, their clones, and the
parameters that are set on them.
"""

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter


def fitted_clone(recalibrator, scores, y, sample_weight=None, **fit_params):
    """Return a clone fitted to rows.

    Weights are passed only if there are some: `fit` may not take any.
    """
    if sample_weight is not None:
        fit_params["sample_weight"] = sample_weight
    return clone(recalibrator).fit(scores, y, **fit_params)


def design_parameters(recalibrator, importance, cluster):
    """Return the keyword arguments of `fit` that say how independent its rows are, of
    those that the recalibrator takes: a dict.

    `importance` says whether the weights are no counts, `cluster` holds the codes (n,)
    of the clusters or is None.
    """
    parameters = {}
    if importance and has_fit_parameter(recalibrator, "weight_type"):
        parameters["weight_type"] = "importance"
    # one cluster alone says nothing about how clusters differ
    are_several = cluster is not None and cluster.min() < cluster.max()
    takes_clusters = has_fit_parameter(recalibrator, "clusters")
    takes_clusters &= getattr(recalibrator, "_uses_clusters", True)
    if are_several and takes_clusters:
        parameters["clusters"] = cluster
    return parameters


def tell(recalibrator, **params):
    """Set the parameters `params`, as far as a recalibrator has parameters of these
    names; return the recalibrator.
    """
    own_params = recalibrator.get_params(deep=False)
    settable = {name: value for name, value in params.items() if name in own_params}
    return recalibrator.set_params(**settable)


def class_parameters(recalibrator, classes):
    """Return a dict with `classes` for each parameter by which the recalibrator, or one
    inside it, takes the labels of the columns.
    """
    parameters = {}
    for name in recalibrator.get_params():
        if name == "classes" or name.endswith("__classes"):
            parameters[name] = classes
    return parameters


def refuse_features(recalibrator, name="recalibrator"):
    """Raise a ValueError if a recalibrator, or a step of a pipeline, takes features
    besides the scores, where only scores are passed. `name` is the user's parameter.
    """
    steps = [recalibrator]
    if isinstance(recalibrator, Pipeline):
        steps = [step for _, step in recalibrator.steps]
    for step in steps:
        if getattr(step, "_takes_features", False) and step.features is not None:
            kind = type(step).__name__
            raise ValueError(
                f"{name} is {kind}(features={step.features!r}), which needs columns in"
                " addition to the scores, but gets only scores here. Fit it to a table"
                " with both, or use"
                f" RecalibratedClassifierCV(model, {kind}(features=...))."
            )


def check_recalibrator(recalibrator, name="recalibrator", *, takes_columns=False):
    """Return the recalibrator; raise a TypeError if it has no `fit` or `predict_proba`,
    or is a classifier of scikit-learn, which maps features and not scores; and a
    ValueError if it needs features besides the scores, unless it `takes_columns`.

    A pipeline passes: it may begin with any transformer of scores.
    """
    if not takes_columns:
        refuse_features(recalibrator, name)
    for method in ("fit", "predict_proba"):
        if not hasattr(recalibrator, method):
            raise TypeError(
                f"{name} must have fit and predict_proba, but {recalibrator!r} has no"
                f" {method}."
            )
    inner = recalibrator
    while hasattr(inner, "estimator"):  # of a search, or of a fitted one
        inner = inner.estimator
    if type(inner).__module__.startswith("sklearn.") and not isinstance(
        inner, Pipeline
    ):
        raise TypeError(
            f"{name} must be a recalibrator of scores, such as PlattScaling(), found"
            f" the classifier {recalibrator!r}."
        )
    return recalibrator
