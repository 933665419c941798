"""What recalibrating gains on the rows left out, with its interval."""

import numpy as np
from scipy.special import ndtri

from skcalib._inference.results import IntervalEstimate
from skcalib._rows.blocks import total_weight


def gain_interval(gains, folds, sample_weight, level):
    """Return the mean out-of-fold gain and its interval, as an `IntervalEstimate`.

    Parameters
    ----------
    gains : ndarray of shape (n_folds, n)
        What each row gains by the fit of each fold.
    folds : list of Fold
        The folds.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    level : float
        Confidence level.
    """
    out_of_fold = np.concatenate(
        [gain[fold.test] for gain, fold in zip(gains, folds, strict=True)]
    )
    weight = None
    if sample_weight is not None:
        weight = np.concatenate([fold.test_weight for fold in folds])
    # The mean gain varies with the rows it is tested on and with the rows fitted to:
    # the second variance is added to the first. For each row it is the jackknife's,
    # (n_folds - 1) times the variance over the fits, which leave out one fold each.
    row_variance = (len(folds) - 1) * gains.var(axis=0)
    variance_of_fits = np.average(row_variance, weights=sample_weight)
    return row_gain_interval(out_of_fold, weight, level, variance_of_fits)


def row_gain_interval(gains, sample_weight, level=0.9, variance_of_fits=0.0):
    """Return the mean of the out-of-fold gains of rows (n,) and its normal interval, as
    an `IntervalEstimate`.

    `variance_of_fits` is the mean variance of a row's gain over refits, 0 by default.
    """
    total = total_weight(sample_weight, len(gains))
    mean = np.average(gains, weights=sample_weight)
    variance = np.average((gains - mean) ** 2, weights=sample_weight) + variance_of_fits
    half_width = ndtri((1 + level) / 2) * np.sqrt(variance / max(total - 1, 1))
    low = float(mean - half_width)
    high = float(mean + half_width)
    return IntervalEstimate(float(mean), low, high)


def standard_error(gain, level):
    """Return the standard error behind a gain's interval: its half-width over the
    normal quantile of its confidence level.
    """
    return (gain.high - gain.low) / (2 * ndtri((1 + level) / 2))
