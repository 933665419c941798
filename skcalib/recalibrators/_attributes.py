"""What fitted attributes must be: checks that recalibrators declare beside themselves, for states that are read.

`ProbabilityTransformer` says where a class declares them. A check takes a value and returns it, or raises a ValueError
that says what the value must be.
"""

import numpy as np
from sklearn.base import BaseEstimator

_ROUNDING = 1e-6


def must_be(words, test):
    """Return the check of values for which a test holds."""

    def check(value):
        if not test(value):
            raise ValueError(f"must be {words}, found {value!r:.60}")
        return value

    return check


def number(value):
    """Check a finite number."""
    return float(_finite(value))


def within(low, high, *, infinite=False):
    """Return the check of a number between two others, the lower one included."""
    inside = must_be(
        f"in [{low}, {high})",
        lambda value: (infinite and value == np.inf) or low <= number(value) < high,
    )
    return lambda value: float(inside(value))


def array(kinds="f", ndim=1, low=-np.inf, high=np.inf):
    """Return the check of an array of finite numbers in [low, high]."""
    return must_be(
        f"an array with {ndim} axes, of the kind {kinds!r}, of finite numbers in [{low}, {high}]",
        lambda value: (
            _is_array(value, kinds, ndim)
            and (np.isfinite(value) & (low <= value) & (value <= high)).all()
        ),
    )


def names(value):
    """Check names of columns."""
    return _texts(value).astype(object)


def range_of_numbers(value):
    """Check two numbers in order."""
    return tuple(map(float, _range(value)))


def several(kind):
    """Return the check of a list or a dict of fitted recalibrators."""
    return must_be(
        f"a {kind.__name__} of fitted recalibrators",
        lambda value: (
            type(value) is kind
            and value
            and all(map(fitted, value.values() if kind is dict else value))
        ),
    )


def counts_inside(value):
    """Check events and rows strictly inside bins."""
    return tuple(map(array("if", low=0), _pair(value)))


def _is_array(value, kinds, ndim=1):
    is_array = (
        isinstance(value, np.ndarray)
        and value.ndim == ndim
        and value.dtype.kind in kinds
    )
    return is_array and (
        value.dtype.kind != "O" or all(isinstance(one, str) for one in value)
    )


_finite = must_be(
    "a finite number",
    lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and np.isfinite(value)
    ),
)
_pair = must_be("a pair", lambda value: isinstance(value, tuple) and len(value) == 2)
_range = must_be(
    "two numbers in increasing order",
    lambda value: number(_pair(value)[0]) <= number(value[1]),
)
_texts = must_be("an array of texts", lambda value: _is_array(value, "UO"))
flag = must_be("true or false", lambda value: type(value) is bool)
text = must_be("a text", lambda value: type(value) is str)
count = must_be("a count", lambda value: type(value) is int and value >= 0)
positive = within(np.nextafter(0, 1), np.inf)
shares = array(low=0, high=1)
weights = must_be(
    "weights that sum to 1", lambda value: abs(shares(value).sum() - 1) <= _ROUNDING
)
numbers = array()
amounts = array(low=0)
matrix = array(ndim=2)
fitted = must_be(
    "a fitted recalibrator",
    lambda value: isinstance(value, BaseEstimator) and hasattr(value, "classes_"),
)
labels = must_be(
    "labels that are sorted and differ",
    lambda value: (
        _is_array(value, "biufUO")
        and len(value)
        and np.array_equal(value, sorted(set(value.tolist())))
    ),
)
# The outer edges may be infinite, and the first two equal; the last knot may be infinite.
edges = must_be(
    "at least two edges in increasing order",
    lambda value: (
        _is_array(value, "f")
        and len(value) > 1
        and value[0] <= value[1]
        and (np.diff(value)[1:] >= 0).all()
    ),
)
knots = must_be(
    "knots in increasing order",
    lambda value: (
        _is_array(value, "f")
        and (value > -np.inf).all()
        and (value[1:] > value[:-1]).all()
    ),
)
BINS = {
    "bin_edges_": edges,
    "bin_values_": shares,
    "bin_counts_": array("iu", low=0),
    "n_bins_": count,
}


def check_lengths(part, length, *names):
    """Raise unless attributes have as many entries."""
    for name in names:
        if len(getattr(part, name)) != length:
            raise ValueError(
                f"{name} must have {length} entries, found {len(getattr(part, name))}"
            )


def check_bins(part):
    """Raise unless all arrays of one entry a bin have `n_bins_` entries, and the edges one more."""
    check_lengths(part, part.n_bins_ + 1, "bin_edges_")
    check_lengths(
        part,
        part.n_bins_,
        *({"bin_values_", "bin_counts_", "bin_positives_"} & vars(part).keys()),
    )


def check_same_classes(whole, *members):
    """Raise unless recalibrators have the classes of the one that holds them."""
    for member in members:
        if not np.array_equal(whole.classes_, member.classes_):
            raise ValueError(
                f"a {type(member).__name__} inside has other classes: {member.classes_.tolist()}"
            )
