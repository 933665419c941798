"""The advice of `skcalib.evaluation.advise` as numbers of a report, for one model."""

from typing import NamedTuple

import numpy as np

from skcalib._report._forecasts import brier_difference, compared
from skcalib._report._judged import judged_error, judged_rows
from skcalib.evaluation import advise

UNCHANGED = "as it is"  # how a report calls scores that are not recalibrated


class Considered(NamedTuple):
    """The advice for a model, and what it rests on.

    Attributes
    ----------
    advice : dict
        What to do.
    candidates, changes : list of dict
        Rows of tables: the recalibrators that were compared, the best first, and the
        changes over time, the clearest first.
    rows : Rows
        The samples that were compared.
    probabilities : ndarray or None
        Their out-of-fold probabilities as advised; None if the advice is fitted to
        later samples only, or if the report first asks for the clusters.
    """

    advice: dict
    candidates: list
    changes: list
    rows: object
    probabilities: np.ndarray | None


def considered(table, name, seed, tolerance=0.02):
    """Return the advice for a model of a `ReportTable` as `Considered`.

    If ids repeat that were not declared as clusters, candidates are compared, but
    nothing is advised: out-of-fold losses would be too low if samples with one id,
    which may be in different folds, depend on each other.
    """
    rows = table.forecasts(name)
    labels = rows.options_of_labels["labels"]
    time = None
    if table.periods is not None:
        number = {period: k for k, period in enumerate(table.period_order)}
        time = np.array([number[period] for period in table.periods.tolist()])
    found = advise(
        rows.labels,
        rows.scores,
        groups=table.segmentations or None,
        time=time,
        clusters=rows.clusters,
        sample_weight=rows.sample_weight,
        weight_type=rows.weight_type,
        tolerance=tolerance,
        random_state=seed,
        labels=labels,
    )
    candidates = []
    for row in found.candidates:
        shown_name = UNCHANGED if row["name"] == "uncalibrated" else row["name"]
        candidates.append({**row, "name": shown_name})
    # The samples that were compared, which are fewer than all of a large table.
    sampled = table.at(found.rows)
    changes = _changes(sampled, name, found.changes, table.period_order, tolerance)
    # Ids that repeat may be clusters that the user did not declare.
    can_advise = not table.repeated_keys
    advice = _record(sampled, name, found, table.period_order, tolerance, can_advise)
    if not can_advise:
        advice["needs_cluster"] = table.repeated_keys[0]
        advice["n_of_key"] = table.n_of_key
    probabilities = found.probabilities if can_advise else None
    return Considered(
        advice, candidates, changes, sampled.forecasts(name), probabilities
    )


def brier_difference_as_advised(first, other):
    """Return the mean difference in out-of-fold Brier score between two models, if each
    is recalibrated as the report advises.

    Parameters
    ----------
    first, other : Considered
        The advice for the two models.

    Returns
    -------
    difference : dict or None
        "estimate", "low" and "high" of the score of `other` minus that of `first`. None
        if neither is to be recalibrated, or if out-of-fold scores of one of them as
        advised are not known.
    """
    advised_first = first.advice["recalibrator"]
    advised_other = other.advice["recalibrator"]
    if advised_first is None and advised_other is None:
        return None
    if first.probabilities is None or other.probabilities is None:
        return None
    scores = {"first": first.probabilities, "other": other.probabilities}
    return brier_difference(compared(first.rows, scores), "other")


def _record(sampled, name, found, period_order, tolerance, can_advise):
    """Return an `Advice` as a dict: what to do, its gain over the unchanged scores, and
    the calibration error that is left.

    Nothing is advised unless `can_advise`, which is False if samples may depend on each
    other because their ids repeat. `sampled` is the `ReportTable` of the samples that
    were compared.
    """
    advice = {
        "kind": "none",
        "recalibrator": None,
        "column": None,
        "segments": [],
        "others": None,
        "since": None,
        "gain": None,
        "gain_low": None,
        "gain_high": None,
        "log_loss": None,
        "error_left": None,
        "simpler": None,
        "rows_needed": None,
        "rows_needed_low": None,
        "needs_cluster": None,
        "n_of_key": None,
        "reason": found.reason or None,
        "default": None,
        "steps": [],
    }
    if not can_advise:
        return advice
    rows = sampled.event_rows(name)
    if found.since is not None:
        advice["since"] = period_order[found.since]
        later = period_order[found.since :]
        rows = rows.at(np.isin(sampled.periods, later))
    advice["default"] = found.default or None
    if not found.steps:
        return advice
    for step in found.steps:
        advice["steps"].append(
            {
                "recalibrator": step.name,
                "before": step.before,
                "gain": step.gain.estimate,
                "gain_low": step.gain.low,
                "gain_high": step.gain.high,
                "pvalue": step.pvalue,
            }
        )
    step = found.steps[-1]
    simpler = UNCHANGED if step.before == "uncalibrated" else step.before
    error = {**found.error_left._asdict(), "reason": found.error_left.reason}
    advice |= {
        "kind": found.kind,
        "recalibrator": step.name,
        "column": step.column,
        "segments": list(step.segments),
        "others": step.others,
        "gain": found.gain.estimate,
        "gain_low": found.gain.low,
        "gain_high": found.gain.high,
        "log_loss": found.log_loss,
        "error_left": judged_error(rows, error, tolerance),
        "simpler": simpler,
    }
    if found.n_needed is not None:
        advice["rows_needed_low"], advice["rows_needed"] = found.n_needed
    return advice


def _changes(sampled, name, changes, period_order, tolerance):
    """Return the changes over time as dicts, with the bias before and after each.

    `sampled` is the `ReportTable` of the samples that were compared.
    """
    if not changes:
        return []
    n_groups = 1
    for segments in sampled.segmentations.values():
        n_groups += len(np.unique(segments))
    # The limits of a verdict hold for each group and period that might have been found,
    # before the change and after it.
    n_intervals = 2 * n_groups * (len(sampled.period_order) - 1)
    event_rows = sampled.event_rows(name)
    records = []
    for change in changes:
        in_group = np.ones(len(event_rows.labels), dtype=bool)
        if change.group is not None:
            in_group = sampled.segmentations[change.column] == change.group
        is_later = np.isin(sampled.periods, period_order[change.since :])
        verdicts = {}
        for when, is_part in (("before", ~is_later), ("after", is_later)):
            part = event_rows.at(in_group & is_part)
            verdicts[when] = judged_rows(part, tolerance, n_intervals)
        records.append(
            {
                "group": change.group,
                "since": period_order[change.since],
                "bias_before": verdicts["before"]["estimate"],
                "verdict_before": verdicts["before"],
                "bias_after": verdicts["after"]["estimate"],
                "verdict_after": verdicts["after"],
                "adjusted_pvalue": change.adjusted_pvalue,
            }
        )
    return records
