"""What costs how much: ``python -m benchmarks.speed.costs`` prints the table of twenty
jobs for users, each beside the plain job next to it.

The seconds are processor time of one thread, the smallest of up to three runs; the
memory is what a run allocates at its peak, beside its input. ``--only`` takes a regular
expression of jobs, and ``--page`` writes the table between the marks of a page.
"""

import argparse
import re
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.speed import growth, problems
from benchmarks.speed.growth import peak_of, seconds_of
from skcalib import evaluation, metrics

__all__ = ["COSTS", "Cost", "table", "with_table"]

_BEGIN = "<!-- costs: made by `python -m benchmarks.speed.costs --page` -->\n"
_END = "<!-- end of the costs -->"


class Cost(NamedTuple):
    """A job of the table.

    Parameters
    ----------
    data : str
        Its input, in words.
    make : callable
        Returns the run, which takes no arguments.
    beside : str, default=""
        The plain job that it is compared with; "" for none.
    """

    data: str
    make: object
    beside: str = ""


def _growth(name, size):
    return partial(growth.GROWTH[name].make, size)


def _in_clusters(n_clusters, n):
    clusters = np.random.default_rng(1).integers(0, n_clusters, n)
    problem = problems.binary(n)
    return partial(
        metrics.calibration_error_interval,
        problem.labels,
        problem.scores,
        clusters=clusters,
        random_state=0,
    )


def _kernel():
    problem = problems.many_classes(2_000, 1_000)
    return partial(metrics.kernel_calibration_error, problem.labels, problem.scores)


def _summary():
    problem = problems.binary(100_000)
    return partial(evaluation.calibration_summary, problem.labels, problem.scores)


_MILLION = "1,000,000 samples"
COSTS = {
    "expected_calibration_error": Cost(
        _MILLION, _growth("expected_calibration_error, n", 1_000_000)
    ),
    "calibration_error": Cost(
        _MILLION,
        _growth("calibration_error, n", 1_000_000),
        "expected_calibration_error",
    ),
    "smooth_calibration_error": Cost(
        _MILLION,
        _growth("smooth_calibration_error, n", 1_000_000),
        "expected_calibration_error",
    ),
    "calibration_error_interval": Cost(
        _MILLION,
        _growth("calibration_error_interval, n", 1_000_000),
        "calibration_error",
    ),
    "the same with clusters": Cost(
        "1,000,000 samples in 10,000 clusters",
        partial(_in_clusters, 10_000, 1_000_000),
        "calibration_error_interval",
    ),
    "the same with few clusters": Cost(
        "20,000 samples in 100 clusters", partial(_in_clusters, 100, 20_000)
    ),
    "calibration_test": Cost("10,000 samples", _growth("calibration_test, n", 10_000)),
    "calibration_summary": Cost("100,000 samples", _summary),
    "groupwise_calibration_error": Cost(
        "200,000 samples in 1,000 groups",
        _growth("groupwise_calibration_error, groups", 1_000),
    ),
    "calibration_by_group": Cost(
        "200,000 samples in 1,000 groups",
        _growth("calibration_by_group, groups", 1_000),
        "groupwise_calibration_error",
    ),
    "marginal calibration_error": Cost(
        "2,000 samples, 1,000 classes", _growth("marginal error, K", 1_000)
    ),
    "its interval": Cost(
        "2,000 samples, 1,000 classes",
        _growth("interval of the marginal error, K", 1_000),
        "marginal calibration_error",
    ),
    "kernel_calibration_error": Cost(
        "2,000 samples, 1,000 classes", _kernel, "marginal calibration_error"
    ),
    "calibration_change": Cost(
        "500,000 samples before and after",
        _growth("calibration_change, n", 1_000_000),
        "calibration_error_interval",
    ),
    "calibration_trend": Cost(
        _MILLION,
        _growth("calibration_trend, n", 1_000_000),
        "calibration_error",
    ),
    "estimated_performance": Cost(
        "1,000,000 samples, 1,000,000 new",
        _growth("estimated_performance, n", 1_000_000),
        "calibration_error",
    ),
    "PlattScaling().fit": Cost(_MILLION, _growth("PlattScaling, n", 1_000_000)),
    "IsotonicCalibration().fit": Cost(
        _MILLION, _growth("IsotonicCalibration, n", 1_000_000), "PlattScaling().fit"
    ),
    "SplineCalibration().fit": Cost(
        _MILLION, _growth("SplineCalibration, n", 1_000_000), "PlattScaling().fit"
    ),
    "Recalibrator().fit": Cost(
        _MILLION, _growth("Recalibrator, n", 1_000_000), "PlattScaling().fit"
    ),
}


def table(costs):
    """Yield the lines of the table of jobs, measured one after the other."""
    yield "| job | data | seconds | memory, MB | times the job beside it |"
    yield "|---|---|---|---|---|"
    known = {}
    for name, cost in costs.items():
        run = cost.make()
        known[name] = seconds_of(run)
        ratio = ""
        if cost.beside in known:
            ratio = f"{known[name] / known[cost.beside]:.1f} ({cost.beside})"
        yield (
            f"| {name} | {cost.data} | {known[name]:.2g} | {peak_of(run):.0f}"
            f" | {ratio} |"
        )


def with_table(page, lines):
    """Return the text of a page with these lines between its marks."""
    before, rest = page.split(_BEGIN)
    return (
        before + _BEGIN + "\n" + "\n".join(lines) + "\n\n" + _END + rest.split(_END)[1]
    )


def main(argv=None):
    """Print the table, or write it into a page; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression of jobs")
    parser.add_argument("--page", type=Path, help="write the table into this page")
    options = parser.parse_args(argv)
    costs = {
        name: cost for name, cost in COSTS.items() if re.search(options.only, name)
    }
    lines = []
    for line in table(costs):
        lines.append(line)
        print(line, flush=True)
    if options.page:
        options.page.write_text(with_table(options.page.read_text(), lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
