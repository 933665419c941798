"""
Is the model worth using?
=========================

A decision curve shows the net benefit of acting on a model's predictions, compared with
treating everybody and treating nobody. The threshold expresses the cost of errors:
acting at a probability of .1 or above means accepting 9 false alarms per event.
"""

# %%
# Compare two models for malignant tumours: one uses four weak measurements, the other
# also uses the mean radius.
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.decisions import ExpectedCostClassifier, mean_cost, net_benefit
from skcalib.displays import DecisionCurveDisplay

data = load_breast_cancer()
y = (data.target == 0).astype(int)
X_train, X_test, y_train, y_test = train_test_split(
    data.data, y, test_size=0.5, random_state=0
)
columns = {"four measurements": [1, 4, 8, 9], "and the radius": [0, 1, 4, 8, 9]}
models = {
    name: (
        make_pipeline(StandardScaler(), LogisticRegression()).fit(
            X_train[:, some], y_train
        )
    )
    for name, some in columns.items()
}
proba = {
    name: model.predict_proba(X_test[:, columns[name]])[:, 1]
    for name, model in models.items()
}
display = DecisionCurveDisplay.from_predictions(y_test, proba, threshold=0.1)

# %%
# Is the second model better at thresholds from .05 to .3? Both are compared on the same
# samples, and the band holds at all thresholds simultaneously.
thresholds = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
difference = net_benefit(
    y_test,
    proba["and the radius"],
    reference=proba["four measurements"],
    thresholds=thresholds,
    simultaneous=True,
    random_state=0,
)
print(difference)
difference.to_frame().round(3)

# %%
# With known costs, the same model makes the decision: a missed tumour costs 9 times as
# much as an unnecessary biopsy.
costs = [[0, 1], [9, 0]]
some = columns["and the radius"]
by_cost = ExpectedCostClassifier(models["and the radius"], costs).fit(
    X_train[:, some], y_train
)
print(
    "least expected cost"
    f" {mean_cost(y_test, by_cost.predict(X_test[:, some]), costs):.2f}"
)
print(
    "most probable class"
    f" {mean_cost(y_test, by_cost.predict_proba(X_test[:, some])[:, 1] > 0.5, costs):.2f}"  # noqa: E501
)

# %%
# **See also:** :doc:`/which_threshold`, :doc:`/reading_a_diagram`. Reference:
# `net_benefit`, `mean_cost`, `ExpectedCostClassifier`, `DecisionCurveDisplay`.
