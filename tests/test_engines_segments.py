"""Segments of every type, on every engine: no row is lost, no two segments merge,
whatever Python makes of a value.
"""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pytest
from _engine_tables import native
from sklearn.base import clone

from skcalib import HistogramBinning, IsotonicCalibration, PlattScaling
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import BinStatistics

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")
from skcalib.engines import PredictionTable  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Dask support is moving out of Narwhals:FutureWarning"
    ),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
]

N, K = 300, 4
MOMENT = datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
# What SQL makes of the number `k` of a segment. The hour of the time zone's change
# occurs twice.
SQL_TYPES = {
    "zone": "TIMESTAMPTZ '2024-10-27 00:00:00+00' + k * INTERVAL 30 MINUTE",
    "decimal": "CAST('9000000000000.00' || k AS DECIMAL(18, 3))",
    "wide decimal": "CAST('12345678901234567890.000000000' || k AS DECIMAL(38, 10))",
    "hugeint": "CAST(9007199254740993 AS HUGEINT) * 4096 + k",
    "nanoseconds": "make_timestamp_ns(1700000000000000000 + k)",
    "double": (
        "CASE k WHEN 0 THEN -1.5 WHEN 1 THEN 0.1 + 0.2 WHEN 2 THEN 0.3 ELSE 5e-324 END"
    ),
    "zeros": (
        "CASE WHEN k < 2 THEN 0.0::DOUBLE * (CASE WHEN i % 2 = 0 THEN 1 ELSE -1 END)"
        " ELSE k END"
    ),
    "float": "(0.1 * k)::FLOAT",
    "date": "DATE '2024-01-01' + k::INT",
    "infinite": "[DATE '-infinity', 'infinity', '9999-12-31', '2024-01-01'][k + 1]",
    "late": "TIMESTAMP '2024-01-01' + to_years((k * 50000)::INT)",
    "interval": "to_days(k::INT)",
    "time": "TIME '10:00:00' + to_microseconds(k)",
    "text": (
        "CASE k WHEN 0 THEN '' WHEN 1 THEN 'it''s, \"é\"' WHEN 2 THEN chr(0) || 'a'"
        " ELSE '01' END"
    ),
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
            part = BinStatistics.from_predictions(
                events, own, binning.bin_edges(own, events == 1)
            )
            wanted.append(
                (part.edges.tolist(), part.count.tolist(), part.weighted_label.tolist())
            )
        assert sorted(found) == sorted(wanted)
    totals = [
        (part.sample_weight.sum(), part.sample_weight @ part.y_true)
        for part in table.weighted_scores().values()
    ]
    assert sorted(totals) == sorted((len(own), events.sum()) for own, events in parts)
    grid = np.linspace(0, 1, 50)
    for recalibrator in (IsotonicCalibration(), HistogramBinning(4)):
        found = sorted(
            own.predict_proba(grid)[:, 1].tolist()
            for own in table.fit(recalibrator).values()
        )
        wanted = sorted(
            clone(recalibrator).fit(*part).predict_proba(grid)[:, 1].tolist()
            for part in parts
        )
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    return list(table.bin_statistics(1))


def in_duckdb(expression):
    """Return a connection with the rows as the table `predictions`."""
    score, label, segment = rows()
    rows_of_arrow = pa.table({"p": score, "y": label, "k": segment, "i": np.arange(N)})
    connection = duckdb.connect()
    connection.register("arrow", rows_of_arrow)
    connection.execute(
        f"CREATE TABLE predictions AS SELECT p, y, {expression} AS g FROM arrow"
    )
    return connection


_QUICK = ("zone", "hugeint", "zeros", "text", "enum", "constant")


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in _QUICK else pytest.mark.slow)
        for kind in SQL_TYPES
    ],
)
def test_duckdb(kind):
    connection = in_duckdb(SQL_TYPES[kind])
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    found = connection.sql(
        "SELECT p, y, dense_rank() OVER (ORDER BY g) AS n FROM predictions"
    ).fetchnumpy()
    keys = check_jobs(
        connection.table("predictions"),
        *(np.asarray(values) for values in found.values()),
    )
    assert len(keys) == len(set(keys)) == len(np.unique(found["n"]))


