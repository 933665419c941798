"""The table of calibration errors: intervals, tests, documentation and the scorers read it. A new error needs a row."""

from collections.abc import Callable
from inspect import signature
from typing import NamedTuple

import numpy as np

from skcalib._errors.bin_free import (
    KolmogorovSmirnovPower,
    KuiperPower,
    NeighborhoodPower,
)
from skcalib._errors.binned import BinnedPower
from skcalib._errors.kernel import KernelPower
from skcalib._errors.proper_scores import brier_score, log_loss
from skcalib._errors.smooth import SmoothPower
from skcalib._errors.sweep import SweepPower
from skcalib._input.sklearn_private import BaseScorer
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics._bin_free import (
    kde_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
    smooth_calibration_error,
)
from skcalib.metrics._canonical import kernel_calibration_error, kernel_statistics
from skcalib.metrics._decision import DecisionPower, decision_calibration_error
from skcalib.metrics._errors import (
    calibration_error,
    error_of,
    expected_calibration_error,
    maximum_calibration_error,
    sweep_calibration_error,
)
from skcalib.metrics._groupwise import groupwise_calibration_error


class Metric(NamedTuple):
    """A row of the table.

    Parameters
    ----------
    function : callable
        The error, ``function(y_true, y_proba, ...)``; smaller is better.
    power : type or None
        What it is a root of, a class of `skcalib._errors`: its interval and its resampling test come from it.
    defaults : dict, default={}
        Parameters of the power where the caller of the function names none; `binning` and `method` where it is binned.
    limits : tuple of float, default=(0.0, 1.0)
        The least and the largest value.
    scorers : dict, default=None
        Options of the function by the name of the scorer; None means ``neg_`` and the name of the function, without
        options.
    statistics : callable, default=None
        Of an error that has a test and no interval, without a power: ``statistics(data, draws, **params)`` returns what
        the test compares, of the labels and of the drawn ones.
    """

    function: Callable
    power: type | None
    defaults: dict = {}  # noqa: RUF012
    limits: tuple = (0.0, 1.0)
    scorers: dict | None = None
    statistics: Callable | None = None

    def error(self, given):
        """Return the `Error` for the parameters that a caller gave; None without a power."""
        return (
            None if self.power is None else error_of(self.power, given, self.defaults)
        )


_NORMS = {
    "neg_calibration_error": {},
    "neg_squared_calibration_error": {"squared": True},
    "neg_l1_calibration_error": {"norm": "l1"},
}

_DEBIASED = {"norm": 2, "binning": EqualMass(15), "method": "auto"}
_PLUGIN = {"norm": 1, "binning": EqualWidth(15), "method": "plugin"}
_BY_GROUP = _PLUGIN | {"groups": "predicted_class", "reduce": "max"}

METRICS = {
    row.function.__name__: row
    for row in (
        Metric(calibration_error, BinnedPower, _DEBIASED, scorers=_NORMS),
        Metric(decision_calibration_error, DecisionPower),
        Metric(expected_calibration_error, BinnedPower, _PLUGIN),
        Metric(groupwise_calibration_error, BinnedPower, _BY_GROUP),
        Metric(kde_calibration_error, KernelPower),
        Metric(
            kernel_calibration_error,
            None,
            limits=(-2.0, 2.0),
            statistics=kernel_statistics,
        ),
        Metric(kolmogorov_smirnov_calibration_error, KolmogorovSmirnovPower),
        Metric(kuiper_calibration_error, KuiperPower),
        Metric(maximum_calibration_error, BinnedPower, _PLUGIN | {"norm": np.inf}),
        Metric(neighborhood_calibration_error, NeighborhoodPower),
        Metric(smooth_calibration_error, SmoothPower),
        Metric(sweep_calibration_error, SweepPower),
    )
}


# Proper scores are no calibration errors; scikit-learn's scorers of these names fail for labels that are strings and
# for a fold in which a class is missing.
_PROPER_SCORES = {"neg_brier_score": (brier_score, {}), "neg_log_loss": (log_loss, {})}


def metric_of(function):
    """Return the row of a function; None for one that is not of this library and names no `power` of its own."""
    row = next((row for row in METRICS.values() if row.function is function), None)
    power = getattr(function, "power", None)
    return Metric(function, power) if row is None and power is not None else row


def scorers():
    """Return (function, options) of every scorer by its name."""
    errors = {
        name: (row.function, options)
        for key, row in METRICS.items()
        for name, options in (row.scorers or {f"neg_{key}": {}}).items()
    }
    return errors | _PROPER_SCORES


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
    >>> round(
    ...     get_scorer("neg_expected_calibration_error")(GaussianNB().fit(X, y), X, y),
    ...     3,
    ... )
    -0.056
    """
    known_scorers = scorers()
    if name not in known_scorers:
        raise ValueError(
            f"There is no scorer {name!r}. The names are {', '.join(get_scorer_names())}."
        )
    metric, defaults = known_scorers[name]
    known = sorted(
        set(signature(metric).parameters)
        - {"y_true", "y_proba", "sample_weight", "labels"}
    )
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(
            f"{name} has no option {', '.join(unknown)}. The options are {', '.join(known)}."
        )
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
        return self._sign * self._score_func(
            y_true, y_proba, labels=labels, **{**self._kwargs, **kwargs}
        )


def _with_unseen_classes(y_proba, classes, labels):
    """Return columns for all labels: zero for those that the estimator has never seen."""
    columns = np.zeros((len(y_proba), len(labels)), dtype=y_proba.dtype)
    columns[:, np.searchsorted(labels, classes)] = y_proba
    return columns
