"""
Known and unknown groups
========================

A model can be calibrated overall but miscalibrated for one group.
`calibration_by_group` tests the groups that you name. `segment_calibration_test`
searches the features for the worst group, and its p-value accounts for the number
of groups tested.
"""

# %%
# At site 3, older patients have more events than predicted, because the model does not
# use the site.
import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
n = 9000
X = pd.DataFrame(
    {
        "age": rng.integers(18, 90, n),
        "pressure": rng.normal(125, 15, n),
        "site": rng.integers(0, 5, n),
    }
)
log_odds = (
    -2.5
    + 0.03 * (X.age - 50)
    + 0.02 * (X.pressure - 125)
    + 1.5 * ((X.site == 3) & (X.age > 70))
)
y = (rng.random(n) < expit(log_odds)).astype(int)
train, test = slice(0, 5000), slice(5000, None)

columns = ["age", "pressure"]
model = LogisticRegression(max_iter=1000).fit(X[columns][train], y[train])
scores = model.predict_proba(X[columns][test])[:, 1]

# %%
# Search for groups. The first row of the table is the worst group found.
from skcalib.metrics import calibration_by_group, segment_calibration_test

found = segment_calibration_test(
    y[test], scores, X[test].astype({"site": "category"}), random_state=0
)
print(f"p-value {found.pvalue:.3f}")
found.segments.to_frame().head(5).round(3)

# %%
# Now test the known groups. A filled marker means that the difference is significant
# after adjustment for the number of groups. The scores of the other sites are slightly
# too high, because the model was fitted to all sites together.
from skcalib.displays import GroupDisplay

by_site = calibration_by_group(
    y[test], scores, "site " + X.site[test].astype(str), random_state=0
)
GroupDisplay.from_table(by_site)

# %%
# **See also:** :doc:`/which_groups`. Reference: `calibration_by_group`,
# `segment_calibration_test`, `GroupDisplay`, `SegmentDisplay`.
