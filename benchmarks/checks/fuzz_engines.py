"""Random tables by segment on every engine, against NumPy on the same rows.

``python -m benchmarks.checks.fuzz_engines --seconds 120`` draws tables (shape of the
scores, weights, number of rows), a type of the segments' column with values that Python
does not tell apart easily, an engine and a job. It prints how many comparisons were
made on each engine and each type, and every one that failed. ``--engines duckdb spark``
chooses some.
"""

import argparse
import time
import traceback
import warnings
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from skcalib import HistogramBinning, IsotonicCalibration
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores
from skcalib.engines import PredictionTable
from skcalib.metrics import BinStatistics, kolmogorov_smirnov_calibration_error

ENGINES = ("duckdb", "polars", "polars_lazy", "pandas", "pyarrow", "dask", "spark")
# the hour that Berlin's clocks show twice follows
MOMENT = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
TYPES = {
    "text": (pa.string(), ["", "a", "A", "01", "1", "it's", '"quoted"', "é\x00", " a"]),
    "large text": (pa.large_string(), ["", "a", "01", "1", "1.0", "NULL", "nan"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["b", "a", "c", "01"]),
    "int8": (pa.int8(), [-128, -1, 0, 1, 127]),
    "int64": (pa.int64(), [-(2**63), 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2]),
    "uint64": (pa.uint64(), [0, 2**53, 2**53 + 1, 2**64 - 1, 2**64 - 2]),
    "float64": (
        pa.float64(),
        [-0.0, 0.0, 0.1 + 0.2, 0.3, 5e-324, 1e308, float("inf"), -float("inf")],
    ),
    "float32": (pa.float32(), [-0.0, 0.0, 0.1, 0.2, 16777216.0]),
    "bool": (pa.bool_(), [True, False]),
    "decimal(18, 3)": (
        pa.decimal128(18, 3),
        [Decimal(9 * 10**12) + Decimal(k) / 1000 for k in range(8)],
    ),
    "decimal(38, 10)": (
        pa.decimal128(38, 10),
        [Decimal(10**19) + Decimal(k).scaleb(-10) for k in range(8)],
    ),
    "date": (
        pa.date32(),
        [date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    ),
    "time": (
        pa.time64("us"),
        [clock(0), clock(23, 59, 59, 999999), clock(12, 0, 0, 1), clock(12)],
    ),
    "moment": (
        pa.timestamp("us"),
        [datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1), datetime(1969, 1, 1)],
    ),
    "nanoseconds": (
        pa.timestamp("ns"),
        [1_700_000_000_000_000_000 + k for k in range(6)],
    ),
    "zone": (
        pa.timestamp("us", "Europe/Berlin"),
        [MOMENT + k * timedelta(minutes=30) for k in range(6)],
    ),
    "null": (pa.null(), [None]),
}
NOT_THERE = {"spark": {"uint64", "time", "null"}}  # types that the engine does not have


def shape(rng, n):
    """Return scores of a random kind."""
    kind = rng.integers(6)
    if kind == 0:
        return rng.random(n)
    if kind == 1:
        return np.round(rng.random(n), rng.integers(1, 4))
    if kind == 2:
        return rng.beta(0.5, 200, n)
    if kind == 3:
        return 1 - rng.beta(0.5, 200, n)
    if kind == 4:
        grid = np.arange(11) / 10
        return rng.choice(
            np.concatenate(
                [grid, np.nextafter(grid, 0), np.nextafter(grid, 1).clip(0, 1)]
            ),
            n,
        )
    return rng.choice([0.0, 1.0, 5e-324, 1 - 2.0**-53, 0.3, 0.1 + 0.2], n)


def in_engine(engine, table, session):
    """Return an Arrow table in an engine."""
    if engine == "pyarrow":
        return table
    if engine in ("polars", "polars_lazy"):
        import polars as pl

        frame = pl.from_arrow(table)
        return frame.lazy() if engine == "polars_lazy" else frame
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        connection.register("arrow", table)
        connection.execute("CREATE TABLE predictions AS SELECT * FROM arrow")
        return connection.table("predictions")
    if engine == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(table.to_pandas(), npartitions=2)
    return session().createDataFrame(table) if engine == "spark" else table.to_pandas()


def same(found, wanted, name):
    """Raise if two lists of arrays of numbers, in any order, are not the same to
    rounding.
    """
    found, wanted = (
        sorted(np.concatenate(arrays).tolist() for arrays in parts)
        for parts in (found, wanted)
    )
    if [len(part) for part in found] != [len(part) for part in wanted]:
        raise AssertionError(
            f"{name}: {len(found)} segments, expected {len(wanted)}, or other numbers"
            " of bins"
        )
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=name)


