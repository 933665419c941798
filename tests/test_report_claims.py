"""The truth table of the report's sentences: every name in `CLAIMS` has worlds in which
it is false (or a reason why no world makes it false), and is printed there in at most
5 % of simulated tables; and worlds in which it is true, where large tables print it.
"""

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from skcalib._report import _numbers, _recalibration
from skcalib._report._claims import CLAIMS
from skcalib._report._forecasts import ReportTable
from skcalib._report._numbers import report_numbers

TOLERANCE = 0.02
MONTHS = [f"2025-{month:02d}" for month in range(1, 9)]
# Sentences that describe the sample or the question, and claim nothing about the world.
DESCRIPTIVE = {
    "cannot tell": "says what the interval is",
    "others cannot be told": "says what the intervals are",
    "segments cannot be told": "says what the intervals are",
    "repeated key": "is about the columns of the file",
    "tolerance too large": "compares a frequency of the sample with an option",
    "means": "has figures of the sample",
    "error": "has an estimate with its interval and a p-value",
    "nothing but the shift": "says what the test has detected",
    "below the bias": "compares two estimates",
    "no class off": "says what the test has detected",
    "average hides": "compares estimates; the segments have their own sentence",
    "too few to recalibrate": "counts samples",
    "cluster first": "is about the columns of the file",
    "leave": "says that no gain was measured",
    "no recalibrator": "says that no gain was measured",
    "samples needed": "is a range over folds; benchmarks.report_advice measures it",
}


