"""The distributions of the numbers of events among the independent rows of many
problems, and their tails.
"""

from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, ndtr

from skcalib._input.scalars import as_numbers
from skcalib._intervals.roots import bracketed_root
from skcalib._rows.links import log_odds

# below this total weight the distribution of the number of events is convolved exactly
FEW_ROWS = 200
# More rows than the first number are summed in cells of log-odds, the second number of
# them in a unit of log-odds.
MANY_ROWS, _CELLS_PER_UNIT = 4096, 32
# The rows are divided into this number of groups. The distribution of the number of
# events is computed for all groups at once, and these distributions are convolved.
_GROUPS = 8
# relative, of the total weight: an event sum this close to 0 or to the total is equal
# to it but for rounding
ROUNDING = 1e-12
# Distributions of four problems and more, of similar size, are computed together, for
# up to 65,536 probabilities at a time.
_FEW_PROBLEMS, _LARGEST_BATCH = 4, 1 << 16
# With at least this many problems, the exact tails of all are computed together, for
# one number of events after the other.
_MANY_PROBLEMS = 256
_LARGEST_SHIFT = 700  # of log-odds whose exponential is finite; tails beyond are 0
# Below this |r| the formula of Lugannani and Rice is replaced by its limit at r = 0.
_NEAR_ZERO = 1e-4


def event_count_pmf(scores, weight=None, complement=None):
    """Return the distribution of the number S of independent events (Poisson binomial).

    Parameters
    ----------
    scores : array-like of shape (n,)
        Probabilities of the events.
    weight : ndarray of shape (n,), default=None
        Whole numbers of rows with each score; None means 1.
    complement : ndarray of shape (n,), default=None
        1 - p, if it is known more exactly than the subtraction gives it.

    Returns
    -------
    pmf : ndarray of shape (n_rows + 1,)
        P(S = j) for j = 0, 1, ..., n_rows.
    """
    probability = as_numbers(scores, "scores")
    if complement is None:
        complement = 1 - probability
    if weight is not None:
        counts = weight.astype(np.int64)
        probability = np.repeat(probability, counts)
        complement = np.repeat(complement, counts)
    n_rows = len(probability)
    # The rows are dealt to eight groups, whose distributions (a line of `pmf` each) are
    # computed in one loop and then convolved. Rows of probability 0, which change
    # nothing, make the groups equally large.
    to_add = 0, -n_rows % _GROUPS
    of_event = np.pad(probability, to_add).reshape(_GROUPS, -1)
    of_none = np.pad(complement, to_add, constant_values=1).reshape(_GROUPS, -1)
    pmf = np.zeros((_GROUPS, of_event.shape[1] + 1))
    pmf[:, 0] = 1  # without rows there are 0 events
    # One more row r of each group: P(j) becomes P(j) (1 - r) + P(j - 1) r.
    for row in range(of_event.shape[1]):
        with_event = pmf[:, :-1] * of_event[:, row, None]
        pmf *= of_none[:, row, None]
        pmf[:, 1:] += with_event
    return reduce(np.convolve, pmf)[: n_rows + 1]


