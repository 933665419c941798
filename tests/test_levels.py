"""The table of levels runs, and its verdicts are those of its numbers. What holds is
simulated there, not here.
"""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, multinomial

import skcalib
from benchmarks.levels.__main__ import main, measure
from benchmarks.levels.decisions import BANDS, BROKEN
from benchmarks.levels.few_events import FEW_EVENTS
from benchmarks.levels.functions import CLUSTERS, WEIGHTS
from benchmarks.levels.hard import HARD
from benchmarks.levels.hospitals import HOSPITALS
from benchmarks.levels.oracle_widths import WORLDS, width_ratios
from benchmarks.levels.page import (
    Row,
    read_rows,
    reason_of,
    verdict_of,
    with_tables,
)
from benchmarks.levels.performance import PERFORMANCE
from benchmarks.levels.probabilities import PROBABILITIES
from benchmarks.levels.promises import INTERVALS, TESTS, Promise, without_noise
from benchmarks.levels.same_rows import SAME_ROWS
from benchmarks.levels.sampled import DATA, SAMPLED
from benchmarks.levels.search import (
    FAMILIES,
    FOUND,
    Family,
    known_worlds,
    remember,
    routing_level,
    search,
)
from benchmarks.levels.several_labels import SEVERAL_LABELS
from benchmarks.levels.shapes import SHAPES, Sample
from benchmarks.levels.summary import SUMMARY
from benchmarks.levels.widths import CHECKS, faults
from skcalib import (
    ScalingBinning,
    decisions,
    displays,
    engines,
    evaluation,
    export,
    guarantees,
    maps,
    metrics,
    model_selection,
    monitoring,
    simulation,
)
from skcalib.binning import EqualMass
from skcalib.decisions import certified_routing, certified_threshold, net_benefit
from skcalib.displays import ReliabilityDisplay
from skcalib.evaluation import (
    calibration_summary,
    recalibration_gain,
)
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
)
from skcalib.monitoring import CalibrationMonitor, calibration_change

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_command_prints_rows():
    command = [
        sys.executable,
        "-m",
        "benchmarks.levels",
        "--quick",
        "--json",
        "--only",
        "2 bins|^Kuiper|^calibration slope$",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=300
    )
    rows = json.loads(done.stdout)
    kinds = {row["kind"] for row in rows}
    assert {"coverage", "size"} <= kinds <= {"coverage", "size", "broken"}
    for row in rows:
        assert 0 <= row["measured"] <= 1
        assert row["standard_error"] > 0
        assert row["verdict"] in ("holds", "misses", "undecided")


def test_promises_have_their_own_names_and_known_shapes():
    promises = INTERVALS + TESTS
    hard = [promise for promises in HARD.values() for promise in promises]
    assert {shape for promise in hard for shape in promise.shapes} <= set(SHAPES)
    assert len({(promise.name, promise.promised) for promise in promises}) == len(
        promises
    )
    assert {shape for promise in promises for shape in promise.shapes} <= set(SHAPES)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_draw_their_labels_from_the_truth(shape):
    samples = [SHAPES[shape](np.random.default_rng(seed)) for seed in range(30)]
    differences = []
    expected = 0.0  # standard deviation of independent labels, which few events hide
    for sample in samples:
        expected = np.sqrt(np.sum(sample.truth * (1 - sample.truth))) / len(
            sample.labels
        )
        if sample.labels.ndim == 2:
            differences.append(np.mean(sample.labels - sample.truth))
        elif sample.truth.ndim == 1:
            differences.append(
                np.average(sample.labels - sample.truth, weights=sample.sample_weight)
            )
        else:
            differences.append(np.mean(sample.labels == 0) - sample.truth[:, 0].mean())
    deviation = max(np.std(differences), expected)
    assert abs(np.mean(differences)) < 4 * deviation / np.sqrt(30) + 1e-12


def test_errors_without_noise_are_those_of_the_truth():
    sample = SHAPES["s^1.6, n = 200"](np.random.default_rng(0))
    found = without_noise(
        sample, calibration_error, norm=1, method="plugin", binning=EqualMass(1)
    )
    assert found == pytest.approx(np.mean(sample.scores - sample.truth))


