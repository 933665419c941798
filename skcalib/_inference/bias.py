"""Exact inference on a bias: is the number of events of some rows what their scores
predict.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, betaincinv, expit, ndtr, ndtri

from skcalib._input.scalars import as_numbers
from skcalib._intervals.influence import Influence, too_few_units
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.links import log_odds

# below this total weight the distribution of the number of events is convolved exactly
_FEW_ROWS = 200
_MANY_ROWS = 4096  # above this, rows go into cells this wide in log-odds
_CELLS_PER_UNIT = 32
_PIECES = 8  # of rows, whose distributions are made side by side and convolved
ONE_CLASS_IN_CLUSTERS = (
    "all rows are of one class: how far clusters differ cannot be seen"
)
_ALMOST_ONE = 1 - 2.0**-53
_NEAR = 1e-4  # below this |r| Lugannani and Rice's formula is replaced by its limit


class BiasTest(NamedTuple):
    """The p-value of "the scores are calibrated", the limits of the bias, and the
    p-value of "the bias is 0".

    The bias is the mean score minus the event frequency.
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
    z, weight = _cells(as_numbers(scores, "scores"), weight)
    total = weight.sum()
    stretch = 1.0
    if residual_variance is not None:
        q = expit(z)
        stretch = np.sqrt(
            max(residual_variance * total / (weight @ (q * (1 - q))), 1.0)
        )
    test, longer = _shift_tests(z, weight, events, confidence_level, stretch)
    if stretch == 1:
        return test
    even = _even_test(float(weight @ q / total), total, events, confidence_level)
    return BiasTest(
        test.pvalue,
        min(test.low, max(longer.low, even.low)),
        max(test.high, min(longer.high, even.high)),
        max(test.pvalue, min(longer.bias_pvalue, even.pvalue)),
    )


def rows_bias_test(
    scores, labels, confidence_level, weight=None, *, importance=False, cluster=None
):
    """Test a bias as `bias_test` does, with as many rows as weights and clusters are
    worth, and invert the test.

    All weights are divided by one factor, by which the variance of the weighted number
    of events is right. With importance weights w it is sum w^2 v / sum w v,
    v = s (1 - s), so that the variance under calibration is the sum of w^2 v. With
    clusters it is the design effect of the residuals.

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
        Why they are; empty where they are not.
    """
    scores = as_numbers(scores, "scores")
    weight = weights_or_ones(weight, len(scores))
    total = weight.sum()
    residual = labels - scores
    residual = residual - weight @ residual / total
    variance = scores * (1 - scores)
    spread = weight @ residual**2 / total
    if cluster is not None:
        code = np.unique(cluster, return_inverse=True)[1]
        influence = Influence(residual, weight, importance, code)
        effect, reason = influence.design_effect(confidence_level)
        if np.all(labels == labels[0]):
            reason = ONE_CLASS_IN_CLUSTERS
        if reason:
            return BiasTest(1.0, np.nan, np.nan, 1.0), reason
        effect = max(effect, _weight_effect(weight, variance, importance))
    else:
        squares = weight
        if importance:
            reason = too_few_units(weight, importance)
            if reason:
                return BiasTest(1.0, np.nan, np.nan, 1.0), reason
            squares = weight**2
        effect = _weight_effect(weight, variance, importance)
        spread = _spread_of_weights(squares, residual**2, variance, weight)
    events = weight @ labels / effect
    return bias_test(scores, events, confidence_level, weight / effect, spread), ""


def _weight_effect(weight, variance, importance):
    """Return the factor by which importance weights become numbers of rows."""
    if not importance:
        return 1.0
    if not variance.any():
        variance = np.ones(len(weight))
    return float(weight**2 @ variance / (weight @ variance))


def _spread_of_weights(squares, residual_square, variance, weight):
    """Return the residual variance whose ratio to the mean of s (1 - s) is that of the
    sums over squared weights.
    """
    expected = squares @ variance
    if expected == 0:
        return float(weight @ residual_square / weight.sum())
    ratio = squares @ residual_square / expected
    return float(ratio * (weight @ variance) / weight.sum())


