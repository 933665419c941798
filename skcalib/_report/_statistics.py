"""Statistics that several parts of a report need."""

from math import sqrt

import numpy as np
from scipy.special import ndtri, xlog1py, xlogy

from skcalib._rows.links import clip_probability
from skcalib.binning import EqualMass, MinimumMass

__all__ = ["CONFIDENCE_LEVEL", "LABELS", "REPORT_BINNING", "given", "log_losses", "mean", "mean_interval"]

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
    n_rows = len(values) if weight is None else weight.sum()
    half = ndtri((1 + CONFIDENCE_LEVEL) / 2) * sqrt(mean((values - centre) ** 2, weight) / n_rows)
    return {"estimate": centre, "low": centre - half, "high": centre + half}


def log_losses(scores, labels):
    """Return the log-loss of each row in nats, scores clipped as everywhere in the library."""
    scores = clip_probability(scores.astype(np.float64))
    return -xlogy(labels, scores) - xlog1py(~labels, -scores)
