"""Meta-analysis of a few estimates with known variances: a normal random-effects model.

Estimate i is ``x_i = mu + u_i + e_i`` with ``u_i ~ N(0, tau^2)`` between clusters and
``e_i ~ N(0, v_i)`` within, v_i known.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit
from scipy.stats import chi2

_ITERATIONS = 1000
_TOLERANCE = 1e-12
_BISECTIONS = 60
# Of the confidence distribution: the quantiles of chi-squared at which tau^2 is solved
# for, and the draws that interpolate between them.
_N_QUANTILES = 1000
_N_DRAWS = 100_000
_SEED = 0  # a fixed one: the same estimates give the same interval


class Pooled(NamedTuple):
    """Mean of the clusters with its confidence limits, and the deviation between
    clusters.
    """

    mean: float
    low: float
    high: float
    tau: float


def pooled(estimates, variances, level):
    """Return the mean of a quantity over clusters as a `Pooled`, by REML with Hartung
    and Knapp's (2001) interval of the confidence level `level`.

    `estimates` (n_clusters,) are those of the clusters, and `variances` (n_clusters,)
    their known sampling variances. The standard error is at least the one that they
    would have without differences between clusters: Hartung and Knapp's formula alone
    may give less by chance.
    """
    tau2 = reml_variance(estimates, variances)
    weight = 1 / (variances + tau2)
    mean = _weighted_mean(estimates, weight)
    # Hartung and Knapp: the error of the mean is scaled by the observed scatter, and
    # the quantile is Student's.
    n_clusters = len(estimates)
    scale = weight @ (estimates - mean) ** 2 / (n_clusters - 1)
    # A scatter smaller than the variances explain is chance: it does not narrow the
    # interval.
    error = np.sqrt(max(scale, 1.0) / weight.sum())
    half_width = stdtrit(n_clusters - 1, (1 + level) / 2) * error
    return Pooled(mean, mean - half_width, mean + half_width, float(np.sqrt(tau2)))


def reml_variance(estimates, variances):
    """Return the variance between clusters, tau^2, of the largest restricted likelihood
    (REML), at least 0.

    `estimates` (n_clusters,) are those of the clusters, and `variances` (n_clusters,)
    their known sampling variances.
    """
    # The fixed point of the REML score equation, with w = 1 / (v + tau^2):
    # tau^2 = sum w^2 ((x - mean)^2 - v) / sum w^2 + 1 / sum w. It starts at the
    # estimate of moments.
    tau2 = max(float(np.var(estimates, ddof=1) - variances.mean()), 0.0)
    for _ in range(_ITERATIONS):
        weight = 1 / (variances + tau2)
        mean = _weighted_mean(estimates, weight)
        excess = weight**2 @ ((estimates - mean) ** 2 - variances)
        updated = excess / np.sum(weight**2) + 1 / weight.sum()
        updated = max(float(updated), 0.0)
        if abs(updated - tau2) <= _TOLERANCE * max(tau2, variances.min()):
            return updated
        tau2 = updated
    return tau2


def prediction_limits(estimates, variances, level):
    """Return the limits (2,), lower and upper, for the true value of a new cluster, by
    the confidence distribution of tau^2 (Nagashima, Noma and Furukawa, 2019).

    tau^2 is the variance between clusters; `estimates` and `variances` (n_clusters,)
    are those of the clusters observed. The usual limits, mean -+ t sqrt(tau^2 +
    error^2), take tau^2 for known, and cover too little where it is small beside the
    variances.
    """
    n_clusters = len(estimates)
    # 1. The confidence distribution of tau^2. With w = 1 / (variance + tau^2),
    # Q(tau^2) = sum w (x - mean)^2 falls in tau^2, and at the true one it has a
    # chi-squared distribution: each quantile of that gives a tau^2.
    share = (np.arange(_N_QUANTILES) + 0.5) / _N_QUANTILES
    quantiles = chi2.ppf(share, n_clusters - 1)
    tau2 = _tau2_at(quantiles, estimates, variances)
    # 2. For each tau^2, the mean over clusters and its standard error (Hartung and
    # Knapp).
    weight = 1 / (variances + tau2[:, None])  # (_N_QUANTILES, n_clusters)
    total = weight.sum(axis=1)
    mean = weight @ estimates / total
    scatter = np.sum(weight * (estimates - mean[:, None]) ** 2, axis=1)
    error = np.sqrt(scatter / ((n_clusters - 1) * total))
    # 3. Draws of new clusters: a tau^2 at random, the cluster's deviation from the
    # mean, and the error of the mean.
    rng = np.random.default_rng(_SEED)
    drawn = rng.integers(_N_QUANTILES, size=_N_DRAWS)
    deviation = np.sqrt(tau2[drawn]) * rng.standard_normal(_N_DRAWS)
    error_of_mean = error[drawn] * rng.standard_t(n_clusters - 1, _N_DRAWS)
    new_clusters = mean[drawn] + deviation - error_of_mean
    return np.quantile(new_clusters, [(1 - level) / 2, (1 + level) / 2])


def _tau2_at(quantiles, estimates, variances):
    """Return the variances between clusters, tau^2 (n_quantiles,), at which Cochran's Q
    has the values `quantiles` (n_quantiles,), by bisection; 0 where Q is smaller
    already at 0.
    """

    def cochran_q(tau2):
        """Return ``Q(tau^2) = sum w (x - mean)^2`` for each tau^2 of an array, with
        ``w = 1 / (variance + tau^2)``.
        """
        weight = 1 / (variances + tau2[:, None])  # (n_quantiles, n_clusters)
        mean = weight @ estimates / weight.sum(axis=1)
        return np.sum(weight * (estimates - mean[:, None]) ** 2, axis=1)

    # Q falls in tau^2. Above `high` it is below the quantile, because
    # Q(tau^2) <= sum (x - mean)^2 / tau^2.
    low = np.zeros(len(quantiles))
    sum_of_squares = np.sum((estimates - estimates.mean()) ** 2)
    high = sum_of_squares / quantiles + variances.max()
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_above = cochran_q(middle) > quantiles
        low = np.where(is_above, middle, low)
        high = np.where(is_above, high, middle)
    is_smaller_at_zero = cochran_q(np.zeros(len(quantiles))) <= quantiles
    return np.where(is_smaller_at_zero, 0.0, (low + high) / 2)


def _weighted_mean(estimates, weight):
    return float(weight @ estimates / weight.sum())
