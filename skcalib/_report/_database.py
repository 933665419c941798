"""Tables of databases: SQLite by Python itself, DuckDB and PostgreSQL by DuckDB."""

import re
import sqlite3
from importlib.util import find_spec
from pathlib import Path

from skcalib._install import install
from skcalib._report._error import ReportError

_URL = re.compile(r"(duckdb|sqlite|postgres|postgresql):(.*)", re.DOTALL)
_IN_DUCKDB = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN"
    " ('information_schema', 'pg_catalog') ORDER BY table_name"
)
_IN_SQLITE = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE"
    " 'sqlite_%' ORDER BY name"
)


def is_url(text):
    """Return whether what the user gave for a file is the URL of a database."""
    return _URL.match(text) is not None


def parts_of(text):
    """Return the kind of a database, "duckdb", "sqlite" or "postgres", and its path or,
    for PostgreSQL, its URL.
    """
    kind, rest = _URL.match(text).groups()
    if kind.startswith("postgres"):
        return "postgres", text
    path = re.sub(r"^//", "", rest)
    # sqlite:///a.db is a relative path to some, sqlite:////a.db an absolute one.
    path = re.sub(r"^//+", "/", path)
    if not Path(path).exists() and Path(path.lstrip("/")).exists():
        path = path.lstrip("/")
    return kind, path


def asked(table, query, tables, name):
    """Return the SQL query for a table or for a query of the user.

    `tables` are the names of the tables that there are, and `name` is the database, for
    messages.
    """
    if query is not None:
        return query.strip().rstrip(";")
    if table is None and len(tables) == 1:
        (table,) = tables
    if table is None:
        found = f"it has {', '.join(tables[:12])}" if tables else "it has no table"
        raise ReportError(f"{name} is a database: name a table with --table; {found}.")
    if tables and table not in tables and "." not in table:
        raise ReportError(
            f"{name} has no table {table!r}; it has {', '.join(tables[:12])}."
        )
    return f"SELECT * FROM {quoted(table)}"


def quoted(name):
    """Return the name of a table or column as SQL reads it; the parts of a.b are quoted
    one by one.
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def duckdb_relation(kind, location, name, table, query):
    """Return the DuckDB relation of a table or query in a database, and the query.

    `kind` and `location` are what `parts_of` returns; `name` is the database as the
    user gave it, without a password in messages.
    """
    if find_spec("duckdb") is None:
        raise ReportError(f"{name} needs DuckDB to be read: {install('engine')}.")
    import duckdb

    try:
        if kind == "duckdb":
            _check_file(location, name)
            connection = duckdb.connect(location, read_only=True)
        else:
            connection = duckdb.connect()
            connection.execute("INSTALL postgres; LOAD postgres")
            attached = location.replace("'", "''")
            connection.execute(
                f"ATTACH '{attached}' AS given (TYPE postgres, READ_ONLY); USE given"
            )
        tables = [row[0] for row in connection.execute(_IN_DUCKDB).fetchall()]
        text = asked(table, query, tables, name)
        return connection.sql(text), text
    except duckdb.Error as error:
        raise ReportError(f"{name} cannot be read by DuckDB: {error}") from error


def sqlite_frame(location, name, table, query):
    """Return a DataFrame of a table or query of an SQLite file, and the query."""
    import pandas as pd

    _check_file(location, name)
    connection = sqlite3.connect(
        f"{Path(location).resolve().as_uri()}?mode=ro", uri=True
    )
    try:
        tables = [row[0] for row in connection.execute(_IN_SQLITE)]
        text = asked(table, query, tables, name)
        return pd.read_sql_query(text, connection), text
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        raise ReportError(f"{name} cannot be read as SQLite: {error}") from error
    finally:
        connection.close()


def _check_file(location, name):
    """Raise if there is no database at a path: to open it would make an empty one."""
    if not Path(location).is_file():
        raise ReportError(f"there is no database {name}.")
