"""Several probability forecasts of the same rows, pooled as one."""

import numpy as np

from skcalib._rows.links import (
    PROBABILITY_CLIP,
    log_probability,
    odds_of_two,
    row_softmax,
)
from skcalib._rows.namespaces import row_sums

# Forecasts of models that were fitted to overlapping rows agree in part: their
# geometric mean is slightly underconfident. Chosen on 35 cells of bundled data, where
# 1.05 and 1.08 gained a little more. But calibrated models that all agree lose by it:
# with logits of standard deviation 3, ten classes lose .0011 of log-loss at 1.05 and
# .0004 at 1.03, a hundred lose .0027 and .0010. On 101 cells of other data 1.03
# lowered the mean log-loss from .4873 (a mean of the fold models) to .4862. On 169 of
# the development cells of today's default the arithmetic mean of the same forecasts is
# .0021 above it, and their power mean of order 1/2 .0009. That mean to the power 1.05
# is .0010 below it, but by single trees (.0104): forests and AdaBoost lose up to .0045.
POOLING_EXPONENT = 1.03
# A row whose sum is closer to 1 than this is normalised, and 1 is its sum.
_ROUNDING = 1e-9
# Odds are between 2^-52 and 2^52, so the product of 16 of them is at most 2^832: no
# overflow, and no subnormal number.
_MOST_FACTORS = 16


def geometric_pool(forecasts, exponent=1.0):
    """Return the geometric mean of the probabilities of several forecasters, raised to
    a power and normalised within each row.

    The arithmetic mean of calibrated forecasts that differ is underconfident (Ranjan
    and Gneiting 2010, "Combining probability forecasts"); a geometric mean is less so.
    A probability of 0 counts as 2^-52, so that no forecast alone can exclude a class.
    What all of them exclude keeps probability 0.

    Parameters
    ----------
    forecasts : list of ndarray of shape (n, K)
        Probabilities of each forecaster.
    exponent : float, default=1.0
        The power: above 1 the pooled forecast is more confident.

    Returns
    -------
    pooled : ndarray of shape (n, K)
        Rows sum to the mean of the forecasts' sums, which is 1 unless one-vs-rest
        probabilities are left as they are.
    """
    n_forecasts = len(forecasts)
    if forecasts[0].shape[1] == 2:
        log_odds = _sum_of_log_odds(forecasts)
        log_odds *= exponent / n_forecasts
        odds = np.exp(log_odds, out=log_odds)
        pooled = np.empty(forecasts[0].shape)
        np.divide(1, 1 + odds, out=pooled[:, 0])
        np.multiply(odds, pooled[:, 0], out=pooled[:, 1])
        np.clip(pooled, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP, out=pooled)
    else:
        mean_log = sum(log_probability(forecast) for forecast in forecasts)
        pooled = row_softmax(exponent / n_forecasts * mean_log)
    first, *others = forecasts
    summed = first.copy()
    for forecast in others:
        summed += forecast
    mean_total = row_sums(np, summed) / n_forecasts
    is_unnormalised = np.abs(mean_total - 1) >= _ROUNDING
    if is_unnormalised.any():
        # These rows get the mean of the sums that they had. No probability may exceed 1
        # by that.
        scaled = np.minimum(mean_total * pooled, 1)
        pooled = np.where(is_unnormalised, scaled, pooled)
    pooled[summed == 0] = 0  # classes that every forecast excludes
    return pooled


def _sum_of_log_odds(forecasts):
    """Return the sums (n,), over a list of forecasts (n, 2), of the log-odds of the
    second of two classes.
    """
    # The logarithm of a product of odds is taken once for 16 of them, a number whose
    # product stays within the range of floats.
    total = np.zeros(len(forecasts[0]))
    for start in range(0, len(forecasts), _MOST_FACTORS):
        product = np.ones(len(total))
        for forecast in forecasts[start : start + _MOST_FACTORS]:
            product *= odds_of_two(forecast)
        total += np.log(product, out=product)
    return total
