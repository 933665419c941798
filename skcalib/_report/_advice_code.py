"""The advice of a report as code that fits it."""

import re
from json import dumps

import numpy as np

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}(-\d\d){0,2}")


def advice_code(table, model):
    """Return code that fits what is advised to `df`, the rows of the file as a data frame.

    None where nothing is advised, and for classes that a column's name does not tell or that have no row.
    """
    found, scores = model["advice"], _scores(table, model["name"])
    if found["recalibrator"] is None or scores is None:
        return None
    name = found["recalibrator"] if found["segments"] else f"{found['recalibrator']}()"
    given = [scores, _labels(table)]
    if table.is_weighted:
        given.append(f"sample_weight={_column(table.weight_name)}")
    if found["segments"]:
        given.append(f"groups={_groups(table, model)}")
    imported = ", ".join(re.findall(r"\w+(?=[(])", name))
    lines = [
        f"# df holds the rows of {table.source}",
        f"from skcalib import {imported}",
        f"df = df[{_rows_since(table, found['since'])}]" if found["since"] else None,
        f"fitted = {name}.fit({', '.join(given)})",
    ]
    return "\n".join(filter(None, lines))


def _column(name):
    return f"df[{_quoted(name)}]"


def _quoted(value):
    return dumps(value, ensure_ascii=False)


def _scores(table, name):
    """Return the scores, of several classes in the order of the sorted labels."""
    columns = table.columns.get(name, (name,))
    if table.classes is None:
        return _column(columns[0])
    pairs = zip(columns, table.classes, strict=True)
    patterns = {column.replace(label, "{k}") for column, label in pairs}
    if len(patterns) > 1 or len(np.unique(table.labels)) < len(table.classes):
        return None
    return f'df[[f"{patterns.pop()}" for k in sorted({_column(table.label)}.unique())]]'


def _labels(table):
    """Return the labels, of one event whether it happened."""
    label, event = _column(table.label), table.event
    if event is None or event.lower() == "true":
        return label
    return (
        f"{label} == {float(event):.15g}"
        if _NUMBER.fullmatch(event)
        else f"{label} == {_quoted(event)}"
    )


def _groups(table, model):
    """Return the groups: the segments with a map of their own, and the others as one."""
    segment, own = _column(table.segment_name), model["advice"]["segments"]
    if len(own) >= len(model["segments"]) - 1:
        return segment
    return (
        f'{segment}.astype(str).where(lambda name: name.isin({_quoted(own)}), "others")'
    )


def _rows_since(table, since):
    """Return the condition of a row of this period or a later one."""
    period, order = _column(table.time_name), table.period_order
    if all(map(_DATE.fullmatch, order)):
        return f"{period}.astype(str) >= {_quoted(since)}"
    if all(map(_NUMBER.fullmatch, order)):
        return f"{period} >= {since}"
    return f"{period}.isin({_quoted(order[order.index(since) :])})"
