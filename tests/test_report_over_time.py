"""The report's trend and autocorrelation: level where there is none, power where there
is one.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from skcalib._report._forecasts import ReportTable
from skcalib._report._over_time import autocorrelation, trend_numbers
from skcalib.monitoring import calibration_trend, error_autocorrelation

pytestmark = pytest.mark.slow

MONTHS = [f"2025-{month:02d}" for month in range(1, 13)]


def _table(n=1200, seed=0, drift=0.0, memory=0.0, segment_off=0.0, step=0.0, **options):
    """Return scores by day; `memory` is the correlation of what days have in common,
    and a `step` is in the eighth month.
    """
    rng = np.random.default_rng(seed)
    day = np.sort(rng.integers(0, 360, n))
    odds = rng.normal(-0.5, 1, n)
    shock = rng.normal(size=360)
    for k in range(1, 360):
        shock[k] = 0.8 * shock[k - 1] + 0.6 * shock[k]
    segments = rng.choice(["a", "b"], n)
    off = segment_off * (segments == "a")
    off = off + step * (day >= 210) + drift * day / 360
    y = rng.random(n) < expit(odds + memory * shock[day] + off)
    order = rng.permutation(n)
    return ReportTable(
        "x",
        "y",
        "1",
        y[order],
        {"p": expit(odds[order])},
        segment_name="s",
        segments=segments[order],
        time_name="t",
        periods=np.array(MONTHS)[day[order] // 30],
        period_order=MONTHS,
        moments=day[order],
        **options,
    )


def test_the_trend_is_that_of_the_library_over_all_periods():
    table = _table(drift=1.0)
    task = table.event_rows("p")
    found = trend_numbers(table, task)
    place = np.array([MONTHS.index(name) for name in table.periods])
    expected = calibration_trend(task.labels, task.scores, place, confidence_level=0.95)
    assert found["moved"] == pytest.approx(11 * expected.slope.estimate)
    assert found["moved_low"] == pytest.approx(11 * expected.slope.low)
    assert found["pvalue"] == expected.pvalue < 0.05
    few = _table().at(np.isin(_table().periods, MONTHS[:3]))
    assert trend_numbers(few, few.event_rows("p")) is None


def test_samples_without_an_event_have_no_trend():
    """The p-value that they lack was compared with a level."""
    table = _table(60)
    table = replace(table, labels=np.zeros(60, dtype=bool))
    assert trend_numbers(table, table.event_rows("p")) is None


@pytest.mark.parametrize(
    ("options", "is_step"), [({"step": 2.0}, True), ({"drift": 3.0}, False)]
)
def test_a_step_is_told_from_a_line(options, is_step):
    table = _table(3000, **options)
    assert trend_numbers(table, table.event_rows("p"))["is_step"] is is_step


@pytest.mark.parametrize("moments", ["days", None])
def test_the_autocorrelation_is_that_of_the_library(moments):
    table = _table(memory=1.0)
    if moments is None:
        table = replace(table, moments=None)
    place = np.array([MONTHS.index(name) for name in table.periods])
    time = place if moments is None else table.moments
    expected = error_autocorrelation(
        table.labels, table.scores["p"], time, groups={"t": place, "s": table.segments}
    )
    found = autocorrelation(table, table.event_rows("p"))
    assert found == {
        "estimate": expected.estimate,
        "factor": expected.factor,
        "pvalue": expected.pvalue,
    }


def test_clusters_and_few_rows_have_no_autocorrelation():
    table = _table(clusters=np.arange(1200) // 4)
    assert autocorrelation(table, table.event_rows("p")) is None
    few = _table(60)
    assert autocorrelation(few, few.event_rows("p")) is None
    whole = _table(200)
    constant = ReportTable("x", "y", "1", whole.labels, whole.scores)
    assert autocorrelation(constant, constant.event_rows("p")) is None


def _share(n_tables, **options):
    found = [_table(seed=seed, **options) for seed in range(n_tables)]
    pvalues = [
        autocorrelation(table, table.event_rows("p"))["pvalue"] for table in found
    ]
    return np.mean(np.array(pvalues) < 0.05)


def test_days_with_shared_shocks_are_noticed():
    assert _share(10, memory=1.0) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"drift": 1.5}, {"segment_off": 1.0}])
def test_what_is_no_dependence_is_not_called_so(options):
    assert _share(300, **options) <= 0.01
