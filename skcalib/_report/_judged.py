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


def judged_model(event_rows, model, tolerance, is_binary):
    """Return the verdicts on all rows of a model, dicts by name: "bias",
    "over_confidence" (the bias for the more probable outcome) and "error".

    Parameters
    ----------
    event_rows : Rows
        The rows, as forecasts of one event.
    model : dict
        Numbers about the model, of which "errors" are used.
    tolerance : float
        Bias or error that does not matter, as a probability.
    is_binary : bool
        Whether there is one event, of which either outcome may be the more probable.
    """
    one_group = np.zeros(len(event_rows.labels), int)  # one group, called "0"
    bias = _bias_verdicts(event_rows, one_group, tolerance)
    over_confidence = bias
    if is_binary:
        more_probable = event_rows._replace(
            scores=np.maximum(event_rows.scores, 1 - event_rows.scores),
            labels=(event_rows.scores > 0.5) == event_rows.labels,
        )
        over_confidence = _bias_verdicts(more_probable, one_group, tolerance)
    return {
        "bias": _record(bias["0"]),
        "over_confidence": _record(over_confidence["0"]),
        # The first error is the mean absolute one.
        "error": judged_error(event_rows, model["errors"][0], tolerance),
    }


def judged_error(event_rows, error, tolerance):
    """Return the verdict on a calibration error, a dict with its 90 % interval.

    `error` is a dict of the error and its limits, and an error up to `tolerance` does
    not matter. `event_rows` are the `Rows`, whose number the verdict states.

    An error is never below 0: each limit of its 90 % interval is one at 95 %.
    """
    limits = (error["low"], error["high"])
    return _record(verdict(error["estimate"], limits, n_samples(event_rows), tolerance))


def judge_groups(rows, kind, event_rows, groups, tolerance, n_intervals=None):
    """Add a "verdict" on the bias to each of several dicts, one for each group.

    The limits of the verdicts hold for `n_intervals` intervals together, by default one
    for each group. `kind` is the key of the group's name in a dict, such as "segment";
    `groups` (n,) are the names by row.
    """
    verdicts = _bias_verdicts(event_rows, groups, tolerance, n_intervals)
    for row in rows:
        row["verdict"] = _record(verdicts[row[kind]])


def judged_rows(event_rows, tolerance, n_intervals):
    """Return the verdict on the bias of all rows as a dict, with limits that hold
    together with those of other intervals, `n_intervals` in all.
    """
    groups = np.zeros(len(event_rows.labels), int)  # one group, called "0"
    return _record(_bias_verdicts(event_rows, groups, tolerance, n_intervals)["0"])


def n_samples(event_rows):
    """Return the number of samples: the sum of frequency weights, else that of rows."""
    if event_rows.sample_weight is None or event_rows.weight_type == "importance":
        return len(event_rows.labels)
    return float(event_rows.sample_weight.sum())


def read_verdict(record):
    """Return the `Verdict` of a dict."""
    return Verdict(**record)


def _bias_verdicts(event_rows, groups, tolerance, n_intervals=None):
    """Return a dict of the `Verdict` on the bias of each group, by its name as text.

    `groups` (n,) is the group of each of the `Rows`. A bias up to `tolerance` does not
    matter. The limits hold for `n_intervals` intervals together, by default for one in
    each group.
    """
    if n_intervals is None:
        n_intervals = len(np.unique(groups))
    # One bin and one draw: the error of the table, which takes long, is not used.
    found = calibration_by_group(
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
