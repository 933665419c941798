"""Two samples: has the calibration curve changed, by how much, and what does that do to
bias and error.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.utils import check_random_state

from skcalib._cells.cells import Cells
from skcalib._cells.reductions import (
    BinnedTask,
    counted_rows,
    one_task,
    refuse_beside_bins,
)
from skcalib._cells.statistics import BinStatistics
from skcalib._errors.bin_free import range_of
from skcalib._errors.binned import check_norm
from skcalib._inference.count_draws import ClusterDraws, RowsInCells
from skcalib._inference.hypotheses import Resampling
from skcalib._inference.inversion import inverted_limits
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.labels import check_groups, hint_at_alphabet
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.warn import warn
from skcalib._intervals.influence import Influence
from skcalib._rows.sorting import mid_rank_cells
from skcalib.binning import BaseBinning, EqualMass, check_binning
from skcalib.evaluation._compare import square_and_add
from skcalib.metrics._by_group import Sample

_LEAST_ROWS_A_CELL = 20
_FEWEST_EQUAL = 30  # rows whose labels all agree in both samples: hardly by chance
_ONE_SCORE = 1e-13  # variance of the scores of a cell, below which they are equal
_NO_SPREAD = 1e-9  # of sums of residuals: they are equal, but for rounding
_NO_DIFFERENCES = (
    "the labels of neighbouring scores are all the same, which says nothing about how"
    " far they differ by chance"
)
# counts of cells with more are drawn as normal: NumPy's draws end at 10^9
_MOST_ROWS_DRAWN = 10**8


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationChange(ResultTable):
    """Result of `calibration_change`. Differences are after minus before.

    Parameters
    ----------
    n_before, n_after : int or float
        Numbers of rows; with weights what they are worth.
    statistic : float
        Range of the cumulative differences of the residuals (label minus score), over
        its standard deviation.
    pvalue : float
        P-value of "the calibration curve is the same", whatever the scores did.
    shift : IntervalEstimate
        Mean difference of the event frequencies at equal scores, from the residuals.
    bias_before, bias_after, bias_difference : IntervalEstimate
        Mean score minus event frequency.
    error_before, error_after, error_difference : IntervalEstimate
        Calibration error.
    """

    n_before: float
    n_after: float
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
        intervals = {
            name: value
            for name, value in vars(self).items()
            if isinstance(value, IntervalEstimate)
        }
        estimate, low, high = np.array(list(intervals.values())).T
        return {
            "quantity": np.array(list(intervals), dtype=object),
            "estimate": estimate,
            "low": low,
            "high": high,
        }

    def _headline(self):
        return (
            f"CalibrationChange (n_before={self.n_before:.7g},"
            f" n_after={self.n_after:.7g}, pvalue={self.pvalue:.3g})"
        )


def calibration_change(
    y_before: ArrayLike | BinStatistics,
    y_proba_before: ArrayLike | BinStatistics | None = None,
    y_after: ArrayLike | None = None,
    y_proba_after: ArrayLike | None = None,
    *,
    norm: float | Literal["l1", "l2", "max"] = 2,
    binning: BaseBinning | int | None = None,
    method: Literal["auto", "plugin", "debiased", "unbiased", "label_binned"] = "auto",
    confidence_level: float = 0.9,
    n_resamples: int = 999,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    sample_weight: ArrayLike | tuple | None = None,
    weight_type: Literal["frequency", "importance"] = "frequency",
    clusters: ArrayLike | tuple | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationChange:
    """Compare the calibration of two samples, such as last year and this year.

    The p-value compares the event frequencies at equal scores, so that a change of the
    scores alone does not count. The intervals show how the mean difference, the bias
    and the calibration error have changed.

    Parameters
    ----------
    y_before : array-like of shape (n,), or BinStatistics
        Labels of the first sample. Two `BinStatistics` with equal edges may be given as
        the first two arguments.
    y_proba_before : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the first sample, in [0, 1].
    y_after : array-like of shape (n,), or BinStatistics, default=None
        Labels of the second sample.
    y_proba_after : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the second sample.
    norm : float, default=2
        Norm of the error: see `skcalib.metrics.calibration_error`.
    binning : BaseBinning, int or None, default=None
        Bins of the error, made for each sample separately; an int is a number of
        equal-mass bins, None ``EqualMass(15)``.
    method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
        Method of the error.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    n_resamples : int, default=999
        Number of draws behind the p-value and the intervals of the errors. With the
        samples themselves there are 1,000: the smallest p-value is ``1 / (n_resamples +
        1)``.
    multiclass : {"auto", "top_label"}, default="auto"
        "auto" is the positive class for one or two columns, "top_label" for more.
    sample_weight : pair of array-likes, default=None
        Weights of the rows before and after; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        What weights are. "frequency": they count rows, a weight of 2 is two rows.
        "importance": each row was seen once and stands for more or fewer (a sampling
        correction, a covariate shift); the weights w of a sample are worth
        ``sum(w)**2 / sum(w**2)`` rows.
    clusters : pair of array-likes, default=None
        The clusters of the rows before and after: rows of one cluster (a patient, a
        match) may depend on each other, also across the samples.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of
        `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    change : CalibrationChange
        Frozen object of `n_before, n_after, statistic, pvalue`, and of the intervals
        (named tuples `estimate, low, high`)
        `shift, bias_before, bias_after, bias_difference, error_before, error_after, error_difference`.
        Differences are after minus before; a positive `shift` means more events than
        before at equal scores.

    Raises
    ------
    ValueError
        For labels, probabilities or parameters that do not fit together, for statistics
        with other edges, and where a sample is too small for a debiased error.

    Warns
    -----
    UserWarning
        Where the labels of both samples are equal, row by row: two models on the same
        rows are for `compare`. For weights that are not integers with
        ``weight_type="frequency"``. Where `clusters` are given and fewer than 40 events
        or non-events are expected: the level is not held.

    See Also
    --------
    skcalib.monitoring.CalibrationMonitor : An alarm that may be looked at after every
        row.
    skcalib.metrics.calibration_test : Is the error more than noise?

    Notes
    -----
    The rows of both samples go into cells of neighbouring scores, of 20 rows and more.
    In each cell a line is fitted to the residuals y - s of both samples, so that a cell
    that spans a gap between two groups of scores does not compare the low scores of one
    sample with the high ones of the other. About it the residuals are exchangeable if
    the curve is the same, wherever the scores of the two samples lie. The statistic is
    the range of the cumulative sums of the second sample's excess, in the order of the
    scores. A permutation is drawn as the number of the second sample's events, which is
    hypergeometric, and a normal deviate for the rest of the residuals. Bins of
    `BinStatistics` are taken as cells, and their sums are drawn as normal, with the
    residual variance of each bin and sample. The same holds for weights that are not
    integers, and for importance weights.

    With `clusters` labels are drawn from the event frequencies of both samples
    together, with the dependence within clusters that the residuals show. The interval
    of the shift has the variance of the clusters' jackknifed sums (CR3) and
    Satterthwaite's degrees of freedom; it is NaN where the clusters are worth fewer
    than three of equal size.

    The intervals of differences join those of both parts by "square and add" [1]_. That
    of the shift is normal.

    References
    ----------
    .. [1] Zou and Donner (2008), Construction of confidence limits about effect
        measures: a general approach.

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
    """  # noqa: E501
    norm = check_norm(norm, method=method)
    level = check_confidence_level(confidence_level)
    check_int(n_resamples, "n_resamples")
    given = {
        "pos_label": pos_label,
        "labels": labels,
        "multiclass": multiclass,
        "sample_weight": sample_weight,
    }
    given |= {"weight_type": weight_type, "clusters": clusters}
    samples = two_samples(
        y_before, y_proba_before, y_after, y_proba_after, binning, **given
    )
    _warn_of_equal_rows(*samples)
    seed = check_random_state(random_state)
    rng = np.random.default_rng(seed.randint(2**32, dtype=np.uint64))
    draw = _draws_of_statistics if samples[0].task is None else _draws_of_rows
    statistic, pvalue, shift = _compared(
        draw(*samples, weight_type, n_resamples, rng), level
    )
    resampling, intervals = (
        Resampling(n_resamples, seed, importance=weight_type == "importance"),
        {},
    )
    for name, sample in zip(("before", "after"), samples, strict=True):
        bias = float(sample.mean_score - sample.event_frequency)
        limits, reason = sample.bias_test(level)
        intervals[f"bias_{name}"] = IntervalEstimate(
            bias, float(limits.low), float(limits.high), reason=reason
        )
        try:
            error, hypotheses = sample.error_hypotheses(
                {"norm": norm, "method": method}, resampling
            )
        except ValueError as failure:
            raise ValueError(
                f"The error of the sample {name!r} cannot be computed. {failure}"
            ) from failure
        intervals[f"error_{name}"] = IntervalEstimate(
            error, *inverted_limits(hypotheses, (1 - level) / 2)
        )
    for name in ("bias", "error"):
        parts = intervals[f"{name}_after"], intervals[f"{name}_before"]
        intervals[f"{name}_difference"], _ = square_and_add(*parts)
    return CalibrationChange(
        *(sample.n for sample in samples), statistic, pvalue, shift, **intervals
    )


def two_samples(
    y_before,
    y_proba_before,
    y_after,
    y_proba_after,
    binning,
    *,
    weight_type="frequency",
    multiclass="auto",
    **given,
):
    """Return both samples, checked, from labels and probabilities or from two
    `BinStatistics`.
    """
    sample_weight, clusters = (
        given.pop("sample_weight", None),
        given.pop("clusters", None),
    )
    if isinstance(y_before, BinStatistics):
        rows = {
            "binning": binning,
            "y_proba_after": y_proba_after,
            "sample_weight": sample_weight,
        }
        after = y_proba_before if y_after is None else y_after
        return _two_statistics(
            y_before,
            after,
            weight_type,
            multiclass=multiclass,
            clusters=clusters,
            **rows,
        )
    shared = None
    if given["labels"] is None:
        shared = _shared_labels(y_before, y_after)
        given["labels"] = shared
    pairs = _pair(sample_weight, "sample_weight"), _pair(clusters, "clusters")
    rows = zip(
        ("before", "after"),
        (y_before, y_after),
        (y_proba_before, y_proba_after),
        *pairs,
        strict=True,
    )
    options = (
        weight_type,
        {"multiclass": multiclass, **given},
        check_binning(binning, EqualMass(15)),
    )
    samples = tuple(_sample_of_rows(*one, *options) for one in rows)
    if shared is not None and given["pos_label"] is None and _is_column(y_proba_before):
        hint_at_alphabet(
            np.concatenate([sample.task.scores for sample in samples]),
            np.concatenate([sample.task.labels for sample in samples]),
            shared,
            f"say so: pos_label={str(shared[0])!r}.",
        )
    return samples


def _is_column(y_proba):
    """Return whether probabilities are those of the event alone."""
    shape = y_proba.shape if hasattr(y_proba, "shape") else np.shape(y_proba)
    return len(shape) == 1 or shape[1] == 1


def _two_statistics(before, after, weight_type, **rows):
    if not isinstance(after, BinStatistics):
        raise ValueError(
            "y_after must be a BinStatistics, as y_before is, found"
            f" {type(after).__name__}."
        )
    refuse_beside_bins(**rows)
    if not np.array_equal(before.edges, after.edges):
        raise ValueError(
            "y_before and y_after must have equal edges: bin both samples with the same"
            " FixedEdges."
        )
    for name, statistics in (("before", before), ("after", after)):
        if not statistics.total_weight > 0:
            raise ValueError(f"y_{name} holds no rows.")
    return tuple(
        Sample(
            counted_rows(BinnedTask(one), weight_type).bins,
            importance=weight_type == "importance",
        )
        for one in (before, after)
    )


def _pair(value, name):
    if value is None:
        return None, None
    if (
        not hasattr(value, "__len__")
        or len(value) != 2
        or any(one is None for one in value)
    ):
        raise ValueError(
            f"{name} must be a pair: that of the rows before and that of the rows"
            " after."
        )
    return value


def _shared_labels(*labels):
    """Return the two labels that both samples together hold: one of them may hold one
    class.
    """
    try:
        found = np.unique(np.concatenate([np.unique(np.asarray(y)) for y in labels]))
    except (TypeError, ValueError):
        return None  # refused later, by the argument
    return found.tolist() if len(found) == 2 else None


def _sample_of_rows(name, y, y_proba, weight, cluster, weight_type, given, strategy):
    if y is None or y_proba is None:
        missing = f"y_{name}" if y is None else f"y_proba_{name}"
        raise ValueError(
            f"{missing} is missing: give labels and probabilities of both samples."
        )
    try:
        data = check_scored_labels(
            y, y_proba, sample_weight=weight, **given, drop=False
        )
        if cluster is not None:
            names, codes = check_groups(cluster, len(data.scores), name="clusters")
            cluster = names[codes][data.kept]
    except (TypeError, ValueError) as error:  # which of the two samples is wrong
        text = (
            str(error)
            .replace("y_true", f"y_{name}")
            .replace("y_proba", f"y_proba_{name}")
        )
        text = text.replace("sample_weight", f"sample_weight of the sample {name!r}")
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            text
        ) from None
    task = one_task(counted_rows(data.at(data.kept), weight_type), given["multiclass"])
    task = task._replace(labels=np.asarray(task.labels, dtype=bool))
    importance = weight_type == "importance"
    return Sample(task.statistics(strategy), task, strategy, cluster, importance)


def _warn_of_equal_rows(before, after):
    """Warn where all labels agree, row by row, and are not all the same. Weighted rows
    may be condensed: any order.
    """
    task = before.task
    if task is None or task.sample_weight is not None or before.n < _FEWEST_EQUAL:
        return
    if 0 < task.labels.sum() < before.n and np.array_equal(
        task.labels, after.task.labels
    ):
        warn(
            "y_before and y_after are equal, row by row: this looks like two models on"
            " the same rows, which are no independent samples."
            " skcalib.evaluation.compare compares models on the same rows."
        )


class _Excess(NamedTuple):
    """The second sample's excess in cells of neighbouring scores, and its law if the
    curve is the same.

    Parameters
    ----------
    excess : ndarray of shape (n_cells,)
        Sum of the second sample's residuals about a line that is fitted to both.
    weight : ndarray of shape (n_cells,)
        What one more unit of each of its residuals would add to that.
    variance : ndarray of shape (n_cells,) or None
        Its variance; None means that of the draws.
    drawn : ndarray of shape (n_resamples, n_cells)
        Such sums.
    influence : Influence or None
        That of the rows on the mean difference, where rows come in clusters.
    """

    excess: np.ndarray
    weight: np.ndarray
    variance: np.ndarray | None
    drawn: np.ndarray
    influence: Influence | None = None


def _compared(found, level):
    """Return the statistic, its p-value, and the mean difference of the residuals with
    its limits.
    """
    total = found.weight.sum()
    if total <= 0:
        raise ValueError(
            "The samples have no scores in common: no cell of neighbouring scores has"
            " rows of both."
        )
    if found.variance is None:
        scale = np.sqrt(np.mean(found.drawn.sum(axis=1) ** 2))
    else:
        scale = np.sqrt(found.variance.sum())
    sums = np.cumsum(np.vstack((found.excess, found.drawn)), axis=1)
    statistics = range_of(sums)
    estimate = float(found.excess.sum() / total)
    if scale < _NO_SPREAD:
        margin, reason = np.nan, _NO_DIFFERENCES
    elif found.influence is None:
        margin = float(ndtri((1 + level) / 2) * scale / total)
        reason = ""
    else:
        margin, reason = found.influence.half_width(level)
    shift = IntervalEstimate(
        estimate, estimate - margin, estimate + margin, reason=reason
    )
    if scale < _NO_SPREAD:
        return 0.0, 1.0, shift
    exceeding = np.count_nonzero(statistics[1:] >= statistics[0] - 1e-9 * scale)
    return float(statistics[0] / scale), float((1 + exceeding) / len(statistics)), shift


class _Lines(NamedTuple):
    """Lines through the residuals r = y - s of both samples, one in each cell of
    neighbouring scores.

    Without a line a cell that spans a gap between two groups of scores would compare
    the low scores of one sample with the high ones of the other. With it only what the
    samples differ by at equal scores counts, and `weight` is what they tell about that:
    n0 n1 / (n0 + n1), less the part that the scores explain.
    """

    mean: np.ndarray
    slope: np.ndarray
    centre: np.ndarray
    weight: np.ndarray
    excess: np.ndarray
    tilt: np.ndarray

    @classmethod
    def of_sums(cls, n, score, score_squared, residual, residual_score):
        """Fit to sums of w, w s, w s^2, w r and w r s, each (2, n_cells) by sample."""
        size = np.maximum(n.sum(axis=0), _NO_SPREAD)
        centre = score.sum(axis=0) / size
        mean = residual.sum(axis=0) / size
        spread = score_squared.sum(axis=0) - size * centre**2
        # one score, but for rounding: no line
        has_line = spread > _ONE_SCORE * size
        spread = np.where(has_line, spread, 1.0)
        product = residual_score.sum(axis=0) - size * centre * mean
        slope = np.where(has_line, product / spread, 0.0)
        moved = score[1] - n[1] * centre
        tilt = np.where(has_line, moved / spread, 0.0)
        share = n[0] * n[1] / size
        weight = share - tilt * moved
        # what is left of a share that the scores explain is rounding
        weight = np.where(weight > _NO_SPREAD * np.maximum(share, 1.0), weight, 0.0)
        excess = residual[1] - n[1] * mean - slope * moved
        return cls(mean, slope, centre, weight, np.where(weight > 0, excess, 0), tilt)


def _draws_of_rows(before, after, weight_type, n_resamples, rng):
    """Return the `_Excess` of cells of neighbouring scores."""
    tasks = before.task, after.task
    scores = np.concatenate([task.scores.astype(np.float64) for task in tasks])
    labels = np.concatenate([task.labels for task in tasks])
    weight = np.concatenate(
        [
            np.ones(len(task.scores)) if task.weight is None else task.weight
            for task in tasks
        ]
    )
    is_importance = weight_type == "importance"
    n_cells = max(1, int(weight.sum() / max(_LEAST_ROWS_A_CELL, weight.sum() ** 0.5)))
    cells, n_cells = mid_rank_cells(scores, n_cells, weight)
    sample = np.repeat([0, 1], [len(task.scores) for task in tasks])
    both = cells + n_cells * sample

    def total(values):
        return np.bincount(both, values, 2 * n_cells).reshape(2, n_cells)

    raw = labels - scores
    n = total(weight)
    lines = _Lines.of_sums(
        n,
        total(weight * scores),
        total(weight * scores**2),
        total(weight * raw),
        total(weight * raw * scores),
    )
    offset = scores - lines.centre[cells]
    residual = raw - lines.mean[cells] - lines.slope[cells] * offset
    size, share = n.sum(axis=0), n.prod(axis=0) / n.sum(axis=0)
    # the excess is the sum of w times this coefficient times the residual
    coefficient = sample - (n[1] / size)[cells] - lines.tilt[cells] * offset
    coefficient[lines.weight[cells] == 0] = 0
    if before.cluster is not None:
        cluster = np.unique(
            np.concatenate((before.cluster, after.cluster)), return_inverse=True
        )[1]
        fitted = np.clip(scores + lines.slope[cells] * offset, 0, 1)
        rows = RowsInCells(both[:, None], fitted[:, None], labels[:, None], weight)
        drawn = _dependent_draws(rows, n, share, lines.mean, cluster, n_resamples, rng)
        drawn *= np.sqrt(np.divide(lines.weight, share, where=share > 0, out=0 * share))
        scale = weight.sum() / max(lines.weight.sum(), _NO_SPREAD)
        influence = Influence(
            coefficient * residual * scale, weight, is_importance, cluster
        )
        return _Excess(lines.excess, lines.weight, None, drawn, influence)
    spread = total(weight * residual**2).sum(axis=0)
    squares = total(weight**2).sum(axis=0) if is_importance else size
    # drawn without replacement about a line: a mean and a slope are fitted
    n_fitted = 1 + (lines.slope != 0)
    left = np.maximum(size - n_fitted * squares / size, _NO_SPREAD)
    row_squares = weight**2 if is_importance else weight
    variance = spread / left * total(row_squares * coefficient**2).sum(axis=0)
    shape = n_resamples, n_cells
    if is_importance or (weight % 1).any() or size.max() > _MOST_ROWS_DRAWN:
        drawn = rng.normal(0.0, np.sqrt(variance), shape)
        return _Excess(lines.excess, lines.weight, variance, drawn)
    # The number of the second sample's events is hypergeometric, the rest of the
    # residuals normal; then the sum gets the variance that it has about a line.
    events = total(weight * labels).sum(axis=0)
    covariance = total(weight * labels * residual).sum(axis=0)
    of_labels = events * (size - events) / size
    slope = np.divide(covariance, of_labels, out=np.zeros(n_cells), where=of_labels > 0)
    counts = (values.astype(np.int64) for values in (events, size - events, n[1]))
    drawn = slope * (rng.hypergeometric(*counts, shape) - n[1] * events / size)
    rest = np.maximum(spread - slope * covariance, 0)
    one_less = np.maximum(size - 1, _NO_SPREAD)
    drawn += rng.normal(0.0, np.sqrt(share / one_less * rest), shape)
    whole = share / one_less * spread
    drawn *= np.sqrt(np.divide(variance, whole, out=np.zeros(n_cells), where=whole > 0))
    return _Excess(lines.excess, lines.weight, variance, drawn)


def _dependent_draws(rows, n, share, mean, cluster, n_resamples, rng):
    """Draw labels of both samples from the event frequencies of both, dependent within
    clusters.
    """
    deviation, legacy = np.tile(mean, 2), np.random.RandomState(rng.integers(2**32))
    cells = Cells.of_scores(np.zeros(n.size), n.ravel(), np.zeros(n.size))
    draws = ClusterDraws(cells, rows, deviation, cluster, n_resamples, legacy)
    cell = rows.cell[:, 0]
    probability = np.clip(rows.scores[:, 0] + deviation[cell], 0, 1)
    expected = np.bincount(cell, rows.sample_weight * probability, n.size) / np.maximum(
        n.ravel(), _NO_SPREAD
    )
    drawn = np.concatenate(list(draws(deviation))) - expected
    return share * np.diff(drawn.reshape(n_resamples, *n.shape), axis=1)[:, 0]


def _draws_of_statistics(before, after, weight_type, n_resamples, rng):
    """Return the same of bins, whose draws are normal with the residual variance of the
    bin.
    """
    parts = before.statistics, after.statistics

    def stacked(name):
        return np.stack([getattr(part, name) for part in parts])

    n = stacked("weight")
    squared = stacked("weight_squared") if weight_type == "importance" else n
    score, score_squared = stacked("weighted_score"), stacked("weighted_score_squared")
    sums = stacked("weighted_label") - score
    lines = _Lines.of_sums(
        n, score, score_squared, sums, stacked("weighted_score_label") - score_squared
    )
    rows = np.maximum(n, _NO_SPREAD)
    squares = np.maximum(stacked("residual_square") - sums**2 / rows, 0)
    # Of the residuals' squares each sample has the share that its scores say: a few
    # events say little.
    spread = np.maximum(score - score_squared, 0)
    spread = np.where(spread.sum(axis=0) > 0, spread, rows)
    squares = squares.sum(axis=0) * spread / spread.sum(axis=0)
    share = n[0] * (n[1] / rows.sum(axis=0))
    variance = share**2 * np.sum(squares * squared / rows**3, axis=0)
    variance *= np.divide(
        lines.weight, share, out=np.zeros(share.shape), where=share > 0
    )
    drawn = rng.normal(0.0, np.sqrt(variance), (n_resamples, len(variance)))
    return _Excess(lines.excess, lines.weight, variance, drawn)
