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
from skcalib.decisions._certified import ANSWER_PROMISES

# Probabilities of different engines may differ by this much. A threshold is lowered by
# it, so that a probability at the threshold reaches it in every engine.
_ROUNDING = 1e-12
_NEVER = 2.0  # in place of an infinite threshold


class NodeWriter:
    """Base class of the writers of calibration maps in another format.

    A map is a node that is computed from other nodes. `write` calls the method
    ``_write_Clip`` for a node of the class `Clip`, and so on, once for each node.
    """

    format = None  # as errors name it

    def __init__(self):
        # from the id of a node to how others refer to it, and the node itself
        self.written = {}

    def write(self, node):
        """Return what stands for the values of a node in this format, such as a text or
        a name; a node that is used several times is written once.
        """
        if id(node) not in self.written:
            method = f"_write_{type(node).__name__}"
            write = getattr(self, method, self._write_other)
            # the node is held, so that its id stays its own
            self.written[id(node)] = (self._reference(write(node)), node)
        reference, _ = self.written[id(node)]
        return reference

    def _reference(self, written):
        """Return how other nodes refer to what was written of a node: here by what was
        written itself.
        """
        return written

    def _write_other(self, node):
        """Write a node of a class without a method of its own."""
        raise TypeError(f"no {self.format} for {type(node).__name__}")

    def _write_RowKey(self, node):
        """Raise a ValueError: only SQL has keys of rows."""
        raise no_row_keys(f"{self.format} has no function for")


class _Argument(nodes.Node):
    """The argument `v` of a function in the code that is written, in place of the node
    `of`.
    """

    def __init__(self, of):
        self.width = of.width


class FunctionWriter(NodeWriter):
    """Base class of the writers of a map as a function in a programming language.

    `write` returns the text of an expression for the list of a node's values. The list
    is computed when it is first needed, and at most once per call of the function.

    Attributes
    ----------
    templates : dict
        From the class of a node to the template of its text; names in braces are the
        texts of its fields.
    statement : str
        Template of a statement that defines a constant or a value.
    later : str
        Template of a function without arguments that returns a value.
    function_of_values : str
        Template of a function of the list `v`.
    rescaling_helper : str
        Name of the helper function that sets impossible classes to 0 and divides the
        others by their sum.
    returning : str
        Template of the statement that returns a value.
    none, no_number : str
        What is returned in place of a label, and of a number, for invalid scores.
    several : str
        Template of a list of n equal values.
    constants : dict
        From the name of each constant to the statement that defines it.
    statements : list of str
        Statements of the function that compute the values of nodes, in order.
    """

    templates = {}
    statement = "{name} = {value}"
    later = "{value}"
    function_of_values = "{value}"
    rescaling_helper = "open"
    returning = "return {value}"
    none = "None"
    no_number = "nan"
    several = "[{value}] * {n}"

    def __init__(self):
        super().__init__()
        self.constants = {}
        self.statements = []

    def literal(self, value):
        """Return the text of a plain value, or of an array as a list."""
        raise NotImplementedError

    def input_statements(self, as_map):
        """Return the statements that define `x`, the scores of a row, and return
        INVALID if they are invalid.
        """
        raise NotImplementedError

    def label_of(self, decision, score, accepted, probabilities):
        """Return the text of the label that a `Decision` gives to a row.

        All arguments but the decision are texts of expressions: `probabilities` of the
        list p of the probabilities of all classes, `score` of the number that is
        compared with the threshold, and `accepted` of the index of the label if the
        threshold is reached.
        """
        raise NotImplementedError

    def missing_result(self, n_classes):
        """Return the text of the result where no map is known: NaN, or a list of NaN
        for more than two classes.
        """
        if n_classes == 2:
            return self.no_number
        return self.several.format(value=self.no_number, n=n_classes)

    def body(self, as_map, decision):
        """Return the lines of a function that returns the probabilities by a
        `CalibrationMap` or, with a `Decision` that is not None, the label that it gives
        to them.
        """
        output = self.write(as_map.output)
        if as_map.scores.width == 1:
            result = f"{output}[0]"
            probabilities = f"[1 - {result}, {result}]"
            invalid = self.no_number
        else:
            result = output
            probabilities = output
            n_classes = len(as_map.classes)
            invalid = self.several.format(value=self.no_number, n=n_classes)
        if decision is not None:
            invalid = self.none
            if decision.is_event:
                result = self.label_of(decision, "p[1]", "1", probabilities)
            else:
                result = self.label_of(decision, "max(p)", "largest(p)", probabilities)
        body = [*self.input_statements(as_map), *self.statements]
        body.append(self.returning.format(value=result))
        return [line.replace("INVALID", invalid) for line in body]

    def constant(self, value):
        """Add the definition of a constant, which stands before the function; return
        the name of the constant. `value` is its text, or a value that has none yet.
        """
        name = f"c{len(self.constants)}"
        text = value
        if not isinstance(value, str):
            text = self.literal(value)
        self.constants[name] = self.statement.format(name=name, value=text)
        return name

    def _reference(self, written):
        """Return a call such as ``n3()`` for the text `written` of a node's values, and
        add the statement that defines this function: its first call computes the
        values, later ones return them.
        """
        # the argument of a function is a name itself
        if written == "v":
            return written
        name = f"n{len(self.statements)}"
        value = f"lazy({self.later.format(value=written)})"
        self.statements.append(self.statement.format(name=name, value=value))
        return f"{name}()"

    def _write_other(self, node):
        """Return the text of a node from the template of its class and the texts of its
        fields. With the node's option `clip` the helper `inside` clips it.
        """
        texts_of_fields = {}
        for field in fields(node):
            value = getattr(node, field.name)
            texts_of_fields[field.name] = self._field(value, node)
        text = self.templates[type(node)].format(**texts_of_fields)
        if getattr(node, "clip", False):
            text = f"inside({text})"
        return text

    def _write_among(self, node):
        """Return the text of a node computed from the possible classes alone:
        ``among(f, x, closed)`` applies `f` to the values x of classes that are not
        `closed`, and gives 0 to the others.
        """
        # `f` is what the node does to its argument, which has the name v.
        node_of_argument = replace(node, possible=False, of=_Argument(node.of))
        value = self._write_other(node_of_argument)
        function = self.function_of_values.format(value=value)
        return f"among({function}, {self.write(node.of)}, closed)"

    def _write_Softmax(self, node):
        """Return the text of a softmax, over the possible classes alone with the option
        `possible`; nodes of the same kind are written alike.
        """
        if node.possible:
            return self._write_among(node)
        return self._write_other(node)

    _write_Centred = _write_Softmax
    _write_LogNormalized = _write_Softmax

    def _write_Normalized(self, node):
        """Return the text of shares that sum to 1; with the option `possible`,
        impossible classes get 0.
        """
        if node.possible:
            values = self._write_other(node)
            return f"{self.rescaling_helper}({values}, closed)"
        return self._write_other(node)

    _write_Spread = _write_Normalized

    def _write__Argument(self, node):
        """Return the name of the argument."""
        return "v"

    def _field(self, value, node):
        """Return the text of a node's field for its template: another node is written,
        an array becomes a constant. The template of `Scaled` has a loop over the
        classes i, and takes entry i.
        """
        if isinstance(value, nodes.Node):
            return self.write(value)
        if isinstance(value, np.ndarray):
            name = self.constant(value)
            if isinstance(node, nodes.Scaled):
                return f"{name}[i]"
            return name
        if isinstance(value, float):
            return repr(float(value))  # also of a scalar of NumPy
        return value

    def _key(self, key):
        """Return the expression for the index of the case that a row takes in a
        `Choice` with this key.
        """
        if isinstance(key, nodes.Largest):
            return f"largest({self.write(key.of)})"
        if isinstance(key, nodes.Place):
            return f"place({self.write(key.of)}, {self.constant(key.cuts)})"
        return self._group_key(key)

    def _group_key(self, key):
        """Return the text of an expression for the index of the case of a row's group,
        from a `GroupOf`.
        """
        raise NotImplementedError


