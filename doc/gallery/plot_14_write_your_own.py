"""
Write your own bins, recalibrator and metric
============================================

Each of the three is a small class or function that works with the rest of the library:
searches, displays, intervals, tests and pipelines.
"""

# %%
# **Bins** are a class with one method, `_edges`. These bins are finer near 0, for rare
# events.
import numpy as np

from skcalib.binning import BaseBinning


class GeometricBins(BaseBinning):
    """Edges at 1, 1/2, 1/4, ...; the lowest bin reaches down to 0."""

    def __init__(self, n_bins=8):
        self.n_bins = n_bins

    def _edges(self, scores, y, sample_weight):
        return np.concatenate(([0.0], 0.5 ** np.arange(self.n_bins - 1.0, -1.0, -1.0)))


# %%
# **A recalibrator** for two classes has two methods: one fits, one predicts. This one
# multiplies the odds by a constant, so that the mean probability equals the event
# frequency.
from scipy.optimize import brentq
from scipy.special import expit

from skcalib.recalibrators import BinaryRecalibrator


class OddsShift(BinaryRecalibrator):
    """Add one number to all log-odds."""

    _scale = "log_odds"

    def _fit_binary(self, scores, labels, sample_weight):
        target = np.average(labels, weights=sample_weight)
        self.shift_ = brentq(
            lambda b: np.average(expit(scores + b), weights=sample_weight) - target,
            -20,
            20,
        )

    def _predict_binary(self, scores):
        return expit(scores + self.shift_)


# %%
# **A metric** is a function of labels and probabilities. This one measures by how much
# the expected number of events exceeds the observed number. It is based on a ratio of
# means and can be negative, so a bootstrap interval is valid. The library cannot know
# that, and warns.
def relative_excess(y_true, y_proba, sample_weight=None):
    """Return expected events minus observed events, as a share of the observed ones."""
    return (
        np.average(y_proba, weights=sample_weight)
        / np.average(y_true, weights=sample_weight)
        - 1
    )


# %%
# Apply all three to scores for fraud, a rare event. The scores are twice as high as
# they should be.
from skcalib.displays import ReliabilityDisplay
from skcalib.metrics import calibration_error_interval

rng = np.random.default_rng(0)
scores = rng.beta(0.5, 10, 20_000)
y = (rng.random(20_000) < scores / 2).astype(int)
calibrated = (
    OddsShift().fit(scores[:10_000], y[:10_000]).predict_proba(scores[10_000:])[:, 1]
)
models = {"original": scores[10_000:], "OddsShift": calibrated}
for name, proba in models.items():
    print(
        name,
        calibration_error_interval(
            y[10_000:], proba, metric=relative_excess, random_state=0
        ),
    )

names = np.where(y[10_000:] == 1, "fraud", "genuine")
ReliabilityDisplay.from_predictions(
    names,
    models,
    pos_label="fraud",
    binning=GeometricBins(),
    layout="columns",
    limits=(0, 0.6),
    random_state=0,
)

# %%
# **See also:** :doc:`/contributing`.
# Reference: `BaseBinning`, `BinaryRecalibrator`, `calibration_error_interval`.
