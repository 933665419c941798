"""Two samples: has the calibration curve changed, by how much, and what does that do to
bias and error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcalib._cells.statistics import BinStatistics
from skcalib._errors.binned import check_norm
from skcalib._inference.differences import square_and_add
from skcalib._inference.hypotheses import Resampling
from skcalib._inference.inversion import inverted_limits
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._verdicts import (
    count_words,
    interval_texts,
    level_words,
    pvalue_words,
)
from skcalib.binning import BaseBinning
from skcalib.monitoring._excess import excess_of_bins, excess_of_rows, excess_test
from skcalib.monitoring._two_samples import two_samples, warn_of_equal_rows

_NO_LEVEL = "confidence_level is None"
_LEVEL = 0.05  # below which the sentence of a result says that there is a change
_QUANTITIES = {
    "shift": "Difference in event frequency at equal scores",
    "bias_before": "Bias before",
    "bias_after": "Bias after",
    "bias_difference": "Difference in bias",
    "error_before": "Calibration error before",
    "error_after": "Calibration error after",
    "error_difference": "Difference in calibration error",
}


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationChange(ResultTable):
    """Result of `calibration_change`. Differences are after minus before.

    Parameters
    ----------
    n_before, n_after : int or float
        Numbers of samples; with weights, effective sample sizes.
    statistic : float
        Range of the cumulative differences of the residuals (label minus score),
        divided by their standard deviation.
    pvalue : float
        P-value of the hypothesis that the calibration curve is unchanged, regardless of
        changes in the scores.
    shift : IntervalEstimate
        Mean difference in event frequency at equal scores, from the residuals.
    bias_before, bias_after, bias_difference : IntervalEstimate
        Mean score minus event frequency.
    error_before, error_after, error_difference : IntervalEstimate
        Calibration error.
    """

    n_before: float
    n_after: float
    statistic: float
    pvalue: float
    shift: IntervalEstimate
    bias_before: IntervalEstimate
    bias_after: IntervalEstimate
    bias_difference: IntervalEstimate
    error_before: IntervalEstimate
    error_after: IntervalEstimate
    error_difference: IntervalEstimate

    def columns(self):
        """Return the intervals as a dict that maps column names to values.

        Returns
        -------
        columns : dict
            `quantity`, `estimate`, `low` and `high`.
        """
        names = []
        intervals = []  # triples (estimate, low, high)
        for name, value in vars(self).items():
            if isinstance(value, IntervalEstimate):
                names.append(name)
                intervals.append(value)
        estimate, low, high = np.array(intervals).T
        return {
            "quantity": np.array(names, dtype=object),
            "estimate": estimate,
            "low": low,
            "high": high,
        }

    def _sentences(self):
        """Say whether the calibration has changed, and how much at equal scores."""
        sizes = (
            f"{count_words(self.n_before)} samples before,"
            f" {count_words(self.n_after)} after."
        )
        if np.isnan(self.pvalue):
            return (
                "Whether the calibration has changed cannot be determined:"
                f" {self.shift.reason}.\n{sizes}"
            )
        shown = pvalue_words(self.pvalue)
        finding = f"No change is detectable ({shown})"
        if self.pvalue < _LEVEL:
            finding = f"The calibration has changed ({shown})"
        return f"{finding}: {shift_words(self.shift)}.\n{sizes}"


def shift_words(shift):
    """Return the words for the `IntervalEstimate` of a difference in event frequency at
    equal scores.
    """
    estimate, low, high = shift
    side = "more"
    if estimate < 0:
        side = "less"
        estimate, low, high = -estimate, -high, -low
    level = ""
    if shift.confidence_level is not None:
        level = level_words(shift.confidence_level)
    size, limits = interval_texts(estimate, low, high, scale=100, level=level)
    unit = "percentage point" if size == "1" else "percentage points"
    return (
        f"at equal scores, events are an estimated {size} {unit} {side} frequent than"
        f" before ({limits})"
    )


def calibration_change(
    y_before: ArrayLike | BinStatistics,
    y_proba_before: ArrayLike | BinStatistics | None = None,
    y_after: ArrayLike | None = None,
    y_proba_after: ArrayLike | None = None,
    *,
    norm: float | Literal["l1", "l2", "max"] = 2,
    binning: BaseBinning | int | None = None,
    method: Literal["auto", "plugin", "debiased", "unbiased", "label_binned"] = "auto",
    confidence_level: float | None = 0.9,
    n_resamples: int = 999,
    multiclass: Literal["auto", "top_label"] = "auto",
    sample_weight: ArrayLike | tuple | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | tuple | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationChange:
    """Compare the calibration of two data sets, such as last year and this year.

    The p-value compares event frequencies at equal scores, so that a change in the
    distribution of scores alone has no effect. The intervals show the mean difference
    and the changes in the bias and the calibration error.

    Parameters
    ----------
    y_before : array-like of shape (n,), or BinStatistics
        Labels of the first data set. Two `BinStatistics` with equal edges may be given
        as the first two arguments.
    y_proba_before : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the first data set, in [0, 1].
    y_after : array-like of shape (n,), or BinStatistics, default=None
        Labels of the second data set.
    y_proba_after : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the second data set.
    norm : float, default=2
        Norm of the error; see `skcalib.metrics.calibration_error`.
    binning : BaseBinning, int or None, default=None
        Bins for the error, computed separately for each data set. An int is the number
        of equal-mass bins, and None means ``EqualMass(15)``.
    method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
        Method for estimating the error; see `skcalib.metrics.calibration_error`.
    confidence_level : float or None, default=0.9
        Coverage of each interval, in (0, 1). None leaves the intervals out: the limits
        are NaN, and the p-value takes about a third of the time.
    n_resamples : int, default=999
        Number of draws for the p-value and the intervals for the errors. The smallest
        possible p-value is ``1 / (n_resamples + 1)``.
    multiclass : {"auto", "top_label"}, default="auto"
        "auto" evaluates the positive class for one or two columns; for more, it means
        "top_label".
    sample_weight : pair of array-likes, default=None
        Weights of the samples before and after; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design or for covariate shift); the weights w of a
        data set correspond to an effective sample size of ``sum(w)**2 / sum(w**2)``.
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : pair of array-likes, default=None
        The clusters of the samples before and after: samples in the same cluster (for
        example, from one patient or match) may be dependent, even across the two data
        sets. A value that occurs in both is the same cluster: clusters that are
        numbered anew in the second data set need other numbers.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.

    Returns
    -------
    change : CalibrationChange
        Frozen object with the fields `n_before, n_after, statistic, pvalue` and the
        intervals (named tuples `estimate, low, high`) `shift, bias_before, bias_after,
        bias_difference, error_before, error_after, error_difference`. Differences are
        after minus before; a positive `shift` means that events are more frequent than
        before at equal scores.

    Raises
    ------
    ValueError
        If labels, probabilities or parameters are inconsistent, if statistics have
        different edges, or if a data set is too small for a debiased error.

    Warns
    -----
    UserWarning
        If the labels of both data sets are identical; to compare two models on the same
        samples, use `compare`. If weights are not integers and
        ``weight_type="frequency"``. If `clusters` are given and fewer than 40 events or
        non-events are expected, because the level may not be maintained.

    See Also
    --------
    skcalib.monitoring.CalibrationMonitor : An alarm that can be checked after every
        sample.
    skcalib.metrics.calibration_test : Tests whether the error is larger than expected
        by chance.

    Notes
    -----
    The samples of both data sets are grouped into cells of neighbouring scores, with 20
    or more samples each. In each cell, a line is fitted to the residuals y - s of both
    data sets, so that a cell that spans a gap between two groups of scores does not
    compare the low scores of one data set with the high scores of the other. If the
    curve is the same, the residuals around this line are exchangeable, regardless of
    the distributions of the scores. The statistic is the range of the cumulative sums
    of the second data set's excess, in the order of the scores. For a permutation, the
    number of events in the second data set is drawn from a hypergeometric distribution,
    and the remaining part of the residuals from a normal distribution. Bins of
    `BinStatistics` serve as cells; their sums are drawn from a normal distribution with
    the residual variance of each bin and data set. The same applies to weights that are
    not integers, and to importance weights.

    With `clusters`, labels are drawn from the event frequencies of both data sets
    together, with the within-cluster dependence estimated from the residuals. The
    interval for the shift uses the jackknife variance of the clusters' sums (CR3) and
    Satterthwaite degrees of freedom; it is NaN if the effective number of clusters is
    below three.

    The intervals for differences combine those of both data sets by the "square and
    add" method [1]_. The interval for the shift is a normal interval. In the worst case
    found by a search, with 27 samples in each data set, the coverage of a 90% interval
    was .87.

    References
    ----------
    .. [1] Zou and Donner (2008), Construction of confidence limits about effect
        measures: a general approach.

    Examples
    --------
    Higher scores alone are not a change in calibration, but more events at equal scores
    are:

    >>> import numpy as np
    >>> from skcalib.monitoring import calibration_change
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.beta(1, 3, 2000), rng.beta(2, 3, 2000)
    >>> y_before, same = rng.random(2000) < before, rng.random(2000) < after
    >>> calibration_change(y_before, before, same, after, random_state=0).pvalue > 0.1
    True
    >>> more = rng.random(2000) < np.minimum(after + 0.1, 1)
    >>> change = calibration_change(y_before, before, more, after, random_state=0)
    >>> change.pvalue, round(change.shift.estimate, 1)
    (0.001, 0.1)
    """  # noqa: E501
    norm = check_norm(norm, method=method)
    level = confidence_level
    if level is not None:
        level = check_confidence_level(level)
    check_int(n_resamples, "n_resamples")
    # `Sample` objects, with the labels and scores of each data set, or its bins.
    samples = two_samples(
        y_before,
        y_proba_before,
        y_after,
        y_proba_after,
        binning,
        pos_label=pos_label,
        labels=labels,
        multiclass=multiclass,
        sample_weight=sample_weight,
        weight_type=weight_type,
        clusters=clusters,
    )
    warn_of_equal_rows(*samples)
    rng = check_random_state(random_state)
    statistic, pvalue, shift = change_test(
        samples, weight_type, level, n_resamples, rng
    )
    resampling = Resampling(n_resamples, rng)
    intervals = {}
    for name, sample in zip(("before", "after"), samples, strict=True):
        bias = float(sample.mean_score - sample.event_frequency)
        low, high, reason = np.nan, np.nan, _NO_LEVEL
        if level is not None:
            limits, reason = sample.bias_test(level)
            low, high = float(limits.low), float(limits.high)
        intervals[f"bias_{name}"] = IntervalEstimate(bias, low, high, reason=reason)
        try:
            error, hypotheses = sample.error_and_hypotheses(
                {"norm": norm, "method": method}, resampling
            )
        except ValueError as failure:
            raise ValueError(
                f"The error of the data set {name!r} cannot be computed. {failure}"
            ) from failure
        reason = sample.reason_without_limits
        if level is None:
            reason = _NO_LEVEL
        low, high = np.nan, np.nan
        if not reason:
            low, high = inverted_limits(hypotheses, (1 - level) / 2)
        intervals[f"error_{name}"] = IntervalEstimate(error, low, high, reason=reason)
    for name in ("bias", "error"):
        intervals[f"{name}_difference"], _ = square_and_add(
            intervals[f"{name}_after"], intervals[f"{name}_before"]
        )
    for name, interval in intervals.items():
        intervals[name] = interval._described(_QUANTITIES[name], level)
    before, after = samples
    return CalibrationChange(before.n, after.n, statistic, pvalue, shift, **intervals)


def change_test(samples, weight_type, confidence_level, n_resamples, random_state):
    """Return the statistic, the p-value and the shift (the difference in event
    frequency at equal scores, an `IntervalEstimate`) of the test of
    `calibration_change`, for a pair of `Sample` and a RandomState.
    """
    # Some draws need a Generator, others a RandomState: both come from one seed.
    rng = np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    # The residuals of the second sample beyond those of both together, by score.
    if samples[0].task is None:  # bins instead of rows
        excess = excess_of_bins(*samples, weight_type, n_resamples, rng)
    else:
        excess = excess_of_rows(*samples, weight_type, n_resamples, rng)
    # Without a level any will do: the limits are not used.
    statistic, pvalue, shift = excess_test(excess, confidence_level or 0.9)
    low, high, reason = shift.low, shift.high, shift.reason
    too_few = samples[0].few_events or samples[1].few_events  # a reason, or ""
    if too_few:
        pvalue = np.nan
    if too_few or confidence_level is None:
        low, high, reason = np.nan, np.nan, too_few or _NO_LEVEL
    shift = IntervalEstimate(
        shift.estimate,
        low,
        high,
        reason=reason,
        quantity=_QUANTITIES["shift"],
        confidence_level=confidence_level,
    )
    return statistic, pvalue, shift
