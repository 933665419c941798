"""What differs between engines: wrapping a table, fetching a small result, joining a small table."""

from importlib import import_module

import numpy as np

__all__ = ["beside", "fetched", "hidden_nan", "narwhals", "wrapped"]


def narwhals():
    """Return the module of Narwhals whose interface is kept stable."""
    try:
        return import_module("narwhals.stable.v2")
    except ImportError as error:
        raise ImportError('skcalib.engines needs narwhals: pip install "skcalib[engine]".') from error


def wrapped(data):
    """Return any table that Narwhals knows as a Narwhals frame, lazy or eager as it comes."""
    try:
        return narwhals().from_native(data)
    except TypeError:
        hint = " Open a file with skcalib.engines.scan." if isinstance(data, str) else ""
        raise TypeError(
            f"data must be a table that Narwhals knows (DuckDB, Polars, pandas, pyarrow, Dask, Ibis, Spark), found "
            f"{type(data).__name__}.{hint}"
        ) from None


def fetched(frame, keys=()):
    """Return a small lazy frame as a dict: lists for the columns `keys`, arrays of float64 or int64 for the others."""
    try:
        if frame.implementation.is_duckdb():  # NumPy is all that this takes
            columns = frame.to_native().fetchnumpy()
            lists = {name: _python_values(columns[name]) for name in keys}
        else:
            collected = frame.collect()
            columns = {name: collected[name].to_numpy() for name in collected.columns if name not in keys}
            lists = {name: collected[name].to_list() for name in keys}
    except Exception as error:
        if not type(error).__module__.startswith(("duckdb", "_duckdb")):
            raise
        kind, text = type(error).__name__, str(error)
        if "CSV" in text:
            shown = " ".join(text.split("Error: ", 1)[-1].split("Possible ")[0].split("Column ")[0].split())
            raise ValueError(f"The file cannot be read: {shown}") from error
        if kind == "ConversionException" and "nan" in text.lower():
            raise hidden_nan() from error
        raise
    lists = {name: [None if _is_missing(value) else value for value in values] for name, values in lists.items()}
    return lists | {name: _numbers(values) for name, values in columns.items() if name not in keys}


def hidden_nan():
    """Return the error for a table whose engine does not find the NaN that it holds."""
    return ValueError(
        "The table holds NaN that its engine does not find: DuckDB believes the metadata of Parquet files. Open them "
        "with skcalib.engines.scan, or with read_parquet(..., can_have_nan = true)."
    )


def _is_missing(value):
    """Return whether a key is missing: None, pandas' NA, or NaN, which is not equal to itself."""
    return value is None or type(value).__name__ == "NAType" or value != value


def _python_values(column):
    if column.dtype.kind == "M":  # nanoseconds would become integers
        column = column.astype("M8[us]")
    return column.tolist()


def _numbers(column):
    column = np.ma.filled(column.astype(np.float64), np.nan) if np.ma.is_masked(column) else np.asarray(column)
    return column.astype(np.int64 if column.dtype.kind in "biu" else np.float64, copy=False)


def beside(frame, columns):
    """Return a small table, a dict of arrays and lists, as a lazy frame of the same engine and connection.

    Columns that both have get the type that they have in `frame`.
    """
    nw, schema = narwhals(), frame.collect_schema()
    table = nw.from_native(_native_table(frame, columns)).lazy()
    return table.with_columns(*(nw.col(name).cast(schema[name]) for name in columns if name in schema))


def _native_table(frame, columns):
    native, engine = frame.to_native(), frame.implementation
    if engine.is_duckdb():
        skcalib_columns = {name: _array(values) for name, values in columns.items()}
        assert skcalib_columns  # DuckDB finds it by its name
        return native.query("skcalib_relation", "SELECT * FROM skcalib_columns")
    plain = {name: values if isinstance(values, list) else values.tolist() for name, values in columns.items()}
    if engine.is_ibis():
        return import_module("ibis").memtable(import_module("pyarrow").table(plain))
    if engine.is_dask():
        return import_module("dask.dataframe").from_pandas(import_module("pandas").DataFrame(plain), npartitions=1)
    if engine.is_spark_like():
        session = native.sparkSession if hasattr(native, "sparkSession") else native.session
        return session.createDataFrame(list(zip(*plain.values(), strict=True)), list(plain))
    return narwhals().from_dict(plain, backend=engine).to_native()


def _array(values):
    return np.array(values, dtype=object) if isinstance(values, list) else values
