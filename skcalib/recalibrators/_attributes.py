"""What fitted attributes must be: checks that recalibrators declare beside themselves, for states that are read.

`ProbabilityTransformer` says where a class declares them. A check takes a value and returns it, or raises a ValueError
that says what the value must be.
"""

import numpy as np
from sklearn.base import BaseEstimator

_ROUNDING = 1e-6


def number(value):
    """Check a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"must be a finite number, found {value!r:.60}")
    return float(value)


def within(low, high, *, infinite=False):
    """Return the check of a number between two others, the lower one included."""

    def check(value):
        if infinite and value == np.inf:
            return value
        if not low <= number(value) < high:
            raise ValueError(f"must lie in [{low}, {high}), found {value!r}")
        return float(value)

    return check


def count(value):
    """Check a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"must be a count, found {value!r:.60}")
    return value


def of_type(kind, words):
    """Return the check of a value's type."""

    def check(value):
        if type(value) is not kind:
            raise ValueError(f"must be {words}, found {value!r:.60}")
        return value

    return check


def array(kinds="f", ndim=1, low=-np.inf, high=np.inf):
    """Return the check of an array of finite numbers in [low, high]."""

    def check(value):
        _check_array(value, kinds, ndim)
        if not (np.isfinite(value) & (low <= value) & (value <= high)).all():
            raise ValueError(f"must hold finite numbers in [{low}, {high}]")
        return value

    return check


def labels(value):
    """Check labels in order."""
    _check_array(value, "biufUO", 1)
    items = value.tolist()
    if not items or any(not before < after for before, after in zip(items[:-1], items[1:], strict=True)):
        raise ValueError("must hold labels that are sorted and differ")
    return value


def names(value):
    """Check names of columns."""
    _check_array(value, "UO", 1)
    return value.astype(object)


def edges(value):
    """Check at least two numbers in order, the outer ones perhaps infinite; the first two may be equal."""
    _check_array(value, "f", 1)
    if len(value) < 2 or not (value[0] <= value[1] and (np.diff(value)[1:] >= 0).all()):
        raise ValueError("must be at least two edges in increasing order")
    return value


def knots(value):
    """Check numbers that increase, the last one perhaps infinite."""
    _check_array(value, "f", 1)
    if not (np.isfinite(value[:-1]).all() and (value[1:] > value[:-1]).all() and (value > -np.inf).all()):
        raise ValueError("must be knots in increasing order")
    return value


def weights(value):
    """Check shares that sum to 1."""
    if abs(shares(value).sum() - 1) > _ROUNDING:
        raise ValueError(f"must hold weights that sum to 1, found the sum {value.sum()!r}")
    return value


def range_of_numbers(value):
    """Check two numbers in order."""
    if not isinstance(value, tuple) or len(value) != 2 or not number(value[0]) <= number(value[1]):
        raise ValueError("must be two numbers in increasing order")
    return tuple(map(float, value))


def fitted(value):
    """Check a fitted recalibrator."""
    if not isinstance(value, BaseEstimator) or not hasattr(value, "classes_"):
        raise ValueError("must be a fitted recalibrator")
    return value


def several(kind):
    """Return the check of a list, a tuple or a dict of fitted recalibrators."""

    def check(value):
        if type(value) is not kind or not value:
            raise ValueError(f"must be a {kind.__name__} of fitted recalibrators")
        for one in value.values() if kind is dict else value:
            fitted(one)
        return value

    return check


def counts_inside(value):
    """Check events and rows strictly inside bins."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError("must be two arrays")
    return tuple(array("if", low=0)(one) for one in value)


flag, text = of_type(bool, "true or false"), of_type(str, "a text")
positive = within(np.nextafter(0, 1), np.inf)
shares = array(low=0, high=1)
numbers = array()
amounts = array(low=0)
matrix = array(ndim=2)
BINS = {"bin_edges_": edges, "bin_values_": shares, "bin_counts_": array("iu", low=0), "n_bins_": count}


def _check_array(value, kinds, ndim):
    if not isinstance(value, np.ndarray) or value.ndim != ndim or value.dtype.kind not in kinds:
        raise ValueError(f"must be an array with {ndim} axes of the kind {kinds!r}")
    if value.dtype.kind == "O" and not all(isinstance(one, str) for one in value):
        raise ValueError("must be an array of texts")


def check_lengths(part, length, *names):
    """Raise unless attributes have as many entries."""
    for name in names:
        if len(getattr(part, name)) != length:
            raise ValueError(f"{name} must have {length} entries, found {len(getattr(part, name))}")


def check_bins(part):
    """Raise unless all arrays of one entry a bin have `n_bins_` entries, and the edges one more."""
    check_lengths(part, part.n_bins_ + 1, "bin_edges_")
    check_lengths(part, part.n_bins_, *({"bin_values_", "bin_counts_", "bin_positives_"} & vars(part).keys()))


def check_same_classes(whole, *members):
    """Raise unless recalibrators have the classes of the one that holds them."""
    for member in members:
        if not np.array_equal(whole.classes_, member.classes_):
            raise ValueError(f"a {type(member).__name__} inside has other classes: {member.classes_.tolist()}")
