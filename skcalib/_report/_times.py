"""The order of time: numbers and dates have one, words only if the file or the user
tells it.
"""

import re
from datetime import date
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from skcalib._report._checks import distinct
from skcalib._report._columns import shown
from skcalib._report._error import ReportError

_MOST_PERIODS = 36
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?!\d)(.*)")
_EIGHT_DIGITS = re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)(?:\.0)?")
_SIX_DIGITS = re.compile(r"((?:19|20)\d\d)(0[1-9]|1[0-2])(?:\.0)?")
_DAY_OR_MONTH_FIRST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?!\d)(.*)")
_WITH_ZONE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*(Z|[+-]\d\d:?(\d\d)?)")
_EPOCH = re.compile(r"\d{9,19}(\.\d+)?")  # seconds from 1973 on, up to nanoseconds
_SPREADSHEET = re.compile(r"[34]\d{4}(\.\d+)?")  # days of 1982 to 2036
_LAST_YEAR = 2200  # of times that are believed
_EPOCHS = {"epoch": "s", "epoch-ms": "ms"}
_TIME_FORMATS = "--time-format: a strptime format such as %d/%m/%Y, epoch or epoch-ms"
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
    """Return a compiled pattern of a part of a year, such as "Q1", alone or with the
    year, as in "2024 Q1" or "Q1 2024".

    `part`, `year` and `gap` (what may stand between them) are patterns. The year and
    the part are the groups y1 and p1 if the year comes first or is missing, y2 and p2
    if it comes last.
    """
    year_first = f"(?:(?P<y1>{year}){gap})?(?P<p1>{part})"
    year_last = f"(?P<p2>{part})(?:{gap}(?P<y2>{year}))"
    return re.compile(f"{year_first}|{year_last}", re.IGNORECASE)


_NAMED = {
    "quarter": _either_way(r"q(?:uarter)?\s*[1-4]|[1-4]\s*q", year=r"\d{4}|\d{2}"),
    "half-year": _either_way(r"h\s*[12]|[12]\s*h"),
    "week": _either_way(r"(?:w|cw|kw|week)\s*\d{1,2}"),
    "month": _either_way(rf"(?:{_MONTH})\.?"),
    "number of a month": re.compile(
        r"(?P<y1>\d{4})[/-](?P<p1>\d{1,2})|(?P<p2>\d{1,2})[./-](?P<y2>\d{4})"
    ),
}
_WITH_MONTH = re.compile(rf"(?=.*\d).*\b(?:{_MONTH})\b.*", re.IGNORECASE)
# "3 May 2024", and "May 3, 2024"
_NAMED_DAYS = (
    re.compile(rf"(?P<d>\d{{1,2}})[ .-]*(?P<m>{_MONTH})[ .,-]*(?P<y>\d{{4}})", re.I),
    re.compile(rf"(?P<m>{_MONTH})\.? *(?P<d>\d{{1,2}}),? +(?P<y>\d{{4}})", re.I),
)
_SHORT_MONTH = re.compile(rf"({_MONTH})[ '-]*(\d\d)", re.IGNORECASE)  # "Dec-24"


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
    reader : str
        Expression of Python that makes texts YYYY-MM-DD or YYYY-MM of a column, which
        stands in it as {}; empty if the file has such texts, or other names.
    value_periods : dict or None
        The period of each value of the column, as text, where a period is neither the
        value nor the beginning of such a text.
    """

    period_of_row: np.ndarray
    order: list
    note: str | None
    moments: np.ndarray | None = None
    reader: str = ""
    value_periods: dict | None = None


def named_periods(column, name, time_order=None, time_format=None):
    """Return the periods of a column: its values, or the months, quarters or years of
    dates.

    Parameters
    ----------
    column : ndarray of shape (n,)
        The values, in the order of the file.
    name : str
        Name of the column, for messages.
    time_order : list of str, default=None
        The periods in the order of time, as the user gives them.
    time_format : str, default=None
        How times are written: a strptime format, "epoch" or "epoch-ms".

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
        days = np.datetime_as_string(column, unit="s")
        column = np.where(np.isnat(column), None, days)
    values, positions = distinct(column, name, what="time")
    raw_names = list(map(str, values))
    names = _whole(values) or raw_names
    note = None
    reader = ""
    if time_format is not None:
        names, reader = _parsed(values, name, time_format)
    elif time_order is None:
        names, note, reader = _as_dates(names, name)
    moments = None  # times of the rows that are finer than periods, (n,)
    if time_order is None and all(map(_DATE.match, names)):
        # ISO dates have the order of their texts.
        _, rank = np.unique(np.array(names), return_inverse=True)
        moments = rank[positions]
    value_periods = None
    is_long = len(set(names)) > _MOST_PERIODS
    if moments is not None or (time_order is None and is_long):
        names = _shortened(names)
    if names != raw_names and not reader and not all(map(_DATE.match, raw_names)):
        value_periods = dict(zip(raw_names, names, strict=True))
    periods = sorted(set(names))
    period_of_row = np.array(names)[positions]
    if time_order is not None:
        _check_time_order(time_order, periods, name)
        return Periods(period_of_row, list(time_order), None)
    _refuse_unclear(periods, name)
    if len(periods) > _MOST_PERIODS:
        raise ReportError(
            f"column {name!r} has {len(periods)} different values, such as"
            f" {periods[0]!r}; a report has at most {_MOST_PERIODS} periods. If they"
            " are times, write dates as YYYY-MM-DD or say how they are written with"
            f" {_TIME_FORMATS}."
        )
    order = _order_of_names(periods, name)
    if order is None:
        return _periods_in_runs(period_of_row, periods, name)
    return Periods(period_of_row, order, note, moments, reader, value_periods)


