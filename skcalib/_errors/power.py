"""The power of an error: a function of the event frequencies of the cells of one binary
problem.
"""

from functools import cached_property
from typing import Literal

import numpy as np

from skcalib._cells.cells import CellSums
from skcalib._input.scalars import resolve_norm

# Up to this norm an error of 1e-9 has a power that float64 holds; beyond, powers below
# the second number are refused.
_LARGE_NORM, _SMALLEST_POWER = 32, 1e-290


class ErrorPower:
    """The p-th power of an error as a function of the event frequencies of cells.

    A cell is a distinct score or a bin. The same object gives the value of the error
    (for the observed frequencies), the draws for its test and interval (for frequencies
    of drawn labels), and the noise-free error (for any frequencies). A subclass defines
    `power`.

    Parameters
    ----------
    cells : Cells
        The cells of one binary problem, in increasing order of their scores: from
        ``task.cells(most)`` or ``task.bin_cells(binning)``.
    norm : float or {"l1", "l2", "max"}, default=1
        The norm p.

    Attributes
    ----------
    scores, weight, share : ndarray of shape (m,)
        Mean score, weight and share of the weight of each cell.

    See Also
    --------
    skcalib.metrics.CalibrationError : An error with its parameters.

    Examples
    --------
    The largest distance of a frequency from a score:

    >>> import numpy as np
    >>> from skcalib.metrics import ErrorPower, reliability_curve
    >>> class LargestGap(ErrorPower):
    ...     def power(self, frequency):
    ...         return np.abs(frequency - self.scores).max(axis=-1)
    >>> bins = reliability_curve([0, 1, 1, 1], [0.1, 0.3, 0.6, 0.8], binning=2)
    >>> round(LargestGap(bins).observed, 6)
    0.3
    """

    # Whether the cells are bins, whose deviations are taken as they are. Scores stand
    # for their neighbours, too: their deviations are averaged.
    is_binned = False
    # Whether the error depends on the deviations of its cells through the sum of their
    # squares alone: one direction of alternatives is then enough for an interval.
    is_sum_of_squares = False

    def __init__(
        self, cells: CellSums, *, norm: float | Literal["l1", "l2", "max"] = 1
    ):
        self.cells = cells
        self.norm = resolve_norm(norm)
        self.weight = cells.weight
        self.scores = cells.mean_score

    @cached_property
    def share(self):
        """Share of the weight in each cell; rows without weights have equal shares."""
        if self.weight is None:
            n_rows = len(self.scores)
            return np.full(n_rows, 1 / n_rows)
        return self.weight / self.weight.sum()

    def power(self, frequency: np.ndarray) -> np.ndarray:
        """Return the powers of the error for event frequencies of the cells.

        Parameters
        ----------
        frequency : ndarray of shape (..., m)
            Event frequencies of the m cells, such as those of many drawn label vectors.

        Returns
        -------
        power : ndarray of shape (...)
            The p-th powers.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define power(frequency)."
        )

    @property
    def observed(self):
        """The power of the labels."""
        return float(self.power(self.cells.event_frequency))

    def noiseless(self, frequency: np.ndarray) -> float:
        """Return the power for noise-free frequencies.

        Parameters
        ----------
        frequency : ndarray of shape (m,)
            Event frequencies of the cells.

        Returns
        -------
        power : float
            The power that the error estimates.
        """
        return float(self.power(frequency))

    def at(self, frequency: np.ndarray) -> "ErrorPower":
        """Return a faster power that orders draws in the same way.

        Parameters
        ----------
        frequency : ndarray of shape (m,)
            Event frequencies around which labels are drawn.

        Returns
        -------
        power : ErrorPower
            By default the power itself.
        """
        return self

    def norm_of(self, gaps: np.ndarray) -> np.ndarray:
        """Return the mean of ``gaps ** p`` over the cells.

        Parameters
        ----------
        gaps : ndarray of shape (..., m)
            Distances that are not negative.

        Returns
        -------
        power : ndarray of shape (...)
            The means; the largest gap for an infinite norm.
        """
        if self.norm == np.inf:
            return gaps.max(axis=-1)
        return gaps**self.norm @ self.share


def error_root(power, norm):
    """Return the error for its p-th power, a negative one counting as zero."""
    in_range = power < 0 or _SMALLEST_POWER < power < np.inf
    if _LARGE_NORM < norm < np.inf and not in_range:
        raise ValueError(
            f"norm={norm} leaves the range of floating point for errors this small: use"
            " norm=np.inf."
        )
    power = max(float(power), 0.0)
    if norm == np.inf:
        return power
    return float(power ** (1 / norm))
