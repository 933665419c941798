"""What every node of a calibration map has, and the rows that nodes are evaluated on.

A node is a function of one row. It has a `width`, the number of values that it gives,
and points to the nodes that it takes its values from. A node may be used in several
places. It checks its numbers when it is made; called with `Rows`, it returns its values
(n, width), as float64 for NumPy. It computes them in the namespace `xp` of the rows, so
that the same code serves NumPy and tensors.

A tree starts at `Scores`: probabilities in [0, 1], or log-odds or logits of at most
1e100 in size. What a writer does with other scores (NULL, NaN, an error) is the
writer's own affair: nodes are defined for valid scores only. For two classes the tree
ends at one value, the positive class's probability.

The nodes are in `_leaves` (scores and row keys), `_value_functions` (each value by
itself), `_class_functions` (all values of a row together), `_combinations` (columns and
sums of nodes) and `_choices` (one of several nodes, by a key).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.tensors import dispatched_namespace
from skcalib._rows.blocks import taken
from skcalib._rows.links import LARGEST_GAP
from skcalib._rows.namespaces import MANY_COLUMNS, chosen_rows, row_maxima


class Rows:
    """Rows on which nodes are evaluated; each node is evaluated once.

    Parameters
    ----------
    scores : array-like of shape (n, C)
        Valid scores. With scikit-learn's array API dispatch, a tensor stays in its
        library, on its device and in its floating-point type.
    groups : sequence of length n, default=None
        Group of each row.
    ids : sequence of length n, default=None
        Id of each row.
    features : array-like of shape (n, n_features), default=None
        Finite numbers beside the scores, for maps that contain `Features`.

    Attributes
    ----------
    inputs : tuple
        The scores (as float64 unless they are a tensor), and the groups and ids as
        arrays of objects or None.
    features : ndarray of shape (n, n_features) or None
        The numbers beside the scores, as float64.
    values : dict
        Maps the `id` of each node evaluated so far to the node and its values.
    xp : module
        The namespace in which nodes compute: NumPy, or that of the tensor.
    device : object
        The device of the tensor, None for NumPy.

    See Also
    --------
    skcalib.maps.calibration_map : Returns the nodes of a fitted recalibrator.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scaled, Scores
    >>> Rows([[1.0], [2.0]])(Scaled(Scores(), 10.0)).tolist()
    [[10.0], [20.0]]
    """

    def __init__(
        self,
        scores: ArrayLike,
        groups: Sequence | np.ndarray | None = None,
        ids: Sequence | np.ndarray | None = None,
        features: ArrayLike | None = None,
    ):
        # The library and the device of a tensor; None for what NumPy computes.
        self.xp, self.device = dispatched_namespace(scores)
        if self.xp is None:
            self.xp = np
            scores = np.asarray(scores, dtype=np.float64)
            if scores.ndim == 2 and 2 < scores.shape[1] <= MANY_COLUMNS:
                # quicker for few columns: the numbers of each are neighbours
                scores = np.asfortranarray(scores)
        if groups is not None:
            groups = np.asarray(groups, dtype=object)
        if ids is not None:
            ids = np.asarray(ids, dtype=object)
        if features is not None:
            features = np.asarray(features, dtype=np.float64)
        self.inputs = (scores, groups, ids)
        self.features = features
        # Maps the Python `id` of a node to a pair: its values (n, width) and the node.
        # The node is kept so that its `id` is not given to another object.
        self.values = {}
        self._rows_of = None  # the rows from which these were chosen, and their indices

    @cached_property
    def is_impossible(self):
        """Which classes are impossible in each row (n, K): see `Possible`. None if no
        class is impossible in any row.
        """
        if self._rows_of is not None:
            all_rows, chosen = self._rows_of
            if all_rows.is_impossible is None:
                return None
            return chosen_rows(self.xp, all_rows.is_impossible, chosen)
        scores, _, _ = self.inputs
        if scores.shape[1] == 1:
            return None
        is_impossible = scores < row_maxima(self.xp, scores) - LARGEST_GAP
        if not self.xp.any(is_impossible):
            return None
        return is_impossible

    def constant(self, values: float | np.ndarray) -> Any:
        """Return numbers in the library of the scores, on their device.

        Parameters
        ----------
        values : float or ndarray
            The numbers.

        Returns
        -------
        constant : array
            The same numbers in the floating-point type of the scores; for NumPy, they
            are returned as they are.
        """
        if self.xp is np:
            return values
        scores, _, _ = self.inputs
        return self.xp.asarray(
            np.asarray(values, dtype=np.float64),
            dtype=scores.dtype,
            device=self.device,
        )

    def __call__(self, node: Node) -> np.ndarray:
        """Return the values of a node (n, width), which is evaluated only once."""
        evaluated = self.values
        if id(node) not in evaluated:
            if self._rows_of is None:
                # Nodes come after those that they take values from: none of them has
                # to call another.
                for step in node._steps:
                    if id(step) not in evaluated:
                        evaluated[id(step)] = (step(self), step)
            else:
                evaluated[id(node)] = (self._chosen_or_evaluated(node), node)
        values, _ = evaluated[id(node)]
        return values

    def _chosen_or_evaluated(self, node):
        """Return the values of a node (n, width) for some of other rows: chosen from
        those of all rows, if it was evaluated there.
        """
        all_rows, chosen = self._rows_of
        if id(node) in all_rows.values and not node._is_input:
            return chosen_rows(self.xp, all_rows(node), chosen)
        return node(self)

    def at(self, chosen: np.ndarray) -> Rows:
        """Return some of the rows.

        Parameters
        ----------
        chosen : ndarray
            Indices of the rows, or a mask.

        Returns
        -------
        rows : Rows
            The selected rows, without the values of any node.
        """
        if self.xp is np and chosen.dtype == bool:
            chosen = np.flatnonzero(chosen)
        scores, groups, ids = self.inputs
        rows = Rows(
            chosen_rows(self.xp, scores, chosen),
            taken(groups, chosen),
            taken(ids, chosen),
            taken(self.features, chosen),
        )
        rows._rows_of = (self, chosen)
        return rows


class Node:
    """Base class of nodes; a subclass is a frozen dataclass with named fields.

    The fields are checked when a node is created: numbers must be finite, and
    the subclass's ``_check`` method verifies that they are consistent. Two nodes are
    equal only if they are the same object, so a node that is used in several places is
    evaluated once.

    Attributes
    ----------
    width : int
        Number of values that the node returns.

    See Also
    --------
    skcalib.maps.Rows : Evaluates nodes.

    Examples
    --------
    A custom node works in Python only; the exports to SQL, ONNX and JavaScript support
    only the nodes of this module.

    >>> from dataclasses import dataclass
    >>> from skcalib.maps import Node, Rows, Scores
    >>> @dataclass(frozen=True, eq=False)
    ... class Squared(Node):
    ...     of: Node
    ...
    ...     @property
    ...     def width(self):
    ...         return self.of.width
    ...
    ...     def __call__(self, rows):
    ...         return rows(self.of) ** 2
    >>> Rows([[3.0]])(Squared(Scores())).tolist()
    [[9.0]]
    """

    width: int
    _is_input = False  # whether the node gives an input of the rows
    # The nodes that it takes values from, for all rows: they are evaluated before it.
    # Others are evaluated when it asks for them.
    _sources = ()

    @cached_property
    def _steps(self):
        """The nodes to evaluate for this one: each after its sources, itself last."""
        steps = {}  # a set in order
        for source in self._sources:
            steps |= dict.fromkeys(source._steps)
        return *steps, self

    def __post_init__(self):
        """Raise a ValueError unless the numbers in the fields are finite and pass
        ``_check``.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            is_numeric = isinstance(value, float | np.ndarray)
            if is_numeric and not np.isfinite(value).all():
                raise ValueError(
                    f"{field.name} of {type(self).__name__} must contain finite numbers"
                )
        self._check()

    def _check(self):
        """Raise a ValueError if numbers are inconsistent."""

    def __call__(self, rows: Rows) -> np.ndarray:
        """Return the values of the node for rows (n, width)."""
        raise NotImplementedError(f"{type(self).__name__} gives no values")


def nodes_below(node):
    """Yield a node, or those in a field of one, and all nodes that they have in theirs,
    repeatedly those that are used repeatedly.
    """
    children = ()
    if isinstance(node, Node):
        yield node
        children = [getattr(node, field.name) for field in fields(node)]
    elif isinstance(node, tuple):
        children = node
    for child in children:
        yield from nodes_below(child)


def require(condition, node, what):
    """Raise a ValueError that states what a node requires, unless a condition holds."""
    if not condition:
        raise ValueError(f"{type(node).__name__} needs {what}")


def require_numpy(node, rows):
    """Raise a NotImplementedError for the rows of a tensor, which a node that computes
    with NumPy alone cannot take.
    """
    if rows.xp is not np:
        raise NotImplementedError(f"{type(node).__name__} of tensors")


@dataclass(frozen=True, eq=False)
class NodeOf(Node):
    """Base class of nodes that compute their values from one other node, `of`.

    Its width is that of `of` unless it says otherwise.
    """

    of: Node

    @property
    def width(self):
        return self.of.width

    @property
    def _sources(self):
        return (self.of,)


class OneValueOf(NodeOf):
    """Base class of nodes that compute one value from the values of one other node."""

    width = 1
