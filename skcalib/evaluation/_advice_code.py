"""An advice as Python code with public calls only."""


def advice_code(step, arguments):
    """Return the code that fits a step of an advice and applies it.

    Parameters
    ----------
    step : AdviceStep
        What is advised.
    arguments : dict
        What the code depends on: `pos_label`, `is_weighted`, `groups` (expressions for
        the columns of groups by their names), and `n_columns` of the scores.
    """
    map_name = step.name
    if step.column is not None:
        map_name = step.name.removeprefix("GroupwiseRecalibrator(").removesuffix("())")
    names = [map_name]
    recalibrator = f"{map_name}()"
    keeps_others = step.others == "unchanged"
    # One group alone, while the others keep their scores, needs no map by group.
    is_by_group = step.column is not None
    if keeps_others and len(step.segments) == 1:
        is_by_group = False
    if is_by_group:
        names.insert(0, "GroupwiseRecalibrator")
        recalibrator = f"GroupwiseRecalibrator({recalibrator})"
    lines = [
        "import numpy as np",
        f"from skcalib import {', '.join(names)}",
        "",
        "scores = np.asarray(y_proba)",
        f"y = {_labels(arguments)}",
    ]
    if step.column is not None:
        lines += _lines_of_groups(step, arguments["groups"][step.column])
    rows = ""
    conditions = _conditions(step)
    if conditions:
        lines.append(f"rows = {' & '.join(conditions)}")
        rows = "[rows]"
    fit = f"scores{rows}, y{rows}"
    if arguments["is_weighted"]:
        fit += f", sample_weight=np.asarray(sample_weight){rows}"
    mapped = "[needs_map]" if keeps_others else ""
    predict = f"scores{mapped}"
    if is_by_group:
        fit += f", groups=segment{rows}"
        predict += f", groups=segment{mapped}"
    lines.append(f"recalibrator = {recalibrator}.fit({fit})")
    if keeps_others:
        lines += [
            "calibrated = scores.astype(float)",
            "if calibrated.ndim == 1:",
            "    calibrated = np.column_stack((1 - calibrated, calibrated))",
        ]
    lines.append(f"calibrated{mapped} = recalibrator.predict_proba({predict})")
    return "\n".join(lines)


def _lines_of_groups(step, column):
    """Return the lines that name the group of each sample, `segment`; `column` is the
    expression for the column of groups.
    """
    lines = [
        f"segment = {column}",
        f"needs_map = np.isin(segment, {list(step.segments)!r})",
    ]
    if step.others == "shared":
        lines.append('segment = np.where(needs_map, segment, "others")')
    return lines


def _conditions(step):
    """Return the conditions on the samples that a step is fitted to, a list of str."""
    conditions = []
    if step.since is not None:
        conditions.append(f"(np.asarray(time) >= {step.since!r})")
    if step.others == "unchanged":
        conditions.append("needs_map")
    return conditions


def _labels(arguments):
    """Return the expression for the labels."""
    if arguments["pos_label"] is None or arguments["n_columns"] > 1:
        return "np.asarray(y_true)"
    return f"np.asarray(y_true) == {arguments['pos_label']!r}"
