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
    lines = ["import numpy as np"]
    map_name = step.name
    if step.column is not None:
        map_name = step.name.removeprefix("GroupwiseRecalibrator(").removesuffix("())")
    is_one_segment = step.others == "unchanged" and len(step.segments) == 1
    names = [map_name]
    recalibrator = f"{map_name}()"
    if step.column is not None and not is_one_segment:
        names.insert(0, "GroupwiseRecalibrator")
        recalibrator = f"GroupwiseRecalibrator({recalibrator})"
    lines += [
        f"from skcalib import {', '.join(names)}",
        "",
        "scores = np.asarray(y_proba)",
        f"y = {_labels(arguments)}",
    ]
    conditions = []
    if step.since is not None:
        conditions.append(f"(np.asarray(time) >= {step.since!r})")
    if step.column is not None:
        lines.append(f"segment = {arguments['groups'][step.column]}")
        segments = list(step.segments)
        lines.append(f"needs_map = np.isin(segment, {segments!r})")
        if step.others == "unchanged":
            conditions.append("needs_map")
        else:
            lines.append('segment = np.where(needs_map, segment, "others")')
    rows = ""
    if conditions:
        lines.append(f"rows = {' & '.join(conditions)}")
        rows = "[rows]"
    fit = f"scores{rows}, y{rows}"
    if arguments["is_weighted"]:
        fit += f", sample_weight=np.asarray(sample_weight){rows}"
    predict_rows = ""
    if step.others == "unchanged":
        predict_rows = "[needs_map]"
    predict = f"scores{predict_rows}"
    if step.column is not None and not is_one_segment:
        fit += f", groups=segment{rows}"
        predict += f", groups=segment{predict_rows}"
    lines.append(f"recalibrator = {recalibrator}.fit({fit})")
    predicted = f"recalibrator.predict_proba({predict})"
    if step.others != "unchanged":
        return "\n".join([*lines, f"calibrated = {predicted}"])
    lines += [
        "calibrated = scores.astype(float)",
        "if calibrated.ndim == 1:",
        "    calibrated = np.column_stack((1 - calibrated, calibrated))",
        f"calibrated[needs_map] = {predicted}",
    ]
    return "\n".join(lines)


def _labels(arguments):
    """Return the expression for the labels."""
    if arguments["pos_label"] is None or arguments["n_columns"] > 1:
        return "np.asarray(y_true)"
    return f"np.asarray(y_true) == {arguments['pos_label']!r}"
