"""How cost grows: ``python -m benchmarks.speed.growth`` prints slopes on a log-log
plot, 1 for a cost in proportion.

The seconds of a job are measured at several sizes, the smallest of three runs each, and
a line is fitted to their logarithms. Small sizes are left out of the ranges: there the
fixed cost of a call would flatten the slope.
"""

import sys
import time
from functools import partial

import numpy as np

from benchmarks.speed import problems
from skcalib import TemperatureScaling, metrics
from skcalib.binning import EqualMass, EqualWidth

__all__ = ["GROWTH", "slope"]

_ROWS = (1_000_000, 3_000_000, 10_000_000)


def _binary(metric, n, **params):
    problem = problems.binary(n)
    return lambda: metric(problem.labels, problem.scores, **params)


def _by_bins(strategy, n_bins):
    return _binary(
        metrics.calibration_error, 1_000_000, binning=strategy(n_bins), method="plugin"
    )


def _marginal(n_classes):
    problem = problems.many_classes(20_000, n_classes)
    return lambda: metrics.expected_calibration_error(
        problem.labels, problem.scores, multiclass="marginal"
    )


def _temperature(n, n_classes):
    problem = problems.many_classes(n, n_classes)
    model = TemperatureScaling(input="logit")
    return lambda: model.fit(problem.logits, problem.labels).predict_proba(
        problem.logits
    )


_interval = partial(
    _binary,
    metrics.calibration_error_interval,
    binning=15,
    n_resamples=1000,
    random_state=0,
)

# what -> (its sizes, a function of the size that returns the run to be timed)
GROWTH = {
    "equal-width ECE, n": (_ROWS, partial(_binary, metrics.expected_calibration_error)),
    "equal-mass ECE, n": (_ROWS, partial(_binary, metrics.calibration_error)),
    "sweep, n": (_ROWS, partial(_binary, metrics.sweep_calibration_error)),
    "smECE, n": (_ROWS, partial(_binary, metrics.smooth_calibration_error)),
    "1000 resamples, n": (_ROWS, _interval),
    "temperature, n (K = 100)": (
        (10_000, 20_000, 40_000),
        partial(_temperature, n_classes=100),
    ),
    "temperature, K (n = 10,000)": (
        (100, 200, 400),
        lambda n_classes: _temperature(10_000, n_classes),
    ),
    "marginal ECE, K (n = 20,000)": ((50, 100, 200), _marginal),
    "equal-width error, B (n = 1,000,000)": (
        (10, 100, 1000),
        partial(_by_bins, EqualWidth),
    ),
    "equal-mass error, B (n = 1,000,000)": (
        (10, 100, 1000),
        partial(_by_bins, EqualMass),
    ),
}


def slope(sizes, make):
    """Return the slope of log(seconds) over log(size), and the seconds."""
    seconds = [_seconds(make(size)) for size in sizes]
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]), seconds


def _seconds(run):
    run()
    best = np.inf
    for _ in range(3):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    """Print a line for each growth; return the exit status."""
    for name, (sizes, make) in GROWTH.items():
        exponent, seconds = slope(sizes, make)
        shown = ", ".join(
            f"{size:,}: {second:.3g} s"
            for size, second in zip(sizes, seconds, strict=True)
        )
        print(f"{name} | {exponent:.2f} | {shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
