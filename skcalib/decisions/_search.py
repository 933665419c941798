"""The search for a threshold: nested sets of accepted rows, their tests, and where the
sequence of tests starts.
"""

from math import ceil, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, ndtr, ndtri
from scipy.stats import binom

from skcalib._input.scalars import as_numbers
from skcalib._input.tensors import first_index
from skcalib._rows.sorting import sorted_rows

_POWER = 0.9  # probability that the test at the start passes if the scores are right
ROUNDING = 1e-9  # allowance for rounding of a limit such as 1 - .9
# Share of the level for the start that the scores suggest. The rest is for the
# strictest start that can pass.
_GUIDED = 0.75
_MOST_NEEDED = 10**9  # nobody waits for more rows


def check_thresholds(thresholds, *, below_one=False):
    """Return distinct thresholds in [0, 1] in increasing order, or raise an error;
    `below_one` excludes 1.

    None stands for a grid that suits all data: steps of .001 from .1 to .9, and, below
    and above, all values of p or 1 - p with two significant digits.
    """
    if thresholds is None:
        # digits / unit runs from 1.0e-9 to .099, with two significant digits.
        digits = np.arange(10, 100)
        unit = 10.0 ** np.arange(10, 2, -1)[:, None]
        middle = np.arange(100, 901) / 1000
        below = (digits / unit).ravel()
        above = ((unit - digits) / unit).ravel()
        thresholds = np.concatenate(([0.0, 1.0], middle, below, above))
    found = np.atleast_1d(as_numbers(thresholds, "thresholds"))
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(
            f"thresholds must be a list of numbers, found shape {found.shape}."
        )
    is_below_end = found < 1 if below_one else found <= 1
    outside = ~((found >= 0) & is_below_end)
    if outside.any():
        entry = first_index(outside)[0]
        end = "below 1" if below_one else "at most 1"
        raise ValueError(
            f"thresholds must be at least 0 and {end}, but entry {entry} is"
            f" {found[entry]:g}."
        )
    return np.unique(found)


class AcceptedSets(NamedTuple):
    """Sets of samples at or above each threshold, from strict to lenient.

    Attributes
    ----------
    threshold : ndarray of shape (n_sets,)
        The thresholds, in decreasing order.
    n_rows, n_wrong : ndarray of int, shape (n_sets,)
        Number of samples in each set, and of those whose acceptance is an error.
    predicted : ndarray of shape (n_sets,)
        Error rate predicted by the scores s: the mean of 1 - s; 0 for an empty set.
    """

    threshold: np.ndarray
    n_rows: np.ndarray
    n_wrong: np.ndarray
    predicted: np.ndarray

    @classmethod
    def from_rows(cls, scores, is_error, thresholds):
        """Return, for each threshold, the set of samples with scores (n,) at or above
        it, from strict to lenient.

        The thresholds are increasing; `is_error` (n,) says whether accepting a sample
        is an error.
        """
        ordered, wrong = sorted_rows(scores, is_error)
        thresholds = thresholds[::-1]
        # A set contains all samples from a position in the order of scores on.
        # Thresholds have the precision of the scores, as `scores >= float(threshold)`
        # compares them.
        first = np.searchsorted(ordered, thresholds.astype(scores.dtype))
        n_rows = len(scores) - first
        # Sums over the samples from each position on, and 0 after the last: numbers of
        # errors, and of errors that the scores predict.
        wrong_from = np.append(np.cumsum(wrong[::-1])[::-1], 0)
        predicted_from = np.cumsum(1 - ordered[::-1], dtype=np.float64)[::-1]
        predicted_from = np.append(predicted_from, 0)
        n_wrong = wrong_from[first]
        predicted = predicted_from[first] / np.maximum(n_rows, 1)
        return cls(thresholds, n_rows, n_wrong, predicted)


class Guarantee(NamedTuple):
    """A guarantee as a limit on an error rate.

    Attributes
    ----------
    promise : str
        Name of the guarantee.
    limit : float
        Largest error rate among the trials of the guarantee; 1 - target for rates that
        have a lower limit, such as precision.
    """

    promise: str
    limit: float

    def counts(self, n_rows, n_wrong, n_all, all_wrong):
        """Return the number of trials of each set, the samples that the rate of the
        guarantee is about, and the number of errors among them.

        The sets may also be those of each cluster.

        Parameters
        ----------
        n_rows, n_wrong : ndarray of shape (n_sets,) or (n_clusters,)
            Numbers of accepted rows, and of those whose acceptance is an error.
        n_all, all_wrong : int, or ndarray of shape (n_clusters,)
            The same numbers if all samples were accepted.
        """
        # Rows that would have been right to accept, and were not.
        missed = (n_all - all_wrong) - (n_rows - n_wrong)
        # Gives numbers that are the same for all sets the shape of the sets.
        zeros = np.zeros_like(n_rows)
        if self.promise == "recall":
            return n_all - all_wrong + zeros, missed
        if self.promise == "false_positive_rate":
            return all_wrong + zeros, n_wrong
        if self.promise == "accuracy":
            return n_all + zeros, n_wrong + missed
        if self.promise == "answered_and_wrong":
            return n_all + zeros, n_wrong
        return n_rows, n_wrong


