"""Checks of fitted attributes when a stored recalibrator is read.

A recalibrator refers to them in `_attributes` or `_part_attributes`: ``_part_attributes
= {"slope_": checks.number}``. A check takes a value and returns it in its canonical
form, or raises a ValueError that says what the value must be.
"""

import numpy as np
from sklearn.base import BaseEstimator

from skcalib._inference.results import gain_estimate

__all__ = [
    "amounts",
    "array",
    "count",
    "edges",
    "estimate",
    "fitted",
    "flag",
    "knots",
    "labels",
    "matrix",
    "must_be",
    "number",
    "numbers",
    "positive",
    "range_of_numbers",
    "several",
    "shares",
    "text",
    "weights",
    "within",
]

_LEVEL_OF_GAINS = 0.9  # of the interval of `gain_`
_ROUNDING = 1e-6  # of weights that sum to 1


def must_be(words, test):
    """Return a check: a function that returns a value for which ``test(value)`` is
    true, and raises a ValueError, "must be" and `words`, for any other.
    """

    def check(value):
        """Return a value for which the test holds; raise a ValueError otherwise."""
        if not test(value):
            raise _refused(words, value)
        return value

    return check


def within(low, high, *, infinite=False):
    """Return a check: a function that returns a number in [low, high) as a float, with
    `infinite` also infinity, and raises a ValueError for any other value.
    """

    def check(value):
        """Return a number in the range as a float; raise a ValueError otherwise."""
        if infinite and value == np.inf:
            return float(value)
        if not low <= number(value) < high:
            raise _refused(f"in [{low}, {high})", value)
        return float(value)

    return check


def array(kinds="f", ndim=1, low=-np.inf, high=np.inf):
    """Return a check: a function that returns an array with `ndim` axes of finite
    numbers in [low, high], and raises a ValueError for any other value.

    `kinds` are the accepted letters of NumPy's ``dtype.kind``, such as "f" for floats.
    """
    words = (
        f"an array with {ndim} axes, of the kind {kinds!r}, of finite numbers in"
        f" [{low}, {high}]"
    )

    def is_inside(value):
        """Return whether a value is an array of this kind with numbers in the range."""
        if not _is_array(value, kinds, ndim):
            return False
        return (np.isfinite(value) & (low <= value) & (value <= high)).all()

    return must_be(words, is_inside)


def several(kind):
    """Return a check: a function that returns a non-empty list or dict (`kind`) of
    fitted recalibrators, and raises a ValueError for any other value.
    """

    def are_fitted(value):
        """Return whether a value is a list or dict (`kind`) of fitted recalibrators."""
        if type(value) is not kind or not value:
            return False
        members = value
        if kind is dict:
            members = value.values()
        return all(map(fitted, members))

    return must_be(f"a {kind.__name__} of fitted recalibrators", are_fitted)


