"""What all tests share: each recalibrator in turn; hypothesis draws the same examples
every time.
"""

import os

import pytest
from _browser import browser  # noqa: F401
from _catalog import RECALIBRATORS, UNWEIGHTED
from hypothesis import HealthCheck, settings
from sklearn.base import clone

from skcalib import Recalibrator

_COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("quick", derandomize=True, max_examples=20, **_COMMON)
# HYPOTHESIS_PROFILE=search pytest ...
settings.register_profile("search", max_examples=2000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def _each(recalibrators):
    """Each recalibrator; the one that fits a stack once more for each of its folds
    takes the time of all the others.
    """
    for one in recalibrators:
        is_stack = isinstance(one, Recalibrator) and one.recalibrator is None
        yield (
            pytest.param(one, marks=pytest.mark.slow, id=repr(one))
            if is_stack
            else pytest.param(one, id=repr(one))
        )


# pyright reads the first one, and the examples of the second run in a copy alone.
collect_ignore = ["typing_samples.py", "additions"]


@pytest.fixture(params=_each(RECALIBRATORS))
def recalibrator(request):
    """Every recalibrator, unfitted."""
    return clone(request.param)


@pytest.fixture(
    params=_each(one for one in RECALIBRATORS if not isinstance(one, UNWEIGHTED))
)
def weighted_recalibrator(request):
    """Every recalibrator that takes weights, unfitted."""
    return clone(request.param)
