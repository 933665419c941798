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
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.sorting import mid_rank_cells
from skcalib.binning import BaseBinning, EqualMass, check_binning
from skcalib.evaluation._paired_differences import square_and_add
from skcalib.metrics._group_sample import Sample

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
        Numbers of samples; with weights what they are worth.
    statistic : float
        Range of the cumulative differences of the residuals (label minus score), over
        its standard deviation.
    pvalue : float
        P-value of "the calibration curve is the same", whatever the scores did.
    shift : IntervalEstimate
        Mean difference in event frequency at equal scores, from the residuals.
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
        intervals = {}
        for name, field in vars(self).items():
            if isinstance(field, IntervalEstimate):
                intervals[name] = field
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
    """Compare the calibration of two data sets, such as last year and this year.

    The p-value compares event frequencies at equal scores, so that a change in the
    distribution of scores alone does not matter. The intervals show the mean difference
    and how the bias and the calibration error have changed.

    Parameters
    ----------
    y_before : array-like of shape (n,), or BinStatistics
        Labels of the first data set. Two `BinStatistics` with equal edges may be given
        as the first two arguments.
    y_proba_before : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the first data set, in [0, 1].
    y_after : array-like of shape (n,), or BinStatistics, default=None
        Labels of the second data set.
    y_proba_after : array-like of shape (n,), (n, 2) or (n, K), default=None
        Probabilities of the second data set.
    norm : float, default=2
        Norm of the error: see `skcalib.metrics.calibration_error`.
    binning : BaseBinning, int or None, default=None
        Bins for the error, made separately for each data set. An int means that many
        equal-mass bins, None means ``EqualMass(15)``.
    method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
        Method for computing the error.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    n_resamples : int, default=999
        Number of draws for the p-value and the intervals of the errors. The smallest
        possible p-value is ``1 / (n_resamples + 1)``.
    multiclass : {"auto", "top_label"}, default="auto"
        "auto" is the positive class for one or two columns, "top_label" for more.
    sample_weight : pair of array-likes, default=None
        Weights of the samples before and after; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or fewer than
        one (a sampling correction, a covariate shift); the weights w of a data set are
        worth ``sum(w)**2 / sum(w**2)`` samples.
    clusters : pair of array-likes, default=None
        The clusters of the samples before and after: samples of one cluster (a patient,
        a match) may be dependent, even across the two data sets.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.

    Returns
    -------
    change : CalibrationChange
        Frozen object with the fields `n_before, n_after, statistic, pvalue` and the
        intervals (named tuples `estimate, low, high`) `shift, bias_before, bias_after,
        bias_difference, error_before, error_after, error_difference`. Differences are
        after minus before; a positive `shift` means that events are more frequent than
        before at equal scores.

    Raises
    ------
    ValueError
        If labels, probabilities or parameters are inconsistent, if statistics have
        different edges, or if a data set is too small for a debiased error.

    Warns
    -----
    UserWarning
        If the labels of both data sets are identical: to compare two models on the same
        samples, use `compare`. If weights are not integers and
        ``weight_type="frequency"``. If `clusters` are given and fewer than 40 events or
        non-events are expected, because the level may not be maintained.

    See Also
    --------
    skcalib.monitoring.CalibrationMonitor : An alarm that may be looked at after every
        sample.
    skcalib.metrics.calibration_test : Is the error more than noise?

    Notes
    -----
    The samples of both data sets are grouped into cells of neighbouring scores, with 20
    or more samples each. In each cell, a line is fitted to the residuals y - s of both
    data sets, so that a cell that spans a gap between two groups of scores does not
    compare the low scores of one data set with the high ones of the other. Around this
    line, the residuals are exchangeable if the curve is the same, wherever the scores
    of the two data sets lie. The statistic is the range of the cumulative sums of the
    second data set's excess, in the order of the scores. A permutation is drawn as the
    number of the second data set's events, which is hypergeometric, and a normal
    deviate for the rest of the residuals. Bins of `BinStatistics` are taken as cells,
    and their sums are drawn as normal, with the residual variance of each bin and data
    set. The same holds for weights that are not integers, and for importance weights.

    With `clusters`, labels are drawn from the event frequencies of both data sets
    together, with the dependence within clusters that the residuals show. The interval
    of the shift has the variance of the clusters' jackknifed sums (CR3) and
    Satterthwaite's degrees of freedom; it is NaN if the clusters are worth fewer
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
    samples = two_samples(
        y_before,
        y_proba_before,
        y_after,
        y_proba_after,
        binning,
        pos_label=pos_label,
        labels=labels,
        multiclass=multiclass,
        sample_weight=sample_weight,
        weight_type=weight_type,
        clusters=clusters,
    )
    _warn_of_equal_rows(*samples)
    seed = check_random_state(random_state)
    rng = np.random.default_rng(seed.randint(2**32, dtype=np.uint64))
    if samples[0].task is None:
        excess = _draws_of_statistics(*samples, weight_type, n_resamples, rng)
    else:
        excess = _draws_of_rows(*samples, weight_type, n_resamples, rng)
    statistic, pvalue, shift = _compared(excess, level)
    resampling = Resampling(n_resamples, seed, importance=weight_type == "importance")
    intervals = {}
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
        intervals[f"{name}_difference"], _ = square_and_add(
            intervals[f"{name}_after"], intervals[f"{name}_before"]
        )
    before, after = samples
    return CalibrationChange(before.n, after.n, statistic, pvalue, shift, **intervals)


def two_samples(
    y_before,
    y_proba_before,
    y_after,
    y_proba_after,
    binning,
    *,
    weight_type="frequency",
    multiclass="auto",
    sample_weight=None,
    clusters=None,
    pos_label=None,
    labels=None,
):
    """Return both samples, checked, from labels and probabilities or from two
    `BinStatistics`.
    """
    if isinstance(y_before, BinStatistics):
        after = y_after
        if after is None:
            after = y_proba_before
        return _two_statistics(
            y_before,
            after,
            weight_type,
            multiclass=multiclass,
            clusters=clusters,
            binning=binning,
            y_proba_after=y_proba_after,
            sample_weight=sample_weight,
        )
    shared_labels = None
    if labels is None:
        shared_labels = _shared_labels(y_before, y_after)
        labels = shared_labels
    weight_before, weight_after = _pair(sample_weight, "sample_weight")
    clusters_before, clusters_after = _pair(clusters, "clusters")
    strategy = check_binning(binning, EqualMass(15))
    reading = {"multiclass": multiclass, "pos_label": pos_label, "labels": labels}
    options = (weight_type, reading, strategy)
    samples = (
        _sample_of_rows(
            "before", y_before, y_proba_before, weight_before, clusters_before, *options
        ),
        _sample_of_rows(
            "after", y_after, y_proba_after, weight_after, clusters_after, *options
        ),
    )
    if shared_labels is not None and pos_label is None and _is_column(y_proba_before):
        hint_at_alphabet(
            np.concatenate([sample.task.scores for sample in samples]),
            np.concatenate([sample.task.labels for sample in samples]),
            shared_labels,
            f"say so: pos_label={str(shared_labels[0])!r}.",
        )
    return samples


def _is_column(y_proba):
    """Return whether probabilities are those of the event alone."""
    shape = y_proba.shape if hasattr(y_proba, "shape") else np.shape(y_proba)
    return len(shape) == 1 or shape[1] == 1


def _two_statistics(before, after, weight_type, **rows):
    """Return both samples as bins, or raise unless the bins are the same and no
    argument is about rows.
    """
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
    samples = []
    for statistics in (before, after):
        bins = counted_rows(BinnedTask(statistics), weight_type).bins
        samples.append(Sample(bins, importance=weight_type == "importance"))
    return tuple(samples)


def _pair(value, name):
    """Return an argument for the rows before and for those after, or raise if it is
    no pair.
    """
    if value is None:
        return None, None
    is_pair = hasattr(value, "__len__") and len(value) == 2
    if not is_pair or value[0] is None or value[1] is None:
        raise ValueError(
            f"{name} must be a pair: that of the rows before and that of the rows"
            " after."
        )
    return value


def _shared_labels(y_before, y_after):
    """Return the two labels that both samples together hold: one of them may hold one
    class. None for more labels, and for those that cannot be sorted.
    """
    try:
        before = np.unique(np.asarray(y_before))
        after = np.unique(np.asarray(y_after))
        labels = np.unique(np.concatenate([before, after]))
    except (TypeError, ValueError):
        return None  # refused later, by the argument
    if len(labels) != 2:
        return None
    return labels.tolist()


def _sample_of_rows(name, y, y_proba, weight, cluster, weight_type, reading, strategy):
    """Return the `Sample` of validated rows; errors name its arguments."""
    if y is None or y_proba is None:
        missing = f"y_{name}" if y is None else f"y_proba_{name}"
        raise ValueError(
            f"{missing} is missing: give labels and probabilities of both samples."
        )
    try:
        data = check_scored_labels(
            y, y_proba, sample_weight=weight, **reading, drop=False
        )
        if cluster is not None:
            names, codes = check_groups(cluster, len(data.scores), name="clusters")
            cluster = names[codes][data.kept]
    except (TypeError, ValueError) as error:  # which of the two samples is wrong
        text = str(error).replace("y_true", f"y_{name}")
        text = text.replace("y_proba", f"y_proba_{name}")
        text = text.replace("sample_weight", f"sample_weight of the sample {name!r}")
        if isinstance(error, TypeError):
            raise TypeError(text) from None
        raise ValueError(text) from None
    rows = counted_rows(data.at(data.kept), weight_type)
    task = one_task(rows, reading["multiclass"])
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
        Sum of the second data set's residuals about a line that is fitted to both.
    weight : ndarray of shape (n_cells,)
        What one more unit of each of its residuals would add to that.
    variance : ndarray of shape (n_cells,) or None
        Its variance; None means that of the draws.
    drawn : ndarray of shape (n_resamples, n_cells)
        Such sums.
    influence : Influence or None
        That of the samples on the mean difference, where rows come in clusters.
    """

    excess: np.ndarray
    weight: np.ndarray
    variance: np.ndarray | None
    drawn: np.ndarray
    influence: Influence | None = None


