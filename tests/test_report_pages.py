"""Pages of 30 generated tables contradict themselves nowhere; each sentence is true on
its data, absent on others.
"""

import re

import numpy as np
import pytest
from scipy.special import expit, softmax

from skcalib._report._forecasts import ReportTable
from skcalib._report._numbers import report_numbers
from skcalib._report._page import report_page
from skcalib._report._pictures import Picture
from skcalib._report._sections import (
    certificate_sentence,
    decision_sentence,
    monitor_sentence,
    nothing_to_gain,
)

pytestmark = pytest.mark.slow

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
    """Return a generated table, with weights, clusters, segments and times by its
    number.
    """
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
        if values["low"] is None:  # a reason says why there are no limits
            continue
        inside = values["low"] <= values["estimate"] <= values["high"]
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
        assert model["test"]["rejects"] == (model["errors"][0]["low"] > 0)
        _assert_coherent(model)
        calm = (
            model["advice"]["kind"] == "none"
            and model["advice"]["since"] is None
            and model["recalibrators"]
        )
        assert ("gain in Brier score" in text) == (
            bool(model["recalibrators"]) and not calm
        )
        if calm:
            assert nothing_to_gain(model["recalibrators"]) in text.replace("&#39;", "'")


def _assert_coherent(model):
    """Each sentence of a summary agrees with the verdicts, and with the others."""
    claims, verdicts = set(model["claims"]), model["verdicts"]
    first = model["claims"][0]
    is_off = verdicts["bias"]["kind"] in ("off", "off, size unclear")
    if claims & {"usable", "right on average"}:
        assert verdicts["bias"]["kind"] == "fine"
        assert verdicts["error"]["kind"] in ("fine", "cannot tell")
        assert not is_off or verdicts["bias"]["kind"] == "fine"
    assert ("leave" in claims) <= bool(claims & {"usable", "right on average"})
    if is_off:
        assert first.startswith(("do not use", "check"))
        assert "cannot tell" not in claims
    assert not claims >= {"too extreme", "too cautious"}
    assert not {"nothing but the shift", "segments off"} <= claims
    assert model["summary"].count("as they are") <= 1
    if "cannot tell" in claims:
        assert verdicts["bias"]["kind"] == "cannot tell"


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


# --- sentences of sections --------------------------------------------------------


def _interval(estimate, half=0.01):
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half}


def _candidate(name, gain, loss):
    gains = {"gain": gain, "gain_low": gain - 0.01, "gain_high": gain + 0.01}
    return {"name": name, "log_loss": loss, **gains}


def _decision(benefit, against, cost):
    keys = ("net_benefit", "against_treating_all", "cost_of_miscalibration")
    row = {
        key: None if value is None else _interval(value)
        for key, value in zip(keys, (benefit, against, cost), strict=True)
    }
    return decision_sentence({"threshold": 0.2, **row})


def _certificate(conditional, of_classes):
    rows = [{"n_bins": 5, "conditional": conditional}]
    return certificate_sentence(rows, of_classes) or ""


MONITOR = {"group": "x", "alarm": True, "alarm_time": "May", "change_time": "April"}
CANDIDATES = [_candidate("as it is", 0.0, 0.5), _candidate("Platt", -0.001, 0.501)]
# Each sentence, what says it on data made for it, and on data made against it.
SENTENCES = [
    (
        "No monitor raised an alarm.",
        lambda: monitor_sentence([{"alarm": False}]),
        lambda: monitor_sentence([MONITOR]),
    ),
    (
        "The monitor raised an alarm in May for x (change near April).",
        lambda: monitor_sentence([MONITOR]),
        lambda: monitor_sentence([{"alarm": False}]),
    ),
    (
        "At a threshold of 20 %, acting on the scores is better than treating all"
        " samples or none",
        lambda: _decision(0.1, 0.1, None),
        lambda: _decision(-0.1, 0.1, None),
    ),
    (
        "treating none would be better",
        lambda: _decision(-0.1, 0.1, None),
        lambda: _decision(0.1, -0.1, None),
    ),
    (
        "treating all samples would be better",
        lambda: _decision(0.1, -0.1, None),
        lambda: _decision(-0.1, 0.1, None),
    ),
    (
        "do not show that acting on the scores is better than treating",
        lambda: _decision(0.0, 0.1, None),
        lambda: _decision(0.1, 0.1, None),
    ),
    (
        "miscalibration costs 5.0 (90 %: 4.0 to 6.0) true positives per 100",
        lambda: _decision(0.1, 0.1, 0.05),
        lambda: _decision(0.1, 0.1, 0.0),
    ),
    (
        "no cost of miscalibration is measurable there",
        lambda: _decision(0.1, 0.1, 0.0),
        lambda: _decision(0.1, 0.1, 0.05),
    ),
    (
        "The best, Platt, would raise the log-loss by 0.2 % (90 %: 1.8 % lower to"
        " 2.2 % higher).",
        lambda: nothing_to_gain(CANDIDATES),
        lambda: "",
    ),
    (
        "lies within 4 points of the event frequency in its bin",
        lambda: _certificate(0.04, False),
        lambda: _certificate(1.0, False),
    ),
    (
        "of the frequency with which the predicted class is right",
        lambda: _certificate(0.04, True),
        lambda: _certificate(0.04, False),
    ),
]


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
