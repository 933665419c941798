"""The API reference lists each public name once, and nothing else."""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import skcalib

REFERENCE = Path(__file__).parents[1] / "doc" / "api.md"
MODULES = ["skcalib", *(f"skcalib.{name}" for name in skcalib._SUBMODULES)]


def _listed():
    """Return the names of the reference by module."""
    listed, module, inside = {name: [] for name in MODULES}, None, False
    for line in REFERENCE.read_text("utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module, inside = found[1], False
        elif line.startswith("-----"):
            inside = False
        elif line.startswith(".. autosummary::"):
            inside = True
        elif inside and (found := re.match(r"   (\w+)$", line)):
            listed[module].append(found[1])
    return listed


@pytest.mark.parametrize("module", MODULES)
def test_each_public_name_is_listed_once(module):
    public = [name for name in import_module(module).__all__ if not name.startswith("__")]
    assert Counter(_listed()[module]) == Counter(public)
