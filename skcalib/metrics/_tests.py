"""Hypothesis tests of calibration: whether the error that is seen is more than noise."""

from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import chi2, norm
from sklearn.utils import check_random_state

from skcalib._bins.reductions import binary_tasks, resolve_multiclass
from skcalib._input.scalars import check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.scores import check_scores
from skcalib.binning import EqualMass, check_binning
from skcalib.binning._distinct_scores import DistinctScores
from skcalib.binning._sweep import EqualMassCuts, sweep
from skcalib.metrics._sweep import sweep_calibration_error

__all__ = ["CalibrationTestResult", "calibration_test"]


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


def calibration_test(
    y_true,
    y_proba,
    *,
    method="resampling",
    metric=None,
    n_resamples=999,
    binning=None,
    multiclass="auto",
    sample_weight=None,
    pos_label=None,
    labels=None,
    n_jobs=None,
    random_state=None,
    verbose=False,
):
    """Test the hypothesis that scores are calibrated, on rows that were not used to fit them.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    method : {"resampling", "spiegelhalter", "hosmer_lemeshow"}, default="resampling"
        "resampling" draws labels from the scores themselves (consistency resampling) and compares the metric on them
        with that on the true labels: its level is exact for any metric, number of rows and ties. "spiegelhalter"
        compares the Brier score with its expectation (two-sided, normal approximation); it is blind to errors that
        balance there. "hosmer_lemeshow" is the chi-squared test over equal-mass bins; see Notes.
    metric : callable, default=None
        Statistic of the resampling test, large for miscalibrated scores: ``metric(y_true, y_proba)``, called with
        ``sample_weight``, ``labels`` and ``multiclass`` only where there is something to say. None means
        `sweep_calibration_error`.
    n_resamples : int, default=999
        Number of label vectors drawn; the smallest p-value is ``1 / (n_resamples + 1)``.
    binning : BaseBinning, int or None, default=None
        Bins of the Hosmer-Lemeshow test; None means ``EqualMass(10)``.
    multiclass : {"auto", "top_label", "marginal"}, default="auto"
        See `calibration_error`; "marginal" has a resampling test only.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows: a weight of 2 is two labels. Weights that do not count rows should be
        scaled to mean 1.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    n_jobs : int, default=None
        Threads, for a `metric` that is given.
    random_state : int, RandomState instance or None, default=None
        Seed of the drawn labels.
    verbose : bool, default=False
        Whether a `metric` that is given shows its progress.

    Returns
    -------
    result : CalibrationTestResult
        Named tuple (statistic, pvalue): the metric, Spiegelhalter's z, or chi-squared.

    Raises
    ------
    ValueError
        For input that has no answer and for parameters that do not belong to `method`.

    Notes
    -----
    The Hosmer-Lemeshow statistic is compared with as many degrees of freedom as there are bins (with a variance), which
    is right for scores that were fitted on other rows; the usual "bins - 2" is for the rows of the fit and would reject
    8 to 14 % of calibrated models at level .05. Its chi-squared approximation is poor where bins expect few events: at
    that level it still rejects 6 to 7.5 % where scores crowd near 0 or 1. Prefer the resampling test.

    Where all scores are 0, 1 or (Spiegelhalter) 1/2 nothing is random: the p-value is 1 if the labels agree, else 0.

    References
    ----------
    Bröcker and Smith (2007), Increasing the reliability of reliability diagrams. Spiegelhalter (1986), Probabilistic
    prediction in patient management and clinical trials. Hosmer and Lemeshow (1980), Goodness of fit tests for the
    multiple logistic regression model.

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
    data = check_scored_labels(
        y_true, y_proba, multiclass=multiclass, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    marginal = resolve_multiclass(multiclass, data) == "marginal"
    if method == "resampling":
        check_int(n_resamples, "n_resamples")
        rng = check_random_state(random_state)
        if metric in (None, sweep_calibration_error) and not marginal:
            statistics = _sweep_statistics(*binary_tasks(data, multiclass), n_resamples, rng)
        else:
            check_scores(y_proba, name="y_proba")  # one label a row is drawn: rows must sum to 1 for "marginal" too
            options = _only_if(multiclass != "auto", multiclass=multiclass)
            parallel = Parallel(n_jobs=n_jobs, prefer="threads", verbose=10 if verbose else 0)
            metric = partial(metric or sweep_calibration_error, **options)
            statistics = _metric_statistics(metric, data, n_resamples, rng, parallel)
        return CalibrationTestResult(statistics[0], _resampling_pvalue(statistics))
    if marginal:
        raise ValueError(
            f'method={method!r} tests one binary problem, multiclass="marginal" are several: use "resampling" or '
            '"top_label".'
        )
    statistic, pvalue = _CLOSED_FORM[method](*binary_tasks(data, multiclass), check_binning(binning, EqualMass(10)))
    return CalibrationTestResult(float(statistic), float(pvalue))


def _check_method(method, metric, binning):
    if method not in ("resampling", *_CLOSED_FORM):
        raise ValueError(f"method must be 'resampling', 'spiegelhalter' or 'hosmer_lemeshow', found {method!r}.")
    if metric is not None and method != "resampling":
        raise ValueError(f'metric is the statistic of method="resampling" and has no meaning for {method!r}.')
    if metric is not None and not callable(metric):
        raise TypeError(f"metric must be a function (y_true, y_proba) -> number, found {metric!r}.")
    if binning is not None and method != "hosmer_lemeshow":
        raise ValueError(f'binning is for method="hosmer_lemeshow" and has no meaning for {method!r}: see metric.')


def _resampling_pvalue(statistics):
    """Return the share of statistics that are as large as the first one, the only one that was not drawn."""
    # Labels that give the same bins may differ in the last digit of the statistic.
    return float(np.mean(np.asarray(statistics) >= statistics[0] - 1e-12))


def _sweep_statistics(task, n_resamples, rng):
    """Return the sweep's error for the labels and for labels drawn from the scores; the table is sorted once."""
    table = DistinctScores.from_rows(*task)
    weight = np.diff(table.weight)
    whole = np.floor(weight)
    statistics = [_sweep_error(table)]
    for _ in range(n_resamples):
        positives = rng.binomial(whole.astype(np.int64), table.scores)
        if not table.is_count:
            positives = positives + (weight - whole) * (rng.random_sample(len(whole)) < table.scores)
        statistics.append(_sweep_error(table._replace(positives=np.append(0.0, np.cumsum(positives)))))
    return statistics


