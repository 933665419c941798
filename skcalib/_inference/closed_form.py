"""Tests of calibration with a distribution in closed form: normal, chi-squared, or that
of Brownian motion.
"""

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2

from skcalib._cells.binned import BinnedTask
from skcalib._cells.cells import Cells
from skcalib._errors.bin_free import range_of
from skcalib._guide import see
from skcalib._input.warn import warn
from skcalib._intervals.influence import normal_pvalue
from skcalib._rows.blocks import total_weight, weights_or_ones

# Expected events or non-events below which an approximation is known to be poor: over
# all rows, in any bin, and on average over the bins.
_FEW, _FEWEST_IN_BIN, _FEW_IN_BINS = 5, 0.5, 2
# Above this share of the variance of a sum, one row of importance weight makes the law
# of the sum visibly different from its limit.
_VISIBLE = 0.05
# The p-values of `range_pvalue` and `maximum_pvalue` are alternating series. Below the
# first number they are 1 within 1e-15. From there on, the sum of as many terms as the
# second number leaves out less than 1e-300.
_CERTAIN, _TERMS = 0.18, 250


def spiegelhalter(task):
    """Return the statistic z and its two-sided p-value of Spiegelhalter's test (1986):
    the Brier score minus its expectation, over its standard deviation if the scores are
    calibrated.

    Parameters
    ----------
    task : BinaryTask
        The rows: scores s, labels y and weights w. The variance under calibration is
        the sum of w (1 - 2 s)^2 s (1 - s) for weights that count rows; see
        `row_variances` for others.
    """
    scores = task.scores.astype(np.float64)
    weight = weights_or_ones(task.sample_weight, len(scores))
    # The Brier score minus its expectation, as sums over the rows:
    # (y - s)^2 - s (1 - s) = (y - s) (1 - 2 s) for a label of 0 or 1.
    excess = np.sum(weight * (task.labels - scores) * (1 - 2 * scores))
    variances = row_variances(task)
    variance = np.sum((1 - 2 * scores) ** 2 * variances)
    if variance == 0 and excess == 0:
        return 0.0, 1.0
    if variance == 0:
        return np.copysign(np.inf, excess), 0.0
    # The weights, divided by one number so that they give the same variance as counts.
    divisor = np.sum(variances) / np.sum(weight * scores * (1 - scores))
    expected = min(np.sum(weight * scores), np.sum(weight * (1 - scores))) / divisor
    if expected < _FEW:
        _warn_of_few(
            "spiegelhalter", f"{expected:.2g} events or non-events are expected"
        )
    z = excess / np.sqrt(variance)
    return z, normal_pvalue(excess, variance)


def hosmer_lemeshow(task, binning, *, df=None):
    """Return the statistic and the p-value of the test of Hosmer and Lemeshow (1980):
    the sum over bins of (observed - expected)^2 / (expected (1 - expected / n)), with
    numbers of events, which has a chi-squared distribution.

    Parameters
    ----------
    task : BinaryTask or BinnedTask
        The rows, or their sums in bins.
    binning : BaseBinning
        The bins.
    df : int, default=None
        Degrees of freedom; None means one for each bin in which events can vary.
    """
    bins = task.statistics(binning)
    # The binomial variance of n trials for n rows. Rows with weights of importance are
    # worth other numbers of trials (`adjusted`), each of the weight W / n.
    weight_of_row = np.ones(bins.n_bins)
    cells = task.adjusted(Cells.of_bins(bins))
    if cells.trials is not None:
        weight_of_row[bins.weight > 0] = cells.weight / cells.trials
    excess = bins.weighted_label - bins.weighted_score
    variance = weight_of_row * bins.weighted_score * (1 - bins.mean_score)
    if cells.noise is not None:
        variance[bins.weight > 0] = cells.noise * cells.weight**2
    is_filled = bins.weight > 0
    is_random = is_filled & (variance > 0)
    # Bins whose scores are all 0 or all 1 can have one number of events only.
    is_certain = is_filled & ~is_random
    if np.any(excess[is_certain] != 0):
        return np.inf, 0.0
    # Expected events or non-events, whichever are fewer, in numbers of equal rows.
    expected = np.minimum(bins.weighted_score, bins.weight - bins.weighted_score)
    expected = (expected / weight_of_row)[is_random]
    if len(expected) and (
        expected.min() < _FEWEST_IN_BIN or expected.mean() < _FEW_IN_BINS
    ):
        _warn_of_few(
            "hosmer_lemeshow",
            f"bins expect {expected.mean():.2g} events or non-events on average",
        )
    statistic = np.sum(excess[is_random] ** 2 / variance[is_random])
    if not is_random.any():
        return statistic, 1.0
    return statistic, chi2.sf(statistic, df or np.count_nonzero(is_random))


def few_events_in_bins(task, binning):
    """Return the reason why the squared residuals of a bin are too few to estimate its
    variance in the test of Hosmer and Lemeshow; an empty string if there is no such
    bin, or if the variance is known from the weights.
    """
    if task.label_weights is None or task.label_weights.is_known:
        return ""
    cells = Cells.of_bins(task.statistics(binning))
    cell_of_row = cells.cell_of(task.scores)
    for k in range(len(cells.weight)):
        rows = cell_of_row == k
        reason = task.label_weights[rows].reason(task.labels[rows])
        if reason:
            return f"in a bin {reason}"
    return ""


