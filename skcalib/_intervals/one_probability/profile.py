"""Limits of a regression where its likelihood is far from a normal one.

Where few samples say how a third parameter bends the ends of a steep curve, the
likelihood falls slowly towards 0 and 1. Profile limits are all log-odds at a score that
cost at most z^2 / 2 of the penalised log-likelihood [1]_. They are tabulated as
multiples of the standard error by the inverse curvature, which hardly vary.

References
----------
.. [1] Heinze and Schemper (2002), A solution to the problem of separation in logistic
   regression.
"""

import numpy as np
from scipy.special import expit, log_expit

from skcalib._rows.blocks import condensed

# Roots z of twice the cost: those of limits of .68, .95, .997 and .99994.
_ROOTS = np.array([1.0, 2.0, 3.0, 4.0])
_N_PLACES = 17
PROFILE_SHAPE = _N_PLACES, len(_ROOTS)
# More rows are condensed to cells of nearly equal log-odds.
_MOST_ROWS = 1024
_N_CELLS = 512
_MAX_STEPS = 30
_LARGEST_STEP = 2.0  # of a log-odds
_SETTLED = 0.01  # change of a log-odds, and of the log-likelihood
_RIDGE = 1e-10  # of the information, relative: where curvature is rounding


def profile_table(features, log_odds, labels, weight, coef):
    """Return a table of profile-likelihood limits of the curve of a regression, a dict:
    the `places` (m,), in log-odds of scores, and how many standard errors the limits
    there are `below` and `above` the curve, (m, 4), for the `_ROOTS` 1 to 4 of twice
    the log-likelihood that a limit costs.

    Parameters
    ----------
    features : callable
        ``features(log_odds)`` returns the features (d, n) of log-odds (n,).
    log_odds, labels, weight : ndarray of shape (n,)
        The samples.
    coef : ndarray of shape (d,)
        Coefficients of the fit with Jeffreys' penalty.
    """
    log_odds, labels, weight = condensed(
        log_odds, labels, weight, fewest_rows=_MOST_ROWS, most_cells=_N_CELLS
    )
    likelihood = _Likelihood(features(log_odds), labels, weight)
    places = np.linspace(log_odds.min(), log_odds.max(), _N_PLACES)
    greatest, _, inverse = likelihood(coef[None])
    # The curve at a place, coef @ features, is divided by its standard error there.
    at_places = features(places)
    variance = np.sum(at_places * (inverse[0] @ at_places), axis=0)
    at_places = at_places / np.sqrt(variance)
    # the limits below the curve are those above its negative
    directions = np.concatenate((-at_places.T, at_places.T))
    coefs = np.repeat(coef[None], len(directions), axis=0)
    distances = []
    for root in _ROOTS:
        target = greatest[0] - root**2 / 2
        coefs = _farthest(likelihood, coefs, directions, target)
        distances.append(np.sum((coefs - coef) * directions, axis=1))
    # A search that has left the numbers tells nothing: 0 makes no limit wider.
    distances = np.nan_to_num(np.column_stack(distances), posinf=0, neginf=0)
    below, above = np.split(distances, 2)
    return {"places": places, "below": below, "above": above}


def profile_factors(table, level_root, log_odds):
    """Return by how many standard errors (n,) and (n,) the limits at log-odds (n,) of
    scores are below and above the curve. `table` is that of `profile_table`;
    `level_root` is the normal quantile of the level, the root of a chi-square one.
    """
    factors = []
    roots = np.append(0.0, _ROOTS)
    for name in ("below", "above"):
        # Distances divided by the root change little with it, and are 1 at the root 0:
        # they are interpolated between the roots, then between the places.
        per_root = np.column_stack((np.ones(_N_PLACES), table[name] / _ROOTS))
        at_level = [np.interp(level_root, roots, of_place) for of_place in per_root]
        factors.append(np.interp(log_odds, table["places"], at_level) * level_root)
    return factors


class _Likelihood:
    """The log-likelihood of a logistic regression with Jeffreys' penalty, for several
    coefficients (m, d) at once.
    """

    def __init__(self, design, labels, weight):
        self.design = design  # features (d, n)
        self.labels = labels  # (n,), as the weights
        self.weight = weight
        # Products of two features, (d d, n): information and leverages are linear in
        # them.
        self.products = (design[:, None] * design).reshape(-1, design.shape[1])

    def __call__(self, coefs):
        """Return the values (m,) of the penalised log-likelihood at coefficients (m,
        d), its derivatives (m, d) and the inverses (m, d, d) of the information.
        """
        n_features = len(self.design)
        log_odds = coefs @ self.design
        fitted = expit(log_odds)
        curvature = self.weight * fitted * (1 - fitted)
        information = (curvature @ self.products.T).reshape(-1, n_features, n_features)
        information = information * (1 + _RIDGE * np.eye(n_features))
        inverse = np.linalg.inv(information)
        # Jeffreys' penalty, half the log-determinant of the information, adds leverage
        # x (1/2 - fitted) to the residuals of its derivative (Firth).
        leverage = curvature * (inverse.reshape(len(coefs), -1) @ self.products)
        residual = self.weight * (self.labels - fitted) + leverage * (0.5 - fitted)
        likelihood = log_expit(log_odds) - np.where(self.labels, 0.0, log_odds)
        penalty = np.linalg.slogdet(information).logabsdet / 2
        return likelihood @ self.weight + penalty, residual @ self.design.T, inverse


def _farthest(likelihood, coefs, directions, target):
    """Return the coefficients (m, d) that are farthest in each of some directions (m,
    d), of those with at least the log-likelihood `target`, by steps from `coefs`.

    Each step goes as far as the quadratic allows that the likelihood is nearly [1]_.

    References
    ----------
    .. [1] Venzon and Moolgavkar (1988), A method for computing
       profile-likelihood-based confidence intervals.
    """
    for _ in range(_MAX_STEPS):
        values, gradient, inverse = likelihood(coefs)
        # The maximum of the quadratic is at the step `to_top`. From there, the step
        # goes outwards until twice the log-likelihood has fallen by `room` to its
        # target.
        to_top = np.einsum("mde,me->md", inverse, gradient)
        outwards = np.einsum("mde,me->md", inverse, directions)
        room = 2 * (values - target) + np.sum(gradient * to_top, axis=1)
        variance = np.sum(outwards * directions, axis=1)
        multiplier = np.sqrt(np.maximum(room, 0.0) / variance)
        step = to_top + multiplier[:, None] * outwards
        # A step is shortened so that no log-odds changes by more than 2.
        change = np.abs(step @ likelihood.design).max(axis=1)
        shortening = np.minimum(1.0, _LARGEST_STEP / np.maximum(change, _SETTLED))
        step *= shortening[:, None]
        coefs = coefs + step
        is_at_target = np.abs(values - target).max() < _SETTLED
        if is_at_target and change.max() < _SETTLED:
            break
    return coefs
