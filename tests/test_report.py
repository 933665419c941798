"""The report of the command line: reading, numbers, sentences, page, exit status."""

import gzip
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from html.parser import HTMLParser
from importlib.util import find_spec
from threading import Thread
from time import sleep

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.metrics import brier_score_loss, log_loss

from benchmarks.checks.sentence_truth import quick
from skcalib import PlattScaling
from skcalib.__main__ import main
from skcalib._install import install
from skcalib._report import _command
from skcalib._report._advice import considered
from skcalib._report._checks import identifiers, repeats, repeats_note
from skcalib._report._claims import CLAIMS
from skcalib._report._decisions import decision_rows
from skcalib._report._forecasts import ReportTable
from skcalib._report._format import limits
from skcalib._report._judged import VERDICT_LEVEL, judged_model
from skcalib._report._numbers import report_numbers
from skcalib._report._reader import ReportError, opened
from skcalib._report._samples import MEAN_ABSOLUTE, Rows
from skcalib._report._sections import comparisons, segment_sentence
from skcalib._report._summary import summary
from skcalib._report._table import read_table
from skcalib._report._times import named_periods
from skcalib._verdicts import verdict
from skcalib.evaluation import _advise, compare, cross_validate
from skcalib.guarantees import (
    conditional_epsilon,
    expected_error_bound,
    marginal_epsilon,
)
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
)
from skcalib.monitoring import calibration_change

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None or find_spec("jinja2") is None,
    reason="the page needs matplotlib and jinja2 (extra report)",
)
for package in ("pandas", "pyarrow"):
    pytest.importorskip(
        package, reason="the report needs pandas and pyarrow (extra report)"
    )


def read_columns(path, names, words=()):
    with opened(path) as file:
        return file.read(names, words)[0]


def _write(path, columns):
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _data(n=600, seed=0, power=1.3):
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(4)
    y = (rng.random(n) < scores**power).astype(int)
    segments = np.array(["north", "south", "west"])[rng.choice(3, n, p=[0.6, 0.3, 0.1])]
    return {
        "y": y,
        "p": scores,
        "q": (scores**power).round(4),
        "s": segments,
        "w": rng.integers(1, 4, n),
    }


@pytest.fixture
def file(tmp_path):
    return _write(tmp_path / "data.csv", _data())


def _numbers(table):
    return report_numbers(table, seed=0, step=lambda what: None)


def _table(y, scores, weight=None, segments=None):
    name = None if segments is None else "s"
    rows = {
        "labels": np.asarray(y, bool),
        "scores": {"p": np.asarray(scores)},
        "weight": weight,
    }
    return ReportTable(
        "data.csv", "y", "1", **rows, segment_name=name, segments=segments
    )


# --- reading --------------------------------------------------------------------------

MIXED = (
    'y,p,name,flag,gap,"a,b"\n1,0.25,yes,True,1,x\n0,1e-3,no,False,,y\n1,.5,,True,3,z\n'
)


def test_columns_have_the_type_of_their_values(tmp_path):
    (tmp_path / "data.csv").write_text(MIXED, encoding="utf-8")
    columns = read_columns(
        tmp_path / "data.csv",
        ["y", "p", "name", "flag", "gap", "a,b"],
        words=["name", "a,b"],
    )
    assert [column.dtype.kind for column in columns.values()] == [
        "i",
        "f",
        "O",
        "b",
        "f",
        "O",
    ]
    assert columns["name"].tolist() == ["yes", "no", None]
    assert columns["flag"].dtype == bool
    assert np.isnan(columns["gap"][1])


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_byte_order_mark_and_gzip(tmp_path, separator):
    text = "\ufeffy;p\n1;0.5\n0;0.25\n".replace(";", separator)
    (tmp_path / "data.csv").write_text(text, encoding="utf-8")
    with gzip.open(tmp_path / "data.csv.gz", "wt", encoding="utf-8") as packed:
        packed.write(text)
    for name in ("data.csv", "data.csv.gz"):
        columns = read_columns(tmp_path / name, ["y", "p"])
        assert columns["y"].tolist() == [1, 0]
        assert columns["p"].tolist() == [0.5, 0.25]


