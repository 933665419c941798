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
from skcalib._cells.reductions import BinaryTask
from skcalib._errors.bin_free import LoessError
from skcalib._inference.count_draws import ClusterDraws, RowsInCells
from skcalib._input.warn import warn
from skcalib._intervals import binomial_interval
from skcalib._intervals.clustered import smooth_design
from skcalib._intervals.influence import Influence
from skcalib._rows.blocks import weights_or_ones
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
        """Return the `BinLimits` of bins.

        Bins that the labels made are made anew on each resample of the samples, which
        are pooled to a few hundred scores. Others keep their edges, and a calibrated
        model's frequencies in them are binomial: exactly for equal scores in a bin,
        else the limits are a little wide (Hoeffding 1956). Bins of samples in clusters
        count as the number of independent samples that these are worth.

        Parameters
        ----------
        statistics : BinStatistics
            The bins.
        task : BinaryTask or None
            The samples; None where only the bins are known.
        cluster : ndarray of int, shape (n,), or None
            Code of each sample's cluster.
        """
        refits = task is not None and self.strategy.needs_labels
        cells = statistics
        if refits:
            cells = task.statistics(EqualMass(_COMPRESSED_BINS))
        scores = cells.mean_score[cells.weight > 0]
        all_scores = scores if task is None else task.scores
        band_scores = _scores_of_bands(all_scores, scores)

        bars = None
        bootstrap = None
        if self.interval in BINOMIAL_INTERVALS:
            bars = statistics.interval(self.confidence_level, interval=self.interval)
        elif self.interval == "bootstrap":
            frequency = self._resampled(statistics, cells, task, cluster)
            bootstrap = self._percentile_band(band_scores, scores, frequency)
        reasons = ()
        if refits:
            frequency = self._calibrated(statistics, cells, task, cluster)
            consistency = self._percentile_band(band_scores, scores, frequency)
        else:
            n_trials = statistics.weight
            design = statistics._design  # of clusters; None for independent rows
            if design is not None:
                reasons = design.reasons
                # How many rows are worth an independent one, by bin. It depends on the
                # level, since it makes a normal quantile Student's, by which intervals
                # of few clusters are wider.
                n_trials = n_trials / design.effect(self.confidence_level)
            trials = _whole_trials(n_trials[statistics.weight > 0])
            consistency = self._binomial_consistency(band_scores, scores, trials)
        return BinLimits(bars, bootstrap, consistency, reasons)

    def _resampled(self, statistics, cells, task, cluster):
        """Return event frequencies (n_resamples, n_filled) of bootstrap resamples, of
        rows or of whole clusters, in the cells that hold rows. Bins that the labels
        make are made anew.
        """
        is_filled = cells.weight > 0
        scores = cells.mean_score[is_filled]
        if cluster is None:
            counts = self._counts_of_rows(
                cells.weight[is_filled], cells.weighted_label[is_filled]
            )
        else:
            # The number of each cell among the filled ones, and the cell of each row.
            place = np.cumsum(is_filled) - 1
            cell = place[assign_bins(task.scores, cells.edges)]
            counts = self._counts_of_clusters(task, cell, len(scores), cluster)
        if cells is statistics:  # bins that keep their edges
            observed = cells.event_frequency[is_filled]
            frequency = _frequency_of_counts(counts, observed)
        else:
            frequency = _refitted(scores, counts, self.strategy)
        if cluster is None:
            return frequency
        # Deviations are those from what is drawn, the frequency of each cell's bin.
        fitted = statistics.event_frequency[assign_bins(scores, statistics.edges)]
        wider = _widening(task, fitted[cell], cluster, self.confidence_level)
        return np.clip(fitted + wider * (frequency - fitted), 0, 1)

    def _counts_of_rows(self, weight, events):
        """Return numbers (n_resamples, 2, n_cells) of non-events and of events in
        resamples of the rows of cells with these weights and sums of events (n_cells,).
        """
        # A row is drawn from 2 n_cells kinds: cell by cell, non-events then events.
        shares = np.concatenate((weight - events, events)) / weight.sum()
        n_rows = max(1, round(float(weight.sum())))
        rng = np.random.default_rng(self.seed)
        counts = rng.multinomial(n_rows, shares, size=self.n_resamples)
        return counts.reshape(-1, 2, len(weight)).astype(np.float64)

    def _counts_of_clusters(self, task, cell, n_cells, cluster):
        """Return the weights (n_resamples, 2, n_cells) of non-events and of events in
        resamples of whole clusters. `cell` (n,) is the cell of each row, `cluster` (n,)
        its cluster.
        """
        _, code = np.unique(cluster, return_inverse=True)
        n_clusters = code.max() + 1
        weight = weights_or_ones(task.sample_weight, len(cell))
        # Row g holds the weights in cluster g: non-events by cell, then events by cell.
        kind = cell + n_cells * task.labels
        weight_by_cluster = csr_array((weight, (code, kind)), (n_clusters, 2 * n_cells))
        rng = np.random.default_rng(self.seed)
        shares = np.full(n_clusters, 1 / n_clusters)
        # how often each resample holds each cluster, (n_resamples, n_clusters)
        times_drawn = rng.multinomial(n_clusters, shares, size=self.n_resamples)
        return (times_drawn @ weight_by_cluster).reshape(-1, 2, n_cells)

    def _calibrated(self, statistics, cells, task, cluster):
        """Return event frequencies (n_resamples, n_filled) in the cells that hold rows,
        of labels that are drawn from a calibrated model, in the bins that these labels
        make.
        """
        is_filled = cells.weight > 0
        scores = cells.mean_score[is_filled]
        if cluster is None:
            trials = _whole_trials(cells.weight[is_filled])
            rng = np.random.default_rng(self.seed)
            events = rng.binomial(trials, scores, size=(self.n_resamples, len(scores)))
        else:
            trials = cells.weight[is_filled]
            frequency = self._calibrated_clusters(statistics, cells, task, cluster)
            events = trials * frequency[:, is_filled]
        counts = np.stack((trials - events, events), axis=1).astype(np.float64)
        return _refitted(scores, counts, self.strategy)

    def _calibrated_clusters(self, statistics, cells, task, cluster):
        """Return event frequencies (n_resamples, n_cells) of a calibrated model whose
        labels depend on each other within clusters as those of the samples do.
        """
        # Columns (n, 1), since `RowsInCells` takes one for each of several events.
        cell = assign_bins(task.scores, cells.edges)[:, None]
        # The dependence is that of residuals about the bins of the diagram.
        off = statistics.event_frequency - statistics.mean_score
        deviation = off[assign_bins(cells.mean_score, statistics.edges)]
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
        # Blocks of draws of labels whose probability in each cell is its mean score.
        return np.concatenate(list(draws(cells.mean_score)))

    @property
    def _quantiles(self):
        """The probabilities of both limits."""
        return (1 - self.confidence_level) / 2, (1 + self.confidence_level) / 2

    def _percentile_band(self, band_scores, scores, frequency):
        """Return the percentile band at `band_scores` of drawn frequencies
        (n_resamples, n_cells) at `scores` (n_cells,).
        """
        low, high = np.quantile(frequency, self._quantiles, axis=0)
        return Band(
            band_scores,
            np.interp(band_scores, scores, low),
            np.interp(band_scores, scores, high),
        )

    def _binomial_consistency(self, band_scores, scores, trials):
        """Return the band of calibrated models for bins with a number of trials each.

        Between the mean scores the distance from the diagonal is interpolated; beyond
        them it stays the same.
        """
        limits = []
        for quantile in self._quantiles:
            distance = binom.ppf(quantile, trials, scores) / trials - scores
            distance_at = np.interp(band_scores, scores, distance)
            limits.append(np.clip(band_scores + distance_at, 0, 1))
        return Band(band_scores, *limits)


