"""The advice of a report as code that runs from file to file."""

import re
from json import dumps

import numpy as np

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}(-\d\d){0,2}")
_OTHERS = "others"


def advice_code(table, model):
    """Return code that reads the file, fits the advised recalibrator, applies it to the
    scores of `new_scores.csv` and writes `calibrated.csv`.

    None if nothing is advised, if the names of the columns do not contain those of the
    classes, or if a class has no row. `table` is the `ReportTable`, `model` the numbers
    about the model. In the code that is returned, `df` is the data frame of the file
    and `new` that of the new scores.
    """
    advice = model["advice"]
    if advice["recalibrator"] is None:
        return None
    columns = table.columns.get(model["name"], (model["name"],))
    by_class = _columns_by_class(table, columns)
    if table.classes is not None and by_class is None:
        return None
    # One segment is recalibrated, and all others keep their scores.
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
        result = "[:, 1]"  # the probability of the event
    else:
        lines += [
            f"classes = sorted(df[{_quoted(table.label)}].unique())",
            f'scores = [f"{by_class}" for k in classes]',
            'calibrated = [f"calibrated_{k}" for k in classes]',
        ]
        scores = "scores"
        calibrated = "calibrated"
        result = ""
    # Expressions: where results go, the new rows that the map is applied to, and what
    # follows the labels in `fit` and the scores in `predict_proba`.
    target = f"new[{calibrated}]"
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
            target = f"new.loc[rows, {calibrated}]"
            options = ", groups=df_groups[df.index]"
            groups = ", groups=new_groups[rows]"
            if is_one_segment:
                # A single map takes no groups.
                options = ""
                groups = ""
    if table.is_weighted:
        options = f", sample_weight=df[{_quoted(table.weight_name)}]{options}"
    apply = f"{target} = fitted.predict_proba({rows}[{scores}]{groups}){result}"
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
    """Return the names of the classes to import, and the expression that creates the
    recalibrator, such as ``GroupwiseRecalibrator(PlattScaling())``.
    """
    # Names before an opening bracket or at the end.
    names = re.findall(r"\w+(?=[(]|$)", advice["recalibrator"])
    if is_one_segment:
        # With one map for one segment the map itself is enough.
        names = names[-1:]
    recalibrator = f"{names[-1]}()"
    if len(names) == 2:
        recalibrator = f"{names[0]}({recalibrator})"
    return names, recalibrator


def _quoted(value):
    """Return a text, or a list of texts, as a Python literal."""
    return dumps(value, ensure_ascii=False)


def _read(table):
    """Return the expression that reads the file, and a list of the imports that it
    needs besides pandas.
    """
    name = table.source.lower()
    is_parquet = name.endswith((".parquet", ".pq"))
    # A date of change shows that this is one file, whatever signs its name has.
    is_glob = table.modified is None and any(sign in name for sign in "*?[")
    if not is_glob:
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
    """Return the expression that reads the new scores from a CSV file, with the
    separator of the report's file.
    """
    return f'pd.read_csv("new_scores.csv"{_csv_options(table)})'


def _csv_options(table):
    """Return further arguments of ``pd.read_csv``: the separator, and that words such
    as "NA" are not missing values, as text that begins with a comma or is empty.
    """
    options = ""
    if table.separator != ",":
        options += f", sep={_quoted(table.separator)}"
    if table.segmentations:
        options += ', keep_default_na=False, na_values=[""]'
    return options


def _columns_by_class(table, columns):
    """Return the name of the score column of a class as a pattern, such as "p_{k}",
    where ``{k}`` stands for the class.

    None for one event, if the `columns` (in the order of the classes) have no common
    pattern, or if a class has no row.
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
    """Return the expression for the labels of `df`; with one event, for whether it
    happened.
    """
    label = f"df[{_quoted(table.label)}]"
    event = table.event
    if event is None or event.lower() == "true":
        return label  # classes, or a column that is boolean already
    if _NUMBER.fullmatch(event):
        return f"{label} == {float(event):.15g}"
    return f"{label} == {_quoted(event)}"


def _segments(table, column, frame):
    """Return the expression for the segments of the rows of a data frame, with the
    names that they have in the report, such as "sex = f, site = 2" for a crossing.
    """
    if not table.partitions:
        return _as_text(frame, column)
    names = [column]
    crossed = list(table.partitions)[:-1]  # the last partition is the crossing
    if column == " × ".join(crossed):
        names = crossed
    # One expression for "sex = f", one for ", site = 2", and so on, to be added up.
    named_values = []
    for name in names:
        separator = ", " if named_values else ""
        prefix = _quoted(f"{separator}{name} = ")
        named_values.append(f"{prefix} + {_as_text(frame, name)}")
    return f"({' + '.join(named_values)})"


def _as_text(frame, column):
    """Return the expression for a column as text, with missing values named as in the
    report.
    """
    values = f"{frame}[{_quoted(column)}].astype(object)"
    return f'{values}.fillna("(missing)").astype(str)'


def _groups(table, model, frame):
    """Return the expression for the groups of the rows: the segments, of which those
    that share a map are one group.
    """
    advice = model["advice"]
    column = advice["column"]
    segments = _segments(table, column, frame)
    n_segments = 0  # of this column
    for row in model["segments"]:
        n_segments += row.get("column", column) == column
    # Where at most one segment is left, to share a map and to have one are the same.
    if advice["others"] == "unchanged" or len(advice["segments"]) >= n_segments - 1:
        return segments
    mapped = _quoted(advice["segments"])
    return f'{segments}.where(lambda name: name.isin({mapped}), "{_OTHERS}")'


def _rows_since(table, since):
    """Return the condition on the rows of `df` to be of the period `since` or a later
    one: by the order of dates or numbers, else by a list of the periods.
    """
    period = f"df[{_quoted(table.time_name)}]"
    order = table.period_order
    if all(map(_DATE.fullmatch, order)) and order == sorted(order):
        return f"{period}.astype(str) >= {_quoted(since)}"
    numbers = [float(name) for name in order if _NUMBER.fullmatch(name)]
    if len(numbers) == len(order) and numbers == sorted(numbers):
        return f"{period} >= {since}"
    later = order[order.index(since) :]
    return f"{period}.astype(str).isin({_quoted(later)})"
