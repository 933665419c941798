"""The table of calibration errors: intervals, tests, documentation and the scorers read
it. A new error needs a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from skcalib._errors.bin_free import (
    KolmogorovSmirnovError,
    KuiperError,
    NeighborhoodError,
)
from skcalib._errors.binned import BinnedError, GroupwiseError
from skcalib._errors.decision import DecisionError
from skcalib._errors.error import CalibrationError
from skcalib._errors.kde import KdeError
from skcalib._errors.kernel import KernelError
from skcalib._errors.proper_scores import brier_score, log_loss
from skcalib._errors.smooth import SmoothError
from skcalib._errors.two_bin import TwoBinError
from skcalib._input.classes import UNLABELLED, of_another_type
from skcalib._input.classifier_scores import classifier_scores, label_scores
from skcalib._input.labels import check_label_vector, several_labels_shape
from skcalib._input.later_scorers import LATER_SCORERS
from skcalib._input.scalars import check_keywords
from skcalib._input.scores import check_sample_weight
from skcalib._input.sklearn_private import BaseScorer, num_samples
from skcalib._input.tensors import as_array
from skcalib._rows.blocks import weights_or_ones
from skcalib.metrics._bin_free import (
    kde_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
    smooth_calibration_error,
)
from skcalib.metrics._binned import (
    calibration_error,
    expected_calibration_error,
    expected_error,
    maximum_calibration_error,
    maximum_error,
    sweep_calibration_error,
    sweep_error,
)
from skcalib.metrics._canonical import kernel_calibration_error
from skcalib.metrics._decision import decision_calibration_error
from skcalib.metrics._group_errors import groupwise_calibration_error
from skcalib.metrics._ranked import ranked_probability_score
from skcalib.metrics._two_bin import two_bin_calibration_error


@dataclass(frozen=True, eq=False)
class Metric:
    """A calibration error that is registered by name.

    Parameters
    ----------
    function : callable
        The metric, ``function(y_true, y_proba, ...)``; smaller values are better.
    error : callable
        Creates the `CalibrationError` from the parameters of the function, with the
        same names and defaults: a subclass of `CalibrationError`, or a function that
        returns one.
    limits : tuple of float, default=(0.0, 1.0)
        The smallest and the largest possible value.
    scorers : dict, default=None
        Options of the function for each scorer name; None means a single scorer without
        options, whose name is ``neg_`` plus the name of the function.

    See Also
    --------
    skcalib.metrics.register_metric : Registers such a metric.
    skcalib.metrics.CalibrationError : Base class for calibration errors.

    Examples
    --------
    The metric `overestimation_error` of the guide, with one additional scorer:

    >>> from skcalib.metrics import CalibrationError, Metric
    >>> def overestimation_error(y_true, y_proba, *, norm=1): ...
    >>> row = Metric(
    ...     overestimation_error,
    ...     CalibrationError,  # a subclass of it
    ...     scorers={
    ...         "neg_overestimation_error": {},
    ...         "neg_l2_overestimation_error": {"norm": 2},
    ...     },
    ... )
    >>> row.limits
    (0.0, 1.0)
    """

    function: Callable
    error: Callable
    limits: tuple[float, float] = (0.0, 1.0)
    scorers: dict | None = None

    def error_of(self, params: dict[str, Any]) -> CalibrationError:
        """Return the error for given parameters.

        Parameters
        ----------
        params : dict
            Parameters of the function by name, without per-sample arguments.

        Returns
        -------
        error : CalibrationError
            The error.

        Raises
        ------
        TypeError
            If the function has no such parameter.
        """
        check_keywords(self.function, params)
        return self.error(**params)


METRICS = {
    metric.function.__name__: metric
    for metric in (
        Metric(
            calibration_error,
            BinnedError,
            scorers={
                "neg_calibration_error": {},
                "neg_squared_calibration_error": {"squared": True},
                "neg_l1_calibration_error": {"norm": "l1"},
            },
        ),
        Metric(decision_calibration_error, DecisionError),
        Metric(expected_calibration_error, expected_error),
        Metric(groupwise_calibration_error, GroupwiseError),
        Metric(kde_calibration_error, KdeError),
        Metric(kernel_calibration_error, KernelError, limits=(-2.0, 2.0)),
        Metric(kolmogorov_smirnov_calibration_error, KolmogorovSmirnovError),
        Metric(kuiper_calibration_error, KuiperError),
        Metric(maximum_calibration_error, maximum_error),
        Metric(neighborhood_calibration_error, NeighborhoodError),
        Metric(smooth_calibration_error, SmoothError),
        Metric(sweep_calibration_error, sweep_error),
        Metric(two_bin_calibration_error, TwoBinError, limits=(0.0, 2.0)),
    )
}


_OF_THIS_LIBRARY = frozenset(METRICS)

# Proper scores are no calibration errors; scikit-learn's scorers of these names fail
# for labels that are strings and for a fold in which a class is missing.
_PROPER_SCORES = {
    "neg_brier_score": (brier_score, {}),
    "neg_log_loss": (log_loss, {}),
    "neg_ranked_probability_score": (ranked_probability_score, {}),
}


def register_metric(metric: Metric) -> Metric:
    """Register your own metric to obtain an interval, a test and a scorer for it.

    `calibration_error_interval` and `calibration_test` then accept its function, and
    `get_scorer` and `compare` accept its name.

    Parameters
    ----------
    metric : Metric
        The metric to add. It replaces a registered metric of the same name, unless that
        metric is part of this library.

    Returns
    -------
    metric : Metric
        The registered metric.

    Raises
    ------
    ValueError
        If a metric of this library has the same name.

    See Also
    --------
    skcalib.metrics.CalibrationError : Base class for calibration errors.

    Examples
    --------
    The distance between mean score and event frequency is the error of a single bin:

    >>> from dataclasses import dataclass
    >>> from skcalib.metrics import (
    ...     CalibrationError,
    ...     ErrorPower,
    ...     Metric,
    ...     calibration_error_interval,
    ...     register_metric,
    ... )
    >>> class BiasPower(ErrorPower):
    ...     def power(self, frequency):
    ...         return abs((frequency - self.scores) @ self.share)
    >>> @dataclass(frozen=True, eq=False, kw_only=True)
    ... class BiasError(CalibrationError):
    ...     def of_task(self, task, most=None):
    ...         return BiasPower(task.cells(most))
    >>> def bias(y_true, y_proba=None, *, sample_weight=None):
    ...     return BiasError().value(y_true, y_proba, sample_weight=sample_weight)
    >>> row = register_metric(Metric(bias, BiasError))
    >>> y_true, y_proba = [0, 1, 1, 1] * 50, [0.25, 0.25, 0.5, 0.5] * 50
    >>> calibration_error_interval(
    ...     y_true, y_proba, metric=bias, random_state=0
    ... ).low > 0.3
    True
    """
    name = metric.function.__name__
    if name in _OF_THIS_LIBRARY:
        raise ValueError(f"{name} is a metric of skcalib: give yours a different name.")
    METRICS[name] = metric
    return metric


def metric_of(function):
    """Return the `Metric` of a function, or None for a function that is not
    registered.
    """
    metric = METRICS.get(getattr(function, "__name__", None))
    if metric is None or metric.function is not function:
        return None
    return metric


def scorers():
    """Return all scorers as a dict from the name to a pair: the metric, a function, and
    a dict of the options that it is called with.
    """
    found = {}
    for metric_name, metric in METRICS.items():
        # Some metrics define several scorers; by default it is one, with the metric's
        # default options.
        options_by_name = metric.scorers or {f"neg_{metric_name}": {}}
        for name, options in options_by_name.items():
            found[name] = metric.function, options
    found |= _PROPER_SCORES
    # Functions of other modules, which are imported only now.
    for name, load in LATER_SCORERS.items():
        found[name] = load()
    return found


def get_scorer_names() -> list[str]:
    """Return the names that `get_scorer` accepts.

    Returns
    -------
    names : list of str
        Sorted names.

    See Also
    --------
    skcalib.metrics.get_scorer : Returns the scorer with a given name.

    Examples
    --------
    >>> from skcalib.metrics import get_scorer_names
    >>> "neg_expected_calibration_error" in get_scorer_names()
    True
    """
    return sorted(scorers())


def get_scorer(name: str, **options: Any) -> CalibrationScorer:
    """Return a scikit-learn scorer for a calibration error or a proper score.

    Larger values are better.

    Unlike ``make_scorer(metric, response_method="predict_proba")``, this scorer takes
    the classes from the estimator. It therefore works with labels of any type, on folds
    in which a class is missing, and on folds with a class that was not in the training
    data (whose probability is then zero). If `y` is an indicator matrix of several
    labels, the scorer accepts the predictions of `MultiOutputClassifier`,
    `OneVsRestClassifier`, forests and neural networks.

    Parameters
    ----------
    name : str
        One of `get_scorer_names()`. "neg_squared_calibration_error" is the negative of
        the signed unbiased squared error. Its mean over folds is nearly unbiased, and
        good candidates are not tied at zero, so it is recommended for hyperparameter
        searches. "neg_brier_score" and "neg_log_loss" are proper scores, which also
        work when the scorers of scikit-learn return NaN. "neg_ranked_probability_score"
        is that of classes with an order (`order=` for labels that are words).
        "neg_refinement_log_loss" and
        "neg_refinement_brier_score" are the parts of these scores that remain after
        recalibration; see `skcalib.evaluation.refinement_loss`.
    **options : dict
        Options of the metric, such as ``binning=20`` or ``pos_label="yes"``. By
        default, the second of the two classes is the positive class.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y_true, sample_weight=None)``.

    Raises
    ------
    ValueError
        If there is no scorer with that name.
    TypeError
        If the metric has no such option. `labels` is not an option, because the labels
        are taken from the estimator.

    See Also
    --------
    skcalib.metrics.get_scorer_names : The names of the scorers.
    skcalib.model_selection.sharpest_within : Selects the candidate with the best score
        whose error is within a limit.

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
            f"Unknown scorer {name!r}. The available ones are"
            f" {', '.join(get_scorer_names())}."
        )
    metric, defaults = known_scorers[name]
    known = sorted(
        set(signature(metric).parameters)
        - {"y_true", "y_proba", "sample_weight", "labels"}
    )
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(
            f"{name} has no option {', '.join(unknown)}. The options are"
            f" {', '.join(known)}."
        )
    return CalibrationScorer(
        metric,
        sign=-1,  # a smaller error is better
        kwargs={**defaults, **options},
        response_method="predict_proba",
    )


