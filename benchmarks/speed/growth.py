"""How cost grows: ``python -m benchmarks.speed.growth`` prints, for every public
function, the exponent of its cost and how many times its plain sibling it takes.

A job is run at growing sizes, until one run takes 20 seconds. The exponent is the slope
of a line through the logarithms of its processor times: 1 for a cost in proportion. The
last sizes count, because the fixed cost of a call flattens the line at small ones. The
sibling is the plainest job on the same data, at the largest size that both reached. A
job that takes more than ten times as long as it is marked as a cliff.

``--only`` takes a regular expression of job names, ``--most`` a limit of the sizes.
"""

import argparse
import re
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import skcalib
from benchmarks.speed import problems
from skcalib import evaluation, metrics, monitoring
from skcalib.binning import EqualMass, EqualWidth

__all__ = ["GROWTH", "Growth", "is_cliff", "measured", "seconds_of", "slope"]

# A larger size is not tried where a run took, or would take, more seconds than this.
_MOST_SECONDS = 20.0
# A cost that is more times that of the sibling is a cliff.
_CLIFF = 10.0
_N = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_UP_TO_A_MILLION = _N[:4]
_CLASSES = (2, 10, 100, 1_000, 10_000)
_PARTS = (10, 100, 1_000, 10_000, 100_000)  # groups, clusters, segments, periods


class Growth(NamedTuple):
    """A job over growing sizes.

    Parameters
    ----------
    sizes : tuple of int
        The sizes.
    make : callable
        Returns the run of a size, which takes no arguments; its input is made before.
    sibling : str or None
        Name of the plain job beside it, which has the same sizes.
    """

    sizes: tuple
    make: Callable
    sibling: str | None = None


def _binary(function, n, **params):
    problem = problems.binary(n)
    return partial(function, problem.labels, problem.scores, **params)


def _by_column(function, name, n_parts, *, n=200_000, **params):
    """Return the run of a function whose argument `name` says which of so many parts
    each sample belongs to, 20 samples in each of many.
    """
    n = max(n, 20 * n_parts)
    parts = np.random.default_rng(1).integers(0, n_parts, n)
    return _binary(function, n, **{name: parts}, **params)


def _marginal(function, n_classes, **params):
    problem = problems.many_classes(2_000, n_classes)
    return partial(
        function,
        problem.labels,
        problem.scores,
        multiclass="marginal",
        labels=np.arange(n_classes),
        **params,
    )


def _fit(name, n):
    problem = problems.binary(n)
    return partial(getattr(skcalib, name)().fit, problem.scores, problem.labels)


def _fit_classes(name, n_classes):
    problem = problems.many_classes(max(20_000, 2 * n_classes), n_classes)
    model = getattr(skcalib, name)(input="logit")
    return partial(model.fit, problem.logits, problem.labels)


def _by_bins(function, strategy, n_bins):
    return _binary(function, 1_000_000, binning=strategy(n_bins), method="plugin")


def _in_time(function, n, **params):
    problem = problems.binary(n)
    time = np.arange(n) * (1000 / n)
    return partial(function, problem.labels, problem.scores, time, **params)


def _segments(n_segments):
    problem = problems.binary(200_000)
    column = np.random.default_rng(1).integers(0, n_segments, (200_000, 1))
    return partial(
        metrics.segment_calibration_test,
        problem.labels,
        problem.scores,
        column.astype(str),
        random_state=0,
    )


def _change(n):
    problem = problems.binary(n)
    half = n // 2
    return partial(
        monitoring.calibration_change,
        problem.labels[:half],
        problem.scores[:half],
        problem.labels[half:],
        problem.scores[half:],
        random_state=0,
    )


def _performance(n):
    problem = problems.binary(n)
    new = np.random.default_rng(2).beta(2, 3, n)
    return partial(
        monitoring.estimated_performance, problem.labels, problem.scores, new
    )


def _candidates(n_models):
    problem = problems.binary(1_000)
    rng = np.random.default_rng(1)
    models = {
        str(k): np.clip(problem.scores + rng.normal(0, 0.05, 1_000), 0, 1)
        for k in range(n_models)
    }
    return partial(evaluation.compare, problem.labels, models)


