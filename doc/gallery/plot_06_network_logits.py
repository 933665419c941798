"""
Logits of a neural network with ten classes
===========================================

Long training makes networks overconfident. With ``input="logit"``, recalibrators accept
their logits directly. Temperature scaling divides all logits by a single number, and
does not change the predicted classes.
"""

# %%
# The digits data have ten classes. The network is trained until it makes no errors on
# its 500 training samples.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

X, y = load_digits(return_X_y=True)
# noise makes the task uncertain
X = X + np.random.default_rng(0).normal(scale=4, size=X.shape)
X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, train_size=500, stratify=y, random_state=0
)
X_calibration, X_test, y_calibration, y_test = train_test_split(
    X_rest, y_rest, stratify=y_rest, random_state=0
)
network = MLPClassifier(
    (64,), alpha=0, learning_rate_init=0.005, max_iter=1000, random_state=0
).fit(X_train, y_train)


def logits(X):
    """Return the outputs of the last layer, before the softmax."""
    hidden = np.maximum(X @ network.coefs_[0] + network.intercepts_[0], 0)
    return hidden @ network.coefs_[1] + network.intercepts_[1]


# %%
# Fit three recalibrators to 972 samples that were not used to train the network.
from sklearn.metrics import accuracy_score, log_loss

from skcalib import DirichletCalibration, TemperatureScaling, VectorScaling

proba = {"network": network.predict_proba(X_test)}
for recalibrator in (
    TemperatureScaling(),
    VectorScaling(),
    DirichletCalibration(alpha="auto"),
):
    recalibrator.set_params(input="logit").fit(logits(X_calibration), y_calibration)
    proba[type(recalibrator).__name__] = recalibrator.predict_proba(logits(X_test))
for name, found in proba.items():
    print(
        f"{name}: log-loss {log_loss(y_test, found):.3f}, accuracy"
        f" {accuracy_score(y_test, found.argmax(axis=1)):.3f}"
    )

# %%
# The diagrams show the probability of the predicted class: where it is 80 %, is the
# prediction correct for 80 % of the samples?
from skcalib.displays import ReliabilityDisplay

shown = {name: proba[name] for name in ("network", "TemperatureScaling")}
ReliabilityDisplay.from_predictions(y_test, shown, layout="columns", random_state=0)

# %%
# **See also:** :doc:`/neural_networks`, :doc:`/scores`, :doc:`/many_classes`,
# :doc:`/deploying`. Reference: `TemperatureScaling`, `VectorScaling`,
# `DirichletCalibration`.
