"""The smooth parts of a mixture for two classes as one table.

A stack evaluates the maps of its members, each with a logarithm and an exponential, and
adds up their probabilities. Those that are smooth functions of the log-odds are one
smooth function together: it is read from a table of cubics, whose error is below
1e-10.
"""

from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import expit

from skcalib._rows.links import log_odds_of_two
from skcalib._rows.namespaces import exponential
from skcalib.maps._class_functions import Affine
from skcalib.maps._combinations import Mixture
from skcalib.maps._leaves import Scores
from skcalib.maps._node import Node, OneValueOf, Rows
from skcalib.maps._value_functions import (
    Clip,
    Expit,
    Log,
    LogOdds,
    LogSides,
    Pieces,
    Scaled,
)

# Log-odds of the table's ends: clipped probabilities have at most 36.044.
_END = 36.05
_CELLS = 2304  # of equal width, 1/32
# Pieces into which a cell is cut, at most, where one cubic is not exact enough. What
# is not exact even then, next to a kink, is left to the parts.
_MOST_PIECES = 1 << 6
# The largest error of a probability. Log-odds far from 0, which hardly change it, may
# be off by no more than the second number.
_TOLERANCE = 1e-11
_LARGEST_TOLERANCE = 1e-8
# Where a cubic takes the values of the function, in units of its piece: the points of
# Chebyshev and Lobatto, which include both ends, so that pieces meet. Between them the
# error is largest, and is measured.
_NODES = np.array([0.0, 0.25, 0.75, 1.0])
_PROBES = np.array([0.09, 0.5, 0.91])
# From three values less the first one to the coefficients of u, u^2 and u^3.
_TO_COEFFICIENTS = np.linalg.inv(_NODES[1:, None] ** np.arange(1, 4)).T
# Rows whose two probabilities are farther from the sum 1 are no function of one number.
_ROUNDING = 1e-10
# Nodes of which a smooth function of the log-odds consists.
_SMOOTH = (Affine, Clip, Expit, Log, LogOdds, LogSides, Pieces, Scaled, Scores)

# The table of each map that has been asked for.
_TABLES = WeakKeyDictionary()


def tabulated(node, input):
    """Return a node with the same values as `node`, a map of two classes, in which the
    smooth parts of a mixture are one table; `node` itself if there is nothing to gain.

    `input` is the scale of the scores, "probability" or "logit".
    """
    if node not in _TABLES:
        _TABLES[node] = _with_table(node, input)
    return _TABLES[node]


def _with_table(node, input):
    """Return a `Mixture` whose smooth parts are one node that is read from a new table;
    a node without two such parts is returned as it is. `input` is "probability" or
    "logit".
    """
    if not isinstance(node, Mixture) or node.width > 1:
        return node
    # 1. The parts of the mixture with their weights: those that are smooth, and others.
    smooth_weights = []
    smooth_parts = []
    other_weights = []
    other_parts = []
    for weight, part in zip(node.weights, node.parts, strict=True):
        if isinstance(part, Expit) and _is_smooth(part):
            smooth_weights.append(weight)
            smooth_parts.append(part)
        else:
            other_weights.append(weight)
            other_parts.append(part)
    if len(smooth_parts) < 2:
        return node
    # 2. The node of the scores, of which all parts are computed. A table needs log-odds
    # or the probabilities of both classes.
    scores = smooth_parts[0]
    while not isinstance(scores, Scores):
        (scores,) = scores._sources
    n_columns_needed = {"probability": 2, "logit": 1}
    if scores.width != n_columns_needed[input]:
        return node
    # 3. The smooth parts become one part with their total weight.
    total = sum(smooth_weights)
    shares = tuple(weight / total for weight in smooth_weights)
    exact = Mixture(shares, tuple(smooth_parts))
    joined = Tabulated(scores, exact, *_table(shares, exact.parts, input))
    return Mixture((total, *other_weights), (joined, *other_parts), node.constant)


def _is_smooth(node):
    """Return whether a node is a smooth function of the log-odds of two classes, but
    for few points.
    """
    if not isinstance(node, _SMOOTH):
        return False
    if isinstance(node, Pieces) and not node.continuous:
        return False
    return all(map(_is_smooth, node._sources))


