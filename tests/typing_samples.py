"""Calls that a type checker must accept, and the types that it must know.

`tests/_type_check.py` runs pyright over this file; nothing imports it.
"""

from typing import assert_type

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

import skcalib
from skcalib.binning import (
    BaseBinning,
    EqualMass,
    EqualWidth,
    FixedEdges,
    InformationPreserving,
    MinimumMass,
    MonotonicSweep,
    check_binning,
)
from skcalib.displays import GroupDisplay, MurphyDisplay, ReliabilityDisplay
from skcalib.guarantees import (
    CalibrationCertificate,
    conditional_epsilon,
    event_frequency_interval,
    independent_bins_certificate,
    max_n_bins,
)
from skcalib.metrics import calibration_error
from skcalib.model_selection import sharpest_within
from skcalib.simulation import CalibrationModel, PlattCurve, fit_score_distribution

y_true = np.array([0, 1, 1, 0])
y_proba = np.array([0.2, 0.7, 0.9, 0.4])
groups = ["a", "b", "a", "b"]

# A submodule needs no import of its own.
assert_type(skcalib.metrics.calibration_error(y_true, y_proba), float)
assert_type(calibration_error(y_true, y_proba), float)

# --- Binning: numbers, names of rules and functions -----------------------------------
EqualMass("sqrt")
EqualWidth(n_bins=lambda n_rows: 1 + n_rows // 100)
InformationPreserving(max_loss=1e-3)
MinimumMass(EqualWidth(10), 20.5)
MonotonicSweep(base=EqualMass())
assert_type(FixedEdges([0, 0.5, 1]).bin_edges(y_proba), np.ndarray)
assert_type(check_binning(None, EqualMass(15)), BaseBinning)

# --- Guarantees -----------------------------------------------------------------------
assert_type(conditional_epsilon(1000, 10, confidence_level=0.95), float)
assert_type(max_n_bins(1000, 0.1, kind="marginal"), int)
low, high = event_frequency_interval(3, 100, interval="wilson")
assert_type(low, np.ndarray)
certificate = independent_bins_certificate(
    [20, 180], [200, 200], [0.1, 0.9], edges="fixed"
)
assert_type(certificate, CalibrationCertificate)
assert_type(certificate.epsilon, float)

# --- Displays: arrays or dicts of them, and what they leave behind --------------------
display = ReliabilityDisplay.from_predictions(y_true, y_proba, binning=10)
assert_type(display, ReliabilityDisplay)
assert_type(display.figure_, Figure)
display.ax_.set_title("one panel, or an array of them")
models = {"a": y_proba, "b": y_proba**2}
ReliabilityDisplay.from_predictions(y_true, models, curve="both", interval=None)
ReliabilityDisplay.from_predictions(y_true, y_proba, statistics=("slope", "auc"))
GroupDisplay.from_predictions(y_true, y_proba, groups, plot_options={"value": "error"})
murphy = MurphyDisplay.from_predictions(y_true, models, limits=(0.0, 0.5))
assert_type(murphy.plot().ax_, Axes)

# --- Simulation -----------------------------------------------------------------------
model = CalibrationModel(stats.beta(2, 3), PlattCurve(1.5, 0.0))
scores, labels = model.sample(100, random_state=np.random.default_rng(0))
assert_type(scores, np.ndarray)
CalibrationModel(fit_score_distribution(scores), lambda s: s**2)
assert_type(model.true_calibration_error(norm=np.inf), float)
assert_type(model.detection_rate(calibration_error, 100), float)
biases = model.estimator_bias({"plugin": calibration_error}, n=100)
assert_type(biases["plugin"].bias, float)

# --- Choices --------------------------------------------------------------------------
assert_type(sharpest_within(0.1, n_standard_errors=0).max_error, float)
