"""Reports of many files and of many rows, read by DuckDB."""

import json

import numpy as np
import pytest

from skcalib.__main__ import main
from skcalib._report import _command
from skcalib._report._periods import period_rows
from skcalib._report._table import read_table
from skcalib.metrics import calibration_by_group, calibration_error

pytest.importorskip("duckdb")
pytest.importorskip("narwhals")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(_command, "_QUIET_SECONDS", 600)


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        score = rng.random(60)
        label = (rng.random(60) < score**1.3).astype(int)
        country = np.array(["at", "de"])[rng.integers(0, 2, 60)]
        columns = {"p": score, "q": score**2, "y": label, "country": country}
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return tmp_path


def report(capsys, *arguments):
    status = main(["report", *map(str, arguments), "--label", "y", "--score", "p", "--json"])
    printed = capsys.readouterr()
    return status, json.loads(printed.out) if status == 0 else printed.err


def test_a_glob_is_all_its_files(log, capsys):
    status, numbers = report(capsys, log / "*.parquet", "--segment", "country")
    assert status == 0
    assert numbers["n_rows"] == 120
    pq.write_table(pa.concat_tables([pq.read_table(log / f"{name}.parquet") for name in "ab"]), log / "whole.parquet")
    _, whole = report(capsys, log / "whole.parquet", "--segment", "country")
    assert numbers["models"] == whole["models"]


@pytest.fixture
def large(tmp_path):
    """A file with segments and times, in which the scores of the third month have changed."""
    rng = np.random.default_rng(0)
    n = 3000
    score = rng.random(n)
    month = rng.integers(1, 4, n)
    label = rng.random(n) < np.where(month == 3, score**2.5, score**1.2)
    days = [f"2026-0{m}-{day:02d}" for m, day in zip(month, rng.integers(1, 29, n), strict=True)]
    country = np.array(["at", "de", None])[rng.integers(0, 3, n)]
    columns = {"p": score, "q": score**1.2, "y": np.where(label, "yes", "no"), "day": days, "country": country}
    pq.write_table(pa.table(columns | {"w": rng.integers(1, 4, n)}), tmp_path / "large.parquet")
    return tmp_path / "large.parquet"


def test_many_rows_become_weighted_ones(large, monkeypatch):
    options = {"label": "y", "scores": ["p", "q"], "segment": "country", "time": "day", "positive": "yes"}
    exact = read_table(large, **options)
    monkeypatch.setattr("skcalib._report._scanned._MOST_ROWS", 100)
    table = read_table(large, **options)
    assert "Scores that differ by less than 0.4 % count as one" in table.notes[0]
    assert table.names == exact.names
    assert (table.event, table.is_weighted) == (exact.event, False)
    assert table.n_rows == table.total_weight == exact.n_rows == 3000
    for name in table.names:
        task, whole = table.task(name), exact.task(name)
        ours = calibration_error(task.labels, task.scores, sample_weight=task.sample_weight)
        assert ours == pytest.approx(calibration_error(whole.labels, whole.scores), abs=1e-3)
        assert np.average(task.scores, weights=task.sample_weight) == pytest.approx(whole.scores.mean())
        for loss in ("log", "brier"):
            assert table.losses(name)[loss] == pytest.approx(exact.losses(name)[loss], abs=1e-4)
        for part in ("segments", "periods"):
            (task, names), (whole, groups) = getattr(table, part)[name], getattr(exact, part)[name]
            ours = calibration_by_group(
                task.labels, task.scores, names, sample_weight=task.sample_weight, n_resamples=1
            )
            theirs = calibration_by_group(whole.labels, whole.scores, groups, n_resamples=1)
            assert ours.group.tolist() == theirs.group.tolist()
            np.testing.assert_array_equal(ours.n, theirs.n)
            np.testing.assert_allclose(ours.bias, theirs.bias, atol=1e-12)
            np.testing.assert_allclose(ours.error, theirs.error, atol=0.01)
    assert table.differences["q"] == pytest.approx(exact.differences["q"])
    rows = period_rows(table, "p", None, seed=0)
    assert [row["period"] for row in rows] == ["2026-01", "2026-02", "2026-03"]
    assert rows[0]["change_pvalue"] is None
    assert rows[1]["change_adjusted_pvalue"] > 0.05 > rows[2]["change_adjusted_pvalue"]
    (same,) = period_rows(read_table(large, label="y", scores=["p"], positive="yes"), "p", table, seed=0)
    assert same["change_pvalue"] == 1.0  # the same rows