def _table(shares, parts, input):
    """Return the arrays `first`, `n_pieces`, `coefficients` and `is_exact` of a
    `Tabulated`: the log-odds of a mixture of smooth `parts`, whose `shares` sum to 1.

    Each cell has one cubic. If it is not exact enough, the cell is cut into 2, 4, ...
    pieces with a cubic each, up to `_MOST_PIECES`.
    """

    def log_odds_at(points):
        """Return the log-odds (m, k) of the mixture at log-odds (m, k)."""
        z = points.reshape(-1, 1)
        scores = z
        if input == "probability":
            scores = np.hstack((expit(-z), expit(z)))
        rows = Rows(scores)
        rows.is_impossible = None
        complement = 0.0
        probability = 0.0
        for share, part in zip(shares, parts, strict=True):
            complement_of_part, probability_of_part = part.both(rows(part.of), rows)
            complement += share * complement_of_part
            probability += share * probability_of_part
        return np.log(probability / complement).reshape(points.shape)

    width = 2 * _END / _CELLS
    n_pieces = np.ones(_CELLS, dtype=np.intp)
    coefficients_of = [None] * _CELLS
    is_exact_in = [None] * _CELLS
    cells = np.arange(_CELLS)  # those that are not exact enough
    n = 1  # pieces of each of them
    while len(cells):
        # 1. The cubic of each piece, through the exact values at its nodes.
        left = cells[:, None] + np.arange(n) / n - _CELLS / 2
        starts = (left * width).reshape(-1, 1)
        at_nodes = log_odds_at(starts + _NODES * (width / n))
        constant = at_nodes[:, :1]
        others = (at_nodes[:, 1:] - constant) @ _TO_COEFFICIENTS
        coefficients = np.hstack((constant, others))
        # 2. Its error between the nodes. An error of the log-odds is allowed that
        # changes the probability p by `_TOLERANCE`: dp = p (1 - p) d(log-odds).
        exact = log_odds_at(starts + _PROBES * (width / n))
        cubic = coefficients @ _PROBES ** np.arange(4)[:, None]
        p = expit(exact)
        tolerance = np.minimum(_TOLERANCE / (p * (1 - p)), _LARGEST_TOLERANCE)
        is_exact = (np.abs(cubic - exact) < tolerance).all(axis=1)
        is_exact = is_exact.reshape(len(cells), n)
        # 3. Cells that are exact, or have the most pieces, are done.
        is_done = is_exact.all(axis=1) | (n == _MOST_PIECES)
        blocks = coefficients.reshape(len(cells), n, 4)
        for k in np.flatnonzero(is_done):
            coefficients_of[cells[k]] = blocks[k]
            is_exact_in[cells[k]] = is_exact[k]
        n_pieces[cells[is_done]] = n
        cells = cells[~is_done]
        n *= 2
    first = np.concatenate(([0], np.cumsum(n_pieces)[:-1]))  # piece of each cell
    coefficients = np.concatenate(coefficients_of)
    return first, n_pieces, coefficients, np.concatenate(is_exact_in)


@dataclass(frozen=True, eq=False)
class Tabulated(OneValueOf):
    """The probability whose log-odds a table has for the log-odds of the scores.

    Parameters
    ----------
    of : Scores
        The scores: two probabilities, or log-odds.
    exact : Node
        The same probability, for rows outside of the table.
    first, n_pieces : ndarray of int, shape (n_cells,)
        The number of the first piece of each cell, and how many pieces it has, a power
        of two.
    coefficients : ndarray of shape (all pieces, 4)
        Those of the cubic in each piece, of its own coordinate from 0 to 1.
    is_exact : ndarray of bool, shape (all pieces,)
        Whether the cubic of a piece is exact enough. If not, `exact` is computed.
    """

    exact: Node
    first: np.ndarray
    n_pieces: np.ndarray
    coefficients: np.ndarray
    is_exact: np.ndarray

    def __call__(self, rows):
        """Return the probabilities (n, 1) for scores, (n, 2) probabilities or (n, 1)
        log-odds. Intermediate results share memory, which is faster.
        """
        values = rows(self.of)
        # 1. Log-odds. Rows that the table lacks get some number, replaced at the end.
        z, is_outside = self._log_odds(values)
        if is_outside is not None:
            z[is_outside] = 0.0
        # 2. The piece of each row, and the place inside of it, from 0 to 1.
        place = np.multiply(z, _CELLS / (2 * _END), out=z)
        place += _CELLS / 2
        piece = place.astype(np.intp)
        place -= piece
        if self._has_pieces:
            cell = piece
            place *= self._float_n_pieces.take(cell)
            inside = place.astype(np.intp)
            place -= inside
            piece = self.first.take(cell)
            piece += inside
        # 3. The cubic, by Horner's rule. Its coefficients have the opposite sign, since
        # exp(-log-odds) is needed.
        *others, value_of_piece = self._columns
        minus_log_odds = value_of_piece.take(piece)
        for coefficient in reversed(others):
            minus_log_odds *= place
            minus_log_odds += coefficient.take(piece)
        if not self._are_all_exact:
            is_inexact = ~self.is_exact.take(piece)
            if is_outside is not None:
                is_outside |= is_inexact
            elif is_inexact.any():
                is_outside = is_inexact
        odds = exponential(np, minus_log_odds)
        odds += 1.0
        probability = np.divide(1.0, odds, out=odds)[:, None]
        if is_outside is not None:
            probability[is_outside] = rows.at(is_outside)(self.exact)
        return probability

    def _log_odds(self, scores):
        """Return the log-odds (n,) of scores, (n, 2) probabilities or (n, 1) log-odds,
        and which of them the table lacks, or None if it has all.
        """
        if scores.shape[1] == 1:
            z = scores[:, 0].copy()
            located = z
            low, high = -_END, _END
        else:
            z = log_odds_of_two(scores)
            located = scores[:, 0] + scores[:, 1]
            low, high = 1.0 - _ROUNDING, 1.0 + _ROUNDING
        # Two passes, of which mostly nothing else follows.
        if len(z) == 0 or (located.min() > low and located.max() < high):
            return z, None
        return z, ~((located > low) & (located < high))

    @cached_property
    def _columns(self):
        """The coefficients of each power, the constant first, with changed signs: minus
        the log-odds are needed.
        """
        return [-column for column in self.coefficients.T]

    @cached_property
    def _has_pieces(self):
        """Whether a cell has more than one piece."""
        return len(self.coefficients) > _CELLS

    @cached_property
    def _are_all_exact(self):
        """Whether no piece has to be computed."""
        return bool(self.is_exact.all())

    @cached_property
    def _float_n_pieces(self):
        return self.n_pieces.astype(np.float64)
