"""Calibration over time: a row for each period, and whether the calibration curve has changed."""

import re

import numpy as np

from skcalib._report._reader import ReportError
from skcalib._report._statistics import CONFIDENCE_LEVEL, REPORT_BINNING, given
from skcalib.metrics import calibration_by_group
from skcalib.metrics._by_group import holm
from skcalib.monitoring import calibration_change

__all__ = ["named_periods", "period_rows"]

_MOST_PERIODS = 36
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_N_RESAMPLES = 999


def named_periods(column, name):
    """Return the period of each row and the periods in their order: the values, or the months or years of dates."""
    values = np.array(["(missing)" if value is None or value != value else str(value) for value in column.tolist()])
    missing = values == "(missing)"
    if missing.any():
        raise ReportError(f"column {name!r}: row {int(missing.argmax())} has no time.")
    if all(_DATE.match(value) for value in np.unique(values)[:1000]):
        for letters in (10, 7, 4):  # days, months, years
            values = values.astype(f"<U{letters}")
            if len(np.unique(values)) <= _MOST_PERIODS:
                break
    periods = np.unique(values)
    if len(periods) > _MOST_PERIODS:
        raise ReportError(
            f"column {name!r} has {len(periods)} different values; a report takes at most {_MOST_PERIODS} periods, or "
            "dates as YYYY-MM-DD."
        )
    try:
        periods = periods[np.argsort(periods.astype(np.float64), kind="stable")]
    except ValueError:  # names stay in the order of their letters
        pass
    return values, periods.tolist()


def period_rows(task, periods, order, baseline, seed):
    """Return a row for each period, in the order of time, with its test of change against the baseline.

    Parameters
    ----------
    task : BinaryTask
        All rows.
    periods : ndarray of str, shape (n,)
        The period of each row.
    order : list of str
        The periods in the order of time.
    baseline : BinaryTask or None
        The rows to compare with; None means those of the first period.
    seed : int
        Seed of the resamples.

    Returns
    -------
    rows : list of dict
        Numbers by name; the p-values are None for weighted rows and for the first period without a baseline.
    """
    options = {"binning": REPORT_BINNING, "confidence_level": CONFIDENCE_LEVEL, "random_state": seed, **given(task)}
    table = calibration_by_group(task.labels, task.scores, periods, **options)
    rows = []
    for name in order:
        i = int(np.flatnonzero(table.group == name)[0])
        row = {"period": name, "n_rows": float(table.n[i])}
        for key in ("mean_score", "event_frequency", "bias", "bias_low", "bias_high"):
            row[key] = float(getattr(table, key)[i])
        row |= {"estimate": table.error[i], "low": table.error_low[i], "high": table.error_high[i]}
        rows.append({**row, "change_pvalue": None, "change_adjusted_pvalue": None})
    if task.sample_weight is None:
        first = periods == order[0]
        before = (task.labels[first], task.scores[first]) if baseline is None else baseline
        tested = rows if baseline is not None else rows[1:]
        for row in tested:
            inside = periods == row["period"]
            row["change_pvalue"] = _change_pvalue(before, (task.labels[inside], task.scores[inside]), seed)
        known = [row for row in tested if row["change_pvalue"] is not None]
        for row, adjusted in zip(known, holm(np.array([row["change_pvalue"] for row in known])), strict=True):
            row["change_adjusted_pvalue"] = float(adjusted)
    return rows


def _change_pvalue(before, after, seed):
    try:
        change = calibration_change(
            *before, *after, n_resamples=_N_RESAMPLES, labels=[False, True], binning=REPORT_BINNING, random_state=seed
        )
    except ValueError:  # too few rows for an error
        return None
    return change.pvalue
