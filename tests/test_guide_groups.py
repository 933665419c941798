"""The guide pages on groups and drift say what the library does: their snippets run and
give their figures.
"""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DOC = Path(__file__).parents[1] / "doc"


def _run(page, section=None):
    """Run the snippets of a page, or of one of its sections."""
    text = (DOC / page).read_text("utf-8")
    if section:
        text = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(snippet, names)
    return text, names


def _rows(text, header):
    """Return the cells of the table whose header starts so."""
    lines = text[text.index(header) :].splitlines()[2:]
    rows = lines[
        : next(
            (k for k, line in enumerate(lines) if not line.startswith("|")), len(lines)
        )
    ]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]


def test_which_groups():
    pytest.importorskip("pandas")
    text, names = _run("which_groups.md")
    table = names["by_site"]
    rows = _rows(text, "| group | n | mean_score")
    assert len(rows) == len(table) == 5
    for k, row in enumerate(rows):
        columns = [
            "n",
            "mean_score",
            "event_frequency",
            "bias",
            "bias_low",
            "bias_high",
            "pvalue",
            "adjusted_pvalue",
        ]
        for cell, name in zip(row[1:], columns, strict=True):
            assert float(cell) == pytest.approx(
                getattr(table, name)[k], rel=0.5, abs=0.0051
            )
    found = names["segments"].segments
    for k, (words, n, bias, statistic, adjusted) in enumerate(
        _rows(text, "| `segment` | n | bias")
    ):
        assert (words, int(n)) == (found.segment[k], found.n[k])
        assert float(bias) == pytest.approx(found.bias[k], abs=0.005)
        assert float(statistic) == pytest.approx(found.statistic[k], abs=0.06)
        assert float(adjusted) == pytest.approx(found.adjusted_pvalue[k])
    assert names["n_rounds"] > 0


def test_drift():
    text, names = _run("after_release.md", "Has it drifted?")
    columns = names["change"].columns()
    assert names["change"].pvalue == 0.001
    rows = _rows(text, "| quantity | estimate")
    assert [row[0] for row in rows] == columns["quantity"].tolist()
    for k, row in enumerate(rows):
        for cell, name in zip(row[1:], ("estimate", "low", "high"), strict=True):
            assert float(cell) == pytest.approx(columns[name][k], abs=0.0016)
    monitor = names["monitor"]
    words = " ".join(text.split())
    assert f"sample {monitor.alarm_row_} (`monitor.alarm_row_`)" in words
    assert f"sample {monitor.change_row_} (`monitor.change_row_`)" in words
    shown = re.search(r"```text\n(No alarm in 3 groups.*?)```", text, flags=re.S)[1]
    assert str(names["groups"].table_).split() == shown.split()
