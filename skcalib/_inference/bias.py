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
# The distribution of the number of events is made for so many parts of the rows at
# once, and these are convolved.
_PIECES = 8
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
    """Test the number (or weight) of events of rows against their scores, and invert
    the test.

    Each row has the probability ``expit(logit(s) + delta)``: the test is of delta = 0,
    and the limits are those of the mean difference of probabilities for every delta
    that it does not reject. For equal scores they are Clopper and Pearson's. Weights
    count as repeated rows. Where y - s varies more than s (1 - s) says, each side of
    the interval is longer by the ratio of the standard deviations, up to Clopper and
    Pearson's limits for the mean score: by Hoeffding (1956) these hold for any
    probabilities of the rows.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    events : float
        Sum of the weights of the rows with an event.
    confidence_level : float
        Coverage of the interval.
    weight : ndarray of shape (n,), default=None
        Positive weights.
    residual_variance : float, default=None
        Variance of y - s. None means that the scores are calibrated but for a shift.

    Returns
    -------
    result : BiasTest
        Named tuple (pvalue, low, high, bias_pvalue); the interval excludes 0 exactly
        where bias_pvalue < 1 - confidence_level.
    """
    z, weight = _log_odds_cells(as_numbers(scores, "scores"), weight)
    total = weight.sum()
    if residual_variance is None:
        test, _ = _shift_tests(z, weight, events, confidence_level)
        return test
    # How much longer each side of the interval is: the ratio of the standard deviation
    # of y - s to that of calibrated scores.
    probability = expit(z)
    calibrated_variance = weight @ (probability * (1 - probability))
    stretch = np.sqrt(max(residual_variance * total / calibrated_variance, 1.0))
    test, stretched = _shift_tests(z, weight, events, confidence_level, stretch)
    if stretch == 1:
        return test
    # Hoeffding (1956): the limits for equal scores hold for any probabilities. So the
    # longer interval ends there at the latest, and never inside the exact one.
    mean_score = float(weight @ probability / total)
    equal_scores = _equal_scores_test(mean_score, total, events, confidence_level)
    return BiasTest(
        pvalue=test.pvalue,
        low=min(test.low, max(stretched.low, equal_scores.low)),
        high=max(test.high, min(stretched.high, equal_scores.high)),
        bias_pvalue=max(test.pvalue, min(stretched.bias_pvalue, equal_scores.pvalue)),
    )


