"""Tables of many rows on DuckDB: ``python -m benchmarks.scale [--rows 100000000]``.

Makes Parquet files of uniform and of skewed scores (Beta(.5, 200)) in 50 segments, and
measures every kind of result with two threads and a memory limit of 1 GB, beside the
SQL that one would write by hand. Each result is made in a process of its own, so that
its greatest memory (all of it: Python and the packages too, .2 GB) is known. Wall time
beside SQL is the best of several runs in turns, more of them where they are short.
Prints a table in Markdown.

A billion rows:
``python -m benchmarks.scale --rows 1000000000 --kinds uniform --only width mass isotonic``,
which writes 8 GB of files into --data, of 100 million rows each.
"""  # noqa: E501

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from skcalib import (
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
)
from skcalib.binning import EqualMass, EqualWidth
from skcalib.engines import PredictionTable, _histogram, scan

_BINS, _SEGMENTS, _PART, _FILE = 20, 50, 10**7, 10**8
_KINDS = {
    "uniform": lambda rng, n: rng.random(n),
    "skewed": lambda rng, n: rng.beta(0.5, 200, n),
}
_MOST_RUNS, _SHORT = 5, 20.0  # seconds of all runs, below which there are more
_LEAST_RATIO = {"uniform": 4, "skewed": 2.5}  # of `ntile` to the equal-mass table
_SUMS = "count(*), sum(score), sum(label)"


def main(argv=None):
    """Measure, print the figures with their targets, and return the exit status: 1
    where a target is missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=10**8,
        help="rows of each file (default: 100 million)",
    )
    parser.add_argument(
        "--data", type=Path, help="folder of the files, kept (default: a temporary one)"
    )
    parser.add_argument(
        "--memory", default="1GB", help="DuckDB's memory limit (default: 1GB)"
    )
    parser.add_argument(
        "--repeat", type=int, default=2, help="runs beside SQL, at least (default: 2)"
    )
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=_KINDS,
        default=list(_KINDS),
        help="of scores (default: both)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=_ONLY,
        help="these results alone, without SQL by hand",
    )
    options = parser.parse_args(argv)
    print(
        "| scores | result | seconds | by hand | GB | target"
        " |\n|---|---|--:|--:|--:|---|"
    )
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.data or Path(scratch)
        folder.mkdir(exist_ok=True, parents=True)
        missed = 0
        for kind in options.kinds:
            path = folder / f"{kind}_{options.rows}_*.parquet"
            if not list(folder.glob(path.name)):
                _write(path, kind, options.rows, with_segment=not options.only)
            report = _Report(kind, path, scratch, options)
            for name in options.only or ():
                _ONLY[name](report)
            missed += report.missed if options.only else _measure(report, kind)
    print(f"\n{missed} targets missed")
    return int(missed > 0)


def _write(path, kind, n_rows, with_segment=True):
    """Write files of at most 100 million rows, ten million at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer, begun = np.random.default_rng(0), None, time.perf_counter()
    for start in range(0, n_rows, _PART):
        score = _KINDS[kind](rng, min(_PART, n_rows - start))
        columns = {
            "score": score,
            "label": (rng.random(len(score)) < score).astype(np.int8),
        }
        if with_segment:
            columns["segment"] = rng.integers(0, _SEGMENTS, len(score)).astype(np.int16)
        part = pa.table(columns)
        if start % _FILE == 0:
            if writer:
                writer.close()
            name = path.with_name(path.name.replace("*", f"{start // _FILE:02d}"))
            writer = pq.ParquetWriter(
                name,
                part.schema,
                use_dictionary=["label", "segment"][: len(columns) - 1],
            )
        writer.write_table(part)
    writer.close()
    print(
        f"wrote {path.name} in {time.perf_counter() - begun:.0f} s",
        file=sys.stderr,
        flush=True,
    )


