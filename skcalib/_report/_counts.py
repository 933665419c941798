"""The report of a table of counts: a row for each grade, category or bin."""

from dataclasses import asdict

import numpy as np

from skcalib._report._error import ReportError
from skcalib._report._missing import without_missing
from skcalib._report._numbers import plain
from skcalib._report._phrases import bias_words, listed
from skcalib._report._reader import opened
from skcalib._report._samples import records
from skcalib._report._score_columns import to_probabilities
from skcalib._report._sources import literal
from skcalib._verdicts import count_words, fixed, percent_words, verdict
from skcalib.metrics import (
    BinStatistics,
    brier_decomposition,
    calibration_by_group,
    calibration_test,
)

_LEVEL = 0.95
_LIGHTS = ((0.01, "red"), (0.05, "amber"), (2.0, "green"))
NEEDS_SAMPLES = (
    "Slope, log-loss by sample, groups, times, thresholds and the gain from"
    " recalibration need individual samples, which a table of counts does not contain."
)


def read_counts(path, *, count, events, score, reading):
    """Read a table of counts.

    Parameters
    ----------
    path : str or list of str
        File, as `opened` takes it.
    count, events, score : str
        Columns of the numbers of samples and of events, and of the score of each row.
    reading : Reading
        How values are read.

    Returns
    -------
    statistics : BinStatistics
        The table.
    about : dict
        "source", "assumed" and "code", the lines of Python that make `statistics`.

    Raises
    ------
    ReportError
        If the table is none.
    """
    names = [count, events, score]
    with opened(path, reading.table, reading.query) as file:
        columns, n_rows = file.read(names, whole=(count, events))
    assumed = list(file.notes)
    lines = [f"df = {file.code(keep_words=False)}", *file.conversions.values()]
    columns, dropped, line = without_missing(
        columns,
        {"number of samples": [count], "number of events": [events]},
        reading.missing,
    )
    if dropped:
        assumed.append(dropped)
        lines.append(line)
    if len(columns[score]) < n_rows and not dropped:
        raise ReportError(f"{file.name} has too many rows for a table of counts.")
    _refuse_totals(columns, count, events, score)
    lines += to_probabilities(
        columns, {score: (score,)}, None, reading, file.percentages
    )
    if reading.scale not in (None, "probability"):
        assumed.append(f"The scores are read as {reading.scale}.")
    try:
        statistics = BinStatistics.from_counts(*(columns[name] for name in names))
    except ValueError as error:
        raise ReportError(
            f"--count {count} --events {events} --score {score}: {error}"
        ) from error
    cells = ", ".join(f"df[{literal(name)}]" for name in names)
    lines.append(f"statistics = BinStatistics.from_counts({cells})")
    about = {"source": file.name, "assumed": assumed, "code": lines}
    return statistics, about


def _refuse_totals(columns, count, events, score):
    """Raise for a row of a table of counts that lacks its score, or that is the sum of
    the others.
    """
    n, n_events = columns[count], columns[events]
    is_lacking = np.isnan(columns[score]) & (n > 0)
    is_total = (2 * n == n.sum()) & (2 * n_events == n_events.sum()) & (n > 0)
    cure = "if it is a total, remove it. Rows are counted from 0, the header not"
    if is_lacking.any():
        row = int(is_lacking.argmax())
        raise ReportError(
            f"row {row} has {n[row]:g} samples, but no {score!r}: {cure} included."
        )
    if is_total.any() and len(n) > 2:
        row = int(is_total.argmax())
        raise ReportError(
            f"row {row} has as many samples and events as all others together"
            f" ({n[row]:g} and {n_events[row]:g}): {cure} included."
        )


