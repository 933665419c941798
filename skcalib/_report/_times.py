"""The order of time: numbers and dates have one, words only if the file or the user
tells it.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from skcalib._report._checks import distinct
from skcalib._report._models import shown
from skcalib._report._reader import ReportError

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
    """Return a compiled pattern of a part of a year, such as "Q1", together with the
    year, as in "2024 Q1" or "Q1 2024", or alone.

    `part`, `year` and `gap` (what may stand between them) are patterns. The groups of
    the result are y1 and p1, the year and the part, if the year comes first or is
    missing, and p2 and y2 if it comes last.
    """
    year_first = f"(?:(?P<y1>{year}){gap})?(?P<p1>{part})"
    year_last = f"(?P<p2>{part})(?:{gap}(?P<y2>{year}))"
    return re.compile(f"{year_first}|{year_last}", re.IGNORECASE)


_NAMED = {
    "quarter": _either_way(r"q(?:uarter)?\s*[1-4]|[1-4]\s*q", year=r"\d{4}|\d{2}"),
    "week": _either_way(r"(?:w|cw|kw|week)\s*\d{1,2}"),
    "month": _either_way(rf"(?:{_MONTH})\.?"),
    "number of a month": re.compile(
        r"(?P<y1>\d{4})[/-](?P<p1>\d{1,2})|(?P<p2>\d{1,2})[./-](?P<y2>\d{4})"
    ),
}
_WITH_MONTH = re.compile(rf"(?=.*\d).*\b(?:{_MONTH})\b.*", re.IGNORECASE)


class Periods(NamedTuple):
    """The period of each row, and the periods in the order of time.

    Attributes
    ----------
    period_of_row : ndarray of shape (n_rows,)
        Name of the period.
    order : list of str
        The periods, the earliest first.
    note : str or None
        Where the order comes from, if not from the names.
    moments : ndarray of shape (n_rows,) or None
        Numbers that increase with time, if it is known more exactly than by period.
    """

    period_of_row: np.ndarray
    order: list
    note: str | None
    moments: np.ndarray | None = None


def named_periods(column, name, time_order=None):
    """Return the periods of a column: its values, or the months or years of dates.

    Parameters
    ----------
    column : ndarray of shape (n,)
        The values, in the order of the file.
    name : str
        Name of the column, for messages.
    time_order : list of str, default=None
        The periods in the order of time, as the user gives them.

    Returns
    -------
    periods : Periods
        The period of each row and their order.

    Raises
    ------
    ReportError
        If the periods are too many, or have no order.
    """
    if column.dtype.kind == "M":
        days = np.datetime_as_string(column, unit="D")
        column = np.where(np.isnat(column), None, days)
    values, positions = distinct(column, name, what="time")
    names = list(map(str, values))
    moments = None  # times of the rows that are finer than periods, (n,)
    if time_order is None and all(map(_DATE.match, names)):
        # ISO dates have the order of their texts.
        _, rank = np.unique(np.array(names), return_inverse=True)
        moments = rank[positions]
        names = _shortened(names)
    periods = sorted(set(names))
    period_of_row = np.array(names)[positions]
    if time_order is not None:
        _check_time_order(time_order, periods, name)
        return Periods(period_of_row, list(time_order), None)
    _refuse_unclear(periods, name)
    if len(periods) > _MOST_PERIODS:
        raise ReportError(
            f"column {name!r} has {len(periods)} different values; a report has at most"
            f" {_MOST_PERIODS} periods, or dates as YYYY-MM-DD."
        )
    order = _order_of_names(periods, name)
    if order is not None:
        return Periods(period_of_row, order, None, moments)
    order = _order_of_runs(period_of_row)
    if order is None:
        raise ReportError(
            f"column {name!r} contains {shown(periods)}: strings have no order in time,"
            " and the rows of each period are not contiguous in the file. State the"
            " order with --time-order"
            f" {','.join(periods[:3])}{',...' * (len(periods) > 3)}."
        )
    note = (
        f"The periods of {name} are in the order of the file:"
        f" {shown(order, most=12)}. If this is not the order of time, give it with"
        " --time-order."
    )
    return Periods(period_of_row, order, note)


def _shortened(names):
    """Return ISO days as they are, or cut to months or to years so that there are few
    enough periods for a page.
    """
    for length in (10, 7):
        if len({text[:length] for text in names}) <= _MOST_PERIODS:
            return [text[:length] for text in names]
    return [text[:4] for text in names]


def _check_time_order(time_order, periods, name):
    """Raise unless the user's order names each period of the column once."""
    option = f"--time-order {','.join(time_order)}"
    if len(set(time_order)) < len(time_order):
        raise ReportError(f"{option} names a period twice.")
    if len(time_order) > _MOST_PERIODS:
        raise ReportError(
            f"{option} has {len(time_order)} periods; a report has at most"
            f" {_MOST_PERIODS}."
        )
    missing = [period for period in periods if period not in time_order]
    if missing:
        raise ReportError(
            f"{option} does not name {shown(missing)}, which column {name!r} contains."
        )
    unknown = [period for period in time_order if period not in periods]
    if unknown:
        raise ReportError(
            f"{option} names {shown(unknown)}, but column {name!r} contains"
            f" {shown(periods)}."
        )


