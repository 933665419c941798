"""
A model that is already fitted
==============================

Early stopping needs a validation set, so the model is often fitted before
calibration is considered. Wrap it in scikit-learn's `FrozenEstimator`, so that it is
not refitted, and fit the recalibrator to held-out data.
"""

# %%
# The samples are orders from a shop, and the event is that an order is returned. Split
# the data into three parts: to fit the model, to recalibrate it, and to evaluate it.
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

X, y = make_classification(
    12_000, n_informative=8, flip_y=0.2, class_sep=0.7, random_state=0
)
y = np.where(y == 1, "return", "kept")
X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, train_size=1000, stratify=y, random_state=0
)
X_calibration, X_test, y_calibration, y_test = train_test_split(
    X_rest, y_rest, random_state=0
)

model = HistGradientBoostingClassifier(
    max_iter=500, learning_rate=0.3, early_stopping=True, random_state=0
)
model.fit(X_train, y_train)
print(f"boosting stopped after {model.n_iter_} rounds")

# %%
# Here, `RecalibratedClassifierCV` fits only the recalibrator. The result is a single
# estimator with `predict_proba`.
from sklearn.frozen import FrozenEstimator

from skcalib import BetaCalibration, RecalibratedClassifierCV

recalibrated = RecalibratedClassifierCV(FrozenEstimator(model), BetaCalibration()).fit(
    X_calibration, y_calibration
)

# %%
# Evaluate both on held-out data:
from skcalib.displays import ReliabilityDisplay
from skcalib.metrics import calibration_error

models = {"original": model, "recalibrated": recalibrated}
for name, fitted in models.items():
    print(
        f"{name}: calibration error"
        f" {calibration_error(y_test, fitted.predict_proba(X_test)):.3f}"
    )

ReliabilityDisplay.from_estimator(
    models, X_test, y_test, layout="columns", random_state=0
)

# %%
# **See also:** :doc:`/pipelines`, :doc:`/coming_from`. Reference:
# `RecalibratedClassifierCV`, `BetaCalibration`, `calibration_error`.
