"""What differs between engines: wrapping a table, fetching a small result, joining a
small table.
"""

from datetime import UTC
from importlib import import_module
from uuid import uuid4

import numpy as np

_LISTS = {"i": "BIGINT[]", "f": "DOUBLE[]"}


class _Narwhals:
    """The module of Narwhals whose interface is kept stable, imported where it is first
    used.
    """

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            module = import_module("narwhals.stable.v2")
        except ImportError as error:
            raise ImportError(
                'skcalib.engines needs narwhals: pip install "skcalib[engine]".'
            ) from error
        vars(self).update(vars(module))
        return getattr(module, name)


nw = _Narwhals()


def wrapped(data):
    """Return any table that Narwhals knows as a Narwhals frame, lazy or eager as it
    comes.
    """
    try:
        frame = nw.from_native(data)
    except TypeError:
        hint = (
            " Open a file with skcalib.engines.scan." if isinstance(data, str) else ""
        )
        raise TypeError(
            "data must be a table that Narwhals knows (DuckDB, Polars, pandas,"
            f" pyarrow, Dask, Ibis, Spark), found {type(data).__name__}.{hint}"
        ) from None
    if frame.implementation.is_sqlframe():
        # It knows too little of Spark's interface: no text of SQL in a column, no
        # table of Arrow, and each pass plans for seconds.
        raise TypeError(
            "Frames of SQLFrame cannot be used. Pass the table as its database has it,"
            " such as a DuckDB relation, or a frame of Ibis or PySpark."
        )
    return frame


def fetched(frame):
    """Return a small lazy frame of numbers as a dict of arrays of float64 or int64."""
    if frame.implementation.is_duckdb():  # NumPy is all that this takes
        columns = frame.to_native().fetchnumpy()
    else:
        collected = frame.collect()
        columns = {name: collected[name].to_numpy() for name in collected.columns}
    return {name: _numbers(values) for name, values in columns.items()}


def hidden_nan():
    """Return the error for a table whose engine does not find the NaN that it holds."""
    return ValueError(
        "The table holds NaN that its engine does not find: DuckDB believes the"
        " metadata of Parquet files. Open them with skcalib.engines.scan, or with"
        " read_parquet(..., can_have_nan = true)."
    )


def _numbers(column):
    column = (
        np.ma.filled(column.astype(np.float64), np.nan)
        if np.ma.is_masked(column)
        else np.asarray(column)
    )
    return column.astype(
        np.int64 if column.dtype.kind in "biu" else np.float64, copy=False
    )


def numbered(frame, name):
    """Return the distinct values of a column as Python has them, in order and without
    NULL, and a table of numbers.

    The table is a lazy frame of the same engine, with the columns `name` (the engine's
    own values) and `name`_number.
    """
    # Not `unique`, which on databases numbers all rows.
    distinct = (
        frame.group_by(name)
        .agg(nw.len().alias("n"))
        .select(name)
        .filter(~nw.col(name).is_null())
    )
    if frame.implementation.is_duckdb():
        return _numbered_duckdb(distinct.to_native(), name)
    distinct = distinct.collect()
    try:
        values = distinct[name].to_list()
    except ValueError:  # nanoseconds
        values = [None, None]  # not told apart
    values, order = _ordered(
        values, lambda: distinct.select(nw.col(name).cast(nw.String))[name].to_list()
    )
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    numbers = nw.new_series(
        f"{name}_number", places, nw.Int64, backend=distinct.implementation
    )
    return (
        values,
        nw.from_native(
            _in_engine(frame, distinct.with_columns(numbers).to_native())
        ).lazy(),
    )


