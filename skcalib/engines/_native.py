"""What differs between engines: wrapping a table, fetching a small result, joining a
small table.
"""

from datetime import UTC
from importlib import import_module
from uuid import uuid4

import numpy as np

from skcalib._install import install

_LISTS = {"i": "BIGINT[]", "f": "DOUBLE[]"}


class _Narwhals:
    """The module ``narwhals.stable.v2``, imported on the first use of its names."""

    def __getattr__(self, name):
        """Return a name of the module. The first call imports it and copies all its
        names here, so that Python does not call this method again.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            module = import_module("narwhals.stable.v2")
        except ImportError as error:
            raise ImportError(
                f"skcalib.engines needs narwhals: {install('engine')}."
            ) from error
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


nw = _Narwhals()


def wrapped(data):
    """Return a table that Narwhals supports as its DataFrame, or its LazyFrame if the
    table is lazy.
    """
    try:
        frame = nw.from_native(data)
    except TypeError:
        hint = ""
        if isinstance(data, str):
            hint = " Open a file with skcalib.engines.scan."
        raise TypeError(
            "data must be a table that Narwhals supports (DuckDB, Polars, pandas,"
            f" pyarrow, Dask, Ibis, Spark), found {type(data).__name__}.{hint}"
        ) from None
    if frame.implementation.is_sqlframe():
        # It knows too little of Spark's interface: no text of SQL in a column, no
        # table of Arrow, and each pass plans for seconds.
        raise TypeError(
            "SQLFrame data frames are not supported. Pass a table of the database"
            " itself, such as a DuckDB relation, or an Ibis or PySpark frame."
        )
    return frame


def fetched(frame):
    """Return a small lazy frame of numbers as a dict of arrays of float64 or int64."""
    if frame.implementation.is_duckdb():
        # Needs NumPy only; `collect` would need pyarrow.
        columns = frame.to_native().fetchnumpy()
    else:
        collected = frame.collect()
        columns = {name: collected[name].to_numpy() for name in collected.columns}
    return {name: _numbers(values) for name, values in columns.items()}


def hidden_nan():
    """Return the error for a table whose engine does not detect its NaN."""
    return ValueError(
        "The table contains NaN values that its engine does not detect: DuckDB trusts"
        " the metadata of Parquet files. Open them with skcalib.engines.scan, or with"
        " read_parquet(..., can_have_nan = true)."
    )


def _numbers(column):
    """Return a column as integers or floats of 64 bits, in which missing values are
    NaN.
    """
    if np.ma.is_masked(column):
        column = np.ma.filled(column.astype(np.float64), np.nan)
    column = np.asarray(column)
    if column.dtype.kind in "biu":
        return column.astype(np.int64, copy=False)
    return column.astype(np.float64, copy=False)


def numbered(frame, name):
    """Return the distinct values of a column other than NULL as a sorted list of Python
    objects, and a lazy frame of the same engine that numbers them.

    The frame has the columns `name`, with the values as the engine has them, and
    `name`_number, with their positions in the list.
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
    except ValueError:
        # Times with nanoseconds have no Python object: texts are used for them.
        values = None

    if values is None or not _are_distinct(values):
        # As the engine writes them.
        values = distinct.select(nw.col(name).cast(nw.String))[name].to_list()
    order = _sorting_order(values)
    # The position in the sorted list of each value of `distinct`.
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order))
    numbers = nw.new_series(
        f"{name}_number", positions, nw.Int64, backend=distinct.implementation
    )
    table = _in_engine(frame, distinct.with_columns(numbers).to_native())
    return [values[i] for i in order], nw.from_native(table).lazy()


