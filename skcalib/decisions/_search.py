"""The search for a threshold: nested sets of accepted rows, their tests, and where the
sequence of tests starts.
"""

from math import ceil, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, ndtr, ndtri
from scipy.stats import binom

from skcalib._input.scalars import as_numbers
from skcalib._input.scores import first_index
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
        """Return the sets of samples with scores (n,) at increasing thresholds;
        `is_error` (n,) indicates whether accepting a sample is an error.
        """
        ordered, wrong = sorted_rows(scores, is_error)
        thresholds = thresholds[::-1]  # from strict to lenient
        # In the precision of the scores, as `scores >= float(threshold)` compares them:
        # the position of the lowest score of each set.
        first = np.searchsorted(ordered, thresholds.astype(scores.dtype))
        n_rows = len(scores) - first
        # Sums over the rows from each position on, and 0 after the last.
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
        """Return the trials of each set, and the errors among them.

        Parameters
        ----------
        n_rows, n_wrong : ndarray of shape (n_sets,) or (n_clusters,)
            Numbers of accepted rows, and of those whose acceptance is an error.
        n_all, all_wrong : int, or ndarray of shape (n_clusters,)
            The same numbers if all samples were accepted.
        """
        # Rows that would have been right to accept, and were not.
        missed = (n_all - all_wrong) - (n_rows - n_wrong)
        # Trials that are the same for all sets get the shape of the sets by + 0.
        if self.promise == "recall":
            return n_all - all_wrong + 0 * n_rows, missed
        if self.promise == "false_positive_rate":
            return all_wrong + 0 * n_rows, n_wrong
        if self.promise == "accuracy":
            return n_all + 0 * n_rows, n_wrong + missed
        if self.promise == "answered_and_wrong":
            return n_all + 0 * n_rows, n_wrong
        return n_rows, n_wrong


def limit_of(promise, target):
    """Return the largest error rate that the target of a guarantee allows."""
    if promise in ("precision", "recall", "accuracy"):
        return round(1 - target, 15)  # 1 - .95 as .05
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
    """Return the probability (n_sets,) that each set passes its test if the scores are
    calibrated. It does not depend on the labels.

    It is Phi((c + 1/2 - n r) / sqrt(n r (1 - r))), where c is the largest number of
    errors that passes, n the `trials` and r the error `rate` predicted by the scores,
    each of shape (n_sets,); `limit` is the largest rate allowed.
    """
    sizes, size_of_set = np.unique(np.maximum(trials, 1), return_inverse=True)
    most = most_errors(sizes, limit, level)
    # `binomial_pvalue` is 1 above this number.
    most = np.minimum(most, np.floor(sizes * limit - 1 + ROUNDING))
    most = most[size_of_set]
    mean = trials * rate
    # Positive, since it is divided by.
    spread = np.sqrt(np.maximum(mean * (1 - rate), np.finfo(np.float64).tiny))
    passing = ndtr((most + 0.5 - mean) / spread)
    return np.where((trials > 0) & (most >= 0), passing, 0.0)


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
    """Return two pairs (position among the sets, level) at which sequences of tests
    start: the largest set that is likely to pass if the scores are calibrated, with 3/4
    of the level, and the first set that can pass at all, with the remaining 1/4.

    A position is None if there is no such set.

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
        # Bets need more evidence than a binomial: with these two factors, of the few
        # that were tried, most rows were answered in ten simulated worlds.
        rows_per_unit = 2 * rows_per_unit
        power_level = power_level / 5
    expected_wrong = sets.n_rows * sets.predicted
    # The most lenient set, at threshold 0 unless the user left that out, stands for all
    # samples.
    expected_all_wrong = expected_wrong[-1]
    # For all guarantees: the smallest power of each set, and whether it has enough
    # trials.
    power = np.full(len(sets.n_rows), 1.0)
    are_enough = np.full(len(sets.n_rows), True)
    for guarantee in guarantees:
        trials, wrong = guarantee.counts(
            sets.n_rows, expected_wrong, n_all, expected_all_wrong
        )
        rate = np.clip(wrong / np.maximum(trials, 1), 0, 1)
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
        (guided_start(sets.n_rows, power), _GUIDED * level),
        (first, second_start_level(level)),
    ]


def second_start_level(level):
    """Return the share of a level for the second of the two `guided_starts`."""
    return (1 - _GUIDED) * level


def most_lenient(pvalue, n_rows, starts):
    """Return the position of the most lenient threshold that passes, or None.

    `pvalue` and `n_rows` (n_sets,) are ordered from strict to lenient; `starts` are
    pairs of a position (or None) and a level. From each start, the sets are tested as
    long as the p-values are within the level. This fixed sequence needs no correction
    for the number of thresholds, because an error is made only if the first set that
    violates the guarantee passes. If several sequences find a threshold, the one that
    accepts the most rows is used; of thresholds that accept the same rows, the
    strictest is returned.
    """
    best = None
    for start, level in starts:
        if start is None:
            continue
        failed = np.flatnonzero(pvalue[start:] > level)
        n_passed = failed[0] if len(failed) else len(pvalue) - start
        last = start + n_passed - 1
        most_rows = 0 if best is None else n_rows[best]
        if last >= start and n_rows[last] > most_rows:
            best = start + int(np.argmax(n_rows[start:] == n_rows[last]))
    return best


def rows_needed(n_all, counts, level):
    """Return the approximate number of samples required to pass all tests at the
    observed error rates. None means that no set has rates below the limits, or that the
    number would be impractically large.

    Parameters
    ----------
    n_all : int
        Number of available rows.
    counts : list of tuple of (trials, n_wrong, limit)
        Numbers of trials and errors of each set, and the limit, for each guarantee.
    level : float
        Level of the test.
    """
    needed = np.zeros(len(counts[0][0]))
    for trials, n_wrong, limit in counts:
        # Half an error more: a few rows without an error say little.
        rate = (n_wrong + 0.5) / (trials + 1)
        margin = np.where(trials > 0, limit - rate, 0.0)
        is_below = margin > ROUNDING
        # By the normal approximation the rate must lie z sqrt(limit (1 - limit) / n)
        # below the limit, and without an error (1 - limit)^n must be at most the level.
        variance = limit * (1 - limit)
        by_margin = ndtri(level) ** 2 * variance / np.where(is_below, margin, 1.0) ** 2
        needed_trials = np.maximum(log(level) / log1p(-limit), by_margin)
        # trials per sample in each set
        share = np.maximum(trials, 1) / n_all
        needed = np.maximum(needed, np.where(is_below, needed_trials / share, np.inf))
    fewest = needed.min()
    if fewest > _MOST_NEEDED:
        return None
    return max(n_all + 1, ceil(fewest))
