"""What all tests share: each recalibrator in turn; hypothesis draws the same examples
every time.
"""

import os

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
settings.register_profile("quick", derandomize=True, max_examples=20, **_COMMON)
# HYPOTHESIS_PROFILE=search pytest ...
settings.register_profile("search", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


# pyright reads the first one, and the examples of the second run in a copy alone.
collect_ignore = ["typing_samples.py", "additions"]


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
