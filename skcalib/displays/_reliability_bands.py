"""Limits of a reliability diagram: bars of bins, bootstrap and consistency bands, and
the smooth curve with its band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri
from scipy.stats import binom

from skcalib._cells.cells import Cells
from skcalib._cells.tasks import BinaryTask
from skcalib._errors.bin_free import LoessError
from skcalib._inference.cluster_draws import ClusterDraws
from skcalib._inference.label_dependence import RowsInCells
from skcalib._input.warn import warn
from skcalib._intervals import binomial_interval
from skcalib._intervals.clustered import smooth_design
from skcalib._intervals.influence import Influence
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.sorting import distinct_values
from skcalib.binning import BaseBinning, EqualMass
from skcalib.binning._base import assign_bins

# rows are pooled to this many scores before a refitted binning is resampled
_COMPRESSED_BINS = 500
_NARROW = 0.02  # a band between scores that are closer could not be seen
BINOMIAL_INTERVALS = ("clopper_pearson", "wilson", "hoeffding")


class Band(NamedTuple):
    """Limits of a band over increasing scores, arrays of one shape."""

    scores: np.ndarray
    low: np.ndarray
    high: np.ndarray


class BinLimits(NamedTuple):
    """What is drawn around the event frequencies of bins.

    Attributes
    ----------
    bars : pair of ndarray of shape (n_bins,) or None
        Low and high limits of each bin's event frequency.
    band : Band or None
        Bootstrap limits of the event frequency as a function of the score.
    consistency : Band
        Limits within which the event frequencies of a calibrated model lie.
    reasons : tuple of str
        With clusters: why a bin has no interval; empty where it has one.
    """

    bars: tuple | None
    band: Band | None
    consistency: Band
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class BinLimitsMaker:
    """How the limits around bins are computed.

    Parameters
    ----------
    strategy : BaseBinning
        The bins.
    interval : str or None
        "bootstrap", a binomial interval, or None for no bars.
    confidence_level : float
        In (0, 1).
    n_resamples : int
        Number of bootstrap resamples, and of draws of a calibrated model.
    seed : int
        Seeds each kind of draws anew.
    """

    strategy: BaseBinning
    interval: str | None
    confidence_level: float
    n_resamples: int
    seed: int

    def limits(self, statistics, task=None, cluster=None):
        """Return the `BinLimits` of bins: what is drawn around their event frequencies.

        Bins whose edges depend on the labels are made anew on each resample of the
        samples, which are first merged to a few hundred scores. Other bins keep their
        edges, and the frequencies of a calibrated model in them are binomial: exactly
        if all scores of a bin are equal, otherwise the limits are a little too wide
        (Hoeffding 1956). Samples in clusters count as fewer independent samples.

        Parameters
        ----------
        statistics : BinStatistics
            The bins.
        task : BinaryTask or None
            The samples; None where only the bins are known.
        cluster : ndarray of int, shape (n,), or None
            Code of each sample's cluster.
        """
        bins_depend_on_labels = task is not None and self.strategy.needs_labels
        # What is resampled: the bins, or the finer cells from which bins are made.
        cells = statistics
        if bins_depend_on_labels:
            cells = task.statistics(EqualMass(_COMPRESSED_BINS))
        scores = cells.mean_score[cells.weight > 0]
        all_scores = scores if task is None else task.scores
        band_scores = _scores_of_bands(all_scores, scores)

        bars = None
        bootstrap = None
        if self.interval in BINOMIAL_INTERVALS:
            bars = statistics.interval(self.confidence_level, interval=self.interval)
        elif self.interval == "bootstrap":
            frequency = self._bootstrap_frequencies(statistics, cells, task, cluster)
            bootstrap = self._percentile_band(band_scores, scores, frequency)

        reasons = ()
        if bins_depend_on_labels:
            frequency = self._calibrated_frequencies(statistics, cells, task, cluster)
            consistency = self._percentile_band(band_scores, scores, frequency)
        else:
            if statistics._design is not None:
                reasons = statistics._design.reasons
            trials = _independent_trials(statistics, self.confidence_level)
            consistency = self._binomial_consistency(band_scores, scores, trials)
        return BinLimits(bars, bootstrap, consistency, reasons)

    def _bootstrap_frequencies(self, statistics, cells, task, cluster):
        """Return event frequencies (n_resamples, n_filled) in the filled cells for
        bootstrap resamples of rows or, with `cluster` (n,), of whole clusters.

        `cells` are the diagram's bins, `statistics`, or finer cells if the edges of
        bins depend on the labels. In the second case, bins are formed anew in each
        resample, and a cell has the frequency of its bin.
        """
        is_filled = cells.weight > 0
        scores = cells.mean_score[is_filled]
        if cluster is None:
            counts = self._counts_of_rows(
                cells.weight[is_filled], cells.weighted_label[is_filled]
            )
        else:
            # Each row's cell, numbered among those that contain rows.
            number_if_filled = np.cumsum(is_filled) - 1
            cell = number_if_filled[assign_bins(task.scores, cells.edges)]
            counts = self._counts_of_clusters(task, cell, len(scores), cluster)
        if cells is statistics:  # bins that keep their edges
            observed = cells.event_frequency[is_filled]
            frequency = _frequency_of_counts(counts, observed)
        else:
            frequency = _frequency_in_new_bins(scores, counts, self.strategy)
        if cluster is None:
            return frequency
        # The resamples of few clusters vary too little: their deviations from the curve
        # that is drawn, the frequency of each cell's bin, are widened.
        drawn = statistics.event_frequency[assign_bins(scores, statistics.edges)]
        factor = _widening_factor(task, drawn[cell], cluster, self.confidence_level)
        return np.clip(drawn + factor * (frequency - drawn), 0, 1)

    def _counts_of_rows(self, weight, events):
        """Return the numbers (n_resamples, 2, n_cells) of non-events and events in
        bootstrap resamples of the rows. `weight` and `events` (n_cells,) are the total
        weight of each cell and that of its events.
        """
        # Each row is drawn from 2 n_cells categories: the non-events of every cell,
        # then the events of every cell.
        shares = np.concatenate((weight - events, events)) / weight.sum()
        n_rows = max(1, round(float(weight.sum())))
        rng = np.random.default_rng(self.seed)
        counts = rng.multinomial(n_rows, shares, size=self.n_resamples)
        return counts.reshape(-1, 2, len(weight)).astype(np.float64)

    def _counts_of_clusters(self, task, cell, n_cells, cluster):
        """Return the weights (n_resamples, 2, n_cells) of non-events and events in
        resamples of whole clusters. `cell` and `cluster` (n,) are each row's.
        """
        _, code = distinct_values(cluster)
        n_clusters = code.max() + 1
        weight = weights_or_ones(task.sample_weight, len(cell))
        # Row g holds the weights in cluster g: non-events by cell, then events by cell.
        kind = cell + n_cells * task.labels
        weight_by_cluster = csr_array((weight, (code, kind)), (n_clusters, 2 * n_cells))
        rng = np.random.default_rng(self.seed)
        shares = np.full(n_clusters, 1 / n_clusters)
        # How often each resample contains each cluster, (n_resamples, n_clusters).
        times_drawn = rng.multinomial(n_clusters, shares, size=self.n_resamples)
        return (times_drawn @ weight_by_cluster).reshape(-1, 2, n_cells)

    def _calibrated_frequencies(self, statistics, cells, task, cluster):
        """Return event frequencies (n_resamples, n_filled) in the filled fine `cells`
        if labels are drawn with the scores as probabilities: bins are made anew, and a
        cell has the frequency of its bin. The dependence within `cluster` (n,) or None
        is measured by the diagram's bins, `statistics`.
        """
        is_filled = cells.weight > 0
        scores = cells.mean_score[is_filled]
        if cluster is None:
            trials = _whole_trials(cells.weight[is_filled])
            rng = np.random.default_rng(self.seed)
            events = rng.binomial(trials, scores, size=(self.n_resamples, len(scores)))
        else:
            trials = cells.weight[is_filled]
            frequency = self._dependent_frequencies(statistics, cells, task, cluster)
            events = trials * frequency[:, is_filled]
        counts = np.stack((trials - events, events), axis=1).astype(np.float64)
        return _frequency_in_new_bins(scores, counts, self.strategy)

    def _dependent_frequencies(self, statistics, cells, task, cluster):
        """Return event frequencies (n_resamples, n_cells) if labels are drawn with the
        scores as probabilities, and depend on each other within clusters as much as the
        observed ones do.
        """
        # Columns (n, 1), since `RowsInCells` takes one for each of several events.
        cell = assign_bins(task.scores, cells.edges)[:, None]
        # The dependence is measured by residuals from the observed frequencies, which
        # deviate from the scores by this much in the bin of each cell.
        bias_of_bin = statistics.event_frequency - statistics.mean_score
        deviation = bias_of_bin[assign_bins(cells.mean_score, statistics.edges)]
        rows = RowsInCells(
            cell, task.scores[:, None], task.labels[:, None], task.sample_weight
        )
        draws = ClusterDraws(
            Cells.of_bins(cells),
            rows,
            deviation,
            cluster,
            self.n_resamples,
            np.random.RandomState(self.seed),
        )
        # Labels have the mean score of their cell as their probability. The draws come
        # in blocks (n_draws, n_cells).
        return np.concatenate(list(draws(cells.mean_score)))

    @property
    def _quantiles(self):
        """The probabilities below the lower and below the upper limit of a band."""
        return (1 - self.confidence_level) / 2, (1 + self.confidence_level) / 2

    def _percentile_band(self, band_scores, scores, frequency):
        """Return the `Band` between two quantiles of drawn frequencies (n_resamples,
        n_cells) at `scores` (n_cells,), interpolated to `band_scores` (m,).
        """
        low, high = np.quantile(frequency, self._quantiles, axis=0)
        return Band(
            band_scores,
            np.interp(band_scores, scores, low),
            np.interp(band_scores, scores, high),
        )

    def _binomial_consistency(self, band_scores, scores, trials):
        """Return the `Band` of a calibrated model's event frequencies at `band_scores`
        (m,), from binomial quantiles at these mean scores and trials (n_filled,). The
        distance from the diagonal is interpolated, and constant beyond the outer ones.
        """
        limits = []
        for quantile in self._quantiles:  # of the lower limit, then of the upper one
            distance = binom.ppf(quantile, trials, scores) / trials - scores
            distance_at = np.interp(band_scores, scores, distance)
            limits.append(np.clip(band_scores + distance_at, 0, 1))
        return Band(band_scores, *limits)


def _whole_trials(weight):
    """Return weights (n,) rounded to numbers of trials, whole and at least 1."""
    return np.maximum(1, np.round(weight)).astype(np.int64)


def _independent_trials(statistics, confidence_level):
    """Return the effective number of independent samples in each filled bin, rounded to
    whole numbers (n_filled,) of at least 1, for an interval of this level.
    """
    n_independent = statistics.weight
    design = statistics._design  # of the clusters; None without any
    if design is not None:
        # The effect is the number of samples that are worth an independent one. It
        # depends on the level, since intervals for few clusters are wider by the ratio
        # of Student's quantile to the normal one.
        n_independent = n_independent / design.effect(confidence_level)
    return _whole_trials(n_independent[statistics.weight > 0])


def _widening_factor(task, fitted, cluster, confidence_level):
    """Return the factor, at least 1, that makes a bootstrap of whole clusters as wide
    as an interval for few clusters; NaN, with a warning, for too few.

    It is the ratio of two half-widths for the mean of all labels: with jackknifed sums
    of the residuals from `fitted` (n,) (CR3) and Student's t, over plain sums (CR0) and
    normal quantiles.
    """
    _, code = distinct_values(cluster)
    weight = weights_or_ones(task.sample_weight, len(fitted))
    residual = task.labels - fitted
    residual = residual - np.average(residual, weights=weight)
    is_importance = task.weight_type == "importance"
    influence = Influence(residual, weight, is_importance, code)
    # The half-width for few clusters (CR3 and Student's quantile).
    half_width, reason_for_none = influence.half_width(confidence_level)
    if reason_for_none:
        warn(f"The bootstrap band is missing: {reason_for_none}.")
        return np.nan
    # That of the bootstrap (CR0 and the normal quantile).
    sums_of_clusters = np.bincount(code, weight * residual)
    quantile = ndtri((1 + confidence_level) / 2)
    sum_of_squares = sums_of_clusters @ sums_of_clusters
    bootstrap_half_width = quantile * np.sqrt(sum_of_squares) / weight.sum()
    return max(half_width / bootstrap_half_width, 1.0)


def smooth_curve(task, confidence_level, cluster=None):
    """Return the loess curve (m,) at increasing scores, its pointwise `Band`, and the
    `Band` within which the curve of a calibrated model lies.

    A value of the curve is a weighted mean of the event frequencies in cells, narrow
    ranges of scores. Its limits are those of Clopper and Pearson for an event frequency
    among as many independent samples as give it the same variance. If the samples are
    in clusters, with codes (n,), these are fewer.
    """
    weight = task.sample_weight
    if task.weight_type == "importance":
        # Scaled so that they sum to Kish's effective number of rows.
        weight = weight * (weight.sum() / (weight @ weight))
    loess = LoessError().of_task(task._replace(sample_weight=weight))
    scores = loess.scores
    curve = loess.curve(loess.cells.event_frequency)
    # The variance of value i is the sum over the cells j of factor[i, j] p_j (1 - p_j),
    # where p_j is the event frequency: the squared weight of the cell in the value,
    # divided by the number of its samples.
    factor = loess.smoother.T**2 / loess.weight
    n_independent = _equivalent_samples(curve, factor)
    # For a calibrated model p_j is the score.
    quantile = ndtri((1 + confidence_level) / 2)
    half_width = quantile * np.sqrt(factor @ (scores * (1 - scores)))
    has_limits = np.ones(len(scores), dtype=bool)
    if cluster is not None:
        _, code = distinct_values(cluster)
        cell = loess.cells.cell_of(task.scores)  # of each row
        smoother_and_rows = (cell, loess.smoother.T, code, weight)
        # The effect of the clusters is the number of rows that are worth an independent
        # one. It depends on the level, since intervals for few clusters have Student's
        # quantile.
        residual = task.labels - curve[cell]
        design = smooth_design(residual, *smoother_and_rows)
        n_independent = n_independent / design.effect(confidence_level)
        has_limits = design.is_known
        residual_if_calibrated = task.labels - task.scores
        design = smooth_design(residual_if_calibrated, *smoother_and_rows)
        half_width = half_width * np.sqrt(design.effect(confidence_level))
    low, high = binomial_interval(
        n_independent * curve, n_independent, confidence_level=confidence_level
    )
    band = Band(
        scores, np.where(has_limits, low, np.nan), np.where(has_limits, high, np.nan)
    )
    consistency = Band(
        scores,
        np.maximum(scores - half_width, 0),
        np.minimum(scores + half_width, 1),
    )
    return curve, band, consistency


def _equivalent_samples(curve, factor):
    """Return for each value (m,) of a smooth curve the number of independent samples
    with the same variance: that of value i is the sum over j of ``factor[i, j]`` p_j (1
    - p_j), p the curve.
    """
    binomial_variance = curve * (1 - curve)
    variance = factor @ binomial_variance
    # The n for which p (1 - p) / n is the variance. Where the curve is 0 or 1, this is
    # 0 / 0: the n if all p_j were equal takes its place.
    return np.divide(
        binomial_variance,
        variance,
        out=1 / factor.sum(axis=1),
        where=variance * binomial_variance > 0,
    )


def _frequency_in_new_bins(scores, counts, strategy):
    """Return event frequencies (n_resamples, n_cells): at each score (n_cells,) those
    of the bins that `strategy` makes of each resample. `counts` (n_resamples, 2,
    n_cells) are its non-events and events at each score.
    """
    # One row for each score and label, whose count in a resample becomes its weight.
    labels = np.repeat([False, True], len(scores))
    scores_by_label = np.tile(scores, 2)
    frequency = np.empty((len(counts), len(scores)))
    for number, resample_counts in enumerate(counts):
        weight = resample_counts.ravel()
        is_drawn = weight > 0
        resample = BinaryTask(
            scores_by_label[is_drawn], labels[is_drawn], weight[is_drawn]
        )
        bins = resample.statistics(strategy)
        bin_of_score = assign_bins(scores, bins.edges)
        frequency[number] = bins.event_frequency[bin_of_score]
    return frequency


def _frequency_of_counts(counts, observed):
    """Return event frequencies (n_resamples, n_cells) from the counts (n_resamples, 2,
    n_cells) of non-events and events; the `observed` one where no row is drawn.
    """
    n_drawn = counts.sum(axis=1)
    n_events = counts[:, 1]
    # The division fills in the cells with drawn rows.
    frequency = np.broadcast_to(observed, n_drawn.shape).copy()
    return np.divide(n_events, n_drawn, out=frequency, where=n_drawn > 0)


def _scores_of_bands(scores, bin_means):
    """Return the scores at which bands are drawn: bins' means and the outer scores,
    moved apart where they are too close to be seen.
    """
    low = float(np.min(scores))
    high = float(np.max(scores))
    if high - low <= _NARROW:
        low = max(low - _NARROW / 2, 0.0)
        high = min(high + _NARROW / 2, 1.0)
    return np.unique(np.concatenate((bin_means, (low, high))))
