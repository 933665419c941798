"""Two samples: has the calibration curve changed, by how much, and what does that do to bias and error."""

import warnings
from dataclasses import dataclass
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.utils import check_random_state

from skcalib._cells.cells import Cells
from skcalib._cells.reductions import BinaryTask, binary_tasks, resolve_multiclass
from skcalib._cells.statistics import BinStatistics
from skcalib._errors.binned import check_norm
from skcalib._inference.bias import bias_test
from skcalib._inference.results import IntervalEstimate, ResultTable, html_table, text_table
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib._rows.sorting import mid_rank_cells
from skcalib.binning import BaseBinning, EqualMass, check_binning
from skcalib.metrics._interval import calibration_error_interval

__all__ = ["CalibrationChange", "calibration_change", "two_samples"]

_LEAST_ROWS_A_CELL = 20
_FEWEST_EQUAL = 30  # rows whose labels all agree in both samples: hardly by chance
_NO_SPREAD = 1e-9  # of sums of residuals: they are equal, but for rounding
_MOST_ROWS_DRAWN = 10**8  # counts of cells with more are drawn as normal: NumPy's draws end at 10^9


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationChange(ResultTable):
    """Result of `calibration_change`. Differences are after minus before.

    Parameters
    ----------
    n_before, n_after : int
        Numbers of rows.
    statistic : float
        Range of the cumulative differences of the residuals (label minus score), over its standard deviation.
    pvalue : float
        P-value of "the calibration curve is the same", whatever the scores did.
    shift : IntervalEstimate
        Mean difference of the event frequencies at equal scores, from the residuals.
    bias_before, bias_after, bias_difference : IntervalEstimate
        Mean score minus event frequency.
    error_before, error_after, error_difference : IntervalEstimate
        Calibration error.
    """

    n_before: int
    n_after: int
    statistic: float
    pvalue: float
    shift: IntervalEstimate
    bias_before: IntervalEstimate
    bias_after: IntervalEstimate
    bias_difference: IntervalEstimate
    error_before: IntervalEstimate
    error_after: IntervalEstimate
    error_difference: IntervalEstimate

    def columns(self):
        """Return the intervals as a table, by the name of each column.

        Returns
        -------
        columns : dict
            `quantity`, `estimate`, `low` and `high`.
        """
        intervals = {name: value for name, value in vars(self).items() if isinstance(value, IntervalEstimate)}
        estimate, low, high = np.array(list(intervals.values())).T
        return {"quantity": np.array(list(intervals), dtype=object), "estimate": estimate, "low": low, "high": high}

    def __repr__(self):
        return f"{self._headline()}\n{text_table(self.columns())}"

    def _repr_html_(self):
        return html_table(self.columns(), caption=self._headline())

    def _headline(self):
        return f"CalibrationChange (n_before={self.n_before}, n_after={self.n_after}, pvalue={self.pvalue:.3g})"


