"""Kernel errors against direct sums over rows and mirror images."""

import math
import time

import numpy as np
import pytest
from _catalog import refused
from scipy.optimize import brentq

from skcalib.binning import UniqueScores
from skcalib.metrics import (
    expected_calibration_error,
    kde_calibration_error,
    smooth_calibration_error,
)

GRID = np.linspace(0, 1, 2001)


def images(scores, reach):
    """Yield the scores and their mirror images at 0 and at 1, as far as `reach`."""
    for k in range(-reach, reach + 1):
        yield scores + 2 * k
        yield -scores + 2 * k


def kde_twin(scores, labels, weights, norm, bandwidth, grid=GRID):
    density, events = np.zeros_like(grid), np.zeros_like(grid)
    for mirrored in images(scores, 1):
        # the triweight kernel has variance 1/9
        u = (grid[:, None] - mirrored) / (3 * bandwidth)
        kernel = np.where(np.abs(u) < 1, (1 - u**2) ** 3, 0)
        density += kernel @ weights
        events += kernel @ (weights * labels)
    frequency = np.divide(events, density, out=grid.copy(), where=density > 0)
    power = np.trapezoid(
        np.abs(frequency - grid) ** norm * density, grid
    ) / np.trapezoid(density, grid)
    return power ** (1 / norm)


def smooth_twin(scores, labels, weights, sigma, grid=GRID):
    smoothed = np.zeros_like(grid)
    for mirrored in images(scores, 2):
        kernel = np.exp(-((grid[:, None] - mirrored) ** 2) / (2 * sigma**2)) / (
            sigma * math.sqrt(2 * math.pi)
        )
        smoothed += kernel @ (weights * (labels - scores))
    return np.trapezoid(np.abs(smoothed), grid) / weights.sum()


def sample(seed, n=150, ties=False):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 21, n) / 20 if ties else rng.random(n) ** 2
    return scores, rng.random(n) < scores**1.5, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("norm", [1, 2, 3.5])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.slow
def test_kde_equals_the_direct_sum(norm, ties):
    scores, labels, weights = sample(0, ties=ties)
    mean = np.average(scores, weights=weights)
    rule = (
        1.06
        * math.sqrt(np.average((scores - mean) ** 2, weights=weights))
        * weights.sum() ** -0.2
    )
    twin = kde_twin(scores, labels, weights, norm, rule)
    assert kde_calibration_error(
        labels, scores, norm=norm, sample_weight=weights
    ) == pytest.approx(twin, rel=1e-4)
    # as wide as the unit interval: reflected more than once
    twin = kde_twin(scores, labels, np.ones(150), norm, 0.3)
    assert kde_calibration_error(
        labels, scores, norm=norm, bandwidth=0.3
    ) == pytest.approx(twin, rel=1e-4)


def test_kde_of_one_score_is_the_distance_of_the_frequency_from_it():
    assert kde_calibration_error([0, 1, 0, 0], [0.75] * 4, norm=1) == pytest.approx(0.5)


def test_kde_estimates_the_error_of_a_smooth_curve():
    # E|s - s^1.6| for s uniform = 1/2 - 1/2.6.
    rng = np.random.default_rng(1)
    scores = rng.random(200_000)
    labels = rng.random(200_000) < scores**1.6
    assert kde_calibration_error(labels, scores) == pytest.approx(
        1 / 2 - 1 / 2.6, abs=0.004
    )


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_smooth_error_is_the_fixed_point_of_the_direct_sum(ties):
    scores, labels, weights = sample(2, ties=ties)
    fixed = brentq(
        lambda sigma: smooth_twin(scores, labels, weights, sigma) - sigma, 0.02, 0.4
    )
    assert smooth_calibration_error(
        labels, scores, sample_weight=weights
    ) == pytest.approx(fixed, rel=1e-3)


def fractional_parts(n, power):
    """Scores in (.05, .95) and labels with P(y | s) = s^power, both from irrational
    rotations.
    """
    index = np.arange(n)
    scores = 0.05 + 0.9 * ((index * 0.6180339887498949 + 0.5) % 1)
    return scores, (index * 0.7548776662466927 + 0.25) % 1 < scores**power


@pytest.mark.parametrize(
    ("n", "power", "reference"),
    [
        (200, 1, 0.025731),
        (200, 2, 0.189233),
        (2000, 1.3, 0.071397),
        (2000, 0.5, 0.175414),
        (20000, 1.1, 0.025716),
    ],
)
def test_smooth_error_agrees_with_the_reference_implementation(n, power, reference):
    # relplot 1.0.3, smECE(f, y). It looks for sigma in ten bisections, hence 3 %;
    # refined to thirty it is within .2 %.
    scores, labels = fractional_parts(n, power)
    assert smooth_calibration_error(labels, scores) == pytest.approx(
        reference, rel=0.03
    )


