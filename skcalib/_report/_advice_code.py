"""The advice of a report as code that runs from file to file."""

import re
from json import dumps

import numpy as np

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}(-\d\d){0,2}")
_OTHERS = "others"


def advice_code(table, model):
    """Return code that reads the file, fits what is advised, applies it to the scores
    of `new_scores.csv` and writes `calibrated.csv`.

    None where nothing is advised, and for classes that a column's name does not tell or
    that have no row.
    """
    advice = model["advice"]
    if advice["recalibrator"] is None:
        return None
    columns = table.columns.get(model["name"], (model["name"],))
    by_class = _columns_by_class(table, columns)
    if table.classes is not None and by_class is None:
        return None
    is_one_segment = advice["others"] == "unchanged" and len(advice["segments"]) == 1
    names, recalibrator = _recalibrator_of(advice, is_one_segment)
    source, imports = _read(table)
    lines = [
        *imports,
        "import pandas as pd",
        f"from skcalib import {', '.join(names)}",
        "",
        f"df = {source}",
        f"new = {_read_new(table)}",
    ]
    if advice["since"]:
        lines.append(f"df = df[{_rows_since(table, advice['since'])}]")
    if table.classes is None:
        scores = _quoted(columns[0])
        calibrated = '"calibrated"'
        result = "[:, 1]"
    else:
        lines += [
            f"classes = sorted(df[{_quoted(table.label)}].unique())",
            f'scores = [f"{by_class}" for k in classes]',
            'calibrated = [f"calibrated_{k}" for k in classes]',
        ]
        scores = "scores"
        calibrated = "calibrated"
        result = ""
    applied = f"new[{calibrated}]"
    rows = "new"
    options = ""
    groups = ""
    if advice["segments"]:
        lines.append(f"df_groups = {_groups(table, model, 'df')}")
        lines.append(f"new_groups = {_groups(table, model, 'new')}")
        options = ", groups=df_groups"
        groups = ", groups=new_groups"
        if advice["others"] == "unchanged":
            lines += [
                f"segments = {_quoted(advice['segments'])}  # those that need it",
                "df = df[df_groups.isin(segments)]",
                "rows = new_groups.isin(segments)",
                f"new[{calibrated}] = new[{scores}]",
            ]
            rows = "new[rows]"
            applied = f"new.loc[rows, {calibrated}]"
            options = ", groups=df_groups[df.index]"
            groups = ", groups=new_groups[rows]"
            if is_one_segment:
                options = groups = ""
    if table.is_weighted:
        options = f", sample_weight=df[{_quoted(table.weight_name)}]{options}"
    apply = f"{applied} = fitted.predict_proba({rows}[{scores}]{groups}){result}"
    if rows != "new":
        # New rows may have none of these segments.
        apply = f"if rows.any():\n    {apply}"
    lines += [
        f"fitted = {recalibrator}.fit(df[{scores}], {_labels(table)}{options})",
        apply,
        'new.to_csv("calibrated.csv", index=False)',
    ]
    return "\n".join(lines)


def _recalibrator_of(advice, is_one_segment):
    """Return the names of the classes to import, and the expression that makes the
    recalibrator.
    """
    names = re.findall(r"\w+(?=[(]|$)", advice["recalibrator"])
    if is_one_segment:
        # One segment has one map: nothing is divided.
        names = names[-1:]
    recalibrator = f"{names[-1]}()"
    if len(names) == 2:
        recalibrator = f"{names[0]}({recalibrator})"
    return names, recalibrator


def _quoted(value):
    return dumps(value, ensure_ascii=False)


def _read(table):
    """Return the code that reads the file, and what it imports."""
    name = table.source.lower()
    is_parquet = name.endswith((".parquet", ".pq"))
    if table.modified is not None or not any(sign in name for sign in "*?["):
        if is_parquet:
            return f"pd.read_parquet({_quoted(table.source)})", []
        return f"pd.read_csv({_quoted(table.source)}{_csv_options(table)})", []
    reader = "read_parquet(path)"
    if not is_parquet:
        reader = f"read_csv(path{_csv_options(table)})"
    files = f"glob({_quoted(table.source)}, recursive=True)"
    code = f"pd.concat([pd.{reader} for path in {files}], ignore_index=True)"
    return code, ["from glob import glob"]


def _read_new(table):
    """Return the code that reads the new scores: a CSV file as that of the report."""
    return f'pd.read_csv("new_scores.csv"{_csv_options(table)})'


def _csv_options(table):
    """Return options that read a file as the report does: its separator, and words
    such as "NA" as words.
    """
    options = ""
    if table.separator != ",":
        options += f", sep={_quoted(table.separator)}"
    if table.segmentations:
        options += ', keep_default_na=False, na_values=[""]'
    return options


def _columns_by_class(table, columns):
    """Return the pattern of the columns' names by class; None where there is none, or
    where a class has no row.
    """
    if table.classes is None:
        return None
    patterns = set()
    for column, label in zip(columns, table.classes, strict=True):
        patterns.add(column.replace(label, "{k}"))
    if len(patterns) > 1 or len(np.unique(table.labels)) < len(table.classes):
        return None
    return patterns.pop()


def _labels(table):
    """Return the labels, of one event whether it happened."""
    label = f"df[{_quoted(table.label)}]"
    event = table.event
    if event is None or event.lower() == "true":
        return label
    if _NUMBER.fullmatch(event):
        return f"{label} == {float(event):.15g}"
    return f"{label} == {_quoted(event)}"


def _segments(table, column, frame):
    """Return the segments of the rows of a data frame as the report names them."""
    if not table.partitions:
        return _as_text(frame, column)
    parts = []
    names = [column]
    if column == " × ".join(list(table.partitions)[:-1]):
        names = list(table.partitions)[:-1]
    for name in names:
        before = f"{', ' if parts else ''}{name} = "
        parts.append(f"{_quoted(before)} + {_as_text(frame, name)}")
    return f"({' + '.join(parts)})"


def _as_text(frame, column):
    """Return a column as text, missing values as the report calls them."""
    values = f"{frame}[{_quoted(column)}].astype(object)"
    return f'{values}.fillna("(missing)").astype(str)'


def _groups(table, model, frame):
    """Return the groups: the segments with a map of their own, and the others, if they
    have one, as one.
    """
    advice = model["advice"]
    column = advice["column"]
    segments = _segments(table, column, frame)
    n_segments = 0
    for row in model["segments"]:
        n_segments += row.get("column", column) == column
    if advice["others"] == "unchanged" or len(advice["segments"]) >= n_segments - 1:
        return segments
    own = _quoted(advice["segments"])
    return f'{segments}.where(lambda name: name.isin({own}), "{_OTHERS}")'


def _rows_since(table, since):
    """Return the condition of a row of this period or a later one."""
    period = f"df[{_quoted(table.time_name)}]"
    order = table.period_order
    if all(map(_DATE.fullmatch, order)) and order == sorted(order):
        return f"{period}.astype(str) >= {_quoted(since)}"
    numbers = [float(name) for name in order if _NUMBER.fullmatch(name)]
    if len(numbers) == len(order) and numbers == sorted(numbers):
        return f"{period} >= {since}"
    later = order[order.index(since) :]
    return f"{period}.astype(str).isin({_quoted(later)})"
