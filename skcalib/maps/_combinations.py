"""Nodes that take one column of a node, or put several nodes together."""

from dataclasses import dataclass

import numpy as np

from skcalib._rows.namespaces import side_by_side
from skcalib.maps._node import Node, NodeOf, OneValueOf, require


@dataclass(frozen=True, eq=False)
class OneColumn(OneValueOf):
    """One of the values of a node.

    Parameters
    ----------
    of : Node
        The node.
    index : int
        Index of the value.

    See Also
    --------
    skcalib.maps.Columns : Combines columns.

    Examples
    --------
    >>> from skcalib.maps import OneColumn, Rows, Scores
    >>> Rows([[0.2, 0.3, 0.5]])(OneColumn(Scores(3), 2)).tolist()
    [[0.5]]
    """

    index: int

    def __call__(self, rows):
        values = rows(self.of)
        return values[:, self.index : self.index + 1]


@dataclass(frozen=True, eq=False)
class Columns(Node):
    """The values of several nodes, side by side.

    Parameters
    ----------
    parts : tuple of Node
        The nodes.

    See Also
    --------
    skcalib.maps.OneColumn : Selects one of the columns.

    Examples
    --------
    >>> from skcalib.maps import Columns, Rows, Scaled, Scores
    >>> scores = Scores()
    >>> Rows([[0.2]])(Columns((Scaled(scores, -1.0, 1.0), scores))).tolist()
    [[0.8, 0.2]]
    """

    parts: tuple[Node, ...]

    @property
    def width(self):
        return sum(part.width for part in self.parts)

    @property
    def _sources(self):
        return self.parts

    def __call__(self, rows):
        return side_by_side(rows.xp, [rows(part) for part in self.parts])


@dataclass(frozen=True, eq=False)
class Times(NodeOf):
    """Each value, multiplied by one factor of the row.

    Parameters
    ----------
    of : Node
        The values.
    factor : Node
        The factor, a node with one value.

    See Also
    --------
    skcalib.maps.Scaled : Multiplies by a number that is the same for all rows.
    skcalib.TemperatureScaling : With `features`, the temperature differs by row.

    Examples
    --------
    >>> from skcalib.maps import OneColumn, Rows, Scores, Times
    >>> scores = Scores(2)
    >>> Rows([[2.0, 5.0]])(Times(scores, OneColumn(scores, 0))).tolist()
    [[4.0, 10.0]]
    """

    factor: Node

    @property
    def _sources(self):
        return self.of, self.factor

    def _check(self):
        require(self.factor.width == 1, self, "a factor with one value")

    def __call__(self, rows):
        values = rows(self.of)
        return values * rows(self.factor)


@dataclass(frozen=True, eq=False)
class Mixture(Node):
    """The weighted sum of the values of several nodes of equal width, plus a constant.

    Parameters
    ----------
    weights : tuple of float
        One weight for each node.
    parts : tuple of Node
        The nodes.
    constant : float, default=0.0
        Constant added to each value.

    See Also
    --------
    skcalib.StackedRecalibrator : A mixture of recalibrators.

    Examples
    --------
    >>> from skcalib.maps import Mixture, Rows, Scaled, Scores
    >>> scores = Scores()
    >>> Rows([[0.5]])(Mixture((0.5, 0.5), (scores, Scaled(scores, 0.0)))).tolist()
    [[0.25]]
    """

    weights: tuple[float, ...]
    parts: tuple[Node, ...]
    constant: float = 0.0

    @property
    def width(self):
        return self.parts[0].width

    @property
    def _sources(self):
        return self.parts

    def _check(self):
        require(
            len(self.weights) == len(self.parts) and np.isfinite(self.weights).all(),
            self,
            "one weight a part",
        )
        require(
            all(part.width == self.width for part in self.parts),
            self,
            "parts of one width",
        )

    def __call__(self, rows):
        """Return the weighted sum of the parts, plus the constant, (n, width)."""
        total = self.weights[0] * rows(self.parts[0])
        for weight, part in zip(self.weights[1:], self.parts[1:], strict=True):
            total += weight * rows(part)
        total += self.constant
        return total
