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


def judged_model(event_rows, error, tolerance, classes):
    """Return the means of all rows of a model and their verdicts, a dict.

    Its keys are "mean_score" and "event_frequency"; "score_minus_frequency" (the bias)
    and "over_confidence" (the bias for the more probable outcome of each sample), each
    a dict of "estimate", "low", "high" and "reason"; and "verdicts", a dict of the
    verdicts on "bias", "over_confidence" and "error". The limits of a verdict are those
    of its number.

    Parameters
    ----------
    event_rows : Rows
        The rows, as forecasts of one event.
    error : dict
        The mean absolute calibration error with its limits.
    tolerance : float
        Bias or error that does not matter, as a probability.
    classes : tuple of str or None
        None for one event, of which either outcome may be the more probable. With
        several classes the scores are already those of the predicted class.
    """
    one_group = np.zeros(len(event_rows.labels), int)  # one group, called "0"
    table = _bias_table(event_rows, one_group)
    bias = _bias_verdicts(table, event_rows, one_group, tolerance)["0"]
    over_confidence = bias
    if classes is None:
        # Overconfidence: the mean probability of the more probable of both outcomes
        # less the frequency with which it happens.
        more_probable = event_rows._replace(
            scores=np.maximum(event_rows.scores, 1 - event_rows.scores),
            labels=(event_rows.scores > 0.5) == event_rows.labels,
        )
        table_of_more_probable = _bias_table(more_probable, one_group)
        over_confidence = _bias_verdicts(
            table_of_more_probable, event_rows, one_group, tolerance
        )["0"]
    return {
        "mean_score": float(table.mean_score[0]),
        "event_frequency": float(table.event_frequency[0]),
        "n_events": event_rows.counted(True),
        "n_others": event_rows.counted(False),
        "score_minus_frequency": _interval(bias),
        "over_confidence": _interval(over_confidence),
        "verdicts": {
            "bias": _record(bias),
            "over_confidence": _record(over_confidence),
            "error": judged_error(event_rows, error, tolerance),
        },
    }


def _interval(judged):
    """Return the estimate of a `Verdict` with its limits, a dict."""
    return {
        "estimate": judged.estimate,
        "low": judged.low,
        "high": judged.high,
        "reason": judged.reason or None,
    }


def judged_error(event_rows, error, tolerance):
    """Return the verdict on a calibration error, a dict with its 90 % interval.

    `error` is a dict of the error and its limits, and an error up to `tolerance` does
    not matter. `event_rows` are the `Rows`, whose number the verdict states.

    An error is never below 0: each limit of its 90 % interval is one at 95 %.
    """
    judged = verdict(
        error["estimate"],
        (error["low"], error["high"]),
        n_samples(event_rows),
        tolerance,
        reason=error.get("reason") or "",
    )
    return _record(judged)


def judge_groups(rows, kind, event_rows, groups, tolerance, n_intervals=None):
    """Add a "verdict" on the bias to each of several dicts, one for each group.

    The limits of the verdicts hold for `n_intervals` intervals together, by default one
    for each group. `kind` is the key of the group's name in a dict, such as "segment";
    `groups` (n,) are the names by row.
    """
    table = _bias_table(event_rows, groups, n_intervals)
    verdicts = _bias_verdicts(table, event_rows, groups, tolerance)
    for row in rows:
        row["verdict"] = _record(verdicts[row[kind]])


def judged_rows(event_rows, tolerance, n_intervals):
    """Return the verdict on the bias of all rows as a dict, with limits that hold
    together with those of other intervals, `n_intervals` in all.
    """
    groups = np.zeros(len(event_rows.labels), int)  # one group, called "0"
    table = _bias_table(event_rows, groups, n_intervals)
    return _record(_bias_verdicts(table, event_rows, groups, tolerance)["0"])


def n_samples(event_rows, is_counted=True):
    """Return the number of samples: the sum of frequency weights, else that of rows.
    `is_counted` (n,) says which rows count, by default all.
    """
    if event_rows.sample_weight is None or event_rows.weight_type == "importance":
        return int(np.sum(np.full(len(event_rows.labels), is_counted)))
    return float(np.sum(event_rows.sample_weight * is_counted))


def read_verdict(record):
    """Return the `Verdict` of a dict, in which JSON may have None for limits that are
    NaN.
    """
    limits = {key: np.nan for key in ("low", "high") if record[key] is None}
    return Verdict(**{**record, **limits})


def _bias_table(event_rows, groups, n_intervals=None):
    """Return the `GroupCalibration` of `groups` (n,), whose biases have limits that
    hold for `n_intervals` together, by default one per group.
    """
    if n_intervals is None:
        n_intervals = len(np.unique(groups))
    # One bin and one draw: the error of the table, which takes long, is not used.
    return calibration_by_group(
        event_rows.labels,
        event_rows.scores,
        groups,
        norm=1,
        binning=EqualMass(1),
        method="plugin",
        n_resamples=1,
        confidence_level=simultaneous_level(VERDICT_LEVEL, n_intervals),
        random_state=0,
        **event_rows.inference_options,
    )


def _bias_verdicts(table, event_rows, groups, tolerance):
    """Return by name the `Verdict` on the bias of each group, which does not matter up
    to `tolerance`. It counts samples, also where weights make the effective number
    smaller: those there are, and those it needs.
    """
    names = np.asarray(groups).astype(str)
    verdicts = {}
    for k, name in enumerate(table.group.astype(str).tolist()):
        verdicts[name] = verdict(
            table.bias[k],
            (table.bias_low[k], table.bias_high[k]),
            n_samples(event_rows, names == name),
            tolerance,
            reason=str(table.reason[k]),
        )
    return verdicts


def _record(judged):
    """Return a `Verdict` as a dict."""
    return asdict(judged)
