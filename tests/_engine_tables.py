"""Prediction tables for tests: the same rows in every engine that is installed."""

import os
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest

REQUIRE_SPARK = os.environ.get("SKCALIB_REQUIRE_SPARK") == "1"
SPARK_MASTER = os.environ.get("SKCALIB_SPARK_MASTER", "local[2]")
EAGER = ("pandas", "pyarrow", "polars")
LAZY = ("duckdb", "polars_lazy", "ibis", "dask")
_PACKAGES = {
    "pandas": ["pandas"],
    "pyarrow": ["pyarrow"],
    "polars": ["polars"],
    "polars_lazy": ["polars"],
    "duckdb": ["duckdb"],
    "ibis": ["ibis", "duckdb"],
    "dask": ["dask", "pandas"],
    "spark": ["pyspark", "pandas"],
}


def _parameters(names):
    for name in names:
        missing = [
            package
            for package in ("narwhals", "pyarrow", *_PACKAGES[name])
            if find_spec(package) is None
        ]
        marks = [
            pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")
        ]
        if name == "spark":
            marks = [pytest.mark.slow] if REQUIRE_SPARK else [pytest.mark.slow, *marks]
        # An eager and a lazy one are quick enough for each run.
        if name not in ("polars", "duckdb", "spark"):
            marks.append(pytest.mark.slow)
        yield pytest.param(name, marks=marks)


every_engine = pytest.mark.parametrize(
    "engine", list(_parameters([*EAGER, *LAZY, "spark"]))
)
every_local_engine = pytest.mark.parametrize(
    "engine", list(_parameters([*EAGER, *LAZY]))
)


def native(engine, **columns):
    """Return a table of columns (arrays, or lists in which None is NULL) in an
    engine.
    """
    import pyarrow as pa

    table = pa.table({name: _arrow(values) for name, values in columns.items()})
    if engine == "pyarrow":
        return table
    if engine in ("polars", "polars_lazy"):
        import polars as pl

        frame = pl.from_arrow(table)
        return frame.lazy() if engine == "polars_lazy" else frame
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.register("arrow", table)
        connection.execute("CREATE TABLE predictions AS SELECT * FROM arrow")
        return connection.table("predictions")
    if engine == "ibis":
        import ibis

        backend = ibis.duckdb.connect()
        backend.con.register("arrow", table)
        backend.con.execute("CREATE TABLE predictions AS SELECT * FROM arrow")
        return backend.table("predictions")
    if engine == "dask":
        import dask.dataframe as dd

        return dd.from_pandas(table.to_pandas(), npartitions=3)
    if engine == "spark":
        return spark_session().createDataFrame(table)
    return table.to_pandas()


def column(table, name, *, by):
    """Return a column of a native table as float64, NULL as NaN, in the order of
    another column.
    """
    import narwhals.stable.v2 as nw

    # at once: no engine promises an order
    both = nw.from_native(table).lazy().select(name, by).collect()
    values = np.array(
        [np.nan if value is None else value for value in both[name].to_list()],
        dtype=np.float64,
    )
    return values[np.argsort(both[by].to_numpy(), kind="stable")]


def _arrow(values):
    import pyarrow as pa

    return pa.array(values, from_pandas=False)


@cache
def spark_session():
    """Return one Spark session for all tests."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.log.level": "ERROR",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        # To start and to compile take longer than the queries of tests.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master(SPARK_MASTER)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
