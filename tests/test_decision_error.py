"""The decision calibration error: value, threshold, interval and test."""

import numpy as np
import pytest
from _catalog import refused
from _twins import bin_of, equal_mass_edges, isotonic

from skcalib.binning import PoolAdjacentViolators
from skcalib.metrics import (
    BinStatistics,
    calibration_error_interval,
    calibration_test,
    decision_calibration_error,
)


def _twin(y, s, recalibrated, weight=None):
    """Return the largest cost, over each score, each recalibrated score and the next
    number above it.
    """
    weight = np.ones(len(s)) if weight is None else weight
    best = 0.0
    for t in sorted({*s, *recalibrated}):
        for threshold in (t, np.nextafter(t, 2)):
            rows = zip(weight, s, recalibrated, strict=True)
            cost = sum(
                w * (q - threshold) * (float(q >= threshold) - float(p >= threshold))
                for w, p, q in rows
            )
            best = max(best, cost / sum(weight))
    return best


def _rows(n=120, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    s = np.round(rng.random(n), 1) if ties else rng.random(n)
    return (rng.random(n) < s**2).astype(int), s


@pytest.mark.parametrize("ties", [False, True])
def test_value_is_the_largest_cost_of_the_isotonic_fit(ties):
    y, s = _rows(ties=ties)
    recalibrated = isotonic(s, y)
    expected = _twin(y, s, [recalibrated[one] for one in s])
    assert decision_calibration_error(y, s) == pytest.approx(expected, abs=1e-12)
    assert decision_calibration_error(y, s) <= np.mean(
        np.abs([recalibrated[one] - one for one in s])
    )


def test_value_of_bins_need_not_be_monotone():
    y, s = _rows()
    y[s > 0.8] = 0  # the last bin has the fewest events
    edges = equal_mass_edges(s, 6)
    codes = np.array([bin_of(one, edges) for one in s])
    recalibrated = np.array([y[codes == code].mean() for code in codes])
    found, threshold = decision_calibration_error(
        y, s, binning=6, return_threshold=True
    )
    assert found == pytest.approx(_twin(y, s, recalibrated), abs=1e-12)
    cost = np.mean(
        (recalibrated - threshold)
        * ((recalibrated >= threshold) * 1.0 - (s >= threshold))
    )
    assert cost == pytest.approx(found, abs=1e-12)


def test_sanity_values():
    """Gupta and Ramdas, Example 1: .9 (.3 - .2) just above .2. One bin over uniform
    scores: 1/16 at 1/4.
    """
    y, s = [1] * 27 + [0] * 63 + [1] * 6 + [0] * 4, [0.2] * 90 + [0.8] * 10
    found, threshold = decision_calibration_error(y, s, return_threshold=True)
    assert found == pytest.approx(0.09, abs=1e-9)
    assert 0.2 < threshold < 0.2 + 1e-15
    s = (np.arange(20_000) + 0.5) / 20_000
    y = np.arange(20_000) % 2  # frequency one half everywhere
    found, threshold = decision_calibration_error(
        y, s, binning=1, return_threshold=True
    )
    # Cost at t below 1/2: the mean of (1/2 - t) over s < t, t (1/2 - t), which is 1/16
    # at 1/4; above 1/2 its mirror. Just above the 5,000th score, 1/4 - 1/40,000, these
    # are a quarter of the rows: 1/4 (1/4 + 1/40,000).
    assert found == pytest.approx(1 / 16 + 1 / 160_000, abs=1e-9)
    assert min(threshold, 1 - threshold) == pytest.approx(1 / 4, abs=1e-4)


def test_weights_sums_and_classes():
    y, s = _rows(ties=True)
    weight = np.random.default_rng(2).integers(0, 4, len(y))
    found = decision_calibration_error(y, s, sample_weight=weight)
    assert found == pytest.approx(
        decision_calibration_error(np.repeat(y, weight), np.repeat(s, weight)),
        abs=1e-12,
    )
    edges = np.append(np.arange(11) / 10 - 0.05, 1)
    sums = BinStatistics.from_predictions(y, s, np.clip(edges, 0, 1))
    assert decision_calibration_error(sums) == pytest.approx(
        decision_calibration_error(y, s), abs=1e-12
    )
    both = np.column_stack((1 - s, s))
    each = [decision_calibration_error(1 - y, 1 - s), decision_calibration_error(y, s)]
    assert decision_calibration_error(y, both, multiclass="marginal") == pytest.approx(
        np.mean(each), abs=1e-12
    )
    with refused(ValueError, "return_threshold", "marginal"):
        decision_calibration_error(
            y, both, multiclass="marginal", return_threshold=True
        )


def test_interval_and_test_recalibrate_each_draw():
    y, s = _rows(400)
    options = {
        "metric": decision_calibration_error,
        "n_resamples": 39,
        "random_state": 0,
    }
    found = calibration_error_interval(y, s, **options)
    assert 0 < found.low < found.high
    # max over t of t sqrt(t) - t^2 - (t^1.5 - t^3) / 3, the mean of t - s^2 over s^2 <
    # t <= s:
    t = np.linspace(0, 1, 1001)
    truth = np.max(t * (np.sqrt(t) - t) - (t**1.5 - t**3) / 3)
    assert found.low <= truth <= found.high
    assert calibration_test(y, s, **options).pvalue == 1 / 40
    assert (
        calibration_error_interval(y, s, binning=PoolAdjacentViolators(), **options)
        == found
    )
    assert calibration_error_interval(y, s, binning=5, **options).low > 0


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["uniform", "tenths", "rare"])
def test_level_and_coverage(shape):
    """200 samples: 10 rejections expected at .05, 19 are 3 s.e.; of 30 intervals 3 miss
    at .9, 8 are 3 s.e.
    """
    rejected = missed = 0
    t = np.linspace(0, 1, 2001)
    truth = np.max(t * (np.sqrt(t) - t) - (t**1.5 - t**3) / 3)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        draw = {
            "uniform": rng.random,
            "tenths": lambda n, rng=rng: rng.integers(1, 10, n) / 10,
        }
        s = draw[shape](300) if shape in draw else rng.beta(1, 20, 300)
        options = {
            "metric": decision_calibration_error,
            "n_resamples": 99,
            "random_state": seed,
        }
        rejected += (
            calibration_test(
                rng.random(300) < s, s, labels=[False, True], **options
            ).pvalue
            <= 0.05
        )
        if shape == "uniform" and seed < 30:
            low, high = calibration_error_interval(
                rng.random(300) < s**2, s, **options
            )[1:]
            missed += not low <= truth <= high
    assert rejected <= 19
    assert missed <= 8
