"""Pages of 30 generated tables contradict themselves nowhere; each sentence is true on its data, absent on others."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit, softmax

from skcalib._report import _sentences
from skcalib._report._forecasts import ReportTable
from skcalib._report._numbers import report_numbers
from skcalib._report._page import report_page
from skcalib._report._pictures import Picture
from skcalib._report._sentences import advice_words, monitor_sentence

EVENTS = {
    "calibrated": lambda rng, z: z,
    "sharp": lambda rng, z: 0.5 * z,
    "shifted": lambda rng, z: z - 0.8,
    "wave": lambda rng, z: z + np.sin(3 * np.clip(z, -9, 9)),
    "noise": lambda rng, z: rng.permutation(z),
}
SHAPES = {
    "smooth": lambda rng, n: rng.normal(-1, 1.5, n),
    "rare": lambda rng, n: rng.normal(-4, 1, n),
    "ties": lambda rng, n: rng.choice([-2.0, -0.5, 0.0, 1.0], n),
    "ends": lambda rng, n: np.where(
        rng.random(n) < 0.2, np.inf * rng.choice([-1, 1], n), rng.normal(0, 2, n)
    ),
    "bimodal": lambda rng, n: rng.choice([-3, 3], n) + rng.normal(0, 0.3, n),
}


def _binary(event, shape, n, k):
    """Return a generated table, with weights, clusters, segments and times by its number."""
    rng = np.random.default_rng(k)
    z = SHAPES[shape](rng, n)
    columns = {
        "labels": rng.random(n) < expit(EVENTS[event](rng, z)),
        "scores": {"p": expit(z)},
    }
    if k % 3 == 0:
        columns |= {
            "segment_name": "s",
            "segments": rng.choice(["a", "b", "c"], n, p=[0.6, 0.38, 0.02]),
        }
    if k % 4 == 1:
        columns |= {
            "time_name": "t",
            "periods": np.sort(rng.choice(["1", "2", "3"], n)),
            "period_order": list("123"),
        }
    if k % 5 == 2:
        columns |= {"cluster_name": "c", "clusters": rng.integers(0, n // 5, n)}
    if k % 7 == 3:
        columns |= {"weight": rng.random(n) + 0.5, "weight_type": "importance"}
    return ReportTable("data.csv", "y", "1", **columns)


def _classes(n_classes, power, n, k):
    rng = np.random.default_rng(k)
    scores, truth = (
        softmax(factor * rng.normal(size=(n, n_classes)), axis=1)
        for factor in (1.5, 1.5 * power)
    )
    truth = scores**power / np.sum(scores**power, axis=1, keepdims=True)
    codes = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    names = tuple(f"c{j}" for j in range(n_classes))
    return ReportTable(
        "data.csv",
        "y",
        None,
        codes,
        {"p_*": scores},
        classes=names,
        columns={"p_*": names},
    )


MADE = [
    (
        f"{event} {shape} {n}",
        lambda event=event, shape=shape, n=n, k=k: _binary(event, shape, n, k),
    )
    for k, (event, shape, n) in enumerate(
        [
            (event, shape, (70, 300, 1200)[i % 3])
            for i, event in enumerate(EVENTS)
            for shape in SHAPES
        ]
    )
]
MADE += [
    (
        f"{n_classes} classes {power}",
        lambda a=n_classes, b=power: _classes(a, b, 900, a),
    )
    for n_classes, power in [(3, 1.0), (3, 0.6), (5, 1.0), (13, 0.7), (30, 1.0)]
]
FAST = ("calibrated smooth 70", "sharp rare 300")


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(make, id=name, marks=[] if name in FAST else pytest.mark.slow)
        for name, make in MADE
    ],
)
def test_a_page_contradicts_itself_nowhere(made):
    pytest.importorskip("jinja2", reason="the page needs jinja2 (extra report)")
    table = made()
    thresholds = (0.2,) if table.classes is None else ()
    numbers = report_numbers(
        table, seed=0, step=lambda what: None, thresholds=thresholds
    )
    page = report_page(numbers, {"reliability": Picture(b"<svg/>", "a diagram", "")})
    found = list(_estimates(numbers))
    assert len(found) > 5
    for path, values in found:
        inside = (
            values["low"] is None
            or values["low"] <= values["estimate"] <= values["high"]
        )
        assert inside or values.get("reason"), f"{path}: {values}"
        assert not (inside and values.get("reason")), f"{path}: {values}"
    text = (
        re.sub(r"<script.*</script>|<style.*</style>", "", page, flags=re.S)
        .replace("&nbsp;", " ")
        .replace("\u00a0", " ")
    )
    for estimate, low, high, rest in re.findall(
        r">([-+.\d]+)[^<>\d]*<small>([-+.\d]+) to ([-+.\d]+)([^<]*)<", text
    ):
        assert float(low) <= float(estimate) <= float(high) or "(" in rest, (
            f"{estimate}: {low} to {high}"
        )
    assert not re.search(r"\b(nan|inf)\b|>None<|\bNone (to|%)", text)
    given = {
        "segments": table.segments,
        "time": table.periods,
        "classes": table.classes,
        "decisions": thresholds or None,
    }
    for key, column in given.items():
        assert (
            (f'id="{key}"' in text)
            == (f'href="#{key}"' in text)
            == (column is not None)
        ), key
    for name in ("mean absolute", "root mean square", "expected", "maximum"):
        for cell in re.findall(
            rf"{name} calibration error<small>.*?</td>", text, flags=re.S
        ):
            assert " %" in cell
    for model in numbers["models"]:
        names = [error["name"] for error in model["errors"]]
        assert ("maximum calibration error" in names) == (len(table.labels) >= 100)
        assert (
            ("more than noise at n" in model["summary"])
            == model["test"]["rejects"]
            == (model["errors"][0]["low"] > 0)
        )
        calm = (
            model["advice"]["kind"] == "none"
            and model["advice"]["since"] is None
            and model["recalibrators"]
        )
        assert ("Brier score saved" in text) == (
            bool(model["recalibrators"]) and not calm
        )
        if calm:
            assert _sentences.nothing_to_gain(model["recalibrators"]) in text.replace(
                "&#39;", "'"
            )


def _estimates(value, path=""):
    if isinstance(value, dict):
        if {"estimate", "low", "high"} <= set(value):
            if value["estimate"] is not None:
                yield path, value
        elif "gain" in value and value["gain"] is not None:
            yield (
                path,
                {
                    "estimate": value["gain"],
                    "low": value["gain_low"],
                    "high": value["gain_high"],
                },
            )
        if value.get("bias_low") is not None:
            yield (
                path,
                {
                    "estimate": value["bias"],
                    "low": value["bias_low"],
                    "high": value["bias_high"],
                },
            )
        for key, part in value.items():
            yield from _estimates(part, f"{path}.{key}")
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from _estimates(part, f"{path}[{i}]")


# --- sentences ----------------------------------------------------------------------------------------------------


def _interval(estimate, half=0.01):
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half}


def _segment(name, bias, pvalue):
    row = {
        "segment": name,
        "bias": bias,
        "bias_low": bias - 0.01,
        "bias_high": bias + 0.01,
    }
    return {**row, "pvalue": pvalue, "adjusted_pvalue": min(1.0, 3 * pvalue)}


def _class(name, error, pvalue, bias=0.0, bias_pvalue=1.0):
    row = {"class": name, "estimate": error, "low": 0.0, "high": 0.1, "bias": bias}
    return {**row, "adjusted_error_pvalue": pvalue, "adjusted_pvalue": bias_pvalue}


def _candidate(name, gain, loss):
    gains = {
        f"{key}{end}": gain + d
        for key in ("gain", "brier_gain")
        for end, d in (("", 0), ("_low", -0.01), ("_high", 0.01))
    }
    return {"name": name, "log_loss": loss, "brier": loss / 2, **gains}


def _advice(**changed):
    found = {
        "kind": "map",
        "recalibrator": "PlattScaling",
        "segments": [],
        "since": None,
        "rows_needed": 1234,
    }
    return {
        **found,
        "gain": 0.02,
        "gain_low": 0.01,
        "gain_high": 0.03,
        "log_loss": 0.5,
        **changed,
    }


def _model(**changed):
    model = {
        "score_minus_frequency": _interval(0.0),
        "over_confidence": _interval(0.0),
        "errors": [{"estimate": 0.01, "low": 0.0, "high": 0.02}],
        "test": {"pvalue": 0.4, "smallest_pvalue": 0.001, "rejects": False},
        "mean_score": 0.6,
        "event_frequency": 0.5,
        "segments": [],
        "changes": [],
        "recalibrators": [
            _candidate("as it is", 0.0, 0.5),
            _candidate("PlattScaling", -0.001, 0.501),
        ],
        "advice": _advice(kind="none", recalibrator=None),
    }
    return {**model, **changed}


def _summary(**changed):
    model = _model(**changed)
    return f"{_sentences.summary_sentence(model, 1000)} {advice_words(model, 'site')}"


def _decision(benefit, against, cost):
    keys = ("net_benefit", "against_treating_all", "cost_of_miscalibration")
    row = {
        key: None if value is None else _interval(value)
        for key, value in zip(keys, (benefit, against, cost), strict=True)
    }
    return _sentences.decision_sentence({"threshold": 0.2, **row})


CLEAR = {"test": {"pvalue": 1e-5, "smallest_pvalue": 0.0, "rejects": True}}
REJECTED = {"test": {"pvalue": 0.001, "smallest_pvalue": 0.001, "rejects": True}}
BIAS = {"score_minus_frequency": _interval(0.05)}
LOW = {"score_minus_frequency": _interval(-0.05)}
SURE, SHY = {"over_confidence": _interval(0.05)}, {"over_confidence": _interval(-0.05)}
CALM = [_class("a", 0.01, 0.5), _class("b", 0.01, 0.9)]
OFF = [
    _class("a", 0.05, 0.001, 0.04, 0.001),
    _class("b", 0.04, 0.002),
    _class("c", 0.01, 0.9),
]
BAD = [_segment("x", 0.08, 1e-4), _segment("y", -0.06, 1e-4), _segment("z", 0.0, 0.7)]
CHANGE = {"group": None, "since": "March", "bias_before": 0.01, "bias_after": 0.07}
MONITOR = {"group": "x", "alarm": True, "alarm_time": "May", "change_time": "April"}
RIVAL = {"name": "q", "brier_difference": _interval(0.05)}

# Each sentence, what says it on data made for it, and on data made against it.
SENTENCES = [
    ("Scores are right on average.", lambda: _summary(), lambda: _summary(**BIAS)),
    (
        "Scores are too high by 5.0 percentage points on average",
        lambda: _summary(**BIAS),
        lambda: _summary(**LOW),
    ),
    (
        "Scores are too low by 5.0 percentage points",
        lambda: _summary(**LOW),
        lambda: _summary(**BIAS),
    ),
    (
        "too extreme: the likelier outcome happens less often",
        lambda: _summary(**SURE),
        lambda: _summary(**SHY),
    ),
    (
        "too cautious: the likelier outcome happens more often",
        lambda: _summary(**SHY),
        lambda: _summary(**SURE),
    ),
    (
        "more than noise at n = 1,000 (p ≤ .001)",
        lambda: _summary(**REJECTED),
        lambda: _summary(),
    ),
    (
        "more than noise at n = 1,000 (p < .001)",
        lambda: _summary(**CLEAR),
        lambda: _summary(**REJECTED),
    ),
    ("no more than noise can be", lambda: _summary(), lambda: _summary(**REJECTED)),
    (
        "beyond what the first sentence says, the rows",
        lambda: _summary(**BIAS),
        lambda: _summary(**BIAS, **REJECTED),
    ),
    (
        "beyond what the first sentence says, the rows",
        lambda: _summary(**SHY),
        lambda: _summary(),
    ),
    (
        "It is below the average because noise",
        lambda: _summary(**BIAS, **CLEAR),
        lambda: _summary(**CLEAR),
    ),
    ("of the predicted class is", lambda: _summary(classes=CALM), lambda: _summary()),
    (
        "as sure of its predicted classes as it should be",
        lambda: _summary(classes=CALM),
        lambda: _summary(classes=CALM, **BIAS),
    ),
    (
        "too sure of its predicted classes by 5.0",
        lambda: _summary(classes=CALM, **BIAS),
        lambda: _summary(classes=CALM, **LOW),
    ),
    (
        "too cautious about its predicted classes",
        lambda: _summary(classes=CALM, **LOW),
        lambda: _summary(classes=CALM, **BIAS),
    ),
    (
        "No class of 2 has an error",
        lambda: _summary(classes=CALM),
        lambda: _summary(classes=OFF),
    ),
    (
        "2 of 3 classes have an error that is more than noise: a, b.",
        lambda: _summary(classes=OFF),
        lambda: _summary(classes=CALM),
    ),
    (
        "All 2 classes have an error",
        lambda: _summary(classes=OFF[:2]),
        lambda: _summary(classes=OFF),
    ),
    (
        "The largest is that of class a: 5.0 %, averaged over all rows, also those of other classes",
        lambda: _summary(classes=OFF),
        lambda: _summary(classes=CALM),
    ),
    (
        "its probabilities are too high by 4.0 points",
        lambda: _summary(classes=OFF),
        lambda: _summary(classes=OFF[1:]),
    ),
    (
        "; 1 of these is more than noise",
        lambda: _sentences.rest_sentence(OFF[1:]),
        lambda: _sentences.rest_sentence(CALM),
    ),
    (
        "; none of these are more",
        lambda: _sentences.rest_sentence(CALM),
        lambda: _sentences.rest_sentence(OFF),
    ),
    (
        "The other 2 classes have errors from 1.0 to 1.0 %",
        lambda: _sentences.rest_sentence(CALM),
        lambda: _sentences.rest_sentence(OFF),
    ),
    (
        "By site, 2 of 3 segments are off by more",
        lambda: _summary(segments=BAD),
        lambda: _summary(segments=BAD[2:]),
    ),
    (
        "The worst: x too high by 8.0 points; y too low",
        lambda: _summary(segments=BAD),
        lambda: _summary(segments=BAD[2:]),
    ),
    (
        "hides how they differ",
        lambda: _summary(segments=BAD),
        lambda: _summary(segments=[BAD[0]], **BIAS),
    ),
    (
        "Since March the scores are too high by 7.0 points on average; before, they were too high by 1.0",
        lambda: _summary(changes=[CHANGE]),
        lambda: _summary(),
    ),
    (
        "the scores of x are too high",
        lambda: _summary(changes=[{**CHANGE, "group": "x"}]),
        lambda: _summary(changes=[CHANGE]),
    ),
    (
        "Leave the scores as they are",
        lambda: _summary(),
        lambda: _summary(advice=_advice()),
    ),
    (
        "too few rows of one class to recalibrate",
        lambda: _summary(recalibrators=[]),
        lambda: _summary(),
    ),
    (
        "Recalibrate with PlattScaling().",
        lambda: _summary(advice=_advice()),
        lambda: _summary(),
    ),
    (
        "lowers the log-loss by 4 % (2 to 6 %)",
        lambda: _summary(advice=_advice()),
        lambda: _summary(),
    ),
    (
        "A fit to about 1,300 labelled rows keeps nine tenths of that gain. Fit it again when the model",
        lambda: _summary(advice=_advice()),
        lambda: _summary(),
    ),
    (
        "Recalibrate on the rows since May with",
        lambda: _summary(advice=_advice(since="May")),
        lambda: _summary(advice=_advice()),
    ),
    (
        "Shift the base rate: PriorShift() adds one number to all log-odds",
        lambda: _summary(advice=_advice(recalibrator="PriorShift")),
        lambda: _summary(advice=_advice()),
    ),
    (
        "Shift the class frequencies with PriorShift()",
        lambda: _summary(advice=_advice(recalibrator="PriorShift"), classes=CALM),
        lambda: _summary(advice=_advice(recalibrator="PriorShift")),
    ),
    (
        "x needs a map of its own; the other segments share one",
        lambda: _summary(advice=_advice(segments=["x"]), segments=BAD),
        lambda: _summary(advice=_advice(), segments=BAD),
    ),
    (
        "Recalibrate by site with PlattScaling: x, y need maps of their own; the other",
        lambda: _summary(
            advice=_advice(segments=["x", "y"]),
            segments=[*BAD, _segment("w", 0.0, 0.9)],
        ),
        lambda: _summary(advice=_advice(segments=["x"]), segments=BAD),
    ),
    (
        "PlattScaling: each segment needs a map of its own",
        lambda: _summary(advice=_advice(segments=["x", "y"]), segments=BAD),
        lambda: _summary(advice=_advice(segments=["x"]), segments=BAD),
    ),
    (
        "No monitor raised an alarm.",
        lambda: monitor_sentence([{"alarm": False}]),
        lambda: monitor_sentence([MONITOR]),
    ),
    (
        "1 of 1 monitors raised an alarm: x in May, the change at about April",
        lambda: monitor_sentence([MONITOR]),
        lambda: monitor_sentence([{"alarm": False}]),
    ),
    (
        "do not tell the Brier scores of p and q apart",
        lambda: _compared(0.001),
        lambda: _compared(0.05),
    ),
    (
        "p has a lower Brier score than q, by 0.0500",
        lambda: _compared(0.05),
        lambda: _compared(-0.05),
    ),
    (
        "There is one segment only.",
        lambda: _sentences.segment_sentence(BAD[:1]),
        lambda: _sentences.segment_sentence(BAD),
    ),
    (
        "By chance alone a calibrated model would have about 0.15 such segments",
        lambda: _sentences.segment_sentence(BAD),
        lambda: _sentences.segment_sentence(BAD[:1]),
    ),
    (
        "After the adjustment for their number, 2 remain: x, y",
        lambda: _sentences.segment_sentence(BAD),
        lambda: _sentences.segment_sentence(BAD[1:]),
    ),
    (
        "After the adjustment for their number, none is left.",
        lambda: _sentences.segment_sentence([_segment("x", 0.1, 0.04), BAD[2]]),
        lambda: _sentences.segment_sentence(BAD),
    ),
    (
        "better than treating all rows and than treating none",
        lambda: _decision(0.1, 0.1, None),
        lambda: _decision(-0.1, 0.1, None),
    ),
    (
        "treating none would be better",
        lambda: _decision(-0.1, 0.1, None),
        lambda: _decision(0.1, -0.1, None),
    ),
    (
        "treating all rows would be better",
        lambda: _decision(0.1, -0.1, None),
        lambda: _decision(-0.1, 0.1, None),
    ),
    (
        "do not show that the scores are better than treating",
        lambda: _decision(0.0, 0.1, None),
        lambda: _decision(0.1, 0.1, None),
    ),
    (
        "miscalibration costs 5.00 (4.00 to 6.00) true positives in 100",
        lambda: _decision(0.1, 0.1, 0.05),
        lambda: _decision(0.1, 0.1, 0.0),
    ),
    (
        "what miscalibration costs there is within noise",
        lambda: _decision(0.1, 0.1, 0.0),
        lambda: _decision(0.1, 0.1, 0.05),
    ),
    (
        "None of 1 recalibrators gains more than noise. The best, PlattScaling, would save -0.20 % of the log-loss",
        lambda: _sentences.nothing_to_gain(_model()["recalibrators"]),
        lambda: _summary(),
    ),
    (
        "with 5 bins each recalibrated probability lies within 4.00 percentage points of the frequency of the event",
        lambda: (
            _sentences.certificate_sentence([{"n_bins": 5, "conditional": 0.04}], False)
            or ""
        ),
        lambda: (
            _sentences.certificate_sentence([{"n_bins": 5, "conditional": 1.0}], False)
            or ""
        ),
    ),
    (
        "of the frequency with which the predicted class is right",
        lambda: _sentences.certificate_sentence(
            [{"n_bins": 5, "conditional": 0.04}], True
        ),
        lambda: _sentences.certificate_sentence(
            [{"n_bins": 5, "conditional": 0.04}], False
        ),
    ),
]


def _compared(difference):
    return _sentences.comparison_sentence(
        [{"name": "p"}, {**RIVAL, "brier_difference": _interval(difference)}]
    )


@pytest.mark.parametrize(
    ("sentence", "made_for", "made_against"),
    SENTENCES,
    ids=[row[0][:30] for row in SENTENCES],
)
def test_a_sentence_is_there_where_it_is_true_and_only_there(
    sentence, made_for, made_against
):
    assert sentence in made_for()
    assert sentence not in made_against()


def test_no_sentence_is_left_out():
    said = " ".join(
        made()
        for _, made_for, made_against in SENTENCES
        for made in (made_for, made_against)
    )
    tree = ast.parse(Path(_sentences.__file__).read_text("utf-8"))
    for function in (node for node in tree.body if isinstance(node, ast.FunctionDef)):
        docstring = ast.get_docstring(function, clean=False)
        for node in ast.walk(function):
            words = (
                node.value
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
                else ""
            )
            if words != docstring and len(words.split()) >= 3 and words != "as it is":
                assert words.strip(" .") in said, (
                    f"{function.name}: no data say {words!r}"
                )
