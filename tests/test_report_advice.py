"""What a report advises: the ladder on tables of known truth, its paired test and
monitors against plain twins.
"""

from dataclasses import asdict

import numpy as np
import pytest
from scipy.special import expit

from benchmarks.checks.report_advice import (
    SIMULATED,
    WORST,
    calibrated_tables,
    judged,
    of_keys,
    steadiness,
)
from skcalib._report._advice import brier_difference_as_advised, considered
from skcalib._report._forecasts import ReportTable
from skcalib._report._periods import monitor_rows
from skcalib._report._sections import monitor_sentence
from skcalib._report._summary import summary
from skcalib._report._table import read_table
from skcalib._verdicts import verdict
from skcalib.evaluation import _advise
from skcalib.monitoring import GroupMonitors

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _without_the_default(monkeypatch):
    """No test here reads why the default method would do something else, which takes
    most of the time.
    """
    monkeypatch.setattr(_advise, "why_not_the_default", lambda *_: "")


MONTHS = [f"2025-{month:02d}" for month in range(1, 13)]


def _rows(n, seed=0):
    """Return log-odds, uniform numbers, segments and months."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(-0.5, 1.5, n),
        rng.random(n),
        rng.choice(list("ABCD"), n),
        rng.integers(0, 12, n),
    )


def _table(labels, scores, segments=None, months=None, **options):
    periods = (
        {}
        if months is None
        else {
            "periods": np.array(MONTHS)[months],
            "period_order": MONTHS,
            "time_name": "t",
        }
    )
    return ReportTable(
        "file",
        "y",
        "1",
        labels,
        {"p": scores},
        segments=segments,
        **({} if segments is None else {"segment_name": "s"}),
        **periods,
        **options,
    )


def _advice(*columns, **options):
    return considered(_table(*columns, **options), "p", 0).advice


# --- The ladder -----------------------------------------------------------------------


@pytest.mark.slow
def test_each_step_is_advised_where_it_is_needed():
    odds, uniform, segments, months = _rows(2000)
    every = expit(odds), segments, months

    def found(shift, slope=1.0):
        return _advice(uniform < expit(slope * odds + shift), *every)

    assert found(0.0)["kind"] == "none"
    shift = found(-0.5)
    assert (
        shift["kind"],
        shift["recalibrator"],
        shift["segments"],
        shift["since"],
    ) == (
        "shift",
        "PriorShift",
        [],
        None,
    )
    assert (
        0 < shift["gain_low"] < shift["gain"] < shift["gain_high"] < shift["log_loss"]
    )
    one = found(0.0, 0.6)
    assert (one["kind"], one["recalibrator"], one["segments"]) == (
        "map",
        "TemperatureScaling",
        [],
    )
    some = found(1.0 * (segments == "B"))
    assert (some["kind"], some["segments"], some["since"]) == (
        "map_by_segment",
        ["B"],
        None,
    )
    assert some["recalibrator"].startswith("GroupwiseRecalibrator(")
    late = found(1.5 * ((segments == "C") & (months >= 7)))
    assert (late["kind"], late["segments"], late["since"]) == (
        "map_since",
        ["C"],
        "2025-08",
    )


def test_the_advice_for_classes_and_for_few_rows():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (1500, 3))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = (proba.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1)
    classes = {"classes": ("a", "b", "c")}
    assert _advice(codes, proba, **classes)["kind"] == "none"
    sure = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    found = _advice(codes, sure, **classes)
    assert (found["kind"], found["recalibrator"]) == ("map", "TemperatureScaling")
    few = considered(_table(np.arange(12) < 2, np.full(12, 0.3)), "p", 0)
    assert (few.advice["kind"], few.candidates) == ("none", [])
    assert few.advice["reason"].startswith("There are too few samples of one class")


def test_clusters_that_move_together_are_no_reason_to_recalibrate():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(25), 200)
    odds = rng.normal(0, 1, 5000)
    apart = rng.normal(size=25)
    labels = rng.random(5000) < expit(odds + (apart - apart.mean())[clusters] + 0.25)
    assert _advice(labels, expit(odds))["kind"] != "none"
    assert _advice(labels, expit(odds), clusters=clusters)["kind"] == "none"


@pytest.mark.slow
def test_the_advice_is_near_the_best_candidate_on_rows_it_has_not_seen():
    names = (
        "base-rate shift",
        "curve",
        "one segment off",
        "many small segments",
        "drift in one segment",
    )
    for name in names:
        row = judged(SIMULATED[name](np.random.default_rng([3, 1]), 12_000), seed=3)
        assert row["excess"] <= WORST + 2 * row["noise"], name
        assert row["loss"] < row["none"], name
        if name in ("one segment off", "drift in one segment"):
            assert row["after"] < row["worst"] / 2, name


@pytest.mark.slow
def test_calibrated_tables_get_no_advice():
    assert sum(calibrated_tables(3)) <= 1  # of 9; at most 5 % are promised


def test_a_key_that_repeats_is_asked_for_before_anything_is_advised(tmp_path):
    """The same candidate over many weeks: folds would share what a map learns of it."""
    pandas = pytest.importorskip("pandas", reason="files are read by pandas")
    odds, uniform, _, _ = _rows(1500)
    candidate = np.arange(1500) // 20
    frame = pandas.DataFrame({"y": uniform < expit(0.5 * odds), "p": expit(odds)})
    frame["candidate"] = candidate
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = read_table(tmp_path / "x.csv", label="y", scores=["p"])
    assert table.repeated_keys == ("candidate",)
    found = considered(table, "p", 0)
    assert found.advice["kind"] == "none"
    assert found.advice["needs_cluster"] == "candidate"
    assert found.candidates
    told = read_table(tmp_path / "x.csv", label="y", scores=["p"], cluster="candidate")
    found = considered(told, "p", 0).advice
    assert (found["kind"], found["needs_cluster"]) == ("map", None)


@pytest.mark.slow
def test_without_the_clusters_of_a_key_nothing_is_advised_that_has_learned_the_key():
    """Isotonic regression learns the outcomes of the candidates that it is fitted to:
    on others its loss is above that of the bare model, which the report keeps.
    """
    losses, without, informed = of_keys(0)
    assert losses["IsotonicCalibration"] > 1.5 * losses["none"]
    assert losses["TemperatureScaling"] < losses["none"]
    assert (without["kind"], without["needs_cluster"]) == ("none", "key")
    assert losses["with clusters"] <= losses["none"]
    assert informed["needs_cluster"] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base-rate shift", "over-confident"])
def test_the_division_into_folds_does_not_decide_the_kind_of_advice(name):
    count, kind = steadiness(name, 0, n=2000, n_seeds=6)
    assert count >= 5
    assert kind in ("shift", "map")


@pytest.mark.slow
def test_models_are_compared_as_the_report_advises_to_use_them():
    """A model whose log-odds are three times too large is as good as the other once it
    is recalibrated; what is compared are out-of-fold Brier scores.
    """
    odds, uniform, _, _ = _rows(1500)
    labels = uniform < expit(odds)
    table = _table(labels, expit(odds))
    table.scores["q"] = expit(3 * odds)
    raw = table.brier_difference("q")
    assert raw["low"] > 0.01
    first, other = (considered(table, name, 0) for name in ("p", "q"))
    assert first.advice["recalibrator"] is None
    assert other.advice["recalibrator"] is not None
    found = brier_difference_as_advised(first, other)
    assert found["low"] < 0.001
    before = np.mean((expit(odds) - labels) ** 2)
    after = np.mean((other.probabilities - labels) ** 2)
    assert found["estimate"] == pytest.approx(after - before)
    assert brier_difference_as_advised(first, first) is None


def test_scores_that_were_all_right_are_not_moved_to_0_and_1():
    """With scores of .001 and .999 in 3,000 rows, 3 wrong ones are expected: none has
    a probability of 5 %, which is no reason to predict certainty.
    """
    rng = np.random.default_rng(2)
    scores = np.where(rng.random(3000) < 0.5, 0.001, 0.999)
    found = considered(_table(scores > 0.5, scores), "p", 0)
    assert found.advice["kind"] == "none"
    (isotonic,) = (
        row for row in found.candidates if row["name"] == "IsotonicCalibration"
    )
    assert isotonic["gain_low"] < 0 < isotonic["gain"]


# --- Time -----------------------------------------------------------------------------


def test_monitors_are_those_of_the_library():
    pytest.importorskip("pandas", reason="to_frame makes a data frame")
    odds, uniform, segments, months = _rows(4000)
    labels = uniform < expit(odds + 1.5 * ((segments == "C") & (months >= 7)))
    found = monitor_rows(_table(labels, expit(odds), segments, months), "p")
    order = np.argsort(months, kind="stable")
    size = {name: -np.sum(segments == name) for name in "ABCD"}
    monitors = GroupMonitors()
    monitors.partial_fit(
        expit(odds)[order],
        labels[order],
        ["all rows"] * 4000,
        np.array(MONTHS)[months[order]],
    )
    for name in sorted(size, key=lambda name: (size[name], name)):
        rows = order[segments[order] == name]
        monitors.partial_fit(
            expit(odds)[rows],
            labels[rows],
            segments[rows],
            np.array(MONTHS)[months[rows]],
        )
    frame = monitors.to_frame().astype(object)
    for row, expected in zip(
        found, frame.where(frame.notna(), None).to_dict("records"), strict=True
    ):
        assert row == pytest.approx(expected)
    (alarm,) = (row for row in found if row["group"] == "C")
    assert alarm["alarm_time"] >= "2025-08"
    assert f"in {alarm['alarm_time']} for C" in monitor_sentence(found)
    assert monitor_sentence(found[:0]) == "No monitor raised an alarm."
    clusters = np.arange(4000) // 2
    assert (
        monitor_rows(
            _table(labels, expit(odds), segments, months, clusters=clusters), "p"
        )
        == []
    )
    assert monitor_rows(_table(labels, expit(odds), segments), "p") == []


# --- Sentences ------------------------------------------------------------------------

FINE = asdict(verdict(0.0, (-0.01, 0.01), 1000, 0.02))
OFF = asdict(verdict(0.05, (0.03, 0.07), 1000, 0.02))
CANDIDATES = [
    {"name": "as it is", "log_loss": 0.5, "calibration_error": 0.05},
    {
        "name": "PlattScaling",
        "gain": 0.0,
        "gain_low": -0.0004,
        "gain_high": 0.0004,
        "log_loss": 0.5,
        "calibration_error": 0.02,
    },
    # With a higher loss it is no alternative.
    {"name": "IsotonicCalibration", "log_loss": 0.49, "calibration_error": 0.001},
    {"name": "BetaCalibration", "log_loss": 0.47, "calibration_error": 0.003},
]
NOTHING = {
    "kind": "none",
    "recalibrator": None,
    "column": None,
    "segments": [],
    "others": None,
    "since": None,
    "needs_cluster": None,
    "n_of_key": 50,
    "rows_needed": None,
}
GAIN = {
    "error_left": FINE,
    "gain": 0.02,
    "gain_low": 0.01,
    "gain_high": 0.03,
    "log_loss": 0.5,
    "rows_needed": 1234,
    "rows_needed_low": 491,
    "simpler": "as it is",
}


def _said(bias=OFF, changes=(), rows=(), candidates=True, **found):
    """Return the paragraphs of a summary, the last one first."""
    model = _model(bias, changes, rows, candidates, **found)
    paragraphs = summary(model, {"n_samples": 1000, "tolerance": 0.02})
    return [" ".join(said.text for said in said_) for said_ in paragraphs][::-1]


def _model(bias=OFF, changes=(), rows=(), candidates=True, **found):
    """Return the numbers of a model."""
    return {
        "verdicts": {"bias": bias, "over_confidence": bias, "error": FINE},
        "test": {"pvalue": 0.4, "smallest_pvalue": 0.001, "rejects": False},
        "mean_score": 0.4,
        "event_frequency": 0.35,
        "n_events": 350,
        "n_others": 650,
        "segments": list(rows),
        "changes": list(changes),
        "recalibrators": CANDIDATES if candidates else [],
        "advice": {**NOTHING, **found},
    }


def test_advice_in_words():
    assert _said()[0] == (
        "No recalibrator is measurably better (the best, PlattScaling, may reduce the"
        " log-loss by at most 0.08 %), so none is recommended. More labelled samples"
        " may change this."
    )
    assert _said(FINE)[0].startswith("Leave the scores unchanged: no recalibrator is")
    assert "better on the samples from 2025-08 on, so" in _said(since="2025-08")[0]
    assert _said(candidates=False)[0] == (
        "There are too few samples of one class to recalibrate."
    )
    assert _said(needs_cluster="match")[0].startswith(
        "No recalibration is recommended without --cluster match: values of match"
    )
    assert _said(kind="map", recalibrator="PlattScaling", **GAIN)[0] == (
        "Recalibrate with PlattScaling(). This leaves a mean absolute calibration error"
        " of at most 1.0 points. On held-out samples, the log-loss is lower by 4.0 %"
        " (90 %: 2.0 to 6.0). Fit the recalibrator again when the model changes or a"
        " monitor (skcalib.monitoring) raises an alarm. About 500 to 1,300 labelled"
        " samples are needed to achieve nine tenths of its possible gain over the"
        " unchanged scores."
    )
    assert _said(FINE, kind="map", recalibrator="PlattScaling", **GAIN)[0].startswith(
        "Optional: recalibrate with PlattScaling()."
    )
    assert _said(kind="shift", recalibrator="PriorShift", **GAIN)[0].startswith(
        "Shift the base rate with PriorShift(): it adds the same number to all"
    )
    by_segment = {
        "kind": "map_by_segment",
        "recalibrator": "GroupwiseRecalibrator(PlattScaling())",
        "column": "subject",
        "segments": ["law", "math"],
    }
    rows = [{"segment": name, "column": "subject", "verdict": FINE} for name in "abcde"]
    words = _said(rows=rows, since="2025-08", others="shared", **by_segment, **GAIN)
    assert words[0].startswith(
        "Recalibrate by subject with GroupwiseRecalibrator(PlattScaling()), fitted to"
        " the samples from 2025-08 on and applied to all new scores: law and math need "
    )
    words = _said(rows=rows, others="unchanged", **by_segment, **GAIN)
    assert words[0].startswith(
        "Recalibrate law and math with PlattScaling(), each fitted to its own samples;"
        " the other groups keep their scores. Over the samples of all groups, this"
        " leaves a mean absolute calibration error of"
    )
    assert "On held-out samples of all groups, the log-loss is" in words[0]


def test_the_error_that_a_recalibration_leaves_is_judged():
    def left(*points):
        estimate, *limits = (value / 100 for value in points)
        record = asdict(verdict(estimate, limits, 1000, 0.02))
        given = {**GAIN, "error_left": record}
        return _said(kind="map", recalibrator="TemperatureScaling", **given)[0]

    assert "leaves a mean absolute calibration error of at most 1.8 points." in left(
        0.4, 0.0, 1.8
    )
    assert (
        "This leaves a mean absolute calibration error of 2.2 points (90 %: 0.6 to"
        " 3.6), which may exceed the tolerance of 2 points; BetaCalibration"
        " leaves 0.3. To find out, run the report on the recalibrated scores of new"
        " samples."
    ) in left(2.2, 0.6, 3.6)
    assert "3.2 points (90 %: 2.4 to 4.1), more than the tolerance of 2 points;" in (
        left(3.2, 2.4, 4.1)
    )


def test_the_headline_names_what_to_check_and_asks_for_clusters():
    unclear = asdict(verdict(0.02, (0.005, 0.035), 400, 0.02))
    rows = [
        {"segment": name, "column": "subject", "verdict": found}
        for name, found in (("law", OFF), ("math", unclear), ("art", FINE))
    ]
    assert _said(FINE, rows=rows)[-1] == (
        "Do not use the scores of law as they are: they are 5.0 points too high (95 %:"
        " 3.0 to 7.0). Also check these before use: math, too high by 0.5 to 3.5 points"
        " (95 %). The other group is fine to within 1.0 points."
    )
    # While rows may depend on each other: no verdict, interval or p-value.
    advised, known, headline = _said(FINE, rows=rows, needs_cluster="match")
    assert headline == (
        "No verdict yet: 1,000 samples share 50 values of match. Run the report again"
        " with --cluster match."
    )
    assert known == (
        "The mean score is 40.0 %, and 35.0 % of the samples have the event. The mean"
        " absolute calibration error is estimated at 0.0 points; its uncertainty"
        " can be estimated only with --cluster match."
    )
    assert advised.startswith("No recalibration is recommended without --cluster match")


def test_advice_for_a_model_that_another_one_should_replace():
    model = _model(FINE, kind="map", recalibrator="PlattScaling", **GAIN)
    paragraphs = summary(
        {**model, "name": "rival", "is_inferior": True},
        {"n_samples": 1000, "tolerance": 0.02},
    )
    assert paragraphs[-1][0] == (
        "Only if rival must be used: recalibrate with PlattScaling()."
    )


def test_the_advice_says_if_the_brier_score_does_not_gain():
    def gain(low):
        row = {**CANDIDATES[1], "brier_gain_low": low, "brier_gain_high": 0.01}
        model = _model(kind="map", recalibrator="PlattScaling", **GAIN)
        model["recalibrators"] = [row, CANDIDATES[0]]
        *_, last = summary(model, {"n_samples": 1000, "tolerance": 0.02})
        return last[2]

    unclear = "(90 %: 2.0 to 6.0); no gain in the Brier score is measurable. Fit"
    assert unclear in gain(-0.001)
    assert "Brier" not in gain(0.001)


def test_the_summary_dates_changes():
    after = asdict(verdict(-0.163, (-0.19, -0.13), 300, 0.02))
    change = {
        "group": "law",
        "since": "2025-08",
        "verdict_before": FINE,
        "verdict_after": after,
    }
    whole = {**change, "group": None}
    rows = [
        {"segment": name, "column": "subject", "verdict": FINE}
        for name in ("law", "math")
    ]
    *_, headline = _said(FINE, [change, whole], rows)
    assert headline.startswith(
        "Do not use the scores of law as they are: they are 16 points too low (95 %: 13"
        " to 19) from 2025-08 on. The other group is fine to within 1.0 points. Before"
        " refitting, look for the cause: late or missing labels, or a change in the"
        " population, in the product or treatment, in the data, or in the definition of"
        " the event."
    )
    _, time, *_ = _said(FINE, [change, whole], rows)
    assert time == (
        "From 2025-08 on, the scores of law are 16 points too low (95 %: 13 to 19) on"
        " average; before, they were fine to within 1.0 points on average."
    )
    *_, headline = _said(FINE, [whole, change], [])
    assert headline.startswith(
        "Do not use the scores as they are: they are 16 points too low (95 %: 13 to 19)"
        " on average from 2025-08 on."
    )
