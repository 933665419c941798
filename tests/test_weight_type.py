"""Weights of importance: against plain twins, equal weights, and the level of skewed
ones.
"""

from functools import partial

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import norm

from skcalib._cells.binned import counted_rows
from skcalib._inference.bias import rows_bias_test
from skcalib._inference.closed_form import maximum_pvalue, range_pvalue
from skcalib._inference.hypotheses import Resampling, error_hypotheses
from skcalib._input.label_weights import label_weights
from skcalib._input.scored_labels import check_scored_labels
from skcalib.binning import FixedEdges, UniqueScores
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
    kuiper_calibration_error,
    reliability_curve,
)
from skcalib.metrics._registry import METRICS


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
    # The label does not change the weight.
    data = counted_rows(
        check_scored_labels(y, scores, sample_weight=weight), {0: weight, 1: weight}
    )
    assert data.sample_weight.sum() == pytest.approx(
        weight.sum() ** 2 / np.sum(weight**2)
    )
    error = METRICS["calibration_error"].error(binning=4)
    hypotheses = error_hypotheses(error, data, Resampling(5, np.random.RandomState(0)))
    curve = reliability_curve(y, scores, binning=4, sample_weight=weight)
    bins = np.searchsorted(curve.edges[1:-1], scores)
    # The rows of a bin are worth the trials whose binomial variance is the sum of w^2 s
    # (1 - s) over the squared weight.
    variance = scores * (1 - scores)
    worth = []
    for k in range(4):
        w, v = weight[bins == k], variance[bins == k]
        worth.append(w.sum() * (w @ v) / (w**2 @ v))
    np.testing.assert_array_equal(hypotheses.draw.trials, np.rint(worth))


def test_bins_know_their_squared_weights():
    y, scores, weight = skewed(2)
    options = {"n_resamples": 200, "random_state": 0}
    rows = calibration_error_interval(
        y,
        scores,
        binning=5,
        sample_weight=weight,
        weight_type={0: weight, 1: weight},
        **options,
    )
    bins = reliability_curve(y, scores, binning=5, sample_weight=weight)
    # The rows of a bin count as equal, whatever their scores.
    of_bins = calibration_error_interval(bins, weight_type="importance", **options)
    np.testing.assert_allclose(of_bins, rows, atol=0.01)
    worth = reliability_curve(
        y, scores, binning=5, sample_weight=weight, weight_type="importance"
    )
    np.testing.assert_allclose(worth.event_frequency, bins.event_frequency)
    assert worth.total_weight == pytest.approx(weight.sum() ** 2 / np.sum(weight**2))
    assert np.all(np.diff(worth.interval(), axis=0) > np.diff(bins.interval(), axis=0))


# Debiased errors subtract the noise of as many samples as the weights add up to.
_COUNTS = ("calibration_error",)
_WEIGHTED = [name for name in METRICS if name not in _COUNTS]


@pytest.mark.parametrize("name", _WEIGHTED)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_common_factor_of_weights_changes_no_metric(name, n_classes):
    rng = np.random.default_rng(7)
    proba = rng.dirichlet(np.ones(n_classes), 400)
    y = (rng.random((400, 1)) > np.cumsum(proba**2, axis=1)).sum(axis=1) % n_classes
    metric = METRICS[name].function
    weight = rng.gamma(2.0, size=400)
    expected = metric(y, proba, sample_weight=weight)
    for factor in (0.3, 1e-6, 17.0):
        found = metric(y, proba, sample_weight=factor * weight)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
    # equal weights that are no integers are none
    plain = metric(y, proba)
    found = metric(y, proba, sample_weight=np.full(400, 0.3))
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-12)


def test_bins_of_weights_that_are_no_integers_are_relative_too():
    rng = np.random.default_rng(8)
    scores = rng.choice(rng.random(30), 300)
    y, weight = rng.random(300) < scores, rng.gamma(2.0, size=300)
    metric = METRICS["neighborhood_calibration_error"].function
    for factor in (1.0, 0.3):
        bins = reliability_curve(
            y, scores, binning=UniqueScores(), sample_weight=factor * weight
        )
        expected = metric(y, scores, sample_weight=weight)
        assert metric(bins) == pytest.approx(expected, rel=1e-9)


def test_a_pair_of_one_weighted_row_with_itself_is_no_pair():
    """The kernel error of weights that are no integers, by a double loop."""
    rng = np.random.default_rng(9)
    proba, weight = rng.dirichlet(np.ones(3), 20), rng.gamma(2.0, size=20)
    y = rng.integers(0, 3, 20)
    residual = np.eye(3)[y] - proba
    total = pairs = 0.0
    for i in range(20):
        for j in range(20):
            if i != j:
                kernel = np.exp(-np.abs(proba[i] - proba[j]).sum() / 2 / 0.4)
                pairs += weight[i] * weight[j]
                total += weight[i] * weight[j] * kernel * (residual[i] @ residual[j])
    metric = METRICS["kernel_calibration_error"].function
    found = metric(y, proba, bandwidth=0.4, sample_weight=weight)
    assert found == pytest.approx(total / pairs, abs=1e-12)


