"""Expectations over a score distribution, exact also where most scores are within 1e-10
of 0 or 1.
"""

from functools import cache

import numpy as np
from scipy.special import (
    betainccinv,
    betaincinv,
    eval_legendre,
    expit,
    logit,
    roots_jacobi,
)

_REACH = 40.0  # quantile levels from expit(-40) = 4e-18 to 1 - 4e-18
_MAX_HALVINGS = 60
_MAX_PANELS = 200_000


class ScoreLaw:
    """A score distribution with both the score and its complement 1 - s to full
    relative precision.

    Half the mass of Beta(2, 0.04) lies so close to 1 that 1 - s, taken from s, has no
    correct digit. A Beta distribution is therefore mirrored; of any other, the
    complement is the difference.

    Parameters
    ----------
    distribution : frozen distribution from scipy.stats
        With support inside [0, 1].
    """

    def __init__(self, distribution):
        self.distribution = distribution
        self._beta = _beta_parameters(distribution)
        self.atoms = _atoms(distribution)

    def quantiles(self, level_logit):
        """Return scores and complements at quantile levels given by their log-odds."""
        below = expit(level_logit)
        above = expit(-level_logit)
        lower = level_logit < 0
        if self._beta is not None:
            a, b = self._beta
            score = np.where(lower, betaincinv(a, b, below), betainccinv(a, b, above))
            complement = np.where(
                lower, betainccinv(b, a, below), betaincinv(b, a, above)
            )
            return np.where(score < 0.5, score, 1 - complement), np.where(
                score < 0.5, 1 - score, complement
            )
        score = np.where(
            lower, self.distribution.ppf(below), self.distribution.isf(above)
        )
        return score, 1 - score

    def level_logits(self, scores):
        """Return the log-odds of the quantile levels of scores, within the reach of the
        quadrature.
        """
        with np.errstate(divide="ignore"):
            levels = np.log(self.distribution.cdf(scores)) - np.log(
                self.distribution.sf(scores)
            )
        return np.clip(levels, -_REACH, _REACH)

    def sample(self, n, rng):
        """Draw scores and complements."""
        if self._beta is None:
            score = np.asarray(
                self.distribution.rvs(size=n, random_state=rng), dtype=np.float64
            )
            return score, 1 - score
        # X / (X + Y) of two gamma variates. Gamma(a) is Gamma(a + 1) U^(1/a): on the
        # log scale nothing underflows.
        a, b = self._beta
        log_odds = _log_gamma_variates(a, n, rng) - _log_gamma_variates(b, n, rng)
        score = expit(log_odds)
        complement = expit(-log_odds)
        return np.where(score < 0.5, score, 1 - complement), complement


def expectation(law, function, breakpoints=None, *, floor=1e-30):
    """Return E f(S, 1 - S) of a non-negative function, to a relative error of 1e-10 or
    so.

    Parameters
    ----------
    law : ScoreLaw
        Distribution of S.
    function : callable
        Vectorised function of scores and complements.
    breakpoints : ndarray, default=None
        Scores at which the function jumps, if they are known; a few unknown ones are
        found.
    floor : float, default=1e-30
        Absolute error that is as good as none.

    Returns
    -------
    mean : float
        The expectation.
    """
    if law.atoms is not None:
        scores, probabilities = law.atoms
        return float(probabilities @ function(scores, 1 - scores))
    edges = np.linspace(-_REACH, _REACH, 81)
    if breakpoints is not None:
        edges = np.unique(
            np.concatenate((edges, law.level_logits(np.asarray(breakpoints))))
        )

    def density(x):  # f(quantile(q)) dq with q = expit(x)
        return function(*law.quantiles(x)) * expit(x) * expit(-x)

    return float(_adaptive_integral(density, edges, floor))


