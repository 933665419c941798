"""The house: imports go upwards only, private imports have one home, and importing the
package costs nothing else.
"""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import skcalib
from benchmarks.checks import house, small_helpers

PACKAGE = Path(skcalib.__file__).parent

# From the ground up: a file or folder imports only what stands before it. A new one
# needs its place here.
HOUSE = [
    "_guide",
    "_install",
    "_rows",
    "_input",
    "_solvers",
    "_defaults",
    "_progress",
    "_intervals",
    "_verdicts",
    "_described",
    "binning",
    "_cells",
    "_errors",
    "guarantees",
    "_inference",
    "metrics",
    "simulation",
    "maps",
    "_fitting",
    "recalibrators",
    "cross_fitting",
    "recalibrated_classifier",
    "model_selection",
    "monitoring",
    "evaluation",
    "decisions",
    "export",
    "engines",
    "displays",
    "__init__",
    "_report",
    "_demo",
    "__main__",
]
# Optional packages: imported inside functions, if at all.
OPTIONAL = (
    "matplotlib",
    "jinja2",
    "pandas",
    "polars",
    "narwhals",
    "pyarrow",
    "duckdb",
    "dask",
    "pyspark",
    "torch",
    "tqdm",
    "onnx",
    "onnxruntime",
    "skl2onnx",
)


