"""What the order of time tells besides its periods: a trend of the bias, and whether
errors of samples that follow each other are alike.
"""

import numpy as np
from scipy.special import ndtr

from skcalib._report._statistics import LABELS
from skcalib._rows.blocks import weights_or_ones
from skcalib.binning import EqualMass
from skcalib.monitoring import calibration_trend

_FEWEST_PERIODS = 4
_LEVEL = 0.95
_LAGS = (1, 2, 3, 4, 5)
_FEWEST_ROWS = 100
_SCORE_BINS = 15


def trend_numbers(table, task):
    """Return the trend of the bias from the first period to the last as a dict; None
    for fewer than four periods.
    """
    if table.periods is None or len(table.period_order) < _FEWEST_PERIODS:
        return None
    order = table.period_order
    pos_label = None
    if task.labels.any() and not task.labels.all():
        pos_label = LABELS[1]
    trend = calibration_trend(
        task.labels,
        task.scores,
        _places(table),
        confidence_level=_LEVEL,
        sample_weight=task.sample_weight,
        weight_type=task.weight_type,
        clusters=task.clusters,
        pos_label=pos_label,
    )
    n_steps = len(order) - 1
    slope = trend.slope  # a period
    return {
        "first": order[0],
        "last": order[-1],
        "moved": n_steps * slope.estimate,
        "moved_low": n_steps * slope.low,
        "moved_high": n_steps * slope.high,
        "pvalue": trend.pvalue,
        "is_step": _is_step(table, task),
    }


def _is_step(table, task):
    """Return whether the best step fits the biases of the periods better than the best
    straight line, by weighted squares.
    """
    place = _places(table)
    weight = weights_or_ones(task.sample_weight, len(place))
    error = task.scores.astype(np.float64) - task.labels
    of_period = np.bincount(place, weight)
    is_used = of_period > 0
    bias = np.bincount(place, weight * error)[is_used] / of_period[is_used]
    of_period = of_period[is_used]
    time = np.arange(len(is_used))[is_used]

    def left(feature):
        """Return the squares that a constant and this feature leave."""
        centred = feature - np.average(feature, weights=of_period)
        rest = bias - np.average(bias, weights=of_period)
        slope = np.sum(of_period * centred * rest) / np.sum(of_period * centred**2)
        return np.sum(of_period * (rest - slope * centred) ** 2)

    steps = [left((time >= since).astype(float)) for since in time[1:]]
    return bool(min(steps, default=np.inf) < left(time))


def autocorrelation(table, task):
    """Return the autocorrelation of the errors of samples that follow each other in
    time, and its one-sided p-value, as a dict; None without times or with clusters.

    Mean errors by score, period and segment are subtracted first: a curve, a drift or a
    segment that is off is not dependence.
    """
    if table.periods is None or task.clusters is not None:
        return None
    if len(task.labels) < _FEWEST_ROWS:
        return None
    moments = table.moments
    if moments is None:
        moments = _places(table)
    order = np.argsort(moments, kind="stable")
    groups = [table.periods, *table.segmentations.values()]
    error = task.labels - task.scores.astype(np.float64)
    edges = EqualMass(_SCORE_BINS).bin_edges(task.scores.astype(np.float64))
    groups.append(np.searchsorted(edges[1:-1], task.scores))
    for group in groups:
        _, code = np.unique(group, return_inverse=True)
        group_mean = np.bincount(code, error) / np.bincount(code)
        error = error - group_mean[code]
    error = error[order]
    products = np.concatenate([error[lag:] * error[:-lag] for lag in _LAGS])
    spread = np.sqrt(np.sum(products**2))
    if spread == 0:
        return None
    # Independent errors: the products have mean 0 and are uncorrelated.
    pvalue = float(ndtr(-products.sum() / spread))
    estimate = np.sum(error[1:] * error[:-1]) / np.sum(error**2)
    return {"estimate": float(estimate), "pvalue": pvalue}


def _places(table):
    """Return the number of each row's period in the order of time, (n_rows,)."""
    number = {name: k for k, name in enumerate(table.period_order)}
    return np.array([number[name] for name in table.periods.tolist()])
