"""Values of other software and of direct integration: val.prob, Hosmer-Lemeshow with
development data's degrees of freedom, dcurves, and smECE at a given width.
"""

from functools import partial

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, logit
from scipy.stats import norm

from skcalib.binning import FixedEdges
from skcalib.decisions import net_benefit
from skcalib.evaluation import calibration_summary
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    smooth_calibration_error,
)


def _golden(n, k=0):
    """Return multiples of the golden ratio modulo 1."""
    return (np.arange(1, n + 1) + k) * ((np.sqrt(5) - 1) / 2) % 1


def _grid200():
    p = (np.arange(1, 201) - 0.5) / 200
    return _golden(200) < expit(0.3 + 0.7 * logit(p)), p


# ResourceSelection::hoslem.test (0.3-6): g, statistic, p of g - 2, p of g
HOSLEM = [
    (10, 10.4103437, 0.2373976193, 0.4052593267),
    (5, 8.598412698, 0.03513532173, 0.1261946919),
]


@pytest.mark.parametrize(("n_groups", "statistic", "of_fit", "of_new_rows"), HOSLEM)
def test_hosmer_lemeshow_as_r_has_it(n_groups, statistic, of_fit, of_new_rows):
    y, p = _grid200()
    edges = np.quantile(p, np.linspace(0, 1, n_groups + 1))
    edges[[0, -1]] = 0, 1  # the outer groups hold the same scores
    options = {"method": "hosmer_lemeshow", "binning": FixedEdges(edges)}
    found = calibration_test(y, p, **options)
    assert found.statistic == pytest.approx(statistic, rel=1e-8)
    assert found.pvalue == pytest.approx(of_new_rows, rel=1e-8)
    of_development = calibration_test(y, p, df=n_groups - 2, **options)
    assert of_development.pvalue == pytest.approx(of_fit, rel=1e-8)


def test_degrees_of_freedom_are_those_of_one_test():
    y, p = _grid200()
    with refused(ValueError, "df", "hosmer_lemeshow", "spiegelhalter"):
        calibration_test(y, p, method="spiegelhalter", df=8)
    with refused(ValueError, "df", "at least 1"):
        calibration_test(y, p, method="hosmer_lemeshow", df=0)


@pytest.mark.parametrize("width", [0.03, 0.1, 0.4])
def test_smooth_error_at_a_width_is_the_integral(width):
    """The mean residual, smoothed by a Gaussian that is reflected at 0 and at 1."""
    y, p = _grid200()
    at = (np.arange(4000) + 0.5) / 4000
    smoothed = np.zeros(len(at))
    for mirror in range(-4, 5):
        for centre in (2 * mirror + p, 2 * mirror - p):
            z = (at[:, None] - centre) / width
            density = np.exp(-(z**2) / 2) / (width * np.sqrt(2 * np.pi))
            smoothed += (density * (y - p)).mean(axis=1)
    found = smooth_calibration_error(y, p, bandwidth=width)
    assert found == pytest.approx(np.abs(smoothed).mean(), abs=2e-6)


def test_smooth_error_at_its_own_width_is_itself():
    y, p = _grid200()
    error = smooth_calibration_error(y, p)
    assert smooth_calibration_error(y, p, bandwidth=error) == pytest.approx(error, 1e-4)
    narrow, wide = (smooth_calibration_error(y, p, bandwidth=b) for b in (0.01, 0.3))
    assert wide < error < narrow
    with refused(ValueError, "bandwidth", "1.5"):
        smooth_calibration_error(y, p, bandwidth=1.5)


@pytest.mark.slow
def test_smooth_error_at_a_width_has_test_and_interval():
    y, p = _grid200()
    metric = partial(smooth_calibration_error, bandwidth=0.1)
    assert calibration_test(y, p, metric=metric, random_state=0).pvalue < 0.05
    interval = calibration_error_interval(y, p, metric=metric, random_state=0)
    assert interval.low < interval.estimate < interval.high
    assert interval.estimate == metric(y, p)


def _ties60():
    p = np.round(0.1 * np.ceil(np.arange(1, 61) / 60 * 9), 1)
    return _golden(60, 1000) < p**1.3, p


def _rare500():
    p = expit(-4.5 + 4 * (np.arange(1, 501) - 0.5) / 500)
    return _golden(500, 7) < expit(-0.4 + 1.2 * logit(p)), p


# rms::val.prob 6.5-0, glm and pROC 1.18.0 in R 4.2.2: U, U:p, R2, Dxy, slope,
# calibration in the large, area (exact), O/E
VAL_PROB = [
    (
        _grid200,
        [0.03458178494, 0.0115834434, 0.2447479238, 0.5491446503, 0.6997737767]
        + [0.3312020953, 0.7745723251, 1.11],
    ),
    (
        _ties60,
        [0.01094236024, 0.2649349891, 0.3284549673, 0.6217142857, 1.091875105]
        + [-0.4849831169, 0.8108571429, 0.8250825083],
    ),
    (
        _rare500,
        [0.03209955338, 0.000120376245, 0.1145486033, 0.624866453, 1.259882477]
        + [-0.7079029674, 0.8124332265, 0.5528815649],
    ),
]


