"""Decisions at thresholds: net benefit, both errors, and what miscalibration costs
there.
"""

import numpy as np

from skcalib._report._recalibration import TrialRows
from skcalib._report._statistics import CONFIDENCE_LEVEL, records
from skcalib.decisions import net_benefit
from skcalib.recalibrators import SplineCalibration


def decision_rows(table, name, thresholds, seed):
    """Return a row for each threshold: rows with a score of at least as much are
    treated.

    What miscalibration costs is how much higher the net benefit of the recalibrated
    scores is: of a spline, fitted out of fold. It is None where a class has fewer rows
    than there are folds.
    """
    task, rows = table.task(name), []
    against_none, against_all = (
        _benefits(task, thresholds, reference) for reference in ("none", "all")
    )
    costs = _costs(TrialRows.of(table, name, seed), thresholds)
    for threshold, *found in zip(
        thresholds, against_none, against_all, costs, strict=True
    ):
        treated = task.scores >= threshold
        shares = {
            "treated": treated,
            "false_alarms": treated & ~task.labels,
            "misses": ~treated & task.labels,
        }
        row = {
            "threshold": threshold,
            **{
                key: task.interval(share.astype(float)) for key, share in shares.items()
            },
        }
        benefits = zip(
            ("net_benefit", "against_treating_all", "cost_of_miscalibration"),
            found,
            strict=True,
        )
        rows.append(row | dict(benefits))
    return rows


def _costs(rows, thresholds):
    if rows.folds is None:
        return [None] * len(thresholds)
    return _benefits(
        rows.predicted(rows.trial(SplineCalibration())), thresholds, rows.tested.scores
    )


def _benefits(task, thresholds, reference):
    """Return the net benefit, or the difference of two, with its interval at each
    threshold.
    """
    clusters = task.clusters
    if clusters is None and task.weight_type == "importance":
        clusters = np.arange(len(task.labels))
    options = {
        "thresholds": thresholds,
        "reference": reference,
        "confidence_level": CONFIDENCE_LEVEL,
    }
    options |= {
        "sample_weight": task.sample_weight,
        "clusters": clusters,
        "pos_label": True,
    }
    found = net_benefit(task.labels, task.scores, **options)
    return records(
        {"estimate": found.net_benefit, "low": found.low, "high": found.high}
    )
