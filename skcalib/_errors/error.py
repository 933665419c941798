"""Errors as objects: an error with its parameters (`CalibrationError`), its p-th power
as a function of event frequencies (`ErrorPower`), and how the powers of several classes
are combined (`ClassPowers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.binned import BinnedTask, check_rows_or_bins
from skcalib._cells.cells import CellSums
from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.reductions import binary_tasks
from skcalib._cells.statistics import BinStatistics
from skcalib._cells.tasks import BinaryTask
from skcalib._input.scalars import as_numbers, resolve_norm
from skcalib._input.scored_labels import ScoredLabels
from skcalib._input.tensors import library_of
from skcalib._rows.namespaces import in_double
from skcalib.binning import BaseBinning

# Up to this norm an error of 1e-9 has a power that float64 holds. For larger ones,
# powers below the second number are refused.
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
        Mean score, weight, and share of the total weight of each cell.

    See Also
    --------
    skcalib.metrics.CalibrationError : An error with its parameters.

    Examples
    --------
    The largest distance between a frequency and a score:

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
        """The share of the total weight of each cell."""
        if self.weight is None:
            n_cells = len(self.scores)
            return np.full(n_cells, 1 / n_cells)
        xp = library_of(self.weight)
        weight = in_double(xp, self.weight)
        return weight / xp.sum(weight)

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
        """The p-th power of the error for the observed event frequencies."""
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

    def at(self, frequency: np.ndarray) -> ErrorPower:
        """Return a power that is faster to compute and ranks draws in the same order.

        Parameters
        ----------
        frequency : ndarray of shape (m,)
            Event frequencies around which labels are drawn.

        Returns
        -------
        power : ErrorPower
            By default, this object itself.
        """
        return self

    def norm_of(self, gaps: np.ndarray) -> np.ndarray:
        """Return the mean of ``gaps ** p`` over the cells.

        Parameters
        ----------
        gaps : ndarray of shape (..., m)
            Non-negative distances.

        Returns
        -------
        power : ndarray of shape (...)
            The means; the largest gap for an infinite norm.
        """
        if self.norm == np.inf:
            return library_of(gaps).max(gaps, axis=-1)
        return gaps**self.norm @ self.share


@dataclass(frozen=True, eq=False, kw_only=True)
class CalibrationError:
    """Definition of a calibration error, shared by its value, interval and test.

    A subclass is a frozen dataclass that adds its parameters as fields and defines
    `of_task`. The fields have the same names and defaults as the parameters of its
    metric.

    Parameters
    ----------
    norm : float or {"l1", "l2", "max"}, default=1
        The norm p: the error is the p-th root of its power.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.

    See Also
    --------
    skcalib.metrics.ErrorPower : The result of `of_task`.
    skcalib.metrics.register_metric : Gives a metric its interval, test and scorer.

    Examples
    --------
    The mean distance between scores and frequencies in bins whose scores are too high:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from skcalib.binning import BaseBinning
    >>> from skcalib.metrics import CalibrationError, ErrorPower
    >>> class ExcessPower(ErrorPower):
    ...     is_binned = True
    ...
    ...     def power(self, frequency):
    ...         return np.maximum(self.scores - frequency, 0) @ self.share
    >>> @dataclass(frozen=True, eq=False, kw_only=True)
    ... class ExcessError(CalibrationError):
    ...     binning: BaseBinning | int | None = None
    ...
    ...     def of_task(self, task, most=None):
    ...         return ExcessPower(task.bin_cells(self.binning))
    >>> error = ExcessError(binning=2)
    >>> round(error.value([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.8]), 6)
    0.1
    """

    norm: float | Literal["l1", "l2", "max"] = 1
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto"
    class_weight: ArrayLike | dict | None = None

    # Segments that the error is taken in one by one; see `GroupwiseError`.
    groups = None
    # Whether its interval inverts a test; the kernel error has a test alone.
    has_interval = True

    def __post_init__(self):
        self._set(norm=resolve_norm(self.norm))

    def _set(self, **fields):
        """Set fields of the frozen object while it is made, after checks."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def of_task(
        self,
        task: BinaryTask | BinnedTask,
        most: int | None = None,
    ) -> ErrorPower:
        """Return the power of the error for one binary problem.

        Parameters
        ----------
        task : BinaryTask
            The problem: ``task.cells(most)`` returns its distinct scores, and
            ``task.bin_cells(binning)`` its bins.
        most : int, default=None
            For label draws, the number of cells above which neighbouring cells may be
            merged. None requests the exact value.

        Returns
        -------
        power : ErrorPower
            The power as a function of the event frequencies of the cells.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define of_task(task, most=None)."
        )

    @property
    def has_bins_of_labels(self):
        """Whether the bins depend on the labels and are not recomputed for drawn
        labels.

        If True, a test draws labels row by row and calls the metric.
        """
        return getattr(getattr(self, "binning", None), "needs_labels", False)

    def reduction(self, data: ScoredLabels | BinnedTask) -> str:
        """Return the `multiclass` option with which the data are reduced.

        Parameters
        ----------
        data : ScoredLabels or BinnedTask
            Validated rows, or sums by bin.

        Returns
        -------
        multiclass : str
            By default, the value of the field `multiclass`.
        """
        return self.multiclass

    def class_weights(self, classes: np.ndarray) -> np.ndarray:
        """Return the class weights of a marginal error.

        Parameters
        ----------
        classes : ndarray of shape (K,)
            The labels of the columns.

        Returns
        -------
        weights : ndarray of shape (K,)
            By default, the value of the field `class_weight`, or 1 / K for each class
            if it is None.
        """
        return check_class_weight(self.class_weight, classes)

    def value(
        self,
        y_true: ArrayLike | BinStatistics,
        y_proba: ArrayLike | None = None,
        *,
        binning: BaseBinning | int | None = None,
        sample_weight: ArrayLike | None = None,
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
    ) -> float:
        """Return the error for labels and probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, L), or BinStatistics
            Labels, or sums per bin, as accepted by the metrics.
        y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L), default=None
            Probabilities in [0, 1].
        binning : BaseBinning, int or None, default=None
            The `binning` argument of a binned metric. It must be None for a
            `BinStatistics`, whose bins are fixed.
        sample_weight : array-like of shape (n,), default=None
            Weights of the samples.
        pos_label : int, float, bool or str, default=None
            The label of the event.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.

        Returns
        -------
        error : float
            The error.
        """
        data = check_rows_or_bins(
            y_true,
            y_proba,
            binning=binning,
            multiclass=self.multiclass,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
            multilabel=True,
        )
        return self.from_power(self.observed(data))

    def observed(self, data: ScoredLabels | BinnedTask) -> float:
        """Return the power for validated data, over all binary problems.

        Parameters
        ----------
        data : ScoredLabels or BinnedTask
            Rows with positive weight, or sums by bin.

        Returns
        -------
        power : float
            The power.
        """
        tasks = binary_tasks(data, self.reduction(data), pooled=True)
        powers = np.array([self.of_task(task).observed for task in tasks])
        return float(ClassPowers.of(data, self).combine(powers))

    def from_power(self, power: float) -> float:
        """Return the error for its power: the p-th root, unless overridden.

        Parameters
        ----------
        power : float
            The power; a negative power is treated as 0.

        Returns
        -------
        error : float
            The error.
        """
        return float(error_root(power, self.norm))


def error_root(power, norm):
    """Return the p-th roots, p = `norm`, of the p-th powers of errors, floats or
    arrays; a negative power, of a debiased error, counts as 0. For an infinite norm the
    powers are the errors themselves. Raise where a power of a large norm has left the
    range of float64.
    """
    # A power of 0 may have underflowed; a negative one has not.
    if _LARGE_NORM < norm < np.inf:
        is_in_range = (power > _SMALLEST_POWER) & (power < np.inf)
        if not np.all(is_in_range | (power < 0)):
            raise ValueError(
                f"norm={norm} underflows for errors this small: use norm=np.inf."
            )
    power = np.maximum(power, 0.0)
    if norm == np.inf:
        return power
    return power ** (1 / norm)


class ClassPowers(NamedTuple):
    """How the powers of the binary problems of an error are combined into one number.

    Parameters
    ----------
    norm : float
        The norm.
    n_tasks : int
        Number of problems.
    weight : ndarray of shape (n_tasks,) or None
        Weights of the classes; None where there is one problem.
    """

    norm: float
    n_tasks: int
    weight: np.ndarray | None

    @classmethod
    def of(cls, data, error):
        """Return the rule that combines the p-th powers of an error's binary problems:
        a weighted sum over the classes for "marginal", else the one problem's power.

        Parameters
        ----------
        data : ScoredLabels or BinnedTask
            Validated data, whose classes are weighed.
        error : CalibrationError
            The error, with `multiclass`, `class_weight` and `norm`.
        """
        resolved = resolve_multiclass(error.reduction(data), data, pooled=True)
        if resolved == "marginal":  # a problem for each class
            weight = error.class_weights(data.classes)
            if data.is_multilabel and error.class_weight is not None:
                # Names of several labels per row have no order: an array has that of
                # the columns.
                weight = check_class_weight(
                    error.class_weight, data.classes, is_sorted=False
                )
            return cls(error.norm, len(data.classes), weight)
        if error.class_weight is not None:
            raise ValueError('class_weight applies only to multiclass="marginal".')
        return cls(error.norm, n_tasks=1, weight=None)

    def combine(self, powers):
        """Return the power of the error (...) for those of its binary problems (...,
        n_tasks).

        It is their weighted sum, of signed powers too; for an infinite norm it is the
        largest power of a class with a positive weight.
        """
        if self.weight is None:
            return powers[..., 0]
        if self.norm == np.inf:
            return powers[..., self.weight > 0].max(axis=-1)
        return powers @ self.weight


def check_class_weight(class_weight, classes, *, is_sorted=True):
    """Return the weights of the classes of a marginal error (K,), checked.

    Parameters
    ----------
    class_weight : array-like of shape (K,), dict or None
        Weights, or a dict from label to weight; None means 1 / K for each.
    classes : ndarray of shape (K,)
        The labels of the columns.
    is_sorted : bool, default=True
        Whether an array holds the weights by sorted label, else in the order of the
        columns.
    """
    n_classes = len(classes)
    if class_weight is None:
        return np.full(n_classes, 1 / n_classes)
    by_label = isinstance(class_weight, dict)
    if by_label:
        missing = [label for label in classes.tolist() if label not in class_weight]
        if missing:
            raise ValueError(f"class_weight has no entry for the classes {missing}.")
        class_weight = [class_weight[label] for label in classes.tolist()]
    weights = as_numbers(class_weight, "class_weight")
    has_shape = weights.shape == (n_classes,)
    if not (has_shape and np.all(weights >= 0) and 0 < weights.sum() < np.inf):
        raise ValueError(
            f"class_weight must contain {n_classes} finite, non-negative weights that"
            f" are not all zero, found {class_weight!r}."
        )
    if not is_sorted:
        return weights
    # Of two classes the event is the second column: an array by sorted label is turned
    # round where the event is the smaller label.
    descending = n_classes == 2 and classes[0] is not None and classes[0] > classes[1]
    if descending and not by_label:
        return weights[::-1]
    return weights
