"""Confidence intervals of a binomial proportion: the one vectorised kernel behind every
event-frequency interval.
"""

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtri

from skcalib._input.scalars import check_confidence_level, check_option


def binomial_interval(
    positives, counts, *, confidence_level=0.9, interval="clopper_pearson"
):
    """Two-sided interval for each proportion ``positives / counts``, one proportion at
    a time.

    Parameters
    ----------
    positives : array-like
        Number (or total weight) of events, between 0 and `counts`. Rounding beyond
        these limits is clipped.
    counts : array-like
        Number (or total weight) of trials, broadcast against `positives`. Fractions are
        allowed: the weights then count as frequencies.
    confidence_level : float, default=0.9
        Coverage of each interval, strictly between 0 and 1.
    interval : {"clopper_pearson", "hoeffding", "wilson"}, default="clopper_pearson"
        Clopper-Pearson and Hoeffding cover at least at `confidence_level` for every
        sample size; Wilson's score interval does so on average over proportions only.

    Returns
    -------
    low, high : ndarray of float64
        Limits within [0, 1]; ``(0, 1)`` where a count is 0.

    Raises
    ------
    ValueError
        If `interval` is unknown or `confidence_level` is outside (0, 1).

    Examples
    --------
    No event among 10 trials: Clopper and Pearson's upper limit solves
    ``(1 - high) ** 10 = 0.05``.

    >>> from skcalib._intervals import binomial_interval
    >>> low, high = binomial_interval([0], [10], confidence_level=0.9)
    >>> float(low[0]), round(float(high[0]), 4), round(1 - 0.05 ** (1 / 10), 4)
    (0.0, 0.2589, 0.2589)
    """
    miscoverage = 1.0 - check_confidence_level(confidence_level)
    check_option(interval, "interval", _INTERVALS)
    counts = np.asarray(counts, dtype=np.float64)
    positives = np.clip(np.asarray(positives, dtype=np.float64), 0.0, counts)
    positives, counts = np.broadcast_arrays(positives, counts)
    has_rows = counts > 0
    low, high = _INTERVALS[interval](
        np.where(has_rows, positives, 0.0), np.where(has_rows, counts, 1.0), miscoverage
    )
    # Without events the lower limit is 0, with events alone the upper one is 1.
    low = np.where(has_rows & (positives > 0), np.clip(low, 0.0, 1.0), 0.0)
    high = np.where(has_rows & (positives < counts), np.clip(high, 0.0, 1.0), 1.0)
    return low, high


def _clopper_pearson(positives, counts, miscoverage):
    """Return the lower and the upper limits of Clopper and Pearson (1934), quantiles of
    beta distributions, for `positives` among `counts` (n,). `miscoverage` is 1 less the
    coverage.
    """
    negatives = counts - positives
    tail = miscoverage / 2.0
    # a beta law has no parameter of 0: `binomial_interval` sets the limits 0 and 1
    low = betaincinv(np.where(positives > 0, positives, 1.0), negatives + 1.0, tail)
    high = betainccinv(positives + 1.0, np.where(negatives > 0, negatives, 1.0), tail)
    return low, high


def _hoeffding(positives, counts, miscoverage):
    """Return the limits of Hoeffding (1963), Theorem 2: P(|mean - expectation| >= t) is
    at most 2 exp(-2 n t^2).
    """
    half_width = np.sqrt(np.log(2.0 / miscoverage) / (2.0 * counts))
    return positives / counts - half_width, positives / counts + half_width


def _wilson(positives, counts, miscoverage):
    """Return the lower and the upper limits of Wilson (1927), for `positives` among
    `counts` (n,): the ends of the proportions p for which |mean - p| is at most z
    sqrt(p (1 - p) / n).
    """
    z = ndtri(1.0 - miscoverage / 2.0)
    centre = (positives + z**2 / 2.0) / (counts + z**2)
    variance_of_sum = positives * (counts - positives) / counts
    half_width = z / (counts + z**2) * np.sqrt(variance_of_sum + z**2 / 4.0)
    return centre - half_width, centre + half_width


_INTERVALS = {
    "clopper_pearson": _clopper_pearson,
    "hoeffding": _hoeffding,
    "wilson": _wilson,
}
