"""Reports of many files and of many rows, read by DuckDB."""

import json

import numpy as np
import pytest

from skcalib.__main__ import main
from skcalib._report import _command
from skcalib._report._table import read_table

pytestmark = pytest.mark.slow

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
    status = main(
        ["report", *map(str, arguments), "--label", "y", "--score", "p", "--json"]
    )
    printed = capsys.readouterr()
    return status, json.loads(printed.out) if status == 0 else printed.err


def test_a_glob_is_all_its_files(log, capsys):
    status, numbers = report(capsys, log / "*.parquet", "--segment", "country")
    assert status == 0
    assert numbers["n_rows"] == 120
    pq.write_table(
        pa.concat_tables([pq.read_table(log / f"{name}.parquet") for name in "ab"]),
        log / "whole.parquet",
    )
    _, whole = report(capsys, log / "whole.parquet", "--segment", "country")
    assert numbers["models"] == whole["models"]


@pytest.fixture
def large(tmp_path):
    """A file with segments and times, in which the scores of the third month have
    changed.
    """
    rng = np.random.default_rng(0)
    n = 3000
    score = rng.random(n)
    month = rng.integers(1, 4, n)
    label = rng.random(n) < np.where(month == 3, score**2.5, score**1.2)
    days = [
        f"2026-0{m}-{day:02d}"
        for m, day in zip(month, rng.integers(1, 29, n), strict=True)
    ]
    country = np.array(["at", "de", None])[rng.integers(0, 3, n)]
    columns = {
        "p": score,
        "q": score**1.2,
        "y": np.where(label, "yes", "no"),
        "day": days,
        "country": country,
    }
    pq.write_table(
        pa.table(columns | {"w": rng.integers(1, 4, n)}), tmp_path / "large.parquet"
    )
    return tmp_path / "large.parquet"


def test_many_rows_are_a_random_sample_of_whole_rows(large, monkeypatch):
    options = {
        "label": "y",
        "scores": ["p", "q"],
        "segment": "country",
        "time": "day",
        "positive": "yes",
    }
    options |= {"weight": "w", "cluster": "day"}
    exact = read_table(large, **options)
    monkeypatch.setattr("skcalib._report._reader._MOST_ROWS", 600)
    table = read_table(large, **options)
    assert f"a random sample of {table.n_rows} of them" in table.notes[0]
    assert 500 < table.n_rows < 700
    assert (table.event, table.names, table.weight_type) == (
        exact.event,
        exact.names,
        "frequency",
    )
    rows = list(
        zip(
            exact.scores["p"],
            exact.labels,
            exact.weight,
            exact.segments,
            exact.periods,
            exact.clusters,
            strict=True,
        )
    )
    drawn = list(
        zip(
            table.scores["p"],
            table.labels,
            table.weight,
            table.segments,
            table.periods,
            table.clusters,
            strict=True,
        )
    )
    assert set(drawn) <= set(rows)
    assert abs(table.labels.mean() - exact.labels.mean()) < 0.06
    assert not np.array_equal(
        table.scores["p"], read_table(large, **options, seed=1).scores["p"]
    )


def test_a_large_csv_file_is_scanned(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.random(300).round(4)
    lines = [f"{int(rng.random() < s)},{s},NA" for s in score]
    (tmp_path / "x.csv").write_text("\n".join(["y,p,s", *lines]), encoding="utf-8")
    exact = read_table(tmp_path / "x.csv", label="y", scores=["p"], segment="s")
    monkeypatch.setattr("skcalib._report._reader._LARGE_CSV", 100)
    scanned = read_table(tmp_path / "x.csv", label="y", scores=["p"], segment="s")
    np.testing.assert_array_equal(
        scanned.event_rows("p").labels, exact.event_rows("p").labels
    )
    np.testing.assert_array_equal(
        scanned.event_rows("p").scores, exact.event_rows("p").scores
    )
    assert set(scanned.segments) == {"NA"}


def test_dates_and_times_are_days(tmp_path, monkeypatch):
    n = 400
    times = np.datetime64("2026-01-01T00:00:00", "ns") + np.arange(n) * np.timedelta64(
        3, "h"
    )
    rng = np.random.default_rng(0)
    pq.write_table(
        pa.table({"y": rng.integers(0, 2, n), "p": rng.random(n), "t": times}),
        tmp_path / "x.parquet",
    )
    orders = []
    for most in (2_000_000, 100):
        monkeypatch.setattr("skcalib._report._reader._MOST_ROWS", most)
        table = read_table(tmp_path / "x.parquet", label="y", scores=["p"], time="t")
        orders.append(table.period_order)
        assert set(table.periods) == set(table.period_order)
    assert orders[0] == orders[1] == ["2026-01", "2026-02"]


def test_what_cannot_be_read_is_one_line(log, capsys, monkeypatch):
    status, error = report(capsys, log / "none*.parquet")
    assert (status, error.count("\n")) == (2, 1)
    assert "no file" in error
    status, error = report(capsys, log / "*.parquet", "--segment", "city")
    assert status == 2
    assert "no column 'city'" in error
    pq.write_table(pa.table({"p": [2.0] * 40, "y": [0, 1] * 20}), log / "bad.parquet")
    monkeypatch.setattr("skcalib._report._reader._MOST_ROWS", 20)
    status, error = report(capsys, log / "bad.parquet")
    assert (status, error.count("\n")) == (2, 1)
    assert "column 'p': scores" in error
    assert "The rows are a random sample of the file." in error
    assert "from 0" not in error