@pytest.mark.parametrize(("rows", "expected"), VAL_PROB)
def test_summary_has_the_numbers_of_val_prob(rows, expected):
    found = calibration_summary(*rows(), n_resamples=1, random_state=0)
    numbers = [found.unreliability, found.joint_pvalue, found.nagelkerke_r2]
    numbers += [found.dxy.estimate, found.slope.estimate, found.intercept.estimate]
    numbers += [found.auc.estimate, found.observed_expected.estimate]
    # R's glm stops where the deviance moves by 1e-15: its slopes have six digits
    np.testing.assert_allclose(numbers, expected, rtol=1e-6)


# dcurves 1.1.7: threshold, net benefit, avoided per patient, with harm .0333, with
# prevalence .15
DCURVES = [
    (0.05, 0.18644737, 0.09250000, 0.15314737, 0.11372872),
    (0.10, 0.16361111, 0.24750000, 0.13031111, 0.09295394),
    (0.25, 0.10500000, 0.42500000, 0.07170000, 0.05087973),
    (0.60, 0.02500000, 0.64583333, -0.00830000, 0.00742440),
]


def test_net_benefit_is_that_of_dcurves():
    n = np.arange(1, 401)
    model = expit(-1.9 + 1.5 * norm.ppf(n * np.sqrt(2) % 1))
    y = n * np.sqrt(5) % 1 < model**0.9
    threshold, benefit, avoided, with_harm, of_cases = np.array(DCURVES).T
    plain = net_benefit(y, model, thresholds=threshold)
    np.testing.assert_allclose(plain.net_benefit, benefit, atol=1e-8)
    np.testing.assert_allclose(plain.interventions_avoided / 100, avoided, atol=1e-8)
    harmed = net_benefit(y, model, thresholds=threshold, harm=0.0333)
    np.testing.assert_allclose(harmed.net_benefit, with_harm, atol=1e-8)
    sampled = net_benefit(y, model, thresholds=threshold, prevalence=0.15)
    np.testing.assert_allclose(sampled.net_benefit, of_cases, atol=1e-8)


# The tutorial of dcurves (data `df_binary` of the package, 1.1.7): 105 of 750 patients
# have cancer. Threshold, those with and without cancer whose `cancerpredmarker` reaches
# it (counted in the data), then what `dca` returns: net benefit, interventions avoided
# per patient, net benefit with harm .0333, and with prevalence .15.
TUTORIAL = [
    (0.05, 96, 320, 0.1055438596, 0.2053333333, 0.0722438596, 0.1149478347),
    (0.10, 87, 193, 0.0874074074, 0.3866666667, 0.0541074074, 0.0960255937),
    (0.15, 82, 128, 0.0792156863, 0.5155555556, 0.0459156863, 0.0873754153),
    (0.20, 75, 98, 0.0673333333, 0.5693333333, 0.0340333333, 0.0748560354),
    (0.25, 72, 72, 0.0640000000, 0.6320000000, 0.0307000000, 0.0712292359),
    (0.30, 62, 49, 0.0546666667, 0.6608888889, 0.0213666667, 0.0608970100),
    (0.35, 57, 36, 0.0501538462, 0.6931428571, 0.0168538462, 0.0558829543),
    (0.40, 47, 27, 0.0386666667, 0.7080000000, 0.0053666667, 0.0434219269),
    (0.45, 40, 23, 0.0282424242, 0.7234074074, -0.0050575758, 0.0323437028),
    (0.50, 33, 17, 0.0213333333, 0.7413333333, -0.0119666667, 0.0247397564),
]


def _tutorial():
    """Return labels and scores with the counts of the tutorial's data: those between
    two thresholds have a score between them.
    """
    thresholds, events, others = np.array(TUTORIAL).T[:3]
    scores = np.append(0.01, thresholds + 0.01)
    events = -np.diff(np.append(np.append(105, events), 0)).astype(int)
    others = -np.diff(np.append(np.append(645, others), 0)).astype(int)
    labels = np.repeat([1, 0], [105, 645])
    return labels, np.append(np.repeat(scores, events), np.repeat(scores, others))


def test_the_tutorial_of_dcurves():
    labels, scores = _tutorial()
    thresholds, _, _, benefit, avoided, with_harm, of_cases = np.array(TUTORIAL).T
    found = net_benefit(labels, scores, thresholds=thresholds)
    np.testing.assert_allclose(found.net_benefit, benefit, atol=1e-10)
    np.testing.assert_allclose(found.interventions_avoided, 100 * avoided, atol=1e-8)
    found = net_benefit(labels, scores, thresholds=thresholds, harm=0.0333)
    np.testing.assert_allclose(found.net_benefit, with_harm, atol=1e-10)
    found = net_benefit(labels, scores, thresholds=thresholds, prevalence=0.15)
    np.testing.assert_allclose(found.net_benefit, of_cases, atol=1e-10)
    # treat all, at .25: (105 - 645 / 3) / 750
    everybody = net_benefit(labels, np.ones(750), thresholds=[0.25])
    assert everybody.net_benefit[0] == pytest.approx(-0.1466666667, abs=1e-10)
