"""A report as Python: public calls that make its numbers and its advice."""

import re

from skcalib._report._advice_code import (
    groups_by_column,
    imports_of,
    label_code,
    periods_code,
    reading_lines,
)
from skcalib._report._measures import N_CLUSTER_DRAWS, N_DRAWS, N_RESAMPLES
from skcalib._report._samples import CONFIDENCE_LEVEL
from skcalib._report._sources import literal

_IMPORTS = {
    "skcalib.binning": ("EqualMass", "MinimumMass"),
    "skcalib.displays": ("ReliabilityDisplay",),
    "skcalib.evaluation": ("advise",),
    "skcalib.metrics": (
        *("calibration_by_group", "calibration_error", "calibration_error_interval"),
        *("calibration_slope_intercept", "calibration_test"),
    ),
}
_BINNING = "MinimumMass(EqualMass(15), min_weight=10)"


def report_code(table, models, tolerance, seed):
    """Return the Python that makes the numbers of a report, as text.

    `table` is the `ReportTable`, `models` are the numbers of each model; `tolerance`
    (a probability) and `seed` are options of the command. The code of an advice runs
    only if there is a file of new scores.
    """
    _, lines = reading_lines(table)
    if any("random sample" in note for note in table.notes):
        lines.append("# The report is about a random sample of these rows.")
    lines += ["", f"bins = {_BINNING}", *_options(table)]
    for model in models:
        lines += [
            "",
            f"# {model['name']}",
            *_model_lines(table, model, tolerance, seed),
        ]
    for model in models:
        if model["advice"]["code"]:
            lines += [
                "",
                f"# What is advised for {model['name']}, with new scores",
                'if Path("new_scores.csv").exists():',
            ]
            indented = model["advice"]["code"].splitlines()
            lines += [f"    {line}" if line else "" for line in indented]
    text = "\n".join(lines)
    imports = ["from functools import partial"]
    if "Path(" in text:
        imports.append("from pathlib import Path")
    imports += ["", *imports_of(lines)]
    for module, names in _IMPORTS.items():
        used = [name for name in names if re.search(rf"\b{name}\b", text)]
        if used:
            imports.append(f"from {module} import {', '.join(used)}")
    return "\n".join([*imports, "", text])


def _options(table):
    """Return the lines that define the arguments of all calls about the rows."""
    entries = ["labels=[False, True]"]
    if table.is_weighted:
        entries.append(f"sample_weight=df[{literal(table.weight_name)}]")
        entries.append(f"weight_type={literal(table.weight_type)}")
    if table.clusters is not None:
        entries.append(f"clusters=df[{literal(table.cluster_name)}]")
    lines = [f"rows = dict({', '.join(entries)})"]
    by_column = groups_by_column(table)
    if by_column:
        lines.append("segments = {")
        lines += [f"    {literal(name)}: {code}," for name, code in by_column.items()]
        lines.append("}")
    if table.period_order is not None:
        lines.append(f"periods = {periods_code(table)}")
        order = literal(table.period_order)
        lines.append(f"time = pd.Categorical(periods, categories={order}).codes")
    return lines


def _model_lines(table, model, tolerance, seed):
    """Return the lines of Python that make and print the numbers of one model. `table`
    is the `ReportTable`, `model` the dict of the model's numbers; what does not apply
    to them has no line.
    """
    columns = table.columns.get(model["name"], (model["name"],))
    if table.classes is None:
        lines = [
            f"y = ({label_code(table)}).to_numpy(dtype=bool)",
            f"p = df[{literal(columns[0])}].to_numpy()",
        ]
        of_advice = "y, p, **rows"
    else:
        classes = literal(list(table.classes))
        label = f"df[{literal(table.label)}].astype(str)"
        lines = [
            f"label = pd.Categorical({label}, categories={classes}).codes",
            f"classes = df[{literal(list(columns))}].to_numpy()",
            "classes = classes / classes.sum(axis=1, keepdims=True)",
            "y = classes.argmax(axis=1) == label  # the predicted class is right",
            "p = classes.max(axis=1)  # and its probability",
        ]
        n_classes = len(table.classes)
        of_advice = f"label, classes, **(rows | dict(labels=list(range({n_classes}))))"
    if table.clusters is None:
        n_draws, n_resamples = N_DRAWS, N_RESAMPLES
    else:
        n_draws = n_resamples = N_CLUSTER_DRAWS
    level = f"confidence_level={CONFIDENCE_LEVEL:g}"
    random = f"random_state={seed}"
    lines += [
        "error = calibration_error_interval(",
        f"    y, p, norm=1, binning=bins, {level}, n_resamples={n_draws},",
        f"    {random}, **rows",
        ")",
        "print(error)",
        "test = calibration_test(",
        "    y, p, metric=partial(calibration_error, norm=1, binning=bins),",
        f"    n_resamples={n_resamples}, {random}, **rows",
        ")",
        "print(test)",
    ]
    if any(row["name"] == "calibration slope" for row in model["errors"]):
        lines.append(f"print(calibration_slope_intercept(y, p, {level}, **rows))")
    by_group = f"norm=1, binning=bins, {level}, {random}, **rows"
    has_segments = bool(table.segmentations)
    if has_segments:
        lines += [
            "for name, groups in segments.items():",
            f"    by_group = calibration_by_group(y, p, groups, {by_group})",
            "    print(name, by_group, sep='\\n')",
        ]
    has_times = table.period_order is not None
    if has_times:
        lines.append(f"by_period = calibration_by_group(y, p, periods, {by_group})")
        lines.append("print(by_period)")
    given = ["groups=segments"] * has_segments + ["time=time"] * has_times
    given += [f"tolerance={tolerance:g}", random]
    lines += [
        f"advice = advise({of_advice}, {', '.join(given)})",
        "print(advice)",
        "weight = rows.get('sample_weight')",
        "ReliabilityDisplay.from_predictions(",
        f"    y, p, labels=[False, True], sample_weight=weight, {random}",
        ")",
    ]
    return lines
