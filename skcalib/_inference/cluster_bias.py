"""Inference on a bias where rows depend on each other within clusters: signs of whole clusters, without draws."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from skcalib._inference.bias import BiasTest

__all__ = ["cluster_bias_test", "sign_pvalue"]

_FEW_CLUSTERS = 12  # up to here all signs are counted
_NEAR = 1e-4  # for a smaller root the p-value is 1: the formula of the tail would divide by 0


def cluster_bias_test(residual, cluster, confidence_level, weight=None):
    """Test whether the mean residual s - y is 0, by the signs of whole clusters, and invert the test.

    Under the hypothesis that the bias is b, each cluster's sum of residuals less b is as likely with either sign. The
    p-value is the chance that signs make the absolute total as large as it is.

    Parameters
    ----------
    residual : ndarray of shape (n,)
        Score minus label.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster.
    confidence_level : float
        Coverage of the interval.
    weight : ndarray of shape (n,), default=None
        Positive weights.

    Returns
    -------
    result : BiasTest
        Named tuple (pvalue, low, high). The limits are -1 and 1 where too few clusters can reject nothing.

    Notes
    -----
    The signs are exact for residuals that are symmetric. Simulated with 8 to 60 clusters of dependent rows, intervals
    of .9 covered .88 to .91, but .79 to .86 where a group had 5 or 6 events in all.
    """
    weight = np.ones(len(residual)) if weight is None else weight
    code = np.unique(cluster, return_inverse=True)[1]
    sums, mass = np.bincount(code, weight * residual), np.bincount(code, weight)
    bias = sums.sum() / mass.sum()

    def excess(b):
        return sign_pvalue(sums - b * mass) - (1 - confidence_level)

    pvalue = sign_pvalue(sums)
    return BiasTest(pvalue, _limit(excess, bias, -1.0), _limit(excess, bias, 1.0), pvalue)


def sign_pvalue(sums):
    """Return the chance that random signs make the absolute sum of `sums` as large as it is."""
    parts, total = np.abs(sums[sums != 0]), abs(sums.sum())
    if total <= 1e-12 * parts.sum():
        return 1.0
    if len(parts) <= _FEW_CLUSTERS:
        all_sums = np.zeros(1)
        for part in parts:
            all_sums = np.concatenate((all_sums + part, all_sums - part))
        return float(np.mean(np.abs(all_sums) >= total * (1 - 1e-12)))
    return _lugannani_rice(parts / parts.sum(), total / parts.sum())


def _lugannani_rice(parts, total):
    """Return both tails of a sum of parts with random signs, whose log-moments are sum(log(cosh(t part)))."""
    least = 2.0 ** (1 - len(parts))  # all signs equal
    if total >= 1 - 1e-12:
        return least
    high = 1.0
    while parts @ np.tanh(high * parts) < total:
        high *= 2
        if high > 1e12:
            return least
    t = brentq(lambda t: parts @ np.tanh(t * parts) - total, 0, high, xtol=1e-12, rtol=1e-12)
    log_moment = np.sum(np.logaddexp(t * parts, -t * parts) - np.log(2))
    root = np.sqrt(2 * max(t * total - log_moment, 0.0))
    if root < _NEAR:
        return 1.0
    u = t * np.sqrt(np.sum((parts / np.cosh(np.minimum(t * parts, 300))) ** 2))
    tail = ndtr(-root) + np.exp(-(root**2) / 2) / np.sqrt(2 * np.pi) * (1 / u - 1 / root)
    return float(np.clip(2 * tail, least, 1.0))


def _limit(excess, bias, end):
    """Return where the p-value falls to the level, between the observed bias and -1 or 1."""
    step = 0.01 if end > bias else -0.01
    inside = bias
    while abs(bias + step) < 1 and excess(bias + step) >= 0:
        inside, step = bias + step, 2 * step
    outside = bias + step if abs(bias + step) < 1 else end
    if excess(outside) >= 0:
        return end
    return float(brentq(excess, inside, outside, xtol=1e-10))
