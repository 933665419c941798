"""
A threshold with a guarantee
============================

"At most 5 % of the answers may be wrong." A threshold that is tuned until the data say
so breaks this guarantee on new rows in many cases. `certified_threshold` finds one by
exact tests.
"""

# %%
# Naive Bayes reads digits. Half of the rows are for the model, a quarter is for the
# threshold, and a quarter is new.
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
# What becomes of the guarantee on the new rows?
proba = model.predict_proba(X_new)
answered = certified.accepts(proba)
wrong = proba.argmax(axis=1) != y_new
print(
    f"{answered.mean():.0%} of the new rows are answered, {wrong[answered].mean():.1%}"
    " of the answers are wrong"
)
print(f"without abstaining {wrong.mean():.1%} are wrong")

# %%
# The price: errors among the answers, against the share of rows that is answered. The
# certified point lies below the target, because the curve itself is uncertain.
display = RiskCoverageDisplay.from_predictions(
    y_calibration, model.predict_proba(X_calibration), target=0.05, name="naive Bayes"
)

# %%
# Is it worth the trouble? Over 200 splits of the same rows, the share of thresholds
# that break their guarantee on new rows: tuned on the calibration rows until the error
# rate there is 5 %, and certified.
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
print({name: f"{count / 200:.0%} broken" for name, count in broken.items()})

# %%
# **See also:** :doc:`/which_threshold`. Reference: `certified_threshold`,
# `RiskCoverageDisplay`.
