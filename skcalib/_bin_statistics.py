"""Per-bin sufficient statistics: made in one pass, all that a binned metric, curve or recalibrator needs."""

from dataclasses import dataclass, fields

import numpy as np

from skcalib._intervals import binomial_interval
from skcalib.binning import assign_bins

__all__ = ["BinStatistics"]

_BLOCK_ROWS = 1 << 16  # temporaries of one block stay in the cache


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
    def from_scores(cls, scores, labels, edges, sample_weight=None):
        """Sum validated rows: scores (n,), boolean labels (n,), positive weights (n,) or None."""
        sums = np.zeros((5, len(edges) - 1, 2))
        for start in range(0, len(scores), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            weight = None if sample_weight is None else sample_weight[rows]
            sums += _cell_sums(scores[rows], labels[rows], edges, weight)
        count, weight, weight_squared, score, score_squared = sums
        return cls(
            edges=edges,
            count=count.sum(axis=1).astype(np.int64),
            weight=weight.sum(axis=1),
            weight_squared=weight_squared.sum(axis=1),
            weighted_score=score.sum(axis=1),
            weighted_label=weight[:, 1],
            weighted_score_squared=score_squared.sum(axis=1),
            weighted_score_label=score[:, 1],
        )

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


def _cell_sums(scores, labels, edges, sample_weight):
    """Return the sums of 1, w, w^2, w s, w s^2 by (bin, label): the label in the cell saves the sums with y."""
    n_bins = len(edges) - 1
    scores = scores.astype(np.float64, copy=False)
    cell = assign_bins(scores, edges) * 2 + labels
    count = np.bincount(cell, minlength=2 * n_bins)
    if sample_weight is None:
        weight = weight_squared = count
        weighted_score = scores
    else:
        weight = np.bincount(cell, weights=sample_weight, minlength=2 * n_bins)
        weight_squared = np.bincount(cell, weights=sample_weight**2, minlength=2 * n_bins)
        weighted_score = scores * sample_weight
    score = np.bincount(cell, weights=weighted_score, minlength=2 * n_bins)
    score_squared = np.bincount(cell, weights=weighted_score * scores, minlength=2 * n_bins)
    return np.stack((count, weight, weight_squared, score, score_squared)).reshape(5, n_bins, 2)
