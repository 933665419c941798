"""The numbers of a report, as plain lists and dicts that JSON can hold: nothing here draws or writes."""

from functools import partial
from math import isfinite

import numpy as np

from skcalib._bins.reductions import BinaryTask, binary_tasks
from skcalib._input.scored_labels import check_scored_labels
from skcalib._report._periods import period_rows
from skcalib._report._recalibration import recalibration_gains
from skcalib._report._sentences import SIGNIFICANCE_LEVEL, summary_sentence
from skcalib._report._statistics import CONFIDENCE_LEVEL, LABELS, REPORT_BINNING, given, log_losses, mean, mean_interval
from skcalib.guarantees import conditional_epsilon, expected_error_bound, marginal_epsilon
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    sweep_calibration_error,
)

__all__ = ["SMALL_SEGMENT", "report_numbers"]

SMALL_SEGMENT = 100  # rows below which the place of a segment in the table may well be chance
_N_RESAMPLES = 999
_BIN_COUNTS = (2, 3, 5, 10, 15, 20, 30, 50, 100)


def report_numbers(table, *, seed, step, baseline=None):
    """Return all numbers of a report.

    Parameters
    ----------
    table : ReportTable
        Labels, scores, weights and segments.
    seed : int
        Seed of resamples and folds.
    step : callable
        Told what is done next, for a progress bar.
    baseline : ReportTable, default=None
        Earlier rows that the periods, or all rows, are compared with.

    Returns
    -------
    numbers : dict
        Plain values; None where a number is not defined.
    """
    models = []
    for name, scores in table.scores.items():
        step(f"errors of {name}")
        task = BinaryTask(scores, table.y, table.weight)
        model = {"name": name, **_bias(task), "errors": _errors(task, seed), "proper_scores": _proper_scores(task)}
        step(f"test of {name}")
        model["test"] = _test(task, seed)
        model["bins"] = _bins(task)
        step(f"segments of {name}")
        model["segments"] = _segment_rows(task, table.segments, seed)
        model["periods"] = _period_rows(task, table, baseline, name, seed)
        step(f"recalibrators of {name}")
        model["recalibrators"] = recalibration_gains(task, seed)
        if models:
            model["brier_difference"] = _brier_difference(task, next(iter(table.scores.values())))
        model["summary"] = summary_sentence(model, table.n_rows)
        models.append(model)
    return _plain(
        {
            "source": table.source,
            "label": table.label,
            "event": table.event,
            "n_rows": len(table.y),
            "total_weight": table.n_rows,
            "weighted": table.weight is not None,
            "event_frequency": mean(table.y, table.weight),
            "segment": table.segment_name,
            "time": table.time_name,
            "baseline": None if baseline is None else baseline.source,
            "confidence_level": CONFIDENCE_LEVEL,
            "models": models,
            "certificates": [] if table.weight is not None else _certificates(len(table.y)),
        }
    )


def _bias(task):
    """Return how far the scores are off on average: of the event, and of the decision they stand for."""
    data = check_scored_labels(task.labels, task.scores, sample_weight=task.sample_weight, labels=LABELS)
    decided = next(binary_tasks(data, "top_label"))
    return {
        "mean_score": mean(task.scores, task.sample_weight),
        "score_minus_frequency": mean_interval(task.scores - task.labels, task.sample_weight),
        "over_confidence": mean_interval(decided.scores - decided.labels, task.sample_weight),
    }


def _errors(task, seed):
    """Return calibration errors with their intervals; the first is the one of the summary."""
    options = {"confidence_level": CONFIDENCE_LEVEL, "random_state": seed, **given(task)}
    intervals = {
        "calibration error": calibration_error_interval(task.labels, task.scores, binning=REPORT_BINNING, **options),
        "expected calibration error": calibration_error_interval(
            task.labels, task.scores, metric=expected_calibration_error, **options
        ),
        "sweep calibration error": calibration_error_interval(
            task.labels, task.scores, metric=sweep_calibration_error, **options
        ),
        "maximum calibration error": calibration_error_interval(
            task.labels, task.scores, metric=maximum_calibration_error, **options
        ),
    }
    errors = [{"name": name, **interval._asdict()} for name, interval in intervals.items()]
    try:
        slope = calibration_slope_intercept(task.labels, task.scores, confidence_level=CONFIDENCE_LEVEL, **given(task))
    except ValueError:  # one class only, separated classes, or equal scores: no slope is the most likely
        return errors
    return [
        *errors,
        {"name": "calibration slope", **slope.slope._asdict()},
        {"name": "calibration in the large", **slope.intercept._asdict()},
    ]