def rows_bias_test(
    scores, labels, confidence_level, weight=None, *, importance=False, cluster=None
):
    """Test a bias as `bias_test` does, for importance weights and for rows in clusters.

    `bias_test` takes weights for numbers of independent rows. All weights are therefore
    divided by one factor, so that it has the right variance of the number of events.
    With importance weights w the factor is sum w^2 v / sum w v, v = s (1 - s), because
    the variance under calibration is the sum of w^2 v. With clusters it is the design
    effect of the residuals, or that of the weights if it is larger.

    Parameters
    ----------
    scores, labels : ndarray of shape (n,)
        Scores and labels.
    confidence_level : float
        Coverage of the interval.
    weight : ndarray of shape (n,), default=None
        Positive weights.
    importance : bool, default=False
        Whether each row was seen once, whatever its weight.
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
    residual = residual - weight @ residual / total
    calibrated_variance = scores * (1 - scores)
    residual_variance = weight @ residual**2 / total
    no_limits = BiasTest(pvalue=1.0, low=np.nan, high=np.nan, bias_pvalue=1.0)
    if cluster is not None:
        code = np.unique(cluster, return_inverse=True)[1]
        influence = Influence(residual, weight, importance, code)
        # The effect depends on the level, because it contains the ratio of Student's
        # quantile to the normal one.
        effect, reason = influence.design_effect(confidence_level)
        if np.all(labels == labels[0]):
            reason = ONE_CLASS_IN_CLUSTERS
        if reason:
            return no_limits, reason
        # Clusters are never worth more than independent rows of these weights.
        effect = max(effect, _weight_effect(weight, calibrated_variance, importance))
    else:
        # The weight of a row in a variance: w copies, or one row that counts w times.
        squared_weight = weight
        if importance:
            reason = too_few_units(weight, importance)
            if reason:
                return no_limits, reason
            squared_weight = weight**2
        effect = _weight_effect(weight, calibrated_variance, importance)
        residual_variance = _residual_variance(
            squared_weight, residual**2, calibrated_variance, weight
        )
    events = weight @ labels / effect
    test = bias_test(
        scores, events, confidence_level, weight / effect, residual_variance
    )
    return test, ""


def _weight_effect(weight, variance, importance):
    """Return the number by which weights (n,) are divided, so that they count rows.

    The sum of w events has the variance sum w^2 v with importance weights, v the
    `variance` (n,) of each label, and sum (w / effect) v as so many repeated rows: the
    effect is the ratio of sum w^2 v and sum w v. Frequency weights count rows already.
    """
    if not importance:
        return 1.0
    if not variance.any():
        # All scores are 0 or 1: each row then counts alike.
        variance = np.ones(len(weight))
    return float(weight**2 @ variance / (weight @ variance))


def _residual_variance(squares, residual_square, variance, weight):
    """Return the variance of y - s for `bias_test`, estimated with squared weights.

    Parameters
    ----------
    squares : ndarray of shape (n,)
        Weights in the variance: w for repeated rows, w^2 for importance weights.
    residual_square : ndarray of shape (n,)
        Squares of the centred residuals y - s.
    variance : ndarray of shape (n,)
        s (1 - s), the variance of the labels of calibrated scores.
    weight : ndarray of shape (n,)
        Weights in the mean.

    Returns
    -------
    residual_variance : float
        The weighted mean of s (1 - s), times the ratio of two sums over the rows with
        the weights `squares`: of residual squares, and of s (1 - s).
    """
    expected = squares @ variance
    if expected == 0:
        # All scores are 0 or 1: there is no ratio.
        return float(weight @ residual_square / weight.sum())
    ratio = squares @ residual_square / expected
    return float(ratio * (weight @ variance) / weight.sum())


def bins_bias_test(statistics, scores, weight, confidence_level, *, importance=False):
    """Test the bias of the rows of `BinStatistics`, as `bias_test` does.

    `scores` and `weight` (m,) are points that stand for the rows, up to two in each bin
    (`Cells.two_points`). With importance weights the squared weights are known by bin,
    not by row: the rows of a bin count as equal.
    """
    events = statistics.weighted_label.sum()
    if not importance:
        residual_variance = statistics.total_residual_variance
        return bias_test(scores, events, confidence_level, weight, residual_variance)
    is_filled = statistics.weight > 0
    total = statistics.weight[is_filled]
    # W^2 / (sum of w^2) is the number of equal rows that the weights of a bin are
    # worth, so that one of them weighs (sum of w^2) / W.
    weight_of_row = statistics.weight_squared[is_filled] / total
    # mean of s (1 - s) by bin: the variance of a label if the scores are right
    calibrated_variance = statistics.weighted_score - statistics.weighted_score_squared
    calibrated_variance = np.maximum(calibrated_variance[is_filled], 0) / total
    # sum of w (y - s - mean)^2 by bin: the variance that the labels show
    excess = (statistics.weighted_label - statistics.weighted_score)[is_filled]
    mean = excess.sum() / total.sum()
    residual_square = (
        statistics.residual_square[is_filled] - 2 * mean * excess + mean**2 * total
    )
    # All weights are divided by one factor, as in `rows_bias_test`, so that the
    # variance of the number of events is right.
    squared_weight = weight_of_row * total
    effect = 1.0
    if calibrated_variance.any():
        effect = float(
            squared_weight @ calibrated_variance / (total @ calibrated_variance)
        )
    residual_variance = _residual_variance(
        squared_weight, residual_square / total, calibrated_variance, total
    )
    return bias_test(
        scores, events / effect, confidence_level, weight / effect, residual_variance
    )


def event_ratio_limits(
    scores, events, confidence_level, weight=None, residual_variance=0.0
):
    """Return the limits of the ratio of observed to expected events.

    They are those of a common shift of the log-odds: of the mean of the shifted
    probabilities over the mean score. For equal scores the former are Clopper and
    Pearson's. Each side is longer where y - (O/E) s, whose variance is given, varies
    more than events with the probabilities at the estimate: where the curve is no shift
    of the log-odds, and because the mean score is that of a sample.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1].
    events : float
        Sum of the weights of the rows with an event. Without one the lower limit is 0.
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
    # How much longer each side is: the ratio of the standard deviations of
    # y - (O/E) s and of events with the probabilities at the estimate.
    stretch = 1.0
    if not all_have_event and not none_has_event:
        probability = expit(z + _estimated_shift(z, weight, events))
        event_variance = weight @ (probability * (1 - probability))
        stretch = np.sqrt(max(residual_variance * total / event_variance, 1))
    test, stretched = _shift_tests(z, weight, events, confidence_level, stretch)
    if stretch > 1:
        test = stretched
    # The bias is the mean score less the mean of the shifted probabilities, which is
    # O / n: O/E = 1 - bias / mean score.
    low = 1 - test.high / mean_score
    high = 1 - test.low / mean_score
    if all_have_event and residual_variance > 0:
        # The events do not vary, but the mean score of a sample does: its normal
        # interval is added to each side, as the root of the sum of squares.
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


