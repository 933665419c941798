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

# The integral over quantile levels q runs over their log-odds from -40 to 40, that is
# from q = 4e-18 to 1 - 4e-18.
_REACH = 40.0
_MAX_HALVINGS = 60  # of a panel of the quadrature
_MAX_PANELS = 200_000
_N_NODES = 11  # of each panel


class ScoreLaw:
    """A score distribution whose quantiles and draws come with their complements 1 - s.

    Half of the mass of Beta(2, 0.04) lies so close to 1 that 1 - s, computed from s,
    has no correct digit. For Beta(a, b), the complement is therefore computed as a
    separate variable, with the distribution Beta(b, a), to full relative precision; for
    any other distribution, it is the difference.

    Parameters
    ----------
    distribution : frozen distribution from scipy.stats
        The distribution, with support inside [0, 1].
    """

    def __init__(self, distribution):
        self.distribution = distribution
        # (a, b) of a Beta distribution on [0, 1], else None.
        self._beta = _beta_parameters(distribution)
        # (scores, probabilities) of a discrete distribution, else None.
        self.atoms = _atoms(distribution)

    def quantiles(self, level_logit):
        """Return scores (m,) and complements 1 - s (m,) at quantile levels given by
        their log-odds (m,).
        """
        # The level q and 1 - q, each with all its digits.
        below = expit(level_logit)
        above = expit(-level_logit)
        is_lower = level_logit < 0
        if self._beta is None:
            lower_half = self.distribution.ppf(below)
            upper_half = self.distribution.isf(above)
            score = np.where(is_lower, lower_half, upper_half)
            return score, 1 - score
        # The quantile function loses digits in the upper tail, its complement in the
        # lower one; 1 - S is Beta(b, a).
        a, b = self._beta
        score = np.where(is_lower, betaincinv(a, b, below), betainccinv(a, b, above))
        complement = np.where(
            is_lower, betainccinv(b, a, below), betaincinv(b, a, above)
        )
        # The smaller of both is exact; the other follows from it.
        is_small = score < 0.5
        exact_score = np.where(is_small, score, 1 - complement)
        exact_complement = np.where(is_small, 1 - score, complement)
        return exact_score, exact_complement

    def level_logits(self, scores):
        """Return the log-odds (m,) of the quantile levels of scores (m,), clipped to
        [-40, 40], between which integrals are computed.
        """
        with np.errstate(divide="ignore"):
            log_below = np.log(self.distribution.cdf(scores))
            log_above = np.log(self.distribution.sf(scores))
        return np.clip(log_below - log_above, -_REACH, _REACH)

    def sample(self, n, rng):
        """Return n drawn scores and their complements 1 - s, for a `Generator`."""
        if self._beta is None:
            drawn = self.distribution.rvs(size=n, random_state=rng)
            score = np.asarray(drawn, dtype=np.float64)
            return score, 1 - score
        # X / (X + Y) of two gamma variates is Beta(a, b), and its log-odds are log X -
        # log Y. On the log scale nothing underflows.
        a, b = self._beta
        log_odds = _log_gamma_variates(a, n, rng) - _log_gamma_variates(b, n, rng)
        score = expit(log_odds)
        complement = expit(-log_odds)
        return np.where(score < 0.5, score, 1 - complement), complement


def expectation(law, function, breakpoints=None, *, floor=1e-30):
    """Return E f(S, 1 - S), with a relative error of about 1e-10.

    Parameters
    ----------
    law : ScoreLaw
        The distribution of S.
    function : callable
        f, which must be vectorised and non-negative.
    breakpoints : array-like of shape (k,), default=None
        Scores at which f jumps.
    floor : float, default=1e-30
        Absolute error that is always sufficient.
    """
    if law.atoms is not None:
        scores, probabilities = law.atoms
        return float(probabilities @ function(scores, 1 - scores))
    # The integral is over the log-odds x of the quantile level, in 80 panels of width 1
    # to begin with. A jump is put on an edge, so that no panel holds it.
    edges = np.linspace(-_REACH, _REACH, 81)
    if breakpoints is not None:
        jumps = law.level_logits(np.asarray(breakpoints))
        edges = np.unique(np.concatenate((edges, jumps)))

    def density(x):
        """Return f(quantile(q)) dq / dx at x (m,), where q = expit(x) has the
        derivative expit(x) expit(-x).
        """
        scores, complement = law.quantiles(x)
        return function(scores, complement) * expit(x) * expit(-x)

    return float(_adaptive_integral(density, edges, floor))


