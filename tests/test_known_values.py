"""Values of R and of direct integration: Hosmer-Lemeshow with development data's
degrees of freedom, smECE at a given width, and p-values of grades.
"""

from functools import partial

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, logit

from skcalib.binning import FixedEdges
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


def test_smooth_error_at_a_width_has_test_and_interval():
    y, p = _grid200()
    metric = partial(smooth_calibration_error, bandwidth=0.1)
    assert calibration_test(y, p, metric=metric, random_state=0).pvalue < 0.05
    interval = calibration_error_interval(y, p, metric=metric, random_state=0)
    assert interval.low < interval.estimate < interval.high
    assert interval.estimate == metric(y, p)
