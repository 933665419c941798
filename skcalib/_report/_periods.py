"""Calibration over time: a row for each period, and whether the calibration curve has changed."""

import re

import numpy as np

from skcalib._report._checks import distinct
from skcalib._report._reader import ReportError
from skcalib._report._statistics import (
    LABELS,
    REPORT_BINNING,
    adjust,
    group_records,
    records,
)
from skcalib.monitoring import GroupMonitors, calibration_change

_MOST_PERIODS = 36
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAY_FIRST = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})\b")
_EPOCH = re.compile(r"\d{9,19}(\.\d+)?")  # seconds from 1973 on, up to nanoseconds
_MONTHS = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?"
)


def _either_way(part, year=r"\d{4}", gap=r"[\s./_-]*"):
    """Return a pattern of a year, which may be missing, and a part of it, in either order."""
    first, last = (
        f"(?P<y{i}>{year}){{gap}}(?P<p{i}>{part})".split("{gap}") for i in (1, 2)
    )
    return re.compile(
        f"(?:{first[0]}{gap})?{first[1]}|{last[1]}(?:{gap}{last[0]})", re.IGNORECASE
    )


_NAMED = {
    "quarter": _either_way(r"q(?:uarter)?\s*[1-4]|[1-4]\s*q", year=r"\d{4}|\d{2}"),
    "week": _either_way(r"(?:w|cw|kw|week)\s*\d{1,2}"),
    "month": _either_way(rf"(?:{_MONTH})\.?"),
    "number of a month": re.compile(
        r"(?P<y1>\d{4})[/-](?P<p1>\d{1,2})|(?P<p2>\d{1,2})[./-](?P<y2>\d{4})"
    ),
}
_WITH_MONTH = re.compile(rf"(?=.*\d).*\b(?:{_MONTH})\b.*", re.IGNORECASE)
_N_RESAMPLES = 999


def named_periods(column, name):
    """Return the period of each row and the periods in the order of time: the values, or months or years of dates."""
    if column.dtype.kind == "M":
        column = np.where(
            np.isnat(column), None, np.datetime_as_string(column, unit="D")
        )
    values, places = distinct(column, name, "time")
    names = list(map(str, values))
    if all(map(_DATE.match, names)):  # days, months or years, as few as a page can show
        length = next(
            (k for k in (10, 7) if len({text[:k] for text in names}) <= _MOST_PERIODS),
            4,
        )
        names = [text[:length] for text in names]
    periods = sorted(set(names))
    _refuse_unclear(periods, name)
    if len(periods) > _MOST_PERIODS:
        raise ReportError(
            f"column {name!r} has {len(periods)} different values; a report takes at most {_MOST_PERIODS} periods, or "
            "dates as YYYY-MM-DD."
        )
    return np.array(names)[places], _in_order(periods, name)


def _refuse_unclear(periods, name):
    """Refuse numbers that look like seconds, and dates whose day and month cannot be told apart."""
    dates = [
        text
        for text in periods
        if _DAY_FIRST.match(text) or _WITH_MONTH.fullmatch(text) and not _calendar(text)
    ]
    if dates:
        found = f"dates such as {dates[0]!r}, in which day, month and year are not told apart"
    elif all(_EPOCH.fullmatch(text) for text in periods):
        found = f"numbers such as {periods[0]}, which look like seconds or milliseconds since 1970"
    else:
        return
    raise ReportError(f"column {name!r} holds {found}: write dates as YYYY-MM-DD.")


def _in_order(periods, name):
    """Return periods in the order of time: quarters, weeks and months by year, others by the numbers in them."""
    places = [_place(period) for period in periods]
    kinds = {kind: period for period, (kind, _) in zip(periods, places, strict=True)}
    if len(kinds) > 1:
        shown = " and ".join(
            f"{period!r} (a {kind})" for kind, period in sorted(kinds.items())
        )
        raise ReportError(
            f"column {name!r} holds {shown}: write all periods in one way, so that they have an order."
        )
    order = sorted(zip(places, periods, strict=True))
    same = next(
        (i for i in range(1, len(order)) if order[i][0] == order[i - 1][0]), None
    )
    if same is not None:
        twice = " and ".join(repr(order[i][1]) for i in (same - 1, same))
        raise ReportError(f"column {name!r} writes one period in two ways, {twice}.")
    return [period for _, period in order]


