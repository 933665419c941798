"""What the order of time tells besides its periods: a trend of the bias, and whether
errors of samples that follow each other are alike.
"""

import numpy as np
from scipy.special import ndtr

from skcalib._report._samples import LABELS
from skcalib.binning import EqualMass
from skcalib.monitoring import calibration_trend

_FEWEST_PERIODS = 4
_LEVEL = 0.95
_LAGS = (1, 2, 3, 4, 5)
_FEWEST_ROWS = 100
# Intervals that are less than so many times too short are not worth a sentence.
_HARMLESS_FACTOR = 1.1
_SCORE_BINS = 15


def trend_numbers(table, event_rows):
    """Return the linear trend of the bias over the periods as a dict: how much the
    fitted bias changes ("moved") from the first period to the last, with limits and
    p-value; None for fewer than four periods.

    `table` is the `ReportTable`, `event_rows` the `Rows` of the event.
    """
    if table.periods is None or len(table.period_order) < _FEWEST_PERIODS:
        return None
    order = table.period_order
    # With one label only, naming the event would be an error.
    pos_label = None
    if event_rows.labels.any() and not event_rows.labels.all():
        pos_label = LABELS[1]
    trend = calibration_trend(
        event_rows.labels,
        event_rows.scores,
        _places(table),
        confidence_level=_LEVEL,
        sample_weight=event_rows.sample_weight,
        weight_type=event_rows.weight_type,
        clusters=event_rows.clusters,
        pos_label=pos_label,
    )
    n_steps = len(order) - 1
    slope = trend.slope  # change of the bias from a period to the next
    return {
        "first": order[0],
        "last": order[-1],
        "moved": n_steps * slope.estimate,
        "moved_low": n_steps * slope.low,
        "moved_high": n_steps * slope.high,
        "pvalue": trend.pvalue,
        "is_step": _is_step(table, event_rows),
    }


def _is_step(table, event_rows):
    """Return whether one step (a constant before some period, and another one from it
    on) fits the biases of the periods better than a straight line does, by weighted
    least squares.
    """
    period_of_row = _places(table)
    weight = event_rows.sample_weight
    if weight is None:
        weight = np.ones(len(period_of_row))
    error = event_rows.scores.astype(np.float64) - event_rows.labels
    period_weight = np.bincount(period_of_row, weight)
    is_used = period_weight > 0
    bias_sum = np.bincount(period_of_row, weight * error)
    bias = bias_sum[is_used] / period_weight[is_used]
    period_weight = period_weight[is_used]
    time = np.arange(len(is_used))[is_used]  # the numbers of the periods
    squares_of_steps = []
    for since in time[1:]:
        step = (time >= since).astype(float)
        squares_of_steps.append(_residual_squares(bias, step, period_weight))
    best_step = min(squares_of_steps, default=np.inf)
    return bool(best_step < _residual_squares(bias, time, period_weight))


def _residual_squares(values, feature, weight):
    """Return the weighted sum of squared residuals of values (m,) after a linear
    regression on a constant and a feature (m,), with weights (m,).
    """
    centred = feature - np.average(feature, weights=weight)
    rest = values - np.average(values, weights=weight)
    slope = np.sum(weight * centred * rest) / np.sum(weight * centred**2)
    return np.sum(weight * (rest - slope * centred) ** 2)


def autocorrelation(table, event_rows):
    """Return how far the errors (label minus score) of samples that follow each other
    in time are alike, as a dict; None without times, with clusters, or for few samples.

    "factor" says how many times too short intervals are, with the correlations of
    samples that are 1 to 5 apart; those of samples further apart would make it larger.
    "pvalue" is that of a factor of 1.1 at most, and "estimate" the correlation of
    neighbours alone.

    Mean errors by score, period and segment are subtracted first: miscalibrated scores,
    periods or segments are not dependence.
    """
    if table.periods is None or event_rows.clusters is not None:
        return None
    if len(event_rows.labels) < _FEWEST_ROWS:
        return None
    # The order of time: by dates if they are known, else by periods.
    moments = table.moments
    if moments is None:
        moments = _places(table)
    order = np.argsort(moments, kind="stable")
    scores = event_rows.scores.astype(np.float64)
    error = event_rows.labels - scores
    # The period, the segments and the bin of each sample's score.
    edges = EqualMass(_SCORE_BINS).bin_edges(scores)
    score_bin = np.searchsorted(edges[1:-1], event_rows.scores)
    for group in (table.periods, *table.segmentations.values(), score_bin):
        _, code = np.unique(group, return_inverse=True)
        group_mean = np.bincount(code, error) / np.bincount(code)
        error = error - group_mean[code]
    error = error[order]
    # Products of errors that are 1 to 5 samples apart.
    products = np.concatenate([error[lag:] * error[:-lag] for lag in _LAGS])
    spread = np.sqrt(np.sum(products**2))
    if spread == 0:
        return None
    # The variance of a mean is 1 + 2 (r_1 + ... + r_5) times that of independent errors
    # with the correlations r. Products of independent errors are uncorrelated, so that
    # the sum of the r has the standard error `spread` over the sum of squares.
    square = np.sum(error**2)
    correlation = products.sum() / square
    largest_harmless = (_HARMLESS_FACTOR**2 - 1) / 2
    z = (correlation - largest_harmless) / (spread / square)
    estimate = np.sum(error[1:] * error[:-1]) / square
    factor = np.sqrt(max(1 + 2 * correlation, 0))
    return {
        "estimate": float(estimate),
        "factor": float(factor),
        "pvalue": float(ndtr(-z)),
    }


def _places(table):
    """Return the number of each row's period in the order of time, (n_rows,)."""
    number = {name: k for k, name in enumerate(table.period_order)}
    return np.array([number[name] for name in table.periods.tolist()])
