"""The one registry: for each public name an instance, rows to fit, its frozen result,
and the job that it is for.

A new public name needs an entry here, in the file of its kind, and then ``python
tests/freeze.py``, which freezes its results and its signature. All tests of common
properties, and all comparisons with frozen results, read the registry.
"""

from registry import (
    binning,
    composition,
    decisions,
    displays,
    evaluation,
    export,
    guarantees,
    metrics,
    recalibrators,
    simulation,
)
from registry._entry import DisplayEntry, Entry, MetricEntry, RecalibratorEntry

_FILES = (
    recalibrators,
    composition,
    binning,
    metrics,
    guarantees,
    evaluation,
    decisions,
    export,
    displays,
    simulation,
)

REGISTRY = {}
for _file in _FILES:
    _twice = REGISTRY.keys() & _file.ENTRIES.keys()
    assert not _twice, f"{_twice} has two entries"
    REGISTRY |= _file.ENTRIES

__all__ = [
    "REGISTRY",
    "DisplayEntry",
    "Entry",
    "MetricEntry",
    "RecalibratorEntry",
    "entries_of",
]


def entries_of(kind):
    """Return the entries of one kind, by public name."""
    return {name: entry for name, entry in REGISTRY.items() if isinstance(entry, kind)}
