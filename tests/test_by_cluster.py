"""Clusters pooled by random effects, and sample sizes, against R and plain twins."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from scipy.stats import norm

from benchmarks.new_hospital import coverage
from skcalib._solvers.random_effects import (
    _tau2_at,
    pooled,
    prediction_limits,
    reml_variance,
)
from skcalib.evaluation import calibration_by_cluster, validation_sample_size
from skcalib.evaluation._sample_size import _n_auc, _n_oe, _n_slope
from skcalib.metrics import calibration_slope_intercept

# Estimates and standard errors, and what R's metafor 3.8-1 gives for them by REML with
# test="knha" (tau^2, mean, its 95 % interval).
METAFOR = {
    "A": (
        [0.88, 0.95, 1.1, 0.71, 1.02, 0.84, 1.21, 0.93],
        [0.08, 0.12, 0.1, 0.15, 0.09, 0.2, 0.18, 0.07],
        (9.656380050832e-05, 0.9543752012172, 0.8584158971801, 1.050334505254),
    ),
    "B": (
        [-0.3, 0.12, 0.45, 0.05, -0.62, 0.28],
        [0.1, 0.15, 0.12, 0.08, 0.25, 0.18],
        (0.1066313684559, 0.01860248102399, -0.3729808080536, 0.4101857701015),
    ),
}


@pytest.mark.parametrize("name", METAFOR)
def test_random_effects_are_those_of_metafor(name):
    estimates, errors, (tau2, mean, low, high) = METAFOR[name]
    found = pooled(np.array(estimates), np.array(errors) ** 2, 0.95)
    assert found.tau**2 == pytest.approx(tau2, abs=1e-6)
    assert found[:3] == pytest.approx((mean, low, high), abs=1e-6)


def test_clusters_without_a_difference_keep_the_error_of_their_samples():
    # Set C of metafor: Hartung and Knapp's error of .0061 is below Wald's .0337, which
    # is kept. t with 2 degrees of freedom at .975 is 4.3027.
    estimates, errors = np.array([0.1, 0.12, 0.11]), np.array([0.05, 0.06, 0.07])
    found = pooled(estimates, errors**2, 0.95)
    assert found.tau == 0
    assert found.mean == pytest.approx(0.1086140395989)
    assert found.high - found.mean == pytest.approx(4.302653 * 0.03367443542, rel=1e-6)


def test_reml_maximises_the_restricted_likelihood():
    rng = np.random.default_rng(0)
    for _ in range(10):
        k = rng.integers(3, 12)
        variances = rng.uniform(0.01, 0.3, k)
        estimates = rng.normal(0, 0.5, k)

        def loss(tau2, estimates=estimates, variances=variances):
            w = 1 / (variances + tau2)
            mean = (w * estimates).sum() / w.sum()
            residual = (w * (estimates - mean) ** 2).sum()
            return 0.5 * (-np.log(w).sum() + np.log(w.sum()) + residual)

        found = reml_variance(estimates, variances)
        best = minimize_scalar(loss, bounds=(0, 5), method="bounded")
        assert loss(found) <= best.fun + 1e-8


def test_prediction_solves_for_tau_by_plain_steps():
    estimates, errors, _ = METAFOR["B"]
    x, v = np.array(estimates), np.array(errors) ** 2
    for c in (0.5, 5.0, 20.0, 60.0):
        (tau2,) = _tau2_at(np.array([c]), x, v)
        w = 1 / (v + tau2)
        q = (w * (x - (w * x).sum() / w.sum()) ** 2).sum()
        assert q == pytest.approx(c) if tau2 > 0 else q <= c
    low, high = prediction_limits(x, v, 0.95)
    # Not narrower than with tau^2 taken for known (metafor: -.9077 to .9449).
    assert low < -0.9077
    assert high > 0.9449


def _study(n_hospitals=8, size=300, tau=0.3, seed=0):
    rng = np.random.default_rng(seed)
    hospital = np.repeat(np.arange(n_hospitals), size)
    risk = rng.beta(2, 5, len(hospital))
    effect = 0.2 + tau * rng.normal(size=n_hospitals)
    labels = rng.random(len(hospital)) < expit(logit(risk) + effect[hospital])
    return labels, risk, hospital


def test_each_cluster_has_the_numbers_of_its_samples():
    pytest.importorskip("pandas", reason="to_frame needs pandas")
    labels, risk, hospital = _study()
    table = calibration_by_cluster(labels, risk, hospital)
    for row in range(8):
        rows = hospital == row
        alone = calibration_slope_intercept(
            labels[rows], risk[rows], confidence_level=0.95
        )
        assert table.slope[row] == pytest.approx(alone.slope.estimate, rel=1e-6)
        assert table.intercept[row] == pytest.approx(alone.intercept.estimate, rel=1e-6)
        ratio = labels[rows].sum() / risk[rows].sum()
        assert table.observed_expected[row] == pytest.approx(ratio)
        assert (
            table.observed_expected_low[row] < ratio < table.observed_expected_high[row]
        )
    values = [table.intercept, (table.intercept_high - table.intercept) / 1.959964]
    expected = pooled(values[0], values[1] ** 2, 0.95)
    assert table.pooled["intercept"] == pytest.approx(expected[:3], rel=1e-6)
    assert table.between["intercept"] == pytest.approx(expected.tau, rel=1e-5)
    frame = table.to_frame()
    assert list(frame.columns[:4]) == ["cluster", "n", "n_events", "observed_expected"]


def test_equal_scores_have_exact_limits_and_no_slope():
    # 12 events of 40 at .25: Clopper and Pearson's limits .1656 and .4653, over .25.
    labels = np.tile(np.arange(40) < 12, 3)
    table = calibration_by_cluster(labels, np.full(120, 0.25), np.repeat([0, 1, 2], 40))
    assert table.observed_expected_low[0] == pytest.approx(0.16562 / 0.25, rel=1e-3)
    assert table.observed_expected_high[0] == pytest.approx(0.46527 / 0.25, rel=1e-3)
    assert np.isnan(table.slope).all()
    assert "slope" not in table.pooled
    assert "0 clusters with an estimate" in table.not_pooled["slope"]
    assert table.between["observed_expected"] == 0


def test_clusters_without_events_are_left_out_by_name():
    labels, risk, hospital = _study()
    names = np.array(["a", "b", "c", "d", "e", "f", "g", "h"])[hospital]
    labels[names == "c"] = False
    table = calibration_by_cluster(labels, risk, names)
    assert table.observed_expected[2] == 0
    assert table.observed_expected_high[2] > 0
    assert np.isnan(table.intercept[2])
    assert table.not_pooled["observed_expected"] == "Left out: c."
    others = names != "c"
    without = calibration_by_cluster(labels[others], risk[others], names[others])
    for name, interval in without.pooled.items():
        assert table.pooled[name] == interval
    assert "Left out: c." in str(table)


def test_fewer_than_three_clusters_are_not_pooled():
    labels, risk, hospital = _study(2)
    table = calibration_by_cluster(labels, risk, hospital)
    assert table.pooled == table.prediction == table.between == {}
    assert "at least 3 are needed" in str(table)
    assert not np.isnan(table.slope).any()


def test_weights_count_samples():
    labels, risk, hospital = _study(size=100)
    count = np.random.default_rng(1).integers(0, 3, len(labels))
    counted = calibration_by_cluster(labels, risk, hospital, sample_weight=count)
    repeated = calibration_by_cluster(
        *(np.repeat(values, count) for values in (labels, risk, hospital))
    )
    for name, interval in repeated.prediction.items():
        assert counted.prediction[name] == pytest.approx(interval, rel=1e-6)


def test_measurements_are_no_clusters():
    """A column of ages was a study of 400 hospitals with one patient each."""
    labels, risk, hospital = _study(8, 50)
    age = np.random.default_rng(0).normal(50, 10, len(risk)).round(3)
    with pytest.raises(ValueError, match="clusters holds .* distinct floats"):
        calibration_by_cluster(labels, risk, age)
    # Codes are floats in a column that had missing values.
    many = np.arange(len(risk)) % 40
    table = calibration_by_cluster(labels, risk, many.astype(float))
    expected = calibration_by_cluster(labels, risk, many)
    assert len(table) == 40
    assert table.pooled == expected.pooled


def test_several_classes_are_refused():
    with pytest.raises(ValueError, match="one event"):
        calibration_by_cluster([0, 1, 2], np.full((3, 3), 1 / 3), [0, 1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("cell", [(5, 0.1), (5, 0.5), (10, 0.1), (24, 0.3)])
def test_coverage_of_a_new_hospital(cell):
    new, mean, _ = coverage(*cell, 200, seed=3)
    assert new > 0.84
    assert mean > 0.84


# --- Sample sizes -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normal", "frequency", "area", "width", "expected"),
    [
        # R's pmvalsampsize, package test 4.1: it steps to 905, the formula has 906.
        ((-5, 2.5), 0.018, 0.8, 1.0, (906, 4554, 4252)),
        # Martin et al., example 2: 12,018 there, in steps of .0001 of the error.
        ((-4.02, 1.17), 0.031, 0.74, 0.2, (12049, 11367, 3110)),
        ((-1.5, 0.8), 0.2, 0.7, 0.2, (1542, 4889, 650)),
    ],
)
def test_formulas_are_those_of_riley(normal, frequency, area, width, expected):
    mean, deviation = normal
    share = (np.arange(200_000) + 0.5) / 200_000
    risk = expit(mean + deviation * norm.ppf(share))
    z = 1.96
    assert math.ceil(_n_oe(frequency, width, z)) == expected[0]
    assert _n_slope(risk, 0.2, z) == pytest.approx(expected[1], rel=1e-3)
    assert _n_auc(area, frequency, 0.1, z) == expected[2]


def test_net_benefit_of_riley():
    # Sensitivity and specificity by hand for risks of .1 (0.6) and .5 (0.4) at .3:
    # f = .26, sens = .2 / .26, spec = .54 / .74.
    risk = [0.1] * 6 + [0.5] * 4
    size = validation_sample_size(risk, threshold=0.3)
    f, sens, spec = 0.26, 0.2 / 0.26, 0.54 / 0.74
    w = (1 - f) / f * 0.3 / 0.7
    variance = sens * (1 - sens) / f + w**2 * spec * (1 - spec) / (1 - f)
    variance += w**2 * (1 - spec) ** 2 / (f * (1 - f))
    error = 0.2 / (2 * norm.ppf(0.975))
    assert size.n_net_benefit == math.ceil(variance / error**2)
    assert math.isnan(validation_sample_size(risk).n_net_benefit)


def test_the_expected_area_is_that_of_all_pairs():
    risk = np.array([0.1, 0.2, 0.2, 0.7])
    pairs = total = 0.0
    for p in risk:
        for q in risk:
            weight = p * (1 - q)
            total += weight
            pairs += weight * ((p > q) + 0.5 * (p == q))
    # A sample is compared with itself as with another one of its risk.
    assert validation_sample_size(risk).auc == pytest.approx(pairs / total)


def test_the_largest_number_is_what_is_needed():
    pytest.importorskip("pandas", reason="to_frame needs pandas")
    size = validation_sample_size(np.random.default_rng(0).beta(1, 9, 1000))
    assert size.n == max(size.n_oe, size.n_slope, size.n_auc)
    assert size.n_events == round(size.n * size.event_frequency)
    assert "needs the most" in str(size)
    assert list(size.to_frame().criterion)[0] == "n_oe"
    narrow = validation_sample_size([0.1, 0.3], slope_width=0.1)
    wide = validation_sample_size([0.1, 0.3], slope_width=0.2)
    assert narrow.n_slope == pytest.approx(4 * wide.n_slope, abs=4)
    assert math.isnan(validation_sample_size([0.2, 0.2]).n_slope)


@pytest.mark.parametrize(
    ("risk", "options", "message"),
    [
        ([0.0, 0.0], {}, "between 0 and 1"),
        ([0.2, 1.3], {}, "y_proba"),
        ([0.2, 0.4], {"oe_width": 0}, "oe_width"),
        ([0.2, 0.4], {"auc": 0.4}, "auc"),
        ([0.2, 0.4], {"threshold": 1.0}, "threshold"),
    ],
)
def test_what_is_no_risk_is_refused(risk, options, message):
    with pytest.raises(ValueError, match=message):
        validation_sample_size(risk, **options)