def _sweep_error(table):
    """Return `sweep_calibration_error`: sum over bins of |sum of w (s - y)|, over the total weight."""
    _, below = sweep(EqualMassCuts(table))
    expected = np.append(0.0, np.cumsum(np.diff(table.weight) * table.scores))
    return float(np.abs(np.diff((expected - table.positives)[below])).sum() / table.weight[-1])


def _metric_statistics(metric, data, n_resamples, rng, parallel):
    """Return a metric for the labels and for labels drawn from the scores."""
    n_classes = len(data.classes)
    given = _only_if(not data.is_binary, labels=np.arange(n_classes))
    weight = _only_if(data.sample_weight is not None, sample_weight=data.sample_weight)
    statistic = metric(data.labels, data.scores, **given, **weight)
    draws = (_drawn_rows(data, rng) for _ in range(n_resamples))
    drawn = parallel(delayed(metric)(labels, scores, **given, **weight) for labels, scores, weight in draws)
    return [float(statistic), *drawn]


def _drawn_rows(data, rng):
    """Return labels drawn from the scores, their scores and, as a dict, their weights.

    A row of weight w is floor(w) draws and one that weighs the rest: it comes back as a row for each class.
    """
    probability = np.column_stack((1 - data.scores, data.scores)) if data.is_binary else data.scores
    n, n_classes = probability.shape
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    cumulative /= cumulative[:, -1:]
    codes = np.count_nonzero(cumulative <= rng.random_sample((n, 1)), axis=1)
    if data.sample_weight is None:
        return codes.astype(data.labels.dtype), data.scores, {}
    whole = np.floor(data.sample_weight)
    weight = np.zeros((n, n_classes))
    left, reached = whole.astype(np.int64), 0.0
    for k in range(n_classes):  # binomial draws of what the classes before have left over
        share = np.divide(cumulative[:, k] - reached, 1 - reached, out=np.ones(n), where=reached < 1)
        weight[:, k] = rng.binomial(left, np.clip(share, 0, 1))
        left, reached = left - weight[:, k].astype(np.int64), cumulative[:, k]
    weight[np.arange(n), codes] += data.sample_weight - whole
    labels = np.repeat(np.arange(n_classes), n).astype(data.labels.dtype)
    return labels, np.concatenate([data.scores] * n_classes), {"sample_weight": weight.T.ravel()}


def _spiegelhalter(task, binning):
    # Spiegelhalter (1986): Brier score minus its expectation, over its standard deviation
    scores = task.scores.astype(np.float64)
    weight = 1.0 if task.sample_weight is None else task.sample_weight
    excess = np.sum(weight * (task.labels - scores) * (1 - 2 * scores))
    variance = np.sum(weight * (1 - 2 * scores) ** 2 * scores * (1 - scores))
    if variance == 0:
        return (0.0, 1.0) if excess == 0 else (np.copysign(np.inf, excess), 0.0)
    z = excess / np.sqrt(variance)
    return z, 2 * norm.sf(abs(z))


def _hosmer_lemeshow(task, binning):
    # Hosmer and Lemeshow (1980): sum over groups of (observed - expected)^2 / (expected (1 - expected / n))
    bins = task.statistics(binning)
    excess = bins.weighted_label - bins.weighted_score
    variance = bins.weighted_score * (1 - bins.mean_score)
    random = (bins.weight > 0) & (variance > 0)
    if np.any(excess[(bins.weight > 0) & ~random] != 0):
        return np.inf, 0.0
    statistic = np.sum(excess[random] ** 2 / variance[random])
    return statistic, chi2.sf(statistic, np.count_nonzero(random)) if random.any() else 1.0


def _only_if(condition, **options):
    return options if condition else {}


_CLOSED_FORM = {"spiegelhalter": _spiegelhalter, "hosmer_lemeshow": _hosmer_lemeshow}
