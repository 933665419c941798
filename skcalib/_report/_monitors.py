"""Monitors of a report: evidence against calibration in the order of time, of all rows and of each segment."""

from dataclasses import fields

import numpy as np

from skcalib.monitoring import GroupMonitors

WHOLE = "all rows"


def monitor_rows(table, name):
    """Return what monitors of a model saw, as `GroupMonitors.to_frame` has it: all rows first, then large segments.

    None without times, and for weights and clusters, whose rows are not independent steps. Rows of one period are seen
    in the order of the file.
    """
    if table.periods is None or table.is_weighted or table.clusters is not None:
        return []
    task, monitors = table.task(name), GroupMonitors()
    names, period = np.unique(table.periods, return_inverse=True)
    period = np.array([table.period_order.index(each) for each in names.tolist()])[period]
    groups, group = [WHOLE], np.zeros(len(period), dtype=np.intp)
    _see(monitors, task, group, period, np.argsort(period, kind="stable"))
    if table.segments is not None:
        segments, group, size = np.unique(table.segments, return_inverse=True, return_counts=True)
        groups += segments.tolist()
        _see(monitors, task, group + 1, period, np.lexsort((period, group, -size[group])))
    seen = monitors.table_
    columns = {field.name: getattr(seen, field.name).tolist() for field in fields(seen)}
    columns["group"] = [groups[code] for code in columns["group"]]
    for key in ("alarm_time", "change_time"):
        columns[key] = [None if at is None else table.period_order[at] for at in columns[key]]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _see(monitors, task, group, period, order):
    scores = task.scores[order].astype(np.float64)
    monitors.partial_fit(scores, task.labels[order], group[order], time=period[order])