def largest_error_rate(promise, target):
    """Return the largest error rate that the target of a guarantee allows: 1 - target
    for precision, recall and accuracy, of which the target is a lower limit, else the
    target itself. `promise` is the name of the guarantee, such as "precision".
    """
    if promise in ("precision", "recall", "accuracy"):
        return round(1 - target, 15)  # so that 1 - .95 is .05
    return target


def binomial_pvalue(n_wrong, trials, limit):
    """Return P(Bin(trials, limit) <= n_wrong), or 1 if `n_wrong` exceeds `trials limit
    - 1`.

    Up to that value, the p-value is also valid for rows with different error
    probabilities (Hoeffding 1956).
    """
    trials = np.maximum(trials, 1)
    pvalue = bdtr(n_wrong, trials, limit)
    return np.where(n_wrong <= trials * limit - 1 + ROUNDING, pvalue, 1.0)


def most_errors(n_rows, target, level):
    """Return the largest number of errors c among `n_rows` that passes a test at this
    level, P(Bin(n_rows, target) <= c) <= level; -1 if 0 errors do not pass.
    """
    quantile = binom.ppf(level, n_rows, target)
    passes = bdtr(quantile, n_rows, target) <= level
    return np.where(passes, quantile, quantile - 1).astype(int)


def predicted_power(trials, rate, limit, level):
    """Return the probability (n_sets,) that each set passes the binomial test of its
    error rate, if the scores are calibrated. It does not depend on the labels.

    The number of errors is taken as normal: Phi((c + 1/2 - n r) / sqrt(n r (1 - r))),
    where c is the largest number of errors that passes.

    Parameters
    ----------
    trials : ndarray of int, shape (n_sets,)
        Number n of samples that the rate is about.
    rate : ndarray of shape (n_sets,)
        Error rate r that the scores predict.
    limit : float
        Largest error rate allowed.
    level : float
        Level of the test.
    """
    # The most errors that pass the test depend on the number of trials alone: they are
    # computed once for each.
    sizes, size_of_set = np.unique(np.maximum(trials, 1), return_inverse=True)
    most = most_errors(sizes, limit, level)
    # `binomial_pvalue` is 1 above this number.
    most = np.minimum(most, np.floor(sizes * limit - 1 + ROUNDING))
    most = most[size_of_set]
    # The normal approximation to the probability of at most this number of errors.
    mean = trials * rate
    # Positive, since it is divided by.
    deviation = np.sqrt(np.maximum(mean * (1 - rate), np.finfo(np.float64).tiny))
    power = ndtr((most + 0.5 - mean) / deviation)
    return np.where((trials > 0) & (most >= 0), power, 0.0)


def guided_start(n_rows, power):
    """Return the position of the largest set whose power is at least .9, or of the set
    with the largest power if there is no such set; None if no set can pass.

    `n_rows` and `power` are (n_sets,). Sets of equal size are identical; the position
    is that of the first.
    """
    if not power.any():
        return None
    largest = n_rows[power >= min(_POWER, power.max())].max()
    return int(np.argmax(n_rows == largest))


class Start(NamedTuple):
    """Where a sequence of tests starts.

    Parameters
    ----------
    position : int or None
        Position among the sets, from strict to lenient; None if the sequence has no
        start, because no set can pass.
    level : float
        Level of each test.
    """

    position: int | None
    level: float


