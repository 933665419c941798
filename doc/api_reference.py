"""The pages of the API reference as data: what stands in which section. The names come
from ``__all__``.
"""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import skcalib

# Module, title, what a reader finds there, the page of the guide, and the names (None:
# those that stand nowhere else).
SECTIONS = [
    (
        "skcalib",
        "Start here",
        (
            "Around or behind a classifier. `RecalibratedClassifierCV(model)` chooses"
            " the method itself."
        ),
        "pipelines",
        [
            "RecalibratedClassifierCV",
            "CrossFittedClassifier",
            "Recalibrator",
            "StackedRecalibrator",
        ],
    ),
    (
        "skcalib",
        "Smooth maps",
        "Scores in, probabilities out: few parameters, for few samples.",
        "which_recalibrator",
        None,
    ),
    (
        "skcalib",
        "Steps and bins",
        "Maps with few values, and those that carry a certificate.",
        "how_many_bins",
        [
            "HistogramBinning",
            "UniformMassBinning",
            "ScalingBinning",
            "IsotonicCalibration",
            "VennAbers",
        ],
    ),
    (
        "skcalib",
        "Many classes",
        "Maps that look at all columns of a row at once.",
        "many_classes",
        [
            "TemperatureScaling",
            "ClasswiseTemperatureScaling",
            "EnsembleTemperatureScaling",
            "VectorScaling",
            "MatrixScaling",
            "DirichletCalibration",
        ],
    ),
    (
        "skcalib",
        "Groups and other class frequencies",
        "One map for each group, and a new base rate without a curve.",
        "which_groups",
        [
            "GroupwiseRecalibrator",
            "MulticalibratedRecalibrator",
            "PriorShift",
            "estimate_target_prior",
        ],
    ),
    (
        "skcalib",
        "Streams",
        "A map that learns while it serves.",
        "after_release",
        ["OnlineRecalibrator"],
    ),
    (
        "skcalib",
        "Labels",
        "Labels that are distributions, or not known for all samples yet.",
        "deploying",
        ["expand_soft_labels", "censored_labels"],
    ),
    (
        "skcalib.metrics",
        "Errors",
        "How far off are the probabilities?",
        "which_error",
        None,
    ),
    (
        "skcalib.metrics",
        "Intervals and tests",
        "How well is that known, and is it more than noise?",
        "which_error",
        [
            "calibration_error_interval",
            "calibration_test",
            "calibration_slope_intercept",
        ],
    ),
    (
        "skcalib.metrics",
        "Groups",
        "Is it right for every group?",
        "which_groups",
        [
            "calibration_by_group",
            "segment_calibration_test",
            "groupwise_calibration_error",
        ],
    ),
    (
        "skcalib.metrics",
        "Decompositions",
        "What recalibration can save, and what only a better model can.",
        "scores",
        [
            "brier_decomposition",
            "log_loss_decomposition",
            "ranked_probability_score",
            "ranked_probability_decomposition",
        ],
    ),
    (
        "skcalib.metrics",
        "Curves and sums",
        "The numbers behind the pictures, and sums that can be merged.",
        "displays",
        ["BinStatistics", "ClassBinStatistics", "reliability_curve", "validity_curve"],
    ),
    (
        "skcalib.metrics",
        "Metrics of your own",
        "An error with its interval, its test and its scorer.",
        "contributing",
        ["CalibrationError", "ErrorPower", "Metric", "register_metric"],
    ),
    (
        "skcalib.metrics",
        "Scorers",
        "For `scoring=`.",
        "pipelines",
        ["get_scorer", "get_scorer_names"],
    ),
    (
        "skcalib.evaluation",
        "Evaluation",
        "Summaries, comparisons, and what recalibrating would gain.",
        "which_error",
        None,
    ),
    (
        "skcalib.model_selection",
        "Model selection",
        "How to choose among recalibrators in a search.",
        "pipelines",
        None,
    ),
    (
        "skcalib.binning",
        "Binning strategies",
        "Objects for `binning=`.",
        "how_many_bins",
        None,
    ),
    (
        "skcalib.guarantees",
        "Guarantees",
        "Certificates, bounds, and the numbers of bins and samples that they need.",
        "how_many_bins",
        None,
    ),
    (
        "skcalib.decisions",
        "Decisions",
        "Thresholds with a promise, costs and net benefit.",
        "which_threshold",
        None,
    ),
    (
        "skcalib.monitoring",
        "Monitoring",
        "Calibration over time.",
        "after_release",
        None,
    ),
    (
        "skcalib.export",
        "Export",
        "Fitted recalibrators as JSON, SQL, ONNX and JavaScript.",
        "deploying",
        None,
    ),
    (
        "skcalib.engines",
        "Tables",
        "Calibration where the table lives.",
        "large_tables",
        None,
    ),
    (
        "skcalib.displays",
        "Displays",
        "Pictures. They need matplotlib.",
        "displays",
        None,
    ),
    (
        "skcalib.simulation",
        "Simulation",
        "Scores with a known calibration error.",
        "which_error",
        None,
    ),
    (
        "skcalib.recalibrators",
        "Bases",
        "What a recalibrator of your own derives from.",
        "contributing",
        ["BaseRecalibrator", "BinaryRecalibrator", "LogitRecalibrator"],
    ),
    (
        "skcalib.maps",
        "Whole maps",
        "What `predict_proba` computes, as a tree of nodes.",
        "contributing",
        ["CalibrationMap", "calibration_map", "map_of", "has_map", "Rows", "Node"],
    ),
    (
        "skcalib.maps",
        "Nodes of maps",
        "What `_map` of a recalibrator of your own is made of.",
        "contributing",
        None,
    ),
    (
        "skcalib.maps",
        "Forms of maps",
        "Nodes put together, the same for two classes and for more.",
        "contributing",
        [
            "step_function",
            "piecewise_polynomial",
            "just_below",
            "clipped_probability",
            "two_logits",
            "class_probabilities",
            "log_probabilities",
            "normalized_rows",
            "predicted_class",
            "linear_form",
        ],
    ),
]
# What a minor release may change without a deprecation, and why: modules and names. All
# others are stable.
PROVISIONAL = {
    "skcalib.OnlineRecalibrator": "it is new, and its members may change",
    "skcalib.MulticalibratedRecalibrator": (
        "its stopping rule and its defaults are young"
    ),
    "skcalib.decisions": "the promises and their names are young",
    "skcalib.displays.DecisionCurveDisplay": (
        "it shows what `skcalib.decisions` computes"
    ),
    "skcalib.displays.MonitorDisplay": "it shows what a monitor computes",
    "skcalib.displays.MulticalibrationDisplay": (
        "it shows what `MulticalibratedRecalibrator` learned"
    ),
    "skcalib.displays.RiskCoverageDisplay": (
        "it shows what `skcalib.decisions` computes"
    ),
    "skcalib.metrics.CalibrationError": "extension API: its hooks are young",
    "skcalib.metrics.ErrorPower": "extension API: its hooks are young",
    "skcalib.metrics.Metric": "extension API: its fields are young",
    "skcalib.metrics.register_metric": "extension API: its fields are young",
    "skcalib.metrics.decision_calibration_error": "its name and its units are young",
    "skcalib.metrics.two_bin_calibration_error": "the measure is young",
    "skcalib.monitoring.CalibrationMonitor": (
        "the bets behind its alarms may become stronger"
    ),
    "skcalib.monitoring.GroupMonitors": (
        "the bets behind its alarms may become stronger"
    ),
}
MODULES = ["skcalib", *(f"skcalib.{name}" for name in skcalib._SUBMODULES)]
_MOST_PAGES = 3
# Modules whose names are words of the language ("Rows", "Scores"): a page that has the
# word does not speak of the name.
_PLAIN_WORDS = {"skcalib.maps"}
# The page that tells no one how to use a name.
EVIDENCE = "evidence"


