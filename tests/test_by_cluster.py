"""Clusters pooled by random effects, and sample sizes, against R and plain twins."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit, logit, roots_hermite
from scipy.stats import norm, t

from benchmarks.new_hospital import coverage
from skcalib._solvers.random_effects import (
    _tau2_at,
    pooled,
    prediction_limits,
    reml_variance,
)
from skcalib._solvers.random_intercept import _Likelihood
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
    values = [table.slope, (table.slope_high - table.slope) / 1.959964]
    expected = pooled(values[0], values[1] ** 2, 0.95)
    assert table.pooled["slope"] == pytest.approx(expected[:3], rel=1e-6)
    assert table.between["slope"] == pytest.approx(expected.tau, rel=1e-5)
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


def _plain_log_likelihood(a, tau, offsets, labels, cluster):
    """Integrate each cluster's likelihood on fixed nodes, one cluster after another."""
    nodes, node_weight = roots_hermite(201)
    shifts = a + np.sqrt(2) * tau * nodes
    total = 0.0
    for code in np.unique(cluster):
        risk = expit(offsets[cluster == code][:, None] + shifts)
        outcome = labels[cluster == code][:, None]
        likelihood = np.prod(np.where(outcome, risk, 1 - risk), axis=0)
        total += math.log(likelihood @ node_weight / math.sqrt(math.pi))
    return total


def _rare_study():
    """Nine hospitals of 40 at risks of .03 and .1; four have no event."""
    events = np.array([[0, 0], [1, 3], [0, 0], [0, 1], [2, 5], [0, 0], [1, 0], [0, 4]])
    events = np.vstack((events, [0, 0]))
    risk = np.tile(np.repeat([0.03, 0.1], [25, 15]), 9)
    hospital = np.repeat(np.arange(9), 40)
    labels = np.concatenate(
        [
            np.concatenate((np.arange(25) < low, np.arange(15) < high))
            for low, high in events
        ]
    )
    return labels, risk, hospital


def test_clusters_without_events_count():
    labels, risk, hospital = _rare_study()
    offsets = logit(risk)
    table = calibration_by_cluster(labels, risk, hospital)
    median, low, high = table.pooled["intercept"]
    tau = table.between["intercept"]

    def loss(parameters):
        a, log_tau = parameters
        return -_plain_log_likelihood(a, np.exp(log_tau), offsets, labels, hospital)

    found = minimize(loss, [-0.5, 0.3], method="Nelder-Mead", options={"xatol": 1e-5})
    assert median == pytest.approx(found.x[0], abs=1e-3)
    assert tau == pytest.approx(np.exp(found.x[1]), abs=1e-3)
    # The limits are where the profile likelihood has fallen by t^2 / 2, t with 8
    # degrees of freedom.
    for limit in (low, high):
        profile = minimize_scalar(
            lambda tau, limit=limit: (
                -_plain_log_likelihood(limit, tau, offsets, labels, hospital)
            ),
            bounds=(0.01, 5),
            method="bounded",
        )
        fall = profile.fun - found.fun
        assert fall == pytest.approx(t.ppf(0.975, 8) ** 2 / 2, abs=1e-3)
    assert np.isnan(table.intercept[0])
    assert table.observed_expected[0] == 0
    # 17 events; 9 (25 * .03 + 15 * .1) = 20.25 are expected.
    ratio = table.pooled["population_observed_expected"]
    assert ratio.estimate == pytest.approx(17 / 20.25)
    assert ratio.low < ratio.estimate < ratio.high
    shifted = expit(offsets + np.array([[median], [low], [high]])).sum(axis=1)
    expected = shifted / risk.sum()
    assert table.pooled["observed_expected"] == pytest.approx(expected)


@pytest.mark.slow
def test_limits_of_a_new_cluster_are_quantiles_of_the_integrated_likelihood():
    labels, risk, hospital = _rare_study()
    offsets = logit(risk)
    new = calibration_by_cluster(labels, risk, hospital).prediction["intercept"]
    intercepts = np.linspace(-8, 4, 49)
    taus = (np.arange(20) + 0.5) / 10  # midpoints from 0 to 2
    weight = np.exp(
        [
            [
                _plain_log_likelihood(a, tau, offsets, labels, hospital)
                for a in intercepts
            ]
            for tau in taus
        ]
    )
    weight /= weight.sum()
    for limit, share in ((new.low, 0.025), (new.high, 0.975)):
        below = norm.cdf((limit - intercepts) / taus[:, None])
        assert np.sum(weight * below) == pytest.approx(share, abs=2e-3)


