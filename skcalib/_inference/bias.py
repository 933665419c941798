"""Exact inference on a bias: is the number of events of some rows what their scores
predict.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, betaincinv, expit, log_expit, ndtr, ndtri

from skcalib._input.scalars import as_numbers
from skcalib._intervals.influence import Influence, too_few_units
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.links import log_odds

# below this total weight the distribution of the number of events is convolved exactly
_FEW_ROWS = 200
# More rows than the first number are summed in cells of log-odds, the second number of
# them in a unit of log-odds.
_MANY_ROWS, _CELLS_PER_UNIT = 4096, 32
# The rows are divided into this number of groups. The distribution of the number of
# events is computed for all groups at once, and these distributions are convolved.
_GROUPS = 8
# relative, of the total weight: an event sum this close to 0 or to the total is equal
# to it but for rounding
_ROUNDING = 1e-12
ONE_CLASS_IN_CLUSTERS = (
    "all rows are of one class: how far clusters differ cannot be seen"
)
_ALMOST_ONE = 1 - 2.0**-53
# Below this |r| the formula of Lugannani and Rice is replaced by its limit at r = 0.
_NEAR_ZERO = 1e-4


class BiasTest(NamedTuple):
    """Test of the bias of some rows, the mean score minus the event frequency.

    Parameters
    ----------
    pvalue : float
        Two-sided p-value of "the scores are calibrated".
    low, high : float
        Limits of the confidence interval of the bias.
    bias_pvalue : float
        P-value of "the bias is 0", which agrees with the interval.
    """

    pvalue: float
    low: float
    high: float
    bias_pvalue: float


def bias_test(scores, events, confidence_level, weight=None, residual_variance=None):
    """Test whether the scores predict the number of events, with an interval of the
    bias.

    The bias is the mean score minus the event frequency. In the model of the test each
    row has an event with probability ``expit(logit(s) + delta)``, with one shift delta
    for all rows. The p-value is that of delta = 0. The interval contains the biases of
    all shifts that the test does not reject; for equal scores these are Clopper and
    Pearson's limits.

    If the residuals y - s vary more than s (1 - s), a common shift does not describe
    the labels. Each side of the interval then becomes longer by the ratio of the
    standard deviations, but not beyond Clopper and Pearson's limits for the mean score,
    which hold for any probabilities of the rows (Hoeffding 1956).

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    events : float
        Sum of the weights of the rows with an event.
    confidence_level : float
        Coverage of the interval.
    weight : ndarray of shape (n,), default=None
        Positive weights; a weight of 2 means two rows. None means 1.
    residual_variance : float, default=None
        Weighted mean of the squared centred residuals y - s. None means that the scores
        are calibrated but for a shift, so that nothing becomes longer.

    Returns
    -------
    result : BiasTest
        Named tuple (pvalue, low, high, bias_pvalue). The interval excludes 0 exactly
        where bias_pvalue < 1 - confidence_level.
    """
    z, weight = _log_odds_cells(as_numbers(scores, "scores"), weight)
    total = weight.sum()
    if residual_variance is None:
        exact, _ = _shift_tests(z, weight, events, confidence_level)
        return exact
    # How many times longer each side of the interval becomes: the standard deviation of
    # y - s over that of calibrated scores, at least 1.
    probability = expit(z)
    calibrated_variance = weight @ (probability * (1 - probability))
    stretch = np.sqrt(max(residual_variance * total / calibrated_variance, 1.0))
    exact, stretched = _shift_tests(z, weight, events, confidence_level, stretch)
    if stretch == 1:
        return exact
    # Hoeffding (1956): the limits for equal scores hold for any probabilities. So the
    # longer interval need not go beyond them; it always contains the exact one.
    mean_score = float(weight @ probability / total)
    equal_scores = _equal_scores_test(mean_score, total, events, confidence_level)
    return BiasTest(
        pvalue=exact.pvalue,
        low=min(exact.low, max(stretched.low, equal_scores.low)),
        high=max(exact.high, min(stretched.high, equal_scores.high)),
        bias_pvalue=max(exact.pvalue, min(stretched.bias_pvalue, equal_scores.pvalue)),
    )


def rows_bias_test(
    scores, labels, confidence_level, weight=None, *, importance=False, cluster=None
):
    """Test a bias as `bias_test` does, for importance weights and for rows in clusters.

    `bias_test` takes weights for numbers of independent rows. So all weights are first
    divided by one number, the variance of the weighted number of events over the
    variance that `bias_test` assumes. For importance weights w it is sum w^2 v /
    sum w v, with v = s (1 - s). For clusters it is the design effect of the residuals
    y - s, or the number for the weights if that is larger.

    Parameters
    ----------
    scores, labels : ndarray of shape (n,)
        Scores and labels.
    confidence_level : float
        Coverage of the interval.
    weight : ndarray of shape (n,), default=None
        Positive weights.
    importance : bool, default=False
        Whether each row was seen once, whatever its weight; else weights count rows.
    cluster : ndarray of shape (n,), default=None
        Each row's cluster.

    Returns
    -------
    result : BiasTest
        Named tuple (pvalue, low, high, bias_pvalue). The limits are NaN, and the
        p-values 1, where there are too few clusters or rows.
    reason : str
        Why there are no limits; empty where there are.
    """
    scores = as_numbers(scores, "scores")
    weight = weights_or_ones(weight, len(scores))
    total = weight.sum()
    residual = labels - scores
    centred = residual - weight @ residual / total
    calibrated_variance = scores * (1 - scores)
    no_limits = BiasTest(pvalue=1.0, low=np.nan, high=np.nan, bias_pvalue=1.0)
    # What the weights are divided by so that they count independent rows.
    divisor = _weight_divisor(weight, calibrated_variance, importance)
    if cluster is not None:
        code = np.unique(cluster, return_inverse=True)[1]
        influence = Influence(centred, weight, importance, code)
        # The design effect depends on the level, because it contains the ratio of
        # Student's quantile to the normal one.
        effect, reason = influence.design_effect(confidence_level)
        if np.all(labels == labels[0]):
            reason = ONE_CLASS_IN_CLUSTERS
        if reason:
            return no_limits, reason
        # Clusters are never worth more than independent rows of these weights.
        divisor = max(divisor, effect)
        residual_variance = weight @ centred**2 / total
    else:
        # What a row adds to a variance: w for w copies, w^2 for one row of weight w.
        variance_weight = weight
        if importance:
            reason = too_few_units(weight, importance)
            if reason:
                return no_limits, reason
            variance_weight = weight**2
        residual_variance = _residual_variance(
            variance_weight, centred**2, calibrated_variance, weight
        )
    events = weight @ labels / divisor
    test = bias_test(
        scores, events, confidence_level, weight / divisor, residual_variance
    )
    return test, ""


def _weight_divisor(weight, variance, importance):
    """Return the number by which weights (n,) are divided so that they count rows.

    `variance` (n,) holds the variance v of each label. Importance weights w give the
    weighted number of events the variance sum w^2 v. Weights that count rows, w / d,
    would give it sum (w / d) v after the number of events is divided by d as well: the
    two agree for d = sum w^2 v / sum w v. Frequency weights count rows already: d = 1.
    """
    if not importance:
        return 1.0
    if not variance.any():
        # All scores are 0 or 1: each row then counts alike.
        variance = np.ones(len(weight))
    return float(weight**2 @ variance / (weight @ variance))


def _residual_variance(variance_weight, squared_residual, label_variance, weight):
    """Return the mean variance of the residuals y - s that `bias_test` takes.

    It is the weighted mean of s (1 - s), the variance of calibrated labels, times the
    ratio of the observed sum of squared residuals to the sum that calibrated labels
    would have.

    Parameters
    ----------
    variance_weight : ndarray of shape (n,)
        Weights in the two sums of the ratio: w for w repeated rows, w^2 for one row
        with the importance weight w.
    squared_residual : ndarray of shape (n,)
        Squares of the centred residuals y - s.
    label_variance : ndarray of shape (n,)
        s (1 - s).
    weight : ndarray of shape (n,)
        Weights in the mean.

    Returns
    -------
    residual_variance : float
        The mean variance.
    """
    calibrated_sum = variance_weight @ label_variance
    if calibrated_sum == 0:
        # All scores are 0 or 1: there is no ratio.
        return float(weight @ squared_residual / weight.sum())
    ratio = variance_weight @ squared_residual / calibrated_sum
    return float(ratio * (weight @ label_variance) / weight.sum())


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
    events = statistics.weighted_label.sum()
    if not importance:
        residual_variance = statistics.total_residual_variance
        return bias_test(scores, events, confidence_level, weight, residual_variance)
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


def event_ratio_limits(
    scores, events, confidence_level, weight=None, residual_variance=0.0
):
    """Return the confidence limits of the ratio of observed to expected events, O/E.

    In the model all log-odds of the scores are shifted by one number. Each shift has a
    ratio, the mean of the shifted probabilities over the mean score, and the limits are
    the ratios at the ends of the interval of the shift; for equal scores these are
    Clopper and Pearson's limits over the score.

    If y - (O/E) s varies more than labels of the estimated probabilities do, each side
    becomes longer by the ratio of the standard deviations. That happens where a common
    shift does not describe the labels, and because the mean score is that of a sample.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    events : float
        Sum of the weights of the rows with an event. If it is 0 the lower limit is 0.
    confidence_level : float
        Coverage.
    weight : ndarray of shape (n,), default=None
        Positive weights that count rows.
    residual_variance : float, default=0.0
        Weighted mean of (y - (O/E) s)^2.

    Returns
    -------
    low, high : float
        The limits.
    """
    scores = as_numbers(scores, "scores")
    z, weight = _log_odds_cells(scores, weight)
    total = weight.sum()
    mean_score = float(weight @ expit(z)) / total
    all_have_event = events >= total * (1 - _ROUNDING)
    none_has_event = events <= total * _ROUNDING
    # How many times longer each side becomes: the standard deviation of y - (O/E) s
    # over that of labels with the probabilities at the estimated shift, at least 1.
    stretch = 1.0
    if not all_have_event and not none_has_event:
        probability = expit(z + _estimated_shift(z, weight, events))
        label_variance = weight @ (probability * (1 - probability))
        stretch = np.sqrt(max(residual_variance * total / label_variance, 1))
    test, stretched = _shift_tests(z, weight, events, confidence_level, stretch)
    if stretch > 1:
        test = stretched
    # The test has limits of the bias, mean score - O / n, and O/E is 1 - bias / mean
    # score: the upper limit of one gives the lower limit of the other.
    low = 1 - test.high / mean_score
    high = 1 - test.low / mean_score
    if all_have_event and residual_variance > 0:
        # If all rows have events there is no stretch, since the labels do not vary. The
        # mean score of a sample does: the half-width of its normal interval is combined
        # with each side as the root of the sum of squares.
        ratio = events / total / mean_score
        z_value = ndtri((1 + confidence_level) / 2)
        half_width = z_value * np.sqrt(residual_variance / total) / mean_score
        low = ratio - np.hypot(ratio - low, half_width)
        high = ratio + np.hypot(high - ratio, half_width)
    return float(max(low, 0.0)), float(high)


def _estimated_shift(z, weight, events):
    """Return the shift delta of log-odds z (m,) at which as many events are expected as
    were observed: sum w expit(z + delta) = events, between 0 and the sum of w.
    """
    # The log-odds of the mean frequency less the largest and the smallest log-odds: all
    # shifted probabilities lie below it, or all above. The margins of 1e-9 keep the
    # signs of both ends apart where all log-odds are equal.
    log_odds_of_mean = np.log(events) - np.log(weight.sum() - events)
    return brentq(
        lambda delta: weight @ expit(z + delta) - events,
        log_odds_of_mean - z.max() - 1e-9,
        log_odds_of_mean - z.min() + 1e-9,
        xtol=1e-13,
        rtol=1e-14,
    )


def _equal_scores_test(score, n_rows, events, confidence_level):
    """Return the `BiasTest` of `events` among `n_rows` rows that all have one score:
    the exact binomial test and the limits of Clopper and Pearson.

    Both numbers may be sums of weights. If they are not integers, if there are many
    rows, or if all or no rows have events, `_shift_tests` does the same test.
    """
    are_integers = float(n_rows).is_integer() and float(events).is_integer()
    if not (n_rows < _FEW_ROWS and are_integers and 0 < events < n_rows):
        z = log_odds(np.array([score]))
        test, _ = _shift_tests(z, np.array([n_rows]), events, confidence_level)
        return test
    k = round(events)
    n = round(n_rows)
    tail = (1 - confidence_level) / 2
    at_least = bdtrc(k - 1, n, score)  # P(S >= k) of a binomial S
    at_most = bdtr(k, n, score)  # P(S <= k)
    pvalue = float(min(1.0, 2 * min(at_least, at_most)))
    # Clopper and Pearson: each limit of the event frequency is a quantile of a beta
    # distribution.
    highest_frequency = betaincinv(k + 1, n - k, 1 - tail)
    lowest_frequency = betaincinv(k, n - k + 1, tail)
    return BiasTest(
        pvalue,
        low=float(score - highest_frequency),
        high=float(score - lowest_frequency),
        bias_pvalue=pvalue,
    )


def _shift_tests(z, weight, events, confidence_level, stretch=1.0):
    """Test that a common shift of all log-odds is 0, and return the p-value with two
    intervals of the bias, the mean score minus the mean of the shifted probabilities.

    Parameters
    ----------
    z : ndarray of shape (m,)
        Log-odds of the scores.
    weight : ndarray of shape (m,)
        How many rows have each of them.
    events : float
        Number of events, or sum of their weights.
    confidence_level : float
        Coverage of the intervals.
    stretch : float, default=1.0
        Factor of at least 1 by which each side of the second interval is longer.

    Returns
    -------
    exact, stretched : BiasTest
        The test with its own interval, and with the longer interval and its p-value.
    """
    tail = (1 - confidence_level) / 2
    n_rows = weight.sum()
    # Exact formulas exist for no event and for one (`_no_event`, `_EventCountTails`).
    # If all rows or all but one have an event, these are used for the non-events, whose
    # log-odds and bias have the opposite signs.
    has_one_non_event = n_rows - events == 1 < events
    if has_one_non_event or events >= n_rows * (1 - _ROUNDING):
        mirrored = _shift_tests(
            -z, weight, round(n_rows - events), confidence_level, stretch
        )
        return [test._replace(low=-test.high, high=-test.low) for test in mirrored]
    if events <= n_rows * _ROUNDING:
        pvalue, low, high = _no_event(z, weight, tail)
        # Labels without events show no spread: the longer interval is unlimited, and
        # `bias_test` takes the limits for equal scores in its place.
        unlimited = BiasTest(pvalue, low=-1.0, high=1.0, bias_pvalue=1.0)
        return BiasTest(pvalue, low, high, bias_pvalue=pvalue), unlimited
    # The limits of the shift are those at which the observed number k of events is in a
    # tail of the distribution of their number S: P(S >= k) = tail at the lower limit,
    # P(S <= k) = tail at the upper one. Both are sought as distances from the shift at
    # which k events are expected.
    tails = _EventCountTails(z, weight, events)
    # The search begins at two standard errors of the shift, at most 4.
    first_distance = min(2 / np.sqrt(tails.variance), 4.0)
    below = _distance_at_level(tails.at_least_observed, tail, first_distance)
    above = _distance_at_level(
        lambda distance: tails.at_most_observed(-distance), tail, first_distance
    )
    # A larger shift makes the events more probable, and the bias of the scores smaller.
    low = _bias(z, weight, tails.estimated_shift + above)
    high = _bias(z, weight, tails.estimated_shift - below)
    pvalue = tails.two_sided(0.0)
    exact = BiasTest(pvalue, low, high, pvalue)
    if stretch == 1:
        return exact, exact
    return exact, _stretched_test(exact, tails, z, stretch)


def _stretched_test(exact, tails, z, stretch):
    """Return the `BiasTest` whose interval is longer than that of the test `exact`: the
    distance from the estimated bias to each limit is multiplied by `stretch` > 1.

    `tails` are the `_EventCountTails` of the rows with log-odds z (m,).
    """
    weight = tails.weight
    bias = _bias(z, weight, tails.estimated_shift)
    # The p-value of "the bias is 0" that agrees with the longer interval. A limit
    # bias - stretch (bias - low) is 0 where low is bias (1 - 1 / stretch). So it is the
    # exact p-value of the shift with that bias, which lies between 0 and the estimate.
    shift = 0.0
    if bias != 0:
        equivalent_bias = bias * (1 - 1 / stretch)
        shift = brentq(
            lambda delta: _bias(z, weight, delta) - equivalent_bias,
            min(0.0, tails.estimated_shift),
            max(0.0, tails.estimated_shift),
            xtol=1e-13,
        )
    return BiasTest(
        exact.pvalue,
        low=bias - stretch * (bias - exact.low),
        high=bias + stretch * (exact.high - bias),
        bias_pvalue=tails.two_sided(shift),
    )


def _log_odds_cells(scores, weight):
    """Return log-odds (m,) and weights (m,) of scores (n,) in [0, 1].

    Up to 4,096 rows are returned as they are. More are summed in narrow cells of the
    log-odds, each at the log-odds of its mean score.
    """
    z = log_odds(scores)
    if weight is None:
        weight = np.ones(len(z))
    weight = np.asarray(weight, dtype=np.float64)
    if len(z) <= _MANY_ROWS:
        return z, weight
    cell = np.floor(_CELLS_PER_UNIT * z).astype(np.int64)
    cell -= cell.min()
    weight_in_cell = np.bincount(cell, weight)
    is_filled = weight_in_cell > 0
    weight_in_cell = weight_in_cell[is_filled]
    weighted_score = np.bincount(cell, weight * scores)[is_filled]
    return log_odds(weighted_score / weight_in_cell), weight_in_cell


class _EventCountTails:
    """Tail probabilities of the number S of events among independent rows whose
    log-odds are shifted by one number.

    The observed number is k. `estimated_shift` is the shift at which k events are
    expected. The shift that is tested is given by tau = estimated shift - tested shift,
    so that the tail probability P(S >= k) falls as tau grows.

    The distribution of S is convolved exactly if there are few rows. Otherwise the
    tails are the saddlepoint approximation of Lugannani and Rice (1980), or products
    over the rows if k = 1.

    Parameters
    ----------
    z : ndarray of shape (m,)
        Log-odds.
    weight : ndarray of shape (m,)
        How many rows have each of them.
    events : float
        The observed number k, more than 0 and less than the sum of weights.
    """

    def __init__(self, z, weight, events):
        # Rows with log-odds z (m,); `weight` (m,) says how many have each, and `events`
        # (k) how many events were observed among them.
        self.weight = weight
        # The shift at which as many events are expected as were observed, and the
        # probabilities (m,) of an event there, with log(p) and log(1 - p).
        self.estimated_shift = _estimated_shift(z, weight, events)
        p = expit(z + self.estimated_shift)
        self.probability = p
        self.log_probability = log_expit(z + self.estimated_shift)
        self.log_complement = log_expit(-z - self.estimated_shift)
        # Variance of the number of events at these probabilities, and a sixth of the
        # ratio of its third central moment to the variance.
        self.variance = weight @ (p * (1 - p))
        self.skewness = weight @ (p * (1 - p) * (1 - 2 * p)) / (6 * self.variance)
        are_counts = not (weight % 1).any() and events % 1 == 0
        # whether one event was observed, for which the tails are products over rows
        self.is_one_event = events == 1 and are_counts
        # For few rows the exact distribution of the number of events at these
        # probabilities, log P(S = j) for j = 0, ..., n; None for many rows.
        self.log_pmf = None
        if are_counts and weight.sum() < _FEW_ROWS:
            mass = event_count_pmf(p, weight)
            self.n_observed = round(events)  # k
            self.excess_over_observed = np.arange(len(mass)) - self.n_observed  # j - k
            with np.errstate(divide="ignore"):
                self.log_pmf = np.log(mass)

    def at_least_observed(self, tau):
        """Return P(S >= k), k the observed number of events, if the log-odds are
        shifted by the estimated shift minus tau.
        """
        if self.log_pmf is not None:
            return self._exact_probability(tau, slice(self.n_observed, None))
        if self.is_one_event:
            return -np.expm1(self._log_no_event(tau))  # 1 - P(S = 0)
        return _lugannani_rice(
            self._signed_root(tau), tau, self.skewness, self.variance
        )

    def at_most_observed(self, tau):
        """Return P(S <= k), k the observed number of events, if the log-odds are
        shifted by the estimated shift minus tau.
        """
        if self.log_pmf is not None:
            return self._exact_probability(tau, slice(self.n_observed + 1))
        if self.is_one_event:
            # P(S = 0) + P(S = 1) = P(S = 0) (1 + the sum of the odds)
            sum_of_odds = self.weight @ self._odds(tau)
            return np.exp(np.log1p(sum_of_odds) + self._log_no_event(tau))
        # At most k events are at least n - k non-events. Counting non-events reverses
        # the signs of tau, of the root and of the skewness.
        return _lugannani_rice(
            -self._signed_root(tau), -tau, -self.skewness, self.variance
        )

    def _odds(self, tau):
        """Return the odds (m,) of an event if the log-odds are shifted by the estimated
        shift minus tau.
        """
        return self.probability / (1 - self.probability) * np.exp(-tau)

    def _log_no_event(self, tau):
        """Return log P(S = 0), the sum of log(1 - probability) over the rows, if the
        log-odds are shifted by the estimated shift minus tau.
        """
        return -(self.weight @ np.log1p(self._odds(tau)))

    def two_sided(self, shift):
        """Return the two-sided p-value, twice the smaller tail, of the hypothesis that
        the log-odds are shifted by `shift`.
        """
        tau = self.estimated_shift - shift
        at_least = self.at_least_observed(tau)
        at_most = self.at_most_observed(tau)
        return float(min(1.0, 2 * min(at_least, at_most)))

    def _exact_probability(self, tau, counts):
        """Return the probability that the number of events is one of `counts`, a slice
        of 0, 1, ..., n, if the log-odds are shifted by the estimated shift minus tau.
        """
        # Shifting all log-odds by -tau multiplies P(S = j) by exp(-tau j), up to one
        # factor. Here it is exp(-tau (j - k)), and the largest product is scaled to 1,
        # so that nothing overflows.
        log_mass = self.log_pmf - tau * self.excess_over_observed
        mass = np.exp(log_mass - log_mass.max())
        return mass[counts].sum() / mass.sum()

    def _signed_root(self, tau):
        """Return the signed root r of the likelihood ratio statistic of a shift by the
        estimated shift minus tau; r has the sign of tau.

        With p (m,) the probabilities at the estimated shift, r^2 / 2 is the weighted
        sum of log(1 + p (exp(-tau) - 1)) + tau p over the rows.
        """
        with np.errstate(over="ignore"):  # a root that is infinite: a tail of 0
            change = self.probability * np.expm1(-tau)
            # The logarithm in two forms: log1p(change) is exact for small changes;
            # log((1 - p) + p exp(-tau)) does not lose digits where the change is near
            # -1. The maximum only keeps the argument of a form that is not used valid.
            if_small = np.log1p(np.maximum(change, -0.5))
            if_large = np.logaddexp(self.log_complement, self.log_probability - tau)
            log_ratio = np.where(change < -0.5, if_large, if_small)
            half_square = self.weight @ (log_ratio + tau * self.probability)
        return np.copysign(np.sqrt(2 * max(half_square, 0.0)), tau)


def _lugannani_rice(r, tau, skewness, variance):
    """Return P(S >= k) of an integer S by the saddlepoint formula of Lugannani and Rice
    (1980): Phi(-r) + phi(r) (1 / u - 1 / r), u = (1 - exp(-tau)) sqrt(variance).

    Parameters
    ----------
    r : float
        Signed root of the likelihood ratio statistic of the hypothesis.
    tau : float
        Natural parameter (log-odds) at which k is expected, minus that of the
        hypothesis.
    skewness : float
        Third cumulant of S over six times the variance, where k is expected.
    variance : float
        Variance of S where k is expected.

    Returns
    -------
    probability : float
        Clipped to [0, 1].
    """
    deviation = np.sqrt(variance)
    if abs(r) < _NEAR_ZERO:
        # 1 / u and 1 / r are infinite at r = 0, but their difference has this limit.
        correction = (0.5 - skewness) / deviation
    else:
        correction = 1 / (-np.expm1(-tau) * deviation) - 1 / r
    normal_density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    return min(max(ndtr(-r) + normal_density * correction, 0.0), 1.0)


def event_count_pmf(scores, weight=None):
    """Return the distribution of the number S of independent events (Poisson binomial).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Probabilities of the events.
    weight : ndarray of shape (n,), default=None
        Whole numbers of rows with each score; None means 1.

    Returns
    -------
    pmf : ndarray of shape (n_rows + 1,)
        P(S = j) for j = 0, 1, ..., n_rows.
    """
    probability = as_numbers(scores, "scores")
    if weight is not None:
        probability = np.repeat(probability, weight.astype(np.int64))
    n_rows = len(probability)
    # The rows are dealt to eight groups, whose distributions (a line of `pmf` each) are
    # computed in one loop and then convolved. Rows of probability 0, which change
    # nothing, make the groups equally large.
    padded = np.pad(probability, (0, -n_rows % _GROUPS))
    groups = padded.reshape(_GROUPS, -1)
    pmf = np.zeros((_GROUPS, groups.shape[1] + 1))
    pmf[:, 0] = 1  # without rows there are 0 events
    # One more row r of each group: P(j) becomes P(j) (1 - r) + P(j - 1) r.
    for row in range(groups.shape[1]):
        row_probability = groups[:, row, None]
        with_event = pmf[:, :-1] * row_probability
        pmf *= 1 - row_probability
        pmf[:, 1:] += with_event
    return reduce(np.convolve, pmf)[: n_rows + 1]


def event_count_tails(scores, events, weight=None):
    """Return P(S >= k) and P(S <= k) of the number S of events of rows whose scores
    (n,) are calibrated; k is the observed number `events`, and weights (n,) or None
    count rows.
    """
    z, weight = _log_odds_cells(as_numbers(scores, "scores"), weight)
    return _event_count_tails(z, events, weight)


def _event_count_tails(z, events, weight):
    """Return P(S >= k) and P(S <= k) of the number S of events of rows with log-odds z
    (m,) and weights (m,); k is `events`.
    """
    total = weight.sum()
    if events <= total * _ROUNDING:
        log_no_event = -weight @ np.logaddexp(0, z)
        return 1.0, float(np.exp(log_no_event))
    # Exact formulas exist for no event and for one. Where all rows or all but one have
    # an event, the non-events are counted, so that both tails change places.
    has_one_non_event = total - events == 1 < events
    if has_one_non_event or events >= total * (1 - _ROUNDING):
        upper, lower = _event_count_tails(-z, round(total - events), weight)
        return lower, upper
    tails = _EventCountTails(z, weight, events)
    # The tails are functions of tau = estimated shift - tested shift of the log-odds.
    # The tested shift is 0 here, that is, the log-odds z themselves.
    tau = tails.estimated_shift
    return float(tails.at_least_observed(tau)), float(tails.at_most_observed(tau))


def half_pvalue(pvalue, is_on_side):
    """Return the one-sided p-value for a two-sided one: half of it where the estimate
    lies on the side of the alternative, else 1 less that half.
    """
    if is_on_side:
        return pvalue / 2
    return 1 - pvalue / 2


def _no_event(z, weight, tail):
    """Return the p-value of calibrated scores, and the lower and the upper limit of the
    bias (mean score minus event frequency), where no row has an event.

    The probability of no event, P(S = 0), is then the product of 1 - probability over
    the rows, which have log-odds z (m,) and weights (m,). The p-value is two-sided, and
    each limit is wrong with probability `tail`.
    """

    def log_no_event(shift):
        """Return log P(S = 0) if all log-odds are shifted."""
        return -weight @ np.logaddexp(0, z + shift)

    pvalue = min(1.0, 2 * float(np.exp(log_no_event(0.0))))
    # The lower limit belongs to the shift with P(S = 0) = tail. If all n rows had one
    # probability p, (1 - p)^n = tail would give p / (1 - p) = tail^(-1 / n) - 1. The
    # shift lies between those that take the largest and the smallest score there; a
    # margin of 1e-9 keeps the signs of both ends apart where all scores are equal.
    log_odds_if_equal = np.log(np.expm1(-np.log(tail) / weight.sum()))
    shift = brentq(
        lambda shift: log_no_event(shift) - np.log(tail),
        log_odds_if_equal - z.max() - 1e-9,
        log_odds_if_equal - z.min() + 1e-9,
        xtol=1e-12,
    )
    # The upper limit is the mean score, since no event frequency is below 0.
    mean_score = float(weight @ expit(z) / weight.sum())
    return pvalue, _bias(z, weight, shift), mean_score


def _bias(z, weight, delta):
    """Return the mean score less the mean of the probabilities whose log-odds z (m,)
    are shifted by delta, with weights (m,).
    """
    return float(weight @ (expit(z) - expit(z + delta)) / weight.sum())


def _distance_at_level(tail_probability, level, first_guess):
    """Return the number x at which ``tail_probability(x)``, a function that falls, is
    `level`.

    The equation is solved for normal quantiles of the probabilities, which are nearly
    linear in x. The first bracket of the root is from 0 to `first_guess`.
    """

    def excess(x):
        """Return the normal quantile of the probability less that of the level."""
        # ndtri is infinite at 0 and 1
        probability = min(max(tail_probability(x), 1e-300), _ALMOST_ONE)
        return ndtri(probability) - ndtri(level)

    low = 0.0
    high = first_guess
    while excess(high) > 0:
        low = high
        high = 2 * high
    while excess(low) < 0:
        high = low
        low = low - first_guess
    return brentq(excess, low, high, xtol=1e-10, rtol=1e-12)
