"""Calibration maps as Python: one pure function of the standard library."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Mapping
from textwrap import indent
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skcalib import maps as nodes
from skcalib._fitting.provenance import provenance_text
from skcalib._input.limits import MAX_MAGNITUDE
from skcalib._rows.links import LARGEST_GAP, PROBABILITY_CLIP
from skcalib.export._segments import (
    check_no_features,
    one_number_of_classes,
    segment_items,
)
from skcalib.export._writers import FunctionWriter, split_decision
from skcalib.maps import calibration_map

_LOW = repr(PROBABILITY_CLIP)
_HIGH = repr(1 - PROBABILITY_CLIP)
# Functions of lists that the texts of nodes call; those that are called are written.
_HELPERS = {
    "lazy": """
def lazy(compute):
    computed = []
    def value():
        if not computed:
            computed.append(compute())
        return computed[0]
    return value
""",
    "clip": """
def clip(x, low, high):
    return [min(max(v, low), high) for v in x]
""",
    "inside": f"""
def inside(x):
    return [min(max(v, {_LOW}), {_HIGH}) for v in x]
""",
    "log_odds": """
def log_odds(x):
    return [math.log(p) - math.log1p(-p) for p in inside(x)]
""",
    "against_rest": """
def against_rest(x):
    p = inside(x)
    total = sum(p)
    small = sum(v for v in p if v <= 0.5)
    rest = inside([small if v > 0.5 else total - v for v in p])
    return [math.log(v) - math.log(r) for v, r in zip(p, rest)]
""",
    "sides": """
def sides(x):
    z = x[0]
    s = math.log1p(math.exp(-abs(z)))
    return [min(z, 0.0) - s, max(z, 0.0) + s]
""",
    "expit": """
def expit(x):
    odds = [math.exp(-abs(v)) for v in x]
    return [(1.0 if v >= 0 else e) / (1.0 + e) for v, e in zip(x, odds)]
""",
    "softmax": """
def softmax(x):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    total = sum(e)
    return [v / total for v in e]
""",
    "log_normalized": """
def log_normalized(x):
    top = max(x)
    s = math.log(sum(math.exp(v - top) for v in x)) + top
    return [v - s for v in x]
""",
    "normalized": """
def normalized(x):
    s = sum(x)
    return [v / s if s > 0 else 1 / len(x) for v in x]
""",
    "largest": """
def largest(x):
    return x.index(max(x))
""",
    "spread": """
def spread(x, confidence):
    c = confidence[0]
    k = largest(x)
    rest = normalized(x[:k] + x[k + 1:])
    shares = [s * (1 - c) for s in rest]
    return shares[:k] + [c] + shares[k:]
""",
    "centred": """
def centred(x):
    mean = sum(x) / len(x)
    return [v - mean for v in x]
""",
    "among": """
def among(f, x, closed):
    # a function of the possible classes alone: the others get 0
    y = iter(f([v for v, c in zip(x, closed) if not c]))
    return [0.0 if c else next(y) for c in closed]
""",
    "open_": """
def open_(p, closed):
    left = [0.0 if c else v for v, c in zip(p, closed)]
    s = sum(left)
    if s > 0:
        return [v / s for v in left]
    return normalized([0.0 if c else 1.0 for c in closed])
""",
    "place": """
def place(x, cuts):
    return bisect_left(cuts, x[0])
""",
    "piece": """
def piece(x, cuts, origins, coefficients):
    i = place(x, cuts)
    step = x[0] - origins[i]
    value = 0.0
    for c in reversed(coefficients[i]):
        value = value * step + c
    return [value]
""",
    "dot": """
def dot(row, x):
    return sum(c * v for c, v in zip(row, x))
