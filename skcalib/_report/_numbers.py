"""The numbers of a report, as plain lists and dicts that JSON can hold: nothing here
draws or writes.
"""

import warnings
from math import isfinite

import numpy as np

from skcalib._report._advice import brier_difference_as_advised, considered
from skcalib._report._advice_code import advice_code
from skcalib._report._code import report_code
from skcalib._report._decisions import decision_rows
from skcalib._report._expected import expected_performance
from skcalib._report._groups import class_rows, rows_by_column
from skcalib._report._judged import judged_model, n_samples
from skcalib._report._measures import bin_rows, error_rows, tested_calibration
from skcalib._report._over_time import autocorrelation, trend_numbers
from skcalib._report._periods import monitor_rows, period_rows
from skcalib._report._phrases import CLIPPED
from skcalib._report._samples import CONFIDENCE_LEVEL
from skcalib._report._sections import difference_from_first
from skcalib._report._summary import summary
from skcalib._verdicts import (
    interval_words,
    level_words,
    percent_words,
    pvalue_words,
    rounded,
)
from skcalib.evaluation import calibration_summary
from skcalib.guarantees import (
    conditional_epsilon,
    expected_error_bound,
    marginal_epsilon,
)

TOLERANCE = 0.02
# The mean score of a rare event that is more than eight times its frequency may be a
# percentage.
_RARE, _MANY_TIMES = 0.1, 8
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
        Called with a text on what is done next, to show progress.
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
    advice_by_model = []  # the `Considered` of each, in the order of `models`
    with warnings.catch_warnings():
        # A note of the report replaces the warning about clusters. The other warning is
        # about a segment without rows in a fold, and does not concern a reader.
        warnings.filterwarnings(
            "ignore", r"clusters=|\d+ rows? uses? the pooled fit", UserWarning
        )
        for name in table.names:
            model, found = _model_numbers(
                table, name, baseline, thresholds, seed, step, tolerance
            )
            advice_by_model.append(found)
            if len(advice_by_model) > 1:
                model["brier_difference"] = table.brier_difference(name)
                model["brier_difference_as_advised"] = brier_difference_as_advised(
                    advice_by_model[0], found
                )
            if new_scores is not None:
                step(f"performance of {name} on the new samples")
                model["expected"] = expected_performance(table, name, new_scores[name])
            models.append(model)
    _mark_inferior(models)
    for model in models:
        _summarise(model, table, tolerance)
    event_frequency = None
    if table.classes is None:
        event_frequency = models[0]["event_frequency"]
    n_clusters = None
    if table.clusters is not None:
        n_clusters = len(np.unique(table.clusters))
    code = report_code(table, models, tolerance, seed)
    # Certificates hold for independent rows without weights only.
    certificates = []
    is_independent = table.clusters is None and not table.repeated_keys
    if not table.is_weighted and is_independent:
        certificates = _certificates(table.n_rows)
    return plain(
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
            "repeated_keys": list(table.repeated_keys),
            "segment": table.segment_name,
            "time": table.time_name,
            "baseline": None if baseline is None else baseline.source,
            "confidence_level": CONFIDENCE_LEVEL,
            "tolerance": tolerance,
            "assumed": list(table.assumed),
            "notes": [
                *table.notes,
                *_few_events(models),
                *_may_be_percentages(table, models),
            ],
            "models": models,
            "certificates": certificates,
            "code": code,
        }
    )


def _model_numbers(table, name, baseline, thresholds, seed, step, tolerance):
    """Return all numbers about one model as a dict; and its advice with all that was
    tried, as `Considered`.

    `baseline` is a table of earlier samples to compare with, or None; `step` is called
    with a text before each step; `tolerance` is the bias that does not matter, as a
    probability.
    """
    step(f"errors of {name}")
    event_rows = table.event_rows(name)
    losses = table.losses(name)
    model = {
        "name": name,
        "errors": error_rows(event_rows, seed, table.classes),
    }
    model["proper_scores"] = [
        {"name": "Brier score", **losses["brier_score"]},
        {"name": "log-loss", **losses["log_loss"]},
    ]
    impossible = table.proper_scores.impossible[name]
    # If rows were left out, row numbers are not those of the file: no row is named.
    is_whole = not table.notes and not any("left out" in a for a in table.assumed)
    model["impossible"] = {
        "n": len(impossible),
        "row": int(impossible[0]) + 1 if len(impossible) and is_whole else None,
    }
    model |= judged_model(event_rows, model["errors"][0], tolerance, table.classes)
    step(f"test of {name}")
    model["test"] = tested_calibration(event_rows, seed)
    model["bins"] = bin_rows(event_rows)
    step(f"groups and periods of {name}")
    model["segments"] = rows_by_column(event_rows, table.segmentations, seed, tolerance)
    model["periods"] = period_rows(table, name, baseline, seed, tolerance)
    model["trend"] = trend_numbers(table, event_rows)
    model["autocorrelation"] = autocorrelation(table, event_rows)
    model["monitors"] = monitor_rows(table, name)
    if table.classes is not None:
        step(f"classes of {name}")
        model["columns"] = dict(zip(table.classes, table.columns[name], strict=True))
        one_against_rest, class_of_row = table.by_class(name, seed)
        model["classes"] = class_rows(one_against_rest, class_of_row, seed, tolerance)
    step(f"recalibrators of {name}")
    found = considered(table, name, seed, tolerance)
    model["advice"] = found.advice
    model["n_compared"] = len(found.rows.labels)
    model["recalibrators"] = found.candidates
    model["changes"] = found.changes
    model["advice"]["code"] = advice_code(table, model)
    if thresholds:
        step(f"decisions of {name}")
        model["decisions"] = decision_rows(table, name, thresholds, found, seed)
    step(f"numbers about {name} for a paper")
    model["paper"] = _paper(table, event_rows, model, seed)
    return model, found


