"""``python -m benchmarks.levels.widths``: small random tables whose intervals have no
width.

An interval of zero width says that the rows determine the answer. So it is only right
where they do: two models with the same scores, or a curve that two scores share. Each
check draws a table of 1 to 30 rows, many of them tied, certain, or of one class, and
returns what is wrong about its intervals.
"""

import argparse
import sys
import time
import warnings
from typing import NamedTuple

import numpy as np

from skcalib import PlattScaling
from skcalib.binning import EqualMass, FixedEdges
from skcalib.decisions import net_benefit
from skcalib.evaluation import (
    calibration_by_cluster,
    calibration_summary,
    compare,
    recalibration_gain,
)
from skcalib.metrics import (
    calibration_by_group,
    calibration_error_interval,
    calibration_slope_intercept,
    reliability_curve,
)
from skcalib.monitoring import (
    calibration_change,
    calibration_trend,
    estimated_performance,
)

__all__ = ["CHECKS", "faults"]

_NARROW = 1e-9  # what rounding leaves of no width


class Table(NamedTuple):
    """A small table of rows: scores (n,), labels (n,), and perhaps weights and
    clusters.
    """

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
    weight_type: str
    clusters: np.ndarray | None


def random_table(rng, fewest=1, most=30):
    """Return a table with a random kind of scores, labels, weights and clusters."""
    n = int(rng.integers(fewest, most + 1))
    scores = [
        rng.choice([0.01, 0.2, 0.5, 0.99], n),
        rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], n),
        np.full(n, rng.choice([0.0, 0.01, 0.5, 0.99, 1.0])),
        rng.random(n),
        rng.beta(0.2, 0.2, n),
    ][rng.integers(5)]
    labels = [
        rng.integers(0, 2, n),
        np.zeros(n, dtype=int),
        np.ones(n, dtype=int),
        (scores >= 0.5).astype(int),
        (rng.random(n) < scores).astype(int),
    ][rng.integers(5)]
    weight, weight_type = [
        (None, "frequency"),
        (None, "frequency"),
        (rng.integers(1, 4, n).astype(float), "frequency"),
        (np.exp(rng.normal(size=n)), "importance"),
    ][rng.integers(4)]
    clusters = None
    if n >= 4 and rng.random() < 0.3:
        clusters = np.arange(n) // int(rng.integers(1, n // 2 + 1))
    return Table(scores, labels, weight, weight_type, clusters)


def _of(table):
    return {
        "sample_weight": table.sample_weight,
        "weight_type": table.weight_type,
        "clusters": table.clusters,
        "labels": [0, 1],
    }


def _wrong(name, estimate, low, high, reason=None):
    """Return what is wrong about some limits, which the rows do not determine."""
    for position, (middle, least, most) in enumerate(
        np.column_stack(np.broadcast_arrays(estimate, low, high)).tolist()
    ):
        words = f"{name}[{position}] {middle:.4g} ({least:.4g} to {most:.4g})"
        if np.isnan(least) != np.isnan(most):
            yield f"{words}: one limit"
        elif np.isnan(least):
            if reason is not None and not np.ravel(reason)[position]:
                yield f"{words}: no limits and no reason"
        elif most - least <= _NARROW:
            yield f"{words}: no width"
        elif not least - 1e-9 <= middle <= most + 1e-9 and not np.isnan(middle):
            yield f"{words}: the estimate lies outside"


# --- Checks: a table, and what is wrong -----------------------------------------------


def _summary(table, rng):
    found = calibration_summary(table.labels, table.scores, n_resamples=1, **_of(table))
    for name in (
        "observed_expected",
        "intercept",
        "slope",
        "brier_score",
        "scaled_brier_score",
        "auc",
    ):
        limits = getattr(found, name)
        yield from _wrong(name, *limits, [found.reasons.get(name, "")])


def _net_benefit(table, rng):
    thresholds = rng.random(3)
    other = rng.permutation(table.scores)
    for reference in ("none", "all", other):
        found = net_benefit(
            table.labels,
            table.scores,
            thresholds=thresholds,
            reference=reference,
            **_of(table),
        )
        same = np.zeros(3, dtype=bool)
        if reference is other:
            treats = table.scores[:, None] >= thresholds
            same = (treats == (other[:, None] >= thresholds)).all(axis=0)
        yield from _wrong(
            f"less {reference if isinstance(reference, str) else 'another model'}",
            found.net_benefit[~same],
            found.low[~same],
            found.high[~same],
            found.reason[~same],
        )


def _compare(table, rng):
    other = rng.permutation(table.scores)
    models = {"first": table.scores, "second": other}
    found = compare(
        table.labels,
        models,
        metrics=["log_loss", "brier_score"],
        n_resamples=19,
        random_state=0,
        **_of(table),
    )
    # A reason is that of either kind of limits.
    yield from _wrong("metric", found.estimate, found.low, found.high, found.reason)
    if not np.array_equal(table.scores, other):
        second = found.model == "second"
        yield from _wrong(
            "difference",
            found.difference[second],
            found.difference_low[second],
            found.difference_high[second],
            found.reason[second],
        )


def _by_group(table, rng):
    n_groups = int(rng.integers(1, 4))
    groups = np.arange(len(table.labels)) % n_groups
    found = calibration_by_group(
        table.labels,
        table.scores,
        groups,
        n_resamples=19,
        random_state=0,
        **_of(table),
    )
    yield from _wrong("bias", found.bias, found.bias_low, found.bias_high, found.reason)


