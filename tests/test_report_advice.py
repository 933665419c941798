"""What a report advises: the ladder on tables of known truth, its paired test and monitors against plain twins."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student

from benchmarks.report_advice import SIMULATED, WORST, calibrated_tables, judged
from skcalib import GroupwiseRecalibrator, PlattScaling
from skcalib._report._advice import advised
from skcalib._report._forecasts import ReportTable
from skcalib._report._periods import monitor_rows
from skcalib._report._recalibration import TrialRows
from skcalib._report._sentences import advice, changes, monitor_sentence, worst_segments
from skcalib._report._statistics import Rows
from skcalib.evaluation import recalibration_gain
from skcalib.monitoring import GroupMonitors

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
        "file", "y", "1", labels, {"p": scores}, segments=segments, **periods, **options
    )


def _advice(*columns, **options):
    return advised(_table(*columns, **options), "p", 0)[0]


# --- The ladder -------------------------------------------------------------------------------------------------------


def test_each_step_is_advised_where_it_is_needed():
    odds, uniform, segments, months = _rows(3000)
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
    advice_, candidates, _ = advised(
        _table(np.arange(12) < 2, np.full(12, 0.3)), "p", 0
    )
    assert (advice_["kind"], candidates) == ("none", [])


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
    assert sum(calibrated_tables(10)) <= 2  # of 30; at most 5 % are promised


# --- The paired test --------------------------------------------------------------------------------------------------


def test_gains_are_those_of_the_library():
    odds, uniform, segments, _ = _rows(600)
    labels, scores = uniform < expit(0.5 * odds), expit(odds)
    rows = TrialRows.of(_table(labels, scores, segments), "p", 0)
    before = rows.unchanged()
    *found, pvalue = rows.gain(before, rows.trial(PlattScaling()))
    splits = [(fold.train, fold.test) for fold in rows.folds]
    expected = recalibration_gain(
        labels, scores, recalibrator=PlattScaling(), cv=splits
    )
    assert tuple(found) == pytest.approx(
        tuple(expected), rel=2e-3
    )  # that divides by n - 1
    error = (expected.high - expected.low) / 2 / norm.ppf(0.95)
    assert pvalue == pytest.approx(norm.sf(expected.estimate / error), rel=0.02)
    # a map by segment is that of the estimator with the same groups
    own = rows.trial(PlattScaling(), own=("A", "C"))
    fold, groups = (
        rows.folds[1],
        np.where((segments == "A") | (segments == "C"), segments, ""),
    )
    fitted = GroupwiseRecalibrator(PlattScaling()).fit(
        scores[fold.train], labels[fold.train], groups=groups[fold.train]
    )
    expected = fitted.predict_proba(scores[fold.test], groups=groups[fold.test])[:, 1]
    start = len(rows.folds[0].test)
    np.testing.assert_allclose(
        own.probabilities[start : start + len(fold.test)], expected, atol=1e-12
    )


def test_clusters_are_summed_and_stay_in_one_fold():
    rng = np.random.default_rng(0)
    gains, clusters = rng.normal(0.1, 1, 90), np.repeat(np.arange(30), 3)
    mean, _, high, pvalue = Rows(gains, gains, clusters=clusters).mean(gains)
    sums = (gains - gains.mean()).reshape(30, 3).sum(axis=1)
    error = np.sqrt(30 / 29 * np.sum(sums**2)) / 90
    assert high - mean == pytest.approx(student.ppf(0.95, 29) * error)
    assert pvalue == pytest.approx(student.sf(gains.mean() / error, 29))
    weight = rng.integers(1, 4, 90).astype(float)
    repeated = np.repeat(gains, weight.astype(int))
    expected = Rows(repeated, repeated).mean(repeated)
    assert Rows(gains, gains, weight).mean(gains) == pytest.approx(expected)
    rows = TrialRows.of(
        _table(np.arange(90) % 2 == 0, rng.random(90), clusters=clusters), "p", 0
    )
    assert all(
        not set(clusters[fold.train]) & set(clusters[fold.test]) for fold in rows.folds
    )


# --- Time -------------------------------------------------------------------------------------------------------------


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
    assert "C in 2025-" in monitor_sentence(found)
    assert monitor_sentence(found[:0]) == "No monitor raised an alarm."
    clusters = np.arange(4000) // 2
    assert (
        monitor_rows(
            _table(labels, expit(odds), segments, months, clusters=clusters), "p"
        )
        == []
    )
    assert monitor_rows(_table(labels, expit(odds), segments), "p") == []


# --- Sentences --------------------------------------------------------------------------------------------------------

NOTHING = {"kind": "none", "recalibrator": None, "segments": [], "since": None}
GAIN = {
    "gain": 0.02,
    "gain_low": 0.01,
    "gain_high": 0.03,
    "log_loss": 0.5,
    "rows_needed": 491,
}


CANDIDATES = [
    {"name": "as it is", "log_loss": 0.5},
    {"name": "PlattScaling", "gain": 0.0, "gain_low": -0.0004, "gain_high": 0.0004},
]


def _said(segment=None, candidates=True, **found):
    return " ".join(
        advice(
            {
                "advice": {**NOTHING, **found},
                "recalibrators": CANDIDATES * candidates,
                "segments": [{}] * 5,
            },
            segment,
        )
    )


def test_advice_in_words():
    assert _said() == (
        "Leave the scores as they are: no recalibrator gains more than noise (at most 0.08 % of the log-loss)."
    )
    assert "more than noise on the rows since 2025-08" in _said(since="2025-08")
    assert (
        _said(candidates=False) == "There are too few rows of one class to recalibrate."
    )
    assert _said(kind="map", recalibrator="PlattScaling", **GAIN) == (
        "Recalibrate with PlattScaling(). On rows that it was not fitted on, it lowers the log-loss by 4 % (2 to 6 %). "
        "A fit to about 500 labelled rows keeps nine tenths of that gain. Fit it again when the model changes "
        "or a monitor (skcalib.monitoring) raises an alarm."
    )
    assert _said(kind="shift", recalibrator="PriorShift", **GAIN).startswith(
        "Shift the base rate: PriorShift() adds"
    )
    by_segment = {
        "recalibrator": "GroupwiseRecalibrator(PlattScaling())",
        "segments": ["law", "math"],
    }
    words = _said("subject", kind="map_since", since="2025-08", **by_segment, **GAIN)
    assert words.startswith(
        "Recalibrate by subject on the rows since 2025-08 with GroupwiseRecalibrator(PlattScaling()): law, math need "
    )


def _segment(name, bias, pvalue):
    limits = {"bias_low": bias - 0.02, "bias_high": bias + 0.02}
    return {"segment": name, "bias": bias, **limits, "adjusted_pvalue": pvalue}


def test_the_summary_names_the_worst_segments_and_since_when():
    rows = [
        _segment("law", 0.3, 0.001),
        _segment("math", -0.12, 0.001),
        _segment("art", 0.01, 0.9),
    ]
    model = {"segments": rows, "score_minus_frequency": {"estimate": 0.011}}
    assert worst_segments(model, "subject") == [
        "By subject, 2 of 3 segments are off by more than chance. The worst: law too high by 30.0 points; math too low "
        "by 12.0 points.",
        "The average of all rows (+1.1 points) hides how they differ.",
    ]
    model["segments"] = rows[2:]
    assert worst_segments(model, "subject") == []
    model = {"segments": rows[:1], "score_minus_frequency": {"estimate": 0.25}}
    assert len(worst_segments(model, "subject")) == 1  # nothing is hidden
    change = {
        "group": "law",
        "since": "2025-08",
        "bias_before": 0.004,
        "bias_after": -0.163,
    }
    whole = {**change, "group": None}
    assert changes({"changes": [change, whole]}) == [
        "Since 2025-08 the scores of law are too low by 16.3 points on average; before, they were too high by 0.4 "
        "points."
    ]
    assert changes({"changes": [whole, change]})[0].startswith(
        "Since 2025-08 the scores are too low by 16.3 points"
    )
    assert changes({"changes": []}) == []
