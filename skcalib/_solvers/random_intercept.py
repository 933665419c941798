"""Logistic model whose intercept varies between clusters, fitted in one step.

Sample i of cluster j is an event with log-odds ``offset_i + a + u_j``, and the
deviations u_j of the clusters are normal with mean 0 and standard deviation tau.
Clusters without events, or without non-events, count like all others: no estimate of
their own is needed.
"""

from typing import NamedTuple

import numpy as np
from scipy.interpolate import BPoly, PPoly
from scipy.optimize import brentq, minimize
from scipy.special import expit, logsumexp, ndtr, stdtrit

# Shifts are tabulated this far on both sides of the common one, and further by the
# range of the log-odds.
_HALF_RANGE = 12.0
_STEP = 0.25  # of the table: its error is below 2e-9 for each sample
_N_NODES = 25  # of the Gauss-Hermite quadrature over a cluster's deviation
_N_NEWTON_STEPS = 8
_N_TAUS = 12  # that a profile compares at a time
_N_REFINEMENTS = 6  # of the interval around the best of them
_LARGEST_TAU = 4.0
_LARGEST_SHIFT = 50.0
# The prior of tau for a new cluster is flat from 0 to this.
_LARGEST_PRIOR_TAU = 2.0
_N_PRIOR_TAUS = 24
_N_INTERCEPTS = 41
# A log-likelihood this far below the largest one adds nothing.
_NEGLIGIBLE = 20.0


class RandomIntercept(NamedTuple):
    """The intercept a of the median cluster, with its confidence limits (infinite where
    the samples do not determine them), the standard deviation tau between clusters, and
    limits for the intercept of a new cluster.
    """

    median: float
    low: float
    high: float
    tau: float
    new_low: float
    new_high: float


def fit_random_intercept(offsets, labels, weight, cluster, level):
    """Return the fit of the model as a `RandomIntercept`.

    The limits of the median cluster are those of the profile likelihood, with the
    squared quantile of Student's distribution with n_clusters - 1 degrees of freedom in
    place of that of chi-squared. The limits of a new cluster are quantiles of a + u,
    from the likelihood integrated over a flat a and over tau, flat from 0 to 2.

    Parameters
    ----------
    offsets : ndarray of shape (n,)
        Log-odds of the samples before the shift.
    labels : ndarray of bool, shape (n,)
        Whether the event happened. Both outcomes must occur.
    weight : ndarray of shape (n,)
        Positive weights, which count samples.
    cluster : ndarray of int, shape (n,)
        Codes 0 to n_clusters - 1.
    level : float
        Confidence level.

    References
    ----------
    Stijnen, Hamza and Oezdemir (2010), Random effects meta-analysis of event outcome in
    the framework of the generalized linear mixed model.
    """
    likelihood = _Likelihood(offsets, labels, weight, cluster)
    median, tau = likelihood.largest()
    largest = likelihood.value_at(median, tau)
    n_clusters = likelihood.n_clusters
    quantile = stdtrit(n_clusters - 1, (1 + level) / 2)

    def excess(intercept):
        """Return the profile log-likelihood above that of the limits."""
        return likelihood.profile(intercept, tau) - largest + quantile**2 / 2

    limits = []
    for infinite in (-np.inf, np.inf):
        end = likelihood.centre + np.sign(infinite) * _LARGEST_SHIFT
        if excess(end) > 0:
            limits.append(infinite)
        else:
            limits.append(brentq(excess, min(end, median), max(end, median), xtol=1e-7))
    low, high = limits
    new_low, new_high = _new_cluster(likelihood, median, largest, level)
    return RandomIntercept(
        median, low, high, tau, float(min(new_low, low)), float(max(new_high, high))
    )


def common_shift(offsets, n_events, weight):
    """Return the shift of all log-odds, `offsets` (n,), that makes the expected number
    of events `n_events`, given weights (n,). There must be events and non-events.
    """

    def excess(shift):
        """Return expected minus observed events after a shift."""
        return weight @ expit(offsets + shift) - n_events

    return brentq(excess, -_LARGEST_SHIFT, _LARGEST_SHIFT, xtol=1e-12)


