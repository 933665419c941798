"""Tests and intervals of a bias for weighted rows, rows in clusters, and binned data:
all are brought to the numbers of independent rows that `bias_test` takes.
"""

import numpy as np
from scipy.special import expit

from skcalib._inference.event_counts import estimated_shift_of
from skcalib._inference.shift_test import BiasProblem, BiasTest, bias_test
from skcalib._input.scalars import as_numbers
from skcalib._intervals.influence import Influence, too_few_units
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.links import log_odds
from skcalib._rows.sorting import distinct_values

ONE_CLASS_IN_CLUSTERS = (
    "all samples have the same label, so the variation between clusters cannot be"
    " estimated"
)


def rows_bias_test(
    scores, labels, confidence_level, weight=None, *, label_weights=None, cluster=None
):
    """Test whether the mean score differs from the event frequency by chance alone, for
    importance weights and for rows in clusters, by `bias_test`.

    That test takes weights for numbers of independent rows. So all weights are first
    divided by one number: the variance of the weighted number of events, divided by the
    variance that `bias_test` assumes. For importance weights w this number is
    sum w1 w0 v / sum w v, with v = s (1 - s) and the weights w1 and w0 of a row with
    and without the event. For clusters it is the design effect of the residuals y - s,
    or the number for the weights if that is larger.

    If only the weight with the observed label is known, the estimated bias is taken to
    be normal, with the variance of its influence values.

    Parameters
    ----------
    scores, labels : ndarray of shape (n,)
        Scores and labels.
    confidence_level : float
        Coverage of the interval.
    weight : ndarray of shape (n,), default=None
        Positive weights.
    label_weights : LabelWeights, default=None
        What importance weights say about the labels; None if weights count rows.
    cluster : ndarray of shape (n,), default=None
        Each row's cluster.

    Returns
    -------
    result : BiasTest
        Named tuple (pvalue, low, high, bias_pvalue). The limits are NaN, and the
        p-values 1, where there are too few clusters, rows or events.
    reason : str
        Why there are no limits; empty where there are.
    """
    scores = as_numbers(scores, "scores")
    weight = weights_or_ones(weight, len(scores))
    total = weight.sum()
    residual = labels - scores
    centred = residual - weight @ residual / total
    calibrated_variance = scores * (1 - scores)
    importance = label_weights is not None
    no_limits = BiasTest(pvalue=1.0, low=np.nan, high=np.nan, bias_pvalue=1.0)
    if importance:
        # Why the weights leave too little to judge by; clusters do not change that.
        reason = too_few_units(weight, importance) or label_weights.reason(labels)
        if reason:
            return no_limits, reason
        if label_weights.form == "constant":  # equal weights: each row counts once
            weight = np.ones(len(scores))
            importance = False
            total = weight.sum()
        elif not label_weights.is_known:
            return _observed_bias_test(residual, weight, cluster, confidence_level)
    # What the weights are divided by so that they count independent rows.
    divisor = 1.0
    if importance:
        divisor = weight_divisor(label_weights, calibrated_variance)
    if cluster is not None:
        effect, reason = _cluster_effect(
            centred, labels, weight, importance, cluster, confidence_level
        )
        if reason:
            return no_limits, reason
        # Clusters are never worth more than independent rows of these weights.
        divisor = max(divisor, effect)
        residual_variance = weight @ centred**2 / total
    elif importance:
        ratio, _ = observed_variance_ratio(scores, labels, centred, label_weights)
        residual_variance = weight @ centred**2 / total
        if calibrated_variance.any():
            residual_variance = ratio * (weight @ calibrated_variance) / total
    else:
        residual_variance = _residual_variance(
            weight, centred**2, calibrated_variance, weight
        )
    events = weight @ labels / divisor
    test = bias_test(
        scores, events, confidence_level, weight / divisor, residual_variance
    )
    return test, ""


def _cluster_effect(centred, labels, weight, importance, cluster, confidence_level):
    """Return the design effect of clusters, how many rows are worth one independent
    row, and the reason if it cannot be estimated, else an empty string. It depends on
    the level by the ratio of Student's quantile to the normal one. `centred` (n,) are
    the residuals minus their mean.
    """
    _, code = distinct_values(cluster)
    influence = Influence(centred, weight, importance, code)
    effect, reason = influence.design_effect(confidence_level)
    if np.all(labels == labels[0]):
        reason = ONE_CLASS_IN_CLUSTERS
    return effect, reason


def _observed_bias_test(residual, weight, cluster, confidence_level):
    """Return the `BiasTest` for residuals y - s (n,) whose weights may depend on the
    labels in an unknown way, and the reason if there are no limits, else an empty
    string. The influence of a row on the bias is its centred residual.
    """
    bias = -(weight @ residual) / weight.sum()
    code = None
    if cluster is not None:
        _, code = distinct_values(cluster)
    influence = Influence(-residual - bias, weight, importance=True, cluster=code)
    low, high, reason = influence.interval(bias, confidence_level)
    if reason:
        return BiasTest(pvalue=1.0, low=np.nan, high=np.nan, bias_pvalue=1.0), reason
    pvalue = influence.pvalue(bias)
    return BiasTest(pvalue, float(low), float(high), pvalue), ""


