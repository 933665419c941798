"""Texts of SQL for more dialects: one of PostgreSQL, transpiled by sqlglot.

What all of these say in the same way is left as it is. What a dialect cannot say
exactly is refused, by its name.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from skcalib._install import install

_SMALLEST = float(np.finfo(np.float64).smallest_normal)
_DEEPEST_CASE = 10  # SQL Server refuses more levels of CASE in each other


@dataclass(frozen=True)
class Warehouse:
    """Properties of a dialect that sqlglot does not know.

    `double`: the type of a number of 64 bits, where it is not that of sqlglot; its
    literals then end in "d". `has_booleans`: whether a group may be TRUE or FALSE.
    `national_text`: whether only literals N'...' hold any character. `folds_case`:
    whether texts that differ in case are usually equal.
    `deepest_case`: how many CASE expressions may be nested. `table`: the frame around
    the rows of a table, "values" for a list of VALUES with names, "with" for the same
    in front of the query, "select" for a SELECT of each row.
    """

    name: str
    double: str | None = None
    has_booleans: bool = True
    deepest_case: int | None = None
    national_text: bool = False
    folds_case: bool = False
    table: str = "values"
    from_nothing: str = ""


WAREHOUSES = {
    warehouse.name: warehouse
    for warehouse in (
        Warehouse("snowflake"),
        Warehouse("bigquery"),
        Warehouse("redshift"),
        Warehouse("databricks"),
        Warehouse(
            "tsql",
            deepest_case=_DEEPEST_CASE,
            national_text=True,
            folds_case=True,
        ),
        # DOUBLE PRECISION is a decimal number there, up to 1e125.
        Warehouse(
            "oracle",
            double="BINARY_DOUBLE",
            has_booleans=False,
            table="select",
            from_nothing=" FROM DUAL",
        ),
        Warehouse("mysql", folds_case=True),
        Warehouse("sqlite", table="with"),
    )
}


def transpiled(text, name):
    """Return a text of PostgreSQL in another dialect.

    Parameters
    ----------
    text : str
        An expression, a query or a statement of PostgreSQL.
    name : str
        A key of `WAREHOUSES`.

    Returns
    -------
    text : str
        The text in that dialect.

    Raises
    ------
    ImportError
        If sqlglot is not installed.
    ValueError
        If the text cannot be expressed in the dialect.
    """
    if find_spec("sqlglot") is None:
        raise ImportError(
            f"dialect={name!r} needs sqlglot: {install('sql')}. The dialects"
            " 'ansi', 'duckdb', 'spark' and 'postgres' do not need it."
        )
    from sqlglot import ErrorLevel, parse_one
    from sqlglot.errors import SqlglotError

    warehouse = WAREHOUSES[name]
    try:
        tree = parse_one(text, read="postgres")
        _check(tree, warehouse)
        if warehouse.folds_case:
            _check_texts(tree, warehouse)
        _rewrite(tree, warehouse)
        return tree.sql(dialect=name, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        raise ValueError(
            f"This map cannot be written in the dialect {name!r}: {error}."
        ) from None


def _check(tree, warehouse):
    """Raise a ValueError for what the dialect cannot say, in a tree of sqlglot."""
    from sqlglot import expressions

    for literal in tree.find_all(expressions.Literal):
        if not literal.is_string and 0 < float(literal.this) < _SMALLEST:
            raise ValueError(
                f"The map contains the number {literal.this}, which {warehouse.name!r}"
                " cannot represent: it is below the smallest normal number."
            )
    if not warehouse.has_booleans and tree.find(expressions.Boolean) is not None:
        raise ValueError(
            f"{warehouse.name!r} has no boolean columns, but the groups are booleans:"
            " use numbers or strings."
        )
    if warehouse.deepest_case is not None:
        depth = _depth_of_case(tree)
        if depth > warehouse.deepest_case:
            raise ValueError(
                f"The map needs {depth} nested levels of CASE, but {warehouse.name!r}"
                f" takes {warehouse.deepest_case}. For one score and two classes, use"
                " to_sql_table."
            )


def _check_texts(tree, warehouse):
    """Raise a ValueError if two texts in a tree, such as names of groups, are equal for
    a dialect that ignores case.
    """
    from sqlglot import expressions

    spellings = {}
    for literal in tree.find_all(expressions.Literal):
        if not literal.is_string:
            continue
        folded = literal.this.casefold().rstrip(" ")
        first = spellings.setdefault(folded, literal.this)
        if first != literal.this:
            raise ValueError(
                f"The strings {first!r} and {literal.this!r} differ only in case, which"
                f" columns of {warehouse.name!r} usually treat as equal: rename one of"
                " the groups."
            )


def _depth_of_case(tree):
    """Return how many CASE stand in each other at most, in a tree of sqlglot."""
    from sqlglot import expressions

    deepest = 0
    for case in tree.find_all(expressions.Case):
        depth = 1
        above = case.parent
        while above is not None:
            depth += isinstance(above, expressions.Case)
            above = above.parent
        deepest = max(deepest, depth)
    return deepest


def _rewrite(tree, warehouse):
    """Change, in place, nodes of a tree of sqlglot for PostgreSQL that it would
    translate into SQL that is longer, or less exact, than the dialect allows.
    """
    from sqlglot import expressions

    # LEAST and GREATEST of PostgreSQL skip NULL, for which sqlglot would add code. Rows
    # with NULL are excluded by a condition anyway.
    for node in tree.find_all(expressions.Least, expressions.Greatest):
        node.set("ignore_nulls", False)
    if warehouse.national_text:
        for literal in tree.find_all(expressions.Literal):
            if literal.is_string:
                literal.replace(expressions.National(this=literal.this))
    if warehouse.double is None:  # the type that sqlglot writes is right
        return
    for cast in tree.find_all(expressions.Cast):
        if cast.to.is_type(expressions.DataType.Type.DOUBLE):
            kind = expressions.DataType(
                this=expressions.DataType.Type.USERDEFINED, kind=warehouse.double
            )
            cast.set("to", kind)
    for literal in tree.find_all(expressions.Literal):
        if not literal.is_string and "e" in literal.this:
            literal.set("this", literal.this + "d")  # a double, not a decimal


def table_text(name, table, names, rows):
    """Return the PostgreSQL statement that creates a table, in the form that a dialect
    accepts.

    Parameters
    ----------
    name : str
        A key of `WAREHOUSES`.
    table : str
        The table, in quotes.
    names : list of str
        Its columns, in quotes.
    rows : list of list of str
        The values of each row.

    Returns
    -------
    text : str
        The statement, which `transpiled` translates into the dialect.
    """
    warehouse = WAREHOUSES[name]
    listed = ", ".join(names)
    if warehouse.table == "select":
        selects = []
        for row in rows:
            pairs = zip(row, names, strict=True)
            shown = ",".join(f"{value} AS {column}" for value, column in pairs)
            selects.append(f"SELECT {shown}{warehouse.from_nothing}")
        return f"CREATE TABLE {table} AS {' UNION ALL '.join(selects)}"
    values = ", ".join(f"({','.join(row)})" for row in rows)
    if warehouse.table == "with":
        return (
            f"CREATE TABLE {table} AS WITH pieces ({listed}) AS (VALUES {values})"
            " SELECT * FROM pieces"
        )
    return (
        f"CREATE TABLE {table} AS SELECT * FROM (VALUES {values}) AS pieces ({listed})"
    )
