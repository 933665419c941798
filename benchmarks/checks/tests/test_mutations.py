"""Every fault that `mutations` introduces still has its place."""

from pathlib import Path

import pytest

import skcalib
from benchmarks.checks.mutations import MUTATIONS, place_of

pytestmark = pytest.mark.slow
PACKAGE = Path(skcalib.__file__).parent


@pytest.mark.parametrize("number", range(1, len(MUTATIONS) + 1))
def test_the_text_of_a_fault_stands_in_the_package_once(number):
    """`place_of` raises an error for a text that code no longer contains."""
    file, text, fault, _ = MUTATIONS[number - 1]
    assert text != fault
    assert text in place_of(file, text, PACKAGE).read_text("utf-8")
