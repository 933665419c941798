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
        """Return how many samples are worth one independent row (m,), for an interval
        of this level.

        A binomial interval is made for independent rows and takes the normal quantile.
        The variance of clusters is estimated and asks for Student's: the square of the
        ratio of both, which depends on the level, is therefore a factor of the effect.
        """
        tail = (1 + confidence_level) / 2
        is_estimated = np.isfinite(self.degrees)
        student = np.ones(len(self.degrees))
        student[is_estimated] = stdtrit(self.degrees[is_estimated], tail) / ndtri(tail)
        return np.maximum(self.ratio * student**2, self.least)

    @property
    def is_known(self):
        """Which frequencies have an interval."""
        return np.array([reason == "" for reason in self.reasons])


def bin_design(labels, bins, n_bins, cluster, weight, importance):
    """Return the design of the event frequencies of bins.

    Variance and degrees are those of `Influence`. In a bin of equal labels no
    dependence can be seen, and rows of one cluster are taken to be alike, the most that
    there can be.

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
        bin_weight = weight[rows]
        total = bin_weight.sum()
        codes = np.unique(cluster[rows], return_inverse=True)[1]
        reasons[place] = too_few_units(bin_weight, importance, codes)
        events = labels[rows].astype(np.float64)
        if reasons[place] or events.min() == events.max():
            # Rows of a cluster that are all alike: its sum has the variance W_g^2, and
            # W_g if its rows were independent.
            cluster_weight = np.bincount(codes, bin_weight)
            ratio[place] = cluster_weight @ cluster_weight / cluster_weight.sum()
            continue
        # Variances of the sum of residuals: of the clusters, over that of rows.
        residual = events - bin_weight @ events / total
        independent = bin_weight @ residual**2
        spread = Influence(residual, bin_weight, importance, codes).spread()
        if spread.reason:
            # Residuals that cancel in every cluster: the smallest effect, `least`.
            ratio[place] = 0
        else:
            ratio[place] = (spread.standard_error * total) ** 2 / independent
            degrees[place] = spread.degrees
        if importance:
            least[place] = np.sum((bin_weight * residual) ** 2) / independent
    return ClusterDesign(ratio, degrees, least, tuple(reasons))


def smooth_design(residual, cell, smoother, cluster, weight):
    """Return the design of a smooth curve, a linear function of cells' frequencies.

    A sample adds its share a of the curve's value times its residual. Clusters are
    summed first, with variance and degrees as in `cluster_variance`.

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
    of_cell = np.bincount(cell, weight, n_cells)
    shape = (cluster.max() + 1, n_cells)

    def by_cluster(values):
        """Return sums of samples' values by cluster and cell."""
        return csr_array((values, (cluster, cell)), shape)

    # 1. Sums over clusters of a x residual, of a, and of a^2: each (G, m).
    sums = by_cluster(weight * residual / of_cell[cell]) @ smoother.T
    mass = by_cluster(weight / of_cell[cell]) @ smoother.T
    squares = by_cluster(weight / of_cell[cell] ** 2) @ smoother.T**2
    # 2. Windows that few clusters fill say nothing about how far clusters differ.
    reasons = []
    for share in np.abs(mass).T:
        present = np.flatnonzero(share)
        reasons.append(too_few_units(share[present], cluster=np.arange(len(present))))
    # 3. The same for independent samples: the sum of a^2 x residual^2.
    of_residuals = np.bincount(cell, weight * residual**2, n_cells) / of_cell**2
    independent = smoother**2 @ of_residuals
    row_variance = independent / squares.sum(axis=0)
    ratio = np.ones(len(smoother))
    degrees = np.full(len(smoother), np.inf)
    known = np.array([reason == "" for reason in reasons]) & (independent > 0)
    variance, degrees[known] = cluster_variance(
        sums[:, known], mass[:, known], squares[:, known], row_variance[known]
    )
    ratio[known] = variance / independent[known]
    return ClusterDesign(ratio, degrees, np.ones(len(ratio)), tuple(reasons))