@dataclass(frozen=True)
class World:
    """Shifts of the log-odds of the event against the scores.

    `shift` for all, `slope` of the log-odds, `west` in one segment of three, `east` in
    another, `late` from the fifth of eight months on, `drift` over all months, `shock`
    the size of what all samples of a day have in common.
    """

    shift: float = 0.0
    slope: float = 1.0
    west: float = 0.0
    east: float = 0.0
    late: float = 0.0
    drift: float = 0.0
    shock: float = 0.0

    def table(self, n, seed):
        """Return simulated rows."""
        rng = np.random.default_rng([seed, n])
        odds, segment, day, truth = self._draw(rng, n)
        order = np.argsort(day, kind="stable")
        return ReportTable(
            "x",
            "y",
            "1",
            (rng.random(n) < truth)[order],
            {"p": expit(odds[order])},
            segment_name="region",
            segments=segment[order],
            time_name="month",
            periods=np.array(MONTHS)[day[order] // 30],
            period_order=MONTHS,
            moments=day[order],
        )

    def _draw(self, rng, n):
        odds = rng.normal(-0.3, 1.3, n)
        segment = rng.choice(["West", "East", "South"], n)
        day = rng.integers(0, 240, n)
        shocks = rng.normal(size=240)
        moved = (
            self.shift
            + self.west * (segment == "West")
            + self.east * (segment == "East")
            + self.late * (day >= 120)
            + self.drift * day / 240
            + self.shock * shocks[day]
        )
        return odds, segment, day, expit(self.slope * odds + moved)

    def truths(self):
        """Return what is true of the population, from half a million draws."""
        rng = np.random.default_rng(0)
        odds, segment, _, truth = replace(self, shock=0.0)._draw(rng, 500_000)
        gap = expit(odds) - truth
        likelier = np.where(odds > 0, gap, -gap)
        cells = np.bincount(
            np.digitize(odds, np.linspace(-4, 4, 60)), gap, minlength=61
        )
        segments = [abs(gap[segment == name].mean()) for name in np.unique(segment)]
        return {
            "bias": abs(gap.mean()),
            "error": np.abs(cells).sum() / len(odds),
            "segments": segments,
            "over_confidence": likelier.mean(),
        }


WORLDS = {
    "calibrated": World(),
    "at the tolerance": World(shift=-0.107),
    "too high": World(shift=-0.6),
    "too low": World(shift=0.5),
    # The shifts keep the mean score right: only the spread of the scores is wrong.
    "too extreme": World(slope=0.5, shift=-0.0975),
    "too cautious": World(slope=2.0, shift=0.1567),
    "one segment": World(west=1.0),
    "two segments": World(west=1.0, east=-1.0),
    "late": World(late=0.9),
    "drift": World(drift=1.0),
    "days": World(shock=0.8),
}


def _is_true(name, world, truths):
    """Return whether a claim is true in a world; None where it claims nothing."""
    beyond = [bias > TOLERANCE * 1.0001 for bias in truths["segments"]]
    nonzero = [bias > 1e-3 for bias in truths["segments"]]
    changes = world.late != 0 or world.drift != 0
    needs_map = world != World()
    table = {
        "do not use the segment": any(beyond) or changes,
        "nor these segments": sum(beyond) > 1 or changes,
        "check the segment": any(nonzero) or changes,
        "check more segments": sum(nonzero) > 1 or changes,
        "others are fine": not all(beyond),
        "do not use": truths["bias"] > TOLERANCE * 1.0001 or changes,
        "check": truths["bias"] > 1e-3 or changes,
        "do not take at face value": truths["error"] > TOLERANCE,
        "check the error": needs_map,
        "usable": max(truths["bias"], truths["error"]) <= TOLERANCE * 1.02,
        "right on average": truths["bias"] <= TOLERANCE * 1.02,
        "too extreme": truths["over_confidence"] > 1e-3,
        "too cautious": truths["over_confidence"] < -1e-3,
        "segments off": any(nonzero),
        "changed": changes,
        "trend": changes,
        "dependent": world.shock != 0,
        "shift": needs_map,
        "recalibrate": needs_map,
        "recalibrate segments": needs_map,
        "recalibrate by segment": needs_map,
        "gain": needs_map,
    }
    return table.get(name)


# Classes have a table of their own in `test_report_classes.py`.
OF_CLASSES = {"shift classes", "classes off"}


def test_every_sentence_has_a_world_in_which_it_is_false():
    truths = {name: world.truths() for name, world in WORLDS.items()}
    for name in set(CLAIMS) - set(DESCRIPTIVE) - OF_CLASSES:
        found = {_is_true(name, world, truths[key]) for key, world in WORLDS.items()}
        assert found == {True, False}, name
    assert set(DESCRIPTIVE) <= set(CLAIMS)
    assert set(CLAIMS) >= OF_CLASSES


def test_every_sentence_of_a_summary_stands_in_the_table():
    """What a summary says is made by `claim`, and all of its names are used."""
    folder = Path(_numbers.__file__).parent
    trees = [ast.parse(path.read_text("utf-8")) for path in folder.glob("*.py")]
    used = {
        node.value
        for tree in trees
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(CLAIMS) <= used
    calls = [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim"
    ]
    assert len(calls) == 1


@pytest.fixture
def quick(monkeypatch):
    """Fewer draws and fewer recalibrators: sentences rest on them in the same way."""
    monkeypatch.setattr(_numbers, "_N_RESAMPLES", 99)
    monkeypatch.setattr(_numbers, "_N_DRAWS", 99)
    monkeypatch.setattr(_numbers, "_paper", lambda *_: None)
    maps = ["PriorShift", "TemperatureScaling", "PlattScaling"]
    monkeypatch.setattr(_recalibration, "OF_TWO_CLASSES", maps)


def _claims(world, n, seed):
    numbers = report_numbers(world.table(n, seed), seed=0, step=lambda what: None)
    (model,) = numbers["models"]
    return set(model["claims"]), model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize(("n", "n_tables"), [(100, 10), (300, 10)])
@pytest.mark.parametrize("key", WORLDS)
def test_a_false_sentence_is_rare(quick, key, n, n_tables):
    """At most 5 %, plus three standard errors of the simulation."""
    world = WORLDS[key]
    truths, counts = world.truths(), {}
    for seed in range(n_tables):
        for name in _claims(world, n, seed)[0]:
            counts[name] = counts.get(name, 0) + 1
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_tables)
    for name, count in counts.items():
        if _is_true(name, world, truths) is False:
            assert count / n_tables <= most, f"{name}: {count} of {n_tables}"


LARGE = {
    "calibrated": {"usable"},
    "too high": {"do not use", "shift", "gain"},
    "too low": {"do not use"},
    "too extreme": {"do not take at face value", "too extreme", "recalibrate"},
    "too cautious": {"do not take at face value", "too cautious"},
    "one segment": {"do not use the segment", "segments off", "recalibrate segments"},
    "two segments": {"nor these segments"},
    "late": {"do not use", "changed", "trend"},
    "drift": {"changed", "trend"},
    "days": {"dependent"},
}


@pytest.mark.slow
@pytest.mark.parametrize("key", LARGE)
def test_large_tables_say_what_is_true(quick, key):
    for n in (20_000, 100_000):
        found, model = _claims(WORLDS[key], n, 0)
        assert LARGE[key] <= found, model["summary"]


@pytest.mark.parametrize("names", [("alpha", "beta", "gamma"), ("z", "y", "x")])
def test_renamed_segments_and_labels_give_the_same_sentences(quick, names):
    table = WORLDS["one segment"].table(600, 3)
    old = ("East", "South", "West")
    renamed = dict(zip(old, names, strict=True))
    other = replace(
        table,
        event="yes",
        segments=np.array([renamed[name] for name in table.segments]),
    )
    said = []
    for rows in (table, other):
        numbers = report_numbers(rows, seed=0, step=lambda what: None)
        said.append(numbers["models"][0]["summary"])
    words = said[1]
    for name, new in renamed.items():
        words = re.sub(rf"\b{new}\b", name, words)
    assert words == said[0]
