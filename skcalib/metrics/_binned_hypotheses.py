"""Binned calibration errors of drawn labels: what an interval by test inversion and a resampling test need."""

from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter1d

from skcalib._cells.reductions import BinaryTask
from skcalib._cells.statistics import BinStatistics
from skcalib.binning import assign_bins
from skcalib._inference.count_draws import CountDraws
from skcalib.metrics._errors import error_power
from skcalib._inference.inversion import Cells, Hypotheses

__all__ = ["BinnedPart", "binned_hypotheses"]

_WIDTHS = 1, 3  # bins over which the observed deviation is smoothed, for two more directions
_POINTS = 512  # scores of a bin, and frequencies, between which a label-binned error is interpolated


class BinnedPart(NamedTuple):
    """The bins of one binary problem: a class of a marginal error, or a group of rows.

    `task` holds its rows, which a label-binned error and dependent draws need.
    """

    statistics: BinStatistics
    task: BinaryTask | None = None


def binned_hypotheses(parts, norm, method, combine, root, n_draws, rng, draws=None):
    """Return the hypotheses about a binned error.

    Parameters
    ----------
    parts : list of BinnedPart
        The binary problems.
    norm : float
        The norm.
    method : str
        See `calibration_error`.
    combine : callable
        Maps the powers of the parts (..., n_parts) to that of the whole (...).
    root : callable
        Maps the combined plugin power of frequencies without noise to the error.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.
    draws : callable, default=None
        Maps the cells and the observed deviation to what draws their frequencies; None draws each cell by itself.

    Returns
    -------
    hypotheses : Hypotheses
        For `inverted_limits` and `resampling_pvalue`.
    """
    bins = [_Bins.of(part, norm, method) for part in parts]
    cells = Cells(*(np.concatenate(values) for values in zip(*(one.cells() for one in bins), strict=True)))
    ends = np.cumsum([len(one.weight) for one in bins])[:-1]

    def power(frequency, method):
        pieces = np.split(frequency, ends, axis=-1)
        powers = [one.power(piece, norm, method) for one, piece in zip(bins, pieces, strict=True)]
        return combine(np.stack(powers, axis=-1))

    def error(frequency):
        return root(float(power(frequency, method if method == "label_binned" else "plugin")))

    # The unbiased error uses the residual squares of the observed labels; those of drawn labels are not known.
    if method == "unbiased":
        observed = combine(np.stack([error_power(part.statistics, norm, method) for part in parts], axis=-1))
    else:
        observed = power(cells.frequency, method)
    deviation = _deviation(cells)
    directions = [deviation]
    if not (norm == 2 and method in ("debiased", "unbiased")):
        pieces = list(zip(np.split(deviation, ends), np.split(_weights(cells), ends), strict=True))
        smooth = [np.concatenate([_smooth(*piece, width) for piece in pieces]) for width in _WIDTHS]
        directions += [*smooth, _firm(deviation, cells.variance)]
    return Hypotheses(
        cells=cells,
        draw=CountDraws(cells, n_draws, rng) if draws is None else draws(cells, deviation),
        statistic=lambda frequency: power(frequency, method),
        error=error,
        observed=float(observed),
        directions=directions,
    )


class _Bins(NamedTuple):
    """The filled bins of a part, with the attributes by which `error_power` knows a `BinStatistics`."""

    weight: np.ndarray
    mean_score: np.ndarray
    event_frequency: np.ndarray
    score_variance: np.ndarray
    gap_tables: list | None = None

    @classmethod
    def of(cls, part, norm, method):
        statistics = part.statistics
        filled = statistics.weight > 0
        weight, mean = statistics.weight[filled], statistics.mean_score[filled]
        variance = np.maximum(statistics.weighted_score_squared[filled] / weight - mean**2, 0)
        tables = _gap_tables(part.task, statistics.edges, norm) if method == "label_binned" else None
        return cls(weight, mean, statistics.event_frequency[filled], variance, tables)

    def cells(self):
        spread = self.mean_score * (1 - self.mean_score)
        ratio = np.divide(self.score_variance, spread, out=np.zeros_like(spread), where=spread > 0)
        return self.weight, self.mean_score, self.event_frequency, np.minimum(ratio, 1)

    @property
    def share(self):
        return self.weight / self.weight.sum()

    @property
    def weighted_label(self):
        return self.weight * self.event_frequency

    @property
    def weighted_score_squared(self):
        return self.weight * (self.mean_score**2 + self.score_variance)

    @property
    def weighted_score_label(self):
        # Within a cell, labels drawn from s + d vary with the scores in the same way as calibrated ones.
        return self.weight * (self.mean_score * self.event_frequency + self.score_variance)

    def power(self, frequency, norm, method):
        """Return the power of the error for frequencies (..., m)."""
        if method != "label_binned":
            return error_power(self._replace(event_frequency=frequency), norm, method)
        gaps = [np.interp(frequency[..., k], *table) for k, table in enumerate(self.gap_tables)]
        return np.stack(gaps, axis=-1) @ self.share


def _gap_tables(task, edges, norm):
    """Return for each filled bin (frequencies f, mean over its rows of |s - f|^p)."""
    order = np.argsort(task.scores)
    scores = task.scores[order].astype(np.float64)
    weight = np.ones_like(scores) if task.sample_weight is None else task.sample_weight[order]
    starts = np.flatnonzero(np.diff(assign_bins(scores, edges))) + 1
    pieces = zip(np.split(scores, starts), np.split(weight, starts), strict=True)
    return [_gap_table(*piece, norm) for piece in pieces]


def _gap_table(scores, weight, norm):
    if len(scores) > _POINTS:
        starts = np.linspace(0, len(scores), _POINTS, endpoint=False, dtype=np.intp)
        total = np.add.reduceat(weight, starts)
        scores, weight = np.add.reduceat(weight * scores, starts) / total, total
    n_trials = max(1, round(weight.sum()))
    grid = np.linspace(0, 1, min(n_trials, _POINTS) + 1)  # all frequencies that a small bin can have
    return grid, np.abs(scores - grid[:, None]) ** norm @ (weight / weight.sum())


def _deviation(cells):
    """Return the observed deviation; one of the size of the noise where there is none."""
    for deviation in (cells.deviation, np.sqrt(cells.variance), (0.5 - cells.score) / (cells.weight + 1)):
        if np.any(deviation != 0):
            return deviation
    return np.ones_like(deviation)


def _weights(cells):
    """Return the inverse variances of the observed deviations, finite also where no event is possible."""
    return 1 / (cells.variance + 0.25 / (cells.weight + 1) ** 2)


def _smooth(deviation, weight, width):
    """Return the weighted mean over neighbouring bins, Gaussian with a deviation of `width` bins."""
    weighted, total = (gaussian_filter1d(values, width, mode="constant") for values in (weight * deviation, weight))
    return weighted / total


def _firm(deviation, variance):
    """Shrink deviations that are within the noise."""
    square = deviation**2
    return np.divide(deviation * square, square + variance, out=np.zeros_like(deviation), where=square > 0)
