"""Hints where users of metrics stumble: labels for probabilities, swapped arguments, rows in different orders."""

from functools import wraps

import numpy as np

from skcalib._input.warn import warn

_FEW_ROWS = 10  # below, scores of 0 and 1 are no sign of anything
_FIRST_ROWS = 64
# Keywords of other libraries, the parameter that stands for them here, and what to write.
_BINS = ("binning", "binning=EqualWidth(15) or binning=EqualMass(15)")
_KEYWORDS = {
    **dict.fromkeys(("n_bins", "num_bins", "bins", "strategy"), _BINS),
    "alpha": ("confidence_level", "confidence_level=0.9 for alpha=0.1"),
    **dict.fromkeys(("y_prob", "y_score", "y_pred"), ("y_proba", "y_proba=")),
}


def hint_at_keywords(function, name=None, also=None):
    """Return the function with an error for unknown keywords that says what to write in their place.

    `name` is what the error calls it, None its own name, and `also` maps further parameters to what has them.
    """
    also = also or {}
    own, title = set(parameters_of(function)), name or function.__name__
    names = [one for one in dict.fromkeys((*also, *parameters_of(function))) if one not in ("self", "cls")]

    @wraps(function)
    def checked(*args, **params):
        for unknown in params.keys() - own:
            known, hint = _KEYWORDS.get(unknown, (None, None))
            write = f"write {hint}" if known in names else f"it has {', '.join(names)}"
            if unknown in also:
                raise TypeError(f"{unknown}= is a parameter of {title}.{also[unknown]}, and not of what was called.")
            of_intervals = f" Intervals take {hint}." if known == "confidence_level" and known not in names else ""
            raise TypeError(f"{title} has no parameter {unknown!r}: {write}.{of_intervals}")
        return function(*args, **params)

    return checked


def parameters_of(function):
    """Return the names of the parameters of a function, without looking at its signature: that takes long."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def refuse_swapped(y_true, scores):
    """Raise where the labels are probabilities and the scores labels."""
    if y_true.dtype.kind == "f" and _only_zero_and_one(scores):
        between = (y_true > 0) & (y_true < 1)
        if between.any() and y_true.min() >= 0 and y_true.max() <= 1:
            row = int(np.argmax(between))
            raise ValueError(
                f"y_true holds probabilities (row {row} is {y_true[row]:.6g}) and y_proba only 0 and 1: the arguments "
                "are swapped. Pass y_true first, then y_proba."
            )


def hint_at_labels(y_proba, scores):
    """Warn where scores (n,) are 0 or 1 in every row, both occur, and they came as integers or booleans.

    Fractions of exactly 0 and 1 are no sign: a tree, and a recalibrator with pure bins, predict them.
    """
    if len(scores) >= _FEW_ROWS and _only_zero_and_one(scores) and scores.min() < scores.max():
        if np.asarray(y_proba).dtype.kind in "biu":
            warn(
                "y_proba is exactly 0 or 1 in every row, as predicted labels are. A metric of calibration is for "
                "probabilities: pass predict_proba(X)[:, 1] if these are labels."
            )


def hint_at_two_indices(**given):
    """Warn where two pandas objects have different indices: rows are matched by their positions.

    Labels that occur twice are no names of rows: nobody can have meant to match them.
    """
    indices = {name: value.index for name, value in given.items() if hasattr(getattr(value, "index", None), "equals")}
    names = list(indices)
    for first, second in zip(names, names[1:], strict=False):
        one, other = indices[first], indices[second]
        if len(one) == len(other) and not one.equals(other) and one.is_unique and other.is_unique:
            warn(
                f"{first} and {second} have different indices. Rows are matched by position: bring them into one order "
                "first, or pass .to_numpy() if they are in one."
            )


def _only_zero_and_one(scores):
    # The first rows mostly tell.
    return all(bool(np.all((part == 0) | (part == 1))) for part in (scores[:_FIRST_ROWS], scores))