def test_verdicts():
    shape = "calibrated, n = 60"
    always = Promise("always", 0.9, lambda sample, seed: True, ())
    never = Promise("never", 0.9, lambda sample, seed: False, ())
    assert measure("coverage", always, shape, 5).verdict == "holds"
    assert measure("coverage", never, shape, 5).verdict == "misses"
    assert measure("size", always._replace(promised=0.05), shape, 5).verdict == "misses"
    assert measure("size", never._replace(promised=0.05), shape, 5).verdict == "holds"
    unknown = Promise("unknown", 0.9, lambda sample, seed: np.nan, ())
    row = measure("coverage", unknown, shape, 5)
    assert (row.verdict, row.decided) == ("undecided", 0)
    sometimes = Promise("some", 0.9, lambda sample, seed: [np.nan, 1][seed % 2], ())
    row = measure("coverage", sometimes, shape, 5)
    assert (row.verdict, row.measured, row.decided) == ("holds", 1, 0.4)
    # A coverage of .85 misses .9 from 145 samples on, and a size of .08 alike.
    assert verdict_of("coverage", 0.9, 0.85, np.sqrt(0.09 / 140)) == "holds"
    assert verdict_of("coverage", 0.9, 0.85, np.sqrt(0.09 / 150)) == "misses"
    assert verdict_of("size", 0.05, 0.08, 0.016) == "holds"
    assert verdict_of("size", 0.05, 0.08, 0.014) == "misses"
    assert verdict_of("coverage", 0.9, 1.0, 0.001) == "holds"


def test_verdicts_of_the_rows_are_those_of_their_numbers():
    for row in ROWS.values():
        numbers = row.kind, row.promised, row.measured, row.standard_error
        assert row.verdict == verdict_of(*numbers), row


@pytest.mark.slow
def test_the_search_finds_a_broken_world():
    """A test that rejects where more than 30 rows have a high intercept: the worst
    world lies there, though most worlds do not.
    """

    def rejects(world, sample, seed):
        return len(sample.scores) > 30 and world["intercept"] > 0.9

    axes = ("n", "low mode", "high mode", "share of high", "concentration", "intercept")
    family = Family("made up", "size", 0.05, axes, _draw_few, rejects)
    worst, n_worlds = search(family, 0.1)
    assert n_worlds > 12
    assert worst.world["n"] > 30
    assert worst.world["intercept"] > 0.9
    assert np.mean(worst.kept) == 1
    assert worst.surely() > 0.8
    # A search from known starts begins with them.
    again, _ = search(family, 0.0, starts=[worst.point])
    assert again.world == worst.world


def test_samples_without_an_answer_break_nothing():
    axes = ("n", "threshold")
    never = Family("made up", "size", 0.05, axes, _draw_few, lambda *_: np.nan)
    worst, _ = search(never, 0.0)
    assert set(worst.kept) == {0.0}
    worst, _ = search(never._replace(kind="coverage", promised=0.9), 0.0)
    assert set(worst.kept) == {1.0}


@pytest.mark.slow
@pytest.mark.parametrize("family", SAME_ROWS, ids=[family[0] for family in SAME_ROWS])
def test_worlds_of_maps_of_the_same_rows(family):
    """A truth just below the floor: whatever is accepted breaks the guarantee."""
    family = Family(*family)
    world = dict.fromkeys(family.axes, 0.0) | {"below": 0.001, "risk": 0.1, "tilt": 0}
    world |= {"rows": 300, "classes": 4, "mean score": 0.8, "spread": 1.0}
    world = {name: world[name] for name in family.axes}
    assert family.world(family.point(world)) == pytest.approx(world)
    for seed in range(6):
        sample = family.draw(world, np.random.default_rng(seed))
        breaks, accepted = family.kept(world, sample, seed)
        assert breaks == (accepted > 0)


def _draw_few(world, rng):
    n = round(world["n"])
    return Sample(rng.random(n), rng.random(n), rng.random(n) < 0.5)