def _bins(table, rng):
    options = _of(table)
    del options["clusters"]
    edges = [0, float(rng.uniform(0.2, 0.8)), 1]
    binning = EqualMass(3) if rng.random() < 0.5 else FixedEdges(edges)
    curve = reliability_curve(table.labels, table.scores, binning=binning, **options)
    for interval in ("clopper_pearson", "wilson", "hoeffding"):
        low, high = curve.interval(interval=interval)
        frequency = np.asarray(curve.event_frequency)
        yield from _wrong(interval, frequency, low, high)


def _change(table, rng):
    n = len(table.labels)
    half = n // 2
    options = _of(table)
    for name in ("sample_weight", "clusters"):
        if options[name] is not None:
            options[name] = (options[name][:half], options[name][half:])
    try:
        found = calibration_change(
            table.labels[:half],
            table.scores[:half],
            table.labels[half:],
            table.scores[half:],
            norm=1,
            method="plugin",
            n_resamples=19,
            random_state=0,
            **options,
        )
    except ValueError as error:
        if "no scores in common" in str(error):
            return  # refused, with a reason
        raise
    for name in ("shift", "bias_before", "bias_after", "bias_difference"):
        yield from _wrong(name, *getattr(found, name))


def _error_interval(table, rng):
    found = calibration_error_interval(
        table.labels,
        table.scores,
        norm=1,
        method="plugin",
        binning=EqualMass(2),
        n_resamples=99,
        random_state=0,
        **_of(table),
    )
    yield from _wrong("error", *found[:3])


def _performance(table, rng):
    new = rng.choice(table.scores, 8)
    found = estimated_performance(table.labels, table.scores, new, **_of(table))
    is_known = np.zeros(len(found.metric), dtype=bool)
    if np.all(new == 0.5):
        # Both labels have the same loss there.
        is_known = np.isin(found.metric, ("log_loss", "brier_score"))
    yield from _wrong(
        "performance",
        found.estimate[~is_known],
        found.low[~is_known],
        found.high[~is_known],
        found.reason[~is_known],
    )


def _slope(table, rng):
    try:
        found = calibration_slope_intercept(table.labels, table.scores, **_of(table))
    except ValueError:
        return  # refused, with a reason
    for name in ("slope", "intercept"):
        limits = getattr(found, name)
        yield from _wrong(name, *limits, [getattr(limits, "reason", "")])


def _trend(table, rng):
    options = _of(table)
    del options["labels"]
    time = rng.integers(0, 5, len(table.labels))
    try:
        found = calibration_trend(table.labels, table.scores, time, **options)
    except ValueError as error:
        if "only one value" in str(error):
            return  # refused, with a reason
        raise
    yield from _wrong("trend", *found.slope, [found.slope.reason])


def _by_cluster(table, rng):
    if len(np.unique(table.labels)) < 2:
        return  # refused, with a reason
    n = len(table.labels)
    found = calibration_by_cluster(
        table.labels, table.scores, np.arange(n) % int(rng.integers(1, 6)), pos_label=1
    )
    for name in ("observed_expected", "intercept", "slope"):
        yield from _wrong(
            name,
            getattr(found, name),
            getattr(found, f"{name}_low"),
            getattr(found, f"{name}_high"),
            found.reason,
        )
        for kind in ("pooled", "prediction"):
            limits = getattr(found, kind).get(name)
            if limits is not None:
                yield from _wrong(f"{kind} {name}", *limits)


def _gain(table, rng):
    scores = np.clip(table.scores, 0.01, 0.99)
    try:
        found = recalibration_gain(
            table.labels, scores, recalibrator=PlattScaling(), cv=3, **_of(table)
        )
    except ValueError as error:
        if "only one cluster" in str(error):
            return  # refused, with a reason
        raise
    yield from _wrong("gain", *found, [found.reason])
    if len(np.unique(table.labels)) < 2 and not np.isnan(found.low):
        yield "gain: limits, though nothing can be fitted to one class"


CHECKS = {  # name -> the check, and the fewest rows that it is defined for
    "calibration_summary": (_summary, 2),
    "net_benefit": (_net_benefit, 1),
    "compare": (_compare, 2),
    "calibration_by_group": (_by_group, 1),
    "BinStatistics.interval": (_bins, 1),
    "calibration_change": (_change, 4),
    "calibration_error_interval": (_error_interval, 2),
    "estimated_performance": (_performance, 2),
    "calibration_slope_intercept": (_slope, 2),
    "calibration_trend": (_trend, 3),
    "calibration_by_cluster": (_by_cluster, 2),
    "recalibration_gain": (_gain, 3),
}


def faults(name, n_tables, *, seed=0):
    """Return what is wrong about the intervals of random tables, as (number of the
    table, what is wrong, the table).
    """
    check, fewest = CHECKS[name]
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for number in range(n_tables):
            rng = np.random.default_rng([seed, number])
            table = random_table(rng, fewest)
            found.extend((number, fault, table) for fault in check(table, rng))
    return found


def main(argv=None):
    """Check and print; return how many checks found a fault."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.levels.widths", description=__doc__
    )
    parser.add_argument("--tables", type=int, default=10_000, help="of each check")
    parser.add_argument("--only", default="", help="checks whose name holds this text")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    n_broken = 0
    for name in CHECKS:
        if options.only not in name:
            continue
        start = time.process_time()
        found = faults(name, options.tables, seed=options.seed)
        n_tables = len({number for number, _, _ in found})
        seconds = time.process_time() - start
        print(
            f"{name}: {n_tables} of {options.tables:,} tables with a fault"
            f" ({seconds:.0f} s)",
            flush=True,
        )
        for number, fault, table in found[:5]:
            print(f"  table {number}: {fault}; {table}", flush=True)
        n_broken += n_tables > 0
    return n_broken


if __name__ == "__main__":
    sys.exit(main())