def observed_variance_ratio(scores, labels, residual, label_weights):
    """Return how many times the observed variance of a sum of w r exceeds that of
    labels whose log-odds differ from those of the scores by the estimated shift, and
    the probabilities (n,) of these labels.

    Parameters
    ----------
    scores, labels : ndarray of shape (n,)
        Scores and labels.
    residual : ndarray of shape (n,)
        Centred residuals r.
    label_weights : LabelWeights
        The weights w, with those of the other label.
    """
    weight = label_weights.weight
    probability = scores
    if labels.any() and not labels.all():
        z = log_odds(scores)
        probability = expit(z + estimated_shift_of(z, weight, weight @ labels))
    expected = np.sum(label_weights.null_variance(probability))
    if expected == 0:
        return np.nan, probability  # all scores are 0 or 1
    return float(np.sum((weight * residual) ** 2) / expected), probability


def bins_bias_test(statistics, scores, weight, confidence_level, *, importance=False):
    """Test the bias of binned data with `bias_test`.

    Parameters
    ----------
    statistics : BinStatistics
        Sums over the rows of each bin.
    scores, weight : ndarray of shape (m,)
        Scores that stand for those of the rows, which are not known, and their weights:
        one or two in each bin, with the mean and the variance of its scores.
    confidence_level : float
        Coverage of the interval.
    importance : bool, default=False
        Whether weights are importance weights. Their squares are known by bin, not by
        row: the rows of a bin count as equal.

    Returns
    -------
    result : BiasTest
        Named tuple (pvalue, low, high, bias_pvalue).
    """
    if not importance:
        problem = bins_bias_problem(statistics, scores, weight)
        return bias_test(problem.scores, problem.events, confidence_level, *problem[2:])
    events = statistics.weighted_label.sum()
    is_filled = statistics.weight > 0
    bin_weight = statistics.weight[is_filled]
    squared_weight = statistics.weight_squared[is_filled]  # sums of w^2
    # The variance s (1 - s) of calibrated labels, its mean in each bin.
    label_variance = statistics.weighted_score - statistics.weighted_score_squared
    label_variance = np.maximum(label_variance[is_filled], 0) / bin_weight
    # The mean square of the centred residuals r - m in each bin, r = y - s and m their
    # overall mean: sum w (r - m)^2 = sum w r^2 - 2 m sum w r + m^2 sum w.
    residual_sum = (statistics.weighted_label - statistics.weighted_score)[is_filled]
    mean = residual_sum.sum() / bin_weight.sum()
    centred_square = (
        statistics.residual_square[is_filled]
        - 2 * mean * residual_sum
        + mean**2 * bin_weight
    )
    # All weights are divided by one number, as in `rows_bias_test`.
    divisor = 1.0
    if label_variance.any():
        divisor = float(squared_weight @ label_variance / (bin_weight @ label_variance))
    residual_variance = _residual_variance(
        squared_weight, centred_square / bin_weight, label_variance, bin_weight
    )
    return bias_test(
        scores, events / divisor, confidence_level, weight / divisor, residual_variance
    )


def bins_bias_problem(statistics, scores, weight):
    """Return the `BiasProblem` of binned data whose weights count rows; the arguments
    are those of `bins_bias_test`.
    """
    return BiasProblem(
        scores,
        statistics.weighted_label.sum(),
        weight,
        statistics.total_residual_variance,
    )


def weight_divisor(label_weights, variance):
    """Return the number by which importance weights (n,) are divided so that they count
    rows.

    `variance` (n,) holds the variance v of each label. The weighted number of events
    then has the variance sum w1 w0 v. Weights that count rows, w / d, would give it sum
    (w / d) v after the number of events is divided by d as well: the two agree for d =
    sum w1 w0 v / sum w v.
    """
    if not variance.any():
        # All scores are 0 or 1: each row then counts alike.
        variance = np.ones(len(variance))
    product = label_weights.weight * label_weights.other
    return float(product @ variance / (label_weights.weight @ variance))


def _residual_variance(variance_weight, squared_residual, label_variance, weight):
    """Return the mean variance of the residuals y - s that `bias_test` takes: the
    weighted mean of `label_variance` s (1 - s), that of calibrated labels, times the
    ratio of the observed to the calibrated sum of squared residuals.

    Both sums have the weights `variance_weight` (n,): w for w repeated rows, w^2 for
    one row with the importance weight w.
    """
    calibrated_sum = variance_weight @ label_variance
    if calibrated_sum == 0:
        # All scores are 0 or 1: there is no ratio.
        return float(weight @ squared_residual / weight.sum())
    ratio = variance_weight @ squared_residual / calibrated_sum
    return float(ratio * (weight @ label_variance) / weight.sum())


def half_pvalue(pvalue, is_on_side):
    """Return the one-sided p-values (m,) for two-sided ones: half of them where the
    estimate lies on the side of the alternative, else 1 less that half.
    """
    return np.where(is_on_side, pvalue / 2, 1 - pvalue / 2)
