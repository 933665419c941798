"""``python -m benchmarks.levels.oracle_widths``: widths of intervals where weights
depend on the label, over those of an oracle.

The oracle knows the standard deviation of an estimate, that of many data sets, and its
limits are normal ones. O/E is compared on the log scale.
"""

import sys
import warnings

import numpy as np
from scipy.special import ndtri

from benchmarks.levels.sampled import (
    population_of,
    summary_number,
    task_of,
    weights_of,
)
from benchmarks.levels.shapes import SHAPES
from skcalib._inference.bias import rows_bias_test
from skcalib.decisions import net_benefit
from skcalib.metrics import calibration_slope_intercept

__all__ = ["ESTIMATES", "WORLDS", "width_ratios"]

_RUNS = 150
WORLDS = (
    "events and 1 of 5 others, n = 600",
    "events and 1 of 20 others, n = 600",
    "events and 1 of 200 others, n = 600",
    "events and 1 of 20 others by score, n = 600",
    "weights of the label, hidden, n = 600",
    "weights of censoring, n = 800",
    "scores 1.2 times too high, 1 of 20 others",
    "scores 1.2 times too high, hidden weights",
)


def _bias(sample):
    task = task_of(sample)
    weight = task.sample_weight
    bias = np.average(task.scores - task.labels, weights=weight)
    # `calibration_by_group` has these limits beside others that take longer.
    test, _ = rows_bias_test(
        task.scores, task.labels, 0.9, weight, label_weights=task.label_weights
    )
    return bias, test.low, test.high


def _ratio(sample):
    return np.log(summary_number("observed_expected", sample)[:3])


def _brier(sample):
    return summary_number("brier_score", sample)[:3]


def _slope(sample):
    found = calibration_slope_intercept(
        sample.labels, sample.scores, confidence_level=0.9, **weights_of(sample)
    )
    return found.slope[:3]


def _benefit(sample):
    """The net benefit of treating the upper three tenths."""
    scores, _ = population_of(sample)
    found = net_benefit(
        sample.labels,
        sample.scores,
        thresholds=[scores[int(0.7 * len(scores))]],
        labels=[0, 1],
        confidence_level=0.9,
        **weights_of(sample),
    )
    return found.net_benefit[0], found.low[0], found.high[0]


ESTIMATES = {
    "bias": _bias,
    "O/E ratio": _ratio,
    "Brier score": _brier,
    "calibration slope": _slope,
    "net benefit": _benefit,
}


def width_ratios(shape, runs=_RUNS):
    """Return the mean width of the 90 % intervals of each estimate over that of the
    oracle, from data sets of one shape.
    """
    rng = np.random.default_rng(6)
    results = {name: [] for name in ESTIMATES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(runs):
            sample = SHAPES[shape](rng)
            for name, estimate in ESTIMATES.items():
                results[name].append(estimate(sample))
    ratios = {}
    for name, found in results.items():
        value, low, high = np.transpose(found)
        oracle = 2 * ndtri(0.95) * np.std(value)
        ratios[name] = float(np.nanmean(high - low) / oracle)
    return ratios


def main():
    """Print a Markdown table."""
    print(f"| data | {' | '.join(ESTIMATES)} |\n{'|---' * (len(ESTIMATES) + 1)}|")
    for shape in WORLDS:
        cells = [f"{ratio:.2f}" for ratio in width_ratios(shape).values()]
        print(f"| {shape} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
