"""Validity curves against a plain loop, and their area against the calibration
error.
"""

import tracemalloc

import numpy as np
import pytest

from skcalib.binning import EqualWidth, UniqueScores
from skcalib.metrics import calibration_error, validity_curve


def plain_validity(y, s, epsilon, weight):
    inside = [
        abs(np.average(y[s == v], weights=weight[s == v]) - v) <= epsilon + 1e-12
        for v in s
    ]
    return np.average(inside, weights=weight), float(all(inside))


@pytest.fixture
def binned():
    rng = np.random.default_rng(0)
    s = rng.integers(11, size=400) / 10
    return (
        (rng.random(400) < s**1.5).astype(int),
        s,
        rng.integers(1, 4, size=400).astype(float),
    )


def test_equals_a_plain_loop(binned):
    y, s, weight = binned
    grid = np.linspace(0, 0.5, 21)
    _, marginal = validity_curve(y, s, epsilons=grid, sample_weight=weight)
    _, conditional = validity_curve(
        y, s, epsilons=grid, sample_weight=weight, conditional=True
    )
    expected = np.array([plain_validity(y, s, epsilon, weight) for epsilon in grid])
    np.testing.assert_allclose(marginal, expected[:, 0], rtol=1e-12)
    np.testing.assert_array_equal(conditional, expected[:, 1])


def test_area_above_the_exact_curve_is_the_plugin_l1_error(binned):
    y, s, weight = binned
    epsilons, validity = validity_curve(y, s, sample_weight=weight)
    area = np.sum(np.diff(np.append(epsilons, 1.0)) * (1 - validity))
    error = calibration_error(
        y, s, norm=1, method="plugin", binning=UniqueScores(), sample_weight=weight
    )
    assert area == pytest.approx(error, abs=1e-12)
    assert epsilons[0] == 0
    assert validity[-1] == 1


def test_gap_that_rounding_lifts_above_the_tolerance_counts():
    # the gap .8 - .6 is .20000000000000007 in float64
    assert validity_curve(np.arange(10) < 6, np.full(10, 0.8), epsilons=[0.2])[
        1
    ].tolist() == [1.0]


def test_many_classes_are_about_the_predicted_one():
    y_proba = np.tile([0.2, 0.7, 0.1], (10, 1))
    y_true = np.array([1] * 6 + [0, 2, 0, 2])
    _, validity = validity_curve(y_true, y_proba, epsilons=[0.05, 0.15])
    assert validity.tolist() == [0.0, 1.0]


def test_bad_input():
    with pytest.raises(ValueError, match="epsilons must be"):
        validity_curve([0, 1], [0.2, 0.8], epsilons=[0.2, 0.1])
    with pytest.raises(ValueError, match="multiclass must be"):
        validity_curve([0, 1], [0.2, 0.8], multiclass="marginal")


def test_memory_and_time_grow_with_the_rows():
    # One entry for each pair of a tolerance and a score would be 75 GB here.
    rng = np.random.default_rng(3)
    s = rng.random(100_000)
    y = rng.random(100_000) < s
    tracemalloc.start()
    epsilons, validity = validity_curve(y, s)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
    assert len(epsilons) == 100_001
    assert validity[-1] == 1
    # every bin is one row: the share of rows with |y - s| <= epsilon
    assert validity[50_000] == pytest.approx(
        np.mean(np.abs(y - s) <= epsilons[50_000] + 1e-12)
    )


def test_empty_bins_do_not_count():
    epsilons, validity = validity_curve([0, 1], [0.25, 0.75], binning=EqualWidth(10))
    np.testing.assert_allclose(epsilons, [0, 0.25])
    assert validity.tolist() == [0, 1]
    assert validity_curve(
        [0, 1],
        [0.25, 0.75],
        binning=EqualWidth(10),
        epsilons=[0.05, 0.3],
        conditional=True,
    )[1].tolist() == [0, 1]
