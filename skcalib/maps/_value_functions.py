"""Nodes that are functions of each value by itself."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from skcalib._rows.links import clip_probability, log_odds, log_probability
from skcalib.maps._node import NodeOf, OneValueOf, require

# exp(709.78) is the largest float64, exp(-708.4) the smallest with full precision.
_LARGEST_EXPONENT = 700.0


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

    def _evaluate(self, values):
        return np.clip(values, self.low, self.high)


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

    def _evaluate(self, values):
        return self.slope * values + self.intercept


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

    def _evaluate(self, values):
        return np.exp(np.clip(values, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


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

    def _evaluate(self, values):
        return log_probability(values)


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

    def _evaluate(self, values):
        return log_odds(values)


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

    def _evaluate(self, values):
        """Return log(p) and -log(1 - p), (n, 2), of log-odds (n, 1)."""
        softplus = np.log1p(np.exp(-np.abs(values)))
        return np.hstack(
            (np.minimum(values, 0) - softplus, np.maximum(values, 0) + softplus)
        )


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

    def _evaluate(self, values):
        probabilities = expit(values)
        if self.clip:
            probabilities = clip_probability(probabilities)
        return probabilities


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

    def _evaluate(self, values):
        """Return the polynomial of each value's piece at that value, (n, 1)."""
        x = values[:, 0]
        # the number of the piece: a value at a cut belongs to the piece below it
        piece = np.searchsorted(self.cuts, x, side="left")
        distance = x - self.origins[piece]
        # Horner's scheme, from the coefficient of the highest power down
        value = self.coefficients[piece, -1]
        for power in reversed(range(self.coefficients.shape[1] - 1)):
            value = value * distance + self.coefficients[piece, power]
        return value[:, None]
