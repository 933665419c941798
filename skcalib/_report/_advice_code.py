"""The advice of a report as code that runs from file to file."""

import re
from json import dumps
from typing import NamedTuple

import numpy as np

_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_DATE = re.compile(r"\d{4}(-\d\d){0,2}")
_QUARTER = re.compile(r"(\d{4})-Q([1-4])")
_OTHERS = "others"


class _ScoreColumns(NamedTuple):
    """Expressions in the code that is returned, for columns of scores.

    Attributes
    ----------
    definitions : list of str
        Lines that must come before, which define the names used below.
    scores : str
        Name of the score column, or names of those of the classes.
    calibrated : str
        The same for the columns of results.
    selection : str
        What follows ``predict_proba(...)`` to get as many columns.
    """

    definitions: list
    scores: str
    calibrated: str
    selection: str


def advice_code(table, model):
    """Return Python code, as text, that reads the file of a report, fits the advised
    recalibrator, applies it to the scores of `new_scores.csv` and writes
    `calibrated.csv`.

    None if nothing is advised, if the names of the columns do not contain those of the
    classes, or if a class has no row. `table` is the `ReportTable`, `model` the numbers
    about the model. In the code that is returned, `df` is the data frame of the file
    and `new` that of the new scores.
    """
    advice = model["advice"]
    if advice["recalibrator"] is None:
        return None
    columns = _score_columns(table, model["name"])
    if columns is None:
        return None
    class_names, recalibrator = _recalibrator_of(advice)
    imports, reading = reading_lines(table)
    lines = [
        *imports,
        f"from skcalib import {', '.join(class_names)}",
        "",
        *reading,
        f"new = {table.code_of_new}",
    ]
    # The same is done with the scores of new samples.
    lines += [re.sub(r"\bdf\b", "new", line) for line in table.score_lines]
    if advice["since"]:
        lines.append(f"df = df[{_rows_since(table, advice['since'])}]")
    lines += columns.definitions
    lines += _fitting_lines(table, model, recalibrator, columns)
    lines.append('new.to_csv("calibrated.csv", index=False)')
    return "\n".join(lines)


def _score_columns(table, name):
    """Return the expressions for the score columns of the model `name`,
    `_ScoreColumns`; None if the names of the classes' columns have no common pattern.
    """
    columns = table.columns.get(name, (name,))
    if table.classes is None:
        # The second column of `predict_proba` is the probability of the event.
        return _ScoreColumns([], _quoted(columns[0]), '"calibrated"', "[:, 1]")
    pattern = _columns_by_class(table, columns)
    if pattern is None:
        return None
    definitions = [
        f"classes = sorted(df[{_quoted(table.label)}].unique())",
        f'scores = [f"{pattern}" for k in classes]',
        'calibrated = [f"calibrated_{k}" for k in classes]',
    ]
    return _ScoreColumns(definitions, "scores", "calibrated", "")


def _fitting_lines(table, model, recalibrator, columns):
    """Return the lines of code that fit the advised recalibrator to `df` and write its
    results to `new`.

    `recalibrator` is the expression that creates it, `columns` the `_ScoreColumns`.
    """
    advice = model["advice"]
    definitions, scores, calibrated, selection = columns
    fit = f"fitted = {recalibrator}.fit(df[{scores}], {label_code(table)}"
    if table.is_weighted:
        fit += f", sample_weight=df[{_quoted(table.weight_name)}]"
    if not advice["segments"]:
        return [
            f"{fit})",
            f"new[{calibrated}] = fitted.predict_proba(new[{scores}]){selection}",
        ]
    lines = [
        f"df_groups = {_groups(table, model, 'df')}",
        f"new_groups = {_groups(table, model, 'new')}",
    ]
    if advice["others"] == "shared":
        predict = f"fitted.predict_proba(new[{scores}], groups=new_groups)"
        return [
            *lines,
            f"{fit}, groups=df_groups)",
            f"new[{calibrated}] = {predict}{selection}",
        ]
    # Only some segments are recalibrated. One of them alone needs a single map, which
    # takes no groups.
    fit_groups = ""
    new_groups = ""
    if not _is_one_segment(advice):
        fit_groups = ", groups=df_groups[df.index]"
        new_groups = ", groups=new_groups[rows]"
    predict = f"fitted.predict_proba(new[rows][{scores}]{new_groups})"
    return [
        *lines,
        f"segments = {_quoted(advice['segments'])}  # those that need it",
        "df = df[df_groups.isin(segments)]",
        "rows = new_groups.isin(segments)",
        f"new[{calibrated}] = new[{scores}]",
        f"{fit}{fit_groups})",
        "if rows.any():",  # new rows may have none of these segments
        f"    new.loc[rows, {calibrated}] = {predict}{selection}",
    ]


def _is_one_segment(advice):
    """Return whether one segment is to be recalibrated, and all others keep their
    scores.
    """
    return advice["others"] == "unchanged" and len(advice["segments"]) == 1