def _equal_scores_test(score, total, events, confidence_level):
    """Return the `BiasTest` of `events` among rows of weight `total` that all have one
    score: the binomial test with the limits of Clopper and Pearson.

    Many rows, and weights that are no integers, take `_shift_tests` of one cell, which
    is the same test up to its approximation of the binomial tails.
    """
    counts_rows = float(total).is_integer() and float(events).is_integer()
    if not (total < _FEW_ROWS and counts_rows and 0 < events < total):
        z = log_odds(np.array([score]))
        test, _ = _shift_tests(z, np.array([total]), events, confidence_level)
        return test
    k = round(events)
    n = round(total)
    tail = (1 - confidence_level) / 2
    at_least = bdtrc(k - 1, n, score)
    at_most = bdtr(k, n, score)
    pvalue = float(min(1.0, 2 * min(at_least, at_most)))
    # Clopper and Pearson's limits of the frequency: a quantile of a beta distribution
    # each.
    highest_frequency = betaincinv(k + 1, n - k, 1 - tail)
    lowest_frequency = betaincinv(k, n - k + 1, tail)
    return BiasTest(
        pvalue,
        low=float(score - highest_frequency),
        high=float(score - lowest_frequency),
        bias_pvalue=pvalue,
    )


def _shift_tests(z, weight, events, confidence_level, stretch=1.0):
    """Test whether log-odds need no common shift, and invert the test for the bias.

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
    test, stretched : BiasTest
        The exact test, and the same with the longer interval and its p-value.
    """
    tail = (1 - confidence_level) / 2
    total = weight.sum()
    # Exact formulas exist for no event and for one (`_no_event`, `_Tails`). Where all
    # rows or all but one have an event, these are used for the non-events, whose bias
    # has the opposite sign.
    has_one_non_event = total - events == 1 < events
    if has_one_non_event or events >= total * (1 - _ROUNDING):
        mirrored = _shift_tests(
            -z, weight, round(total - events), confidence_level, stretch
        )
        return [test._replace(low=-test.high, high=-test.low) for test in mirrored]
    if events <= total * _ROUNDING:
        pvalue, low, high = _no_event(z, weight, tail)
        # Labels without events show no spread: the longer interval is unlimited, and
        # `bias_test` takes the limits for equal scores in its place.
        unlimited = BiasTest(pvalue, low=-1.0, high=1.0, bias_pvalue=1.0)
        return BiasTest(pvalue, low, high, bias_pvalue=pvalue), unlimited
    # The limits of the shift are those at which the observed number k of events is in a
    # tail: P(S >= k) = tail at the lower one, P(S <= k) = tail at the upper one. Both
    # are sought as distances from the estimated shift.
    tails = _Tails(z, weight, events)
    # where the search begins: two standard errors of the shift, at most 4
    step = min(2 / np.sqrt(tails.variance), 4.0)
    below = _root(tails.upper, tail, step)
    above = _root(lambda tau: tails.lower(-tau), tail, step)
    # A larger shift makes the events more probable, and the bias of the scores smaller.
    low = _bias(z, weight, tails.centre + above)
    bias = _bias(z, weight, tails.centre)
    high = _bias(z, weight, tails.centre - below)
    pvalue = tails.two_sided(tails.centre)
    test = BiasTest(pvalue, low, high, pvalue)
    if stretch == 1:
        return test, test
    # The longer interval holds 0 exactly where the other one holds the bias
    # b (1 - 1 / stretch), so that its p-value is that of the shift with this bias.
    shift = 0.0
    if bias != 0:
        equivalent_bias = bias * (1 - 1 / stretch)
        shift = brentq(
            lambda delta: _bias(z, weight, delta) - equivalent_bias,
            min(0.0, tails.centre),
            max(0.0, tails.centre),
            xtol=1e-13,
        )
    stretched = BiasTest(
        pvalue,
        low=bias - stretch * (bias - low),
        high=bias + stretch * (high - bias),
        bias_pvalue=tails.two_sided(tails.centre - shift),
    )
    return test, stretched


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


