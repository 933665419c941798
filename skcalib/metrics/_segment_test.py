"""The worst group: whether any group of the samples is miscalibrated, adjusted for
having looked at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.utils import check_random_state

from skcalib._cells.binned import counted_rows
from skcalib._cells.reductions import one_task
from skcalib._errors.bin_free import range_of
from skcalib._inference.cluster_draws import cluster_correlation
from skcalib._inference.results import ResultRecord, ResultTable, html_table
from skcalib._input.columns import table_columns
from skcalib._input.label_weights import (
    FEWEST_EVENTS,
    check_weight_type,
    is_importance,
    warn_of_counts,
)
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.sklearn_private import safe_indexing
from skcalib._progress import Progress
from skcalib._rows.blocks import effective_size, taken, weights_or_ones
from skcalib._rows.sorting import distinct_values, mid_rank_cells
from skcalib._verdicts import count_words, pvalue_words, rounded, sentences_html
from skcalib.metrics._segment_columns import split_column

if TYPE_CHECKING:
    from pandas import DataFrame

# The cumulative differences of a segment are taken at no more than this many scores.
_MOST_SCORE_CELLS = 64
# Below this p-value the sentence of a result names a segment.
_LEVEL = 0.05
# Weights repeat rows in memory, up to this number.
_MOST_REPEATED = 10**8
ALL_ROWS = "all rows"  # the name of the segment of all samples


@dataclass(frozen=True, eq=False, repr=False)
class SegmentTable(ResultTable):
    """Table of the groups of `segment_calibration_test`, by decreasing statistic.

    Parameters
    ----------
    segment : ndarray of str objects
        Descriptions of the groups as conditions that select exactly their rows.
    n : ndarray of int
        Number of samples.
    mean_score, event_frequency, bias : ndarray of float
        Means of the scores and of the labels, and their difference, which is positive
        if the scores are too high.
    statistic : ndarray of float
        Range of the cumulative sums of residuals, divided by their standard deviation.
    adjusted_pvalue : ndarray of float
        P-value, adjusted for all groups.
    """

    segment: np.ndarray
    n: np.ndarray
    mean_score: np.ndarray
    event_frequency: np.ndarray
    bias: np.ndarray
    statistic: np.ndarray
    adjusted_pvalue: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SegmentTestResult(ResultRecord):
    """Result of `segment_calibration_test`; unpacks as ``statistic, pvalue, segments``.

    Parameters
    ----------
    statistic : float
        The largest statistic of all groups.
    pvalue : float
        Probability of a statistic at least as large if the scores are calibrated.
    segments : SegmentTable
        All groups.
    """

    statistic: float
    pvalue: float
    segments: SegmentTable

    def to_frame(self) -> DataFrame:
        """Return the table of the groups as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per group, in decreasing order of the statistic.
        """
        return self.segments.to_frame()

    def _sentences(self):
        """Say whether any group is miscalibrated, and name the worst one."""
        table = self.segments
        worst = table.segment[0]
        n = len(table)
        if np.isnan(self.pvalue):
            lack = f"None of the {n} groups has" if n > 1 else "The only group lacks"
            return (
                f"{lack} an effective number of at least {count_words(FEWEST_EVENTS)}"
                " events and as many non-events; the test requires this if the weight"
                " that a row would have with the opposite label is unknown."
            )
        shown = f"adjusted {pvalue_words(self.pvalue)}"
        if self.pvalue < _LEVEL:
            if worst == ALL_ROWS:
                return (
                    f"Miscalibrated in the data as a whole ({shown})"
                    f"{_more_clearly_than(n - 1)}."
                )
            return (
                f"Miscalibrated where {worst} ({shown}), the clearest of {n} groups:"
                f" mean score {rounded(table.mean_score[0])} against event frequency"
                f" {rounded(table.event_frequency[0])}."
            )
        if n == 1:
            where = "in the data as a whole" if worst == ALL_ROWS else f"where {worst}"
            return f"No miscalibration is detectable {where} ({shown})."
        return (
            f"No miscalibration is detectable in any of the {n} groups ({shown} for the"
            f" clearest, {worst})."
        )

    def _repr_html_(self):
        return sentences_html(self._sentences()) + html_table(self.segments.columns())


def _more_clearly_than(n_segments):
    """Return the words that compare all samples with their segments."""
    if n_segments == 0:
        return ""
    if n_segments == 1:
        return ", more clearly than in the only group"
    return f", more clearly than in any of the {n_segments:,} groups"


def segment_calibration_test(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    X: Any,
    *,
    max_depth: int = 2,
    max_bins: int = 8,
    min_size: int = 50,
    n_resamples: int = 999,
    multiclass: Literal["auto", "top_label"] = "auto",
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = False,
) -> SegmentTestResult:
    """Test whether any group of the data is miscalibrated, and find the worst one.

    Groups are the whole data set, the parts of each column, and their intersections.
    The p-value is the probability, for calibrated scores, that the largest statistic of
    any group is at least as large as the observed one. It is valid for any number of
    groups and samples.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    X : array-like or DataFrame of shape (n, n_columns)
        Columns, of any type, in which to search for groups: numbers and dates are cut
        at quantiles, and each of the most frequent categories forms a part. Missing
        values form a separate part.
    max_depth : int, default=2
        Maximum number of columns to combine.
    max_bins : int, default=8
        Maximum number of parts of a column, not counting missing values; at least 2.
    min_size : int, default=50
        Groups with fewer samples are ignored.
    n_resamples : int, default=999
        Number of label vectors drawn. The smallest possible p-value is
        ``1 / (n_resamples + 1)``.
    multiclass : {"auto", "top_label"}, default="auto"
        "auto" evaluates the positive class for one or two columns; for more, it means
        "top_label".
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": the number of times that each sample is
        repeated (whole numbers). "importance": each sample was observed once and
        represents more or less than one (to correct for the sampling design or for
        covariate shift).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: samples in the same cluster (for example, from one
        patient or match) may be dependent.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.
    verbose : bool, default=False
        Whether to write the number of completed draws to standard error.

    Returns
    -------
    result : SegmentTestResult
        `statistic`, `pvalue` and `segments`, in this order when unpacked. The first two
        are those of the first row of the table `segments`:
        `segment, n, mean_score, event_frequency, bias, statistic, adjusted_pvalue`.

    Raises
    ------
    ValueError
        If labels, probabilities, columns or parameters are inconsistent, or if weights
        are not whole numbers and ``weight_type="frequency"``.

    See Also
    --------
    calibration_by_group : Bias and error for given groups.
    skcalib.MulticalibratedRecalibrator : Recalibrates the groups found by this test.

    Notes
    -----
    The statistic of a group is the range of the cumulative sums of y - s, in the
    order of the scores, divided by ``sqrt(sum(s * (1 - s)) + 1)``. The statistic is
    large for scores that are too high, too low, or too extreme. Labels are drawn from
    the scores, with the same label vector for all groups, which takes their overlap
    into account. Adjusted p-values come from the step-down maxT method [1]_: at each
    level, the probability that any calibrated group is declared miscalibrated is at
    most that level.

    With `clusters`, labels are drawn with the within-cluster dependence estimated from
    the residuals y - s; see `calibration_test`. The level is then approximate, and the
    test may reject too often if fewer than about 40 events are expected.

    An intersection with the same samples as one of its parts is omitted. Weighted
    samples are repeated in memory. Importance weights are multiplied by the ratio of
    their mean to their mean square, and so are the residuals; `n` and `min_size` count
    samples. If the weight of the other label is known, labels are drawn as the sample
    holds them, each with the weight of its label, and the terms s (1 - s) are
    multiplied by both weights. Otherwise, residuals are multiplied by random signs, s
    (1 - s) becomes the squared residual, and groups with fewer than 20 effective events
    or non-events have a p-value of NaN.

    References
    ----------
    .. [1] Westfall and Young (1993), Resampling-based multiple testing.

    Examples
    --------
    The scores are calibrated in the north and too low in the south:

    >>> import numpy as np
    >>> from skcalib.metrics import segment_calibration_test
    >>> rng = np.random.default_rng(0)
    >>> age, region = (
    ...     rng.integers(20, 70, 2000),
    ...     np.where(rng.random(2000) < 0.5, "north", "south"),
    ... )
    >>> y_proba = rng.uniform(0.1, 0.6, 2000)
    >>> y_true = rng.random(2000) < y_proba + 0.15 * (region == "south")
    >>> X = np.array(list(zip(age, region)), dtype=object)
    >>> result = segment_calibration_test(y_true, y_proba, X, random_state=0)
    >>> result.segments.segment[0], result.pvalue
    ('x1 = south', 0.001)
    """
    max_depth = check_int(max_depth, "max_depth")
    min_size = check_int(min_size, "min_size")
    max_bins = check_int(max_bins, "max_bins", minimum=2)
    n_resamples = check_int(n_resamples, "n_resamples")
    check_weight_type(weight_type)
    data = check_scored_labels(
        y_true,
        y_proba,
        multiclass=multiclass,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        drop=False,
    )
    task = one_task(data, multiclass)
    n_rows = len(task.scores)
    # The index of the samples to test: with frequency weights each is repeated, with
    # importance weights those of weight 0 are left out.
    if sample_weight is None or not is_importance(weight_type):
        rows = _repeated_rows(data.sample_weight, n_rows)
        warn_of_counts(data.labels, data.sample_weight)
        weight = None
    else:
        rows = data.kept
        data = counted_rows(data, weight_type)
        task = one_task(data, multiclass)
        weight = data.label_weights[rows]
    scores = task.scores.astype(np.float64)[rows]
    labels = np.asarray(task.labels, dtype=bool)[rows]
    cluster = None
    if clusters is not None:
        _, cluster = check_groups(clusters, n_rows, name="clusters")
        cluster = cluster[rows]
    # Without weights the rows are all samples: the columns need not be indexed.
    indexed_rows = None if sample_weight is None else rows
    columns = _split_columns(X, n_rows, indexed_rows, max_bins)
    segments = _Segments(columns, scores, weight, max_depth, min_size, labels)
    seed = check_random_state(random_state).randint(2**32, dtype=np.uint64)
    if weight is None:
        draws = _LabelDraws(scores, labels, cluster, seed)
    else:
        draws = _ResidualDraws(scores, labels, weight, cluster, seed)
    observed = segments.statistics(draws.observed)  # (n_segments,)
    drawn = np.empty((n_resamples, len(observed)))
    progress = Progress("segment_calibration_test", verbose)
    for k in range(n_resamples):
        progress(
            f"{k:,} of {n_resamples:,} draws, {len(observed):,} groups",
            k / n_resamples,
        )
        drawn[k] = segments.statistics(draws.draw())
    # The largest statistic first. Segments in which the observed residuals say too
    # little come last, without a p-value.
    order = np.lexsort((-observed, ~segments.has_events))
    n_tested = np.count_nonzero(segments.has_events)
    tested = order[:n_tested]
    adjusted = np.full(len(observed), np.nan)
    adjusted[:n_tested] = _step_down(observed[tested], drawn[:, tested])
    mean_score, frequency = segments.means(labels)
    table = SegmentTable(
        segment=np.array(segments.words, dtype=object)[order],
        n=segments.n[order],
        mean_score=mean_score[order],
        event_frequency=frequency[order],
        bias=(mean_score - frequency)[order],
        statistic=observed[order],
        adjusted_pvalue=adjusted,
    )
    return SegmentTestResult(float(table.statistic[0]), float(adjusted[0]), table)


class _LabelDraws:
    """Random labels drawn from the scores.

    With clusters, labels are drawn from a normal copula with one factor: a label is an
    event if a standard normal number lies below the normal quantile of its score, and
    the numbers of samples in one cluster have a common correlation, which is estimated
    from the residuals.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Event probabilities.
    labels : ndarray of bool, shape (n,)
        Observed labels.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster.
    seed : int
        Seed of the random numbers.

    Attributes
    ----------
    observed : ndarray of int
        Positions of the observed events.
    """

    def __init__(self, scores, labels, cluster, seed):
        self.observed = np.flatnonzero(labels)
        self._scores = scores
        self._cluster = cluster
        # SFC64 is faster than NumPy's default generator.
        self._rng = np.random.Generator(np.random.SFC64(seed))
        if cluster is None:
            return
        # The correlation is that of the residuals after a common bias is removed.
        fitted = np.clip(scores + (labels - scores).mean(), 0, 1)
        _, code = distinct_values(cluster)
        self._correlation = cluster_correlation(
            fitted, labels, np.ones(len(scores)), code
        )
        self._normal_quantile = ndtri(scores)

    def draw(self):
        """Return the positions of the events of the next draw."""
        return np.flatnonzero(self._labels())

    def _labels(self):
        """Return the next draw: a boolean label for each sample, (n,)."""
        n_rows = len(self._scores)
        if self._cluster is None:
            return self._rng.random(n_rows) < self._scores
        # One-factor Gaussian copula: a factor that the samples of a cluster share, and
        # independent noise. Their sum is standard normal, so that it lies below the
        # normal quantile of a score with the probability of that score.
        n_clusters = self._cluster.max() + 1
        factor = self._rng.standard_normal(n_clusters)[self._cluster]
        noise = self._rng.standard_normal(n_rows)
        rho = self._correlation
        latent = rho**0.5 * factor + (1 - rho) ** 0.5 * noise
        return latent < self._normal_quantile


class _ResidualDraws:
    """Random weighted residuals w (y - s) of rows with weights of importance.

    Labels are drawn with their frequencies in the sample, each with the weight of its
    label. Where the weight of the other label is unknown, or rows depend on each other,
    the observed residuals of each row or cluster are multiplied by a random sign.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Event probabilities.
    labels : ndarray of bool, shape (n,)
        Observed labels.
    label_weights : LabelWeights
        The weights.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster.
    seed : int
        Seed of the random numbers.

    Attributes
    ----------
    observed : ndarray of float, shape (n,)
        The observed weighted residuals.
    """

    def __init__(self, scores, labels, label_weights, cluster, seed):
        self.observed = label_weights.weight * (labels - scores)
        self._rng = np.random.Generator(np.random.SFC64(seed))
        # Without clusters, each row is a cluster of its own.
        self._cluster = np.arange(len(scores))
        if cluster is not None:
            _, self._cluster = distinct_values(cluster)
        # Probability of the event in the sample; None if labels cannot be drawn.
        self._probability = None
        if label_weights.is_known and cluster is None:
            self._probability, with_event, without_event = (
                label_weights.event_probability(scores, labels)
            )
            self._residual_of_event = with_event * (1 - scores)
            self._residual_of_non_event = -without_event * scores

    def draw(self):
        """Return the weighted residuals (n,) of the next draw."""
        if self._probability is None:
            # A wild bootstrap: each cluster keeps or changes the sign of its residuals.
            bits = self._rng.integers(0, 2, self._cluster.max() + 1)
            signs = 2.0 * bits - 1.0
            return signs[self._cluster] * self.observed
        is_event = self._rng.random(len(self._probability)) < self._probability
        return np.where(is_event, self._residual_of_event, self._residual_of_non_event)


def _split_columns(X, n_rows, rows, max_bins):
    """Return the columns of a table X as `SplitColumn`, of all samples or of `rows`. X
    must have `n_rows` rows.
    """
    columns = []
    for name, column in table_columns(X).items():
        if len(column) != n_rows:
            raise ValueError(
                f"X has {len(column)} rows but y_proba has {n_rows}: their lengths must"
                " agree."
            )
        if rows is not None:
            column = safe_indexing(column, rows)
        columns.append(split_column(column, name, max_bins))
    return columns


def _repeated_rows(sample_weight, n_rows):
    """Return an index that repeats each sample by its weight, or a slice of all without
    weights. Raise unless the weights are whole numbers with a sum that fits into
    memory.
    """
    if sample_weight is None:
        return slice(None)
    fractions = np.flatnonzero(sample_weight % 1)
    if len(fractions) > 0:
        raise ValueError(
            "sample_weight must be whole numbers, because labels are drawn row by row:"
            f" row {fractions[0]} has "
            f'{sample_weight[fractions[0]]}. Use weight_type="importance" for weights'
            " that correct for sampling."
        )
    if sample_weight.sum() > _MOST_REPEATED:
        raise ValueError(
            f"sample_weight adds up to {sample_weight.sum():.3g}, and each row is"
            " repeated in memory as often as its weight says: scale the weights down,"
            " or use a subsample of the rows, so that the sum is at most"
            f" {_MOST_REPEATED:.0e}."
        )
    return np.repeat(np.arange(n_rows), sample_weight.astype(np.int64))


def _step_down(observed, drawn):
    """Return adjusted p-values (m,) by the step-down maxT method (Westfall and Young,
    1993): each of the decreasing `observed` is compared with the largest `drawn`
    (n_draws, m) of its and all later segments.
    """
    # A running maximum from the last segment to the first, (n_draws, m).
    last_first = drawn[:, ::-1]
    largest_of_rest = np.maximum.accumulate(last_first, axis=1)[:, ::-1]
    # Labels that give the same sums may differ in the last digit of the statistic.
    is_reached = largest_of_rest >= observed * (1 - 1e-12) - 1e-12
    n_reached = np.count_nonzero(is_reached, axis=0)
    # The observed labels count as one more draw.
    pvalues = (1 + n_reached) / (len(drawn) + 1)
    # No p-value is below that of a larger statistic.
    return np.maximum.accumulate(pvalues)


class _Crossing(NamedTuple):
    """The segments that combine the same columns.

    Attributes
    ----------
    segments : slice
        Their positions among all segments.
    codes : ndarray of int, shape (n,)
        For each sample ``number * n_score_cells + cell``, where `number` is that of its
        segment, counted from 0 within the crossing, and `cell` is the cell of its
        score. A sample of no segment has the number of segments as its `number`.
    """

    segments: slice
    codes: np.ndarray


class _Segments:
    """All segments with enough samples: the whole data set, the parts of each column,
    and intersections of parts of several columns.

    Parameters
    ----------
    columns : list of SplitColumn
        The columns, split into parts.
    scores : ndarray of shape (n,)
        Event probabilities.
    label_weights : LabelWeights or None
        Weights of importance; None where rows count alike.
    max_depth : int
        Largest number of columns that are combined.
    min_size : int
        Smallest number of samples of a segment.
    labels : ndarray of bool, shape (n,)
        Observed labels.

    Attributes
    ----------
    keys : list of tuple
        For each segment its pairs of (number of the column, number of the part).
    words : list of str
        Each segment in words.
    n : ndarray of int, shape (n_segments,)
        Numbers of samples.
    has_events : ndarray of bool, shape (n_segments,)
        Whether the observed squares of residuals, where these are needed, rest on 20
        effective events and as many non-events.
    """

    def __init__(self, columns, scores, label_weights, max_depth, min_size, labels):
        self.columns = columns
        self.scores = scores
        # Cumulative differences are taken over cells of nearly equal scores: the cell
        # of each sample, (n,), in increasing order of the scores.
        self.score_cell, self.n_score_cells = mid_rank_cells(scores, _MOST_SCORE_CELLS)
        sizes = self._sizes(min(max_depth, len(columns)), min_size)
        self.keys = list(sizes)
        self.n = np.array(list(sizes.values()))
        self.words = []
        for key in self.keys:
            conditions = []
            for column, part in key:
                conditions.append(columns[column].words[part])
            # The whole data set has no condition.
            self.words.append(" and ".join(conditions) or ALL_ROWS)
        self.crossings = self._crossings()  # one for each combination of columns
        self.weight = None
        variance_of_row = scores * (1 - scores)
        self.total = self.n  # total weight of each segment, (n_segments,)
        self.has_events = np.ones(len(self.n), dtype=bool)
        if label_weights is not None:
            self.weight = label_weights.weight
            self.total = self._cell_sums(self.weight).sum(axis=1)
            variance_of_row = label_weights.variance(scores, labels)
            if not label_weights.is_known:
                # The variance is then estimated by the observed squares of residuals.
                self.has_events = self._have_events(labels)
        # Expected events by segment and score cell, (n_segments, n_score_cells).
        self.expected = self._cell_sums(
            weights_or_ones(self.weight, len(scores)) * scores
        )
        # Standard deviation of the number of events of a segment, (n_segments,), under
        # calibration; 1 is added to the variance for tiny segments.
        self.scale = np.sqrt(self._cell_sums(variance_of_row).sum(axis=1) + 1)

    def _have_events(self, labels):
        """Return whether each segment has enough effective events and non-events: the
        effective number for weights w is sum(w)^2 / sum(w^2).
        """
        enough = np.ones(len(self.n), dtype=bool)
        for in_class in (labels, ~labels):
            weight = self.weight * in_class
            total = self._cell_sums(weight).sum(axis=1)
            squares = self._cell_sums(weight**2).sum(axis=1)
            enough &= effective_size(total, squares) >= FEWEST_EVENTS * (1 - 1e-9)
        return enough

    def statistics(self, drawn):
        """Return the statistic of each segment (n_segments,), the range of its
        cumulative differences over the standard deviation of its events, for the
        indices of events, or weighted residuals (n,), `drawn`.
        """
        # Differences of observed and expected events by segment and score cell.
        if drawn.dtype.kind == "f":  # weighted residuals
            differences = self._cell_sums(drawn)
        else:
            differences = self._event_counts(drawn) - self.expected
        return range_of(np.cumsum(differences, axis=1)) / self.scale

    def means(self, labels):
        """Return the mean score and the event frequency of each segment, both
        (n_segments,), for boolean labels (n,).
        """
        counts = self._event_counts(np.flatnonzero(labels))
        mean_score = self.expected.sum(axis=1) / self.total
        return mean_score, counts.sum(axis=1) / self.total

    def _event_counts(self, events):
        """Return the (weighted) number of events in each segment and score cell;
        `events` are indices of samples.
        """
        return self._cell_sums(taken(self.weight, events), events)

    def _cell_sums(self, values, rows=slice(None)):
        """Return sums of `values`, or counts for None, over the `rows` of each segment
        and score cell (n_segments, n_score_cells).
        """
        sums = np.empty((len(self.keys), self.n_score_cells))
        for segments, codes in self.crossings:
            # The last row is for the samples of no segment, and is dropped.
            n_rows = segments.stop - segments.start + 1
            cells = np.bincount(
                codes[rows], values, minlength=n_rows * self.n_score_cells
            )
            sums[segments] = cells.reshape(n_rows, self.n_score_cells)[:-1]
        return sums

    def _sizes(self, depth, min_size):
        """Return the segments' numbers of samples by key: pairs (number of the column,
        of its part), for up to `depth` columns; the empty key, all samples, comes
        first. A segment is left out if dropping one of its conditions adds no samples.
        """
        sizes = {(): len(self.scores)}  # of all, also those that are left out
        distinct = dict(sizes)
        for n_columns in range(1, depth + 1):
            for columns in combinations(range(len(self.columns)), n_columns):
                # The number of samples in each combination of parts: one axis a column.
                shape = [len(self.columns[j].words) for j in columns]
                codes = self._combination_codes(columns)
                counts = np.bincount(codes, minlength=np.prod(shape)).reshape(shape)
                for parts in np.argwhere(counts >= min_size).tolist():
                    key = tuple(zip(columns, parts, strict=True))
                    size = int(counts[tuple(parts)])
                    sizes[key] = size
                    # A wider segment leaves out one condition. It contains this one, so
                    # that with the same size it has the same samples.
                    wider_keys = [key[:k] + key[k + 1 :] for k in range(n_columns)]
                    if all(sizes[wider] != size for wider in wider_keys):
                        distinct[key] = size
        return distinct

    def _combination_codes(self, columns):
        """Return the number of each sample's combination of parts (n,) of some columns,
        as `numpy.ravel_multi_index` has it.
        """
        codes = np.zeros(len(self.scores), dtype=np.int64)
        for j in columns:
            codes = codes * len(self.columns[j].words) + self.columns[j].codes
        return codes

    def _crossings(self):
        """Return a list with a `_Crossing` for each set of columns that segments
        combine.
        """
        crossings = []
        first = 0  # position of the crossing's first segment among all
        # Segments of the same columns follow each other.
        for columns, keys in groupby(self.keys, lambda key: [j for j, _ in key]):
            keys = list(keys)
            n_segments = len(keys)
            # The number of the segment for each combination of parts; for one that is
            # no segment, the number of segments.
            shape = [len(self.columns[j].words) for j in columns]
            number_of = np.full(shape, n_segments)
            for number, key in enumerate(keys):
                parts = tuple(part for _, part in key)
                number_of[parts] = number
            number_of_row = number_of.ravel()[self._combination_codes(columns)]
            codes = number_of_row * self.n_score_cells + self.score_cell
            # The smallest type that holds the codes, to save memory.
            dtype = np.min_scalar_type((n_segments + 1) * self.n_score_cells)
            segments = slice(first, first + n_segments)
            crossings.append(_Crossing(segments, codes.astype(dtype)))
            first += n_segments
        return crossings
