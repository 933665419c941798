"""
Several labels per sample
=========================

A song has several tags, a patient several diagnoses. Each label has a probability of
its own, and each may be off in its own way. `y_true` is then an indicator matrix with a
column for each label, and `y_proba` has the same shape.
"""

# %%
# Four labels that depend on each other, and naive Bayes, which is overconfident. The
# errors, their tests and intervals, and `reliability_curve` take the matrices as they
# are: the error is the mean over labels. The labels of a row may depend on each other,
# and the intervals allow for it.
import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from skcalib import RecalibratedClassifierCV
from skcalib.displays import DecisionCurveDisplay, ReliabilityDisplay
from skcalib.metrics import calibration_error_interval, expected_calibration_error

X, tags = make_multilabel_classification(
    4000, n_features=12, n_classes=4, n_labels=2, random_state=0
)
X_train, X_test, tags_train, tags_test = train_test_split(
    X, tags, test_size=0.5, random_state=0
)
names = ["rock", "live", "sad", "loud"]


def label_probabilities(model):
    """Return the probability of each label (n, n_labels)."""
    return np.column_stack([part[:, 1] for part in model.predict_proba(X_test)])


bayes = MultiOutputClassifier(GaussianNB()).fit(X_train, tags_train)
y_proba = label_probabilities(bayes)
display = ReliabilityDisplay.from_predictions(
    tags_test, y_proba, labels=names, n_resamples=200, random_state=0
)

# %%
# scikit-learn's `MultiOutputClassifier` fits a classifier for each label. A
# `RecalibratedClassifierCV` inside of it gives each label a map of its own.
recalibrated = MultiOutputClassifier(RecalibratedClassifierCV(GaussianNB()))
recalibrated.fit(X_train, tags_train)
y_recalibrated = label_probabilities(recalibrated)
display = ReliabilityDisplay.from_predictions(
    tags_test, y_recalibrated, labels=names, n_resamples=200, random_state=0
)

# %%
# The error of all labels in one number, before and after.
for name, proba in {"naive Bayes": y_proba, "recalibrated": y_recalibrated}.items():
    interval = calibration_error_interval(
        tags_test,
        proba,
        metric=expected_calibration_error,
        n_resamples=200,
        random_state=0,
    )
    print(f"{name}: {interval}")

# %%
# What is about one event takes one label at a time: a decision curve, a summary, a
# certificate.
event = names.index("sad")
models = {
    "naive Bayes": y_proba[:, event],
    "recalibrated": y_recalibrated[:, event],
}
display = DecisionCurveDisplay.from_predictions(tags_test[:, event], models)

# %%
# **See also:** :doc:`/which_error`, :doc:`/many_classes`. Reference:
# `ReliabilityDisplay`, `RecalibratedClassifierCV`, `calibration_error_interval`.
