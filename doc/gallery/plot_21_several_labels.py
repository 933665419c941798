"""
Several labels per sample
=========================

A song has several tags, a patient several diagnoses. Each label has its own probability
and may be miscalibrated differently. Pass an indicator matrix with one column per label
as `y_true`, and a matrix of the same shape as `y_proba`.
"""

# %%
# Naive Bayes predicts four dependent labels, and is overconfident. Errors, their tests
# and intervals, and `reliability_curve` accept both matrices. The error is the mean
# over labels, and its interval allows for dependence between the labels of a sample.
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
# scikit-learn's `MultiOutputClassifier` fits one classifier per label. Wrap a
# `RecalibratedClassifierCV` in it to fit one calibration map per label.
recalibrated = MultiOutputClassifier(RecalibratedClassifierCV(GaussianNB()))
recalibrated.fit(X_train, tags_train)
y_recalibrated = label_probabilities(recalibrated)
display = ReliabilityDisplay.from_predictions(
    tags_test, y_recalibrated, labels=names, n_resamples=200, random_state=0
)

# %%
# Compute the mean error over labels, before and after recalibration.
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
# Decision curves, summaries and certificates are about one event. Pass one label at a
# time.
event = names.index("sad")
models = {
    "naive Bayes": y_proba[:, event],
    "recalibrated": y_recalibrated[:, event],
}
display = DecisionCurveDisplay.from_predictions(tags_test[:, event], models)

# %%
# **See also:** :doc:`/which_error`, :doc:`/many_classes`. Reference:
# `ReliabilityDisplay`, `RecalibratedClassifierCV`, `calibration_error_interval`.
