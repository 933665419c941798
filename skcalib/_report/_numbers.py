"""The numbers of a report, as plain lists and dicts that JSON can hold: nothing here
draws or writes.
"""

import warnings
from functools import partial
from math import isfinite

import numpy as np

from skcalib._inference.count_draws import FEW_EVENTS
from skcalib._report._advice import advised
from skcalib._report._advice_code import advice_code
from skcalib._report._decisions import decision_rows
from skcalib._report._expected import expected_performance
from skcalib._report._judged import judge_groups, judged_model
from skcalib._report._over_time import autocorrelation, trend_numbers
from skcalib._report._periods import monitor_rows, period_rows
from skcalib._report._sentences import summary
from skcalib._report._statistics import (
    CONFIDENCE_LEVEL,
    MEAN_ABSOLUTE,
    REPORT_BINNING,
    SIGNIFICANCE_LEVEL,
    adjust,
    group_records,
    mean,
    records,
)
from skcalib._rows.blocks import total_weight
from skcalib._verdicts import (
    interval_words,
    level_words,
    percent_words,
    pvalue_words,
)
from skcalib.binning import EqualWidth, MinimumMass
from skcalib.evaluation import calibration_summary
from skcalib.guarantees import (
    conditional_epsilon,
    expected_error_bound,
    marginal_epsilon,
)
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)

# rows below which the place of a segment in the table may well be chance
SMALL_SEGMENT = 100
SMALL_CLASS = 30  # rows of a class, the same
TOLERANCE = 0.02
_N_RESAMPLES = 999  # of the test
_N_DRAWS = 1000  # behind each interval of an error
_N_CLUSTER_DRAWS = 199  # of dependent labels, which take 50 times as long
_FEWEST_IN_BIN = 50  # rows of a bin that may have the largest gap
_BIN_COUNTS = (2, 3, 5, 10, 15, 20, 30, 50, 100)


