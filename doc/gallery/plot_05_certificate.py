"""
A certificate and its cost
==========================

`UniformMassBinning` comes with a guarantee: with 90 % confidence, *every* predicted
probability is within epsilon of the true event frequency. The guarantee holds for any
distribution and any sample size. More bins make it weaker; more samples make it
stronger.
"""

# %%
# The guarantee is about one model, so fit the model first, on separate data. Then
# request a tolerance of 0.1: the recalibrator uses the largest number of bins that
# achieves it.
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcalib import UniformMassBinning

X, y = make_classification(12_000, n_informative=4, flip_y=0.1, random_state=0)
X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, train_size=2000, random_state=0
)
X_calibration, X_test, y_calibration, y_test = train_test_split(
    X_rest, y_rest, train_size=5000, random_state=0
)

model = LogisticRegression(max_iter=1000).fit(X_train, y_train)
recalibrator = UniformMassBinning(epsilon=0.1).fit(
    model.predict_proba(X_calibration), y_calibration
)
print(recalibrator.certificate())

# %%
# What does the guarantee cost? Few bins distinguish samples less finely, so the Brier
# score is worse. The certificate that uses the observed labels (Clopper-Pearson) gives
# a tighter guarantee than the theorem for the same bins.
import matplotlib.pyplot as plt
from sklearn.metrics import brier_score_loss

from skcalib.guarantees import conditional_epsilon

counts = [2, 3, 5, 8, 12, 17, 25, 40, 60]
scores, scores_test = model.predict_proba(X_calibration), model.predict_proba(X_test)
fits = [UniformMassBinning(n).fit(scores, y_calibration) for n in counts]
brier = [brier_score_loss(y_test, one.predict_proba(scores_test)[:, 1]) for one in fits]

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
left.plot(
    counts,
    [conditional_epsilon(len(y_calibration), n) for n in counts],
    "o-",
    label="theorem",
)
left.plot(
    counts,
    [one.certificate(interval="clopper_pearson").epsilon for one in fits],
    "s-",
    label="Clopper-Pearson",
)
left.axhline(0.1, color="grey", linestyle="--", label="requested")
left.set(xlabel="Number of bins", ylabel="Guaranteed tolerance", ylim=(0, None))
left.legend(frameon=False)
right.plot(counts, brier, "o-")
right.axhline(
    brier_score_loss(y_test, scores_test[:, 1]),
    color="grey",
    linestyle="--",
    label="not recalibrated",
)
right.set(xlabel="Number of bins", ylabel="Brier score on held-out data")
right.legend(frameon=False)

# %%
# **See also:** :doc:`/how_many_bins`, :doc:`/which_recalibrator`. Reference:
# `UniformMassBinning`, `conditional_epsilon`, `CalibrationCertificate`.
