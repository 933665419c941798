"""The largest jobs that fit in so many GB:
``python -m benchmarks.speed.capacity [--gigabytes 8]``.

The process is denied more memory than that (input, answer and interpreter included),
and the jobs are run at the sizes that the bytes a row or a score foretell.
"""

import argparse
import resource
import sys
import time

import numpy as np

from skcalib import TemperatureScaling, metrics

__all__ = ["JOBS", "sizes"]

_BLOCK = 1 << 20
_N_CLASSES = 1000


def _binary(n):
    rng = np.random.default_rng(0)
    scores, labels = np.empty(n), np.empty(n, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        rng.random(out=scores[rows])
        labels[rows] = rng.random(len(scores[rows])) < scores[rows] ** 1.2
    return scores, labels


def _many_classes(n):
    rng = np.random.default_rng(0)
    logits = np.empty((n, _N_CLASSES), dtype=np.float32)
    for row in logits:
        rng.standard_normal(out=row, dtype=np.float32)
    return logits, rng.integers(_N_CLASSES, size=n)


def _probabilities(n):
    scores, labels = _many_classes(n)
    for row in scores:
        np.exp(row, out=row)
        row /= row.sum(dtype=np.float64)
    return scores, labels


def _temperature(logits, labels):
    return TemperatureScaling(input="logit").fit(logits, labels).predict_proba(logits)


def _equal_width(scores, labels):
    return metrics.expected_calibration_error(labels, scores)


def _equal_mass(scores, labels):
    return metrics.calibration_error(labels, scores)


def _sweep(scores, labels):
    return metrics.sweep_calibration_error(labels, scores)


# job -> (bytes a row with the input, how the input is made, what is run)
JOBS = {
    "equal-width ECE": (18, _binary, _equal_width),
    "equal-mass error": (18, _binary, _equal_mass),
    "sweep": (54, _binary, _sweep),
    "top-label ECE, K = 1000": (4 * _N_CLASSES + 100, _probabilities, _equal_width),
    "temperature, K = 1000": (12 * _N_CLASSES + 100, _many_classes, _temperature),
}


def sizes(gigabytes):
    """Return the rows of each job, with half a gigabyte for the interpreter and its
    libraries.
    """
    return {
        name: int((gigabytes - 0.5) * 1e9 / a_row)
        for name, (a_row, _, _) in JOBS.items()
    }


def main(argv=None):
    """Run the jobs at their largest and print a line for each; return the exit
    status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.capacity", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--gigabytes", type=float, default=8.0)
    options = parser.parse_args(argv)
    resource.setrlimit(resource.RLIMIT_DATA, (int(options.gigabytes * 1e9),) * 2)
    for name, n in sizes(options.gigabytes).items():
        _, make, run = JOBS[name]
        problem = make(n)
        start = time.perf_counter()
        run(*problem)
        print(f"{name} | {n:,} rows | {time.perf_counter() - start:.1f} s", flush=True)
        del problem
    return 0


if __name__ == "__main__":
    sys.exit(main())
