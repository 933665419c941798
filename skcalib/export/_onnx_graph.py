"""ONNX graphs of calibration maps: checks of their input, the map, and a decision."""

from typing import NamedTuple

import numpy as np

from skcalib._defaults import check_fitted
from skcalib._input.limits import MAX_MAGNITUDE
from skcalib._rows.links import LARGEST_GAP
from skcalib.export._onnx_nodes import TYPES, Graph
from skcalib.maps import calibration_map

# How far a probability or a row's sum may be off by rounding: (refused beyond, left
# untouched within).
ROUNDING = {"float32": (1e-3, 1e-6), "float64": (1e-6, 1e-12)}


def graph_of(
    recalibrator,
    dtype,
    opset,
    scores="scores",
    calibrated="calibrated",
    group=None,
    decision=None,
    features=None,
):
    """Return the `Graph` of a fitted recalibrator.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator.
    dtype : {"float32", "float64"}
        Type of the input and of the output.
    opset : int
        Version of the ONNX operator set.
    scores, calibrated : str
        Names of the input and of the output.
    group : str, default=None
        Name of the input of groups; None means that the graph has none.
    decision : Decision, default=None
        Adds the output ``decision``.
    features : str, default=None
        Name of the input of features; None means that the graph has none.
    """
    check_fitted(recalibrator)
    as_map = calibration_map(
        recalibrator, n_columns=getattr(recalibrator, "_score_width", None)
    )
    if as_map.group_key is not None and group is None:
        raise ValueError(
            "A GroupwiseRecalibrator whose groups are passed as an array cannot be"
            " converted in a pipeline, which passes only scores: write it with"
            " skcalib.export.to_onnx, whose graph has a second input."
        )
    if as_map.features is not None and features is None:
        raise ValueError(
            f"{type(recalibrator).__name__}(features=...) cannot be converted in a"
            " pipeline, which passes only scores: write it with skcalib.export.to_onnx,"
            " whose graph has a second input."
        )
    return graph_of_map(
        as_map, dtype, opset, scores, calibrated, group, decision, features=features
    )


def graph_of_map(
    as_map,
    dtype,
    opset,
    scores,
    calibrated,
    group,
    decision=None,
    *,
    features=None,
    otherwise_nan=False,
):
    """Return the `Graph` of a `CalibrationMap`. `dtype` is the type of input and
    output; `scores`, `calibrated`, `group` and `features` are the names of outputs and
    inputs, None for an input that there is not; a `decision` adds an output.

    Groups that the map does not name have the pooled fit or, with `otherwise_nan`, give
    NaN.
    """
    graph = Graph(opset, scores, calibrated, as_map, group, features)
    checked = _checked_input(graph, as_map, *ROUNDING[dtype])
    graph.scores = checked.scores
    graph.is_impossible = checked.is_impossible
    valid = checked.valid
    if as_map.features is not None:
        graph.features = graph.add("Cast", features, to=TYPES["float64"])
        size = graph.add("Abs", graph.features)
        is_finite = graph.add("LessOrEqual", size, MAX_MAGNITUDE)
        are_finite = graph.all_of(is_finite, as_map.features.width)
        valid = graph.add("And", valid, are_finite)
    output = graph.write(as_map.output)
    if otherwise_nan:
        # The index of all other groups is the largest.
        key = as_map.group_key
        is_known = graph.add("Less", graph.key_index(key), key.otherwise)
        valid = graph.add("And", valid, is_known)
    if len(as_map.classes) == 2:
        output = graph.add("Concat", graph.add("Sub", 1.0, output), output, axis=1)
    if decision is not None:
        _add_decision(graph, decision, output, valid)
    output = graph.add("Where", valid, output, np.nan)
    graph.add("Cast", output, to=TYPES[dtype], output=calibrated)
    return graph