def names(module, title):
    """Return the public names of a section."""
    listed = {one[1]: one[4] for one in SECTIONS if one[0] == module}
    if listed[title] is not None:
        return listed[title]
    elsewhere = {name for some in listed.values() for name in some or ()}
    public = import_module(module).__all__
    return [
        name for name in public if not name.startswith("__") and name not in elsewhere
    ]


def provisional():
    """Return the reason for each public name that is provisional."""
    paths = (
        f"{module}.{name}"
        for module, title, *_ in SECTIONS
        for name in names(module, title)
    )
    reasons = (
        (path, PROVISIONAL.get(path, PROVISIONAL.get(path.rpartition(".")[0])))
        for path in paths
    )
    return {path: reason for path, reason in reasons if reason}


def guide_pages(folder):
    """Return the guide pages of each public name: that of its section, then those that
    name it most.
    """
    folder = Path(folder)
    guide = re.findall(
        r"\]\((\w+)\.md\)", (folder / "getting_started.md").read_text("utf-8")
    )
    texts = {
        page: (folder / f"{page}.md").read_text("utf-8")
        for page in guide
        if page != EVIDENCE
    }
    pages = {}
    for module, title, _, own, _ in SECTIONS:
        for name in names(module, title):
            counts = {
                page: len(re.findall(rf"\b{name}\b", text))
                for page, text in texts.items()
                if page != own
            }
            others = sorted(
                (page for page in counts if counts[page]),
                key=lambda page: -counts[page],
            )
            if module in _PLAIN_WORDS:
                others = []
            pages[f"{module}.{name}"] = [own, *others][:_MOST_PAGES]
    return pages


