"""The API reference lists each public name once, and nothing else; what it documents
exists.
"""

import inspect
import re
from collections import Counter
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from _catalog import every
from registry import REGISTRY

import skcalib
from benchmarks.checks import house

_PATH = Path(__file__).parents[1] / "doc" / "api_reference.py"


def _reference():
    spec = spec_from_file_location("api_reference", _PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REFERENCE = _reference()


@pytest.mark.parametrize("module", REFERENCE.MODULES)
def test_each_public_name_is_listed_once(module):
    listed = Counter()
    for part in re.split(r"\.\. currentmodule:: ", REFERENCE.text())[1:]:
        if part.startswith(module + "\n"):
            listed.update(re.findall(r"^   (\w+)$", part, flags=re.M))
    public = [
        name for name in import_module(module).__all__ if not name.startswith("__")
    ]
    assert listed == Counter(public)


def test_every_module_has_a_section():
    assert {module for module, *_ in REFERENCE.SECTIONS} >= set(REFERENCE.MODULES)


@pytest.mark.slow
def test_each_name_has_its_pages_of_the_guide():
    pages = REFERENCE.guide_pages(_PATH.parent)
    assert {path.rpartition(".")[0] for path in pages} >= set(REFERENCE.MODULES)
    assert all(
        (_PATH.parent / f"{page}.md").exists()
        for some in pages.values()
        for page in some
    )
    assert pages["skcalib.PlattScaling"][0] == "which_recalibrator"
    assert "which_error" in pages["skcalib.metrics.calibration_test"]


def test_every_name_stands_on_a_page():
    """All but the nodes and forms of maps, which one page describes together."""
    guide = "".join(page.read_text("utf-8") for page in _PATH.parent.glob("*.md"))
    names = {
        name
        for module in REFERENCE.MODULES
        if module != "skcalib.maps"
        for name in import_module(module).__all__
        if not name.startswith("_")
    }
    assert len(names) > 120
    assert {name for name in names if not re.search(rf"\b{name}\b", guide)} == set()


# Pages of the guide that need no example: a table of other libraries, and evidence.
NO_EXAMPLE = {
    "class_imbalance",
    "llm_as_a_judge",
    "outcome_not_known_yet",
    "troubleshooting",
    REFERENCE.EVIDENCE,
}


@pytest.mark.slow
def test_reference_guide_and_gallery_lead_to_each_other():
    doc = _PATH.parent
    of_names, of_pages = (
        REFERENCE.examples_of_names(doc),
        REFERENCE.examples_of_pages(doc),
    )
    assert of_names.keys() == REFERENCE.guide_pages(doc).keys()
    assert all(of_names.values())
    assert (
        "gallery/plot_10_has_it_drifted.py"
        in of_names["skcalib.monitoring.CalibrationMonitor"]
    )
    guide = set(
        re.findall(r"\]\((\w+)\.md\)", (doc / "getting_started.md").read_text("utf-8"))
    )
    assert guide - NO_EXAMPLE <= of_pages.keys()
    assert not guide & NO_EXAMPLE & of_pages.keys()
    assert all((doc / f"{page}.md").exists() for page in of_pages)


@cache
def _names_of_the_guide():
    return {one.rpartition(".")[2] for one in REFERENCE.guide_pages(_PATH.parent)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    sorted((_PATH.parent / "gallery").glob("plot_*.py")),
    ids=lambda path: path.stem,
)
def test_an_example_ends_with_its_pages_and_names(path):
    last = path.read_text("utf-8").rpartition("# %%\n")[2]
    assert last.startswith("# **See also:** :doc:`/")
    names = re.findall(r"(?<!:doc:)`(\w+)`", last)
    assert names
    assert set(names) <= _names_of_the_guide()


def test_provisional_names_exist_and_are_marked():
    assert all(
        path in REFERENCE.MODULES or path in PUBLIC for path in REFERENCE.PROVISIONAL
    )
    marked = set(REFERENCE.provisional())
    assert marked <= set(PUBLIC)
    wanted = {
        "skcalib.MulticalibratedRecalibrator",
        "skcalib.monitoring.CalibrationMonitor",
    }
    assert (
        wanted | {path for path in PUBLIC if path.startswith("skcalib.decisions.")}
        <= marked
    )
    assert "skcalib.PlattScaling" not in marked
    for template in ("base", "class"):
        page = (
            _PATH.parent / "_templates" / "autosummary" / f"{template}.rst"
        ).read_text("utf-8")
        assert "provisional[fullname]" in page
        assert "stable" in page


@pytest.mark.slow
def test_the_counter_counts_the_pages():
    assert sorted(
        house.public_names(house.package(Path(skcalib.__file__).parents[1]))
    ) == sorted(
        f"{module}.{name}"
        for module, title, *_ in REFERENCE.SECTIONS
        for name in REFERENCE.names(module, title)
    )


def _public():
    """Return each public name, by its path."""
    for module in REFERENCE.MODULES:
        for name in import_module(module).__all__:
            if not name.startswith("__"):
                yield f"{module}.{name}", getattr(import_module(module), name)


PUBLIC = dict(_public())


def _is_result(path):
    """Return whether a function returns it, so that the function's page has the
    example.
    """
    return path in REGISTRY and REGISTRY[path].job in PUBLIC


def _documented(thing):
    docscrape = pytest.importorskip("numpydoc.docscrape")
    return (
        docscrape.ClassDoc(thing)
        if inspect.isclass(thing)
        else docscrape.FunctionDoc(thing)
    )


@every("path", PUBLIC)
def test_a_page_has_its_parts(path):
    thing = PUBLIC[path]
    documented = _documented(thing)
    linked = [name for names, _ in documented["See Also"] for name, _ in names]
    assert linked
    here = path.rpartition(".")[0]  # names of the same module may stand alone
    assert all(
        name in PUBLIC or f"{here}.{name}" in PUBLIC or name.startswith("sklearn.")
        for name in linked
    ), linked
    assert path not in linked
    assert documented["Examples"] or _is_result(path)


@every("path", PUBLIC)
def test_parameters_are_those_of_the_signature(path):
    thing = PUBLIC[path]
    described = [thing]
    if inspect.isclass(thing):
        described += [
            method
            for name, method in inspect.getmembers(thing, callable)
            if not name.startswith("_")
            and getattr(method, "__module__", "").startswith("skcalib")
        ]
    for one in described:
        documented = [
            name.strip("*")
            for entry in _documented(one)["Parameters"]
            for name in entry.name.split(", ")
        ]
        parameters = [
            name
            for name in inspect.signature(one).parameters
            if name not in ("self", "cls")
        ]
        assert documented == parameters, one