def report_numbers(
    table,
    *,
    seed,
    step,
    baseline=None,
    thresholds=(),
    tolerance=TOLERANCE,
    new_scores=None,
):
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
    tolerance : float, default=0.02
        How far off does not matter, as a share: .02 are 2 points.
    new_scores : dict of ndarray, default=None
        Scores of samples without labels, by model.

    Returns
    -------
    numbers : dict
        Plain values; None where a number is not defined.
    """
    models = []
    with warnings.catch_warnings():
        # A note of the report says it of clusters; a segment that a fold has not seen
        # has the fit of all rows.
        warnings.filterwarnings(
            "ignore", r"clusters=|\d+ rows? uses? the pooled fit", UserWarning
        )
        for name in table.names:
            model = _model_numbers(
                table, name, baseline, thresholds, seed, step, tolerance
            )
            if new_scores is not None:
                step(f"performance of {name} on the new scores")
                model["expected"] = expected_performance(table, name, new_scores[name])
            models.append(model)
    event_frequency = None
    if table.classes is None:
        event_frequency = models[0]["event_frequency"]
    n_clusters = None
    if table.clusters is not None:
        n_clusters = len(np.unique(table.clusters))
    # Certificates are about independent rows that count once.
    certificates = []
    if not table.is_weighted and table.clusters is None:
        certificates = _certificates(table.n_rows)
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
            "event_frequency": event_frequency,
            "weight_type": table.weight_type if table.is_weighted else None,
            "cluster": table.cluster_name,
            "n_clusters": n_clusters,
            "segment": table.segment_name,
            "time": table.time_name,
            "baseline": None if baseline is None else baseline.source,
            "confidence_level": CONFIDENCE_LEVEL,
            "tolerance": tolerance,
            "notes": [*table.notes, *_few_events(table)],
            "models": models,
            "certificates": certificates,
        }
    )


def _model_numbers(table, name, baseline, thresholds, seed, step, tolerance):
    """Return all numbers about one model of a table, and what the page says of them."""
    step(f"errors of {name}")
    task = table.task(name)
    losses = table.losses(name)
    model = {
        "name": name,
        **_bias(task, table.classes),
        "errors": _errors(task, seed, table.classes),
    }
    model["proper_scores"] = [
        {"name": "Brier score", **losses["brier"]},
        {"name": "log-loss", **losses["log"]},
    ]
    is_binary = table.classes is None
    model["verdicts"] = judged_model(task, model, tolerance, is_binary)
    step(f"test of {name}")
    model["test"] = _test(task, seed)
    model["bins"] = _bins(task)
    step(f"segments and periods of {name}")
    model["segments"] = rows_by_column(task, table.segmentations, seed, tolerance)
    model["periods"] = period_rows(table, name, baseline, seed, tolerance)
    model["trend"] = trend_numbers(table, task)
    model["autocorrelation"] = autocorrelation(table, task)
    model["monitors"] = monitor_rows(table, name)
    if table.classes is not None:
        step(f"classes of {name}")
        model["columns"] = dict(zip(table.classes, table.columns[name], strict=True))
        model["classes"] = class_rows(*table.by_class(name, seed), seed, tolerance)
    step(f"recalibrators of {name}")
    model["advice"], model["recalibrators"], model["changes"] = advised(
        table, name, seed, lambda kind: step(f"{kind} of {name}"), tolerance
    )
    model["advice"]["code"] = advice_code(table, model)
    if thresholds:
        step(f"decisions of {name}")
        model["decisions"] = decision_rows(table, name, thresholds, seed)
    step(f"numbers for a paper of {name}")
    model["paper"] = _paper(table, task, model, seed)
    if name != table.names[0]:
        model["brier_difference"] = table.brier_difference(name)
    paragraphs = summary(
        model, {"n_samples": table.total_weight, "tolerance": tolerance}
    )
    texts = []
    model["claims"] = []
    for claims in paragraphs:
        texts.append(" ".join(claim.text for claim in claims))
        model["claims"] += [claim.name for claim in claims]
    model["summary"] = "\n".join(texts)
    return model


def _few_events(table):
    """Return the note that takes the place of the library's warning of clusters with
    few events.
    """
    expected = np.inf
    for name in table.names:
        scores = table.task(name).scores
        expected = min(expected, scores.sum(), (1 - scores).sum())
    if table.clusters is None or expected >= FEW_EVENTS:
        return []
    return [
        f"With fewer than {FEW_EVENTS} expected events or non-events, intervals of"
        " clusters may be too short."
    ]


def _bias(task, classes):
    """Return how far the scores are off on average: of the event, and of the decision
    they stand for.
    """
    means = {"mean_score": mean(task.scores, task.sample_weight)}
    means["event_frequency"] = mean(task.labels, task.sample_weight)
    bias = sure = task.interval(task.scores - task.labels)
    if classes is None:
        right = (task.scores > 0.5) == task.labels
        sure = task.interval(np.maximum(task.scores, 1 - task.scores) - right)
    return {**means, "score_minus_frequency": bias, "over_confidence": sure}


def _errors(task, seed, classes):
    """Return calibration errors with their intervals; the first is the one of the
    summary.
    """
    of_rows = {"confidence_level": CONFIDENCE_LEVEL, **task.dependence}
    options = {
        "random_state": seed,
        "n_resamples": _N_DRAWS if task.clusters is None else _N_CLUSTER_DRAWS,
        **of_rows,
    }
    # One cell with a few rows would decide the largest gap: bins are merged until each
    # holds enough of the weight.
    enough = _FEWEST_IN_BIN
    if task.weight_type == "importance":
        enough = _FEWEST_IN_BIN * task.sample_weight.mean()
    total = total_weight(task.sample_weight, len(task.labels))
    kinds = {
        "mean absolute calibration error": MEAN_ABSOLUTE,
        "root mean square calibration error": {"norm": 2, "binning": REPORT_BINNING},
        "expected calibration error": {"metric": expected_calibration_error},
    }
    if total >= 2 * enough:
        metric = partial(
            maximum_calibration_error,
            binning=MinimumMass(EqualWidth(15), min_weight=enough),
        )
        kinds["maximum calibration error"] = {"metric": metric}
    errors = []
    for name, kind in kinds.items():
        interval = calibration_error_interval(
            task.labels, task.scores, **kind, **options
        )
        errors.append(
            {
                "name": name,
                **interval._asdict(),
                "reason": _reason(*interval, interval.reason),
            }
        )
    if classes is not None:  # a slope is one of the log-odds of an event
        return errors
    try:
        with warnings.catch_warnings():
            # of scores of exactly 0 and 1: the paragraph to cite says it
            warnings.filterwarnings("ignore", ".*exactly 0 or 1", UserWarning)
            slope = calibration_slope_intercept(task.labels, task.scores, **of_rows)
    except ValueError:
        # one class only, separated classes, or equal scores: no slope is the most
        # likely
        return errors
    named = {
        "calibration slope": slope.slope,
        "calibration in the large": slope.intercept,
    }
    return errors + [{"name": name, **found._asdict()} for name, found in named.items()]


def _reason(estimate, low, high, known=""):
    """Return why an estimate lies outside of its interval, if it does."""
    if estimate < low:
        return "the noise that is taken away from the estimate is uncertain itself"
    return (known or "the estimate includes label noise") if estimate > high else None


def _test(task, seed):
    """Return the test of the first error: it rejects exactly where the interval of that
    error excludes 0.
    """
    n_resamples = _N_RESAMPLES if task.clusters is None else _N_CLUSTER_DRAWS
    metric = partial(calibration_error, **MEAN_ABSOLUTE)
    options = {
        "metric": metric,
        "n_resamples": n_resamples,
        "random_state": seed,
        **task.dependence,
    }
    result = calibration_test(task.labels, task.scores, **options)
    found = {"name": "resampling test of the calibration error", **result._asdict()}
    return {
        **found,
        "smallest_pvalue": 1 / (n_resamples + 1),
        "rejects": result.pvalue < SIGNIFICANCE_LEVEL,
    }


def _bins(task):
    bins = reliability_curve(
        task.labels, task.scores, binning=REPORT_BINNING, **task.given
    )
    low, high = bins.interval(CONFIDENCE_LEVEL)
    means = {
        "mean_score": bins.mean_score,
        "event_frequency": bins.event_frequency,
        "low": low,
        "high": high,
    }
    return records(
        {"from": bins.edges[:-1], "to": bins.edges[1:], **means, "weight": bins.weight}
    )


def segment_rows(task, groups, seed, kind="segment"):
    """Return a row for each segment or class, those whose bias is least likely to be
    noise first.
    """
    if groups is None:
        return []
    rows = group_records(task, groups, kind, seed)
    for row in rows:
        row["n_events"] = row["n_rows"] * row["event_frequency"]
        row["reason"] = _reason(row["estimate"], row["low"], row["high"])
        if kind == "segment":
            row["is_small"] = row["n_rows"] < SMALL_SEGMENT
        else:
            row["is_small"] = row["n_events"] < SMALL_CLASS
    return sorted(rows, key=_least_likely_first)


def rows_by_column(task, segmentations, seed, tolerance=TOLERANCE):
    """Return the rows of the segments of all columns, adjusted for their number."""
    rows = []
    n_segments = sum(len(np.unique(groups)) for groups in segmentations.values())
    for column, groups in segmentations.items():
        of_column = segment_rows(task, groups, seed)
        judge_groups(of_column, "segment", task, groups, tolerance, n_segments)
        rows += [{**row, "column": column} for row in of_column]
    if len(segmentations) > 1:
        adjust(rows, "pvalue", "adjusted_pvalue")
        rows.sort(key=_least_likely_first)
    return rows


def _least_likely_first(row):
    return row["pvalue"], -abs(row["bias"])


def class_rows(task, names, seed, tolerance=TOLERANCE):
    """Return a row for each class against the rest: those whose error is more than
    noise first, the largest ahead.

    The test of the error sees deviations that cancel in the bias. With clusters, whose
    draws take long for each class, it is that of the bias.
    """
    rows = segment_rows(task, names, seed, kind="class")
    judge_groups(rows, "class", task, names, tolerance)
    for row in rows:
        row["error_pvalue"] = row["pvalue"]
        if task.clusters is None:
            of_class = task.at(names == row["class"])
            tested = calibration_test(
                of_class.labels,
                of_class.scores,
                method="kuiper",
                weight_type=of_class.weight_type,
                **of_class.given,
            )
            row["error_pvalue"] = tested.pvalue
    adjust(rows, "error_pvalue", "adjusted_error_pvalue")

    def place(row):
        if row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL:
            return 0, -np.nan_to_num(row["estimate"])
        return 1, row["error_pvalue"]

    return sorted(rows, key=place)


def _paper(table, task, model, seed):
    """Return a paragraph that can be cited; None where it is not defined."""
    if table.classes is None:
        options = {**task.dependence, "pos_label": True, "random_state": seed}
        del options["labels"]
        try:
            with warnings.catch_warnings():
                # of scores of exactly 0 and 1: the paragraph itself says it
                warnings.filterwarnings("ignore", ".*exactly 0 or 1", UserWarning)
                return str(calibration_summary(task.labels, task.scores, **options))
        except ValueError:  # one class only
            return None
    error, (brier, nats), test = (
        model["errors"][0],
        model["proper_scores"],
        model["test"],
    )

    def shown(found):
        return interval_words(found["estimate"], found["low"], found["high"])

    pvalue = pvalue_words(test["pvalue"], test["smallest_pvalue"])
    right = percent_words(model["event_frequency"], table.n_rows)
    mean_score = percent_words(model["mean_score"], table.n_rows)
    return (
        f"In {table.n_rows:,} samples of {len(table.classes)} classes the top-label"
        " calibration error (mean absolute, debiased, up to 15 bins of equal mass) was"
        f" {shown(error)}, {pvalue} for the hypothesis of calibration. The predicted"
        f" class was right in {right} of the samples, its mean probability was"
        f" {mean_score}. The Brier score, summed over the classes, was {shown(brier)}"
        f" and the log-loss {shown(nats)} nats. Intervals are at"
        f" {level_words(CONFIDENCE_LEVEL)} confidence."
    )


def _certificates(n_rows):
    """Return what uniform-mass binning with each number of bins would promise for this
    number of rows.
    """
    rows = []
    for n_bins in _BIN_COUNTS:
        if 2 * n_bins > n_rows:
            continue
        marginal = marginal_epsilon(n_rows, n_bins, confidence_level=CONFIDENCE_LEVEL)
        if marginal >= 1:
            continue  # says nothing
        conditional = conditional_epsilon(
            n_rows, n_bins, confidence_level=CONFIDENCE_LEVEL
        )
        rows.append(
            {
                "n_bins": n_bins,
                "conditional": conditional,
                "marginal": marginal,
                "expected_error": expected_error_bound(n_rows, n_bins),
            }
        )
    return rows


def _plain(value):
    """Return the value with what JSON knows: no NumPy scalars, None for what is not
    finite.
    """
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
