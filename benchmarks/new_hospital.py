"""Coverage of the prediction interval for a hospital that was not in the study.

``python -m benchmarks.new_hospital [--samples 400]`` draws studies with few and many
hospitals of unequal size, and prints how often the 90 % limits of
`calibration_by_cluster` hold the intercept of a new hospital and the mean over
hospitals.
"""

import argparse

import numpy as np
from scipy.special import expit, logit

from skcalib.evaluation import calibration_by_cluster

MEAN = 0.2
# Number of hospitals, and the deviation of the intercept between them.
CELLS = [(3, 0.1), (3, 0.5), (5, 0.1), (5, 0.5), (10, 0.1), (10, 0.5), (24, 0.1)]
CELLS += [(24, 0.3), (50, 0.1), (50, 0.3)]


def coverage(n_hospitals, tau, n_samples, seed=0, level=0.9):
    """Return the coverage of a new hospital, of the mean, and the mean width."""
    rng = np.random.default_rng(seed)
    held_new = held_mean = 0
    widths = []
    for _ in range(n_samples):
        sizes = rng.integers(60, 500, n_hospitals)
        hospital = np.repeat(np.arange(n_hospitals), sizes)
        effect = MEAN + tau * rng.normal(size=n_hospitals)
        risk = rng.beta(2, 5, len(hospital))
        labels = rng.random(len(hospital)) < expit(logit(risk) + effect[hospital])
        found = calibration_by_cluster(labels, risk, hospital, confidence_level=level)
        new = found.prediction["intercept"]
        # Averaged over the new hospital, which needs no draw.
        held_new += np.mean(
            (new.low <= MEAN + tau * _NORMAL) & (MEAN + tau * _NORMAL <= new.high)
        )
        mean = found.pooled["intercept"]
        held_mean += mean.low <= MEAN <= mean.high
        widths.append(new.high - new.low)
    return held_new / n_samples, held_mean / n_samples, float(np.mean(widths))


_NORMAL = np.random.default_rng(1).standard_normal(2000)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=400)
    options = parser.parse_args()
    print("| hospitals | tau | new hospital | mean | width |")
    print("|---|---|---|---|---|")
    for n_hospitals, tau in CELLS:
        new, mean, width = coverage(n_hospitals, tau, options.samples)
        line = f"| {n_hospitals} | {tau} | {new:.3f} | {mean:.3f} | {width:.2f} |"
        print(line, flush=True)


if __name__ == "__main__":
    main()
