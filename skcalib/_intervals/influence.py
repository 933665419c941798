"""Uncertainty of means of one term per row, and of smooth functions of such means:
variance, degrees of freedom, interval and p-value, from the influence of each sample.

Frequency weights count rows, importance weights enter the variance squared, and rows of
one cluster are summed before they are squared.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from skcalib._rows.blocks import effective_size, weights_or_ones
from skcalib._rows.sorting import distinct_values

# Fewer units of equal weight say nothing about how far units differ.
FEWEST_UNITS = 3.0
# Influences on numbers of the order of 1 are 0 below this, but for rounding.
_ROUNDING = 1e-13
_EQUAL_CLUSTERS = (
    "all clusters have the same sum, so the variation between clusters cannot be"
    " estimated"
)
_ALL_EQUAL = (
    "all samples have the same value, so the variation between samples cannot be"
    " estimated"
)


class Spread(NamedTuple):
    """How far an estimate may lie from the truth: its standard error, and the degrees
    of freedom of Student's distribution for it.

    `reason` says why there is no standard error; empty where there is one.
    """

    standard_error: float
    degrees: float
    reason: str = ""

    def half_width(self, confidence_level):
        """Return half the width of the interval, Student's quantile times the standard
        error, and why it is NaN (else an empty text).
        """
        error, degrees, reason = self
        if not reason and error == 0:
            reason = _ALL_EQUAL
        if reason:
            return np.nan, reason
        quantile = stdtrit(degrees, (1 + confidence_level) / 2)
        return float(quantile * error), ""

    def pvalue(self, estimate, alternative="two-sided"):
        """Return the p-value of "the truth is 0", or with "greater" that of "the truth
        is at most 0"; NaN where there is no standard error.
        """
        error, degrees, reason = self
        if reason:
            return np.nan
        if error == 0 and estimate == 0:
            return 1.0
        if error == 0:
            return np.nan
        if alternative == "greater":
            return float(stdtr(degrees, -estimate / error))
        return float(2 * stdtr(degrees, -abs(estimate) / error))


@dataclass(frozen=True)
class Influence:
    """The influence of each sample on an estimate, with all that decides its variance.

    Parameters
    ----------
    values : ndarray of shape (n,)
        What each sample adds to the estimate, with weighted mean 0: the estimate minus
        the truth is about the weighted mean of the values.
    weight : ndarray of shape (n,), default=None
        Positive weights; None means 1 for each sample.
    importance : bool, default=False
        Whether a row was seen once whatever its weight. False: weights count rows.
    cluster : ndarray of int, shape (n,), default=None
        Code of each sample's cluster, 0 to G - 1; rows of one cluster may depend on
        each other.
    """

    values: np.ndarray
    weight: np.ndarray | None = None
    importance: bool = False
    cluster: np.ndarray | None = None

    def spread(self):
        """Return the standard error of the estimate and its degrees of freedom, as a
        `Spread`.

        The independent units are rows, or clusters of rows; phi are the `values`, what
        each row adds to the estimate.
        """
        values = np.asarray(self.values, dtype=np.float64)
        if np.abs(values).max(initial=0) < _ROUNDING:
            values = np.zeros(len(values))  # equal but for rounding
        weight = weights_or_ones(self.weight, len(values))
        reason = too_few_units(weight, self.importance, self.cluster)
        if reason:
            return Spread(np.nan, np.nan, reason)
        if self.cluster is not None:
            return self._of_clusters(values, weight)
        total = weight.sum()
        # Sums over rows of the second and the fourth powers of what a row adds to the
        # estimate: the first is its variance, both give the degrees of freedom.
        if self.importance:
            # A row adds w phi. The variance of the sum is estimated from n rows.
            n_units = len(values)
            small_sample = n_units / (n_units - 1)
            square = np.sum((weight * values) ** 2) * n_units / (n_units - 1)
            fourth = np.sum((weight * values) ** 4) * small_sample**2
        else:
            # A row of weight w stands for w rows, each of which adds phi.
            n_units = total
            square = np.sum(weight * values**2)
            fourth = np.sum(weight * values**4)
        if square == 0:
            return Spread(standard_error=0.0, degrees=1.0)
        degrees = tail_degrees(n_units, square, fourth)
        if self.importance:
            degrees = max(min(degrees, n_units - 1), 1.0)
        return Spread(float(np.sqrt(square) / total), float(degrees))

    def _of_clusters(self, values, weight):
        """Return the `Spread` (standard error and degrees of freedom) of the weighted
        mean of influences (n,) with weights (n,), from their sums over clusters.
        """
        total = weight.sum()
        if not values.any():
            return Spread(standard_error=0.0, degrees=1.0)
        sums = np.bincount(self.cluster, weight * values)
        row_variance = np.sum(weight * values**2) / total
        masses, squares = cluster_masses(weight, self.importance, self.cluster)
        # one estimate: arrays of one column
        variance, degrees = cluster_variance(
            sums[:, None], masses, squares, np.array([row_variance])
        )
        # 0 but for rounding: the sums of all clusters are equal.
        if variance[0] < _ROUNDING**2 * row_variance * total**2:
            return Spread(np.nan, np.nan, _EQUAL_CLUSTERS)
        return Spread(float(np.sqrt(variance[0]) / total), float(degrees[0]))

    def design_effect(self, confidence_level):
        """Return the design effect, how many samples are worth one independent row, and
        the reason where it is NaN.

        A binomial interval of numbers of samples divides them by it. It is the variance
        of the estimate over that of independent rows, whose weights are numbers of
        rows, times the squared ratio of Student's quantile to the normal one, which a
        binomial interval takes. Without clusters and importance weights it is 1.

        Parameters
        ----------
        confidence_level : float
            Coverage of the interval, in (0, 1).

        Returns
        -------
        effect : float
            At least 1, or with importance weights at least the effect of these alone.
        reason : str
            Why it is NaN; else empty.
        """
        weight = weights_or_ones(self.weight, len(self.values))
        reason = too_few_units(weight, self.importance, self.cluster)
        if reason:
            return np.nan, reason
        if self.cluster is None and not self.importance:
            return 1.0, ""
        independent_square = np.sum(weight * self.values**2)
        if independent_square == 0 and self.cluster is not None:
            return np.nan, _ALL_EQUAL
        if independent_square == 0:
            # Equal values of independent rows: the effect of the weights alone (Kish).
            return float(weight @ weight / weight.sum()), ""
        error, degrees, reason = self.spread()
        effect = 0.0  # of clusters with the same sum
        if not reason:
            upper_level = (1 + confidence_level) / 2
            effect = (error * weight.sum()) ** 2 / independent_square
            effect *= (stdtrit(degrees, upper_level) / ndtri(upper_level)) ** 2
        # dependent rows tell at most what independent ones tell
        least = 1.0
        if self.importance:
            least = np.sum((weight * self.values) ** 2) / independent_square
        return float(max(effect, least)), ""

    def interval(self, estimate, confidence_level):
        """Return the limits of the confidence interval, and why they are NaN.

        Parameters
        ----------
        estimate : float
            The estimate.
        confidence_level : float
            Coverage, in (0, 1).

        Returns
        -------
        low, high : float
            The limits, NaN if the samples do not determine them.
        reason : str
            Why they are NaN; empty where they are not.
        """
        width, reason = self.half_width(confidence_level)
        return estimate - width, estimate + width, reason

    def half_width(self, confidence_level):
        """Return half the width of the interval, Student's quantile times the standard
        error, and why it is NaN (else an empty text).
        """
        return self.spread().half_width(confidence_level)

    def pvalue(self, estimate, null_variance=None):
        """Return the two-sided p-value of "the truth is 0".

        Parameters
        ----------
        estimate : float
            The estimate.
        null_variance : float, default=None
            Variance of the estimate if the truth is 0: the estimate is then taken as
            normal. None takes the variance of `spread`, and Student's distribution.

        Returns
        -------
        pvalue : float
            NaN where there is no variance.
        """
        if null_variance is not None:
            return normal_pvalue(estimate, null_variance)
        return self.spread().pvalue(estimate)


def normal_pvalue(estimate, variance):
    """Return the two-sided p-value of an estimate that is normal with mean 0."""
    if variance == 0 and estimate == 0:
        return 1.0
    if variance == 0:
        return 0.0
    return float(2 * ndtr(-abs(estimate) / np.sqrt(variance)))


def tail_degrees(n_units, square, fourth):
    """Return the degrees of freedom of a variance that is estimated from k = `n_units`
    units.

    With the kurtosis K of their influences, k `fourth` / `square`^2 for the sums of
    their squares and fourth powers, the variance has about 2 k / (K - 1) degrees of
    freedom (Satterthwaite 1946): few where a few units carry it. At most three times
    the units. Sums may be arrays.
    """
    kurtosis = n_units * fourth / square**2
    return np.maximum(2 * n_units / np.maximum(kurtosis - 1, 2 / 3), 1.0)


def too_few_units(weight, importance=False, cluster=None):
    """Return why the independent units (rows, or clusters of rows) are too few, or too
    unequal in weight, for an interval; else "".

    Kish's number of equal units depends on weights alone, so that no label decides
    whether there is an interval. A weight (n,) counts rows unless `importance`;
    `cluster` (n,) holds codes from 0 on.
    """
    total = weight.sum()
    if cluster is not None:
        mass = np.bincount(cluster, weight)
        n_units = effective_size(total, mass @ mass)
        unit = "clusters"
    elif importance:
        n_units = effective_size(total, weight @ weight)
        unit = "samples"
    else:
        n_units = total
        unit = "samples"
    if n_units >= FEWEST_UNITS * (1 - 1e-9):
        return ""
    return (
        f"the effective number of {unit} is {n_units:.2g}; at least"
        f" {FEWEST_UNITS:g} are needed to estimate how much {unit} vary"
    )


def cluster_masses(weight, importance, cluster):
    """Return the weight of each cluster (n_clusters,), and the sum of the squared
    weights of its rows (n_clusters,), for weights and cluster codes (n,).

    Unless `importance`, a row of weight w stands for w rows of weight 1, whose squared
    weights add up to w.
    """
    mass = np.bincount(cluster, weight)
    squares = mass
    if importance:
        squares = np.bincount(cluster, weight**2)
    return mass, squares


def cluster_variance(sums, mass, squares, row_variance):
    """Return the variance of m weighted sums over rows that depend on each other within
    clusters, and its degrees of freedom.

    The variance is the sum of S_g^2 over the sums S_g of the clusters g, by CR3: each
    is divided by 1 - W_g / W, with its share of the weight W_g / W, because residuals
    about the mean of all rows hide that share of a cluster's own residual. Degrees of
    freedom are Satterthwaite's for sums S_g of variance s^2 (a_g + rho b_g), where a_g
    is the sum of w^2 over the rows of a cluster, b_g that of w w' over its pairs of
    different rows, and rho the intraclass correlation, estimated by moments.

    Parameters
    ----------
    sums : ndarray of shape (n_clusters, m)
        The sums S_g of w phi over the rows of each cluster, w the weight and phi the
        centred value of a row in an estimate.
    mass, squares : ndarray of shape (n_clusters,) or (n_clusters, m)
        Sums of w and of w^2 over the rows of each cluster (see `cluster_masses`); where
        estimates weigh rows differently, one column each.
    row_variance : ndarray of shape (m,)
        Weighted mean of phi^2.

    Returns
    -------
    variance, degrees : ndarray of shape (m,)
        Variance of ``sums.sum(axis=0)``, and its degrees of freedom.

    References
    ----------
    Bell and McCaffrey (2002), Bias reduction in standard errors for linear regression
    with multi-stage samples. Imbens and Kolesar (2016), Robust standard errors in small
    samples: some practical advice.
    """
    mass = mass.reshape(len(mass), -1)
    squares = squares.reshape(len(mass), -1)
    # 1. The variance, by CR3.
    share_of_weight = mass / mass.sum(axis=0)
    variance = np.sum((sums / (1 - share_of_weight)) ** 2, axis=0)
    # 2. The intraclass correlation rho, by moments: the expected sum of S_g^2 is s^2
    # (sum a_g + rho sum b_g), with s^2 = row_variance, a_g = squares and b_g = pairs.
    pairs = np.maximum(mass**2 - squares, 0)
    correlation = np.zeros(sums.shape[1])
    n_pairs = np.broadcast_to(pairs.sum(axis=0), correlation.shape)
    varies = (row_variance > 0) & (n_pairs > 0)
    observed = np.sum(sums[:, varies] ** 2, axis=0) / row_variance[varies]
    of_rows = np.broadcast_to(squares.sum(axis=0), correlation.shape)
    rho = (observed - of_rows[varies]) / n_pairs[varies]
    correlation[varies] = np.clip(rho, 0, 1)
    # 3. Satterthwaite's degrees of freedom: (sum v_g)^2 / sum v_g^2
    expected = _expected_variance(mass, squares, correlation)
    return variance, _satterthwaite(expected)


def intraclass_design_effect(sums, mass, squares, row_variance):
    """Return the design effects of clusters, from the intraclass correlation that the
    variance within clusters shows, and their degrees of freedom.

    The design effect is the variance of a sum over rows, divided by what it would be if
    the rows were independent. `cluster_variance` takes the first from the sums of the
    clusters. These show no dependence where only small clusters hold a rare outcome,
    though a large one could hold it as well. Here the correlation is 1 less the share
    of the variance that lies within clusters, in which all rows count alike, whatever
    the size of their cluster.

    Parameters
    ----------
    sums : ndarray of shape (n_clusters, m)
        Sums over the rows of each cluster of w phi, w the weight and phi the centred
        value of a row in each of m estimates.
    mass, squares : ndarray of shape (n_clusters,)
        Sums of w and of w^2 over the rows of each cluster.
    row_variance : ndarray of shape (m,)
        Weighted mean of phi^2 over all rows.

    Returns
    -------
    effect, degrees : ndarray of shape (m,)
        Variance of ``sums.sum(axis=0)`` over that of independent rows, and its degrees
        of freedom.

    References
    ----------
    Fleiss and Cuzick (1979), The reliability of dichotomous judgments: unequal numbers
    of judges per subject.
    """
    total = mass.sum()
    # The sum of w (phi - mean of the cluster)^2 is that of w phi^2 less S_g^2 / W_g of
    # each cluster, S_g its sum and W_g its weight. Independent rows have S_g^2 =
    # (sum of w^2) row_variance on average.
    within = row_variance * total - np.sum(sums**2 / mass[:, None], axis=0)
    expected_within = row_variance * (total - np.sum(squares / mass))
    correlation = np.zeros(sums.shape[1])
    # Clusters of one row each, but for rounding, show nothing within clusters.
    seen = expected_within > 1e-9 * row_variance * total
    correlation[seen] = np.clip(1 - within[seen] / expected_within[seen], 0, 1)
    # The variances of the clusters' sums for this correlation, over the variance of a
    # row; of independent rows they are `squares`.
    expected = _expected_variance(mass, squares, correlation)
    effect = expected.sum(axis=0) / squares.sum()
    return effect, _satterthwaite(expected)


def _expected_variance(mass, squares, correlation):
    """Return the variance of each cluster's sum (n_clusters, m) for intraclass
    correlations (m,), a row's being 1; `mass` and `squares` are sums of w and w^2.
    """
    mass = mass.reshape(len(mass), -1)
    squares = squares.reshape(len(mass), -1)
    pairs = np.maximum(mass**2 - squares, 0)  # sums of w w' over different rows
    return squares + pairs * correlation


def _satterthwaite(expected):
    """Return the degrees of freedom (m,), at least 1, of a sum of independent squares
    with the expectations (n_clusters, m) (Satterthwaite 1946).
    """
    degrees = expected.sum(axis=0) ** 2 / np.sum(expected**2, axis=0)
    return np.maximum(degrees, 1.0)


def cluster_codes(clusters):
    """Return codes 0 to G - 1 of the clusters; raise where there is one only."""
    names, codes = distinct_values(clusters)
    if len(names) < 2:
        raise ValueError(
            "clusters contains only one cluster, so the variance between clusters"
            " cannot be estimated. Omit clusters."
        )
    return codes
