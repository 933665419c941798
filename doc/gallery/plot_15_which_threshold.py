"""
A threshold with a guarantee
============================

"At most 5 % of the answers may be wrong." A threshold tuned to meet this limit on one
data set often fails on new data. `certified_threshold` uses exact tests to find a
threshold that meets it with 90 % confidence.
"""

# %%
# Classify digits with naive Bayes. Half of the samples are used to fit the model, a
# quarter to find the threshold, and a quarter to test it.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib.decisions import certified_threshold
from skcalib.displays import RiskCoverageDisplay

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_calibration, X_new, y_calibration, y_new = train_test_split(
    X_rest, y_rest, test_size=0.5, random_state=0
)
model = GaussianNB(var_smoothing=0.05).fit(X_train, y_train)

certified = certified_threshold(
    y_calibration,
    model.predict_proba(X_calibration),
    promise="error_when_answered",
    target=0.05,
)
print(certified)

# %%
# Does the guarantee hold on the test data?
proba = model.predict_proba(X_new)
answered = certified.accepts(proba)
wrong = proba.argmax(axis=1) != y_new
print(
    f"{answered.mean():.0%} of the new samples are answered,"
    f" {wrong[answered].mean():.1%} of the answers are wrong"
)
print(f"without abstaining {wrong.mean():.1%} are wrong")

# %%
# The trade-off: the error rate among the answers against the share of samples that are
# answered. The certified point lies below the target, because the curve itself is
# uncertain.
display = RiskCoverageDisplay.from_predictions(
    y_calibration, model.predict_proba(X_calibration), target=0.05, name="naive Bayes"
)

# %%
# Is the certificate worth the effort? Over 200 splits of the same data, count how often
# two thresholds exceed the limit on new data: one tuned to an error rate of 5 % on the
# calibration set, and the certified one.
broken = {"tuned": 0, "certified": 0}
proba, wrong = model.predict_proba(X_rest), model.predict(X_rest) != y_rest
for seed in range(200):
    rows, new = train_test_split(
        np.arange(len(y_rest)), test_size=0.5, random_state=seed
    )
    confidence = proba.max(axis=1)
    order = rows[np.argsort(-confidence[rows])]
    rate = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
    tuned = confidence[order][np.flatnonzero(rate <= 0.05)[-1]]
    found = certified_threshold(
        y_rest[rows], proba[rows], promise="error_when_answered", target=0.05
    ).threshold
    for name, threshold in (("tuned", tuned), ("certified", found)):
        answers = wrong[new][confidence[new] >= threshold]
        broken[name] += len(answers) > 0 and answers.mean() > 0.05
print({name: f"{count / 200:.0%} violated" for name, count in broken.items()})

# %%
# **See also:** :doc:`/which_threshold`. Reference: `certified_threshold`,
# `RiskCoverageDisplay`.
