"""Checks of numbers, options and keywords: one error, one wording."""

from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from math import inf, isinf, nan
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from skcalib._input.sklearn_private import InvalidParameterError

# up to here every whole number is a float64, and fits the integers of NumPy
_LARGEST_INT = 2**53
_NORMS = {"l1": 1, "l2": 2, "max": inf}
# Keywords of other libraries, the parameter that stands for them here, and what to
# write.
_BINS = ("binning", "binning=EqualWidth(15) or binning=EqualMass(15)")
_KEYWORDS = {
    **dict.fromkeys(("n_bins", "num_bins", "bins", "strategy"), _BINS),
    "alpha": ("confidence_level", "confidence_level=0.9 for alpha=0.1"),
    **dict.fromkeys(("y_prob", "y_score", "y_pred"), ("y_proba", "y_proba=")),
    # Matplotlib's names of a line belong to the artists of a display.
    "color": ("line_kw", 'line_kw={"color": ...}'),
    "c": ("line_kw", 'line_kw={"color": ...}'),
    "linewidth": ("line_kw", 'line_kw={"linewidth": ...}'),
    "lw": ("line_kw", 'line_kw={"linewidth": ...}'),
    "linestyle": ("line_kw", 'line_kw={"linestyle": ...}'),
    "ls": ("line_kw", 'line_kw={"linestyle": ...}'),
    "marker": ("line_kw", 'line_kw={"marker": ...}'),
}

_Function = TypeVar("_Function", bound=Callable)


def invalid(name, wanted, value):
    """Return the error for an argument that is not what it must be: both a ValueError
    and a TypeError.
    """
    return InvalidParameterError(f"{name} must be {wanted}, found {value!r}.")


def check_int(value, name, *, minimum=1, maximum=_LARGEST_INT):
    """Return a whole number from `minimum` to `maximum` as an int."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise invalid(name, f"an int of at least {minimum}", value)
    if value > maximum:
        raise invalid(name, f"an int of at most {maximum:,}", value)
    return int(value)


def check_number(
    value, name, *, at_least=-inf, at_most=inf, above=-inf, below=inf, infinite=False
):
    """Return a number within the bounds as a float; it must be finite unless
    `infinite`.
    """
    number = _as_float(value)
    is_inside = at_least <= number <= at_most
    if not isinf(above):
        is_inside = is_inside and above < number
    if not isinf(below):
        is_inside = is_inside and number < below
    if is_inside and (infinite or not isinf(number)):
        return number
    bounds = {
        "of at least": at_least,
        "above": above,
        "of at most": at_most,
        "below": below,
    }
    limits = [
        f"{words} {bound:g}" for words, bound in bounds.items() if not isinf(bound)
    ]
    wanted = "a number " if infinite else "a finite number "
    wanted += " and ".join(limits)
    raise invalid(name, wanted.rstrip(), value)


def as_numbers(values, name):
    """Return an array of numbers as float64; text is none, also where it reads as
    one.
    """
    try:
        array = np.asarray(values)
        if (
            array.dtype.kind not in "biufO"
            or array.dtype.kind == "O"
            and first_string(array) is not None
        ):
            raise ValueError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise invalid(name, "numbers", values) from None


def first_string(array):
    """Return the first string in an array of objects, None if there is none."""
    return next((value for value in array.flat if isinstance(value, str | bytes)), None)


def check_option(value, name, options):
    """Return `value`, which must be one of `options`: strings, and None among them
    where that is one.
    """
    if not (value is None or isinstance(value, str)) or value not in options:
        raise invalid(name, f"one of {', '.join(map(repr, options))}", value)
    return value


def check_confidence_level(value):
    """Return a confidence level, strictly between 0 and 1, as a float."""
    if not 0 < _as_float(value) < 1:
        raise invalid(
            "confidence_level",
            "a number strictly between 0 and 1 (write 90 % as 0.9)",
            value,
        )
    return float(value)


def resolve_norm(norm):
    """Return the number p of an l_p norm: "l1", "l2" and "max" are 1, 2 and infinity."""  # noqa: E501
    if isinstance(norm, str) and norm in _NORMS:
        return _NORMS[norm]
    if not _as_float(norm) >= 1:
        raise invalid(
            "norm", "a number of at least 1, np.inf, 'l1', 'l2' or 'max'", norm
        )
    return norm


def _as_float(value):
    """Return a number as a float, NaN for what is none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def hint_at_keywords(function: _Function, name=None, also=None) -> _Function:
    """Return the function with an error for unknown keywords that says what to write in
    their place.

    `name` is what the error calls it, None its own name, and `also` maps further
    parameters to what has them.
    """
    also = also or {}
    parameters = parameters_of(function)
    title = name or function.__name__
    known = set(parameters)
    listed = list(dict.fromkeys((*also, *parameters)))
    listed = [parameter for parameter in listed if parameter not in ("self", "cls")]

    @wraps(function)
    def checked(*args, **params):
        for unknown in params.keys() - known:
            raise _unknown_keyword(unknown, title, listed, also)
        return function(*args, **params)

    return checked


def check_keywords(function, params):
    """Raise for keywords that a function does not have, as `hint_at_keywords` does."""
    function = unwrap(function)
    parameters = parameters_of(function)
    for unknown in params.keys() - set(parameters):
        raise _unknown_keyword(unknown, function.__name__, parameters, {})


def _unknown_keyword(unknown, title, names, also):
    """Return the error for an unknown keyword, which says what to write."""
    if unknown in also:
        return TypeError(
            f"{unknown}= is a parameter of {title}.{also[unknown]}, and not of"
            " what was called."
        )
    known, hint = _KEYWORDS.get(unknown, (None, None))
    write = f"write {hint}" if known in names else f"it has {', '.join(names)}"
    of_intervals = ""
    if known == "confidence_level" and known not in names:
        of_intervals = f" Intervals take {hint}."
    return TypeError(f"{title} has no parameter {unknown!r}: {write}.{of_intervals}")


def parameters_of(function):
    """Return the names of the parameters of a function, without looking at its
    signature: that takes long.
    """
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
