"""The decision calibration error: what trusting the scores can cost."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from skcalib._cells.device_columns import cells_in_place
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib._input.tensors import library_of
from skcalib._rows.namespaces import at_least, placed, sums_up_to
from skcalib._rows.sorting import in_order
from skcalib.binning import BaseBinning, PoolAdjacentViolators, check_binning
from skcalib.binning._pool_adjacent_violators import isotonic_in_place

# Each draw of labels is recalibrated on no more than this many cells.
_MOST_CELLS = 1 << 10


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionError(CalibrationError):
    """The decision calibration error; see `decision_calibration_error`."""

    binning: BaseBinning | int | None = None

    def __post_init__(self):
        self._set(binning=check_binning(self.binning, PoolAdjacentViolators()))

    @property
    def is_isotonic(self):
        """Whether the recalibrated scores are the isotonic fit, which is made anew for
        drawn labels.
        """
        return isinstance(self.binning, PoolAdjacentViolators)

    @property
    def has_bins_of_labels(self):
        """Whether its bins depend on the labels and are not found anew for drawn
        ones.
        """
        return self.binning.needs_labels and not self.is_isotonic

    def of_task(self, task, most=None):
        """Return the `DecisionPower` of a binary problem.

        Its cells are the distinct scores. For drawn labels they are pooled to at most
        `most` cells, and to 1,024; None leaves them as they are.
        """
        if most is not None:
            most = min(most, _MOST_CELLS)
        if self.is_isotonic:
            return DecisionPower(cells_in_place(task, most))
        cells = task.cells(most)
        edges = self.binning._edges_of(*task.sorted_for(self.binning))
        bin_of_cell = np.searchsorted(edges[1:-1], cells.mean_score)
        return DecisionPower(cells, bin_of_cell)


class DecisionPower(ErrorPower):
    """The most that acting on the scores, in place of recalibrated ones, costs at any
    threshold.

    Parameters
    ----------
    cells : Cells
        The distinct scores, or groups of neighbouring ones, in increasing order.
    bin_of_cell : ndarray of int, shape (m,), default=None
        The bin whose event frequency is a cell's recalibrated score; None for the
        isotonic fit.
    """

    def __init__(self, cells, bin_of_cell=None):
        super().__init__(cells)
        self._bin_of_cell = None
        if bin_of_cell is not None:
            # Only bins that hold cells are numbered, so that none has the weight 0.
            _, self._bin_of_cell = np.unique(bin_of_cell, return_inverse=True)

    def power(self, frequency):
        """Return the error (...) for event frequencies (..., m) of the cells: the
        largest cost of each row of frequencies.
        """
        draws = np.reshape(frequency, (-1, len(self.scores)))
        errors = np.empty(len(draws))
        for k, drawn in enumerate(draws):
            errors[k] = self._costs(self._recalibrated(drawn)).max()
        return errors.reshape(frequency.shape[:-1])

    @property
    def observed(self):
        """The error of the observed labels."""
        error, _ = self.worst()
        return error

    def worst(self):
        """Return the error of the observed labels, the largest cost of acting on the
        scores in place of recalibrated ones, and the first threshold that has it.
        """
        recalibrated = self._recalibrated(self.cells.event_frequency)
        costs = self._costs(recalibrated)
        cell = int(self.cells.xp.argmax(costs))
        threshold = float(self.scores[cell])
        if recalibrated[cell] > threshold:
            # Here it costs more not to act on the cell, as trusting its score means at
            # a threshold just above the score.
            threshold = float(np.nextafter(threshold, 1))
        return float(costs[cell]), threshold

    def _recalibrated(self, frequency):
        """Return the recalibrated scores (m,): the isotonic fit to the cells' event
        frequencies, or the frequency of each cell's bin.
        """
        xp = self.cells.xp
        if xp is not np:
            fit, block = isotonic_in_place(self.weight, self.cells.weighted_label)
            return xp.take(placed(xp, fit.x, self.scores), block)
        if self._bin_of_cell is None:
            return isotonic_regression(frequency, weights=self.weight).x
        events = np.bincount(self._bin_of_cell, self.share * frequency)
        frequency_of_bin = events / np.bincount(self._bin_of_cell, self.share)
        return frequency_of_bin[self._bin_of_cell]

    def _costs(self, recalibrated):
        """Return the cost (m,) of trusting the scores s in place of recalibrated scores
        q (m,), with each score as the threshold t, or just above it if that costs more.

        Acting on a cell gains its share times (q - t). The cost is the gain of acting
        where q >= t less that where s >= t. Between two scores it is convex in t: so it
        is largest at a score or just above it.
        """
        # 1. The gain of acting where q >= t, for each t: sums of q and of the shares
        # over the cells from the first such one on, in the order of q. An isotonic fit
        # is in order.
        ordered, share = recalibrated, self.share
        xp = self.cells.xp
        if xp is np and not in_order(recalibrated):
            order = np.argsort(recalibrated, kind="stable")
            ordered, share = recalibrated[order], self.share[order]
        first = xp.searchsorted(ordered, self.scores)
        cost = _gains(share, ordered, first, self.scores)
        del ordered, share, first  # as long as all cells, and not needed any more
        # 2. The gain of acting where s > t, that is on the cells after each one.
        cost -= _gains(self.share, recalibrated, slice(1, None), self.scores)
        # 3. Just above its score the cell itself is not acted on. At t = s it is, which
        # costs share * (s - q) more: the larger cost counts.
        cost += self.share * at_least(xp, self.scores - recalibrated, 0)
        return cost


def _gains(share, recalibrated, first, thresholds):
    """Return the gain (m,) of acting on the cells from each of `first` on, an index or
    a slice of m of them, at the threshold of each.
    """
    price = _sums_from(share)[first]
    price *= thresholds
    gain = _sums_from(share * recalibrated)[first]
    gain -= price
    return gain


def _sums_from(values):
    """Return the sums of values (m,) from each index on, and 0: (m + 1,)."""
    xp = library_of(values)
    if xp is not np:
        return xp.flip(sums_up_to(xp, xp.flip(values)))
    sums = np.zeros(len(values) + 1)
    np.cumsum(values[::-1], out=sums[-2::-1])
    return sums
