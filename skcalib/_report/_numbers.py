"""The numbers of a report, as plain lists and dicts that JSON can hold: nothing here draws or writes."""

from math import isfinite

import numpy as np

from skcalib._bins.reductions import BinaryTask, binary_tasks
from skcalib._input.scored_labels import check_scored_labels
from skcalib._report._recalibration import recalibration_gains
from skcalib._report._statistics import CONFIDENCE_LEVEL, LABELS, REPORT_BINNING, given, log_losses, mean, mean_interval
from skcalib.guarantees import conditional_epsilon, expected_error_bound, marginal_epsilon
from skcalib.metrics import (
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    sweep_calibration_error,
)

__all__ = ["SIGNIFICANCE_LEVEL", "SMALL_SEGMENT", "pvalue_words", "report_numbers"]

SIGNIFICANCE_LEVEL = 0.05
SMALL_SEGMENT = 100  # rows below which the place of a segment in the table may well be chance
_BIN_COUNTS = (2, 3, 5, 10, 15, 20, 30, 50, 100)


def report_numbers(table, *, seed, step):
    """Return all numbers of a report.

    Parameters
    ----------
    table : ReportTable
        Labels, scores, weights and segments.
    seed : int
        Seed of resamples and folds.
    step : callable
        Told what is done next, for a progress bar.

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
        step(f"recalibrators of {name}")
        model["recalibrators"] = recalibration_gains(task, seed)
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
            "confidence_level": CONFIDENCE_LEVEL,
            "models": models,
            "certificates": [] if table.weight is not None else _certificates(len(table.y)),
        }
    )


def summary_sentence(model, n_rows):
    """Return in plain words what the numbers of a model say."""
    low, high = (100 * model["over_confidence"][key] for key in ("low", "high"))
    points = 100 * abs(model["over_confidence"]["estimate"])
    if low <= 0 <= high:
        confident = f"neither over- nor under-confident on average ({points:.1f} points, within noise)"
    else:
        confident = f"{'over' if low > 0 else 'under'}-confident by {points:.1f} points on average"
    error = model["errors"][0]
    estimate, low, high = (f"{100 * error[key]:.1f}" for key in ("estimate", "low", "high"))
    pvalue, smallest = model["test"]["pvalue"], model["test"]["smallest_pvalue"]
    verdict = "rejects" if pvalue < SIGNIFICANCE_LEVEL else "does not reject"
    return (
        f"At n = {n_rows:,.0f} the model is {confident}; the calibration error is {estimate} %, "
        f"{100 * CONFIDENCE_LEVEL:g} % interval {low} to {high} %; the test {verdict} calibration, "
        f"{pvalue_words(pvalue, smallest)}." + _bias_sentence(model["score_minus_frequency"])
    )


def _bias_sentence(bias):
    """Return a sentence on scores that are too high or too low on the whole, if they are."""
    if bias["low"] <= 0 <= bias["high"]:
        return ""
    direction = "high" if bias["estimate"] > 0 else "low"
    return f" Its scores are {100 * abs(bias['estimate']):.1f} points too {direction} on average."


def pvalue_words(pvalue, smallest=0.0):
    """Return a p-value as papers print it, p = .31 or p < .001; the smallest that resampling can give is "at most"."""
    if pvalue < 0.001:
        return "p < .001"
    digits = 3 if pvalue < 0.0095 else 2
    relation = "≤" if pvalue <= smallest else "="
    return f"p {relation} " + f"{pvalue:.{digits}f}".removeprefix("0")


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
    n_rows = len(task.scores)
    n_resamples = 999 if n_rows <= 20_000 else 199 if n_rows <= 200_000 else 99
    result = calibration_test(task.labels, task.scores, n_resamples=n_resamples, random_state=seed, **given(task))
    return {
        "name": "resampling test of the sweep calibration error",
        **result._asdict(),
        "smallest_pvalue": 1 / (n_resamples + 1),
        "rejects": result.pvalue < SIGNIFICANCE_LEVEL,
    }


def _bins(task):
    bins = reliability_curve(task.labels, task.scores, binning=REPORT_BINNING, **given(task))
    low, high = bins.interval(CONFIDENCE_LEVEL)
    columns = zip(
        bins.edges, bins.edges[1:], bins.mean_score, bins.event_frequency, low, high, bins.weight, strict=False
    )
    names = ("from", "to", "mean_score", "event_frequency", "low", "high", "weight")
    return [dict(zip(names, map(float, row), strict=True)) for row in columns]


def _segment_rows(task, segments, seed):
    """Return a row for each segment, the largest error first and those without one last."""
    if segments is None:
        return []
    found = []
    for name in np.unique(segments).tolist():
        inside = segments == name
        weight = None if task.sample_weight is None else task.sample_weight[inside]
        part = BinaryTask(task.scores[inside], task.labels[inside], weight)
        n_rows = float(inside.sum() if weight is None else weight.sum())
        row = {
            "segment": name,
            "n_rows": n_rows,
            "n_events": float(part.labels.sum() if weight is None else weight @ part.labels),
            "mean_score": mean(part.scores, weight),
            "event_frequency": mean(part.labels, weight),
            "is_small": n_rows < SMALL_SEGMENT,
        }
        found.append({**row, **_segment_error(part, seed)})
    return sorted(found, key=lambda row: -np.inf if row["estimate"] is None else row["estimate"], reverse=True)


def _segment_error(part, seed):
    try:
        interval = calibration_error_interval(
            part.labels,
            part.scores,
            binning=REPORT_BINNING,
            confidence_level=CONFIDENCE_LEVEL,
            random_state=seed,
            **given(part),
        )
    except ValueError:  # a single row has no debiased error
        return {"estimate": None, "low": None, "high": None}
    return interval._asdict()


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