def _proper_scores(task):
    return [
        {"name": "Brier score", **mean_interval((task.scores - task.labels) ** 2, task.sample_weight)},
        {"name": "log-loss", **mean_interval(log_losses(task.scores, task.labels), task.sample_weight)},
    ]


def _test(task, seed):
    """Return the test of the first error: it rejects exactly where the interval of that error excludes 0."""
    metric = partial(calibration_error, binning=REPORT_BINNING)
    result = calibration_test(
        task.labels, task.scores, metric=metric, n_resamples=_N_RESAMPLES, random_state=seed, **given(task)
    )
    return {
        "name": "resampling test of the calibration error",
        **result._asdict(),
        "smallest_pvalue": 1 / (_N_RESAMPLES + 1),
        "rejects": result.pvalue < SIGNIFICANCE_LEVEL,
    }


def _brier_difference(task, other):
    """Return the Brier score of this model minus that of the other, with its interval."""
    squares = [(scores - task.labels) ** 2 for scores in (task.scores, other)]
    return mean_interval(squares[0] - squares[1], task.sample_weight)


def _bins(task):
    bins = reliability_curve(task.labels, task.scores, binning=REPORT_BINNING, **given(task))
    low, high = bins.interval(CONFIDENCE_LEVEL)
    columns = zip(
        bins.edges, bins.edges[1:], bins.mean_score, bins.event_frequency, low, high, bins.weight, strict=False
    )
    names = ("from", "to", "mean_score", "event_frequency", "low", "high", "weight")
    return [dict(zip(names, map(float, row), strict=True)) for row in columns]


def _segment_rows(task, segments, seed):
    """Return a row for each segment, those whose bias is least likely to be noise first."""
    if segments is None:
        return []
    table = calibration_by_group(
        task.labels,
        task.scores,
        segments,
        binning=REPORT_BINNING,
        confidence_level=CONFIDENCE_LEVEL,
        random_state=seed,
        **given(task),
    )
    rows = []
    for i in np.lexsort((-np.abs(table.bias), table.pvalue)):
        row = {name: getattr(table, name)[i] for name in ("mean_score", "event_frequency", "pvalue", "adjusted_pvalue")}
        row |= {"bias": table.bias[i], "bias_low": table.bias_low[i], "bias_high": table.bias_high[i]}
        row |= {"estimate": table.error[i], "low": table.error_low[i], "high": table.error_high[i]}
        n_rows = float(table.n[i])
        name = {"segment": str(table.group[i]), "n_rows": n_rows, "n_events": n_rows * float(table.event_frequency[i])}
        rows.append({**name, **row, "is_small": n_rows < SMALL_SEGMENT})
    return rows


def _period_rows(task, table, baseline, name, seed):
    """Return a row for each period; all rows are one period where a baseline and no time is given."""
    if table.periods is None and baseline is None:
        return []
    periods, order = table.periods, table.period_order
    if periods is None:
        periods, order = np.full(len(task.scores), "all rows"), ["all rows"]
    before = None if baseline is None else (baseline.y, baseline.scores[name])
    return period_rows(task, periods, order, before, seed)


def _certificates(n_rows):
    """Return what each number of bins would promise for uniform-mass binning fitted to so many rows."""
    rows = [
        {
            "n_bins": count,
            "conditional": conditional_epsilon(n_rows, count, confidence_level=CONFIDENCE_LEVEL),
            "marginal": marginal_epsilon(n_rows, count, confidence_level=CONFIDENCE_LEVEL),
            "expected_error": expected_error_bound(n_rows, count),
        }
        for count in _BIN_COUNTS
        if 2 * count <= n_rows
    ]
    return [row for row in rows if row["marginal"] < 1]


def _plain(value):
    """Return the value with what JSON knows: no NumPy scalars, None for what is not finite."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not isfinite(value) else value
