"""The numbers of a report, as plain lists and dicts that JSON can hold: nothing here draws or writes."""

import warnings
from functools import partial
from math import isfinite

import numpy as np

from skcalib._cells.reductions import binary_tasks
from skcalib._inference.adjustment import holm
from skcalib._inference.count_draws import FEW_EVENTS
from skcalib._input.scored_labels import check_scored_labels
from skcalib._report._advice import advised
from skcalib._report._advice_code import advice_code
from skcalib._report._decisions import decision_rows
from skcalib._report._monitors import monitor_rows
from skcalib._report._periods import period_rows
from skcalib._report._sentences import SIGNIFICANCE_LEVEL, advice_words, pvalue_words, summary_sentence
from skcalib._report._statistics import CONFIDENCE_LEVEL, LABELS, MEAN_ABSOLUTE, REPORT_BINNING, mean
from skcalib.binning import EqualWidth, MinimumMass
from skcalib.evaluation import calibration_summary
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
)

SMALL_SEGMENT = 100  # rows below which the place of a segment in the table may well be chance
SMALL_CLASS = 30  # rows of a class, the same
_N_RESAMPLES = 999
_N_CLUSTER_DRAWS = 199  # of dependent labels, which take 50 times as long
_FEWEST_IN_BIN = 50  # rows of a bin that may have the largest gap
_BIN_COUNTS = (2, 3, 5, 10, 15, 20, 30, 50, 100)


def report_numbers(table, *, seed, step, baseline=None, thresholds=()):
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
    thresholds : sequence of float, default=()
        Scores from which a row is treated.

    Returns
    -------
    numbers : dict
        Plain values; None where a number is not defined.
    """
    models = []
    with warnings.catch_warnings():
        # A note of the report says it of clusters; a segment that a fold has not seen has the fit of all rows.
        warnings.filterwarnings("ignore", r"clusters=|\d+ rows? uses? the pooled fit", UserWarning)
        for name in table.names:
            models.append(_model_numbers(table, name, baseline, thresholds, seed, step))
    return _plain(
        {
            "source": table.source,
            "label": table.label,
            "event": table.event,
            "classes": table.classes,
            "modified": table.modified,
            "thresholds": list(thresholds),
            "n_rows": table.n_rows,
            "total_weight": table.total_weight,
            "weighted": table.is_weighted,
            "event_frequency": None if table.classes is not None else _frequency(table.task(table.names[0])),
            "weight_type": table.weight_type if table.is_weighted else None,
            "cluster": table.cluster_name,
            "n_clusters": None if table.clusters is None else len(np.unique(table.clusters)),
            "segment": table.segment_name,
            "time": table.time_name,
            "baseline": None if baseline is None else baseline.source,
            "confidence_level": CONFIDENCE_LEVEL,
            "notes": [*table.notes, *_few_events(table)],
            "models": models,
            "certificates": [] if table.is_weighted or table.clusters is not None else _certificates(table.n_rows),
        }
    )


def _model_numbers(table, name, baseline, thresholds, seed, step):
    step(f"errors of {name}")
    task = table.task(name)
    bias = _bias(task, is_confidence=table.classes is not None)
    errors = _errors(task, seed, table.classes)
    model = {"name": name, **bias, "errors": errors, "proper_scores": _proper_scores(table, name)}
    step(f"test of {name}")
    model["test"] = _test(task, seed)
    model["bins"] = _bins(task)
    step(f"segments and periods of {name}")
    model["segments"] = _group_rows(task, table.segments, seed)
    model["periods"] = period_rows(table, name, baseline, seed)
    model["monitors"] = monitor_rows(table, name)
    if table.classes is not None:
        step(f"classes of {name}")
        model["columns"] = dict(zip(table.classes, table.columns[name], strict=True))
        model["classes"] = class_rows(*table.by_class(name, seed), seed)
    step(f"recalibrators of {name}")
    model["advice"], model["recalibrators"], model["changes"] = advised(
        table, name, seed, lambda kind: step(f"{kind} of {name}")
    )
    model["advice"]["code"] = advice_code(table, model)
    if thresholds:
        step(f"decisions of {name}")
        model["decisions"] = decision_rows(table, name, thresholds, seed)
    step(f"numbers for a paper of {name}")
    model["paper"] = _paper(table, task, model, seed)
    if name != table.names[0]:
        model["brier_difference"] = table.brier_difference(name)
    words = summary_sentence(model, table.total_weight), *advice_words(model, table.segment_name)
    model["summary"] = "\n".join(filter(None, words))
    return model


def _few_events(table):
    """Return the note that takes the place of the library's warning of clusters with few events."""
    expected = min(min(rows.scores.sum(), (1 - rows.scores).sum()) for rows in map(table.task, table.names))
    if table.clusters is None or expected >= FEW_EVENTS:
        return []
    return [f"With fewer than {FEW_EVENTS} expected events or non-events, intervals of clusters may be too short."]


