"""Differences of two models on the same rows: of means, and of means over pairs."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from skcalib._errors.binned import BinnedError, GroupwiseError
from skcalib._inference.results import IntervalEstimate
from skcalib._intervals.influence import (
    tail_degrees,
    too_few_units,
)

# pairs of different units in a bin, as a share of all, below which there are none
_FEW = 1e-9


class Mean(NamedTuple):
    """A mean, the influence of rows on it, or of units with the sums of their pairs.

    `mass` is the weight of the units, `cluster_mass` the same where these are clusters.
    """

    estimate: float
    influence: object
    sums: object = None
    cluster_mass: np.ndarray | None = None
    mass: np.ndarray | None = None


def square_and_add(one, other):
    """Return the interval of the difference of two independent estimates, and its
    centre.

    An estimate that lies above its own interval counts as the interval's end: there it
    has no label noise.
    """
    (estimate, low, high), (base, base_low, base_high) = one, other
    first, second = min(max(estimate, low), high), min(max(base, base_low), base_high)
    below = np.hypot(first - low, base_high - second)
    above = np.hypot(high - first, second - base_low)
    centre = first - second
    return (
        IntervalEstimate(estimate - base, float(centre - below), float(centre + above)),
        centre,
    )


def with_pvalue(difference, centre, level):
    """Return a difference and the p-value of the normal law behind the interval on the
    side of 0.
    """
    if not centre:
        return difference, 1.0
    # the distance from the centre to the limit on the side of 0
    if centre > 0:
        reach = centre - difference.low
    else:
        reach = difference.high - centre
    z = np.inf
    if reach > 0:
        z = abs(centre) / reach * ndtri((1 + level) / 2)
    return difference, float(2 * ndtr(-z))


def paired_difference(one, other, level):
    """Return the difference of two `Mean` with its limits, and its p-value."""
    difference = one.estimate - other.estimate
    if one.sums is None:
        values = one.influence.values - other.influence.values
        if difference == 0 and not values.any():  # no row tells the models apart
            return IntervalEstimate(0.0, 0.0, 0.0), 1.0
        error, degrees, reason = replace(one.influence, values=values).spread()
        if error == 0:
            reason = "the models differ by the same in all rows"
    else:
        error, degrees, reason = _spread_of_pairs(one, other)
    if reason:
        return IntervalEstimate(difference, np.nan, np.nan, reason=reason), np.nan
    if error == 0:
        limits = IntervalEstimate(difference, difference, difference)
        return limits, float(difference == 0)
    width = float(stdtrit(degrees, (1 + level) / 2) * error)
    pvalue = float(2 * stdtr(degrees, -abs(difference) / error))
    return (
        IntervalEstimate(difference, difference - width, difference + width),
        pvalue,
    )


def _spread_of_pairs(one, other):
    """Return standard error and degrees of freedom of a difference of means over pairs,
    and why there are none.
    """
    if one.cluster_mass is None:
        reason = too_few_units(one.mass, importance=True)
    else:
        codes = np.arange(len(one.cluster_mass))
        reason = too_few_units(one.cluster_mass, cluster=codes)
    if reason:
        return np.nan, np.nan, reason
    values = one.influence - other.influence
    n_units = len(values)
    square = np.sum(values**2)
    fourth = np.sum(values**4)
    if square == 0:
        return 0.0, 1.0, ""
    degrees = min(tail_degrees(n_units, square, fourth), n_units - 1)
    if one.cluster_mass is not None:
        # Satterthwaite's with a correlation of 1: pairs do not show another one
        squares = one.cluster_mass**2
        degrees = min(degrees, squares.sum() ** 2 / np.sum(squares**2))
    error = np.sqrt(square * n_units / (n_units - 1)) / n_units
    # the jackknife counts the part of the variance that is of pairs twice
    of_pairs = _variance_of_pairs(one.sums, other.sums)
    error = np.sqrt(max(error**2 - of_pairs, of_pairs))
    return float(error), float(max(degrees, 1.0)), ""


def is_mean_over_pairs(error):
    """Return whether an error is the unbiased signed square."""
    is_binned = isinstance(error, BinnedError) and not isinstance(error, GroupwiseError)
    return is_binned and error.squared and error.method == "unbiased"


def mean_over_pairs(task, unit, n_units, error):
    """Return sum over bins of (share) x (mean of r_i r_j over pairs of rows of
    different units), r = y - s.

    Beside it stand the influences of the units, what the sum would change without one
    of them, times n_units - 1; and sums x (n_units, n_bins) of centred residuals whose
    products x_i x_j are the terms of the pairs.
    """
    strategy = error.binning
    edges = strategy._edges_of(*task.sorted_for(strategy))
    n_bins = len(edges) - 1
    weight = task.sample_weight
    if weight is None:
        weight = np.ones(len(unit))
    code = np.searchsorted(edges[1:-1], task.scores)

    # 1. The weight and the sum of residuals of each unit in each bin that it has.
    cells, index = np.unique(unit * n_bins + code, return_inverse=True)
    residual = task.labels - task.scores.astype(np.float64)
    mass = np.bincount(index, weight)
    total = np.bincount(index, weight * residual)
    moments = np.stack((mass, total, mass**2, total**2))

    # 2. The term of each bin, from the sums over its units.
    unit, code = np.divmod(cells, n_bins)
    of_bins = np.stack([np.bincount(code, moment, n_bins) for moment in moments])
    terms = _terms(*of_bins)

    # 3. The mean without each unit in turn, whose terms alone change.
    lost_terms = terms[code] - _terms(*(of_bins[:, code] - moments))
    lost = np.bincount(unit, lost_terms, n_units)
    left_weight = weight.sum() - np.bincount(unit, mass, n_units)
    without = (terms.sum() - lost) / left_weight
    influence = (n_units - 1) * (without.mean() - without)

    # 4. Centred sums, scaled so that their products are the terms of the pairs.
    pairs = of_bins[0] ** 2 - of_bins[2]
    bin_weight = np.maximum(of_bins[0], 1e-300)
    has_pairs = pairs > _FEW * bin_weight**2
    share = np.divide(bin_weight, pairs, out=np.zeros(n_bins), where=has_pairs)
    scale = np.sqrt(share / weight.sum())
    mean_residual = of_bins[1] / bin_weight
    centred = scale[code] * (total - mass * mean_residual[code])
    sums = csr_array((centred, (unit, code)), (n_units, n_bins))
    return terms.sum() / weight.sum(), influence, sums


def _variance_of_pairs(one, other):
    """Return 2 sum over i != j of (x_i x_j - z_i z_j)^2, the variance of a difference
    of means over pairs alone.
    """
    pairs = (one, one, 1), (other, other, 1), (one, other, -2)
    squares = sum(sign * (a.T @ b).power(2).sum() for a, b, sign in pairs)
    own = one.power(2).sum(axis=1) - other.power(2).sum(axis=1)
    return float(max(2 * (squares - own @ own), 0.0))


def _terms(mass, total, squared_mass, squares):
    """Return mass x (mean product of two different units of a bin), 0 where there is
    one unit only.
    """
    pairs = mass**2 - squared_mass
    some = pairs > _FEW * mass**2
    return np.where(some, mass * (total**2 - squares) / np.where(some, pairs, 1), 0)
