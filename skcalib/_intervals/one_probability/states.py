"""The states of limits: what they say, and what they must be in a document."""

import numpy as np

from skcalib._intervals.few_events import FEWEST_FOR_NORMAL
from skcalib._intervals.one_probability.bins import bins_limits
from skcalib._intervals.one_probability.monotone import monotone_limits
from skcalib._intervals.one_probability.profile import PROFILE_SHAPE
from skcalib._intervals.one_probability.regression import regression_limits

# What each kind of state says: functions of a state and the level, which return a
# function of what the limits depend on, and of the scores.
LIMITS = {
    "regression": regression_limits,
    "bins": bins_limits,
    "monotone": monotone_limits,
}


def has_few_events(state):
    """Return whether the limits of a state rest on so few events, or non-events, that
    they cover less often than they say.
    """
    return state["events"] < FEWEST_FOR_NORMAL


# By kind of state, the number of axes of its arrays, and the names of its numbers. The
# "model" of a regression or a softmax is not always there, nor is its `_PROFILE`.
_KEYS = {
    "regression": ({"coef": 1, "sandwich": 2}, {"events", "degrees"}),
    "softmax": ({"covariance": 2}, {"events", "degrees"}),
    "mixture": ({}, {"events"}),
    "bins": ({"count": 1, "positives": 1}, {"events"}),
    "monotone": ({"first": 1, "last": 1, "count": 1, "positives": 1}, {"events"}),
    "shift": ({}, {"below", "above", "level", "events"}),
}


_PROFILE = {"places", "below", "above"}


def check_limits(value):
    """Return a state that was read from a document; raise a ValueError unless it can be
    one.
    """
    kind = value.get("kind") if isinstance(value, dict) else None
    axes, plain = _KEYS.get(kind, ({}, set()))  # of the arrays, and names of numbers
    if kind == "regression" and _PROFILE & value.keys():
        # The table of profile limits is checked first, then the state without it.
        _check_profile(value)
        check_limits({name: value[name] for name in value if name not in _PROFILE})
        return value
    # It has these arrays and numbers, perhaps the covariance "model", and no others.
    if kind not in _KEYS or value.keys() - {"kind", "model"} != axes.keys() | plain:
        raise ValueError(f"must be the state of limits, found {value!r:.60}")
    for name in plain:
        if type(value[name]) is not float or not value[name] >= 0:
            raise ValueError(f"must have a number of at least 0 as {name}")
    arrays = {name: value[name] for name in value.keys() - plain - {"kind"}}
    for name, array in arrays.items():
        is_array = isinstance(array, np.ndarray) and array.dtype == np.float64
        is_array = is_array and array.ndim == axes.get(name, 2) and array.size > 0
        if not is_array or np.isnan(array).any():
            raise ValueError(f"must have an array of numbers as {name}")
    lengths = {length for array in arrays.values() for length in array.shape}
    if len(lengths) > 1:
        raise ValueError("must have arrays of one length")
    if not 0 < value.get("level", 0.5) < 1:
        raise ValueError("must have a level between 0 and 1")
    if "count" in arrays:
        _check_counts(arrays)
    return value


def _check_profile(value):
    """Raise a ValueError unless a state has the table of profile limits."""
    arrays = [value.get(name) for name in sorted(_PROFILE)]
    if "model" not in value or not all(isinstance(a, np.ndarray) for a in arrays):
        raise ValueError("must have all arrays of a table of limits")
    shapes = [a.shape for a in arrays if a.dtype == np.float64]
    if shapes != [PROFILE_SHAPE, PROFILE_SHAPE, PROFILE_SHAPE[:1]]:
        raise ValueError(f"must have a table of limits of the shape {PROFILE_SHAPE}")
    above, below, places = arrays
    if not np.isfinite(above + below + places[:, None]).all():
        raise ValueError("must have finite numbers in a table of limits")
    if not (np.diff(places) >= 0).all():
        raise ValueError("must have places in increasing order")


def _check_counts(arrays):
    """Raise a ValueError unless the numbers of samples and events of bins, or of ranges
    of scores, are possible.
    """
    count = arrays["count"]
    positives = arrays["positives"]
    if not ((positives >= 0) & (positives <= count) & (count < np.inf)).all():
        raise ValueError("must have at least as many samples as events")
    if "first" in arrays:
        ends = np.column_stack((arrays["first"], arrays["last"])).ravel()
        if not (np.diff(ends) >= 0).all() or not (count > 0).all():
            raise ValueError("must have samples in increasing ranges of scores")
