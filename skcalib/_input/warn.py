"""Warnings that point at the line of the user's program."""

import sys
import warnings

# packages that stand between the user's line and the warning
_BETWEEN = ("skcalib", "sklearn", "joblib")


def warn(message, category=UserWarning):
    """Warn with the line of the user's code that called this package, perhaps through
    scikit-learn or joblib.
    """
    frame = sys._getframe(1)
    level = 2  # as `warnings` counts: 1 is this function, 2 its caller
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN
    ):
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, category, stacklevel=level)