def calibration_change(
    y_before,
    y_proba_before=None,
    y_after=None,
    y_proba_after=None,
    *,
    norm=2,
    binning=None,
    method="auto",
    confidence_level=0.9,
    n_resamples=999,
    multiclass="auto",
    pos_label=None,
    labels=None,
    random_state=None,
):
    """Compare the calibration of two samples: last release and this one, last year and this year.

    The p-value compares the event frequencies at equal scores, so that a change of the scores alone does not count. The
    intervals show how the mean difference, the bias and the calibration error have changed.

    Parameters
    ----------
    y_before : array-like of shape (n,), or BinStatistics
        Labels of the first sample. Two `BinStatistics` with equal edges may be given as the first two arguments.
    y_proba_before : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the first sample, in [0, 1].
    y_after : array-like of shape (n,), or BinStatistics, default=None
        Labels of the second sample.
    y_proba_after : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the second sample.
    norm : float, default=2
        Norm of the error: see `skcalib.metrics.calibration_error`.
    binning : BaseBinning, int or None, default=None
        Bins of the error, made for each sample by itself; an int is a number of equal-mass bins, None
        ``EqualMass(15)``.
    method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
        Method of the error.
    confidence_level : float, default=0.9
        Coverage of each interval.
    n_resamples : int, default=999
        Number of draws behind the p-value and the intervals of the errors; the smallest p-value is
        ``1 / (n_resamples + 1)``.
    multiclass : {"auto", "top_label"}, default="auto"
        "auto" is the positive class for one or two columns, "top_label" for more.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    change : CalibrationChange
        Frozen object of `n_before, n_after, statistic, pvalue`, and of the intervals (named tuples `estimate, low,
        high`) `shift, bias_before, bias_after, bias_difference, error_before, error_after, error_difference`.
        Differences are after minus before; a positive `shift` means more events than before at equal scores.

    Raises
    ------
    ValueError
        For labels, probabilities or parameters that do not fit together, for statistics with other edges or with
        weights, and where a sample is too small for a debiased error.

    Warns
    -----
    UserWarning
        Where the labels of both samples are equal, row by row: two models on the same rows are for `compare`.

    See Also
    --------
    skcalib.monitoring.CalibrationMonitor : An alarm that may be looked at after every row.
    skcalib.metrics.calibration_test : Is the error more than noise?

    Notes
    -----
    The rows of both samples go into cells of neighbouring scores, of 20 rows and more. Within a cell the residuals y -
    s are exchangeable if the curve is the same, wherever the scores of the two samples lie. The statistic is the range
    of the cumulative sums of the second sample's excess, in the order of the scores. A permutation is drawn as the
    number of the second sample's events, which is hypergeometric, and a normal deviate for the rest of the residuals.
    Bins of `BinStatistics` are taken as cells, and their sums are drawn as normal, with the residual variance of each
    bin and sample: where bins are wide and the scores miscalibrated, a change of the scores may count as one of the
    curve.

    The intervals of differences join those of both parts by "square and add" [1]_. That of the shift is normal.

    References
    ----------
    .. [1] Zou and Donner (2008), Construction of confidence limits about effect measures: a general approach.

    Examples
    --------
    Higher scores alone are no change; more events at equal scores are one:

    >>> import numpy as np
    >>> from skcalib.monitoring import calibration_change
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.beta(1, 3, 2000), rng.beta(2, 3, 2000)
    >>> y_before, same = rng.random(2000) < before, rng.random(2000) < after
    >>> calibration_change(y_before, before, same, after, random_state=0).pvalue > 0.1
    True
    >>> more = rng.random(2000) < np.minimum(after + 0.1, 1)
    >>> change = calibration_change(y_before, before, more, after, random_state=0)
    >>> change.pvalue, round(change.shift.estimate, 1)
    (0.001, 0.1)
    """
    norm = check_norm(norm, method=method)
    confidence_level = check_confidence_level(confidence_level)
    check_int(n_resamples, "n_resamples")
    if multiclass == "marginal":
        raise ValueError('multiclass="marginal" is one comparison a class: use "top_label", or one class at a time.')
    given = {"pos_label": pos_label, "labels": labels, "multiclass": multiclass}
    before, after = two_samples(y_before, y_proba_before, y_after, y_proba_after, binning, given)
    _warn_of_equal_rows(before, after)
    seed = check_random_state(random_state)
    cells = _cells_of_statistics(before, after) if before.task is None else _cells_of_rows(before, after)
    statistic, pvalue = _compare(cells, n_resamples, np.random.default_rng(seed.randint(2**32, dtype=np.uint64)))
    options = {
        "norm": norm,
        "method": method,
        "confidence_level": confidence_level,
        "n_resamples": n_resamples,
        "random_state": seed,
    }
    biases = [sample.bias(confidence_level) for sample in (before, after)]
    errors = [sample.error(options) for sample in (before, after)]
    return CalibrationChange(
        n_before=before.n,
        n_after=after.n,
        statistic=statistic,
        pvalue=pvalue,
        shift=_shift(cells, confidence_level),
        bias_before=biases[0],
        bias_after=biases[1],
        bias_difference=_difference(*biases),
        error_before=errors[0],
        error_after=errors[1],
        error_difference=_difference(*errors),
    )


def two_samples(y_before, y_proba_before, y_after, y_proba_after, binning, given):
    """Return both samples, checked; `given` are the options of the labels."""
    if isinstance(y_before, BinStatistics):
        after = y_proba_before if y_after is None else y_after
        return _check_statistics(y_before, after, binning, y_proba_after)
    if given["labels"] is None:
        given = given | {"labels": _shared_labels(y_before, y_after)}
    strategy = check_binning(binning, EqualMass(15))
    before = _Sample.from_rows(y_before, y_proba_before, "before", given, strategy)
    return before, _Sample.from_rows(y_after, y_proba_after, "after", given, strategy)


