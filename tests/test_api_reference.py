"""The API reference lists each public name once, and nothing else; what it documents exists."""

import re
from collections import Counter
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

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
    public = [name for name in import_module(module).__all__ if not name.startswith("__")]
    assert listed == Counter(public)


def test_every_module_has_a_section():
    assert {module for module, *_ in REFERENCE.SECTIONS} >= set(REFERENCE.MODULES)
