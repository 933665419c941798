"""Nodes that are functions of each value by itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skcalib._rows.namespaces import (
    LARGEST_EXPONENT,
    chosen_entries,
    clipped,
    exponential,
    inverse_odds,
    limited,
    logarithm,
)
from skcalib.binning._base import BinLookup
from skcalib.maps._node import NodeOf, OneValueOf, Rows, require

# For fewer values than this a table of the pieces takes longer than it saves.
_FEWEST_VALUES = 1 << 11
# Up to so many cuts are compared with all values sooner than values are searched.
_FEW_CUTS = 24


@dataclass(frozen=True, eq=False)
class Clip(NodeOf):
    """Each value, clipped to [low, high].

    Parameters
    ----------
    of : Node
        The values.
    low, high : float
        Limits of the values.

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

    def __call__(self, rows):
        values = rows(self.of)
        return limited(rows.xp, values, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Scaled(NodeOf):
    """``slope * value + intercept`` for each value.

    Parameters
    ----------
    of : Node
        The values.
    slope : float or ndarray of shape (width,)
        The slope, or one slope for each value.
    intercept : float or ndarray of shape (width,), default=0.0
        The intercept, or one intercept for each value.

    See Also
    --------
    skcalib.maps.Affine : Multiplies the values by a matrix.

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
            require(
                np.shape(values) in ((), (self.width,)),
                self,
                f"a number or {self.width}",
            )

    def __call__(self, rows):
        """Return ``slope * values + intercept``, (n, width)."""
        values = rows(self.of)
        scaled = values * _factor(self.slope, rows)
        if self._is_shifted:
            scaled += _factor(self.intercept, rows)
        return scaled

    @cached_property
    def _is_shifted(self):
        return bool(np.any(self.intercept))


def _factor(numbers, rows):
    """Return one number, or one for each column, to multiply with or to add."""
    if isinstance(numbers, float):
        return numbers
    return rows.constant(numbers)


class Exp(NodeOf):
    """``exp(value)`` of values clipped to [-700, 700].

    Parameters
    ----------
    of : Node
        The values.

    See Also
    --------
    skcalib.maps.Log : The inverse function, for probabilities.

    Examples
    --------
    >>> from skcalib.maps import Exp, Rows, Scores
    >>> Rows([[0.0]])(Exp(Scores())).tolist()
    [[1.0]]
    """

    def __call__(self, rows):
        """Return the exponentials of the values, which are limited so that they are
        finite.
        """
        values = rows(self.of)
        xp = rows.xp
        exponents = limited(xp, values, -LARGEST_EXPONENT, LARGEST_EXPONENT)
        return exponential(xp, exponents)


class Log(NodeOf):
    """The logarithm of probabilities, which are first clipped to [2^-52, 1 - 2^-52].

    Parameters
    ----------
    of : Node
        The probabilities.

    See Also
    --------
    skcalib.maps.Softmax : Converts logits to probabilities.

    Examples
    --------
    >>> from skcalib.maps import Log, Rows, Scores
    >>> Rows([[0.5]])(Log(Scores())).round(6).tolist()
    [[-0.693147]]
    """

    def __call__(self, rows):
        values = rows(self.of)
        return logarithm(rows.xp, clipped(rows.xp, values))


class LogOdds(NodeOf):
    """``log(p / (1 - p))`` of probabilities, first clipped to [2^-52, 1 - 2^-52].

    Parameters
    ----------
    of : Node
        The probabilities.

    See Also
    --------
    skcalib.maps.Expit : The inverse function.

    Examples
    --------
    >>> from skcalib.maps import LogOdds, Rows, Scores
    >>> Rows([[0.5]])(LogOdds(Scores())).tolist()
    [[0.0]]
    """

    def __call__(self, rows):
        """Return the log-odds of the clipped probabilities, (n, width)."""
        values = rows(self.of)
        probability = clipped(rows.xp, values)
        probability /= 1 - probability
        return logarithm(rows.xp, probability)


class LogSides(NodeOf):
    """``log(p)`` and ``-log(1 - p)`` of the probability whose log-odds are given.

    With z the log-odds, they are ``min(z, 0) - log(1 + exp(-|z|))`` and
    ``max(z, 0) + log(1 + exp(-|z|))``. They sum to z.

    Parameters
    ----------
    of : Node
        The log-odds, a node with one value.

    See Also
    --------
    skcalib.BetaCalibration : Its log-odds are linear in both values.

    Examples
    --------
    >>> from skcalib.maps import LogSides, Rows, Scores
    >>> Rows([[0.0]])(LogSides(Scores())).round(6).tolist()
    [[-0.693147, 0.693147]]
    """

    width = 2

    def __call__(self, rows):
        """Return log(p) and -log(1 - p), (n, 2), of log-odds (n, 1)."""
        values = rows(self.of)
        xp = rows.xp
        size = xp.abs(values)
        softplus = xp.log1p(xp.exp(-size))
        # min(z, 0) = (z - |z|) / 2 and max(z, 0) = (z + |z|) / 2
        log_p = (values - size) / 2 - softplus
        return xp.concat((log_p, values - log_p), axis=1)


@dataclass(frozen=True, eq=False)
class Expit(NodeOf):
    """``1 / (1 + exp(-value))``.

    Parameters
    ----------
    of : Node
        The log-odds.
    clip : bool, default=True
        Whether probabilities are clipped to [2^-52, 1 - 2^-52], as in all scaling
        methods.

    See Also
    --------
    skcalib.maps.LogOdds : The inverse function.
    skcalib.maps.Softmax : The corresponding function for K logits.

    Examples
    --------
    >>> from skcalib.maps import Expit, Rows, Scores
    >>> Rows([[0.0]])(Expit(Scores())).tolist()
    [[0.5]]
    """

    clip: bool = True

    def __call__(self, rows):
        """Return the probabilities of log-odds, (n, width): 1 / (1 + exp(-z))."""
        values = rows(self.of)
        odds = inverse_odds(rows.xp, values)
        odds += 1.0
        probabilities = 1 / odds
        if self.clip:
            probabilities = clipped(rows.xp, probabilities, overwrite=True)
        return probabilities

    def both(self, log_odds: Any, rows: Rows) -> tuple[Any, Any]:
        """Return the probabilities of the complement and of the event.

        Parameters
        ----------
        log_odds : array of shape (n, 1)
            The log-odds, which another node has computed.
        rows : Rows
            The rows.

        Returns
        -------
        complement, probability : array of shape (n, 1)
            The complement does not lose the digits that ``1 - probability`` would lose
            next to 1.
        """
        odds = inverse_odds(rows.xp, log_odds)
        probability = 1 / (1 + odds)
        odds *= probability
        if not self.clip:
            return odds, probability
        complement = clipped(rows.xp, odds, overwrite=True)
        return complement, clipped(rows.xp, probability, overwrite=True)


@dataclass(frozen=True, eq=False)
class Pieces(OneValueOf):
    """A piecewise polynomial of one value x.

    Piece i applies for ``cuts[i - 1] < x <= cuts[i]``; the first piece has no lower
    end, and the last has no upper end. Its value is the sum over j of
    ``coefficients[i, j] * (x - origins[i])**j``. Steps (bins) have one coefficient,
    piecewise linear functions have two, and cubic splines have four.

    Parameters
    ----------
    of : Node
        The value x.
    cuts : ndarray of shape (n_pieces - 1,)
        Points at which the pieces meet: finite and strictly increasing. A cut that
        belongs to the piece above it is written as the float64 just below it (see
        `just_below`).
    origins : ndarray of shape (n_pieces,)
        Origin of each polynomial.
    coefficients : ndarray of shape (n_pieces, n_coefficients)
        The coefficients, starting with the constant.
    continuous : bool, default=False
        Whether neighbouring pieces agree at their cut, up to rounding, so that it does
        not matter on which side of the cut a value falls.

    See Also
    --------
    skcalib.maps.step_function : Builds steps from their cuts and values.
    skcalib.maps.piecewise_polynomial : Builds continuous pieces.

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
        require((np.diff(self.cuts) > 0).all(), self, "cuts that increase")
        n_pieces = len(self.cuts) + 1
        require(
            len(self.origins) == n_pieces and len(self.coefficients) == n_pieces,
            self,
            "a piece between each two cuts and beyond the outer ones",
        )

    def __call__(self, rows):
        """Return the polynomial of each value's piece at that value, (n, 1)."""
        values = rows(self.of)
        xp = rows.xp
        if self.coefficients.size == 1:
            return xp.full_like(values, float(self.coefficients[0, 0]))
        x = values[:, 0]
        piece = self._piece(x, rows)
        # Horner's scheme, from the coefficient of the highest power down
        *others, value_of_piece = self._columns
        value = chosen_entries(xp, rows.constant(value_of_piece), piece)
        if others:
            distance = x - chosen_entries(xp, rows.constant(self.origins), piece)
        for coefficient in reversed(others):
            value *= distance
            value += chosen_entries(xp, rows.constant(coefficient), piece)
        if self._limits is not None:
            low, high = self._limits
            value = xp.maximum(value, chosen_entries(xp, rows.constant(low), piece))
            value = xp.minimum(value, chosen_entries(xp, rows.constant(high), piece))
        return value[:, None]

    def _piece(self, x, rows):
        """Return the number of the piece (n,) for each x (n,): a value at a cut belongs
        to the piece below it.
        """
        if rows.xp is not np:
            # PyTorch warns if numbers are not next to each other: they are copied.
            x = rows.xp.asarray(x, copy=True)
            return rows.xp.searchsorted(rows.constant(self.cuts), x)
        # What follows gives the same numbers; which way is the fastest depends on how
        # many values and cuts there are.
        is_small = len(x) < _FEWEST_VALUES
        if not is_small and self._edges is not None:
            return BinLookup(self._edges, x)(x)
        if not is_small and len(self.cuts) <= _FEW_CUTS:
            piece = np.zeros(len(x), dtype=np.intp)
            for cut in self.cuts:
                piece += x > cut
            return piece
        return self.cuts.searchsorted(x)

    @cached_property
    def _columns(self):
        """The coefficients of each power, from the constant on, in an array each."""
        return [column.copy() for column in self.coefficients.T]

    @cached_property
    def _limits(self):
        """The smaller and the larger value at the ends of each piece (n_pieces,), which
        rounding must not pass: a function that rises never falls. None unless pieces
        are continuous lines.
        """
        has_lines = self.coefficients.shape[1] == 2 and len(self.cuts) > 0
        if not self.continuous or not has_lines:
            return None
        constant, slope = self.coefficients.T
        # the values at the inner ends, at which each piece includes its right end
        at_cuts = constant[:-1] + slope[:-1] * (self.cuts - self.origins[:-1])
        left = at_cuts[:-1]
        right = at_cuts[1:]
        low = np.concatenate(([-np.inf], np.minimum(left, right), [-np.inf]))
        high = np.concatenate(([np.inf], np.maximum(left, right), [np.inf]))
        return low, high

    @cached_property
    def _edges(self):
        """The cuts between 0 and 1, by which probabilities are looked up; None if a cut
        is no probability.
        """
        are_probabilities = (self.cuts >= 0).all() and (self.cuts <= 1).all()
        if not are_probabilities:
            return None
        return np.concatenate(([0.0], self.cuts, [1.0]))