class _Tails:
    """Tail probabilities of the number of events S of independent rows.

    The observed number is k. `centre` is the shift of all log-odds at which k events
    are expected, and `q` (m,) are the probabilities there. The methods take tau: the
    shift is then centre - tau, so that the tail probability P(S >= k) falls as tau
    grows.

    Few rows have the exact distribution of S, by convolution (`log_pmf`, at `centre`).
    The tails of others are the saddlepoint approximation of Lugannani and Rice (1980),
    and for k = 1 products over the rows.

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
        self.centre = _estimated_shift(z, weight, events)
        q = expit(z + self.centre)
        # At `centre`, (m,): the probabilities q, log q and log(1 - q).
        self.q = q
        self.log_q = log_expit(z + self.centre)
        self.log_complement = log_expit(-z - self.centre)
        self.weight = weight  # (m,)
        # Of S at `centre`: the variance, and its third central moment over six times
        # the variance.
        self.variance = weight @ (q * (1 - q))
        self.skewness = weight @ (q * (1 - q) * (1 - 2 * q)) / (6 * self.variance)
        are_counts = not (weight % 1).any() and events % 1 == 0
        # whether one event was observed, for which the tails are products over rows
        self.is_one = events == 1 and are_counts
        # For few rows the exact distribution of S: log P(S = j), j = 0, ..., n. None
        # for others.
        self.log_pmf = None
        if are_counts and weight.sum() < _FEW_ROWS:
            mass = event_count_pmf(q, weight)
            self.events = round(events)  # k as an int, an index of `log_pmf`
            self.distance = np.arange(len(mass)) - self.events  # j - k, (n + 1,)
            with np.errstate(divide="ignore"):
                self.log_pmf = np.log(mass)

    def upper(self, tau):
        """Return P(S >= k) for log-odds shifted by centre - tau."""
        if self.log_pmf is not None:
            at_least = slice(self.events, None)
            return self._exact(tau, at_least)
        if self.is_one:
            return -np.expm1(self._log_none(tau))
        return _lugannani_rice(
            self._signed_root(tau), -np.expm1(-tau), self.skewness, self.variance
        )

    def lower(self, tau):
        """Return P(S <= k) for log-odds shifted by centre - tau."""
        if self.log_pmf is not None:
            at_most = slice(self.events + 1)
            return self._exact(tau, at_most)
        if self.is_one:
            # P(S = 0) + P(S = 1) = P(S = 0) (1 + the sum of the odds)
            sum_of_odds = self.weight @ self._odds(tau)
            return np.exp(np.log1p(sum_of_odds) + self._log_none(tau))
        # P(S <= k) is the upper tail of the non-events, whose tau is -tau.
        return _lugannani_rice(
            -self._signed_root(tau), -np.expm1(tau), -self.skewness, self.variance
        )

    def _odds(self, tau):
        """Return the odds (m,) of an event for log-odds shifted by centre - tau."""
        return self.q / (1 - self.q) * np.exp(-tau)

    def _log_none(self, tau):
        """Return log P(S = 0), the sum of log(1 - probability) over the rows, for
        log-odds shifted by centre - tau.
        """
        return -(self.weight @ np.log1p(self._odds(tau)))

    def two_sided(self, tau):
        """Return the two-sided p-value, twice the smaller tail, of the hypothesis that
        the log-odds are shifted by centre - tau.
        """
        return float(min(1.0, 2 * min(self.upper(tau), self.lower(tau))))

    def _exact(self, tau, counts):
        """Return the probability that S is one of `counts`, a slice of 0, 1, ..., n,
        for log-odds shifted by centre - tau.
        """
        # Shifting all log-odds by -tau multiplies P(S = j) by exp(-tau j), up to one
        # factor. The counts are taken relative to k, and the largest is scaled to 1, so
        # that nothing overflows.
        log_mass = self.log_pmf - tau * self.distance
        mass = np.exp(log_mass - log_mass.max())
        return mass[counts].sum() / mass.sum()

    def _signed_root(self, tau):
        """Return r of the formula of Lugannani and Rice, the signed root of the
        likelihood ratio statistic of tau: r^2 / 2 = tau k - K(centre) + K(centre -
        tau), K the sum of log(1 + exp(z + shift)).
        """
        with np.errstate(over="ignore"):  # a root that is infinite: a tail of 0
            # Each row's term of the sum, without cancellation, for k is the sum of q.
            change = self.q * np.expm1(-tau)
            # log(1 + change) where 1 - q may be lost to rounding, of both parts
            far = np.logaddexp(self.log_complement, self.log_q - tau)
            near = np.log1p(np.maximum(change, -0.5))
            terms = np.where(change < -0.5, far, near) + tau * self.q
            half_square = self.weight @ terms
        return np.copysign(np.sqrt(2 * max(half_square, 0.0)), tau)


def _lugannani_rice(r, lattice_step, skewness, variance):
    """Return P(S >= k) of an integer S by the saddlepoint formula of Lugannani and Rice
    (1980): Phi(-r) + phi(r) (1 / u - 1 / r), u = (1 - exp(-tau)) sqrt(variance).

    Parameters
    ----------
    r : float
        Signed root of the likelihood ratio statistic.
    lattice_step : float
        1 - exp(-tau), tau the distance of the hypothesis from the saddlepoint.
    skewness, variance : float
        A sixth of the third cumulant of S over its variance, and the variance, at the
        saddlepoint.

    Returns
    -------
    probability : float
        Clipped to [0, 1].
    """
    deviation = np.sqrt(variance)
    if abs(r) < _NEAR_ZERO:
        correction = (0.5 - skewness) / deviation  # the limit of the line below
    else:
        correction = 1 / (lattice_step * deviation) - 1 / r
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
    q = as_numbers(scores, "scores")
    if weight is not None:
        q = np.repeat(q, weight.astype(np.int64))
    # The rows in pieces of equal length, whose distributions are made side by side.
    # Rows of probability 0 fill up the last piece: they change nothing.
    pieces = np.pad(q, (0, -len(q) % _PIECES)).reshape(_PIECES, -1)
    mass = np.zeros((_PIECES, pieces.shape[1] + 1))
    mass[:, 0] = 1
    for place in range(pieces.shape[1]):  # one more row of each piece
        probability = pieces[:, place, None]
        with_event = mass[:, :-1] * probability
        mass *= 1 - probability
        mass[:, 1:] += with_event
    return reduce(np.convolve, mass)[: len(q) + 1]


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
    tails = _Tails(z, weight, events)
    no_shift = tails.centre
    return float(tails.upper(no_shift)), float(tails.lower(no_shift))


def half_pvalue(pvalue, is_on_side):
    """Return the one-sided p-value for a two-sided one: half of it where the estimate
    lies on the side of the alternative, else 1 less that half.
    """
    if is_on_side:
        return pvalue / 2
    return 1 - pvalue / 2


def _no_event(z, weight, tail):
    """Return the two-sided p-value and the lower and the upper limit of the bias where
    no row has an event.

    P(S = 0) is then a product over the rows, of log-odds z (m,) and weights (m,). Each
    limit is wrong with probability `tail`. The upper one is the mean score: no
    frequency is below 0.
    """

    def log_no_event(delta):
        return -weight @ np.logaddexp(0, z + delta)

    pvalue = min(1.0, 2 * float(np.exp(log_no_event(0.0))))
    # The shift at which rows of equal score would have P(S = 0) = tail. The extreme
    # scores bracket the shift of the others, with a margin of 1e-9 that keeps the signs
    # of both ends apart where all scores are equal.
    log_odds_if_equal = np.log(np.expm1(-np.log(tail) / weight.sum()))
    delta = brentq(
        lambda delta: log_no_event(delta) - np.log(tail),
        log_odds_if_equal - z.max() - 1e-9,
        log_odds_if_equal - z.min() + 1e-9,
        xtol=1e-12,
    )
    mean_score = float(weight @ expit(z) / weight.sum())
    return pvalue, _bias(z, weight, delta), mean_score


def _bias(z, weight, delta):
    """Return the mean score less the mean of the probabilities whose log-odds z (m,)
    are shifted by delta, with weights (m,).
    """
    return float(weight @ (expit(z) - expit(z + delta)) / weight.sum())


def _root(tail, level, step):
    """Return the tau at which the tail probability ``tail(tau)``, which falls in tau,
    is `level`.

    The search is of its normal deviate, which is nearly linear in tau, and starts with
    the bracket from 0 to `step`.
    """

    def excess(tau):
        # ndtri is infinite at 0 and 1
        probability = min(max(tail(tau), 1e-300), _ALMOST_ONE)
        return ndtri(probability) - ndtri(level)

    low = 0.0
    high = step
    while excess(high) > 0:
        low = high
        high = 2 * high
    while excess(low) < 0:
        high = low
        low = low - step
    return brentq(excess, low, high, xtol=1e-10, rtol=1e-12)
