"""Per-bin sufficient statistics: made in one pass, all that a binned metric, curve or
recalibrator needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.batches import summed_batch
from skcalib._cells.bin_checks import (
    as_finite,
    check_consistency,
    check_edges,
    whole_numbers,
)
from skcalib._cells.bin_sums import SUMS, bin_sums
from skcalib._cells.cells import CellSums
from skcalib._cells.device_sums import sums_of_classes
from skcalib._input.label_weights import check_weight_type, is_importance
from skcalib._input.scalars import as_numbers, check_confidence_level
from skcalib._intervals import binomial_interval
from skcalib._intervals.clustered import bin_design
from skcalib._verdicts import count_words, rounded
from skcalib.binning._base import assign_bins

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class BinStatistics(CellSums):
    """Sums per bin, from which binned errors and curves are computed.

    A metric that can be computed from these sums accepts them instead of ``(y_true,
    y_proba)``. Sums of chunks of data are combined with ``+``, so the data need not fit
    in memory.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,)
        Increasing edges of the right-closed bins in [0, 1]; the first bin is closed on
        both sides.
    count : array-like of int, shape (n_bins,)
        Number of samples.
    weight : array-like of shape (n_bins,)
        Sums of the weights w; equal to `count` without weights.
    weighted_score, weighted_label : array-like of shape (n_bins,)
        Sums of w s and of w y, where s is the score and y is the label (0 or 1).
    weighted_score_squared, weighted_score_label : array-like of shape (n_bins,)
        Sums of w s^2 and of w s y.
    weight_squared : array-like of shape (n_bins,), default=None
        Sums of w^2. None means that all samples in a bin have the same weight, so that
        the sum is ``weight**2 / count``.

    Attributes
    ----------
    mean_score, event_frequency : ndarray of shape (n_bins,)
        Means of s and of y. For an empty bin, whose `weight` is 0, both are the
        midpoint of the bin.
    share : ndarray of shape (n_bins,)
        Share of the total weight.

    Raises
    ------
    ValueError
        If a sum is missing or not finite, or if the sums are inconsistent.

    See Also
    --------
    skcalib.metrics.reliability_curve : The data of a reliability diagram.
    skcalib.engines.PredictionTable : Errors and fits computed where the table is
        stored.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import BinStatistics, calibration_error
    >>> rng = np.random.default_rng(0)
    >>> edges = [0, 0.25, 0.5, 0.75, 1]
    >>> def one_day():
    ...     scores = rng.random(500)
    ...     return BinStatistics.from_predictions(
    ...         rng.random(500) < scores**1.5, scores, edges
    ...     )
    >>> monday, tuesday = one_day(), one_day()
    >>> both = monday.merge(tuesday)
    >>> both
    1,000 samples in 4 bins: mean score 0.511, event frequency 0.423.
    >>> both.mean_score.round(2).tolist(), both.event_frequency.round(2).tolist()
    ([0.12, 0.38, 0.62, 0.88], [0.05, 0.23, 0.51, 0.84])
    >>> round(calibration_error(both), 3)
    0.095
    """

    def __post_init__(self):
        # The object is frozen: each field is replaced by an array of checked numbers.
        object.__setattr__(self, "edges", check_edges(as_finite(self.edges, "edges")))
        for name in SUMS:
            sums = getattr(self, name)
            if sums is None and name == "weight_squared":
                sums = _squares_of_equal_weights(self.weight, self.count)
            sums = as_finite(sums, name)
            if sums.shape != (self.n_bins,):
                raise ValueError(
                    f"{name} must have one entry for each of {self.n_bins} bins, found"
                    f" {sums.shape}."
                )
            object.__setattr__(self, name, sums)
        check_consistency(self)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        edges: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        multiclass: Literal["auto", "top_label", "marginal"] = "auto",
        labels: ArrayLike | None = None,
        input: Literal["probability", "logit"] = "probability",
        ignore_label: int | str | None = None,
    ) -> Any:
        """Sum samples by bin; chunks can be combined with ``+`` or `merge`.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Whether the event happened: 0 and 1, or booleans. If `y_proba` has several
            columns, or if `labels` is given, the class labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K)
            Probabilities in [0, 1]; tensors are also accepted.
        edges : array-like of shape (n_bins + 1,)
            Increasing edges in [0, 1], for instance from
            ``EqualMass(15).bin_edges(y_proba)``. Scores beyond the outer edges belong
            to the outer bins.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        multiclass : {"auto", "top_label", "marginal"}, default="auto"
            What to sum if `y_proba` has several columns: "top_label" is the predicted
            class, "marginal" is each class against the rest, and "auto" is the positive
            class for two columns and the predicted class for more.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns. Required if a label is missing from a
            batch.
        input : {"probability", "logit"}, default="probability"
            Scale of `y_proba`. "logit" means log-odds, or K logits, to which the
            softmax is applied.
        ignore_label : int or str, default=None
            Label of the samples to ignore, such as unlabelled pixels in segmentation
            (often 255).

        Returns
        -------
        statistics : BinStatistics or ClassBinStatistics
            The sums; for "marginal", a mapping from each class to its sums, which also
            supports ``+``.

        Raises
        ------
        ValueError
            If labels, probabilities, weights or edges are invalid.

        Examples
        --------
        The batches of a data loader contain the logits of 3 classes; only one batch has
        to be in memory at a time. Arrays of pixels of shape (N, C, H, W) are converted
        to rows by ``logits.transpose(0, 2, 3, 1).reshape(-1, C)``, in PyTorch by
        ``logits.movedim(1, -1).flatten(0, -2)``, and labels by ``y.reshape(-1)``.

        >>> import numpy as np
        >>> from skcalib.metrics import BinStatistics, expected_calibration_error
        >>> rng = np.random.default_rng(0)
        >>> loader = [
        ...     (rng.normal(size=(100, 3)), rng.integers(0, 3, 100)) for _ in range(5)
        ... ]
        >>> edges, total = np.linspace(0, 1, 16), 0
        >>> for logits, y in loader:
        ...     total += BinStatistics.from_predictions(
        ...         y, logits, edges, input="logit", labels=[0, 1, 2]
        ...     )
        >>> int(total.count.sum()), round(expected_calibration_error(total), 3)
        (500, 0.249)
        """
        edges = check_edges(as_finite(edges, "edges"))

        def sums(scores, events, weight):
            return bin_statistics(scores, events, edges, weight)

        def class_sums(data):
            return class_statistics(data, [edges] * data.scores.shape[1])

        # The result for "marginal" is another class, `ClassBinStatistics`.
        return summed_batch(
            sums,
            class_sums,
            y_true,
            y_proba,
            sample_weight,
            multiclass=multiclass,
            labels=labels,
            input=input,
            ignore_label=ignore_label,
        )

    @classmethod
    def from_counts(
        cls,
        count: ArrayLike,
        events: ArrayLike,
        mean_score: ArrayLike,
        edges: ArrayLike | None = None,
    ) -> BinStatistics:
        """Make statistics of a published table: one row per bin, grade or category.

        Rating grades, forecast categories and printed reliability tables hold the
        number of samples, the number of events and the score of each row. All metrics,
        tests and displays that accept `BinStatistics` then take the table.

        Parameters
        ----------
        count : array-like of int, shape (n_rows,)
            Number of samples in each row; 0 is allowed.
        events : array-like of int, shape (n_rows,)
            Number of events in each row, not their rate.
        mean_score : array-like of shape (n_rows,)
            Mean score of each row in [0, 1]: the probability of default of a grade, or
            the forecast of a category. Ignored, and may be NaN, where `count` is 0.
        edges : array-like of shape (n_rows + 1,), default=None
            Edges of the bins, if the rows are bins in this order. None puts each
            distinct score into a bin of its own; rows may then be in any order, and
            rows with the same score are added.

        Returns
        -------
        statistics : BinStatistics
            The sums. The scores of a row are taken to be equal, which matters only to
            statistics that use their spread within bins.

        Raises
        ------
        ValueError
            If counts are not whole numbers, `events` holds rates or exceeds `count`,
            lengths differ, or a score lies outside [0, 1] or its bin.

        Examples
        --------
        Three rating grades with their probabilities of default:

        >>> from skcalib.metrics import BinStatistics, calibration_by_group
        >>> grades = BinStatistics.from_counts(
        ...     count=[400, 250, 90], events=[3, 9, 14], mean_score=[0.01, 0.03, 0.08]
        ... )
        >>> grades.event_frequency.round(4).tolist()
        [0.0075, 0.036, 0.1556]
        >>> table = calibration_by_group(grades, alternative="greater")
        >>> table.jeffreys_pvalue.round(3).tolist()
        [0.669, 0.275, 0.008]
        """
        count = whole_numbers(count, "count")
        if count.ndim != 1 or len(count) == 0:
            raise ValueError(
                "count must hold one number for each row of the table, found shape"
                f" {count.shape}."
            )
        events = as_numbers(events, "events")
        scores = as_numbers(mean_score, "mean_score")
        for name, values in (("events", events), ("mean_score", scores)):
            if values.shape != count.shape:
                raise ValueError(
                    f"{name} has shape {values.shape} but count has {count.shape}: give"
                    " one number for each row of the table."
                )
        is_filled = count > 0
        if np.any(events % 1) and np.all((events >= 0) & (events <= 1)):
            raise ValueError(
                "events contains rates between 0 and 1 instead of counts: pass"
                " np.round(count * rates)."
            )
        events = whole_numbers(events, "events")
        is_wrong = (events < 0) | (events > count)
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise ValueError(
                f"events is {events[row]} in row {row}, but count is {count[row]}:"
                " events must lie between 0 and count."
            )
        is_wrong = is_filled & ~((scores >= 0) & (scores <= 1))
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            raise ValueError(
                f"mean_score is {scores[row]:g} in row {row}: it must lie in [0, 1]."
                " Divide percentages by 100."
            )
        if edges is None:
            if not is_filled.any():
                raise ValueError("count is 0 in every row: there are no samples.")
            # One bin for each distinct score, with edges halfway between them.
            distinct, bins = np.unique(scores[is_filled], return_inverse=True)
            edges = np.concatenate(([0.0], (distinct[1:] + distinct[:-1]) / 2, [1.0]))
            count = np.bincount(bins, count[is_filled]).astype(np.int64)
            events = np.bincount(bins, events[is_filled])
            scores = distinct
        scores = np.where(count > 0, scores, 0.0)
        return cls(
            edges,
            count,
            count,
            count * scores,
            events,
            count * scores**2,
            events * scores,
        )

    def merge(self, other: BinStatistics) -> BinStatistics:
        """Return the statistics of both sets of samples; the edges must be equal.

        Parameters
        ----------
        other : BinStatistics
            Statistics of other samples.

        Returns
        -------
        merged : BinStatistics
            Sums over both sets of samples.

        Raises
        ------
        ValueError
            If the edges differ.
        """
        if self._design is not None or other._design is not None:
            raise ValueError(
                "Sums of clustered samples cannot be merged, because a cluster may have"
                " samples in both sums. Pass all samples in one call."
            )
        if not np.array_equal(self.edges, other.edges):
            raise ValueError(
                "Only statistics with the same bin edges can be merged: bin both with"
                " FixedEdges."
            )
        sums = {name: getattr(self, name) + getattr(other, name) for name in SUMS}
        return unchecked_statistics(self.edges, **sums)

    def __add__(self, other):
        if not isinstance(other, BinStatistics):
            return NotImplemented
        return self.merge(other)

    def __radd__(self, other):
        # `sum` begins with 0 + batch
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def _repr_html_(self):
        if find_spec("pandas") is None:
            return None  # a notebook then shows the text
        return self.to_frame()._repr_html_()

    def to_frame(self) -> DataFrame:
        """Return a pandas DataFrame with a row for each bin.

        Returns
        -------
        frame : pandas.DataFrame
            Columns `lower_edge`, `upper_edge`, `count`, `weight`, `share`, `mean_score`
            and `event_frequency`.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "lower_edge": self.edges[:-1],
                "upper_edge": self.edges[1:],
                "count": self.count,
                "weight": self.weight,
                "share": self.share,
                "mean_score": self.mean_score,
                "event_frequency": self.event_frequency,
            }
        )

    def __repr__(self):
        bins = "1 bin" if self.n_bins == 1 else f"{self.n_bins:,} bins"
        text = f"{count_words(self.count.sum())} samples in {bins}"
        if not self.total_weight:
            return f"{text}."
        mean_score = self.weighted_score.sum() / self.total_weight
        event_frequency = self.weighted_label.sum() / self.total_weight
        weighted = ""
        if not np.array_equal(self.count, self.weight):
            weighted = "weighted "
        return (
            f"{text}: {weighted}mean score {rounded(mean_score)}, {weighted}event"
            f" frequency {rounded(event_frequency)}."
        )

    @property
    def n_bins(self):
        """Number of bins, including empty ones."""
        return len(self.edges) - 1

    # The `weight_type` that `reliability_curve` was called with.
    _weight_type = "frequency"
    # With importance weights of rows, the weight (n_bins,) of one of the equal rows
    # that those of a bin are worth; None where only their squared weights are known.
    _weight_of_row = None
    # how many samples are worth an independent one (`ClusterDesign`), where
    # `reliability_curve` was told of clusters
    _design = None

    def interval(
        self,
        confidence_level: float = 0.9,
        *,
        interval: Literal["clopper_pearson", "hoeffding", "wilson"] = "clopper_pearson",
        weight_type: Literal["frequency", "importance"] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a separate confidence interval for each bin's event frequency.

        Parameters
        ----------
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        interval : {"clopper_pearson", "hoeffding", "wilson"}, default="clopper_pearson"
            Type of interval.
        weight_type : {"frequency", "importance"}, default=None
            Meaning of the weights. "frequency": they count samples. "importance": each
            sample was observed once, and the effective number of samples in a bin is
            ``sum(w)**2 / sum(w**2)``. None means the `weight_type` given to
            `reliability_curve`, otherwise "frequency". If `clusters` were given there,
            only None is allowed.

        Returns
        -------
        low, high : ndarray of shape (n_bins,)
            Limits; 0 and 1 for an empty bin. NaN for a bin whose effective number of
            clusters is below three.

        Raises
        ------
        ValueError
            If an option is unknown.
        """
        options = {"confidence_level": confidence_level, "interval": interval}
        if self._design is not None:
            if weight_type not in (None, self._weight_type):
                raise ValueError(
                    f"weight_type={weight_type!r} differs from the one that these"
                    " clustered statistics were made with: pass it to"
                    " reliability_curve."
                )
            return self._interval_of_clusters(options)
        if weight_type is None:
            weight_type = self._weight_type
        check_weight_type(weight_type)
        # The weight of one of the equal rows that the weights of a bin are worth.
        weight_of_row = np.ones(self.n_bins)
        if is_importance(weight_type) and self._weight_of_row is not None:
            weight_of_row = self._weight_of_row
        elif is_importance(weight_type):
            np.divide(
                self.weight_squared,
                self.weight,
                out=weight_of_row,
                where=self.weight > 0,
            )
        return binomial_interval(
            self.weighted_label / weight_of_row, self.weight / weight_of_row, **options
        )

    def _interval_of_clusters(self, options):
        """Return the lower and the upper limits (n_bins,) from the effective number of
        independent rows; NaN where too few clusters fill the bin. `options` are the
        confidence level and the type of interval, the keywords of `binomial_interval`.
        """
        # How many samples are worth one independent row. It depends on the level,
        # because it contains the ratio of Student's quantile to the normal one.
        level = check_confidence_level(options["confidence_level"])
        effect = self._design.effect(level)
        limits = binomial_interval(
            self.weighted_label / effect, self.weight / effect, **options
        )
        return tuple(np.where(self._design.is_known, limit, np.nan) for limit in limits)


def bin_statistics(
    scores, labels, edges, sample_weight=None, *, moments=2, is_ordered=None
):
    """Return the `BinStatistics` of validated rows.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores between the outer edges.
    labels : ndarray of bool, shape (n,)
        Events.
    edges : ndarray of shape (n_bins + 1,)
        Valid edges.
    sample_weight : ndarray of shape (n,), default=None
        Positive weights; None means 1.
    moments : {0, 1, 2}, default=2
        The highest power of the scores that is summed. Each costs a pass; sums of
        higher ones are NaN.
    is_ordered : bool, default=None
        Whether the scores never decrease; None if this is not known.

    Returns
    -------
    statistics : BinStatistics
        The sums.
    """
    sums = bin_sums(scores, labels, edges, sample_weight, moments, is_ordered)
    return unchecked_statistics(edges, **sums)


def class_statistics(data, edges, *, moments=2):
    """Return the `BinStatistics` of each class against the rest, a list of K, for
    `ScoredLabels` whose scores stay on a device. `edges` is a list of K arrays;
    `moments`, 0 to 2, is the highest power of the scores that is summed: sums of higher
    ones are NaN.
    """
    statistics = []
    sums_by_class = sums_of_classes(data, edges, moments)
    for class_edges, sums in zip(edges, sums_by_class, strict=True):
        # Sums of higher powers of the scores are not computed.
        for name, power in SUMS.items():
            if power > moments:
                sums[name] = np.full(len(class_edges) - 1, np.nan)
        sums["count"] = sums["count"].astype(np.int64)
        statistics.append(unchecked_statistics(class_edges, **sums))
    return statistics


def set_clusters(statistics, scores, labels, sample_weight, cluster, *, importance):
    """Let the intervals of statistics allow for samples that depend on each other.

    Parameters
    ----------
    statistics : BinStatistics
        The sums of the samples, made by the library. The object is frozen and its
        constructor takes sums alone, so that the effect of the clusters is set as an
        attribute.
    scores, labels : ndarray of shape (n,)
        The samples.
    sample_weight : ndarray of shape (n,) or None
        Positive weights.
    cluster : ndarray of int, shape (n,)
        Code of each sample's cluster.
    importance : bool
        Whether the weights are of importance.
    """
    design = bin_design(
        labels,
        assign_bins(scores, statistics.edges),
        statistics.n_bins,
        cluster,
        sample_weight,
        importance,
    )
    object.__setattr__(statistics, "_design", design)


def unchecked_statistics(edges, **sums):
    """Return a `BinStatistics` of arrays that the library made itself: valid edges
    (n_bins + 1,) and the sums (n_bins,) by the names of the fields.
    """
    statistics = object.__new__(BinStatistics)
    if "weight_squared" not in sums:
        sums["weight_squared"] = _squares_of_equal_weights(
            sums["weight"], sums["count"]
        )
    # The object is frozen: its fields are set without `__post_init__` and its checks.
    vars(statistics).update(edges=edges, **sums)
    return statistics


def _squares_of_equal_weights(weight, count):
    """Return each bin's sum of squared weights if its `count` samples weigh
    the same.
    """
    return np.square(weight) / np.maximum(count, 1)