def _whole_trials(weight):
    """Return weights (n,) rounded to numbers of trials, whole and at least 1."""
    return np.maximum(1, np.round(weight)).astype(np.int64)


def _widening(task, fitted, cluster, confidence_level):
    """Return by what the deviations of resamples of clusters are multiplied.

    Resamples vary as the sums of clusters (CR0) and have normal tails. An interval of
    few clusters takes the jackknifed sums (CR3) and Student's quantile: the ratio is
    that of the mean over all samples. NaN where clusters are too few.
    """
    _, code = np.unique(cluster, return_inverse=True)
    weight = weights_or_ones(task.sample_weight, len(fitted))
    residual = task.labels - fitted
    residual = residual - np.average(residual, weights=weight)
    is_importance = task.weight_type == "importance"
    influence = Influence(residual, weight, is_importance, code)
    half_width, reason = influence.half_width(confidence_level)
    if reason:
        warn(f"The bootstrap band is missing: {reason}.")
        return np.nan
    sums = np.bincount(code, weight * residual)  # by cluster
    quantile = ndtri((1 + confidence_level) / 2)
    # The half-width of the interval of the mean that resamples have.
    of_resamples = quantile * np.sqrt(sums @ sums) / weight.sum()
    return max(half_width / of_resamples, 1.0)  # bands never become narrower


