"""SQL of the dialects that sqlglot writes: SQLite's and MySQL's (in MariaDB) run, the
others are parsed, and run in DuckDB after that.
"""

import importlib.util
import os
import re
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from _catalog import RECALIBRATORS, each_of, refused
from _mariadb import programs, server
from scipy.special import softmax
from sklearn.base import clone
from test_sql import (
    EXTREME,
    NOT_SCORES,
    _many_class_rows,
    _scores_at,
    _two_class_rows,
    close,
    run_scores,
)

import skcalib
from skcalib._install import install
from skcalib.export import to_sql, to_sql_table
from skcalib.export._sql_warehouses import WAREHOUSES

sqlglot = pytest.importorskip("sqlglot", reason="needs sqlglot")
PARSED = [
    "snowflake",
    "bigquery",
    "redshift",
    "databricks",
    "tsql",
    "oracle",
    "mysql",
]
# Those of the fast tests differ most.
every_dialect = pytest.mark.parametrize(
    "dialect",
    [
        *("snowflake", "bigquery", "tsql", "sqlite"),
        *(
            pytest.param(dialect, marks=pytest.mark.slow)
            for dialect in ("redshift", "databricks", "oracle", "mysql")
        ),
    ],
)
METHODS = [
    skcalib.PlattScaling(),
    skcalib.BetaCalibration(),
    skcalib.HistogramBinning(8),
    skcalib.TemperatureScaling(),
]


def sqlite_table(**columns):
    """Return a connection to a table `t` with these columns."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("SELECT LN(EXP(1.0))")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite was built without mathematical functions")
    names = ", ".join(f'"{name}" REAL' for name in columns)
    connection.execute(f"CREATE TABLE t (row INTEGER, {names})")
    rows = list(zip(*columns.values(), strict=True))
    marks = ", ".join("?" * (1 + len(columns)))
    connection.executemany(
        f"INSERT INTO t VALUES ({marks})", [(i, *row) for i, row in enumerate(rows)]
    )
    return connection


def run_sqlite(expressions, **columns):
    """Return what SQLite makes of the expressions: NaN for NULL."""
    connection = sqlite_table(**columns)
    found = connection.execute(
        f"SELECT {', '.join(expressions)} FROM t ORDER BY row"
    ).fetchall()
    return np.array(found, dtype=object).astype(float)


def in_duckdb(text, dialect):
    """Return a text of a dialect as one of DuckDB's."""
    if dialect == "oracle":  # sqlglot does not read its literals of BINARY_DOUBLE
        text = text.replace("BINARY_DOUBLE", "DOUBLE PRECISION")
        text = re.sub(r"(e[-+]?\d+)d\b", r"\1", text)
    if dialect == "tsql":  # its FLOAT has 64 bits, which sqlglot reads as 32
        text = text.replace("AS FLOAT)", "AS DOUBLE PRECISION)")
    return sqlglot.transpile(text, read=dialect, write="duckdb")[0]


@pytest.mark.parametrize("recalibrator", each_of(RECALIBRATORS))
def test_sqlite_gives_what_predict_proba_gives(recalibrator):
    scores, y = _two_class_rows()
    fitted = clone(recalibrator).fit(scores, y)
    new = _scores_at(fitted)
    given = [*new.tolist(), *NOT_SCORES]
    found = run_sqlite([to_sql(fitted, dialect="sqlite")], p=given)[:, 0]
    close(found[: len(new)], fitted.predict_proba(new)[:, 1])
    assert np.isnan(found[len(new) :]).all()