@pytest.mark.slow
def test_a_report_of_many_weighted_rows(large, capsys, monkeypatch):
    monkeypatch.setattr("skcalib._report._scanned._MOST_ROWS", 100)
    status, numbers = report(capsys, large, "--positive", "yes", "--weight", "w")
    assert status == 0
    assert numbers["weighted"]
    assert numbers["total_weight"] > numbers["n_rows"] == 3000
    assert numbers["certificates"] == []


def test_the_recalibrators_of_many_rows_are_tried_on_a_sample_of_rows(large, capsys, monkeypatch):
    monkeypatch.setattr("skcalib._report._scanned._MOST_ROWS", 100)
    table = read_table(large, label="y", scores=["p"], positive="yes")
    scores, labels, weight = table.rows("p", 2000, seed=0)
    assert len(scores) == len(labels) == 2000
    assert weight is None
    task = table.task("p")
    assert abs(labels.mean() - np.average(task.labels, weights=task.sample_weight)) < 0.04
    assert abs(scores.mean() - np.average(task.scores, weights=task.sample_weight)) < 0.03


def test_a_large_csv_file_is_scanned(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.random(300).round(4)
    lines = [f"{int(rng.random() < s)},{s},NA" for s in score]
    (tmp_path / "x.csv").write_text("\n".join(["y,p,s", *lines]), encoding="utf-8")
    exact = read_table(tmp_path / "x.csv", label="y", scores=["p"], segment="s")
    monkeypatch.setattr("skcalib._report._scanned._LARGE_CSV", 100)
    scanned = read_table(tmp_path / "x.csv", label="y", scores=["p"], segment="s")
    np.testing.assert_array_equal(scanned.task("p").labels, exact.task("p").labels)
    np.testing.assert_array_equal(scanned.task("p").scores, exact.task("p").scores)
    assert set(scanned.segments["p"][1]) == {"NA"}


def test_dates_and_times_are_days(tmp_path, monkeypatch):
    n = 400
    times = np.datetime64("2026-01-01T00:00:00", "ns") + np.arange(n) * np.timedelta64(3, "h")
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"y": rng.integers(0, 2, n), "p": rng.random(n), "t": times}), tmp_path / "x.parquet")
    orders = []
    for most in (2_000_000, 100):
        monkeypatch.setattr("skcalib._report._scanned._MOST_ROWS", most)
        monkeypatch.setattr("skcalib._report._compressed._MOST_DAYS", 300)
        table = read_table(tmp_path / "x.parquet", label="y", scores=["p"], time="t")
        orders.append(table.period_order)
        assert set(table.periods["p"][1]) == set(table.period_order)
    assert orders[0] == orders[1] == ["2026-01", "2026-02"]


def test_what_cannot_be_read_is_one_line(log, capsys, monkeypatch):
    status, error = report(capsys, log / "none*.parquet")
    assert (status, error.count("\n")) == (2, 1)
    assert "no file" in error
    status, error = report(capsys, log / "*.parquet", "--segment", "city")
    assert status == 2
    assert "no column 'city'" in error
    pq.write_table(pa.table({"p": [0.5, 2.0, 0.1], "y": [0, 1, 1]}), log / "bad.parquet")
    monkeypatch.setattr("skcalib._report._scanned._MOST_ROWS", 2)
    status, error = report(capsys, log / "bad.parquet")
    assert (status, error.count("\n")) == (2, 1)
    assert "column 'p': row 1 is 2.0. The table has invalid rows: 1 (score)" in error
    pq.write_table(pa.table({"p": [0.5, 0.2, 0.1], "y": [0, 1, None]}), log / "bad.parquet")
    assert "column 'y': row 2 is empty" in report(capsys, log / "bad.parquet")[1]
    pq.write_table(pa.table({"p": ["a", "b", "c"], "y": [0, 1, 1]}), log / "bad.parquet")
    assert "score must be a column of numbers, but 'p' is String" in report(capsys, log / "bad.parquet")[1]
