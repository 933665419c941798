"""Scorers whose functions stand above `metrics`, which may not import them.

The front of the package, above all rooms, fills this in: a name, and a function that
imports what it names and returns the metric with its options.
"""

LATER_SCORERS = {}