def _refuse_unclear(periods, name):
    """Raise for numbers that look like seconds since 1970, and for dates that are not
    written as YYYY-MM-DD. `periods` is a list of text, `name` the name of the column.
    """
    dates = []
    for text in periods:
        # "3 May 2024" is a date, while "May 2024" is the name of a month.
        is_named_date = _WITH_MONTH.fullmatch(text) and not _calendar_key(text)
        if _DAY_FIRST.match(text) or is_named_date:
            dates.append(text)
    if dates:
        found = (
            f"dates such as {dates[0]!r}, in which day, month and year are not told"
            " apart"
        )
    elif all(_EPOCH.fullmatch(text) for text in periods):
        found = (
            f"numbers such as {periods[0]}, which look like seconds or milliseconds"
            " since 1970"
        )
    else:
        return
    raise ReportError(f"column {name!r} contains {found}: write dates as YYYY-MM-DD.")


def _order_of_names(periods, name):
    """Return the list of periods in chronological order if their names tell it, else
    None. `name` is the name of the column.

    Quarters, weeks and months are ordered within years; numbers, and names that differ
    only in a number, by the number. Raise for periods in several formats.
    """
    # Pairs of a kind ("quarter", "number", ...) and a value that is sorted by.
    keys = []
    kinds = {}  # each kind with a period as an example
    for period in periods:
        kind, value = _time_key(period)
        keys.append((kind, value))
        kinds[kind] = period
    if set(kinds) == {"word"}:
        keys = _keys_of_numbered(periods)
        if keys is None:
            return None
    elif len(kinds) > 1:
        examples = [f"{kinds[kind]!r} (a {kind})" for kind in sorted(kinds)]
        found = " and ".join(examples)
        raise ReportError(
            f"column {name!r} contains {found}: write all periods in the same format,"
            " so that they can be ordered."
        )
    order = sorted(zip(keys, periods, strict=True))
    for (key, period), (next_key, next_period) in pairwise(order):
        if key == next_key:
            raise ReportError(
                f"column {name!r} contains the same period in two formats, {period!r}"
                f" and {next_period!r}."
            )
    return [period for _, period in order]


def _order_of_runs(period_of_row):
    """Return the list of periods in the order in which they appear in the file, if the
    rows of each period are contiguous there; else None. `period_of_row` is (n_rows,).
    """
    is_first = np.append(True, period_of_row[1:] != period_of_row[:-1])
    order = period_of_row[is_first].tolist()
    if len(set(order)) < len(order):
        return None
    return order


def _time_key(period):
    """Return the kind of a period's name ("quarter", "week", "month", "day", "number"
    or "word"), and a value by which names of this kind are sorted.
    """
    key = _calendar_key(period)
    if key is not None:
        return key
    if _DATE.match(period):
        return "day", period
    try:
        return "number", float(period)
    except ValueError:
        return "word", period


def _keys_of_numbered(periods):
    """Return values by which names are sorted that differ only in their numbers, such
    as "wave 9" and "wave 10"; None for other names.

    If several numbers differ, as in "2023/24" and "2024/25", each must give the same
    order: "3 of 2023" and "1 of 2024" have none.
    """
    texts = {re.sub(r"\d+", "#", period) for period in periods}
    if len(texts) > 1 or "#" not in texts.pop():
        return None
    # The numbers of each name, as a tuple of integers.
    keys = [tuple(map(int, re.findall(r"\d+", period))) for period in periods]
    # In the order of the first number, then of the second, none may decrease.
    for key, next_key in pairwise(sorted(keys)):
        for number, next_number in zip(key, next_key, strict=True):
            if next_number < number:
                return None
    return keys


def _calendar_key(period):
    """Return the kind of a calendar period and its position in time, as in ("quarter",
    (2024, 1)) for "Q1 2024"; None for other names.

    It is None for a name without a year, too: "Jan" may come before or after "Dec".
    """
    for kind, pattern in _NAMED.items():
        match = pattern.fullmatch(period.strip())
        if match is None:
            continue
        year = match["y1"] or match["y2"]
        if year is None:
            return None
        part = match["p1"] or match["p2"]
        number = re.search(r"\d+", part)
        if number:
            number_in_year = int(number[0])
        else:
            number_in_year = _MONTHS.index(part[:3].lower())
        return kind, (int(year), number_in_year)
    return None
