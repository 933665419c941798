"""Calibration maps as ONNX graphs: scores of any float type in, float64 inside,
probabilities out.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from skcalib import maps as nodes
from skcalib._defaults import check_fitted
from skcalib._input.scalars import check_int, check_option
from skcalib._input.scores import MAX_MAGNITUDE
from skcalib._rows.links import LARGEST_GAP, PROBABILITY_CLIP
from skcalib.export._segments import map_of_segments, segment_items
from skcalib.export._writers import NodeWriter, split_decision
from skcalib.maps import calibration_map

_NO_OVERFLOW = 700.0
_LOWEST = -1e300  # below every logit
_ML = "ai.onnx.ml"  # the domain of ONNX's operators on texts
# ONNX's numbers of types (TensorProto.FLOAT, INT64 and DOUBLE), which have never
# changed.
_TYPES = {"float32": 1, "int64": 7, "float64": 11}
# the oldest that has these operators, and the one that is taken where none is asked for
_OPSETS = (13, 17)
# How far a probability or a row's sum may be off by rounding: (refused beyond, left
# untouched within).
_ROUNDING = {"float32": (1e-3, 1e-6), "float64": (1e-6, 1e-12)}


def to_onnx(
    recalibrator: BaseEstimator | Mapping | Any,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    target_opset: int | None = None,
) -> Any:
    """Return a fitted recalibrator as an ONNX model.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator that has a map: any in this package except a
        `MulticalibratedRecalibrator` with rounds, a `UniformMassBinning` with
        ``randomize=True``, and a `GroupwiseRecalibrator` whose groups are computed by a
        function. Or a `CertifiedThresholdClassifier` around one in a `FrozenEstimator`,
        or a dict of maps by segment, as returned by `PredictionTable(by=...).fit`.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input and of the output. The graph computes in float64 either way.
    target_opset : int, default=None
        Version of the ONNX operator set, at least 13; None means 17. Two graphs joined
        by `onnx.compose` need the same version.

    Returns
    -------
    model : onnx.ModelProto
        With the input ``scores`` (as many columns as in `fit`) and the output
        ``calibrated`` (one column per class). A `GroupwiseRecalibrator` whose groups
        are passed directly or taken from a column has a second input ``group``: strings
        of shape (n, 1) (other types are converted to strings); unknown groups use the
        pooled fit. A dict of maps also has this input, and returns NaN for unknown
        segments. A `CertifiedThresholdClassifier` has a second output ``decision`` of
        shape (n,), the label that `predict` returns. The properties ``classes`` and
        ``provenance`` are JSON.

    Raises
    ------
    ImportError
        If the package onnx is not installed: the extra is ``skcalib[onnx]``.
    ValueError
        If the recalibrator cannot be written as a graph, or an argument is wrong.

    See Also
    --------
    skcalib.export.register_skl2onnx_converters : Converts whole pipelines.
    skcalib.export.to_sql : Writes a recalibrator as an SQL expression.
    skcalib.export.to_dict : Writes a recalibrator as plain JSON values.

    Notes
    -----
    A graph cannot raise an error: rows that `predict_proba` rejects (NaN, scores out of
    range, probabilities that do not sum to 1) give NaN, and are below the threshold of
    a decision. In a decision, a probability that is below the threshold by at most
    1e-12 counts as equal to it. A logit of -inf next to others means that the class is
    impossible, as in `predict_proba`.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime  # doctest: +SKIP
    >>> from skcalib import PlattScaling
    >>> from skcalib.export import to_onnx
    >>> fitted = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1])
    >>> model = to_onnx(fitted)  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession(
    ...     model.SerializeToString()
    ... )  # doctest: +SKIP
    >>> scores = np.array([[0.25]], dtype=np.float32)
    >>> session.run(None, {"scores": scores})  # doctest: +SKIP
    """
    onnx = import_onnx()
    check_option(dtype, "dtype", _ROUNDING)
    oldest, opset = _OPSETS
    if target_opset is not None:
        opset = check_int(
            target_opset,
            "target_opset",
            minimum=oldest,
            maximum=onnx.defs.onnx_opset_version(),
        )
    if isinstance(recalibrator, dict):
        as_map = map_of_segments(recalibrator)
        graph = _graph_of_map(
            as_map, dtype, opset, "scores", "calibrated", "group", otherwise_nan=True
        )
        provenance = {}
        for segment, of_segment in segment_items(recalibrator):
            provenance[str(segment)] = getattr(of_segment, "provenance_", None)
    else:
        recalibrator, decision = split_decision(recalibrator)
        graph = graph_of(recalibrator, dtype, opset, group="group", decision=decision)
        provenance = getattr(recalibrator, "provenance_", None)
    properties = {"classes": graph.as_map.classes.tolist(), "provenance": provenance}
    return _model(onnx, graph, dtype, opset, properties)


def import_onnx():
    """Return the package onnx, which is optional."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ImportError(
            "to_onnx needs the package onnx: pip install 'skcalib[onnx]'."
        ) from None
    return onnx