""",
}

# What nodes are: names in braces are the texts of their fields.
_TEXTS = {
    nodes.Scores: "x",
    nodes.Features: "u",
    nodes.OneColumn: "[{of}[{index}]]",
    nodes.Clip: "clip({of}, {low}, {high})",
    nodes.Scaled: "[{slope} * v + {intercept} for i, v in enumerate({of})]",
    nodes.Affine: "[dot(row, {of}) + b for row, b in zip({coef}, {intercept})]",
    nodes.Exp: "[math.exp(v) for v in clip({of}, -700.0, 700.0)]",
    nodes.Log: "[math.log(v) for v in inside({of})]",
    nodes.LogOdds: "log_odds({of})",
    nodes.LogOddsAgainstRest: "against_rest({of})",
    nodes.LogSides: "sides({of})",
    nodes.Expit: "expit({of})",
    nodes.Pieces: "piece({of}, {cuts}, {origins}, {coefficients})",
    nodes.Centred: "centred({of})",
    nodes.Possible: "[0.0 if c else v for v, c in zip({of}, closed)]",
    nodes.LogNormalized: "log_normalized({of})",
    nodes.Softmax: "softmax({of})",
    nodes.Normalized: "normalized({of})",
    nodes.Times: "[{factor}[0] * v for v in {of}]",
    nodes.RowMax: "[max({of})]",
    nodes.Spread: "spread({of}, {confidence})",
}


_TAKEN = ("math", "bisect_left", "_make")  # names at the head of the written module


def to_python(
    recalibrator: BaseEstimator | Mapping | Any, *, name: str = "calibrate"
) -> str:
    """Return a fitted recalibrator as a function that needs only the standard library.

    The function is intended for services that answer one request at a time without
    NumPy.

    Parameters
    ----------
    recalibrator : recalibrator
        Any object that `to_javascript` accepts: a fitted recalibrator that has a map, a
        `CertifiedThresholdClassifier` that wraps one in a `FrozenEstimator`, or a dict
        that maps groups to recalibrators.
    name : str, default="calibrate"
        Name of the function.

    Returns
    -------
    text : str
        Source of a module that defines the function, to be written to a file. It
        imports only `math` and `bisect`. For two classes, the function takes the
        positive class's probability (its log-odds with ``input="logit"``) and returns
        its calibrated probability; for K classes, it takes and returns a list. If
        groups are used, they are the second argument. With `features`, the second
        argument is a list of their numbers, in the order of that parameter. For a
        `CertifiedThresholdClassifier`, the result is the label that `predict` returns.

    Raises
    ------
    ValueError
        If the recalibrator cannot be exported, or if `name` is not a valid identifier.

    See Also
    --------
    skcalib.export.to_javascript : Writes a recalibrator as a JavaScript function.
    skcalib.export.to_dict : Stores the recalibrator for use with this package.

    Notes
    -----
    An invalid input gives NaN, or a list of NaN; a decision is then None. Invalid
    inputs are NaN, None, text, a score out of range, probabilities that do not sum to
    1, None as the group, and a feature that is no finite number. Groups that were not
    seen in `fit` use the pooled fit, and a group that a dict of maps lacks gives NaN. A
    logit of minus infinity, or more than 700 below the largest, marks an impossible
    class. The results agree with those of `predict_proba` to within 1e-12.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib import PlattScaling
    >>> from skcalib.export import to_python
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> platt = PlattScaling().fit(scores, rng.random(1000) < scores**2)
    >>> module = {}
    >>> exec(to_python(platt, name="honest"), module)
    >>> difference = module["honest"](0.3) - platt.predict_proba([0.3])[0, 1]
    >>> abs(float(difference)) < 1e-12
    True
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"name must be a valid Python name, found {name!r}.")
    if hasattr(builtins, name) or name in _TAKEN:
        raise ValueError(
            f"name must not be {name!r}, which the function itself may use."
        )
    if isinstance(recalibrator, Mapping):
        body = _by_segment(recalibrator)
    else:
        body = _of_one(recalibrator)
    return (
        "import math\nfrom bisect import bisect_left\n\n\n"
        f"def _make():\n{indent(body, '    ')}\n\n{name} = _make()\n"
    )


def _of_one(recalibrator):
    """Return the text of a function body that defines and returns ``calibrate(score)``,
    ``calibrate(score, group)`` or ``calibrate(score, features)``.
    """
    recalibrator, decision = split_decision(recalibrator)
    as_map = calibration_map(recalibrator)
    writer = _Writer()
    body = "\n".join(writer.body(as_map, decision))
    arguments = "score"
    if as_map.group_key is not None:
        arguments = "score, group"
    elif as_map.features is not None:
        arguments = "score, features"
    lines = [
        f"# {provenance_text(recalibrator)}",
        *_used_helpers(body),
        *writer.constants.values(),
        "",
        f"def calibrate({arguments}):",
        indent(body, "    "),
        "",
        "return calibrate",
    ]
    return "\n".join(lines) + "\n"


def _by_segment(maps):
    """Return the text of a function body that defines and returns ``calibrate(score,
    group)`` for a dict of recalibrators by segment.
    """
    pairs = segment_items(maps)
    n_classes = one_number_of_classes(pairs)
    check_no_features(pairs)
    lines = ["maps = {}"]  # in the text: the function of each segment
    for segment, recalibrator in pairs:
        lines.append(f"def make():\n{indent(_of_one(recalibrator), '    ')}")
        lines.append(f"maps[{_literal(segment)}] = make()")
    otherwise = _Writer().missing_result(n_classes)  # NaN for unknown segments
    lines += [
        "",
        "def calibrate(score, group):",
        f"    return maps[group](score) if group in maps else {otherwise}",
        "",
        "return calibrate",
    ]
    return "\n".join(lines) + "\n"