def examples(folder):
    """Return what each example of the gallery shows, by its file: pages of the guide,
    and public names, by count.
    """
    public = {
        name
        for module, title, *_ in SECTIONS
        if module not in _PLAIN_WORDS
        for name in names(module, title)
    }
    found = {}
    for path in sorted(Path(folder).glob("gallery/plot_*.py")):
        source = path.read_text("utf-8")
        used = Counter(word for word in re.findall(r"\w+", source) if word in public)
        found[f"gallery/{path.name}"] = re.findall(r":doc:`/(\w+)`", source), used
    return found


def examples_of_pages(folder):
    """Return the examples of each page of the guide: those that name it at their
    end.
    """
    pages = {}
    for example, (named, _) in examples(folder).items():
        for page in named:
            pages.setdefault(page, []).append(example)
    return pages


def examples_of_names(folder):
    """Return the examples of each public name: those that use it most, else those of
    its first page of the guide.
    """
    shown, of_page = examples(folder), examples_of_pages(folder)
    found = {}
    for path, pages in guide_pages(folder).items():
        name = path.rpartition(".")[2]
        using = sorted(
            (one for one in shown if shown[one][1][name]),
            key=lambda one: -shown[one][1][name],
        )
        found[path] = (using or of_page.get(pages[0], []))[:_MOST_PAGES]
    return found


def text():
    """Return the source of the reference page."""
    parts = [
        "API reference\n=============\n\nNames are stable, but for those whose page"
        " says *provisional*: see :ref:`stable-and-provisional`.\n"
    ]
    for module, title, words, page, _ in SECTIONS:
        if module in MODULES or module == "skcalib.recalibrators":
            listed = "\n".join(f"   {name}" for name in names(module, title))
            parts.append(
                f".. currentmodule:: {module}\n\n{title}\n{'-' * len(title)}\n\n{words}"
                f" Guide: :doc:`{page}`.\n\n.. autosummary::\n   :toctree: _generated\n"
                f"   :caption: {title}\n\n{listed}\n"
            )
    return "\n".join(parts)


def write(folder):
    """Write the page into a folder, unless it is there already; remove the pages of
    names that are gone.
    """
    path = Path(folder) / "api.rst"
    if not path.exists() or path.read_text("utf-8") != text():
        path.write_text(text(), "utf-8")
    listed = {
        f"{module}.{name}"
        for module, title, *_ in SECTIONS
        for name in names(module, title)
    }
    for page in Path(folder).glob("_generated/skcalib.*.rst"):
        if page.stem not in listed:
            page.unlink()
