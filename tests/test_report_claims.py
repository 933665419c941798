"""The report's sentences: all of them are in the table `CLAIMS`, and large tables from
known distributions say what is true, whatever the names of segments and periods.
"""

import ast
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks.checks.bounds import faults
from benchmarks.checks.sentence_truth import MONTHS, WORLDS, World, quick
from skcalib._report import _numbers
from skcalib._report._claims import CLAIMS
from skcalib._report._numbers import report_numbers

pytestmark = pytest.mark.slow


def _said(tree):
    """Return the texts in a module that are no docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
    ]


def test_every_sentence_of_a_report_stands_in_the_table():
    """What a summary and the sections say is made by `claim`: all of its names
    are used, and no other text of these modules ends a sentence.
    """
    folder = Path(_numbers.__file__).parent
    trees = {
        path.stem: ast.parse(path.read_text("utf-8")) for path in folder.glob("*.py")
    }
    used = {
        text
        for stem, tree in trees.items()
        if stem != "_claims"
        for text in _said(tree)
    }
    assert set(CLAIMS) <= used
    stems = ("_sections", "_headline", "_evidence", "_findings", "_phrases")
    for stem in (*stems, "_advice_words"):
        ends = [text for text in _said(trees[stem]) if text.rstrip().endswith(".")]
        assert not ends, f"{stem} makes a sentence of its own: {ends}"
    calls = [
        node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim"
    ]
    assert len(calls) == 1


# --- Large tables, and other names ----------------------------------------------------

LARGE = {
    "calibrated": {"usable"},
    "too high": {"do not use", "shift", "gain"},
    "too low": {"do not use"},
    "too extreme": {"do not take at face value", "too extreme", "recalibrate"},
    "too cautious": {"do not take at face value", "too cautious"},
    "one segment": {"do not use the segment", "segments off", "recalibrate segments"},
    "two segments": {"nor these segments"},
    "wave": {"error left"},
    "late": {"do not use", "changed", "late labels"},
    "drift": {"changed", "trend", "late labels"},
    "days": {"dependent"},
    "rare": {"tolerance too large"},
    "repeated keys": {"repeated key", "cluster first"},
}


def _numbers_of(table):
    with quick():
        numbers = report_numbers(table, seed=0, step=lambda what: None)
    return numbers["models"][0]


@pytest.mark.slow
@pytest.mark.parametrize("key", LARGE)
def test_large_tables_say_what_is_true(key):
    model = _numbers_of(WORLDS[key].table(10_000, 0))
    assert LARGE[key] <= set(model["claims"]), model["summary"]


@cache
def _of_months():
    """A table with regions and months, and its summary."""
    table = World(west=1.0, late=0.9).table(600, 3)
    return table, _numbers_of(table)["summary"]


@pytest.mark.parametrize(
    ("segments", "periods"),
    [
        (("alpha", "beta", "gamma"), [f"phase {k}" for k in range(8)]),
        (("zeta", "yard", "xylo"), ["h8", "c7", "b6", "g5", "a4", "f3", "e2", "d1"]),
    ],
)
def test_other_names_of_segments_periods_and_labels_give_the_same_sentences(
    segments, periods
):
    table, expected = _of_months()
    regions = dict(zip(("East", "South", "West"), segments, strict=True))
    months = dict(zip(MONTHS, periods, strict=True))
    other = replace(
        table,
        event="yes",
        segments=np.array([regions[name] for name in table.segments]),
        periods=np.array([months[name] for name in table.periods]),
        period_order=list(periods),
    )
    found = _numbers_of(other)["summary"]
    assert "2025-0" in expected
    assert faults(expected) == []
    assert "West" in expected
    names = {new: old for old, new in {**regions, **months}.items()}
    pattern = rf"\b({'|'.join(names)})\b"
    assert re.sub(pattern, lambda hit: names[hit[1]], found) == expected
