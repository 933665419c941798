"""Calibration over time: a row for each period, and whether the calibration curve has
changed.
"""

import numpy as np

from skcalib._report._judged import judge_groups
from skcalib._report._samples import (
    LABELS,
    REPORT_BINNING,
    adjust,
    group_records,
    records,
)
from skcalib.monitoring import GroupMonitors, calibration_change

_N_RESAMPLES = 999


def period_rows(table, name, baseline, seed, tolerance=0.02):
    """Return a row for each period, in the order of time, with its test of change
    against the baseline.

    Parameters
    ----------
    table : ReportTable
        All rows; they are one period where there is no column of times.
    name : str
        Name of the model.
    baseline : ReportTable or None
        The rows to compare with; None means those of the first period.
    seed : int
        Seed of the resamples.
    tolerance : float, default=0.02
        Bias that does not matter, as a probability.

    Returns
    -------
    rows : list of dict
        Numbers by name, none without times and baseline; the p-value of a change is
        None for the first period without a baseline.
    """
    if table.periods is None and baseline is None:
        return []
    event_rows = table.event_rows(name)
    periods = table.periods
    order = table.period_order
    if periods is None:
        periods = np.full(len(event_rows.scores), "all rows")
        order = ["all rows"]
    rows = group_records(event_rows, periods, "period", seed)
    rows.sort(key=lambda row: order.index(row["period"]))
    # Each period is compared with the baseline or, if there is none, with the first
    # period.
    if baseline is None:
        before = event_rows.at(periods == order[0])
    else:
        before = baseline.event_rows(name)
    for row in rows:
        row["change_pvalue"] = None
        row["change_adjusted_pvalue"] = None
        if baseline is not None or row is not rows[0]:
            after = event_rows.at(periods == row["period"])
            row["change_pvalue"] = _change_pvalue(before, after, seed)
    adjust(rows, "change_pvalue", "change_adjusted_pvalue")
    judge_groups(rows, "period", event_rows, periods, tolerance)
    return rows


def _change_pvalue(before, after, seed):
    """Return the p-value of "calibration is the same before and after", two `Rows`;
    None if they are too few.
    """
    options = {
        "confidence_level": None,  # no intervals
        "n_resamples": _N_RESAMPLES,
        "random_state": seed,
        "weight_type": after.weight_type,
    }
    # Weights and clusters are passed as pairs: those before and those after.
    for key in ("sample_weight", "clusters"):
        if getattr(after, key) is not None:
            options[key] = (getattr(before, key), getattr(after, key))
    rows = (before.labels, before.scores, after.labels, after.scores)
    try:
        return calibration_change(
            *rows, labels=LABELS, binning=REPORT_BINNING, **options
        ).pvalue
    except ValueError:  # too few rows for an error
        return None


def monitor_rows(table, name):
    """Return the results of monitors of a model, as a list of dicts with the columns of
    `GroupMonitors.table_`: all rows first, then segments, the largest first.

    The list is empty without times. It is also empty with weights or clusters, since a
    monitor takes independent rows one by one. Rows of one period are taken in the order
    of the file.
    """
    if table.periods is None or table.is_weighted or table.clusters is not None:
        return []
    event_rows = table.event_rows(name)
    scores = event_rows.scores.astype(np.float64)
    monitors = GroupMonitors()
    # The number of each row's period in the order of time, (n_rows,).
    period_names, code = np.unique(table.periods, return_inverse=True)
    number_of_period = [table.period_order.index(name) for name in period_names]
    period = np.array(number_of_period)[code]

    def update(group, order):
        """Pass all rows to the monitors of their groups.

        `group` (n_rows,) is the number of each row's group, `order` (n_rows,) holds the
        positions of the rows in the order in which they are passed.
        """
        monitors.partial_fit(
            scores[order], event_rows.labels[order], group[order], time=period[order]
        )

    # The number of a group is its position in this list.
    group_names = ["all rows"]
    all_rows = np.zeros(len(period), dtype=np.intp)
    update(all_rows, np.argsort(period, kind="stable"))
    for segment_of_row in table.segmentations.values():
        segments, code, size = np.unique(
            segment_of_row, return_inverse=True, return_counts=True
        )
        # The largest segments first, each in the order of time: `lexsort` sorts by its
        # last key first.
        order = np.lexsort((period, code, -size[code]))
        update(len(group_names) + code, order)
        group_names += segments.tolist()
    rows = records(monitors.table_.columns())
    # From numbers back to the names of groups and periods.
    for row in rows:
        row["group"] = group_names[row["group"]]
        for key in ("alarm_time", "change_time"):
            if row[key] is not None:
                row[key] = table.period_order[row[key]]
    return rows