def graph_of(
    recalibrator,
    dtype,
    opset,
    scores="scores",
    calibrated="calibrated",
    group=None,
    decision=None,
):
    """Return the `Graph` of a fitted recalibrator between inputs and an output of these
    names, and of a decision.
    """
    check_fitted(recalibrator)
    as_map = calibration_map(
        recalibrator, n_columns=getattr(recalibrator, "_score_width", None)
    )
    if as_map.group_key is not None and group is None:
        raise ValueError(
            "GroupwiseRecalibrator with given groups is not converted as a part of a"
            " pipeline, which has scores alone: write it with skcalib.export.to_onnx,"
            " whose graph has a second input."
        )
    return _graph_of_map(as_map, dtype, opset, scores, calibrated, group, decision)


def _graph_of_map(
    as_map,
    dtype,
    opset,
    scores,
    calibrated,
    group,
    decision=None,
    *,
    otherwise_nan=False,
):
    """Return the `Graph` of a map; groups that it does not name have the pooled fit, or
    give NaN.
    """
    graph = Graph(opset, scores, calibrated, as_map, group)
    valid, graph.scores, graph.is_impossible = _front(graph, as_map, *_ROUNDING[dtype])
    output = graph.write(as_map.output)
    if otherwise_nan:
        is_known = graph.add(
            "Less", graph._key(as_map.group_key), as_map.group_key.otherwise
        )
        valid = graph.add("And", valid, is_known)
    if len(as_map.classes) == 2:
        output = graph.add("Concat", graph.add("Sub", 1.0, output), output, axis=1)
    if decision is not None:
        _add_decision(graph, decision, output, valid)
    output = graph.add("Where", valid, output, np.nan)
    graph.add("Cast", output, to=_TYPES[dtype], output=calibrated)
    return graph


def _add_decision(graph, decision, probabilities, valid):
    """Add the output ``decision``, labels (n,)."""
    labels = np.array(decision.labels)
    graph.decision = graph.constant(
        labels, object if labels.dtype.kind == "U" else labels.dtype
    )
    if decision.is_event:
        score = graph.add("Gather", probabilities, [1], axis=1)
        accepted = 1
    else:
        score = graph.row_extreme("ReduceMax", probabilities)
        accepted = graph._largest(probabilities)
    is_reached = graph.add(
        "And", valid, graph.add("GreaterOrEqual", score, decision.threshold)
    )
    place = graph.add(
        "Reshape", graph.add("Where", is_reached, accepted, decision.otherwise), [-1]
    )
    graph.add("Gather", graph.decision, place, axis=0, output="decision")


