"""Hypothesis tests of calibration: whether the error that is seen is more than noise."""

from itertools import chain
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from skcalib._cells.reductions import binary_tasks, resolve_multiclass
from skcalib._inference.closed_form import (
    hosmer_lemeshow,
    kolmogorov_smirnov,
    kuiper,
    spiegelhalter,
)
from skcalib._inference.count_draws import cluster_labels
from skcalib._inference.hypotheses import Resampling, error_hypotheses
from skcalib._inference.inversion import resampling_pvalue
from skcalib._inference.results import record_html, record_text
from skcalib._input.scalars import check_int, check_option, hint_at_keywords
from skcalib._input.scores import check_scores
from skcalib._progress import Progress
from skcalib.binning import EqualMass, check_binning
from skcalib.metrics._errors import sweep_calibration_error
from skcalib.metrics._interval import checked_input, kept_rows, unwrapped_metric
from skcalib.metrics._table import METRICS, metric_of


class CalibrationTestResult(NamedTuple):
    """Result of a test of calibration.

    Parameters
    ----------
    statistic : float
        The test statistic.
    pvalue : float
        Probability, for calibrated scores, of a statistic at least as extreme; small speaks against calibration.
    """

    statistic: float
    pvalue: float

    __repr__ = record_text
    _repr_html_ = record_html