class Decision(NamedTuple):
    """The decision of a certified threshold: the label assigned to a row.

    Attributes
    ----------
    threshold : float
        Smallest probability at which the decision is to act.
    labels : list
        Labels of the classes; unless `is_event`, followed by the label for abstaining.
    is_event : bool
        Whether the probability of the positive class is compared with the threshold,
        and the positive or the negative class is returned. Otherwise, the largest
        probability is compared, and its class is returned or the model abstains.
    """

    threshold: float
    labels: list
    is_event: bool

    @property
    def otherwise(self):
        """Index in `labels` of the decision for rows below the threshold: the negative
        class, or the label for abstaining, which is the last one.
        """
        if self.is_event:
            return 0
        return len(self.labels) - 1


def split_decision(estimator):
    """Return the recalibrator and the `Decision` of a certified threshold classifier;
    for a recalibrator alone, return it and None.
    """
    if not isinstance(estimator, CertifiedThresholdClassifier):
        return estimator, None
    check_fitted(estimator)
    inner = estimator.estimator_
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    labels = estimator.classes_.tolist()
    # A promise about an event decides for or against it: the two classes are all labels
    # there are. One of the ANSWER_PROMISES returns the predicted class or abstains,
    # which needs a label as well, the last one.
    is_event = estimator.promise not in ANSWER_PROMISES
    if not is_event:
        labels.append(estimator._abstain_label())
    # In SQL and in ONNX, a column has one type; in Python, labels may be of any types.
    if len({type(label) for label in labels}) > 1:
        raise ValueError(
            "abstain_label must have the same type as the classes outside Python,"
            f" found the labels {labels}."
        )
    # Probabilities of different engines differ by rounding: the threshold is lowered
    # by it. An infinite one becomes a number that no probability reaches.
    threshold = float(min(estimator.threshold_ - _ROUNDING, _NEVER))
    return inner, Decision(threshold, labels, is_event)


def no_row_keys(where):
    """Return the error for a map with a `RowKey` in a format that has none; `where`
    completes the sentence "takes a number from the md5 of a row's id, which ...".
    """
    return ValueError(
        "UniformMassBinning(randomize=True) derives a number from the md5 hash of a"
        f" row's id, which {where}. Write it with to_sql(..., ids='column') for DuckDB,"
        " Spark or PostgreSQL, or fit HistogramBinning(sample_split=0.5)."
    )