def _used_helpers(text):
    """Return the definitions of the helpers that a text calls, and of those that these
    call, a list of str.
    """
    # A helper of `_HELPERS` only calls those before it, so that all callers of one have
    # been looked at when its turn comes.
    used = []
    for name, code in reversed(_HELPERS.items()):
        if re.search(rf"(?<![.\w]){name}\(", text):
            used.append(code)
            text += code
    return used[::-1]


def _literal(value):
    """Return the text of a plain value; numbers that are not finite have no literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


class _Writer(FunctionWriter):
    """Writes nodes as lists of their values."""

    format = "Python"
    templates = _TEXTS
    later = "lambda: {value}"
    function_of_values = "lambda v: {value}"
    rescaling_helper = "open_"
    no_number = "math.nan"
    several = "[{value}] * {n}"

    def label_of(self, decision, score, accepted, probabilities):
        """Return the text of the label that a `Decision` gives to a row."""
        labels = self.constant(_literal(decision.labels))
        self.statements.append(f"p = {probabilities}")
        is_accepted = f"{score} >= {decision.threshold!r}"
        return f"{labels}[{accepted} if {is_accepted} else {decision.otherwise}]"

    def literal(self, value):
        """Return the text of a plain value, or of an array as a list."""
        if isinstance(value, np.ndarray | tuple):
            value = np.asarray(value).tolist()
        return repr(value)

    def input_statements(self, as_map):
        """Yield the Python statements for the argument `score` of the function of a
        `CalibrationMap`: they define `x`, the scores of a row as a list, and `u`, its
        features, and return INVALID, which the caller replaces, if a score, the group
        or a feature is invalid.

        If classes can be impossible, `closed` says for each class whether it is.
        """
        low = 0.0
        high = 1.0
        if as_map.input == "logit":
            low = -MAX_MAGNITUDE
            high = MAX_MAGNITUDE
        n = as_map.scores.width
        if n == 1:
            yield "x = [score]"
        else:
            yield "x = list(score) if hasattr(score, '__iter__') else []"
        # True and text would count as numbers.
        is_score = f"not isinstance(v, bool) and {low} <= v <= {high}"
        has_impossible = as_map._leaves_impossible_out
        if has_impossible:  # a logit of -inf says that its class is impossible
            is_score = f"{is_score} or v == -math.inf"
        yield "try:"
        yield f"    is_valid = len(x) == {n} and all({is_score} for v in x)"
        yield "except TypeError:"
        yield "    is_valid = False"
        yield "if not is_valid:"
        yield "    return INVALID"
        yield "x = [float(v) for v in x]"
        if has_impossible:
            yield "top = max(x)"
            yield "if top == -math.inf:"
            yield "    return INVALID"
            yield f"closed = [v < top - {LARGEST_GAP:g} for v in x]"
        if as_map.group_key is not None:
            yield "if group is None:"
            yield "    return INVALID"
        if as_map.features is not None:
            is_number = f"abs(v) <= {MAX_MAGNITUDE}"
            yield "try:"
            yield "    u = [float(v) for v in features if not isinstance(v, str)]"
            yield f"    is_valid = len(u) == len(features) == {as_map.features.width}"
            yield f"    is_valid = is_valid and all({is_number} for v in u)"
            yield "except TypeError:"
            yield "    is_valid = False"
            yield "if not is_valid:"
            yield "    return INVALID"
        if as_map.input == "probability" and n > 1:
            # The sum may differ from 1 by 1e-6; beyond rounding it is divided by.
            yield "total = sum(x)"
            yield "off = abs(total - 1)"
            yield "if off > 1e-6:"
            yield "    return INVALID"
            yield "if off > 1e-12:"
            yield "    x = [v / total for v in x]"

    def _write_Columns(self, node):
        columns = ", ".join(f"*{self.write(part)}" for part in node.parts)
        return f"[{columns}]"

    def _write_Choice(self, node):
        """Write a call of one entry of a list of functions, one for each case."""
        cases = ", ".join(f"lambda: {self.write(case)}" for case in node.cases)
        return f"[{cases}][{self._key(node.key)}]()"

    def _write_Mixture(self, node):
        """Write the weighted sum of several nodes of equal width, plus a constant."""
        # In the code that is written, p is one value of each node, and the helper `dot`
        # returns the sum of the products of two sequences.
        weights = self.constant(np.asarray(node.weights, dtype=np.float64))
        parts = ", ".join(self.write(part) for part in node.parts)
        constant = float(node.constant)
        return f"[dot({weights}, p) + {constant!r} for p in zip({parts})]"

    def _group_key(self, key):
        """Return the expression for the index of the case of a row's group; others have
        `key.otherwise`.
        """
        numbers = self.constant(repr(dict(key.cases)))
        return f"{numbers}.get(group, {key.otherwise})"
