"""The worst segment: whether any segment of the samples is miscalibrated, adjusted for
having looked at all of them.
"""

from dataclasses import dataclass
from html import escape
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.utils import check_random_state

from skcalib._cells.reductions import counted_rows, one_task
from skcalib._errors.bin_free import range_of
from skcalib._inference.count_draws import cluster_correlation
from skcalib._inference.results import ResultTable
from skcalib._input.columns import table_columns
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_int, check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.sklearn_private import safe_indexing
from skcalib._progress import Progress
from skcalib._rows.blocks import taken
from skcalib._rows.sorting import mid_rank_cells
from skcalib._verdicts import pvalue_words
from skcalib.metrics._segment_columns import split_column

if TYPE_CHECKING:
    from pandas import DataFrame

# The cumulative differences of a segment are taken at no more than this many scores.
_MOST_SCORE_CELLS = 64
# Below this p-value the sentence of a result names a segment.
_LEVEL = 0.05
# Weights repeat rows in memory: up to so many.
_MOST_REPEATED = 10**8


@dataclass(frozen=True, eq=False, repr=False)
class SegmentTable(ResultTable):
    """Table of the segments of `segment_calibration_test`, by decreasing statistic.

    Parameters
    ----------
    segment : ndarray of str objects
        Descriptions of the segments as conditions that select exactly their rows.
    n : ndarray of int
        Number of samples.
    mean_score, event_frequency, bias : ndarray of float
        Means of the scores and of the labels, and their difference, which is positive
        if the scores are too high.
    statistic : ndarray of float
        Range of the cumulative sums of residuals, divided by their standard deviation.
    adjusted_pvalue : ndarray of float
        P-value, adjusted for all segments.
    """

    segment: np.ndarray
    n: np.ndarray
    mean_score: np.ndarray
    event_frequency: np.ndarray
    bias: np.ndarray
    statistic: np.ndarray
    adjusted_pvalue: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SegmentTestResult:
    """Result of `segment_calibration_test`; unpacks as ``statistic, pvalue, segments``.

    Parameters
    ----------
    statistic : float
        The largest statistic of all segments.
    pvalue : float
        Probability of a statistic at least as large if the scores are calibrated.
    segments : SegmentTable
        All segments.
    """

    statistic: float
    pvalue: float
    segments: SegmentTable

    def to_frame(self) -> "DataFrame":
        """Return the table of the segments as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            One row per segment, in decreasing order of the statistic.
        """
        return self.segments.to_frame()

    def __iter__(self):
        return iter((self.statistic, self.pvalue, self.segments))

    def __repr__(self):
        return f"{self._headline()}\n{self.segments!r}"

    def __str__(self):
        worst = self.segments.segment[0]
        n = len(self.segments)
        shown = f"adjusted {pvalue_words(self.pvalue)}"
        if self.pvalue < _LEVEL:
            return (
                f"The scores are not calibrated in {worst}, the clearest of {n}"
                f" segments ({shown})."
            )
        return (
            f"No miscalibration is detectable in any of {n} segments ({shown} of the"
            f" clearest, {worst})."
        )

    def _repr_html_(self):
        table = self.segments._repr_html_()
        return f"<p>{self._headline()}</p>{table}<p>{escape(str(self))}</p>"

    def _headline(self):
        """Return the line above the table."""
        return (
            f"SegmentTestResult(statistic={self.statistic:.4g},"
            f" pvalue={self.pvalue:.4g})"
        )


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
    weight_type: Literal["frequency", "importance"] = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = False,
) -> SegmentTestResult:
    """Test whether any segment of the data is miscalibrated, and find the worst.

    Segments are the whole data set, the parts of each column, and their intersections.
    The p-value is the probability, for calibrated scores, that the largest statistic of
    any segment is at least as large as the observed one. It is valid for any number of
    segments and samples.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    X : array-like or DataFrame of shape (n, n_columns)
        Columns, of any type, in which to search for segments: numbers and dates are cut
        at quantiles, and each of the most frequent categories forms a part. Missing
        values form a separate part.
    max_depth : int, default=2
        Maximum number of columns to combine.
    max_bins : int, default=8
        Maximum number of parts of a column, not counting missing values; at least 2.
    min_size : int, default=50
        Segments with fewer samples are ignored.
    n_resamples : int, default=999
        Number of label vectors drawn. The smallest possible p-value is
        ``1 / (n_resamples + 1)``.
    multiclass : {"auto", "top_label"}, default="auto"
        "auto" is the positive class for one or two columns, and "top_label" for more.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        Meaning of the weights. "frequency": the number of times that each sample is
        repeated (whole numbers). "importance": each sample was observed once and
        represents more or less than one (a sampling correction, a covariate shift).
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: samples of one cluster (a patient, a match) may be
        dependent.
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
    skcalib.MulticalibratedRecalibrator : Recalibrates the segments found by this test.

    Notes
    -----
    The statistic of a segment is the range of the cumulative sums of y - s, in the
    order of the scores, divided by ``sqrt(sum(s * (1 - s)) + 1)``. The statistic is
    large for scores that are too high, too low, or too extreme. Labels are drawn from
    the scores, with the same label vector for all segments, which takes their overlap
    into account. Adjusted p-values come from the step-down maxT method [1]_: at each
    level, the probability that any calibrated segment is declared miscalibrated is at
    most that level.

    With `clusters`, labels are drawn with the within-cluster dependence estimated from
    the residuals y - s; see `calibration_test`. The level is then approximate, and the
    test may reject too often if fewer than about 40 events are expected.

    An intersection with the same rows as one of its parts is omitted. Weighted rows are
    repeated in memory. Importance weights are multiplied by the ratio of their mean to
    their mean square. The residuals are multiplied by the resulting weights, and the
    terms s (1 - s) by the squares of these weights; `n` and `min_size` count rows.

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
    check_option(weight_type, "weight_type", ("frequency", "importance"))
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
    if sample_weight is None or weight_type == "frequency":
        rows = _repeated_rows(data.sample_weight, n_rows)
        weight = None
    else:
        rows = data.kept
        weight = counted_rows(data, weight_type).sample_weight[rows]
    scores = task.scores.astype(np.float64)[rows]
    events = np.asarray(task.labels, dtype=bool)[rows]
    cluster = None
    if clusters is not None:
        _, cluster = check_groups(clusters, n_rows, name="clusters")
        cluster = cluster[rows]
    # The columns are indexed only where some rows are left out or repeated.
    tested_rows = None
    if sample_weight is not None:
        tested_rows = rows
    columns = _split_columns(X, n_rows, tested_rows, max_bins)
    segments = _Segments(columns, scores, weight, max_depth, min_size)
    observed = segments.statistics(np.flatnonzero(events))
    seed = check_random_state(random_state).randint(2**32, dtype=np.uint64)
    draws = _LabelDraws(scores, events, weight, cluster, seed)
    drawn = np.empty((n_resamples, len(observed)))
    progress = Progress("segment_calibration_test", verbose)
    for number, statistics in enumerate(drawn):
        progress(
            f"{number:,} of {n_resamples:,} draws, {len(observed):,} segments",
            number / n_resamples,
        )
        statistics[:] = segments.statistics(np.flatnonzero(draws.events()))
    order = np.argsort(-observed, kind="stable")  # the largest statistic first
    adjusted = _step_down(observed[order], drawn[:, order])
    mean_score, frequency = segments.means(events)
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
    """Draws of the labels from the scores; with clusters the labels of a cluster depend
    on each other as the residuals do, by a normal copula with one factor (see
    `ClusterDraws`).

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Event probabilities.
    events : ndarray of bool, shape (n,)
        Observed labels.
    weight : ndarray of shape (n,) or None
        Weights.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster.
    seed : int
        Seed of the random numbers.
    """

    def __init__(self, scores, events, weight, cluster, seed):
        self._scores = scores
        self._cluster = cluster
        # a faster generator than NumPy's default
        self._rng = np.random.Generator(np.random.SFC64(seed))
        if cluster is None:
            return
        if weight is None:
            weight = np.ones(len(scores))
        # How much the labels of a cluster depend on each other: their residuals about
        # the mean, by codes of the clusters that are present.
        residual = events - scores
        residual -= np.average(residual, weights=weight)
        _, code = np.unique(cluster, return_inverse=True)
        self._correlation = cluster_correlation(scores, residual, weight, code)
        # A label is an event where the row's normal deviate lies below this.
        self._quantile = ndtri(scores)

    def events(self):
        """Return whether each sample is an event in the next draw, (n,)."""
        n_rows = len(self._scores)
        if self._cluster is None:
            return self._rng.random(n_rows) < self._scores
        n_clusters = self._cluster.max() + 1
        of_clusters = self._rng.standard_normal(n_clusters)[self._cluster]
        of_rows = self._rng.standard_normal(n_rows)
        deviate = self._correlation**0.5 * of_clusters
        deviate += (1 - self._correlation) ** 0.5 * of_rows
        return deviate < self._quantile


def _split_columns(X, n_rows, rows, max_bins):
    """Return the columns of a table X as a list of `SplitColumn`: of all samples if
    `rows` is None, else of those rows. X must have `n_rows` rows.
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
    """Return the samples that the test is about, as an index: each as often as its
    weight (n,) says, or all of them once without weights. Raise for weights that are no
    integers.
    """
    if sample_weight is None:
        return slice(None)
    fractions = np.flatnonzero(sample_weight % 1)
    if len(fractions):
        raise ValueError(
            "sample_weight must be whole numbers, because labels are drawn row by row:"
            f" row {fractions[0]} has "
            f'{sample_weight[fractions[0]]}. Use weight_type="importance" for weights'
            " that correct for sampling."
        )
    if sample_weight.sum() > _MOST_REPEATED:
        raise ValueError(
            f"sample_weight adds up to {sample_weight.sum():.3g} rows, but the rows are"
            " repeated in memory: divide the weights, or use a subsample of the rows,"
            f" so that the sum is at most {_MOST_REPEATED:.0e}."
        )
    return np.repeat(np.arange(n_rows), sample_weight.astype(np.int64))