def kuiper(task):
    """Return the Kuiper error of a binary problem and its asymptotic p-value.

    The error is the range of the cumulative sums of w (y - s) over increasing scores,
    divided by the total weight. The p-value is that of the range of a Brownian motion
    on [0, 1].

    Parameters
    ----------
    task : BinaryTask or BinnedTask
        The rows, with scores s, labels y and weights w, or their sums in bins.
    """
    sums, deviation = _cumulative(task)
    return asymptotic(range_of(sums), deviation, range_pvalue)


def kolmogorov_smirnov(task):
    """Return the Kolmogorov-Smirnov error of a binary problem and its asymptotic
    p-value.

    The error is the largest absolute cumulative sum of w (y - s) over increasing
    scores, divided by the total weight. The p-value is that of the largest absolute
    value of a Brownian motion on [0, 1].

    Parameters
    ----------
    task : BinaryTask or BinnedTask
        The rows, with scores s, labels y and weights w, or their sums in bins.
    """
    sums, deviation = _cumulative(task)
    return asymptotic(np.abs(sums).max(), deviation, maximum_pvalue)


def is_dominated(task):
    """Return whether a single row has more than 5 % (`_VISIBLE`) of the variance of the
    sum of w (y - s) under calibration, for weights that do not count rows. The
    cumulative sums then do not behave like a Brownian motion.

    `task` is a `BinaryTask`, or a `BinnedTask`, in whose bins rows count as equal.
    """
    if not _has_importance(task):
        return False
    variance = row_variances(task)
    total = variance.sum()
    if isinstance(task, BinnedTask):
        variance = variance / np.maximum(task.bins.count, 1)
    return bool(total > 0 and variance.max() > _VISIBLE * total)


def _has_importance(task):
    """Return whether the weights of a task do not count rows."""
    if isinstance(task, BinnedTask):
        return task.importance
    return task.label_weights is not None


def _cumulative(task):
    """Return the cumulative sums of w (y - s) over the distinct scores of a task,
    increasing, and the standard deviation of the last if the scores are calibrated,
    both divided by the total weight.
    """
    sums, deviation = cumulative_differences(task.cells())
    if not _has_importance(task):
        return sums, deviation
    # `cumulative_differences` takes weights for numbers of rows.
    if isinstance(task, BinnedTask):
        total = task.bins.weight.sum()
    else:
        total = total_weight(task.weight, len(task.scores))
    return sums, float(np.sqrt(row_variances(task).sum()) / total)


def row_variances(task):
    """Return the variance of w (y - s) for each row of a `BinaryTask`, (n,), if the
    scores s are calibrated; for a `BinnedTask` the sum over the rows of each bin.

    A weight w that counts rows gives w s (1 - s). For weights of importance it is that
    of `LabelWeights`; rows of a bin count as equal.
    """
    if isinstance(task, BinnedTask):
        bins = task.bins
        squares = bins.weight
        if task.importance:
            squares = bins.weight_squared
        return squares * bins.mean_score * (1 - bins.mean_score)
    scores = task.scores.astype(np.float64)
    if task.label_weights is not None:
        return task.label_weights.variance(scores, task.labels)
    return weights_or_ones(task.sample_weight, len(scores)) * scores * (1 - scores)


def range_pvalue(x):
    """Return P(range of Brownian motion on [0, 1] >= x): 8 sum over k of (-1)^(k - 1) k
    P(Z > k x) (Feller, 1951).
    """
    if x < _CERTAIN:
        return 1.0
    k = np.arange(1, _TERMS)
    terms = (-1.0) ** (k - 1) * k * ndtr(-k * x)
    return float(np.clip(8 * np.sum(terms), 0, 1))


def maximum_pvalue(x):
    """Return P(largest absolute value of Brownian motion on [0, 1] >= x): 4 sum over j
    >= 0 of (-1)^j P(Z > (2 j + 1) x), by the reflection principle.
    """
    if x < _CERTAIN:
        return 1.0
    j = np.arange(_TERMS)
    terms = (-1.0) ** j * ndtr(-(2 * j + 1) * x)
    return float(np.clip(4 * np.sum(terms), 0, 1))


def cumulative_differences(cells):
    """Return the cumulative sums (m,) of w (y - s) over m increasing scores s, and the
    standard deviation of the last sum if the scores are calibrated, both divided by the
    total weight.

    The `Cells` hold the sums of the weights w, which count rows, and of w y at each
    distinct score.
    """
    weight = cells.weight
    scores = cells.mean_score.astype(np.float64)
    total = weight.sum()
    sums = np.cumsum(cells.weighted_label - weight * scores) / total
    variance_of_sum = np.sum(weight * scores * (1 - scores))
    return sums, np.sqrt(variance_of_sum) / total


def asymptotic(statistic, deviation, pvalue):
    """Return a statistic of cumulative sums (their range or largest absolute value),
    and its p-value for large samples.

    `deviation` is the standard deviation of the last of the sums under calibration:
    divided by it the sums behave like a Brownian motion on [0, 1]. ``pvalue(x)`` is the
    probability that the statistic of that motion is at least x.
    """
    if deviation == 0 and statistic == 0:
        return statistic, 1.0
    if deviation == 0:
        return statistic, 0.0
    return statistic, pvalue(statistic / deviation)


def _warn_of_few(method, found):
    """Warn that the approximation of a test's law is poor; `found` says what is few."""
    warn(
        f"method={method!r}: {found}, too few for its approximation, which would reject"
        " calibrated models up to three times too often. Use"
        f' method="resampling".{see("few-events")}'
    )
