"""The page on large tables: its snippets run, and parts merge to the whole."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("narwhals")
pytest.importorskip("pandas")
pq = pytest.importorskip("pyarrow.parquet")

PAGE = Path(__file__).parents[1] / "doc" / "large_tables.md"


def test_snippets(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S):
        exec(snippet, names)
    assert pq.read_table(tmp_path / "calibrated.parquet").num_rows == 60_000
    assert names["weight"].sum() == 60_000
    np.testing.assert_array_equal(names["merged"].count, names["statistics"].count)
    np.testing.assert_allclose(names["merged"].weighted_score, names["statistics"].weighted_score, rtol=1e-12)
    assert names["groups"].adjusted_pvalue[list(names["groups"].group).index("IT")] < 0.01
    assert names["interval"].low <= names["interval"].estimate <= names["interval"].high
