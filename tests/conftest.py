"""What all tests share: each recalibrator in turn; hypothesis draws the same examples every time."""

import os

import pytest
from _catalog import RECALIBRATORS, UNWEIGHTED
from hypothesis import HealthCheck, settings
from sklearn.base import clone

_COMMON = {"deadline": None, "database": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", derandomize=True, max_examples=40, **_COMMON)
settings.register_profile("search", max_examples=2000, **_COMMON)  # HYPOTHESIS_PROFILE=search pytest ...
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(params=RECALIBRATORS, ids=repr)
def recalibrator(request):
    """Every recalibrator, unfitted."""
    return clone(request.param)


@pytest.fixture(params=[one for one in RECALIBRATORS if not isinstance(one, UNWEIGHTED)], ids=repr)
def weighted_recalibrator(request):
    """Every recalibrator that takes weights, unfitted."""
    return clone(request.param)