class RowsOfProblems(NamedTuple):
    """The rows of several problems, one problem after the other.

    Parameters
    ----------
    z : ndarray of shape (m,)
        Log-odds.
    weight : ndarray of shape (m,)
        How many rows have each of them.
    sizes : ndarray of int, shape (n_problems,)
        How many of the log-odds belong to each problem; at least 1.
    """

    z: np.ndarray
    weight: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, problems):
        """Return the rows of problems given as scores (n,) and weights (n,) or None;
        see `log_odds_cells`.
        """
        cells = [log_odds_cells(as_numbers(s, "scores"), w) for s, w in problems]
        return cls(
            np.concatenate([z for z, _ in cells]),
            np.concatenate([weight for _, weight in cells]),
            np.array([len(z) for z, _ in cells]),
        )

    @property
    def starts(self):
        """Where the rows of each problem begin, (n_problems,)."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def total(self):
        """Sum of the weights of each problem, (n_problems,)."""
        return self.sums(1.0)

    def sums(self, values):
        """Return the weighted sum over the rows of each problem (n_problems,) of values
        (m,).
        """
        return np.add.reduceat(self.weight * values, self.starts)

    def by_row(self, values):
        """Return values of problems (n_problems,) for each of their rows, (m,)."""
        return np.repeat(values, self.sizes)

    def at(self, chosen):
        """Return the rows of some problems, given by a mask (n_problems,)."""
        rows = self.by_row(chosen)
        return RowsOfProblems(self.z[rows], self.weight[rows], self.sizes[chosen])

    def ends(self):
        """Return the smallest and the largest log-odds of each problem."""
        low = np.minimum.reduceat(self.z, self.starts)
        return low, np.maximum.reduceat(self.z, self.starts)


def event_count_tails(rows, events):
    """Return P(S >= k) and P(S <= k), (n_problems,) each, of the numbers S of events of
    problems whose scores are calibrated.

    Parameters
    ----------
    rows : RowsOfProblems
        The rows of the problems.
    events : ndarray of float, shape (n_problems,)
        The observed numbers k.
    """
    rows, events, is_mirrored = mirrored(rows, events)
    at_least = np.ones(len(events))
    at_most = np.exp(-rows.sums(np.logaddexp(0, rows.z)))  # P(S = 0)
    has_events = events > rows.total * ROUNDING
    if has_events.any():
        tails = EventCountTails(rows.at(has_events), events[has_events])
        # The tails are functions of tau = estimated shift - tested shift of the
        # log-odds. The tested shift is 0 here, that is, the log-odds z themselves.
        at_least[has_events] = tails.at_least_observed(tails.estimated_shift)
        at_most[has_events] = tails.at_most_observed(tails.estimated_shift)
    # Where non-events were counted, both tails change places.
    return (
        np.where(is_mirrored, at_most, at_least),
        np.where(is_mirrored, at_least, at_most),
    )


def mirrored(rows, events):
    """Return the problems with events and non-events exchanged where all rows, or all
    but one, have an event: their `RowsOfProblems`, in which exchanged ones have the
    opposite log-odds; the numbers counted (n_problems,); and a mask of the exchanged
    problems (n_problems,).

    The counted number is then 0 or 1, for which there are exact formulas.
    """
    total = rows.total
    has_one_non_event = (total - events == 1) & (events > 1)
    is_mirrored = has_one_non_event | (events >= total * (1 - ROUNDING))
    z = np.where(rows.by_row(is_mirrored), -rows.z, rows.z)
    events = np.where(is_mirrored, np.rint(total - events), events)
    return rows._replace(z=z), events, is_mirrored


def log_odds_cells(scores, weight):
    """Return log-odds (m,) and weights (m,) of scores (n,) in [0, 1].

    Up to 4,096 rows are returned as they are. More are summed in narrow cells of the
    log-odds, each at the log-odds of its mean score.
    """
    z = log_odds(scores)
    if weight is None:
        weight = np.ones(len(z))
    weight = np.asarray(weight, dtype=np.float64)
    if len(z) <= MANY_ROWS:
        return z, weight
    cell = np.floor(_CELLS_PER_UNIT * z).astype(np.int64)
    cell -= cell.min()
    weight_in_cell = np.bincount(cell, weight)
    is_filled = weight_in_cell > 0
    weight_in_cell = weight_in_cell[is_filled]
    weighted_score = np.bincount(cell, weight * scores)[is_filled]
    return log_odds(weighted_score / weight_in_cell), weight_in_cell


def estimated_shifts(rows, events):
    """Return the shift delta (n_problems,) of the log-odds of each problem at which as
    many events are expected as were observed: sum w expit(z + delta) = events, between
    0 and the sum of w.
    """
    # The log-odds of the mean frequency less the largest and the smallest log-odds: all
    # shifted probabilities lie below it, or all above. The margins of 1e-9 keep the
    # signs of both ends apart where all log-odds are equal.
    log_odds_of_mean = np.log(events) - np.log(rows.total - events)
    lowest, highest = rows.ends()
    return bracketed_root(
        lambda delta: rows.sums(expit(rows.z + rows.by_row(delta))) - events,
        log_odds_of_mean - highest - 1e-9,
        log_odds_of_mean - lowest + 1e-9,
        tolerance=1e-14,
    )


def estimated_shift_of(z, weight, events):
    """Return the shift of one problem with log-odds z (m,) and weights (m,); see
    `estimated_shifts`.
    """
    rows = RowsOfProblems(z, weight, np.array([len(z)]))
    return float(estimated_shifts(rows, np.array([events], dtype=np.float64))[0])


class EventCountTails:
    """Tail probabilities of the numbers S of events among independent rows, for several
    problems whose log-odds are shifted by one number each.

    The observed number is k. `estimated_shift` is the shift at which k events are
    expected. The shift that is tested is given by tau = estimated shift - tested shift,
    so that the tail probability P(S >= k) falls as tau grows. All are arrays with an
    entry for each problem.

    The distribution of S is convolved exactly if there are few rows. Otherwise the
    tails are the saddlepoint approximation of Lugannani and Rice (1980), or products
    over the rows if k = 1.

    Parameters
    ----------
    rows : RowsOfProblems
        The rows.
    events : ndarray of shape (n_problems,)
        The observed numbers k, more than 0 and less than the sums of weights.
    """

    def __init__(self, rows, events):
        self.rows = rows
        # The shift at which as many events are expected as were observed, and the
        # probability of an event there, with log(p) and log(1 - p).
        self.estimated_shift = estimated_shifts(rows, events)
        z = rows.z + rows.by_row(self.estimated_shift)
        p = expit(z)
        # The variance and the third central moment of the number of events at these
        # probabilities.
        self.variance = rows.sums(p * (1 - p))
        third_moment = rows.sums(p * (1 - p) * (1 - 2 * p))
        # Problems whose weights and events are whole numbers have exact formulas if
        # they have few rows or one event. The others are approximated.
        n_fractions = np.add.reduceat(rows.weight % 1 != 0, rows.starts)
        are_counts = (n_fractions == 0) & (events % 1 == 0)
        is_exact = are_counts & (rows.total < FEW_ROWS)
        is_one = ~is_exact & are_counts & (events == 1)
        is_other = ~(is_exact | is_one)
        # Pairs of a mask of problems (n_problems,) and the object that computes their
        # tail probabilities.
        self._laws = []
        exact_law = _Exact
        if np.count_nonzero(is_exact) >= _MANY_PROBLEMS:
            exact_law = _ManyExact
        for law_class, chosen in ((exact_law, is_exact), (_OneEvent, is_one)):
            if chosen.any():
                rows_of_chosen = rows.by_row(chosen)
                law = law_class(rows.at(chosen), z[rows_of_chosen], events[chosen])
                self._laws.append((chosen, law))
        if is_other.any():
            variance = self.variance[is_other]
            skewness = third_moment[is_other] / (6 * variance)
            rows_of_others = rows.by_row(is_other)
            law = _Saddlepoint(rows.at(is_other), z[rows_of_others], variance, skewness)
            self._laws.append((is_other, law))

    def at_least_observed(self, tau):
        """Return P(S >= k), k the observed numbers of events, if the log-odds are
        shifted by the estimated shifts minus tau.
        """
        tail = np.empty(len(tau))
        for chosen, law in self._laws:
            tail[chosen] = law.at_least(tau[chosen])
        return tail

    def at_most_observed(self, tau):
        """Return P(S <= k), k the observed numbers of events, if the log-odds are
        shifted by the estimated shifts minus tau.
        """
        tail = np.empty(len(tau))
        for chosen, law in self._laws:
            tail[chosen] = law.at_most(tau[chosen])
        return tail

    def two_sided(self, shift):
        """Return the two-sided p-values, twice the smaller tail, of the hypotheses that
        the log-odds are shifted by `shift`.
        """
        tau = self.estimated_shift - shift
        at_least = self.at_least_observed(tau)
        at_most = self.at_most_observed(tau)
        return np.minimum(1.0, 2 * np.minimum(at_least, at_most))


class _Exact:
    """Exact tails of few rows with log-odds z (m,) and `events` (n_problems,)."""

    def __init__(self, rows, z, events):
        # log P(S = j) for j = 0, ..., n of each problem, one problem after the other.
        n_rows = np.rint(rows.total).astype(np.int64)
        with np.errstate(divide="ignore"):
            self._log_mass = np.log(_event_count_pmfs(z, rows.weight, n_rows))
        # Where the n + 1 numbers of each problem begin, and j - k for each number j,
        # with k the observed one.
        self._sizes = n_rows + 1
        self._starts = np.cumsum(self._sizes) - self._sizes
        j = np.arange(len(self._log_mass)) - np.repeat(self._starts, self._sizes)
        self._excess = j - np.repeat(events, self._sizes)

    def at_least(self, tau):
        """Return P(S >= k) for tau (n_problems,)."""
        return self._probability(tau, self._excess >= 0)

    def at_most(self, tau):
        """Return P(S <= k) for tau (n_problems,)."""
        return self._probability(tau, self._excess <= 0)

    def _probability(self, tau, is_counted):
        """Return the total probability (n_problems,) of the numbers of events for which
        the mask `is_counted`, in the order of `_log_mass`, is True.
        """
        # Shifting all log-odds by -tau multiplies P(S = j) by exp(-tau j), up to one
        # factor. Here it is exp(-tau (j - k)), and the largest product is scaled to 1,
        # so that nothing overflows.
        log_mass = self._log_mass - np.repeat(tau, self._sizes) * self._excess
        largest = np.maximum.reduceat(log_mass, self._starts)
        mass = np.exp(log_mass - np.repeat(largest, self._sizes))
        counted_mass = np.add.reduceat(np.where(is_counted, mass, 0.0), self._starts)
        return counted_mass / np.add.reduceat(mass, self._starts)


class _ManyExact:
    """What `_Exact` is, for many problems: a polynomial in exp(-tau) for each tail."""

    def __init__(self, rows, z, events):
        n_rows = np.rint(rows.total).astype(np.int64)
        k = np.rint(events).astype(np.int64)  # the observed numbers of events
        # P(S = 0), P(S = 1), ... of each problem, one problem after the other, and
        # where those of each problem begin.
        mass = _event_count_pmfs(z, rows.weight, n_rows)
        first = np.cumsum(n_rows + 1) - (n_rows + 1)
        self._mass_of_observed = mass[first + k]
        # P(S = k + d) and P(S = k - d) for d = 1, 2, ...
        self._above = _Levels(mass, first + k, n_rows - k, step=1)
        self._below = _Levels(mass, first + k, k, step=-1)

    def at_least(self, tau):
        """Return P(S >= k) for tau (n_problems,)."""
        above, below = self._sums(tau)
        return _share(above + self._mass_of_observed, below)

    def at_most(self, tau):
        """Return P(S <= k) for tau (n_problems,)."""
        above, below = self._sums(tau)
        return _share(below + self._mass_of_observed, above)

    def _sums(self, tau):
        """Return the sums of P(S = j) exp(-tau (j - k)) over j > k and over j < k."""
        tau = np.clip(tau, -_LARGEST_SHIFT, _LARGEST_SHIFT)
        with np.errstate(over="ignore"):
            return self._above.sums(np.exp(-tau)), self._below.sums(np.exp(tau))


class _Levels:
    """Masses of each problem at the distances d = 1, 2, ... from its observed number,
    the coefficients of polynomials without a constant.

    Parameters
    ----------
    mass : ndarray
        Masses of all problems.
    observed : ndarray of int, shape (n_problems,)
        Where the mass of the observed number of each problem stands among them.
    n_levels : ndarray of int, shape (n_problems,)
        The largest distance of each problem.
    step : {1, -1}
        The direction in which the distance grows.
    """

    def __init__(self, mass, observed, n_levels, step):
        # The problems in falling order of their largest distances: those that reach a
        # distance come first.
        self._order = np.argsort(-n_levels, kind="stable")
        observed = observed[self._order]
        self._levels = []
        for distance in range(1, int(n_levels.max()) + 1):
            n_reaching = np.count_nonzero(n_levels >= distance)
            self._levels.append(mass[observed[:n_reaching] + step * distance])

    def sums(self, x):
        """Return the values of the polynomials at x (n_problems,), by Horner's rule."""
        x = x[self._order]
        sums = np.zeros(len(x))
        for level in reversed(self._levels):
            reached = sums[: len(level)]
            reached += level
            reached *= x[: len(level)]
        values = np.empty(len(x))
        values[self._order] = sums
        return values


