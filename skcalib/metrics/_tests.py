"""Hypothesis tests of calibration: whether the error that is seen is more than
noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcalib._cells.binned import BinnedTask
from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.reductions import binary_tasks
from skcalib._cells.statistics import BinStatistics
from skcalib._inference.closed_form import (
    few_events_in_bins,
    hosmer_lemeshow,
    is_dominated,
    kolmogorov_smirnov,
    kuiper,
    spiegelhalter,
)
from skcalib._inference.cluster_draws import cluster_labels
from skcalib._inference.drawn_hypotheses import resampling_pvalue
from skcalib._inference.hypotheses import Resampling, error_hypotheses
from skcalib._inference.label_dependence import drawn_labels
from skcalib._inference.multinomial import multinomial
from skcalib._inference.results import ResultRecord
from skcalib._input.device_scores import DeviceScores
from skcalib._input.scalars import check_int, check_option, hint_at_keywords
from skcalib._input.scores import check_scores
from skcalib._progress import Progress
from skcalib._rows.sorting import distinct_values
from skcalib._verdicts import pvalue_words
from skcalib.binning import BaseBinning, EqualMass, check_binning
from skcalib.metrics._bin_free import (
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
)
from skcalib.metrics._binned import sweep_calibration_error
from skcalib.metrics._interval import MetricInput, unwrapped_metric
from skcalib.metrics._registry import metric_of

_LEVEL = 0.05  # below which the sentence of a result says that scores are off


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationTestResult(ResultRecord):
    """Result of a test of calibration; unpacks as ``statistic, pvalue``. Its `reason`
    says why the p-value is NaN, and is else an empty string.

    Parameters
    ----------
    statistic : float
        The test statistic.
    pvalue : float
        Probability of a statistic at least as extreme if the scores are calibrated. A
        small value is evidence against calibration.
    """

    statistic: float
    pvalue: float
    reason = ""  # no field: the result unpacks as two numbers

    @classmethod
    def _without_pvalue(cls, statistic, reason):
        """Return a result whose p-value is NaN for a reason."""
        result = cls(float(statistic), float("nan"))
        object.__setattr__(result, "reason", reason)
        return result

    def _sentences(self):
        if self.reason:
            return f"No p-value: {self.reason}."
        shown = pvalue_words(self.pvalue)
        if self.pvalue < _LEVEL:
            return f"The scores are not calibrated ({shown})."
        return f"No miscalibration is detectable ({shown})."


@hint_at_keywords
def calibration_test(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    method: Literal[
        "resampling",
        "kuiper",
        "kolmogorov_smirnov",
        "spiegelhalter",
        "hosmer_lemeshow",
        "multinomial",
    ] = "resampling",
    metric: Callable | None = None,
    clusters: ArrayLike | None = None,
    n_resamples: int = 999,
    binning: BaseBinning | int | None = None,
    df: int | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = False,
) -> CalibrationTestResult:
    """Test whether probabilities are calibrated, using held-out data.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels, or bin sums, which replace `y_true`, `y_proba` and all other per-sample
        arguments. Bin sums are accepted by "hosmer_lemeshow", by a binned `metric` and,
        with one distinct score per bin, by the tests of cumulative differences.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    method : {"resampling", "kuiper", "kolmogorov_smirnov", "spiegelhalter", "hosmer_lemeshow", "multinomial"}, default="resampling"
        "resampling" draws labels from the scores themselves (consistency resampling)
        and compares their metric with that of the observed labels. "kuiper" and
        "kolmogorov_smirnov" compare the largest cumulative difference between labels
        and scores with its distribution under Brownian motion; they are fast for any
        number of samples, and slightly conservative for small samples. "spiegelhalter"
        compares the Brier score with its expectation (two-sided, normal approximation);
        it cannot detect errors that cancel in this comparison. "hosmer_lemeshow" is the
        chi-squared test over equal-mass bins; see Notes. "multinomial" is the joint
        test of the calibration intercepts and slopes of all classes.
    metric : callable, default=None
        Statistic of the resampling test, large for miscalibrated scores: an error of
        this module, or any ``metric(y_true, y_proba)``, called with ``sample_weight``,
        ``labels`` and ``multiclass`` only if needed. None means
        `sweep_calibration_error`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from the same patient or match) share
        a value. Labels are drawn from the scores with the within-cluster dependence (a
        normal copula with one correlation) estimated from the residuals ``y - s``.
        Supported by "resampling", "kuiper" and "kolmogorov_smirnov", all of which then
        resample.
    n_resamples : int, default=999
        Number of label vectors drawn. Together with the observed labels, this makes
        1,000 by default: the smallest p-value is ``1 / (n_resamples + 1)``.
    binning : BaseBinning, int or None, default=None
        Bins of the Hosmer-Lemeshow test; None means ``EqualMass(10)``.
    df : int, default=None
        Degrees of freedom of the Hosmer-Lemeshow test. None means the number of bins,
        which is correct for held-out data. For the training samples, use the number of
        bins minus 2.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`; for "marginal" and "pooled", only the resampling test
        is available.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design or for covariate shift).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    n_jobs : int, default=None
        Number of threads for a `metric` from outside this module.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.
    verbose : bool, default=False
        Whether a resampling test writes the number of label vectors drawn so far to
        standard error.

    Returns
    -------
    result : CalibrationTestResult
        `statistic` and `pvalue`, in this order when unpacked. The statistic is the
        metric, the Kuiper or Kolmogorov-Smirnov error, Spiegelhalter's z, or a
        chi-squared statistic.

    Raises
    ------
    ValueError
        If the input is invalid, or if parameters do not apply to `method`.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``. If the expected
        counts are too small for the approximation of "spiegelhalter",
        "hosmer_lemeshow" or "multinomial". If `clusters` are given and fewer than 40 events or
        non-events are expected.

    See Also
    --------
    skcalib.metrics.calibration_error_interval : An error with its confidence interval.
    skcalib.metrics.segment_calibration_test : Finds the worst group and tests its
        miscalibration.
    skcalib.monitoring.CalibrationMonitor : An alarm that may be checked after every
        sample.

    Notes
    -----
    The resampling test controls the type I error rate for any metric and number of
    samples, with or without ties. For the errors of this module, its cost hardly grows
    with n, because they are computed from sums over cells: bins, distinct scores, or
    4,096 cells of nearly equal scores if there are more than 8,192 distinct scores. The
    number of events in a cell has the same mean and variance as with labels drawn
    sample by sample. Only higher moments are approximate, and only if scores differ
    within a cell. With the same `random_state`, the test draws the same labels as
    `calibration_error_interval`.

    The Hosmer-Lemeshow statistic has as many degrees of freedom as there are bins (with
    nonzero variance). This number is correct for scores from a model fitted to other
    samples. The usual "bins - 2" applies to the samples used in the fit; on held-out
    data, the test with this number would reject 11% of calibrated models at level .05,
    with 10 bins that contain many samples each. The chi-squared approximation is poor
    if few events are expected per bin. At level .05, the test rejects 14.7% of
    calibrated models with scores from Beta(1, 999) and n = 1000, and 11.3% with Beta(1,
    19) and n = 200. With a constant score of .01 and n = 100, it rejects 7.5%, and with
    20 uniform scores, 8.0%. Spiegelhalter's test rejects 8.2% with a constant score of
    .01 and n = 100. Both tests issue a warning if so few events or non-events are
    expected. Prefer the resampling test.

    "multinomial" tests all K probabilities at once. Its model is that of
    `VectorScaling`: ``softmax(a_k + b_k z_k)``, where z_k are the logarithms of the
    probabilities less their mean over the classes. Rao's score test of "all intercepts
    a_k are 0 and all slopes b_k are 1" needs no fit. The statistic has a chi-squared
    distribution with 2K - 1 degrees of freedom for K > 2 classes, and 2 for two
    classes. Clusters and importance weights are refused; with these, use
    ``metric=kernel_calibration_error``, which also detects other deviations.

    With importance weights, the other closed-form tests use the variance under calibration,
    the sum of w1 w0 s (1 - s), where w1 and w0 are the weights of a sample with and
    without the event, with the additional factor (1 - 2 s)^2 for Spiegelhalter's test;
    labels are drawn as the sample holds them, each with the weight of its label. Both
    weights are known if all weights are equal, if each label has one weight, or from a
    dict. Otherwise, w^2 (y - s)^2 takes the place of this variance, residuals with
    random signs that of drawn labels, and with fewer than 20 effective events or
    non-events, ``sum(w)**2 / sum(w**2)``, the p-value is NaN, and `reason` says so. If
    a single sample contributes more than 5% of the variance, "kuiper" and
    "kolmogorov_smirnov" draw labels instead.

    If all scores are 0, 1 or (for Spiegelhalter) 1/2, the statistic has no variance:
    the p-value is 1 if the labels agree with the scores, and 0 otherwise.

    References
    ----------
    Bröcker and Smith (2007), Increasing the reliability of reliability diagrams.
    Spiegelhalter (1986), Probabilistic prediction in patient management and clinical
    trials. Hosmer and Lemeshow (1980), Goodness of fit tests for the multiple logistic
    regression model. Van Hoorde, Vergouwe, Timmerman, Van Huffel, Steyerberg and Van
    Calster (2014), Assessing calibration of multinomial risk prediction models.
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of
    calibration for probabilistic predictions. Feller (1951), The asymptotic
    distribution of the range of sums of independent random variables.

    Examples
    --------
    Twenty events occur where ten were expected:
    ``z = sum((y - s)(1 - 2s)) / sqrt(sum((1 - 2s)^2 s (1 - s)))``.

    >>> from skcalib.metrics import calibration_test
    >>> y_true, y_proba = [1] * 20 + [0] * 20, [0.25] * 40
    >>> result = calibration_test(y_true, y_proba, method="spiegelhalter")
    >>> round(result.statistic, 3), round(result.pvalue, 4)
    (3.651, 0.0003)
    >>> calibration_test(y_true, y_proba, random_state=0).pvalue < 0.01
    True
    """  # noqa: E501
    _check_method(method, metric, binning, df)
    rows = MetricInput.of(
        y_true,
        y_proba,
        binning=binning,
        multiclass=multiclass,
        sample_weight=sample_weight,
        weight_type=weight_type,
        clusters=clusters,
        pos_label=pos_label,
        labels=labels,
    )
    kind = resolve_multiclass(multiclass, rows.data, pooled=True)
    cumulative = _CUMULATIVE.get(method)
    if cumulative is not None and (clusters is not None or kind == "pooled"):
        # The closed form holds for independent labels only.
        method = "resampling"
        metric = cumulative
    if cumulative is not None and kind != "marginal":
        # The closed form also needs sums to which no single row contributes much.
        for task in binary_tasks(rows.kept, multiclass, pooled=True):
            if is_dominated(task):
                method = "resampling"
                metric = cumulative
    if method == "resampling":
        check_int(n_resamples, "n_resamples")
        resampling = Resampling(
            n_resamples,
            check_random_state(random_state),
            cluster=rows.cluster,
            progress=Progress("calibration_test", verbose),
        )
        return _resampling_test(metric, multiclass, rows, resampling, n_jobs)
    return _closed_form_test(method, multiclass, rows, binning, df)


def _closed_form_test(method, multiclass, rows, binning, df):
    """Return the result of a test that draws nothing, the one called `method`, for a
    `MetricInput`. `binning` and `df`, degrees of freedom, are for "hosmer_lemeshow".
    """
    if rows.cluster is not None:
        raise ValueError(
            f'clusters= does not apply to method={method!r}: use "resampling" or'
            ' "kuiper".'
        )
    if method == "multinomial":
        return _multinomial_test(multiclass, rows.kept)
    kind = resolve_multiclass(multiclass, rows.data, pooled=True)
    if kind in ("marginal", "pooled"):
        raise ValueError(
            f"method={method!r} needs one binary problem with independent labels,"
            f' not multiclass={kind!r}: use "resampling" or "top_label".'
        )
    (task,) = binary_tasks(rows.kept, multiclass)
    if method == "hosmer_lemeshow":
        strategy = check_binning(binning, EqualMass(10))
        statistic, pvalue = hosmer_lemeshow(task, strategy, df=df)
        reason = few_events_in_bins(task, strategy)
    else:
        statistic, pvalue = _CLOSED_FORM[method](task)
        reason = rows.reason(multiclass)
    if reason:
        return CalibrationTestResult._without_pvalue(statistic, reason)
    return CalibrationTestResult(float(statistic), float(pvalue))


def _multinomial_test(multiclass, data):
    """Return the result of the joint test of the intercepts and slopes of all classes,
    for `ScoredLabels` of positive weight.
    """
    if isinstance(data, BinnedTask) or data.is_multilabel or multiclass != "auto":
        raise ValueError(
            'method="multinomial" needs the label and all probabilities of each sample,'
            ' one label per sample, and multiclass="auto".'
        )
    known = data.label_weights
    if known is not None and known.form != "constant":
        raise ValueError(
            'method="multinomial" takes weights that count samples: with importance'
            " weights, use metric=kernel_calibration_error."
        )
    weight = data.sample_weight
    if known is not None:
        weight = None  # equal weights say nothing
    probability = data.scores
    if isinstance(probability, DeviceScores) and not probability.has_float64:
        probability = np.asarray(probability)
    if data.is_binary:
        probability = np.column_stack((1 - probability, probability))
    codes = data.labels.astype(np.intp)
    return CalibrationTestResult(*multinomial(probability, codes, weight))


def _check_method(method, metric, binning, df):
    """Raise for arguments that have no meaning for the method."""
    check_option(method, "method", ("resampling", *_CLOSED_FORM, "multinomial"))
    if metric is not None and method != "resampling":
        raise ValueError(
            'metric is the statistic of method="resampling" and does not apply to'
            f" {method!r}."
        )
    if metric is not None and not callable(metric):
        raise TypeError(
            f"metric must be a function (y_true, y_proba) -> number, found {metric!r}."
        )
    if binning is not None and method != "hosmer_lemeshow":
        raise ValueError(
            'binning is for method="hosmer_lemeshow" and does not apply to'
            f" {method!r}: see the parameter metric."
        )
    if df is not None:
        check_int(df, "df")
        if method != "hosmer_lemeshow":
            raise ValueError(
                f'df is for method="hosmer_lemeshow" and does not apply to {method!r}.'
            )


def _resampling_test(metric, multiclass, rows, resampling, n_jobs):
    """Return the result of the resampling test: the `metric` (None: the sweep error)
    for the observed labels of a `MetricInput` is compared with that for labels drawn
    from the scores. `resampling` holds the number of draws, generator and clusters;
    `n_jobs` threads call a metric that is not of this library.
    """
    kind = resolve_multiclass(multiclass, rows.data, pooled=True)
    if kind == "marginal" and not rows.data.is_multilabel:
        _check_rows_sum_to_one(rows)
    options = {}
    if multiclass != "auto":
        options["multiclass"] = multiclass
    if metric is None:
        metric = sweep_calibration_error
    function, params = unwrapped_metric(metric, options)
    registered = metric_of(function)
    error = None
    if registered is not None:
        error = registered.error_of(params)
    # 1. An error of the library, or a registered one, draws the sums of cells itself.
    if error is not None and error.has_interval and not error.has_bins_of_labels:
        return _test_of_cells(error, multiclass, rows, resampling)
    if kind == "pooled":
        _check_rows_sum_to_one(rows)
    # 2. Where labels cannot be drawn, the kernel error multiplies residuals.
    if not _labels_can_be_drawn(rows, resampling):
        return _test_of_residuals(error, multiclass, rows, resampling)
    is_kernel = error is not None and not error.has_interval
    if is_kernel and _stays_on_device(rows.kept, resampling):
        statistic = float(rows.error_value(error))
        statistics = error.drawn_on_device(rows.kept, resampling)
        return CalibrationTestResult(statistic, _share_reached(statistics))
    kept = rows.kept_on_processor
    drawn_rows = _drawn_rows(kept, resampling.at(rows.data.kept))
    drawn_rows = resampling.progress.over(drawn_rows, resampling.n_draws, "draws")
    # 3. The kernel error, which computes the statistics of all draws itself.
    if is_kernel:
        statistic = float(rows.error_value(error))
        statistics = error.drawn_statistics(kept, drawn_rows)
    # 4. Any other function, which is called for each draw.
    else:
        statistics = _called_statistics(metric, kept, drawn_rows, options, n_jobs)
        statistic = statistics[0]
    return CalibrationTestResult(statistic, _share_reached(statistics))


def _share_reached(statistics):
    """Return the share of statistics that reach the first, that of the observed labels,
    which count as one more draw.
    """
    # Labels that give the same bins may differ in the last digit.
    return float(np.mean(np.asarray(statistics) >= statistics[0] - 1e-12))


def _stays_on_device(data, resampling):
    """Return whether the kernel error draws labels where the scores are."""
    return (
        isinstance(data.scores, DeviceScores)
        and data.sample_weight is None
        and resampling.cluster is None
    )


def _units(rows, resampling):
    """Return codes (n,) of the independent units of the rows of positive weight: their
    clusters, or the rows themselves.
    """
    kept = rows.data.kept
    if resampling.cluster is None:
        return np.arange(len(kept))
    return distinct_values(resampling.cluster[kept])[1]


def _test_of_cells(error, multiclass, rows, resampling):
    """Return the result of an error's resampling test. Instead of labels, sums of
    labels are drawn: one for each cell, a group of samples with (nearly) equal scores.
    """
    statistic = float(rows.error_value(error))
    reason = rows.reason(multiclass)
    if reason:
        return CalibrationTestResult._without_pvalue(statistic, reason)
    hypotheses = error_hypotheses(error, rows.data, resampling)
    return CalibrationTestResult(statistic, resampling_pvalue(hypotheses))


def _test_of_residuals(error, multiclass, rows, resampling):
    """Return the result of the kernel error's test for labels that cannot be drawn;
    raise for other metrics.
    """
    if error is None or error.has_interval:
        raise ValueError(
            "This metric is computed for simulated labels, whose weights are unknown:"
            " use weight_type={label: weight} without clusters, or a binned, cumulative"
            " or kernel error of this library."
        )
    statistic = float(rows.error_value(error))
    reason = rows.reason(multiclass)
    if reason:
        return CalibrationTestResult._without_pvalue(statistic, reason)
    statistics = error.multiplied_statistics(
        rows.kept, _units(rows, resampling), resampling.n_draws, resampling.rng
    )
    return CalibrationTestResult(statistic, _share_reached(statistics))


def _labels_can_be_drawn(rows, resampling):
    """Return whether labels can be drawn: not where weights depend on the label in an
    unknown way, or within clusters.
    """
    known = rows.data.label_weights
    if known is None or known.form == "constant":
        return True
    return known.is_known and resampling.cluster is None


def _check_rows_sum_to_one(rows):
    """Raise unless each row's probabilities sum to 1, so that one label can be drawn
    from them.
    """
    data = rows.data
    if isinstance(data.scores, DeviceScores) and data.scores.sum_to_one:
        return
    check_scores(np.asarray(data.scores), name="y_proba")


def _called_statistics(metric, data, drawn_rows, options, n_jobs):
    """Return the values of a metric, called in `n_jobs` threads, for the observed
    `ScoredLabels` first, then for each draw of `_drawn_rows`.
    """
    if not (data.is_binary or data.is_multilabel):
        options = options | {"labels": np.arange(len(data.classes))}
    observed = (data.labels, data.scores, _weights(data))
    # A generator: the draws are made one by one, not all held in memory.
    calls = (
        delayed(metric)(labels, scores, **options, **weights)
        for labels, scores, weights in chain([observed], drawn_rows)
    )
    values = Parallel(n_jobs=n_jobs, prefer="threads")(calls)
    return [float(value) for value in values]


def _weights(data):
    """Return the weights of validated rows as a keyword argument: an empty dict without
    weights.
    """
    if data.sample_weight is None:
        return {}
    return {"sample_weight": data.sample_weight}


def _drawn_rows(data, resampling):
    """Yield the labels, scores and keywords (a dict with `sample_weight`, if there are
    weights) of each draw of the `resampling` from the scores of `ScoredLabels`. A row
    of frequency weight w stands for w rows: floor(w) labels of weight 1, and one of w -
    floor(w).
    """
    known = data.label_weights
    if known is not None and known.form != "constant":
        yield from _rows_with_weights(data, resampling)
        return
    counts_rows = data.sample_weight is not None and known is None
    if data.is_multilabel and resampling.cluster is None:
        if counts_rows:
            data = _copies(data)
        for drawn in drawn_labels(data, resampling.n_draws, resampling.rng):
            yield drawn, data.scores, _weights(data)
        return
    probability = data.scores
    if data.is_binary:
        probability = np.column_stack((1 - data.scores, data.scores))
    if resampling.cluster is not None:
        yield from _rows_in_clusters(data, probability, resampling)
        return
    # One class for each row: that in whose part of [0, 1) a uniform number falls.
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    cumulative /= cumulative[:, -1:]
    for _ in range(resampling.n_draws):
        uniform = resampling.rng.random_sample((len(probability), 1))
        codes = np.count_nonzero(cumulative <= uniform, axis=1)
        if counts_rows:
            yield _counted_draw(codes, cumulative, data, resampling.rng)
        else:
            yield codes.astype(data.labels.dtype), data.scores, _weights(data)


def _rows_with_weights(data, resampling):
    """Yield drawn labels (n,), scores and a dict with `sample_weight` for each draw of
    the `resampling`, if the weights of two classes depend on the label: labels with
    their frequencies in the sample, each with its label's weight.
    """
    scores = data.scores
    labels = data.labels
    if not data.is_binary:
        # Two columns: a label is the index of its own.
        scores = scores[:, 1]
    probability, with_event, without_event = data.label_weights.event_probability(
        scores.astype(np.float64), labels
    )
    for _ in range(resampling.n_draws):
        is_event = resampling.rng.random_sample(len(scores)) < probability
        weight = np.where(is_event, with_event, without_event)
        drawn = is_event.astype(labels.dtype)
        yield drawn, data.scores, {"sample_weight": weight}


def _rows_in_clusters(data, probability, resampling):
    """Yield drawn labels, scores and a dict of weights for each draw of the
    `resampling`, with labels that depend on each other within clusters, as the observed
    ones do; `probability` (n, K) is that of each class or label.
    """
    observed = data.labels
    if not data.is_multilabel:
        observed = data.labels.astype(np.intp)
    drawn = cluster_labels(probability, observed, data.sample_weight, resampling)
    for codes in drawn:
        yield codes.astype(data.labels.dtype), data.scores, _weights(data)


def _copies(data):
    """Return `ScoredLabels` with each row repeated: copies of weight 1, and a last one
    with the rest of its weight.
    """
    n_copies = np.ceil(data.sample_weight).astype(np.intp)
    copies = np.repeat(np.arange(len(n_copies)), n_copies)
    is_last = np.append(copies[1:] != copies[:-1], True)
    rest = data.sample_weight - (n_copies - 1)
    weight = np.where(is_last, rest[copies], 1.0)
    return data.at(copies)._replace(sample_weight=weight)


def _counted_draw(codes, cumulative, data, rng):
    """Return one draw for rows with frequency weights, as `_drawn_rows` yields it: each
    row once for each class, weighted by how often that was drawn.

    A row of weight w stands for floor(w) copies of weight 1 and a last one of weight w
    - floor(w). `codes` (n,) are the classes drawn for the last copies; those of the
    others are drawn here from `cumulative` (n, K), cumulative class probabilities.
    """
    n, n_classes = cumulative.shape
    n_copies = np.floor(data.sample_weight)
    weight = np.zeros((n, n_classes))
    # The copies of a row have a multinomial distribution over the classes. It is drawn
    # class by class: of the copies that are left, a binomial number is of class k, with
    # the probability of k given that it is none of the classes before.
    n_left = n_copies.astype(np.int64)
    probability_before = 0.0
    for k in range(n_classes):
        conditional = np.divide(
            cumulative[:, k] - probability_before,
            1 - probability_before,
            out=np.ones(n),
            where=probability_before < 1,
        )
        weight[:, k] = rng.binomial(n_left, np.clip(conditional, 0, 1))
        n_left = n_left - weight[:, k].astype(np.int64)
        probability_before = cumulative[:, k]
    weight_of_last_copy = data.sample_weight - n_copies
    weight[np.arange(n), codes] += weight_of_last_copy
    # All rows with the first class, then all with the second, and so on.
    labels = np.repeat(np.arange(n_classes), n).astype(data.labels.dtype)
    scores = np.concatenate([data.scores] * n_classes)
    return labels, scores, {"sample_weight": weight.T.ravel()}


# The metric whose draws replace a closed form that does not hold; see
# `calibration_test`.
_CUMULATIVE = {
    "kuiper": kuiper_calibration_error,
    "kolmogorov_smirnov": kolmogorov_smirnov_calibration_error,
}
_CLOSED_FORM = {
    "spiegelhalter": spiegelhalter,
    "hosmer_lemeshow": hosmer_lemeshow,
    "kuiper": kuiper,
    "kolmogorov_smirnov": kolmogorov_smirnov,
}