def bins_bias_test(statistics, scores, weight, confidence_level, *, importance=False):
    """Test the bias of the rows of `BinStatistics`, of which `scores` and `weight` are
    a few points in each bin.

    With importance weights each bin has its own sum of squared weights.
    """
    events = statistics.weighted_label.sum()
    if not importance:
        spread = statistics.total_residual_variance
        return bias_test(scores, events, confidence_level, weight, spread)
    bins = statistics.weight > 0
    total = statistics.weight[bins]
    row_weight = statistics.weight_squared[bins] / total  # of an effective row
    # mean of s (1 - s) by bin: the variance of a label if the scores are right
    variance = statistics.weighted_score - statistics.weighted_score_squared
    variance = np.maximum(variance[bins], 0) / total
    # sum of w (y - s - mean)^2 by bin: the variance that the labels show
    excess = (statistics.weighted_label - statistics.weighted_score)[bins]
    mean = excess.sum() / total.sum()
    square = statistics.residual_square[bins] - 2 * mean * excess + mean**2 * total
    # All weights are divided by one factor, with which the variance of the number of
    # events is right.
    squares = row_weight * total
    effect = 1.0
    if variance.any():
        effect = float(squares @ variance / (total @ variance))
    spread = _spread_of_weights(squares, square / total, variance, total)
    return bias_test(scores, events / effect, confidence_level, weight / effect, spread)


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
    z, weight = _cells(scores, weight)
    total = weight.sum()
    expected = float(weight @ expit(z)) / total
    is_certain = events >= total * (1 - 1e-12)
    stretch = 1.0
    if not is_certain and events > total * 1e-12:
        q = expit(z + _centre(z, weight, events))
        stretch = np.sqrt(max(residual_variance * total / (weight @ (q * (1 - q))), 1))
    test, longer = _shift_tests(z, weight, events, confidence_level, stretch)
    if stretch > 1:
        test = longer
    # the bias is the mean score less the mean of the shifted probabilities
    low, high = 1 - test.high / expected, 1 - test.low / expected
    ratio = events / total / expected
    if is_certain and residual_variance > 0:
        # only the mean score varies
        width = ndtri((1 + confidence_level) / 2) * np.sqrt(residual_variance / total)
        low = ratio - np.hypot(ratio - low, width / expected)
        high = ratio + np.hypot(high - ratio, width / expected)
    return float(max(low, 0.0)), float(high)


def _centre(z, weight, events):
    """Return the shift of log-odds at which as many events are expected."""
    middle = np.log(events) - np.log(weight.sum() - events)
    return brentq(
        lambda delta: weight @ expit(z + delta) - events,
        middle - z.max() - 1e-9,
        middle - z.min() + 1e-9,
        xtol=1e-13,
        rtol=1e-14,
    )