def _numbered_duckdb(relation, name):
    """Number the values by texts, which DuckDB casts there and back without loss: a
    relation shows no connection.
    """
    column, kind = '"' + name.replace('"', '""') + '"', str(relation.types[0])
    value = (
        f"{column} AT TIME ZONE 'UTC'" if kind == "TIMESTAMP WITH TIME ZONE" else column
    )
    found = relation.project(f"{column}::VARCHAR, {value}").fetchall()
    texts, values = [text for text, _ in found], [value for _, value in found]
    if value != column:
        values = [moment.replace(tzinfo=UTC) for moment in values]
    values, order = _ordered(values, lambda: texts)
    codes = ",".join(texts[place].encode().hex() for place in order)
    text = f"decode(unhex(unnest(string_split('{codes}', ','))))"
    query = (
        f"SELECT ({text})::{kind} AS {column}, unnest(range({len(order)})) AS"
        f' {column[:-1]}_number"'
    )
    return values, nw.from_native(relation.query("skcalib_relation", query)).lazy()


def _ordered(values, texts):
    """Return the values in order, and that order; where Python does not tell some
    apart, what `texts()` gives.
    """
    values = texts() if len(set(values)) < len(values) else values
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:  # of several types
        order = sorted(range(len(values)), key=lambda place: str(values[place]))
    return [values[place] for place in order], order


def beside(frame, columns):
    """Return a small table, a dict of arrays of numbers, as a lazy frame of the same
    engine and connection.

    Columns that both have get the type that they have in `frame`.
    """
    schema = frame.collect_schema()
    table = nw.from_native(_native_table(frame, columns)).lazy()
    return table.with_columns(
        *(nw.col(name).cast(schema[name]) for name in columns if name in schema)
    )


def _native_table(frame, columns):
    columns = {name: np.asarray(values) for name, values in columns.items()}
    engine = frame.implementation
    if engine.is_duckdb():
        # Written into the query: a Python variable is found only by some connections,
        # and after a table of its name.
        lists = (
            f"'{values.tolist()}'::{_LISTS[values.dtype.kind]}"
            for values in columns.values()
        )
        shown = ", ".join(
            f'unnest({values}) AS "{name}"'
            for name, values in zip(columns, lists, strict=True)
        )
        return frame.to_native().query("skcalib_relation", f"SELECT {shown}")
    # Spark makes no process of Python for a table of Arrow
    if engine.is_ibis() or engine.is_spark_like():
        return _in_engine(frame, import_module("pyarrow").table(columns))
    if engine.is_dask():
        return _in_engine(frame, import_module("pandas").DataFrame(columns))
    return nw.from_dict(columns, backend=engine).to_native()


def _in_engine(frame, table):
    """Return a small table, as `collect` makes it for an engine, as one of the
    engine.
    """
    engine = frame.implementation
    if engine.is_ibis():
        return import_module("ibis").memtable(table)
    if engine.is_dask():
        return import_module("dask.dataframe").from_pandas(table, npartitions=1)
    return _session(frame).createDataFrame(table) if engine.is_spark_like() else table


def _session(frame):
    native = frame.to_native()
    return native.sparkSession if hasattr(native, "sparkSession") else native.session


def with_sql(frame, expression, name, dialect):
    """Return a lazy frame with a column that an expression of SQL gives, in the dialect
    of Spark or else DuckDB's.
    """
    native, column = frame.to_native(), f"{expression} AS {dialect.identifier(name)}"
    if frame.implementation.is_spark_like():
        native = native.selectExpr("*", column)
    elif frame.implementation.is_duckdb():
        native = native.project(f"*, {column}")
    else:
        # As `Table.sql` does it, which asks the database for a schema that is known
        # here.
        ibis, operations = import_module("ibis"), import_module("ibis.expr.operations")
        view, backend = f"skcalib_{uuid4().hex}", ibis.get_backend(native)
        query = f"SELECT *, {column} FROM {view}"
        query = import_module("sqlglot").transpile(
            query, read="duckdb", write=backend.dialect
        )[0]
        schema = ibis.schema({**native.schema(), name: "float64"})
        native = operations.SQLStringView(
            native.alias(view).op(), query, schema
        ).to_expr()
    return nw.from_native(native)
