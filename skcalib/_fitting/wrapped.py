"""Recalibrators inside other estimators: what they must be, their clones and the
parameters that they are told.
"""

from sklearn.base import clone
from sklearn.pipeline import Pipeline


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
    """Return `classes` under each name by which the recalibrator or one inside it takes
    them.
    """
    parameters = {}
    for name in recalibrator.get_params():
        if name == "classes" or name.endswith("__classes"):
            parameters[name] = classes
    return parameters


def check_recalibrator(recalibrator, name="recalibrator"):
    """Return an object that maps scores to probabilities; the classifiers of
    scikit-learn map features.

    A pipeline may begin with any transformer of scores.
    """
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
