"""The bins of many samples, whose sums are made in one pass over the rows."""

from functools import cached_property

import numpy as np

from skcalib._cells.cells import Cells
from skcalib._rows.sorting import first_rows, grouped_rows
from skcalib.binning._last_rows import last_rows


class BinnedSamples:
    """Rows of many samples, without weights, with the sums of the bins of each sample.

    Parameters
    ----------
    task : BinaryTask
        The n rows of all samples, without weights.
    codes : ndarray of int, shape (n,)
        The sample of each row.
    binning : BaseBinning
        The bins of each sample, such as `can_be_made_together` holds for.

    Attributes
    ----------
    codes : ndarray of int, shape (n_samples,)
        The code of each sample, in increasing order.
    n : ndarray of int, shape (n_samples,)
        Its number of rows.
    first : ndarray of int, shape (n_samples,)
        The position of the row of it that comes first.
    scores, labels : ndarray of shape (n,)
        The rows in the order of samples and, in each, of scores.
    starts : ndarray of int, shape (n_samples,)
        Where the rows of each sample begin.
    bins : Cells
        The m bins of all samples, one sample after the other.
    n_bins : ndarray of int, shape (n_samples,)
        Number of bins of each sample.
    """

    # Of a larger sample the sums are made faster by a pass of its own.
    most_rows = 4096

    def __init__(self, task, codes, binning):
        order = np.argsort(task.scores)
        order = order[grouped_rows(codes[order])]
        self.scores = task.scores[order]
        self.labels = task.labels[order]
        codes = codes[order]
        self.starts = first_rows(codes)
        self.n = np.diff(self.starts, append=len(codes))
        self.codes = codes[self.starts]
        self.first = np.minimum.reduceat(order, self.starts)
        last = last_rows(binning, self.scores, self.n)
        bin_starts = np.append(0, last[:-1] + 1)
        self.bins = _bins_of(self.scores, self.labels, bin_starts)
        self._first_bins = np.searchsorted(bin_starts, self.starts)
        self.n_bins = np.diff(self._first_bins, append=len(bin_starts))

    def sums(self, of_bins):
        """Return the sums (n_samples,) of values of bins (m,)."""
        return np.add.reduceat(of_bins, self._first_bins)

    @cached_property
    def thin_share(self):
        """The share of the rows of each sample, (n_samples,), that are alone in their
        bins.
        """
        n_alone = self.sums(np.where(self.bins.count < 2, self.bins.count, 0))
        return n_alone / self.n

    def bins_of(self, k):
        """Return the bins of one sample, by its position."""
        first = self._first_bins[k]
        return self.bins.at(np.arange(first, first + self.n_bins[k]))


def _bins_of(scores, labels, starts):
    """Return the `Cells` of bins of rows (n,) without weights, which begin at `starts`
    (m,).
    """
    scores = scores.astype(np.float64)
    events = labels.astype(np.float64)
    count = np.diff(starts, append=len(scores))
    return Cells(
        edges=None,
        count=count,
        weight=count.astype(np.float64),
        weighted_score=np.add.reduceat(scores, starts),
        weighted_label=np.add.reduceat(events, starts),
        weighted_score_squared=np.add.reduceat(scores**2, starts),
        weighted_score_label=np.add.reduceat(scores * events, starts),
        weight_squared=count.astype(np.float64),
    )