def _numbered_duckdb(relation, name):
    """Return the sorted list of the distinct values of the column `name` of a DuckDB
    relation, and a lazy frame of the values with their numbers.

    A relation does not give access to its connection, so that the numbered values are
    written into a query: as texts, which DuckDB casts there and back without loss.
    """
    quoted = name.replace('"', '""')
    column = f'"{quoted}"'
    number = f'"{quoted}_number"'
    column_type = str(relation.types[0])
    has_time_zone = column_type == "TIMESTAMP WITH TIME ZONE"
    value = column
    if has_time_zone:
        value = f"{column} AT TIME ZONE 'UTC'"
    texts = []
    values = []
    for text, distinct in relation.project(f"{column}::VARCHAR, {value}").fetchall():
        if has_time_zone:
            distinct = distinct.replace(tzinfo=UTC)
        texts.append(text)
        values.append(distinct)
    if not _are_distinct(values):
        values = texts
    order = _sorting_order(values)
    # In hexadecimal digits no text needs quotes.
    codes = ",".join(texts[i].encode().hex() for i in order)
    text = f"decode(unhex(unnest(string_split('{codes}', ','))))"
    query = (
        f"SELECT ({text})::{column_type} AS {column},"
        f" unnest(range({len(order)})) AS {number}"
    )
    table = nw.from_native(relation.query("skcalib_relation", query)).lazy()
    return [values[i] for i in order], table


def _are_distinct(values):
    return len(set(values)) == len(values)


def _sorting_order(values):
    """Return the positions of values in the order that sorts them; values of several
    types are sorted as texts.
    """
    positions = range(len(values))
    try:
        return sorted(positions, key=lambda i: values[i])
    except TypeError:
        return sorted(positions, key=lambda i: str(values[i]))


def joinable(frame, columns):
    """Return a small table, a dict of arrays of numbers, as a lazy frame that can be
    joined to `frame`: of its engine and connection, and with the same types in the
    columns that both have.
    """
    schema = frame.collect_schema()
    table = nw.from_native(_native_table(frame, columns)).lazy()
    shared = []
    for name in columns:
        if name in schema:
            shared.append(nw.col(name).cast(schema[name]))
    return table.with_columns(*shared)


def _native_table(frame, columns):
    """Return columns of numbers as a table of the engine of a frame."""
    columns = {name: np.asarray(values) for name, values in columns.items()}
    engine = frame.implementation
    if engine.is_duckdb():
        # Written into the query: a Python variable is found only by some connections,
        # and after a table of its name.
        selected = []
        for name, values in columns.items():
            numbers = f"'{values.tolist()}'::{_LISTS[values.dtype.kind]}"
            selected.append(f'unnest({numbers}) AS "{name}"')
        query = f"SELECT {', '.join(selected)}"
        return frame.to_native().query("skcalib_relation", query)
    # Spark makes no process of Python for a table of Arrow
    if engine.is_ibis() or engine.is_spark_like():
        return _in_engine(frame, import_module("pyarrow").table(columns))
    if engine.is_dask():
        return _in_engine(frame, import_module("pandas").DataFrame(columns))
    return nw.from_dict(columns, backend=engine).to_native()


def _in_engine(frame, table):
    """Return a small table in memory, as `collect` gives, as a native table of the
    engine of `frame`.
    """
    engine = frame.implementation
    if engine.is_ibis():
        return import_module("ibis").memtable(table)
    if engine.is_dask():
        return import_module("dask.dataframe").from_pandas(table, npartitions=1)
    if engine.is_spark_like():
        return _session(frame).createDataFrame(table)
    return table


def _session(frame):
    """Return the Spark session of a frame."""
    native = frame.to_native()
    if hasattr(native, "sparkSession"):
        return native.sparkSession
    return native.session


def with_sql(frame, expression, name, dialect):
    """Return the lazy frame of a database or of Spark with a new column `name` that an
    SQL expression computes.

    The expression is in the dialect of Spark for Spark, else in that of DuckDB, which
    Ibis has translated into that of its database. `dialect` is the `Dialect`.
    """
    native = frame.to_native()
    column = f"{expression} AS {dialect.identifier(name)}"
    if frame.implementation.is_spark_like():
        native = native.selectExpr("*", column)
    elif frame.implementation.is_duckdb():
        native = native.project(f"*, {column}")
    else:
        # This is what `Table.sql` of Ibis does: it names the table, selects from it and
        # wraps the query. It would also ask the database for the schema, known here.
        ibis = import_module("ibis")
        operations = import_module("ibis.expr.operations")
        view = f"skcalib_{uuid4().hex}"
        query = f"SELECT *, {column} FROM {view}"
        written = ibis.get_backend(native).dialect
        (query,) = import_module("sqlglot").transpile(
            query, read="duckdb", write=written
        )
        schema = ibis.schema({**native.schema(), name: "float64"})
        operation = operations.SQLStringView(native.alias(view).op(), query, schema)
        native = operation.to_expr()
    return nw.from_native(native)
