"""P-values adjusted for their number: by Holm's rule, or by the exact distributions of
discrete p-values.
"""

import numpy as np

from skcalib._inference.bias import event_count_pmf
from skcalib._rows.blocks import total_weight

_MOST_CONVOLVED = 2000  # rows; of more the p-value counts as continuous
# relative, of p-values beyond some hundred rows, which are approximations
_TOLERANCE = 1e-3


def holm(pvalues):
    """Return p-values adjusted for their number by Holm's step-down rule."""
    order = np.argsort(pvalues, kind="stable")
    stepped = np.maximum.accumulate(
        np.minimum(pvalues[order] * np.arange(len(order), 0, -1), 1)
    )
    adjusted = np.empty(len(order))
    adjusted[order] = stepped
    return adjusted


def adjusted_pvalues(pvalues, distributions):
    """Return p-values of independent groups, adjusted by the step-down rule for the
    least of them.

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
    # of the k-th and all later groups: none has a p-value as small as the k-th
    log_none = np.zeros(len(order))
    with np.errstate(divide="ignore"):
        for rank, j in enumerate(order):
            log_none[: rank + 1] += np.log1p(
                -_probability(distributions[j], ordered[: rank + 1])
            )
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(-np.expm1(log_none))
    return np.maximum(adjusted, pvalues)


def _probability(distribution, at):
    if distribution is None:
        return np.minimum(at, 1.0)
    values, probabilities = distribution
    return np.append(0.0, probabilities)[
        np.searchsorted(values, at * (1 + _TOLERANCE), side="right")
    ]


def pvalue_distribution(scores, weight=None, alternative="two-sided"):
    """Return what the p-value of the number of events can be, and how probable that is;
    None: continuous.
    """
    n_rows = total_weight(weight, len(scores))
    if n_rows > _MOST_CONVOLVED or (weight is not None and (weight % 1).any()):
        return None
    mass = event_count_pmf(scores, weight)
    less, greater = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    values = {
        "two-sided": 2 * np.minimum(less, greater),
        "greater": greater,
        "less": less,
    }[alternative]
    values = np.minimum(values, 1.0)
    order = np.argsort(values, kind="stable")
    return values[order], np.minimum(np.cumsum(mass[order]), 1.0)
