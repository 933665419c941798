"""
Search for the number of bins
=============================

More bins distinguish samples more finely, but leave fewer samples to estimate the
probability of each bin. `sharpest_within` is a rule for `GridSearchCV`: among the
candidates whose calibration error is small enough, it selects the one with the best
Brier score.
"""

# %%
# The pipeline computes out-of-fold scores of the forest, and then fits the bins. With
# ``memory=``, the forest is fitted once per fold of the search, not once per candidate.
from tempfile import TemporaryDirectory

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skcalib import CrossFittedClassifier, HistogramBinning
from skcalib.binning import EqualMass, EqualWidth
from skcalib.model_selection import sharpest_within

X, y = make_classification(4000, n_informative=6, flip_y=0.1, random_state=0)
forest = RandomForestClassifier(n_estimators=25, min_samples_leaf=5, random_state=0)
rule = sharpest_within(max_error=0.05)

with TemporaryDirectory() as folder:
    pipeline = make_pipeline(
        CrossFittedClassifier(forest, cv=3), HistogramBinning(), memory=folder
    )
    search = GridSearchCV(
        pipeline,
        {
            "histogrambinning__binning": [EqualMass(), EqualWidth()],
            "histogrambinning__binning__n_bins": [1, 2, 5, 10, 20, 50, 100, 200],
        },
        scoring=rule.scoring,
        refit=rule,
        cv=3,
    ).fit(X, y)
print(search.best_params_)

# %%
# A single bin predicts the same probability for everybody: its calibration error is
# small, but its Brier score is poor. The rule selects the best Brier score among the
# candidates whose error plus one standard error is within the limit.
import matplotlib.pyplot as plt
import numpy as np

results = search.cv_results_
binnings = np.array(
    [str(type(one).__name__) for one in results["param_histogrambinning__binning"]]
)
n_bins = np.array(results["param_histogrambinning__binning__n_bins"], dtype=int)
squared_error = -results["mean_test_squared_calibration_error"]

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
for name, marker in (("EqualMass", "o"), ("EqualWidth", "s")):
    rows = binnings == name
    left.plot(
        n_bins[rows], -results["mean_test_objective"][rows], marker=marker, label=name
    )
    right.plot(n_bins[rows], squared_error[rows], marker=marker, label=name)
right.axhline(0.05**2, color="grey", linestyle="--", label="limit")
left.plot(
    n_bins[search.best_index_],
    -results["mean_test_objective"][search.best_index_],
    "k*",
    ms=14,
    label="selected",
)
for ax, title in (
    (left, "Brier score"),
    (right, "Squared calibration error (debiased)"),
):
    ax.set(xscale="log", xlabel="Number of bins")
    ax.set_title(title, loc="left", fontsize="medium")
    ax.set_xticks([1, 10, 100], ["1", "10", "100"])
    ax.legend(frameon=False)

# %%
# **See also:** :doc:`/how_many_bins`, :doc:`/pipelines`. Reference: `sharpest_within`,
# `HistogramBinning`, `EqualMass`, `EqualWidth`.
