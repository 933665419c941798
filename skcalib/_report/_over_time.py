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


def trend_numbers(table, event_rows):
    """Return the trend of the bias from the first period to the last as a dict; None
    for fewer than four periods.
    """
    if table.periods is None or len(table.period_order) < _FEWEST_PERIODS:
        return None
    order = table.period_order
    # The event is True; it is named where both labels occur.
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
    """Return whether a step fits the biases of the periods better than a straight line,
    each by least squares with the weights of the periods. Of steps, the period of the
    best one counts.
    """
    place = _places(table)
    weight = weights_or_ones(event_rows.sample_weight, len(place))
    error = event_rows.scores.astype(np.float64) - event_rows.labels
    period_weight = np.bincount(place, weight)
    is_used = period_weight > 0
    bias = np.bincount(place, weight * error)[is_used] / period_weight[is_used]
    period_weight = period_weight[is_used]
    time = np.arange(len(is_used))[is_used]

    def residual_squares(feature):
        """Return the weighted sum of squared residuals of the biases after a regression
        on a constant and this feature (n_periods,).
        """
        centred = feature - np.average(feature, weights=period_weight)
        rest = bias - np.average(bias, weights=period_weight)
        covariance = np.sum(period_weight * centred * rest)
        slope = covariance / np.sum(period_weight * centred**2)
        return np.sum(period_weight * (rest - slope * centred) ** 2)

    of_steps = []
    for since in time[1:]:
        of_steps.append(residual_squares((time >= since).astype(float)))
    return bool(min(of_steps, default=np.inf) < residual_squares(time))


def autocorrelation(table, event_rows):
    """Return the autocorrelation of the errors of samples that follow each other in
    time, and its one-sided p-value, as a dict; None without times or with clusters.

    Mean errors by score, period and segment are subtracted first: a curve, a drift or a
    segment that is off is not dependence.
    """
    if table.periods is None or event_rows.clusters is not None:
        return None
    if len(event_rows.labels) < _FEWEST_ROWS:
        return None
    # The finest times there are, else the periods.
    moments = table.moments
    if moments is None:
        moments = _places(table)
    order = np.argsort(moments, kind="stable")
    groups = [table.periods, *table.segmentations.values()]
    error = event_rows.labels - event_rows.scores.astype(np.float64)
    edges = EqualMass(_SCORE_BINS).bin_edges(event_rows.scores.astype(np.float64))
    groups.append(np.searchsorted(edges[1:-1], event_rows.scores))
    for group in groups:
        _, code = np.unique(group, return_inverse=True)
        group_mean = np.bincount(code, error) / np.bincount(code)
        error = error - group_mean[code]
    error = error[order]
    # Products of errors that are 1 to 5 samples apart.
    products = np.concatenate([error[lag:] * error[:-lag] for lag in _LAGS])
    spread = np.sqrt(np.sum(products**2))
    if spread == 0:
        return None
    # Of independent errors the products have mean 0 and are uncorrelated, so that their
    # sum divided by `spread` is about standard normal.
    pvalue = float(ndtr(-products.sum() / spread))
    # The estimate is that of neighbours alone.
    estimate = np.sum(error[1:] * error[:-1]) / np.sum(error**2)
    return {"estimate": float(estimate), "pvalue": pvalue}


def _places(table):
    """Return the number of each row's period in the order of time, (n_rows,)."""
    number = {name: k for k, name in enumerate(table.period_order)}
    return np.array([number[name] for name in table.periods.tolist()])
