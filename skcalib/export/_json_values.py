"""Plain values as JSON and back: numbers exactly, arrays with their type, and nothing
that could run.

JSON has no arrays of a type, no tuples, no infinities and no keys but strings. They are
written as an object with one telling key: ``{"array": [...], "dtype": "float64"}``,
``{"tuple": [...]}``, ``{"pairs": [[key, value], ...]}`` and ``{"number": "inf"}``.
Inside an array infinities are the texts "inf" and "-inf".
"""

import math
from array import array

import numpy as np

_INFINITIES = {"inf": math.inf, "-inf": -math.inf}
_DTYPES = {
    **dict.fromkeys(("float64", "float32", "float16"), "number"),
    **dict.fromkeys(
        ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
        "integer",
    ),
    "bool": "boolean",
    "str": "string",
    "object": "string",
}
_KINDS = {"number": int | float, "integer": int, "boolean": bool, "string": str}


class Defect(Exception):
    """A defect in a document and its position."""

    def __init__(self, where, problem):
        super().__init__(f"{where}: {problem}")


class NotWritable(Exception):
    """A value that must not be written as JSON."""


def as_json(value, nested):
    """Return a value as JSON; ``nested(value)`` returns that of a value which this
    function does not know.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str | int | float):
        return _scalar_as_json(value)
    if isinstance(value, np.ndarray):
        return _array_as_json(value)
    if isinstance(value, list | array):
        return [as_json(item, nested) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [as_json(item, nested) for item in value]}
    if isinstance(value, dict):
        pairs = []
        for key, item in value.items():
            pairs.append([as_json(key, nested), as_json(item, nested)])
        return {"pairs": pairs}
    return nested(value)


def _scalar_as_json(value):
    """Return a plain value as JSON, which has no infinite numbers: these become a dict
    with a text.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": _infinity(value)}
    return value


def described(value):
    """Return a description of a value that cannot be written."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    return f"an object of the class {type(value).__name__}"


def from_json(data, where, nested):
    """Return the value of a piece of JSON; raise a `Defect` if it is not valid.

    `where` is its place in the document, for messages. ``nested(data, where)`` returns
    the value of an object that this function does not know.
    """
    if isinstance(data, float) and not math.isfinite(data):
        raise Defect(where, f"must be a finite number, found {data!r}")
    if data is None or isinstance(data, bool | str | int | float):
        return data
    if isinstance(data, list):
        return [from_json(item, f"{where}[{i}]", nested) for i, item in enumerate(data)]
    if not isinstance(data, dict):
        raise Defect(where, f"must be JSON, found {described(data)}")
    return _object_from_json(data, where, nested)


def _object_from_json(data, where, nested):
    """Return the value of an object of JSON: a number, array, tuple or dict as
    `as_json` writes them, otherwise ``nested(data, where)``.
    """
    keys = data.keys()
    if keys == {"number"}:
        name = data["number"]
        if not isinstance(name, str) or name not in _INFINITIES:
            raise Defect(where, f"must be the number 'inf' or '-inf', found {name!r}")
        return _INFINITIES[name]
    if keys == {"array", "dtype"}:
        return _array_from_json(data["array"], data["dtype"], where)
    if keys == {"tuple"} and isinstance(data["tuple"], list):
        return tuple(from_json(data["tuple"], where, nested))
    if keys == {"pairs"} and isinstance(data["pairs"], list):
        return _dict_from_json(data["pairs"], where, nested)
    return nested(data, where)


def _infinity(value):
    """Return the text of an infinite number; raise a `NotWritable` for NaN."""
    if math.isnan(value):
        raise NotWritable("NaN")
    if value > 0:
        return "inf"
    return "-inf"


def _array_as_json(values):
    """Return an array as a dict with its entries, as nested lists, and the name of its
    type; floats that JSON lacks are written as text.
    """
    name = values.dtype.name
    if values.dtype.kind == "U":
        name = "str"
    is_known = name in _DTYPES
    if name == "object":
        is_known = all(isinstance(item, str) for item in values.flat)
    if not is_known:
        raise NotWritable(f"an array of the type {values.dtype}")
    items = values.astype(object)
    if values.dtype.kind == "f":
        # the position of each infinite entry
        for place in zip(*np.nonzero(~np.isfinite(values)), strict=True):
            items[place] = _infinity(values[place])
    return {"array": items.tolist(), "dtype": name}


def _array_from_json(items, dtype, where):
    """Return the array that nested lists hold, whose every entry must be of the type
    `dtype`, a name such as "float64".
    """
    is_known = isinstance(dtype, str) and dtype in _DTYPES
    if not is_known or not isinstance(items, list):
        raise Defect(
            where,
            f"must be a list with one of the types {', '.join(_DTYPES)}, found the type"
            f" {dtype!r}",
        )
    # Where rows differ in length, this is an array of lists, whose items are refused.
    entries = np.array(items, dtype=object)
    if entries.ndim > 2:
        raise Defect(where, "is nested too deeply")
    checked = []
    for i, item in enumerate(entries.flat):
        checked.append(_item(item, _DTYPES[dtype], f"{where}[{i}]"))
    try:
        values = np.array(checked, dtype=dtype).reshape(entries.shape)
    except (OverflowError, ValueError, TypeError) as error:
        raise Defect(where, f"is not an array of the type {dtype}: {error}") from None
    if dtype in ("float32", "float16"):
        is_exact = np.array_equal(values.ravel().astype(np.float64), checked)
        if not is_exact:
            raise Defect(
                where, f"contains numbers that the type {dtype} cannot represent"
            )
    return values


def _item(item, kind, where):
    """Return one item of an array; raise a `Defect` unless it is of the kind "number",
    "integer", "boolean" or "string".
    """
    if kind == "number" and isinstance(item, str) and item in _INFINITIES:
        return _INFINITIES[item]
    fits = isinstance(item, _KINDS[kind])
    if kind != "boolean" and isinstance(item, bool):
        fits = False  # in Python a bool is an int, in JSON true is no number
    if not fits or (kind == "number" and not math.isfinite(item)):
        raise Defect(where, f"must be a {kind}, found {item!r:.60}")
    return item


def _dict_from_json(items, where, nested):
    """Return the dict that is written as a list of pairs, since JSON's keys
    are texts.
    """
    mapping = {}
    for i, item in enumerate(items):
        is_pair = isinstance(item, list) and len(item) == 2
        if not is_pair or not isinstance(item[0], str | bool | int | float):
            raise Defect(f"{where}[{i}]", "must be a pair of a label and a value")
        key_data, value_data = item
        key = from_json(key_data, f"{where}[{i}]", nested)
        if key in mapping:
            raise Defect(f"{where}[{i}]", f"repeats the key {key!r}")
        mapping[key] = from_json(value_data, f"{where}[{key!r}]", nested)
    return mapping


def check_keys(data, wanted, optional, where):
    """Raise a `Defect` if a dict lacks one of the keys `wanted`, or has one that is
    neither wanted nor `optional` (sets).
    """
    if not isinstance(data, dict):
        raise Defect(where, f"must be a dict, found {described(data)}")
    missing = wanted - data.keys()
    unknown = data.keys() - wanted - optional
    if missing:
        raise Defect(where, f"has no {sorted(missing)[0]!r}")
    if unknown:
        raise Defect(where, f"has the unknown key {sorted(map(str, unknown))[0]!r:.80}")


def tried(function, where):
    """Return the result of a function; any exception it raises is treated as a defect
    of the document at this position.
    """
    try:
        return function()
    except RecursionError:
        raise
    except Exception as error:
        raise Defect(where, str(error).rstrip(".") or type(error).__name__) from None