def _step_down(observed, drawn):
    """Return adjusted p-values (m,) by step-down maxima (Westfall and Young, 1993).

    `observed` (m,) are the statistics of the segments in falling order, `drawn`
    (n_draws, m) those of drawn labels.
    """
    # The largest drawn statistic among each segment and those after it.
    reversed_maxima = np.maximum.accumulate(drawn[:, ::-1], axis=1)
    largest_of_rest = reversed_maxima[:, ::-1]
    # Labels that give the same sums may differ in the last digit of the statistic.
    is_reached = largest_of_rest >= observed * (1 - 1e-12) - 1e-12
    exceeding = np.count_nonzero(is_reached, axis=0)
    # The observed labels count as one more draw, and no p-value is below that of a
    # larger statistic.
    return np.maximum.accumulate((1 + exceeding) / (len(drawn) + 1))


class _Segments:
    """All segments of the samples: the parts of columns, and of their crossings, that
    hold enough samples, the whole first.

    Parameters
    ----------
    columns : list of SplitColumn
        The columns, split into parts.
    scores : ndarray of shape (n,)
        Event probabilities.
    weight : ndarray of shape (n,) or None
        Importance weights.
    max_depth : int
        Largest number of columns that are crossed.
    min_size : int
        Smallest number of samples of a segment.

    Attributes
    ----------
    keys : list of tuple
        For each segment its pairs of (number of the column, number of the part).
    words : list of str
        Each segment in words.
    n : ndarray of int, shape (n_segments,)
        Numbers of samples.
    """

    def __init__(self, columns, scores, weight, max_depth, min_size):
        self.columns = columns
        self.scores = scores
        self.weight = weight
        # the cell of each score, (n,), in which cumulative differences are taken
        self.score_cell, self.n_score_cells = mid_rank_cells(scores, _MOST_SCORE_CELLS)
        depth = min(max_depth, len(columns))
        sizes = self._sizes(depth, min_size)
        self.keys = list(sizes)
        self.n = np.array(list(sizes.values()))
        self.words = []
        for key in self.keys:
            conditions = [columns[j].words[part] for j, part in key]
            self.words.append(" and ".join(conditions) or "all rows")
        # For each crossing of columns the slice of its segments, and the number of the
        # (segment, score cell) of each sample, (n,); see `_tables`.
        self.tables = list(self._tables())
        # Sums over the rows of each segment: expected events by score cell
        # (n_segments, n_score_cells), the standard deviation of their number (plus 1 in
        # the variance, for tiny segments), and the weight, both (n_segments,).
        weight_of_row = 1
        if weight is not None:
            weight_of_row = weight
        variance = self._sums(weight_of_row**2 * scores * (1 - scores)).sum(axis=1)
        self.expected = self._sums(weight_of_row * scores)
        self.scale = np.sqrt(variance + 1)
        self.total = self.n
        if weight is not None:
            self.total = self._sums(weight).sum(axis=1)

    def statistics(self, rows):
        """Return the statistic of each segment (n_segments,), if the samples with the
        indices `rows` are events: the range of its cumulative differences, divided by
        their standard deviation.
        """
        differences = np.cumsum(self._counts(rows) - self.expected, axis=1)
        return range_of(differences) / self.scale

    def means(self, events):
        """Return the mean score and the event frequency of each segment, both
        (n_segments,), for boolean labels (n,).
        """
        counts = self._counts(np.flatnonzero(events))
        mean_score = self.expected.sum(axis=1) / self.total
        return mean_score, counts.sum(axis=1) / self.total

    def _counts(self, rows):
        """Return how many of the samples with the indices `rows` lie in each segment
        and score cell, or their weight: (n_segments, n_score_cells).
        """
        return self._sums(taken(self.weight, rows), rows)

    def _sums(self, values, rows=slice(None)):
        """Return the sums over each segment and score cell (n_segments, n_score_cells)
        of values of some rows; values of None count the rows.
        """
        sums = np.empty((len(self.keys), self.n_score_cells))
        for segments, codes in self.tables:
            size = segments.stop - segments.start
            # one more for the rows of no segment, the last
            cells = np.bincount(
                codes[rows], values, minlength=(size + 1) * self.n_score_cells
            )
            sums[segments] = cells.reshape(size + 1, -1)[:-1]
        return sums

    def _sizes(self, depth, min_size):
        """Return the size of each segment by its key, ((column, part), ...), for
        crossings of up to `depth` columns. The key of all samples is empty.

        A crossing with the same rows as one with a column less is left out.
        """
        sizes = {(): len(self.scores)}
        distinct = dict(sizes)
        for n_crossed in range(1, depth + 1):
            for crossed in combinations(range(len(self.columns)), n_crossed):
                shape = [len(self.columns[j].words) for j in crossed]
                codes = self._crossed_codes(crossed)
                counts = np.bincount(codes, minlength=np.prod(shape)).reshape(shape)
                for parts in np.argwhere(counts >= min_size).tolist():
                    key = tuple(zip(crossed, parts, strict=True))
                    size = int(counts[tuple(parts)])
                    sizes[key] = size
                    # Same size means same rows, for the crossing is a part of each.
                    wider_keys = [key[:k] + key[k + 1 :] for k in range(n_crossed)]
                    if all(sizes[wider] != size for wider in wider_keys):
                        distinct[key] = size
        return distinct

    def _crossed_codes(self, crossed):
        """Return for each sample (n,) the number of its part in a crossing of columns:
        all combinations of parts, the last column fastest.
        """
        codes = np.zeros(len(self.scores), dtype=np.int64)
        for j in crossed:
            codes = codes * len(self.columns[j].words) + self.columns[j].codes
        return codes

    def _tables(self):
        """Yield, for each crossing of columns, the slice of its segments among all, and
        a number (n,) for the (segment, score cell) of each sample.

        The segments of a crossing are numbered from 0 on. Rows of no segment are in one
        that is left out, the last.
        """
        first = 0
        # The keys stand in the order of their crossings.
        for crossed, keys in groupby(self.keys, lambda key: [j for j, _ in key]):
            keys = list(keys)
            # The number of the segment by its parts; those of no segment come last.
            shape = [len(self.columns[j].words) for j in crossed]
            number_of = np.full(shape, len(keys))
            for number, key in enumerate(keys):
                parts = tuple(part for _, part in key)
                number_of[parts] = number
            segment = number_of.ravel()[self._crossed_codes(crossed)]
            codes = segment * self.n_score_cells + self.score_cell
            # memory: one code a row and crossing
            dtype = np.min_scalar_type((len(keys) + 1) * self.n_score_cells)
            yield slice(first, first + len(keys)), codes.astype(dtype)
            first += len(keys)