ARROW_TYPES = {
    "large_string": ["", "a", "01", "1"],
    "decimal128(18, 3)": [Decimal(9 * 10**12) + Decimal(k) / 1000 for k in range(K)],
    "timestamp('ns')": [1_700_000_000_000_000_000 + k for k in range(K)],
    "timestamp('us', 'Europe/Berlin')": [
        MOMENT + k * timedelta(minutes=30) for k in range(K)
    ],
    "time64('us')": [time(10, 0, 0, k) for k in range(K)],
    "date32": [date(2024, 1, 1 + k) for k in range(K)],
    "float64": [-0.0, 0.0, 0.1 + 0.2, 0.3],
    "float32": [-0.0, 0.1, 0.2, 0.3],
    "int64": [2**53, 2**53 + 1, -(2**63), 2**63 - 1],
    "uint64": [0, 2**53 + 1, 2**64 - 1, 2**64 - 2],
    "bool_": [True, False, True, False],
    "string": ["", "a", "01", None],
    "null": [None] * K,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine", ["pyarrow", "polars_lazy", "pandas", "polars", "ibis", "dask"]
)
@pytest.mark.parametrize("kind", ARROW_TYPES)
def test_other_engines(engine, kind):
    if engine == "dask" and kind not in ("float64", "decimal128(18, 3)"):
        return  # test_engines.py has texts, benchmarks/checks/fuzz_engines.py the rest
    score, label, segment = rows()
    values = ARROW_TYPES[kind]
    # what Python takes for one is one
    segment = np.array([values.index(value) for value in values])[segment]
    name, *parameters = kind.rstrip(")").split("(")
    parameters = [text.strip(" '") for text in ",".join(parameters).split(",") if text]
    arrow_type = getattr(pa, name)(
        *(int(text) if text.isdigit() else text for text in parameters)
    )
    column = pa.array([values[k] for k in segment], arrow_type)
    keys = check_jobs(native(engine, p=score, y=label, g=column), score, label, segment)
    assert len(keys) == len(set(keys)) == len(np.unique(segment))


def test_several_columns_of_segments_and_missing_values():
    connection = in_duckdb(
        "CASE k WHEN 3 THEN NULL ELSE CAST('9000000000000.00' || k AS DECIMAL(18,"
        " 3)) END"
    )
    connection.execute(
        "CREATE TABLE doubly AS SELECT *, CASE WHEN p > 0.9 THEN NULL ELSE rowid % 2"
        " END AS h FROM predictions"
    )
    table = PredictionTable(
        connection.table("doubly"), label="y", score="p", by=["g", "h"]
    )
    found = table.bin_statistics(EqualMass(3))
    counts = connection.sql(
        "SELECT g, h, count(*) FROM doubly GROUP BY g, h"
    ).fetchall()
    assert {key: part.count.sum() for key, part in found.items()} == {
        (g, h): n for g, h, n in counts
    }
    first = [key[0] for key in found]
    assert first[-1] is None
    assert first[0] == min(value for value in first if value is not None)
    assert type(first[0]) is Decimal


@pytest.mark.parametrize("name", ["l", "s", "m", "b", "bits", "u"])
def test_types_that_cannot_name_segments_are_refused(name):
    columns = (
        "[1] AS l, {'a': 1} AS s, MAP {'a': 1} AS m, 'a'::BLOB AS b, '10'::BIT AS bits,"
        " uuid() AS u"
    )
    data = duckdb.connect().sql(f"SELECT 0.5 AS p, 1 AS y, {columns} FROM range(3)")
    with pytest.raises(
        ValueError, match=f"by='{name}' is a column of .*cast it to text"
    ):
        PredictionTable(data, label="y", score="p", by=name).bin_statistics(1)


@pytest.mark.parametrize("engine", ["pyarrow", "pandas", "polars"])
def test_lists_as_segments_are_refused(engine):
    data = native(engine, p=[0.5, 0.5], y=[0, 1], g=[[1], [2]])
    with pytest.raises(ValueError, match=r"by=.*'g'.*cast (it|them) to text"):
        PredictionTable(data, label="y", score="p", by="g").fit(PlattScaling())