def _place(period):
    """Return the kind of a period's name, and its place in time among those of its kind."""
    if calendar := _calendar(period):
        return calendar
    try:
        return "number", float(period)
    except ValueError:
        # Numbers inside a name count as numbers: "wave 10" comes after "wave 9".
        words = re.split(r"(\d+)", period)
        return "name", (
            [(int(word), "") if i % 2 else (-1, word) for i, word in enumerate(words)],
            period,
        )


def _calendar(period):
    """Return the kind of a quarter, week or month with its year (0 without one) and number; None for other words."""
    for kind, pattern in _NAMED.items():
        if match := pattern.fullmatch(period.strip()):
            part, year = match["p1"] or match["p2"], match["y1"] or match["y2"] or 0
            number = re.search(r"\d+", part)
            return kind, (
                int(year),
                int(number[0]) if number else _MONTHS.index(part[:3].lower()),
            )
    return None


def period_rows(table, name, baseline, seed):
    """Return a row for each period, in the order of time, with its test of change against the baseline.

    Parameters
    ----------
    table : ReportTable
        All rows; they are one period where there is no column of times.
    name : str
        Name of the model.
    baseline : ReportTable or None
        The rows to compare with; None means those of the first period.
    seed : int
        Seed of the resamples.

    Returns
    -------
    rows : list of dict
        Numbers by name, none without times and baseline; the p-value of a change is None for the first period without
        a baseline.
    """
    if table.periods is None and baseline is None:
        return []
    task, periods, order = table.task(name), table.periods, table.period_order
    if periods is None:
        order, periods = ["all rows"], np.full(len(task.scores), "all rows")
    rows = sorted(
        group_records(task, periods, "period", seed),
        key=lambda row: order.index(row["period"]),
    )
    before = task.at(periods == order[0]) if baseline is None else baseline.task(name)
    for row in rows:
        is_first = baseline is None and row is rows[0]
        after = task.at(periods == row["period"])
        row["change_pvalue"] = None if is_first else _change_pvalue(before, after, seed)
        row["change_adjusted_pvalue"] = None
    adjust(rows, "change_pvalue", "change_adjusted_pvalue")
    return rows


def _change_pvalue(before, after, seed):
    options = {
        "n_resamples": _N_RESAMPLES,
        "random_state": seed,
        "weight_type": after.weight_type,
    }
    for key in ("sample_weight", "clusters"):
        if getattr(after, key) is not None:
            options[key] = (getattr(before, key), getattr(after, key))
    rows = (before.labels, before.scores, after.labels, after.scores)
    try:
        return calibration_change(
            *rows, labels=LABELS, binning=REPORT_BINNING, **options
        ).pvalue
    except ValueError:  # too few rows for an error
        return None


def monitor_rows(table, name):
    """Return what monitors of a model saw, as `GroupMonitors.to_frame` has it: all rows first, then large segments.

    None without times, and for weights and clusters, whose rows are not independent steps. Rows of one period are seen
    in the order of the file.
    """
    if table.periods is None or table.is_weighted or table.clusters is not None:
        return []
    task, monitors = table.task(name), GroupMonitors()
    names, period = np.unique(table.periods, return_inverse=True)
    period = np.array([table.period_order.index(each) for each in names.tolist()])[
        period
    ]

    def see(group, order):
        scores = task.scores[order].astype(np.float64)
        monitors.partial_fit(
            scores, task.labels[order], group[order], time=period[order]
        )

    names = ["all rows"]
    see(np.zeros(len(period), dtype=np.intp), np.argsort(period, kind="stable"))
    if table.segments is not None:
        segments, group, size = np.unique(
            table.segments, return_inverse=True, return_counts=True
        )
        names += segments.tolist()
        see(group + 1, np.lexsort((period, group, -size[group])))
    rows = records(monitors.table_.columns())
    for row in rows:
        row["group"] = names[row["group"]]
        for key in ("alarm_time", "change_time"):
            row[key] = None if row[key] is None else table.period_order[row[key]]
    return rows