def _whole(values):
    """Return whole numbers that are floats, as years beside missing values, as a list
    of texts; None for other values.
    """
    if all(isinstance(value, float) and value.is_integer() for value in values):
        return [str(int(value)) for value in values]
    return None


def _periods_in_runs(period_of_row, periods, name):
    """Return periods without an order of their own in that of the file, with a note;
    raise if the rows of a period are not contiguous.
    """
    order = _order_of_runs(period_of_row)
    if order is None:
        raise ReportError(
            f"column {name!r} contains {shown(periods)}: strings have no chronological"
            " order, and the rows of each period are not contiguous in the file. State"
            " the order with --time-order"
            f" {','.join(periods[:3])}{',...' * (len(periods) > 3)}."
        )
    note = (
        f"The periods of {name} are in the order of the file: {shown(order, most=12)}."
        " If this is not their chronological order, give it with --time-order."
    )
    return Periods(period_of_row, order, note)


def _parsed(values, name, time_format):
    """Return times as texts YYYY-MM-DDThh:mm:ss, read in the format that the user
    names, and the expression that reads them; `values` are a list of texts or numbers.
    """
    import pandas as pd

    unit = _EPOCHS.get(time_format)
    try:
        if unit is not None:
            times = pd.to_datetime([float(value) for value in values], unit=unit)
        else:
            texts = [re.sub(r"\.0$", "", str(value)) for value in values]
            times = pd.to_datetime(texts, format=time_format, utc="%z" in time_format)
    except (ValueError, TypeError, OverflowError) as error:
        raise ReportError(
            f"--time-format {time_format} does not fit column {name!r}, which holds"
            f" {values[0]!s}: {str(error).splitlines()[0]}. Use {_TIME_FORMATS}."
        ) from error
    years = times.year
    if unit is not None and (years.max() == 1970 or years.max() > _LAST_YEAR):
        raise ReportError(
            f"--time-format {time_format} turns {values[0]!s} in column {name!r} into"
            f" the year {years[0]}: the numbers may be in another unit, seconds (epoch)"
            " or milliseconds (epoch-ms)."
        )
    if unit is not None:
        reader = f'pd.to_datetime({{}}, unit="{unit}")'
    else:
        utc = ", utc=True" * ("%z" in time_format)
        reader = f"pd.to_datetime({{}}.astype(str), format={time_format!r}{utc})"
    texts = times.strftime("%Y-%m-%dT%H:%M:%S").tolist()
    return texts, f'{reader}.dt.strftime("%Y-%m-%d")'


