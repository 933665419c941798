"""Overestimation: how far the scores lie above the event frequencies, in bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.statistics import BinStatistics
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib.binning import BaseBinning


class OverestimationPower(ErrorPower):
    """The mean of the p-th powers of the gaps of bins whose scores are too high."""

    is_binned = True

    def power(self, frequency):
        """Return the power for event frequencies (..., m) of the bins."""
        return self.norm_of(np.maximum(self.scores - frequency, 0))


@dataclass(frozen=True, eq=False, kw_only=True)
class OverestimationError(CalibrationError):
    """The error with its parameters: those of the base, and bins."""

    binning: BaseBinning | int | None = None

    def of_task(self, task, most=None):
        """Return the power of one binary problem."""
        return OverestimationPower(task.bin_cells(self.binning), norm=self.norm)


def overestimation_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    norm: float | Literal["l1", "l2", "max"] = 1,
    binning: BaseBinning | int | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Mean distance by which the scores of bins lie above their event frequencies.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels, or the sums of bins, in place of `y_true`, `y_proba` and all that
        describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    norm : float or {"l1", "l2", "max"}, default=1
        The norm of the distances.
    binning : BaseBinning or int, default=None
        The bins; None is ``EqualMass(15)``, a number that many.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero.

    See Also
    --------
    skcalib.metrics.calibration_error : The distance on both sides.

    Examples
    --------
    The mean scores of two bins are .2 and .7, their event frequencies 0 and 1:

    >>> from skcalib.metrics import overestimation_error
    >>> round(overestimation_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8], binning=2), 6)
    0.1
    """
    error = OverestimationError(
        norm=norm, binning=binning, multiclass=multiclass, class_weight=class_weight
    )
    return error.value(
        y_true,
        y_proba,
        binning=binning,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )
