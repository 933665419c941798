"""
Stop boosting by the refinement loss
====================================

The log-loss of a validation set is the sum of two parts: a calibration error, which
recalibration removes, and the refinement loss, which only a better model lowers. If the
model will be recalibrated anyway, stop training where the refinement loss is smallest.
"""

# %%
# Fit gradient boosting to a noisy problem. After a few dozen trees, it becomes
# overconfident, while its ranking still improves.
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

X, y = make_classification(
    8000, 30, n_informative=12, flip_y=0.05, class_sep=0.7, random_state=0
)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
X_valid, X_test, y_valid, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, random_state=0
)
model = HistGradientBoostingClassifier(
    max_iter=300, learning_rate=0.2, early_stopping=False, random_state=0
).fit(X_train, y_train)

# %%
# Compute both criteria after every tree. ``cv=None`` fits a single temperature to the
# validation samples themselves: the optimism is the same for every number of trees.
from skcalib import TemperatureScaling
from skcalib.evaluation import refinement_loss

validation = list(model.staged_predict_proba(X_valid))
loss = [log_loss(y_valid, y_proba) for y_proba in validation]
refinement = [
    refinement_loss(y_valid, y_proba, recalibrator=TemperatureScaling(), cv=None)
    for y_proba in validation
]

# %%
# Compute the log-loss on held-out data, before and after temperature scaling fitted to
# the validation samples.
test = list(model.staged_predict_proba(X_test))
for name, criterion in {"log-loss": loss, "refinement": refinement}.items():
    best = int(np.argmin(criterion))
    temperature = TemperatureScaling().fit(validation[best], y_valid)
    held_out = log_loss(y_test, temperature.predict_proba(test[best]))
    bare = log_loss(y_test, test[best])
    print(
        f"stopped by {name}: {best + 1} trees, {bare:.4f}, recalibrated {held_out:.4f}"
    )

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
trees = np.arange(1, len(loss) + 1)
for label, criterion in {"log-loss": loss, "refinement loss": refinement}.items():
    (line,) = axes.plot(trees, criterion, label=label)
    best = int(np.argmin(criterion))
    axes.plot(best + 1, criterion[best], "o", color=line.get_color())
axes.set(xlabel="trees", ylabel="validation loss in nats", ylim=(0.2, 0.5))
axes.legend()

# %%
# **See also:** :doc:`/pipelines`. Reference: `refinement_loss`, `recalibration_gain`.
