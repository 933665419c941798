"""Does a calibration error reward a lie? ``python -m benchmarks.truthfulness``.

Labels are drawn from probabilities of Beta(1, 4). The forecaster knows the
probabilities, and reports them; or half of the way to the base rate .2; or the base
rate. A truthful error is smallest for the first.
"""

import argparse
import sys

import numpy as np

from skcalib.metrics._registry import METRICS

N_ROWS, N_SAMPLES, SEED = 200, 2000, 0
BASE_RATE = 0.2
# how far a report moves from the truth to the base rate
SHARES = {"truth": 0.0, "halfway": 0.5, "base rate": 1.0}
# the errors of the table that are a power or a square: shown as it is
_OPTIONS = {"calibration_error(squared=True)": ("calibration_error", {"squared": True})}


def errors():
    """Return (function, options) of each error by the name that the page shows."""
    found = {
        name: (name, {}) for name in METRICS if name != "groupwise_calibration_error"
    }
    return {
        title: (METRICS[name].function, options)
        for title, (name, options) in sorted({**found, **_OPTIONS}.items())
    }


def mean_values(function, options, n_samples=N_SAMPLES):
    """Return the mean of an error for each report, and the standard error of the
    difference of each from the truth.
    """
    rng = np.random.default_rng(SEED)
    values = np.empty((n_samples, len(SHARES)))
    for sample in values:
        truth = rng.beta(1, 4, N_ROWS)
        y_true = rng.random(N_ROWS) < truth
        for place, share in enumerate(SHARES.values()):
            report = (1 - share) * truth + share * BASE_RATE
            sample[place] = function(y_true, report, labels=[False, True], **options)
    differences = values - values[:, :1]
    return values.mean(axis=0), differences.std(axis=0) / np.sqrt(n_samples)


def main(argv=None):
    """Print a line of the table for each error; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.truthfulness", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--samples", type=int, default=N_SAMPLES)
    n_samples = parser.parse_args(argv).samples
    print(f"| error | {' | '.join(SHARES)} | is misreporting rewarded? |")
    print("|---" * (len(SHARES) + 2) + "|")
    for title, (function, options) in errors().items():
        means, deviations = mean_values(function, options, n_samples)
        lower = means[1:] < means[0] - 2 * deviations[1:]
        shown = " | ".join(f"{mean:.4g}" for mean in means)
        print(f"| `{title}` | {shown} | {'yes' if lower.any() else 'no'} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
