"""Decisions at thresholds: net benefit, both errors, and what miscalibration costs
there.
"""

from skcalib._report._recalibration import TrialRows
from skcalib._report._statistics import CONFIDENCE_LEVEL, records
from skcalib.decisions import net_benefit
from skcalib.recalibrators import SplineCalibration


def decision_rows(table, name, thresholds, seed):
    """Return a list with a dict for each threshold, at or above which rows are treated.

    The cost of miscalibration is how much higher the net benefit is after recalibration
    with a spline (out-of-fold). It is None if a class has fewer rows than there are
    folds.
    """
    event_rows = table.event_rows(name)
    against_none = _benefits(event_rows, thresholds, "none")
    against_all = _benefits(event_rows, thresholds, "all")
    costs = _costs(TrialRows.of(table, name, seed), thresholds)
    rows = []
    for number, threshold in enumerate(thresholds):
        is_treated = event_rows.scores >= threshold
        false_alarms = is_treated & ~event_rows.labels
        misses = ~is_treated & event_rows.labels
        row = {
            "threshold": threshold,
            "treated": event_rows.interval(is_treated.astype(float)),
            "false_alarms": event_rows.interval(false_alarms.astype(float)),
            "misses": event_rows.interval(misses.astype(float)),
            "net_benefit": against_none[number],
            "against_treating_all": against_all[number],
            "cost_of_miscalibration": costs[number],
        }
        rows.append(row)
    return rows


def _costs(rows, thresholds):
    """Return the cost of miscalibration at each threshold, a list of dicts with an
    estimate and its limits, or of None; `rows` are the `TrialRows`.
    """
    if rows.folds is None:
        return [None] * len(thresholds)
    recalibrated = rows.predicted(rows.trial(SplineCalibration()))
    return _benefits(recalibrated, thresholds, rows.tested.scores)


def _benefits(event_rows, thresholds, reference):
    """Return the difference in net benefit from a reference at each threshold, a list
    of dicts with an estimate and its limits.

    The reference is "none", "all", or the scores (n,) of another model.
    """
    result = net_benefit(
        event_rows.labels,
        event_rows.scores,
        thresholds=thresholds,
        reference=reference,
        confidence_level=CONFIDENCE_LEVEL,
        sample_weight=event_rows.sample_weight,
        weight_type=event_rows.weight_type,
        clusters=event_rows.clusters,
        pos_label=True,
    )
    return records(
        {"estimate": result.net_benefit, "low": result.low, "high": result.high}
    )
