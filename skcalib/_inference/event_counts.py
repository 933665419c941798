"""The distribution of the number of events among independent rows, and its tails."""

from functools import reduce

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, ndtr

from skcalib._input.scalars import as_numbers
from skcalib._rows.links import log_odds

# below this total weight the distribution of the number of events is convolved exactly
FEW_ROWS = 200
# More rows than the first number are summed in cells of log-odds, the second number of
# them in a unit of log-odds.
_MANY_ROWS, _CELLS_PER_UNIT = 4096, 32
# The rows are divided into this number of groups. The distribution of the number of
# events is computed for all groups at once, and these distributions are convolved.
_GROUPS = 8
# relative, of the total weight: an event sum this close to 0 or to the total is equal
# to it but for rounding
ROUNDING = 1e-12
# Below this |r| the formula of Lugannani and Rice is replaced by its limit at r = 0.
_NEAR_ZERO = 1e-4


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
    z, weight = log_odds_cells(as_numbers(scores, "scores"), weight)
    return _event_count_tails(z, events, weight)


def _event_count_tails(z, events, weight):
    """Return P(S >= k) and P(S <= k) of the number S of events of rows with log-odds z
    (m,) and weights (m,); k is `events`.
    """
    total = weight.sum()
    if events <= total * ROUNDING:
        log_no_event = -weight @ np.logaddexp(0, z)
        return 1.0, float(np.exp(log_no_event))
    # Exact formulas exist for no event and for one. Where all rows or all but one have
    # an event, the non-events are counted, so that both tails change places.
    has_one_non_event = total - events == 1 < events
    if has_one_non_event or events >= total * (1 - ROUNDING):
        upper, lower = _event_count_tails(-z, round(total - events), weight)
        return lower, upper
    tails = EventCountTails(z, weight, events)
    # The tails are functions of tau = estimated shift - tested shift of the log-odds.
    # The tested shift is 0 here, that is, the log-odds z themselves.
    tau = tails.estimated_shift
    return float(tails.at_least_observed(tau)), float(tails.at_most_observed(tau))


def log_odds_cells(scores, weight):
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


def estimated_shift_of(z, weight, events):
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


class EventCountTails:
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
        self.estimated_shift = estimated_shift_of(z, weight, events)
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
        if are_counts and weight.sum() < FEW_ROWS:
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
