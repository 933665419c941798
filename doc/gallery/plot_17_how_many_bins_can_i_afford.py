"""
How many bins can I afford?
===========================

More bins distinguish samples more finely, but each is estimated from fewer samples.
`BinCountDisplay` draws both sides: the tolerance that theory guarantees before any data
are seen, and the error and sharpness on data.
"""

# %%
# Before any data: `UniformMassBinning` guarantees a tolerance for all bins at once,
# with 90 % confidence. The circles mark the largest number of bins with a tolerance of
# at most .05. With 300 samples, there is none.
from skcalib.displays import BinCountDisplay

promised = BinCountDisplay.from_guarantee([300, 1_000, 5_000, 20_000], epsilon=0.05)
for curve in promised.curves:
    print(
        f"{curve.name}: {curve.chosen or 'no number of'}"
        f" {'bin' if curve.chosen == 1 else 'bins'}"
    )

# %%
# On data: 6,000 scores of an overconfident model. Each number of bins is evaluated by
# cross-validation.
import numpy as np
from scipy.special import expit

rng = np.random.default_rng(0)
log_odds = rng.normal(size=6000)
y = np.where(rng.random(6000) < expit(log_odds), "paid", "open")
y_proba = expit(2 * log_odds)

# %%
# The left panel shows the remaining calibration error, the right panel the share of the
# labels' variance that the bins explain. Beyond ten bins, sharpness hardly increases.
# The circles mark the sharpest bins whose error is at most .04.
measured = BinCountDisplay.from_predictions(y, y_proba, max_error=0.04)
for curve in measured.curves:
    print(f"{curve.name}: {curve.chosen} bins")

# %%
# **See also:** :doc:`/how_many_bins`, :doc:`/displays`. Reference: `BinCountDisplay`,
# `UniformMassBinning`, `sharpest_within`.
