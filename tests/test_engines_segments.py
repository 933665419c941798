"""Segments of every type, on every engine: no row is lost, no two segments merge, whatever Python makes of a value."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pytest
from _engine_tables import native
from sklearn.base import clone

from skcalib import IsotonicCalibration, PlattScaling
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import BinStatistics

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")
from skcalib.engines import PredictionTable, scan  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning"),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
]

N, K = 600, 4
MOMENT = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
# What SQL makes of the number `k` of a segment. The hour of the time zone's change occurs twice.
SQL_TYPES = {
    "zone": "TIMESTAMPTZ '2024-10-27 00:00:00+00' + k * INTERVAL 30 MINUTE",
    "decimal": "CAST(9000000000000 AS DECIMAL(18, 3)) + CAST(k AS DECIMAL(18, 3)) / 1000",
    "wide decimal": "CAST('12345678901234567890.0000000000' AS DECIMAL(38, 10)) + CAST(k AS DECIMAL(12, 10)) / 1000",
    "hugeint": "CAST(9007199254740993 AS HUGEINT) * 4096 + k",
    "nanoseconds": "make_timestamp_ns(1700000000000000000 + k)",
    "double": "CASE k WHEN 0 THEN -1.5 WHEN 1 THEN 0.1 + 0.2 WHEN 2 THEN 0.3 ELSE 5e-324 END",
    "zeros": "CASE WHEN k < 2 THEN 0.0::DOUBLE * (CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END) ELSE k END",
    "float": "(0.1 * k)::FLOAT",
    "date": "DATE '2024-01-01' + k::INT",
    "infinite": "CASE k WHEN 0 THEN '-infinity'::DATE WHEN 1 THEN 'infinity' WHEN 2 THEN '9999-12-31' ELSE '2024-01-01' END",
    "late": "TIMESTAMP '2024-01-01' + to_years((k * 50000)::INT)",
    "interval": "to_days(k::INT)",
    "time": "TIME '10:00:00' + to_microseconds(k)",
    "text": "CASE k WHEN 0 THEN '' WHEN 1 THEN 'it''s, \"é\"' WHEN 2 THEN chr(0) || 'a' ELSE '01' END",
    "bool": "k > 1",
    "enum": "CAST('abcd'[k + 1] AS ENUM ('d', 'c', 'b', 'a'))",
    "uhugeint": "340282366920938463463374607431768211455::UHUGEINT - k::UHUGEINT",
    "constant": "NULL",
}


def rows():
    """Return scores, labels and the numbers of segments, whose maps differ."""
    rng = np.random.default_rng(0)
    score, segment = np.round(rng.beta(1, 2, N), 3), rng.integers(0, K, N)
    return score, (rng.random(N) < score ** (1 + segment / 2)).astype(np.int64), segment


def check_jobs(data, score, label, segment):
    """Compare every job by segment with NumPy on the same rows, and return the keys."""
    table = PredictionTable(data, label="y", score="p", by="g")
    parts = [(score[segment == k], label[segment == k]) for k in np.unique(segment)]
    for binning in (EqualWidth(7), EqualMass(5)):
        found = [
            (part.edges.tolist(), part.count.tolist(), part.weighted_label.tolist())
            for part in table.bin_statistics(binning).values()
        ]
        wanted = []
        for own, events in parts:
            part = BinStatistics.from_scores(own, events == 1, binning.bin_edges(own, events == 1))
            wanted.append((part.edges.tolist(), part.count.tolist(), part.weighted_label.tolist()))
        assert sorted(found) == sorted(wanted)
    totals = [(part.sample_weight.sum(), part.sample_weight @ part.y_true) for part in table.weighted_scores().values()]
    assert sorted(totals) == sorted((len(own), events.sum()) for own, events in parts)
    grid = np.linspace(0, 1, 50)
    for recalibrator in (IsotonicCalibration(), PlattScaling()):
        found = sorted(own.predict_proba(grid)[:, 1].tolist() for own in table.fit(recalibrator).values())
        wanted = sorted(clone(recalibrator).fit(*part).predict_proba(grid)[:, 1].tolist() for part in parts)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
    return list(table.bin_statistics(1))


def in_duckdb(expression):
    """Return a connection with the rows as the table `predictions`."""
    score, label, segment = rows()
    rows_of_arrow = pa.table({"p": score, "y": label, "k": segment, "i": np.arange(N)})
    connection = duckdb.connect()
    connection.register("arrow", rows_of_arrow)
    connection.execute(f"CREATE TABLE predictions AS SELECT p, y, {expression} AS g FROM arrow")
    return connection


@pytest.mark.parametrize("kind", SQL_TYPES)
def test_duckdb(kind):
    connection = in_duckdb(SQL_TYPES[kind])
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    found = connection.sql("SELECT p, y, dense_rank() OVER (ORDER BY g) AS n FROM predictions").fetchnumpy()
    keys = check_jobs(connection.table("predictions"), *(np.asarray(values) for values in found.values()))
    assert len(keys) == len(set(keys)) == len(np.unique(found["n"]))


ARROW_TYPES = {
    "large_string": ["", "a", "01", "1"],
    "decimal128(18, 3)": [Decimal(9 * 10**12) + Decimal(k) / 1000 for k in range(K)],
    "timestamp('ns')": [1_700_000_000_000_000_000 + k for k in range(K)],
    "timestamp('us', 'Europe/Berlin')": [MOMENT + k * timedelta(minutes=30) for k in range(K)],
    "time64('us')": [time(10, 0, 0, k) for k in range(K)],
    "date32": [date(2024, 1, 1 + k) for k in range(K)],
    "duration('us')": [timedelta(microseconds=k) for k in range(K)],
    "float64": [-0.0, 0.0, 0.1 + 0.2, 0.3],
    "float32": [-0.0, 0.1, 0.2, 0.3],
    "int64": [2**53, 2**53 + 1, -(2**63), 2**63 - 1],
    "uint64": [0, 2**53 + 1, 2**64 - 1, 2**64 - 2],
    "bool_": [True, False, True, False],
    "string": ["", "a", "01", None],
    "null": [None] * K,
}


@pytest.mark.parametrize(
    "engine", ["pyarrow", "pandas", "polars", "polars_lazy", "ibis", pytest.param("dask", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", ARROW_TYPES)
def test_other_engines(engine, kind):
    score, label, segment = rows()
    values = ARROW_TYPES[kind]
    # What Python takes for one is one: -0.0 is 0.0.
    segment = np.array([values.index(value) for value in values])[segment]
    name, *parameters = kind.rstrip(")").split("(")
    arrow_type = getattr(pa, name)(*(eval(p) for p in ",".join(parameters).split(",") if p))
    column = pa.array([values[k] for k in segment], arrow_type)
    keys = check_jobs(native(engine, p=score, y=label, g=column), score, label, segment)
    assert len(keys) == len(set(keys)) == len(np.unique(segment))