@cache
def _modules():
    """Return the parsed files of the package by their path in it, without ".py"."""
    return {
        path.relative_to(PACKAGE).with_suffix(""): ast.parse(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@cache
def _calls_of_modules():
    """Return the calls in each file, by its path, each as (name, node): see `_called`.

    Every rule of the form "only this file calls that" reads them.
    """
    return {path: list(_calls(tree)) for path, tree in _modules().items()}


def _calls(tree):
    """Yield (name of what is called, node) of each call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield _called(node), node


@cache
def _imports_of_modules():
    """Return what each file imports, by its path: see `_imports`."""
    return {path: list(_imports(tree)) for path, tree in _modules().items()}


def _imports(node, runs="import"):
    """Yield (module, name or None, when it runs) of every import: "import",
    "call" or "never", that is for type checkers.
    """
    if isinstance(node, ast.FunctionDef) and runs == "import":
        runs = "call"
    elif _is_for_type_checkers(node):
        runs = "never"
    elif isinstance(node, ast.Import):
        yield from ((alias.name, None, runs) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        yield from ((node.module, alias.name, runs) for alias in node.names)
    elif _called(node) == "import_module":
        # A name in a string is an import as well; one that is made of parts only
        # where the package loads itself.
        names = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
        yield from ((name, None, runs) for name in names)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, runs)


def _called(node):
    """Return the name of the function that a call calls, else an empty text."""
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _is_for_type_checkers(node):
    """Return whether a statement is ``if TYPE_CHECKING``, which never runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _place(parts):
    """Return the floor of a module given by its parts inside the package."""
    name = parts[0] if parts else "__init__"
    assert name in HOUSE, f"{name} has no place in HOUSE"
    return HOUSE.index(name)


def test_warnings_have_one_home():
    """A warning points at the user's line: `_input.warn` finds it, and a level that is
    counted by hand goes stale.
    """
    warned = [
        path.as_posix()
        for path, calls in _calls_of_modules().items()
        for name, node in calls
        if name == "warn" and ast.unparse(node.func) == "warnings.warn"
    ]
    assert warned == ["_input/warn"]


def test_imports_go_upwards_only():
    for path in _modules():
        own = _place(path.parts)
        for module, name, _ in _imports_of_modules()[path]:
            root, *parts = module.split(".")
            if root != "skcalib":
                continue
            if (
                not parts
                and name
                and (PACKAGE / f"{name}.py").exists() | (PACKAGE / name).is_dir()
            ):
                parts = [name]
            floor = _place(parts)
            inside = len(path.parts) > 1 and parts and parts[0] == path.parts[0]
            assert floor < own or inside, f"{path} imports {module}, which is above it"
            if inside and path.name != "__init__":
                assert len(parts) > 1, (
                    f"{path} imports from the front of its own folder: name the file"
                )


def test_folders_have_no_circles():
    """Nor do imports inside functions, which would only hide a circle."""
    edges = {}
    for path in _modules():
        if len(path.parts) > 1:
            edges[path.parts] = {
                tuple(module.split(".")[1:])
                for module, _, runs in _imports_of_modules()[path]
                if runs != "never"
            } & {other.parts for other in _modules()}
    while edges:
        free = {module for module, needed in edges.items() if not needed & set(edges)}
        assert free, f"imports in a circle: {sorted(edges)}"
        for module in free:
            del edges[module]


# What a method predicts, written as code beside its map.
PREDICTIONS = {"_predict_binary", "_predict_logits", "_predict_scores"}
# Where they are the hooks of a user's method without a map.
HOOKS = {
    ("BinaryRecalibrator", "_predict_binary"),
    ("LogitRecalibrator", "_predict_logits"),
}


def second_predictions(tree):
    """Yield (class, method) of each prediction in a module that is no hook."""
    for kind in ast.walk(tree):
        if isinstance(kind, ast.ClassDef):
            for method in kind.body:
                if getattr(method, "name", "") in PREDICTIONS:
                    yield kind.name, method.name


def test_a_map_is_predicted_in_one_place():
    """`predict_proba` evaluates the expression of `_map`: a method that also writes the
    prediction could answer otherwise than its exports.
    """
    found = set()
    for path, tree in _modules().items():
        if path.parts[0] == "recalibrators":
            found.update(second_predictions(tree))
    assert found == HOOKS
    twin = (
        "class Mine:\n    def _map(self, s): ...\n    def _predict_binary(self, s): ..."
    )
    assert list(second_predictions(ast.parse(twin))) == [("Mine", "_predict_binary")]


def test_nodes_compute_in_the_namespace_of_their_rows():
    """One code for NumPy and tensors: the door of tensors knows no node."""
    door = _modules()[Path("maps", "_tensors")]
    imported = {
        name for module, name, _ in _imports(door) if module.startswith("skcalib.maps")
    }
    assert imported == {"Rows", "predicted_node", "probabilities_of_two"}


def test_the_counter_counts():
    code = [
        '"""Two lines',
        'of a docstring."""',
        "",
        "# comment",
        "def f():",
        '    """A docstring."""',
        "    return [  # code",
        "        1",
        "    ]",
    ]
    assert house.lines_of_code("\n".join(code)) == 4
    assert house.comments("\n".join(code)) == 1
    files = {
        Path(
            "__init__.py"
        ): "_SUBMODULES = ('b', 'c')\n__all__ = ['One', '__version__']",
        Path("b/__init__.py"): "from skcalib.c import g\n__all__ = ['f']",
        Path("b/_more.py"): "from skcalib import PlattScaling, c",
        Path("c.py"): "def g():\n    import skcalib.b._more\n__all__ = ['g']",
        Path("recalibrators/__init__.py"): "__all__ = ['Base', 'One']",
    }
    assert sorted(house.public_names(files)) == [
        "skcalib.One",
        "skcalib.b.f",
        "skcalib.c.g",
        "skcalib.recalibrators.Base",
    ]
    arrows = house.arrows(files)
    assert arrows == {
        "__init__": set(),
        "b": {"c", "__init__"},
        "c": {"b"},
        "recalibrators": set(),
    }
    assert house.in_circles(arrows) == ["b", "c"]


def test_the_measures_of_reading():
    text = "\n".join(
        [
            '"""A docstring is no statement."""',
            "import os  # a comment",
            "a, values = 1, 2",
            "name = getattr(os, 'name') if a else [x for x in 'ab']",
            "# " + 90 * "x",
        ]
    )
    found = house.reading({Path("one.py"): text})
    assert found["statements"] == 3
    # import os; a, values = 1, 2; name = getattr(os, 'name') if a else [...]
    assert found["tokens per statement"] == (2 + 7 + 18) / 3
    assert found["conditional expressions per 1,000 statements"] == 1000 / 3
    assert found["comprehensions per 1,000 statements"] == 1000 / 3
    assert found["tuple assignments, % of assignments"] == 50
    # a, values, name and x
    assert found["generic names, % of names that are assigned"] == 25
    assert found["lines over 88 columns, %"] == 20
    assert found["dynamic attribute access per 1,000 statements"] == 1000 / 3


# Rooms from which a report imports although they are not public: the contract names
# them as the one place that answers a question, for the report as well.
SHARED_WITH_THE_REPORT = {
    "skcalib._install": "how is an optional package installed",
    "skcalib._verdicts": "how is a result said",
    "skcalib._input": "which label is the event, and what is a valid score or weight",
}


def private_imports(tree):
    """Return the modules outside of the report that a file of it imports though they,
    or the imported names, are private.
    """
    found = []
    for module, name, _ in _imports(tree):
        root, *parts = module.split(".")
        if root != "skcalib" or parts[:1] == ["_report"]:
            continue
        is_shared = any(
            f"{module}.".startswith(f"{room}.") for room in SHARED_WITH_THE_REPORT
        )
        is_private = any(part.startswith("_") for part in [*parts, name or ""])
        if is_private and not is_shared and name != "__version__":
            found.append(f"{module}.{name}")
    return found


def test_the_report_imports_public_names():
    of_report = [path for path in _modules() if path.parts[0] == "_report"]
    assert len(of_report) > 20
    for path in of_report:
        assert private_imports(_modules()[path]) == [], path


def test_a_private_import_of_the_report_is_found():
    code = [
        "from skcalib.metrics import calibration_error",
        "from skcalib.metrics._slope import is_inner",
        "from skcalib._rows.blocks import taken",
        "from skcalib._report._samples import Rows",
        "from skcalib._verdicts import fixed",
        "from skcalib.evaluation import _advise",
        "import skcalib._cells.cells",
    ]
    assert private_imports(ast.parse("\n".join(code))) == [
        "skcalib.metrics._slope.is_inner",
        "skcalib._rows.blocks.taken",
        "skcalib.evaluation._advise",
        "skcalib._cells.cells.None",
    ]


# What computes statistics, and so belongs into the library, which the report asks. A
# sum of weights is a number of samples, and is allowed.
STATISTICS = {
    *("mean", "average", "median", "quantile", "percentile", "var", "std", "cov"),
    *("nanmean", "nanmedian", "nanvar", "nanstd", "corrcoef", "polyfit", "lstsq"),
    *("bincount", "histogram", "searchsorted", "digitize", "cumsum", "cumprod", "dot"),
    *("sqrt", "square", "exp", "log", "expit", "logit", "ndtr", "ndtri", "stdtrit"),
}
# By (file, function, call): why the report computes it.
STATISTICS_OF_THE_REPORT = {
    ("_checks", "events", "bincount"): "how many rows have each label, for a message",
    ("_checks", "left_out_notes", "bincount"): "the same, of rows that are left out",
    ("_measures", "error_rows", "mean"): "the weight that is worth one row",
}


def statistics_computed(tree):
    """Return the (function, call) pairs of a file that compute statistics, "" outside
    of functions: calls of `STATISTICS`, matrix products, and imports from SciPy.
    """
    found = set()

    def visit(node, function):
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if _called(node) in STATISTICS:
            found.add((function, _called(node)))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found.add((function, "@"))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(tree, "")
    for module, _, _ in _imports(tree):
        if module.split(".")[0] == "scipy":
            found.add(("", module))
    return found


def test_the_report_computes_no_statistics():
    found = set()
    for path, tree in _modules().items():
        if path.parts[0] == "_report":
            found |= {(path.name, *computed) for computed in statistics_computed(tree)}
    assert not set(STATISTICS_OF_THE_REPORT) - found, "exceptions not needed any more"
    computed = sorted(found - set(STATISTICS_OF_THE_REPORT))
    assert not computed, (
        f"{computed}: make it a public call of the library, or say in"
        " STATISTICS_OF_THE_REPORT why it is no statistic"
    )


def test_statistics_of_the_report_are_found():
    code = [
        "from scipy.special import ndtr",
        "def f(x):",
        "    def g(y):",
        "        return np.sqrt(y @ y)",
        "    return g(x) + x.mean() + x.sum()",
    ]
    assert statistics_computed(ast.parse("\n".join(code))) == {
        ("", "scipy.special"),
        ("g", "sqrt"),
        ("g", "@"),
        ("f", "mean"),
    }


def test_rooms_have_no_circles():
    arrows = house.arrows(house.package(PACKAGE.parent))
    assert sorted(arrows) == sorted(HOUSE)
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    page = page.split("\n## Structure of the package\n")[1].split("\n## ")[0]
    assert [room for room in HOUSE if not re.search(rf"`{room}(/|\.py)`", page)] == [
        "__init__"
    ]
    assert house.in_circles(arrows) == []


def test_private_names_of_scikit_learn_have_one_home():
    private = [
        f"{path}: {module}.{name or ''}"
        for path, imports in _imports_of_modules().items()
        for module, name, _ in imports
        if path.parts != ("_input", "sklearn_private")
        and module.split(".")[0] in ("sklearn", "scipy", "numpy", "joblib")
        and any(part.startswith("_") for part in [*module.split("."), name or ""])
    ]
    assert not private


def test_optional_packages_are_imported_inside_functions():
    eager = [
        f"{path}: {module}"
        for path, imports in _imports_of_modules().items()
        for module, _, runs in imports
        if runs == "import" and module.split(".")[0] in OPTIONAL
    ]
    assert not eager


def test_small_helpers_are_counted():
    files = {
        Path("a.py"): (
            "def _once(x):\n    'Docstring.'\n    return x + 1\n"
            "def _twice(x):\n    return x\n"
            "def _long(x):\n    a = x\n    b = a\n    c = b\n    return c\n"
            "def f(x):\n    return _once(_twice(_twice(_long(x))))\n"
        ),
        Path("b.py"): (
            "class A:\n    def _hook(self): pass\nclass B:\n    def _hook(self): pass\n"
        ),
    }
    assert small_helpers.small_helpers(files) == [(Path("a.py"), "_once")]


@pytest.mark.slow
def test_small_helpers_become_fewer():
    """Write a function that is named once where it is used, unless its name explains
    more than its statements; and lower the limit.
    """
    found = small_helpers.small_helpers(small_helpers.package())
    assert len(found) <= small_helpers.LIMIT, found


def _run(code):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.split()


def test_import_loads_nothing_beyond_scikit_learn():
    """Submodules are imported when asked for, and need no other package."""
    code = """
import sys, sklearn.calibration
before = {name.partition(".")[0] for name in sys.modules}
import skcalib
print("skcalib.metrics" in sys.modules, skcalib.metrics.__name__, skcalib.displays.__name__, "metrics" in dir(skcalib))
import skcalib.metrics, skcalib.binning, skcalib.displays, skcalib.model_selection
print(*sorted({name.partition(".")[0] for name in sys.modules} - before - set(sys.stdlib_module_names)))
"""  # noqa: E501
    of_submodules = ["False", "skcalib.metrics", "skcalib.displays", "True"]
    assert _run(code) == [*of_submodules, "skcalib"]
    with pytest.raises(AttributeError, match="no attribute 'metric'"):
        skcalib.metric  # noqa: B018


@pytest.mark.slow
def test_rooms_are_imported_when_asked_for():
    """Import time is a number of modules: they are counted, and never timed."""
    code = """
import sys
def count():
    return len([name for name in sys.modules if name.startswith("skcalib")])
import skcalib
print(count())
import skcalib.metrics
print("skcalib.recalibrators" in sys.modules, "skcalib.maps" in sys.modules)
skcalib.PlattScaling
print("skcalib.recalibrators" in sys.modules, skcalib.recalibrators.__name__, skcalib.cross_fitting.__name__)
from skcalib import *
print(*sorted(set(skcalib.__all__) - set(globals())))
"""  # noqa: E501
    n_modules, *others = _run(code)
    assert int(n_modules) <= 3
    assert others[:3] == ["False", "False", "True"]
    assert others[3:] == ["skcalib.recalibrators", "skcalib.cross_fitting"]


def test_type_checkers_see_each_name_in_the_home_that_it_has():
    tree = _modules()[Path("__init__")]
    seen = {}
    for module, name, runs in _imports(tree):
        if runs == "never":
            seen[name] = module
    for name in skcalib.__all__:
        if name != "__version__":
            home = skcalib._HOMES.get(name, "skcalib.recalibrators")
            assert seen.pop(name) == home, name
    assert set(seen) == set(skcalib._SUBMODULES)


def test_dir_shows_public_names_only():
    submodules = set(dir(skcalib)) - set(skcalib.__all__)
    assert submodules <= set(HOUSE)
    assert {"metrics", "binning"} <= submodules
    assert set(skcalib.__all__) <= set(dir(skcalib))


@pytest.mark.slow
def test_import_and_use_have_no_side_effects(tmp_path):
    code = """
import os, warnings, numpy as np
filters, errors, state = list(warnings.filters), np.geterr(), np.random.get_state()[1].tolist()
import sklearn.calibration
filters = list(warnings.filters)
import skcalib
from skcalib.metrics import calibration_error
scores = np.linspace(0, 1, 100)
y = np.arange(100) % 3 == 0
for name in ("HistogramBinning", "IsotonicCalibration", "PlattScaling", "ScalingBinning", "TemperatureScaling"):
    getattr(skcalib, name)().fit(scores, y).predict_proba(scores)
skcalib.HistogramBinning(sample_split=0.5, random_state=0).fit(scores, y)
calibration_error(y, scores)
print(warnings.filters == filters, np.geterr() == errors, np.random.get_state()[1].tolist() == state)
"""  # noqa: E501
    directory = os.getcwd()
    try:
        os.chdir(tmp_path)
        assert _run(code) == ["True"] * 3
    finally:
        os.chdir(directory)
    assert not list(tmp_path.iterdir())


# --- One engine for the uncertainty of means ------------------------------------------

# A standard error of a weighted mean of one term per sample comes from
# `_intervals/influence.py`. These patterns compute one, or what only one needs: a
# variance or standard deviation of values (`var`, `std`), a quantile of Student's t
# (`stdtrit`), a root that is divided or of a quotient (`sqrt(v) / n`, `sqrt(v / n)`),
# and a mean of squared distances from a mean (`average((x - mean) ** 2)`).
#
# The rooms that cannot need it: the engine itself, with the laws of counts beside it;
# optimisers and models of clusters, which know nothing of samples; distribution-free
# bounds.
ROOMS_OF_UNCERTAINTY = ("_intervals", "_solvers", "guarantees")
# By (file, function): why it is no standard error of a mean over samples.
OTHER_ROOTS = {
    ("_errors/binned", "absolute_moment"): "moment of a normal distribution",
    ("_errors/kernel", "inverse_root"): "scale of random features",
    ("_fitting/gains", "variance_of_fits"): "jackknife over refits, an added term",
    ("_inference/closed_form", "spiegelhalter"): "null variance of calibrated scores",
    ("_inference/closed_form", "_cumulative"): "null variance of calibrated scores",
    ("_inference/closed_form", "cumulative_differences"): "the same, of cells",
    ("_inference/cluster_cells", "_beta_draws"): "skewness of a beta distribution",
    ("_inference/event_counts", "_lugannani_rice"): "exact law of event counts",
    ("_inference/shift_test", "event_ratio_limits"): "takes the engine's variance",
    ("_inference/shift_test", "__init__"): "exact law of event counts",
    ("_inference/weighted_draws", "__call__"): "scale of bootstrap signs",
    ("decisions/_routing", "score_statistic"): "exact law of losses and gains",
    ("decisions/_treatment_cells", "critical_values"): (
        "many thresholds at once, from the engine's variance of clusters"
    ),
    ("displays/_bin_count", "_standard_error"): "over folds, not samples",
    ("displays/_validity", "_curve"): "over repeated runs, not samples",
    ("evaluation/_paired_differences", "paired_difference"): "the engine's spread",
    ("evaluation/_paired_differences", "_spread_of_pairs"): "a mean over pairs",
    ("evaluation/_paired_differences", "mean_over_pairs"): "a mean over pairs",
    ("evaluation/_summary_numbers", "_auc"): "the engine's spread, on log-odds",
    (
        "evaluation/_summary_numbers",
        "_area_and_influence",
    ): "DeLong's scale of influences",
    ("metrics/_slope", "coefficient"): "a coefficient, from its sandwich variance",
    ("model_selection", "__call__"): "over folds, not samples",
    ("monitoring/_tuned_difference", "_pvalue_of_same_scores"): (
        "scale of Kolmogorov's distribution"
    ),
    ("recalibrators/_classwise", "_warranted_deviation"): "over classes, not samples",
    ("simulation/_fits", "_moment_start"): "moments of a distribution",
    ("simulation/_model", "_bias"): "over simulated data sets, not samples",
}


def _is_division(node):
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def _is_squared_distance_from_a_mean(node):
    """Return whether a node is ``(x - mean) ** 2``."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Pow):
        return False
    base = node.left
    is_difference = isinstance(base, ast.BinOp) and isinstance(base.op, ast.Sub)
    return is_difference and bool(re.search("mean|average|cent", ast.unparse(base)))


def _roots(tree):
    """Return the names of the functions in which a pattern occurs."""
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            name = _called(node)
            is_root = name in ("var", "std", "nanvar", "nanstd", "stdtrit")
            if name == "sqrt" and node.args:
                is_root = is_root or _is_division(node.args[0])
            if _is_division(node):
                is_root = is_root or "sqrt" in map(_called, (node.left, node.right))
            if name in ("average", "mean") and node.args:
                is_root = is_root or _is_squared_distance_from_a_mean(node.args[0])
            if is_root:
                found.add(function.name)
    return found


def test_standard_errors_of_means_have_one_engine():
    found = set()
    for path, tree in _modules().items():
        if path.parts[0] not in ROOMS_OF_UNCERTAINTY:
            found |= {(path.as_posix(), function) for function in _roots(tree)}
    assert not set(OTHER_ROOTS) - found, "exceptions that are not needed any more"
    seconds = sorted(found - set(OTHER_ROOTS))
    assert not seconds, (
        f"{seconds} compute standard errors of their own: call Influence of"
        " _intervals/influence.py, or say in OTHER_ROOTS why it is none of a mean"
    )


@pytest.mark.parametrize(
    "line",
    [
        "np.std(x, ddof=1) / np.sqrt(len(x))",
        "np.sqrt(w @ (x - x.mean()) ** 2 / total)",
        "np.sqrt(variance) / total",
        "stdtrit(n - 1, 0.95) * error",
        "np.average((gain - mean) ** 2, weights=weight)",
        "x.var()",
    ],
)
def test_a_second_engine_is_found(line):
    assert _roots(ast.parse(f"def f(x):\n    return {line}")) == {"f"}
    assert not _roots(ast.parse("def f(x):\n    return np.mean((x - y) ** 2)"))


# What decides which labels there are, which is the event, and which column belongs to
# which class: only `_input` reads names of columns beside labels, sorts labels into
# classes, or decides what kind of labels they are.
_DECIDES = ("type_of_target", "check_classification_targets", "LabelEncoder")
_READS_NAMES = {
    # columns beside scores, such as those of groups
    "recalibrators/_transformer",
}


def test_one_place_says_which_column_is_which_class():
    found = []
    for path, calls in _calls_of_modules().items():
        if path.parts[0] == "_input":
            continue
        for name, node in calls:
            reads_names = name == "column_names"
            reads_names = reads_names and path.as_posix() not in _READS_NAMES
            if name in _DECIDES or reads_names:
                found.append(f"{path}:{node.lineno} {name}")
    assert found == []


# The files of `_input` where what a user gives becomes an array.
DOOR = {"scores", "scales", "tensors", "scalars", "classifier_scores"}
MAKES_ARRAYS = {"asarray", "array", "asanyarray", "ascontiguousarray", "asfarray"}
SCORES = {"scores", "y_proba", "y_prob", "y_score", "proba", "response"}
ASKS = {"predict_proba", "decision_function", "getattr"}


def _asks_a_model(node):
    """Return whether an expression is the answer of a classifier."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Call):  # getattr(model, method)(X)
        node = node.func
    return _called(node) in ASKS


def makes_scores(call):
    """Return whether a call makes an array of scores."""
    is_numpy = getattr(getattr(call.func, "value", None), "id", None) == "np"
    if not (is_numpy and _called(call) in MAKES_ARRAYS and call.args):
        return False
    first = call.args[0]
    return getattr(first, "id", None) in SCORES or _asks_a_model(first)


def test_nobody_else_makes_arrays_of_scores():
    """One function makes scores of whatever comes; tests/test_one_door.py tries it."""
    found = []
    for path, calls in _calls_of_modules().items():
        if path.parent.name == "_input" and path.name in DOOR:
            continue
        if path.name in ("_node", "links"):  # of scores that are valid
            continue
        found += [f"{path}:{node.lineno}" for _, node in calls if makes_scores(node)]
    assert found == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("np.asarray(y_proba, dtype=float)", True),
        ("np.array(model.predict_proba(X))", True),
        ("np.asarray(getattr(model, method)(X))", True),
        ("np.asarray(weight)", False),
        ("np.sum(scores)", False),
    ],
)
def test_arrays_of_scores_are_found(line, is_found):
    (call,) = (node.value for node in ast.parse(line).body)
    assert makes_scores(call) == is_found