def _frequency(task):
    return mean(task.labels, task.sample_weight)


def _bias(task, *, is_confidence):
    """Return how far the scores are off on average: of the event, and of the decision they stand for."""
    scores = {"mean_score": mean(task.scores, task.sample_weight), "event_frequency": _frequency(task)}
    bias = task.interval(task.scores - task.labels)
    if is_confidence:  # of the predicted class
        return {**scores, "score_minus_frequency": bias, "over_confidence": bias}
    data = check_scored_labels(task.labels, task.scores, sample_weight=task.sample_weight, labels=LABELS)
    decided = next(binary_tasks(data, "top_label"))
    sure = task.interval(decided.scores - decided.labels)
    return {**scores, "score_minus_frequency": bias, "over_confidence": sure}


def _errors(task, seed, classes):
    """Return calibration errors with their intervals; the first is the one of the summary."""
    of_rows = {"confidence_level": CONFIDENCE_LEVEL, **task.dependence}
    options = {"random_state": seed, "n_resamples": 1000 if task.clusters is None else _N_CLUSTER_DRAWS, **of_rows}
    # One cell with a few rows would decide the largest gap: bins are merged until each holds enough of the weight.
    enough = _FEWEST_IN_BIN * (task.sample_weight.mean() if task.weight_type == "importance" else 1)
    total = len(task.labels) if task.sample_weight is None else task.sample_weight.sum()
    kinds = {
        "mean absolute calibration error": MEAN_ABSOLUTE,
        "root mean square calibration error": {"norm": 2, "binning": REPORT_BINNING},
        "expected calibration error": {"metric": expected_calibration_error},
        "maximum calibration error": {
            "metric": partial(maximum_calibration_error, binning=MinimumMass(EqualWidth(15), min_weight=enough))
        },
    }
    if total < 2 * enough:
        del kinds["maximum calibration error"]
    errors = []
    for name, kind in kinds.items():
        interval = calibration_error_interval(task.labels, task.scores, **kind, **options)
        errors.append({"name": name, **interval._asdict(), "reason": _reason(*interval, interval.reason)})
    if classes is not None:  # a slope is one of the log-odds of an event
        return errors
    try:
        slope = calibration_slope_intercept(task.labels, task.scores, **of_rows)
    except ValueError:  # one class only, separated classes, or equal scores: no slope is the most likely
        return errors
    return [
        *errors,
        {"name": "calibration slope", **slope.slope._asdict()},
        {"name": "calibration in the large", **slope.intercept._asdict()},
    ]


def _reason(estimate, low, high, known=""):
    """Return why an estimate lies outside of its interval, if it does."""
    if estimate < low:
        return "the noise that is taken away from the estimate is uncertain itself"
    return (known or "the estimate includes label noise") if estimate > high else None


def _proper_scores(table, name):
    losses = table.losses(name)
    return [{"name": "Brier score", **losses["brier"]}, {"name": "log-loss", **losses["log"]}]


def _test(task, seed):
    """Return the test of the first error: it rejects exactly where the interval of that error excludes 0."""
    metric = partial(calibration_error, **MEAN_ABSOLUTE)
    result = calibration_test(
        task.labels,
        task.scores,
        metric=metric,
        n_resamples=_N_RESAMPLES if task.clusters is None else _N_CLUSTER_DRAWS,
        random_state=seed,
        **task.dependence,
    )
    return {
        "name": "resampling test of the calibration error",
        **result._asdict(),
        "smallest_pvalue": 1 / ((_N_RESAMPLES if task.clusters is None else _N_CLUSTER_DRAWS) + 1),
        "rejects": result.pvalue < SIGNIFICANCE_LEVEL,
    }


