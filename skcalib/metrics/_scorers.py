"""The metrics as scikit-learn scorers, by name."""

from inspect import signature

import numpy as np

from skcalib._input.sklearn_private import BaseScorer
from skcalib.metrics._table import scorers


def get_scorer_names():
    """Return the names that `get_scorer` knows.

    Returns
    -------
    names : list of str
        Sorted names.

    See Also
    --------
    skcalib.metrics.get_scorer : A scorer by name.

    Examples
    --------
    >>> from skcalib.metrics import get_scorer_names
    >>> "neg_expected_calibration_error" in get_scorer_names()
    True
    """
    return sorted(scorers())


def get_scorer(name, **options):
    """Return a scikit-learn scorer for a calibration error or a proper score, larger being better.

    Unlike ``make_scorer(metric, response_method="predict_proba")`` it takes the classes from the estimator. So it
    works with labels of any type, on a fold in which a class is missing, and where the estimator has never seen a
    class of the fold (which then has the probability zero).

    Parameters
    ----------
    name : str
        One of `get_scorer_names()`. "neg_squared_calibration_error" is minus the signed unbiased square. Its mean over
        folds is nearly unbiased and does not tie at zero: recommended for searches. "neg_brier_score" and
        "neg_log_loss" are the proper scores, which work where scikit-learn's give NaN.
    **options : dict
        Options of the metric, such as ``binning=20`` or ``pos_label="yes"``; two classes have the second one as the
        positive class by default.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y_true, sample_weight=None)``.

    Raises
    ------
    ValueError
        If there is no scorer of that name.
    TypeError
        If the metric has no such option; the labels are the estimator's and cannot be one.

    See Also
    --------
    skcalib.metrics.get_scorer_names : The names of the scorers.
    skcalib.model_selection.sharpest_within : The best score within a limit on the error.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.metrics import get_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(get_scorer("neg_expected_calibration_error")(GaussianNB().fit(X, y), X, y), 3)
    -0.056
    """
    known_scorers = scorers()
    if name not in known_scorers:
        raise ValueError(f"There is no scorer {name!r}. The names are {', '.join(get_scorer_names())}.")
    metric, defaults = known_scorers[name]
    known = sorted(set(signature(metric).parameters) - {"y_true", "y_proba", "sample_weight", "labels"})
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"{name} has no option {', '.join(unknown)}. The options are {', '.join(known)}.")
    return CalibrationScorer(metric, -1, {**defaults, **options}, "predict_proba")


class CalibrationScorer(BaseScorer):
    """Scorer that tells the metric which classes the columns stand for."""

    def _score(self, method_caller, estimator, X, y_true, **kwargs):
        if not (hasattr(estimator, "classes_") and hasattr(estimator, "predict_proba")):
            raise TypeError(
                f"A calibration scorer needs a fitted classifier with classes_ and predict_proba, found {estimator!r}."
            )
        # Not by `method_caller`: among several scorers its cache keeps the column of the first one's positive class.
        y_proba = np.asarray(estimator.predict_proba(X))
        y_true = np.asarray(y_true)
        labels = np.union1d(estimator.classes_, y_true)
        if len(labels) == 1:
            return 0.0  # the only class there is, predicted with certainty
        if len(labels) > len(estimator.classes_):
            y_proba = _with_unseen_classes(y_proba, estimator.classes_, labels)
        return self._sign * self._score_func(y_true, y_proba, labels=labels, **{**self._kwargs, **kwargs})


def _with_unseen_classes(y_proba, classes, labels):
    """Return columns for all labels: zero for those that the estimator has never seen."""
    columns = np.zeros((len(y_proba), len(labels)), dtype=y_proba.dtype)
    columns[:, np.searchsorted(labels, classes)] = y_proba
    return columns