def _add_decision(graph, decision, probabilities, valid):
    """Add the output ``decision``, labels (n,); `probabilities` (n, K) and `valid`,
    booleans (n, 1), are names.
    """
    labels = np.array(decision.labels)
    if labels.dtype.kind == "U":
        labels = labels.astype(object)  # ONNX takes texts as objects
    graph.decision = graph.constant(labels)
    # the score that is compared, and the index of the label if it is reached
    if decision.is_event:
        score = graph.add("Gather", probabilities, [1], axis=1)
        accepted = 1
    else:
        score = graph.row_extreme("ReduceMax", probabilities)
        accepted = graph.largest(probabilities)
    reaches_threshold = graph.add("GreaterOrEqual", score, decision.threshold)
    is_accepted = graph.add("And", valid, reaches_threshold)
    index = graph.add("Where", is_accepted, accepted, decision.otherwise)
    index = graph.add("Reshape", index, [-1])
    graph.add("Gather", graph.decision, index, axis=0, output="decision")


class _CheckedInput(NamedTuple):
    """Names of what a graph makes of its input.

    Attributes
    ----------
    valid : str
        Booleans (n, 1) that say which rows are valid.
    scores : str
        Scores (n, C): probabilities in [0, 1] in rows that sum to 1, or logits.
    is_impossible : str or None
        Booleans (n, K) that say which classes are impossible; None for probabilities,
        and for one column.
    """

    valid: str
    scores: str
    is_impossible: str | None = None


def _checked_input(graph, as_map, refused, untouched):
    """Add nodes that check the input and make of it what a `CalibrationMap` takes;
    return a `_CheckedInput`.

    A probability, or a row's sum, that is off by more than `refused` is invalid; a row
    whose sum is off by at most `untouched` is not divided by it.
    """
    raw = graph.add("Cast", graph.name_in, to=TYPES["float64"])
    if as_map.input == "logit":
        return _checked_logits(graph, as_map, raw)
    # As one condition, which NaN fails: |s - 1/2| <= 1/2 and rounding.
    distance = graph.add("Abs", graph.add("Sub", raw, 0.5))
    is_near = graph.add("LessOrEqual", distance, 0.5 + refused)
    valid = graph.all_of(is_near, as_map.scores.width)
    scores = graph.add("Clip", raw, 0.0, 1.0)
    if as_map.scores.width == 1:
        return _CheckedInput(valid, scores)
    total = graph.row_sum(scores)
    error_of_sum = graph.add("Abs", graph.add("Sub", total, 1.0))
    is_near = graph.add("LessOrEqual", error_of_sum, refused)
    valid = graph.add("And", valid, is_near)
    stays = graph.add("LessOrEqual", error_of_sum, untouched)
    divisor = graph.add("Where", stays, 1.0, total)
    return _CheckedInput(valid, graph.add("Div", scores, divisor))


def _checked_logits(graph, as_map, raw):
    """Return the `_CheckedInput` of logits, named `raw`. If classes can be impossible,
    one is so if its logit is -inf or more than 700 below the largest of its row, which
    must be finite.
    """
    if not as_map._leaves_impossible_out:
        is_finite = graph.add("LessOrEqual", graph.add("Abs", raw), MAX_MAGNITUDE)
        return _CheckedInput(graph.all_of(is_finite, as_map.scores.width), raw)
    largest = graph.row_extreme("ReduceMax", raw)
    # A logit of -inf is valid if the largest one is, which is checked in its place.
    is_infinite = graph.add("Equal", raw, -np.inf)
    size = graph.add("Abs", graph.add("Where", is_infinite, largest, raw))
    is_finite = graph.add("LessOrEqual", size, MAX_MAGNITUDE)
    valid = graph.all_of(is_finite, as_map.scores.width)
    lowest_possible = graph.add("Sub", largest, LARGEST_GAP)
    is_impossible = graph.add("Less", raw, lowest_possible)
    # Impossible classes get a logit at which they stay so; lower ones could overflow.
    replacement = graph.add("Sub", largest, 2 * LARGEST_GAP)
    scores = graph.add("Where", is_impossible, replacement, raw)
    return _CheckedInput(valid, scores, is_impossible)