def _as_dates(names, name):
    """Return times as texts that begin with YYYY-MM-DD, or YYYY-MM for months; the
    unchanged `names` if they do not all have one unambiguous format. Also return a note
    on what was assumed, or None, and the pandas expression that makes the texts, with
    {} for the column, or "".
    """
    if all(map(_WITH_ZONE.fullmatch, names)):
        zones = {_WITH_ZONE.fullmatch(text)[1] for text in names}
        if len(zones) > 1:
            import pandas as pd

            times = pd.to_datetime(names, utc=True, format="ISO8601")
            dates = times.strftime("%Y-%m-%dT%H:%M:%S").tolist()
            reader = 'pd.to_datetime({}, utc=True, format="ISO8601")'
            note = f"Times of {name} are assigned to UTC days."
            return dates, note, reader + '.dt.strftime("%Y-%m-%d")'
        return names, None, ""
    for read in (_year_first, _with_named_month, _month_of_digits, _day_first):
        dates, written_as = read(names)
        if None in dates:
            continue
        if dates == names:
            return names, None, ""
        reader = ""
        if written_as:
            # Without the time of day, and the ".0" of numbers that were read as floats.
            texts = '{}.astype(str).str.extract(r"^([^T ]+?)(?:[.]0)?(?:[T ]|$)")[0]'
            if " " in written_as:
                texts = "{}.astype(str)"
            length = "%Y-%m-%d" if len(dates[0]) > 7 else "%Y-%m"
            reader = (
                f'pd.to_datetime({texts}, format="{written_as}")'
                f'.dt.strftime("{length}")'
            )
        note = f"{names[0]} in {name} was read as {dates[0][:10]}."
        return dates, note, reader
    return names, None, ""


def _year_first(names):
    """Return names such as 2024/1/5 and 20240105 as ISO dates, or [None] if one is
    written in another way; and their format of strptime.
    """
    dates = []
    written_as = ""
    for text in names:
        match = _YEAR_FIRST.fullmatch(text)
        if match:
            year, separator, month, day, rest = match.groups()
            written_as = f"%Y{separator}%m{separator}%d"
        else:
            match = _EIGHT_DIGITS.fullmatch(text)
            if not match:
                return [None], ""
            (year, month, day), rest = match.groups(), ""
            written_as = "%Y%m%d"
        iso = _iso(year, month, day)
        if iso is None:
            return [None], ""
        dates.append(iso + rest)
    return dates, written_as


def _with_named_month(names):
    """Return names such as "3 May 2024" as ISO dates and "Dec-24" as 2024-12, or [None]
    if one is written in another way; and "", since no single format of strptime reads
    all of these.
    """
    dates = []
    for text in names:
        matches = [pattern.fullmatch(text.strip()) for pattern in _NAMED_DAYS]
        day = next(filter(None, matches), None)
        short = _SHORT_MONTH.fullmatch(text.strip())
        if day:
            dates.append(_iso(day["y"], _month_number(day["m"]), day["d"]))
        elif short:
            century = 1900 if int(short[2]) > 68 else 2000  # as in strptime
            year = century + int(short[2])
            dates.append(f"{year}-{_month_number(short[1]):02d}")
        else:
            return [None], ""
    # Days and months together have no order, and different lengths.
    lengths = {len(text or "") for text in dates}
    if len(lengths) > 1:
        return [None], ""
    return dates, ""


def _month_of_digits(names):
    """Return names such as 202412 as 2024-12, or [None] if one is written in another
    way; and their format of strptime.
    """
    found = [_SIX_DIGITS.fullmatch(text) for text in names]
    if not all(found):
        return [None], ""
    return [f"{match[1]}-{match[2]}" for match in found], "%Y%m"


def _day_first(names):
    """Return names such as 31.12.2024 as ISO dates, or [None] if one is written in
    another way; and their format of strptime. A number above 12 shows that the day
    comes first.
    """
    found = [_DAY_OR_MONTH_FIRST.fullmatch(text) for text in names]
    if not all(match and match[2] == "." and len(match[4]) == 4 for match in found):
        return [None], ""
    if max(int(match[1]) for match in found) <= 12:
        return [None], ""
    dates = []
    for match in found:
        iso = _iso(match[4], match[3], match[1])
        if iso is None:
            return [None], ""
        dates.append(iso + match[5])
    return dates, "%d.%m.%Y"


def _iso(year, month, day):
    """Return a date as text YYYY-MM-DD; None if there is no such day."""
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _month_number(text):
    return 1 + _MONTHS.index(text[:3].lower())


def _shortened(names):
    """Return days, weeks, months or quarters, if need be shortened to months, quarters
    or years, so that a page has room for all; other names unchanged.
    """
    months = [_year_and_month(text) for text in names]
    if None in months:
        return names
    if all(map(_DATE.match, names)):
        names = [text[:10] for text in names]
    by_length = [
        names,
        [f"{year}-{month:02d}" for year, month in months],
        [f"{year}-Q{(month + 2) // 3}" for year, month in months],
        [f"{year}" for year, _ in months],
    ]
    for shorter in by_length:
        if len(set(shorter)) <= _MOST_PERIODS:
            return shorter
    return by_length[-1]


