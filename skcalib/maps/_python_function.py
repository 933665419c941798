"""A node that calls a function of Python, for maps that no other node expresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakMethod

from skcalib.maps._node import Node, Rows, require_numpy


@dataclass(frozen=True, eq=False)
class PythonFunction(Node):
    """What a function of Python returns for the values of a node.

    It serves `predict_proba` alone: such a map has no form outside Python.

    Parameters
    ----------
    of : Node
        The node.
    function : callable
        ``function(values, is_impossible)`` takes the values of the node (n, width of
        the node), and the impossible classes of the rows, (n, K) or None. It returns
        (n, `width`).
    width : int
        Number of values.
    why : str
        Why the map cannot be exported.
    """

    of: Node
    function: Callable
    width: int
    why: str

    def __call__(self, rows: Rows):
        require_numpy(self, rows)
        return self.function(rows(self.of), rows.is_impossible)


def called_weakly(method):
    """Return a function that calls a method of an object, and does not keep the object:
    its map may be kept for as long as the object lives.
    """
    reference = WeakMethod(method)

    def call(*arguments):
        """Return what the method returns."""
        return reference()(*arguments)

    return call
