"""One fitted recalibrator of each kind: JSON, SQL on each engine, ONNX and `predict_proba` give the same numbers."""

import copy
import os
import shutil
from importlib.util import find_spec

import _postgres
import numpy as np
import pytest
from _catalog import public_recalibrators
from _golden_recalibrators import golden_recalibrators

import skcalib
from skcalib.export import to_dict, to_onnx, to_sql, to_sql_table

GOLDEN = golden_recalibrators()
every_golden = pytest.mark.parametrize("golden", GOLDEN, ids=str)
NOT_SCORES = [None, float("nan"), -0.5, 1.5, float("inf"), float("-inf")]


def in_sql(golden):
    """Return the golden recalibrator with named groups where it takes groups, for SQL needs the name of a column."""
    recalibrator = copy.copy(golden.recalibrator)
    if golden.groups is not None:  # what a fit with groups="site" sets, without the table that this would take
        recalibrator.groups, recalibrator._given_groups = "site", False
    return recalibrator


def names(golden):
    n_columns = golden.alone.shape[1]
    return "p" if n_columns == 1 else [f"p{k}" for k in range(n_columns)]


def rows_of(golden):
    """Return the scores as rows, with the group, and rows that are no scores for a single probability."""
    groups = golden.groups or ["north"] * len(golden.alone)
    rows = [(*scores, group) for scores, group in zip(golden.alone.tolist(), groups, strict=True)]
    if golden.alone.shape[1] > 1:
        return rows
    wrong = NOT_SCORES if golden.recalibrator.input == "probability" else NOT_SCORES[:2] + NOT_SCORES[4:]
    return rows + [(score, "north") for score in wrong]


def compare(golden, found):
    """Compare what an engine returned, rows of tuples with None for NULL, to the golden probabilities."""
    found = np.array([[np.nan if value is None else value for value in row] for row in found], dtype=np.float64)
    expected = golden.probabilities if golden.alone.shape[1] > 1 else golden.probabilities[:, 1:]
    n = len(expected)
    np.testing.assert_allclose(found[:n], expected, rtol=0, atol=1e-12, err_msg=str(golden))
    assert np.isnan(found[n:]).all(), golden


def query(golden, dialect, table="t"):
    """Return a SELECT of all probabilities."""
    texts = to_sql(in_sql(golden), score=names(golden), dialect=dialect)
    texts = [texts] if isinstance(texts, str) else texts
    return f"SELECT {', '.join(f'{text} AS c{i}' for i, text in enumerate(texts))} FROM {table} ORDER BY n"


def table_of(golden, dialect):
    """Return the map as a table of pieces and the SELECT that joins it, None for a map without pieces."""
    kinds = skcalib.IsotonicCalibration, skcalib.HistogramBinning, skcalib.VennAbers
    if golden.alone.shape[1] > 1 or not isinstance(golden.recalibrator, kinds):
        return None
    table = to_sql_table(golden.recalibrator, table="pieces", dialect=dialect)
    return table.create, f"SELECT {table.expression} AS c FROM t {table.join} ORDER BY n"


def columns(golden):
    return [names(golden)] if golden.alone.shape[1] == 1 else names(golden)


def test_every_recalibrator_has_an_entry():
    assert public_recalibrators() - {type(golden.recalibrator) for golden in GOLDEN} == set()


@every_golden
def test_json_and_predict_proba(golden):
    options = {} if golden.groups is None else {"groups": golden.groups}
    found = golden.recalibrator.predict_proba(golden.scores, **options)
    np.testing.assert_allclose(found, golden.probabilities, rtol=0, atol=1e-12)
    assert to_dict(golden.recalibrator) == golden.document


@every_golden
def test_onnx(golden):
    pytest.importorskip("onnx", reason="needs onnx")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    if golden.groups is not None:
        pytest.skip("a graph takes scores alone")
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-6)):
        model = to_onnx(golden.recalibrator, dtype=dtype).SerializeToString()
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {"scores": golden.alone.astype(dtype)})
        same = (golden.alone.astype(dtype) == golden.alone).all(axis=1)  # float32 holds the others not at all
        assert same.sum() > 1
        np.testing.assert_allclose(found[same], golden.probabilities[same], rtol=0, atol=tolerance)


def test_duckdb():
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    connection = duckdb.connect()
    for golden in GOLDEN:
        listed = ", ".join(f"{name} DOUBLE" for name in columns(golden))
        connection.execute(f"CREATE OR REPLACE TABLE t (n INTEGER, {listed}, site VARCHAR)")
        rows = [(n, *row) for n, row in enumerate(rows_of(golden))]
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        compare(golden, connection.execute(query(golden, "duckdb")).fetchall())
        if create_and_join := table_of(golden, "duckdb"):
            connection.execute("DROP TABLE IF EXISTS pieces")
            connection.execute(create_and_join[0])
            compare(golden, connection.execute(create_and_join[1]).fetchall())


def require(flag, found, reason):
    """Skip where something is missing, unless an environment variable says that it must be there."""
    if not found and os.environ.get(flag) != "1":
        pytest.skip(reason)


def test_postgres():
    folder = _postgres.programs()
    require("SKCALIB_REQUIRE_POSTGRES", folder and find_spec("psycopg"), "needs PostgreSQL's programs and psycopg")
    import psycopg

    with _postgres.server(folder) as arguments, psycopg.connect(**arguments) as connection:
        for golden in GOLDEN:
            listed = ", ".join(f"{name} DOUBLE PRECISION" for name in columns(golden))
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute(f"CREATE TABLE t (n INTEGER, {listed}, site TEXT)")
            rows = [(n, *row) for n, row in enumerate(rows_of(golden))]
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO t VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)
            result = connection.execute(query(golden, "postgres").replace("%", "%%"))
            assert {column.type_display for column in result.description} == {"float8"}
            compare(golden, result.fetchall())
            if create_and_join := table_of(golden, "postgres"):
                connection.execute("DROP TABLE IF EXISTS pieces")
                connection.execute(create_and_join[0])
                compare(golden, connection.execute(create_and_join[1]).fetchall())


@pytest.mark.slow
def test_spark():
    require("SKCALIB_REQUIRE_SPARK", find_spec("pyspark") and shutil.which("java"), "needs pyspark and Java 17")
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        for golden in GOLDEN:
            listed = ", ".join(f"{name} DOUBLE" for name in columns(golden))
            rows = [(n, *row) for n, row in enumerate(rows_of(golden))]
            session.createDataFrame(rows, f"n INT, {listed}, site STRING").createOrReplaceTempView("t")
            result = session.sql(query(golden, "spark"))
            assert {kind for _, kind in result.dtypes} == {"double"}
            compare(golden, [tuple(row) for row in result.collect()])
            if create_and_join := table_of(golden, "spark"):
                session.sql(create_and_join[0])
                compare(golden, [tuple(row) for row in session.sql(create_and_join[1]).collect()])
    finally:
        session.stop()


def test_ansi_is_parsed_and_not_run():
    sqlglot = pytest.importorskip("sqlglot", reason="needs sqlglot")
    for golden in GOLDEN:
        parsed = sqlglot.parse_one(query(golden, "ansi"))
        assert len(parsed.expressions) == golden.alone.shape[1]
        for text in table_of(golden, "ansi") or ():
            sqlglot.parse_one(text)
