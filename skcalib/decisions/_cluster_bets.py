"""A p-value for a rate of errors of samples in clusters: bets against clusters'
sums.
"""

import numpy as np
from scipy.special import logsumexp

_N_BETS = 50  # sizes of the bet, of which the wealths are averaged


class Clusters:
    """The clusters of all samples.

    Parameters
    ----------
    code : ndarray of int, shape (n,)
        The cluster of each sample, from 0 on.

    Attributes
    ----------
    sizes : ndarray of int, shape (n_clusters,)
        Rows of each cluster.
    """

    def __init__(self, code):
        self.code = code
        self.sizes = np.bincount(code)

    @property
    def rows_per_unit(self):
        """Mean size of the cluster of a row: so many samples may tell no more than
        one.
        """
        return float(self.sizes @ self.sizes / self.sizes.sum())

    def totals(self, values):
        """Return the sum over each cluster of one value a row."""
        return np.bincount(self.code, weights=values, minlength=len(self.sizes))


def log_wealths(excess, largest, limit):
    """Return the logarithm of what each bet makes of 1.

    Parameters
    ----------
    excess : ndarray of float, shape (n_clusters,)
        Sum of the errors of each cluster, less the limit times its trials.
    largest : int
        Number of samples of the largest cluster.
    limit : float
        The limit of the rate.
    """
    # Clusters of the same sum count: there are few different ones where they are small.
    different, times = np.unique(excess / largest, return_counts=True)
    # The largest bet loses all on a cluster of the largest size that is all wrong.
    bets = (np.arange(_N_BETS) + 0.5) / _N_BETS / (1 - limit)
    return np.log1p(-bets[:, None] * different) @ times


def bet_pvalue(log_wealth):
    """Return the p-value of "the clusters' sums have a mean of at least 0".

    Each cluster's sum of (error - limit) is divided by the largest size to X. For a bet
    lambda the wealth is the product of 1 - lambda X. Under the hypothesis its mean is
    at most 1, and so is the mean over several lambda: by Markov's inequality the
    p-value is its inverse (Waudby-Smith and Ramdas 2024). Constant bets need no order
    of the clusters, and keep the p-value valid for clusters of different means, since
    the product of 1 - lambda mu is largest where all mu are equal.
    """
    log_mean = logsumexp(log_wealth) - np.log(len(log_wealth))
    return float(np.exp(-max(log_mean, 0.0)))
