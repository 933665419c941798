"""The picture of a monitor: what is drawn is its history."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skcalib.monitoring import CalibrationMonitor

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import MonitorDisplay  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _monitor(shift, **options):
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.1, 0.6, 4000)
    y = rng.random(4000) < scores + shift * (np.arange(4000) >= 2000)
    monitor = CalibrationMonitor(**options)
    for rows in np.split(np.arange(4000), 40):
        monitor.partial_fit(scores[rows], y[rows])
    return monitor


@pytest.mark.parametrize("options", [{}, {"average_run_length": 1000}], ids=str)
def test_line_is_the_history_and_marks_are_the_alarm(options):
    monitor = _monitor(0.2, **options)
    display = MonitorDisplay.from_monitor(monitor, name="clicks")
    x, e_value = display.lines_[0].get_data()
    np.testing.assert_array_equal(x[1:], monitor.history_.n_rows)
    np.testing.assert_array_equal(e_value[1:], monitor.history_.e_value)
    assert display.threshold_lines_[0].get_ydata()[0] == monitor.threshold_
    assert display.alarms_[0].get_xdata()[0] == monitor.alarm_row_
    assert display.change_lines_[0].get_xdata()[0] == monitor.change_row_
    assert display.ax_.get_title(loc="left").startswith(
        "clicks, 4,000 samples\nalarm at sample"
    )


def test_without_an_alarm():
    display = MonitorDisplay.from_monitor(_monitor(0.0))
    assert display.alarms_ == display.change_lines_ == []
    assert display.ax_.get_title(loc="left") == "4,000 samples\nno alarm"
    assert display.plot(legend=False).legend_ is None


def test_a_small_picture_writes_the_whole_row_of_the_alarm():
    monitor = _monitor(0.2)
    with plt.rc_context({"figure.figsize": (2.2, 2.2)}):
        title = MonitorDisplay.from_monitor(monitor, name="clicks").ax_.get_title(
            loc="left"
        )
    assert monitor.alarm_row_ > 1000  # written with a comma
    assert title == f"clicks, 4,000 samples\nalarm at sample {monitor.alarm_row_:,}"


def test_a_panel_for_each_segment():
    display = MonitorDisplay.from_monitor(
        {"north": _monitor(0.0), "south": _monitor(0.2)}
    )
    assert [panel.get_title(loc="left") for panel in display.ax_] == ["north", "south"]
    assert len(display.alarms_) == 1


def test_what_is_no_monitor_is_refused():
    with pytest.raises(TypeError, match="monitor must be a CalibrationMonitor"):
        MonitorDisplay.from_monitor([1, 2])
    with pytest.raises(ValueError, match="no monitor to draw"):
        MonitorDisplay.from_monitor({})
    with pytest.raises(NotFittedError):
        MonitorDisplay.from_monitor(CalibrationMonitor())
