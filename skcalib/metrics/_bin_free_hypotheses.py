"""Bin-free calibration errors, and the sweep, of drawn labels: what an interval and a resampling test need."""

from typing import NamedTuple

import numpy as np

from skcalib._inference.count_draws import CountDraws
from skcalib._inference.inversion import Cells, Hypotheses

__all__ = ["ScoreCells", "bin_free_hypotheses"]

# Distinct scores up to which each is a cell of its own; more are pooled to cells of nearly equal scores.
_MOST_SCORES, _POOLED_CELLS = 1 << 13, 1 << 12
_WINDOWS = 0.15, 0.5  # shares of the rows over which residuals are averaged


class ScoreCells(NamedTuple):
    """Cells of equal or nearly equal scores of one binary problem, in increasing order.

    `last` holds the highest distinct score of each cell, `weight` is of integer dtype where it counts rows.
    """

    weight: np.ndarray
    score: np.ndarray
    frequency: np.ndarray
    last: np.ndarray

    @classmethod
    def from_distinct(cls, table, most=None):
        """Pool distinct scores where they are more than `most`, about the same weight in each cell."""
        weight, positives = table.weight, table.positives
        mass = np.diff(weight)
        ends = np.arange(1, len(mass) + 1)
        if len(mass) > min(most or _MOST_SCORES, _MOST_SCORES):
            n_cells = min(most or _POOLED_CELLS, _POOLED_CELLS)
            targets = np.arange(1, n_cells + 1) / n_cells * weight[-1]
            ends = np.unique(np.minimum(np.searchsorted(weight, targets), len(mass)))
        starts = np.append(0, ends[:-1])
        total = np.diff(weight[ends], prepend=weight[:1])
        score = np.add.reduceat(mass * table.scores.astype(np.float64), starts) / total
        return cls(total, score, np.diff(positives[ends], prepend=0) / total, table.scores[ends - 1])

    def of_rows(self, scores):
        """Return the cell of each row."""
        return np.minimum(np.searchsorted(self.last, scores), len(self.last) - 1)


def bin_free_hypotheses(parts, make_power, combine, root, n_draws, rng, draws=None):
    """Return the hypotheses about a bin-free error.

    Parameters
    ----------
    parts : list of ScoreCells
        The binary problems.
    make_power : callable
        Maps weights and scores of cells to the error: see `_bin_free_powers`.
    combine, root, n_draws, rng, draws
        See `binned_hypotheses`.

    Returns
    -------
    hypotheses : Hypotheses
        For `inverted_limits` and `resampling_pvalue`.
    """
    weight, score, frequency = (np.concatenate(values) for values in list(zip(*parts, strict=True))[:3])
    cells = Cells(weight.astype(np.float64), score, frequency, np.zeros(len(score)))
    ends = np.cumsum([len(part.weight) for part in parts])[:-1]
    powers = [make_power(part.weight, part.score) for part in parts]
    drawn = [power.at(part.frequency) for power, part in zip(powers, parts, strict=True)] if len(parts) == 1 else powers

    def statistic(frequency):
        pieces = np.split(frequency, ends, axis=-1)
        return combine(np.stack([power.power(piece) for power, piece in zip(drawn, pieces, strict=True)], axis=-1))

    def error(frequency):
        pieces = zip(powers, np.split(frequency, ends), strict=True)
        return root(float(combine(np.array([power.error_power(piece) for power, piece in pieces]))))

    directions = [np.concatenate([_smoothed_deviation(part, window) for part in parts]) for window in _WINDOWS]
    if not np.any(directions[0]):
        directions = [np.sqrt(cells.variance) if np.any(cells.variance) else (0.5 - score) / (weight + 1)]
    return Hypotheses(
        cells=cells,
        draw=CountDraws(cells, n_draws, rng) if draws is None else draws(cells, directions[0]),
        statistic=statistic,
        error=error,
        observed=float(statistic(frequency[None])[0]),
        directions=directions,
    )


def _smoothed_deviation(part, window):
    """Return the residuals averaged twice by a moving mean over a share of the rows, next to the ends over fewer."""
    deviation = part.frequency - part.score
    total = np.append(0.0, np.cumsum(part.weight))
    middle = (total[1:] + total[:-1]) / 2
    low = np.maximum(middle - window / 2 * total[-1], 0)
    high = np.minimum(middle + window / 2 * total[-1], total[-1])
    for _ in range(2):
        sums = np.append(0.0, np.cumsum(part.weight * deviation))
        deviation = (np.interp(high, total, sums) - np.interp(low, total, sums)) / (high - low)
    return deviation