@pytest.mark.slow
def test_mariadb_gives_what_predict_proba_gives():
    if os.environ.get("SKCALIB_REQUIRE_MARIADB") != "1":
        pytest.importorskip("pymysql", reason="needs PyMySQL")
        if programs() is None:
            pytest.skip("needs MariaDB's programs")
    import pymysql

    scores, y = _two_class_rows()
    logits, classes = _many_class_rows(n=40, n_classes=3)
    names = ["a", "b b", "c"]
    with (
        server(*programs()) as arguments,
        pymysql.connect(**arguments) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE tests")
        cursor.execute("USE tests")

        def run(expressions, columns):
            """Return what MariaDB makes of the expressions: NaN for NULL."""
            listed = ", ".join(f"`{name}` DOUBLE" for name in columns)
            cursor.execute(f"CREATE OR REPLACE TABLE t (place INT, {listed})")
            marks = ", ".join(["%s"] * (1 + len(columns)))
            rows = []
            for place, row in enumerate(zip(*columns.values(), strict=True)):
                # MariaDB has no NaN and no infinity.
                numbers = [
                    None if value is None or not np.isfinite(value) else float(value)
                    for value in row
                ]
                rows.append([place, *numbers])
            cursor.executemany(f"INSERT INTO t VALUES ({marks})", rows)
            cursor.execute(f"SELECT {', '.join(expressions)} FROM t ORDER BY place")
            return np.array(cursor.fetchall(), dtype=object).astype(float)

        for recalibrator in RECALIBRATORS:
            fitted = clone(recalibrator).fit(scores, y)
            new = _scores_at(fitted)
            given = [*new.tolist(), *NOT_SCORES]
            found = run([to_sql(fitted, dialect="mysql")], {"p": given})[:, 0]
            close(found[: len(new)], fitted.predict_proba(new)[:, 1])
            assert np.isnan(found[len(new) :]).all()

        for method in (skcalib.PlattScaling, skcalib.VectorScaling):
            fitted = method(input="logit").fit(logits, classes)
            texts = to_sql(fitted, score=names, dialect="mysql")
            columns = dict(zip(names, logits.T.tolist(), strict=True))
            close(run(texts, columns), fitted.predict_proba(logits))


@pytest.mark.parametrize("dialect", PARSED)
@pytest.mark.parametrize("recalibrator", METHODS, ids=str)
def test_what_is_parsed_back_means_the_same(recalibrator, dialect):
    scores, y = _two_class_rows()
    fitted = clone(recalibrator).fit(scores, y)
    text = in_duckdb(to_sql(fitted, dialect=dialect), dialect)
    found = run_scores([text], [*EXTREME, *NOT_SCORES])[:, 0]
    close(found[: len(EXTREME)], fitted.predict_proba(EXTREME)[:, 1])
    assert np.isnan(found[len(EXTREME) :]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("input", "dialect"),
    [
        *[("probability", dialect) for dialect in [*PARSED, "sqlite"]],
        ("logit", "oracle"),
        ("logit", "sqlite"),
    ],
)
def test_a_column_for_each_class(dialect, input):
    logits, y = _many_class_rows(n=40, n_classes=3)
    scores = softmax(logits, axis=1) if input == "probability" else logits
    fitted = skcalib.TemperatureScaling(input=input).fit(scores, y)
    names = ["a", "b b", 'c"']
    texts = to_sql(fitted, score=names, dialect=dialect)
    expected = fitted.predict_proba(scores)
    if dialect == "sqlite":
        texts = [text.replace('"c"""', '"c"') for text in texts]
        columns = {"a": 0, "b b": 1, "c": 2}
        found = run_sqlite(
            texts, **{name: scores[:, k].tolist() for name, k in columns.items()}
        )
    else:
        texts = [in_duckdb(text, dialect) for text in texts]
        assert all('"c"""' in text and '"b b"' in text for text in texts)
        texts = [text.replace('"c"""', '"c"') for text in texts]
        found = run_scores(texts, scores, ["a", "b b", "c"])
    close(found, expected)


@every_dialect
def test_tables_of_pieces(dialect):
    scores, y = _two_class_rows()
    fitted = skcalib.IsotonicCalibration().fit(scores, y)
    create, join, expression = to_sql_table(fitted, table='pi"eces', dialect=dialect)
    new = _scores_at(fitted)
    query = f"SELECT {expression} AS c FROM t {join} ORDER BY row"
    if dialect == "sqlite":
        connection = sqlite_table(p=[*new.tolist(), *NOT_SCORES])
        connection.execute(create)
        found = connection.execute(query).fetchall()
    else:
        import duckdb

        connection = duckdb.connect()
        connection.execute("CREATE TABLE t (row INTEGER, p DOUBLE)")
        given = [*new.tolist(), *NOT_SCORES]
        connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(given)))
        if dialect == "tsql":  # DuckDB has no SELECT INTO
            create = create.replace('SELECT * INTO [pi"eces] FROM', "SELECT * FROM")
            create = f'CREATE TABLE "pi""eces" AS {in_duckdb(create, dialect)}'
        else:
            create = in_duckdb(create.replace(" FROM DUAL", ""), dialect)
        connection.execute(create)
        found = connection.execute(in_duckdb(query, dialect)).fetchall()
    found = np.array(found, dtype=object).astype(float)[:, 0]
    close(found[: len(new)], fitted.predict_proba(new)[:, 1])
    assert np.isnan(found[len(new) :]).all()
    assert len(found) == len(new) + len(NOT_SCORES)


