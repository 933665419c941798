"""What a recalibrator was fitted to, and with which versions: kept with the fit, and
written into every export.
"""

import json
import platform
import re
import sys
from functools import cache
from importlib.metadata import version

import numpy as np

from skcalib._input.tensors import as_array, like, namespace_of
from skcalib._rows.blocks import label_hash, row_hash

_LARGEST_HASHED = 1e4  # of a tensor's scores
_PACKAGES = ("numpy", "scipy", "scikit-learn")
_KEYS = {"method", "parameters", "n_rows", "events", "weight_type", "hash", "versions"}
_NEWER_KEYS = {"label_hash"}  # which earlier versions did not write


def provenance(recalibrator, scores, codes, sample_weight, weight_type="frequency"):
    """Return a dict of plain values that says what a recalibrator was fitted to.

    Its keys are ``method`` and ``parameters``, those of the recalibrator in the fit;
    ``n_rows``; ``events``, the number of rows of each class in the order of `classes_`;
    ``weight_type``, None if there were no weights; ``hash`` of the scores (of a tensor,
    one number per row), labels and weights, whatever the order of the rows (see
    `row_hash`); ``label_hash`` of the labels in their order; and ``versions`` of Python
    and the packages.
    """
    parameters = {}
    for name, value in recalibrator.get_params(deep=False).items():
        parameters[name] = _plain(value)
    if sample_weight is None:
        weight_type = None
    return {
        "method": type(recalibrator).__name__,
        "parameters": parameters,
        "n_rows": len(codes),
        "events": _counts(codes, len(recalibrator.classes_)),
        "weight_type": weight_type,
        "hash": row_hash(_row_numbers(scores), codes, sample_weight),
        "label_hash": label_hash(codes),
        "versions": dict(_versions()),
    }


def _row_numbers(scores):
    """Return scores (n, C) of NumPy as they are; of a tensor, a weighted sum of each
    row (n, 1).
    """
    xp = namespace_of(scores)
    if xp is np:
        return scores
    # Different factors tell rows apart whose scores are exchanged.
    factors = np.sqrt(np.arange(scores.shape[1]) + 1.0)
    # -inf, of an impossible class, becomes a number
    finite = xp.clip(scores, -_LARGEST_HASHED, _LARGEST_HASHED)
    numbers = finite @ xp.astype(like(scores, factors), scores.dtype)
    numbers, _ = as_array(numbers)
    return numbers[:, None]


def check_provenance(value):
    """Check what `provenance` returned, for states that are read."""
    if not isinstance(value, dict) or value.keys() - _NEWER_KEYS != _KEYS:
        raise ValueError(f"must be a dict with the keys {', '.join(sorted(_KEYS))}")
    json.dumps(value, allow_nan=False)  # raises unless all of it is plain
    return value


def provenance_text(recalibrator):
    """Return the provenance of a fitted recalibrator in one line that is safe in
    comments, "" where there is none.
    """
    text = json.dumps(getattr(recalibrator, "provenance_", {}), separators=(", ", " "))
    return re.sub(r"[^A-Za-z0-9 _.,=()\[\]-]", " ", text.replace('"', "")).strip()


def _counts(codes, n_classes):
    """Return the number of rows of each class, as a list; `codes` (n,) are the indices
    of their classes.
    """
    if n_classes > 2:
        return np.bincount(codes, minlength=n_classes).tolist()
    # This takes a tenth of the time of `bincount`, a sixth of a fit of bins.
    n_events = int(np.count_nonzero(codes))
    return [len(codes) - n_events, n_events]


def _plain(value):
    """Return a parameter as a plain value.

    An object of this package is its class and its parameters; of any other, only the
    class is named: its fields (a password, names of patients) would end up in every
    export.
    """
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype == np.longdouble:  # `tolist` leaves such numbers NumPy's
            value = value.astype(np.float64)
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if np.isfinite(value):
            return value
        return str(value)  # JSON has no nan and no infinity
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return _described_object(value)


def _described_object(value):
    """Return the name of an object's class, with the parameters of our own classes."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "skcalib":
        return _name_of(value)
    if not hasattr(value, "get_params"):
        return kind.__name__
    parameters = value.get_params(deep=False)
    if not parameters:
        return kind.__name__
    return {"class": kind.__name__, **_plain(parameters)}


def _name_of(value):
    """Return the name of a function or class, or that of an object's class."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    return type(value).__name__


@cache
def _versions():
    """Return the versions of this package, Python and the packages it uses, by name."""
    versions = {
        # `skcalib` imports this module, so that it cannot be imported here
        "skcalib": sys.modules["skcalib"].__version__,
        "python": platform.python_version(),
    }
    for name in _PACKAGES:
        versions[name] = version(name)
    return versions
