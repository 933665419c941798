"""Differences of two models on the same rows: of means, and of means over pairs."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from skcalib._errors.binned import BinnedError, GroupwiseError
from skcalib._inference.results import IntervalEstimate
from skcalib._intervals.influence import (
    Spread,
    tail_degrees,
    too_few_units,
)

# A bin has no pairs of different units if they are less than this share of all pairs:
# it is rounding.
_FEW = 1e-9


class Mean(NamedTuple):
    """Mean over rows, or over pairs of units in a bin, with its influence values.

    Attributes
    ----------
    estimate : float
        The mean.
    influence : Influence, or ndarray of shape (n_units,)
        Influence of the rows or of the units.
    sums : sparse array of shape (n_units, n_bins), or None
        For pairs: the products of two rows of this array are the terms of the mean.
    cluster_mass : ndarray of shape (n_units,) or None
        For pairs: weights of the units if these are clusters.
    mass : ndarray of shape (n_units,) or None
        For pairs: weights of the units.
    observed_events : float
        For pairs: how many independent samples the rarer label is worth; of several
        binary problems, that with the most.
    """

    estimate: float
    influence: object
    sums: object = None
    cluster_mass: np.ndarray | None = None
    mass: np.ndarray | None = None
    observed_events: float = np.inf


def with_pvalue(difference, centre, level):
    """Return the `IntervalEstimate` of a difference, unchanged, and the two-sided
    p-value of no difference that agrees with it.

    The p-value is that of a normal distribution around `centre` (a float inside the
    interval) whose quantile for the confidence level `level` is the limit on the side
    of 0.
    """
    if not centre:
        return difference, 1.0
    # The half-width of the interval on the side of 0.
    if centre > 0:
        half_width = centre - difference.low
    else:
        half_width = difference.high - centre
    z = np.inf
    if half_width > 0:
        standard_error = half_width / ndtri((1 + level) / 2)
        z = abs(centre) / standard_error
    return difference, float(2 * ndtr(-z))


def paired_difference(first, second, level, few_events):
    """Return the `IntervalEstimate` of the difference, first minus second, of two
    `Mean` on the same rows, and the p-value of no difference, both from Student's t
    distribution unless there are few events.

    The influence of a row on the difference is the difference between its influences on
    the two means.

    Parameters
    ----------
    first, second : Mean
        The means.
    level : float
        The confidence level.
    few_events : EqualLosses or EqualSquares
        The hypothesis of no difference, which has its own p-value where the spread of
        few events says little.
    """
    difference = first.estimate - second.estimate
    if first.sums is None:  # means over rows
        values = first.influence.values - second.influence.values
        if difference == 0 and not values.any():  # the models are equal in all rows
            return IntervalEstimate(0.0, 0.0, 0.0), 1.0
        # Weights and clusters are those of both models.
        influence = replace(first.influence, values=values)
        error, degrees, reason = influence.spread()
        if error == 0:
            reason = "the models differ by the same amount in all samples"
    else:
        error, degrees, reason = _spread_of_pairs(first, second)
    pvalue = np.nan
    if not reason and error > 0:
        pvalue = float(2 * stdtr(degrees, -abs(difference) / error))
    elif not reason:
        pvalue = float(difference == 0)
    few_pvalue = few_events.pvalue(difference)
    if few_pvalue is not None:
        pvalue = few_pvalue
    reason = reason or few_events.why_no_limits()
    if reason:
        return IntervalEstimate(difference, np.nan, np.nan, reason=reason), pvalue
    width = float(stdtrit(degrees, (1 + level) / 2) * error)
    interval = IntervalEstimate(difference, difference - width, difference + width)
    return interval, pvalue


def _spread_of_pairs(first, second):
    """Return the `Spread` of the difference of two `Mean` over pairs of units: its
    standard error, degrees of freedom, and the reason if there are none, else "".
    """
    if first.cluster_mass is None:
        reason = too_few_units(first.mass, importance=True)
    else:
        codes = np.arange(len(first.cluster_mass))
        reason = too_few_units(first.cluster_mass, cluster=codes)
    if reason:
        return Spread(np.nan, np.nan, reason)
    # The jackknife: the standard error of the mean of the units' influences on the
    # difference, with degrees of freedom from the kurtosis of these influences.
    values = first.influence - second.influence  # (n_units,)
    n_units = len(values)
    square = np.sum(values**2)
    fourth = np.sum(values**4)
    if square == 0:
        return Spread(0.0, 1.0, "")
    degrees = min(tail_degrees(n_units, square, fourth), n_units - 1)
    if first.cluster_mass is not None:
        # Satterthwaite's degrees of freedom, (sum v)^2 / sum v^2, for clusters whose
        # rows have a correlation of 1, so that v is the squared weight. Pairs of
        # different clusters do not show the correlation within them.
        squares = first.cluster_mass**2
        degrees = min(degrees, squares.sum() ** 2 / np.sum(squares**2))
    error = np.sqrt(square * n_units / (n_units - 1)) / n_units
    # The jackknife counts twice the part of the variance that comes from pairs alone
    # (the second term of Hoeffding's decomposition).
    pair_variance = _pair_variance(first.sums, second.sums)
    error = np.sqrt(max(error**2 - pair_variance, pair_variance))
    return Spread(float(error), float(max(degrees, 1.0)), "")


def is_mean_over_pairs(error):
    """Return whether an error is the unbiased estimate of the squared error in bins,
    which is a mean over pairs of rows.
    """
    is_binned = isinstance(error, BinnedError) and not isinstance(error, GroupwiseError)
    return is_binned and error.squared and error.method == "unbiased"


def mean_over_pairs(task, unit, n_units, error):
    """Return an unbiased squared calibration error as a mean over pairs, with what its
    variance needs: the influence of each independent unit, and the terms of the pairs.

    The error is the sum over bins of the bin's share of the weight times the mean of
    r_i r_j over pairs of rows of different units, r = y - s. A unit is a row or a
    cluster.

    Parameters
    ----------
    task : BinaryTask
        The rows.
    unit : ndarray of int, shape (n,)
        Code of each row's unit, 0 to n_units - 1.
    n_units : int
        Number of units.
    error : BinnedError
        The error; `error.binning` defines the bins.

    Returns
    -------
    estimate : float
        The squared error.
    influence : ndarray of shape (n_units,)
        Jackknife influence of the units: the change in the estimate if a unit is
        omitted, times n_units - 1.
    sums : sparse array of shape (n_units, n_bins)
        Sums of centred residuals, scaled so that the product of the sums of two units
        in a bin is the term of their pair.
    """
    strategy = error.binning
    # Scores, labels and weights, sorted by score where this makes the bins faster.
    edges = strategy._edges_of(*task.sorted_for(strategy))
    n_bins = len(edges) - 1
    weight = task.sample_weight
    if weight is None:
        weight = np.ones(len(unit))
    bin_of_row = np.searchsorted(edges[1:-1], task.scores)

    # 1. The weight and the sum of residuals of each unit in each bin where it has rows:
    # arrays with one entry for each such cell.
    cells, cell_of_row = np.unique(unit * n_bins + bin_of_row, return_inverse=True)
    residual = task.labels - task.scores.astype(np.float64)
    mass = np.bincount(cell_of_row, weight)
    total = np.bincount(cell_of_row, weight * residual)
    # Weight, residuals and their squares, (4, n_cells).
    moments = np.stack((mass, total, mass**2, total**2))

    # 2. The term of each bin, its weight times the mean product of the residuals of two
    # units, from the sums of these moments over its units, (4, n_bins).
    unit_of_cell, bin_of_cell = np.divmod(cells, n_bins)
    bin_moments = np.stack(
        [np.bincount(bin_of_cell, moment, n_bins) for moment in moments]
    )
    terms = _bin_terms(*bin_moments)

    # 3. The estimate without each unit in turn: the terms of the unit's bins change.
    moments_without = bin_moments[:, bin_of_cell] - moments
    lost_terms = terms[bin_of_cell] - _bin_terms(*moments_without)
    lost = np.bincount(unit_of_cell, lost_terms, n_units)
    left_weight = weight.sum() - np.bincount(unit_of_cell, mass, n_units)
    without = (terms.sum() - lost) / left_weight
    influence = (n_units - 1) * (without.mean() - without)

    # 4. Centred sums, scaled so that their products are the terms of the pairs.
    bin_mass, bin_total, bin_squared_mass, _ = bin_moments
    pair_mass = bin_mass**2 - bin_squared_mass
    bin_mass = np.maximum(bin_mass, 1e-300)  # empty bins
    has_pairs = pair_mass > _FEW * bin_mass**2
    share = np.divide(bin_mass, pair_mass, out=np.zeros(n_bins), where=has_pairs)
    scale = np.sqrt(share / weight.sum())
    mean_residual = bin_total / bin_mass
    centred = total - mass * mean_residual[bin_of_cell]
    sums = csr_array(
        (scale[bin_of_cell] * centred, (unit_of_cell, bin_of_cell)), (n_units, n_bins)
    )
    return terms.sum() / weight.sum(), influence, sums


def _pair_variance(sums, other_sums):
    """Return what pairs alone add to the variance of a difference of two means over
    pairs: 2 times the sum over i != j of d_ij^2, d_ij = x_i x_j - z_i z_j, for rows of
    the sparse (n_units, n_bins) of both. x and z are centred, so that different pairs,
    each of which occurs twice, are uncorrelated.
    """
    # First the sum over all i and j, i = j included. Expanded, it is the sum of
    # (x_i x_j)^2, which is the squared Frobenius norm of X'X, plus the same for Z,
    # minus twice the sum of (x_i x_j) (z_i z_j), which is the squared norm of X'Z.
    squares = (
        _squared_norm(sums.T @ sums)
        + _squared_norm(other_sums.T @ other_sums)
        - 2 * _squared_norm(sums.T @ other_sums)
    )
    # Then the terms with i = j are subtracted: d_ii = |x_i|^2 - |z_i|^2, (n_units,).
    diagonal = sums.power(2).sum(axis=1) - other_sums.power(2).sum(axis=1)
    return float(max(2 * (squares - diagonal @ diagonal), 0.0))


def _squared_norm(matrix):
    """Return the sum of the squared entries of a sparse matrix."""
    return matrix.power(2).sum()


def _bin_terms(mass, total, squared_mass, squared_total):
    """Return the term of each bin in the mean over pairs: its weight times the mean
    product of the residuals of two different units, 0 for a single unit.

    That is the sum of t_i t_j over that of w_i w_j, i != j, each a square of a sum less
    a sum of squares, for a unit's weight w (`mass`) and weighted sum of residuals t
    (`total`).
    """
    pair_mass = mass**2 - squared_mass
    pair_products = total**2 - squared_total
    has_pairs = pair_mass > _FEW * mass**2
    divisor = np.where(has_pairs, pair_mass, 1)
    return np.where(has_pairs, mass * pair_products / divisor, 0)
