"""Monitors as JSON: after a stop they go on as if there had been none."""

import json

import numpy as np
import pytest

from skcalib.export import from_dict, to_dict
from skcalib.monitoring import CalibrationMonitor, GroupMonitors


def _batches(seed=0):
    rng = np.random.default_rng(seed)
    for month in range(10):
        scores, groups = (
            rng.uniform(0.1, 0.6, 400),
            rng.choice(["a", "b"] if month > 2 else ["a"], 400),
        )
        y = rng.random(400) < scores + 0.2 * ((groups == "b") & (month >= 5))
        yield scores, y, groups, f"2025-{month + 1:02d}"


def _through_json(monitor):
    return from_dict(json.loads(json.dumps(to_dict(monitor))))


@pytest.mark.parametrize(
    "options",
    [{}, {"average_run_length": 500}, {"restarts": True}, {"classes": ["no", "yes"]}],
    ids=str,
)
def test_a_monitor_goes_on_after_a_stop(options):
    without, stopped = CalibrationMonitor(**options), CalibrationMonitor(**options)
    for scores, y, _, _ in _batches():
        y = np.where(y, "yes", "no") if "classes" in options else y
        without.partial_fit(scores, y)
        stopped = _through_json(stopped.partial_fit(scores, y))
        for name, value in vars(without).items():
            other = vars(stopped)[name]
            if name == "_batches":
                assert [list(column) for column in other] == [
                    list(column) for column in value
                ]
            elif isinstance(value, np.ndarray):
                np.testing.assert_array_equal(other, value)
            else:
                assert other == value, name
    one, other = without.history_.columns(), stopped.history_.columns()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_groups_go_on_after_a_stop():
    without, stopped = GroupMonitors(), GroupMonitors()
    for batch in _batches():
        without.partial_fit(*batch)
        stopped = _through_json(stopped.partial_fit(*batch))
    one, other = without.table_.columns(), stopped.table_.columns()
    assert {name: values.tolist() for name, values in one.items()} == {
        name: values.tolist() for name, values in other.items()
    }
    assert one["alarm"].tolist() == [False, True]


def test_dates_become_texts():
    days = np.array("2025-01-01", dtype="datetime64[D]") + np.arange(300)
    monitors = GroupMonitors().partial_fit(
        np.full(300, 0.2), np.arange(300) >= 50, np.repeat("x", 300), time=days
    )
    found = _through_json(monitors)
    assert found.table_.alarm_time[0] == str(monitors.table_.alarm_time[0])


def _document():
    monitors = GroupMonitors()
    for batch in _batches():
        monitors.partial_fit(*batch)
    return to_dict(monitors)


def _change(document, path, value):
    *way, last = path
    for key in way:
        document = document[key]
    document[last] = value


_GROUPS, _TIMES = ("fitted", "monitors_", "pairs"), ("fitted", "_times", "pairs")
_INNER = (*_GROUPS, 1, 1)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (_GROUPS, {}),
        (_GROUPS, []),
        ((*_GROUPS, 1, 0), "a"),
        ((*_GROUPS, 1, 0), "z"),
        ((*_GROUPS, 1, 1), {"class": "CalibrationMonitor", "parameters": {}}),
        ((*_TIMES, 1, 1), [[0]]),
        ((*_TIMES, 1, 1), [{"tuple": ["0", "May"]}]),
        ((*_TIMES, 1, 1), 3),
        (("parameters", "confidence_level"), 2.0),
        (("parameters", "monitor"), {"average_run_length": 100}),
        ((*_INNER, "class"), "GroupMonitors"),
        ((*_INNER, "fitted", "n_rows_"), -1),
        ((*_INNER, "fitted", "n_rows_"), 3),
        ((*_INNER, "fitted", "alarm_"), False),
        ((*_INNER, "fitted", "alarm_row_"), 10**9),
        ((*_INNER, "fitted", "e_value_"), "many"),
        ((*_INNER, "fitted", "_log_wealth"), {"array": [0.0], "dtype": "float64"}),
        (
            (*_INNER, "fitted", "_log_wealth"),
            {"array": ["inf"] * 20, "dtype": "float64"},
        ),
        ((*_INNER, "fitted", "_log_wealth"), None),
        ((*_INNER, "fitted", "_batches"), {"tuple": [[1], [2]]}),
        ((*_INNER, "fitted", "_batches"), [[1], [2]]),
        ((*_INNER, "parameters", "confidence_level"), {"class": "PlattScaling"}),
    ],
    ids=str,
)
def test_defects_are_named(path, value):
    document = _document()
    _change(document, path, value)
    with pytest.raises(ValueError, match="The document is not valid"):
        from_dict(document)


def test_a_monitor_without_rows_is_not_written():
    with pytest.raises(ValueError, match="not fitted|partial_fit"):
        to_dict(CalibrationMonitor())