class Graph(NodeWriter):
    """The nodes and constants of a graph.

    Attributes
    ----------
    nodes : list of (operator, inputs, output, attributes)
        In the order in which they run.
    constants : dict
        From name to array.
    """

    format = "ONNX"

    def __init__(self, opset, name_in, name_out, as_map, group):
        self.opset = opset
        self.name_in = name_in
        self.name_out = name_out
        self.as_map = as_map
        self.group = group
        super().__init__()
        self.nodes = []
        self.constants = {}
        self.names = {}
        self.scores = name_in
        self.decision = None

    def add(self, operator, *inputs, output=None, **attributes):
        """Add a node and return the name of its output. Inputs are names, or numbers
        and arrays: constants.
        """
        output = output or f"{self.name_out}_{operator.lower()}_{len(self.nodes)}"
        names = []
        for name in inputs:
            if not isinstance(name, str):
                name = self.constant(name)
            names.append(name)
        self.nodes.append((operator, names, output, attributes))
        return output

    def constant(self, value, dtype=None):
        """Return the name of a constant, float64 or int64 by its type; equal ones are
        written once.
        """
        array = np.asarray(value, dtype=dtype)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self.names:
            self.names[key] = f"{self.name_out}_constant_{len(self.names)}"
            self.constants[self.names[key]] = array
        return self.names[key]

    def inside(self, probability):
        """Keep probabilities in [2^-52, 1 - 2^-52]."""
        return self.add("Clip", probability, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)

    def row_sum(self, x):
        """Add up each row."""
        return self.add("ReduceSum", x, [1], keepdims=1)

    def row_extreme(self, operator, x):
        """Apply ReduceMax or ReduceMin to each row."""
        inputs, attributes = ([x], {"axes": [1]}) if self.opset < 18 else ([x, [1]], {})
        return self.add(operator, *inputs, keepdims=1, **attributes)

    def all_of(self, condition):
        """Return whether a condition holds in all columns of each row."""
        if self.as_map.scores.width == 1:
            return condition
        numbers = self.add("Cast", condition, to=_TYPES["float64"])
        return self.add("Greater", self.row_extreme("ReduceMin", numbers), 0.5)

    def shares(self, x, total, otherwise):
        """Return x / total, and a number where the total is 0."""
        positive = self.add("Greater", total, 0.0)
        divisor = self.add("Where", positive, total, 1.0)
        return self.add("Where", positive, self.add("Div", x, divisor), otherwise)

    def _write_Scores(self, node):
        return self.scores

    def _write_OneColumn(self, node):
        return self.add("Gather", self.write(node.of), [node.index], axis=1)

    def _write_Columns(self, node):
        return self.add("Concat", *(self.write(part) for part in node.parts), axis=1)

    def _write_Clip(self, node):
        return self.add("Clip", self.write(node.of), float(node.low), float(node.high))

    def _write_Scaled(self, node):
        """Write ``slope * x + intercept``."""
        if isinstance(node.of, nodes.Affine) and np.ndim(node.slope) == 0:
            # A product with one number after a matrix product is fused by onnxruntime,
            # which rounds it to float32.
            inner = node.of
            intercept = node.slope * inner.intercept + node.intercept
            return self.write(
                nodes.Affine(inner.of, node.slope * inner.coef, intercept)
            )
        product = self.add(
            "Mul", self.write(node.of), np.broadcast_to(node.slope, node.width)
        )
        if np.any(node.intercept):
            return self.add("Add", product, node.intercept)
        return product

    def _write_Affine(self, node):
        return self.add(
            "Add", self.add("MatMul", self.write(node.of), node.coef.T), node.intercept
        )

    def _write_Exp(self, node):
        return self.add(
            "Exp", self.add("Clip", self.write(node.of), -_NO_OVERFLOW, _NO_OVERFLOW)
        )

    def _write_Log(self, node):
        return self.add("Log", self.inside(self.write(node.of)))

    def _write_LogOdds(self, node):
        inside = self.inside(self.write(node.of))
        return self.add(
            "Sub",
            self.add("Log", inside),
            self.add("Log", self.add("Sub", 1.0, inside)),
        )

    def _write_LogOddsAgainstRest(self, node):
        """Write ``log(p) - log(sum of the others)`` of each class: the others are
        summed where p is large, since 1 - p would lose digits.
        """
        inside = self.inside(self.write(node.of))
        is_large = self.add("Greater", inside, 0.5)
        small = self.row_sum(self.add("Where", is_large, 0.0, inside))
        rest = self.add(
            "Where", is_large, small, self.add("Sub", self.row_sum(inside), inside)
        )
        rest = self.inside(rest)
        return self.add("Sub", self.add("Log", inside), self.add("Log", rest))

    def _write_LogSides(self, node):
        """Write ``log(sigmoid(-z))`` and ``log(sigmoid(z))``, with exponentials of
        negative numbers only.
        """
        z = self.write(node.of)
        decay = self.add("Exp", self.add("Neg", self.add("Abs", z)))
        softplus = self.add("Log", self.add("Add", decay, 1.0))
        below, above = self.add("Min", z, 0.0), self.add("Max", z, 0.0)
        return self.add(
            "Concat",
            self.add("Sub", below, softplus),
            self.add("Add", above, softplus),
            axis=1,
        )

    def _write_Expit(self, node):
        odds = self.add("Exp", self.add("Neg", self.write(node.of)))
        return self._clipped(
            self.add("Div", 1.0, self.add("Add", odds, 1.0)), node.clip
        )

    def _write_Softmax(self, node):
        """Write the softmax; of the possible classes alone where the node says so.

        The operator Softmax sums over all classes: the logits of impossible ones are
        put so low that their exponential is 0. Clipping then raises them above 0, so
        that they are set to 0 at the end.
        """
        logits = self.write(node.of)
        if node.possible:
            logits = self._impossible_far_below(logits)
        probabilities = self._clipped(self.add("Softmax", logits, axis=1), node.clip)
        if node.possible:
            return self._rescaled(probabilities)
        return probabilities

    def _write_Possible(self, node):
        return self._zero_if_impossible(self.write(node.of))

    def _zero_if_impossible(self, values):
        """Return values (n, K) with 0 for classes that are impossible in their rows."""
        return self.add("Where", self.is_impossible, 0.0, values)

    def _impossible_far_below(self, values):
        """Return logits of which those of impossible classes are 1,400 below the row's
        largest of the others: they have no share in a softmax.
        """
        possible = self.add("Where", self.is_impossible, _LOWEST, values)
        largest = self.row_extreme("ReduceMax", possible)
        lowest = self.add("Sub", largest, 2 * LARGEST_GAP)
        return self.add("Where", self.is_impossible, lowest, values)

    def _rescaled(self, probabilities):
        """Return probabilities with 0 for impossible classes, the rest of each row in
        proportion.
        """
        return _without_impossible(self, probabilities, self.is_impossible)

    def _clipped(self, probability, clip):
        return self.inside(probability) if clip else probability

    def _write_LogNormalized(self, node):
        if not node.possible:
            return self.add("LogSoftmax", self.write(node.of), axis=1)
        values = self._impossible_far_below(self.write(node.of))
        return self._zero_if_impossible(self.add("LogSoftmax", values, axis=1))

    def _write_Centred(self, node):
        """Write the values less their mean over the possible classes."""
        x = self.write(node.of)
        n_values = float(node.width)
        if node.possible:
            x = self._zero_if_impossible(x)
            n_values = self.row_sum(self.add("Where", self.is_impossible, 0.0, 1.0))
        centred = self.add("Sub", x, self.add("Div", self.row_sum(x), n_values))
        return self._zero_if_impossible(centred) if node.possible else centred

    def _write_Pieces(self, node):
        """Write a piecewise polynomial by Horner's rule, up to the highest power that
        occurs.
        """
        x = self.write(node.of)
        piece = self._piece(x, node.cuts)
        degree = int(np.flatnonzero(node.coefficients.any(axis=0)).max(initial=0))
        value = self.add("Gather", node.coefficients[:, degree], piece)
        if degree == 0:
            return value
        step = self.add("Sub", x, self.add("Gather", node.origins, piece))
        for power in reversed(range(degree)):
            product = self.add("Mul", value, step)
            value = self.add(
                "Add", product, self.add("Gather", node.coefficients[:, power], piece)
            )
        return value

    def _piece(self, x, cuts):
        """Return the number of cuts below each value, by bisection."""
        n_steps = len(cuts).bit_length()
        padded = self.constant(
            np.append(cuts, np.full(2**n_steps - 1 - len(cuts), np.inf))
        )
        # zeros
        piece = self.add("Cast", self.add("Greater", x, np.inf), to=_TYPES["int64"])
        for step in (2**k for k in reversed(range(n_steps))):
            probe = self.add("Gather", padded, self.add("Add", piece, step - 1))
            above = self.add("Cast", self.add("Greater", x, probe), to=_TYPES["int64"])
            piece = self.add("Add", piece, self.add("Mul", above, step))
        return piece

    def _write_Normalized(self, node):
        x = self.write(node.of)
        shares = self.shares(x, self.row_sum(x), 1 / node.width)
        return self._rescaled(shares) if node.possible else shares

    def _write_RowMax(self, node):
        return self.row_extreme("ReduceMax", self.write(node.of))

    def _write_Spread(self, node):
        """Write the confidence of the predicted class, and the rest shared among the
        others in proportion to their scores.
        """
        x = self.write(node.of)
        confidence = self.write(node.confidence)
        is_largest = self.add("Equal", self._largest(x), np.arange(node.width))
        rest = self.add("Where", is_largest, 0.0, x)
        shares = self.shares(rest, self.row_sum(rest), 1 / (node.width - 1))
        others = self.add("Mul", shares, self.add("Sub", 1.0, confidence))
        spread = self.add("Where", is_largest, confidence, others)
        return self._rescaled(spread) if node.possible else spread

    def _largest(self, x):
        return self.add("ArgMax", x, axis=1, keepdims=1)

    def _write_Mixture(self, node):
        terms = zip(node.weights, node.parts, strict=True)
        return self.add(
            "Sum",
            *(self.add("Mul", self.write(part), weight) for weight, part in terms),
            node.constant,
        )

    def _write_Choice(self, node):
        """Write the case of each row's key. Softmaxes that differ in a factor only are
        one softmax.
        """
        key = self._key(node.key)
        slopes = _slopes_of_cases(node)
        if slopes is not None:
            scaled = self.add(
                "Mul", self.write(node.cases[0].of.of), self.add("Gather", slopes, key)
            )
            possible = node.cases[0].possible
            if possible:
                scaled = self._impossible_far_below(scaled)
            chosen = self._clipped(
                self.add("Softmax", scaled, axis=1), node.cases[0].clip
            )
            return self._rescaled(chosen) if possible else chosen
        chosen = self.write(node.cases[0])
        for number, case in enumerate(node.cases[1:], start=1):
            is_case = self.add("Equal", key, number)
            chosen = self.add("Where", is_case, self.write(case), chosen)
        return chosen

    def _key(self, key):
        """Write the number of each row's case."""
        if isinstance(key, nodes.Largest):
            return self._largest(self.write(key.of))
        if isinstance(key, nodes.GroupOf):
            return self._group_number(key)
        return self._piece(self.write(key.of), key.cuts)

    def _group_number(self, key):
        """Write the number of each row's group, which is given as a text."""
        texts = [str(group) for group in key.cases]
        if len(set(texts)) < len(texts):
            raise ValueError(
                "The groups of a graph are strings, but two groups have the same text:"
                f" {texts}."
            )
        numbers = {
            "keys_strings": texts,
            "values_int64s": list(key.cases.values()),
            "default_int64": key.otherwise,
        }
        return self.add("LabelEncoder", self.group, domain=_ML, **numbers)


