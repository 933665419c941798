"""Means of calibration errors over samples whose true error is known:
``python -m benchmarks.estimator_means``.

Scores are uniform on [0, 1]. The model is calibrated, or events happen with probability
s^1.6.
"""

import argparse
import sys
from functools import partial

import numpy as np

from skcalib import metrics
from skcalib.binning import EqualMass, EqualWidth

_SAMPLES = {200: 1000, 1000: 400, 5000: 100}
_ERRORS = {
    "`expected_calibration_error` (15 equal-width bins)": partial(
        metrics.expected_calibration_error, binning=EqualWidth(15)
    ),
    "the same, 15 equal-mass bins": partial(
        metrics.expected_calibration_error, binning=EqualMass(15)
    ),
    "`neighborhood_calibration_error`": metrics.neighborhood_calibration_error,
    "`sweep_calibration_error`": metrics.sweep_calibration_error,
    "`smooth_calibration_error`": metrics.smooth_calibration_error,
    "`kde_calibration_error`": metrics.kde_calibration_error,
    "`kolmogorov_smirnov_calibration_error`": (
        metrics.kolmogorov_smirnov_calibration_error
    ),
    "`calibration_error(norm=1)`": partial(metrics.calibration_error, norm=1),
    "`calibration_error` (norm 2)": metrics.calibration_error,
    "`calibration_error(squared=True)`": partial(
        metrics.calibration_error, squared=True
    ),
}


def main(argv=None):
    """Print a line of means for each error; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.estimator_means", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        help="share of the samples, for a quick look",
    )
    share = parser.parse_args(argv).share
    print(
        "| | calibrated | | | s^1.6 | | |\n|---|---|---|---|---|---|---|\n| rows"
        + " | 200 | 1,000 | 5,000" * 2
        + " |"
    )
    for name, error in _ERRORS.items():
        cells = [
            f"{mean(error, n, power, share):.4f}"
            for power in (1.0, 1.6)
            for n in _SAMPLES
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 0


def mean(error, n_rows, power, share):
    """Return the mean of an error over samples of `n_rows` rows."""
    rng, values = np.random.default_rng(0), []
    for _ in range(max(2, int(share * _SAMPLES[n_rows]))):
        scores = rng.random(n_rows)
        values.append(error(rng.random(n_rows) < scores**power, scores))
    return np.mean(values)


if __name__ == "__main__":
    sys.exit(main())
