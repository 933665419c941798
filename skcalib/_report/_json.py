"""JSON lines and JSON records as columns: a field b inside a is the column a.b."""

import json
from io import StringIO

from skcalib._report._error import ReportError


def json_columns(text, name):
    """Return the columns of JSON text, a dict of lists by name with None where a record
    lacks a field. `name` is that of the file, for messages.

    The text holds a record a line, a list of records, one record with such a list in
    it, or a record of columns.
    """
    return _columns(_records(text, name), name)


def _records(text, name):
    """Return the records of JSON text: an iterator for one record per line, a list, or
    one dict for a record that holds columns.
    """
    try:
        whole = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":  # one record after the other
            raise _damaged(name, error.lineno, error) from error
        return _lines(text, name)
    if isinstance(whole, list):
        return whole
    if not isinstance(whole, dict):
        raise ReportError(f"{name} is JSON, but holds no records.")
    if isinstance(whole.get("data"), list) and isinstance(whole.get("columns"), list):
        # The format of pandas with orient="split".
        names = whole["columns"]
        return [dict(zip(names, row, strict=True)) for row in whole["data"]]
    lists = []
    for key, value in whole.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lists.append(key)
    if len(lists) > 1:
        raise ReportError(
            f"{name} is JSON with several lists of records ({', '.join(lists)}): save"
            " one of them as a file."
        )
    if lists:
        return whole[lists[0]]
    return whole


def _lines(text, name):
    """Yield the record of each line that is not empty."""
    for number, line in enumerate(StringIO(text), start=1):
        if line.strip():
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise _damaged(name, number, error) from error


def _damaged(name, line, error):
    """Return the error for JSON that cannot be read at a line."""
    return ReportError(
        f"{name} looks like JSON, but line {line} is not ({error.msg}): write one"
        " record per line, or one list of records."
    )


def _columns(records, name):
    """Return records as a dict of lists by name of column; a dict of columns, each a
    list or a dict by row, as well.
    """
    if isinstance(records, dict):
        columns = {}
        for key, values in records.items():
            if isinstance(values, dict):
                values = list(values.values())
            columns[key] = values
        if not all(isinstance(values, list) for values in columns.values()):
            raise ReportError(
                f"{name} is one JSON record ({', '.join(list(records)[:6])}): write one"
                " record per line, or one list of records."
            )
        if len({len(values) for values in columns.values()}) > 1:
            raise ReportError(f"{name} is JSON with columns of different lengths.")
        return columns
    columns = {}
    n_records = 0
    for record in records:
        if not isinstance(record, dict):
            raise ReportError(
                f"{name} is JSON, but entry {n_records} is not a record: each must name"
                ' its fields, as in {"y": 1, "p": 0.7}.'
            )
        _append(columns, record, "", n_records)
        n_records += 1
    for values in columns.values():
        values += [None] * (n_records - len(values))
    return columns


def _append(columns, record, prefix, number):
    """Append the fields of a record, the `number`-th counted from 0, to the lists of
    columns. Their names follow `prefix`; those of a record inside have its name and a
    point before theirs.
    """
    for key, value in record.items():
        if isinstance(value, dict):
            _append(columns, value, f"{prefix}{key}.", number)
            continue
        values = columns.setdefault(prefix + key, [])
        if len(values) < number:
            values += [None] * (number - len(values))
        if len(values) > number:
            raise ReportError(
                f"record {number} of the JSON file has two fields {prefix + key!r}."
            )
        values.append(value)
