"""Calibration slope and calibration-in-the-large: the logistic regression of the labels
on the log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri, stdtrit

from skcalib._cells.binned import counted_rows
from skcalib._cells.reductions import one_task
from skcalib._cells.statistics import BinStatistics
from skcalib._cells.tasks import BinaryTask
from skcalib._guide import see
from skcalib._inference.results import IntervalEstimate, ResultRecord
from skcalib._input.label_weights import is_importance
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, hint_at_keywords
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.warn import warn
from skcalib._intervals.influence import cluster_codes
from skcalib._intervals.sandwich import LogisticRows, fisher_covariance
from skcalib._rows.blocks import condensed, taken, weights_or_ones
from skcalib._rows.links import log_odds
from skcalib._solvers.logistic import fit_logistic
from skcalib._verdicts import (
    count_words,
    interval_words,
    joined,
    level_words,
    rounded,
    side_words,
)

# Scores of exactly 0 and 1 may move the slope by so much of its interval's length
# without a warning: those that are right move it by nothing.
_NEGLIGIBLE = 0.05
_QUANTITIES = {
    "slope": "Calibration slope",
    "intercept": "Calibration in the large (log-odds)",
}


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationSlopeIntercept(ResultRecord):
    """Calibration slope and calibration-in-the-large, each with its interval.

    Parameters
    ----------
    slope : IntervalEstimate
        1 for calibrated scores, below 1 if they are too extreme (overconfident), and
        above 1 if they are not extreme enough.
    intercept : IntervalEstimate
        Calibration-in-the-large, in log-odds: 0 for calibrated scores, and below 0 if
        they are too high on average.
    """

    slope: IntervalEstimate
    intercept: IntervalEstimate

    def _sentences(self):
        """Say both numbers, what they mean, and why one has no interval."""
        slope, intercept = self.slope, self.intercept
        level = ""
        if slope.confidence_level is not None:
            level = level_words(slope.confidence_level)
        text = (
            f"Slope {interval_words(*slope, level=level)}, intercept"
            f" {interval_words(*intercept)}"
        )
        findings = slope_findings(slope, intercept)
        if findings:
            text += f": the scores are {joined(findings)}"
        elif not (slope.reason or intercept.reason):
            text += ": no deviation from slope 1 or intercept 0 is detectable"
        reasons = dict.fromkeys(filter(None, (slope.reason, intercept.reason)))
        return "\n".join([f"{text}.", *(f"No interval: {why}." for why in reasons)])


def slope_findings(slope, intercept):
    """Return what the intervals of a calibration slope and intercept exclude, a list of
    phrases that follow "the scores are".
    """
    found = (
        side_words(
            *intercept[1:],
            above="too low on average",
            below="too high on average",
            neither="",
        ),
        side_words(
            *slope[1:],
            above="not extreme enough",
            below="too extreme",
            neither="",
            reference=1.0,
        ),
    )
    return [words for words in found if words]


@hint_at_keywords
def calibration_slope_intercept(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.9,
    multiclass: Literal["auto", "top_label"] = "auto",
    clusters: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> CalibrationSlopeIntercept:
    """Calibration slope and calibration-in-the-large, as used for prediction models.

    The slope is b in ``logit P(y = 1) = a + b logit(s)``. The intercept is a in
    ``logit P(y = 1) = a + logit(s)``, where the slope is fixed at 1.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1], clipped to [2^-52, 1 - 2^-52]: a score of exactly 0 or
        1 has high leverage if it is wrong.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    multiclass : {"auto", "top_label"}, default="auto"
        See `calibration_error`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from one patient or centre) share a
        value.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    result : CalibrationSlopeIntercept
        Named tuple (slope, intercept), each a named tuple (estimate, low, high) with a
        `reason` if the limits are NaN.

    Raises
    ------
    ValueError
        If there is no finite estimate, because there is only one class or one distinct
        score, or because the scores separate the classes. Also raised if there is only
        one cluster.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``. If scores of
        exactly 0 or 1 affect the slope; the message then gives the slope without them.

    See Also
    --------
    skcalib.evaluation.calibration_summary : These and the other statistics usually
        reported in papers on prediction models.
    skcalib.PlattScaling : Recalibrates with a slope and an intercept on the log-odds
        scale.
    skcalib.metrics.calibration_test : Tests whether the error is larger than expected
        by chance.

    Notes
    -----
    The intervals are Wald intervals based on the information matrix, like those of R's
    ``glm``. If the residuals vary more than the fitted probabilities imply, the
    variance is estimated from the residuals (the sandwich estimator): the event
    frequencies may then not follow the fitted line on the log-odds scale, and the
    intervals of ``glm`` are too narrow.

    With clusters or importance weights, the sandwich estimator uses the steps that the
    coefficients take where one sample, or one cluster, is left out (HC3 for samples,
    CR3 for clusters), with a quantile of Student's t distribution. The degrees of
    freedom are Satterthwaite's, and with clusters at most the number of clusters less
    1. The standard error is at least two thirds of that of independent labels with the
    given scores: if it is smaller, the few heavy samples that determine it have not
    shown their events. Limits are NaN, and `reason` says why, if it is less than a
    quarter, with fewer than four degrees of freedom, or if the events of the clusters
    (or the non-events, if they are rarer) may be worth fewer than 20 independent ones:
    their number is divided by the design effect, whose excess over 1 counts a third
    more than estimated, since it is small by chance in some data sets.

    In simulations, 90% intervals covered .88 to .99 with random weights of 50 for 2 to
    20% of the samples and with weights 1 / score, and .86 to .94 with 6 to 100
    clusters. The more alike the samples of a cluster, the rarer are limits: with 5%
    events and a correlation of .5, 30% of the data sets with 100 clusters of 10
    samples had them, and none of those with 30 clusters of 40.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression. Van Calster,
    McLernon, van Smeden, Wynants and Steyerberg (2019), Calibration: the Achilles heel
    of predictive analytics.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be, so the slope is
    about 1/2.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import calibration_slope_intercept
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> result = calibration_slope_intercept(y_true, y_proba)
    >>> round(result.slope.estimate, 2), round(result.intercept.estimate, 2)
    (0.51, 0.1)

    At the scores .2 and .8, one fifth and four fifths of the samples are events, so the
    slope is 1 and the intercept is 0.

    >>> from skcalib.metrics import calibration_slope_intercept
    >>> result = calibration_slope_intercept(
    ...     [0, 0, 0, 0, 1, 1, 1, 1, 1, 0], [0.2] * 5 + [0.8] * 5
    ... )
    >>> round(result.slope.estimate, 6), abs(round(result.intercept.estimate, 6))
    (1.0, 0.0)
    """
    confidence_level = check_confidence_level(confidence_level)
    options = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "drop": False,
    }
    data = check_scored_labels(y_true, y_proba, multiclass=multiclass, **options)
    data, cluster = rows_and_clusters(data, clusters, weight_type)
    task = one_task(data, multiclass)
    reasons = list(not_estimable(task).values())
    if reasons:
        raise ValueError(reasons[0])
    result = CalibrationSlopeIntercept(
        slope=coefficient(task, "slope", confidence_level, weight_type, cluster),
        intercept=coefficient(
            task, "intercept", confidence_level, weight_type, cluster
        ),
    )
    _warn_of_extremes(
        task, result.slope.estimate, confidence_level, weight_type, cluster
    )
    return result


def _warn_of_extremes(task, slope, confidence_level, weight_type, cluster):
    """Warn if scores of exactly 0 or 1 change the `slope` of all rows: if that of the
    others differs by more than a small part of their interval.
    """
    inner = is_inner(task.scores)  # whether a score is above 0 and below 1
    if inner.all():
        return
    others = task._replace(
        scores=task.scores[inner],
        labels=task.labels[inner],
        sample_weight=taken(task.sample_weight, inner),
    )
    found = "without those of 0 or 1, there is no slope"
    if inner.any() and not not_estimable(others):
        if cluster is not None:
            cluster = cluster_codes(cluster[inner])
        alone = coefficient(others, "slope", confidence_level, weight_type, cluster)
        if abs(alone.estimate - slope) <= _NEGLIGIBLE * (alone.high - alone.low):
            return
        found = f"without those of 0 or 1, the slope is {interval_words(*alone)}"
    warn(
        f"{extreme_words(np.count_nonzero(~inner))}. Clipping scores to [2^-52,"
        f" 1 - 2^-52] affects the slope of {rounded(slope)}; {found}."
        f"{see('extreme-scores')}"
    )


def extreme_words(n):
    """Return a clause on n scores of exactly 0 or 1; n may be a sum of weights.

    Examples
    --------
    >>> extreme_words(1), extreme_words(5176)
    ('1 score is exactly 0 or 1', '5,176 scores are exactly 0 or 1')
    """
    if n == 1:
        return "1 score is exactly 0 or 1"
    return f"{count_words(n)} scores are exactly 0 or 1"


def is_inner(scores):
    """Return which scores are neither 0 nor 1."""
    return (scores > 0) & (scores < 1)


def rows_and_clusters(data, clusters, weight_type):
    """Drop samples of weight zero, and return the others as `ScoredLabels`, and the
    cluster of each as an integer from 0 to G - 1, (n,); None without clusters.

    Importance weights are scaled so that their sum is the effective sample size.
    `clusters` and `weight_type` are the user's arguments.
    """
    data = counted_rows(data, weight_type)
    cluster = None
    if clusters is not None:
        _, codes = check_groups(clusters, len(data.scores), name="clusters")
        cluster = cluster_codes(codes[data.kept])
    return data.at(data.kept), cluster


def not_estimable(task):
    """Return why the calibration intercept or slope of a `BinaryTask` cannot be
    estimated: a dict from "intercept" or "slope" to a sentence, which omits those that
    can be estimated.
    """
    labels = task.labels
    if labels.all() or not labels.any():
        reason = (
            "y_true has one class only: the calibration slope and intercept cannot be"
            " estimated."
        )
        return {"intercept": reason, "slope": reason}
    logit = log_odds(task.scores)
    of_events = logit[labels == 1]
    of_others = logit[labels == 0]
    lowest = min(of_events.min(), of_others.min())
    highest = max(of_events.max(), of_others.max())
    if lowest == highest:
        reason = (
            "y_proba has one distinct score"
            f" ({rounded(task.scores[0], 6)}): there is no"
            " calibration slope."
        )
        return {"slope": reason}
    events_are_above = of_others.max() <= of_events.min()
    events_are_below = of_events.max() <= of_others.min()
    if events_are_above or events_are_below:
        reason = (
            "The scores separate the classes of y_true: the calibration slope would"
            " be infinite."
        )
        return {"slope": reason}
    return {}


_NO_INFORMATION = (
    "the fitted probabilities are 0 or 1, up to rounding, so no variance can be"
    " estimated"
)
# The two logistic regressions, by the name of their last coefficient: features (d, m)
# of log-odds (m,), and whether the log-odds are an offset.
_MODELS = {
    "slope": (lambda logit: np.stack((np.ones_like(logit), logit)), False),
    "intercept": (lambda logit: np.ones((1, len(logit))), True),
}


def coefficient(task, name, confidence_level, weight_type="frequency", cluster=None):
    """Return the calibration slope or intercept of a binary problem by maximum
    likelihood, with its interval, as an `IntervalEstimate`.

    Many independent rows with frequency weights are condensed to fewer weighted rows.
    These give the width of the interval and the initial coefficients of the fit to all
    rows, which gives the estimate.

    Parameters
    ----------
    task : BinaryTask
        The n rows.
    name : {"slope", "intercept"}
        The coefficient.
    confidence_level : float
        Coverage, in (0, 1).
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights.
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    cluster : ndarray of int, shape (n,), default=None
        Cluster codes, starting at 0.
    """
    features, is_offset = _MODELS[name]
    rows = task._replace(scores=log_odds(task.scores))
    is_plain = cluster is None and not is_importance(weight_type)
    # The width of the interval is computed from condensed rows, which stand for many
    # rows with nearly equal scores. Their fit is also the start of that to all rows.
    # Clusters and importance weights need the rows themselves.
    width_rows = rows
    start = None
    if is_plain:
        width_rows = BinaryTask(*condensed(*rows))
        if len(width_rows.scores) < len(rows.scores):
            start = _fit(width_rows, name)
    coef = _fit(rows, name, start)
    estimate = float(coef[-1])
    design = features(width_rows.scores)  # (d, m)
    weight = weights_or_ones(width_rows.sample_weight, len(width_rows.scores))
    logit = coef @ design
    if is_offset:
        logit = logit + width_rows.scores
    probability = expit(logit)
    reason = ""
    if is_plain:
        variance = _variance(design, width_rows.labels, probability, weight)
        quantile = ndtri((1 + confidence_level) / 2)
        if np.isnan(variance):
            reason = _NO_INFORMATION
    else:
        sandwich = LogisticRows(
            design=design,
            labels=task.labels,
            fitted=probability,
            scores=task.scores.astype(np.float64),
            weight=weight,
            importance=is_importance(weight_type),
            cluster=cluster,
            label_weights=task.label_weights,
        ).sandwich()
        variance = sandwich.covariance[-1, -1]
        quantile = stdtrit(sandwich.degrees[-1], (1 + confidence_level) / 2)
        reason = sandwich.reasons[-1]
    width = np.nan
    if not reason:
        width = quantile * np.sqrt(variance)
    return IntervalEstimate(
        estimate,
        float(estimate - width),
        float(estimate + width),
        reason=reason,
        quantity=_QUANTITIES[name],
        confidence_level=confidence_level,
    )


def slope_fit(task):
    """Return the calibration intercept and slope (2,) of a `BinaryTask`, fitted jointly
    by maximum likelihood.
    """
    return _fit(task._replace(scores=log_odds(task.scores)), "slope")


def _variance(design, labels, probability, weight):
    """Return the variance of the last coefficient of a fit to independent rows whose
    weights count them; NaN where the fitted probabilities are 0 or 1, up to rounding.

    It is that of Fisher's information, the more precise one if the model holds, or the
    sandwich estimate if that is larger. The `design` is (d, m).
    """
    try:
        covariance = fisher_covariance(design, probability, weight)
    except np.linalg.LinAlgError:
        return np.nan
    label_variance = probability * (1 - probability)
    # To first order, a row adds w * direction * residual to the coefficient's error.
    direction = covariance[-1] @ design  # (m,)
    expected = np.sum(weight * direction**2 * label_variance)
    observed = np.sum(weight * direction**2 * (labels - probability) ** 2)
    return covariance[-1, -1] * max(observed / expected, 1.0)


def _fit(rows, name, start=None):
    """Return the maximum likelihood coefficients (d,) for the log-odds of `rows`: the
    intercept and slope for the name "slope", or the intercept with the log-odds as
    offset.
    """
    features, is_offset = _MODELS[name]
    offset = None
    if is_offset:
        offset = rows.scores

    def features_of(block):
        """Return the features (d, m) of a slice of m rows, for the solver."""
        return features(rows.scores[block])

    return fit_logistic(
        features_of,
        rows.labels,
        rows.sample_weight,
        offset=offset,
        start=start,
    )