def supremum(law, function, breakpoints=None):
    """Return the supremum of f(s, 1 - s) over the support, by a grid that is refined
    around its highest points.
    """
    if law.atoms is not None:
        scores, probabilities = law.atoms
        return float(function(scores, 1 - scores)[probabilities > 0].max())
    low, high = law.distribution.support()
    ends = np.array([low, high], dtype=np.float64)
    if breakpoints is None:
        inner = ends
    else:
        inner = np.concatenate((ends, np.clip(breakpoints, low, high)))
    sides = np.clip(
        np.concatenate((np.nextafter(inner, -1), inner, np.nextafter(inner, 2))),
        low,
        high,
    )
    best = function(sides, 1 - sides).max()
    left, right = np.clip(logit(ends), -700, 700)
    grid = np.linspace(left, right, 20_001)
    for _ in range(12):
        values = function(expit(grid), expit(-grid))
        best = max(best, values.max())
        top = np.argsort(values)[-8:]
        step = (grid[1:] - grid[:-1]).max() if len(grid) > 1 else 0.0
        grid = np.clip(
            np.unique(grid[top][:, None] + np.linspace(-step, step, 21)), left, right
        )
    return float(best)


def _adaptive_integral(function, edges, floor):
    """Return the integral by Gauss-Lobatto panels, each halved until its halves add up
    to it.

    A jump inside a panel halves it again and again. It must be seen for that: nodes at
    the ends of a panel see those that would fall between the end and the first node of
    other rules.
    """
    low = edges[:-1]
    high = edges[1:]
    whole = _panels(function, low, high)
    done = 0.0
    for _ in range(_MAX_HALVINGS):
        middle = (low + high) / 2
        left, right = _panels(function, low, middle), _panels(function, middle, high)
        halves = left + right
        # of a panel
        tolerance = (1e-10 * (done + halves.sum()) + floor) / max(1000, len(edges))
        rough = np.abs(halves - whole) > np.maximum(tolerance, 1e-14 * np.abs(halves))
        done += halves[~rough].sum()
        if not rough.any():
            return done
        low = np.concatenate((low[rough], middle[rough]))
        high = np.concatenate((middle[rough], high[rough]))
        whole = np.concatenate((left[rough], right[rough]))
        if len(low) > max(_MAX_PANELS, len(edges)):
            raise ValueError(
                "calibration_curve jumps too often to be integrated: give it an"
                " attribute `breakpoints`, the scores at which it jumps."
            )
    return done + whole.sum()


def _panels(function, low, high):
    nodes, weights = _lobatto(11)
    half = (high - low) / 2
    points = ((low + high) / 2)[:, None] + half[:, None] * nodes
    return half * (function(points.ravel()).reshape(points.shape) @ weights)


@cache
def _lobatto(n_nodes):
    """Return nodes and weights on [-1, 1], the ends a hair inside.

    A function may jump at an edge, where its value is that of the other side.
    """
    # The inner nodes are the roots of the derivative of the Legendre polynomial of
    # degree n - 1, which is a multiple of the Jacobi polynomial (1, 1) of degree n - 2.
    # Roots by the companion matrix of the derivative are complex in NumPy 2.5.
    inner, _ = roots_jacobi(n_nodes - 2, 1, 1)
    nodes = np.concatenate(([-1.0], inner, [1.0]))
    weights = 2 / (n_nodes * (n_nodes - 1) * eval_legendre(n_nodes - 1, nodes) ** 2)
    return nodes * (1 - 1e-9), weights


def _beta_parameters(distribution):
    """Return (a, b) of a frozen Beta distribution on [0, 1], else None."""
    if getattr(getattr(distribution, "dist", None), "name", None) != "beta":
        return None
    named = (
        dict(zip(("a", "b", "loc", "scale"), distribution.args, strict=False))
        | distribution.kwds
    )
    if named.get("loc", 0) != 0 or named.get("scale", 1) != 1:
        return None
    return float(named["a"]), float(named["b"])


def _atoms(distribution):
    """Return (scores, probabilities) of a frozen discrete distribution, else None."""
    dist = getattr(distribution, "dist", distribution)
    if not hasattr(dist, "pmf"):
        return None
    if hasattr(dist, "xk"):
        return np.asarray(dist.xk, dtype=np.float64), np.asarray(
            dist.pk, dtype=np.float64
        )
    low, high = distribution.support()
    scores = np.arange(low, high + 1, dtype=np.float64)
    return scores, distribution.pmf(scores)


def _log_gamma_variates(shape, n, rng):
    uniform = 1 - rng.random(n)  # in (0, 1]
    return np.log(rng.standard_gamma(shape + 1, size=n)) + np.log(uniform) / shape
