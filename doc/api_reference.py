"""The pages of the API reference as data: what stands in which section. The lists come from ``__all__``."""

from importlib import import_module
from inspect import isclass
from pathlib import Path

import skcalib
from skcalib.recalibrators import BaseRecalibrator

# Module, title, and what a reader finds there.
SECTIONS = [
    ("skcalib", "Recalibrators", "Scores in, probabilities out."),
    ("skcalib", "Composition", "Recalibration around and behind a classifier."),
    ("skcalib.evaluation", "Evaluation", "What recalibrating would gain, and the numbers that a report cites."),
    ("skcalib.model_selection", "Model selection", "How to choose among recalibrators in a search."),
    ("skcalib.binning", "Binning strategies", "Objects for `binning=`."),
    ("skcalib.metrics", "Metrics", "Errors, intervals, tests, groups, curves and scorers."),
    ("skcalib.guarantees", "Guarantees", "Certificates, bounds, and the numbers of bins and rows that they need."),
    ("skcalib.decisions", "Decisions", "Thresholds with a promise, costs and net benefit."),
    ("skcalib.monitoring", "Monitoring", "Calibration over time."),
    ("skcalib.export", "Export", "Fitted recalibrators as JSON, SQL and ONNX."),
    ("skcalib.engines", "Tables", "Calibration where the table lives."),
    ("skcalib.displays", "Displays", "Pictures. They need matplotlib."),
    ("skcalib.simulation", "Simulation", "Scores with a known calibration error."),
]
MODULES = ["skcalib", *(f"skcalib.{name}" for name in skcalib._SUBMODULES)]


def names(module, title):
    """Return the public names of a section."""
    public = [name for name in import_module(module).__all__ if not name.startswith("__")]
    if module != "skcalib":
        return public
    recalibrates = title == "Recalibrators"
    return [name for name in public if _is_recalibrator(getattr(skcalib, name)) == recalibrates]


def _is_recalibrator(thing):
    return not isclass(thing) or issubclass(thing, BaseRecalibrator)


def text():
    """Return the source of the reference page."""
    parts = ["API reference\n=============\n"]
    for module, title, words in SECTIONS:
        if module in MODULES:
            listed = "\n".join(f"   {name}" for name in names(module, title))
            parts.append(
                f".. currentmodule:: {module}\n\n{title}\n{'-' * len(title)}\n\n{words}\n\n"
                f".. autosummary::\n   :toctree: _generated\n   :caption: {title}\n\n{listed}\n"
            )
    return "\n".join(parts)


def write(folder):
    """Write the page into a folder, unless it is there already."""
    path = Path(folder) / "api.rst"
    if not path.exists() or path.read_text("utf-8") != text():
        path.write_text(text(), "utf-8")
