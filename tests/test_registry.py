"""The registry has one entry for each public name, and one for each is enough: a name
that is added to the package fails no test but those of this file.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from _catalog import every
from _golden_recalibrators import golden_by_name
from _signatures import public_modules, stored_signatures
from registry import REGISTRY, DisplayEntry, RecalibratorEntry, entries_of
from test_api_reference import REFERENCE

from skcalib.recalibrators import BaseRecalibrator

ROOT = Path(__file__).parents[1]
FREEZE = "run `python tests/freeze.py`"


def public_names():
    """Return each public object once, by the path that users import it from.

    The nodes of `skcalib.maps` are not among them: what they are for is one map or
    another, and tests/test_maps.py compares all of them in every language.
    """
    found = {}
    for module_name in public_modules():
        if module_name == "skcalib.maps":
            continue
        module = import_module(module_name)
        for name in module.__all__:
            public = getattr(module, name)
            is_listed = any(public is other for other in found.values())
            if not name.startswith("__") and not is_listed:
                found[f"{module_name}.{name}"] = public
    return found


PUBLIC = public_names()


def test_every_public_name_has_an_entry():
    missing = PUBLIC.keys() - REGISTRY.keys()
    assert not missing, "add an entry to the file of its kind in tests/registry/"
    assert not REGISTRY.keys() - PUBLIC.keys(), "these names are not public"


@every("name", REGISTRY)
def test_an_entry_is_of_the_right_kind(name):
    public = PUBLIC[name]
    entry = REGISTRY[name]
    is_class = inspect.isclass(public)
    is_recalibrator = is_class and issubclass(public, BaseRecalibrator)
    if is_recalibrator and not name.startswith("skcalib.recalibrators."):
        assert isinstance(entry, RecalibratorEntry)
    if isinstance(entry, RecalibratorEntry):
        assert {type(one) for one in entry.instances} <= {public}
        assert entry.instances or entry.more_fits
    if name.startswith("skcalib.displays.") and is_class:
        if hasattr(public, "plot"):
            assert isinstance(entry, DisplayEntry)


def test_a_recalibrator_has_instances_or_tests_of_its_own():
    # They need groups or features beside the scores.
    of_their_own = {
        "skcalib.GroupwiseRecalibrator",
        "skcalib.MulticalibratedRecalibrator",
    }
    entries = entries_of(RecalibratorEntry)
    assert of_their_own == {name for name in entries if not entries[name].instances}


@every("name", REGISTRY)
def test_the_job_uses_the_name(name):
    job = REGISTRY[name].job
    if job in PUBLIC:  # which returns it
        return
    text = (ROOT / job).read_text("utf-8")
    assert re.search(rf"\b{name.rpartition('.')[2]}\b", text), (
        f"{job} does not use {name}: name an example or a page that does"
    )


@every("name", REGISTRY)
def test_a_docstring_names_a_paper_or_the_entry_says_why_not(name):
    has_paper = "\nReferences\n----------\n" in (inspect.getdoc(PUBLIC[name]) or "")
    entry = REGISTRY[name]
    if callable(PUBLIC[name]):
        assert has_paper or entry.no_paper, "name the paper, or set no_paper="


def test_results_of_stable_names_are_frozen():
    provisional = set(REFERENCE.provisional())
    for name, entry in REGISTRY.items():
        if name in provisional or isinstance(entry, DisplayEntry):
            continue
        has_results = entry.result or entry.results or _has_fits(entry)
        assert bool(has_results) != bool(entry.not_frozen), (
            f"{name}: give results, or say in not_frozen= why there are none"
        )


def _has_fits(entry):
    if not isinstance(entry, RecalibratorEntry):
        return False
    return bool(entry.two_classes or entry.three_classes or entry.more_fits)


def test_frozen_files_have_what_the_registry_asks_for():
    """`test_golden_results` asks for each result and each fit of a recalibrator."""
    assert golden_by_name().keys() == entries_of(RecalibratorEntry).keys(), FREEZE
    assert REGISTRY.keys() - stored_signatures().keys() == set(), FREEZE


def test_every_display_has_its_pictures_in_the_look_book():
    pytest.importorskip("matplotlib")
    from test_look_book import LOOK_BOOK

    pictures = [
        picture
        for entry in entries_of(DisplayEntry).values()
        for picture in entry.pictures
    ]
    assert sorted(pictures) == sorted(LOOK_BOOK.pictures())
    assert all(entry.pictures for entry in entries_of(DisplayEntry).values())
