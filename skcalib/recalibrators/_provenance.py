"""What a recalibrator was fitted to and by what: kept with the fit, and written beside every way out."""

import json
import platform
import re
import sys
from functools import cache
from importlib.metadata import version

import numpy as np

from skcalib._rows.blocks import row_hash

_PACKAGES = ("numpy", "scipy", "scikit-learn")
_KEYS = {"method", "parameters", "n_rows", "events", "weight_type", "hash", "versions"}


def provenance(recalibrator, scores, codes, sample_weight):
    """Return where a fit comes from as plain values.

    ``method`` and ``parameters`` as they were in the fit; ``n_rows``; ``events``, the number of rows of each class in
    the order of `classes_`; ``weight_type``, "frequency" where there were weights, else None; ``hash`` of the scores,
    labels and weights in any order (see `row_hash`); ``versions`` of Python and the packages.
    """
    names = [
        name
        for name in recalibrator._parameter_constraints
        if name in vars(recalibrator)
    ]
    return {
        "method": type(recalibrator).__name__,
        "parameters": {name: _plain(vars(recalibrator)[name]) for name in names},
        "n_rows": len(scores),
        "events": _counts(codes, len(recalibrator.classes_)),
        "weight_type": None if sample_weight is None else "frequency",
        "hash": row_hash(scores, codes, sample_weight),
        "versions": dict(_versions()),
    }


def check_provenance(value):
    """Check what `provenance` returned, for states that are read."""
    if not isinstance(value, dict) or value.keys() != _KEYS:
        raise ValueError(f"must be a dict with the keys {', '.join(sorted(_KEYS))}")
    json.dumps(value, allow_nan=False)  # raises unless all of it is plain
    return value


def provenance_text(recalibrator):
    """Return the provenance of a fitted recalibrator in one line that is safe in comments, "" where there is none."""
    text = json.dumps(getattr(recalibrator, "provenance_", {}), separators=(", ", " "))
    return re.sub(r"[^A-Za-z0-9 _.,=()\[\]-]", " ", text.replace('"', "")).strip()


def _counts(codes, n_classes):
    if n_classes > 2:
        return np.bincount(codes, minlength=n_classes).tolist()
    n_events = int(
        np.count_nonzero(codes)
    )  # a tenth of the time, and a sixth of a fit of bins
    return [len(codes) - n_events, n_events]


def _plain(value):
    """Return a parameter as a plain value; of an object its class and parameters."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    own = {
        name: one
        for name, one in getattr(value, "__dict__", {}).items()
        if not name.endswith("_")
    }
    name = getattr(value, "__name__", type(value).__name__)
    return {"class": name, **_plain(own)} if own else name


@cache
def _versions():
    own = sys.modules[
        "skcalib"
    ].__version__  # the front of the package stands above this room
    return {
        "skcalib": own,
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }
