"""
After the release: no labels, a few labels, and online recalibration
====================================================================

A model is in production, and its labels arrive late. As long as the event frequency at
each score stays the same, the new scores alone are enough to estimate performance. A
few labels show whether this assumption holds, and an online recalibrator corrects the
scores as labels arrive.
"""

# %%
# Simulate twelve months of scores. From the seventh month onward, events become more
# frequent at every score.
import numpy as np
from scipy.special import expit, logit

rng = np.random.default_rng(0)
month = np.repeat(np.arange(12), 1500)
scores = expit(rng.normal(-1, 1.2, len(month)))
y = rng.random(len(month)) < expit(logit(scores) + 0.7 * (month >= 6))

# %%
# The labels of the first three months are known. What event frequency should we expect
# in each later month, from the scores alone and with one label in ten?
from skcalib.monitoring import estimated_performance

labelled = month < 3
expected, audited = [], []
for later in range(3, 12):
    rows = month == later
    known = np.where(rng.random(1500) < 0.1, y[rows], np.nan)
    arguments = y[labelled], scores[labelled], scores[rows]
    expected.append(estimated_performance(*arguments, metrics="event_frequency"))
    audited.append(
        estimated_performance(
            *arguments,
            metrics="event_frequency",
            y_new=known,
            sampling_probability=0.1,
        )
    )

# %%
# The online recalibrator forecasts each week before it sees the labels of that week.
from skcalib import OnlineRecalibrator

online = OnlineRecalibrator(half_life=2000).fit(scores[labelled], y[labelled])
issued = scores.copy()
for week in np.split(np.arange(4500, len(y)), 36):
    issued[week] = online.predict_proba(scores[week])[:, 1]
    online.partial_fit(scores[week], y[week])

# %%
# Without labels, the estimate cannot detect the change. The estimate with a few labels
# follows it immediately, and the online predictions follow after a few weeks.
import matplotlib.pyplot as plt

months = np.arange(3, 12)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for tables, shift, label in (
    (expected, -0.1, "scores alone"),
    (audited, 0.1, "10 % labelled"),
):
    estimate = np.array([table.estimate[0] for table in tables])
    limits = np.array([[table.low[0], table.high[0]] for table in tables]).T
    axes.errorbar(
        months + 1 + shift, estimate, np.abs(limits - estimate), fmt="o", label=label
    )
axes.plot(
    months + 1,
    [issued[month == m].mean() for m in months],
    label="online recalibration",
)
axes.plot(months + 1, [y[month == m].mean() for m in months], "k--", label="observed")
axes.set(xlabel="month", ylabel="event frequency", ylim=(0.2, 0.6))
axes.legend(loc="upper left")

# %%
# **See also:** :doc:`/after_release`. Reference: `estimated_performance`,
# `OnlineRecalibrator`.
