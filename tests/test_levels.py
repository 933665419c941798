"""The table of levels runs, and its verdicts are those of its numbers. What holds is simulated there, not here."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.levels.__main__ import main, measure
from benchmarks.levels.decisions import BANDS, BROKEN
from benchmarks.levels.page import Row, read_rows, reason_of, with_tables
from benchmarks.levels.promises import INTERVALS, TESTS, Promise, without_noise
from benchmarks.levels.shapes import SHAPES
from benchmarks.levels.summary import SUMMARY
from skcalib.binning import EqualMass
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_test,
)

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
        "2 bins|^Kuiper|slope",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=300
    )
    rows = json.loads(done.stdout)
    assert {row["kind"] for row in rows} == {"coverage", "size"}
    for row in rows:
        assert 0 <= row["measured"] <= 1
        assert row["standard_error"] > 0
        assert row["verdict"] in ("holds", "misses")


def test_promises_have_their_own_names_and_known_shapes():
    promises = INTERVALS + TESTS
    assert len({(promise.name, promise.promised) for promise in promises}) == len(
        promises
    )
    assert {shape for promise in promises for shape in promise.shapes} <= set(SHAPES)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_draw_their_labels_from_the_truth(shape):
    samples = [SHAPES[shape](np.random.default_rng(seed)) for seed in range(30)]
    differences = []
    for sample in samples:
        if sample.truth.ndim == 1:
            differences.append(
                np.average(sample.labels - sample.truth, weights=sample.sample_weight)
            )
        else:
            differences.append(np.mean(sample.labels == 0) - sample.truth[:, 0].mean())
    assert abs(np.mean(differences)) < 4 * np.std(differences) / np.sqrt(30) + 1e-12


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


ROWS = read_rows(ROOT / "benchmarks/levels/rows.jsonl")


def test_the_page_is_made_of_the_rows():
    page = (ROOT / "doc/levels.md").read_text()
    assert with_tables(page, list(ROWS.values())) == page
    assert "**not named**" not in page
    names = re.findall(
        r"^\| `?([^|]*?)`? \|", page.split("## In ten lines")[1].split("##")[0], re.M
    )
    assert len(names) <= 14


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


def _every_promise():
    return INTERVALS + BANDS + SUMMARY + TESTS + BROKEN


def _share(promise, shape):
    return (
        f"{100 * float(f'{ROWS[promise, shape].measured:.3f}'):.1f} %"  # as on the page
    )


def test_figures_of_the_guide_are_those_of_the_rows():
    text = " ".join(calibration_test.__doc__.split())
    hosmer = "Beta(1, 999), calibrated, n = 1000", "Beta(1, 19), calibrated, n = 200"
    assert (
        f"it rejects {_share('Hosmer-Lemeshow', hosmer[0])} of calibrated models with scores from Beta(1, 999)"
        in text
    )
    assert f"{_share('Hosmer-Lemeshow', hosmer[1])} with Beta(1, 19)" in text
    one = "constant .01, n = 100"
    assert (
        f"n = 100 it rejects {_share('Hosmer-Lemeshow', one)}, and with 20 uniform scores"
        in text
    )
    assert (
        f"20 uniform scores {_share('Hosmer-Lemeshow', 'calibrated, n = 20')}" in text
    )
    assert (
        f"Spiegelhalter's test rejects {_share('Spiegelhalter', one)} with a constant score of .01"
        in text
    )
    basic = [
        100 * (1 - row.measured) for (name, _), row in ROWS.items() if "basic" in name
    ]
    span = f"{min(basic):.0f} to {max(basic):.0f} %"
    assert f"in {span} of samples" in " ".join(
        (ROOT / "doc/which_error.md").read_text().split()
    )
    assert f"in {span} of samples" in " ".join(
        calibration_error_interval.__doc__.split()
    )


def test_rows_of_a_file_are_not_simulated_again(tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    page = tmp_path / "page.md"
    page.write_text((ROOT / "doc/levels.md").read_text())
    only = ["--only", "^Spiegelhalter, calibrated, n = (20|60)$", "--rows", str(rows)]
    main([*only, "--runs", "3"])
    main([*only, "--runs", "3", "--page", str(page)])
    assert capsys.readouterr().err.count("Spiegelhalter") == 2
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
        (ROOT / "doc/levels.md").read_text().split("<!-- end of the tables -->")[1]
    )
    lost = Row(
        "size", "resampled l2", "calibrated, n = 60", 0.05, 0.9, 0.01, 400, "misses"
    )
    assert "**not named**" in with_tables(text, [lost])
    equal = [replace(lost, shape=shape) for shape in "ab"]
    assert "| resampled l2 | a; b |" in with_tables(text, equal)
