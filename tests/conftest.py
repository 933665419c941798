"""What all tests share: each recalibrator in turn; hypothesis draws the same examples every time."""

import pytest
from _catalog import RECALIBRATORS, UNWEIGHTED
from hypothesis import HealthCheck, settings
from sklearn.base import clone

settings.register_profile(
    "skcalib",
    derandomize=True,
    deadline=None,
    max_examples=40,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("skcalib")


@pytest.fixture(params=RECALIBRATORS, ids=repr)
def recalibrator(request):
    """Every recalibrator, unfitted."""
    return clone(request.param)


@pytest.fixture(params=[one for one in RECALIBRATORS if not isinstance(one, UNWEIGHTED)], ids=repr)
def weighted_recalibrator(request):
    """Every recalibrator that takes weights, unfitted."""
    return clone(request.param)
