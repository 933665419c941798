"""What displays draw from: the probabilities of one or several fitted models, by name."""

import numpy as np

__all__ = ["named_models", "predicted_probabilities"]


def named_models(models, name):
    """Return a dict of models, or of their probabilities, by name: `models` is one, or a dict of several."""
    if isinstance(models, dict):
        if not models:
            raise ValueError("There is no model to draw: the dict is empty.")
        if name is not None:
            raise ValueError(f"name={name!r} is for one model; the keys of a dict are the names of several.")
        return {str(key): model for key, model in models.items()}
    return {"model" if name is None else str(name): models}


def predicted_probabilities(estimator, X, name):
    """Return the probabilities of one or several fitted classifiers by name, and the labels of their columns."""
    if name is None and not isinstance(estimator, dict):
        name = type(estimator).__name__
    estimators = named_models(estimator, name)
    for key, model in estimators.items():
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                f"{key} has no predict_proba, and calibration is about probabilities: wrap it in "
                "RecalibratedClassifierCV, or draw its recalibrated scores with from_predictions."
            )
    probabilities = {key: model.predict_proba(X) for key, model in estimators.items()}
    first, *others = (model.classes_ for model in estimators.values())
    if not all(np.array_equal(first, other) for other in others):
        raise ValueError("The estimators must have the same classes_ to be drawn together.")
    return probabilities, first
