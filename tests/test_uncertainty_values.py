"""Right values of worlds in which labels say little: from fractions, by quadrature, or
from the variance of a sum.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import norm, t

from skcalib import PlattScaling, censored_labels
from skcalib._solvers.random_intercept import fit_random_intercept
from skcalib.evaluation import (
    calibration_by_cluster,
    calibration_summary,
    compare,
    recalibration_gain,
)
from skcalib.metrics import (
    calibration_by_group,
    calibration_slope_intercept,
    calibration_test,
)
from skcalib.monitoring import calibration_trend, error_autocorrelation

# --- Clusters without events ----------------------------------------------------------

# Cluster, score, samples, events; then the intercept of the median cluster by maximum
# likelihood (201 points of Gauss-Hermite quadrature), the limits of its profile
# likelihood at 95 %, and the deviation between clusters.
STUDIES = {
    "eight hospitals, three without an event": (
        [
            (1, 0.02, 40, 1), (1, 0.10, 10, 2), (2, 0.02, 40, 0), (2, 0.10, 10, 0),
            (3, 0.02, 30, 0), (3, 0.10, 20, 3), (4, 0.02, 45, 0), (4, 0.10, 5, 0),
            (5, 0.02, 25, 2), (5, 0.10, 25, 4), (6, 0.02, 40, 0), (6, 0.10, 10, 0),
            (7, 0.02, 35, 1), (7, 0.10, 15, 1), (8, 0.02, 30, 0), (8, 0.10, 20, 6),
        ],
        (-0.030941, -1.334134, 0.594245, 0.585609),
        20 / 17.2,
    ),
    "twelve sites, seven without an event": (
        [
            (1, 0.03, 30, 0), (2, 0.03, 30, 3), (3, 0.03, 30, 0), (4, 0.03, 30, 0),
            (5, 0.05, 30, 5), (6, 0.05, 30, 0), (7, 0.05, 30, 0), (8, 0.05, 30, 1),
            (9, 0.02, 50, 0), (10, 0.02, 50, 4), (11, 0.02, 50, 0), (12, 0.02, 50, 1),
        ],
        (-0.850874, -3.449377, 0.292766, 1.508684),
        14 / 13.6,
    ),
    "ten wards, hardly different": (
        [(k, 0.02, 50, d) for k, d in enumerate([1, 0, 2, 0, 1, 3, 0, 1, 2, 0])],
        (-0.010189, -1.163696, 0.569384, 0.145726),
        1.0,
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_clusters_without_events_are_kept(name):
    table, (median, low, high, tau), ratio = STUDIES[name]
    rows = [
        (cluster, score, event)
        for cluster, score, n, n_events in table
        for event in [1] * n_events + [0] * (n - n_events)
    ]
    cluster, scores, labels = (np.array(column) for column in zip(*rows, strict=True))
    found = calibration_by_cluster(labels, scores, cluster)
    assert found.pooled["intercept"].estimate == pytest.approx(median, abs=2e-3)
    assert found.between["intercept"] == pytest.approx(tau, abs=5e-3)
    population = found.pooled["population_observed_expected"]
    assert population.estimate == pytest.approx(ratio)
    assert population.low < ratio < population.high
    # The limits above have the quantile of a normal distribution: that of Student's at
    # another level.
    code = np.unique(cluster, return_inverse=True)[1]
    level = 2 * t.cdf(norm.isf(0.025), code.max()) - 1
    fitted = fit_random_intercept(
        logit(scores), labels == 1, np.ones(len(labels)), code, level
    )
    assert fitted.low == pytest.approx(low, abs=0.02)
    assert fitted.high == pytest.approx(high, abs=0.005)


def test_a_calibrated_model_of_twenty_hospitals():
    """23 events where 20.14 are expected; some hospitals have none."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(20), 50)
    scores = rng.beta(1, 49, 1000)
    labels = rng.random(1000) < scores
    assert not all(labels[cluster == k].any() for k in range(20))
    pooled = calibration_by_cluster(labels, scores, cluster, pos_label=True).pooled
    assert pooled["population_observed_expected"].estimate == pytest.approx(1.1418128)
    for name, right in (
        ("population_observed_expected", 1.0),
        ("observed_expected", 1.0),
        ("intercept", 0.0),
    ):
        assert pooled[name].low < right < pooled[name].high


# --- Censored outcomes ----------------------------------------------------------------

TIME = [1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9]
EVENT = [1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1]
BY_HORIZON = {
    3: ("1 0 1 10/9 0" + 7 * " 80/63", "7/27"),
    4: ("1 0 1 10/9 0" + 7 * " 80/63", "23/63"),
    5.5: ("1 0 1 10/9 0 80/63 0 80/63" + 4 * " 100/63", "89/189"),
    7: ("1 0 1 10/9 0 80/63 0 80/63 0" + 3 * " 400/189", "367/567"),
}