@pytest.mark.slow
def test_the_exact_level_of_routing_is_that_of_all_tables():
    n, max_loss, gains = 40, 0.1, 0.01
    level, share = routing_level(n, max_loss, [gains])
    assert share == gains
    by_hand = 0.0
    for lost in range(12):
        for gained in range(12):
            small = np.arange(n) >= lost
            large = ~((np.arange(n) >= lost) & (np.arange(n) < lost + gained))
            found = certified_routing(
                small, large, np.full(n, 0.9), max_loss=max_loss, thresholds=[0.5]
            ).found
            chances = [gains + max_loss, gains, 1 - 2 * gains - max_loss]
            table = [lost, gained, n - lost - gained]
            by_hand += found * multinomial.pmf(table, n, chances)
    assert level == pytest.approx(by_hand, abs=1e-5)
    assert level <= 0.1


def test_worlds_that_were_found_are_shapes(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.levels.search.WORLDS", tmp_path / "worlds.jsonl")
    family = next(one for one in FAMILIES if one.name == "certified precision")
    world = family.world([0.5] * len(family.axes))
    promise = remember(family, world)
    assert known_worlds(family) == [world]
    remember(family, world)
    assert known_worlds(family) == [world]
    assert family.point(world) == pytest.approx([0.5] * len(family.axes))
    row = measure(family.kind, promise, promise.shapes[0], 3)
    assert row.shape.startswith("found: n ")
    assert 0 <= row.measured <= 1
    del SHAPES[promise.shapes[0]]
    assert json.loads((tmp_path / "worlds.jsonl").read_text())["world"] == world


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_intervals_of_small_tables_have_a_width(name):
    """10,000 tables of each: ``python -m benchmarks.levels.widths``."""
    n_tables = 25 if name == "calibration_by_cluster" else 75
    assert [fault for _, fault, _ in faults(name, n_tables, seed=1)] == []


ROWS = read_rows(ROOT / "benchmarks/levels/rows.jsonl")


def test_the_page_is_made_of_the_rows():
    page = (ROOT / "doc/evidence/levels.md").read_text()
    assert with_tables(page, list(ROWS.values())) == page
    assert "**not named**" not in page
    names = re.findall(
        r"^\| `?([^|]*?)`? \|", page.split("## Summary")[1].split("##")[0], re.M
    )
    assert len(names) - 1 <= 15  # the first is the head of the table


def test_the_lead_of_the_page_names_every_exception():
    page = (ROOT / "doc/evidence/levels.md").read_text()
    lead = page.split("## Summary")[0]
    table = page.split("## What does not hold")[1].split("## ")[0]
    names = re.findall(r"^\| (.*?) \|", table, re.M)[2:]
    assert len(names) > 10
    assert [name for name in names if name not in lead] == []
    missed = [row for row in ROWS.values() if row.verdict == "misses"]
    n_held = sum(row.verdict == "holds" for row in ROWS.values())
    assert f"**{n_held} of {len(ROWS)} rows hold.**" in lead
    # So are data of which few have an answer, with their shares.
    few = [row for row in ROWS.values() if (row.decided or 1) < 0.9]
    few += [row for row in ROWS.values() if row.decided == 0]
    assert len(missed) + n_held + sum(row.decided == 0 for row in few) == len(ROWS)
    for row in few:
        assert f"| {100 * row.decided:.3g} % |" in lead


def test_every_row_that_misses_has_a_reason():
    assert [
        row
        for row in ROWS.values()
        if row.verdict == "misses" and reason_of(row) is None
    ] == []
    known = {
        (promise.name, shape)
        for promise in _every_promise()
        for shape in promise.shapes
    }
    peers = re.compile("^(uncertainty-calibration|MAPIE|MCGrad|statsmodels)")
    assert {key for key in ROWS if not peers.match(key[0])} <= known


def test_data_that_broke_a_promise_have_rows():
    """So have the worst worlds that were searched for, in each family."""
    for promises in (*HARD.values(), *FOUND.values()):
        for promise in promises:
            for shape in promise.shapes:
                assert ROWS[promise.name, shape].runs >= 400, (promise.name, shape)
    found = [promise.name for promises in FOUND.values() for promise in promises]
    for promise in (
        "importance weights",
        "compare in clusters",
        "change",
        "net benefit",
        "summary of a world",
        "certified precision",
        "routing",
        "limits of one probability of a world",
        "simultaneous band of a world",
        "estimated performance of a world",
    ):
        assert any(name.startswith(promise) for name in found), promise


_MODULES = (
    skcalib,
    decisions,
    displays,
    engines,
    evaluation,
    export,
    guarantees,
    maps,
    metrics,
    model_selection,
    monitoring,
    simulation,
)


def _functions_with(parameter):
    """Return the names of public functions and methods that take a parameter."""
    found = set()
    for module in _MODULES:
        for name in module.__all__:
            door = getattr(module, name)
            by_name = {name: door}
            if inspect.isclass(door):
                methods = inspect.getmembers(door, callable)
                by_name = {
                    f"{name}.{method}": function
                    for method, function in methods
                    if not method.startswith(("_", "set_"))  # metadata requests
                }
            for path, function in by_name.items():
                if parameter in _parameters(function):
                    found.add(path)
    return found


def _parameters(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):  # a class that is written in C
        return {}


@pytest.mark.parametrize(
    ("parameter", "promises"), [("weight_type", WEIGHTS), ("clusters", CLUSTERS)]
)
def test_every_function_with_weights_or_clusters_has_rows(parameter, promises):
    """Each is looked at on all data that say little, and has rows, or there is a reason
    for none.
    """
    assert _functions_with(parameter) == set(promises)
    shapes = {}  # by promise
    for promise in _every_promise():
        shapes.setdefault(promise.name, set()).update(promise.shapes)
    kinds = ["empty clusters"]
    if parameter == "weight_type":
        kinds = ["sampled labels", "rare events", "heavy rows"]
    has_rows = {promise for promise, _ in ROWS}
    for function, names in promises.items():
        if isinstance(names, str):
            assert len(names) > 20, function  # a reason
            continue
        every_name = [*names, *(f"{kind}: {name}" for kind in kinds for name in names)]
        assert has_rows & set(every_name), function
        for kind in kinds:
            looked_at = set()
            for name in names:
                looked_at |= shapes.get(f"{kind}: {name}", set())
            if looked_at:
                assert looked_at >= set(DATA[kind]), (function, kind)
                continue
            # The guarantees and the hospitals have clusters of their own.
            assert parameter == "clusters", (function, kind)
            own = set().union(*(shapes[name] for name in names))
            assert any(_share_of_empty_clusters(shape) > 0.1 for shape in own), function


def _share_of_empty_clusters(shape):
    """Return the mean share of clusters without the rarer label, in twenty samples."""
    shares = []
    for seed in range(20):
        sample = SHAPES[shape](np.random.default_rng(seed))
        is_rare = sample.labels != (sample.labels.mean() > 0.5)
        shares.append(np.mean(np.bincount(sample.clusters, is_rare) == 0))
    return np.mean(shares)


@pytest.mark.parametrize("shape", [name for names in DATA.values() for name in names])
def test_data_that_say_little_are_what_they_are_called(shape):
    sample = SHAPES[shape](np.random.default_rng(0))
    number = re.match(r"[0-9.]+", shape)
    if "events expected" in shape:
        scores, _ = sample.population()
        expected = len(sample.scores) * scores.mean()
        assert expected == pytest.approx(float(number[0]), rel=0.03)
    elif "without events" in shape:
        share = float(re.search(r"(\d+) % without", shape)[1]) / 100
        assert _share_of_empty_clusters(shape) == pytest.approx(share, abs=0.05)
    elif " at random" in shape:
        heavy = sample.sample_weight == sample.sample_weight.max()
        assert 0.02 < heavy.mean() < 0.08
        assert sample.sample_weight.max() == 50 * sample.sample_weight.min()
    else:
        of_label = [sample.sample_weight[sample.labels == k].mean() for k in (0, 1)]
        larger = max(of_label) / min(of_label)
        ratio = re.search(r"1 of (\d+) others(?! by)", shape)
        if ratio:
            assert larger == pytest.approx(float(ratio[1]))
        assert larger > 1.1
        is_function_of_label = np.ptp(sample.sample_weight[sample.labels == 0]) == 0
        assert is_function_of_label == bool(ratio)


@pytest.mark.slow
@pytest.mark.parametrize("shape", WORLDS)
def test_intervals_of_sampled_labels_are_as_narrow_as_they_may_be(shape):
    """At most 1.15 times as wide as the oracle's but for one named world, as the page
    says; the standard error of a standard deviation from 60 data sets is 9 %.
    """
    page = (ROOT / "doc/evidence/levels.md").read_text()
    table = page.split("## Widths where weights depend on the label")[1].split("## ")[0]
    (line,) = re.findall(rf"^\| {re.escape(shape)} \| (.*) \|$", table, re.M)
    on_page = [float(cell) for cell in line.split(" | ")]
    found = list(width_ratios(shape, 60).values())
    assert found == pytest.approx(on_page, rel=0.25)
    assert max(on_page) <= (1.35 if "1 of 200 others" in shape else 1.15)
    assert min(on_page) >= 0.85


def _every_promise():
    found = [promise for promises in FOUND.values() for promise in promises]
    hard = [promise for promises in HARD.values() for promise in promises]
    labels = [one for promises in SEVERAL_LABELS.values() for one in promises]
    labels += [one for promises in SAMPLED.values() for one in promises]
    few = [one for promises in FEW_EVENTS.values() for one in promises]
    return (
        labels
        + few
        + INTERVALS
        + BANDS
        + SUMMARY
        + HOSPITALS
        + PERFORMANCE
        + PROBABILITIES
        + TESTS
        + BROKEN
        + hard
        + found
    )


def _docstring(described):
    """Return a docstring in one line, with percentages written as on the pages."""
    text = " ".join(described.__doc__.split())
    return re.sub(r"(\d)%", r"\1 %", text)


def _share(promise, shape):
    # as on the page
    return f"{100 * float(f'{ROWS[promise, shape].measured:.3f}'):.1f} %"


def test_figures_of_the_guide_are_those_of_the_rows():
    text = _docstring(calibration_test)
    hosmer = "Beta(1, 999), calibrated, n = 1000", "Beta(1, 19), calibrated, n = 200"
    assert (
        f"the test rejects {_share('Hosmer-Lemeshow', hosmer[0])} of calibrated models"
        " with scores from Beta(1, 999)" in text
    )
    assert f"{_share('Hosmer-Lemeshow', hosmer[1])} with Beta(1, 19)" in text
    one = "constant .01, n = 100"
    assert (
        f"n = 100, it rejects {_share('Hosmer-Lemeshow', one)}, and with 20 uniform"
        " scores" in text
    )
    assert (
        f"20 uniform scores, {_share('Hosmer-Lemeshow', 'calibrated, n = 20')}" in text
    )
    assert (
        f"Spiegelhalter's test rejects {_share('Spiegelhalter', one)} with a constant"
        " score of .01" in text
    )
    basic = [
        100 * (1 - row.measured) for (name, _), row in ROWS.items() if "basic" in name
    ]
    low, high = f"{min(basic):.0f}", f"{max(basic):.0f}"
    assert f"in {low} to {high} % of simulations" in " ".join(
        (ROOT / "doc/which_error.md").read_text().split()
    )
    described = _docstring(calibration_error_interval)
    assert f"in {low} % to {high} % of the data sets" in described


def test_figures_of_certificates_are_those_of_the_rows():
    guide = " ".join((ROOT / "doc/which_threshold.md").read_text().split())
    text = _docstring(certified_threshold)
    naive = [
        row.measured for (name, _), row in ROWS.items() if name.startswith("naive")
    ]
    low, high = f"{100 * min(naive):.0f}", f"{100 * max(naive):.0f}"
    assert f"in {low} % to {high} % of the data sets" in text
    assert f"in {low} to {high} % of the data sets" in guide
    n_broken = sum(share > 0.1 for share in naive)
    assert f"for {n_broken} of {len(naive)} kinds of data" in guide
    rng = np.random.default_rng(0)
    scores = rng.random(500)
    y = rng.random(500) < scores
    found = certified_threshold(y, scores, promise="precision", target=0.8)
    said = " ".join(found.assumptions)
    guided = [
        row.measured
        for (name, _), row in ROWS.items()
        if name in ("error when answered", "precision")
    ]
    most = f"in at most {100 * max(guided):.1f} % of"
    assert most in said
    assert most in guide
    platt, isotonic, cross_fitted = (
        _worst(f"precision, {name}")
        for name in (
            "Platt's map of the same rows",
            "isotonic map of the same rows",
            "cross-fitted isotonic map",
        )
    )
    assert f"in up to {platt} of data sets after Platt scaling" in said
    assert f"in up to {isotonic} after isotonic regression" in said
    vector = _worst("error when answered, vector scaling of the same rows")
    assert f"in up to {vector} after vector scaling with 27 classes." in said
    options = {"promise": "precision", "target": 0.8, "fitted_on": "cross-fitted"}
    said = " ".join(certified_threshold(y, scores, **options).assumptions)
    assert f"violated in at most {cross_fitted} of data sets" in said


def test_figures_of_intervals_are_those_of_the_rows():
    text = _docstring(calibration_error_interval)
    names = re.compile(
        "l1, d|l2|ECE, 15 bins$|maximum|worst class|sweep|smooth|KDE|neigh|Kolm|Kuiper"
    )
    shares = [
        row.measured
        for (name, _), row in ROWS.items()
        if row.kind == "coverage" and names.match(name)
    ]
    low, high = (f"{100 * end(shares):.0f}" for end in (min, max))
    assert f"covered the error in {low} % to {high} % of the data sets" in text
    one_bin = ROWS["l1, plugin, 15 bins", "one of 15 bins off by .3, 600 rows"]
    assert f"they covered it in {100 * one_bin.measured:.0f} % if one of" in text


def test_figures_of_rows_in_time_are_those_of_the_rows():
    guide = " ".join((ROOT / "doc/which_error.md").read_text().split())
    time = "autocorrelation .8, 2,000 rows"
    shares = [
        100 * ROWS[f"{name} without clusters", time].measured
        for name in ("Kuiper", "Kolmogorov-Smirnov")
    ]
    assert f"reject {min(shares):.0f} to {max(shares):.0f} % of calibrated" in guide
    blocks = ROWS["resampled Kuiper, blocks of 50 rows as clusters", time]
    assert f"as clusters, they reject {100 * blocks.measured:.0f} %" in guide


def test_figures_without_labels_are_those_of_the_rows():
    page = " ".join((ROOT / "doc/after_release.md").read_text().split())
    rows = [
        row
        for row in ROWS.values()
        if row.promise.startswith("estimated") and "of a world" not in row.promise
    ]
    known = [row for row in rows if row.shape.endswith("200 labels known")]
    mix = [row for row in rows if row.shape.endswith("another mix of features")]
    early = [row for row in rows if row.shape.endswith("twice as early")]
    at_random = [row for row in rows if "random labels" in row.shape]
    right = [row for row in rows if row not in known + mix + early + at_random]
    assert len(right) == 4 * 9
    assert (
        f"coverage of {_span(right)} % ([measured levels](evidence/levels.md));"
        " coverage was lowest" in page
    )
    assert "lowest with 300 labelled samples" in page
    assert min(right, key=lambda row: row.measured).shape.endswith("few labelled")
    assert max(row.measured for row in mix) < 0.01
    assert "covered the true value in less than 1 % of the runs" in page
    share = f"covered the true value in {_span(known)} % of the runs"
    assert f"2,000 new samples, the intervals {share}" in page
    share = f"covered the true value in {_span(early)} % of the runs"
    assert f"in half the time that non-events took, a 90 % interval {share}" in page


def test_figures_of_net_benefit_in_clusters_are_those_of_the_rows():
    text = _docstring(net_benefit)
    name = "net benefit in clusters at a threshold"
    worst = min(row.measured for (promise, _), row in ROWS.items() if promise == name)
    assert f"the coverage of a 90 % interval was .{100 * worst:.0f}. The" in text


def _short(promise, shape):
    """Return a share with two decimals, as prose has it."""
    return f"{ROWS[promise, shape].measured:.2f}".removeprefix("0")


def test_figures_of_clusters_are_those_of_the_rows():
    shape = "25 hospitals alike within"
    of_clusters = _short("bars by cluster", shape)
    without = _short("bars without clusters", shape)
    diagram = _docstring(ReliabilityDisplay.from_predictions)
    assert (
        f"the coverage of the 90 % bars was {of_clusters} with `clusters` and {without}"
        " without" in diagram
    )


def test_figures_of_slopes_in_clusters_are_those_of_the_rows():
    text = _docstring(calibration_slope_intercept)
    rows = {
        shape: row
        for (promise, shape), row in ROWS.items()
        if promise == "calibration slope, clusters"
    }
    many = rows["100 clusters of 10, risk .05, correlation 0.5"]
    few = rows["30 clusters of 40, risk .05, correlation 0.5"]
    assert f"{100 * many.decided:.0f} % of the data sets with 100 clusters" in text
    assert few.decided == 0
    assert "and none of those with 30 clusters of 40" in text
    measured = [row.measured for row in rows.values() if row.decided > 0.05]
    low, high = (f"{end(measured):.2f}".lstrip("0") for end in (min, max))
    assert f"and {low} to {high} with 6 to 100 clusters" in text


def test_figures_of_a_gain_and_of_an_area_are_those_of_the_rows():
    covered = _short(
        "recalibration gain, Platt scaling", "1 % events, calibrated, n = 1000"
    )
    text = _docstring(recalibration_gain)
    assert f"samples, the coverage of a 90 % interval was {covered}." in text
    name = "summary of a world: auc"
    worst = min(row.measured for (promise, _), row in ROWS.items() if promise == name)
    text = _docstring(calibration_summary)
    assert f"coverage of a 95 % interval was .{100 * worst:.0f} in a" in text


def test_figures_of_a_shift_are_those_of_the_rows():
    name = "shift between two calibrated samples"
    worst = min(row.measured for (promise, _), row in ROWS.items() if promise == name)
    text = _docstring(calibration_change)
    assert "with 27 samples in each data set" in text
    assert f"the coverage of a 90 % interval was .{100 * worst:.0f}." in text
    (world,) = (shape for promise, shape in ROWS if promise == name)
    assert world.startswith("found: n 27.3,")


def test_figures_of_several_labels_are_those_of_the_rows():
    guide = " ".join((ROOT / "doc/pipelines.md").read_text().split())
    calibrated, off = (
        f"8 labels alike, {name}, 300 rows" for name in ("calibrated", "p^1.6")
    )
    rejected = ROWS["resampled ECE, several labels", calibrated].measured
    measured = f"{rejected:.3f}".removeprefix("0")
    assert f"rejects calibration in {measured} of the calibrated data sets" in guide
    covered = _short("ECE, several labels", off)
    assert (
        f"coverage of the 90 % interval is {covered} ([measured"
        " levels](evidence/levels.md))" in guide
    )


def test_figures_of_other_pages_are_those_of_tables_and_laws():
    too_few = chi2.sf(chi2.isf(0.05, 8), 10)
    text = _docstring(calibration_test)
    assert f"would reject {100 * too_few:.0f} % of calibrated models" in text


def test_figures_of_families_of_groups_are_those_of_the_page():
    guide = " ".join((ROOT / "doc/which_groups.md").read_text().split())
    page = (ROOT / "doc/evidence/levels.md").read_text()
    table = page.split("## Families of groups")[1].split("##")[0]
    holm, exact = np.array(
        re.findall(r"\| (\.\d+) \| (\.\d+) \|$", table, re.M), dtype=float
    ).T
    low, high = f"{100 * holm.min():.0f}", f"{100 * holm.max():.0f}"
    assert (
        f"for small groups, for which this happens in only {low} to {high} % of cases"
        in guide
    )
    assert exact.min() > 0.045
    assert "brings this rate close to 5 %" in guide


def _span(rows):
    shares = [row.measured for row in rows]
    low, high = (f"{100 * end(shares):.0f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def test_figures_of_a_verified_model_are_those_of_the_rows():
    text = _docstring(ScalingBinning.verify)
    shares = [
        100 * ROWS["verify, 10 bins", f"s^1.6, n = {n}"].measured for n in (200, 1500)
    ]
    low, high = f"{min(shares):.0f}", f"{max(shares):.0f}"
    span = low if low == high else f"{low} % to {high}"
    assert f"holds in {span} % of the data sets" in text
    rare = ROWS["sampled labels: verify, 10 bins", "events and 1 of 20 others, n = 600"]
    assert f"the bound holds in {100 * rare.measured:.0f} % of the data sets" in text


def test_figures_of_hospitals_are_those_of_the_page():
    guide = " ".join((ROOT / "doc/reporting.md").read_text().split())
    new = [row for row in ROWS.values() if "of a new hospital" in row.promise]
    median = [row for row in ROWS.values() if "the median hospital" in row.promise]
    assert f"a new hospital covered the true value in {_span(new)} % of cases" in guide
    assert f"those for the median hospital in {_span(median)} %" in guide
    shapes = {row.shape.split(" hospitals")[0] for row in new}
    assert shapes == {"3", "5", "6", "10", "20", "25", "50", "60"}


def test_figures_of_monitors_are_those_of_the_page():
    text = _docstring(CalibrationMonitor)
    page = (ROOT / "doc/evidence/levels.md").read_text()

    def delays(monitor):
        line = re.search(rf"^\| {re.escape(monitor)} \|.*$", page, re.M)[0]
        return [cell.strip() for cell in line.split("|")[-3:-1]]

    first, second = delays("`confidence_level=0.95, restarts=True`")
    assert f"the median delay is {first} or {second} samples" in text
    first, second = delays("`confidence_level=0.95`")
    assert f"and {first} or {second} without `restarts`" in text
    first, second = delays("known shift, with restarts, level .05")
    assert f"needs {first} or {second} samples" in text


def _worst(name):
    rows = [row.measured for (promise, _), row in ROWS.items() if promise == name]
    return f"{100 * max(rows):.1f} %"


def test_rows_of_a_file_are_not_simulated_again(tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    page = tmp_path / "page.md"
    page.write_text((ROOT / "doc/evidence/levels.md").read_text())
    only = ["--only", "^Spiegelhalter, calibrated, n = (20|60)$", "--rows", str(rows)]
    main([*only, "--runs", "3"])
    main([*only, "--runs", "3", "--page", str(page)])
    assert capsys.readouterr().err.count("Spiegelhalter") == 2
    main([*only, "--runs", "3", "--before", date.today().isoformat()])
    assert capsys.readouterr().err == ""
    main([*only, "--runs", "3", "--before", "9999-01-01"])
    assert capsys.readouterr().err.count("Spiegelhalter") == 2
    rows.write_text("\n".join(rows.read_text().splitlines()[:2]) + "\n")
    main([*only, "--runs", "5"])
    found = read_rows(rows)
    assert {(row.runs, row.shape) for row in found.values()} == {
        (5, "calibrated, n = 60"),
        (5, "calibrated, n = 20"),
    }
    assert len(rows.read_text().splitlines()) == 4
    text = page.read_text()
    assert re.search(
        r"\| tests in closed form \| 0\.05 \| [\d. to]+ \| 2 \| \d \|", text
    )
    assert text.endswith(
        (ROOT / "doc/evidence/levels.md")
        .read_text()
        .split("<!-- end of the tables -->")[1]
    )
    lost = Row(
        "size", "resampled l2", "calibrated, n = 60", 0.05, 0.9, 0.01, 400, "misses"
    )
    assert "**not named**" in with_tables(text, [lost])
    equal = [replace(lost, shape=shape) for shape in "ab"]
    assert "| resampled l2 | a; b |" in with_tables(text, equal)