def _slopes_of_cases(choice):
    """Return the slope of each case where the cases are the softmax of one node, scaled
    by different numbers.
    """
    first = choice.cases[0]
    slopes = []
    for case in choice.cases:
        if not isinstance(case, nodes.Softmax) or not isinstance(case.of, nodes.Scaled):
            return None
        if case.of.of is not first.of.of or case.clip != first.clip:
            return None
        if np.ndim(case.of.slope) != 0 or np.any(case.of.intercept):
            return None
        slopes.append(case.of.slope)
    return np.array(slopes)


def _front(graph, as_map, refused, untouched):
    """Return which rows are valid, the scores as `predict_proba` takes them, and which
    classes are impossible (None: one column, or probabilities).

    Probabilities are put into [0, 1], in rows that sum to 1.
    """
    raw = graph.add("Cast", graph.name_in, to=_TYPES["float64"])
    if as_map.input == "logit":
        if not as_map._leaves_impossible_out:
            is_finite = graph.add("LessOrEqual", graph.add("Abs", raw), MAX_MAGNITUDE)
            return graph.all_of(is_finite), raw, None
        # A logit of -inf is valid beside others: its class is impossible.
        top = graph.row_extreme("ReduceMax", raw)
        is_infinite = graph.add("Equal", raw, -np.inf)
        size = graph.add("Abs", graph.add("Where", is_infinite, top, raw))
        valid = graph.all_of(graph.add("LessOrEqual", size, MAX_MAGNITUDE))
        lowest = graph.add("Sub", top, LARGEST_GAP)
        is_impossible = graph.add("Less", raw, lowest)
        # What is lower says nothing more, and could overflow.
        below = graph.add("Sub", top, 2 * LARGEST_GAP)
        return valid, graph.add("Where", is_impossible, below, raw), is_impossible
    # As one condition, which NaN fails: |s - 1/2| <= 1/2 and rounding.
    distance = graph.add("Abs", graph.add("Sub", raw, 0.5))
    valid = graph.all_of(graph.add("LessOrEqual", distance, 0.5 + refused))
    scores = graph.add("Clip", raw, 0.0, 1.0)
    if as_map.scores.width == 1:
        return valid, scores, None
    total = graph.row_sum(scores)
    off = graph.add("Abs", graph.add("Sub", total, 1.0))
    valid = graph.add("And", valid, graph.add("LessOrEqual", off, refused))
    divisor = graph.add("Where", graph.add("LessOrEqual", off, untouched), 1.0, total)
    return valid, graph.add("Div", scores, divisor), None


