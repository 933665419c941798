"""Statistics that several parts of a report need."""

from math import sqrt

import numpy as np
from scipy.special import ndtri

from skcalib.binning import EqualMass, MinimumMass

CONFIDENCE_LEVEL = 0.9
LABELS = [False, True]
# The library's 15 bins, fewer where they would hold too few rows for a debiased error.
REPORT_BINNING = MinimumMass(EqualMass(15), min_weight=10)


def given(task):
    """Return what a metric is told about a binary problem besides labels and scores."""
    return {"labels": LABELS} if task.sample_weight is None else {"labels": LABELS, "sample_weight": task.sample_weight}


def mean(values, weight):
    """Return the weighted mean as a float."""
    return float(np.average(values, weights=weight))


def mean_interval(values, weight):
    """Return a mean with its normal interval; weights count as repeated rows."""
    centre = mean(values, weight)
    return interval_of_mean(
        centre, mean((values - centre) ** 2, weight), len(values) if weight is None else weight.sum()
    )


def interval_of_mean(centre, variance, n_rows):
    """Return a mean with its normal interval, from the variance of its values."""
    half = ndtri((1 + CONFIDENCE_LEVEL) / 2) * sqrt(variance / n_rows)
    return {"estimate": centre, "low": centre - half, "high": centre + half}
