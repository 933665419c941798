"""The reliability diagram of sums per bin is the one of the rows that they were made
of.
"""

import numpy as np
import pytest
from _catalog import refused

pytest.importorskip("matplotlib")

from skcalib.binning import EqualMass  # noqa: E402
from skcalib.displays import ReliabilityDisplay  # noqa: E402
from skcalib.metrics import BinStatistics, reliability_curve  # noqa: E402


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    scores = rng.beta(0.6, 1.4, 600)
    return (rng.random(600) < scores**1.3).astype(int), scores


@pytest.mark.parametrize("interval", ["auto", "wilson", "bootstrap", None])
def test_sums_draw_the_curve_of_their_rows(rows, interval):
    options = {"interval": interval, "n_resamples": 50, "random_state": 0}
    sums = reliability_curve(*rows, binning=EqualMass(8))
    drawn = ReliabilityDisplay.from_statistics(sums, name="forest", **options)
    twin = ReliabilityDisplay.from_predictions(
        *rows, binning=EqualMass(8), name="forest", **options
    )
    (one,), (other,) = drawn.curves, twin.curves
    assert one.model == other.model == "forest"
    np.testing.assert_array_equal(
        one.statistics.event_frequency, other.statistics.event_frequency
    )
    np.testing.assert_allclose(
        drawn.lines_[0].get_xydata(), twin.lines_[0].get_xydata()
    )
    assert (
        (one.bars is None) == (other.bars is None) == (interval in ("bootstrap", None))
    )
    if one.bars is not None:
        np.testing.assert_allclose(one.bars, other.bars)
    assert (one.band is None) == (interval != "bootstrap")


def test_the_error_in_the_title_is_that_of_the_sums(rows):
    sums = reliability_curve(*rows, binning=EqualMass(8))
    drawn = ReliabilityDisplay.from_statistics(
        {"a": sums, "b": sums}, n_resamples=50, random_state=0
    )
    assert [curve.model for curve in drawn.curves] == ["a", "b"]
    assert drawn.curves[0].error == drawn.curves[1].error
    assert (
        ReliabilityDisplay.from_statistics(sums, metric=None, interval=None)
        .curves[0]
        .error
        is None
    )


def test_what_are_no_sums_is_refused(rows):
    with refused(TypeError, "BinStatistics", "found 3"):
        ReliabilityDisplay.from_statistics({"a": 3})
    empty = BinStatistics.from_predictions(
        *(np.zeros(0) for _ in range(2)), edges=[0.0, 0.5, 1.0]
    )
    with refused(ValueError, "no row"):
        ReliabilityDisplay.from_statistics(empty)
