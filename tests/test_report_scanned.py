"""Reports of many files and of many rows, read by DuckDB."""

import json

import numpy as np
import pytest

from skcalib.__main__ import main

pytest.importorskip("duckdb")
pytest.importorskip("narwhals")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


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


def test_many_rows_become_weighted_ones(log, capsys, monkeypatch):
    monkeypatch.setattr("skcalib._report._scanned._MOST_ROWS", 100)
    status, numbers = report(capsys, log / "*.parquet", "--segment", "country")
    assert status == 0
    assert numbers["total_weight"] == 120
    assert numbers["models"][0]["name"] == "p"
    assert [row["segment"] for row in numbers["models"][0]["segments"]]
    status, error = report(capsys, log / "*.parquet", "--score", "q")
    assert status == 2
    assert "give one --score" in error


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
    assert "invalid rows: 1 (score)" in error
