"""How many independent rows the samples of clusters are worth: in bins, and along a
smooth curve.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtri, stdtrit

from skcalib._intervals.influence import Influence, cluster_variance, too_few_units
from skcalib._rows.blocks import weights_or_ones


class ClusterDesign(NamedTuple):
    """What clusters make of the samples behind each of m event frequencies.

    Parameters
    ----------
    ratio : ndarray of shape (m,)
        Variance of the frequency over that of independent rows.
    degrees : ndarray of shape (m,)
        Degrees of freedom of that variance; infinite where it is not estimated.
    least : ndarray of shape (m,)
        The smallest effect: dependent rows tell at most what independent ones tell. It
        is 1, or with importance weights that of the weights alone.
    reasons : tuple of str
        Why a frequency has no interval; empty where it has one. Its effect then is that
        of clusters whose rows are all alike.
    """

    ratio: np.ndarray
    degrees: np.ndarray
    least: np.ndarray
    reasons: tuple[str, ...]

    def effect(self, confidence_level):
        """Return the design effects (m,): how many samples are worth one independent
        row, for a binomial interval of this level in which the numbers of samples are
        divided by them.

        A binomial interval is as wide as the normal quantile says. The variance of
        clusters is estimated and asks for Student's quantile, so that the squared ratio
        of both quantiles is a factor of the effect, besides the ratio of the variances.
        """
        upper_level = (1 + confidence_level) / 2
        is_estimated = np.isfinite(self.degrees)
        quantile = stdtrit(self.degrees[is_estimated], upper_level)
        student_ratio = np.ones(len(self.degrees))
        student_ratio[is_estimated] = quantile / ndtri(upper_level)
        return np.maximum(self.ratio * student_ratio**2, self.least)

    @property
    def is_known(self):
        """Which frequencies have an interval."""
        return np.array([reason == "" for reason in self.reasons])


def bin_design(labels, bins, n_bins, cluster, weight, importance):
    """Return what clusters of rows mean for the event frequencies of bins, as a
    `ClusterDesign` of n_bins entries.

    The variance of a frequency and its degrees of freedom are those of `Influence`. A
    bin of equal labels shows no dependence; rows of one cluster are then taken to be
    all alike, the strongest dependence.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Whether the event happened.
    bins : ndarray of int, shape (n,)
        The bin of each sample.
    n_bins : int
        Number of bins.
    cluster : ndarray of int, shape (n,)
        Code of each sample's cluster.
    weight : ndarray of shape (n,) or None
        Positive weights; None means 1 for each sample.
    importance : bool
        Whether a row was seen once whatever its weight.

    Returns
    -------
    design : ClusterDesign
        An empty bin has the effect 1.
    """
    weight = weights_or_ones(weight, len(labels))
    ratio = np.ones(n_bins)
    degrees = np.full(n_bins, np.inf)
    least = np.ones(n_bins)
    reasons = [""] * n_bins
    order = np.argsort(bins, kind="stable")
    filled, starts = np.unique(bins[order], return_index=True)
    for place, rows in zip(filled, np.split(order, starts[1:]), strict=True):
        ratio[place], degrees[place], least[place], reasons[place] = _design_of_bin(
            labels[rows].astype(np.float64), cluster[rows], weight[rows], importance
        )
    return ClusterDesign(ratio, degrees, least, tuple(reasons))


def _design_of_bin(events, cluster, weight, importance):
    """Return what clusters mean for the event frequency of one bin: its variance over
    that of independent rows, the degrees of freedom of this variance, the least design
    effect, and why there is no interval, else "".

    `events`, 0 or 1, `cluster` and `weight` are those of the rows in the bin, (n,).
    """
    codes = np.unique(cluster, return_inverse=True)[1]
    reason = too_few_units(weight, importance, codes)
    if reason or events.min() == events.max():
        # Rows of a cluster are taken to be all alike: their sum then has the variance
        # W_g^2, W_g the weight of the cluster, and W_g if they were independent.
        cluster_weight = np.bincount(codes, weight)
        ratio = cluster_weight @ cluster_weight / cluster_weight.sum()
        return ratio, np.inf, 1.0, reason
    # The variance of the sum of residuals, from the sums of the clusters, over the
    # variance that it has if the rows are independent.
    total = weight.sum()
    residual = events - weight @ events / total
    independent = weight @ residual**2
    ratio = 0.0  # residuals that cancel in every cluster: the least effect counts
    degrees = np.inf
    spread = Influence(residual, weight, importance, codes).spread()
    if not spread.reason:
        ratio = (spread.standard_error * total) ** 2 / independent
        degrees = spread.degrees
    least = 1.0
    if importance:
        least = np.sum((weight * residual) ** 2) / independent
    return ratio, degrees, least, ""


def smooth_design(residual, cell, smoother, cluster, weight):
    """Return what clusters of rows mean for m values of a smooth curve, as a
    `ClusterDesign` of m entries.

    Each value is a weighted mean of the event frequencies of cells, and so a weighted
    sum of labels. The variance of its error, the sum of a * residual with the weights a
    of the rows, and its degrees of freedom are those of `cluster_variance`.

    Parameters
    ----------
    residual : ndarray of shape (n,)
        Labels less what is expected of them.
    cell : ndarray of int, shape (n,)
        The cell of each sample.
    smoother : ndarray of shape (m, n_cells)
        Weights of the cells' frequencies in the values of the curve; those of a value
        sum to 1.
    cluster : ndarray of int, shape (n,)
        Code of each sample's cluster, 0 to G - 1.
    weight : ndarray of shape (n,) or None
        Positive weights that count samples; None means 1 for each.
    """
    weight = weights_or_ones(weight, len(residual))
    n_cells = smoother.shape[1]
    cell_weight = np.bincount(cell, weight, n_cells)
    shape = (cluster.max() + 1, n_cells)

    def by_cluster(values):
        """Return sums of values (n,) by cluster and cell, as a sparse array (G,
        n_cells).
        """
        return csr_array((values, (cluster, cell)), shape)

    # 1. A row of cell c has the weight a = smoother[j, c] / (weight of the cell) in
    # value j. Sums over the rows of each cluster of a x residual, of a (`mass`) and of
    # a^2 (`squares`): (G, m) each.
    sums = by_cluster(weight * residual / cell_weight[cell]) @ smoother.T
    mass = by_cluster(weight / cell_weight[cell]) @ smoother.T
    squares = by_cluster(weight / cell_weight[cell] ** 2) @ smoother.T**2
    # 2. Values that the rows of few clusters determine have no interval.
    reasons = []
    for share in np.abs(mass).T:
        present = np.flatnonzero(share)
        reasons.append(too_few_units(share[present], cluster=np.arange(len(present))))
    # 3. The variance of the sum of a x residual, from the clusters, over that for
    # independent rows, the sum of a^2 x residual^2.
    residual_square = np.bincount(cell, weight * residual**2, n_cells)
    independent = smoother**2 @ (residual_square / cell_weight**2)
    row_variance = independent / squares.sum(axis=0)
    ratio = np.ones(len(smoother))
    degrees = np.full(len(smoother), np.inf)
    known = np.array([reason == "" for reason in reasons]) & (independent > 0)
    variance, degrees[known] = cluster_variance(
        sums[:, known], mass[:, known], squares[:, known], row_variance[known]
    )
    ratio[known] = variance / independent[known]
    return ClusterDesign(ratio, degrees, np.ones(len(ratio)), tuple(reasons))