def _mark_inferior(models):
    """Set "is_inferior" of each model: whether it has a significantly worse Brier score
    than the first; of the first, whether any is better.
    """
    first, *others = models
    first["is_inferior"] = False
    for model in others:
        sign = difference_from_first(model)
        model["is_inferior"] = sign > 0
        if sign < 0:
            first["is_inferior"] = True


def _summarise(model, table, tolerance):
    """Add the sentences of its summary to the numbers of a model."""
    about = {
        "n_samples": n_samples(table.event_rows(model["name"])),
        "tolerance": tolerance,
        "is_weighted": table.weight is not None and table.weight_type == "importance",
    }
    paragraphs = summary(model, about)
    texts = []
    model["claims"] = []
    for sentences in paragraphs:
        texts.append(" ".join(sentence.text for sentence in sentences))
        model["claims"] += [sentence.name for sentence in sentences]
    model["summary"] = "\n".join(texts)


def _few_events(models):
    """Return a note in a list if the test of a model warned of few events in clusters;
    else an empty list.
    """
    if not any(model["test"]["few_events"] for model in models):
        return []
    return [
        "With fewer than 40 expected events or non-events, cluster intervals may be too"
        " short."
    ]


def _may_be_percentages(table, models):
    """Return notes on models whose mean score is many times the frequency of a rare
    event, as that of percentages is.
    """
    notes = []
    for model in models:
        mean = model["mean_score"]
        frequency = model["event_frequency"]
        is_rare = table.classes is None and 0 < frequency < _RARE
        if is_rare and mean > _MANY_TIMES * frequency:
            notes.append(
                f"The mean score of {model['name']}, {rounded(mean)}, is"
                f" {rounded(mean / frequency, 2)} times the event frequency,"
                f" {rounded(frequency)}: if the scores are percentages, give --scores"
                " percent."
            )
    return notes


def _paper(table, event_rows, model, seed):
    """Return a paragraph on a model that can be cited in a paper; None if it is not
    defined.
    """
    if table.classes is not None:
        return _paper_of_classes(table, model)
    options = {
        **event_rows.inference_options,
        "pos_label": True,
        "random_state": seed,
    }
    del options["labels"]  # `pos_label` names the event already
    try:
        with warnings.catch_warnings():
            # The paragraph itself reports scores of exactly 0 and 1.
            warnings.filterwarnings("ignore", ".*exactly 0 or 1", UserWarning)
            found = calibration_summary(event_rows.labels, event_rows.scores, **options)
            _, paragraph = str(found).split("\n")  # without the verdict
            return paragraph
    except ValueError:  # one class only
        return None


def _paper_of_classes(table, model):
    """Return a paragraph on a model of several classes that can be cited in a paper."""
    brier, log_loss = model["proper_scores"]
    test = model["test"]

    def shown(interval):
        """Return an interval as text; it is a dict of "estimate", "low" and "high"."""
        return interval_words(interval["estimate"], interval["low"], interval["high"])

    clipped = ""
    if model["impossible"]["n"]:
        clipped = f", {CLIPPED} (else infinite)"
    pvalue = pvalue_words(test["pvalue"], test["smallest_pvalue"])
    right = percent_words(model["event_frequency"], table.n_rows)
    mean_score = percent_words(model["mean_score"], table.n_rows)
    return (
        f"In {table.n_rows:,} samples of {len(table.classes)} classes, the top-label"
        " calibration error (mean absolute, debiased, up to 15 bins of equal mass) was"
        f" {shown(model['errors'][0])}, {pvalue} for the hypothesis of calibration. The"
        f" predicted class was right in {right} of the samples, and its mean"
        f" probability was {mean_score}. The Brier score, summed over the classes, was"
        f" {shown(brier)} and the log-loss {shown(log_loss)} nats{clipped}. Intervals"
        f" are at {level_words(CONFIDENCE_LEVEL)} confidence."
    )


def _certificates(n_rows):
    """Return by number of bins the tolerances that uniform-mass binning would guarantee
    from `n_rows` rows.
    """
    rows = []
    for n_bins in _BIN_COUNTS:
        if 2 * n_bins > n_rows:
            continue
        marginal = marginal_epsilon(n_rows, n_bins, confidence_level=CONFIDENCE_LEVEL)
        if marginal >= 1:
            continue  # a tolerance of 1 is no guarantee
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


def plain(value):
    """Return a nested value in the types of JSON: without NumPy scalars and tuples, and
    with None for numbers that are not finite.
    """
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