def _bins(task):
    bins = reliability_curve(task.labels, task.scores, binning=REPORT_BINNING, **task.given)
    low, high = bins.interval(CONFIDENCE_LEVEL)
    columns = zip(
        bins.edges, bins.edges[1:], bins.mean_score, bins.event_frequency, low, high, bins.weight, strict=False
    )
    names = ("from", "to", "mean_score", "event_frequency", "low", "high", "weight")
    return [dict(zip(names, map(float, row), strict=True)) for row in columns]


def _group_rows(task, groups, seed, kind="segment"):
    """Return a row for each segment or class, those whose bias is least likely to be noise first."""
    if groups is None:
        return []
    table = calibration_by_group(
        task.labels,
        task.scores,
        groups,
        **MEAN_ABSOLUTE,
        confidence_level=CONFIDENCE_LEVEL,
        random_state=seed,
        **task.dependence,
    )
    rows = []
    for i in np.lexsort((-np.abs(table.bias), table.pvalue)):
        row = {name: getattr(table, name)[i] for name in ("mean_score", "event_frequency", "pvalue", "adjusted_pvalue")}
        row |= {"bias": table.bias[i], "bias_low": table.bias_low[i], "bias_high": table.bias_high[i]}
        row |= {"estimate": table.error[i], "low": table.error_low[i], "high": table.error_high[i]}
        row["reason"] = _reason(table.error[i], table.error_low[i], table.error_high[i])
        n_rows = float(table.n[i])
        n_events = n_rows * float(table.event_frequency[i])
        name = {kind: str(table.group[i]), "n_rows": n_rows, "n_events": n_events}
        is_small = n_rows < SMALL_SEGMENT if kind == "segment" else n_events < SMALL_CLASS
        rows.append({**name, **row, "is_small": is_small})
    return rows


def class_rows(task, names, seed):
    """Return a row for each class against the rest: those whose error is more than noise first, the largest ahead.

    The test of the error sees deviations that cancel in the bias. With clusters, whose draws take long for each class,
    it is that of the bias.
    """
    rows = _group_rows(task, names, seed, kind="class")
    for row in rows:
        own = task.at(names == row["class"])
        given = {**own.given, "weight_type": own.weight_type}
        clustered = own.clusters is not None
        test = None if clustered else calibration_test(own.labels, own.scores, method="kuiper", **given)
        row["error_pvalue"] = row["pvalue"] if clustered else test.pvalue
    for row, adjusted in zip(rows, holm(np.array([row["error_pvalue"] for row in rows])), strict=True):
        row["adjusted_error_pvalue"] = float(adjusted)

    def place(row):
        error = np.nan_to_num(row["estimate"])
        return (0, -error) if row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL else (1, row["error_pvalue"])

    return sorted(rows, key=place)


def _paper(table, task, model, seed):
    """Return a paragraph that can be cited; None where it is not defined."""
    if table.classes is None:
        try:
            return str(calibration_summary(task.labels, task.scores, random_state=seed, pos_label=True, **task.cited))
        except ValueError:  # one class only
            return None
    error, (brier, nats), test = model["errors"][0], model["proper_scores"], model["test"]

    def shown(found, digits):
        return f"{found['estimate']:.{digits}f} ({found['low']:.{digits}f} to {found['high']:.{digits}f})"

    return (
        f"In {table.n_rows:,} rows of {len(table.classes)} classes the top-label calibration error (mean absolute, "
        f"debiased, up to 15 bins of equal mass) was {shown(error, 4)}, {pvalue_words(**_pvalue(test))} for the "
        f"hypothesis of calibration. The predicted class was right in {100 * model['event_frequency']:.1f} % of the "
        f"rows, its mean probability was {100 * model['mean_score']:.1f} %. The Brier score, summed over the classes, "
        f"was {shown(brier, 4)} and the log-loss {shown(nats, 4)} nats. Intervals are at "
        f"{100 * CONFIDENCE_LEVEL:g} % confidence."
    )


def _pvalue(test):
    return {"pvalue": test["pvalue"], "smallest": test["smallest_pvalue"]}


def _certificates(n_rows):
    """Return what uniform-mass binning with each number of bins would promise for this number of rows."""
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