def number(value):
    """Return a finite number as a float; raise a ValueError otherwise."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value):
        raise _refused("a finite number", value)
    return float(value)


positive = within(np.nextafter(0, 1), np.inf)
numbers = array()
amounts = array(low=0)
shares = array(low=0, high=1)
matrix = array(ndim=2)


def count(value):
    """Return an int of at least 0; raise a ValueError otherwise."""
    if type(value) is not int or value < 0:
        raise _refused("a count", value)
    return value


def flag(value):
    """Return a bool; raise a ValueError otherwise."""
    if type(value) is not bool:
        raise _refused("true or false", value)
    return value


def text(value):
    """Return a str; raise a ValueError otherwise."""
    if type(value) is not str:
        raise _refused("a text", value)
    return value


def names(value):
    """Return an array of names of columns as objects; raise a ValueError otherwise."""
    if not _is_array(value, "UO"):
        raise _refused("an array of strings", value)
    return value.astype(object)


def weights(value):
    """Return an array of weights that sum to 1; raise a ValueError otherwise."""
    if abs(shares(value).sum() - 1) > _ROUNDING:
        raise _refused("weights that sum to 1", value)
    return value


def range_of_numbers(value):
    """Return a pair (low, high) as floats; raise a ValueError unless low <= high."""
    low, high = _pair(value)
    if not number(low) <= number(high):
        raise _refused("two numbers in increasing order", value)
    return float(low), float(high)


def counts_inside(value):
    """Return a pair of arrays (n_bins,), the numbers of events and of rows in each bin,
    without those at its edges; raise a ValueError for other values.
    """
    check_counts = array("if", low=0)
    events, rows = _pair(value)
    return check_counts(events), check_counts(rows)


def estimate(value):
    """Return a triple (estimate, low, high), the gain of a recalibrator, as an
    `IntervalEstimate`; raise a ValueError unless low <= estimate <= high, or both
    limits, and the estimate if it is unknown, too, are None: they become NaN.
    """
    words = "an estimate and the limits of its interval"
    if not isinstance(value, tuple) or len(value) != 3:
        raise _refused(words, value)
    middle, low, high = value
    if low is None and high is None:
        middle = np.nan if middle is None else number(middle)
        return gain_estimate(middle, np.nan, np.nan, _LEVEL_OF_GAINS)
    if not number(low) <= number(middle) <= number(high):
        raise _refused(words, value)
    return gain_estimate(float(middle), float(low), float(high), _LEVEL_OF_GAINS)


def fitted(value):
    """Return a fitted recalibrator; raise a ValueError for other values."""
    if not isinstance(value, BaseEstimator) or not hasattr(value, "classes_"):
        raise _refused("a fitted recalibrator", value)
    return value


def labels(value):
    """Return an array of sorted, distinct labels; raise a ValueError otherwise."""
    is_valid = _is_array(value, "biufUO") and len(value) > 0
    if not is_valid or not np.array_equal(value, sorted(set(value.tolist()))):
        raise _refused("sorted and distinct labels", value)
    return value


def edges(value):
    """Return edges of bins (n_bins + 1,) in increasing order; raise a ValueError
    otherwise. Neighbours may be equal, and the outer edges infinite.
    """
    if (
        not _is_array(value, "f")
        or len(value) < 2
        or not value[0] <= value[1]
        or not (np.diff(value)[1:] >= 0).all()
    ):
        raise _refused("at least two edges in increasing order", value)
    return value


def knots(value):
    """Return increasing knots (n_knots,), the last of which may be infinite; raise a
    ValueError otherwise.
    """
    if (
        not _is_array(value, "f")
        or not (value > -np.inf).all()
        or not (value[1:] > value[:-1]).all()
    ):
        raise _refused("knots in increasing order", value)
    return value


# the attributes of a recalibrator with bins, and their checks
BINS = {
    "bin_edges_": edges,
    "bin_values_": shares,
    "bin_counts_": array("iu", low=0),
    "n_bins_": count,
}


def check_lengths(recalibrator, length, *names):
    """Raise a ValueError unless the attributes of these names have `length` entries
    each.
    """
    for name in names:
        n_entries = len(getattr(recalibrator, name))
        if n_entries != length:
            raise ValueError(f"{name} must have {length} entries, found {n_entries}")


def check_bins(recalibrator):
    """Raise a ValueError unless the arrays of a fitted recalibrator with bins have an
    entry for each bin, and the edges one more.
    """
    n_bins = recalibrator.n_bins_
    check_lengths(recalibrator, n_bins + 1, "bin_edges_")
    for name in ("bin_values_", "bin_counts_", "bin_positives_"):
        if hasattr(recalibrator, name):
            check_lengths(recalibrator, n_bins, name)


def check_same_classes(container, *members):
    """Raise a ValueError unless recalibrators have the classes of the one that contains
    them.
    """
    for member in members:
        if not np.array_equal(container.classes_, member.classes_):
            raise ValueError(
                f"a {type(member).__name__} inside has different classes:"
                f" {member.classes_.tolist()}"
            )


def _refused(words, value):
    """Return the error of a value that is not what `words` say."""
    return ValueError(f"must be {words}, found {value!r:.60}")


def _pair(value):
    """Return a value that is a tuple of two; raise a ValueError otherwise."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise _refused("a pair", value)
    return value


def _is_array(value, kinds, ndim=1):
    """Return whether a value is an array with `ndim` axes and a ``dtype.kind`` in
    `kinds`; objects must be strings.
    """
    is_array = (
        isinstance(value, np.ndarray)
        and value.ndim == ndim
        and value.dtype.kind in kinds
    )
    if is_array and value.dtype.kind == "O":
        return all(isinstance(entry, str) for entry in value)
    return is_array
