"""A linear trend of the bias over time: more power against slow drift than comparing
periods one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from skcalib._inference.results import IntervalEstimate, ResultRecord
from skcalib._input.label_weights import (
    LabelWeights,
    check_weight_type,
    label_weights,
    warn_of_counts,
)
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._intervals.few_events import (
    FEWEST_FOR_NORMAL,
    FEWEST_FOR_SPREAD,
    effective_events,
    sums_given_number_of_events,
    two_sided_pvalue,
)
from skcalib._intervals.influence import Influence, cluster_codes
from skcalib._rows.blocks import taken, weights_or_ones
from skcalib._rows.links import log_odds
from skcalib._solvers.logistic import fit_logistic
from skcalib._verdicts import (
    count_words,
    interval_words,
    level_words,
    pvalue_words,
    rounded,
)
from skcalib.monitoring._times import moments

_ROUNDING = 1e-12  # of residuals, which are of the order of 1
_FEWEST_TIMES = 2  # a line needs two
_LEVEL = 0.05  # below which the sentence says that there is a trend
WEIGHT_TYPES = ("frequency", "importance")


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationTrend(ResultRecord):
    """Result of `calibration_trend`, which ``print`` describes in a sentence.

    Parameters
    ----------
    slope : IntervalEstimate
        Change in the bias (mean score minus event frequency) per `unit`.
    unit : {"year", "unit of time"}
        "year" for dates, "unit of time" for numbers.
    statistic : float
        The slope divided by its standard error under a constant bias.
    pvalue : float
        Two-sided p-value of the hypothesis that the bias has no linear trend; NaN if
        there are too few events (`slope.reason` says so).
    confidence_level : float
        Coverage of the interval.
    is_step : bool
        Whether one step, at the best time for it, fits the bias better than the line.
    """

    slope: IntervalEstimate
    unit: str
    statistic: float
    pvalue: float
    confidence_level: float
    is_step: bool

    def _sentences(self):
        """Say whether the bias has a trend, and how large it is."""
        if np.isnan(self.pvalue):
            return f"No trend can be estimated: {self.slope.reason}."
        shown = pvalue_words(self.pvalue)
        finding = f"No trend in the bias is detectable ({shown})"
        if self.pvalue < _LEVEL:
            finding = f"The bias has a trend ({shown})"
        size = interval_words(
            *self.slope,
            scale=100,
            unit=f"percentage points per {self.unit}",
            level=level_words(self.confidence_level),
        )
        return f"{finding}: {size}."


def calibration_trend(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    time: ArrayLike,
    *,
    confidence_level: float = 0.9,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: int | float | bool | str | None = None,
) -> CalibrationTrend:
    """Slope of the bias over time, with a test for a trend.

    The bias is the mean score minus the event frequency. A trend test detects a slow
    drift sooner than comparisons of each period with the first period.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,) or (n, 2)
        Probabilities of the event, in [0, 1].
    time : array-like of shape (n,)
        Time at which each sample was scored: numbers or dates (``datetime64``,
        `datetime`, text as YYYY-MM-DD or YYYY-MM). At least two times must be distinct.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    sample_weight : array-like of shape (n,), default=None
        Weights of the samples; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights: "frequency" counts samples, and "importance" corrects
        for the sampling design.
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample; samples in the same cluster (for example, from one
        patient, match or day) may be dependent.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.

    Returns
    -------
    trend : CalibrationTrend
        Named tuple `slope, unit, statistic, pvalue, confidence_level, is_step`; `slope`
        is a named tuple `estimate, low, high`, per year for dates.

    Raises
    ------
    ValueError
        If times are not numbers or dates, or are all equal, or if labels, probabilities
        or weights are inconsistent.

    See Also
    --------
    calibration_change : Compares two data sets.
    error_autocorrelation : Whether samples that follow each other are dependent.
    CalibrationMonitor : An alarm that can be checked after every sample.

    Notes
    -----
    The slope is that of a weighted least-squares fit of the residuals (score minus
    label) on time. Its interval is robust to heteroscedasticity: residuals are divided
    by one minus their leverage (HC3), and summed by cluster if there are clusters. The
    quantile is that of Student's t distribution. The test uses the residuals from a
    constant bias instead of those from the line.

    With fewer than 20 events (or non-events, if they are rarer), the test is
    conditional on their number, and the bias is constant if all scores are off by the
    same shift on the log-odds scale. From 10 events on, the statistic is compared with
    a normal distribution, and below with up to 9,999 samples in which the events are
    drawn among the samples in proportion to their odds; where importance weights depend
    on the label in a known way, these are the odds in the sample. With clusters, or
    with importance weights that say nothing of the weight of the other label, the test
    and the limits are NaN if the rarer label is worth fewer than 20 independent
    samples. Labels of one class say nothing about a trend.

    `is_step` compares the line with every step: one bias before some time, and another
    one from that time on. The better fit leaves the smaller weighted sum of squares.
    This describes the samples and is no test.

    References
    ----------
    MacKinnon and White (1985), Some heteroskedasticity-consistent covariance matrix
    estimators with improved finite sample properties.

    Examples
    --------
    Each year, the scores become too low by another 4 percentage points:

    >>> import numpy as np
    >>> from skcalib.monitoring import calibration_trend
    >>> rng = np.random.default_rng(0)
    >>> year = rng.uniform(2020, 2025, 20000)
    >>> y_proba = rng.uniform(0.1, 0.7, 20000)
    >>> y_true = rng.random(20000) < y_proba + 0.04 * (year - 2020)
    >>> trend = calibration_trend(y_true, y_proba, year)
    >>> print(trend)
    The bias has a trend (p < 0.001): -4.0 percentage points per unit of time (90 %: -4.4 to -3.7).
    """  # noqa: E501
    level = check_confidence_level(confidence_level)
    check_weight_type(weight_type)
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, drop=False
    )
    check_one_event(data, "a trend")
    known = label_weights(
        data.labels, data.sample_weight, weight_type, data.classes, scores=data.scores
    )
    if known is None:
        warn_of_counts(data.labels, data.sample_weight)
    moment, unit = moments(time, len(data.scores))
    cluster = None
    if clusters is not None:
        _, cluster = check_groups(clusters, len(data.scores), name="clusters")
    rows = _TimedRows(
        np.asarray(data.scores, dtype=np.float64),
        data.labels.astype(np.float64),
        moment,
        data.sample_weight,
        cluster,
        known,
    ).of_positive_weight()
    if len(np.unique(rows.moment)) < _FEWEST_TIMES:
        raise ValueError("time has only one value: a trend needs two time points.")
    residual = rows.scores - rows.labels
    estimate, influence, null_influence = _slope(residual, rows.moment, rows.weight)
    is_step = _is_step(residual, rows.moment, rows.weight)
    # how the rows were sampled, which decides how estimates vary
    sampling = {
        "weight": rows.weight,
        "importance": known is not None,
        "cluster": rows.cluster,
    }
    n_events = effective_events(rows.labels, **sampling, residual=-residual)
    reason = _too_few_events(rows, n_events)
    if reason:
        slope = IntervalEstimate(float(estimate), np.nan, np.nan, reason=reason)
        return CalibrationTrend(slope, unit, np.nan, np.nan, level, is_step)
    low, high, reason = Influence(influence, **sampling).interval(estimate, level)
    slope = IntervalEstimate(float(estimate), float(low), float(high), reason=reason)
    if n_events < FEWEST_FOR_SPREAD:
        test = _test_of_few_events(rows)
        return CalibrationTrend(slope, unit, *test, level, is_step)
    # The test has the standard error of no trend: residuals about a constant bias.
    null = Influence(null_influence, **sampling)
    error = null.spread().standard_error
    statistic = estimate / error if error > 0 else np.nan
    pvalue = null.pvalue(estimate)
    return CalibrationTrend(slope, unit, float(statistic), pvalue, level, is_step)


class _TimedRows(NamedTuple):
    """Samples with their times.

    Attributes
    ----------
    scores, labels, moment : ndarray of shape (n,)
        Scores, labels (0 or 1) and times, as floats.
    weight : ndarray of shape (n,) or None
        Weights.
    cluster : ndarray of int, shape (n,), or None
        Codes of clusters.
    label_weights : LabelWeights or None
        What importance weights say about the labels; None if weights count rows.
    """

    scores: np.ndarray
    labels: np.ndarray
    moment: np.ndarray
    weight: np.ndarray | None
    cluster: np.ndarray | None
    label_weights: LabelWeights | None

    def of_positive_weight(self):
        """Return the rows of positive weight, with cluster codes from 0 on."""
        rows = self
        if self.weight is not None and self.weight.min() == 0:
            has_weight = self.weight > 0
            rows = _TimedRows(
                self.scores[has_weight],
                self.labels[has_weight],
                self.moment[has_weight],
                self.weight[has_weight],
                taken(self.cluster, has_weight),  # None stays None
                taken(self.label_weights, has_weight),
            )
        if rows.cluster is not None:
            rows = rows._replace(cluster=cluster_codes(rows.cluster))
        return rows

    @property
    def is_unequal(self):
        """Whether rows are dependent, or have importance weights that say nothing of
        the other label: the null law of few events is then unknown, and there must be
        enough for the observed spread.
        """
        if self.cluster is not None:
            return True
        return self.label_weights is not None and not self.label_weights.is_known


def _too_few_events(rows, n_events):
    """Return why `_TimedRows` do not tell whether there is a trend, else "". `n_events`
    is the effective number of independent samples with the rarer label.
    """
    if rows.labels.min() == rows.labels.max():
        return "y_true has one class only, which says nothing about a trend"
    if rows.is_unequal and n_events < FEWEST_FOR_SPREAD:
        return (
            f"the rarer label amounts to {rounded(n_events, 2)} independent samples,"
            f" fewer than {count_words(FEWEST_FOR_SPREAD)}"
        )
    return ""


def _test_of_few_events(rows):
    """Return the statistic and the p-value of no trend for independent rows, given
    their number of events, which are few.

    Under the hypothesis the bias of all log-odds is constant: the probabilities p are
    those of a common shift that gives the observed number of events. The statistic, U =
    sum of w (p - y) (t - mean of t), is compared with samples in which other rows have
    the events, or from ten events on with a normal distribution. Weights w1 and w0 of
    both labels multiply the odds in the sample by w0 / w1, which changes nothing: each
    row counts once.
    """
    known = rows.label_weights
    if known is not None:
        in_sample, _, _ = known.event_probability(rows.scores, rows.labels)
        rows = rows._replace(scores=in_sample, weight=None)
    weight = weights_or_ones(rows.weight, len(rows.labels))
    # Non-events are drawn where they are rarer.
    sign = 1.0
    if weight @ rows.labels > weight.sum() / 2:
        sign = -1.0
        rows = rows._replace(scores=1 - rows.scores, labels=1 - rows.labels)
    n_events = weight @ rows.labels
    probability = _commonly_shifted(rows)
    variance = weight * probability * (1 - probability)
    centred = rows.moment - variance @ rows.moment / variance.sum()
    error = np.sqrt(variance @ centred**2)
    excess = (weight * (rows.labels - probability)) @ centred
    statistic = float(-sign * excess / error)
    if n_events >= FEWEST_FOR_NORMAL:
        return statistic, float(2 * ndtr(-abs(statistic)))
    # Sorted, so that the draws do not depend on the order of the rows.
    order = np.lexsort((log_odds(rows.scores), rows.moment))
    drawn = sums_given_number_of_events(
        probability[order],
        centred[order],
        max(round(n_events), 1),
        taken(rows.weight, order),
        np.random.default_rng(0),
    )
    return statistic, two_sided_pvalue(drawn, rows.labels * weight @ centred)


def _commonly_shifted(rows):
    """Return the probabilities (n,) of the scores after the common shift of their
    log-odds that expects the observed number of events.
    """
    offset = log_odds(rows.scores)

    def constant(block):
        """Return the only feature, (1, m), of a slice of rows."""
        return np.ones((1, len(offset[block])))

    shift = fit_logistic(constant, rows.labels, rows.weight, offset=offset)
    return expit(offset + shift[0])


def _slope(residual, moment, weight):
    """Return the least-squares slope of the residuals over the time `moment`, and the
    samples' influences (n,) on it: from residuals about the line, for the interval, and
    about their mean, for the test of no trend.

    Influences are divided by 1 minus the leverage, as in HC3, since the fit makes
    residuals smaller.
    """
    mean_of = np.mean
    one_sample = 1 / len(residual)
    if weight is not None:
        share = weight / weight.sum()
        mean_of = share.__matmul__  # the weighted mean: share @ values
        one_sample = np.minimum(1.0, weight) / weight.sum()
    centred = moment - mean_of(moment)
    time_variance = mean_of(centred**2)
    residual = residual - mean_of(residual)
    slope = mean_of(centred * residual) / time_variance
    # About a constant the leverage is 1 / n.
    null_influence = centred * residual / time_variance / (1 - one_sample)
    about_line = residual - slope * centred
    # If the line goes through all samples, their residuals are rounding errors.
    about_line[np.abs(about_line) < _ROUNDING] = 0.0
    # The leverage of a sample is (1 + z^2) / n, with its standardised time z. A weight
    # w > 1 stands for w samples of this leverage, not for one of w times as much. A
    # sample that decides the slope alone has a leverage of 1: its factor is limited.
    leverage = one_sample * (1 + centred**2 / time_variance)
    influence = centred * about_line / time_variance / np.maximum(1 - leverage, 1e-3)
    return slope, influence, null_influence


def _is_step(residual, moment, weight):
    """Return whether one step fits the biases of the times better than a line does, by
    weighted least squares: whether it explains more of the squares about the mean. All
    weights are positive.
    """
    times, code = np.unique(moment, return_inverse=True)
    if weight is None:
        share = np.bincount(code) / len(residual)
        bias_sum = np.bincount(code, residual) / len(residual)
    else:
        share = np.bincount(code, weight) / weight.sum()
        bias_sum = np.bincount(code, weight * residual) / weight.sum()
    del code  # there may be as many times as samples
    # A line explains the squared covariance over the variance of time.
    centred = times - share @ times
    squares_of_line = (centred @ bias_sum) ** 2 / (share @ centred**2)
    # A step between two times explains b (1 - b) times the squared difference of the
    # means of its two sides, b the share before it. With the sum B of the biases before
    # it, and T of all, that is (T b - B)^2 / (b (1 - b)).
    total = bias_sum.sum()
    share_before = np.cumsum(share)[:-1]
    squares_of_steps = total * share_before
    squares_of_steps -= np.cumsum(bias_sum)[:-1]
    squares_of_steps **= 2
    squares_of_steps /= share_before
    squares_of_steps /= np.cumsum(share[::-1])[-2::-1]
    # With two times, or a constant bias, both explain the same up to rounding.
    margin = 1e-9 * squares_of_line + _ROUNDING**2
    return bool(squares_of_steps.max() > squares_of_line + margin)
