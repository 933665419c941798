"""Thresholds that are fixed before any data, and the search along them from strict to lenient."""

from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, ndtr, ndtri
from scipy.stats import binom

from skcalib._input.scalars import as_numbers
from skcalib._input.scores import first_index
from skcalib._rows.sorting import sorted_rows
from skcalib.decisions._certified import CertifiedThreshold

_POWER = 0.9  # predicted chance that the test at the start rejects


def check_thresholds(thresholds, *, below_one=False):
    """Return thresholds in increasing order, without repetition: numbers from 0 to 1.

    None is a grid for all data: steps of .001 from .1 to .9, and two digits of p below and of 1 - p above.
    """
    if thresholds is None:
        digits, unit = np.arange(10, 100), 10.0 ** np.arange(10, 2, -1)[:, None]
        thresholds = np.concatenate(([0.0, 1.0], np.arange(100, 901) / 1000, *digits / unit, *(unit - digits) / unit))
    found = np.atleast_1d(as_numbers(thresholds, "thresholds"))
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(f"thresholds must be a list of numbers, found the shape {found.shape}.")
    outside = ~((found >= 0) & ((found < 1) if below_one else (found <= 1)))
    if outside.any():
        entry, end = first_index(outside)[0], "below 1" if below_one else "at most 1"
        raise ValueError(f"thresholds must be at least 0 and {end}, but entry {entry} is {found[entry]:g}.")
    return np.unique(found)


class AcceptedSets(NamedTuple):
    """The rows at or above each threshold, from strict to lenient.

    `n_rows` and `n_wrong` count them, `predicted` is the mean of 1 - s among them (0 where there are none).
    """

    threshold: np.ndarray
    n_rows: np.ndarray
    n_wrong: np.ndarray
    predicted: np.ndarray

    @classmethod
    def from_rows(cls, scores, wrong, thresholds):
        """Sum up rows: scores (n,), whether something is wrong with each, thresholds in increasing order."""
        ordered, wrong = sorted_rows(scores, wrong)
        thresholds = thresholds[::-1]
        # In the precision of the scores, as `scores >= float(threshold)` compares them.
        first = np.searchsorted(ordered, thresholds.astype(scores.dtype))
        n_rows, n_wrong = len(scores) - first, np.append(np.cumsum(wrong[::-1])[::-1], 0)[first]
        predicted = np.append(np.cumsum(1 - ordered[::-1], dtype=np.float64)[::-1], 0)[first]
        return cls(thresholds, n_rows, n_wrong, predicted / np.maximum(n_rows, 1))


def most_errors(n_rows, target, level):
    """Return the largest c with P(Bin(n_rows, target) <= c) <= level, -1 where there is none."""
    quantile = binom.ppf(level, n_rows, target)
    return np.where(bdtr(quantile, n_rows, target) <= level, quantile, quantile - 1).astype(int)


def guided_start(n_rows, predicted, target, level):
    """Return the position of the largest set that is expected to pass with a power of .9, None if none can pass.

    Where no set has this power it is the one that has most. The power is Phi((c + 1/2 - n r) / sqrt(n r (1 - r))), c
    the largest number of errors that passes and r the mean of 1 - s. Labels have no say in it.
    """
    sizes, at = np.unique(np.maximum(n_rows, 1), return_inverse=True)
    most = np.minimum(most_errors(sizes, target, level), np.floor(sizes * target - 1))[at]
    mean = n_rows * predicted
    spread = np.sqrt(np.maximum(mean * (1 - predicted), np.finfo(np.float64).tiny))
    power = np.where((n_rows > 0) & (most >= 0), ndtr((most + 0.5 - mean) / spread), 0.0)
    if not power.any():
        return None
    return int(np.argmax(n_rows == n_rows[power >= min(_POWER, power.max())].max()))


def certified(promised, sets, trials, pvalue, starts, limit):
    """Return the most lenient of the tested thresholds that passes; see `most_lenient` for the starts."""
    best = most_lenient(pvalue, sets.n_rows, starts)
    if best is None:
        needed = rows_needed(promised["n_samples"], trials, sets.n_wrong, limit, min(level for _, level in starts))
        return CertifiedThreshold(**promised, threshold=np.inf, n_accepted=0, n_wrong=0, pvalue=1.0, n_needed=needed)
    seen = {"threshold": sets.threshold, "n_accepted": sets.n_rows, "n_wrong": sets.n_wrong, "pvalue": pvalue}
    return CertifiedThreshold(**promised, **{name: values[best].item() for name, values in seen.items()})


def most_lenient(pvalue, n_rows, starts):
    """Return the position of the most lenient threshold that passes, None if there is none.

    From each start, a pair of a position (or None) and a level, the sequence goes on while p-values are within the
    level. The first hypothesis that is false is tested at this level, whatever comes after it: nothing is corrected
    for the number of thresholds. Of thresholds that accept the same rows the strictest is returned.
    """
    best = None
    for start, level in starts:
        if start is not None:
            failed = np.flatnonzero(pvalue[start:] > level)
            last = start + (failed[0] if len(failed) else len(pvalue) - start) - 1
            if last >= start and n_rows[last] > (0 if best is None else n_rows[best]):
                best = start + int(np.argmax(n_rows[start:] == n_rows[last]))
    return best


def rows_needed(n_samples, trials, n_wrong, target, level):
    """Return about how many rows pass a test with the error rates seen here, None where no rate is below the target."""
    rate = (n_wrong + 0.5) / (trials + 1)  # a few rows without an error say little
    below = (trials > 0) & (rate < target)
    if not below.any():
        return None
    fewest = np.log(level) / np.log1p(-target)
    needed = np.maximum(fewest, ndtri(level) ** 2 * target * (1 - target) / (target - rate[below]) ** 2)
    return max(n_samples + 1, int(np.ceil(np.min(needed * n_samples / trials[below]))))
