"""
Is it noise? Intervals and tests
================================

By chance alone, even a calibrated model has an estimated calibration error above 0. The
interval and the test show whether the error is larger than chance would produce. This
example evaluates the same model on 200 and on 20,000 samples.
"""

# %%
# The model forecasts rain and is slightly overconfident: the true log-odds are 0.85
# times those that it predicts.
import numpy as np
from scipy.special import expit, logit

rng = np.random.default_rng(0)


def sample(n):
    scores = rng.beta(1, 2, n)
    return np.where(rng.random(n) < expit(0.85 * logit(scores)), "rain", "dry"), scores


samples = {f"{n:,} samples": sample(n) for n in (200, 20_000)}

# %%
# The usual error (ECE) is larger with 200 samples, although the model is the same: it
# includes the noise. The debiased error subtracts most of the noise. With 200 samples,
# its interval includes 0, and the test does not reject: 200 samples are too few to
# detect the error.
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
# Each diagram shows the debiased error above the panel. The points of a calibrated
# model would lie in the grey band, which is wide with 200 samples.
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
