"""Per-bin sufficient statistics: made in one pass, all that a binned metric, curve or recalibrator needs."""

from dataclasses import dataclass, fields

import numpy as np

from skcalib._intervals import binomial_interval
from skcalib._rows.blocks import row_blocks
from skcalib._rows.sorting import in_order
from skcalib.binning._lookup import BinLookup

__all__ = ["BinStatistics"]

_FIRST_FEW = 256


@dataclass(frozen=True, eq=False)
class BinStatistics:
    """Sums over the rows of each bin, and what follows from them.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the right-closed bins, the first one closed on both sides.
    count : ndarray of int, shape (n_bins,)
        Number of rows.
    weight, weight_squared : ndarray of shape (n_bins,)
        Sums of w and w^2; both equal `count` without weights.
    weighted_score, weighted_label : ndarray of shape (n_bins,)
        Sums of w s and w y, y in {0, 1}.
    weighted_score_squared, weighted_score_label : ndarray of shape (n_bins,)
        Sums of w s^2 and w s y.

    Attributes
    ----------
    mean_score, event_frequency : ndarray of shape (n_bins,)
        Means of s and of y. An empty bin says its midpoint for both: see `weight` and `interval` for what it is worth.
    share : ndarray of shape (n_bins,)
        Share of the total weight.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import reliability_curve
    >>> curve = reliability_curve([0, 1, 1, 1], [0.2, 0.4, 0.8, 0.9], binning=2)
    >>> curve.mean_score.round(3).tolist(), curve.event_frequency.tolist(), curve.weight.tolist()
    ([0.3, 0.85], [0.5, 1.0], [2.0, 2.0])
    """

    edges: np.ndarray
    count: np.ndarray
    weight: np.ndarray
    weight_squared: np.ndarray
    weighted_score: np.ndarray
    weighted_label: np.ndarray
    weighted_score_squared: np.ndarray
    weighted_score_label: np.ndarray

    @classmethod
    def from_scores(cls, scores, labels, edges, sample_weight=None, *, squares=True):
        """Sum validated rows: scores (n,), boolean labels (n,), positive weights (n,) or None.

        The sums of w s^2 are NaN without `squares`: few need them, and they are a fifth of the work.
        """
        lookup = BinLookup(edges, len(scores))
        sums = np.zeros((7, len(edges) - 1))
        for rows in row_blocks(len(scores), at_least=4 * len(edges)):
            block = scores[rows].astype(np.float64, copy=False)
            if sample_weight is None and in_order(block):
                _add_runs(sums, block, labels[rows], edges, squares)
            elif sample_weight is None and _mostly_lowest(block, edges):
                _add_above_lowest(sums, lookup, block, labels[rows], squares)
            else:
                weight = None if sample_weight is None else sample_weight[rows]
                _add_cells(sums, lookup(block), block, labels[rows], weight, squares)
        if not squares:
            sums[5] = np.nan
        return cls(edges, sums[0].astype(np.int64), *sums[1:])

    def merge(self, other):
        """Return the statistics of the rows of both; the edges must be equal.

        Parameters
        ----------
        other : BinStatistics
            Statistics of other rows.

        Returns
        -------
        merged : BinStatistics
            Sums of both.

        Raises
        ------
        ValueError
            If the edges differ.
        """
        if not np.array_equal(self.edges, other.edges):
            raise ValueError("Only statistics with equal edges can be merged: bin both with FixedEdges.")
        sums = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name != "edges"
        }
        return BinStatistics(edges=self.edges, **sums)

    @property
    def n_bins(self):
        """Number of bins, empty ones included."""
        return len(self.edges) - 1

    @property
    def total_weight(self):
        """Sum of the weights of all rows."""
        return float(self.weight.sum())

    @property
    def share(self):
        """Share of the total weight in each bin."""
        return self.weight / self.weight.sum(axis=-1, keepdims=True)

    @property
    def mean_score(self):
        """Mean score of each bin; an empty bin says its midpoint."""
        return self._mean(self.weighted_score)

    @property
    def event_frequency(self):
        """Mean label of each bin; an empty bin says its midpoint."""
        return self._mean(self.weighted_label)

    @property
    def midpoint(self):
        """Middle of each bin."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    def interval(self, confidence_level=0.9, *, method="clopper_pearson"):
        """Return the confidence interval of each bin's event frequency, one bin at a time.

        Parameters
        ----------
        confidence_level : float, default=0.9
            Coverage of each interval.
        method : {"clopper_pearson", "hoeffding", "wilson"}, default="clopper_pearson"
            Kind of the interval. Weights count as repeated rows.

        Returns
        -------
        low, high : ndarray of shape (n_bins,)
            Limits; 0 and 1 for an empty bin.
        """
        return binomial_interval(self.weighted_label, self.weight, confidence_level=confidence_level, method=method)

    def _mean(self, total):
        out = np.broadcast_to(self.midpoint, total.shape).copy()
        return np.divide(total, self.weight, out=out, where=self.weight > 0)


def _mostly_lowest(scores, edges):
    """Return whether most of the first few scores lie in the first bin, as those of one of many classes do."""
    first = scores[:_FIRST_FEW]
    return 2 * np.count_nonzero(first <= edges[1]) > len(first)


def _add_above_lowest(sums, lookup, scores, labels, squares):
    """Add the same without weights: the rows above the first bin, which alone are looked up, and the rest as one."""
    above = np.flatnonzero(scores > lookup.cuts[0]) if len(lookup.cuts) else np.arange(0)
    _add_cells(sums, lookup(scores[above]), scores[above], labels[above], None, squares)
    events = np.flatnonzero(labels)
    lowest = scores.copy()
    lowest[above] = 0
    sums[:3, 0] += len(scores) - len(above)
    sums[3, 0] += lowest.sum()
    sums[4, 0] += len(events) - np.count_nonzero(labels[above])
    if squares:
        sums[5, 0] += lowest @ lowest
    sums[6, 0] += lowest[events].sum()


def _add_cells(sums, bins, scores, labels, sample_weight, squares):
    """Add the sums of a block, in the order of the fields, from those by (bin, label); `bins` is overwritten."""
    n_bins = sums.shape[1]
    weighted_score = scores if sample_weight is None else scores * sample_weight
    if squares:
        sums[5] += np.bincount(bins, weights=weighted_score * scores, minlength=n_bins)
    cell = bins
    cell *= 2
    cell += labels

    def by_cell(values):
        return np.bincount(cell, weights=values, minlength=2 * n_bins).reshape(n_bins, 2)

    weight = weight_squared = count = by_cell(None)
    if sample_weight is not None:
        weight, weight_squared = by_cell(sample_weight), by_cell(sample_weight**2)
    score = by_cell(weighted_score)
    for row, of_cell in enumerate((count, weight, weight_squared, score)):
        sums[row] += of_cell.sum(axis=1)
    sums[4] += weight[:, 1]
    sums[6] += score[:, 1]


def _add_runs(sums, scores, labels, edges, squares):
    """Add the same for rows in the order of their scores, without weights: a bin is a run of rows."""
    ends = np.append(np.searchsorted(scores, edges[1:-1], side="right"), len(scores))
    count = np.diff(ends, prepend=0)
    filled = count > 0
    starts = (ends - count)[filled]
    events = labels.astype(np.float64)
    sums[:3] += count  # the rows, their weights and the squares of these
    for row, values in ((3, scores), (4, events), (6, scores * events)):
        sums[row, filled] += np.add.reduceat(values, starts)
    if squares:
        sums[5, filled] += np.add.reduceat(scores * scores, starts)
