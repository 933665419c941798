"""A new recalibrator, metric or display needs its file, the steps of its how-to page,
and an entry in the registry of the tests: no other test fails for its name.

All three are added to a copy of the checkout. The tests of the copy that read lists of
public names then run: first without the entries, then, of these tests, those that read
entries, with them and their frozen results.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _additions import NAMES, PICTURES, ROOT, add_entries, add_objects

import skcalib

pytest.importorskip("matplotlib", reason="the display needs it")
pytestmark = pytest.mark.slow

_COPIED = ("tests", "doc", "benchmarks")
# A test that reads lists of public names, metrics or recalibrators has one of these
# words; all tests of some files do.
_READS_ENTRIES = (
    r"\bregistry\b|\bREGISTRY\b|_signatures|RECALIBRATORS|public_recalibrators"
)
_READS_LISTS = (
    rf"{_READS_ENTRIES}|__all__|\bMETRICS\b|\bPUBLIC\b|get_scorer_names"
    r"|truthfulness\.errors"
)
_FILES_THAT_READ_LISTS = ("test_registry", "test_golden_results", "test_signatures")
_PARTS = [*NAMES, *(f"[{picture}-" for picture in PICTURES)]
# Runs the tests of the new names, and those that have one of some words.
_PLUGIN = f"""
import inspect
import os
import re

def pytest_collection_modifyitems(config, items):
    items[:] = [item for item in items if is_chosen(item)]

def is_chosen(item):
    if hasattr(item, "callspec"):
        return any(part in item.name for part in {_PARTS})
    cases = getattr(item.function, "cases", None)  # of `_catalog.every`
    if cases is not None:
        return any(part in case for part in {_PARTS} for case in cases)
    if item.path.stem in {_FILES_THAT_READ_LISTS}:
        return True
    source = inspect.getsource(item.function)
    return re.search(os.environ["WORDS"], source) is not None
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A copy of the checkout with the three objects."""
    folder = tmp_path_factory.mktemp("library")
    ignored = shutil.ignore_patterns("_build", "_generated", ".*")
    package = Path(skcalib.__file__).parent  # which may be an installed one
    shutil.copytree(package, folder / "skcalib", ignore=ignored)
    for name in _COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, folder)
    (folder / "only_new_names.py").write_text(_PLUGIN, "utf-8")
    add_objects(folder)
    return folder


def _run(library, *command, words=""):
    environment = {**os.environ, "PYTHONPATH": str(library), "WORDS": words}
    return subprocess.run(
        [sys.executable, *command],
        cwd=library,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _failures(library, words, files, *options):
    """Return the tests of the new names, and those that have one of some words, in some
    files of the copy that fail, and what they print.
    """
    command = "-m pytest -q -n0 -p no:cacheprovider -p only_new_names".split()
    done = _run(library, *command, *options, *files, words=words)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.M)
    assert re.search(r"\d+ passed", done.stdout), done.stdout + done.stderr
    return failed, done.stdout


def _files(words):
    """Return the test files that have one of some words, but for those that make a copy
    themselves.
    """
    found = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        makes_a_copy = path.name in ("test_additions.py", "test_howto.py")
        if not makes_a_copy and re.search(words, path.read_text("utf-8")):
            found.append(f"tests/{path.name}")
    return found


def test_without_entries_only_the_registry_misses_them(library):
    failed, printed = _failures(library, _READS_LISTS, _files(_READS_LISTS))
    expected = "tests/test_registry.py::test_every_public_name_has_an_entry"
    assert failed == [expected], printed
    for name in NAMES:
        assert re.search(rf"'skcalib[\w.]*\.{name}'", printed), printed


def test_with_entries_and_frozen_results_every_test_passes(library):
    add_entries(library)
    frozen = _run(library, "tests/freeze.py")
    assert frozen.returncode == 0, frozen.stderr
    assert "BREAKS" not in frozen.stdout
    # the fixtures `recalibrator` and `metric` are each recalibrator and metric in turn
    files = _files(rf"{_READS_ENTRIES}|_catalog|\brecalibrator\)")
    failed, printed = _failures(library, _READS_ENTRIES, files)
    assert not failed, printed
    # these are slow tests
    pictures = ["tests/test_look_book.py"]
    failed, printed = _failures(library, _READS_ENTRIES, pictures, "-m", "slow")
    assert not failed, printed
