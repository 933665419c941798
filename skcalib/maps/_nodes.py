"""Nodes of calibration maps: each is a function of one row.

A node has a `width`, the number of values that it gives, and points to the nodes that
it takes its values from. A node may be used in several places. It checks its numbers
when it is made; called with `Rows`, it returns its values as float64 (n, width).

A tree starts at `Scores`: probabilities in [0, 1], or log-odds or logits of at most
1e100 in size. What a writer does with other scores (NULL, NaN, an error) is the
writer's own affair: nodes are defined for valid scores only. For two classes the tree
ends at one value, the positive class's probability.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_softmax
from scipy.special import softmax as softmax_of

from skcalib._rows.blocks import taken
from skcalib._rows.keys import row_keys
from skcalib._rows.links import (
    clip_probability,
    impossible,
    log_odds,
    log_probability,
    row_shares,
    without_impossible,
)
from skcalib._rows.sorting import rows_by_code

_LARGEST_EXPONENT = 700.0


class Rows:
    """Rows on which nodes are evaluated, each node once.

    Parameters
    ----------
    scores : array-like of shape (n, C)
        Valid scores.
    groups : sequence of length n, default=None
        Their groups.
    ids : sequence of length n, default=None
        Their ids.

    Attributes
    ----------
    inputs : tuple
        Scores as float64, groups and ids as arrays of objects or None.
    values : dict
        The values of each node so far, with the node, by the node's `id`.

    See Also
    --------
    skcalib.maps.calibration_map : The nodes of a fitted recalibrator.

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
    ):
        scores = np.asarray(scores, dtype=np.float64)
        if groups is not None:
            groups = np.asarray(groups, dtype=object)
        if ids is not None:
            ids = np.asarray(ids, dtype=object)
        self.inputs = (scores, groups, ids)
        self.values = {}

    @cached_property
    def closed(self):
        """Which classes are impossible (n, K): see `Possible`. None where none is."""
        return impossible(self.inputs[0])

    def __call__(self, node: "Node") -> np.ndarray:
        """Return the values of a node (n, width)."""
        if id(node) not in self.values:
            # the node is held, so that its id stays its own
            self.values[id(node)] = (node(self), node)
        values, _ = self.values[id(node)]
        return values

    def at(self, chosen: np.ndarray) -> "Rows":
        """Return some of the rows.

        Parameters
        ----------
        chosen : ndarray
            Their indices, or a mask.

        Returns
        -------
        rows : Rows
            Without the values of any node.
        """
        scores, groups, ids = self.inputs
        return Rows(
            scores[chosen],
            taken(groups, chosen),
            taken(ids, chosen),
        )