def _without_impossible(graph, output, is_impossible):
    """Return probabilities with 0 for impossible classes, the rest in proportion, as
    `predict_proba` makes them.
    """
    left = graph.add("Where", is_impossible, 0.0, output)
    equal = graph.add("Where", is_impossible, 0.0, 1.0)
    spread = graph.add("Div", equal, graph.row_sum(equal))
    return graph.shares(left, graph.row_sum(left), spread)


def _model(onnx, graph, dtype, opset, properties):
    """Return a graph as a model of the package onnx, which has checked it."""
    helper = onnx.helper
    n_classes = len(graph.as_map.classes)
    protos = []
    for operator, inputs, output, attributes in graph.nodes:
        protos.append(
            helper.make_node(operator, inputs, [output], name=output, **attributes)
        )
    constants = {}
    for name, array in graph.constants.items():
        constants[name] = onnx.numpy_helper.from_array(array, name)
    number = _TYPES[dtype]
    texts = onnx.TensorProto.STRING
    width = graph.as_map.scores.width
    inputs = [helper.make_tensor_value_info(graph.name_in, number, ["n", width])]
    imports = [helper.make_opsetid("", opset)]
    if graph.as_map.group_key is not None:
        inputs.append(helper.make_tensor_value_info(graph.group, texts, ["n", 1]))
        imports.append(helper.make_opsetid(_ML, 2))
    outputs = [helper.make_tensor_value_info(graph.name_out, number, ["n", n_classes])]
    if graph.decision is not None:
        kind = constants[graph.decision].data_type
        outputs.append(helper.make_tensor_value_info("decision", kind, ["n"]))
    proto = helper.make_graph(
        protos, "calibration", inputs, outputs, list(constants.values())
    )
    model = helper.make_model(
        proto,
        opset_imports=imports,
        ir_version=helper.find_min_ir_version_for(imports),
        producer_name="skcalib",
    )
    texts_by_name = {name: json.dumps(value) for name, value in properties.items()}
    helper.set_model_props(model, texts_by_name)
    onnx.checker.check_model(model, full_check=True)
    return model
