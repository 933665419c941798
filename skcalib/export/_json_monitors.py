"""Monitors as JSON: a service that stops goes on with the same evidence."""

from array import array

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skcalib.export._json_values import Defect, NotWritable, as_json, check_keys, from_json, tried
from skcalib.monitoring import CalibrationMonitor, GroupMonitors
from skcalib.recalibrators._attributes import count

MONITORS = {"CalibrationMonitor": CalibrationMonitor, "GroupMonitors": GroupMonitors}
# What a monitor has seen: arrays with an entry for each bet, and numbers.
_BY_BET = {"_log_wealth": "f", "_log_detector": "f", "_lowest": "f", "_lowest_end": "i"}
_NUMBERS = ("n_rows_", "e_value_", "alarm_", "alarm_row_", "change_row_")


def monitor_as_json(monitor):
    """Return a monitor that has seen rows as JSON."""
    check_is_fitted(monitor, "n_rows_" if isinstance(monitor, CalibrationMonitor) else "monitors_")
    written = {"class": type(monitor).__name__}
    parameters = monitor.get_params(deep=False)
    if isinstance(monitor, GroupMonitors):
        inner = monitor._resolved("monitor").get_params(deep=False)
        parameters["monitor"] = {name: _plain(value, name) for name, value in inner.items()}
        groups = [
            {"group": _plain(group, "group"), "times": [[row, _time(at)] for row, at in monitor._times[group]]}
            | {"monitor": monitor_as_json(one)}
            for group, one in monitor.monitors_.items()
        ]
        return written | {
            "parameters": parameters | {"confidence_level": monitor.confidence_level},
            "groups": groups,
        }
    seen = {name: _plain(getattr(monitor, name), name) for name in (*_BY_BET, *_NUMBERS)}
    batches = [list(column) for column in monitor._batches]
    parameters = {name: _plain(value, name) for name, value in parameters.items()}
    return written | {"parameters": parameters, "seen": seen, "batches": batches}


def monitor_from_json(document):
    """Return the monitor that a document stands for."""
    if document["class"] == "GroupMonitors":
        return _groups_from_json(document)
    check_keys(document, {"class", "parameters", "seen", "batches"}, set(), document["class"])
    monitor = _made(CalibrationMonitor, document["parameters"])
    _restore(monitor, document["seen"], document["batches"])
    return monitor


def _groups_from_json(document):
    check_keys(document, {"class", "parameters", "groups"}, set(), document["class"])
    check_keys(document["parameters"], {"monitor", "confidence_level"}, set(), "parameters")
    parameters = dict(document["parameters"])
    parameters["monitor"] = CalibrationMonitor(**_values(parameters.get("monitor"), "monitor"))
    found = _made(GroupMonitors, parameters)
    for number, entry in enumerate(document["groups"] if isinstance(document["groups"], list) else [None]):
        where = f"groups[{number}]"
        check_keys(entry, {"group", "times", "monitor"}, set(), where)
        group = from_json(entry["group"], where, _refused)
        if group is None or isinstance(group, list | dict) or group in found.monitors_:
            raise Defect(where, f"must name another group, found {group!r:.60}")
        inner = entry["monitor"]
        if not isinstance(inner, dict) or inner.get("class") != "CalibrationMonitor":
            raise Defect(where, "must hold a CalibrationMonitor")
        found.monitors_[group] = monitor_from_json(inner)
        times = from_json(entry["times"], where, _refused)
        if any(not isinstance(time, list) or len(time) != 2 or not isinstance(time[0], int) for time in times):
            raise Defect(where, "times must be pairs of a row and a time")
        found._times[group] = [tuple(time) for time in times]
    return found


def _made(cls, parameters):
    """Return a monitor that has seen nothing, with parameters that are checked."""
    nested = {name: value for name, value in parameters.items() if isinstance(value, CalibrationMonitor)}
    values = _values({name: value for name, value in parameters.items() if name not in nested}, cls.__name__)
    monitor = tried(lambda: cls(**nested, **values), cls.__name__)
    tried(monitor._reset, cls.__name__)
    return monitor


def _values(parameters, where):
    if not isinstance(parameters, dict):
        raise Defect(where, f"parameters must be a dict, found {parameters!r:.60}")
    return {name: from_json(value, f"{where}.{name}", _refused) for name, value in parameters.items()}


def _restore(monitor, seen, batches):
    """Set what a monitor has seen, each part checked."""
    check_keys(seen, {*_BY_BET, *_NUMBERS}, set(), "seen")
    values = _values(seen, "seen")
    for name, kind in _BY_BET.items():
        new, fresh = values[name], getattr(monitor, name)
        fits = isinstance(new, np.ndarray) and new.dtype.kind == kind and new.shape == fresh.shape
        if not fits or np.isnan(new).any() or (new == np.inf).any():
            raise Defect(f"seen.{name}", f"must hold {len(fresh)} numbers")
    n_rows, rows = tried(lambda: count(values["n_rows_"]), "n_rows_"), (values["alarm_row_"], values["change_row_"])
    if not isinstance(values["alarm_"], bool) or any((row is None) == values["alarm_"] for row in rows):
        raise Defect("seen.alarm_", "must say whether alarm_row_ and change_row_ are known")
    if values["alarm_"] and not all(isinstance(row, int) and 0 <= row <= n_rows for row in rows):
        raise Defect("seen.alarm_row_", f"must be a row from 0 to {n_rows}")
    if not isinstance(values["e_value_"], int | float) or not 0 <= values["e_value_"] < np.inf:
        raise Defect("seen.e_value_", f"must be a number that is not negative, found {values['e_value_']!r:.60}")
    columns = tried(
        lambda: [array(old.typecode, new) for old, new in zip(monitor._batches, batches, strict=True)], "batches"
    )
    if len({len(column) for column in columns}) > 1 or sum(columns[1]) != n_rows:
        raise Defect("batches", f"must be columns of one length, of {n_rows} rows together")
    vars(monitor).update(values, e_value_=float(values["e_value_"]), _batches=tuple(columns))


def _plain(value, name):
    def refuse(inner):
        raise NotWritable(f"an object of the class {type(inner).__name__}")

    try:
        return as_json(value, refuse)
    except NotWritable as error:
        raise ValueError(f"The monitor cannot be written as JSON: {name} holds {error}.") from None


def _time(label):
    """Return a time as text, or as the plain value that it is: dates come back as texts."""
    return label if isinstance(label, str | int | float | bool) else str(label)


def _refused(data, where):
    raise Defect(where, f"must be a plain value, found {data!r:.60}")