@pytest.mark.parametrize("horizon", BY_HORIZON)
def test_weights_of_twelve_censored_samples(horizon):
    weights, risk = BY_HORIZON[horizon]
    y, weight, weight_type = censored_labels(TIME, EVENT, horizon)
    assert weight_type == "importance"
    expected = [float(Fraction(text)) for text in weights.split()]
    assert weight == pytest.approx(expected, rel=1e-12)
    # 1 less the Kaplan-Meier curve
    assert weight @ y / 12 == pytest.approx(float(Fraction(risk)), rel=1e-12)


# --- Weights of each label ------------------------------------------------------------


def _click_log(factor):
    """All clicks and one of 20 other rows, with scores `factor` times too high."""
    rng = np.random.default_rng(3)
    scores = 1 / (1 + np.exp(-rng.normal(-4, 1, 60_000)))
    click = rng.random(60_000) < scores
    kept = click | (rng.random(60_000) < 1 / 20)
    weight = np.where(click[kept], 1.0, 20.0)
    return click[kept].astype(int), np.minimum(factor * scores[kept], 1), weight


@pytest.mark.parametrize(
    ("factor", "bias", "low", "high", "z", "ratio"),
    [  # the limits are those of the sum of squares of w (y - s), centred
        (1.0, 0.0014292, -0.0004959, 0.0033543, 1.455, 0.9501),
        (1.2, 0.0071621, 0.0051002, 0.0092241, 6.808, 0.7918),
        (1.5, 0.0157615, 0.0134661, 0.0180569, 13.458, 0.6334),
    ],
)
def test_a_click_log(factor, bias, low, high, z, ratio):
    labels, scores, weight = _click_log(factor)
    assert len(labels) == 4566
    options = {"sample_weight": weight, "weight_type": "importance"}
    table = calibration_by_group(
        labels,
        scores,
        np.zeros(len(labels)),
        confidence_level=0.95,
        n_resamples=1,
        **options,
    )
    assert table.bias[0] == pytest.approx(bias, abs=1e-6)
    width = high - low
    assert table.bias_low[0] == pytest.approx(low, abs=0.12 * width)
    assert table.bias_high[0] == pytest.approx(high, abs=0.12 * width)
    # The tests say what the interval says.
    for method in ("spiegelhalter", "kuiper", "kolmogorov_smirnov"):
        pvalue = calibration_test(labels, scores, method=method, **options).pvalue
        assert (pvalue < 0.05) == (low > 0)
        assert pvalue > 1e-6 or z > 6
    found = calibration_summary(
        labels, scores, confidence_level=0.95, n_resamples=1, **options
    ).observed_expected
    assert found.estimate == pytest.approx(ratio, abs=1e-4)
    assert (found.high < 1) == (low > 0)
    if factor == 1.2:
        assert found[1:] == pytest.approx((0.74, 0.85), abs=0.005)


# --- Few events -----------------------------------------------------------------------


def test_two_hundred_samples_without_an_event():
    """.21 events are expected: nothing can be known."""
    labels = np.zeros(200, bool)
    scores = np.linspace(0.0001, 0.002, 200)
    assert scores.sum() == pytest.approx(0.21)
    assert np.isnan(calibration_trend(labels, scores, np.arange(200)).pvalue)
    metrics = ["brier_score", "log_loss", "squared_calibration_error"]
    found = compare(
        labels,
        {"a": scores, "b": 2 * scores},
        metrics=metrics,
        labels=[False, True],
        n_resamples=99,
    )
    other = found.model == "b"
    assert np.all(np.isnan(found.difference_low[other]))
    assert all("fewer than 10" in reason for reason in found.reason[other])
    assert not np.any(found.adjusted_pvalue[other] <= 0.05)
    assert np.isnan(found.pvalue[other][-1])
    gain = recalibration_gain(
        labels, scores, recalibrator=PlattScaling(), labels=[False, True]
    )
    assert np.isnan(gain.estimate)
    assert "the same label" in gain.reason


# --- Slopes and periods ---------------------------------------------------------------


def test_six_clusters_of_strong_dependence_have_no_slope():
    """Six clusters of 40 with a correlation of .9 hold hardly more than six labels."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(6), 40)
    for _ in range(20):
        scores = rng.beta(1, 19, 240).clip(1e-9, 1 - 1e-9)
        shared, own = rng.normal(size=6)[cluster], rng.normal(size=240)
        labels = norm.cdf(np.sqrt(0.9) * shared + np.sqrt(0.1) * own) < scores
        try:
            slope = calibration_slope_intercept(
                labels, scores, clusters=cluster, labels=[False, True]
            ).slope
        except ValueError:
            continue  # one class, or separate ones
        assert np.isnan(slope.low)
        assert slope.reason


def test_errors_of_independent_samples_are_not_alike():
    """The factor by which intervals are too short is near 1, however small p is."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.beta(2, 3, 2000)
        labels = rng.random(2000) < scores
        found = error_autocorrelation(labels, scores, np.repeat(np.arange(4), 500))
        assert abs(found.estimate) < 0.1
