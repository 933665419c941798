"""Tables of many rows on DuckDB: ``python -m benchmarks.scale [--rows 100000000]``.

Makes Parquet files of uniform and of skewed scores (Beta(.5, 200)) in 50 segments, and measures every kind of result
with two threads and a memory limit of 1 GB, each beside the SQL that one would write by hand. Wall time is the best of
several runs; memory is the greatest of the process so far.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from skcalib import HistogramBinning, IsotonicCalibration, PlattScaling
from skcalib.binning import EqualMass, EqualWidth
from skcalib.engines import PredictionTable, _histogram, scan

_BINS, _SEGMENTS, _PART = 20, 50, 10**7
_KINDS = {"uniform": lambda rng, n: rng.random(n), "skewed": lambda rng, n: rng.beta(0.5, 200, n)}


def main(argv=None):
    """Measure, print the figures with their targets, and return the exit status: 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--rows", type=int, default=10**8, help="rows of each file (default: 100 million)")
    parser.add_argument("--data", type=Path, help="folder of the files, kept (default: a temporary one)")
    parser.add_argument("--memory", default="1GB", help="DuckDB's memory limit (default: 1GB)")
    parser.add_argument("--repeat", type=int, default=2, help="runs of which the best counts (default: 2)")
    options = parser.parse_args(argv)
    import duckdb

    duckdb.sql("SET threads = 2")
    duckdb.sql(f"SET memory_limit = '{options.memory}'")
    with tempfile.TemporaryDirectory() as scratch:
        duckdb.sql(f"SET temp_directory = '{scratch}'")
        folder = options.data or Path(scratch)
        folder.mkdir(exist_ok=True, parents=True)
        missed = 0
        for kind in _KINDS:
            path = folder / f"{kind}_{options.rows}.parquet"
            if not path.exists():
                _write(path, kind, options.rows)
            missed += _measure(kind, path, options.repeat)
    print(f"{missed} targets missed")
    return int(missed > 0)


def _write(path, kind, n_rows):
    """Write the file, ten million rows at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, n_rows, _PART):
        score = _KINDS[kind](rng, min(_PART, n_rows - start))
        label = (rng.random(len(score)) < score).astype(np.int8)
        segment = rng.integers(0, _SEGMENTS, len(score)).astype(np.int16)
        part = pa.table({"score": score, "label": label, "segment": segment})
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


def _measure(kind, path, repeat):
    """Measure all results on one file and return how many targets were missed."""
    import duckdb

    table = PredictionTable(scan(path), label="label", score="score")
    segmented = PredictionTable(scan(path), label="label", score="score", by="segment")
    report = _Report(kind, repeat)

    def by_hand(query):
        return lambda: duckdb.sql(query).fetchnumpy()

    sums = "count(*), sum(score), sum(label)"
    hand = report("width, SQL", by_hand(f"SELECT floor(score * {_BINS}), {sums} FROM '{path}' GROUP BY ALL"))
    report("width", lambda: table.bin_statistics(EqualWidth(_BINS)), at_most=1.4 * hand)
    mass = report("mass", lambda: table.bin_statistics(EqualMass(_BINS)))
    report("mass, 50 segments", lambda: segmented.bin_statistics(EqualMass(_BINS)), at_most=7 * mass)
    report("weighted scores", table.weighted_scores)
    report("Kolmogorov-Smirnov", table.kolmogorov_smirnov)
    platt = report.result("fit Platt", lambda: table.fit(PlattScaling()))
    histogram = report.result("fit histogram", lambda: table.fit(HistogramBinning()))
    with _counted() as fetched:
        isotonic = report.result("fit isotonic", lambda: table.fit(IsotonicCalibration()))
    print(f"{kind:8}   {len(isotonic.score_knots_)} knots; {fetched.share(report.runs):.1%} of the rows fetched")
    clipped = f"least(greatest(score, {2.0**-52}), {1 - 2.0**-52})"
    sigmoid = f"1 / (1 + exp(-({platt.slope_} * ln({clipped} / (1 - {clipped})) + {platt.intercept_})))"
    cuts, values = histogram.bin_edges_[1:-1], histogram.bin_values_
    steps = " ".join(f"WHEN score <= {cut} THEN {value}" for cut, value in zip(cuts, values[:-1], strict=True))
    for name, model, sql in (
        ("Platt", platt, sigmoid),
        ("histogram", histogram, f"CASE {steps} ELSE {values[-1]} END"),
        ("isotonic", isotonic, None),
    ):
        calibrated = table.apply(model, output="q")
        limit = report(f"apply {name}, SQL", by_hand(f"SELECT sum({sql}) FROM '{path}'")) * 1.5 if sql else None
        report(f"apply {name}", lambda rows=calibrated: rows.aggregate("sum(q)").fetchall(), at_most=limit)
    report.peak(at_most=1.0)
    cells = f"SELECT ntile({_BINS}) OVER (ORDER BY score) AS bin, score, label FROM '{path}'"
    report.repeat = 1
    tiles = report("mass, SQL by ntile", by_hand(f"SELECT bin, {sums} FROM ({cells}) GROUP BY ALL"))
    report.ratio("ntile / mass", tiles / mass, at_least={"uniform": 4, "skewed": 2.5}[kind])
    return report.missed


class _Report:
    """Runs, prints and counts the targets that are missed."""

    def __init__(self, kind, repeat):
        self.kind, self.repeat, self.missed, self.runs = kind, repeat, 0, 0

    def __call__(self, name, run, at_most=None):
        """Print the seconds of a run, and return them."""
        return self._timed(name, run, at_most)[0]

    def result(self, name, run):
        """Print the seconds of a run, and return its result."""
        return self._timed(name, run, None)[1]

    def ratio(self, name, value, at_least):
        """Print a ratio and its target."""
        self._line(name, f"{value:8.2f}  ", f"at least {at_least}", value >= at_least)

    def peak(self, at_most):
        """Print the greatest memory of the process so far."""
        gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        self._line("memory", f"{gigabytes:8.2f} GB", f"at most {at_most} GB", gigabytes <= at_most)

    def _timed(self, name, run, at_most):
        seconds = []
        for _ in range(self.repeat):
            start = time.perf_counter()
            result = run()
            seconds.append(time.perf_counter() - start)
        self.runs, best = len(seconds), min(seconds)
        target = "" if at_most is None else f"at most {at_most:.2f} s"
        self._line(name, f"{best:8.2f} s", target, at_most is None or best <= at_most)
        return best, result

    def _line(self, name, value, target, met):
        self.missed += not met
        print(f"{self.kind:8} {name:22} {value}  {target}{'' if met else '  MISSED'}", flush=True)


class _counted:
    """Counts the rows of cells that are split, and of all cells, while it is active."""

    def __enter__(self):
        self.split, self.rows, self.original = 0, 0, _histogram.ScoreHistogram._parts

        def counting(histogram, parents, most_fetched):
            if parents.count.sum() <= most_fetched:
                self.split += parents.count.sum()
            self.rows = max(self.rows, histogram.n_rows + parents.count.sum())
            return self.original(histogram, parents, most_fetched)

        _histogram.ScoreHistogram._parts = counting
        return self

    def __exit__(self, *error):
        _histogram.ScoreHistogram._parts = self.original

    def share(self, runs):
        """Return the rows of split cells as a share of all rows, for one run."""
        return self.split / runs / max(self.rows, 1)


if __name__ == "__main__":
    sys.exit(main())
