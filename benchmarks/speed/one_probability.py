"""What limits of one probability cost: ``python -m benchmarks.speed.one_probability
[--sizes 1000 100000]``.

Of each method, in processor time of one thread: how many times as long as
`predict_proba` its `predict_interval` takes once the limits are made, at most 5; and
how many times as long a fit takes that keeps what they are made of, at most 1.1.
"""

import argparse
import time
import warnings

import skcalib
from benchmarks.speed import problems
from skcalib.recalibrators import _base

__all__ = ["ratios"]

_METHODS = (
    "PlattScaling",
    "BetaCalibration",
    "QuadraticScaling",
    "TemperatureScaling",
    "VectorScaling",
    "MatrixScaling",
    "SplineCalibration",
    "HistogramBinning",
    "UniformMassBinning",
    "IsotonicCalibration",
    "VennAbers",
)
_SECONDS = 0.1  # of each measurement, at least


def _seconds(run):
    """Return the processor time of a run: the least of several."""
    least = float("inf")
    spent = 0.0
    while spent < _SECONDS:
        began = time.process_time()
        run()
        taken = time.process_time() - began
        least = min(least, taken)
        spent += max(taken, 1e-6)
    return least


def ratios(name, problem):
    """Return the ratios of `predict_interval` to `predict_proba`, and of a fit to one
    that keeps nothing for limits.
    """
    arguments = (10,) if name == "UniformMassBinning" else ()
    model = getattr(skcalib, name)(*arguments)

    def fit():
        model.fit(problem.scores, problem.labels)

    fitting = _seconds(fit)
    keep, _base.Maker = _base.Maker, ()  # nothing is an instance of no class
    try:
        bare = _seconds(fit)
    finally:
        _base.Maker = keep
    fit()
    model.predict_interval(problem.scores[:2])
    interval = _seconds(lambda: model.predict_interval(problem.scores))
    proba = _seconds(lambda: model.predict_proba(problem.scores))
    return interval / proba, fitting / bare


def main(argv=None):
    """Print a line for each method and size."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.one_probability",
        description=__doc__.splitlines()[0],
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", UserWarning)
    print("| method | samples | predict_interval / predict_proba | fit |")
    print("|---|--:|--:|--:|")
    for n in options.sizes:
        problem = problems.binary(n)
        for name in _METHODS:
            interval, fit = ratios(name, problem)
            print(f"| {name} | {n:,} | {interval:.1f} | {fit:.2f} |", flush=True)


if __name__ == "__main__":
    main()
