"""The benchmark of tensors runs; nothing is timed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow  # in a process of its own, as SciPy needs
def test_it_prints_a_line_for_each_job():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    options = ["--device", "cpu", "--sizes", "200x5", "--seconds", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.device", *options],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    first, _, *lines = done.stdout.splitlines()
    assert first.startswith("device: cpu (the processor: its time on one thread")
    jobs = ["fit temperature", "fit vector scaling", "top-label error", "predict"]
    assert [line.partition(",")[0] for line in lines] == jobs
    for line in lines:
        seconds, *_ = line.partition("200 x 5")[2].split()
        assert 0 < float(seconds) < 600
    assert "torch softmax" in lines[-1]
