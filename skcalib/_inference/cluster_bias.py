"""Inference on a bias where rows depend on each other within clusters, without draws."""

import numpy as np

from skcalib._inference.bias import BiasTest, bias_test

_FEWEST_CLUSTERS = 2.5  # of equal size: fewer show nothing


def cluster_bias_test(scores, labels, cluster, confidence_level, weight=None):
    """Test a bias as `bias_test` does, with as many rows as the clusters are worth, and invert the test.

    The sums of the residuals of whole clusters vary more than those of independent rows. By this design effect the
    weights are divided. It is estimated from k clusters (Kish's number, where their sizes differ), for which it is
    multiplied by k^2 / ((k - 1)(k - 2)): that is close to the squared quantile of a t distribution.

    Parameters
    ----------
    scores, labels : ndarray of shape (n,)
        Scores and labels.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster.
    confidence_level : float
        Coverage of the interval.
    weight : ndarray of shape (n,), default=None
        Positive weights.

    Returns
    -------
    result : BiasTest
        Named tuple (pvalue, low, high, bias_pvalue). The limits are the widest that are possible, and the p-values 1,
        where there are too few clusters.
    """
    scores = np.asarray(scores, dtype=np.float64)
    weight = np.ones(len(scores)) if weight is None else weight
    code = np.unique(cluster, return_inverse=True)[1]
    mass, total = np.bincount(code, weight), weight.sum()
    n_clusters, mean_score = total**2 / (mass @ mass), weight @ scores / total
    if n_clusters < _FEWEST_CLUSTERS:
        return BiasTest(1.0, float(mean_score - 1), float(mean_score), 1.0)
    residual = labels - scores
    residual = residual - weight @ residual / total
    squares = weight @ residual**2
    few = n_clusters**2 / ((n_clusters - 1) * (n_clusters - 2))
    effect = np.sum(np.bincount(code, weight * residual) ** 2) / squares if squares > 0 else 1.0
    effect = few * max(effect, 1.0)
    return bias_test(scores, weight @ labels / effect, confidence_level, weight / effect, squares / total)