def _share(part, rest):
    """Return part / (part + rest) of positive sums, of which one may be infinite."""
    with np.errstate(over="ignore"):
        return 1 / (1 + rest / part)


class _OneEvent:
    """Tails of one event among many rows with log-odds z (m,)."""

    def __init__(self, rows, z, events):
        self._rows = rows
        self._odds = np.exp(z)

    def at_least(self, tau):
        """Return P(S >= 1) = 1 - P(S = 0) for tau (n_problems,)."""
        return -np.expm1(self._log_no_event(self._odds_at(tau)))

    def at_most(self, tau):
        """Return P(S <= 1) = P(S = 0) (1 + the sum of the odds)."""
        odds = self._odds_at(tau)
        return np.exp(np.log1p(self._rows.sums(odds)) + self._log_no_event(odds))

    def _odds_at(self, tau):
        """Return the odds (m,) of an event if the log-odds are shifted by -tau."""
        return self._odds * self._rows.by_row(np.exp(-tau))

    def _log_no_event(self, odds):
        """Return log P(S = 0), the sum of log(1 - probability) over the rows."""
        return -self._rows.sums(np.log1p(odds))


class _Saddlepoint:
    """Approximate tails of many rows with log-odds z (m,) at the estimated shift, and
    the variance and skewness of the number of events there (n_problems,).
    """

    def __init__(self, rows, z, variance, skewness):
        self._rows = rows
        # of an event in each row, for log-odds z (m,) at the estimated shift
        self._probability = expit(z)
        self._log_probability = log_expit(z)
        self._log_complement = log_expit(-z)
        # of the number of events of each problem, (n_problems,)
        self._variance = variance
        self._skewness = skewness

    def at_least(self, tau):
        """Return P(S >= k) for tau (n_problems,)."""
        root = self._signed_root(tau)
        return _lugannani_rice(root, tau, self._skewness, self._variance)

    def at_most(self, tau):
        """Return P(S <= k) for tau (n_problems,)."""
        # At most k events are at least n - k non-events. Counting non-events reverses
        # the signs of tau, of the root and of the skewness.
        root = self._signed_root(tau)
        return _lugannani_rice(-root, -tau, -self._skewness, self._variance)

    def _signed_root(self, tau):
        """Return the signed root r (n_problems,) of the likelihood ratio statistic of a
        shift by the estimated one minus tau; r has the sign of tau.

        With p (m,) the probabilities at the estimate, r^2 / 2 is the weighted sum of
        log(1 + p (exp(-tau) - 1)) + tau p.
        """
        of_row = self._rows.by_row(tau)
        p = self._probability
        with np.errstate(over="ignore"):  # a root that is infinite: a tail of 0
            change = p * np.expm1(-of_row)
            # The logarithm in two forms: log1p(change) is exact for small changes;
            # log((1 - p) + p exp(-tau)) does not lose digits where the change is near
            # -1. The maximum only keeps the argument of a form that is not used valid.
            log_ratio = np.log1p(np.maximum(change, -0.5))
            large = change < -0.5
            log_ratio[large] = np.logaddexp(
                self._log_complement[large], (self._log_probability - of_row)[large]
            )
            half_square = self._rows.sums(log_ratio + of_row * p)
        return np.copysign(np.sqrt(2 * np.maximum(half_square, 0.0)), tau)


