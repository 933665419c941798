"""The decision calibration error: what trusting the scores can cost."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib.binning import BaseBinning, PoolAdjacentViolators, check_binning

_MOST_CELLS = 1 << 10  # that are recalibrated anew for each draw


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionError(CalibrationError):
    """The decision calibration error; see `decision_calibration_error`."""

    binning: BaseBinning | int | None = None

    def __post_init__(self):
        self._set(binning=check_binning(self.binning, PoolAdjacentViolators()))

    @property
    def is_isotonic(self):
        """Whether the recalibrated scores are the isotonic fit, made anew for draws."""
        return isinstance(self.binning, PoolAdjacentViolators)

    @property
    def has_bins_of_labels(self):
        """See `CalibrationError`."""
        return self.binning.needs_labels and not self.is_isotonic

    def of_task(self, task, most=None):
        """See `CalibrationError`."""
        cells = task.cells(None if most is None else min(most, _MOST_CELLS))
        if self.is_isotonic:
            return DecisionPower(cells)
        edges = self.binning._edges_of(*task.sorted_for(self.binning))
        return DecisionPower(cells, np.searchsorted(edges[1:-1], cells.mean_score))


class DecisionPower(ErrorPower):
    """The most that acting on the scores, in place of recalibrated ones, costs at any
    threshold.

    Parameters
    ----------
    cells : Cells
        The cells.
    bin_of_cell : ndarray of int, shape (m,), default=None
        The bin whose event frequency is a cell's recalibrated score; None for the
        isotonic fit.
    """

    def __init__(self, cells, bin_of_cell=None):
        super().__init__(cells)
        self._bin = bin_of_cell
        if bin_of_cell is not None:
            # without the bins that hold no cell
            _, self._bin = np.unique(bin_of_cell, return_inverse=True)

    def power(self, frequency):
        """See `ErrorPower`."""
        rows = np.reshape(frequency, (-1, len(self.scores)))
        costs = [self._costs(self._recalibrated(row)).max() for row in rows]
        return np.array(costs).reshape(frequency.shape[:-1])

    def worst(self):
        """Return the error of the labels and its threshold."""
        recalibrated = self._recalibrated(self.cells.event_frequency)
        costs = self._costs(recalibrated)
        cell = int(np.argmax(costs))
        threshold = float(self.scores[cell])
        if recalibrated[cell] > threshold:
            # The cost of not acting on the cell: it is missed just above its score.
            threshold = float(np.nextafter(threshold, 1))
        return float(costs[cell]), threshold

    def _recalibrated(self, frequency):
        """Return the recalibrated scores of the cells."""
        if self._bin is None:
            return isotonic_regression(frequency, weights=self.weight).x
        events = np.bincount(self._bin, self.share * frequency)
        return (events / np.bincount(self._bin, self.share))[self._bin]

    def _costs(self, recalibrated):
        """Return the greater of the costs at each score and just above it; between
        scores the cost is convex in t.
        """
        # What acting where q >= t gains: the sum of (q - t) there.
        order = np.argsort(recalibrated, kind="stable")
        value = recalibrated[order]
        share = self.share[order]
        first = np.searchsorted(value, self.scores)
        best = _sums_from(share * value)[first] - self.scores * _sums_from(share)[first]
        # What acting where s > t gains.
        acted_on = _sums_from(self.share * recalibrated)[1:]
        gained = acted_on - self.scores * _sums_from(self.share)[1:]
        # At t = s the cell itself is acted on: that costs more where q < s.
        at_the_score = self.share * np.maximum(self.scores - recalibrated, 0)
        return best - gained + at_the_score


def _sums_from(values):
    """Return the sums from each place on, and 0."""
    return np.append(np.cumsum(values[::-1])[::-1], 0)