_ECE = "expected_calibration_error, n"
_INTERVAL = {"n_resamples": 1000, "random_state": 0}
_MANY_VALUES = (
    "calibration_error",
    "maximum_calibration_error",
    "sweep_calibration_error",
    "smooth_calibration_error",
    "kde_calibration_error",
    "kolmogorov_smirnov_calibration_error",
    "kuiper_calibration_error",
    "neighborhood_calibration_error",
    "two_bin_calibration_error",
    "kernel_calibration_error",
    "decision_calibration_error",
    "groupwise_calibration_error",
    "reliability_curve",
    "validity_curve",
    "brier_decomposition",
    "log_loss_decomposition",
    "calibration_slope_intercept",
)
_TWO_CLASS_FITS = (
    "BetaCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "QuadraticScaling",
    "ScalingBinning",
    "SplineCalibration",
    "TemperatureScaling",
    "VennAbers",
    "Recalibrator",
)
_CLASS_FITS = ("VectorScaling", "ClasswiseTemperatureScaling", "PlattScaling")

GROWTH = {
    _ECE: Growth(_N, partial(_binary, metrics.expected_calibration_error)),
    **{
        f"{name}, n": Growth(_N, partial(_binary, getattr(metrics, name)), _ECE)
        for name in _MANY_VALUES
    },
    "calibration_test, n": Growth(_N, partial(_binary, metrics.calibration_test), _ECE),
    "calibration_error_interval, n": Growth(
        _N, partial(_binary, metrics.calibration_error_interval, **_INTERVAL), _ECE
    ),
    "calibration_summary, n": Growth(
        _UP_TO_A_MILLION, partial(_binary, evaluation.calibration_summary), _ECE
    ),
    "calibration_trend, n": Growth(
        _N, partial(_in_time, monitoring.calibration_trend), _ECE
    ),
    "error_autocorrelation, n": Growth(
        _UP_TO_A_MILLION, partial(_in_time, monitoring.error_autocorrelation), _ECE
    ),
    "calibration_change, n": Growth(_N, _change, _ECE),
    "estimated_performance, n": Growth(_N, _performance, _ECE),
    "PlattScaling, n": Growth(_UP_TO_A_MILLION, partial(_fit, "PlattScaling")),
    **{
        f"{name}, n": Growth(_UP_TO_A_MILLION, partial(_fit, name), "PlattScaling, n")
        for name in _TWO_CLASS_FITS
    },
    "groupwise_calibration_error, groups": Growth(
        _PARTS, partial(_by_column, metrics.groupwise_calibration_error, "groups")
    ),
    "calibration_by_group, groups": Growth(
        _PARTS,
        partial(_by_column, metrics.calibration_by_group, "groups", random_state=0),
        "groupwise_calibration_error, groups",
    ),
    "calibration_error_interval without clusters": Growth(
        _PARTS,
        lambda n_clusters: _binary(
            metrics.calibration_error_interval,
            max(200_000, 20 * n_clusters),
            **_INTERVAL,
        ),
    ),
    "calibration_error_interval, clusters": Growth(
        _PARTS,
        partial(
            _by_column, metrics.calibration_error_interval, "clusters", **_INTERVAL
        ),
        "calibration_error_interval without clusters",
    ),
    "calibration_by_cluster, clusters": Growth(
        _PARTS,
        partial(_by_column, evaluation.calibration_by_cluster, "clusters"),
        "groupwise_calibration_error, groups",
    ),
    "marginal error, K": Growth(
        _CLASSES, partial(_marginal, metrics.calibration_error)
    ),
    "interval of the marginal error, K": Growth(
        _CLASSES,
        partial(_marginal, metrics.calibration_error_interval, **_INTERVAL),
        "marginal error, K",
    ),
    "kernel error, K": Growth(
        _CLASSES,
        lambda n_classes: partial(
            metrics.kernel_calibration_error,
            problems.many_classes(2_000, n_classes).labels,
            problems.many_classes(2_000, n_classes).scores,
            labels=np.arange(n_classes),
        ),
        "marginal error, K",
    ),
    "TemperatureScaling, K": Growth(
        _CLASSES[1:4], partial(_fit_classes, "TemperatureScaling")
    ),
    **{
        f"{name}, K": Growth(
            _CLASSES[1:4], partial(_fit_classes, name), "TemperatureScaling, K"
        )
        for name in _CLASS_FITS
    },
    "equal-width error, bins": Growth(
        (10, *_PARTS[1:]), partial(_by_bins, metrics.calibration_error, EqualWidth)
    ),
    "equal-mass error, bins": Growth(
        _PARTS,
        partial(_by_bins, metrics.calibration_error, EqualMass),
        "equal-width error, bins",
    ),
    "interval of an equal-mass error, bins": Growth(
        _PARTS,
        partial(
            _by_bins,
            partial(metrics.calibration_error_interval, **_INTERVAL),
            EqualMass,
        ),
        "equal-width error, bins",
    ),
    "segment_calibration_test, segments": Growth(
        _PARTS[:4], _segments, "groupwise_calibration_error, groups"
    ),
    "compare, candidates": Growth(_PARTS[:3], _candidates),
}


