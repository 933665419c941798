"""Weights of importance: against plain twins, equal weights, and the level of skewed ones."""

from functools import partial

import numpy as np
import pytest
from _catalog import refused

from skcalib._cells.reductions import counted_rows
from skcalib._inference.hypotheses import Resampling, error_hypotheses
from skcalib._input.scored_labels import check_scored_labels
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
    kuiper_calibration_error,
    reliability_curve,
)
from skcalib.metrics._table import METRICS


def skewed(seed, n=800, power=1.0):
    """Calibrated scores whose weights are those of Pareto(2.2), and no counts."""
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return rng.random(n) < scores**power, scores, 1 + rng.pareto(2.2, n)


def test_equal_weights_of_any_size_are_none():
    y, scores, _ = skewed(0, 300)
    for call in (calibration_error_interval, calibration_test):
        for metric in (calibration_error, kuiper_calibration_error):
            options = {"metric": metric, "n_resamples": 50, "random_state": 0}
            plain = call(y, scores, **options)
            for size in (0.001, 0.3, 70):
                weights = {
                    "sample_weight": np.full(300, size),
                    "weight_type": "importance",
                }
                assert call(y, scores, **weights, **options) == pytest.approx(
                    plain, abs=2e-3
                )


def test_a_cell_is_worth_its_weights():
    y, scores, weight = skewed(1)
    data = counted_rows(
        check_scored_labels(y, scores, sample_weight=weight), "importance"
    )
    assert data.sample_weight.sum() == pytest.approx(
        weight.sum() ** 2 / np.sum(weight**2)
    )
    error = METRICS["calibration_error"].error({"binning": 4})
    hypotheses = error_hypotheses(
        error, data, Resampling(5, np.random.RandomState(0), None, True)
    )
    curve = reliability_curve(y, scores, binning=4, sample_weight=weight)
    bins = np.searchsorted(curve.edges[1:-1], scores)
    worth = [
        weight[bins == k].sum() ** 2 / np.sum(weight[bins == k] ** 2) for k in range(4)
    ]
    np.testing.assert_array_equal(hypotheses.draw.trials, np.rint(worth))


def test_bins_know_their_squared_weights():
    y, scores, weight = skewed(2)
    options = {"n_resamples": 200, "weight_type": "importance", "random_state": 0}
    rows = calibration_error_interval(
        y, scores, binning=5, sample_weight=weight, **options
    )
    bins = reliability_curve(y, scores, binning=5, sample_weight=weight)
    assert calibration_error_interval(bins, **options) == pytest.approx(rows, abs=1e-9)
    worth = reliability_curve(
        y, scores, binning=5, sample_weight=weight, weight_type="importance"
    )
    np.testing.assert_allclose(worth.event_frequency, bins.event_frequency)
    assert worth.total_weight == pytest.approx(weight.sum() ** 2 / np.sum(weight**2))
    assert np.all(np.diff(worth.interval(), axis=0) > np.diff(bins.interval(), axis=0))


def test_the_warning_names_both_ways():
    y, scores, weight = skewed(3, 100)
    for call in (
        calibration_error_interval,
        calibration_test,
        partial(calibration_by_group, groups=y),
    ):
        with pytest.warns(UserWarning, match="no integers.*importance.*round or scale"):
            call(y, scores, sample_weight=weight, n_resamples=5)
        with refused(
            ValueError, "weight_type", "'frequency', 'importance'", "'counts'"
        ):
            call(y, scores, sample_weight=weight, weight_type="counts")


@pytest.mark.slow
def test_level_and_coverage_of_skewed_weights():
    covered, rejected, group = [], [], []
    for seed in range(200):
        y, scores, weight = skewed(seed)
        weights = {"sample_weight": weight, "weight_type": "importance"}
        options = {"n_resamples": 99, "random_state": seed, **weights}
        covered.append(
            calibration_error_interval(y, scores, binning=2, **options).low == 0
        )
        rejected.append(
            calibration_test(
                y, scores, metric=expected_calibration_error, **options
            ).pvalue
            <= 0.05
        )
        found = calibration_by_group(y, scores, np.zeros(800), **options)
        group.append(found.bias_low[0] <= 0 <= found.bias_high[0])
    assert np.mean(covered) >= 0.87  # .64 where they count rows
    assert np.mean(rejected) <= 0.095
    assert np.mean(group) >= 0.85
