"""What limits of one probability cost: ``python -m benchmarks.speed.one_probability
[--sizes 1000 100000]``.

Of each method, in processor time of one thread: how many times as long as
`predict_proba` its `predict_interval` takes once the limits are made, at most 5; and
how many times as long a fit takes that keeps what they are made of, at most 1.1.

Of K classes, matrix scaling has K (K + 1) parameters. The covariances of the logits of
K (K + 1) / 2 pairs of classes are sums of (K + 1) (K + 2) / 2 products: 150
multiplications a sample for 4 classes, 3,630 for 10 and 16,320 for 15, where
`predict_proba` takes 20, 110 and 240. The target is met up to 10 classes. For 15 the
ratio is 8: the product of two matrices that has these multiplications as its entries
takes 1.8 times as long as `predict_proba`, and the products of features, the sums over
classes and the limits as much again. Vector scaling takes 4 K^2, 10,000 for 50 classes,
and has a ratio of 4.9 there.
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
_OF_CLASSES = {
    "TemperatureScaling": {},
    "VectorScaling": {"alpha": 1.0},
    "MatrixScaling": {"alpha": 1.0},
}
_N_CLASSES = (4, 10)
_SECONDS = 0.2  # of each comparison, at least


def _seconds(first, second):
    """Return the processor times of two runs, which alternate: the least of several."""
    least = [float("inf"), float("inf")]
    spent = 0.0
    while spent < _SECONDS:
        for i, run in enumerate((first, second)):
            began = time.process_time()
            run()
            taken = time.process_time() - began
            least[i] = min(least[i], taken)
            spent += max(taken, 1e-6)
    return least


def ratios(model, problem):
    """Return the ratios of `predict_interval` to `predict_proba`, and of a fit to one
    that keeps nothing for limits.
    """
    maker = _base.LimitsMaker

    def fit():
        model.fit(problem.scores, problem.labels)

    def fit_alone():
        _base.LimitsMaker = ()  # nothing is an instance of no class
        try:
            fit()
        finally:
            _base.LimitsMaker = maker

    fitting, bare = _seconds(fit, fit_alone)
    fit()
    model.predict_interval(problem.scores[:2])
    interval, proba = _seconds(
        lambda: model.predict_interval(problem.scores),
        lambda: model.predict_proba(problem.scores),
    )
    return interval / proba, fitting / bare


def _problems(n):
    """Return triples of a name, an unfitted model and a problem of n samples."""
    found = []
    for name in _METHODS:
        arguments = (10,) if name == "UniformMassBinning" else ()
        found.append((name, getattr(skcalib, name)(*arguments), problems.binary(n)))
    for n_classes in _N_CLASSES:
        for name in _OF_CLASSES:
            # alpha=1, since a search for it takes a minute
            model = getattr(skcalib, name)(**_OF_CLASSES[name])
            problem = problems.many_classes(n, n_classes)
            found.append((f"{name}, {n_classes} classes", model, problem))
    return found


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
        for name, model, problem in _problems(n):
            interval, fit = ratios(model, problem)
            print(f"| {name} | {n:,} | {interval:.1f} | {fit:.2f} |", flush=True)


if __name__ == "__main__":
    main()