@every_dialect
def test_segments_whose_names_need_quotes(dialect):
    scores, y = _two_class_rows()
    maps = {
        "o'clock": skcalib.PlattScaling().fit(scores, y),
        "back\\slash": skcalib.BetaCalibration().fit(scores, y),
        None: skcalib.HistogramBinning(3).fit(scores, y),
    }
    text = to_sql(maps, group="site", dialect=dialect)
    new = np.array([0.1, 0.6])
    sites = [*maps, "unknown"]
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
        found = [
            connection.execute(
                f"SELECT {text} FROM (SELECT ? AS site, ? AS p)", (site, p)
            ).fetchone()[0]
            for site in sites
            for p in new
        ]
    else:
        import duckdb

        text = in_duckdb(text, dialect)
        connection = duckdb.connect()  # the default one is that of other tests
        found = [
            connection.execute(
                f"SELECT {text} FROM (SELECT CAST(? AS VARCHAR) AS site,"
                " CAST(? AS DOUBLE) AS p)",
                (site, p),
            ).fetchone()[0]
            for site in sites
            for p in new
        ]
    expected = [one.predict_proba(new)[:, 1] for one in maps.values()]
    close(np.array(found[:6]), np.concatenate(expected))
    assert found[6:] == [None, None]


def test_numbers_of_oracle_are_binary():
    """Its DOUBLE PRECISION is a decimal number, which ends at 1e125."""
    fitted = skcalib.PlattScaling().fit(*_two_class_rows())
    text = to_sql(fitted, dialect="oracle")
    assert 'CAST("p" AS BINARY_DOUBLE) >= 0e0d' in text
    assert "DOUBLE PRECISION" not in text


def test_texts_stay_short():
    """LEAST and GREATEST that skip NULL would be doubled at each level in SQLite."""
    fitted = skcalib.PlattScaling().fit(*_two_class_rows())
    plain = len(to_sql(fitted, dialect="postgres"))
    for dialect in (*PARSED, "sqlite"):
        assert len(to_sql(fitted, dialect=dialect)) < 1.5 * plain


def test_what_a_dialect_cannot_say_is_refused(monkeypatch):
    pandas = pytest.importorskip("pandas")
    scores, y = _two_class_rows()
    table = pandas.DataFrame({"p": scores, "g": np.arange(len(y)) % 2 == 0})
    by_boolean = skcalib.GroupwiseRecalibrator(groups="g").fit(table, y)
    with refused(ValueError, "booleans", "oracle"):
        to_sql(by_boolean, dialect="oracle")
    shallow = replace(WAREHOUSES["tsql"], deepest_case=3)
    monkeypatch.setitem(WAREHOUSES, "tsql", shallow)
    deep = skcalib.HistogramBinning(binning=40).fit(scores, y)
    with refused(
        ValueError, "4 nested levels of CASE", "'tsql' takes 3", "to_sql_table"
    ):
        to_sql(deep, dialect="tsql")
    randomized = skcalib.UniformMassBinning(5, randomize=True, random_state=0)
    with refused(ValueError, "ids", "md5", "snowflake"):
        to_sql(randomized.fit(scores, y), ids="id", dialect="snowflake")
    tiny = skcalib.IsotonicCalibration().fit([1e-310, 0.5, 1], [0, 1, 1])
    with refused(ValueError, "smallest normal number", "mysql"):
        to_sql(tiny, dialect="mysql")


def test_without_sqlglot(monkeypatch):
    fitted = skcalib.PlattScaling().fit(*_two_class_rows())
    find = importlib.util.find_spec

    def without(name):
        return None if name == "sqlglot" else find(name)

    monkeypatch.setattr("skcalib.export._sql_warehouses.find_spec", without)
    assert "EXP" in to_sql(fitted, dialect="postgres")
    with refused(ImportError, "mysql", install("sql")):
        to_sql(fitted, dialect="mysql")