# By (file, function): why labels are compared with that of the event outside of
# `_input`, which turns them into codes, so that the event is True.
EVENTS = {
    ("engines/_columns", "_event"): "labels that stay in the engine of a table",
    ("engines/_columns", "binary_columns"): "whether two options are equal",
    ("monitoring/_new_samples", "_set_labels"): "later labels, one by one",
}


def _is_label_of_the_event(node):
    """Return whether a node is a `pos_label`, or the last of two classes."""
    if _called(node) == "lit":
        node = node.args[0]
    if isinstance(node, ast.Subscript):
        of_classes = re.search(r"\b(classes|labels)_?$", ast.unparse(node.value))
        return bool(of_classes) and ast.unparse(node.slice) in ("1", "-1")
    return getattr(node, "attr", getattr(node, "id", "")) == "pos_label"


def events_of_labels(tree):
    """Return the names of the functions that compare values with the label of an
    event.
    """
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Compare):
                continue
            if not isinstance(node.ops[0], ast.Eq | ast.NotEq):
                continue
            sides = (node.left, node.comparators[0])
            if sum(map(_is_label_of_the_event, sides)) == 1:
                found.add(function.name)
    return found


def test_one_place_says_which_label_is_the_event():
    found = set()
    for path, tree in _modules().items():
        if path.parts[0] != "_input":
            found |= {(path.as_posix(), name) for name in events_of_labels(tree)}
    assert found == set(EVENTS)