@pytest.mark.parametrize(
    "job",
    [
        "bin_statistics",
        "weighted_scores",
        "kuiper",
        "isotonic",
        "isotonic in parts",
        "platt",
    ],
)
@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("change", ["grows", "shrinks", "new segment"])
def test_a_table_that_changes_between_two_passes_is_refused(
    monkeypatch, job, by, change
):
    connection = in_duckdb("k")
    statement = {
        "grows": "INSERT INTO predictions SELECT * FROM predictions",
        "shrinks": "DELETE FROM predictions WHERE rowid % 2 = 0",
        "new segment": "INSERT INTO predictions SELECT p, y, 77 FROM predictions",
    }[change]
    table = PredictionTable(
        connection.table("predictions"), label="y", score="p", by=by
    )
    from skcalib.engines import _histogram

    if job == "isotonic in parts":
        if by and change == "new segment":
            pytest.skip(
                "the table changes after its segments were counted: rows of another one"
                " are not looked at"
            )
        for name, value in {
            "_CELLS": 8,
            "_CELLS_OF_SEGMENT": 8,
            "_MOST_SPLIT": 20,
            "_MOST_FETCHED": 20,
        }.items():
            monkeypatch.setattr(_histogram, name, value)
    calls = []

    def then_changed(frame):
        result = fetched(frame)
        if len(calls) == (2 if job == "isotonic in parts" else 0):
            connection.execute(statement)
        calls.append(1)
        return result

    fetched = _histogram.fetched
    monkeypatch.setattr(_histogram, "fetched", then_changed)
    run = {
        "bin_statistics": lambda: table.bin_statistics(EqualMass(5)),
        "weighted_scores": table.weighted_scores,
        "kuiper": table.kuiper,
        "isotonic": lambda: table.fit(IsotonicCalibration()),
        "isotonic in parts": lambda: table.fit(IsotonicCalibration()),
        "platt": lambda: table.fit(PlattScaling()),
    }[job]
    with pytest.raises(ValueError, match="changed between two passes"):
        run()
    assert calls


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting", ["python_enable_replacements = false", "enable_external_access = false"]
)
def test_settings_and_names_of_a_connection_do_not_matter(setting):
    connection = in_duckdb("k")
    for name in ("skcalib_columns", "skcalib_relation", "skcalib_file"):
        connection.execute(f"CREATE TABLE {name} AS SELECT 5 AS k, 0.5 AS p")
    connection.execute("SET TimeZone = 'Asia/Kathmandu'")
    connection.execute(f"SET {setting}")
    found = connection.sql("SELECT p, y, g FROM predictions").fetchnumpy()
    check_jobs(connection.table("predictions"), *found.values())
    score, label, _ = rows()
    model = IsotonicCalibration().fit(score, label)
    table = PredictionTable(connection.table("predictions"), label="y", score="p")
    forecast = table.apply(model, output="q").fetchnumpy()
    np.testing.assert_allclose(
        forecast["q"], model.predict_proba(forecast["p"])[:, 1], rtol=0, atol=1e-12
    )


def test_a_low_depth_of_expressions_is_an_error_of_ours():
    connection = in_duckdb("k")
    connection.execute("SET max_expression_depth = 20")
    with pytest.raises(ValueError, match="SET max_expression_depth = 1000"):
        PredictionTable(
            connection.table("predictions"), label="y", score="p"
        ).weighted_scores()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "pandas", "polars"])
def test_weights_whose_sums_are_infinite(engine):
    score, label, _ = rows()
    table = PredictionTable(
        native(engine, p=score, y=label, w=np.full(N, 1e308)),
        label="y",
        score="p",
        weight="w",
    )
    for run in (
        table.bin_statistics,
        table.weighted_scores,
        table.kuiper,
        lambda: table.fit(HistogramBinning(3)),
    ):
        with pytest.raises(ValueError, match="weight is too large"):
            run()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "pandas", "polars_lazy"])
def test_a_label_that_does_not_occur(engine):
    data = native(engine, p=[0.1, 0.2, 0.3], y=["yes", "no", "yes"])
    table = PredictionTable(
        data, label="y", score="p", pos_label="Yes", on_invalid="drop"
    )
    for run in (
        table.bin_statistics,
        lambda: table.bin_statistics(EqualWidth(3)),
        table.weighted_scores,
        table.kuiper,
    ):
        with pytest.raises(
            ValueError,
            match=(
                "pos_label='Yes' does not occur in the column 'y', whose labels are"
                " 'no', 'yes'"
            ),
        ):
            run()
    assert (
        PredictionTable(data, label="y", score="p", pos_label="yes")
        .bin_statistics(1)
        .weighted_label.sum()
        == 2
    )
