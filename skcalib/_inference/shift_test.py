"""Exact inference on a bias in the model of one common shift of all log-odds: is the
number of events of some rows what their scores predict.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv, expit, ndtri

from skcalib._inference.event_counts import (
    FEW_ROWS,
    ROUNDING,
    EventCountTails,
    RowsOfProblems,
    estimated_shifts,
    mirrored,
)
from skcalib._intervals.roots import bracketed_root
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


class BiasProblem(NamedTuple):
    """What `BiasTestsOfRows` needs to know of one problem; see `bias_test`."""

    scores: np.ndarray
    events: float
    weight: np.ndarray | None = None
    residual_variance: float | None = None


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
    problem = BiasProblem(scores, events, weight, residual_variance)
    return problem_bias_test(problem, confidence_level)


def problem_bias_test(problem, confidence_level):
    """Return the `BiasTest` of floats of a `BiasProblem`; see `bias_test`."""
    tests = BiasTestsOfRows.of([problem]).at(confidence_level)
    return BiasTest(*(float(values[0]) for values in tests))


class BiasTestsOfRows:
    """The tests of many problems, at any level; see `bias_test`.

    Parameters
    ----------
    rows : RowsOfProblems
        The rows of the problems.
    events : ndarray of float, shape (n_problems,)
        Sums of the weights of the rows with an event.
    variance : ndarray of shape (n_problems,)
        Weighted means of the squared centred residuals; 0 where the scores are
        calibrated but for a shift.
    """

    def __init__(self, rows, events, variance):
        self.rows = rows  # those of all problems, one problem after the other
        self.events = events  # weighted numbers of events, (n_problems,)
        # How many times longer each side of the interval becomes: the standard
        # deviation of y - s over that of calibrated scores, at least 1.
        probability = expit(rows.z)
        calibrated_variance = rows.sums(probability * (1 - probability))
        stretch = np.sqrt(np.maximum(variance * rows.total / calibrated_variance, 1.0))
        self._tests = _ShiftTests(rows, events, stretch)
        self._is_longer = stretch > 1
        self._mean_score = rows.sums(probability) / rows.total

    @classmethod
    def of(cls, problems):
        """Return the tests of a list of `BiasProblem`."""
        return cls(
            RowsOfProblems.of([(p.scores, p.weight) for p in problems]),
            np.array([p.events for p in problems], dtype=np.float64),
            np.array([p.residual_variance or 0.0 for p in problems]),
        )

    def at(self, confidence_level):
        """Return the `BiasTest` of arrays (n_problems,) at a level."""
        exact, stretched = self._tests.at(confidence_level)
        longer = self._is_longer
        if not longer.any():
            return exact
        # Problems whose residuals vary more than those of calibrated scores have the
        # stretched interval, but not beyond the limits for equal scores: these hold for
        # any probabilities (Hoeffding 1956). It always contains the exact interval.
        equal = _equal_scores_tests(
            self._mean_score[longer],
            self.rows.total[longer],
            self.events[longer],
            confidence_level,
        )
        low = exact.low.copy()
        high = exact.high.copy()
        bias_pvalue = exact.pvalue.copy()
        low[longer] = np.minimum(
            low[longer], np.maximum(stretched.low[longer], equal.low)
        )
        high[longer] = np.maximum(
            high[longer], np.minimum(stretched.high[longer], equal.high)
        )
        bias_pvalue[longer] = np.maximum(
            bias_pvalue[longer], np.minimum(stretched.bias_pvalue[longer], equal.pvalue)
        )
        return BiasTest(exact.pvalue, low, high, bias_pvalue)


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
    rows = RowsOfProblems.of([(scores, weight)])
    total = float(rows.total[0])
    mean_score = float(rows.sums(expit(rows.z))[0]) / total
    all_have_event = events >= total * (1 - ROUNDING)
    none_has_event = events <= total * ROUNDING
    events = np.array([events], dtype=np.float64)
    # How many times longer each side becomes: the standard deviation of y - (O/E) s
    # over that of labels with the probabilities at the estimated shift, at least 1.
    stretch = np.ones(1)
    if not all_have_event and not none_has_event:
        probability = expit(rows.z + estimated_shifts(rows, events))
        label_variance = rows.sums(probability * (1 - probability))
        stretch = np.sqrt(np.maximum(residual_variance * total / label_variance, 1))
    test, stretched = _ShiftTests(rows, events, stretch).at(confidence_level)
    if stretch[0] > 1:
        test = stretched
    # The test has limits of the bias, mean score - O / n, and O/E is 1 - bias / mean
    # score: the upper limit of one gives the lower limit of the other.
    low = 1 - float(test.high[0]) / mean_score
    high = 1 - float(test.low[0]) / mean_score
    if all_have_event and residual_variance > 0:
        # If all rows have events there is no stretch, since the labels do not vary. The
        # mean score of a sample does: the half-width of its normal interval is combined
        # with each side as the root of the sum of squares.
        ratio = events[0] / total / mean_score
        z_value = ndtri((1 + confidence_level) / 2)
        half_width = z_value * np.sqrt(residual_variance / total) / mean_score
        low = ratio - np.hypot(ratio - low, half_width)
        high = ratio + np.hypot(high - ratio, half_width)
    return float(max(low, 0.0)), float(high)


def _equal_scores_tests(score, n_rows, events, confidence_level):
    """Return the `BiasTest`, arrays (m,), of m problems whose rows all have one score:
    `events` among `n_rows` rows, (m,) each. It holds the exact binomial tests, and
    Clopper and Pearson's limits.

    If the numbers, which may be sums of weights, are not integers, if there are many
    rows, or if all or no rows have events, `_ShiftTests` does the same test.
    """
    rows = RowsOfProblems(
        log_odds(score), np.asarray(n_rows, dtype=np.float64), np.ones(len(score), int)
    )
    are_integers = (n_rows % 1 == 0) & (events % 1 == 0)
    is_exact = (n_rows < FEW_ROWS) & are_integers & (events > 0) & (events < n_rows)
    fields = np.empty((4, len(score)))  # those of the `BiasTest`
    if not is_exact.all():
        no_stretch = np.ones(np.count_nonzero(~is_exact))
        tests = _ShiftTests(rows.at(~is_exact), events[~is_exact], no_stretch)
        test, _ = tests.at(confidence_level)
        fields[:, ~is_exact] = test
    k = np.rint(events[is_exact]).astype(np.int64)
    n = np.rint(n_rows[is_exact]).astype(np.int64)
    p = score[is_exact]
    tail = (1 - confidence_level) / 2
    at_least = bdtrc(k - 1, n, p)  # P(S >= k) of a binomial S
    at_most = bdtr(k, n, p)  # P(S <= k)
    pvalue = np.minimum(1.0, 2 * np.minimum(at_least, at_most))
    # Clopper and Pearson: each limit of the event frequency is a quantile of a beta
    # distribution.
    low = p - betaincinv(k + 1, n - k, 1 - tail)
    high = p - betaincinv(k, n - k + 1, tail)
    fields[:, is_exact] = pvalue, low, high, pvalue
    return BiasTest(*fields)


class _ShiftTests:
    """Tests for each problem that a common shift of all log-odds is 0, with two
    intervals of the bias, the mean score minus the mean of the shifted probabilities.

    Parameters
    ----------
    rows : RowsOfProblems
        The rows.
    events : ndarray of shape (n_problems,)
        Numbers of events, or sums of their weights.
    stretch : ndarray of shape (n_problems,)
        Factors of at least 1 by which each side of the second interval is longer.
    """

    def __init__(self, rows, events, stretch):
        # Where all rows, or all but one, have events, the non-events are counted: of
        # few events the formulas are exact.
        rows, events, self._is_mirrored = mirrored(rows, events)
        # Problems without events have formulas of their own.
        self._has_no_event = events <= rows.total * ROUNDING
        self._rows_without_events = rows.at(self._has_no_event)
        has_events = ~self._has_no_event
        self._tests_with_events = None
        if has_events.any():
            self._tests_with_events = _TestsOfEvents(
                rows.at(has_events), events[has_events], stretch[has_events]
            )

    def at(self, confidence_level):
        """Return two `BiasTest` of arrays (n_problems,) at a level: the exact test with
        its own interval, and with the longer interval and its p-value.
        """
        tail = (1 - confidence_level) / 2
        # The rows of both arrays are the fields of a `BiasTest`.
        no_event = self._has_no_event
        exact = np.empty((4, len(no_event)))
        stretched = np.empty((4, len(no_event)))
        if no_event.any():
            pvalue, low, high = _no_event(self._rows_without_events, tail)
            exact[:, no_event] = pvalue, low, high, pvalue
            # Labels without events show no spread: the longer interval is unlimited,
            # and `BiasTestsOfRows` takes the limits for equal scores in its place.
            ones = np.ones(len(pvalue))
            stretched[:, no_event] = pvalue, -ones, ones, ones
        if self._tests_with_events is not None:
            exact_of_events, stretched_of_events = self._tests_with_events.at(tail)
            exact[:, ~no_event] = exact_of_events
            stretched[:, ~no_event] = stretched_of_events
        results = []
        for pvalue, low, high, bias_pvalue in (exact, stretched):
            # The bias of non-events has the opposite sign.
            lower = np.where(self._is_mirrored, -high, low)
            upper = np.where(self._is_mirrored, -low, high)
            results.append(BiasTest(pvalue, lower, upper, bias_pvalue))
        return results


class _TestsOfEvents:
    """What `_ShiftTests` does, for problems with events."""

    def __init__(self, rows, events, stretch):
        self._rows = rows
        self._stretch = stretch
        self._tails = EventCountTails(rows, events)
        self._pvalue = self._tails.two_sided(np.zeros(len(events)))
        # The search begins at two standard errors of the shift, at most 4.
        self._first_distance = np.minimum(2 / np.sqrt(self._tails.variance), 4.0)

    @cached_property
    def _bias(self):
        """The biases at the estimated shifts, (n_problems,)."""
        return _bias(self._rows, self._tails.estimated_shift)

    @cached_property
    def _stretched_pvalue(self):
        """The p-values (n_problems,) of "the bias is 0" that agree with the longer
        intervals.

        A limit bias - stretch (bias - low) is 0 where low is bias (1 - 1 / stretch):
        the p-value is the exact one of the shift with that bias, which lies between 0
        and the estimate.
        """
        pvalue = self._pvalue.copy()
        longer = self._stretch > 1
        rows = self._rows.at(longer)
        bias = self._bias[longer]
        equivalent_bias = bias * (1 - 1 / self._stretch[longer])
        shift = np.zeros(len(pvalue))
        shift[longer] = bracketed_root(
            lambda delta: _bias(rows, delta) - equivalent_bias,
            np.zeros(len(bias)),
            np.where(bias == 0, 0.0, self._tails.estimated_shift[longer]),
        )
        pvalue[longer] = self._tails.two_sided(shift)[longer]
        return pvalue

    def at(self, tail):
        """Return two arrays (4, n_problems), of the tests with the exact and with the
        longer intervals. Their rows are the fields of `BiasTest`: the exact p-value,
        both limits, and the p-value that agrees with the limits. Each exact limit is
        wrong with probability `tail`.
        """
        # The limits of the shift are those at which the observed number k of events is
        # in a tail of the distribution of their number S: P(S >= k) = tail at the lower
        # limit, P(S <= k) = tail at the upper one. Both are sought as distances from
        # the shift at which k events are expected.
        tails = self._tails
        below = _distances_at_level(tails.at_least_observed, tail, self._first_distance)
        # The tails take the distance by which the shift is smaller than the estimate,
        # which is negative for the upper limit.
        above = _distances_at_level(
            lambda distance: tails.at_most_observed(-distance),
            tail,
            self._first_distance,
        )
        # A larger shift makes the events more probable, and the bias of the scores
        # smaller.
        low = _bias(self._rows, tails.estimated_shift + above)
        high = _bias(self._rows, tails.estimated_shift - below)
        # The exact p-value agrees with the exact limits.
        exact = np.stack([self._pvalue, low, high, self._pvalue])
        if np.all(self._stretch == 1):
            return exact, exact
        # The longer interval: the distance from the estimated bias to each limit is
        # multiplied by `stretch`.
        bias = self._bias
        stretched = np.stack(
            [
                self._pvalue,
                bias - self._stretch * (bias - low),
                bias + self._stretch * (high - bias),
                self._stretched_pvalue,
            ]
        )
        return exact, stretched


def _no_event(rows, tail):
    """Return the two-sided p-value of calibrated scores, and the limits of the bias,
    each wrong with probability `tail`, of problems without any event. Then P(S = 0) is
    the product of 1 - probability.
    """

    def log_no_event(shift):
        """Return log P(S = 0) if all log-odds are shifted."""
        return -rows.sums(np.logaddexp(0, rows.z + rows.by_row(shift)))

    total = rows.total
    pvalue = np.minimum(1.0, 2 * np.exp(log_no_event(np.zeros(len(total)))))
    # The lower limit belongs to the shift with P(S = 0) = tail. If all n rows had one
    # probability p, (1 - p)^n = tail would give p / (1 - p) = tail^(-1 / n) - 1. The
    # shift lies between those that take the largest and the smallest score there; a
    # margin of 1e-9 keeps the signs of both ends apart where all scores are equal.
    log_odds_if_equal = np.log(np.expm1(-np.log(tail) / total))
    lowest, highest = rows.ends()
    shift = bracketed_root(
        lambda shift: log_no_event(shift) - np.log(tail),
        log_odds_if_equal - highest - 1e-9,
        log_odds_if_equal - lowest + 1e-9,
    )
    # The upper limit is the mean score, since no event frequency is below 0.
    mean_score = rows.sums(expit(rows.z)) / total
    return pvalue, _bias(rows, shift), mean_score


def _bias(rows, delta):
    """Return the mean scores less the means of the probabilities whose log-odds are
    shifted by delta, all (n_problems,).
    """
    z = rows.z
    return rows.sums(expit(z) - expit(z + rows.by_row(delta))) / rows.total


def _distances_at_level(tail_probability, level, first_guess):
    """Return the x (m,) at which ``tail_probability(x)``, falling functions, are
    `level`. It is solved for normal quantiles, which are nearly linear in x. The first
    bracket is from 0 to `first_guess` (m,).
    """

    def excess(x):
        """Return the normal quantile of the probability less that of the level."""
        # ndtri is infinite at 0 and 1
        probability = np.clip(tail_probability(x), 1e-300, _ALMOST_ONE)
        return ndtri(probability) - ndtri(level)

    # The bracket grows until the excess, which falls, is not positive at its upper end
    # and not negative at its lower end.
    low = np.zeros(len(first_guess))
    high = first_guess
    at_high = excess(high)
    is_above = at_high > 0
    while is_above.any():
        low = np.where(is_above, high, low)
        high = np.where(is_above, 2 * high, high)
        at_high = excess(high)
        is_above = at_high > 0
    at_low = excess(low)
    is_below = at_low < 0
    while is_below.any():
        high = np.where(is_below, low, high)
        at_high = np.where(is_below, at_low, at_high)
        low = np.where(is_below, low - first_guess, low)
        at_low = excess(low)
        is_below = at_low < 0
    return bracketed_root(excess, low, high, ends=(at_low, at_high), tolerance=1e-12)