def test_parquet(tmp_path):
    import pandas

    frame = {
        "y": [1, 0, None],
        "p": [0.5, None, 0.25],
        "name": ["a", None, "b"],
        "flag": [True, False, True],
    }
    path = tmp_path / "data.parquet"
    pandas.DataFrame(frame).astype({"y": "Int64"}).to_parquet(path)
    columns = read_columns(path, ["y", "p", "name", "flag"], words=["name"])
    assert np.isnan(columns["p"][1])
    assert columns["name"].tolist() == ["a", None, "b"]
    assert columns["flag"].tolist() == [True, False, True]
    assert columns["y"][:2].tolist() == [1, 0]
    assert np.isnan(columns["y"][2])
    with pytest.raises(
        ReportError, match="no column 'z'; its columns are y, p, name, flag"
    ):
        read_columns(path, ["z"])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ReportError, match=r"broken\.parquet cannot be read") as caught:
        read_columns(tmp_path / "broken.parquet", ["y"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["data.parquet", "data.csv"])
def test_files_without_a_reader(tmp_path, monkeypatch, name):
    import pandas

    write = (
        pandas.DataFrame.to_parquet
        if name == "data.parquet"
        else pandas.DataFrame.to_csv
    )
    write(pandas.DataFrame({"y": [1], "p": [0.5]}), tmp_path / name)
    for package in ("pandas", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ReportError,
        match=re.escape(f"needs pandas and pyarrow to be read: {install('report')}"),
    ):
        read_columns(tmp_path / name, ["y"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty: its first line must name the columns"),
        (b"y,p\n1,0.5\n0,0.2,7\n", "cannot be read: .*3"),
        (b"\x89PNG\xff\xfe\n\x00", "is a picture .PNG., which cannot be read"),
        (b"y,q\n1,0.5\n", "has no column 'p'; its columns are y, q"),
    ],
    ids=["empty", "ragged", "binary", "column"],
)
def test_unreadable_files(tmp_path, content, message):
    (tmp_path / "data.csv").write_bytes(content)
    with pytest.raises(ReportError, match=message) as caught:
        read_columns(tmp_path / "data.csv", ["y", "p"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("labels", "positive", "events", "event"),
    [
        ([0, 1, 1], None, [False, True, True], "1"),
        ([0, 0, 0], None, [False] * 3, "1"),
        ([-1, 1, 1], None, [False, True, True], "1"),
        (["True", "False", "True"], None, [True, False, True], "True"),
        (["no", "yes", "no"], "yes", [False, True, False], "yes"),
        ([1.0, 2.0, 1.0], "2", [False, True, False], "2"),
    ],
    ids=str,
)
def test_events(tmp_path, labels, positive, events, event):
    path = _write(tmp_path / "data.csv", {"y": labels * 4, "p": [0.5] * 12})
    table = read_table(path, label="y", scores=["p"], positive=positive)
    assert table.forecasts("p")[1].tolist() == events * 4
    assert table.event == event


# --- numbers --------------------------------------------------------------------------


def test_an_estimate_above_its_interval_is_explained():
    error = {
        "estimate": 0.3045,
        "low": 0.0,
        "high": 0.3019,
        "reason": "the estimate includes label noise",
    }
    assert (
        limits(error, "percent") == "0 to 30\u00a0% (the estimate includes label noise)"
    )
    assert limits({**error, "reason": None}, "percent") == "0 to 30\u00a0%"


@pytest.mark.slow
def test_numbers_are_those_of_the_library(file):
    table = read_table(file, label="y", scores=["p", "q"], segment="s")
    numbers = _numbers(table)
    data = _data()
    for model in numbers["models"]:
        scores = data[model["name"]]
        interval = calibration_error_interval(
            data["y"], scores, **MEAN_ABSOLUTE, random_state=0
        )
        assert [
            model["errors"][0][key] for key in ("estimate", "low", "high")
        ] == pytest.approx(list(interval))
        # as n >= 150
        assert model["errors"][1]["estimate"] == pytest.approx(
            calibration_error(data["y"], scores)
        )
        assert model["errors"][2]["estimate"] == pytest.approx(
            expected_calibration_error(data["y"], scores)
        )
        for error in model["errors"]:
            assert ("reason" in error and error["reason"] is not None) == (
                error["estimate"] > error["high"]
            )
        brier, nats = model["proper_scores"]
        assert brier["estimate"] == pytest.approx(brier_score_loss(data["y"], scores))
        assert nats["estimate"] == pytest.approx(
            log_loss(data["y"], np.clip(scores, 2**-52, 1 - 2**-52))
        )
        # over-confidence, plainly: confidence of the more probable answer minus the
        # share of right answers
        gaps = [
            max(s, 1 - s) - ((s > 0.5) == bool(y))
            for s, y in zip(scores.tolist(), data["y"], strict=True)
        ]
        half = 1.959964 * np.std(gaps) / np.sqrt(600)
        assert model["over_confidence"]["estimate"] == pytest.approx(np.mean(gaps))
        assert model["over_confidence"]["low"] == pytest.approx(
            np.mean(gaps) - half, abs=0.1 * half
        )
        # The printed interval is that of the verdict.
        for number, judged in (
            ("score_minus_frequency", "bias"),
            ("over_confidence", "over_confidence"),
        ):
            for key in ("estimate", "low", "high"):
                assert model[number][key] == model["verdicts"][judged][key]
        compared = compare(data["y"], {"p": scores}, metrics="brier_score")
        assert (brier["low"], brier["high"]) == (compared.low[0], compared.high[0])
        metric = partial(calibration_error, **MEAN_ABSOLUTE)
        assert (
            model["test"]["pvalue"]
            == calibration_test(data["y"], scores, metric=metric, random_state=0).pvalue
        )
        # interval and test agree
        assert model["test"]["rejects"] == (model["errors"][0]["low"] > 0)
        assert sum(row["weight"] for row in model["bins"]) == 600
    assert numbers["models"][0]["test"]["rejects"]
    json.dumps(numbers, allow_nan=False)


@pytest.fixture(scope="module")
def segments(tmp_path_factory):
    """The table of the file with segments, and the rows of the segments."""
    file = _write(tmp_path_factory.mktemp("segments") / "data.csv", _data())
    table = read_table(file, label="y", scores=["p"], segment="s")
    return table, _numbers(table)["models"][0]["segments"]


@pytest.mark.slow
def test_segments_are_sorted_by_p_value_and_small_ones_marked(segments):
    data = _data()
    _, rows = segments
    for row in rows:
        inside = data["s"] == row["segment"]
        assert row["n_rows"] == inside.sum()
        assert row["n_events"] == data["y"][inside].sum()
        assert row["mean_score"] == pytest.approx(data["p"][inside].mean())
        estimate = calibration_error(
            data["y"][inside], data["p"][inside], **MEAN_ABSOLUTE
        )
        assert row["estimate"] == pytest.approx(estimate)
        assert row["is_small"] == (inside.sum() < 100)
        assert row["bias"] == pytest.approx(row["mean_score"] - row["event_frequency"])
    assert [row["pvalue"] for row in rows] == sorted(row["pvalue"] for row in rows)
    table = calibration_by_group(
        data["y"], data["p"], data["s"], **MEAN_ABSOLUTE, random_state=0
    )
    by_name = {row["segment"]: row for row in rows}
    for name, adjusted in zip(table.group.tolist(), table.adjusted_pvalue, strict=True):
        assert by_name[name]["adjusted_pvalue"] == adjusted
    assert {row["segment"] for row in rows if row["is_small"]} == {"west"}


@pytest.mark.slow
def test_a_segment_of_one_row_and_a_missing_segment(tmp_path):
    columns = _data(60)
    columns["s"] = ["once", "", *["often"] * 58]
    table = read_table(
        _write(tmp_path / "data.csv", columns), label="y", scores=["p"], segment="s"
    )
    rows = _numbers(table)["models"][0]["segments"]
    assert {row["segment"] for row in rows} == {"once", "often", "(missing)"}
    assert {row["segment"] for row in rows if row["estimate"] is None} == {
        "once",
        "(missing)",
    }


@pytest.mark.slow
def test_recalibrators_are_cross_validated():
    data = _data(500, power=2)
    y, scores = data["y"].astype(bool), data["p"]
    rows = {
        row["name"]: row
        for row in _numbers(_table(y, scores))["models"][0]["recalibrators"]
    }
    platt = rows["PlattScaling"]
    # small data sets are divided into folds three times
    expected = cross_validate(
        y, scores, {"platt": PlattScaling()}, n_repeats=3, random_state=0
    )
    for key, loss, score in (
        ("gain", "log", "log_loss"),
        ("brier_gain", "brier", "brier"),
    ):
        gain = expected.gain("uncalibrated", "platt", loss)
        assert (platt[key], platt[f"{key}_low"], platt[f"{key}_high"]) == pytest.approx(
            tuple(gain)
        )
        assert platt[score] == pytest.approx(rows["as it is"][score] - gain.estimate)
    assert rows["as it is"]["log_loss"] == pytest.approx(
        log_loss(y, np.clip(scores, 2**-52, 1 - 2**-52))
    )
    assert 0 < platt["gain_low"] < platt["gain"] < platt["gain_high"]
    assert rows["as it is"]["gain"] == 0
    assert {
        "PriorShift",
        "TemperatureScaling",
        "IsotonicCalibration",
        "SplineCalibration",
    } <= set(rows)
    losses = [
        row["log_loss"]
        for row in _numbers(_table(y, scores))["models"][0]["recalibrators"]
    ]
    assert losses == sorted(losses)


@pytest.mark.slow
def test_many_rows_are_sampled_for_recalibration(monkeypatch):
    monkeypatch.setattr(_advise, "_MOST_ROWS", 200)
    data = _data(300)
    rows = _numbers(_table(data["y"], data["p"], weight=data["w"].astype(float)))[
        "models"
    ][0]["recalibrators"]
    (before,) = (row for row in rows if row["name"] == "as it is")
    kept = np.sort(np.random.default_rng(0).choice(300, 200, replace=False))
    y, scores, weight = (data[name][kept] for name in ("y", "p", "w"))
    assert before["brier"] == pytest.approx(
        brier_score_loss(y, scores, sample_weight=weight)
    )


@pytest.mark.slow
def test_certificates_are_those_of_the_theorems():
    data = _data(500)
    rows = _numbers(_table(data["y"], data["p"]))["certificates"]
    assert [row["n_bins"] for row in rows] == [2, 3, 5, 10, 15, 20, 30, 50, 100]
    for row in rows:
        assert row["conditional"] == conditional_epsilon(500, row["n_bins"])
        assert row["marginal"] == marginal_epsilon(500, row["n_bins"])
        assert row["expected_error"] == expected_error_bound(500, row["n_bins"])
    weighted = _numbers(_table(data["y"], data["p"], weight=np.ones(500)))
    assert weighted["certificates"] == []  # the theory has no weights


@pytest.mark.slow
def test_weights_count_as_repeated_rows():
    data = _data(300)
    weight = data["w"].astype(float)
    repeated = [np.repeat(data[name], data["w"]) for name in ("y", "p", "s")]
    with quick():
        weighted = _numbers(_table(data["y"], data["p"], weight, data["s"]))
        plainly = _numbers(_table(repeated[0], repeated[1], None, repeated[2]))
    assert weighted["total_weight"] == plainly["n_rows"]
    assert weighted["event_frequency"] == pytest.approx(plainly["event_frequency"])
    first, second = weighted["models"][0], plainly["models"][0]
    for name in ("score_minus_frequency", "over_confidence"):
        assert first[name] == pytest.approx(second[name])
    # the binned errors' intervals are resampled, and other weights draw other rows;
    # these have closed forms
    closed = [model["proper_scores"] + model["errors"][4:] for model in (first, second)]
    for one, other in zip(*closed, strict=True):
        keys = ("estimate", "low", "high")
        assert [one[key] for key in keys] == pytest.approx(
            [other[key] for key in keys], rel=1e-5
        )
    assert [error["estimate"] for error in first["errors"]] == pytest.approx(
        [error["estimate"] for error in second["errors"]], rel=1e-5
    )
    assert [row["n_rows"] for row in first["segments"]] == [
        row["n_rows"] for row in second["segments"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "scores"),
    [
        (np.zeros(40), np.linspace(0, 1, 40)),
        (np.arange(40) >= 20, np.linspace(0, 1, 40)),
        (np.arange(40) % 2, np.full(40, 0.5)),
        (np.arange(40) % 2, (np.arange(40) % 2).astype(float)),
        (np.arange(40) % 2, 1.0 - np.arange(40) % 2),
        (np.arange(10) % 2, np.linspace(0.1, 0.9, 10, dtype=np.float32)),
    ],
    ids=[
        "one class",
        "separated",
        "one score",
        "exactly right",
        "exactly wrong",
        "ten rows float32",
    ],
)
def test_extreme_data_have_a_report(y, scores):
    numbers = _numbers(_table(y, scores))
    json.dumps(numbers, allow_nan=False)
    (model,) = numbers["models"]
    assert set(model["claims"]) <= set(CLAIMS)
    assert "The mean absolute calibration error is " in model["summary"]
    assert "nan" not in model["summary"]


_KEYS = ("estimate", "low", "high")


def _model(bias, sure, error, pvalue, n=1000, **more):
    """Return the numbers of a model whose intervals have these limits, in points."""
    limits = {"bias": bias, "over_confidence": sure, "error": error}
    verdicts = {}
    for name, (estimate, low, high) in limits.items():
        found = verdict(estimate / 100, (low / 100, high / 100), n, 0.02)
        verdicts[name] = asdict(found)
    return {
        "verdicts": verdicts,
        "test": {"pvalue": pvalue, "smallest_pvalue": 0.001, "rejects": pvalue < 0.05},
        "mean_score": 0.4,
        "event_frequency": 0.35,
        "n_events": 350.0,
        "n_others": 650.0,
        "segments": [],
        "changes": [],
        "recalibrators": [],
        **more,
        "advice": {"kind": "none", "since": None, "needs_cluster": None},
    }


def _said(model, n=1000):
    paragraphs = summary(model, {"n_samples": n, "tolerance": 0.02})
    claims = [claim for paragraph in paragraphs for claim in paragraph]
    assert {claim.name for claim in claims} <= set(CLAIMS)
    return [claim.name for claim in claims], " ".join(claim.text for claim in claims)


def _segment_row(name, bias, low, high, column="region"):
    found = verdict(bias / 100, (low / 100, high / 100), 500, 0.02)
    return {"segment": name, "column": column, "verdict": asdict(found)}


NONE, NO_ERROR = (0.1, -0.9, 1.1), (0.0, 0.0, 1.0)
NO_LIMITS = {"low": np.nan, "high": np.nan, "reason": "none here"}


def test_summary_of_scores_that_are_off():
    names, text = _said(_model((4.4, 2.1, 6.8), NONE, (4.5, 2.0, 6.1), 0.001))
    assert names[:2] == ["do not use", "means"]
    assert text.startswith(
        "Do not use the scores as they are: they are 4.4 points too high (95 %: 2.1 to"
        " 6.8) on average. The mean score is 40.0 %, and 35.0 % of the samples have the"
        " event. The mean absolute calibration error is 4.5 points (90 %: 2.0 to 6.1);"
        " the test of calibration gives p \u2264 0.001."
    )
    names, text = _said(_model((-1.7, -2.8, -0.7), NONE, NO_ERROR, 0.5))
    assert names[:4] == ["check", "means", "error", "nothing but the shift"]
    assert text.startswith(
        "The scores are too low by 0.7 to 2.8 points (95 %) on average; 1,000 samples"
        " are too few to tell whether this is more than 2 points; at least 13,000 are"
        " needed to tell, if the true value is near the estimate."
    )


def test_right_on_average_is_said_only_where_the_interval_is_within_the_tolerance():
    names, text = _said(_model(NONE, NONE, NO_ERROR, 0.5))
    assert names[0] == "usable"
    assert text.startswith(
        "The scores can be used as they are: they are right on average to within 1.1"
        " points, with a mean absolute calibration error of at most 1.0 points."
    )
    names, text = _said(_model(NONE, NONE, (0.4, 0.0, 2.2), 0.5))
    assert names[0] == "right on average"
    # Half of the interval, 1.1, is shorter than the way from .4 to 2 already.
    assert "may be 2 points or more. The mean score" in text
    _, text = _said(_model(NONE, NONE, (1.0, 0.0, 7.0), 0.5))
    assert (
        "2 points or more; at least 3,100 are needed to tell, even if calibration"
        in text
    )
    names, text = _said(_model((1.0, -9.0, 11.0), NONE, NO_ERROR, 0.5, 48), 48)
    assert names[0] == "cannot tell"
    assert text.startswith(
        "48 samples are too few to tell whether the scores are right on average to"
        " within 2 points: they are between 9 points too low and 11 points too high (95"
        " %). Keep the scores unchanged for now and collect more samples: at least"
        " 1,200 in total are needed, even if calibration is perfect."
    )
    assert "right on average" not in names


def test_an_error_that_cancels_on_average_is_the_headline():
    model = _model(NONE, (6.0, 4.0, 8.0), (6.1, 4.5, 7.4), 0.001)
    names, text = _said(model)
    assert names[0] == "do not take at face value"
    assert "6.1 points (90 %: 4.5 to 7.4), and they are too extreme." in text
    assert "too extreme" in names
    names, _ = _said(_model(NONE, NONE, (2.0, 0.3, 4.1), 0.01))
    assert names[0] == "check the error"


def test_the_worst_segment_is_the_headline_and_the_average_hides_it():
    segments = [
        _segment_row("West", -14.8, -17.1, -12.5),
        _segment_row("North", 0.2, -1.2, 1.6),
        _segment_row("South", 0.1, -1.2, 1.4),
    ]
    names, text = _said(_model(NONE, NONE, NO_ERROR, 0.5, segments=segments))
    assert text.startswith(
        "Do not use the scores of West as they are: they are 14.8 points too low (95 %:"
        " 12.5 to 17.1). The other 2 groups are fine to within 1.6 points."
    )
    assert "average hides" in names
    unclear = [segments[0], _segment_row("North", 0.2, -4.2, 4.6)]
    _, text = _said(_model(NONE, NONE, NO_ERROR, 0.5, segments=unclear))
    assert (
        "The other group can keep its scores: it is not shown to be off, but"
        " the samples do not show whether it is right to within 2 points; at least"
    ) in text
    # All segments are off on one side: the headline is about all samples.
    alike = [_segment_row(name, 5, 3, 7) for name in ("West", "North")]
    names, _ = _said(_model((5, 4, 6), NONE, NO_ERROR, 0.5, segments=alike))
    assert names[0] == "do not use"
    assert "average hides" not in names
    # On two sides they disagree, whatever the average is.
    apart = [*alike, _segment_row("East", -5, -7, -3)]
    names, text = _said(_model((2.2, 1.2, 3.2), NONE, NO_ERROR, 0.5, segments=apart))
    assert names[:2] == ["do not use the segment", "nor these segments"]


def test_weighted_shares_and_counts_are_told_apart():
    """A weighted share says that it is one, and samples needed are as many more than
    those here as rows are.
    """
    model = _model(NONE, NONE, NO_ERROR, 0.5)
    about = {"n_samples": 1000, "tolerance": 0.02, "is_weighted": True}
    text = " ".join(claim for part in summary(model, about) for claim in part)
    assert "The weighted mean score is 40.0 %, and 35.0 % of the weight is on" in text
    rng = np.random.default_rng(2)
    scores = rng.uniform(0.1, 0.9, 400)
    rows = Rows(scores, rng.random(400) < scores, rng.choice([1.0, 9.0], 400))
    found = judged_model(
        rows._replace(weight_type="importance"),
        {"estimate": 0, **NO_LIMITS},
        0.01,
        None,
    )["verdicts"]["bias"]
    assert found["n"] == 400
    assert found["n_needed"] > 400


def test_a_tolerance_larger_than_rare_events_allow_is_said():
    model = _model(NONE, NONE, NO_ERROR, 0.5, event_frequency=0.005)
    model["event_frequency"] = 0.005
    names, text = _said(model)
    assert names[0] == "tolerance too large"
    assert "usable" not in names
    assert "such as --tolerance 0.05 (in points)." in text
    assert "as frequent as predicted" not in text
    model = _model((-0.33, -0.41, -0.24), NONE, NO_ERROR, 0.001)
    _, text = _said({**model, "mean_score": 0.004, "event_frequency": 0.0073})
    assert text.startswith(
        "The scores are too low by 0.33 points (95 %: 0.24 to 0.41) on average: events"
        " are 1.82 times (95 %: 1.60 to 2.02) as frequent as predicted. Events are rare"
    )


def test_models_are_compared_with_an_interval():
    def compared(*difference, advised=None):
        model = {"name": "B"}
        model["brier_difference"] = dict(zip(_KEYS, difference, strict=True))
        model["brier_difference_as_advised"] = None
        if advised is not None:
            advised = dict(zip(_KEYS, advised, strict=True))
            model["brier_difference_as_advised"] = advised
        (sentence,) = comparisons([{"name": "A"}, model])
        return sentence

    worse, better, same = (0.01, 0.004, 0.016), (-0.01, -0.016, -0.004), (0, -0.1, 0.1)
    assert compared(*worse) == (
        "Keep A rather than B: the Brier score of B is higher (worse) by 0.010 (90 %:"
        " 0.004 to 0.016)."
    )
    assert compared(*better) == (
        "Prefer B to A: its Brier score is lower (better) by 0.010 (90 %: 0.004 to"
        " 0.016)."
    )
    assert compared(*same).startswith("There is no case for replacing A with B: the")
    # What counts is the difference between both as it is advised to use them.
    both = compared(*worse, advised=(0.005, 0.001, 0.009))
    assert both.endswith(
        "by 0.010 (90 %: 0.004 to 0.016) and by 0.005 (90 %: 0.001 to 0.009) after the"
        " recalibration advised below."
    )
    after = compared(*worse, advised=better)
    assert after.startswith("Prefer B to A: its Brier score is lower (better) by 0.010")
    assert after.endswith(" after the recalibration advised below.")
    assert compared(*worse, advised=same).startswith("There is no case for replacing")
    assert comparisons([{"name": "A"}]) == []


def test_segments_are_counted_by_their_verdicts():
    rows = [
        _segment_row("West", -14.8, -17.1, -12.5),
        _segment_row("North", 0.2, -1.2, 1.6),
        _segment_row("South", 0.1, -5.2, 5.4),
    ]
    assert segment_sentence(rows) == (
        "1 of 3 groups is off (West); 1 is fine to within the tolerance; for the other"
        " 1, the data are inconclusive."
    )
    assert segment_sentence(rows[:1]) == "There is only one group."
    assert segment_sentence(rows[1:]) == (
        "1 of 2 groups is fine to within the tolerance; for the other 1, the data"
        " are inconclusive."
    )
    alike = "All 2 groups are fine to within the tolerance."
    assert segment_sentence([rows[1], rows[1]]) == alike
    unclear = "The data are inconclusive for all 2 groups."
    assert segment_sentence([rows[2], rows[2]]) == unclear
    off = "All 2 groups are off (West and West)."
    assert segment_sentence([rows[0], rows[0]]) == off


def test_periods_that_cannot_be_told_stand_in_the_headline():
    periods = [
        {"period": str(year), "verdict": _segment_row("", 0.1, -half, half)["verdict"]}
        for year, half in ((2024, 5.0), (2025, 1.5))
    ]
    _, text = _said(_model(NONE, NONE, NO_ERROR, 0.5, periods=periods))
    assert (
        " No period is shown to be off, but for 1 of 2 periods, the data are"
        " inconclusive; at least 3,200 samples are needed"
    ) in text


def _period_row(name, *limits):
    return {"period": name, "verdict": _segment_row("", *limits)["verdict"]}


def test_one_period_that_is_off_comes_first_unless_a_group_is_worse():
    periods = [_period_row("May", 0.1, -1, 1), _period_row("June", -30, -38, -22)]
    names, text = _said(_model(NONE, NONE, NO_ERROR, 0.5, periods=periods))
    assert names[:2] == ["period off", "usable"]
    assert text.startswith(
        "In June, the scores are 30 points too low (95 %: 22 to 38)."
    )
    # A change that is told explains June only if it is as large.
    change = {
        "group": None,
        "since": "June",
        "pvalue": 0.001,
        "verdict_before": periods[0]["verdict"],
    }
    for since_june, is_told in (((-3, -5, -1), True), ((-30, -38, -22), False)):
        after = _segment_row("", *since_june)["verdict"]
        more = {"periods": periods, "changes": [{**change, "verdict_after": after}]}
        names, _ = _said(_model((-3, -4, -2), NONE, NO_ERROR, 0.5, **more))
        assert ("period off" in names) == is_told
    for size, place in ((-40, 2), (-12, 0)):
        rows = [_segment_row("West", size, size - 3, size + 3)]
        rows.append(_segment_row("North", 0.1, -1, 1))
        found = _model(NONE, NONE, NO_ERROR, 0.5, periods=periods, segments=rows)
        names, _ = _said(found)
        assert names.index("period off") == place
        assert names[:3].count("do not use the segment") == 1


def test_an_error_that_is_surely_too_large_comes_before_a_bias_that_may_be():
    bias, error = (3.0, 1.1, 4.8), (4.9, 3.0, 6.4)
    assert _said(_model(bias, NONE, error, 0.001))[0][0] == "do not take at face value"
    assert _said(_model(bias, NONE, (1.9, 0.0, 4.0), 0.2))[0][0] == "check"


def test_an_event_of_probability_0_comes_first_and_leaves_out_the_slope():
    errors = [{"name": "calibration slope", "estimate": 0.5, "low": 0.4, "high": 0.6}]
    impossible = {"n": 3, "row": 17}
    plain = (NONE, NONE, NO_ERROR, 0.5)
    names, _ = _said(_model(*plain, errors=errors))
    assert "slope" in names
    names, text = _said(_model(*plain, errors=errors, impossible=impossible))
    assert names[0] == "impossible"
    assert text.startswith(
        "3 outcomes occurred although their predicted probability was 0 (first"
    )
    assert "slope" not in names
    worse = ((9, 7, 11), NONE, NO_ERROR, 0.001)
    names, _ = _said(_model(*worse, impossible=impossible))
    assert names[:2] == ["do not use", "impossible"]


@pytest.mark.slow
def test_limits_of_segments_hold_together(segments):
    """The limits of a segment are those of its table at 1 - .05 / 3."""
    table, rows = segments
    task = table.event_rows("p")
    expected = calibration_by_group(
        task.labels,
        task.scores,
        table.segments,
        confidence_level=1 - (1 - VERDICT_LEVEL) / 3,
        random_state=0,
    )
    limits = {
        name: (low, high)
        for name, low, high in zip(
            expected.group, expected.bias_low, expected.bias_high, strict=True
        )
    }
    for row in rows:
        found = row["verdict"]["low"], row["verdict"]["high"]
        assert found == pytest.approx(limits[row["segment"]])


# --- page -----------------------------------------------------------------------------


class _Page(HTMLParser):
    """Counts tags, checks that they close in order, and collects what a page loads and
    its pictures.
    """

    void = {"meta", "link", "img", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.sources, self.pictures, self.scripts = [], [], [], 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.sources += [
            attributes[name] for name in ("src", "href") if name in attributes
        ]
        self.scripts += tag == "script"
        if tag == "img":
            self.pictures.append(attributes["alt"])
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.slow
@needs_matplotlib
def test_page_is_whole_and_self_contained(file, tmp_path, capsys):
    output = tmp_path / "out.html"
    command = [
        "report",
        str(file),
        "--label",
        "y",
        "--score",
        "p",
        "--score",
        "q",
        "--segment",
        "s",
        "-o",
        str(output),
    ]
    assert main(command) == 0
    out = capsys.readouterr().out
    text = output.read_text(encoding="utf-8")
    page = _Page(text)
    assert all(source.startswith(("data:", "#")) for source in page.sources)
    assert page.scripts == 1  # the numbers, which no browser runs
    data = re.search(
        r'<script type="application/json" id="numbers">(.*?)</script>', text, flags=re.S
    ).group(1)
    numbers = json.loads(data)
    assert numbers["n_rows"] == 600
    assert not re.search(r"@import|url\(", text)
    assert len(page.pictures) == 1
    assert page.pictures[0].startswith(
        "Reliability diagram, event frequency against predicted probability: p in "
    )
    assert [model["name"] for model in numbers["models"]] == ["p", "q"]
    for model in numbers["models"]:
        assert f"{model['name']}: {model['summary']}" in out
        assert model["summary"].split(".")[0] in text
    assert str(output) in out
    assert "west *" in text
    first = output.read_bytes()
    assert main(command) == 0
    assert output.read_bytes() == first  # the same file, the same page


@pytest.mark.slow
@needs_matplotlib
def test_names_cannot_break_the_page(tmp_path):
    nasty = '<script>alert("&")</script>$x'
    data = _data(80)
    columns = {
        "y": data["y"],
        '"' + nasty.replace('"', '""') + '"': data["p"],
        "s": [f"<b>{v}</b>" for v in data["s"]],
    }
    output = tmp_path / "out.html"
    path = _write(tmp_path / "data.csv", columns)
    assert (
        main(
            [
                "report",
                str(path),
                "--label",
                "y",
                "--score",
                nasty,
                "--segment",
                "s",
                "-o",
                str(output),
            ]
        )
        == 0
    )
    text = output.read_text(encoding="utf-8")
    assert _Page(text).scripts == 1  # the numbers
    assert "alert" not in re.sub(
        r"&lt;script&gt;alert|u003cscript\\u003ealert", "", text
    )
    assert "&lt;script&gt;" in text
    assert "&lt;b&gt;" in text


@pytest.mark.slow
@needs_matplotlib
@pytest.mark.parametrize("n", [10, 60])
def test_page_of_few_rows_or_one_class_says_what_is_not_possible(tmp_path, n):
    output = tmp_path / "out.html"
    path = _write(tmp_path / "data.csv", {"y": [0] * n, "p": np.linspace(0, 0.3, n)})
    assert (
        main(["report", str(path), "--label", "y", "--score", "p", "-o", str(output)])
        == 0
    )
    text = output.read_text(encoding="utf-8")
    assert (
        "Not possible: at least 5 samples with the event and 5 without are needed."
        in text
    )
    assert 'id="segments"' not in text  # nor what was not given
    assert 'id="time"' not in text
    assert len(_Page(text).pictures) == 1


@pytest.mark.slow
@needs_matplotlib
def test_page_with_weights_has_no_certificate(file, tmp_path):
    output = tmp_path / "out.html"
    assert (
        main(
            [
                "report",
                str(file),
                "--label",
                "y",
                "--score",
                "p",
                "--weight",
                "w",
                "-o",
                str(output),
            ]
        )
        == 0
    )
    text = output.read_text(encoding="utf-8")
    assert "the theory needs unweighted samples, and these are weighted" in text
    assert len(_Page(text).pictures) == 1


# --- command --------------------------------------------------------------------------


@pytest.mark.slow
def test_json_prints_the_numbers_and_writes_nothing(
    file, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert main(["report", str(file), "--label", "y", "--score", "p", "--json"]) == 0
    out = capsys.readouterr()
    numbers = json.loads(out.out)
    assert (
        numbers.pop("command")
        == f"python -m skcalib report {file} --label y --score p --json"
    )
    assert numbers.pop("title") is None
    assert numbers.pop("unlabelled") is None
    assert numbers == _numbers(read_table(file, label="y", scores=["p"]))
    assert out.err == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.slow
@needs_matplotlib
def test_default_output(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(file), "--label", "y", "--score", "p"]) == 0
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({}, ["--score", "z"], "has no column 'z'; its columns are y, p, q, s, w."),
        (
            {"p": [1.2] * 600},
            [],
            "column 'p': scores must be probabilities in [0, 1], but row 0 is 1.2",
        ),
        (
            {"p": ["x"] * 600},
            [],
            "column 'p' holds 'x' in row 0, which is not a number",
        ),
        (
            {"p": [0.5] * 599 + [""]},
            [],
            "of 600 rows, 1 without a score (column 'p'): the first is row 599.",
        ),
        (
            {"y": ["no", "yes"] * 300},
            [],
            "column 'y' holds 'no' (300), 'yes' (300): say with --positive",
        ),
        (
            {"y": [1, 2] * 300},
            [],
            "column 'y' holds 1 (300), 2 (300): say with --positive",
        ),
        (
            {"y": ["no", "yes"] * 300},
            ["--positive", "maybe"],
            "column 'y' has no label 'maybe'; it contains 'no' (300), 'yes' (300).",
        ),
        (
            {"y": [""] + [1] * 599},
            [],
            "of 600 rows, 1 without a label (column 'y'): the first is row 0.",
        ),
        (
            {"w": [-1] * 600},
            ["--weight", "w"],
            "column 'w': sample_weight must be finite and not negative",
        ),
        (
            {"w": [0] * 600},
            ["--weight", "w"],
            "column 'w': sample_weight is zero in every row",
        ),
        ({"w": [1e-4] * 600}, ["--weight", "w"], "scale them to mean 1"),
        (
            {"s": range(600)},
            ["--segment", "s"],
            "column 's' has 600 different values; a report has at most 500",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_input_is_one_line_and_exit_status_2(
    tmp_path, capsys, columns, options, message
):
    path = _write(tmp_path / "data.csv", {**_data(), **columns})
    assert (
        main(["report", str(path), "--label", "y", "--score", "p", "--json", *options])
        == 2
    )
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.count("\n") == 1
    assert message in out.err


def test_missing_file_few_rows_and_a_folder(tmp_path, capsys):
    short = _write(tmp_path / "short.csv", {"y": [0, 1], "p": [0.2, 0.8]})
    for path, message in (
        (tmp_path / "none.csv", "there is no file"),
        (short, "has 2 rows; a report needs at least 10."),
        (tmp_path, "is a folder"),
    ):
        assert (
            main(["report", str(path), "--label", "y", "--score", "p", "--json"]) == 2
        )
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert message in err


@needs_matplotlib
def test_output_that_cannot_be_written(file, tmp_path, capsys):
    output = str(tmp_path / "no" / "such" / "folder.html")
    assert (
        main(["report", str(file), "--label", "y", "--score", "p", "-o", output]) == 2
    )
    err = capsys.readouterr().err
    assert f"{output} cannot be written" in err
    assert err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("package", ["matplotlib", "jinja2"])
def test_a_missing_package_is_one_line(file, tmp_path, capsys, monkeypatch, package):
    monkeypatch.setattr(
        _command, "find_spec", lambda name: None if name == package else True
    )
    assert (
        main(
            [
                "report",
                str(file),
                "--label",
                "y",
                "--score",
                "p",
                "-o",
                str(tmp_path / "out.html"),
            ]
        )
        == 2
    )
    err = capsys.readouterr().err
    assert f"needs {package}: {install('report')}" in err
    assert err.count("\n") == 1
    # needs no picture
    assert main(["report", str(file), "--label", "y", "--score", "p", "--json"]) == 0


def test_missing_option_is_exit_status_2(file, capsys):
    # Two columns may be the score, of which one is a function of the other.
    assert main(["report", str(file), "--label", "y"]) == 2
    assert "with --score, since several" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["report", "--label", "y"])
    assert caught.value.code == 2
    assert "--score" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Progress is for long work, and a busy machine makes any work long."""
    monkeypatch.setattr(_command, "_QUIET_SECONDS", 600)


@pytest.mark.slow
def test_long_work_writes_a_line_a_step_to_standard_error(monkeypatch, file, capsys):
    monkeypatch.setattr(_command, "_QUIET_SECONDS", 0)
    assert main(["report", str(file), "--label", "y", "--score", "p", "--json"]) == 0
    printed = capsys.readouterr()
    lines = printed.err.splitlines()
    found = [
        re.fullmatch(r"skcalib report: .+ \((?:(\d+) %, )?\d+ s\)", line)
        for line in lines
    ]
    shares = [int(match[1]) for match in found if match[1]]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert len(shares) == len(lines) - 1  # how many there are is known once it is read
    steps = (
        "reading",
        "errors of p",
        "test of p",
        "groups and periods of p",
        "recalibrators of p",
    )
    steps += ("numbers about p for a paper", "done")
    assert all(
        line.removeprefix("skcalib report: ").startswith(step)
        for line, step in zip(lines, steps, strict=True)
    )
    assert json.loads(printed.out)["n_rows"] == 600


@pytest.mark.slow
def test_work_that_turns_out_to_be_long_is_announced(monkeypatch, capsys):
    monkeypatch.setattr(_command, "_QUIET_SECONDS", 0.01)
    with _command._progress() as step:
        step("first")
        sleep(0.1)  # nothing else is begun
    assert capsys.readouterr().err.startswith("skcalib report: first (0 s)")


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom skcalib.__main__ import main\n"
        "try:\n    main(['report', '--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit('matplotlib' in sys.modules or 'skcalib.displays' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=False, capture_output=True
        ).returncode
        == 0
    )


# --- what a table may hold ------------------------------------------------------------


def _csv(path, header, rows):
    path.write_text(
        "\n".join([",".join(header), *(",".join(map(str, row)) for row in rows)]) + "\n"
    )
    return str(path)


def test_the_input_is_never_overwritten(tmp_path, capsys):
    rows = [(k % 2, 0.1 + 0.8 * (k % 2)) for k in range(20)]
    path = _csv(tmp_path / "x.csv", ["y", "p"], rows)
    before = (tmp_path / "x.csv").read_bytes()
    assert (
        main(
            [
                "report",
                path,
                "--label",
                "y",
                "--score",
                "p",
                "-o",
                str(tmp_path / "." / "x.csv"),
            ]
        )
        == 2
    )
    assert "is the input" in capsys.readouterr().err
    assert (tmp_path / "x.csv").read_bytes() == before


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = _csv(tmp_path / "x.csv", ["y", "p", "p"], [(0, 0.1, 0.9), (1, 0.9, 0.1)])
    with pytest.raises(ReportError, match="has 2 columns called 'p'"):
        read_columns(path, ["y", "p"])
    # the other column is not asked for
    assert read_columns(path, ["y"])["y"].tolist() == [0, 1]


def test_words_that_look_missing_are_words(tmp_path):
    path = _csv(
        tmp_path / "x.csv",
        ["y", "p", "country"],
        [("NA", 0.1, "NA"), ("None", "NA", "DE"), ("NA", 0.3, "")],
    )
    columns = read_columns(path, ["y", "p", "country"], words=("y", "country"))
    assert columns["y"].tolist() == ["NA", "None", "NA"]
    assert columns["country"].tolist() == ["NA", "DE", None]
    assert np.isnan(columns["p"][1])


def test_booleans_are_named_in_any_case(tmp_path):
    rows = [(k % 2 == 0, 0.1 + 0.8 * (k % 2 == 0)) for k in range(20)]
    path = _csv(tmp_path / "x.csv", ["y", "p"], rows)
    for positive, events in (("true", 10), ("TRUE", 10), ("False", 10)):
        table = read_table(path, label="y", scores=["p"], positive=positive)
        assert table.event_rows("p").labels.sum() == events
        assert table.event_rows("p").labels[0] == (positive.lower() == "true")


def test_a_pipe_and_a_folder(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_text("y,p\n1,0.5\n0,0.25\n"))
    writer.start()
    assert read_columns(pipe, ["p"])["p"].tolist() == [0.5, 0.25]
    writer.join()
    with pytest.raises(ReportError, match="is a folder"):
        read_columns(tmp_path, ["p"])


def test_the_index_that_pandas_wrote_is_a_column(tmp_path):
    pd = pytest.importorskip("pandas", reason="writes the file")
    pytest.importorskip("pyarrow", reason="writes the file")
    pd.DataFrame({"p": [0.5, 0.25]}, index=pd.Index([1, 0], name="y")).to_parquet(
        tmp_path / "x.parquet"
    )
    columns = read_columns(tmp_path / "x.parquet", ["y", "p"])
    assert (columns["y"].tolist(), columns["p"].tolist()) == ([1, 0], [0.5, 0.25])


# --- over time ------------------------------------------------------------------------


def _periods_file(path, n=900, changed=True):
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    month = np.repeat([1, 2, 3], n // 3)
    y = rng.random(n) < np.where((month == 3) & changed, scores**2.5, scores)
    dates = [f"2026-0{m}-{1 + k % 28:02d}" for k, m in enumerate(month)]
    return _write(path, {"y": y.astype(int), "p": scores, "day": dates, "month": month})


@pytest.mark.parametrize(
    "ordered",
    [
        ["Q4 2023", "Q1 2024", "Q2 2024"],
        ["2023Q4", "2024Q1"],
        ["4Q23", "1Q24"],
        ["Dec 2023", "January 2024", "Feb. 2024"],
        ["2023-W51", "2024-W05"],
        ["week 51 2023", "week 5 2024", "week 10 2024"],
        ["2023-12", "2024-1"],
        ["12/2023", "1/2024"],
        ["wave 9", "wave 10"],
        ["9", "10"],
        ["2023-02-01", "2024-01-31"],
    ],
)
def test_periods_are_in_the_order_of_time(ordered):
    for values in (ordered, ordered[::-1], sorted(ordered)):
        column = np.array(values, dtype=object)
        periods, order, note, *_ = named_periods(column, "t")
        assert note is None
        assert order == ordered
        assert periods.tolist() == values


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            ["11.12.2023", "01.01.2024"],
            (
                "'01.01.2024', in which day, month and year cannot be told apart: say"
                " how they are written with --time-format %d.%m.%Y or --time-format"
                " %m.%d.%Y"
            ),
        ),
        (["12/31/2023", "1/5/2024"], "with --time-format %m/%d/%Y, or"),
        (["Jan 24 10:30", "Feb 24 9:15"], "as in --time-format '%d %b %Y'"),
        (
            [1717200000, 1717300000],
            (
                "1717200000, which look like seconds or milliseconds since 1970: if"
                " they are, pass --time-format epoch; otherwise, write dates as"
            ),
        ),
        ([1717200000123.0], "write dates as YYYY-MM-DD"),
        (
            ["Q1 2024", "2024-05"],
            (
                r"'2024-05' \(a number of a month\) and 'Q1 2024' \(a quarter\): write"
                r" all periods"
            ),
        ),
        (["2024-1", "2024-01"], "same period in two formats, '2024-01' and '2024-1'"),
        (["pre", "post", "pre"], "State the order with --time-order post,pre."),
        # Which of them is the first month is not known without a year.
        (["Jan", "Dec", "Jan"], "strings have no chronological order"),
        (
            ["2 of 2023", "1 of 2024", "2 of 2023"],
            "strings have no chronological order",
        ),
    ],
)
def test_periods_without_an_order_are_refused(values, words):
    with pytest.raises(ReportError, match=words):
        named_periods(np.array(values, dtype=object), "t")


@pytest.mark.slow
@needs_matplotlib
def test_a_failed_write_leaves_the_report_that_was_there(
    file, tmp_path, capsys, monkeypatch
):
    page = tmp_path / "r.html"
    page.write_text("the last report", encoding="utf-8")

    def full_disk(path, text, encoding):
        with path.open("w", encoding=encoding) as written:
            written.write(text[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full_disk)
    assert (
        main(["report", str(file), "--label", "y", "--score", "p", "-o", str(page)])
        == 2
    )
    assert "No space left on device" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == "the last report"
    assert sorted(path.name for path in tmp_path.iterdir()) == [file.name, "r.html"]


@pytest.mark.slow
def test_periods_are_compared_with_the_first(tmp_path):
    path = _periods_file(tmp_path / "x.csv")
    for time, names in (
        ("month", ["1", "2", "3"]),
        ("day", ["2026-01", "2026-02", "2026-03"]),
    ):
        table = read_table(path, label="y", scores=["p"], time=time)
        rows = _numbers(table)["models"][0]["periods"]
        assert [row["period"] for row in rows] == names
        assert rows[0]["change_pvalue"] is None
        assert (
            rows[1]["change_adjusted_pvalue"] > 0.05 > rows[2]["change_adjusted_pvalue"]
        )
    first, third = (
        np.array([m == k for m in np.repeat([1, 2, 3], 300)]) for k in (1, 3)
    )
    scores, y = table.forecasts("p")[:2]
    change = calibration_change(
        y[first],
        scores[first],
        y[third],
        scores[third],
        binning=MEAN_ABSOLUTE["binning"],
        random_state=0,
    )
    assert rows[2]["change_pvalue"] == change.pvalue
    assert rows[2]["bias"] == pytest.approx(scores[third].mean() - y[third].mean())


@needs_matplotlib
@pytest.mark.slow
def test_a_baseline_file_and_the_section_of_the_page(tmp_path, capsys):
    new, old = (
        _periods_file(tmp_path / "new.csv"),
        _periods_file(tmp_path / "old.csv", changed=False),
    )
    output = tmp_path / "out.html"
    command = [
        "report",
        str(new),
        "--label",
        "y",
        "--score",
        "p",
        "--baseline",
        str(old),
        "-o",
        str(output),
    ]
    assert main(command) == 0
    text = output.read_text(encoding="utf-8")
    assert "old.csv" in text
    assert "all rows" in text
    assert main([*command, "--time", "month"]) == 0
    assert "changed" in output.read_text(encoding="utf-8")


def test_times_that_cannot_be_shown_are_refused(tmp_path):
    rows = [(k % 2, 0.1 + 0.8 * (k % 2), k) for k in range(60)]
    path = _csv(tmp_path / "x.csv", ["y", "p", "t"], rows)
    with pytest.raises(ReportError, match="'t' has 60 different values"):
        read_table(path, label="y", scores=["p"], time="t")
    path = _csv(tmp_path / "x.csv", ["y", "p", "t"], [(0, 0.5, "a"), (1, 0.5, "")] * 10)
    with pytest.raises(ReportError, match="10 without a time .column 't'.: the first"):
        read_table(path, label="y", scores=["p"], time="t")


def _clustered(n_clusters=60, size=30, seed=0):
    """Return a table of calibrated scores whose clusters go up and down together, each
    cluster many rows.
    """
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_clusters), size)
    logit = rng.normal(0, 1, n_clusters * size)
    y = rng.random(len(patient)) < 1 / (
        1 + np.exp(-logit - rng.normal(0, 1.2, n_clusters)[patient])
    )
    return {
        "y": y.astype(int),
        "p": (1 / (1 + np.exp(-logit))).round(6),
        "patient": patient,
        "w": 1 + patient % 2,
    }


@pytest.mark.slow
def test_clusters_are_told_to_every_interval(tmp_path):
    columns = _clustered()
    columns["s"] = np.where(columns["p"] > 0.4, "a", "b")
    options = {"label": "y", "scores": ["p"], "segment": "s"}
    file = _write(tmp_path / "data.csv", columns)
    plain, clustered = (
        _numbers(read_table(file, **options, cluster=name))
        for name in (None, "patient")
    )
    assert (clustered["cluster"], clustered["n_clusters"]) == ("patient", 60)
    assert (
        "allow for dependence between rows with the same value of patient (60 clusters)"
        in clustered["notes"][0]
    )
    assert plain["notes"] == [
        "Values of the column patient repeat (60 values in 1,800 rows). If rows with"
        " the same value depend on each other, the intervals are too short and the"
        " p-values too small: use --cluster patient."
    ]
    y, scores, given = (
        columns["y"],
        columns["p"],
        {"clusters": columns["patient"], "random_state": 0},
    )
    (model,), (before,) = clustered["models"], plain["models"]
    interval = calibration_error_interval(
        y, scores, **MEAN_ABSOLUTE, n_resamples=199, **given
    )
    assert [
        model["errors"][0][key] for key in ("estimate", "low", "high")
    ] == pytest.approx(list(interval))
    metric = partial(calibration_error, **MEAN_ABSOLUTE)
    assert (
        model["test"]["pvalue"]
        == calibration_test(y, scores, metric=metric, n_resamples=199, **given).pvalue
    )
    by_group = calibration_by_group(y, scores, columns["s"], **MEAN_ABSOLUTE, **given)
    assert sorted(row["bias_high"] for row in model["segments"]) == pytest.approx(
        sorted(by_group.bias_high)
    )
    # the mean of all rows is that of the clusters' means, as all have 30 rows: about
    # Student's interval, plainly
    for found, level, values in (
        (model["score_minus_frequency"], 0.95, scores - y),
        (model["proper_scores"][0], 0.9, (scores - y) ** 2),
    ):
        means = values.reshape(60, 30).mean(axis=1)
        half = student.ppf((1 + level) / 2, 59) * means.std(ddof=1) / np.sqrt(60)
        assert (found["low"], found["high"]) == pytest.approx(
            (means.mean() - half, means.mean() + half), abs=0.15 * half
        )
    for wide, narrow in (
        (model["errors"][0], before["errors"][0]),
        (model["score_minus_frequency"], before["score_minus_frequency"]),
    ):
        assert wide["high"] - wide["low"] > 1.2 * (narrow["high"] - narrow["low"])


@pytest.mark.slow
def test_clusters_of_weighted_rows_periods_and_classes(tmp_path):
    columns = _clustered()
    columns |= {
        "t": np.arange(1800) % 3,
        "w": np.where(columns["patient"] == 7, 0, columns["w"]),
    }
    options = {"label": "y", "scores": ["p"], "cluster": "patient", "time": "t"}
    table = read_table(
        _write(tmp_path / "data.csv", columns),
        **options,
        weight="w",
        weight_type="importance",
    )
    assert (len(table.clusters), table.weight_type, 7 in table.clusters) == (
        1770,
        "importance",
        False,
    )
    numbers = _numbers(table)
    assert (numbers["n_clusters"], numbers["weight_type"]) == (59, "importance")
    whole = calibration_by_group(
        table.labels, table.scores["p"], table.periods, **MEAN_ABSOLUTE, sample_weight=table.weight,  # noqa: E501
        weight_type="importance", clusters=table.clusters, random_state=0,
    )  # fmt: skip
    assert [
        row["bias_low"] for row in numbers["models"][0]["periods"]
    ] == pytest.approx(whole.bias_low)
    samples = [table.event_rows("p").at(table.periods == period) for period in "01"]
    change = calibration_change(
        samples[0].labels, samples[0].scores, samples[1].labels, samples[1].scores, binning=MEAN_ABSOLUTE["binning"],  # noqa: E501
        sample_weight=[rows.sample_weight for rows in samples], clusters=[rows.clusters for rows in samples],  # noqa: E501
        weight_type="importance", random_state=0,
    )  # fmt: skip
    assert numbers["models"][0]["periods"][1]["change_pvalue"] == change.pvalue


def test_columns_that_are_no_clusters(tmp_path):
    columns = _clustered(20, 5)
    columns |= {
        "one": np.full(100, "x"),
        "row": np.arange(100),
        "gap": [""] + ["a", "b", "c"] * 33,
        "few": [1, 2] * 50,
    }
    file = _write(tmp_path / "data.csv", columns)
    for name, message in (
        ("one", "column 'one' has one value, x"),
        ("gap", "1 without a cluster .column 'gap'.: the first is row 0"),
    ):
        with pytest.raises(ReportError, match=message):
            read_table(file, label="y", scores=["p"], cluster=name)
    table = read_table(file, label="y", scores=["p"], cluster="row")
    assert table.clusters is None
    assert "Each row has its own value of row" in table.notes[0]
    assert (
        "With so few clusters"
        in read_table(file, label="y", scores=["p"], cluster="few").notes[1]
    )
    with pytest.raises(
        ReportError, match="--weight-type states the meaning of the weights"
    ):
        read_table(file, label="y", scores=["p"], weight_type="importance")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["id", "patient_id", "customerId", "Candidate", "match no", "user.id", "doc"],
)
def test_identifiers_are_known_by_their_names(name):
    assert identifiers([name, "p"], ["p"]) == [name]
    assert identifiers([name], [name]) == []
    assert (
        identifiers(
            ["valid", "period", "width", "paid", "teamwork", "p_id_x", "mid"], []
        )
        == []
    )
    assert repeats(np.repeat(np.arange(30), 2))
    assert f"--cluster {name}" in repeats_note(np.repeat(np.arange(30), 2), name)
    assert not repeats(np.arange(60))
    assert not repeats(np.repeat(np.arange(3), 20))


@pytest.mark.slow
def test_decisions_are_counted_by_hand(tmp_path, capsys):
    columns = _clustered(size=20)
    file = _write(tmp_path / "data.csv", columns)
    arguments = [
        "--label",
        "y",
        "--score",
        "p",
        "--json",
        "--threshold",
        "0.5",
        "--threshold",
        "0.2",
    ]
    assert main(["report", str(file), *arguments]) == 0
    numbers = json.loads(capsys.readouterr().out)
    rows = numbers["models"][0]["decisions"]
    assert [row["threshold"] for row in rows] == numbers["thresholds"] == [0.2, 0.5]
    y, p = columns["y"].astype(bool), columns["p"]
    for row in rows:
        t = row["threshold"]
        treated = [s >= t for s in p]
        hits, alarms = (
            sum(a and b == k for a, b in zip(treated, y, strict=True))
            for k in (True, False)
        )
        assert row["treated"]["estimate"] == pytest.approx(sum(treated) / len(y))
        assert row["false_alarms"]["estimate"] == pytest.approx(alarms / len(y))
        assert row["misses"]["estimate"] == pytest.approx((y.sum() - hits) / len(y))
        benefit, treat_all = (
            a / len(y) - b / len(y) * t / (1 - t)
            for a, b in ((hits, alarms), (y.sum(), (~y).sum()))
        )
        assert row["net_benefit"]["estimate"] == pytest.approx(benefit)
        assert row["against_treating_all"]["estimate"] == pytest.approx(
            benefit - treat_all
        )
        assert row["net_benefit"]["low"] < benefit < row["net_benefit"]["high"]


@pytest.mark.slow
def test_miscalibration_costs_where_the_scores_cross_the_threshold_wrongly(
    monkeypatch,
):
    # No part of what is read here, but most of the time.
    monkeypatch.setattr(_advise, "why_not_the_default", lambda *_: "")
    rng = np.random.default_rng(0)
    truth = rng.random(1500)
    # at .4 the events above .4 of truth should be treated, not above .8
    y, half = rng.random(1500) < truth, truth / 2
    (wrong,), (right,) = (
        decision_rows(table, "p", [0.4], considered(table, "p", 0), 0)
        for table in (_table(y, half), _table(y, truth))
    )
    best = np.mean((truth >= 0.4) * np.where(y, 1, -0.4 / 0.6)) - np.mean(
        (half >= 0.4) * np.where(y, 1, -0.4 / 0.6)
    )
    assert wrong["cost_of_miscalibration"]["estimate"] == pytest.approx(best, abs=0.01)
    assert wrong["cost_of_miscalibration"]["low"] > 0.05
    assert (
        right["cost_of_miscalibration"]["low"]
        < 0
        < 0.005
        > right["cost_of_miscalibration"]["estimate"]
    )


@pytest.mark.slow
@needs_matplotlib
def test_title_names_date_and_command_are_on_the_page(tmp_path, capsys):
    file, output = _write(tmp_path / "data.csv", _data(200)), tmp_path / "a page.html"
    os.utime(file, (1767441600, 1767441600))  # 2026-01-03, noon in Greenwich
    arguments = [
        "report",
        str(file),
        "--label",
        "y",
        "--score",
        "p",
        "--score",
        "q",
        "--name",
        "old",
        "--name",
        "new",
    ]
    assert main([*arguments, "--title", "A <title>", "-o", str(output)]) == 0
    text = output.read_text("utf-8")
    assert "<h1>A &lt;title&gt;</h1>" in text
    assert "data.csv (modified 2026-01-03): 200 rows" in text
    assert re.search(
        r"python -m skcalib report .*--name old --name new .*-o &#39;.*a"
        r" page.html&#39;</code>",
        text,
    )
    assert "Numbers for a paper" in text
    assert "(TRIPOD+AI items 12e, 20a and 23a.)" in text
    said = capsys.readouterr().out
    assert re.match("(Keep|Prefer|There is no case for replacing) .*\nold: ", said)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--threshold", "1"], "--threshold must be above 0 and below 1, found 1"),
        (
            ["--name", "a", "--name", "b"],
            "--name was given 2 times (a, b) for 1 models (p)",
        ),
        (["--cluster", "nothing"], "has no column 'nothing'"),
    ],
)
def test_wrong_options_are_one_line(file, capsys, options, message):
    assert (
        main(["report", str(file), "--label", "y", "--score", "p", "--json", *options])
        == 2
    )
    assert message in capsys.readouterr().err
