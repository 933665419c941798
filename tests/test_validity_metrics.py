"""Monte Carlo of the metrics: do intervals cover, do tests keep their level, which
errors are biased.

Frequencies of R runs at level p scatter by sqrt(p (1 - p) / R).
"""

import numpy as np
import pytest

from skcalib.binning import EqualMass
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    sweep_calibration_error,
)

pytestmark = pytest.mark.slow

SCORES = {
    "uniform": lambda rng, n: rng.random(n),
    "confident": lambda rng, n: rng.beta(2.8, 0.2, n),
    "tenths": lambda rng, n: rng.integers(1, 10, n) / 10,
    "three": lambda rng, n: rng.choice([0.05, 0.5, 0.9], n),
}


def binned_error(edges, power):
    """Exact l2 error of the bins for a uniform score and P(y | s) = s^power: means over
    (a, b] are integrals.
    """
    low, high = edges[:-1], edges[1:]
    width = high - low
    score = (high**2 - low**2) / (2 * width)
    frequency = (high ** (power + 1) - low ** (power + 1)) / ((power + 1) * width)
    return np.sqrt(width @ (score - frequency) ** 2)


def test_the_interval_covers_clustered_rows():
    # 60 clusters of 25 rows with P(y | s) = s^1.6 (1 +- .9 (1 - s)), one sign a
    # cluster: s^1.6 on average. Taken as independent, the rows look more certain than
    # they are, and the debiased error is too large.
    rng = np.random.default_rng(1)
    covered = {"clusters": 0, "rows": 0}
    cluster = np.repeat(np.arange(60), 25)
    for run in range(100):
        scores = rng.random(1500)
        sign = np.repeat(rng.choice([-1, 1], 60), 25)
        labels = rng.random(1500) < scores**1.6 * (1 + 0.9 * sign * (1 - scores))
        truth = binned_error(EqualMass(10).bin_edges(scores), 1.6)
        for kind, clusters in (("clusters", cluster), ("rows", None)):
            options = {
                "binning": 10,
                "clusters": clusters,
                "n_resamples": 99,
                "random_state": run,
            }
            _, low, high = calibration_error_interval(labels, scores, **options)
            covered[kind] += low <= truth <= high
    assert covered["clusters"] >= 80
    assert covered["rows"] < covered["clusters"] - 5


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("uniform", 200),
        ("uniform", 2000),
        ("confident", 400),
        ("tenths", 400),
        ("three", 2000),
    ],
)
# small counts are the point here
@pytest.mark.filterwarnings("ignore:method='hosmer_lemeshow'")
def test_level_of_the_tests(kind, n):
    # Level .05 of 400 runs: +- 3 % is 2.8 standard errors; discrete statistics (heavy
    # ties) may reject less often.
    rng = np.random.default_rng(n)
    rejected = dict.fromkeys(("resampling", "spiegelhalter", "hosmer_lemeshow"), 0)
    for run in range(400):
        scores = SCORES[kind](rng, n)
        labels = rng.random(n) < scores
        for method in rejected:
            # 39 labels drawn: .05 is attained exactly, by being among the two largest
            # of forty.
            result = calibration_test(
                labels, scores, method=method, n_resamples=39, random_state=run
            )
            rejected[method] += result.pvalue <= 0.05
    tied = kind in ("tenths", "three")
    for method in ("resampling", "spiegelhalter"):
        assert (0 if tied else 0.02) <= rejected[method] / 400 <= 0.08
    # Chi-squared is a poor approximation where bins expect next to no failure: said in
    # the docstring.
    assert rejected["hosmer_lemeshow"] / 400 <= (0.11 if kind == "confident" else 0.08)


def test_slope_and_intercept_intervals_cover():
    # P(y | s) = expit(.3 + .7 logit s): slope .7; calibrated scores: intercept 0.
    rng = np.random.default_rng(2)
    slopes = intercepts = 0
    for _ in range(250):
        scores = rng.beta(2, 2, 400)
        z = np.log(scores / (1 - scores))
        slope = calibration_slope_intercept(
            rng.random(400) < 1 / (1 + np.exp(-0.3 - 0.7 * z)), scores
        ).slope
        intercept = calibration_slope_intercept(
            rng.random(400) < scores, scores
        ).intercept
        slopes += slope.low <= 0.7 <= slope.high
        intercepts += intercept.low <= 0 <= intercept.high
    # three standard errors
    assert slopes / 250 == pytest.approx(0.9, abs=0.057)
    assert intercepts / 250 == pytest.approx(0.9, abs=0.057)


def test_the_sweep_is_the_least_biased_of_the_plugin_errors():
    # Roelofs et al.: at small n. Truth for s uniform, s^1.6: 1/2 - 1/2.6 = .1154.
    rng = np.random.default_rng(3)
    bias = dict.fromkeys(("width", "mass", "sweep"), 0.0)
    for _ in range(500):
        scores = rng.random(200)
        labels = rng.random(200) < scores**1.6
        truth = 1 / 2 - 1 / 2.6
        bias["width"] += expected_calibration_error(labels, scores) - truth
        bias["mass"] += expected_calibration_error(labels, scores, binning=15) - truth
        bias["sweep"] += sweep_calibration_error(labels, scores) - truth
    assert abs(bias["sweep"]) < 0.5 * min(bias["width"], bias["mass"])


def test_the_signed_square_is_unbiased():
    # Calibrated: the mean of the debiased square is 0 within 3 standard errors, that of
    # the plugin square is not.
    rng = np.random.default_rng(4)
    squares = []
    for _ in range(1000):
        scores = np.repeat((np.arange(10) + 0.5) / 10, 20)
        labels = rng.random(200) < scores
        options = {"binning": 10, "squared": True}
        squares.append(
            [
                calibration_error(labels, scores, method=m, **options)
                for m in ("debiased", "plugin")
            ]
        )
    mean, error = np.mean(squares, axis=0), np.std(squares, axis=0) / np.sqrt(1000)
    assert abs(mean[0]) < 3 * error[0]
    assert mean[1] > 10 * error[1]
