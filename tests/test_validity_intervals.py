"""Monte Carlo of intervals by test inversion and of tests with clusters: they cover,
and keep their level.

`benchmarks/levels` simulates more shapes of data, and every combination of them: here
each metric, size and world occurs. Of 100 intervals at 90 %, 80 or more cover in 999 of
1,000 cases; with half of the variance, in 1 of 6.
"""

from functools import partial

import numpy as np
import pytest

from skcalib import ScalingBinning
from skcalib.binning import EqualMass, EqualWidth, UniqueScores
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    maximum_calibration_error,
    smooth_calibration_error,
    sweep_calibration_error,
)

pytestmark = pytest.mark.slow

RUNS = 100
BINNED = {
    "l2": (2, EqualMass, calibration_error),
    "l1": (1, EqualMass, partial(calibration_error, norm=1)),
    "ECE": (1, EqualWidth, expected_calibration_error),
    "maximum": (np.inf, EqualWidth, maximum_calibration_error),
}


def error_without_noise(scores, truth, edges, norm):
    """Return the plugin error of the bins if each row had its true probability as
    label.
    """
    bins = np.searchsorted(edges[1:-1], scores, side="left")
    count = np.bincount(bins, minlength=len(edges) - 1)
    gap = np.abs(np.bincount(bins, scores - truth, len(count)) / np.maximum(count, 1))
    return (
        gap.max() if norm == np.inf else (count @ gap**norm / len(scores)) ** (1 / norm)
    )


@pytest.mark.parametrize(
    ("name", "n", "n_bins", "power"),
    [
        ("l2", 200, 1, 1.6),
        ("l2", 200, 15, 1.0),
        ("l2", 500, 50, 1.6),
        ("l1", 200, 3, 1.0),
        ("l1", 1500, 15, 1.6),
        ("ECE", 200, 15, 1.6),
        ("ECE", 500, 50, 1.0),
        ("maximum", 200, 3, 1.6),
        ("maximum", 1500, 15, 1.0),
    ],
)
def test_binned_intervals_cover(name, n, n_bins, power):
    norm, strategy, metric = BINNED[name]
    rng = np.random.default_rng(n + n_bins)
    covered = 0
    for run in range(RUNS):
        scores = rng.random(n)
        labels = rng.random(n) < scores**power
        binning = strategy(n_bins)
        _, low, high = calibration_error_interval(
            labels,
            scores,
            metric=metric,
            binning=binning,
            n_resamples=99,
            random_state=run,
        )
        truth = error_without_noise(
            scores, scores**power, binning.bin_edges(scores), norm
        )
        covered += low - 1e-12 <= truth <= high + 1e-12
    # The largest of few gaps is covered less often, as doc/evidence/levels.md
    # says: .83 with 3 bins and 200 rows.
    assert covered / RUNS >= (0.72 if name == "maximum" and n_bins == 3 else 0.8)


@pytest.mark.parametrize(
    ("draw", "curve"),
    [
        (lambda rng, n: rng.beta(1, 200, n), lambda s: s),
        (lambda rng, n: rng.beta(1, 200, n), lambda s: np.minimum(2 * s, 1)),
        (lambda rng, n: rng.integers(1, 10, n) / 10, lambda s: s**1.6),
        (lambda rng, n: np.full(n, 0.002), lambda s: s),
        (lambda rng, n: rng.random(n), lambda s: np.where(s < 0.5, 0.8 * s, s)),
    ],
    ids=["rare, calibrated", "rare, twice too low", "tied", "one rare score", "step"],
)
def test_default_interval_covers_on_hard_data(draw, curve):
    rng = np.random.default_rng(0)
    covered = points = 0
    for run in range(RUNS):
        scores = draw(rng, 500)
        truth = curve(scores)
        labels = rng.random(500) < truth
        found = calibration_error_interval(
            labels, scores, binning=5, labels=[0, 1], n_resamples=99, random_state=run
        )
        error = error_without_noise(scores, truth, EqualMass(5).bin_edges(scores), 2)
        covered += found.low - 1e-12 <= error <= found.high + 1e-12
        points += found.low == found.high
    assert covered / RUNS >= 0.8
    assert points == 0


@pytest.mark.parametrize(
    ("metric", "n", "power"),
    [
        (sweep_calibration_error, 200, 1.6),
        (smooth_calibration_error, 200, 1.0),
        (smooth_calibration_error, 600, 1.6),
        (kolmogorov_smirnov_calibration_error, 200, 1.6),
        (kolmogorov_smirnov_calibration_error, 600, 1.0),
    ],
)
def test_bin_free_intervals_cover(metric, n, power):
    # s^1.6 lies below s everywhere: all three errors are 1/2 - 1/2.6 in the population.
    truth = 1 / 2 - 1 / (1 + power)
    rng = np.random.default_rng(n)
    covered = 0
    for run in range(RUNS):
        scores = rng.random(n)
        labels = rng.random(n) < scores**power
        _, low, high = calibration_error_interval(
            labels, scores, metric=metric, n_resamples=99, random_state=run
        )
        covered += low <= truth <= high
    assert covered / RUNS >= 0.8


@pytest.mark.parametrize("n_bins", [2, 3, 10])
def test_verify_is_wrong_as_often_as_it_says(n_bins):
    # The limit is exactly the error of the binned model on rows with P(y | s) = s^1.6.
    rng = np.random.default_rng(0)
    fitted = rng.random(4000)
    model = ScalingBinning(binning=n_bins).fit(fitted, rng.random(4000) < fitted)
    scores = rng.random(1_000_000)
    binned = model.predict_proba(scores)[:, 1]
    edges = UniqueScores().bin_edges(binned)
    limit = error_without_noise(binned, scores**1.6, edges, 2)
    wrong = 0
    for run in range(200):
        scores = rng.random(800)
        labels = rng.random(800) < scores**1.6
        wrong += model.verify(
            scores, labels, limit, n_resamples=99, random_state=run
        ).verified
    assert wrong / 200 <= 0.14


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"metric": calibration_error},
        {"method": "kuiper"},
        {"metric": expected_calibration_error},
    ],
)
def test_clustered_tests_keep_their_level(options):
    # 40 clusters of 20 rows, all too high or all too low in a cluster: calibrated on
    # average.
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(40), 20)
    rejected = naive = 0
    for run in range(RUNS):
        scores = rng.random(800)
        labels = rng.random(800) < scores + 0.8 * rng.choice([-1, 1], 40)[
            clusters
        ] * scores * (1 - scores)
        arguments = {"n_resamples": 99, "random_state": run, **options}
        rejected += (
            calibration_test(labels, scores, clusters=clusters, **arguments).pvalue
            <= 0.05
        )
        naive += calibration_test(labels, scores, **arguments).pvalue <= 0.05
    assert rejected / RUNS <= 0.12
    assert naive > rejected


@pytest.mark.parametrize(
    "metric",
    [
        calibration_error,
        expected_calibration_error,
        kuiper_calibration_error,
        smooth_calibration_error,
    ],
)
def test_zero_is_excluded_where_the_test_rejects(metric):
    rng = np.random.default_rng(2)
    excluded, rejected = [], []
    for run in range(RUNS):
        scores = rng.random(300)
        labels = rng.random(300) < scores ** (1.0, 1.3)[run % 2]
        arguments = {"metric": metric, "n_resamples": 99, "random_state": run}
        low = calibration_error_interval(labels, scores, **arguments).low
        excluded.append(low > 0)
        rejected.append(calibration_test(labels, scores, **arguments).pvalue < 0.05)
    assert excluded == rejected
    assert 10 < sum(rejected) < RUNS - 10
