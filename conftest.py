"""What tests and doctests share: doctests are collected where the packages are that
they need, and a metric that a test or a doctest registers is taken out again.
"""

from importlib.util import find_spec

import pytest

from skcalib.metrics._registry import METRICS

_NEEDED = {
    "skcalib/displays/*": ["matplotlib"],
    "skcalib/engines/*": ["narwhals", "duckdb", "pandas"],
}
collect_ignore_glob = [
    folder
    for folder, packages in _NEEDED.items()
    if not all(find_spec(package) for package in packages)
]


@pytest.fixture(autouse=True)
def _metrics_stay_as_they_are():
    """Take a metric that a test or a doctest has registered out of the table again."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)