@pytest.mark.parametrize(
    "line",
    [
        "y == pos_label",
        "self.pos_label != y",
        "y_true == self.classes_[1]",
        "nw.col(label) == nw.lit(pos_label)",
        "labels[-1] == np.asarray(y)",
    ],
)
def test_a_second_event_is_found(line):
    assert events_of_labels(ast.parse(f"def f(y):\n    return {line}")) == {"f"}


def test_classes_of_labels_are_found_in_one_place():
    """`np.unique(y)` would be a second rule for which labels there are."""
    labels = {"y", "y_true", "labels", "targets"}
    exceptions = {
        # whether both classes have rows in a part of the samples
        "decisions/_classifier",
        "recalibrators/_group_parts",
    }
    found = []
    for path, calls in _calls_of_modules().items():
        if path.parts[0] == "_input" or path.as_posix() in exceptions:
            continue
        for name, node in calls:
            if name != "unique" or not node.args:
                continue
            if getattr(node.args[0], "id", "") in labels:
                found.append(f"{path}:{node.lineno}")
    assert found == []


# The covariance of the coefficients of a regression: by file, why it inverts a matrix.
INVERSES = {
    "_intervals/sandwich": "the engine: Fisher's information",
    "_intervals/one_probability/profile": "leverages of a penalised likelihood",
    "_intervals/one_probability/softmax": "limits of a map, from its information",
    "_solvers/leave_one_out": "steps of a fit without a row",
    "_errors/bin_free": "local lines, no coefficients over all samples",
    "maps/_tabulated": "coefficients of a cubic from its values",
}


