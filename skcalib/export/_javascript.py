"""Calibration maps as JavaScript: one pure function, without dependencies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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

_LARGEST_INTEGER = 2**53  # beyond it numbers of JavaScript are not exact
_LOW = repr(PROBABILITY_CLIP)
_HIGH = repr(1 - PROBABILITY_CLIP)
# Functions of arrays that the texts of nodes call; those that are called are written.
_HELPERS = {
    "lazy": "f => { let v; return () => v === undefined ? (v = f()) : v; }",
    "sum": "x => x.reduce((a, b) => a + b, 0)",
    "max": "x => x.reduce((a, b) => Math.max(a, b))",
    "clip": "(x, low, high) => x.map(v => Math.min(Math.max(v, low), high))",
    "inside": f"x => clip(x, {_LOW}, {_HIGH})",
    "logOdds": "x => inside(x).map(p => Math.log(p) - Math.log1p(-p))",
    "againstRest": (
        "x => { const p = inside(x), all = sum(p), small = sum(p.map(v => v > 0.5 ? 0 :"
        " v)); return p.map(v => Math.log(v) - Math.log(inside([v > 0.5 ? small : all -"
        " v])[0])); }"
    ),
    "sides": (
        "([z]) => { const s = Math.log1p(Math.exp(-Math.abs(z)));"
        " return [Math.min(z, 0) - s, Math.max(z, 0) + s]; }"
    ),
    "expit": "x => x.map(v => 1 / (1 + Math.exp(-v)))",
    "softmax": (
        "x => { const m = max(x), e = x.map(v => Math.exp(v - m)), s = sum(e); return"
        " e.map(v => v / s); }"
    ),
    "logNormalized": (
        "x => { const m = max(x), s = Math.log(sum(x.map(v => Math.exp(v - m)))) + m;"
        " return x.map(v => v - s); }"
    ),
    "normalized": (
        "x => { const s = sum(x); return x.map(v => s > 0 ? v / s : 1 / x.length); }"
    ),
    "largest": "x => x.indexOf(max(x))",
    "spread": (
        "(x, [c]) => { const k = largest(x), s = normalized(x.filter((_, i) => i !=="
        " k)); return x.map((_, i) => i === k ? c : s[i - (i > k)] * (1 - c)); }"
    ),
    "centred": "x => x.map(v => v - sum(x) / x.length)",
    # A function of the possible classes alone: the others get 0.
    "among": (
        "(f, x, closed) => { const y = f(x.filter((_, i) => !closed[i])); let k = 0;"
        " return x.map((_, i) => closed[i] ? 0 : y[k++]); }"
    ),
    "open": (
        "(p, closed) => { const left = p.map((v, i) => closed[i] ? 0 : v), s ="
        " sum(left); return s > 0 ? left.map(v => v / s) :"
        " normalized(closed.map(v => v ? 0 : 1)); }"
    ),
    "place": (
        "([x], cuts) => { let low = 0, high = cuts.length; while (low < high) { const i"
        " = (low + high) >> 1; if (cuts[i] < x) low = i + 1; else high = i; } return"
        " low; }"
    ),
    "piece": (
        "(x, cuts, origins, coefficients) => { const i = place(x, cuts), step = x[0] -"
        " origins[i]; return [coefficients[i].reduceRight((value, c) => value * step +"
        " c)]; }"
    ),
    "dot": "(row, x) => row.reduce((total, c, i) => total + c * x[i], 0)",
}

# What nodes are: names in braces are the texts of their fields.
_TEXTS = {
    nodes.Scores: "x",
    nodes.Features: "u",
    nodes.OneColumn: "[{of}[{index}]]",
    nodes.Clip: "clip({of}, {low}, {high})",
    nodes.Scaled: "{of}.map((v, i) => {slope} * v + {intercept})",
    nodes.Affine: "{coef}.map((row, i) => dot(row, {of}) + {intercept}[i])",
    nodes.Exp: "clip({of}, -700, 700).map(Math.exp)",
    nodes.Log: "inside({of}).map(Math.log)",
    nodes.LogOdds: "logOdds({of})",
    nodes.LogOddsAgainstRest: "againstRest({of})",
    nodes.LogSides: "sides({of})",
    nodes.Expit: "expit({of})",
    nodes.Pieces: "piece({of}, {cuts}, {origins}, {coefficients})",
    nodes.Centred: "centred({of})",
    nodes.Possible: "{of}.map((v, i) => closed[i] ? 0 : v)",
    nodes.LogNormalized: "logNormalized({of})",
    nodes.Softmax: "softmax({of})",
    nodes.Normalized: "normalized({of})",
    nodes.Times: "{of}.map(v => {factor}[0] * v)",
    nodes.RowMax: "[max({of})]",
    nodes.Spread: "spread({of}, {confidence})",
}


# The reserved words of ECMAScript, in strict mode and in modules too, and the objects
# and values that the written function uses.
_RESERVED = (
    "arguments await break case catch class const continue debugger default delete do"
    " else enum eval export extends false finally for function if implements import in"
    " instanceof interface let new null package private protected public return static"
    " super switch this throw true try typeof undefined var void while with yield"
    " Array Infinity Map Math NaN Number String isFinite isNaN"
)
_TAKEN = frozenset(_RESERVED.split())


def to_javascript(
    recalibrator: BaseEstimator | Mapping | Any, *, name: str = "calibrate"
) -> str:
    """Return a fitted recalibrator as a JavaScript function.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator that has a map: any recalibrator in this package except a
        `MulticalibratedRecalibrator` with rounds, a `UniformMassBinning` with
        ``randomize=True``, and a `GroupwiseRecalibrator` whose groups are computed by a
        function. It can also be a `CertifiedThresholdClassifier` that wraps such a
        recalibrator in a `FrozenEstimator`, or a dict that maps groups to
        recalibrators, as returned by `PredictionTable(by=...).fit`. For a dict, the
        group is the second argument of the function, and unknown groups give NaN.
    name : str, default="calibrate"
        Name of the function.

    Returns
    -------
    text : str
        The statement ``const calibrate = ...;``. For two classes, the function takes
        the positive class's probability (its log-odds with ``input="logit"``) and
        returns its calibrated probability; for K classes, it takes and returns arrays.
        If groups are used, the group is the second argument. With `features`, the
        second argument is an array of their numbers, in the order of that parameter.
        For a `CertifiedThresholdClassifier`, the result is the label that `predict`
        returns.

    Raises
    ------
    ValueError
        If the recalibrator cannot be exported, or if `name` is not a valid identifier.

    See Also
    --------
    skcalib.export.to_onnx : Writes a recalibrator as an ONNX graph.
    skcalib.export.to_sql : Writes a recalibrator as an SQL expression.

    Notes
    -----
    Arrays of scores may be typed (Float32Array and others). An invalid input gives NaN,
    or an array of NaN; a decision is then null. Invalid inputs are NaN, null, text, a
    hole in an array, a score out of range, probabilities that do not sum to 1, a group
    that is null or undefined, and a feature that is no finite number. Groups that were
    not seen in `fit` use the pooled fit. A logit of -Infinity, or more than 700 below
    the largest, marks an impossible class. The results agree with those of Python to
    within 1e-12; they may differ slightly because engines compute logarithms and
    exponentials in different ways. In a decision, a probability that is below the
    threshold by at most 1e-12 is treated as equal to it.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib import HistogramBinning
    >>> from skcalib.export import to_javascript
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> y = rng.random(1000) < scores**2
    >>> text = to_javascript(HistogramBinning(binning=5).fit(scores, y), name="honest")
    >>> text.splitlines()[0], text.splitlines()[-1]
    ('const honest = (() => {', '})();')
    """
    if isinstance(recalibrator, Mapping):
        return _by_segment(recalibrator, name)
    _check_name(name)
    recalibrator, decision = split_decision(recalibrator)
    as_map = calibration_map(recalibrator)
    writer = _Writer()
    body = writer.body(as_map, decision)
    arguments = "score"
    if as_map.group_key is not None:
        arguments = "score, group"
    elif as_map.features is not None:
        arguments = "score, features"
    lines = [f"const {name} = (() => {{", f"  // {provenance_text(recalibrator)}"]
    for line in [*_used_helpers("\n".join(body)), *writer.constants.values()]:
        lines.append(f"  {line}")
    lines.append(f"  return ({arguments}) => {{")
    for line in body:
        lines.append(f"    {line}")
    lines += ["  };", "})();"]
    return "\n".join(lines) + "\n"


def _by_segment(maps, name):
    """Return the text of a function of a score and a segment, for a dict of
    recalibrators by segment.
    """
    _check_name(name)
    pairs = segment_items(maps)
    n_classes = one_number_of_classes(pairs)
    check_no_features(pairs)
    lines = [f"const {name} = (() => {{", "  const maps = new Map();"]
    for number, (segment, recalibrator) in enumerate(pairs):
        text = to_javascript(recalibrator, name=f"map{number}")
        lines += [f"  {line}" for line in text.splitlines()]
        lines.append(f"  maps.set({_safe_json(segment)}, map{number});")
    otherwise = _Writer().missing_result(n_classes)  # NaN for unknown segments
    lines.append(
        "  return (score, group) => maps.has(group) ? maps.get(group)(score) :"
        f" {otherwise};"
    )
    lines.append("})();")
    return "\n".join(lines) + "\n"


def _check_name(name):
    """Raise a ValueError unless a name can be that of a function."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", name):
        raise ValueError(f"name must be a valid JavaScript name, found {name!r}.")
    if name in _TAKEN:
        raise ValueError(
            f"name must not be {name!r}, which JavaScript reserves or the function"
            " itself uses."
        )


