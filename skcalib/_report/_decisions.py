"""Decisions at thresholds: net benefit, both errors, and what miscalibration costs
there.
"""

from skcalib._report._samples import CONFIDENCE_LEVEL, LABELS, records
from skcalib.decisions import net_benefit
from skcalib.evaluation import cross_validate
from skcalib.recalibrators import SplineCalibration


def decision_rows(table, name, thresholds, found, seed):
    """Return a list with a dict of numbers for each decision threshold; samples are
    treated if their score is at or above it.

    `table` is the `ReportTable`, `name` the name of the model, and `found` its
    `Considered`. The numbers are shares of the samples and differences in net benefit,
    each a dict of "estimate", "low" and "high". The cost of miscalibration is how much
    higher the net benefit is after recalibration; it is None if there are too few
    samples to cross-validate.
    """
    event_rows = table.event_rows(name)
    against_none = _benefits(event_rows, thresholds, "none")
    against_all = _benefits(event_rows, thresholds, "all")
    costs = _costs(found, thresholds, seed)
    rows = []
    for number, threshold in enumerate(thresholds):
        is_treated = event_rows.scores >= threshold
        false_alarms = is_treated & ~event_rows.labels
        misses = ~is_treated & event_rows.labels
        row = {
            "threshold": threshold,
            "treated": event_rows.share(is_treated),
            "false_alarms": event_rows.share(false_alarms),
            "misses": event_rows.share(misses),
            "net_benefit": against_none[number],
            "against_treating_all": against_all[number],
            "cost_of_miscalibration": costs[number],
        }
        rows.append(row)
    return rows


def _costs(found, thresholds, seed):
    """Return the cost of miscalibration at each threshold: how much higher the net
    benefit is for out-of-fold scores recalibrated with a spline. It is a list of dicts
    of "estimate", "low" and "high", or of None with too few samples for the folds.
    """
    if not found.candidates:
        return [None] * len(thresholds)
    rows = found.rows
    result = cross_validate(
        rows.labels,
        rows.scores,
        {"spline": SplineCalibration()},
        clusters=rows.clusters,
        sample_weight=rows.sample_weight,
        weight_type=rows.weight_type,
        random_state=seed,
        labels=LABELS,
    )
    recalibrated = rows._replace(scores=result.probabilities["spline"])
    return _benefits(recalibrated, thresholds, reference=rows.scores)


def _benefits(event_rows, thresholds, reference):
    """Return by how much the net benefit of treating by scores exceeds that of a
    reference: dicts with "estimate", "low" and "high".

    The reference is "none" (nobody is treated), "all", or other scores (n,) for the
    same samples.
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
        {
            "estimate": result.net_benefit,
            "low": result.low,
            "high": result.high,
            "reason": result.reason,
        }
    )
