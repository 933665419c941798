"""Nodes that take all values of a row together, such as those of its classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skcalib._rows.namespaces import (
    clipped,
    largest_columns,
    row_exponentials,
    row_maxima,
    row_shares,
    row_sums,
    side_by_side,
    without_impossible,
)
from skcalib.maps._leaves import Scores
from skcalib.maps._node import Node, NodeOf, OneValueOf, Rows, require
from skcalib.maps._value_functions import Scaled

# Up to so many terms of a linear form are added one by one.
_FEW_TERMS = 4


@dataclass(frozen=True, eq=False)
class Affine(NodeOf):
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
    skcalib.maps.Scaled : Applies one slope to each value.
    skcalib.maps.linear_form : Rewrites several affine nodes as one.

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
        require(
            np.shape(self.coef) == shape, self, f"coefficients of the shape {shape}"
        )

    def __call__(self, rows):
        """Return ``values @ coef.T + intercept`` of each row, (n, width)."""
        values = rows(self.of)
        if self.of.width > _FEW_TERMS:
            result = rows.xp.matmul(values, rows.constant(self.coef.T))
        else:
            # no matrix product, which rounds by the number of rows
            result = side_by_side(rows.xp, [self._sum(values, c) for c in self.coef])
        if self._is_shifted:
            result += rows.constant(self.intercept)
        return result

    def _sum(self, values, coefficients):
        """Return the sum (n, 1) of the columns of values, times their coefficients."""
        if coefficients.tolist() == [-1.0, 1.0]:
            return values[:, 1:] - values[:, :1]
        total = values[:, :1] * float(coefficients[0])
        for k, coefficient in enumerate(coefficients[1:].tolist(), start=1):
            total += values[:, k : k + 1] * coefficient
        return total

    @cached_property
    def _is_shifted(self):
        return bool(np.any(self.intercept))


class LogOddsAgainstRest(NodeOf):
    """The log-odds of each probability in a row against the sum of the others.

    Both the probability and the sum are first clipped to [2^-52, 1 - 2^-52].

    Parameters
    ----------
    of : Node
        The probabilities of all classes.

    See Also
    --------
    skcalib.maps.LogOdds : The log-odds of one probability.

    Examples
    --------
    >>> from skcalib.maps import LogOddsAgainstRest, Rows, Scores
    >>> Rows([[0.5, 0.3, 0.2]])(LogOddsAgainstRest(Scores(3))).round(3).tolist()
    [[0.0, -0.847, -1.386]]
    """

    def __call__(self, rows):
        """Return ``log(p) - log(sum of the others)`` of probabilities (n, K)."""
        values = rows(self.of)
        p = clipped(rows.xp, values)
        return self._against_rest(p, p, rows)

    def of_largest(self, rows: Rows) -> Any:
        """Return the largest log-odds of each row, those of its largest probability.

        Parameters
        ----------
        rows : Rows
            The rows.

        Returns
        -------
        log_odds : array of shape (n, 1)
            The log-odds.
        """
        p = clipped(rows.xp, rows(self.of))
        return self._against_rest(row_maxima(rows.xp, p), p, rows)

    def _against_rest(self, chosen, p, rows):
        """Return the log-odds of `chosen`, some or all of the clipped probabilities `p`
        (n, K), against the others of their row.
        """
        xp = rows.xp
        # The sum of the others is the row's sum minus p. For a p next to 1 that would
        # lose digits: at most one class is above 1/2, and its others are added up.
        sum_of_small = row_sums(xp, xp.where(p > 0.5, rows.constant(0.0), p))
        others = xp.where(chosen > 0.5, sum_of_small, row_sums(xp, p) - chosen)
        return xp.log(chosen / clipped(xp, others))


@dataclass(frozen=True, eq=False)
class Possible(NodeOf):
    """The values of the classes, with 0 for impossible classes.

    A class is impossible in a row if its logit is -inf, or more than 700 below the
    largest logit of the row. Nodes with ``possible=True`` exclude such classes
    regardless of their values, and return 0 for them. `calibration_map` sets this
    parameter.

    Parameters
    ----------
    of : Node
        The values, one for each class.

    See Also
    --------
    skcalib.maps.Softmax : Has the parameter `possible` with the same effect.

    Examples
    --------
    >>> from skcalib.maps import Possible, Rows, Scores
    >>> Rows([[2.0, 1.0, -1e4]])(Possible(Scores(3))).tolist()
    [[2.0, 1.0, 0.0]]
    """

    def __call__(self, rows):
        """Return the values (n, K), with 0 for impossible classes."""
        values = rows(self.of)
        is_impossible = rows.is_impossible  # (n, K), or None if no class is
        if is_impossible is None:
            return values
        return rows.xp.where(is_impossible, rows.constant(0.0), values)


@dataclass(frozen=True, eq=False)
class _OfClasses(NodeOf):
    """Base of nodes of one value per class that may leave impossible classes out."""

    possible: bool = False

    def _impossible_in(self, rows):
        """Return which classes to leave out in each row (n, K); None if there are none,
        or without `possible`.
        """
        if self.possible:
            return rows.is_impossible
        return None


@dataclass(frozen=True, eq=False)
class Centred(_OfClasses):
    """Each value minus the mean of the row.

    Parameters
    ----------
    of : Node
        The values.
    possible : bool, default=False
        Whether impossible classes are excluded: see `Possible`.

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
        """Return the values minus their mean, over the classes that are not left out,
        (n, K); 0 for the others.
        """
        values = rows(self.of)
        is_impossible = self._impossible_in(rows)  # (n, K) or None
        if is_impossible is None:
            return values - row_sums(rows.xp, values) / self.width
        where = rows.xp.where
        zero = rows.constant(0.0)
        counts = where(is_impossible, zero, rows.xp.ones_like(values))
        values = where(is_impossible, zero, values)
        mean = row_sums(rows.xp, values) / row_sums(rows.xp, counts)
        return where(is_impossible, zero, values - mean)


