"""Verdicts of a report: on the bias of all rows, of segments, of periods and after a
change, and on the calibration error.

Their limits hold for all segments, or all periods, together at 95 %.
"""

from dataclasses import asdict

import numpy as np

from skcalib._verdicts import Verdict, simultaneous_level, verdict
from skcalib.binning import EqualMass
from skcalib.metrics import calibration_by_group

VERDICT_LEVEL = 0.95


def judged_model(task, model, tolerance, is_binary):
    """Return the verdicts on all rows of a model, dicts by name: "bias",
    "over_confidence" (the bias for the more probable outcome) and "error".
    """
    one_group = np.zeros(len(task.labels), int)
    bias = _bias_verdicts(task, one_group, tolerance)
    over_confidence = bias
    if is_binary:
        more_probable = task._replace(
            scores=np.maximum(task.scores, 1 - task.scores),
            labels=(task.scores > 0.5) == task.labels,
        )
        over_confidence = _bias_verdicts(more_probable, one_group, tolerance)
    return {
        "bias": _record(bias["0"]),
        "over_confidence": _record(over_confidence["0"]),
        "error": judged_error(task, model["errors"][0], tolerance),
    }


def judged_error(task, error, tolerance):
    """Return the verdict on a calibration error, a dict with its 90 % interval.

    An error is never below 0: each limit of its 90 % interval is one at 95 %.
    """
    limits = (error["low"], error["high"])
    return _record(verdict(error["estimate"], limits, n_samples(task), tolerance))


def judge_groups(rows, kind, task, groups, tolerance, n_intervals=None):
    """Add verdicts on the bias to dicts of groups, with limits for all groups together.
    `kind` is the key of the group's name.
    """
    verdicts = _bias_verdicts(task, groups, tolerance, n_intervals)
    for row in rows:
        row["verdict"] = _record(verdicts[row[kind]])


def judged_rows(task, tolerance, n_intervals):
    """Return the verdict on the bias of all rows as a dict, with limits that hold
    together with those of other intervals, `n_intervals` in all.
    """
    groups = np.zeros(len(task.labels), int)
    return _record(_bias_verdicts(task, groups, tolerance, n_intervals)["0"])


def n_samples(task):
    """Return the number of samples, with frequency weights their sum."""
    if task.sample_weight is None or task.weight_type == "importance":
        return len(task.labels)
    return float(task.sample_weight.sum())


def read_verdict(record):
    """Return the `Verdict` of a dict."""
    return Verdict(**record)


def _bias_verdicts(task, groups, tolerance, n_intervals=None):
    """Return the `Verdict` on the bias of each group by its name as text; limits hold
    for `n_intervals` together, by default for the groups.
    """
    if n_intervals is None:
        n_intervals = len(np.unique(groups))
    # One bin and one draw: the error of the table, which takes long, is not used.
    found = calibration_by_group(
        task.labels,
        task.scores,
        groups,
        norm=1,
        binning=EqualMass(1),
        method="plugin",
        n_resamples=1,
        confidence_level=simultaneous_level(VERDICT_LEVEL, n_intervals),
        random_state=0,
        **task.dependence,
    )
    rows = zip(
        found.group.astype(str).tolist(),
        found.n.tolist(),
        found.bias.tolist(),
        found.bias_low.tolist(),
        found.bias_high.tolist(),
        strict=True,
    )
    verdicts = {}
    for name, n, bias, low, high in rows:
        verdicts[name] = verdict(bias, (low, high), n, tolerance)
    return verdicts


def _record(judged):
    """Return a `Verdict` as a dict."""
    return asdict(judged)