def _measure(report, kind):
    """Measure all results on one file and return how many targets were missed."""
    width = f"SELECT floor(score * {_BINS}), {_SUMS} FROM log GROUP BY ALL"
    report(
        "width",
        partial(_called, "bin_statistics", EqualWidth(_BINS)),
        by_hand=width,
        at_most=1.4,
    )
    tiles = f"SELECT ntile({_BINS}) OVER (ORDER BY score) AS bin, score, label FROM log"
    tiles = f"SELECT bin, {_SUMS} FROM ({tiles}) GROUP BY ALL"
    most = 1 / _LEAST_RATIO[kind]
    mass = report(
        "mass",
        partial(_called, "bin_statistics", EqualMass(_BINS)),
        by_hand=tiles,
        at_most=most,
    ).seconds
    segments = report(
        "mass, 50 segments",
        partial(_called, "bin_statistics", EqualMass(_BINS), by="segment"),
    ).seconds
    report.target("50 segments / one table", segments / mass, at_most=7)
    report("weighted scores", partial(_called, "weighted_scores"))
    report("Kolmogorov-Smirnov", partial(_called, "kolmogorov_smirnov"))
    platt = report("fit Platt", partial(_called, "fit", PlattScaling())).value
    report(
        "fit Platt, 50 segments", partial(_called, "fit", PlattScaling(), by="segment")
    )
    histogram = report(
        "fit histogram", partial(_called, "fit", HistogramBinning())
    ).value
    isotonic = _report_isotonic(report)
    report(
        "apply Platt",
        partial(_applied, platt),
        by_hand=f"SELECT sum({_sigmoid(platt)}) FROM log",
        at_most=1.5,
    )
    report(
        "apply histogram",
        partial(_applied, histogram),
        by_hand=f"SELECT sum({_steps(histogram)}) FROM log",
        at_most=1.5,
    )
    report("apply isotonic", partial(_applied, isotonic))
    groups = _platt_by_segment()
    by_hand = " ".join(
        f"WHEN {group} THEN {_sigmoid(own)}"
        for group, own in groups.recalibrators_.items()
    )
    by_hand = f"SELECT sum(CASE segment {by_hand} END) FROM log"
    report(
        "apply Platt by segment",
        partial(_applied, groups, by="segment"),
        by_hand=by_hand,
    )
    return report.missed


def _report_isotonic(report):
    isotonic, looks = report("fit isotonic", _isotonic).value
    shares = {}
    for rows, kind in looks:
        shares.setdefault(kind, []).append(rows / report.options.rows)
    shown = [
        f"{sum(own):.2%} {kind} in {len(own)} passes" for kind, own in shares.items()
    ]
    report.note(
        "rows looked at again",
        f"{', '.join(shown)}; {len(isotonic.score_knots_)} knots",
    )
    return isotonic


_ONLY = {
    "width": lambda report: report(
        "width", partial(_called, "bin_statistics", EqualWidth(_BINS))
    ),
    "mass": lambda report: report(
        "mass", partial(_called, "bin_statistics", EqualMass(_BINS))
    ),
    "isotonic": _report_isotonic,
}


# What is measured: functions of the file (first their own arguments) that return what
# is timed.


def _called(method, *arguments, path, by=None):
    table = PredictionTable(scan(path), label="label", score="score", by=by)
    return lambda: getattr(table, method)(*arguments)


def _applied(recalibrator, *, path, by=None):
    table = PredictionTable(scan(path), label="label", score="score", by=by)
    total = table.apply(recalibrator, output="q").aggregate("sum(q)")
    return lambda: total.fetchall()[0][0]


def _queried(query, *, path):
    import duckdb

    return lambda: duckdb.sql(query.replace("FROM log", f"FROM '{path}'")).fetchnumpy()


def _isotonic(*, path):
    """Return a fit that also says how many rows it looked at more than once, and in
    what way.
    """
    fit, split = (
        _called("fit", IsotonicCalibration(), path=path),
        _histogram.ScoreHistogram._parts,
    )

    def run():
        looks = []

        def counting(histogram, parents):
            parts = split(histogram, parents)
            is_last, depth = bool(np.all(parts.low == parts.high)), parents.depth[0]
            looks.append(
                (
                    int(parents.count.sum()),
                    "fetched" if is_last else f"split at depth {depth}",
                )
            )
            return parts

        _histogram.ScoreHistogram._parts = counting
        try:
            return fit(), looks
        finally:
            _histogram.ScoreHistogram._parts = split

    return run


