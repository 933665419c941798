"""What recalibrating gains on the rows left out, with its interval."""

import numpy as np
from scipy.special import ndtri

from skcalib._inference.results import IntervalEstimate
from skcalib._rows.blocks import total_weight


def gain_interval(gains, folds, sample_weight, level):
    """Return the mean out-of-fold gain and its interval, from what each row gains by
    the fit of each fold.
    """
    out_of_fold = np.concatenate(
        [gain[fold.test] for gain, fold in zip(gains, folds, strict=True)]
    )
    weight = None
    if sample_weight is not None:
        weight = np.concatenate([fold.test_weight for fold in folds])
    # Each row is used for fitting and for testing, in turns, so the noise of the fits
    # counts twice. The noise of a row's gain is the jackknife's, over the fits without
    # one fold each.
    of_fits = np.average((len(folds) - 1) * gains.var(axis=0), weights=sample_weight)
    return row_gain_interval(out_of_fold, weight, level, of_fits)


def row_gain_interval(gains, sample_weight, level=0.9, variance_of_fits=0.0):
    """Return the mean of what rows gain out of fold and its interval, by default
    without the noise of the fits.
    """
    total = total_weight(sample_weight, len(gains))
    mean = np.average(gains, weights=sample_weight)
    variance = np.average((gains - mean) ** 2, weights=sample_weight) + variance_of_fits
    width = ndtri((1 + level) / 2) * np.sqrt(variance / max(total - 1, 1))
    return IntervalEstimate(float(mean), float(mean - width), float(mean + width))


def standard_error(gain, level):
    """Return the standard error behind a gain's interval."""
    return (gain.high - gain.low) / (2 * ndtri((1 + level) / 2))
