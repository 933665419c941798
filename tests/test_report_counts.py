"""The report of a table of counts: one row for each grade, category or bin."""

import json
import re

import numpy as np
import pytest
from scipy.stats import beta

from skcalib.__main__ import main
from skcalib.metrics import BinStatistics, brier_decomposition, calibration_by_group

_REASON = "the report needs pandas and pyarrow (extra report)"
pd = pytest.importorskip("pandas", reason=_REASON)
pytest.importorskip("pyarrow", reason=_REASON)

GRADES = pd.DataFrame(
    {
        "grade": ["B", "A", "D", "C", "E"],
        "n": [2500, 4000, 0, 900, 40],
        "d": [90, 30, 0, 140, 40],
        "pd": [0.03, 0.01, 0.2, 0.08, 1.0],
    }
)
OPTIONS = ["--count", "n", "--events", "d", "--score", "pd"]


def _report(tmp_path, capsys, *options, frame=GRADES, **written):
    frame.to_csv(tmp_path / "grades.csv", index=False, **written)
    status = main([str(tmp_path / "grades.csv"), *OPTIONS, *options])
    return status, *capsys.readouterr()


def test_numbers_are_those_of_the_library(tmp_path, capsys):
    options = ("--json", "--alternative", "greater", "--adjustment", "exact")
    _, out, _ = _report(tmp_path, capsys, *options)
    numbers = json.loads(out)
    statistics = BinStatistics.from_counts(GRADES.n, GRADES.d, GRADES["pd"])
    table = calibration_by_group(
        statistics, alternative="greater", adjustment="exact", confidence_level=0.95
    )
    rows = numbers["rows"]
    assert [row["mean_score"] for row in rows] == [0.01, 0.03, 0.08, 1.0]
    assert [row["events"] for row in rows] == [30, 90, 140, 40]
    assert [row["adjusted_pvalue"] for row in rows] == table.adjusted_pvalue.tolist()
    by_hand = beta.cdf([0.01, 0.03, 0.08], [30.5, 90.5, 140.5], [3970.5, 2410.5, 760.5])
    assert [row["jeffreys_pvalue"] for row in rows[:3]] == pytest.approx(by_hand)
    assert [row["light"] for row in rows] == ["green", "green", "red", "green"]
    parts = brier_decomposition(statistics)
    assert numbers["decomposition"]["miscalibration"] == parts.miscalibration
    expected = (GRADES.n * GRADES["pd"]).sum() / GRADES.n.sum()
    assert numbers["mean_score"] == pytest.approx(expected)
    assert numbers["n_events"] == 300
    assert (
        "Rows that are clearly off (red): those with score 8 %." in numbers["summary"]
    )


def test_counts_may_be_written_with_separators_and_percent_signs(tmp_path, capsys):
    written = GRADES.assign(
        n=[f"{n:,}" for n in GRADES.n], pd=[f"{100 * p:g}%" for p in GRADES["pd"]]
    )
    _, plain, _ = _report(tmp_path, capsys, "--json")
    _, out, _ = _report(tmp_path, capsys, "--json", frame=written)
    numbers = json.loads(out)
    assert numbers["rows"] == json.loads(plain)["rows"]
    assert numbers["assumed"] == [
        "Numbers of n: read with thousands separators.",
        "Numbers of pd: read with percent signs.",
    ]


def test_the_page_and_its_python(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="the page needs matplotlib")
    pytest.importorskip("jinja2", reason="the page needs jinja2")
    page, code = tmp_path / "page.html", tmp_path / "again.py"
    options = ["-o", str(page), "--code", str(code)]
    status, out, err = _report(tmp_path, capsys, *options, sep=";")
    assert status == 0, err
    assert "On average, the scores are" in out
    text = page.read_text("utf-8")
    for word in ("Hosmer-Lemeshow", "debiased", "Jeffreys", "need individual samples"):
        assert word in text
    found = {}
    exec(code.read_text("utf-8"), found)
    np.testing.assert_array_equal(found["statistics"].count, [4000, 2500, 900, 40])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"d": [0.1, 0.2, 0, 0.1, 0.3]}, [], "events contains rates"),
        ({"d": [1, 2, 0, 901, 3]}, [], "events is 901 in row 3, but count is 900"),
        ({"pd": [3, 1, 2, 8, 100]}, [], "--scores percent"),
        ({"n": [None, 1, 2, 3, 4]}, [], "1 without a number of samples"),
        ({}, ["--segment", "grade"], "--segment needs individual samples"),
        ({}, ["--label", "d"], "--label needs individual samples"),
        ({}, ["--score", "n"], "one column of scores"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, capsys, columns, options, message):
    frame = GRADES.assign(**columns)
    status, _, err = _report(tmp_path, capsys, "--json", *options, frame=frame)
    assert status == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["all", 7440, 300, None], "row 5 has 7440 samples, but no 'pd'"),
        (["all", 7440, 300, 0.05], r"row 5 has as many samples and events .*7440 and"),
    ],
)
def test_a_total_is_refused(tmp_path, capsys, row, message):
    frame = pd.concat([GRADES, pd.DataFrame([row], columns=GRADES.columns)])
    assert frame.n[:-1].sum() == row[1]
    assert frame.d[:-1].sum() == row[2]
    status, _, error = _report(tmp_path, capsys, "--json", frame=frame)
    assert status == 2
    assert re.search(message, error)