class _Likelihood:
    """Log-likelihood of the clusters as a function of the intercept a and of tau.

    The log-likelihood f_j of each cluster as a function of its shift a + u_j is
    tabulated, with its first two derivatives, and interpolated by polynomials of degree
    5. An evaluation then costs as much for a million samples as for a hundred.

    Attributes
    ----------
    n_clusters : int
        Number of clusters.
    centre : float
        The shift of all samples that gives the observed number of events.
    """

    def __init__(self, offsets, labels, weight, cluster):
        # `offsets` (n,) are the log-odds of the samples before a shift, `cluster` (n,)
        # codes from 0 on. The centre is the shift that makes the expected number of
        # events the observed one.
        self.n_clusters = int(cluster.max()) + 1
        self.centre = common_shift(offsets, weight @ labels, weight)
        # 1. The log-likelihood of each cluster and its first two derivatives, at a grid
        # of shifts: (n_shifts, 3, n_clusters).
        half_range = _HALF_RANGE + np.ptp(offsets)
        steps = np.arange(-half_range, half_range + _STEP / 2, _STEP)
        self._grid = self.centre + steps
        derivatives = np.empty((len(self._grid), 3, self.n_clusters))
        events = weight * labels
        non_events = weight - events
        events_of_cluster = np.bincount(cluster, events)
        # With log-odds x and z = exp(-|x|), which cannot overflow, -log p is max(-x, 0)
        # + log(1 + z), -log(1 - p) is x more, and p (1 - p) is z / (1 + z)^2. So a
        # shift takes one exponential and one logarithm of each sample.
        of_offsets = np.bincount(cluster, non_events * offsets)
        of_shift = np.bincount(cluster, non_events)
        for position, shift in enumerate(self._grid):
            log_odds = offsets + shift
            z = np.exp(-np.abs(log_odds))
            larger = 1 / (1 + z)  # the larger of p and 1 - p
            expected = weight * np.where(log_odds < 0, z * larger, larger)
            log_loss = weight * (np.maximum(-log_odds, 0) - np.log(larger))
            derivatives[position] = (
                -(np.bincount(cluster, log_loss) + of_offsets + shift * of_shift),
                events_of_cluster - np.bincount(cluster, expected),
                -np.bincount(cluster, weight * z * larger**2),
            )
        # 2. The interpolating polynomials: (degree 5 to 0, interval, cluster).
        table = BPoly.from_derivatives(self._grid, list(derivatives))
        coefficients = PPoly.from_bernstein_basis(table).c
        # one line for each degree, all intervals and clusters
        self._coefficients = [lines.ravel() for lines in coefficients]
        self._at_ends = derivatives[0], derivatives[-1]
        # 3. Nodes and weights of the quadrature, computed once since that takes longer
        # than their use.
        self._quadrature = np.polynomial.hermite_e.hermegauss(_N_NODES)

    def _values(self, shifts):
        """Return the log-likelihood of each cluster whose log-odds are shifted, for
        shifts (..., n_clusters), by interpolation in the table.
        """
        inside, distance, entry = self._places(shifts)
        outside = shifts - inside
        if outside.any():
            value, _, _ = self._clusters(shifts)
            return value
        # Horner's rule for the interpolating polynomials
        value = np.zeros(shifts.shape)
        for coefficients in self._coefficients:
            value = value * distance + coefficients.take(entry)
        return value

    def _clusters(self, shifts):
        """Return the log-likelihood of each cluster, and its first and second
        derivative, at shifts (..., n_clusters) of its log-odds: straight lines outside
        of the table.
        """
        inside, distance, entry = self._places(shifts)
        value = np.zeros(shifts.shape)
        slope = np.zeros(shifts.shape)
        half_curvature = np.zeros(shifts.shape)
        # Horner's rule for a polynomial and its derivatives
        for coefficients in self._coefficients:
            half_curvature = half_curvature * distance + slope
            slope = slope * distance + value
            value = value * distance + coefficients.take(entry)
        outside = shifts - inside
        return value + slope * outside, slope, 2 * half_curvature * (outside == 0)

    def _places(self, shifts):
        """Return shifts (..., n_clusters) moved into the range of the table, their
        distances from the start of their interval of its grid, and the entries of this
        interval in each line of `_coefficients`.
        """
        inside = np.maximum(shifts, self._grid[0])
        np.minimum(inside, self._grid[-1], out=inside)
        interval = ((inside - self._grid[0]) / _STEP).astype(np.intp)
        interval = np.minimum(interval, len(self._grid) - 2)
        distance = inside - self._grid.take(interval)
        interval *= self.n_clusters
        interval += np.arange(self.n_clusters)
        return inside, distance, interval

    def value(self, intercepts, taus):
        """Return the log-likelihoods (m,) at intercepts and taus (m,).

        That of a cluster is an integral over its deviation u = tau x, x standard
        normal, by adaptive Gauss-Hermite quadrature: its nodes stand around the x at
        which the integrand is largest.
        """
        start = np.repeat(intercepts[:, None], self.n_clusters, axis=1)
        tau = taus[:, None]
        mode, curvature = self._modes(start, tau)
        nodes, node_weight = self._quadrature
        spread = 1 / np.sqrt(curvature)
        deviations = mode + spread * nodes[:, None, None]  # (nodes, m, n_clusters)
        log_density = self._values(start + tau * deviations) - deviations**2 / 2
        log_weight = np.log(node_weight)[:, None, None] + nodes[:, None, None] ** 2 / 2
        integrals = logsumexp(log_density + log_weight, axis=0)
        integrals += np.log(spread) - np.log(2 * np.pi) / 2
        return integrals.sum(axis=1)

    def value_at(self, intercept, tau):
        """Return the log-likelihood at one intercept and one tau."""
        return self.value(np.array([intercept]), np.array([tau]))[0]

    def _modes(self, start, tau):
        """Return the modes x of the integrands, in units of tau, and minus the second
        derivatives of their logarithms there, for shifts `start` (m, n_clusters) and
        `tau` (m, 1): Newton's method inside a bracket.
        """
        mode = np.zeros(start.shape)
        # The slope of the log-integrand, tau f'(start + tau x) - x, falls in x.
        _, slope, _ = self._clusters(start)
        low = np.minimum(tau * slope, 0)
        high = np.maximum(tau * slope, 0)
        for _ in range(_N_NEWTON_STEPS):
            _, slope, curvature = self._clusters(start + tau * mode)
            gradient = tau * slope - mode
            low = np.where(gradient > 0, mode, low)
            high = np.where(gradient < 0, mode, high)
            proposed = mode + gradient / (1 - tau**2 * curvature)
            is_inside = (low <= proposed) & (proposed <= high)
            last = mode
            mode = np.where(is_inside, proposed, (low + high) / 2)
            if np.array_equal(mode, last):  # no further step would move it
                break
        _, _, curvature = self._clusters(start + tau * mode)
        return mode, 1 - tau**2 * curvature

    def largest(self):
        """Return the intercept and the tau of the largest likelihood."""

        def loss(parameters):
            """Return the log-likelihood with its sign changed; tau may be negative."""
            intercept, tau = parameters
            return -self.value_at(intercept, abs(tau))

        taus = np.linspace(0, _LARGEST_TAU, 4 * _N_TAUS)
        heights = self.value(np.full(len(taus), self.centre), taus)
        start = np.array([self.centre, taus[np.argmax(heights)]])
        corners = start + np.array([[0, 0], [0.3, 0], [0, 0.3]])
        options = {"xatol": 1e-8, "fatol": 1e-12, "initial_simplex": corners}
        found = minimize(loss, start, method="Nelder-Mead", options=options)
        # Rounding is no reason to prefer a tau above 0.
        if found.fun < loss([self.centre, 0.0]) - 1e-10:
            return float(found.x[0]), float(abs(found.x[1]))
        return self.centre, 0.0

    def profile(self, intercept, fitted_tau):
        """Return the largest log-likelihood over tau at an intercept, by a search on
        finer and finer grids; `fitted_tau`, that of the fit, is tried as well.
        """
        low = 0.0
        high = max(_LARGEST_TAU, 2 * abs(intercept - self.centre), 2 * fitted_tau)
        largest = self.value_at(intercept, fitted_tau)
        for _ in range(_N_REFINEMENTS):
            taus = np.linspace(low, high, _N_TAUS)
            heights = self.value(np.full(_N_TAUS, intercept), taus)
            best = int(np.argmax(heights))
            largest = max(largest, heights[best])
            low = taus[max(best - 1, 0)]
            high = taus[min(best + 1, _N_TAUS - 1)]
        return largest


