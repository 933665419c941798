"""
Is it noise? Intervals and tests
================================

A calibrated model has a calibration error above 0 in every sample, by chance. The
interval and the test say whether more than chance is there. Here one model is judged on
200 rows and on 20,000 rows.
"""

# %%
# The model forecasts rain, and is a little too sure of itself: the true log-odds are
# 0.85 times those that it predicts.
import numpy as np
from scipy.special import expit, logit

rng = np.random.default_rng(0)


def sample(n):
    scores = rng.beta(1, 2, n)
    return np.where(rng.random(n) < expit(0.85 * logit(scores)), "rain", "dry"), scores


samples = {f"{n:,} rows": sample(n) for n in (200, 20_000)}

# %%
# The usual error (ECE) is larger for 200 rows, although the model is the same: it
# contains the noise. The debiased error subtracts most of it. For 200 rows its interval
# includes 0, and the test does not reject: too few rows to tell.
from functools import partial

from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
)

for name, (y, scores) in samples.items():
    error = calibration_error_interval(y, scores, norm=1, random_state=0)
    test = calibration_test(y, scores, random_state=0)
    print(
        f"{name}: ECE {expected_calibration_error(y, scores):.3f}, debiased"
        f" {error.estimate:.3f} (90 % interval {error.low:.3f} to {error.high:.3f}),"
        f" p-value {test.pvalue:.3f}"
    )

# %%
# The diagrams show the same error above each panel. The grey band is where a calibrated
# model would stay. It is wide for 200 rows.
from skcalib.displays import ReliabilityDisplay

y, scores = (np.concatenate(parts) for parts in zip(*samples.values(), strict=True))
which = np.repeat(list(samples), [200, 20_000])
norm_1 = partial(calibration_error, norm=1)
ReliabilityDisplay.from_predictions(
    y, scores, groups=which, order="given", metric=norm_1, random_state=0
)

# %%
# **See also:** :doc:`/which_error`, :doc:`/reading_a_diagram`. Reference:
# `calibration_error_interval`, `calibration_test`, `expected_calibration_error`.
