"""One fitted recalibrator of each kind: JSON, SQL on each engine, ONNX and
`predict_proba` give the same numbers.
"""

import copy
import json
import os
import shutil
import subprocess
from contextlib import nullcontext
from importlib.util import find_spec

import _postgres
import numpy as np
import pytest
from _catalog import refused
from _golden_recalibrators import golden_recalibrators

import skcalib
from skcalib.export import to_dict, to_javascript, to_onnx, to_sql, to_sql_table

GOLDEN = golden_recalibrators()
every_golden = pytest.mark.parametrize("golden", GOLDEN, ids=str)
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


@every_golden
def test_json_and_predict_proba(golden):
    warned = (
        pytest.warns(UserWarning, match="never seen")
        if "never seen" in (golden.groups or [])
        else nullcontext()
    )
    with warned:
        found = golden.recalibrator.predict_proba(golden.scores, **golden.options)
    np.testing.assert_allclose(found, golden.probabilities, rtol=0, atol=1e-12)
    assert to_dict(golden.recalibrator) == golden.document


@every_golden
def test_onnx(golden):
    pytest.importorskip("onnx", reason="needs onnx")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    if golden.ids is not None:
        with refused(ValueError, "UniformMassBinning(randomize=True)", "md5", "ONNX"):
            to_onnx(golden.recalibrator)
        return
    groups = (
        {}
        if golden.groups is None
        else {"group": np.array(golden.groups, dtype=object)[:, None]}
    )
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-6)):
        model = to_onnx(golden.recalibrator, dtype=dtype).SerializeToString()
        session = onnxruntime.InferenceSession(
            model, providers=["CPUExecutionProvider"]
        )
        (found,) = session.run(None, {"scores": golden.alone.astype(dtype), **groups})
        # float32 holds the others not at all
        same = (golden.alone.astype(dtype) == golden.alone).all(axis=1)
        assert same.sum() > 1
        np.testing.assert_allclose(
            found[same], golden.probabilities[same], rtol=0, atol=tolerance
        )


def in_javascript(program):
    """Return what node prints, a list of JSON values, one a line."""
    require("SKCALIB_REQUIRE_NODE", shutil.which("node"), "needs node")
    done = subprocess.run(
        ["node", "-"], input=program, capture_output=True, text=True, check=True
    )
    return list(map(json.loads, done.stdout.splitlines()))


def test_javascript():
    program, written = [], []
    for number, golden in enumerate(GOLDEN):
        if golden.ids is not None:
            with refused(
                ValueError, "UniformMassBinning(randomize=True)", "md5", "JavaScript"
            ):
                to_javascript(golden.recalibrator)
            continue
        program.append(to_javascript(golden.recalibrator, name=f"f{number}"))
        for scores, group in zip(
            golden.alone.tolist(),
            golden.groups or [None] * len(golden.alone),
            strict=True,
        ):
            arguments = (
                f"{scores[0] if len(scores) == 1 else json.dumps(scores)},"
                f" {json.dumps(group)}"
            )
            program.append(f"console.log(JSON.stringify(f{number}({arguments})))")
        written.append(golden)
    found = iter(in_javascript("\n".join(program)))
    for golden in written:
        expected = (
            golden.probabilities
            if golden.alone.shape[1] > 1
            else golden.probabilities[:, 1]
        )
        here = [next(found) for _ in expected]
        np.testing.assert_allclose(
            np.array(here, dtype=float),
            expected,
            rtol=0,
            atol=1e-12,
            err_msg=str(golden),
        )


def test_javascript_of_what_is_no_score():
    scores, y = np.arange(1, 31) / 31, np.arange(30) % 3 == 0
    two = to_javascript(skcalib.PlattScaling().fit(scores, y), name="two")
    logits = to_javascript(
        skcalib.PlattScaling(input="logit").fit(9 * scores - 4, y), name="$logits"
    )
    many = skcalib.TemperatureScaling().fit(
        np.random.default_rng(0).dirichlet(np.ones(3), 30), np.arange(30) % 3
    )
    groups = skcalib.GroupwiseRecalibrator(skcalib.PlattScaling(), min_group_size=5)
    given = groups.fit(
        scores, y, groups=np.array(["a</script>", "b\u2028"])[np.arange(30) % 2]
    )
    wrong = [
        "two(NaN)",
        "two(-0.1)",
        "two(1.1)",
        "two(undefined)",
        "$logits(Infinity)",
        "$logits(1e101)",
    ]
    wrong += [
        "many([0.5, 0.5])",
        "many([0.5, 0.4, 0.2])",
        "many([0.5, NaN, 0.5])",
        "of(0.5)",
        "of(2, 'a')",
    ]
    calls = [
        f"console.log([{call}].flat().every(Number.isNaN))"
        for call in [*wrong, "of(0.5, null)"]
    ]
    functions = [
        two,
        logits,
        to_javascript(many, name="many"),
        to_javascript(given, name="of"),
    ]
    assert "</script" not in functions[-1]
    assert in_javascript("\n".join([*functions, *calls])) == [True] * len(calls)
    unseen = given.pooled_recalibrator_.predict_proba([0.25])[0, 1]
    assert in_javascript(
        functions[-1] + "console.log(of(0.25, 'never seen'))"
    ) == pytest.approx([unseen], abs=1e-12)
    for name in ("", "a b", "1a", "a;b", None):
        with refused(ValueError, "name"):
            to_javascript(many, name=name)


def test_groups_that_are_no_strings():
    scores, y = np.arange(1, 61) / 61, np.arange(60) % 3 == 0
    groups = np.arange(60) % 2 + 7
    fitted = skcalib.GroupwiseRecalibrator(
        skcalib.PlattScaling(), min_group_size=5
    ).fit(scores, y, groups=groups)
    expected = fitted.predict_proba(scores, groups=groups)
    calls = [
        f"console.log(f({p}, {group}))" for p, group in zip(scores, groups, strict=True)
    ]
    found = in_javascript("\n".join([to_javascript(fitted, name="f"), *calls]))
    np.testing.assert_allclose(found, expected[:, 1], rtol=0, atol=1e-12)
    pytest.importorskip("onnx", reason="needs onnx")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    session = onnxruntime.InferenceSession(
        to_onnx(fitted, dtype="float64").SerializeToString()
    )
    texts = np.array([str(group) for group in groups], dtype=object)[:, None]
    (found,) = session.run(None, {"scores": scores[:, None], "group": texts})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


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


def require(flag, found, reason):
    """Skip where something is missing, unless an environment variable says that it must
    be there.
    """
    if not found and os.environ.get(flag) != "1":
        pytest.skip(reason)


def test_postgres():
    folder = _postgres.programs()
    require(
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
    require(
        "SKCALIB_REQUIRE_SPARK",
        find_spec("pyspark") and shutil.which("java"),
        "needs pyspark and Java 17",
    )
    from pyspark.sql import SparkSession

    # Other tests of this process use the same session, so nobody stops it.
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
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
