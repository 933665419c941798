"""Monitors of groups: each is a plain monitor at its share of the level, and together
they keep the level.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skcalib.metrics import BinStatistics
from skcalib.monitoring import CalibrationMonitor, GroupMonitors


def _batches(n_batches=8, n=600, changed="b", seed=0):
    rng = np.random.default_rng(seed)
    for batch in range(n_batches):
        scores = rng.uniform(0.1, 0.6, n)
        groups = rng.choice(["a", "b", "c"] if batch >= 2 else ["a", "b"], n)
        shift = 0.25 * ((groups == changed) & (batch >= 4))
        yield scores, rng.random(n) < scores + shift, groups, f"2025-{batch + 1:02d}"


def _fitted(**options):
    monitors = GroupMonitors(**options)
    for batch in _batches():
        monitors.partial_fit(*batch)
    return monitors


def test_each_group_is_a_plain_monitor_at_its_share_of_the_level():
    monitors = _fitted(confidence_level=0.95)
    assert set(monitors.monitors_) == {"a", "b", "c"}
    for k, (group, found) in enumerate(monitors.monitors_.items(), 1):
        plain = CalibrationMonitor(confidence_level=1 - 0.05 * 6 / (np.pi * k) ** 2)
        for scores, y, groups, _ in _batches():
            if (groups == group).any():
                plain.partial_fit(scores[groups == group], y[groups == group])
        assert found.threshold_ == pytest.approx(plain.threshold_)
        assert found.e_value_ == pytest.approx(plain.e_value_)
        assert (found.alarm_row_, found.change_row_, found.n_rows_) == (
            plain.alarm_row_,
            plain.change_row_,
            plain.n_rows_,
        )
    assert monitors.n_rows_ == 8 * 600


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_groups_are_a_column_of_a_data_frame(dtype):
    pd = pytest.importorskip("pandas")
    found, expected = GroupMonitors(), _fitted()
    for scores, y, groups, time in _batches():
        rows = pd.DataFrame(
            {"p": scores, "y": y, "group": pd.Series(groups, dtype=dtype)}
        )
        found.partial_fit(rows["p"], rows["y"], rows["group"], time=time)
    assert found.table_.to_frame().equals(expected.table_.to_frame())


def test_shares_of_the_level_add_up_to_all_of_it():
    shares = 6 / (np.pi * np.arange(1, 1_000_000)) ** 2
    assert shares.sum() == pytest.approx(1, abs=1e-6)


def test_the_changed_group_is_dated():
    table = _fitted().table_
    rows = dict(zip(table.group.tolist(), range(3), strict=True))
    assert table.alarm.tolist() == [group == "b" for group in table.group]
    assert table.change_time[rows["b"]] in ("2025-04", "2025-05")
    assert table.alarm_time[rows["b"]] in ("2025-05", "2025-06")
    assert table.alarm_row[rows["a"]] is table.alarm_time[rows["a"]] is None
    assert table.n_rows.sum() == 8 * 600


def test_times_by_row_date_rows():
    scores = np.full(300, 0.2)
    # events only, from row 100 on
    y = (np.arange(300) % 5 == 0) | (np.arange(300) >= 100)
    days = np.array("2025-01-01", dtype="datetime64[D]") + np.arange(300)
    monitors = GroupMonitors().partial_fit(scores, y, np.repeat("x", 300), time=days)
    table = monitors.table_
    assert table.alarm[0]
    assert table.alarm_time[0] == days[table.alarm_row[0]]
    assert table.change_time[0] == days[table.change_row[0]]
    assert 95 <= table.change_row[0] <= 100


def test_batches_of_any_size_and_order_of_groups():
    whole, parts = GroupMonitors(), GroupMonitors()
    for scores, y, groups, time in _batches():
        whole.partial_fit(scores, y, groups, time)
        for rows in np.array_split(np.arange(600), 7):
            parts.partial_fit(scores[rows], y[rows], groups[rows], time)
    one, other = whole.table_, parts.table_
    assert one.group.tolist() == other.group.tolist()
    np.testing.assert_allclose(one.e_value, other.e_value, rtol=1e-9)
    assert one.change_time.tolist() == other.change_time.tolist()


def test_statistics_of_a_table():
    edges = np.linspace(0, 1, 11)
    monitors = GroupMonitors()
    for scores, y, groups, time in _batches():
        statistics = {
            group: BinStatistics.from_predictions(
                y[groups == group], scores[groups == group], edges
            )
            for group in np.unique(groups)
        }
        monitors.partial_fit(statistics, time=time)
    table = monitors.table_
    assert table.alarm.tolist() == [group == "b" for group in table.group]
    assert table.alarm_time[table.group.tolist().index("b")] >= "2025-05"


def test_labels_of_any_kind_and_many_classes():
    rng = np.random.default_rng(0)
    scores, groups = rng.dirichlet(np.ones(3), 400), rng.integers(0, 2, 400)
    labels = np.array(["p", "q", "r"])[
        (rng.random((400, 1)) > scores.cumsum(axis=1)).sum(axis=1)
    ]
    monitors = GroupMonitors(CalibrationMonitor(classes=["p", "q", "r"])).partial_fit(
        scores, labels, groups
    )
    assert sorted(monitors.monitors_) == [0, 1]
    assert not monitors.alarm_


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.2, 0.3], [0, 1], ["a", None]), "groups contains a missing value .* row 1"),
        (([0.2, 0.3], [0, 1], None), "groups"),
        (([0.2, 1.3], [0, 1], ["a", "b"]), "1.3"),
        (([0.2, 0.3], [0, 2], ["a", "b"]), "y must contain 0 and 1"),
        (([0.2, 0.3], [0, 1], ["a"]), "groups has 1 rows but scores has 2"),
        (([0.2, 0.3], [0, 1], ["a", "b"], ["x"]), "time has 1 rows but scores has 2"),
        (({"a": 3}, None, None), "must be a BinStatistics"),
        (({}, [0], None), "omit them"),
    ],
)
def test_wrong_batches_are_named_and_change_nothing(arguments, words):
    monitors = _fitted()
    before = pickle.dumps(monitors.table_.columns())
    with pytest.raises((ValueError, TypeError), match=words):
        monitors.partial_fit(*arguments)
    assert pickle.dumps(monitors.table_.columns()) == before


def test_measurements_are_no_groups():
    """Each value of a measurement had a monitor, and ever smaller error probability."""
    monitors = GroupMonitors()
    for batch in range(3):
        ages = batch + np.arange(10) / 16 + 1 / 32
        monitors.partial_fit(np.full(10, 0.5), np.arange(10) % 2, ages)
    monitors.partial_fit([0.5], [1], [0.03125])
    with pytest.raises(ValueError, match="groups holds 31 distinct floats"):
        monitors.partial_fit([0.5, 0.5], [0, 1], [0.03125, 7.5])
    assert monitors.n_rows_ == 31
    assert len(monitors.monitors_) == 30
    codes = np.arange(40.0)
    whole = GroupMonitors().partial_fit(np.full(40, 0.5), codes % 2, codes)
    assert len(whole.monitors_) == 40


def test_wrong_parameters():
    with pytest.raises(ValueError, match="average_run_length"):
        GroupMonitors(CalibrationMonitor(average_run_length=100)).partial_fit(
            [0.2], [0], ["a"]
        )
    with pytest.raises(TypeError, match="CalibrationMonitor"):
        GroupMonitors(3).partial_fit([0.2], [0], ["a"])
    with pytest.raises(NotFittedError, match="partial_fit"):
        GroupMonitors().to_frame()


def test_parameters_are_those_of_scikit_learn():
    monitors = GroupMonitors().set_params(monitor__restarts=True)
    assert clone(monitors).monitor.restarts
    fitted = pickle.loads(
        pickle.dumps(_fitted(monitor=CalibrationMonitor(restarts=True)))
    )
    batch = next(iter(_batches(seed=1)))
    assert fitted.partial_fit(*batch).n_rows_ == 9 * 600
    assert fitted.fit(*batch).n_rows_ == 600


def test_frame():
    pytest.importorskip("pandas")
    frame = _fitted().to_frame()
    assert list(frame) == [
        "group",
        "n_rows",
        "e_value",
        "alarm",
        "alarm_row",
        "alarm_time",
        "change_row",
        "change_time",
    ]
    assert len(frame) == 3


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "rare", "bimodal", "sure"])
def test_any_alarm_is_false_as_rarely_as_promised(shape):
    """Twelve calibrated groups of unequal sizes that come and go: any alarm in at most
    1 - confidence_level of runs.
    """
    false = 0
    for seed in range(80):
        rng = np.random.default_rng([seed, 7])
        monitors = GroupMonitors(confidence_level=0.9)
        for batch in range(12):
            n = 400
            scores = {
                "uniform": rng.random(n),
                "rare": rng.beta(1, 60, n),
                "bimodal": np.where(rng.random(n) < 0.5, 0.03, 0.97),
                "sure": rng.beta(0.05, 0.05, n),
            }[shape]
            groups = rng.choice(batch + 1, n, p=_decreasing(batch + 1))
            monitors.partial_fit(scores, rng.random(n) < scores, groups)
        false += monitors.alarm_
    assert false <= 14  # of 80; more have a chance of 1 % at a level of .1


def _decreasing(n):
    weights = 1.0 / np.arange(1, n + 1)
    return weights / weights.sum()