class CalibrationScorer(BaseScorer):
    """Scorer that passes the classes of the columns to the metric."""

    def _score(self, method_caller, estimator, X, y_true, **kwargs):
        """Return the score of a classifier, minus the metric of its probabilities.

        scikit-learn calls this method. Its argument `method_caller`, which caches
        predictions, is not used: among several scorers the cache keeps the column of
        the first one's positive class.
        """
        if not (hasattr(estimator, "classes_") and hasattr(estimator, "predict_proba")):
            raise TypeError(
                "A calibration scorer needs a fitted classifier with classes_ and"
                f" predict_proba, found {estimator!r}. Fit it, and wrap a classifier"
                " without predict_proba in RecalibratedClassifierCV."
            )
        if several_labels_shape(y_true) is not None:
            y_proba = label_scores(estimator, X)
            options = {**self._kwargs, **kwargs}
            return self._sign * self._score_func(y_true, y_proba, **options)
        y_true = check_label_vector(
            y_true, num_samples(X), name="y_true", scores_name="X"
        )
        classes, _ = as_array(estimator.classes_)
        # Rows without a label, for a semi-supervised classifier, are not scored.
        is_unlabelled = y_true == UNLABELLED
        if np.any(is_unlabelled) and len(classes) > 1 and UNLABELLED not in classes:
            if is_unlabelled.all():
                raise ValueError("y_true has only the label -1: no row is labelled.")
            weight = check_sample_weight(kwargs.get("sample_weight"), len(y_true))
            weight = weights_or_ones(weight, len(y_true))
            kwargs["sample_weight"] = np.where(is_unlabelled, 0, weight)
            y_true = np.where(is_unlabelled, classes[0], y_true)
        # The union would make text of numbers.
        if isinstance(y_true[0], str) != isinstance(classes[0], str):
            raise of_another_type(y_true, classes, "y_true", "classes_")
        labels = np.union1d(classes, y_true)
        if len(labels) == 1:
            return 0.0  # the only class there is, predicted with certainty
        # A label that the estimator has never seen has probability 0.
        y_proba = classifier_scores(
            estimator, X, labels, "predict_proba", rows_sum_to_one=False
        )
        options = {**self._kwargs, **kwargs}
        value = self._score_func(y_true, y_proba, labels=labels, **options)
        return self._sign * value
