"""
One hundred classes with few samples each
=========================================

With 20 calibration samples per class, a separate map for each class learns mostly
noise. The methods of this package use a ridge penalty that shrinks the maps of all
classes toward a common map. The fewer the samples, the stronger the ridge.
"""

# %%
# Simulate logits of a classifier with 100 classes. Each class has its own bias, and all
# logits are twice as large as they should be. 2,000 samples are used for calibration,
# and 10,000 for evaluation.
import numpy as np
from scipy.special import softmax

rng = np.random.default_rng(0)
n_classes = 100


def sample(n):
    right = rng.normal(scale=1.5, size=(n, n_classes))
    right[np.arange(n), rng.integers(n_classes, size=n)] += 6
    truth = softmax(right, axis=1)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return 2 * (right + bias), y, -np.log(truth[np.arange(n), y]).mean()


bias = rng.normal(scale=0.4, size=n_classes)
logits, y, _ = sample(20 * n_classes)
logits_test, y_test, best = sample(10_000)

# %%
# Compare methods with a ridge and the same methods without it:
from sklearn.metrics import log_loss

from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    TemperatureScaling,
    VectorScaling,
)

methods = {
    "one temperature": TemperatureScaling(),
    "VectorScaling": VectorScaling(),
    "BetaCalibration": BetaCalibration(),
    "ClasswiseTemperatureScaling": ClasswiseTemperatureScaling(),
    "VectorScaling, no ridge": VectorScaling(alpha=0),
    "BetaCalibration, no ridge": BetaCalibration(class_pooling=0),
    "ClasswiseTemperatureScaling, no ridge": ClasswiseTemperatureScaling(
        max_deviation=np.inf
    ),
}
labels = np.arange(n_classes)
print(
    "not recalibrated:"
    f" {log_loss(y_test, softmax(logits_test, axis=1), labels=labels):.3f}, truth:"
    f" {best:.3f}"
)
losses = {}
for name, method in methods.items():
    method.set_params(input="logit", classes=labels).fit(logits, y)
    losses[name] = log_loss(y_test, method.predict_proba(logits_test), labels=labels)

# %%
# The bars show the log-loss on the 10,000 test samples minus the log-loss of the true
# probabilities. Shorter is better.
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
excess = np.array(list(losses.values())) - best
bars = ax.barh(
    list(losses),
    excess,
    color=["C1" if "no ridge" in name else "C0" for name in losses],
)
ax.bar_label(bars, fmt="%.3f", padding=3)
ax.invert_yaxis()
ax.set(xlabel="Log-loss above the true probabilities", xlim=(0, 1.15 * excess.max()))

# %%
# **See also:** :doc:`/many_classes`. Reference: `VectorScaling`, `BetaCalibration`,
# `ClasswiseTemperatureScaling`.