@hint_at_keywords
def calibration_test(
    y_true,
    y_proba=None,
    *,
    method="resampling",
    metric=None,
    clusters=None,
    n_resamples=999,
    binning=None,
    multiclass="auto",
    sample_weight=None,
    weight_type="frequency",
    pos_label=None,
    labels=None,
    n_jobs=None,
    random_state=None,
    verbose=False,
):
    """Test the hypothesis that scores are calibrated, on rows that were not used to fit them.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins, in place of `y_true`, `y_proba` and all that describes rows: for
        "hosmer_lemeshow", for a binned `metric` and, with one distinct score per bin, for the cumulative differences.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    method : {"resampling", "kuiper", "kolmogorov_smirnov", "spiegelhalter", "hosmer_lemeshow"}, default="resampling"
        "resampling" draws labels from the scores themselves (consistency resampling) and compares the metric on them
        with that on the true labels. "kuiper" and "kolmogorov_smirnov" compare the largest cumulative difference of
        labels and scores with that of Brownian motion: quick, for any number of rows, and a little conservative for
        few. "spiegelhalter" compares the Brier score with its expectation (two-sided, normal approximation); it is
        blind to errors that balance there. "hosmer_lemeshow" is the chi-squared test over equal-mass bins; see Notes.
    metric : callable, default=None
        Statistic of the resampling test, large for miscalibrated scores: an error of this module, or any
        ``metric(y_true, y_proba)``, called with ``sample_weight``, ``labels`` and ``multiclass`` only where they are
        needed. None means `sweep_calibration_error`.
    clusters : array-like of shape (n,), default=None
        Rows that are not independent (of one patient or match) have the same entry. Labels are drawn from the scores
        with the dependence within clusters (one correlation of a normal copula) that the residuals ``y - s`` show. For
        "resampling", "kuiper" and "kolmogorov_smirnov", which are resampled then.
    n_resamples : int, default=999
        Number of label vectors drawn; the smallest p-value is ``1 / (n_resamples + 1)``.
    binning : BaseBinning, int or None, default=None
        Bins of the Hosmer-Lemeshow test; None means ``EqualMass(10)``.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`; "marginal" and "pooled" have a resampling test only.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        What weights are. "frequency": they count rows, a weight of 2 is two rows. "importance": each row was seen once
        and stands for more or fewer (a sampling correction, a covariate shift); weights w are worth ``sum(w)**2 /
        sum(w**2)`` rows, in each cell.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    n_jobs : int, default=None
        Threads, for a `metric` that is not of this module.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.
    verbose : bool, default=False
        Whether a resampling test writes to stderr how many label vectors are drawn.

    Returns
    -------
    result : CalibrationTestResult
        Named tuple (statistic, pvalue): the metric, the Kuiper or Kolmogorov-Smirnov error, Spiegelhalter's z, or
        chi-squared.

    Raises
    ------
    ValueError
        For invalid input and for parameters that do not belong to `method`.

    Warns
    -----
    UserWarning
        For weights that are not integers with ``weight_type="frequency"``.
        Where the expected counts are too small for the approximation of "spiegelhalter" or "hosmer_lemeshow"; where
        `clusters` are given and fewer than 40 events or non-events are expected.

    See Also
    --------
    skcalib.metrics.calibration_error_interval : An error with its interval.
    skcalib.metrics.segment_calibration_test : The worst segment, and whether it is noise.
    skcalib.monitoring.CalibrationMonitor : An alarm that may be looked at after every row.

    Notes
    -----
    The resampling test keeps its level for any metric, number of rows and ties, and its cost hardly grows with n for
    the errors of this module. These are computed from the sums of cells: bins, distinct scores, or 4,096 cells of
    nearly equal scores where there are more than 8,192 distinct ones. The number of events in a cell has the same mean
    and variance as with labels drawn row by row. Only higher moments are approximated, where scores differ within a
    cell. With the same `random_state` it draws the same labels as `calibration_error_interval`.

    The Hosmer-Lemeshow statistic has as many degrees of freedom as there are bins (with a variance). This is right for
    scores that were fitted on other rows. The usual "bins - 2" is for the rows of the fit, and would reject 8 to 14 %
    of calibrated models at level .05. Its chi-squared approximation is poor where bins expect few events. At level .05
    it rejects 14.7 % of calibrated models with scores from Beta(1, 999) and n = 1000, and 11.3 % with Beta(1, 19) and n
    = 200. With a constant score of .01 and n = 100 it rejects 7.5 %, and with 20 uniform scores 8.0 %. Spiegelhalter's
    test rejects 7.5 % with a constant score of .01 and n = 100. Both warn where so few events or non-events are
    expected. Prefer the resampling test.

    Where all scores are 0, 1 or (Spiegelhalter) 1/2 nothing is random: the p-value is 1 if the labels agree, else 0.

    References
    ----------
    Bröcker and Smith (2007), Increasing the reliability of reliability diagrams. Spiegelhalter (1986), Probabilistic
    prediction in patient management and clinical trials. Hosmer and Lemeshow (1980), Goodness of fit tests for the
    multiple logistic regression model. Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of calibration for
    probabilistic predictions. Feller (1951), The asymptotic distribution of the range of sums of independent random
    variables.

    Examples
    --------
    Twenty events where ten were expected: z = sum((y - s)(1 - 2s)) / sqrt(sum((1 - 2s)^2 s (1 - s))).

    >>> from skcalib.metrics import calibration_test
    >>> y_true, y_proba = [1] * 20 + [0] * 20, [0.25] * 40
    >>> result = calibration_test(y_true, y_proba, method="spiegelhalter")
    >>> round(result.statistic, 3), round(result.pvalue, 4)
    (3.651, 0.0003)
    >>> calibration_test(y_true, y_proba, random_state=0).pvalue < 0.01
    True
    """
    _check_method(method, metric, binning)
    rows = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
    }
    data, cluster, value = checked_input(
        y_true, y_proba, rows, weight_type, clusters, binning
    )
    kind = resolve_multiclass(multiclass, data, pooled=True)
    is_cumulative = f"{method}_calibration_error" in METRICS
    if is_cumulative and (cluster is not None or kind == "pooled"):
        method, metric = "resampling", METRICS[f"{method}_calibration_error"].function
    if method == "resampling":
        check_int(n_resamples, "n_resamples")
        progress = Progress("calibration_test", verbose)
        importance = weight_type == "importance"
        resampling = Resampling(
            n_resamples, check_random_state(random_state), cluster, importance, progress
        )
        return _resampling_test(metric, value, multiclass, data, resampling, n_jobs)
    if clusters is not None:
        raise ValueError(
            f'clusters= has no meaning for method={method!r}: use "resampling" or "kuiper".'
        )
    if kind in ("marginal", "pooled"):
        raise ValueError(
            f"method={method!r} tests one binary problem with independent labels, multiclass={kind!r} is none: use "
            '"resampling" or "top_label".'
        )
    (task,) = binary_tasks(kept_rows(data), multiclass)
    options = (
        (check_binning(binning, EqualMass(10)),) if method == "hosmer_lemeshow" else ()
    )
    statistic, pvalue = _CLOSED_FORM[method](task, *options)
    return CalibrationTestResult(float(statistic), float(pvalue))