def _event_count_pmfs(z, weight, n_rows):
    """Return the distributions of the numbers of events of several problems, P(S = j)
    for j = 0, ..., n, one problem after the other: (n + n_problems,).

    `z` (m,) are the log-odds of the rows of all problems, of which each stands for a
    whole number of rows, `weight` (m,). `n_rows` (n_problems,) says how many rows each
    problem has.
    """
    z = np.repeat(z, weight.astype(np.int64))
    # The subtraction 1 - p would lose digits where p is next to 1.
    p = expit(z)
    one_minus_p = expit(-z)
    # Where each problem begins in `z` and, with one number more than rows, in `pmfs`.
    first = np.cumsum(n_rows) - n_rows
    first_mass = first + np.arange(len(n_rows))
    pmfs = np.empty(len(z) + len(n_rows))
    # Problems are convolved together in batches of similar numbers of rows.
    order = np.argsort(n_rows, kind="stable")
    start = 0
    while start < len(order):
        # Problems whose numbers of rows differ by less than a quarter.
        size = n_rows[order[start]]
        most = size + size // 4
        end = np.searchsorted(n_rows[order], most, side="right")
        end = min(end, start + max(_LARGEST_BATCH // (most + 1), 1))
        batch = order[start:end]
        start = end
        if len(batch) < _FEW_PROBLEMS:
            for k in batch:
                rows = slice(first[k], first[k] + n_rows[k])
                mass = event_count_pmf(p[rows], complement=one_minus_p[rows])
                pmfs[first_mass[k] : first_mass[k] + n_rows[k] + 1] = mass
            continue
        # 1. The probabilities of the rows, with one column for each problem. Problems
        # with fewer rows are filled up with the probability 0, which changes nothing.
        row_number = np.arange(n_rows[batch].max())[:, None]
        is_row = row_number < n_rows[batch]
        position = np.minimum(first[batch] + row_number, len(z) - 1)
        probability = np.where(is_row, p[position], 0)
        complement = np.where(is_row, one_minus_p[position], 1)
        # 2. The distributions, (n + 1, n_problems), of 0 rows, then of one row more in
        # each turn: with the probability r of that row, P(j) becomes
        # P(j) (1 - r) + P(j - 1) r.
        pmf = np.zeros((len(row_number) + 1, len(batch)))
        pmf[0] = 1
        for row in range(len(row_number)):
            with_event = pmf[: row + 1] * probability[row]
            pmf[: row + 1] *= complement[row]
            pmf[1 : row + 2] += with_event
        # 3. Each column is put into its place, up to the number of rows of the problem.
        j = np.arange(len(pmf))[:, None]
        is_possible = j <= n_rows[batch]
        pmfs[(first_mass[batch] + j)[is_possible]] = pmf[is_possible]
    return pmfs


def _lugannani_rice(r, tau, skewness, variance):
    """Return P(S >= k) of an integer S by the saddlepoint formula of Lugannani and Rice
    (1980): Phi(-r) + phi(r) (1 / u - 1 / r), u = (1 - exp(-tau)) sqrt(variance).

    `r` is the signed root of the likelihood ratio of the hypothesis. `tau` is the
    estimated shift of the log-odds, at which k events are expected, minus the shift of
    the hypothesis. At the estimated shift S has the variance `variance`; `skewness` is
    its third cumulant divided by six times this variance.
    """
    deviation = np.sqrt(variance)
    # 1 / u and 1 / r are infinite at r = 0, but their difference has this limit.
    correction = (0.5 - skewness) / deviation
    far = np.abs(r) >= _NEAR_ZERO
    with np.errstate(over="ignore"):
        correction[far] = 1 / (-np.expm1(-tau[far]) * deviation[far]) - 1 / r[far]
    normal_density = np.exp(-(r**2) / 2) / np.sqrt(2 * np.pi)
    return np.clip(ndtr(-r) + normal_density * correction, 0.0, 1.0)