def supremum(law, function, breakpoints=None):
    """Return the supremum of f(s, 1 - s) over the support of a `ScoreLaw`.

    f, the vectorised `function`, is computed on a grid of log-odds, which is refined
    around its highest points, and on both sides of the jumps, the scores `breakpoints`.
    """
    if law.atoms is not None:
        scores, probabilities = law.atoms
        return float(function(scores, 1 - scores)[probabilities > 0].max())
    low, high = law.distribution.support()
    ends = np.array([low, high], dtype=np.float64)
    # Where the function may jump its value is taken on both sides.
    jumps = ends
    if breakpoints is not None:
        jumps = np.concatenate((ends, np.clip(breakpoints, low, high)))
    just_below = np.nextafter(jumps, -1)
    just_above = np.nextafter(jumps, 2)
    sides = np.clip(np.concatenate((just_below, jumps, just_above)), low, high)
    highest = function(sides, 1 - sides).max()
    # Log-odds of the ends. Beyond 700 `expit` would round the score to 0, or come close
    # to the smallest float.
    left, right = np.clip(logit(ends), -700, 700)
    grid = np.linspace(left, right, 20_001)
    # After 12 rounds, each with steps a tenth as large as the last, the steps are
    # those of rounding.
    for _ in range(12):
        values = function(expit(grid), expit(-grid))
        highest = max(highest, values.max())
        # 21 points around each of the 8 highest, up to their neighbours
        top = grid[np.argsort(values)[-8:]]
        step = 0.0  # of a grid that is a single point
        if len(grid) > 1:
            step = (grid[1:] - grid[:-1]).max()
        around_top = top[:, None] + np.linspace(-step, step, 21)
        grid = np.clip(np.unique(around_top), left, right)
    return float(highest)


def _adaptive_integral(function, edges, floor):
    """Return the integral of a nonnegative vectorised function over the edges (m + 1,),
    within a relative error of 1e-10 or the absolute error `floor`.

    Panels whose Gauss-Lobatto rule differs from the sum over their halves are halved
    again. Other rules, without nodes at the ends of a panel, would miss a jump beside
    an end.
    """
    low = edges[:-1]
    high = edges[1:]
    panel = _panels(function, low, high)  # integrals of the panels left
    done = 0.0  # sum of those that are accurate enough
    for _ in range(_MAX_HALVINGS):
        middle = (low + high) / 2
        left = _panels(function, low, middle)
        right = _panels(function, middle, high)
        halves = left + right
        # The error allowed to a panel: that of the whole divided by 1,000, or by the
        # number of edges if that is larger, and at least that of rounding.
        tolerance = (1e-10 * (done + halves.sum()) + floor) / max(1000, len(edges))
        tolerance = np.maximum(tolerance, 1e-14 * np.abs(halves))
        is_rough = np.abs(halves - panel) > tolerance
        done += halves[~is_rough].sum()
        if not is_rough.any():
            return done
        low = np.concatenate((low[is_rough], middle[is_rough]))
        high = np.concatenate((middle[is_rough], high[is_rough]))
        panel = np.concatenate((left[is_rough], right[is_rough]))
        if len(low) > max(_MAX_PANELS, len(edges)):
            raise ValueError(
                "calibration_curve jumps too often to be integrated: define an"
                " attribute `breakpoints` with the scores at which it jumps."
            )
    return done + panel.sum()


def _panels(function, low, high):
    """Return the integrals (m,) of a vectorised function from `low` to `high` (m,), by
    one Gauss-Lobatto rule each.
    """
    nodes, weights = _lobatto(_N_NODES)
    half = (high - low) / 2
    middle = (low + high) / 2
    points = middle[:, None] + half[:, None] * nodes  # (m, n_nodes)
    values = function(points.ravel()).reshape(points.shape)
    return half * (values @ weights)


@cache
def _lobatto(n_nodes):
    """Return nodes and weights (n_nodes,) of the Gauss-Lobatto rule on [-1, 1]; nodes
    times 1 - 1e-9, as a function may jump at an edge.
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
    family = getattr(distribution, "dist", None)
    if family is None or getattr(family, "name", None) != "beta":
        return None
    # positional arguments of the frozen distribution by their names
    arguments = dict(zip(("a", "b", "loc", "scale"), distribution.args, strict=False))
    arguments |= distribution.kwds
    if arguments.get("loc", 0) != 0 or arguments.get("scale", 1) != 1:
        return None
    return float(arguments["a"]), float(arguments["b"])


def _atoms(distribution):
    """Return (scores, probabilities) of a frozen discrete distribution, else None."""
    family = getattr(distribution, "dist", distribution)
    if not hasattr(family, "pmf"):
        return None
    if hasattr(family, "xk"):  # made by `scipy.stats.rv_discrete(values=...)`
        scores = np.asarray(family.xk, dtype=np.float64)
        return scores, np.asarray(family.pk, dtype=np.float64)
    low, high = distribution.support()
    scores = np.arange(low, high + 1, dtype=np.float64)
    return scores, distribution.pmf(scores)


def _log_gamma_variates(shape, n, rng):
    """Return logarithms of n variates of Gamma(shape): of Gamma(shape + 1) times U^(1 /
    shape), which does not underflow.
    """
    uniform = 1 - rng.random(n)  # in (0, 1]
    return np.log(rng.standard_gamma(shape + 1, size=n)) + np.log(uniform) / shape
