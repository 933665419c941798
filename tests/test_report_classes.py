"""Reports of several classes, one score column a class: reading, matching of labels,
numbers, page.
"""

import json
import re
from dataclasses import asdict
from importlib.util import find_spec

import numpy as np
import pytest

from skcalib import TemperatureScaling
from skcalib.__main__ import main
from skcalib._report import _command, _reader
from skcalib._report._columns import given_classes
from skcalib._report._error import ReportError
from skcalib._report._forecasts import ReportTable
from skcalib._report._numbers import report_numbers
from skcalib._report._samples import MEAN_ABSOLUTE
from skcalib._report._sections import (
    certificate_sentence,
    class_sentence,
    rest_sentence,
)
from skcalib._report._table import read_table
from skcalib._verdicts import verdict
from skcalib.evaluation import cross_validate
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_test,
)

pytestmark = pytest.mark.slow

pytest.importorskip("pandas", reason="the report needs pandas (extra report)")

NAMES = ["bird", "cat", "dog"]


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(_command, "_QUIET_SECONDS", 600)


def _data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([1.0, 0.7, 0.5], n)
    sharp = proba**1.7
    sharp = (sharp / sharp.sum(axis=1, keepdims=True)).round(4)
    codes = (rng.random(n)[:, None] > proba.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return codes, sharp


def _write(path, codes, scores, *, labels=NAMES, columns=None, extra=None):
    columns = columns or [f"p_{name}" for name in NAMES]
    extra = extra or {}
    lines = [",".join(["y", *columns, *extra])]
    for i, (code, row) in enumerate(zip(codes, scores, strict=True)):
        lines.append(
            ",".join(
                map(
                    str, [labels[code], *row, *(values[i] for values in extra.values())]
                )
            )
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def file(tmp_path):
    return _write(tmp_path / "data.csv", *_data())


def _numbers(table):
    return report_numbers(table, seed=0, step=lambda what: None)


def test_numbers_of_classes_are_those_of_the_library(file):
    codes, scores = _data()
    scores = scores / scores.sum(axis=1, keepdims=True)
    table = read_table(file, label="y", scores=["p_*"])
    assert table.classes == tuple(NAMES)
    np.testing.assert_allclose(table.scores["p_*"], scores)
    scores = table.scores["p_*"]
    numbers = _numbers(table)
    json.dumps(numbers, allow_nan=False)
    (model,) = numbers["models"]
    assert numbers["classes"] == NAMES
    assert model["columns"] == {name: f"p_{name}" for name in NAMES}
    options = {**MEAN_ABSOLUTE, "random_state": 0}
    top = calibration_error_interval(codes, scores, multiclass="top_label", **options)
    assert [
        model["errors"][0][key] for key in ("estimate", "low", "high")
    ] == pytest.approx(list(top))
    assert model["test"]["rejects"] == (top.low > 0)
    right = scores.argmax(axis=1) == codes
    assert model["score_minus_frequency"]["estimate"] == pytest.approx(
        scores.max(axis=1).mean() - right.mean()
    )
    brier, nats = model["proper_scores"]
    assert brier["estimate"] == pytest.approx(
        np.sum((scores - np.eye(3)[codes]) ** 2, axis=1).mean()
    )
    assert nats["estimate"] == pytest.approx(
        -np.log(scores[np.arange(400), codes]).mean()
    )
    rows = {row["class"]: row for row in model["classes"]}
    for k, name in enumerate(NAMES):
        assert rows[name]["n_events"] == pytest.approx((codes == k).sum())
        assert rows[name]["bias"] == pytest.approx(
            scores[:, k].mean() - (codes == k).mean()
        )
        assert rows[name]["estimate"] == pytest.approx(
            calibration_error(codes == k, scores[:, k], **MEAN_ABSOLUTE)
        )
    gains = {row["name"]: row for row in model["recalibrators"]}
    expected = cross_validate(
        codes,
        scores,
        {"scaled": TemperatureScaling()},
        labels=range(3),
        random_state=0,
    ).gain("uncalibrated", "scaled")
    found = gains["TemperatureScaling"]
    assert (found["gain"], found["gain_low"], found["gain_high"]) == pytest.approx(
        tuple(expected)
    )
    assert {"DirichletCalibration", "VectorScaling", "StackedRecalibrator"} <= set(
        gains
    )
    assert model["summary"].startswith(
        "Do not use the probabilities of the predicted classes as they are: "
    )
    assert numbers["certificates"]  # of the predicted class


def test_classes_are_matched_by_name_and_by_order(tmp_path):
    codes, scores = _data(60)
    by_name = read_table(
        _write(tmp_path / "a.csv", codes, scores), label="y", scores=["p_*"]
    )
    # the columns in another order, with names of their own
    path = _write(
        tmp_path / "b.csv",
        codes,
        scores[:, [2, 0, 1]],
        columns=["third", "first", "second"],
    )
    by_order = read_table(
        path,
        label="y",
        scores=["third", "first", "second"],
        classes=("dog", "bird", "cat"),
    )
    (by_order, y), (by_name, codes_by_name) = (
        by_order.forecasts("scores")[:2],
        by_name.forecasts("p_*")[:2],
    )
    np.testing.assert_array_equal(y, (codes_by_name + 1) % 3)
    np.testing.assert_allclose(by_order, by_name[:, [2, 0, 1]])
    # a pattern finds the columns of numbers as classes 0, 1, 2, and --classes renames
    # them in the file's order
    columns = ["p_0", "p_1", "p_2"]
    numbered = _write(
        tmp_path / "c.csv", codes, scores, labels=[0, 1, 2], columns=columns
    )
    assert (
        read_table(numbered, label="y", scores=["p_*"]).forecasts("p_*")[1].tolist()
        == codes.tolist()
    )
    named = _write(tmp_path / "d.csv", codes, scores, columns=columns)
    table = read_table(named, label="y", scores=["p_*"], classes=tuple(NAMES))
    assert table.forecasts("p_*")[1].tolist() == codes.tolist()
    assert table.columns["p_*"] == ("p_0", "p_1", "p_2")


def test_a_pattern_leaves_the_other_columns_alone(tmp_path):
    codes, scores = _data(60)
    extra = {"p_segment": ["a", "b"] * 30, "weight": [2] * 60}
    path = _write(tmp_path / "a.csv", codes, scores, extra=extra)
    table = read_table(
        path, label="y", scores=["p_*"], segment="p_segment", weight="weight"
    )
    assert table.classes == tuple(NAMES)
    assert table.is_weighted
    assert set(table.segments) == {"a", "b"}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {},
            ["--score", "q_*"],
            "has no column like 'q_*'; its columns are y, p_bird, p_cat, p_dog.",
        ),
        (
            {},
            ["--score", "*_*"],
            "--score '*_*' has 2 stars: use exactly one, for the name of the class.",
        ),
        ({}, ["--score", "p_*", "--score", "p_cat"], "use only one kind in a report"),
        ({}, ["--score", "p_*d*"], "has 2 stars"),
        (
            {},
            ["--score", "p_b*"],
            "matches only p_bird, but each class needs a column",
        ),
        (
            {},
            ["--score", "p_*", "--classes", "a,b,c,d"],
            "--classes names 4 classes (a, b, c, d), but --score 'p_*'",
        ),
        (
            {},
            ["--score", "p_*", "--classes", "a", "b", "a"],
            "--classes names 'a' 2 times",
        ),
        (
            {},
            ["--score", "p_cat", "--classes", "no,yes"],
            "--classes names 2 classes, but 'p_cat' is one column of numbers",
        ),
        (
            {},
            ["--score", "p_cat", "--classes", "a,b,c"],
            "but 'p_cat' is one column of numbers",
        ),
        ({}, ["--score", "p_*", "--positive", "cat"], "--positive is for two classes"),
        (
            {},
            ["--score", "p_cat"],
            "Or give one score column per class: --score 'p_*'.",
        ),
        (
            {"labels": ["bird", "cat", "fish"]},
            ["--score", "p_*"],
            "has the label 'fish', which is not one of the classes",
        ),
        ({"labels": ["bird", "cat", ""]}, ["--score", "p_*"], "without a label"),
        (
            {"factor": 1.5},
            ["--score", "p_*"],
            "sums to 1.5, but the probabilities of a row must sum to 1",
        ),
        ({"value": "x"}, ["--score", "p_*"], "'p_bird' holds 'x' in row 0"),
        (
            {"value": ""},
            ["--score", "p_*"],
            "1 without a score (column 'p_bird'): the first is row 0",
        ),
        (
            {"value": -0.2},
            ["--score", "p_*"],
            "column 'p_bird': scores must be probabilities in [0, 1], but row 0",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_input_is_one_line(tmp_path, capsys, change, options, message):
    codes, scores = _data(60)
    table = (
        (scores * change.get("factor", 1) / scores.sum(axis=1, keepdims=True))
        .clip(0, 1)
        .astype(object)
    )
    if "factor" in change:
        table[:] = [0.5, 0.5, 0.5]
    if "value" in change:
        table[0, 0] = change["value"]
    path = _write(
        tmp_path / "data.csv", codes, table, labels=change.get("labels", NAMES)
    )
    assert main(["report", path, "--label", "y", "--json", *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_classes_with_spaces_or_commas():
    assert given_classes(["a,b, c"]) == ("a", "b", "c")
    assert given_classes(["a, b", "c", "d"]) == ("a, b", "c", "d")
    assert given_classes(None) is None
    with pytest.raises(ReportError, match="at least two classes"):
        given_classes(["a"])


def test_models_with_classes_are_compared(tmp_path):
    codes, scores = _data(300)
    flat = (0.5 * scores + 0.5 / 3).round(6)
    columns = [f"p_{name}" for name in NAMES] + ["q_dog", "q_bird", "q_cat"]
    path = _write(
        tmp_path / "a.csv",
        codes,
        np.hstack((scores, flat[:, [2, 0, 1]])),
        columns=columns,
    )
    table = read_table(path, label="y", scores=["p_*", "q_*"])
    np.testing.assert_allclose(
        table.scores["q_*"], flat / flat.sum(axis=1, keepdims=True)
    )
    difference = table.brier_difference("q_*")
    losses = [
        np.sum((table.scores[name] - np.eye(3)[codes]) ** 2, axis=1).mean()
        for name in ("p_*", "q_*")
    ]
    assert difference["estimate"] == pytest.approx(losses[1] - losses[0])
    other = _write(
        tmp_path / "b.csv",
        codes,
        np.hstack((scores, flat)),
        columns=columns[:3] + ["q_a", "q_b", "q_c"],
    )
    with pytest.raises(
        ReportError, match="are for different classes: bird, cat, dog and a, b, c"
    ):
        read_table(other, label="y", scores=["p_*", "q_*"])


@pytest.mark.skipif(
    find_spec("matplotlib") is None or find_spec("jinja2") is None,
    reason="the page needs matplotlib and jinja2 (extra report)",
)
def test_page_of_classes(tmp_path, capsys):
    codes, scores = _data(300)
    path = _write(
        tmp_path / "data.csv",
        codes,
        scores,
        extra={"s": ["a", "b", "c"] * 100, "month": [1, 2] * 150},
    )
    output = tmp_path / "out.html"
    command = [
        "report",
        path,
        "--label",
        "y",
        "--score",
        "p_*",
        "--segment",
        "s",
        "--time",
        "month",
        "-o",
        str(output),
    ]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "probabilities of the predicted classes" in said
    text = output.read_text(encoding="utf-8")
    assert "<h2>By class</h2>" in text
    assert text.count("Reliability diagram of the class") == 3
    assert (
        "The scores of each row were divided by their sum, which differed from 1 by at"
        " most 0.0001." in text
    )
    assert (
        "multiclass=&quot;top_label&quot;" in text or 'multiclass="top_label"' in text
    )
    numbers = json.loads(
        re.search(r'id="numbers">(.*?)</script>', text, flags=re.S).group(1)
    )
    assert numbers["models"][0]["periods"][1]["change_adjusted_pvalue"] is not None
    assert len(numbers["models"][0]["segments"]) == 3


def test_sentences_of_classes():
    size = {"estimate": 0.031, "low": 0.02, "high": 0.04, "bias": -0.02}
    off = asdict(verdict(-0.03, (-0.038, -0.022), 900, 0.02))
    unclear = asdict(verdict(-0.02, (-0.05, 0.01), 900, 0.02))
    rows = [
        {
            "class": f"c{k}",
            **size,
            "verdict": off if k < 3 else unclear,
            "adjusted_error_pvalue": 0.01 * k,
        }
        for k in range(10)
    ]
    assert (
        class_sentence(rows[:1])
        == "1 of 1 classes has an error larger than chance explains. The largest is"
        " that of class c0: 3.1 points (90 %: 2.0 to 4.0), averaged over all samples,"
        " including those of other classes; its probabilities are 3.0 points too low"
        " (95 %: 2.2 to 3.8) on average."
    )
    assert (
        class_sentence(rows[3:])
        == "2 of 7 classes have an error larger than chance explains: c3 and c4. The"
        " largest is that of class c3: 3.1 points (90 %: 2.0 to 4.0), averaged over"
        " all samples, including those of other classes."
    )
    assert (
        class_sentence(rows[5:])
        == "None of the 5 classes has an error larger than chance explains."
    )
    assert (
        rest_sentence(rows[5:])
        == "The other 5 classes have errors from 3.1 to 3.1 points; none of these is"
        " more than chance explains."
    )
    assert "; 1 of these is more than chance explains." in rest_sentence(rows[4:])
    assert (
        certificate_sentence([{"n_bins": 10, "conditional": 0.0512}], of_classes=True)
        == "For example, with 10 bins, each recalibrated probability lies within 5.12"
        " points of the frequency with which the predicted class is right"
        " in its bin."
    )
    assert (
        certificate_sentence([{"n_bins": 10, "conditional": 1.0}], of_classes=False)
        is None
    )


def test_a_large_table_of_classes_is_a_sample(tmp_path, monkeypatch):
    for package in ("duckdb", "narwhals", "pyarrow"):
        pytest.importorskip(package)
    import pyarrow as pa
    import pyarrow.parquet as pq

    codes, scores = _data(2000)
    columns = {
        "y": np.array(NAMES)[codes],
        **{f"p_{name}": scores[:, k] for k, name in enumerate(NAMES)},
    }
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    monkeypatch.setattr(_reader, "_MOST_ROWS", 500)
    tables = [
        read_table(tmp_path / "data.parquet", label="y", scores=["p_*"], seed=seed)
        for seed in (0, 0, 1)
    ]
    assert 400 < tables[0].n_rows < 600
    assert f"a random sample of {tables[0].n_rows} of them" in tables[0].notes[0]
    first, same, other = (table.forecasts("p_*") for table in tables)
    np.testing.assert_array_equal(first[1], same[1])
    assert len(first[1]) != len(other[1]) or not np.array_equal(first[1], other[1])
    matches = {
        tuple(row) for row in (scores / scores.sum(axis=1, keepdims=True)).round(12)
    }
    assert {tuple(row) for row in first[0].round(12)} <= matches


def test_classes_are_in_the_order_of_their_error(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(4), 6000)
    codes = (rng.random(6000)[:, None] > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    scores = truth.copy()
    # The error of class 1 cancels in its mean, at the cost of class 2.
    moved = (
        0.8
        * (truth[:, 1] - truth[:, 1].mean()).clip(-1, 1)
        * (truth[:, 1] + truth[:, 2])
    )
    scores[:, 1] = (scores[:, 1] + moved).clip(0, scores[:, 1] + scores[:, 2])
    scores[:, 2] = truth[:, 1] + truth[:, 2] - scores[:, 1]
    table = ReportTable(
        "x",
        "y",
        None,
        codes,
        {"m": scores},
        classes=tuple("abcd"),
        columns={"m": tuple("abcd")},
    )
    (model,) = _numbers(table)["models"]
    rows = model["classes"]
    off = [row for row in rows if row["adjusted_error_pvalue"] < 0.05]
    assert {row["class"] for row in off} == {"b", "c"}
    assert [row["estimate"] for row in off] == sorted(
        (row["estimate"] for row in off), reverse=True
    )
    assert [row["class"] for row in rows[:2]] == [row["class"] for row in off]
    for k, name in enumerate("abcd"):
        (row,) = (row for row in rows if row["class"] == name)
        expected = calibration_test(codes == k, scores[:, k], method="kuiper").pvalue
        assert row["error_pvalue"] == pytest.approx(expected)
    assert f"The largest is that of class {rows[0]['class']}: " in model["summary"]
    assert "top-label calibration error" in model["paper"]