def test_covariances_of_coefficients_have_one_engine():
    """`fisher_covariance` and `LogisticRows.sandwich`."""
    found = _callers("inv", "pinv")
    assert found <= set(INVERSES), found - set(INVERSES)
    assert _callers("fisher_covariance") == {
        "evaluation/_by_cluster",
        "metrics/_slope",
    }


# --- One engine for "is recalibrating worth it" and "does a group differ" -------------


def _callers(*names):
    """Return the files that call one of these functions or classes."""
    return {
        path.as_posix()
        for path, calls in _calls_of_modules().items()
        if any(name in names for name, _ in calls)
    }


def test_recalibrators_are_compared_in_one_place():
    """`evaluation.cross_validate` and `Recalibrator` read the same out-of-fold fits; a
    new file that makes folds would be a second comparison.
    """
    assert _callers("CrossFits") == {
        "evaluation/_cross_validate",
        "recalibrators/_recalibrator",
    }
    assert _callers("cross_validation_folds") == {
        "evaluation/_cross_validate",
        "recalibrators/_recalibrator",
        "_fitting/ridge_path",  # the strength of a ridge
        "recalibrators/_multicalibrated",  # the number of rounds
        "recalibrators/_stacked",  # the weights of the members
    }


# Folds of scikit-learn, by file: what they are for.
FOLDS = {
    "_fitting/folds": "the engine: folds of scores",
    "cross_fitting": "folds of features, for scores of classifiers",
    "recalibrated_classifier": "the same, of pairs of classifier and recalibrator",
    "decisions/_classifier": "the same, and samples that are kept for a certificate",
    "displays/_bin_count": "GridSearchCV over numbers of bins",
    "_demo": "the user's program",
}


