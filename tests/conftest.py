"""What all tests share: each recalibrator in turn; hypothesis draws the same examples
every time; combinations of parameters run with the slow tests.
"""

import os
from collections import defaultdict

import pytest
from _browser import browser  # noqa: F401
from _catalog import RECALIBRATORS, UNWEIGHTED, each_of
from hypothesis import HealthCheck, settings
from sklearn.base import clone

_COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("quick", derandomize=True, max_examples=8, **_COMMON)
# HYPOTHESIS_PROFILE=search pytest ...
settings.register_profile("search", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


# pyright reads the first one, and the examples of the second run in a copy alone.
collect_ignore = ["typing_samples.py", "additions"]


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the marks
def pytest_collection_modifyitems(items):
    """Leave each value of each parameter to the fast tests, not each combination."""
    cases = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_one_test in cases.values():
        for item in _beyond_each_value(of_one_test):
            item.add_marker(pytest.mark.slow)


def _beyond_each_value(items):
    """Return the cases of a test without those of a small set that has each value."""
    rest = list(items)
    # pytest has no public name for the id of each parameter
    values = {item: set(enumerate(item.callspec._idlist)) for item in items}
    missing = set().union(*values.values())
    while missing:
        # the first one of those with most of what is missing
        chosen = max(rest, key=lambda item: len(values[item] & missing))
        missing -= values[chosen]
        rest.remove(chosen)
    return rest


@pytest.fixture(params=each_of(RECALIBRATORS))
def recalibrator(request):
    """Every recalibrator, unfitted."""
    return clone(request.param)


@pytest.fixture(
    params=each_of(one for one in RECALIBRATORS if not isinstance(one, UNWEIGHTED))
)
def weighted_recalibrator(request):
    """Every recalibrator that takes weights, unfitted."""
    return clone(request.param)