def test_the_warning_names_both_ways():
    y, scores, weight = skewed(3, 100)
    for call in (
        calibration_error_interval,
        calibration_test,
        partial(calibration_by_group, groups=y),
    ):
        with pytest.warns(
            UserWarning, match="not integers.*importance.*round or scale"
        ):
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


# --- Few heavy rows and many light ones -----------------------------------------------


def heavy_and_light(seed):
    """Calibrated: 200 rows near 1/2 with weight 20, and 20,000 near .01 with .2."""
    rng = np.random.default_rng(seed)
    scores = np.concatenate((0.3 + 0.4 * rng.random(200), 0.02 * rng.random(20_000)))
    weight = np.repeat([20.0, 0.2], [200, 20_000])
    return rng.random(len(scores)) < scores, scores, weight


def test_closed_forms_take_the_variance_of_the_weights():
    y, scores, weight = heavy_and_light(0)
    options = {"sample_weight": weight, "weight_type": {0: weight, 1: weight}}
    squares = weight**2 * scores * (1 - scores)
    sums = np.cumsum((weight * (y - scores))[np.argsort(scores)])
    ends = np.append(sums, 0)
    for method, largest, law in (
        ("kuiper", ends.max() - ends.min(), range_pvalue),
        ("kolmogorov_smirnov", np.abs(sums).max(), maximum_pvalue),
    ):
        found = calibration_test(y, scores, method=method, **options)
        assert found.pvalue == pytest.approx(law(largest / np.sqrt(squares.sum())))
    found = calibration_test(y, scores, method="spiegelhalter", **options)
    z = np.sum(weight * (y - scores) * (1 - 2 * scores)) / np.sqrt(
        np.sum(squares * (1 - 2 * scores) ** 2)
    )
    assert found == pytest.approx((z, 2 * norm.sf(abs(z))))
    half = calibration_test(
        y,
        scores,
        method="spiegelhalter",
        sample_weight=0.3 * weight,
        weight_type={0: 0.3 * weight, 1: 0.3 * weight},
    )
    assert half == pytest.approx(tuple(found))


def test_a_row_that_dominates_draws_labels():
    rng = np.random.default_rng(1)
    scores = rng.random(100)
    y, weight = rng.random(100) < scores, np.ones(100)
    weight[0] = 30
    options = {
        "sample_weight": weight,
        "weight_type": {0: weight, 1: weight},
        "random_state": 0,
    }
    found = calibration_test(y, scores, method="kuiper", **options)
    drawn = calibration_test(y, scores, metric=kuiper_calibration_error, **options)
    assert found == drawn


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_closed_forms_keep_their_level_with_heavy_rows(n_samples):
    methods = ("kuiper", "kolmogorov_smirnov", "spiegelhalter")
    rejected = np.zeros(3)
    for seed in range(n_samples):
        y, scores, weight = heavy_and_light(seed)
        for k, method in enumerate(methods):
            test = calibration_test(
                y,
                scores,
                method=method,
                sample_weight=weight,
                weight_type="importance",
            )
            rejected[k] += test.pvalue <= 0.05
    # as counts: .255, .205 and .000
    limit = 0.05 + 2.5 * np.sqrt(0.0475 / n_samples)
    assert np.all(rejected / n_samples <= limit), rejected / n_samples


@pytest.mark.parametrize("n_samples", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_the_bias_of_heavy_and_light_rows_is_covered(n_samples):
    covered = 0
    for seed in range(n_samples):
        y, scores, weight = heavy_and_light(seed)
        known = label_weights(y, weight)
        test, reason = rows_bias_test(scores, y, 0.9, weight, label_weights=known)
        assert reason == ""
        covered += test.low <= 0 <= test.high
    assert covered / n_samples >= 0.9 - 2.5 * np.sqrt(0.09 / n_samples)


def test_intervals_of_bins_take_the_weights_of_each_bin():
    """200 rows of one weight above, 20,000 below: each bin's interval is that of its
    rows without weights.
    """
    y, scores, weight = heavy_and_light(2)
    options = {"binning": FixedEdges([0, 0.1, 1])}
    plain = reliability_curve(y, scores, **options).interval()
    curve = reliability_curve(
        y, scores, sample_weight=weight, weight_type="importance", **options
    )
    np.testing.assert_allclose(curve.interval(), plain, atol=1e-9)
    # as counts, scaled together, the heavy rows are twice as many
    counted = curve.interval(weight_type="frequency")
    assert (counted[1] - counted[0])[1] < 0.8 * (plain[1] - plain[0])[1]
    with refused(ValueError, "weight_type", "'count'"):
        curve.interval(weight_type="count")
