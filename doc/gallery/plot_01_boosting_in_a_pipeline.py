"""
A boosted model in a pipeline
=============================

Boosted trees rank well, and their probabilities are often too extreme. `CrossFittedClassifier` puts the model into the
middle of a pipeline. It hands the recalibrator *out-of-fold* scores: scores of rows that the model was not fitted on.
"""

# %%
# The breast cancer data that scikit-learn ships have 569 rows. A third of them is held out.
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skcalib import CrossFittedClassifier, SplineCalibration

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)

model = GradientBoostingClassifier(random_state=0)
plain = model.fit(X_train, y_train)
pipeline = make_pipeline(CrossFittedClassifier(model, cv=5), SplineCalibration()).fit(X_train, y_train)

# %%
# The held-out rows judge both. The log-loss punishes probabilities that are sure and wrong.
from sklearn.metrics import log_loss

for name, fitted in (("as it is", plain), ("recalibrated", pipeline)):
    print(f"{name}: log-loss {log_loss(y_test, fitted.predict_proba(X_test)):.3f}")

# %%
# The diagram shows why: the scores crowd at 0 and 1, and some of the sure ones are wrong.
from skcalib.displays import ReliabilityDisplay

ReliabilityDisplay.from_estimator(
    {"as it is": plain, "recalibrated": pipeline}, X_test, y_test, layout="columns", random_state=0
)
