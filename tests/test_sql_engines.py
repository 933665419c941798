"""SQL of one fitted recalibrator of each kind: every engine gives the same numbers as
`predict_proba`.
"""

import copy
import shutil
from importlib.util import find_spec

import _postgres
import numpy as np
import pytest
from _catalog import refused
from _engine_tables import spark_session
from _golden_recalibrators import golden_recalibrators
from _programs import required

import skcalib
from skcalib.export import to_sql, to_sql_table

GOLDEN = golden_recalibrators()
NOT_SCORES = [None, float("nan"), -0.5, 1.5, float("inf"), float("-inf")]


def in_sql(golden):
    """Return the golden recalibrator with named groups where it takes groups, for SQL
    needs the name of a column.
    """
    recalibrator = copy.copy(golden.recalibrator)
    # what a fit with groups="site" sets, without the table that this would take
    if golden.groups is not None:
        recalibrator.groups, recalibrator._given_groups = "site", False
        recalibrator._remember_parameters()
    return recalibrator


def names(golden):
    n_columns = golden.alone.shape[1]
    return "p" if n_columns == 1 else [f"p{k}" for k in range(n_columns)]


def rows_of(golden):
    """Return the scores as rows, with the group and the id, and rows that are no scores
    for a single probability.
    """
    groups, ids = (
        golden.groups or ["north"] * len(golden.alone),
        golden.ids or ["id"] * len(golden.alone),
    )
    rows = [
        (*scores, *given)
        for scores, *given in zip(golden.alone.tolist(), groups, ids, strict=True)
    ]
    if golden.alone.shape[1] > 1:
        return rows
    wrong = (
        NOT_SCORES
        if golden.recalibrator.input == "probability"
        else NOT_SCORES[:2] + NOT_SCORES[4:]
    )
    return rows + [(score, "north", rows[0][-1]) for score in wrong]


def types(golden, double, text, integer):
    """Return the columns of the table with their types."""
    kind = integer if golden.ids and isinstance(golden.ids[0], int) else text
    return ", ".join(
        [
            *(f"{name} {double}" for name in columns(golden)),
            f"site {text}",
            f"id {kind}",
        ]
    )


def compare(golden, found):
    """Compare what an engine returned, rows of tuples with None for NULL, to the golden
    probabilities.
    """
    found = np.array(
        [[np.nan if value is None else value for value in row] for row in found],
        dtype=np.float64,
    )
    expected = (
        golden.probabilities
        if golden.alone.shape[1] > 1
        else golden.probabilities[:, 1:]
    )
    n = len(expected)
    np.testing.assert_allclose(
        found[:n], expected, rtol=0, atol=1e-12, err_msg=str(golden)
    )
    assert np.isnan(found[n:]).all(), golden


def query(golden, dialect, table="t"):
    """Return a SELECT of all probabilities."""
    texts = to_sql(
        in_sql(golden),
        score=names(golden),
        dialect=dialect,
        ids=None if golden.ids is None else "id",
    )
    texts = [texts] if isinstance(texts, str) else texts
    return (
        f"SELECT {', '.join(f'{text} AS c{i}' for i, text in enumerate(texts))} FROM"
        f" {table} ORDER BY n"
    )


def table_of(golden, dialect):
    """Return the map as a table of pieces and the SELECT that joins it, None for a map
    without pieces.
    """
    kinds = skcalib.IsotonicCalibration, skcalib.HistogramBinning, skcalib.VennAbers
    if golden.alone.shape[1] > 1 or not isinstance(golden.recalibrator, kinds):
        return None
    table = to_sql_table(golden.recalibrator, table="pieces", dialect=dialect)
    return (
        table.create,
        f"SELECT {table.expression} AS c FROM t {table.join} ORDER BY n",
    )


def columns(golden):
    return [names(golden)] if golden.alone.shape[1] == 1 else names(golden)


@pytest.mark.slow
def test_duckdb():
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    connection = duckdb.connect()
    for golden in GOLDEN:
        listed = types(golden, "DOUBLE", "VARCHAR", "BIGINT")
        connection.execute(f"CREATE OR REPLACE TABLE t (n INTEGER, {listed})")
        rows = [(n, *row) for n, row in enumerate(rows_of(golden))]
        connection.executemany(
            f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows
        )
        compare(golden, connection.execute(query(golden, "duckdb")).fetchall())
        if create_and_join := table_of(golden, "duckdb"):
            connection.execute("DROP TABLE IF EXISTS pieces")
            connection.execute(create_and_join[0])
            compare(golden, connection.execute(create_and_join[1]).fetchall())


@pytest.mark.slow
def test_postgres():
    folder = _postgres.programs()
    required(
        "SKCALIB_REQUIRE_POSTGRES",
        folder and find_spec("psycopg"),
        "needs PostgreSQL's programs and psycopg",
    )
    import psycopg

    with (
        _postgres.server(folder) as arguments,
        psycopg.connect(**arguments) as connection,
    ):
        for golden in GOLDEN:
            listed = types(golden, "DOUBLE PRECISION", "TEXT", "BIGINT")
            connection.execute("DROP TABLE IF EXISTS t")
            connection.execute(f"CREATE TABLE t (n INTEGER, {listed})")
            rows = [(n, *row) for n, row in enumerate(rows_of(golden))]
            with connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO t VALUES ({', '.join(['%s'] * len(rows[0]))})", rows
                )
            result = connection.execute(query(golden, "postgres").replace("%", "%%"))
            assert {column.type_display for column in result.description} == {"float8"}
            compare(golden, result.fetchall())
            if create_and_join := table_of(golden, "postgres"):
                connection.execute("DROP TABLE IF EXISTS pieces")
                connection.execute(create_and_join[0])
                compare(golden, connection.execute(create_and_join[1]).fetchall())


@pytest.mark.slow
def test_spark():
    required(
        "SKCALIB_REQUIRE_SPARK",
        find_spec("pyspark") and shutil.which("java"),
        "needs pyspark and Java 17",
    )
    session = spark_session()
    # Interpreted: to compile each query takes longer than to run it. `test_engines` has
    # compiled ones.
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    before = {name: session.conf.get(name) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    for golden in GOLDEN:
        listed = types(golden, "DOUBLE", "STRING", "BIGINT")
        rows = [(n, *row) for n, row in enumerate(rows_of(golden))]
        session.createDataFrame(rows, f"n INT, {listed}").createOrReplaceTempView("t")
        result = session.sql(query(golden, "spark"))
        assert {kind for _, kind in result.dtypes} == {"double"}
        compare(golden, [tuple(row) for row in result.collect()])
        if create_and_join := table_of(golden, "spark"):
            session.sql(create_and_join[0])
            compare(
                golden,
                [tuple(row) for row in session.sql(create_and_join[1]).collect()],
            )
    for name, value in before.items():
        session.conf.set(name, value)


@pytest.mark.slow
def test_ansi_is_parsed_and_not_run():
    sqlglot = pytest.importorskip("sqlglot", reason="needs sqlglot")
    for golden in GOLDEN:
        if golden.ids is not None:
            with refused(
                ValueError, "UniformMassBinning(randomize=True)", "md5", "ANSI"
            ):
                query(golden, "ansi")
            continue
        parsed = sqlglot.parse_one(query(golden, "ansi"))
        assert len(parsed.expressions) == golden.alone.shape[1]
        for text in table_of(golden, "ansi") or ():
            sqlglot.parse_one(text)