def _sigmoid(platt):
    """Return the SQL that one would write by hand."""
    clipped = f"least(greatest(score, {2.0**-52}), {1 - 2.0**-52})"
    return (
        f"1 / (1 + exp(-({platt.slope_} * ln({clipped} / (1 - {clipped})) +"
        f" {platt.intercept_})))"
    )


def _steps(histogram):
    cuts, values = histogram.bin_edges_[1:-1], histogram.bin_values_
    steps = " ".join(
        f"WHEN score <= {cut} THEN {value}"
        for cut, value in zip(cuts, values[:-1], strict=True)
    )
    return f"CASE {steps} ELSE {values[-1]} END"


def _platt_by_segment():
    """Return a map for each segment, fitted to few rows: how long it takes to apply
    does not depend on that.
    """
    rng = np.random.default_rng(1)
    scores, segment = rng.random(10**5), rng.integers(0, _SEGMENTS, 10**5)
    y = rng.random(len(scores)) < scores
    return GroupwiseRecalibrator(PlattScaling(), groups=None, shrinkage=0).fit(
        scores, y, groups=segment
    )


@dataclass
class _Measured:
    """Best seconds, also of the SQL by hand, the ratio in processor time, greatest
    gigabytes, and the result.
    """

    seconds: float
    by_hand: float
    processor_ratio: float
    gigabytes: float
    value: object


def _measured(make, by_hand, path, scratch, memory, repeat):
    """Run in a process of its own."""
    import duckdb

    duckdb.sql("SET threads = 2")
    duckdb.sql(f"SET memory_limit = '{memory}'")
    duckdb.sql(f"SET temp_directory = '{scratch}'")
    runs = [make(path=path)] + (
        [] if by_hand is None else [_queried(by_hand, path=path)]
    )
    best, processor, results, peak = (
        np.full(2, np.inf),
        np.full(2, np.inf),
        [None, None],
        None,
    )
    begun, n_runs = time.perf_counter(), 0
    while n_runs < repeat or (
        by_hand and n_runs < _MOST_RUNS and time.perf_counter() - begun < _SHORT
    ):
        n_runs += 1
        for which, run in enumerate(runs):
            start, start_of_processor = time.perf_counter(), time.process_time()
            results[which] = run()
            processor[which] = min(
                processor[which], time.process_time() - start_of_processor
            )
            best[which] = min(best[which], time.perf_counter() - start)
            if which == 0 and peak is None:
                # before SQL by hand takes more
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ratio = processor[0] / processor[1]
    return _Measured(*best.tolist(), ratio, peak, results[0])


class _Report:
    """Measures, prints and counts the targets that are missed."""

    def __init__(self, kind, path, scratch, options):
        self.kind, self.path, self.scratch, self.options, self.missed = (
            kind,
            path,
            scratch,
            options,
            0,
        )

    def __call__(self, name, make, *, by_hand=None, at_most=None):
        """Print the figures of one result, and return them."""
        options = self.options
        repeat = 1 if by_hand is None else options.repeat
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found = pool.apply(
                _measured,
                (make, by_hand, self.path, self.scratch, options.memory, repeat),
            )
        hand = "" if by_hand is None else f"{found.by_hand:.2f}"
        targets = []
        if at_most is not None:
            ratio = found.seconds / found.by_hand
            text = (
                f"{ratio:.2f} of it ({found.processor_ratio:.2f} in processor time), at"
                f" most {at_most:.3g}"
            )
            targets.append(self._judged(text, ratio <= at_most))
        if found.gigabytes > 1:
            targets.append(self._judged("at most 1 GB", False))
        self._line(
            name,
            f"{found.seconds:.2f}",
            hand,
            f"{found.gigabytes:.2f}",
            "; ".join(targets),
        )
        return found

    def target(self, name, value, *, at_most):
        """Print a ratio and its target."""
        self._line(
            name,
            "",
            "",
            "",
            self._judged(f"{value:.2f}, at most {at_most}", value <= at_most),
        )

    def note(self, name, text):
        """Print what else is known of a result."""
        self._line(name, "", "", "", text)

    def _judged(self, text, met):
        self.missed += not met
        return text if met else f"{text}: MISSED"

    def _line(self, *cells):
        print("|", " | ".join((self.kind, *cells)), "|", flush=True)


if __name__ == "__main__":
    sys.exit(main())
