"""What an error is: a power of the event frequencies of cells, and how the powers of many classes are one number."""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from skcalib._cells.reductions import (
    binary_tasks,
    check_rows_or_bins,
    resolve_multiclass,
)
from skcalib._input.scalars import as_numbers

# Up to this norm an error of 1e-9 has a power that float64 holds; beyond, powers below the second number are refused.
_LARGE_NORM, _SMALLEST_POWER = 32, 1e-290


class Power:
    """The p-th power of an error of one binary problem, as a function of the event frequencies of its cells.

    The same object gives the value (the frequencies are those of the labels), the draws of a test (those of drawn
    labels), and the error without noise (any frequencies). A subclass writes `power`.

    Parameters
    ----------
    cells : Cells
        Cells of one score each, in increasing order; or of nearly equal scores where draws would otherwise take long.
    norm : float, default=1
        The norm p.
    """

    is_binned = False  # whether the cells are bins, rather than scores that stand for their neighbours, too
    refits = None  # a strategy whose bins are made anew for drawn labels
    is_sum_of_squares = False  # whether it depends on the deviations of the cells through their squares alone

    def __init__(self, cells, *, norm=1):
        self.cells, self.norm = cells, norm
        self.weight, self.scores = cells.weight, cells.mean_score

    @cached_property
    def share(self):
        """Share of the weight in each cell, which rows have as well."""
        n, weight = len(self.scores), self.weight
        return np.full(n, 1 / n) if weight is None else weight / weight.sum()

    @classmethod
    def of_task(cls, task, most=None, **params):
        """Return the power of a binary problem.

        Parameters
        ----------
        task : BinaryTask
            The problem.
        most : int, default=None
            Number of cells beyond which neighbours are pooled; None for the exact value.
        **params : dict
            Parameters of the error.

        Returns
        -------
        power : Power
            Its `cells` are those of the problem.
        """
        cells = task.cells()
        return cls(
            cells if most is None else task.adjusted(cells.condensed(most)), **params
        )

    def power(self, frequency):
        """Map event frequencies of the cells (..., m) to powers of the error (...)."""
        raise NotImplementedError(
            f"{type(self).__name__} must define power(frequency)."
        )

    @property
    def observed(self):
        """The power of the labels."""
        return float(self.power(self.cells.event_frequency))

    def noiseless(self, frequency):
        """Return the power of the error for frequencies (m,) without noise."""
        return float(self.power(frequency))

    def at(self, frequency):
        """Return a power that orders draws around these frequencies (m,) as the error does, and is quicker."""
        return self

    def norm_of(self, gaps):
        """Return the mean of gap^p over the cells (..., m), the largest gap for an infinite norm."""
        return (
            gaps.max(axis=-1) if self.norm == np.inf else gaps**self.norm @ self.share
        )


class Error(NamedTuple):
    """An error with its parameters.

    Parameters
    ----------
    power : type
        Class of its power.
    params : dict
        Parameters of the power.
    norm : float, default=1
        The norm.
    squared : bool, default=False
        Whether it is the signed square.
    multiclass, class_weight
        See `calibration_error`.
    groups, reduce
        See `groupwise_calibration_error`.
    """

    power: type
    params: dict
    norm: float = 1
    squared: bool = False
    multiclass: str = "auto"
    class_weight: object = None
    groups: object = None
    reduce: str | None = None

    @property
    def has_bins_of_labels(self):
        """Whether its bins depend on the labels, but are not made anew for those that are drawn."""
        binning = self.params.get("binning")
        return (
            getattr(binning, "needs_labels", False)
            and type(binning) is not self.power.refits
        )

    def of_task(self, task, most=None):
        """Return the power of a binary problem; see `Power.of_task`."""
        return self.power.of_task(task, most, **self.params)

    def observed(self, data):
        """Return the power of validated data, over all its binary problems."""
        powers = np.array(
            [
                self.of_task(task).observed
                for task in binary_tasks(data, self.multiclass, pooled=True)
            ]
        )
        return float(ClassPowers.of(data, self).combine(powers))

    def value(self, power):
        """Return the error for its power."""
        return float(power) if self.squared else error_root(power, self.norm)


class ClassPowers(NamedTuple):
    """How the powers of the binary problems are one."""

    norm: float
    n_tasks: int
    weight: np.ndarray | None

    @classmethod
    def of(cls, data, error):
        """Return it for validated data and an `Error`."""
        if resolve_multiclass(error.multiclass, data, pooled=True) == "marginal":
            return cls(
                error.norm,
                len(data.classes),
                check_class_weight(error.class_weight, data.classes),
            )
        if error.class_weight is not None:
            raise ValueError(
                'class_weight has a meaning for multiclass="marginal" only.'
            )
        return cls(error.norm, 1, None)

    def combine(self, powers):
        """Return the power of the whole for those of its binary problems (..., n_tasks); the largest for norm inf."""
        if self.weight is None:
            return powers[..., 0]
        return (
            powers[..., self.weight > 0].max(axis=-1)
            if self.norm == np.inf
            else powers @ self.weight
        )


def error_value(error, y_true, y_proba, **rows):
    """Validate the input of a metric and return an `Error` for it, a float; `rows` are what `check_rows_or_bins` takes.

    A `binning` among them is what the user gave, which must be None where bins are given in place of rows.
    """
    data = check_rows_or_bins(y_true, y_proba, multiclass=error.multiclass, **rows)
    return error.value(error.observed(data))


def error_root(power, norm):
    """Return the error for its p-th power, a negative one counting as zero."""
    if _LARGE_NORM < norm < np.inf and not (
        power < 0 or _SMALLEST_POWER < power < np.inf
    ):
        raise ValueError(
            f"norm={norm} leaves the range of floating point for errors this small: use norm=np.inf."
        )
    power = max(float(power), 0.0)
    return power if norm == np.inf else float(power ** (1 / norm))


def check_class_weight(class_weight, classes):
    """Return the weights of the classes of a marginal error: 1 / K each, or as given (an array by sorted label)."""
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
    if (
        weights.shape != (n_classes,)
        or not np.all(weights >= 0)
        or not 0 < weights.sum() < np.inf
    ):
        raise ValueError(
            f"class_weight must hold {n_classes} finite weights that are not negative nor all zero, found "
            f"{class_weight!r}."
        )
    descending = (
        n_classes == 2 and classes[0] is not None and classes[0] > classes[1]
    )  # the first is the negative one
    return weights[::-1] if descending and not by_label else weights
