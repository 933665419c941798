"""The nodes of a calibration map as nodes of an ONNX graph."""

import numpy as np

from skcalib import maps as nodes
from skcalib._rows.links import LARGEST_GAP, PROBABILITY_CLIP
from skcalib.export._writers import NodeWriter

_NO_OVERFLOW = 700.0  # Exp of it is still a float64
_LOWEST = -1e300  # below every logit
ML = "ai.onnx.ml"  # the domain of ONNX's operators on texts
# ONNX's numbers of types (TensorProto.FLOAT, INT64 and DOUBLE), which have never
# changed.
TYPES = {"float32": 1, "int64": 7, "float64": 11}


class Graph(NodeWriter):
    """The nodes and constants of an ONNX graph; `write` returns the name of the output
    (n, width) that holds the values of a node of the map.

    Parameters
    ----------
    opset : int
        Version of the ONNX operator set.
    name_in, name_out : str
        Names of the input of scores and of the output of probabilities.
    as_map : CalibrationMap
        The map.
    group : str or None
        Name of the input of groups.
    name_features : str or None
        Name of the input of features.

    Attributes
    ----------
    nodes : list of (operator, inputs, output, attributes)
        In the order in which they run.
    constants : dict
        From name to array.
    names : dict
        From the content of a constant to its name.
    scores : str
        Name of the scores as `predict_proba` takes them, float64.
    features : str or None
        Name of the features as float64.
    is_impossible : str or None
        Name of the booleans (n, K) that say which classes are impossible.
    decision : str or None
        Name of the labels of a decision.
    """

    format = "ONNX"

    def __init__(self, opset, name_in, name_out, as_map, group, name_features=None):
        super().__init__()
        self.opset = opset  # version of the ONNX operator set
        self.name_in = name_in  # of the input of scores
        self.name_out = name_out  # of the output of probabilities
        self.as_map = as_map
        self.group = group  # name of the input of groups, or None
        self.name_features = name_features  # of the input of features, or None
        # (operator, inputs, output, attributes), in the order in which they run.
        self.nodes = []
        self.constants = {}  # arrays by name
        self.names = {}  # names of constants by their content
        # Names of values that are added later: the scores as float64, the booleans
        # (n, K) of impossible classes, and the labels of a decision.
        self.scores = name_in
        self.features = None
        self.is_impossible = None
        self.decision = None

    def add(self, operator, *inputs, output=None, **attributes):
        """Add an ONNX node and return the name of its output.

        Inputs are names, or numbers and arrays, which become constants; `attributes`
        are those of the operator.
        """
        if output is None:
            output = f"{self.name_out}_{operator.lower()}_{len(self.nodes)}"
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
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.names:
            self.names[key] = f"{self.name_out}_constant_{len(self.names)}"
            self.constants[self.names[key]] = array
        return self.names[key]

    def inside(self, probability):
        """Return probabilities clipped to [2^-52, 1 - 2^-52]."""
        return self.add("Clip", probability, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)

    def row_sum(self, x):
        """Return the sum of each row, (n, 1)."""
        return self.add("ReduceSum", x, [1], keepdims=1)

    def row_extreme(self, operator, x):
        """Return the largest value of each row, (n, 1), for the operator "ReduceMax",
        or the smallest one for "ReduceMin".
        """
        # Axes are an attribute of the operator up to version 17, then an input.
        if self.opset < 18:
            return self.add(operator, x, keepdims=1, axes=[1])
        return self.add(operator, x, [1], keepdims=1)

    def all_of(self, condition, width):
        """Return booleans (n, 1) that say whether a condition (n, width) holds in all
        columns of a row.
        """
        if width == 1:
            return condition
        zeros_and_ones = self.add("Cast", condition, to=TYPES["float64"])
        smallest = self.row_extreme("ReduceMin", zeros_and_ones)
        return self.add("Greater", smallest, 0.5)

    def shares(self, x, total, otherwise):
        """Return x / total (n, K), or `otherwise` in rows whose total (n, 1) is 0."""
        positive = self.add("Greater", total, 0.0)
        divisor = self.add("Where", positive, total, 1.0)
        return self.add("Where", positive, self.add("Div", x, divisor), otherwise)

    def _write_Scores(self, node):
        return self.scores

    def _write_Features(self, node):
        return self.features

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
        slopes = np.broadcast_to(node.slope, node.width)
        product = self.add("Mul", self.write(node.of), slopes)
        if np.any(node.intercept):
            return self.add("Add", product, node.intercept)
        return product

    def _write_Affine(self, node):
        """Write ``coef @ values + intercept``."""
        product = self.add("MatMul", self.write(node.of), node.coef.T)
        return self.add("Add", product, node.intercept)

    def _write_Times(self, node):
        return self.add("Mul", self.write(node.of), self.write(node.factor))

    def _write_Exp(self, node):
        """Write ``exp`` of values clipped to [-700, 700]."""
        clipped = self.add("Clip", self.write(node.of), -_NO_OVERFLOW, _NO_OVERFLOW)
        return self.add("Exp", clipped)

    def _write_Log(self, node):
        """Write the logarithm of clipped probabilities."""
        return self.add("Log", self.inside(self.write(node.of)))

    def _write_LogOdds(self, node):
        """Write ``log(p) - log(1 - p)`` of clipped probabilities."""
        inside = self.inside(self.write(node.of))
        log_probability = self.add("Log", inside)
        log_complement = self.add("Log", self.add("Sub", 1.0, inside))
        return self.add("Sub", log_probability, log_complement)

    def _write_LogOddsAgainstRest(self, node):
        """Write ``log(p) - log(sum of the others)`` of each class. The others are added
        up if p is large, because 1 - p would lose digits.
        """
        probabilities = self.inside(self.write(node.of))
        # At most one class of a row is above 1/2. The sum of its others is that of all
        # classes that are not.
        is_large = self.add("Greater", probabilities, 0.5)
        sum_of_small = self.row_sum(self.add("Where", is_large, 0.0, probabilities))
        total_of_others = self.add("Sub", self.row_sum(probabilities), probabilities)
        rest = self.add("Where", is_large, sum_of_small, total_of_others)
        log_rest = self.add("Log", self.inside(rest))
        return self.add("Sub", self.add("Log", probabilities), log_rest)

    def _write_LogSides(self, node):
        """Write ``log(p)`` and ``-log(1 - p)``, (n, 2), from log-odds z: ``min(z, 0) -
        softplus`` and ``max(z, 0) + softplus``, with softplus = log(1 + exp(-|z|)),
        which does not overflow.
        """
        z = self.write(node.of)
        decay = self.add("Exp", self.add("Neg", self.add("Abs", z)))
        softplus = self.add("Log", self.add("Add", decay, 1.0))
        below = self.add("Min", z, 0.0)
        above = self.add("Max", z, 0.0)
        log_probability = self.add("Sub", below, softplus)
        minus_log_complement = self.add("Add", above, softplus)
        return self.add("Concat", log_probability, minus_log_complement, axis=1)

    def _write_Expit(self, node):
        """Write ``1 / (1 + exp(-value))``."""
        odds_against = self.add("Exp", self.add("Neg", self.write(node.of)))
        probability = self.add("Div", 1.0, self.add("Add", odds_against, 1.0))
        return self._clipped(probability, node.clip)

    def _write_Softmax(self, node):
        """Write the softmax; where the node says so, impossible classes get logits so
        low that their exponential in the operator's sum is 0.
        """
        logits = self.write(node.of)
        if node.possible:
            logits = self._impossible_far_below(logits)
        probabilities = self._clipped(self.add("Softmax", logits, axis=1), node.clip)
        if node.possible:
            # Clipping has raised impossible classes above 0.
            return self._without_impossible(probabilities)
        return probabilities

    def _write_Possible(self, node):
        """Write the values with 0 for impossible classes."""
        return self._zero_if_impossible(self.write(node.of))

    def _zero_if_impossible(self, values):
        """Return values (n, K) with 0 for classes that are impossible in their rows."""
        return self.add("Where", self.is_impossible, 0.0, values)

    def _impossible_far_below(self, values):
        """Return logits (n, K) in which those of impossible classes are 1,400 below
        their row's largest possible one: exp makes that 0.
        """
        # `_LOWEST` is below every logit.
        possible_values = self.add("Where", self.is_impossible, _LOWEST, values)
        largest = self.row_extreme("ReduceMax", possible_values)
        lowest = self.add("Sub", largest, 2 * LARGEST_GAP)
        return self.add("Where", self.is_impossible, lowest, values)

    def _without_impossible(self, probabilities):
        """Return probabilities with 0 for impossible classes, the rest of each row in
        proportion.
        """
        return _without_impossible(self, probabilities, self.is_impossible)

    def _clipped(self, probability, clip):
        """Return probabilities, clipped if a node's option `clip` says so."""
        if clip:
            return self.inside(probability)
        return probability

    def _write_LogNormalized(self, node):
        """Write the logarithm of a softmax. With `node.possible`, impossible classes
        (see `Possible`) are left out of the sum, and get 0: later nodes leave them out,
        too.
        """
        if not node.possible:
            return self.add("LogSoftmax", self.write(node.of), axis=1)
        values = self._impossible_far_below(self.write(node.of))
        return self._zero_if_impossible(self.add("LogSoftmax", values, axis=1))

    def _write_Centred(self, node):
        """Write the values less their mean over the row; with `node.possible` over the
        possible classes, and 0 for the others.
        """
        x = self.write(node.of)
        n_values = float(node.width)
        if node.possible:
            x = self._zero_if_impossible(x)
            n_values = self.row_sum(self.add("Where", self.is_impossible, 0.0, 1.0))
        mean = self.add("Div", self.row_sum(x), n_values)
        centred = self.add("Sub", x, mean)
        if node.possible:
            return self._zero_if_impossible(centred)
        return centred

    def _write_Pieces(self, node):
        """Write a piecewise polynomial by Horner's rule, up to the highest power that
        occurs.
        """
        x = self.write(node.of)
        piece = self._piece(x, node.cuts)
        occurring_powers = np.flatnonzero(node.coefficients.any(axis=0))
        degree = int(occurring_powers.max(initial=0))
        value = self.add("Gather", node.coefficients[:, degree], piece)
        if degree == 0:
            return value
        step = self.add("Sub", x, self.add("Gather", node.origins, piece))
        for power in reversed(range(degree)):
            product = self.add("Mul", value, step)
            coefficient = self.add("Gather", node.coefficients[:, power], piece)
            value = self.add("Add", product, coefficient)
        return value

    def _piece(self, x, cuts):
        """Write the number of cuts below each value (n, 1), int64, by bisection. With
        infinite cuts at the end there are 2^m - 1 cuts: m steps are enough, of which
        each adds 2^(m - 1), ..., 4, 2, 1 or nothing.
        """
        n_steps = len(cuts).bit_length()
        n_infinite = 2**n_steps - 1 - len(cuts)
        padded = self.constant(np.append(cuts, np.full(n_infinite, np.inf)))
        # The graph has no zeros of this shape, since n is unknown: no value is above
        # infinity, so that each comparison gives 0.
        piece = self.add("Cast", self.add("Greater", x, np.inf), to=TYPES["int64"])
        for k in reversed(range(n_steps)):
            step = 2**k
            # the last of the next `step` cuts: if x is above it, all of them are below
            probe = self.add("Gather", padded, self.add("Add", piece, step - 1))
            above = self.add("Cast", self.add("Greater", x, probe), to=TYPES["int64"])
            piece = self.add("Add", piece, self.add("Mul", above, step))
        return piece

    def _write_Normalized(self, node):
        """Write the values divided by their row's sum, equal shares if that is 0. With
        `node.possible` impossible classes get 0.
        """
        x = self.write(node.of)
        shares = self.shares(x, self.row_sum(x), 1 / node.width)
        if node.possible:
            return self._without_impossible(shares)
        return shares

    def _write_RowMax(self, node):
        return self.row_extreme("ReduceMax", self.write(node.of))

    def _write_Spread(self, node):
        """Write the confidence of the predicted class, and the rest shared among the
        others in proportion to the scores; impossible classes get 0.
        """
        x = self.write(node.of)
        confidence = self.write(node.confidence)
        is_largest = self.add("Equal", self.largest(x), np.arange(node.width))
        rest = self.add("Where", is_largest, 0.0, x)
        shares = self.shares(rest, self.row_sum(rest), 1 / (node.width - 1))
        others = self.add("Mul", shares, self.add("Sub", 1.0, confidence))
        spread = self.add("Where", is_largest, confidence, others)
        if node.possible:
            return self._without_impossible(spread)
        return spread

    def largest(self, x):
        """Return the column of the first of the largest values, (n, 1)."""
        return self.add("ArgMax", x, axis=1, keepdims=1)

    def _write_Mixture(self, node):
        """Write the weighted sum of several nodes, plus a constant."""
        terms = []
        for weight, part in zip(node.weights, node.parts, strict=True):
            terms.append(self.add("Mul", self.write(part), weight))
        return self.add("Sum", *terms, node.constant)

    def _write_Choice(self, node):
        """Write for each row the values of the case whose index its key gives.
        Softmaxes of the same logits, each with its own factor (as of class-wise
        temperature scaling), become one with the row's factor.
        """
        index = self.key_index(node.key)
        factors = _factors_of_softmaxes(node.cases)
        if factors is not None:
            return self._softmax_with_factor(node.cases[0], factors, index)
        chosen = self.write(node.cases[0])
        for number, case in enumerate(node.cases[1:], start=1):
            is_case = self.add("Equal", index, number)
            chosen = self.add("Where", is_case, self.write(case), chosen)
        return chosen

    def _softmax_with_factor(self, softmax, factors, index):
        """Write the softmax of the logits of a `Softmax` of a `Scaled`, times the one
        of the `factors` (n_cases,) whose index (n, 1) a row has.
        """
        logits = self.write(softmax.of.of)
        scaled = self.add("Mul", logits, self.add("Gather", factors, index))
        if softmax.possible:  # impossible classes get 0
            scaled = self._impossible_far_below(scaled)
        probabilities = self.add("Softmax", scaled, axis=1)
        probabilities = self._clipped(probabilities, softmax.clip)
        if softmax.possible:
            return self._without_impossible(probabilities)
        return probabilities

    def key_index(self, key):
        """Write the index (n, 1) of the case that each row takes among those of a
        `Choice` with this key.
        """
        if isinstance(key, nodes.Largest):
            return self.largest(self.write(key.of))
        if isinstance(key, nodes.GroupOf):
            return self._index_of_group(key)
        return self._piece(self.write(key.of), key.cuts)

    def _index_of_group(self, key):
        """Write the index (n, 1) of the case of each row's group, which a graph gets as
        text.
        """
        texts = [str(group) for group in key.cases]
        if len(set(texts)) < len(texts):
            raise ValueError(
                "An ONNX graph stores groups as strings, but two groups have the same"
                f" string: {texts}."
            )
        indices = {
            "keys_strings": texts,
            "values_int64s": list(key.cases.values()),
            "default_int64": key.otherwise,  # for other groups
        }
        return self.add("LabelEncoder", self.group, domain=ML, **indices)


def _factors_of_softmaxes(cases):
    """Return the factors (n_cases,) if all cases of a `Choice` are softmaxes of the
    same logits times a factor each, with the same clipping; otherwise None.
    """
    logits = None
    factors = []
    for case in cases:
        if not isinstance(case, nodes.Softmax) or not isinstance(case.of, nodes.Scaled):
            return None
        scaled = case.of
        if logits is None:
            logits = scaled.of
        if scaled.of is not logits or case.clip != cases[0].clip:
            return None
        if np.ndim(scaled.slope) != 0 or np.any(scaled.intercept):
            return None
        factors.append(scaled.slope)
    return np.array(factors)


def _without_impossible(graph, output, is_impossible):
    """Return probabilities (n, K) with 0 for impossible classes, the rest of each row
    in proportion (equal shares if it is 0), as `predict_proba` does.
    """
    remaining = graph.add("Where", is_impossible, 0.0, output)
    is_possible = graph.add("Where", is_impossible, 0.0, 1.0)
    equal_shares = graph.add("Div", is_possible, graph.row_sum(is_possible))
    return graph.shares(remaining, graph.row_sum(remaining), equal_shares)