@dataclass(frozen=True, eq=False)
class LogNormalized(_OfClasses):
    """Logits as the logarithms of probabilities that sum to 1.

    The result is each value minus the row's ``log(sum(exp(values)))``.

    Parameters
    ----------
    of : Node
        The logits.
    possible : bool, default=False
        Whether impossible classes are excluded: see `Possible`.

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
        """Return log-probabilities (n, K); 0 for classes that are left out."""
        values = rows(self.of)
        is_impossible = self._impossible_in(rows)  # (n, K) or None
        xp = rows.xp
        if is_impossible is not None:
            # -inf takes no part in the sum of exponentials
            values = xp.where(is_impossible, rows.constant(-np.inf), values)
        differences = values - row_maxima(xp, values)
        normalized = differences - xp.log(row_sums(xp, xp.exp(differences)))
        if is_impossible is None:
            return normalized
        return xp.where(is_impossible, rows.constant(0.0), normalized)


@dataclass(frozen=True, eq=False)
class Softmax(NodeOf):
    """``exp(values) / sum(exp(values))``.

    Parameters
    ----------
    of : Node
        The logits.
    clip : bool, default=True
        Whether probabilities are clipped to [2^-52, 1 - 2^-52], as in all scaling
        methods.
    possible : bool, default=False
        Whether impossible classes are excluded: see `Possible`.

    See Also
    --------
    skcalib.maps.class_probabilities : The softmax for any number of classes, including
        two.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, Softmax
    >>> Rows([[1.0, 1.0, 1.0, 1.0]])(Softmax(Scores(4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """

    clip: bool = True
    possible: bool = False

    @property
    def _only_slope(self):
        """The slope, if this node is the clipped softmax of the scores times one slope
        of at least 0, as in temperature scaling; else None.
        """
        of = self.of
        is_scaled = self.clip and isinstance(of, Scaled) and isinstance(of.of, Scores)
        if not is_scaled or np.ndim(of.slope) > 0 or np.any(of.intercept):
            return None
        return of.slope if of.slope >= 0 else None

    def __call__(self, rows):
        """Return probabilities (n, K); 0 for classes that are left out."""
        return self.of_logits(rows(self.of), rows)

    def of_logits(self, values: Any, rows: Rows) -> Any:
        """Return the softmax of logits that another node has computed.

        Parameters
        ----------
        values : array of shape (n, K)
            The logits.
        rows : Rows
            The rows.

        Returns
        -------
        probabilities : array of shape (n, K)
            The probabilities; 0 for classes that are left out.
        """
        is_impossible = None
        if self.possible:
            is_impossible = rows.is_impossible  # (n, K), or None if no class is
        if is_impossible is not None:
            # exp(-inf) is 0: the class takes no part in the sum
            values = rows.xp.where(is_impossible, rows.constant(-np.inf), values)
        probabilities = row_exponentials(rows.xp, values)
        probabilities /= row_sums(rows.xp, probabilities)
        if self.clip:
            probabilities = clipped(rows.xp, probabilities, overwrite=True)
        return without_impossible(rows.xp, probabilities, is_impossible)


@dataclass(frozen=True, eq=False)
class Normalized(_OfClasses):
    """The row divided by its sum; a row of zeros becomes uniform.

    Parameters
    ----------
    of : Node
        The values, which must be non-negative.
    possible : bool, default=False
        Whether impossible classes are excluded: see `Possible`.

    See Also
    --------
    skcalib.maps.Softmax : The corresponding node for logits.

    Examples
    --------
    >>> from skcalib.maps import Normalized, Rows, Scores
    >>> Rows([[0.5, 1.5], [0.0, 0.0]])(Normalized(Scores(2))).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """

    def __call__(self, rows):
        """Return the shares of the values in their row's sum (n, K); 0 for classes that
        are left out.
        """
        values = rows(self.of)
        is_impossible = self._impossible_in(rows)  # (n, K) or None
        shares = row_shares(rows.xp, values, self.width)
        return without_impossible(rows.xp, shares, is_impossible)


class RowMax(OneValueOf):
    """The largest value of the row.

    Parameters
    ----------
    of : Node
        The values.

    See Also
    --------
    skcalib.maps.Largest : The column of the largest value.

    Examples
    --------
    >>> from skcalib.maps import RowMax, Rows, Scores
    >>> Rows([[0.2, 0.5, 0.3]])(RowMax(Scores(3))).tolist()
    [[0.5]]
    """

    @property
    def _sources(self):
        if isinstance(self.of, LogOddsAgainstRest):
            return (self.of.of,)  # the log-odds of one class are enough
        return (self.of,)

    def __call__(self, rows):
        """Return the largest value of each row (n, 1)."""
        if isinstance(self.of, LogOddsAgainstRest):
            return self.of.of_largest(rows)
        return row_maxima(rows.xp, rows(self.of))


@dataclass(frozen=True, eq=False)
class Spread(NodeOf):
    """Replaces the confidence of the predicted class; the other classes share the rest.

    The first of the largest values is replaced by the confidence. The other classes
    share the remaining probability in proportion to their values; if these are all 0,
    it is shared equally.

    Parameters
    ----------
    of : Node
        The probabilities.
    confidence : Node
        The confidence, a node with one value.
    possible : bool, default=False
        Whether impossible classes are excluded: see `Possible`.

    See Also
    --------
    skcalib.maps.RowMax : The confidence before the change.

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

    @property
    def _sources(self):
        return self.of, self.confidence

    def __call__(self, rows):
        """Return probabilities (n, K): the confidence for the largest value of a row,
        shares of the rest for the others.
        """
        values = rows(self.of)
        confidence = rows(self.confidence)  # (n, 1)
        # (n, K): true once per row, at the first of the largest values
        xp = rows.xp
        columns = xp.arange(self.width, device=rows.device)
        is_largest = largest_columns(xp, values)[:, None] == columns
        other_values = xp.where(is_largest, rows.constant(0.0), values)
        # if the others are all 0, each gets 1 / (K - 1)
        spread = row_shares(xp, other_values, self.width - 1) * (1 - confidence)
        spread = xp.where(is_largest, confidence, spread)
        if not self.possible:
            return spread
        # 0 for impossible classes; the rest of the row is rescaled to sum to 1. If no
        # class is impossible in any row, the mask (n, K) is None, and nothing changes.
        return without_impossible(xp, spread, rows.is_impossible)