def guided_starts(
    guarantees,
    sets,
    n_all,
    level,
    *,
    of_other_rows=False,
    rows_per_unit=None,
    can_pass=None,
):
    """Return two `Start` of sequences of tests: at the largest set that is likely to
    pass if the scores are calibrated, with 3/4 of the level, and at the first set that
    can pass at all, with the remaining 1/4.

    Parameters
    ----------
    guarantees : list of Guarantee
        The guarantees that must hold simultaneously.
    sets : AcceptedSets
        The sets, with their sizes and predicted error rates.
    n_all : int
        Total number of samples.
    level : float
        Joint level of both starts.
    of_other_rows : bool, default=False
        Whether the sizes are predicted from other samples.
    rows_per_unit : float, default=None
        Number of rows that may have the information of only one: the mean size of a
        row's cluster. None means independent rows.
    can_pass : ndarray of bool, default=None
        Whether a set passes without an error at the level of the second start; None
        means that the binomial test decides.
    """
    power_level = _GUIDED * level
    if rows_per_unit is None:
        rows_per_unit = 1.0
    else:
        # The tests of clusters are bets, which need more evidence than a binomial test:
        # with these two factors, of the few that were tried, most rows were answered in
        # ten simulated worlds.
        rows_per_unit = 2 * rows_per_unit
        power_level = power_level / 5
    n_wrong = sets.n_rows * sets.predicted  # as predicted by the scores
    # The most lenient set, at threshold 0 unless the user left that out, stands for all
    # samples.
    all_wrong = n_wrong[-1]
    # Over all guarantees: the smallest power of each set, and whether the set has
    # enough trials to pass without an error.
    power = np.full(len(sets.n_rows), 1.0)
    are_enough = np.full(len(sets.n_rows), True)
    for guarantee in guarantees:
        trials, errors = guarantee.counts(sets.n_rows, n_wrong, n_all, all_wrong)
        rate = np.clip(errors / np.maximum(trials, 1), 0, 1)
        n_units = np.rint(trials / rows_per_unit).astype(np.int64)
        guarantee_power = predicted_power(n_units, rate, guarantee.limit, power_level)
        power = np.minimum(power, guarantee_power)
        # Without an error n trials pass if (1 - limit)^n is at most the level.
        fewest = log(second_start_level(level)) / log1p(-guarantee.limit)
        if of_other_rows:
            # The number of trials here varies: two standard deviations more.
            fewest += 2 * fewest**0.5
        are_enough &= trials >= fewest
    if can_pass is not None:
        are_enough = can_pass
    first = int(np.argmax(are_enough)) if are_enough.any() else None
    return [
        Start(guided_start(sets.n_rows, power), _GUIDED * level),
        Start(first, second_start_level(level)),
    ]


def second_start_level(level):
    """Return the share of a level for the second of the two `guided_starts`."""
    return (1 - _GUIDED) * level


def most_lenient(pvalue, n_rows, starts):
    """Return the position of the most lenient set that passes, or None.

    From each start, the sets are tested, from strict to lenient, as long as the
    p-values are within the level. Such a fixed sequence needs no correction for the
    number of tests, because an error is made only if the first set that violates the
    guarantee passes. If several sequences find a set, the one with the most rows is
    used; of sets with equally many rows, which are the same, the strictest.

    Parameters
    ----------
    pvalue, n_rows : ndarray of shape (n_sets,)
        P-value and number of rows of each set, from strict to lenient.
    starts : list of Start
        Where sequences of tests start, and their levels.
    """
    best = None
    most_rows = 0
    for start, level in starts:
        if start is None:
            continue
        failed = np.flatnonzero(pvalue[start:] > level)
        n_passed = failed[0] if len(failed) else len(pvalue) - start
        last_passed = start + n_passed - 1
        if n_passed > 0 and n_rows[last_passed] > most_rows:
            most_rows = n_rows[last_passed]
            best = start + int(np.argmax(n_rows[start:] == most_rows))
    return best


def rows_needed(n_all, counts, level):
    """Return the approximate number of samples with which some set would pass all its
    tests, if its error rates stay as observed. None means that no set has rates below
    the limits, or that the number would be impractically large.

    Parameters
    ----------
    n_all : int
        Number of available rows.
    counts : list of tuple of (trials, n_wrong, limit)
        For each guarantee the numbers of trials and of errors of each set, (n_sets,),
        and the largest error rate allowed.
    level : float
        Level of the test.
    """
    n_sets = len(counts[0][0])
    needed = np.zeros(n_sets)
    for trials, n_wrong, limit in counts:
        # Half an error more: a few rows without an error say little.
        rate = (n_wrong + 0.5) / (trials + 1)
        margin = np.where(trials > 0, limit - rate, 0.0)
        is_below = margin > ROUNDING
        # By the normal approximation a set of n trials passes if its margin is
        # z sqrt(limit (1 - limit) / n). It also needs (1 - limit)^n <= level, with
        # which it passes without an error.
        variance = limit * (1 - limit)
        by_margin = ndtri(level) ** 2 * variance / np.where(is_below, margin, 1.0) ** 2
        without_error = log(level) / log1p(-limit)
        needed_trials = np.maximum(without_error, by_margin)
        trials_per_sample = np.maximum(trials, 1) / n_all
        needed_samples = np.where(is_below, needed_trials / trials_per_sample, np.inf)
        needed = np.maximum(needed, needed_samples)
    fewest = needed.min()
    if fewest > _MOST_NEEDED:
        return None
    return max(n_all + 1, ceil(fewest))