def _safe_json(value):
    """Return a value as JSON for a script of an HTML page: "</", which could end it, is
    escaped.
    """
    return json.dumps(value).replace("</", "<\\/")


def _used_helpers(text):
    """Return the definitions of the helpers that a text calls, each after those that it
    calls itself.
    """
    # A helper of `_HELPERS` only calls those before it, so that all callers of one have
    # been looked at when its turn comes.
    used = []
    for name, code in reversed(_HELPERS.items()):
        if re.search(rf"(?<![.\w]){name}\(", text):
            used.append(f"const {name} = {code};")
            text += code
    return used[::-1]


def _json(value):
    """Return a value, or an array as lists, as JSON."""
    if isinstance(value, np.ndarray | tuple):
        value = np.asarray(value).tolist()
    return json.dumps(value, allow_nan=False)


class _Writer(FunctionWriter):
    """Writes nodes as arrays of their values."""

    format = "JavaScript"
    templates = _TEXTS
    statement = "const {name} = {value};"
    later = "() => {value}"
    function_of_values = "v => {value}"
    returning = "return {value};"
    none = "null"
    no_number = "NaN"
    several = "Array({n}).fill({value})"

    def label_of(self, decision, score, accepted, probabilities):
        """Return the text of the label that a `Decision` gives to a row."""
        labels = self.constant(_safe_json(decision.labels))
        # a function of the probabilities p, called at once
        return (
            f"{labels}[(p => {score} >= {decision.threshold!r} ? {accepted} :"
            f" {decision.otherwise})({probabilities})]"
        )

    def literal(self, value):
        """Return the text of a plain value, or of an array as an array."""
        return _json(value)

    def input_statements(self, as_map):
        """Yield the JavaScript statements for the argument `score` of the function of a
        `CalibrationMap`: they define `x`, the scores of a row as an array, and `u`, its
        features, and return INVALID, which the caller replaces, if a score, the group
        or a feature is invalid.

        If classes can be impossible, `closed` says for each class whether it is.
        """
        low = -MAX_MAGNITUDE
        high = MAX_MAGNITUDE
        if as_map.input == "probability":
            low = 0
            high = 1
        n = as_map.scores.width
        given = "[score]"
        if n > 1:
            # A plain array, whose `map` gives what it is told to: that of an Int8Array
            # rounds, and `every` leaves holes out.
            given = "Array.isArray(score) || ArrayBuffer.isView(score)"
            given += " ? Array.from(score) : []"
        yield f"let x = {given};"
        # null and text would count as numbers
        is_score = f"typeof v === 'number' && v >= {low} && v <= {high}"
        has_impossible = as_map._leaves_impossible_out
        if has_impossible:  # a logit of -inf says that its class is impossible
            is_score = f"v === -Infinity || {is_score}"
        yield f"if (x.length !== {n} || !x.every(v => {is_score})) return INVALID;"
        if has_impossible:
            yield "const top = max(x);"
            yield "if (top === -Infinity) return INVALID;"
            yield f"const closed = x.map(v => v < top - {LARGEST_GAP:g});"
        if as_map.group_key is not None:
            yield "if (group === null || group === undefined) return INVALID;"
        if as_map.features is not None:
            n_features = as_map.features.width
            yield (
                "const u = Array.isArray(features) || ArrayBuffer.isView(features)"
                " ? Array.from(features) : [];"
            )
            is_number = (
                f"typeof v === 'number' && Math.abs(v) <= {_json(MAX_MAGNITUDE)}"
            )
            yield (
                f"if (u.length !== {n_features} || !u.every(v => {is_number}))"
                " return INVALID;"
            )
        if as_map.input == "probability" and n > 1:
            # The sum may differ from 1 by 1e-6; beyond rounding it is divided by.
            yield "const total = sum(x), off = Math.abs(total - 1);"
            yield "if (!(off <= 1e-6)) return INVALID;"
            yield "if (off > 1e-12) x = x.map(v => v / total);"

    def _write_Columns(self, node):
        columns = ", ".join(f"...{self.write(part)}" for part in node.parts)
        return f"[{columns}]"

    def _write_Choice(self, node):
        """Write a call of one entry of an array of functions, one for each case."""
        cases = ", ".join(f"() => {self.write(case)}" for case in node.cases)
        return f"[{cases}][{self._key(node.key)}]()"

    def _write_Mixture(self, node):
        """Write the weighted sum of several nodes of equal width, plus a constant."""
        # Value i of the sum, as a function of i: `map` calls it for each i.
        terms = []
        for weight, part in zip(node.weights, node.parts, strict=True):
            terms.append(f"{float(weight)!r} * {self.write(part)}[i]")
        terms.append(repr(float(node.constant)))
        return f"{self.write(node.parts[0])}.map((_, i) => {' + '.join(terms)})"

    def _group_key(self, key):
        """Return the expression for the index of the case of a row's group; others have
        `key.otherwise`.
        """
        for group in key.cases:
            if isinstance(group, int) and abs(group) > _LARGEST_INTEGER:
                raise ValueError(
                    f"JavaScript cannot represent the group {group} exactly: use"
                    " strings as group names."
                )
        numbers = self.constant(f"new Map({_safe_json(list(key.cases.items()))})")
        return f"{numbers}.has(group) ? {numbers}.get(group) : {key.otherwise}"
