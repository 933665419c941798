"""What tests and doctests share: doctests are collected where the packages are that
they need, and a metric that a test or a doctest registers is taken out again.
"""

import gc
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from skcalib.metrics._registry import METRICS

_NEEDED = {
    "skcalib/displays/*": ["matplotlib"],
    "skcalib/engines/*": ["narwhals", "duckdb", "pandas"],
}
_PACKAGE = Path(__file__).parent / "skcalib"
_ALL_SLOW = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.MULTILINE)
collect_ignore_glob = [
    folder
    for folder, packages in _NEEDED.items()
    if not all(find_spec(package) for package in packages)
]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the garbage collector, which would walk over the thousands of
    tests again and again, now and while they run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Look for doctests in the package alone, since tests have none, and do not import
    files of slow tests only to leave out all that is in them, unless they are named.
    """
    collectors = yield
    if _PACKAGE in file_path.parents:
        return collectors
    is_named = parent.session.isinitpath(file_path)
    is_fast_run = parent.config.option.markexpr == "not slow" and not is_named
    if is_fast_run and collectors and _ALL_SLOW.search(file_path.read_text("utf-8")):
        return []
    return [one for one in collectors if type(one) is pytest.Module]


@pytest.fixture(autouse=True)
def _metrics_stay_as_they_are():
    """Take a metric that a test or a doctest has registered out of the table again."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)