def _warn_of_equal_rows(before, after):
    """Warn where all labels agree, row by row, and are not all the same."""
    if before.task is None or not np.array_equal(before.task.labels, after.task.labels):
        return
    if before.n >= _FEWEST_EQUAL and 0 < before.task.labels.sum() < before.n:
        warnings.warn(
            "y_before and y_after are equal, row by row: this looks like two models on the same rows, which are no "
            "independent samples. skcalib.evaluation.compare compares models on the same rows.",
            UserWarning,
            stacklevel=3,
        )


class _Sample(NamedTuple):
    """One sample: its name, its rows and their binning, or its bins."""

    name: str
    task: BinaryTask | None
    binning: BaseBinning | None
    statistics: BinStatistics | None

    @classmethod
    def from_rows(cls, y, y_proba, name, given, strategy):
        if y is None or y_proba is None:
            missing = f"y_{name}" if y is None else f"y_proba_{name}"
            raise ValueError(f"{missing} is missing: give labels and probabilities of both samples.")
        try:
            data = check_scored_labels(y, y_proba, **given)
        except (TypeError, ValueError) as error:  # which of the two samples is wrong
            text = str(error).replace("y_true", f"y_{name}").replace("y_proba", f"y_proba_{name}")
            raise (TypeError if isinstance(error, TypeError) else ValueError)(text) from None
        resolve_multiclass(given["multiclass"], data)
        [task] = binary_tasks(data, given["multiclass"])
        return cls(name, task._replace(labels=np.asarray(task.labels, dtype=bool)), strategy, None)

    @property
    def n(self):
        return int(self.statistics.count.sum()) if self.task is None else len(self.task.scores)

    def bias(self, confidence_level):
        if self.task is None:
            (scores, weight), events = Cells.of_bins(self.statistics).two_points(), self.statistics.weighted_label.sum()
            mean_score = self.statistics.weighted_score.sum() / self.n
            variance = self.statistics.total_residual_variance
        else:
            scores, weight, events = self.task.scores, None, np.count_nonzero(self.task.labels)
            mean_score = scores.mean(dtype=np.float64)
            variance = np.subtract(self.task.labels, scores, dtype=np.float64).var()
        test = bias_test(scores, events, confidence_level, weight, variance)
        return IntervalEstimate(float(mean_score - events / self.n), test.low, test.high)

    def error(self, options):
        if self.task is None:
            rows = (self.statistics,)
        else:
            rows, options = (self.task.labels, self.task.scores), options | {"binning": self.binning}
        try:
            return calibration_error_interval(*rows, **options)
        except ValueError as error:
            raise ValueError(f"The error of the sample {self.name!r} cannot be computed. {error}") from error


def _shared_labels(*labels):
    """Return the two labels that both samples together hold: one of them may hold one class."""
    try:
        found = np.unique(np.concatenate([np.unique(np.asarray(y)) for y in labels]))
    except (TypeError, ValueError):
        return None  # refused later, by the argument
    return found.tolist() if len(found) == 2 else None


def _check_statistics(before, after, binning, y_proba_after):
    if not isinstance(after, BinStatistics):
        raise ValueError(f"y_after must be a BinStatistics, as y_before is, found {type(after).__name__}.")
    if binning is not None or y_proba_after is not None:
        name = "binning" if binning is not None else "y_proba_after"
        raise ValueError(f"{name} has no meaning for two BinStatistics: leave it out.")
    if not np.array_equal(before.edges, after.edges):
        raise ValueError("y_before and y_after must have equal edges: bin both samples with the same FixedEdges.")
    for name, statistics in (("before", before), ("after", after)):
        if not np.array_equal(statistics.weight, statistics.count):
            raise ValueError(f"y_{name} has weights, which the comparison of counts does not take.")
        if statistics.count.sum() == 0:
            raise ValueError(f"y_{name} holds no rows.")
    return _Sample("before", None, None, before), _Sample("after", None, None, after)


class _Cells(NamedTuple):
    """Residuals y - s of both samples in cells of neighbouring scores, those with rows of both.

    `excess` is the sum of the second sample's residuals beyond its share, `variance` what it has if the curve is the
    same. The draws are `slope` times the number of events, which is hypergeometric, and a normal remainder.
    """

    n_before: np.ndarray
    n_after: np.ndarray
    excess: np.ndarray
    variance: np.ndarray
    events: np.ndarray
    slope: np.ndarray
    remainder: np.ndarray

    @property
    def n(self):
        return self.n_before + self.n_after


