"""The whole map of a fitted recalibrator."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np

from skcalib._defaults import check_fitted
from skcalib._rows.links import LARGEST_GAP
from skcalib.maps._choices import Choice, GroupOf, Place
from skcalib.maps._class_functions import Affine, Possible
from skcalib.maps._leaves import Features, Scores
from skcalib.maps._node import Node, nodes_below
from skcalib.maps._python_function import PythonFunction
from skcalib.maps._value_functions import Pieces

# Methods that compute predictions directly, without a map.
_PREDICTION_METHODS = {
    "_predict_binary",
    "_predict_logits",
    "_predict_scores",
    "predict_proba",
}


@dataclass(frozen=True, eq=False)
class CalibrationMap:
    """A fitted calibration map as a tree of nodes.

    Parameters
    ----------
    scores : Scores
        The leaf that holds the input scores. Width 1 means that the score is the
        positive class's probability or its log-odds; otherwise, each class has one
        column.
    output : Node
        The root of the tree: the positive class's probability (width 1) for two
        classes, otherwise the K probabilities.
    input : {"probability", "logit"}
        Scale of the scores.
    classes : ndarray of shape (n_classes,)
        Labels, in the order of the columns.
    unmasked : Node or None
        The output for rows in which every class is possible, if it differs from
        `output`: see `Possible`.

    See Also
    --------
    skcalib.maps.calibration_map : Creates this object.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.maps import CalibrationMap, Clip, Rows, Scores
    >>> scores = Scores()
    >>> careful = CalibrationMap(
    ...     scores, Clip(scores, 0.1, 0.9), "probability", np.array(["no", "yes"])
    ... )
    >>> Rows([[0.95]])(careful.output).tolist(), careful.group_key
    ([[0.9]], None)
    """

    scores: Scores
    output: Node
    input: Literal["probability", "logit"]
    classes: np.ndarray
    unmasked: Node | None = None

    @property
    def _leaves_impossible_out(self):
        """Whether logits may say that a class is impossible in a row, so that `output`
        gives it 0 there.
        """
        return self.unmasked is not None and self.output is not self.unmasked

    @property
    def group_key(self) -> GroupOf | None:
        """The `GroupOf` that chooses between the maps of groups, if there is one."""
        key = getattr(self.output, "key", None)
        return key if isinstance(key, GroupOf) else None

    @property
    def features(self) -> Features | None:
        """The `Features` that the map takes beside the scores, if there are some."""
        for node in nodes_below(self.output):
            if isinstance(node, Features):
                return node
        return None


def calibration_map(
    recalibrator: Any, *, n_columns: int | None = None
) -> CalibrationMap:
    """Return the map that `predict_proba` applies to valid scores.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator.
    n_columns : int, default=None
        Number of columns of scores. None means 1 for two classes, even if `fit`
        received two columns, otherwise K. For two classes, one column is the positive
        class's probability, or its log-odds.

    Returns
    -------
    map : CalibrationMap
        The map, as a tree of nodes.

    Raises
    ------
    ValueError
        If the method, or a part of it, has no map. The message names the method.

    See Also
    --------
    skcalib.export.to_sql : Writes the map as an SQL expression.

    Examples
    --------
    >>> from skcalib import PlattScaling
    >>> from skcalib.maps import Rows, calibration_map
    >>> platt = PlattScaling().fit([0.1, 0.4, 0.6, 0.7], [0, 1, 0, 1])
    >>> output = calibration_map(platt).output
    >>> bool(Rows([[0.3]])(output)[0, 0] == platt.predict_proba([0.3])[0, 1])
    True
    """
    check_fitted(recalibrator)
    n_classes = len(recalibrator.classes_)
    if n_columns is None:
        n_columns = 1 if n_classes == 2 else n_classes
    if n_columns > 2 and n_columns != n_classes:
        raise ValueError(
            f"{type(recalibrator).__name__} has {n_classes} classes, found {n_columns}"
            " columns of scores."
        )
    scores = Scores(n_columns)
    # the map for rows in which every class is possible
    unmasked = map_of(recalibrator, scores)
    output = unmasked
    # With logits a class may be impossible in a row: its logit is -inf, or more than
    # 700 below the row's largest. The map must then give 0 for the class, and leave it
    # out of sums over the classes. That cannot happen with one column of log-odds, and
    # not if the fit has seen labels of classes with logits that far below others.
    has_wide_logits = getattr(recalibrator, "_has_wide_logits_", False)
    if recalibrator.input == "logit" and scores.width > 1 and not has_wide_logits:
        # The same probabilities where all classes are possible; otherwise 0 for the
        # impossible ones, and probabilities among the others.
        if scores.width == 2:
            output = _certain_if_one_is_impossible(unmasked, scores)
        else:
            output = with_zero_for_impossible(unmasked, scores.width)
    return CalibrationMap(
        scores, output, recalibrator.input, recalibrator.classes_, unmasked
    )


def map_of(recalibrator: Any, scores: Node) -> Node:
    """Return the node that computes a fitted recalibrator's probabilities.

    A recalibrator that contains others builds its map from their maps.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator.
    scores : Node
        The scores that it receives.

    Returns
    -------
    probabilities : Node
        Probabilities of all classes; for two classes, only that of the positive class.

    Raises
    ------
    ValueError
        If the method, or a part of it, has no map. The message names the method.

    See Also
    --------
    skcalib.maps.calibration_map : The map together with its scores and classes.

    Examples
    --------
    >>> from skcalib import PlattScaling
    >>> from skcalib.maps import Scores, map_of
    >>> platt = PlattScaling().fit([0.1, 0.4, 0.6, 0.7], [0, 1, 0, 1])
    >>> type(map_of(platt, Scores())).__name__
    'Expit'
    """
    node = part_map(recalibrator, scores)
    _refuse_python_functions(node)
    return node


def part_map(recalibrator, scores):
    """Return the node of a recalibrator's probabilities, as `map_of` does, in which
    parts without a map may be functions of Python.
    """
    if not has_map(type(recalibrator)):
        raise ValueError(why_not(recalibrator))
    return recalibrator._map_of(scores)


def why_not(recalibrator):
    """Return why a recalibrator without a map cannot be exported."""
    return (
        f"{type(recalibrator).__name__} cannot be exported for use outside Python:"
        " without a method `_map`, it has no form in SQL, ONNX or JavaScript. Export"
        " the recalibrator inside: for a pipeline, `pipeline[-1]`; for a"
        " RecalibratedClassifierCV with one pair,"
        " `model.calibrated_classifiers_[0].recalibrator`."
    )


def _refuse_python_functions(node):
    """Raise a ValueError if a node, or one of those that it is computed from, is a
    function of Python.
    """
    for below in nodes_below(node):
        if isinstance(below, PythonFunction):
            raise ValueError(below.why)


def has_map(kind: type) -> bool:
    """Return whether a recalibrator class defines a map.

    Parameters
    ----------
    kind : type
        A recalibrator class.

    Returns
    -------
    has_map : bool
        Whether the class defines a map. This is also False if a subclass overrides only
        the prediction, because the inherited map then no longer describes it.

    Raises
    ------
    TypeError
        If `kind` is not a class.

    See Also
    --------
    skcalib.maps.calibration_map : The map of a fitted recalibrator.

    Examples
    --------
    >>> from skcalib import PlattScaling
    >>> from skcalib.maps import has_map
    >>> has_map(PlattScaling)
    True
    """
    if not isinstance(kind, type):
        raise TypeError(f"kind must be a class, found {kind!r}")
    # From the class itself to its bases: what is defined first overrides the rest. A
    # prediction that is defined before any map is not described by the map of a base.
    for parent in kind.__mro__:
        if "_map" in vars(parent):
            return True
        if _PREDICTION_METHODS & vars(parent).keys():
            return False
    return False


def with_zero_for_impossible(node, n_classes):
    """Return a map of more than two classes that gives the same probabilities as `node`
    where all are possible, and otherwise 0 for the impossible ones and probabilities
    among the others.
    """
    return _zero_for_impossible(_leaving_impossible_out(node, n_classes, {}))


def _leaving_impossible_out(node, n_classes, copies):
    """Return a copy of a node, and of all that it is computed from, in which sums,
    means and softmaxes leave impossible classes out. `copies` maps the `id` of each
    node copied so far to (node, copy): a node has one copy, and is kept so that no
    other object gets its `id`.
    """
    if id(node) in copies:
        _, copy = copies[id(node)]
        return copy
    # The fields that hold nodes, or tuples of nodes, are copied.
    changed = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = _leaving_impossible_out(value, n_classes, copies)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changed[field.name] = tuple(
                _leaving_impossible_out(child, n_classes, copies) for child in value
            )
    # Nodes that combine all classes have a field `possible`, which leaves impossible
    # ones out. It is set if the node has one value for each class.
    if hasattr(node, "possible") and node.width == n_classes:
        changed["possible"] = True
    copy = node
    if changed:
        copy = replace(node, **changed)
    copies[id(node)] = (node, copy)
    return copy


def _zero_for_impossible(node):
    """Return a node with the probabilities (K values), 0 for impossible classes: those
    with ``possible=True`` give 0 themselves, a `Choice` if all its cases do; others are
    put into `Possible`.
    """
    gives_zero = getattr(node, "possible", False)
    if gives_zero:
        return node
    if isinstance(node, Choice):
        return replace(node, cases=tuple(map(_zero_for_impossible, node.cases)))
    return Possible(node)


def _certain_if_one_is_impossible(node, scores):
    """Return a node with the probability of the second of two classes: 0 if it is
    impossible and 1 if the first one is, by the two logits `scores`.
    """
    if isinstance(node, Choice) and isinstance(node.key, GroupOf):
        # The choice of the group stays outermost: `CalibrationMap.group_key` needs it.
        cases = []
        for case in node.cases:
            cases.append(_certain_if_one_is_impossible(case, scores))
        return replace(node, cases=tuple(cases))
    # the second logit minus the first
    difference = Affine(scores, np.array([[-1.0, 1.0]]), np.zeros(1))

    def constant(value):
        """Return a node that has this value everywhere: a single piece, no cuts."""
        return Pieces(difference, np.empty(0), np.zeros(1), np.array([[value]]))

    never = constant(0.0)
    always = constant(1.0)
    # `Place` finds the case by the cuts: below -700, between, above 700. A value at a
    # cut belongs to the case below it, and a gap of exactly 700 leaves both classes
    # possible: so the first cut is the next float below -700.
    cuts = np.array([np.nextafter(-LARGEST_GAP, -np.inf), LARGEST_GAP])
    return Choice(Place(difference, cuts), (never, node, always))
