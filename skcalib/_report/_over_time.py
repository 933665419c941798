"""What the order of time tells besides its periods: a trend of the bias, and whether
errors of samples that follow each other are alike.
"""

import numpy as np

from skcalib._report._samples import LABELS
from skcalib.monitoring import calibration_trend, error_autocorrelation

_FEWEST_PERIODS = 4
_LEVEL = 0.95


def trend_numbers(table, event_rows):
    """Return the linear trend of the bias over the periods as a dict: how much the
    fitted bias changes ("moved") from the first period to the last, with limits and
    p-value; None for fewer than four periods, or if the samples do not tell.

    `table` is the `ReportTable`, `event_rows` the `Rows` of the event.
    """
    if table.periods is None or len(table.period_order) < _FEWEST_PERIODS:
        return None
    order = table.period_order
    trend = calibration_trend(
        event_rows.labels,
        event_rows.scores,
        _places(table),
        confidence_level=_LEVEL,
        sample_weight=event_rows.sample_weight,
        weight_type=event_rows.weight_type,
        clusters=event_rows.clusters,
        pos_label=_pos_label(event_rows),
    )
    if np.isnan(trend.pvalue):
        return None
    n_steps = len(order) - 1
    slope = trend.slope  # change of the bias from a period to the next
    return {
        "first": order[0],
        "last": order[-1],
        "moved": n_steps * slope.estimate,
        "moved_low": n_steps * slope.low,
        "moved_high": n_steps * slope.high,
        "pvalue": trend.pvalue,
        "is_step": trend.is_step,
    }


def autocorrelation(table, event_rows):
    """Return the autocorrelation of the errors of consecutive samples as a dict; None
    without times, with clusters, or if it cannot be estimated.
    """
    if table.periods is None or event_rows.clusters is not None:
        return None
    # The order of time: by dates if they are known, else by periods.
    moments = table.moments
    if moments is None:
        moments = _places(table)
    columns = [table.periods, *table.segmentations.values()]
    found = error_autocorrelation(
        event_rows.labels,
        event_rows.scores,
        moments,
        groups=dict(enumerate(columns)),
        pos_label=_pos_label(event_rows),
    )
    if found.reason:
        return None
    return {
        "estimate": found.estimate,
        "factor": found.factor,
        "pvalue": found.pvalue,
    }


def _pos_label(event_rows):
    """Return the label of the event; None if the samples have one label, where naming
    it would be an error.
    """
    if event_rows.labels.all() or not event_rows.labels.any():
        return None
    return LABELS[1]


def _places(table):
    """Return the number of each row's period in the order of time, (n_rows,)."""
    number = {name: k for k, name in enumerate(table.period_order)}
    return np.array([number[name] for name in table.periods.tolist()])
