"""
The error of a calibrated model is not 0
========================================

The usual calibration error includes the noise of its bins. It is above 0 for a
calibrated model, and increases with the number of bins. A simulation shows by how much,
and how far the debiased error corrects it.
"""

# %%
# A `CalibrationModel` has a known distribution of scores and a known calibration curve.
# This one is calibrated: at score s, an event occurs with probability s. Its true
# calibration error is 0.
from scipy.stats import beta

from skcalib.simulation import CalibrationModel

model = CalibrationModel(beta(1, 2), lambda scores: scores)
print(f"true error {model.true_calibration_error():.3f}")

# %%
# Average the error with equal-width bins over 200 simulated data sets of each size.
# With 200 samples and 64 bins, it is far above 0, although the model is calibrated.
from skcalib.displays import EstimatorBiasDisplay

EstimatorBiasDisplay.from_model(model, n_simulations=200, random_state=0)

# %%
# The debiased error subtracts the noise. It is not exactly 0 on average either, because
# it cannot be negative. The next model is overconfident, and its true error is also
# known.
from scipy.special import expit, logit

from skcalib.metrics import calibration_error


def plugin(y_true, y_proba):
    return calibration_error(y_true, y_proba, binning=15, method="plugin")


def debiased(y_true, y_proba):
    return calibration_error(y_true, y_proba, binning=15)


sure = CalibrationModel(beta(1, 2), lambda scores: expit(0.7 * logit(scores)))
for name, one in (("calibrated", model), ("overconfident", sure)):
    for metric in (plugin, debiased):
        bias = one.estimator_bias(metric, 500, 200, random_state=0)
        print(
            f"{name}, true error {one.true_calibration_error():.3f}, {metric.__name__}:"
            f" bias {bias.bias:+.3f}"
        )

# %%
# Plot the bias against the number of samples. Both lines approach 0; the debiased error
# starts closer to it.
metrics = {"plugin": plugin, "debiased": debiased}
EstimatorBiasDisplay.from_model(
    sure, metrics=metrics, n_simulations=200, random_state=0, kind="lines"
)

# %%
# **See also:** :doc:`/which_error`, :doc:`/scores`. Reference: `CalibrationModel`,
# `EstimatorBiasDisplay`, `calibration_error`.