def counts_numbers(statistics, about, *, tolerance, alternative, adjustment):
    """Return the numbers of a report of a table of counts, a dict of plain values.

    Parameters
    ----------
    statistics : BinStatistics
        The table.
    about : dict
        What `read_counts` returns about it.
    tolerance : float
        Bias that does not matter, as a probability.
    alternative, adjustment : str
        Options of `calibration_by_group`.
    """
    # All samples together, as one group; then each row of the table.
    one = calibration_by_group(
        {"all": statistics}, confidence_level=_LEVEL, n_resamples=1, random_state=0
    )
    by_row = calibration_by_group(
        statistics,
        alternative=alternative,
        adjustment=adjustment,
        confidence_level=_LEVEL,
        n_resamples=1,
        random_state=0,
    )
    rows = []
    for row in records(by_row.columns()):
        # The colour of a traffic light, by the size of the p-value.
        light = next(name for most, name in _LIGHTS if row["adjusted_pvalue"] < most)
        bias = {"estimate": row["bias"]}
        for key in ("low", "high"):
            limit = row[f"bias_{key}"]
            bias[key] = None if row["reason"] else limit
        rows.append(
            {
                "mean_score": row["mean_score"],
                "n": row["n"],
                "event_frequency": row["event_frequency"],
                "pvalue": row["pvalue"],
                "adjusted_pvalue": row["adjusted_pvalue"],
                "events": round(row["n"] * row["event_frequency"]),
                "bias": bias,
                "light": light,
                "binomial_pvalue": row["binomial_pvalue"],
                "jeffreys_pvalue": row["jeffreys_pvalue"],
            }
        )
    found = verdict(
        one.bias[0],
        (one.bias_low[0], one.bias_high[0]),
        float(one.n[0]),
        tolerance,
        reason=str(one.reason[0]),
    )
    parts = brier_decomposition(statistics)
    debiased = brier_decomposition(statistics, method="debiased")
    numbers = {
        **about,
        "n_samples": float(statistics.weight.sum()),
        "n_events": float(statistics.weighted_label.sum()),
        "mean_score": float(one.mean_score[0]),
        "event_frequency": float(one.event_frequency[0]),
        "verdict": plain(asdict(found)),
        "alternative": alternative,
        "adjustment": adjustment,
        "rows": rows,
        "decomposition": {**parts._asdict(), "score": parts.score},
        "debiased": {**debiased._asdict(), "score": debiased.score},
        "hosmer_lemeshow": _hosmer_lemeshow(statistics),
        "needs_samples": NEEDS_SAMPLES,
    }
    numbers["summary"] = _summary(numbers, asdict(found))
    numbers["code"] = _code(about["code"], alternative, adjustment)
    return numbers


def _hosmer_lemeshow(statistics):
    """Return the statistic and the p-value, a dict; None if the table is too small for
    the test.
    """
    try:
        test = calibration_test(statistics, method="hosmer_lemeshow")
    except ValueError:
        return None
    return {"statistic": float(test.statistic), "pvalue": float(test.pvalue)}


def _summary(numbers, found):
    """Return what the table says as lines of text, the worst first. `found` is the
    verdict on all samples, a dict.
    """
    rate = percent_words(numbers["event_frequency"], numbers["n_samples"])
    expected = numbers["mean_score"] * numbers["n_samples"]
    lines = [
        f"On average, the scores are {bias_words(found)}:"
        f" {fixed(expected, 1)} events were predicted, and"
        f" {count_words(round(numbers['n_events']))} of"
        f" {count_words(round(numbers['n_samples']))} samples had one ({rate})."
    ]
    for light, words in (("red", "clearly off"), ("amber", "probably off")):
        named = [
            percent_words(row["mean_score"])
            for row in numbers["rows"]
            if row["light"] == light
        ]
        if named:
            lines.append(
                f"Rows that are {words} ({light}): those with score {listed(named)}."
            )
    if all(row["light"] == "green" for row in numbers["rows"]):
        lines.append("No row is detectably off.")
    return "\n".join(lines)


def _code(lines, alternative, adjustment):
    """Return the Python that makes the numbers, as text, after the `lines` that read
    the table and make its `statistics`.
    """
    options = ""
    if alternative != "two-sided":
        options += f', alternative="{alternative}"'
    if adjustment != "holm":
        options += f', adjustment="{adjustment}"'
    return "\n".join(
        [
            "import pandas as pd",
            "from skcalib.displays import ReliabilityDisplay",
            "from skcalib.metrics import (",
            "    BinStatistics,",
            "    brier_decomposition,",
            "    calibration_by_group,",
            "    calibration_test,",
            ")",
            "",
            *lines,
            f"print(calibration_by_group(statistics{options}).to_frame())",
            "print(brier_decomposition(statistics))",
            'print(brier_decomposition(statistics, method="debiased"))',
            'print(calibration_test(statistics, method="hosmer_lemeshow"))',
            "ReliabilityDisplay.from_statistics(statistics)",
        ]
    )


def check_counts_options(arguments):
    """Raise if an option of the command does not apply to a table of counts, which has
    no single samples, or if one that it needs is missing.
    """
    options = (
        *("label", "classes", "segment", "time", "baseline", "unlabelled", "weight"),
        *("cluster", "threshold", "positive", "negative", "time_to_event", "event"),
    )
    for name in options:
        if getattr(arguments, name):
            option = "--" + name.replace("_", "-")
            raise ReportError(
                f"{option} needs individual samples, but --count gives a table of"
                f" counts: omit it. {NEEDS_SAMPLES}"
            )
    if arguments.count is None or arguments.events is None:
        raise ReportError(
            "a table of counts needs the columns --count (numbers of samples), --events"
            " (numbers of events) and --score."
        )
    if len(arguments.scores) != 1:
        raise ReportError(
            "a table of counts needs one column of scores: name it with --score."
        )
