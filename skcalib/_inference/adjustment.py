"""P-values adjusted for their number: by Holm's rule, or by the exact distributions of
discrete p-values.
"""

import numpy as np

from skcalib._inference.event_counts import event_count_pmf
from skcalib._rows.blocks import total_weight

# With more rows a p-value has so many possible values that it counts as continuous.
_MOST_CONVOLVED = 2000
# Relative difference within which two p-values count as equal: beyond some hundred rows
# they are approximations.
_TOLERANCE = 1e-3


def holm(pvalues):
    """Return p-values (m,) adjusted for their number by Holm's step-down rule (1979):
    the k-th smallest is multiplied by m - k + 1, and made at least the one before.
    """
    order = np.argsort(pvalues, kind="stable")
    n_not_smaller = np.arange(len(order), 0, -1)
    multiplied = np.minimum(pvalues[order] * n_not_smaller, 1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(multiplied)
    return adjusted


def adjusted_pvalues(pvalues, distributions):
    """Return p-values of independent groups, adjusted for their number: each is the
    probability that any group with no smaller p-value has one as small, made at least
    the one before (Westfall and Wolfinger 1997).

    Parameters
    ----------
    pvalues : ndarray of shape (m,)
        P-values.
    distributions : list of (values, probabilities) or None
        For each group the p-values that it can have, in increasing order, and the
        probability of one that is at most as large; None stands for a uniform p-value.

    Returns
    -------
    adjusted : ndarray of shape (m,)
        Never above Holm's.
    """
    order = np.argsort(pvalues, kind="stable")
    ordered = pvalues[order]
    # Entry k: log of the probability that neither the group of the k-th smallest
    # p-value nor any later one has a p-value as small as the k-th.
    log_none = np.zeros(len(order))
    with np.errstate(divide="ignore"):
        for rank, group in enumerate(order):
            up_to_rank = slice(rank + 1)
            as_small = _probability(distributions[group], ordered[up_to_rank])
            log_none[up_to_rank] += np.log1p(-as_small)
    # 1 - exp(log) is the probability that one of them has.
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(-np.expm1(log_none))
    # A discrete p-value is often reached more rarely than its size says: adjusting
    # must not make it smaller.
    return np.maximum(adjusted, pvalues)


def _probability(distribution, pvalues):
    """Return the probability of a p-value at most as large as each of `pvalues` (m,).
    `distribution` holds the possible p-values, increasing, and their cumulative
    probabilities; None for a uniform p-value.
    """
    if distribution is None:
        return np.minimum(pvalues, 1.0)
    possible, cumulative = distribution
    # how many of the possible p-values are at most as large
    n_at_most = np.searchsorted(possible, pvalues * (1 + _TOLERANCE), side="right")
    return np.append(0.0, cumulative)[n_at_most]


def pvalue_distribution(scores, weight=None, alternative="two-sided"):
    """Return the distribution of the p-value of a number of events, if the scores are
    calibrated.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores.
    weight : ndarray of shape (n,), default=None
        Weights; None means 1.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        "greater": the event frequency is greater than the scores say.

    Returns
    -------
    distribution : (pvalues, cumulative) or None
        The p-values that are possible, in increasing order, and the probability of one
        that is at most as large. None for many rows, and for weights that are no
        integers, where the p-value counts as uniform.
    """
    n_rows = total_weight(weight, len(scores))
    if n_rows > _MOST_CONVOLVED or (weight is not None and (weight % 1).any()):
        return None
    # For each number of events: its probability, and that of at most and at least as
    # many.
    mass = event_count_pmf(scores, weight)
    less = np.cumsum(mass)
    greater = np.cumsum(mass[::-1])[::-1]
    if alternative == "greater":
        pvalues = greater
    elif alternative == "less":
        pvalues = less
    else:
        pvalues = 2 * np.minimum(less, greater)
    pvalues = np.minimum(pvalues, 1.0)
    order = np.argsort(pvalues, kind="stable")
    return pvalues[order], np.minimum(np.cumsum(mass[order]), 1.0)