def _recalibrator_of(advice):
    """Return the names of the classes to import, and the expression that creates the
    recalibrator, such as ``GroupwiseRecalibrator(PlattScaling())``.
    """
    # "PlattScaling", or "GroupwiseRecalibrator(PlattScaling())": the names stand before
    # an opening bracket or at the end.
    names = re.findall(r"\w+(?=[(]|$)", advice["recalibrator"])
    if _is_one_segment(advice):
        names = names[-1:]  # one segment needs no recalibrator by group
    recalibrator = f"{names[-1]}()"
    if len(names) == 2:
        recalibrator = f"{names[0]}({recalibrator})"
    return names, recalibrator


def _quoted(value):
    """Return a text, or a list of texts, as a Python literal."""
    return dumps(value, ensure_ascii=False)


def reading_lines(table):
    """Return the imports and the lines of code that make the data frame `df` of what a
    report is about, two lists.
    """
    lines = [f"df = {table.reading_code}", *table.score_lines, *table.row_lines]
    return imports_of(lines), lines


def imports_of(lines):
    """Return the imports that lines of code need, pandas among them, as a list."""
    text = "\n".join(lines)
    imports = []
    for name in ("duckdb", "json", "psycopg", "sqlite3"):
        if f"{name}." in text:
            imports.append(f"import {name}")
    if "glob(" in text:
        imports.append("from glob import glob")
    if "np." in text:
        imports.append("import numpy as np")
    imports.append("import pandas as pd")
    if "censored_labels(" in text:
        imports.append("from skcalib import censored_labels")
    return imports


def _columns_by_class(table, columns):
    """Return the name of a class's score column as a pattern, such as "p_{k}"; None for
    one event, without a common pattern, or if a class has no row.
    """
    if table.classes is None:
        return None
    patterns = set()
    for column, label in zip(columns, table.classes, strict=True):
        patterns.add(column.replace(label, "{k}"))
    if len(patterns) > 1 or len(np.unique(table.labels)) < len(table.classes):
        return None
    return patterns.pop()


def label_code(table):
    """Return the expression for the labels of `df`. For an event it is a comparison
    with its label, which may be a number or text.
    """
    label = f"df[{_quoted(table.label)}]"
    event = table.event
    if event is None or event.lower() == "true":
        return label  # names of classes, or a column that is boolean already
    if _NUMBER.fullmatch(event):
        return f"{label} == {float(event):.15g}"
    return f"{label} == {_quoted(event)}"


def _segments(table, column, frame):
    """Return the expression for each row's segment in the data frame named `frame`,
    named as in the report: with several columns of segments "site = 2", or "sex = f,
    site = 2" for "sex × site", which combines two.
    """
    if not table.partitions:
        return _as_text(frame, column)  # a single column: the value alone
    names = [column]
    single_columns = list(table.partitions)[:-1]  # the last one combines them
    if column == " × ".join(single_columns):
        names = single_columns
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
    """Return the expression for the `groups` of a `GroupwiseRecalibrator` that is
    advised for a model, with its rows in the variable `frame`: each row's segment, or
    "others" for those that share a map.
    """
    advice = model["advice"]
    column = advice["column"]
    segments = _segments(table, column, frame)
    n_segments = 0  # of this column
    for row in model["segments"]:
        n_segments += row.get("column", column) == column
    # If at most one segment is left, it shares its map with none, and keeps its name.
    if advice["others"] == "unchanged" or len(advice["segments"]) >= n_segments - 1:
        return segments
    mapped = _quoted(advice["segments"])
    return f'{segments}.where(lambda name: name.isin({mapped}), "{_OTHERS}")'


def groups_by_column(table):
    """Return the expressions for the segments of the rows of `df`, a dict by column."""
    return {column: _segments(table, column, "df") for column in table.segmentations}


def periods_code(table):
    """Return the expression for the period of each row of `df`, as text."""
    column = f"df[{_quoted(table.time_name)}]"
    if table.value_periods:
        return f"{column}.astype(str).map({_quoted(table.value_periods)})"
    texts = table.time_reader.format(column) or f"{column}.astype(str)"
    if table.moments is None:
        return texts
    first = table.period_order[0]
    if _QUARTER.fullmatch(first):
        months = f"pd.to_datetime({texts}.str[:7])"
        return f'{months}.dt.to_period("Q").astype(str).str.replace("Q", "-Q")'
    return f"{texts}.str[:{len(first)}]"


def _rows_since(table, since):
    """Return the condition that a row of `df` is of the period `since` or a later one:
    a comparison of dates or numbers, else a list of the periods or values.
    """
    period = f"df[{_quoted(table.time_name)}]"
    order = table.period_order
    later = order[order.index(since) :]
    if table.value_periods:
        values = [text for text, name in table.value_periods.items() if name in later]
        return f"{period}.astype(str).isin({_quoted(values)})"
    quarter = _QUARTER.fullmatch(since)
    if quarter and table.moments is not None:  # days that were shortened to quarters
        year, number = map(int, quarter.groups())
        since = f"{year}-{3 * number - 2:02d}"
        order = [name[:4] for name in order]
    if all(map(_DATE.fullmatch, order)) and order == sorted(order):
        texts = table.time_reader.format(period) or f"{period}.astype(str)"
        return f"{texts} >= {_quoted(since)}"
    numbers = [float(name) for name in order if _NUMBER.fullmatch(name)]
    if len(numbers) == len(order) and numbers == sorted(numbers):
        return f"{period} >= {since}"
    return f"{period}.astype(str).isin({_quoted(later)})"
