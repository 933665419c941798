"""Tests of calibration with a distribution in closed form: normal, chi-squared, or that
of Brownian motion.
"""

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from skcalib._cells.reductions import BinnedTask
from skcalib._errors.bin_free import range_of
from skcalib._input.warn import warn
from skcalib._intervals.influence import normal_pvalue
from skcalib._rows.blocks import total_weight, weights_or_ones

# Expected events or non-events below which an approximation is known to be poor: of all
# rows, of one bin, on average.
_FEW, _FEWEST_IN_BIN, _FEW_IN_BINS = 5, 0.5, 2
# Share of a variance above which one row of importance weight is seen.
_VISIBLE = 0.05
# Below this value both p-values are 1 within 1e-15. From there on so many terms of
# their alternating series, each of them at most 10, leave out less than 1e-300.
_CERTAIN, _TERMS = 0.18, 250


def spiegelhalter(task, *, importance=False):
    """Return z and its p-value: the Brier score minus its expectation, over its
    standard deviation.

    With importance weights the variance under calibration is the sum of
    w^2 (1 - 2 s)^2 s (1 - s).
    """
    scores = task.scores.astype(np.float64)
    weight = weights_or_ones(task.sample_weight, len(scores))
    # The weight of a row in the variance: w copies, or one row that counts w times.
    squares = weight
    if importance:
        squares = weight**2
    excess = np.sum(weight * (task.labels - scores) * (1 - 2 * scores))
    variance = np.sum(squares * (1 - 2 * scores) ** 2 * scores * (1 - scores))
    if variance == 0 and excess == 0:
        return 0.0, 1.0
    if variance == 0:
        return np.copysign(np.inf, excess), 0.0
    rows = weight * weight.sum() / squares.sum()  # that the weights are worth
    expected = min(np.sum(rows * scores), np.sum(rows * (1 - scores)))
    if expected < _FEW:
        _warn_of_few(
            "spiegelhalter", f"{expected:.2g} events or non-events are expected"
        )
    z = excess / np.sqrt(variance)
    return z, normal_pvalue(excess, variance)


def hosmer_lemeshow(task, binning, *, df=None, importance=False):
    """Return chi-squared, the sum of (observed - expected)^2 / (expected (1 - expected
    / n)), and its p-value.

    Without `df` there is a degree of freedom for each bin. With importance weights each
    bin's variance is that of its squared weights.
    """
    bins = task.statistics(binning)
    size = np.ones(bins.n_bins)  # weight of an effective row of each bin
    if importance:
        np.divide(bins.weight_squared, bins.weight, out=size, where=bins.weight > 0)
    excess = bins.weighted_label - bins.weighted_score
    variance = size * bins.weighted_score * (1 - bins.mean_score)
    random = (bins.weight > 0) & (variance > 0)
    if np.any(excess[(bins.weight > 0) & ~random] != 0):
        return np.inf, 0.0
    expected = np.minimum(bins.weighted_score, bins.weight - bins.weighted_score)
    expected = (expected / size)[random]
    if len(expected) and (
        expected.min() < _FEWEST_IN_BIN or expected.mean() < _FEW_IN_BINS
    ):
        _warn_of_few(
            "hosmer_lemeshow",
            f"bins expect {expected.mean():.2g} events or non-events on average",
        )
    statistic = np.sum(excess[random] ** 2 / variance[random])
    if not random.any():
        return statistic, 1.0
    return statistic, chi2.sf(statistic, df or np.count_nonzero(random))


def kuiper(task, *, importance=False):
    """Return the Kuiper error and its asymptotic p-value."""
    sums, deviation = cumulative_differences(task.cells())
    if importance:
        deviation = _null_deviation(task)
    return asymptotic(range_of(sums), deviation, range_pvalue)


def kolmogorov_smirnov(task, *, importance=False):
    """Return the Kolmogorov-Smirnov error and its asymptotic p-value."""
    sums, deviation = cumulative_differences(task.cells())
    if importance:
        deviation = _null_deviation(task)
    return asymptotic(np.abs(sums).max(), deviation, maximum_pvalue)


def is_dominated(task):
    """Return whether one row has a visible share of the variance of the sum of
    w (y - s) under calibration, so that cumulative sums are no Brownian motion.
    """
    variance = _row_variances(task)
    if isinstance(task, BinnedTask):
        variance = variance / np.maximum(task.bins.count, 1)
    total = _row_variances(task).sum()
    return bool(total > 0 and variance.max() > _VISIBLE * total)


def _null_deviation(task):
    """Return the standard deviation of the mean of y - s under calibration, of rows
    with importance weights.
    """
    total = task.bins.weight.sum() if isinstance(task, BinnedTask) else None
    if total is None:
        total = total_weight(task.weight, len(task.scores))
    return float(np.sqrt(_row_variances(task).sum()) / total)


def _row_variances(task):
    """Return w^2 s (1 - s) of each row, or their sums by bin."""
    if isinstance(task, BinnedTask):
        bins = task.bins
        return bins.weight_squared * bins.mean_score * (1 - bins.mean_score)
    scores = task.scores.astype(np.float64)
    weight = 1.0 if task.sample_weight is None else task.sample_weight
    return weight**2 * scores * (1 - scores)


def range_pvalue(x):
    """Return P(range of Brownian motion on [0, 1] >= x): 8 sum over k of (-1)^(k - 1) k
    P(Z > k x) (Feller, 1951).
    """
    if x < _CERTAIN:
        return 1.0
    k = np.arange(1, _TERMS)
    return float(np.clip(8 * np.sum((-1.0) ** (k - 1) * k * ndtr(-k * x)), 0, 1))


def maximum_pvalue(x):
    """Return P(largest absolute value of Brownian motion on [0, 1] >= x): 4 sum of
    (-1)^j P(Z > (2 j + 1) x).
    """
    if x < _CERTAIN:
        return 1.0
    j = np.arange(_TERMS)
    return float(np.clip(4 * np.sum((-1.0) ** j * ndtr(-(2 * j + 1) * x)), 0, 1))


def cumulative_differences(cells):
    """Return the cumulative sums of w (y - s) over distinct scores, and the standard
    deviation of the last one.

    Both are relative to the total weight.
    """
    weight = cells.weight
    scores = cells.mean_score.astype(np.float64)
    total = cells.weight.sum()
    sums = np.cumsum(cells.weighted_label - weight * scores) / total
    return sums, np.sqrt(np.sum(weight * scores * (1 - scores))) / total


def asymptotic(statistic, deviation, pvalue):
    """Return a statistic, and the p-value of its ratio to the standard deviation of the
    last of the sums.
    """
    if deviation == 0:
        return statistic, 1.0 if statistic == 0 else 0.0
    return statistic, pvalue(statistic / deviation)


def _warn_of_few(method, found):
    warn(
        f"method={method!r}: {found}, too few for its approximation, which rejects up"
        " to three times as many calibrated models as its level allows. Use"
        ' method="resampling".'
    )