def _new_cluster(likelihood, median, largest, level):
    """Return the limits of a + u for a new cluster, from the likelihood integrated over
    a and tau with flat priors.

    `median` and `largest` are the intercept and the log-likelihood of the fit.
    """
    # 1. Nodes of a Gauss-Legendre quadrature over tau from 0 to `_LARGEST_PRIOR_TAU`.
    nodes, node_weight = np.polynomial.legendre.leggauss(_N_PRIOR_TAUS)
    taus = (nodes + 1) / 2 * _LARGEST_PRIOR_TAU

    def height(intercept):
        """Return the largest log-likelihood over the taus, above the negligible one."""
        heights = likelihood.value(np.full(_N_PRIOR_TAUS, intercept), taus)
        return heights.max() - largest + _NEGLIGIBLE

    # 2. The range of intercepts a that are not negligible, and the posterior weight
    # of each pair of tau and a on a grid.
    ends = []
    for direction in (-1, 1):
        reach = 0.5
        while reach < _HALF_RANGE and height(median + direction * reach) > 0:
            reach *= 1.5
        ends.append(median + direction * reach)
    intercepts = np.linspace(*ends, _N_INTERCEPTS)
    log_weight = np.empty((_N_PRIOR_TAUS, _N_INTERCEPTS))
    for row, tau in enumerate(taus):
        heights = likelihood.value(intercepts, np.full(_N_INTERCEPTS, tau))
        log_weight[row] = heights + np.log(node_weight[row])
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()

    # 3. Quantiles of a + u, a mixture of normal distributions.
    def below(shift, probability):
        """Return the probability that a + u is below a shift, less a given one."""
        return np.sum(weight * ndtr((shift - intercepts) / taus[:, None])) - probability

    bounds = ends[0] - 10 * _LARGEST_PRIOR_TAU, ends[1] + 10 * _LARGEST_PRIOR_TAU
    return [
        brentq(below, *bounds, args=(probability,), xtol=1e-7)
        for probability in ((1 - level) / 2, (1 + level) / 2)
    ]
