"""
A boosted model in a pipeline
=============================

Boosted trees rank samples well, but their probabilities are often too extreme.
`CrossFittedClassifier` makes the model an intermediate step of a pipeline. It passes
*out-of-fold* scores to the recalibrator at the end of the pipeline: scores of samples
that the model was not fitted to.
"""

# %%
# Is a handwritten digit even or odd? The data set has 1,797 images with 64 grey values
# each. More than half of them are held out. The event is the label that comes last in
# alphabetical order: odd.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skcalib import BetaCalibration, CrossFittedClassifier

X, digit = load_digits(return_X_y=True)
y = np.where(digit % 2, "odd", "even")
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.6, stratify=y, random_state=0
)

model = GradientBoostingClassifier(
    learning_rate=0.5, max_depth=5, max_features=8, random_state=0
)
plain = model.fit(X_train, y_train)
pipeline = make_pipeline(CrossFittedClassifier(model, cv=5), BetaCalibration()).fit(
    X_train, y_train
)

# %%
# Both models are evaluated on the held-out data. The log-loss penalises
# predictions that are confident and wrong.
from sklearn.metrics import log_loss

models = {"original": plain, "recalibrated": pipeline}
for name, fitted in models.items():
    print(f"{name}: log-loss {log_loss(y_test, fitted.predict_proba(X_test)):.3f}")

# %%
# The diagrams show the reason: nearly all scores of the original model are close to 0
# or 1, and too many of them are wrong.
from skcalib.displays import ReliabilityDisplay

ReliabilityDisplay.from_estimator(
    models, X_test, y_test, layout="columns", random_state=0
)

# %%
# **See also:** :doc:`/pipelines`, :doc:`/boosted_trees`,
# :doc:`/which_recalibrator`. Reference: `CrossFittedClassifier`, `BetaCalibration`,
# `ReliabilityDisplay`.
