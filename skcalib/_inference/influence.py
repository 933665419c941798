"""Intervals of estimates that are means of influences, one a row, for rows, weights and clusters."""

import numpy as np
from scipy.special import stdtrit


def half_width(influence, level, weight=None, cluster=None):
    """Return half the width of the confidence interval of an estimate that is a weighted mean of influences.

    The quantile is Student's: a variance that k units with a kurtosis K of their influences show has about 2 k / (K -
    1) degrees of freedom, few where a few events carry it.

    Parameters
    ----------
    influence : ndarray of shape (n,)
        What each row adds to the estimate, with mean 0.
    level : float
        Coverage.
    weight : ndarray of shape (n,), default=None
        Weights: numbers of equal rows, unless `cluster` is given.
    cluster : ndarray of int, shape (n,), default=None
        Code of each row's cluster; its rows count as one unit.

    Returns
    -------
    width : float
        Half the width.
    """
    error, freedom = standard_error(influence, weight, cluster)
    return float(stdtrit(freedom, (1 + level) / 2) * error)


def standard_error(influence, weight=None, cluster=None):
    """Return the standard error behind `half_width` and its degrees of freedom."""
    weight = np.ones(len(influence)) if weight is None else weight
    total = n_units = weight.sum()
    if cluster is not None:
        influence, weight = np.bincount(cluster, weight * influence), 1.0
        n_units = len(influence)
    square, fourth = np.sum(weight * influence**2), np.sum(weight * influence**4)
    if square == 0:
        return 0.0, 1.0
    freedom = (
        2 * n_units / max(n_units * fourth / square**2 - 1, 2 / 3)
    )  # at most three times the units
    if cluster is not None:
        square, freedom = square * n_units / (n_units - 1), min(freedom, n_units - 1)
    return float(np.sqrt(square) / total), float(max(freedom, 1.0))


def cluster_codes(cluster, weight_type, n_rows):
    """Return the unit of each row for `half_width`; None where a unit is a row and its weight a number of such.

    Weights of importance make each row a unit of its own.
    """
    if cluster is None:
        return np.arange(n_rows) if weight_type == "importance" else None
    names, codes = np.unique(cluster, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            "clusters has one cluster only: its variance cannot be seen. Leave clusters out."
        )
    return codes