@pytest.mark.slow
def test_outcomes_do_not_decide_which_slopes_are_pooled():
    labels, risk, hospital = _study()
    names = np.array(["a", "b", "c", "d", "e", "f", "g", "h"])[hospital]
    labels[names == "c"] = False
    table = calibration_by_cluster(labels, risk, names)
    assert "slope" not in table.pooled
    assert "1 of 8 clusters" in table.not_pooled["slope"]
    assert "would be biased" in str(table)
    # One distinct score is no outcome.
    labels, risk, hospital = _study()
    risk[hospital == 2] = 0.3
    table = calibration_by_cluster(labels, risk, names)
    assert table.not_pooled["slope"] == "Left out: c."
    assert table.pooled["slope"].low < 1


@pytest.mark.parametrize("outcome", [True, False])
def test_one_class_has_no_pooled_intercept(outcome):
    labels, risk, hospital = _study()
    labels[:] = outcome
    table = calibration_by_cluster(labels, risk, hospital, pos_label=True)
    assert table.pooled == {}
    assert "one class" in table.not_pooled["intercept"]
    assert "nan" not in str(table)


def test_three_clusters_may_determine_no_limit():
    # One hospital has all events and two have none: any lower intercept is compatible.
    hospital = np.repeat(np.arange(3), 100)
    labels = (hospital == 0) & (np.arange(300) < 99)
    table = calibration_by_cluster(labels, np.full(300, 0.5), hospital)
    low, high = table.pooled["intercept"][1:]
    assert not (low > -10)
    assert not (high < 5)
    assert "nan" not in str(table)


def test_fewer_than_three_clusters_are_not_pooled():
    labels, risk, hospital = _study(2)
    table = calibration_by_cluster(labels, risk, hospital)
    assert table.pooled == table.prediction == table.between == {}
    assert "At least 3 clusters are needed" in str(table)
    assert not np.isnan(table.slope).any()


@pytest.mark.slow
def test_weights_count_samples():
    labels, risk, hospital = _study(size=100)
    count = np.random.default_rng(1).integers(0, 3, len(labels))
    counted = calibration_by_cluster(labels, risk, hospital, sample_weight=count)
    repeated = calibration_by_cluster(
        *(np.repeat(values, count) for values in (labels, risk, hospital))
    )
    for name, interval in repeated.prediction.items():
        assert counted.prediction[name] == pytest.approx(interval, rel=1e-6)


@pytest.mark.slow
def test_measurements_are_no_clusters():
    """A column of ages was a study of 400 hospitals with one patient each."""
    labels, risk, hospital = _study(8, 50)
    age = np.random.default_rng(0).normal(50, 10, len(risk)).round(3)
    with pytest.raises(ValueError, match="clusters holds .* distinct floats"):
        calibration_by_cluster(labels, risk, age)
    # Codes are floats in a column that had missing values.
    many = np.arange(len(risk)) % 12
    table = calibration_by_cluster(labels, risk, many.astype(float))
    expected = calibration_by_cluster(labels, risk, many)
    assert len(table) == 12
    assert table.pooled == expected.pooled


def test_several_classes_are_refused():
    with pytest.raises(ValueError, match="one event"):
        calibration_by_cluster([0, 1, 2], np.full((3, 3), 1 / 3), [0, 1, 2])


@pytest.mark.slow
def test_coverage_of_a_new_hospital():
    """`benchmarks/levels` has more numbers of hospitals."""
    new, median, _ = coverage(5, 0.1, 40, seed=3)
    # .9, less two standard errors of .047
    assert new > 0.8
    assert median > 0.8


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


@pytest.mark.parametrize("largest", [5, 40, 700])
def test_the_likelihood_of_clusters_has_no_range_that_overflows(largest):
    """It is that of the labels at each shift, and finite at the ends of its table."""
    rng = np.random.default_rng(1)
    log_odds = np.linspace(-largest, largest, 400)
    is_event = rng.random(400) < expit(log_odds)
    cluster = np.repeat(np.arange(10), 40)
    likelihood = _Likelihood(log_odds, is_event.astype(float), np.ones(400), cluster)
    for shift in (likelihood.centre - 1.3, likelihood.centre + 0.3):
        found = likelihood._clusters(np.full(10, shift))
        shifted = np.where(is_event, log_odds + shift, -log_odds - shift)
        expected = np.bincount(cluster, log_expit(shifted))
        assert found[0] == pytest.approx(expected, abs=1e-6)
        slope = np.bincount(cluster, is_event - expit(log_odds + shift))
        assert found[1] == pytest.approx(slope, abs=1e-5)
    for far in (-1e4, 1e4):
        assert np.isfinite(likelihood._clusters(np.full(10, far))).all()


def test_a_cluster_of_scores_next_to_zero_prints_no_warning(recwarn):
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.1, 0.9, 1200)
    labels = rng.random(1200) < scores
    scores[:40], labels[:40] = 1e-310, False
    found = calibration_by_cluster(labels, scores, np.repeat(np.arange(30), 40))
    assert np.isfinite(found.pooled["observed_expected"].estimate)
    assert not [warning for warning in recwarn if "overflow" in str(warning.message)]