class Node:
    """Base class of nodes; a subclass is a frozen dataclass with named fields.

    The fields are checked when a node is made: numbers must be finite, and ``_check``
    of the subclass says what must be consistent. Two nodes are equal only if they are
    the same object, so that a node that is used in several places is evaluated once.

    Attributes
    ----------
    width : int
        Number of values that the node returns.

    See Also
    --------
    skcalib.maps.Rows : Evaluates nodes.

    Examples
    --------
    A node of your own works in Python; the writers of SQL, ONNX and JavaScript know the
    nodes of this module only.

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

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            is_numeric = isinstance(value, float | np.ndarray)
            if is_numeric and not np.isfinite(value).all():
                raise ValueError(
                    f"{field.name} of {type(self).__name__} must hold finite numbers"
                )
        self._check()

    def _check(self):
        """Raise a ValueError if numbers are inconsistent."""

    def __call__(self, rows: Rows) -> np.ndarray:
        """Return the values of the node for rows (n, width)."""
        raise NotImplementedError(f"{type(self).__name__} gives no values")


def _require(condition, node, what):
    if not condition:
        raise ValueError(f"{type(node).__name__} needs {what}")


@dataclass(frozen=True, eq=False)
class _NodeOf(Node):
    """A node of another one, with the same number of values.

    A subclass writes ``_of(values)``, from the other's values (n, width) to its own.
    """

    of: Node

    @property
    def width(self):
        return self.of.width

    def __call__(self, rows):
        return self._of(rows(self.of))

    def _of(self, values):
        raise NotImplementedError(f"{type(self).__name__} gives no values")


class _OneValueOf(_NodeOf):
    """A node of another one that gives one value."""

    width = 1


@dataclass(frozen=True, eq=False)
class Scores(Node):
    """The scores of a row, where a map starts.

    Parameters
    ----------
    width : int, default=1
        K for one score per class. 1 for two classes: the positive class's probability
        (or log-odds) alone.

    See Also
    --------
    skcalib.maps.CalibrationMap : Has the scores at which its tree starts.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores
    >>> Rows([[0.2], [0.7]])(Scores()).tolist()
    [[0.2], [0.7]]
    """

    width: int = 1

    def __call__(self, rows):
        scores, _, _ = rows.inputs
        return scores


@dataclass(frozen=True, eq=False)
class OneColumn(_OneValueOf):
    """One of the values of a node.

    Parameters
    ----------
    of : Node
        The node.
    index : int
        Which of its values.

    See Also
    --------
    skcalib.maps.Columns : Puts columns together.

    Examples
    --------
    >>> from skcalib.maps import OneColumn, Rows, Scores
    >>> Rows([[0.2, 0.3, 0.5]])(OneColumn(Scores(3), 2)).tolist()
    [[0.5]]
    """

    index: int

    def _of(self, values):
        return values[:, [self.index]]


@dataclass(frozen=True, eq=False)
class Columns(Node):
    """The values of several nodes, side by side.

    Parameters
    ----------
    parts : tuple of Node
        The nodes.

    See Also
    --------
    skcalib.maps.OneColumn : Takes one of the columns.

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

    def __call__(self, rows):
        return np.hstack([rows(part) for part in self.parts])