def _check_method(method, metric, binning):
    check_option(method, "method", ("resampling", *_CLOSED_FORM))
    if metric is not None and method != "resampling":
        raise ValueError(
            f'metric is the statistic of method="resampling" and has no meaning for {method!r}.'
        )
    if metric is not None and not callable(metric):
        raise TypeError(
            f"metric must be a function (y_true, y_proba) -> number, found {metric!r}."
        )
    if binning is not None and method != "hosmer_lemeshow":
        raise ValueError(
            f'binning is for method="hosmer_lemeshow" and has no meaning for {method!r}: see metric.'
        )


def _resampling_test(metric, value, multiclass, data, resampling, n_jobs):
    given = {} if multiclass == "auto" else {"multiclass": multiclass}
    if resolve_multiclass(multiclass, data, pooled=True) == "marginal":
        check_scores(
            data.scores, name="y_proba"
        )  # one label a row is drawn: rows must sum to 1
    known, params = unwrapped_metric(metric or sweep_calibration_error, given)
    row = metric_of(known)
    error = None if row is None else row.error(params)
    if error is not None and not error.has_bins_of_labels:
        statistic = float(value(known, **params))
        return CalibrationTestResult(
            statistic, resampling_pvalue(error_hypotheses(error, data, resampling))
        )
    if multiclass == "pooled":
        check_scores(data.scores, name="y_proba")
    kept = kept_rows(data)
    draws = _drawn_rows(kept, resampling.at(data.kept))
    draws = resampling.progress.over(draws, resampling.n_draws, "draws")
    if row is not None and row.statistics is not None:
        statistic, statistics = (
            float(value(known, **params)),
            row.statistics(kept, draws, **params),
        )
    else:
        if not kept.is_binary:
            given["labels"] = np.arange(len(kept.classes))
        observed, parallel = (
            (kept.labels, kept.scores, _weights(kept)),
            Parallel(n_jobs=n_jobs, prefer="threads"),
        )
        calls = (
            delayed(metric)(*rows, **given, **weight)
            for *rows, weight in chain([observed], draws)
        )
        statistics = list(map(float, parallel(calls)))
        statistic = statistics[0]
    # Labels that give the same bins may differ in the last digit of the statistic.
    return CalibrationTestResult(
        statistic, float(np.mean(np.asarray(statistics) >= statistics[0] - 1e-12))
    )


def _weights(data):
    return {} if data.sample_weight is None else {"sample_weight": data.sample_weight}


def _drawn_rows(data, resampling):
    """Yield labels drawn from the scores, their scores and, as a dict, their weights.

    A row of weight w that counts rows is floor(w) draws and one that weighs the rest: it comes back as a row for each
    class.
    """
    probability = (
        np.column_stack((1 - data.scores, data.scores))
        if data.is_binary
        else data.scores
    )
    weight = _weights(data)
    if resampling.cluster is not None:
        for codes in cluster_labels(
            probability, data.labels.astype(np.intp), data.sample_weight, resampling
        ):
            yield codes.astype(data.labels.dtype), data.scores, weight
        return
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    cumulative /= cumulative[:, -1:]
    for _ in range(resampling.n_draws):
        codes = np.count_nonzero(
            cumulative <= resampling.rng.random_sample((len(probability), 1)), axis=1
        )
        if weight and not resampling.importance:
            yield _repeated(codes, cumulative, data, resampling.rng)
        else:
            yield codes.astype(data.labels.dtype), data.scores, weight


def _repeated(codes, cumulative, data, rng):
    """Return what `_drawn_rows` yields where rows count more than once; the rest of a weight gets the label drawn."""
    n, n_classes = cumulative.shape
    whole = np.floor(data.sample_weight)
    weight = np.zeros((n, n_classes))
    left, reached = whole.astype(np.int64), 0.0
    for k in range(
        n_classes
    ):  # binomial draws of what the classes before have left over
        share = np.divide(
            cumulative[:, k] - reached, 1 - reached, out=np.ones(n), where=reached < 1
        )
        weight[:, k] = rng.binomial(left, np.clip(share, 0, 1))
        left, reached = left - weight[:, k].astype(np.int64), cumulative[:, k]
    weight[np.arange(n), codes] += data.sample_weight - whole
    labels = np.repeat(np.arange(n_classes), n).astype(data.labels.dtype)
    return (
        labels,
        np.concatenate([data.scores] * n_classes),
        {"sample_weight": weight.T.ravel()},
    )


_CLOSED_FORM = {
    "spiegelhalter": spiegelhalter,
    "hosmer_lemeshow": hosmer_lemeshow,
    "kuiper": kuiper,
    "kolmogorov_smirnov": kolmogorov_smirnov,
}
