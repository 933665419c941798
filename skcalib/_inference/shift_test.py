"""Exact inference on a bias in the model of one common shift of all log-odds: is the
number of events of some rows what their scores predict.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, betaincinv, expit, ndtri

from skcalib._inference.event_counts import (
    FEW_ROWS,
    ROUNDING,
    EventCountTails,
    estimated_shift_of,
    log_odds_cells,
)
from skcalib._input.scalars import as_numbers
from skcalib._rows.links import log_odds

_ALMOST_ONE = 1 - 2.0**-53


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
    z, weight = log_odds_cells(as_numbers(scores, "scores"), weight)
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
    z, weight = log_odds_cells(scores, weight)
    total = weight.sum()
    mean_score = float(weight @ expit(z)) / total
    all_have_event = events >= total * (1 - ROUNDING)
    none_has_event = events <= total * ROUNDING
    # How many times longer each side becomes: the standard deviation of y - (O/E) s
    # over that of labels with the probabilities at the estimated shift, at least 1.
    stretch = 1.0
    if not all_have_event and not none_has_event:
        probability = expit(z + estimated_shift_of(z, weight, events))
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


def _equal_scores_test(score, n_rows, events, confidence_level):
    """Return the `BiasTest` of `events` among `n_rows` rows that all have one score:
    the exact binomial test and the limits of Clopper and Pearson.

    Both numbers may be sums of weights. If they are not integers, if there are many
    rows, or if all or no rows have events, `_shift_tests` does the same test.
    """
    are_integers = float(n_rows).is_integer() and float(events).is_integer()
    if not (n_rows < FEW_ROWS and are_integers and 0 < events < n_rows):
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
    # Exact formulas exist for no event and for one (`_no_event`, `EventCountTails`).
    # If all rows or all but one have an event, these are used for the non-events, whose
    # log-odds and bias have the opposite signs.
    has_one_non_event = n_rows - events == 1 < events
    if has_one_non_event or events >= n_rows * (1 - ROUNDING):
        mirrored = _shift_tests(
            -z, weight, round(n_rows - events), confidence_level, stretch
        )
        return [test._replace(low=-test.high, high=-test.low) for test in mirrored]
    if events <= n_rows * ROUNDING:
        pvalue, low, high = _no_event(z, weight, tail)
        # Labels without events show no spread: the longer interval is unlimited, and
        # `bias_test` takes the limits for equal scores in its place.
        unlimited = BiasTest(pvalue, low=-1.0, high=1.0, bias_pvalue=1.0)
        return BiasTest(pvalue, low, high, bias_pvalue=pvalue), unlimited
    # The limits of the shift are those at which the observed number k of events is in a
    # tail of the distribution of their number S: P(S >= k) = tail at the lower limit,
    # P(S <= k) = tail at the upper one. Both are sought as distances from the shift at
    # which k events are expected.
    tails = EventCountTails(z, weight, events)
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

    `tails` are the `EventCountTails` of the rows with log-odds z (m,).
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