def _even_test(score, total, events, confidence_level):
    """Return the test of rows of one score: Clopper and Pearson's where the events are
    few and count rows.
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
        float(score - highest_frequency),
        float(score - lowest_frequency),
        pvalue,
    )


def _shift_tests(z, weight, events, confidence_level, stretch=1.0):
    """Return the test of a shift of the log-odds, and the same with an interval that is
    `stretch` times as long.
    """
    tail = (1 - confidence_level) / 2
    total = weight.sum()
    # Where all rows but one have an event, or all, the test is that of the non-events.
    has_one_non_event = total - events == 1 < events
    if has_one_non_event or events >= total * (1 - 1e-12):
        mirrored = _shift_tests(
            -z, weight, round(total - events), confidence_level, stretch
        )
        return [test._replace(low=-test.high, high=-test.low) for test in mirrored]
    if events <= total * 1e-12:
        pvalue, low, high = _no_event(z, weight, tail)
        # No spread of the labels is seen: the limits are those of rows that all have
        # the mean score.
        return BiasTest(pvalue, low, high, pvalue), BiasTest(pvalue, -1.0, 1.0, 1.0)

    # The limits of the shift tau, at which the observed number k of events is in a
    # tail: P(S >= k) = tail at the centre less `below`, P(S <= k) = tail at it plus
    # `above`.
    tails = _Tails(z, weight, events)
    step = min(2 / np.sqrt(tails.variance), 4.0)
    below = _root(tails.upper, tail, step)
    above = _root(lambda tau: tails.lower(-tau), tail, step)
    low = _bias(z, weight, tails.centre + above)
    bias = _bias(z, weight, tails.centre)
    high = _bias(z, weight, tails.centre - below)
    pvalue = tails.two_sided(tails.centre)
    test = BiasTest(pvalue, low, high, pvalue)
    if stretch == 1:
        return test, test

    # 0 is in the longer interval exactly where a smaller bias is in the other one.
    shift = 0.0
    if bias != 0:
        inside = bias * (1 - 1 / stretch)
        shift = brentq(
            lambda tau: _bias(z, weight, tau) - inside,
            min(0.0, tails.centre),
            max(0.0, tails.centre),
            xtol=1e-13,
        )
    stretched = BiasTest(
        pvalue,
        bias - stretch * (bias - low),
        bias + stretch * (high - bias),
        tails.two_sided(tails.centre - shift),
    )
    return test, stretched


def _cells(scores, weight):
    """Return log-odds and weights, those of narrow cells where there are many rows."""
    z = log_odds(scores)
    weight = np.ones(len(z)) if weight is None else np.asarray(weight, dtype=np.float64)
    if len(z) <= _MANY_ROWS:
        return z, weight
    cell = np.floor(_CELLS_PER_UNIT * z).astype(np.int64)
    cell -= cell.min()
    total = np.bincount(cell, weight)
    filled = total > 0
    return (
        log_odds(np.bincount(cell, weight * scores)[filled] / total[filled]),
        total[filled],
    )


class _Tails:
    """Tails of the number of events S at the observed k, for probabilities tilted by
    delta = centre - tau.

    `centre` is the tilt whose expectation of S is k, q the probabilities there. Of few
    rows `log_pmf` is the convolved distribution of S at `centre`; else the tails are
    those of Lugannani and Rice (1980), for k = 1 written as products.
    """

    def __init__(self, z, weight, events):
        self.centre = _centre(z, weight, events)
        q = expit(z + self.centre)
        self.q = q
        self.weight = weight
        self.variance = weight @ (q * (1 - q))
        self.skewness = weight @ (q * (1 - q) * (1 - 2 * q)) / (6 * self.variance)
        are_counts = not (weight % 1).any() and events % 1 == 0
        self.is_one = events == 1 and are_counts
        # The exact distribution of the number of events, for few rows.
        self.log_pmf = None
        if are_counts and weight.sum() < _FEW_ROWS:
            mass = event_count_pmf(q, weight)
            self.events = round(events)
            self.distance = np.arange(len(mass)) - self.events
            with np.errstate(divide="ignore"):
                self.log_pmf = np.log(mass)

    def upper(self, tau):
        """Return P(S >= k)."""
        if self.log_pmf is not None:
            return self._exact(tau, slice(self.events, None))
        if self.is_one:
            return -np.expm1(-self._log_all(tau))
        return _lugannani_rice(
            self._root(tau), -np.expm1(-tau), self.skewness, self.variance
        )

    def lower(self, tau):
        """Return P(S <= k)."""
        if self.log_pmf is not None:
            return self._exact(tau, slice(self.events + 1))
        if self.is_one:
            return np.exp(np.log1p(self.weight @ self._odds(tau)) - self._log_all(tau))
        return _lugannani_rice(
            -self._root(tau), -np.expm1(tau), -self.skewness, self.variance
        )

    def _odds(self, tau):
        return self.q / (1 - self.q) * np.exp(-tau)

    def _log_all(self, tau):
        """Return minus the logarithm of the probability that no row has an event."""
        return self.weight @ np.log1p(self._odds(tau))

    def two_sided(self, tau):
        """Return the p-value of the tilt at tau."""
        return float(min(1.0, 2 * min(self.upper(tau), self.lower(tau))))

    def _exact(self, tau, part):
        # Tilting by -tau multiplies P(S = j) by exp(-tau j).
        log_mass = self.log_pmf - tau * self.distance
        mass = np.exp(log_mass - log_mass.max())
        return mass[part].sum() / mass.sum()

    def _root(self, tau):
        # r^2 / 2 = tau k - K(centre) + K(centre - tau), summed without cancellation
        with np.errstate(over="ignore"):  # a root that is infinite: a tail of 0
            half_square = self.weight @ (
                np.log1p(self.q * np.expm1(-tau)) + tau * self.q
            )
        return np.copysign(np.sqrt(2 * max(half_square, 0.0)), tau)


def _lugannani_rice(r, lattice_step, skewness, variance):
    """Return P(S >= k) = Phi(-r) + phi(r) (1 / u - 1 / r), u = (1 - exp(-tau))
    sqrt(K''), and its limit at r = 0.
    """
    scale = np.sqrt(variance)
    if abs(r) < _NEAR:
        correction = (0.5 - skewness) / scale
    else:
        correction = 1 / (lattice_step * scale) - 1 / r
    return min(
        max(ndtr(-r) + np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi) * correction, 0.0), 1.0
    )


def event_count_pmf(scores, weight=None):
    """Return P(S = j), j from 0 on, of the number S of independent events; whole
    weights are repeated rows.
    """
    q = as_numbers(scores, "scores")
    q = q if weight is None else np.repeat(q, weight.astype(np.int64))
    # rows of probability 0 change nothing
    pieces = np.pad(q, (0, -len(q) % _PIECES)).reshape(_PIECES, -1)
    mass = np.zeros((_PIECES, pieces.shape[1] + 1))
    mass[:, 0] = 1
    for event in pieces.T[..., None]:  # one more row of each piece
        more = mass[:, :-1] * event
        mass *= 1 - event
        mass[:, 1:] += more
    return reduce(np.convolve, mass)[: len(q) + 1]


def event_count_tails(scores, events, weight=None):
    """Return P(S >= k) and P(S <= k) of the number of events of calibrated rows."""
    z, weight = _cells(as_numbers(scores, "scores"), weight)
    return _event_count_tails(z, events, weight)


def _event_count_tails(z, events, weight):
    """Return the probabilities of at least and of at most as many events, if the scores
    are right.
    """
    total = weight.sum()
    if events <= total * 1e-12:
        return 1.0, float(np.exp(-weight @ np.logaddexp(0, z)))
    # all rows but one have an event, or all
    if total - events == 1 < events or events >= total * (1 - 1e-12):
        upper, lower = _event_count_tails(-z, round(total - events), weight)
        return lower, upper
    tails = _Tails(z, weight, events)
    return float(tails.upper(tails.centre)), float(tails.lower(tails.centre))


def half_pvalue(pvalue, is_on_side):
    """Return the p-value of one side for that of two: half of it where the estimate is
    on that side.
    """
    return pvalue / 2 if is_on_side else 1 - pvalue / 2


def _no_event(z, weight, tail):
    """Return the p-value and the limits of the bias where no row has an event: P(S = 0)
    is a product.
    """

    def log_no_event(delta):
        return -weight @ np.logaddexp(0, z + delta)

    pvalue = min(1.0, 2 * float(np.exp(log_no_event(0.0))))
    middle = np.log(np.expm1(-np.log(tail) / weight.sum()))
    around = middle - z.max() - 1e-9, middle - z.min() + 1e-9
    delta = brentq(
        lambda delta: log_no_event(delta) - np.log(tail), *around, xtol=1e-12
    )
    return pvalue, _bias(z, weight, delta), float(weight @ expit(z) / weight.sum())


def _bias(z, weight, delta):
    return float(weight @ (expit(z) - expit(z + delta)) / weight.sum())


def _root(tail, level, step):
    """Return the tau at which a falling tail probability is `level`: its normal deviate
    is nearly linear in tau.
    """

    def excess(tau):
        # ndtri is infinite at 0 and 1
        inside = min(max(tail(tau), 1e-300), _ALMOST_ONE)
        return ndtri(inside) - ndtri(level)

    low = 0.0
    high = step
    while excess(high) > 0:
        low = high
        high = 2 * high
    while excess(low) < 0:
        high = low
        low = low - step
    return brentq(excess, low, high, xtol=1e-10, rtol=1e-12)