def _compared(samples, level):
    """Return the statistic, its p-value, and the mean difference of the residuals with
    its limits, of an `_Excess`.
    """
    total = samples.weight.sum()
    if total <= 0:
        raise ValueError(
            "The samples have no scores in common: no cell of neighbouring scores has"
            " rows of both."
        )
    # The standard deviation of the sum of all excesses.
    if samples.variance is None:
        scale = np.sqrt(np.mean(samples.drawn.sum(axis=1) ** 2))
    else:
        scale = np.sqrt(samples.variance.sum())
    estimate = float(samples.excess.sum() / total)
    reason = ""
    if scale < _NO_SPREAD:
        margin = np.nan
        reason = _NO_DIFFERENCES
    elif samples.influence is None:
        margin = float(ndtri((1 + level) / 2) * scale / total)
    else:
        margin, reason = samples.influence.half_width(level)
    shift = IntervalEstimate(
        estimate, estimate - margin, estimate + margin, reason=reason
    )
    if scale < _NO_SPREAD:
        return 0.0, 1.0, shift
    # Kuiper's range of the cumulative excess, observed first and then drawn.
    sums = np.cumsum(np.vstack((samples.excess, samples.drawn)), axis=1)
    statistics = range_of(sums)
    observed = statistics[0]
    n_reached = np.count_nonzero(statistics[1:] >= observed - 1e-9 * scale)
    pvalue = (1 + n_reached) / len(statistics)
    return float(observed / scale), float(pvalue), shift


