"""Three examples of the gallery run where no thread and no process can be started, as
in a browser's Python.
"""

import multiprocessing.process
import os
import runpy
import subprocess
import threading
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1] / "doc" / "gallery"
EXAMPLES = ["plot_04_is_it_noise", "plot_05_certificate", "plot_15_which_threshold"]


def _refuse(*args, **options):
    raise RuntimeError("can't start new thread or process")


@pytest.fixture
def alone(monkeypatch):
    """Forbid threads and processes, and let pictures be drawn without a window."""
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.setattr(threading.Thread, "start", _refuse)
    monkeypatch.setattr(subprocess.Popen, "__init__", _refuse)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", _refuse)
    if hasattr(os, "fork"):
        monkeypatch.setattr(os, "fork", _refuse)
    yield
    plt.close("all")


def test_nothing_can_be_started(alone):
    with pytest.raises(RuntimeError, match="new thread"):
        threading.Thread(target=print).start()
    with pytest.raises(RuntimeError, match="new thread"):
        subprocess.run(["true"])
    with pytest.raises(RuntimeError, match="new thread"):
        multiprocessing.get_context("spawn").Process(target=print).start()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_examples_run_alone(name, alone):
    runpy.run_path(str(GALLERY / f"{name}.py"))
