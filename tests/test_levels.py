"""The table of levels runs, and its verdicts are those of its numbers. What holds is simulated there, not here."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.levels.__main__ import measure
from benchmarks.levels.promises import INTERVALS, TESTS, Promise, without_noise
from benchmarks.levels.shapes import SHAPES
from skcalib.binning import EqualMass
from skcalib.metrics import calibration_error

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_command_prints_rows():
    command = [sys.executable, "-m", "benchmarks.levels", "--quick", "--json", "--only", "2 bins|^Kuiper|slope"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=300)
    rows = json.loads(done.stdout)
    assert {row["kind"] for row in rows} == {"coverage", "size"}
    for row in rows:
        assert 0 <= row["measured"] <= 1
        assert row["standard_error"] > 0
        assert row["verdict"] in ("holds", "misses")


def test_promises_have_their_own_names_and_known_shapes():
    promises = INTERVALS + TESTS
    assert len({(promise.name, promise.promised) for promise in promises}) == len(promises)
    assert {shape for promise in promises for shape in promise.shapes} <= set(SHAPES)


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_draw_their_labels_from_the_truth(shape):
    samples = [SHAPES[shape](np.random.default_rng(seed)) for seed in range(30)]
    differences = []
    for sample in samples:
        if sample.truth.ndim == 1:
            differences.append(np.average(sample.labels - sample.truth, weights=sample.sample_weight))
        else:
            differences.append(np.mean(sample.labels == 0) - sample.truth[:, 0].mean())
    assert abs(np.mean(differences)) < 4 * np.std(differences) / np.sqrt(30) + 1e-12


def test_errors_without_noise_are_those_of_the_truth():
    sample = SHAPES["s^1.6, n = 200"](np.random.default_rng(0))
    found = without_noise(sample, calibration_error, norm=1, method="plugin", binning=EqualMass(1))
    assert found == pytest.approx(np.mean(sample.scores - sample.truth))


def test_verdicts():
    shape = "calibrated, n = 60"
    always = Promise("always", 0.9, lambda sample, seed: True, ())
    never = Promise("never", 0.9, lambda sample, seed: False, ())
    assert measure("coverage", always, shape, 5).verdict == "holds"
    assert measure("coverage", never, shape, 5).verdict == "misses"
    assert measure("size", always._replace(promised=0.05), shape, 5).verdict == "misses"
    assert measure("size", never._replace(promised=0.05), shape, 5).verdict == "holds"