def check(rng, table, parts, weighted):
    """Compare one random job with NumPy; return its name. `parts` are the rows of each
    segment.
    """
    job = rng.integers(5)
    if job == 0:
        n_bins = int(rng.integers(1, 40))
        own = parts[0][0]
        fixed = np.unique(np.concatenate([[0, 1], own[(own > 0) & (own < 1)][:3]]))
        strategies = (
            EqualWidth(n_bins),
            EqualMass(n_bins),
            UniqueScores(),
            FixedEdges(fixed),
        )
        strategy = strategies[rng.integers(len(strategies))]
        found = table.bin_statistics(strategy).values()
        wanted = (
            BinStatistics.from_predictions(y, p, strategy.bin_edges(p, y == 1, w), w)
            for p, y, w in parts
        )
        names = ("edges", "count", "weight", "weighted_label", "weighted_score")
        same(
            *(
                [[getattr(s, name) for name in names] for s in side]
                for side in (found, wanted)
            ),
            repr(strategy),
        )
        return f"bin_statistics({type(strategy).__name__})"
    if job == 1:
        sums = [
            [np.array([w.sum(), w @ y, w @ p])]
            for y, p, w in table.weighted_scores().values()
        ]
        own = ((p, y, np.ones(len(p)) if w is None else w) for p, y, w in parts)
        same(
            sums,
            [[np.array([w.sum(), w @ y, w @ p])] for p, y, w in own],
            "weighted_scores",
        )
        return "weighted_scores"
    if job == 2:
        error = kolmogorov_smirnov_calibration_error
        wanted = [
            [np.array([error(y, p, sample_weight=w, labels=[0, 1])])]
            for p, y, w in parts
        ]
        same(
            [[np.array([value])] for value in table.kolmogorov_smirnov().values()],
            wanted,
            "kolmogorov_smirnov",
        )
        return "kolmogorov_smirnov"
    recalibrator = (
        IsotonicCalibration(classes=[0, 1]),
        HistogramBinning(5, classes=[0, 1]),
    )[job - 3]
    fitted, grid = table.fit(recalibrator), np.linspace(0, 1, 41)
    found = [[own.predict_proba(grid)[:, 1]] for own in fitted.values()]
    wanted = [
        [clone(recalibrator).fit(p, y, sample_weight=w).predict_proba(grid)[:, 1]]
        for p, y, w in parts
    ]
    same(found, wanted, repr(recalibrator))
    forecast = np.asarray(applied(table.apply(fitted, output="q")), dtype=float)
    wanted = [
        clone(recalibrator).fit(p, y, sample_weight=w).predict_proba(p)[:, 1]
        for p, y, w in parts
    ]
    np.testing.assert_allclose(
        np.sort(forecast), np.sort(np.concatenate(wanted)), rtol=0, atol=1e-12
    )
    return f"fit and apply({type(recalibrator).__name__})"


def applied(result):
    """Return the forecasts, in any order."""
    import narwhals.stable.v2 as nw

    return nw.from_native(result).lazy().select("q").collect()["q"].to_numpy()


def draw(rng, engine, kind, session):
    """Make a random table and compare a job; return the job's name."""
    arrow_type, values = TYPES[kind]
    n, n_values = int(rng.integers(1, 1500)), int(rng.integers(1, len(values) + 1))
    values = [values[place] for place in rng.permutation(len(values))[:n_values]]
    # which pandas makes floats of
    if not (engine in ("pandas", "dask") and pa.types.is_integer(arrow_type)):
        values += [None] * int(rng.integers(2))
    p, place = shape(rng, n), rng.integers(len(values), size=n)
    y = (rng.random(n) < p).astype(np.int64)
    # Exact sums, so that weighted cuts are exact; a weight of 0 is no row, but `apply`
    # sees it.
    w = rng.integers(1, 9, n) / 8 if rng.random() < 0.4 else None
    columns = {"p": p, "y": y, "g": pa.array([values[k] for k in place], arrow_type)}
    data = in_engine(
        engine, pa.table(columns | ({} if w is None else {"w": w})), session
    )
    code = np.array([values.index(value) for value in values])[place]  # -0.0 is 0.0
    parts = [
        (p[own], y[own], None if w is None else w[own])
        for own in (code == k for k in np.unique(code))
    ]
    table = PredictionTable(
        data, label="y", score="p", weight=None if w is None else "w", by="g"
    )
    return check(rng, table, parts, w is not None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--engines",
        nargs="+",
        default=[name for name in ENGINES if name != "spark"],
        choices=ENGINES,
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tried, failed, started, number = Counter(), [], time.monotonic(), 0
    cache = []

    def session():
        from pyspark.sql import SparkSession

        if not cache:
            builder = SparkSession.builder.master("local[2]").config(
                "spark.ui.enabled", "false"
            )
            cache.append(
                builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
            )
        return cache[0]

    while time.monotonic() - started < options.seconds:
        engine = options.engines[number % len(options.engines)]
        kinds = [kind for kind in TYPES if kind not in NOT_THERE.get(engine, ())]
        kind = kinds[number // len(options.engines) % len(kinds)]
        number += 1
        rng = np.random.default_rng((options.seed, number))
        try:
            job = draw(rng, engine, kind, session)
            tried.update({("engine", engine): 1, ("type", kind): 1, ("job", job): 1})
        except Exception as error:  # every failure is reported, of whatever kind
            failed.append(
                (
                    number,
                    engine,
                    kind,
                    f"{type(error).__name__}: {' '.join(str(error).split())[:300]}",
                )
            )
            failed[-1] += (traceback.extract_tb(error.__traceback__)[-1].name,)
    print(
        f"{number} tables in {time.monotonic() - started:.0f} s, {len(failed)} failed"
        f" (seed {options.seed})"
    )
    for what in ("engine", "type", "job"):
        print(
            f"{what}:",
            ", ".join(
                f"{name} {count}"
                for (of, name), count in sorted(tried.items())
                if of == what
            ),
        )
    for failure in failed:
        print("FAILED", *failure)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