def _year_and_month(text):
    """Return the year and the month of a day, week, month or quarter (its last month);
    None for other names.
    """
    if _DATE.match(text):
        return int(text[:4]), int(text[5:7])
    key = _calendar_key(text)
    if key is None:
        return None
    kind, (year, number) = key
    if kind == "week":
        # ISO: a week belongs to the year, and here the month, of its Thursday.
        thursday = date.fromisocalendar(year, min(max(number, 1), 52), 4)
        return thursday.year, thursday.month
    months_of_part = {"quarter": 3, "half-year": 6}.get(kind, 1)
    return year, months_of_part * number


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
    """Raise for numbers that look like seconds since 1970 or days of a spreadsheet, and
    for dates whose day and month cannot be told apart.
    """
    dates = []
    for text in periods:
        # "May 2024" is the name of a month.
        is_named_date = _WITH_MONTH.fullmatch(text) and not _calendar_key(text)
        if _DAY_OR_MONTH_FIRST.fullmatch(text) or is_named_date:
            dates.append(text)
    if dates:
        raise ReportError(
            f"column {name!r} contains dates such as {dates[0]!r}, in which day, month"
            " and year cannot be told apart: say how they are written with"
            f" {_format_option(dates)}, or write dates as YYYY-MM-DD."
        )
    if all(_EPOCH.fullmatch(text) for text in periods):
        unit = "epoch" if len(periods[0].partition(".")[0]) < 12 else "epoch-ms"
        raise ReportError(
            f"column {name!r} contains numbers such as {periods[0]}, which look like"
            " seconds or milliseconds since 1970: if they are, pass --time-format"
            f" {unit}; otherwise, write dates as YYYY-MM-DD."
        )
    is_many = len(periods) > _MOST_PERIODS
    if is_many and all(_SPREADSHEET.fullmatch(text) for text in periods):
        raise ReportError(
            f"column {name!r} contains numbers such as {periods[0]}, which look like"
            " the date numbers of a spreadsheet: give the column the format"
            " YYYY-MM-DD there, save the file again, and pass --time-format %Y-%m-%d if"
            " necessary."
        )


def _format_option(dates):
    """Return the option ``--time-format`` that fits dates such as 05/06/2024, or both
    that do.
    """
    found = [_DAY_OR_MONTH_FIRST.fullmatch(text) for text in dates]
    if not all(found):
        return "--time-format, as in --time-format '%d %b %Y'"
    separator = found[0][2]
    year = "%Y" if len(found[0][4]) == 4 else "%y"
    day_first = f"%d{separator}%m{separator}{year}"
    month_first = f"%m{separator}%d{separator}{year}"
    if max(int(match[1]) for match in found) > 12:
        return f"--time-format {day_first}"
    if max(int(match[3]) for match in found) > 12:
        return f"--time-format {month_first}"
    return f"--time-format {day_first} or --time-format {month_first}"


def _order_of_names(periods, name):
    """Return the periods in chronological order if their names tell it, else None: by
    year and quarter, week or month, or by a number. Raise for periods in several
    formats.
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
    """Return the periods in the order of the file if the rows of each are contiguous;
    else None.
    """
    is_first = np.append(True, period_of_row[1:] != period_of_row[:-1])
    order = period_of_row[is_first].tolist()
    if len(set(order)) < len(order):
        return None
    return order


def _time_key(period):
    """Return the kind of a period's name ("quarter", "week", "month", "day", "number"
    or "word"), and its sort key.
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
    """Return sort keys of names that differ only in their numbers, such as "wave 9" and
    "wave 10"; None for others. If several numbers differ, as in "2023/24" and
    "2024/25", each must give the same order: "3 of 2023" and "1 of 2024" have none.
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
    """Return the kind and the position in time of a calendar period, as in ("quarter",
    (2024, 1)) for "Q1 2024"; None for other names, and without a year: "Jan" may come
    before or after "Dec".
    """
    for kind, pattern in _NAMED.items():
        match = pattern.fullmatch(period.strip())
        if match is None:
            continue
        # `_either_way` names the groups: y1 and p1 match the year and the part of the
        # year (its quarter, its month) if the year is first, y2 and p2 if it is last.
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