def _cells_of_rows(before, after):
    scores = np.concatenate([sample.task.scores.astype(np.float64) for sample in (before, after)])
    labels = np.concatenate((before.task.labels, after.task.labels))
    n_cells = max(1, int(len(scores) / max(_LEAST_ROWS_A_CELL, sqrt(len(scores)))))
    cells, n_cells = mid_rank_cells(scores, n_cells)

    def total(rows, values=None):
        return np.bincount(cells[rows], None if values is None else values[rows], n_cells)

    everyone, second = slice(None), slice(before.n, None)
    residual = labels - scores
    n, n_after, events = total(everyone), total(second), total(labels)
    residual -= (total(everyone, residual) / n)[cells]
    spread, covariance = total(everyone, residual**2), total(labels, residual)
    of_labels = events * (n - events) / n
    slope = np.divide(covariance, of_labels, out=np.zeros(n_cells), where=of_labels > 0)
    share = (n - n_after) / n * (n_after / np.maximum(n - 1, 1))  # drawn without replacement
    remainder = share * np.maximum(spread - slope * covariance, 0)
    found = _Cells(n - n_after, n_after, total(second, residual), share * spread, events, slope, remainder)
    return _with_both(found)


def _cells_of_statistics(before, after):
    """Return the bins, whose draws are normal with the residual variance of the bin."""
    parts = before.statistics, after.statistics
    n = np.stack([part.count for part in parts])
    sums = np.stack([part.weighted_label - part.weighted_score for part in parts])
    rows = np.maximum(n, 1)
    squares = np.maximum(np.stack([part.residual_square for part in parts]) - sums**2 / rows, 0)
    # Of the residuals' squares each sample has the share that its scores say: a few events say little.
    spread = np.maximum(np.stack([part.weighted_score - part.weighted_score_squared for part in parts]), 0)
    spread = np.where(spread.sum(axis=0) > 0, spread, rows)
    squares = squares.sum(axis=0) * spread / spread.sum(axis=0)
    weight = n[0] * (n[1] / rows.sum(axis=0))
    variance = weight**2 * np.sum(squares / rows**2, axis=0)
    excess, zero = weight * np.diff(sums / rows, axis=0)[0], np.zeros(len(weight))
    return _with_both(_Cells(*n, excess, variance, zero.astype(np.int64), zero, variance))


def _with_both(cells):
    both = (cells.n_before > 0) & (cells.n_after > 0)
    return _Cells(*(values[both] for values in cells))


def _compare(cells, n_resamples, rng):
    """Return the statistic and its p-value, by residuals permuted within the cells."""
    scale = sqrt(cells.variance.sum())
    if scale < _NO_SPREAD:
        return 0.0, 1.0
    size = n_resamples, len(cells.n)
    drawn = rng.normal(0.0, np.sqrt(cells.remainder), size)
    if cells.n.max() > _MOST_ROWS_DRAWN:
        drawn = rng.normal(0.0, np.sqrt(cells.variance), size)
    elif cells.events.any():
        share = cells.n_after * cells.events / cells.n
        drawn += cells.slope * (rng.hypergeometric(cells.events, cells.n - cells.events, cells.n_after, size) - share)
    statistics = _range_of_sums(np.vstack((cells.excess, drawn))) / scale
    exceeding = np.count_nonzero(statistics[1:] >= statistics[0] - 1e-9)
    return float(statistics[0]), float((1 + exceeding) / (n_resamples + 1))


def _range_of_sums(steps):
    sums = np.cumsum(steps, axis=1)
    return np.maximum(sums.max(axis=1), 0) - np.minimum(sums.min(axis=1), 0)


def _shift(cells, confidence_level):
    """Return the mean difference of the residuals with weights n0 n1 / (n0 + n1), and its normal limits."""
    weight = np.sum(cells.n_before * (cells.n_after / cells.n))
    if weight == 0:
        raise ValueError("The samples have no scores in common: no cell of neighbouring scores has rows of both.")
    estimate = cells.excess.sum() / weight
    margin = ndtri((1 + confidence_level) / 2) * sqrt(cells.variance.sum()) / weight
    return IntervalEstimate(float(estimate), float(estimate - margin), float(estimate + margin))


def _difference(before, after):
    """Return after minus before, and its limits by "square and add"; estimates count from inside their limits."""
    inside = [min(max(one.estimate, one.low), one.high) for one in (before, after)]
    middle = inside[1] - inside[0]
    low = middle - hypot(inside[1] - after.low, before.high - inside[0])
    high = middle + hypot(after.high - inside[1], inside[0] - before.low)
    return IntervalEstimate(after.estimate - before.estimate, low, high)