def test_smooth_error_is_never_above_the_unsmoothed_one():
    # Blasiok and Nakkiran: smoothing contracts. Holds for scores at 0 and 1 too, where
    # an image is easily lost.
    rng = np.random.default_rng(3)
    for _ in range(50):
        scores = rng.choice([0.0, 0.01, 0.5, 0.99, 1.0], 60)
        labels = rng.random(60) < 0.1 + 0.8 * scores
        unsmoothed = expected_calibration_error(labels, scores, binning=UniqueScores())
        assert smooth_calibration_error(labels, scores) <= unsmoothed + 1e-6


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([0.3], [1], 0.7),
        ([1.0], [1], 0.0),
        ([0.0, 0.0], [1, 1], 1.0),
        ([0.25] * 4, [0, 0, 0, 1], 0.0),
    ],
)
def test_one_distinct_score(scores, labels, expected):
    for metric in (kde_calibration_error, smooth_calibration_error):
        assert metric(labels, scores, labels=[0, 1]) == pytest.approx(
            expected, abs=1e-9
        )


def test_a_perfect_forecast_has_no_error():
    labels = np.arange(50) % 2
    assert smooth_calibration_error(labels, labels.astype(float)) == pytest.approx(
        0, abs=1e-12
    )


@pytest.mark.parametrize("metric", [kde_calibration_error, smooth_calibration_error])
def test_weights_are_repetitions_and_order_is_nothing(metric):
    scores, labels, weights = sample(4, ties=True)
    repeats = weights.astype(int)
    expected = metric(np.repeat(labels, repeats), np.repeat(scores, repeats))
    assert metric(labels, scores, sample_weight=weights) == pytest.approx(
        expected, rel=1e-9
    )
    assert metric(
        labels[::-1], scores[::-1], sample_weight=weights[::-1]
    ) == pytest.approx(expected, rel=1e-9)
    assert metric(
        labels, scores.astype(np.float32), sample_weight=weights
    ) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("metric", [kde_calibration_error, smooth_calibration_error])
def test_many_classes(metric):
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.ones(3), 200)
    labels = np.array([rng.choice(3, p=row) for row in proba])
    top = metric(labels == proba.argmax(1), proba.max(1))
    assert metric(labels, proba) == pytest.approx(top, rel=1e-9)
    mean = np.mean([metric(labels == k, proba[:, k]) for k in range(3)])
    assert metric(labels, proba, multiclass="marginal") == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("low", [0.0, 0.002, 0.41, 0.97, 0.98])
@pytest.mark.slow
def test_scores_in_a_narrow_range_are_smoothed_as_on_the_whole_interval(low):
    # They are smoothed on a part of the grid, which reflects at 0 and at 1 alone.
    rng = np.random.default_rng(8)
    scores = low + 0.02 * np.sort(rng.random(300))
    expected = np.cumsum(
        np.clip(scores + np.where(scores > low + 0.01, -0.02, 0.02), 0, 1)
    )
    labels, weights = (
        np.diff(np.floor(expected), prepend=0),
        rng.integers(1, 4, 300).astype(float),
    )
    labels, grid = labels > 0, np.linspace(max(low - 0.1, 0), min(low + 0.12, 1), 1201)
    twin = kde_twin(scores, labels, weights, 2, 0.002, grid)
    assert kde_calibration_error(
        labels, scores, norm=2, bandwidth=0.002, sample_weight=weights
    ) == pytest.approx(twin, rel=1e-3)
    fixed = brentq(
        lambda sigma: smooth_twin(scores, labels, weights, sigma, grid) - sigma,
        1e-3,
        0.02,
        xtol=1e-5,
    )
    assert fixed < 0.0156  # on a finer grid than the first one
    assert smooth_calibration_error(
        labels, scores, sample_weight=weights
    ) == pytest.approx(fixed, rel=2e-3)


def test_concentrated_scores_are_resolved():
    # A spread of 1e-3 and of 1e-9: the gap of .2 is found in both.
    rng = np.random.default_rng(6)
    for spread in (1e-3, 1e-9):
        scores = 0.5 + spread * rng.random(1000)
        labels = np.arange(1000) % 10 < 7
        assert kde_calibration_error(labels, scores) == pytest.approx(0.2, abs=0.02)
        assert smooth_calibration_error(labels, scores) == pytest.approx(0.2, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("metric", [kde_calibration_error, smooth_calibration_error])
def test_a_hundred_thousand_rows_take_less_than_a_second(metric):
    rng = np.random.default_rng(7)
    scores = rng.beta(2.8, 0.2, 100_000)
    labels = rng.random(100_000) < scores
    start = time.perf_counter()
    assert metric(labels, scores) < 0.02
    assert time.perf_counter() - start < 1


def test_bad_parameters():
    with refused(ValueError, "norm=np.inf", "finite"):
        kde_calibration_error([0, 1], [0.2, 0.4], norm=np.inf)
    for bandwidth in (0, -1, np.nan, np.inf, "rule"):
        with refused(ValueError, "bandwidth", repr(bandwidth)):
            kde_calibration_error([0, 1], [0.2, 0.4], bandwidth=bandwidth)
