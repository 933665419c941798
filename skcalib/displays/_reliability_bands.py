"""Limits of a reliability diagram: bars of bins, bootstrap and consistency bands, and
the smooth curve with its band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from skcalib._cells.reductions import BinaryTask
from skcalib._errors.bin_free import LoessError
from skcalib._intervals import binomial_interval
from skcalib._intervals.clustered import bin_design
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
        seen = cells.weight > 0
        scores = cells.mean_score[seen]
        weight = cells.weight[seen]
        events = cells.weighted_label[seen]
        band_scores = _scores_of_bands(scores if task is None else task.scores, scores)

        bars = None
        bootstrap = None
        n_trials = weight
        reasons = ()
        if cluster is not None:
            design = bin_design(
                task.labels,
                assign_bins(task.scores, statistics.edges),
                statistics.n_bins,
                cluster,
                task.sample_weight,
                task.weight_type == "importance",
                self.confidence_level,
            )
            n_trials = weight / design.effect[seen]
            reasons = design.reasons
            bars = self._bars_of_clusters(statistics, design)
        elif self.interval in BINOMIAL_INTERVALS:
            bars = statistics.interval(self.confidence_level, interval=self.interval)
        elif self.interval == "bootstrap":
            frequency = self._resampled(scores, weight, events, refits)
            bootstrap = self._percentile_band(band_scores, scores, frequency)
        trials = np.maximum(1, np.round(n_trials)).astype(np.int64)
        if refits:
            consistency = self._refitted_consistency(band_scores, scores, trials)
        else:
            consistency = self._binomial_consistency(band_scores, scores, trials)
        return BinLimits(bars, bootstrap, consistency, reasons)

    def _bars_of_clusters(self, statistics, design):
        """Return the limits (low, high) of each bin's event frequency, NaN where
        clusters are too few; None without an interval. `design` is the `BinDesign`.
        """
        if self.interval is None:
            return None
        limits = binomial_interval(
            statistics.weighted_label / design.effect,
            statistics.weight / design.effect,
            confidence_level=self.confidence_level,
            interval=self.interval,
        )
        is_known = np.array([reason == "" for reason in design.reasons])
        return tuple(np.where(is_known, limit, np.nan) for limit in limits)

    def _resampled(self, scores, weight, events, refits):
        """Return event frequencies (n_resamples, n_cells) of bootstrap resamples of
        cells with these mean scores, weights and sums of events, all (n_cells,).
        """
        # A row is drawn from 2 n_cells kinds: cell by cell, non-events then events.
        shares = np.concatenate((weight - events, events)) / weight.sum()
        n_rows = max(1, round(float(weight.sum())))
        rng = np.random.default_rng(self.seed)
        counts = rng.multinomial(n_rows, shares, size=self.n_resamples)
        counts = counts.reshape(-1, 2, len(scores)).astype(np.float64)
        if refits:
            return _refitted(scores, counts, self.strategy)
        return _frequency_of_counts(counts, events / weight)

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

    def _refitted_consistency(self, band_scores, scores, trials):
        """Return the band of calibrated models for bins that the labels make.

        Events are drawn with the scores (n_cells,) as probabilities, `trials` in each
        cell, and the bins are made anew.
        """
        rng = np.random.default_rng(self.seed)
        events = rng.binomial(trials, scores, size=(self.n_resamples, len(scores)))
        counts = np.stack((trials - events, events), axis=1).astype(np.float64)
        frequency = _refitted(scores, counts, self.strategy)
        return self._percentile_band(band_scores, scores, frequency)

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


def smooth_curve(task, confidence_level):
    """Return the loess curve (m,) at increasing scores, its pointwise `Band`, and the
    `Band` of the curves of a calibrated model.

    The limits are those of Clopper and Pearson for as many samples as give the
    frequency the variance of the curve.
    """
    weight = task.sample_weight
    if task.weight_type == "importance":
        # Scaled so that they sum to Kish's effective number of rows.
        weight = weight * (weight.sum() / (weight @ weight))
    power = LoessError().of_task(task._replace(sample_weight=weight))
    curve = power.curve(power.cells.event_frequency)
    scores = power.scores
    # A value of the curve is a weighted mean of the frequencies of all cells. Its
    # variance is the sum over the cells of this factor (m, m) times p (1 - p).
    factor = power.smoother.T**2 / power.weight
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
    limits = binomial_interval(
        trials * curve, trials, confidence_level=confidence_level
    )
    quantile = ndtri((1 + confidence_level) / 2)
    half_width = quantile * np.sqrt(factor @ (scores * (1 - scores)))
    consistency = Band(
        scores,
        np.maximum(scores - half_width, 0),
        np.minimum(scores + half_width, 1),
    )
    return curve, Band(scores, *limits), consistency


def _refitted(scores, counts, strategy):
    """Return the event frequency (n_resamples, n_cells) at each score in the bins that
    `strategy` makes of each resample.

    `counts` (n_resamples, 2, n_cells) are the numbers of non-events and of events of
    each resample at each of the scores (n_cells,).
    """
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
    bins, and the smallest and the largest score.
    """
    low = float(np.min(scores))
    high = float(np.max(scores))
    if high - low <= _NARROW:
        low = max(low - _NARROW / 2, 0.0)
        high = min(high + _NARROW / 2, 1.0)
    return np.unique(np.concatenate((bin_means, (low, high))))
