"""Tables of databases: SQLite by Python itself, DuckDB by DuckDB, and PostgreSQL by
DuckDB with its extension or by psycopg.
"""

import re
import sqlite3
from importlib.util import find_spec
from json import dumps
from pathlib import Path

from skcalib._install import install
from skcalib._report._error import ReportError

_URL = re.compile(r"(duckdb|sqlite|postgres|postgresql):(.*)", re.DOTALL)
_TABLES = (  # of DuckDB and of PostgreSQL
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema"
    " NOT IN ('information_schema', 'pg_catalog') ORDER BY table_schema, table_name"
)
_IN_SQLITE = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE"
    " 'sqlite_%' ORDER BY name"
)


_PASSWORD = re.compile(
    r"(://[^/@:\s]*):[^@\s]*@|([?&]password=)[^&\s'\"]*|(\bpassword\s*=\s*)\S+"
)


def without_passwords(text):
    """Return a text without the passwords that URLs of databases in it hold."""
    return _PASSWORD.sub(_masked_password, text)


def _masked_password(match):
    """Return the replacement for a match of `_PASSWORD`: the text before the password,
    without the password.
    """
    user_of_url, url_option, keyword = match.groups()
    if user_of_url is not None:
        return f"{user_of_url}@"
    return f"{url_option or keyword}..."


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
    # By some conventions sqlite:///a.db is a relative path, sqlite:////a.db an absolute
    # one.
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


def duckdb_relation(location, name, table, query):
    """Return the DuckDB relation of a table or query in a DuckDB file, and the Python
    that makes it.

    `location` is its path, `name` the file as the user gave it.
    """
    if find_spec("duckdb") is None:
        raise ReportError(f"Reading {name} requires DuckDB: {install('engine')}.")
    import duckdb

    _check_file(location, name)
    opening = f"duckdb.connect({dumps(location)}, read_only=True)"
    try:
        connection = duckdb.connect(location, read_only=True)
        return _asked_of_duckdb(connection, opening, name, table, query)
    except duckdb.Error as error:
        raise ReportError(f"{name} cannot be read by DuckDB: {error}") from error


def postgres_relation(url, name, table, query):
    """Return the DuckDB relation of a table or query of a PostgreSQL server and the
    Python that makes it; None if DuckDB or its extension for PostgreSQL is not there.

    `name` is the URL without a password.
    """
    if find_spec("duckdb") is None:
        return None
    import duckdb

    connection = duckdb.connect()
    try:
        connection.execute("LOAD postgres")
    except duckdb.Error:
        if find_spec("psycopg") is not None:
            return None  # rather than download the extension
        try:
            connection.execute("INSTALL postgres; LOAD postgres")
        except duckdb.Error:  # it is downloaded, which may be impossible here
            return None
    quoted_url = "'" + url.replace("'", "''") + "'"
    attaching = f"ATTACH {quoted_url} AS given (TYPE postgres, READ_ONLY); USE given"
    opening = f"duckdb.connect().execute({dumps(without_passwords(attaching))})"
    try:
        connection.execute(attaching)
        return _asked_of_duckdb(connection, opening, name, table, query)
    except duckdb.Error as error:
        raise _unreadable_by("DuckDB", name, error) from error


def _asked_of_duckdb(connection, opening, name, table, query):
    """Return the relation of a table or query, and the Python that makes it after
    `opening`, which makes the connection.
    """
    tables = [_qualified(*row) for row in connection.execute(_TABLES).fetchall()]
    text = asked(table, query, tables, name)
    return connection.sql(text), f"{opening}.sql({dumps(text)})"


def postgres_frame(url, name, table, query):
    """Return a DataFrame of a table or query of a PostgreSQL server, read by psycopg,
    and the Python that makes it. `name` is the URL without a password.
    """
    if find_spec("psycopg") is None:
        raise ReportError(
            f"{name} needs psycopg to be read (pip install 'psycopg[binary]'), or"
            f" DuckDB ({install('engine')}) and its extension postgres, which DuckDB"
            " downloads once: duckdb.sql('INSTALL postgres')."
        )
    import pandas as pd
    import psycopg
    from psycopg.types.numeric import FloatLoader

    try:
        with psycopg.connect(url) as connection:
            connection.read_only = True
            connection.adapters.register_loader("numeric", FloatLoader)
            rows = connection.execute(_TABLES).fetchall()
            text = asked(table, query, [_qualified(*row) for row in rows], name)
            cursor = connection.execute(text)
            if cursor.description is None:
                raise ReportError(f"--query {query!r} returns no table.")
            names = [column.name for column in cursor.description]
            frame = pd.DataFrame(cursor.fetchall(), columns=names)
    except psycopg.Error as error:
        raise _unreadable_by("psycopg", name, error) from error
    opening = f"psycopg.connect({dumps(without_passwords(url))})"
    return frame, f"pd.read_sql_query({dumps(text)}, {opening})"


def _unreadable_by(package, name, error):
    """Return the error for a database of which a package says why it cannot be read, in
    one line.
    """
    why = " ".join(without_passwords(str(error)).split())
    return ReportError(f"{name} cannot be read by {package}: {why}")


def _qualified(schema, table):
    """Return the name of a table with that of its schema, unless that is the usual
    one.
    """
    return table if schema in ("main", "public") else f"{schema}.{table}"


def sqlite_frame(location, name, table, query):
    """Return a DataFrame of a table or query of an SQLite file, and the Python that
    makes it.
    """
    import pandas as pd

    _check_file(location, name)
    connection = sqlite3.connect(
        f"{Path(location).resolve().as_uri()}?mode=ro", uri=True
    )
    try:
        tables = [row[0] for row in connection.execute(_IN_SQLITE)]
        text = asked(table, query, tables, name)
        code = f"pd.read_sql_query({dumps(text)}, sqlite3.connect({dumps(location)}))"
        return pd.read_sql_query(text, connection), code
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        raise ReportError(f"{name} cannot be read as SQLite: {error}") from error
    finally:
        connection.close()


def _check_file(location, name):
    """Raise if there is no database at a path: to open it would make an empty one."""
    if not Path(location).is_file():
        raise ReportError(f"there is no database {name}.")