def slope(sizes, seconds):
    """Return the slope of log(seconds) over log(size) of the last three sizes; NaN for
    one size.
    """
    if len(seconds) < 2:
        return np.nan
    last = slice(max(len(seconds) - 3, 0), len(seconds))
    return float(np.polyfit(np.log(sizes[last]), np.log(seconds[last]), 1)[0])


def measured(growth, *, most=np.inf):
    """Return the seconds of processor time of the sizes up to `most` (a list), and why
    no larger one was run, or "".
    """
    seconds = []
    for size in growth.sizes:
        if size > most:
            break
        if seconds:
            # What the next size would take if the cost grew as it last did, at least
            # in proportion.
            power = max(np.nan_to_num(slope(growth.sizes, seconds), nan=1.0), 1.0)
            factor = size / growth.sizes[len(seconds) - 1]
            if seconds[-1] * factor**power > 2 * _MOST_SECONDS:
                return seconds, f"{size:,} would take more than {_MOST_SECONDS:g} s"
        try:
            run = growth.make(size)
            taken = seconds_of(run)
        except (ValueError, MemoryError) as error:
            return seconds, f"{size:,}: {str(error)[:60]}"
        seconds.append(taken)
        if taken > _MOST_SECONDS:
            return seconds, "ended"
    return seconds, ""


def seconds_of(run):
    """Return the processor time of the quickest of up to three runs."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
        best = min(best, time.process_time() - start)
        if best > 1:
            break
    return max(best, 1e-6)


def is_cliff(ratio):
    """Return whether a job takes so many times the time of its sibling that it is a
    cliff.
    """
    return ratio > _CLIFF


def _line(name, growth, seconds, why, sibling):
    """Return the line of a job: exponent, ratio to its sibling, and seconds."""
    shown = ", ".join(
        f"{size:,}: {second:.3g}"
        for size, second in zip(growth.sizes, seconds, strict=False)
    )
    ratio = ""
    if sibling:
        last = min(len(seconds), len(sibling)) - 1
        times = seconds[last] / sibling[last]
        mark = " CLIFF" if is_cliff(times) else ""
        ratio = f"{times:.3g} x {growth.sibling} at {growth.sizes[last]:,}{mark}"
    exponent = slope(growth.sizes, seconds)
    return f"{name} | {exponent:.2f} | {ratio} | {shown} | {why}"


def main(argv=None):
    """Print a line for each growth; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression of jobs")
    parser.add_argument("--most", type=float, default=np.inf, help="largest size")
    options = parser.parse_args(argv)
    print("job | exponent | ratio to the plain sibling | seconds | ended")
    known = {}
    for name, growth in GROWTH.items():
        if not re.search(options.only, name):
            continue
        # A sibling that was not asked for is measured all the same.
        for one in filter(None, (growth.sibling, name)):
            if one not in known:
                known[one] = measured(GROWTH[one], most=options.most)
        seconds, why = known[name]
        if not seconds:
            print(f"{name} | | | | {why}", flush=True)
            continue
        sibling = known[growth.sibling][0] if growth.sibling else None
        print(_line(name, growth, seconds, why, sibling), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
