"""What the writers of maps share: the walk over the nodes, and the decision of a
certified threshold around a map.
"""

from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np
from sklearn.frozen import FrozenEstimator

from skcalib import maps as nodes
from skcalib._defaults import check_fitted
from skcalib.decisions import CertifiedThresholdClassifier
from skcalib.decisions._certified import ANSWERS

# of a probability, in which ways out may differ: one at the threshold is at it
# everywhere
_ROUNDING = 1e-12
_NEVER = 2.0  # in place of an infinite threshold


class NodeWriter:
    """Base of what writes maps: `write` asks the method that is named after a node's
    class, once for each node.
    """

    format = None  # as errors name it

    def __init__(self):
        self.written = {}

    def write(self, node):
        """Return what a node is in this format."""
        if id(node) not in self.written:
            write = getattr(self, f"_write_{type(node).__name__}", self._write_other)
            # the node is held, so that its id stays its own
            self.written[id(node)] = self._kept(write(node)), node
        return self.written[id(node)][0]

    def _kept(self, written):
        """Return how others refer to what was written of a node."""
        return written

    def _write_other(self, node):
        raise TypeError(f"no {self.format} for {type(node).__name__}")

    def _write_RowKey(self, node):
        raise no_row_keys(f"{self.format} has no function for")


class _Argument(nodes.Node):
    """The argument of a function of the possible classes, in place of a node."""

    def __init__(self, of):
        self.width = of.width


class FunctionWriter(NodeWriter):
    """Base of what writes a map as a function in a programming language.

    `write` returns the text of a list of a node's values. It is computed when it is
    first needed, and at most once in a call.
    """

    texts = {}  # by the class of a node; names in braces are the texts of its fields
    statement = "{name} = {value}"  # that defines a constant or a value
    later = "{value}"  # a function without arguments that returns a value
    function_of_values = "{value}"  # a function of the list `v`
    opened = "open"  # the helper that leaves impossible classes out of shares

    def __init__(self):
        super().__init__()
        self.constants = {}
        self.steps = []

    def literal(self, value):
        """Return the text of a plain value, or of an array as a list."""
        raise NotImplementedError

    def constant(self, value):
        """Return the name of a constant, which is made once and not at each call."""
        name = f"c{len(self.constants)}"
        text = value if isinstance(value, str) else self.literal(value)
        self.constants[name] = self.statement.format(name=name, value=text)
        return name

    def _kept(self, written):
        """Return a call of a step that is computed once, when it is first asked for."""
        if written == "v":
            return written
        name = f"n{len(self.steps)}"
        value = f"lazy({self.later.format(value=written)})"
        self.steps.append(self.statement.format(name=name, value=value))
        return f"{name}()"

    def _write_other(self, node):
        text = self.texts[type(node)].format(
            **{
                field.name: self._field(getattr(node, field.name), node)
                for field in fields(node)
            }
        )
        if getattr(node, "clip", False):
            text = f"inside({text})"
        return text

    def _write_among(self, node):
        """Return the text of a node of the possible classes alone.

        In the code that is written `closed` is a list that tells for each class whether
        it is impossible; `among` calls a function of the values of the others.
        """
        text = self._write_other(replace(node, possible=False, of=_Argument(node.of)))
        function = self.function_of_values.format(value=text)
        return f"among({function}, {self.write(node.of)}, closed)"

    def _write_rescaled(self, node):
        """Return the text of a node of shares that the impossible classes lose."""
        return f"{self.opened}({self._write_other(node)}, closed)"

    def _write_Softmax(self, node):
        return (self._write_among if node.possible else self._write_other)(node)

    _write_Centred = _write_LogNormalized = _write_Softmax

    def _write_Normalized(self, node):
        return (self._write_rescaled if node.possible else self._write_other)(node)

    _write_Spread = _write_Normalized

    def _write__Argument(self, node):
        return "v"

    def _field(self, value, node):
        """Return what a field of a node is in the text: a node is written, an array
        becomes a constant.
        """
        if isinstance(value, nodes.Node):
            return self.write(value)
        if isinstance(value, np.ndarray):
            name = self.constant(value)
            if isinstance(node, nodes.Scaled):
                return f"{name}[i]"
            return name
        if isinstance(value, float):
            return repr(float(value))  # of a scalar of NumPy, too
        return value

    def _key(self, key):
        """Return the text of the number of the case that a row takes."""
        if isinstance(key, nodes.Largest):
            return f"largest({self.write(key.of)})"
        if isinstance(key, nodes.Place):
            return f"place({self.write(key.of)}, {self.constant(key.cuts)})"
        return self._group_key(key)

    def _group_key(self, key):
        raise NotImplementedError


class Decision(NamedTuple):
    """From which probability on which label is given: of the event, or of the predicted
    class, else the last label.
    """

    threshold: float
    labels: list
    is_event: bool

    @property
    def otherwise(self):
        """The number of the label of rows below the threshold."""
        return 0 if self.is_event else len(self.labels) - 1


def split_decision(estimator):
    """Return the recalibrator, and the decision that is made by it: None for a
    recalibrator alone.
    """
    if not isinstance(estimator, CertifiedThresholdClassifier):
        return estimator, None
    check_fitted(estimator)
    inner = estimator.estimator_
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    labels = estimator.classes_.tolist()
    is_event = estimator.promise not in ANSWERS
    if not is_event:
        labels.append(estimator._abstain_label())
    if len({type(label) for label in labels}) > 1:
        raise ValueError(
            "abstain_label must be of the type of the classes outside Python, found"
            f" the labels {labels}."
        )
    return inner, Decision(
        float(min(estimator.threshold_ - _ROUNDING, _NEVER)), labels, is_event
    )


def no_row_keys(where):
    """Return the error for a map that needs `RowKey` where there is none."""
    return ValueError(
        "UniformMassBinning(randomize=True) takes a number from the md5 of a row's id,"
        f" which {where}. Write it with to_sql(..., ids='column') for DuckDB, Spark or"
        " PostgreSQL, or fit HistogramBinning(sample_split=0.5)."
    )