def smooth_curve(task, confidence_level, cluster=None):
    """Return the loess curve (m,) at increasing scores, its pointwise `Band`, and the
    `Band` of the curves of a calibrated model.

    The limits are those of Clopper and Pearson for as many samples as give the
    frequency the variance of the curve. With clusters (codes (n,)) these are fewer, by
    the design effect of each value.
    """
    weight = task.sample_weight
    if task.weight_type == "importance":
        # Scaled so that they sum to Kish's effective number of rows.
        weight = weight * (weight.sum() / (weight @ weight))
    loess = LoessError().of_task(task._replace(sample_weight=weight))
    curve = loess.curve(loess.cells.event_frequency)
    scores = loess.scores
    # A value of the curve is a weighted mean of the frequencies of all cells. Its
    # variance is the sum over the cells of this factor (m, m) times p (1 - p).
    factor = loess.smoother.T**2 / loess.weight
    binomial_variance = curve * (1 - curve)
    variance = factor @ binomial_variance
    # p (1 - p) / variance independent samples have this variance. At curves of 0 or 1
    # it is the number of samples if all cells had the same p.
    trials = np.divide(
        binomial_variance,
        variance,
        out=1 / factor.sum(axis=1),
        where=variance * binomial_variance > 0,
    )
    # Of a calibrated model: the frequency at a score s is s, its variance s (1 - s).
    quantile = ndtri((1 + confidence_level) / 2)
    half_width = quantile * np.sqrt(factor @ (scores * (1 - scores)))
    is_known = np.ones(len(scores), dtype=bool)
    if cluster is not None:
        cell = loess.cells.of_rows(task.scores)
        _, code = np.unique(cluster, return_inverse=True)
        rows = (cell, loess.smoother.T, code, weight)
        design = smooth_design(task.labels - curve[cell], *rows)
        is_known = design.is_known
        # The effect is the number of rows worth an independent one. It depends on the
        # level, since intervals of few clusters take Student's quantile.
        trials = trials / design.effect(confidence_level)
        # Residuals of a calibrated model are those about the scores.
        design = smooth_design(task.labels - task.scores, *rows)
        half_width = half_width * np.sqrt(design.effect(confidence_level))
    limits = binomial_interval(
        trials * curve, trials, confidence_level=confidence_level
    )
    band = Band(scores, *(np.where(is_known, limit, np.nan) for limit in limits))
    consistency = Band(
        scores,
        np.maximum(scores - half_width, 0),
        np.minimum(scores + half_width, 1),
    )
    return curve, band, consistency


def _refitted(scores, counts, strategy):
    """Return the event frequency (n_resamples, n_cells) at each score in the bins that
    `strategy` makes of each resample.

    `counts` (n_resamples, 2, n_cells) are the numbers of non-events and of events of
    each resample at each of the scores (n_cells,).
    """
    # One row for each score and label, which a resample gives its count as a weight.
    labels = np.repeat([False, True], len(scores))
    scores_by_label = np.tile(scores, 2)
    frequency = np.empty((len(counts), len(scores)))
    for row, weight in zip(frequency, counts.reshape(len(counts), -1), strict=True):
        drawn = weight > 0
        resample = BinaryTask(scores_by_label[drawn], labels[drawn], weight[drawn])
        bins = resample.statistics(strategy)
        row[:] = bins.event_frequency[assign_bins(scores, bins.edges)]
    return frequency


def _frequency_of_counts(counts, observed):
    """Return the event frequencies (n_resamples, n_cells) of drawn counts
    (n_resamples, 2, n_cells) of non-events and events; the `observed` frequency
    (n_cells,) where no row is drawn.
    """
    total = counts.sum(axis=1)
    frequency = np.broadcast_to(observed, total.shape).copy()
    return np.divide(counts[:, 1], total, out=frequency, where=total > 0)


def _scores_of_bands(scores, bin_means):
    """Return the increasing scores at which bands are drawn: the mean scores of the
    bins (n_filled,), and the smallest and the largest score. These are moved apart if
    they are so close that the band could not be seen.
    """
    low = float(np.min(scores))
    high = float(np.max(scores))
    if high - low <= _NARROW:
        low = max(low - _NARROW / 2, 0.0)
        high = min(high + _NARROW / 2, 1.0)
    return np.unique(np.concatenate((bin_means, (low, high))))