def _splits(calls):
    """Return whether one of the calls makes folds or splits with scikit-learn."""
    splitters = re.compile(
        r"(check_cv|train_test_split|GridSearchCV|cross_val_\w+|\w*KFold|\w+Split)$"
    )
    return any(splitters.match(name) for name, _ in calls)


def test_folds_are_made_in_few_places():
    """A new file that splits samples may be a second comparison of recalibrators."""
    modules = _calls_of_modules().items()
    found = {path.as_posix() for path, calls in modules if _splits(calls)}
    assert found == set(FOLDS)
    loop = ast.parse("for train, test in StratifiedKFold(5).split(s, y): ...")
    assert _splits(_calls(loop))
    assert not _splits(_calls(ast.parse("text.split()")))


def test_groups_and_periods_are_tested_in_one_place():
    """The bias of a group, and of a period, is tested by `_inference/bias.py`, through
    the samples of `calibration_by_group`.
    """
    assert _callers("rows_bias_test", "bins_bias_test") == {"metrics/_group_sample"}
    assert _callers("bias_test") == {
        "_inference/bias",
        "evaluation/_by_cluster",  # the exact limits of the ratio of each cluster
        "metrics/_many_samples",
        "monitoring/_change",
    }
    assert _callers("holm") == {
        "evaluation/_adjust",
        "evaluation/_compare",
        "evaluation/_gain",
        "metrics/_by_group",
        "metrics/_group_tables",
    }
