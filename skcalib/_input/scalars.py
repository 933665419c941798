"""Checks of numbers, options and keywords: one error, one wording."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from math import inf, isinf, nan
from numbers import Integral, Real
from typing import TypeVar

import numpy as np

from skcalib._input.sklearn_private import InvalidParameterError

# Up to this every whole number is exact as a float64, and fits the integers of NumPy.
_LARGEST_INT = 2**53
_NORMS = {"l1": 1, "l2": 2, "max": inf}
# By the keyword of other libraries: the parameter of ours with that meaning, and what
# to write.
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
    # Options of scikit-learn's CalibrationDisplay.
    "ref_line": ("reference_kw", 'reference_kw={"visible": False}'),
    "curve_kwargs": ("line_kw", "line_kw={...}"),
    "response_method": ("y_proba", "from_predictions with the probabilities"),
}

_Function = TypeVar("_Function", bound=Callable)


def invalid(name, wanted, value):
    """Return the error for an argument that is not what it must be: both a ValueError
    and a TypeError.
    """
    return InvalidParameterError(f"{name} must be {wanted}, found {value!r}.")


def check_int(value, name, *, minimum=1, maximum=_LARGEST_INT):
    """Return a whole number from `minimum` to `maximum` as an int."""
    # The type first: the abstract class of all integers takes ten times as long.
    is_int = type(value) is int
    if not is_int:
        is_int = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_int or value < minimum:
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
    """Return numbers as an array of float64, or raise. Text is refused, even if it can
    be read as a number.
    """
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise invalid(name, "numbers", values) from None
    try:
        holds_text = array.dtype.kind == "O" and first_string(array) is not None
        if array.dtype.kind not in "biufO" or holds_text:
            raise ValueError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        text = first_string(array)
        raise invalid(name, "numbers", values if text is None else str(text)) from None


def first_string(array):
    """Return the first string in an array of objects or text, None if there is none."""
    return next((value for value in array.flat if isinstance(value, str | bytes)), None)


def check_option(value, name, options):
    """Return `value`, or raise unless it is one of `options`, which are strings and
    perhaps None.
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
    """Return the number p of an l_p norm: "l1", "l2" and "max" are 1, 2 and
    infinity.
    """
    if isinstance(norm, str) and norm in _NORMS:
        return _NORMS[norm]
    if not _as_float(norm) >= 1:
        raise invalid(
            "norm", "a number of at least 1, np.inf, 'l1', 'l2' or 'max'", norm
        )
    return norm


def _as_float(value):
    """Return a number as a float, infinite beyond the range of floats; NaN for anything
    that is not a number.
    """
    if type(value) is float:
        return value
    is_number = type(value) is int
    if not is_number:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number:
        return nan
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def hint_at_keywords(function: _Function, name=None, also=None) -> _Function:
    """Return a function that calls the given one, but raises for unknown keywords an
    error that says what to write instead.

    `name` is how the error calls the function (by default its own name). `also` maps
    the parameters that belong to other methods, such as those of the constructor of a
    class, to the names of these methods.
    """
    also = also or {}
    parameters = parameters_of(function)
    title = name or function.__name__
    known = set(parameters)
    # Each parameter once, in order.
    shown_names = []
    for parameter in dict.fromkeys((*also, *parameters)):
        if parameter not in ("self", "cls"):
            shown_names.append(parameter)

    @wraps(function)
    def checked(*args, **params):
        """Call the function, unless it does not have one of the keywords."""
        for unknown in params.keys() - known:
            raise _unknown_keyword(unknown, title, shown_names, also)
        return function(*args, **params)

    return checked


def check_keywords(function, params):
    """Raise for keywords that a function does not have, as `hint_at_keywords` does."""
    function = unwrap(function)
    parameters = parameters_of(function)
    for unknown in params.keys() - set(parameters):
        raise _unknown_keyword(unknown, function.__name__, parameters, {})


def _unknown_keyword(unknown, title, names, also):
    """Return the error for the keyword `unknown` of the function called `title`, whose
    parameters are `names`. `also` maps the parameters of other methods to the names of
    these methods.
    """
    if unknown in also:
        return TypeError(
            f"{unknown}= is a parameter of {title}.{also[unknown]}, not of the function"
            " called."
        )
    # Our parameter for a keyword of other libraries, and what to write: for `alpha`,
    # say, `confidence_level` and how it follows from alpha.
    known, hint = _KEYWORDS.get(unknown, (None, None))
    advice = f"it has {', '.join(names)}"
    if known in names:
        advice = f"write {hint}"
    # `alpha` in a function without intervals: the user may look for one that has them.
    on_intervals = ""
    if known == "confidence_level" and known not in names:
        on_intervals = f" Intervals take {hint}."
    return TypeError(f"{title} has no parameter {unknown!r}: {advice}.{on_intervals}")


def parameters_of(function):
    """Return the names of the parameters of a function as a tuple."""
    # From its code, since `inspect.signature` would slow down the import.
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
