"""Confidence intervals for the errors of many small samples at once: few numbers of
events are possible in their bins, so that the distribution of the error is summed in
place of being drawn.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skcalib._cells.cells import Cells
from skcalib._errors.binned import can_be_joined
from skcalib._inference.count_draws import CountDraws
from skcalib._inference.count_laws import accumulate_lines, count_masses
from skcalib._inference.drawn_hypotheses import SMALLEST_STEP
from skcalib._intervals.roots import bracketed_root

# The most possible outcomes (combinations of the numbers of events in the bins) of a
# sample whose outcomes are summed, and the most rows of its bins.
MOST_OUTCOMES, _MOST_ROWS = 1 << 14, 500
# Outcomes of a batch of problems. Twice as many take no less time.
_BATCH = 1 << 21
_GROWTH = 4  # factor of the steps of c that bracket a limit
_PRECISION = 1e-10  # of the c of a limit, relative to its bracket
_ROUNDING = 1e-12  # relative difference within which two statistics are tied
_ALMOST_ONE = 1 - 2.0**-53
_MEDIAN_CELLS = 64  # of equal width, in one of which a median is sought


class SmallProblems(NamedTuple):
    """Binned errors of several samples, each with few possible outcomes.

    Parameters
    ----------
    cells : Cells
        The bins of all problems, one problem after the other, m together.
    sizes : ndarray of int, shape (n_problems,)
        Number of bins of each problem.
    power : type
        `PluginPower`, `DebiasedPower` or `UnbiasedPower`.
    norm : float
        The finite norm.
    directions : list of ndarray of shape (m,)
        The deviations of event frequencies along which limits are sought, the observed
        one first; see `Hypotheses`.
    """

    cells: Cells
    sizes: np.ndarray
    power: type
    norm: float
    directions: list

    @classmethod
    def of(cls, many):
        """Return the problems of a list of `Hypotheses` for which `has_few_outcomes`
        holds, with powers of one class and norm.
        """
        first = many[0].power
        cells = [hypotheses.cells for hypotheses in many]
        # Direction k of all problems is made of direction k of each problem.
        by_problem = [hypotheses.directions for hypotheses in many]
        directions = []
        for kth_directions in zip(*by_problem, strict=True):
            directions.append(np.concatenate(kth_directions))
        return cls(
            Cells.joined(cells),
            np.array([len(cells_of_problem.weight) for cells_of_problem in cells]),
            type(first),
            first.norm,
            directions,
        )

    def limits(self, tail):
        """Return the p-th powers of the lower and of the upper limits of the errors,
        (2, n_problems), each wrong with probability `tail`.
        """
        starts = np.cumsum(self.sizes) - self.sizes
        rows = rows_of(self.cells)
        outcomes = n_outcomes(rows, self.sizes)
        limits = np.empty((2, len(self.sizes)))
        # Problems with equally many bins and similar numbers of outcomes stand
        # together.
        order = np.lexsort((outcomes, self.sizes))
        start = 0
        while start < len(order):
            size = self.sizes[order[start]]
            chosen = order[start : start + _BATCH // outcomes[order[start]] + 1]
            chosen = chosen[self.sizes[chosen] == size]
            positions = starts[chosen][:, None] + np.arange(size)
            # The bins of each problem in order of their rows, so that those of several
            # problems have similar numbers. The outcomes do not depend on the order.
            positions = np.take_along_axis(
                positions, np.argsort(rows[positions], axis=1, kind="stable"), axis=1
            )
            # The batch holds as many problems as memory allows, but at least one. Its
            # tables have room for the largest number of rows of each bin.
            largest = np.maximum.accumulate(rows[positions], axis=0)
            n_entries = np.prod(largest + 1, axis=1) * np.arange(1, len(largest) + 1)
            n_problems = np.searchsorted(n_entries, _BATCH, side="right")
            positions = positions[: max(int(n_problems), 1)]
            batch = _Batch(self, positions.T, rows[positions.T], tail)
            limits[:, order[start : start + len(positions)]] = batch.limits()
            start += len(positions)
        return limits


def has_few_outcomes(hypotheses):
    """Return whether the limits of `Hypotheses` can be summed over all outcomes, the
    combinations of the numbers of events in the bins: those of a binned error of one
    sample with independent rows, if there are few.
    """
    draw = hypotheses.draw
    if not isinstance(draw, CountDraws) or not draw.is_independent:
        return False
    # The p-th power of the error must be a sum over the bins.
    if hypotheses.power is None or not can_be_joined([hypotheses.power]):
        return False
    rows = rows_of(hypotheses.cells)
    (outcomes,) = n_outcomes(rows, np.array([len(rows)]))
    return bool(outcomes <= MOST_OUTCOMES)


def rows_of(cells):
    """Return the number of rows of each cell (m,), a whole number of at least 1."""
    trials = cells.weight if cells.trials is None else cells.trials
    return np.maximum(np.rint(trials), 1)


def n_outcomes(rows, sizes):
    """Return how many outcomes each problem has (n_problems,), the combinations of the
    numbers of events in its bins: the product of rows + 1. `rows` (m,) are the numbers
    of rows of all bins, `sizes` (n_problems,) the numbers of bins of the problems. It
    is MOST_OUTCOMES + 1 if there are more, or if a bin has too many rows.
    """
    starts = np.cumsum(sizes) - sizes
    with np.errstate(over="ignore"):  # many bins: infinity is more than the most
        outcomes = np.multiply.reduceat(rows + 1, starts)
    is_large = np.maximum.reduceat(rows, starts) > _MOST_ROWS
    outcomes[is_large | (outcomes > MOST_OUTCOMES)] = MOST_OUTCOMES + 1
    return outcomes.astype(np.int64)


class _Batch:
    """Some problems of `size` bins each, with a table of all possible outcomes: the
    combinations of the numbers of events (k_1, ..., k_size) in the bins of a problem.
    The limits of an error are sought among hypotheses by the probabilities that they
    give to the outcomes.

    The problems are the last axis, of length n, of all arrays.

    Parameters
    ----------
    problems : SmallProblems
        All problems.
    positions : ndarray of int, shape (size, n)
        Where the bins of these problems stand among all.
    rows : ndarray of shape (size, n)
        Their numbers of rows.
    tail : float
        The probability that a limit is wrong.
    """

    def __init__(self, problems, positions, rows, tail):
        shape = rows.shape  # (bins of a problem, problems)
        self._tail = tail
        self._cells = problems.cells.at(positions.ravel())
        weight = self._cells.weight.reshape(shape)
        self._laws = _Laws(
            rows=rows,
            score=self._cells.mean_score.reshape(shape),
            missing=self._cells.score_ratio.reshape(shape),
            excess=self._cells.residual_factor.reshape(shape) - 1,
            share=weight / weight.sum(axis=0),
            variance=self._cells.variance.reshape(shape),
            norm=problems.norm,
            # of each bin: 0 to its rows
            n_counts=tuple(rows.max(axis=1).astype(np.int64) + 1),
        )
        self._directions = [direction[positions] for direction in problems.directions]
        self._deviation = self._cells.deviation.reshape(shape)
        # 1. The statistic, the p-th power of the error, of each outcome,
        # (k_1, ..., k_size, n): the sum of what each number of events adds in its bin.
        power = problems.power(self._cells, norm=problems.norm)
        total = np.tile(weight.sum(axis=0), len(rows))
        share = power.share_of_bin * weight.sum() / total
        count = np.arange(max(self._laws.n_counts))
        frequency = np.minimum(count[:, None] / rows.ravel(), 1)
        terms = (power.power_of_bins(frequency) * share).reshape(-1, *shape)
        statistic = self._sums_of_outcomes(terms)
        observed = (power.observed_of_bins * share).reshape(shape).sum(axis=0)
        # 2. The outcomes whose statistic is at least the observed one, for the lower
        # limit, which only problems with a small p-value have. Statistics that differ
        # by rounding alone count as equal.
        largest = np.abs(statistic).reshape(-1, shape[1]).max(axis=0)
        slack = _ROUNDING * np.maximum(largest, np.abs(observed))
        null = self._laws.masses(self._laws.score, np.zeros(shape[1]))
        is_at_least = statistic >= observed - slack
        self._pvalue = _probability_of(is_at_least, null)
        self._is_rejected = self._pvalue < tail
        self._at_least = _Outcomes.of(is_at_least[..., self._is_rejected])
        # 3. For the upper limit: the outcomes whose statistic is at most the observed
        # one or, if that is larger, at most the median for calibrated scores. So the
        # interval is not empty if the observed value is unusually small.
        reference = observed + slack
        is_as_small = statistic <= reference
        null_small = _probability_of(is_as_small, null)
        below = np.flatnonzero(null_small < 0.5)
        if len(below):
            median = _medians(
                statistic[..., below].reshape(-1, len(below)),
                [mass[:, below] for mass in null],
            )
            reference[below] = np.maximum(reference[below], median + slack[below])
            is_as_small = statistic <= reference
        self._is_as_small = _Outcomes.of(is_as_small)
        self._null_small = self._is_as_small.probability(null)
        # 4. For true frequencies on the other side of the scores, where the calibrated
        # scores are not rejected: the outcomes whose deviation lies at least as far on
        # the observed side.
        factor = self._laws.share * self._directions[0]
        of_count = (count[:, None, None] / rows - self._laws.score) * factor
        observed_distance = (factor * self._deviation).sum(axis=0) * (1 - _ROUNDING)
        others = np.flatnonzero(~self._is_rejected)
        is_as_far = self._sums_of_outcomes(of_count[..., others])
        self._is_as_far = _Outcomes.of(is_as_far >= observed_distance[others])
        null_far = self._is_as_far.probability([mass[:, others] for mass in null])
        self._null_far = np.minimum(self._null_small[others], null_far)

    def _sums_of_outcomes(self, terms):
        """Return for every outcome, the numbers of events (k_1, ..., k_size) in the
        bins of a problem, the sum of the terms that these numbers have: (k_1, ...,
        k_size, n). `terms` (k, size, n) holds one for each number of each bin.
        """
        sums = terms[: self._laws.n_counts[0], 0]
        for j, n_counts in enumerate(self._laws.n_counts[1:], start=1):
            sums = sums[..., None, :] + terms[:n_counts, j]
        return sums

    def limits(self):
        """Return the p-th powers of the lower and of the upper limits of the error, (2,
        n). A lower limit is 0 unless calibration is rejected.
        """
        n = len(self._pvalue)
        low = np.zeros(n)
        rejected = np.flatnonzero(self._is_rejected)
        if len(rejected):
            low[rejected] = self._lower_limits(rejected)
        high = np.full(n, -np.inf)
        c_of_direction = []
        for direction in self._directions:
            search = _Search(self._laws, direction, [self._is_as_small], self._tail)
            c = search.crossing(self._null_small)
            c = np.where(c < np.inf, c, search.end)
            c_of_direction.append(c)
            high = np.maximum(high, search.power_at(c))
        # The true frequencies may also lie on the other side of the scores.
        others = np.flatnonzero(~self._is_rejected)
        if len(others) == 0:
            return low, np.maximum(low, high)
        # An outcome is as extreme as the observed one only if it also lies as far on
        # the side of the observed deviation.
        outcomes = [self._is_as_small.at(others), self._is_as_far]
        laws = self._laws.at(others)
        known_high = high[others]
        for direction, c in zip(self._directions, c_of_direction, strict=True):
            search = _Search(laws, -direction[:, others], outcomes, self._tail)
            # A c whose excess is not negative lies beyond the limit. If its error is at
            # most the known one, that of the limit is, too, and need not be sought.
            is_beyond = search.power_at(c[others]) <= known_high
            is_beyond &= search.excess(c[others]) >= 0
            sought = np.flatnonzero(~is_beyond)
            if len(sought) == 0:
                continue
            search = search.at(sought)
            c = search.crossing(self._null_far[sought])
            c = np.where(c < np.inf, c, search.end)
            sought = others[sought]
            high[sought] = np.maximum(high[sought], search.power_at(c))
        return low, np.maximum(low, high)

    def _lower_limits(self, chosen):
        """Return the p-th powers (k,) of the lower limits of the rejected problems, at
        positions `chosen` (k,): at the smallest c for which outcomes at least as large
        as the observed one have the probability `tail`.
        """
        laws = self._laws.at(chosen)
        low = np.full(len(chosen), np.inf)
        outcomes = [self._at_least]
        for direction in self._directions:
            search = _Search(
                laws, direction[:, chosen], outcomes, self._tail, rises=True
            )
            c = search.crossing(self._pvalue[chosen])
            is_found = c < np.inf
            power = search.power_at(np.where(is_found, c, 0.0))
            low = np.minimum(low, np.where(is_found, power, np.inf))
        # No hypothesis reaches the observed value: its frequencies are taken to be
        # without noise.
        return np.where(low < np.inf, low, laws.power(self._deviation[:, chosen]))


class _Laws(NamedTuple):
    """What the distribution of the number of events of each bin depends on, arrays
    (size, n); see `CountDraws`.
    """

    rows: np.ndarray  # numbers of rows
    score: np.ndarray  # mean scores
    missing: np.ndarray  # shares by which the variance is below the binomial one
    excess: np.ndarray  # shares by which observed residuals vary more than that
    share: np.ndarray  # shares of the weight of the problem
    variance: np.ndarray  # of the event frequencies of calibrated scores
    norm: float
    n_counts: tuple  # of each bin, 1 more than its largest number of rows

    def at(self, chosen):
        """Return the laws of some problems."""
        arrays = {
            name: array[:, chosen]
            for name, array in self._asdict().items()
            if isinstance(array, np.ndarray)
        }
        return self._replace(**arrays)

    def masses(self, frequency, c):
        """Return for each bin the probabilities (k_j, n) of its numbers of events under
        event frequencies (size, n), which have share `c` (n,) of the excess variance.
        """
        factor = 1 + np.minimum(c, 1.0) * self.excess
        missing = np.clip(1 - (1 - self.missing) * factor, 0, 1)
        masses = count_masses(
            self.rows.ravel(), frequency.ravel(), missing.ravel(), max(self.n_counts)
        ).reshape(-1, *self.rows.shape)
        return [masses[:k, j] for j, k in enumerate(self.n_counts)]

    def power(self, deviation):
        """Return the p-th powers (n,) of errors without noise, for deviations of event
        frequencies from scores (size, n).
        """
        return (np.abs(deviation) ** self.norm * self.share).sum(axis=0)


class _Search:
    """Search of a limit of some problems among the hypotheses f = s + c d along one
    direction each.

    Parameters
    ----------
    laws : _Laws
        The problems.
    direction : ndarray of shape (size, n)
        Their directions d.
    outcomes : list of _Outcomes
        The limit is where the least of their probabilities is the tail.
    tail : float
        The probability that a limit is wrong.
    rises : bool, default=False
        Whether the probabilities rise with c, as for a lower limit.
    """

    def __init__(self, laws, direction, outcomes, tail, *, rises=False):
        self._laws = laws
        self._direction = direction
        self._outcomes = outcomes
        self._tail = tail
        self._sign = 1.0 if rises else -1.0  # makes the excess rise with c
        # From this c on every frequency is 0 or 1, or equals its score.
        room = np.where(direction > 0, 1 - laws.score, laws.score)
        steps = np.zeros(room.shape)
        np.divide(room, np.abs(direction), out=steps, where=direction != 0)
        self.end = steps.max(axis=0)

    def at(self, chosen):
        """Return the search of some of the problems, at increasing positions."""
        if len(chosen) == len(self.end):
            return self
        return _Search(
            self._laws.at(chosen),
            self._direction[:, chosen],
            [outcomes.at(chosen) for outcomes in self._outcomes],
            self._tail,
            rises=self._sign > 0,
        )

    def power_at(self, c):
        """Return the p-th powers (n,) of the errors of the hypotheses c (n,)."""
        return self._laws.power(self._frequency(c) - self._laws.score)

    def excess(self, c):
        """Return the normal quantile of the probability of the outcomes at c (n,) minus
        that of the tail probability. If the probability falls with c, the sign is
        changed, so that the excess rises with c in either case.
        """
        masses = self._laws.masses(self._frequency(c), c)
        probabilities = [outcomes.probability(masses) for outcomes in self._outcomes]
        return self._excess_of(np.min(probabilities, axis=0))

    def _excess_of(self, probability):
        """Return the excess (n,) of probabilities (n,)."""
        quantile = ndtri(np.clip(probability, 1e-300, _ALMOST_ONE))
        return self._sign * (quantile - ndtri(self._tail))

    def crossing(self, null_probability):
        """Return the c at which the excess reaches 0, (n,); inf where it stays
        negative. `null_probability` (n,) is the least probability of the outcomes at
        c = 0.
        """
        laws = self._laws
        # The first step is half of the c whose deviations are as large as the noise.
        noise = (laws.share * laws.variance).sum(axis=0)
        size = (laws.share * self._direction**2).sum(axis=0)
        ratio = np.divide(noise, size, out=np.zeros(len(size)), where=size > 0)
        high = np.minimum(np.maximum(0.5 * np.sqrt(ratio), SMALLEST_STEP), self.end)
        low = np.zeros(len(high))
        crossing = np.full(len(high), np.inf)
        at_low = self._excess_of(null_probability)
        at_high = np.empty(len(high))
        is_at_0 = at_low >= 0
        crossing[is_at_0] = 0
        # Growing steps until the excess is no longer negative. Problems that reach the
        # end of the search before have no crossing.
        left = np.flatnonzero(~is_at_0)
        bracketed = []
        while len(left):
            at_high[left] = self.at(left).excess(high[left])
            is_above = at_high[left] >= 0
            bracketed.append(left[is_above])
            left = left[~is_above & (high[left] < self.end[left])]
            low[left] = high[left]
            at_low[left] = at_high[left]
            high[left] = np.minimum(_GROWTH * high[left], self.end[left])
        # The roots between the last two steps.
        bracketed = np.sort(np.concatenate([*bracketed, left]))
        if len(bracketed):
            crossing[bracketed] = bracketed_root(
                self.at(bracketed),
                low[bracketed],
                high[bracketed],
                ends=(at_low[bracketed], at_high[bracketed]),
                tolerance=_PRECISION,
            )
        return crossing

    __call__ = excess

    def _frequency(self, c):
        """Return the event frequencies (size, n) of the hypotheses c (n,)."""
        return (self._laws.score + c * self._direction).clip(0, 1)


class _Outcomes:
    """A set of outcomes (k_1, ..., k_size) for each of n problems, of which the masses
    of their bins give the probability.

    Along the last bin, the outcomes of a set are mostly a single run of counts, or all
    but a run. So a set is stored by its ends: with the counts of the other bins given,
    its probability is a sum of a few values of the tails of the last count.

    Parameters
    ----------
    entries : list of ndarray of int, shape (k_1, ..., k_(size - 1), n)
        Positions of the values to be added up in a raveled table (n_values, width) of
        `_tails`, whose columns are the problems.
    width : int
        The number of columns of the table, at least n.
    """

    def __init__(self, entries, width):
        self._entries = entries
        self._width = width

    @classmethod
    def of(cls, is_in_set):
        """Return the set of the outcomes at which a mask (k_1, ..., k_size, n) is
        True.
        """
        n_counts, width = is_in_set.shape[-2:]
        # 1. Whether a run of the last count begins or has ended at 0, ..., n_counts.
        is_end = np.empty((*is_in_set.shape[:-2], n_counts + 1, width), dtype=bool)
        is_end[..., 0, :] = is_in_set[..., 0, :]
        np.not_equal(
            is_in_set[..., 1:, :], is_in_set[..., :-1, :], out=is_end[..., 1:-1, :]
        )
        is_end[..., -1, :] = is_in_set[..., -1, :]
        # 2. The ends one after the other; n_counts + 1 where there are no more.
        # Their number up to each count, added up below, in the smallest integers.
        n_ends = is_end.astype(np.min_scalar_type(n_counts + 1))
        for count in range(1, n_counts + 1):
            n_ends[..., count, :] += n_ends[..., count - 1, :]
        begins_at_0 = is_end[..., 0, :]
        problem = np.arange(width)
        entries = []
        for k in range(int(n_ends[..., -1, :].max(initial=0))):
            is_before = (n_ends <= k).view(np.uint8).astype(n_ends.dtype, copy=False)
            end = np.add.reduce(is_before, axis=-2, dtype=n_ends.dtype).astype(np.intp)
            # P(count >= begin) - P(count >= end) of a run, from the first two blocks of
            # the table. Of one that begins at 0 it is P(count < end), from the third.
            row = end + (k % 2) * (n_counts + 2)
            if k == 0:
                row = np.where(begins_at_0, n_counts + 1, row)
            elif k == 1:
                row = np.where(begins_at_0, end + 2 * (n_counts + 2), row)
            entries.append(row * width + problem)
        return cls(entries, width)

    def at(self, chosen):
        """Return the sets of some of the problems."""
        # Their columns in the table are the first ones.
        moved = chosen - np.arange(len(chosen))
        entries = [entry.take(chosen, axis=-1) - moved for entry in self._entries]
        return _Outcomes(entries, self._width)

    def probability(self, masses):
        """Return the probability (n,) of the sets, for the masses (k_j, n) of the
        events of each bin.
        """
        n = masses[-1].shape[1]
        if not self._entries:
            return np.zeros(n)
        tails = self._tails(masses[-1])
        sums = tails.take(self._entries[0])
        for entry in self._entries[1:]:
            sums += tails.take(entry)
        for mass in reversed(masses[:-1]):
            by_last = sums.reshape(-1, *mass.shape)
            sums = np.einsum("ijn,jn->in", by_last, mass)
        return sums.reshape(n)

    def _tails(self, mass):
        """Return the table of the tails of the last count, for its masses (k, n): rows
        for P(count >= j), j = 0, ..., k + 1, for the same with the opposite sign, and
        for P(count < j).
        """
        k, n = mass.shape
        tails = np.empty((3, k + 2, self._width))
        at_least, minus_at_least, below = tails[..., :n]
        at_least[k:] = 0
        accumulate_lines(np.add, mass[::-1], out=at_least[k - 1 :: -1])
        np.negative(at_least, out=minus_at_least)
        below[0] = 0
        accumulate_lines(np.add, mass, out=below[1 : k + 1])
        return tails


def _probability_of(is_in_set, masses):
    """Return the probability (n,) of the outcomes that are True (k_1, ..., k_size, n),
    for the masses (k_j, n) of the events of each bin. A set whose probability is asked
    for once needs no `_Outcomes`.
    """
    sums = np.einsum("...jn,jn->...n", is_in_set, masses[-1])
    for mass in reversed(masses[:-1]):
        sums = np.einsum("...jn,jn->...n", sums, mass)
    return sums


def _medians(statistic, masses):
    """Return the medians (n,) of the statistics (n_outcomes, n), for the masses (k_j,
    n) of the events of each bin: the smallest value with half of the probability up to
    it.
    """
    probability = masses[0]
    for mass in masses[1:]:
        probability = probability[..., None, :] * mass
    probability = probability.reshape(statistic.shape)
    # 1. The cell of the median, for each problem: a sort of all outcomes takes longer
    # than their probabilities in cells of equal width, and a sort of those in one.
    n = statistic.shape[1]
    lowest = statistic.min(axis=0)
    width = (statistic.max(axis=0) - lowest) / _MEDIAN_CELLS
    cell = ((statistic - lowest) / np.where(width > 0, width, 1)).astype(np.intp)
    np.minimum(cell, _MEDIAN_CELLS - 1, out=cell)
    first_cell = _MEDIAN_CELLS * np.arange(n)  # of each problem among those of all
    cell += first_cell
    in_cell = np.bincount(cell.ravel(), probability.ravel(), _MEDIAN_CELLS * n)
    cumulative = np.cumsum(in_cell.reshape(n, _MEDIAN_CELLS), axis=1).ravel()
    half = cumulative[first_cell + _MEDIAN_CELLS - 1] * (0.5 * (1 - _ROUNDING))
    is_reached = cumulative.reshape(n, _MEDIAN_CELLS) >= half[:, None]
    median_cell = first_cell + is_reached.argmax(axis=1)
    needed = half - (cumulative - in_cell)[median_cell]
    # 2. The outcomes in it: a line for each problem, filled up with others that are
    # infinite and have the probability 0.
    problem, outcome = np.nonzero((cell == median_cell).T)
    n_inside = np.bincount(problem)
    first = np.cumsum(n_inside) - n_inside
    place = np.arange(len(problem)) - first[problem]
    inside = np.full((n, n_inside.max()), np.inf)
    inside[problem, place] = statistic[outcome, problem]
    mass = np.zeros(inside.shape)
    mass[problem, place] = probability[outcome, problem]
    order = np.argsort(inside, axis=1)
    cumulative = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)
    # The largest one has what the sum of the others lacks by rounding.
    n_below = np.minimum(np.sum(cumulative < needed[:, None], axis=1), n_inside - 1)
    row = np.arange(n)
    return inside[row, order[row, n_below]]