class _Lines(NamedTuple):
    """Lines through the residuals r = y - s of both samples, one in each cell of
    neighbouring scores.

    Without a line a cell that spans a gap between two groups of scores would compare
    the low scores of one sample with the high ones of the other. With it only what the
    samples differ by at equal scores counts.

    Attributes
    ----------
    mean, slope, centre : ndarray of shape (n_cells,)
        The line is ``mean + slope * (s - centre)``, `mean` and `centre` the means of r
        and s over both samples. The slope is 0 where a cell has one score.
    weight : ndarray of shape (n_cells,)
        What a cell tells about the difference of the samples at equal scores, in rows:
        n0 n1 / (n0 + n1), less the part that the scores explain.
    excess : ndarray of shape (n_cells,)
        Sum of the second sample's residuals about the line: `weight` times the mean
        difference of the samples at equal scores.
    tilt : ndarray of shape (n_cells,)
        Slope of the regression of "belongs to the second sample" on the score: 0 where
        the scores of both samples have the same mean.
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
        # how far the scores of the second sample lie from the common mean
        moved = score[1] - n[1] * centre
        tilt = np.where(has_line, moved / spread, 0.0)
        share = n[0] * n[1] / size
        weight = share - tilt * moved
        # what is left of a share that the scores explain is rounding
        weight = np.where(weight > _NO_SPREAD * np.maximum(share, 1.0), weight, 0.0)
        # what the residuals of the second sample sum to beyond the common line
        excess = residual[1] - n[1] * mean - slope * moved
        return cls(mean, slope, centre, weight, np.where(weight > 0, excess, 0), tilt)


def _draws_of_rows(before, after, weight_type, n_resamples, rng):
    """Return the `_Excess` of two samples of rows, in cells of neighbouring scores.

    Parameters
    ----------
    before, after : Sample
        The samples; `task` holds scores, labels and weights, `cluster` the clusters or
        None.
    weight_type : {"frequency", "importance"}
        Meaning of the weights.
    n_resamples : int
        Number of draws.
    rng : numpy Generator
        Draws them.
    """
    tasks = (before.task, after.task)
    scores = np.concatenate([task.scores.astype(np.float64) for task in tasks])
    labels = np.concatenate([task.labels for task in tasks])
    weight = np.concatenate(
        [weights_or_ones(task.weight, len(task.scores)) for task in tasks]
    )
    is_importance = weight_type == "importance"

    # 1. Cells of neighbouring scores of both samples. `place` is a row's cell in its
    # sample: those of the first come first.
    n_cells = max(1, int(weight.sum() / max(_LEAST_ROWS_A_CELL, weight.sum() ** 0.5)))
    cells, n_cells = mid_rank_cells(scores, n_cells, weight)
    sample = np.repeat([0, 1], [len(task.scores) for task in tasks])
    place = cells + n_cells * sample

    def total(of_rows):
        """Return the sums (2, n_cells) by sample and cell."""
        return np.bincount(place, of_rows, 2 * n_cells).reshape(2, n_cells)

    # 2. A line through the residuals in each cell.
    residual = labels - scores
    n = total(weight)
    lines = _Lines.of_sums(
        n,
        total(weight * scores),
        total(weight * scores**2),
        total(weight * residual),
        total(weight * residual * scores),
    )
    offset = scores - lines.centre[cells]
    residual = residual - lines.mean[cells] - lines.slope[cells] * offset
    size = n.sum(axis=0)  # (n_cells,), as all that follows by cell
    # What a cell would tell about the samples' difference if it had no line: the
    # variance of the excess is then this times that of a residual.
    weight_without_line = n.prod(axis=0) / size

    # 3. The excess of a cell is the sum of w times this coefficient times the residual.
    # The coefficient is what mean and score do not explain of "is of the second
    # sample" (0 or 1). The sum of w times its square is `lines.weight`.
    coefficient = sample - (n[1] / size)[cells] - lines.tilt[cells] * offset
    coefficient[lines.weight[cells] == 0] = 0
    if before.cluster is not None:
        clusters = np.concatenate((before.cluster, after.cluster))
        cluster = np.unique(clusters, return_inverse=True)[1]
        fitted = np.clip(scores + lines.slope[cells] * offset, 0, 1)
        rows = RowsInCells(place[:, None], fitted[:, None], labels[:, None], weight)
        drawn = _dependent_draws(
            rows, n, weight_without_line, lines.mean, cluster, n_resamples, rng
        )
        # These draws know no line: their variance is in proportion to the weight
        # without one, and becomes that of the excess about the line.
        drawn *= np.sqrt(
            np.divide(
                lines.weight,
                weight_without_line,
                out=np.zeros(n_cells),
                where=weight_without_line > 0,
            )
        )
        # The mean difference is the sum of all excesses over that of `lines.weight`. As
        # a weighted mean over the rows, which is what an influence is of, each has this
        # part in it.
        rows_per_weight = weight.sum() / max(lines.weight.sum(), _NO_SPREAD)
        influence = Influence(
            coefficient * residual * rows_per_weight, weight, is_importance, cluster
        )
        return _Excess(lines.excess, lines.weight, None, drawn, influence)

    # 4. The variance of the excess: that of a residual times the sum of w times the
    # squared coefficient; of importance weights, where a row was seen once whatever its
    # weight, of w^2.
    row_squares = weight
    squares = size
    if is_importance:
        row_squares = weight**2
        squares = total(row_squares).sum(axis=0)
    spread = total(weight * residual**2).sum(axis=0)  # sum of squared residuals
    # They were made smaller by the fit of a mean, and of a slope where there is one.
    n_fitted = 1 + (lines.slope != 0)
    degrees = np.maximum(size - n_fitted * squares / size, _NO_SPREAD)
    variance = spread / degrees * total(row_squares * coefficient**2).sum(axis=0)
    if is_importance or (weight % 1).any() or size.max() > _MOST_ROWS_DRAWN:
        drawn = rng.normal(0.0, np.sqrt(variance), (n_resamples, n_cells))
    else:
        events = total(weight * labels).sum(axis=0)
        covariance = total(weight * labels * residual).sum(axis=0)
        drawn = _hypergeometric_draws(n, events, covariance, spread, n_resamples, rng)
        # Rows drawn without replacement from a cell, whatever their scores, give the
        # excess this variance. It becomes that about a line.
        variance_drawn = weight_without_line / np.maximum(size - 1, _NO_SPREAD) * spread
        drawn *= np.sqrt(
            np.divide(
                variance,
                variance_drawn,
                out=np.zeros(n_cells),
                where=variance_drawn > 0,
            )
        )
    return _Excess(lines.excess, lines.weight, variance, drawn)


def _hypergeometric_draws(n, events, covariance, spread, n_resamples, rng):
    """Return drawn excesses (n_resamples, n_cells) of the second data set, whose rows
    in each cell are drawn from those of both.

    Within a cell the residuals are regressed on the labels (0 or 1). The part that the
    labels explain follows from the number of the second sample's events, which is
    hypergeometric; the sum of the rest is drawn as normal.

    Parameters
    ----------
    n : ndarray of shape (2, n_cells)
        Numbers of rows of both samples.
    events, covariance, spread : ndarray of shape (n_cells,)
        Sums over both samples: of the labels, of label times residual (the residuals of
        a cell sum to 0), and of the squared residual.
    n_resamples : int
        Number of draws.
    rng : numpy Generator
        Draws them.
    """
    size = n.sum(axis=0)
    # Sum of squares of the labels about their mean, and the regression's slope: how
    # much the residual of an event is larger than that of a non-event.
    label_squares = events * (size - events) / size
    slope = np.divide(
        covariance, label_squares, out=np.zeros(len(size)), where=label_squares > 0
    )
    shape = (n_resamples, len(size))
    n_events = rng.hypergeometric(
        events.astype(np.int64),
        (size - events).astype(np.int64),
        n[1].astype(np.int64),
        shape,
    )
    # The explained part: the second sample's events beyond their expected number.
    drawn = slope * (n_events - n[1] * events / size)
    # The rest: the regression's residual sum of squares, and from it the variance of a
    # sum of n[1] rows that are drawn without replacement from the cell.
    unexplained = np.maximum(spread - slope * covariance, 0)
    one_less = np.maximum(size - 1, _NO_SPREAD)
    variance = n.prod(axis=0) / size / one_less * unexplained
    drawn += rng.normal(0.0, np.sqrt(variance), shape)
    return drawn


def _dependent_draws(rows, n, share, mean, cluster, n_resamples, rng):
    """Return excesses (n_resamples, n_cells) of labels of both samples that are drawn
    from the event frequencies of both, dependent within clusters.

    Parameters
    ----------
    rows : RowsInCells
        Scores (on the line of their cell), labels and weights. Cell c has the number c
        for rows before, and n_cells + c for rows after.
    n : ndarray of shape (2, n_cells)
        Numbers of rows of both samples.
    share : ndarray of shape (n_cells,)
        n0 n1 / (n0 + n1): the excess is this times the difference of the event
        frequencies.
    mean : ndarray of shape (n_cells,)
        Mean residual of both samples: event frequency less mean score.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster.
    n_resamples : int
        Number of draws.
    rng : numpy Generator
        Seeds the draws.
    """
    deviation = np.tile(mean, 2)
    legacy = np.random.RandomState(rng.integers(2**32))
    cell = rows.cell[:, 0]
    count = n.ravel()
    total = np.bincount(cell, rows.sample_weight * rows.scores[:, 0], n.size)
    mean_score = total / np.maximum(count, _NO_SPREAD)
    cells = Cells.of_scores(mean_score, count, np.zeros(n.size))
    draws = ClusterDraws(cells, rows, deviation, cluster, n_resamples, legacy)
    frequency = np.where(count > 0, np.clip(mean_score + deviation, 0, 1), 0.0)
    # frequencies less their expectation, by draw, sample and cell
    drawn = np.concatenate(list(draws(frequency))) - frequency
    drawn = drawn.reshape(n_resamples, *n.shape)
    return share * np.diff(drawn, axis=1)[:, 0]


def _draws_of_statistics(before, after, weight_type, n_resamples, rng):
    """Return the `_Excess` of bins, whose draws are normal with the residual variance
    of the bin.
    """

    def stacked(name):
        """Return a sum of both samples (2, n_bins)."""
        return np.stack(
            (getattr(before.statistics, name), getattr(after.statistics, name))
        )

    n = stacked("weight")
    squared_weight = n
    if weight_type == "importance":
        squared_weight = stacked("weight_squared")
    score = stacked("weighted_score")
    score_squared = stacked("weighted_score_squared")
    residual = stacked("weighted_label") - score
    residual_score = stacked("weighted_score_label") - score_squared
    lines = _Lines.of_sums(n, score, score_squared, residual, residual_score)
    rows = np.maximum(n, _NO_SPREAD)
    # sums of squared residuals about the mean of their bin and sample, (2, n_bins)
    squares = np.maximum(stacked("residual_square") - residual**2 / rows, 0)
    # Of the residuals' squares each sample has the share that its scores say: a few
    # events say little.
    spread = np.maximum(score - score_squared, 0)
    spread = np.where(spread.sum(axis=0) > 0, spread, rows)
    squares = squares.sum(axis=0) * spread / spread.sum(axis=0)
    # Without a line the excess is this weight times the difference of both means. The
    # variance of a mean is that of a residual, squares / rows, times squared_weight /
    # rows^2.
    weight_without_line = n[0] * (n[1] / rows.sum(axis=0))
    variance = weight_without_line**2 * np.sum(
        squares * squared_weight / rows**3, axis=0
    )
    # About the line it is smaller, as the weight is.
    variance *= np.divide(
        lines.weight,
        weight_without_line,
        out=np.zeros(len(variance)),
        where=weight_without_line > 0,
    )
    drawn = rng.normal(0.0, np.sqrt(variance), (n_resamples, len(variance)))
    return _Excess(lines.excess, lines.weight, variance, drawn)
