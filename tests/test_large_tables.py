"""The page on large tables: its snippets run."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("narwhals")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PAGE = Path(__file__).parents[1] / "doc" / "large_tables.md"


def test_snippets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    animals = rng.dirichlet([1, 1, 1], 600)
    columns = {f"p_{name}": animals[:, k] for k, name in enumerate(("cat", "dog", "fish"))}
    columns |= {"animal": np.array(["cat", "dog", "fish"])[animals.argmax(axis=1)], "p": animals[:, 0]}
    columns |= {"clicked": (rng.random(600) < animals[:, 0]).astype(int), "country": rng.integers(0, 2, 600)}
    (tmp_path / "log").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "log" / "one.parquet")
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S):
        exec(snippet, names)
    assert pq.read_table(tmp_path / "calibrated.parquet").num_rows == 600
    assert names["weight"].sum() == 600
