"""A p-value for a rate of errors of samples in clusters: bets against clusters'
sums.
"""

import numpy as np

_N_BETS = 50  # numbers of sizes of a bet, over which the wealth is averaged


class Clusters:
    """The clusters of all samples.

    Parameters
    ----------
    code : ndarray of int, shape (n,)
        The cluster of each sample, as codes from 0.

    Attributes
    ----------
    sizes : ndarray of int, shape (n_clusters,)
        Number of rows of each cluster.
    """

    def __init__(self, code):
        self.code = code
        self.sizes = np.bincount(code)  # rows of each cluster, (n_clusters,)

    @property
    def rows_per_unit(self):
        """Mean size of the cluster of a row: if the rows of a cluster are identical,
        this number of rows has the information of one row.
        """
        return float(self.sizes @ self.sizes / self.sizes.sum())

    def totals(self, values):
        """Return the sum of values (n,) over each cluster, (n_clusters,)."""
        return np.bincount(self.code, weights=values, minlength=len(self.sizes))


def log_wealths(excess, largest, limit):
    """Return the logarithm of the wealth, (n_bets,), that bets of several sizes on the
    clusters turn a stake of 1 into.

    A bet gains on each cluster with fewer errors than the limit allows, and loses on
    the others: a large wealth is evidence that the error rate is below the limit. See
    `bet_pvalue`.

    Parameters
    ----------
    excess : ndarray of float, shape (n_clusters,)
        Number of errors in each cluster minus the limit times its number of trials.
    largest : int
        Number of samples of the largest cluster.
    limit : float
        The limit on the error rate.
    """
    # Each cluster multiplies the wealth of a bet of size b by 1 - b x, x its excess
    # over the largest size. Clusters with equal x are counted: small ones have few
    # distinct values.
    distinct, n_clusters = np.unique(excess / largest, return_counts=True)
    # A bet of 1 / (1 - limit) would lose all on a cluster of the largest size in which
    # all is wrong: the sizes of bets are evenly spaced below that.
    bets = (np.arange(_N_BETS) + 0.5) / _N_BETS / (1 - limit)
    log_factors = np.log1p(-bets[:, None] * distinct)  # (n_bets, n_distinct)
    return log_factors @ n_clusters


def bet_pvalue(log_wealth):
    """Return the p-value of the hypothesis that the clusters' sums have a mean of at
    least 0, from the logarithms of the wealth of several bets, (n_bets,).

    Let X be a cluster's sum of (error - limit), divided by the size of the largest
    cluster. The wealth of a bet of size lambda is the product of 1 - lambda X over the
    clusters. Under the hypothesis, its expectation is at most 1, and so is that of the
    mean over several lambda. By Markov's inequality, the inverse of the mean is a
    p-value (Waudby-Smith and Ramdas 2024). Constant bets do not depend on the order of
    the clusters, and the p-value remains valid for clusters with different means,
    because the product of 1 - lambda mu is largest if all mu are equal.
    """
    log_mean = np.logaddexp.reduce(log_wealth) - np.log(len(log_wealth))
    return float(np.exp(-max(log_mean, 0.0)))
