"""Times as people write them: read in one way, or refused with the option that settles
them.
"""

import numpy as np
import pytest

from skcalib._report._error import ReportError
from skcalib._report._times import named_periods

pd = pytest.importorskip("pandas", reason="the report needs pandas (extra report)")

DAYS = [
    pd.Timestamp("2024-01-01") + pd.Timedelta(days=int(1.5 * k)) for k in range(240)
]
MONTHS = [f"2024-{month:02d}" for month in range(1, 13)]


def _periods(values, **options):
    return named_periods(np.array(values, dtype=object), "t", **options)


@pytest.mark.parametrize(
    "written",
    [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y%m%d",
        "%Y-%m-%dT%H:%M:%S",
        "%d.%m.%Y",
        "%d %B %Y",
        "%b %d, %Y",
        "%Y%m",
        "%b-%y",
        "%b %y",
    ],
)
def test_days_and_months_are_periods_of_months(written):
    found = _periods([day.strftime(written) for day in DAYS])
    assert found.order == MONTHS
    assert found.period_of_row.tolist() == [day.strftime("%Y-%m") for day in DAYS]


def test_single_digits_and_whole_numbers():
    assert _periods([f"{d.year}-{d.month}-{d.day}" for d in DAYS]).order == MONTHS
    assert _periods([int(d.strftime("%Y%m%d")) for d in DAYS]).order == MONTHS


def test_zones_are_days_of_one_zone():
    mixed = [
        day.strftime("%Y-%m-%dT23:30:00") + ("+00:00" if k % 2 else "-02:00")
        for k, day in enumerate(DAYS)
    ]
    found = _periods(mixed)
    assert found.order == MONTHS
    assert found.note == "Times of t are assigned to UTC days."
    # 2024-01-31T23:30 two hours west of Greenwich is in February of UTC.
    (row,) = np.flatnonzero([text.startswith("2024-01-31") for text in mixed])
    in_utc = pd.Timestamp(mixed[row]).tz_convert("UTC")
    assert found.period_of_row[row] == in_utc.strftime("%Y-%m")


def test_many_weeks_are_months_and_many_months_are_quarters_or_years():
    found = _periods([day.strftime("%G-W%V") for day in DAYS])
    assert found.order == MONTHS
    assert found.value_periods["2024-W05"] == "2024-02"  # its Thursday is 1 February
    months = pd.date_range("2019-01-01", periods=60, freq="MS")
    found = _periods(months.strftime("%Y-%m").tolist())
    assert found.order[:2] == ["2019-Q1", "2019-Q2"]
    assert len(found.order) == 20
    found = _periods(
        pd.date_range("2010", periods=150, freq="MS").strftime("%Y-%m").tolist()
    )
    assert found.order == [str(year) for year in range(2010, 2023)]
    assert _periods(["H2 2023", "H1 2024"]).order == ["H2 2023", "H1 2024"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([int(day.timestamp()) for day in DAYS], "--time-format epoch;"),
        ([int(1000 * d.timestamp()) for d in DAYS], "--time-format epoch-ms;"),
        ([d.strftime("%m/%d/%Y") for d in DAYS], "--time-format %m/%d/%Y, or"),
        (["05/06/2024", "06/05/2024"], "%d/%m/%Y or --time-format %m/%d/%Y"),
        ([45292 + k for k in range(240)], "date numbers of a spreadsheet"),
        ([f"step {k}" for k in range(99)], "at most 36 periods"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(values, message):
    with pytest.raises(ReportError, match=message):
        _periods(values)


def test_the_option_settles_it():
    seconds = [day.timestamp() for day in DAYS]
    assert _periods(seconds, time_format="epoch").order == MONTHS
    milliseconds = [1000 * value for value in seconds]
    assert _periods(milliseconds, time_format="epoch-ms").order == MONTHS
    for written in ("%m/%d/%Y", "%d/%m/%y", "%Y-%m-%d %H:%M %z"):
        stamps = [day.tz_localize("UTC") for day in DAYS]
        values = [stamp.strftime(written) for stamp in stamps]
        assert _periods(values, time_format=written).order == MONTHS
    with pytest.raises(ReportError, match="does not fit column 't', which holds 5 May"):
        _periods(["5 May"], time_format="%d/%m/%Y")


@pytest.mark.parametrize(
    "written", ["%Y/%m/%d", "%d.%m.%Y", "%Y%m", "%G-W%V", "%Y%m%d"]
)
def test_the_code_takes_the_rows_of_a_period_and_later(written):
    from types import SimpleNamespace

    from skcalib._report._advice_code import _rows_since

    values = [day.strftime(written) for day in DAYS]
    found = _periods(values)
    table = SimpleNamespace(
        time_name="t",
        period_order=found.order,
        moments=found.moments,
        time_reader=found.reader,
        value_periods=found.value_periods,
    )
    scope = {"df": pd.DataFrame({"t": values}), "pd": pd}
    rows = eval(_rows_since(table, "2024-05"), scope)
    assert rows.tolist() == (found.period_of_row >= "2024-05").tolist()


def test_epochs_in_another_unit_are_refused():
    seconds = [int(day.timestamp()) for day in DAYS]
    assert _periods(seconds, time_format="epoch").order == MONTHS
    for values, unit in ((seconds, "epoch-ms"), ([1000 * s for s in seconds], "epoch")):
        with pytest.raises(ReportError, match="may be in another unit|does not fit"):
            _periods(values, time_format=unit)


def test_years_beside_missing_values_are_years():
    found = _periods([2023.0] * 5 + [2024.0] * 5)
    assert found.order == ["2023", "2024"]
    assert found.value_periods == {"2023.0": "2023", "2024.0": "2024"}
