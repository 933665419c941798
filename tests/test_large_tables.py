"""The page on large tables: its snippets run, and parts merge to the whole."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("narwhals")
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")
pq = pytest.importorskip("pyarrow.parquet")

PAGE = Path(__file__).parents[1] / "doc" / "large_tables.md"


@pytest.mark.slow
def test_snippets(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    names = {}
    for snippet in re.findall(
        r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S
    ):
        exec(snippet, names)
    assert pq.read_table(tmp_path / "calibrated.parquet").num_rows == 60_000
    assert names["weight"].sum() == 60_000
    log, by_country = (
        pq.read_table(tmp_path / f"{name}.parquet").to_pandas()
        for name in ("calibrated", "by_country")
    )
    assert log.shape == by_country.shape == (60_000, 4)
    for country, rows in by_country.groupby("country"):
        wanted = names["maps"][country].predict_proba(rows["p"].to_numpy())[:, 1]
        np.testing.assert_allclose(rows["p_by_country"], wanted, rtol=0, atol=1e-12)
    assert np.mean((by_country["p_by_country"] - by_country["clicked"]) ** 2) < np.mean(
        (log["p"] - log["clicked"]) ** 2
    )
    assert names["groupwise"].groups_.tolist() == ["FR", "IT", "PL"]
    np.testing.assert_array_equal(names["merged"].count, names["statistics"].count)
    np.testing.assert_allclose(
        names["merged"].weighted_score, names["statistics"].weighted_score, rtol=1e-12
    )
    assert (
        names["groups"].adjusted_pvalue[list(names["groups"].group).index("IT")] < 0.01
    )
    assert names["interval"].low <= names["interval"].estimate <= names["interval"].high