@dataclass(frozen=True, eq=False)
class Clip(_NodeOf):
    """Each value, clipped to [low, high].

    Parameters
    ----------
    of : Node
        The values.
    low, high : float
        The limits.

    See Also
    --------
    skcalib.maps.clipped_probability : Keeps probabilities away from 0 and 1.

    Examples
    --------
    >>> from skcalib.maps import Clip, Rows, Scores
    >>> Rows([[0.0], [0.4]])(Clip(Scores(), 0.1, 0.9)).tolist()
    [[0.1], [0.4]]
    """

    low: float
    high: float

    def _of(self, values):
        return np.clip(values, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Scaled(_NodeOf):
    """``slope * value + intercept`` for each value.

    Parameters
    ----------
    of : Node
        The values.
    slope : float or ndarray of shape (width,)
        The slope, or one for each value.
    intercept : float or ndarray of shape (width,), default=0.0
        The intercept, or one for each value.

    See Also
    --------
    skcalib.maps.Affine : Mixes the values by a matrix.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scaled, Scores
    >>> Rows([[3.0]])(Scaled(Scores(), 2.0, 1.0)).tolist()
    [[7.0]]
    """

    slope: float | np.ndarray
    intercept: float | np.ndarray = 0.0

    def _check(self):
        for values in (self.slope, self.intercept):
            _require(
                np.shape(values) in ((), (self.width,)),
                self,
                f"a number or {self.width}",
            )

    def _of(self, values):
        return self.slope * values + self.intercept


@dataclass(frozen=True, eq=False)
class Affine(_NodeOf):
    """``coef @ values + intercept``.

    Parameters
    ----------
    of : Node
        The values.
    coef : ndarray of shape (width, width of the values)
        The matrix.
    intercept : ndarray of shape (width,)
        The constants.

    See Also
    --------
    skcalib.maps.Scaled : One slope for each value.
    skcalib.maps.linear_form : Several affine nodes as one.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.maps import Affine, Rows, Scores
    >>> difference = Affine(Scores(2), np.array([[-1.0, 1.0]]), np.zeros(1))
    >>> Rows([[1.0, 3.0]])(difference).tolist()
    [[2.0]]
    """

    coef: np.ndarray
    intercept: np.ndarray

    @property
    def width(self):
        return len(self.coef)

    def _check(self):
        shape = (len(self.intercept), self.of.width)
        _require(
            np.shape(self.coef) == shape, self, f"coefficients of the shape {shape}"
        )

    def _of(self, values):
        # Not as a matrix product, which rounds by the number of rows.
        return np.einsum("nj,kj->nk", values, self.coef) + self.intercept


class Exp(_NodeOf):
    """``exp(value)`` of values clipped to [-700, 700].

    Parameters
    ----------
    of : Node
        The values.

    See Also
    --------
    skcalib.maps.Log : Its inverse for probabilities.

    Examples
    --------
    >>> from skcalib.maps import Exp, Rows, Scores
    >>> Rows([[0.0]])(Exp(Scores())).tolist()
    [[1.0]]
    """

    def _of(self, values):
        return np.exp(np.clip(values, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


class Log(_NodeOf):
    """The logarithm of probabilities, clipped to [2^-52, 1 - 2^-52] first.

    Parameters
    ----------
    of : Node
        The probabilities.

    See Also
    --------
    skcalib.maps.Softmax : From logits back to probabilities.

    Examples
    --------
    >>> from skcalib.maps import Log, Rows, Scores
    >>> Rows([[0.5]])(Log(Scores())).round(6).tolist()
    [[-0.693147]]
    """

    def _of(self, values):
        return log_probability(values)


class LogOdds(_NodeOf):
    """``log(p / (1 - p))`` of probabilities, clipped to [2^-52, 1 - 2^-52] first.

    Parameters
    ----------
    of : Node
        The probabilities.

    See Also
    --------
    skcalib.maps.Expit : Its inverse.

    Examples
    --------
    >>> from skcalib.maps import LogOdds, Rows, Scores
    >>> Rows([[0.5]])(LogOdds(Scores())).tolist()
    [[0.0]]
    """

    def _of(self, values):
        return log_odds(values)


class LogOddsAgainstRest(_NodeOf):
    """The log-odds of each of a row's probabilities against the sum of the others.

    Both are clipped to [2^-52, 1 - 2^-52] first.

    Parameters
    ----------
    of : Node
        The probabilities of all classes.

    See Also
    --------
    skcalib.maps.LogOdds : For one probability.

    Examples
    --------
    >>> from skcalib.maps import LogOddsAgainstRest, Rows, Scores
    >>> Rows([[0.5, 0.3, 0.2]])(LogOddsAgainstRest(Scores(3))).round(3).tolist()
    [[0.0, -0.847, -1.386]]
    """

    def _of(self, values):
        p = clip_probability(values)
        # Next to 1, 1 - p would lose digits: the small ones are summed instead.
        small = np.where(p > 0.5, 0, p).sum(axis=1, keepdims=True)
        rest = np.where(p > 0.5, small, p.sum(axis=1, keepdims=True) - p)
        return np.log(p) - np.log(clip_probability(rest))


class LogSides(_NodeOf):
    """``log(p)`` and ``-log(1 - p)`` of the probability whose log-odds are given.

    With z the log-odds, they are ``min(z, 0) - log(1 + exp(-|z|))`` and
    ``max(z, 0) + log(1 + exp(-|z|))``. They sum to z.

    Parameters
    ----------
    of : Node
        The log-odds: one value.

    See Also
    --------
    skcalib.BetaCalibration : Is linear in both.

    Examples
    --------
    >>> from skcalib.maps import LogSides, Rows, Scores
    >>> Rows([[0.0]])(LogSides(Scores())).round(6).tolist()
    [[-0.693147, 0.693147]]
    """

    width = 2

    def _of(self, values):
        softplus = np.log1p(np.exp(-np.abs(values)))
        return np.hstack(
            (np.minimum(values, 0) - softplus, np.maximum(values, 0) + softplus)
        )


@dataclass(frozen=True, eq=False)
class Expit(_NodeOf):
    """``1 / (1 + exp(-value))``.

    Parameters
    ----------
    of : Node
        The log-odds.
    clip : bool, default=True
        Whether probabilities are clipped to [2^-52, 1 - 2^-52], as all scaling methods
        do.

    See Also
    --------
    skcalib.maps.LogOdds : Its inverse.
    skcalib.maps.Softmax : The same for K logits.

    Examples
    --------
    >>> from skcalib.maps import Expit, Rows, Scores
    >>> Rows([[0.0]])(Expit(Scores())).tolist()
    [[0.5]]
    """

    clip: bool = True

    def _of(self, values):
        probabilities = expit(values)
        return clip_probability(probabilities) if self.clip else probabilities


@dataclass(frozen=True, eq=False)
class Pieces(_OneValueOf):
    """A piecewise polynomial of one value x.

    Piece i holds for ``cuts[i - 1] < x <= cuts[i]``; the first piece has no lower end
    and the last no upper one. Its value is the sum over j of
    ``coefficients[i, j] * (x - origins[i])**j``. Steps (bins) have one coefficient,
    piecewise linear functions two, cubic splines four.

    Parameters
    ----------
    of : Node
        The value x.
    cuts : ndarray of shape (n_pieces - 1,)
        Where pieces meet: finite, strictly increasing. A cut that belongs to the piece
        above it is written as the float64 just below it (see `just_below`).
    origins : ndarray of shape (n_pieces,)
        Where each polynomial has its origin.
    coefficients : ndarray of shape (n_pieces, n_coefficients)
        The coefficients, starting with the constant.
    continuous : bool, default=False
        Whether neighbours agree at their cut, up to rounding, so that it does not
        matter on which side of it a value falls.

    See Also
    --------
    skcalib.maps.step_function : Steps from their cuts and values.
    skcalib.maps.piecewise_polynomial : Continuous pieces.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.maps import Pieces, Rows, Scores
    >>> two_bins = Pieces(
    ...     Scores(), np.array([0.5]), np.zeros(2), np.array([[0.1], [0.8]])
    ... )
    >>> Rows([[0.5], [0.6]])(two_bins).tolist()
    [[0.1], [0.8]]
    """

    cuts: np.ndarray
    origins: np.ndarray
    coefficients: np.ndarray
    continuous: bool = False

    def _check(self):
        _require((np.diff(self.cuts) > 0).all(), self, "cuts that increase")
        n_pieces = len(self.cuts) + 1
        _require(
            len(self.origins) == n_pieces and len(self.coefficients) == n_pieces,
            self,
            "a piece between each two cuts and beyond the outer ones",
        )

    def _of(self, values):
        """Return the polynomial of each value's piece, (n, 1)."""
        x = values[:, 0]
        piece = np.searchsorted(self.cuts, x, side="left")
        step = x - self.origins[piece]
        # Horner's scheme, from the highest power down
        value = self.coefficients[piece, -1]
        for power in reversed(range(self.coefficients.shape[1] - 1)):
            value = value * step + self.coefficients[piece, power]
        return value[:, None]


@dataclass(frozen=True, eq=False)
class Possible(_NodeOf):
    """The values of the classes, and 0 for the impossible ones.

    A tree of logits starts at scores of which some may say that their class is
    impossible in the row: -inf, or more than 700 below the row's largest. Nodes with
    ``possible=True`` leave these classes out, whatever value they are given for them,
    and give 0 for them. `calibration_map` sets it.

    Parameters
    ----------
    of : Node
        The values, one for each class.

    See Also
    --------
    skcalib.maps.Softmax : Has a parameter for the same.

    Examples
    --------
    >>> from skcalib.maps import Possible, Rows, Scores
    >>> Rows([[2.0, 1.0, -1e4]])(Possible(Scores(3))).tolist()
    [[2.0, 1.0, 0.0]]
    """

    def __call__(self, rows):
        values = rows(self.of)
        return values if rows.closed is None else np.where(rows.closed, 0, values)


@dataclass(frozen=True, eq=False)
class _OfClasses(_NodeOf):
    """A node that may leave impossible classes out."""

    possible: bool = False

    def _impossible_in(self, rows):
        """Return which classes are left out in rows (n, K); None without any, and where
        `possible` is not set.
        """
        return rows.closed if self.possible else None


@dataclass(frozen=True, eq=False)
class Centred(_OfClasses):
    """Each value minus the mean of the row.

    Parameters
    ----------
    of : Node
        The values.
    possible : bool, default=False
        Whether impossible classes are left out: see `Possible`.

    See Also
    --------
    skcalib.maps.LogNormalized : Subtracts the logarithm of a sum of exponentials.

    Examples
    --------
    >>> from skcalib.maps import Centred, Rows, Scores
    >>> Rows([[1.0, 2.0, 6.0]])(Centred(Scores(3))).tolist()
    [[-2.0, -1.0, 3.0]]
    """

    def __call__(self, rows):
        values = rows(self.of)
        is_impossible = self._impossible_in(rows)
        if is_impossible is None:
            return values - values.mean(axis=1, keepdims=True)
        mean = values.mean(axis=1, keepdims=True, where=~is_impossible)
        return np.where(is_impossible, 0, values - mean)


@dataclass(frozen=True, eq=False)
class LogNormalized(_OfClasses):
    """Logits as the logarithms of probabilities that sum to 1.

    Each value minus the row's ``log(sum(exp(values)))``.

    Parameters
    ----------
    of : Node
        The logits.
    possible : bool, default=False
        Whether impossible classes are left out: see `Possible`.

    See Also
    --------
    skcalib.maps.Softmax : The probabilities themselves.

    Examples
    --------
    >>> from skcalib.maps import LogNormalized, Rows, Scores
    >>> Rows([[1.0, 1.0]])(LogNormalized(Scores(2))).round(6).tolist()
    [[-0.693147, -0.693147]]
    """

    def __call__(self, rows):
        values = rows(self.of)
        is_impossible = self._impossible_in(rows)
        if is_impossible is None:
            return log_softmax(values, axis=1)
        return np.where(
            is_impossible,
            0,
            log_softmax(np.where(is_impossible, -np.inf, values), axis=1),
        )


@dataclass(frozen=True, eq=False)
class Softmax(_NodeOf):
    """``exp(values) / sum(exp(values))``.

    Parameters
    ----------
    of : Node
        The logits.
    clip : bool, default=True
        Whether probabilities are clipped to [2^-52, 1 - 2^-52], as all scaling methods
        do.
    possible : bool, default=False
        Whether impossible classes are left out: see `Possible`.

    See Also
    --------
    skcalib.maps.class_probabilities : The same for any number of classes.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, Softmax
    >>> Rows([[1.0, 1.0, 1.0, 1.0]])(Softmax(Scores(4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """

    clip: bool = True
    possible: bool = False

    def __call__(self, rows):
        values = rows(self.of)
        is_impossible = rows.closed if self.possible else None
        if is_impossible is not None:
            values = np.where(is_impossible, -np.inf, values)
        p = softmax_of(values, axis=1)
        if self.clip:
            p = clip_probability(p)
        return without_impossible(p, is_impossible)


@dataclass(frozen=True, eq=False)
class Normalized(_OfClasses):
    """The row divided by its sum; a row of zeros becomes uniform.

    Parameters
    ----------
    of : Node
        The values, none of them negative.
    possible : bool, default=False
        Whether impossible classes are left out: see `Possible`.

    See Also
    --------
    skcalib.maps.Softmax : For logits.

    Examples
    --------
    >>> from skcalib.maps import Normalized, Rows, Scores
    >>> Rows([[0.5, 1.5], [0.0, 0.0]])(Normalized(Scores(2))).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """

    def __call__(self, rows):
        values = rows(self.of)
        is_impossible = self._impossible_in(rows)
        return without_impossible(row_shares(values, self.width), is_impossible)


class RowMax(_OneValueOf):
    """The largest value of the row.

    Parameters
    ----------
    of : Node
        The values.

    See Also
    --------
    skcalib.maps.Largest : Which of them it is.

    Examples
    --------
    >>> from skcalib.maps import RowMax, Rows, Scores
    >>> Rows([[0.2, 0.5, 0.3]])(RowMax(Scores(3))).tolist()
    [[0.5]]
    """

    def _of(self, values):
        return values.max(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Spread(_NodeOf):
    """New confidence for the predicted class; the other classes share the rest.

    The first of the largest values is replaced by the confidence. The others share the
    rest in proportion to their values; if they are all 0, they share it equally.

    Parameters
    ----------
    of : Node
        The probabilities.
    confidence : Node
        The confidence: one value.
    possible : bool, default=False
        Whether impossible classes are left out: see `Possible`.

    See Also
    --------
    skcalib.maps.RowMax : The confidence before.

    Examples
    --------
    >>> from skcalib.maps import RowMax, Rows, Scaled, Scores, Spread
    >>> scores = Scores(3)
    >>> halved = Spread(scores, Scaled(RowMax(scores), 0.5))
    >>> Rows([[0.8, 0.1, 0.1]])(halved).round(6).tolist()
    [[0.4, 0.3, 0.3]]
    """

    confidence: Node
    possible: bool = False

    def __call__(self, rows):
        values = rows(self.of)
        confidence = rows(self.confidence)
        is_largest = values.argmax(axis=1)[:, None] == np.arange(self.width)
        shares_of_others = row_shares(np.where(is_largest, 0, values), self.width - 1)
        spread = np.where(is_largest, confidence, shares_of_others * (1 - confidence))
        return without_impossible(spread, rows.closed if self.possible else None)


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

    def _check(self):
        _require(
            len(self.weights) == len(self.parts) and np.isfinite(self.weights).all(),
            self,
            "one weight a part",
        )
        _require(
            all(part.width == self.width for part in self.parts),
            self,
            "parts of one width",
        )

    def __call__(self, rows):
        total = 0
        for weight, part in zip(self.weights, self.parts, strict=True):
            total = total + weight * rows(part)
        return total + self.constant


@dataclass(frozen=True, eq=False)
class RowKey(Node):
    """A number in [0, 1) from the row's id, or a random one if rows have no ids.

    Parameters
    ----------
    salt : str
        What the number depends on besides the id.

    See Also
    --------
    skcalib.UniformMassBinning : Breaks ties with it.

    Examples
    --------
    >>> from skcalib.maps import RowKey, Rows
    >>> keys = Rows([[0.5], [0.5]], ids=["a", "a"])(RowKey("salt"))
    >>> bool(keys[0] == keys[1])
    True
    """

    salt: str
    width = 1

    def __call__(self, rows):
        scores, _, ids = rows.inputs
        if ids is None:
            keys = np.random.default_rng().random(len(scores))
        else:
            keys = row_keys(self.salt, ids)
        return keys[:, None]


class Largest(_NodeOf):
    """Key of a `Choice`: the column of the largest value, the first if tied.

    Parameters
    ----------
    of : Node
        The values.

    See Also
    --------
    skcalib.maps.Choice : One of several nodes, by a key.

    Examples
    --------
    >>> from skcalib.maps import Largest, Rows, Scores
    >>> Largest(Scores(3)).number(Rows([[0.2, 0.5, 0.3]])).tolist()
    [1]
    """

    def number(self, rows: Rows) -> np.ndarray:
        """Return which case each row takes.

        Parameters
        ----------
        rows : Rows
            The rows.

        Returns
        -------
        number : ndarray of int, shape (n,)
            The case of each row.
        """
        return rows(self.of).argmax(axis=1)


@dataclass(frozen=True, eq=False)
class Place(_NodeOf):
    """Key of a `Choice`: the number of cuts that lie below the value.

    Parameters
    ----------
    of : Node
        One value.
    cuts : ndarray of shape (n_cases - 1,)
        The cuts, strictly increasing.

    See Also
    --------
    skcalib.maps.Choice : One of several nodes, by a key.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.maps import Place, Rows, Scores
    >>> Place(Scores(), np.array([0.5])).number(Rows([[0.2], [0.5], [0.7]])).tolist()
    [0, 0, 1]
    """

    cuts: np.ndarray

    def _check(self):
        _require((np.diff(self.cuts) > 0).all(), self, "cuts that increase")

    def number(self, rows: Rows) -> np.ndarray:
        """Return which case each row takes.

        Parameters
        ----------
        rows : Rows
            The rows.

        Returns
        -------
        number : ndarray of int, shape (n,)
            The case of each row.
        """
        return np.searchsorted(self.cuts, rows(self.of)[:, 0], side="left")


@dataclass(frozen=True, eq=False)
class GroupOf(Node):
    """Key of a `Choice`: the number assigned to the row's group.

    Parameters
    ----------
    column : str or None
        Name of the column of groups; None if groups are passed in the call.
    cases : dict
        The number of each group (a string, an integer, a boolean or a float).
    otherwise : int
        The number for all other groups.

    See Also
    --------
    skcalib.maps.Choice : One of several nodes, by a key.

    Examples
    --------
    >>> from skcalib.maps import GroupOf, Rows
    >>> key = GroupOf("site", {"north": 0, "south": 1}, 2)
    >>> key.number(Rows([[0.5], [0.5]], groups=["south", "west"])).tolist()
    [1, 2]
    """

    column: str | None
    cases: dict
    otherwise: int

    def number(self, rows: Rows) -> np.ndarray:
        """Return which case each row takes.

        Parameters
        ----------
        rows : Rows
            The rows, with groups.

        Returns
        -------
        number : ndarray of int, shape (n,)
            The case of each row.
        """
        _, groups, _ = rows.inputs
        numbers = [self.cases.get(group, self.otherwise) for group in groups]
        return np.array(numbers, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Choice(Node):
    """The values of one of several nodes of equal width, selected by a key.

    Parameters
    ----------
    key : Largest, Place or GroupOf
        The key that selects the node for each row.
    cases : tuple of Node
        The nodes.

    See Also
    --------
    skcalib.GroupwiseRecalibrator : One map for each group.

    Examples
    --------
    >>> from skcalib.maps import Choice, GroupOf, Rows, Scaled, Scores
    >>> scores = Scores()
    >>> key = GroupOf(None, {"north": 0}, 1)
    >>> by_site = Choice(key, (Scaled(scores, 2.0), scores))
    >>> Rows([[0.25], [0.25]], groups=["north", "west"])(by_site).tolist()
    [[0.5], [0.25]]
    """

    key: Largest | Place | GroupOf
    cases: tuple[Node, ...]

    @property
    def width(self):
        return self.cases[0].width

    def _check(self):
        _require(
            all(case.width == self.width for case in self.cases),
            self,
            "cases of one width",
        )

    def __call__(self, rows):
        number = self.key.number(rows)
        values = np.empty((len(number), self.width))
        # Each case is evaluated on its own rows alone.
        for case, chosen in rows_by_code(number):
            values[chosen] = rows.at(chosen)(self.cases[case])
        return values
