"""Score intervals of a ratio of means over cells: right at all counts, also where a
cell that could hold rows holds none.

A row of cell j has the value v_j and the base u_j, and the estimate is
sum n_j v_j / sum n_j u_j. The hypothesis "the ratio is theta" says that the mean of
x_j = v_j - theta u_j is 0. Its variance is taken under the hypothesis: from the
probabilities of the cells that are most likely among those with mean x 0.
"""

import numpy as np

from skcalib._intervals.roots import bracketed_root

_LARGE = 1e6  # of a score: beyond all critical values
_FAR = 1e9  # times the largest value: as good as infinite
_SMALL = 1e-14  # of a value, or of 1 + slope x: 0 but for rounding


def score_limits(counts, values, base, possible, z, *, cautious=False):
    """Return the lower and the upper score limits of m ratios of sums over cells,
    ``sum n v / sum n u`` with numbers n of rows, values v and bases u.

    A limit is the ratio at which the score test of "the ratio is theta" has the
    critical value z.

    Parameters
    ----------
    counts : ndarray of shape (m, n_cells)
        Numbers of samples by cell, of m estimates; they may be fractions.
    values, base : ndarray of shape (m, n_cells)
        What a row of a cell adds to the numerator and to the denominator, which is not
        negative.
    possible : ndarray of bool, shape (m, n_cells)
        Cells that rows can fall into; the others hold none.
    z : ndarray of shape (m,)
        Normal quantile, or another critical value.
    cautious : bool, default=False
        Whether a value counts as rejected only where the likelihood ratio rejects it,
        too: for critical values so high that the normal law of the score is poor.

    Returns
    -------
    low, high : ndarray of shape (m,)
        The limits; both equal the estimate where every possible cell has the same
        value.
    """
    numerator = np.sum(counts * values, axis=1)
    denominator = np.sum(counts * base, axis=1)
    estimate = numerator / denominator
    # the largest value a row can have is the scale of steps
    scale = np.abs(values).max(axis=1) + np.abs(estimate)
    cells = (counts, values, base, possible)
    low = _limit(-1.0, estimate, scale, z, cells, cautious)
    high = _limit(1.0, estimate, scale, z, cells, cautious)
    return low, high


def _limit(side, estimate, scale, z, cells, cautious):
    """Return the lower (`side` = -1) or upper (1) limits (m,) of ratios with the
    estimates (m,): those at which the score statistic reaches z (m,).

    `scale` (m,) is a typical distance of a limit from its estimate. `cells` are four
    arrays (m, n_cells): numbers of rows, what a row adds to the numerator and to the
    denominator, and whether rows can fall into the cell.
    """
    # A ratio is written as the fraction of the way from the estimate (0) to the
    # farthest possible ratio (1), so that one search from 0 to 1 finds all limits.
    _, values, base, possible = cells
    reach = _reach(values, base, possible, estimate, side)
    reach = np.minimum(reach, _FAR * scale)

    def ratio_at(fraction):
        """Return the ratio (m,) at a fraction (m,) of the way."""
        return estimate + side * _distance(fraction, scale, reach)

    def excess(fraction):
        """Return how far the score statistic is beyond z (m,): the limit is at 0."""
        # It falls with the ratio: it is positive below the estimate, negative above.
        score = _score(ratio_at(fraction), *cells, cautious)
        return np.minimum(-side * score, _LARGE) - z

    fraction = bracketed_root(excess, np.zeros(len(z)), np.ones(len(z)))
    return ratio_at(fraction)


def _reach(values, base, possible, estimate, side):
    """Return how far a ratio can lie from the estimate (m,): up to the largest (`side`
    1) or smallest (-1) value over base of a possible cell; arrays are (m, n_cells).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(base > 0, values / base, np.sign(values) * np.inf)
    # a cell without base and value bounds nothing
    bounds = possible & ~((base == 0) & (values == 0))
    furthest = np.where(bounds, side * ratio, -np.inf).max(axis=1)
    return np.maximum(furthest - side * estimate, 0)


def _distance(fraction, scale, reach):
    """Return the distance (m,) for a fraction f (m,) of the way, f s / (1 - f + f s /
    r) with the scale s and the reach r, which may be infinite: 0 for 0, r for 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = scale * fraction / (1 - fraction + fraction * scale / reach)
    return np.where(reach > 0, distance, 0.0)


def _score(theta, counts, values, base, possible, cautious=False):
    """Return the score statistic (m,) of the hypotheses "the ratio sum v / sum u is
    theta": the mean of x = v - theta u over its standard deviation if its expectation
    is 0. `counts` (m, n_cells) rows have the `values` v and the `base` u; rows can fall
    into the `possible` cells.

    With `cautious` it is the root of the likelihood ratio statistic, where that is
    nearer to 0.
    """
    x = np.where(possible, values - theta[:, None] * base, 0.0)
    n = counts.sum(axis=1)
    share = counts / n[:, None]
    mean = np.sum(share * x, axis=1)
    lowest = x.min(axis=1)
    highest = x.max(axis=1)
    # The likeliest probabilities with mean 0 are p_j = share_j / (1 + slope x_j)
    # (Lagrange); the slope keeps 1 + slope x_j >= 0 in all cells, also in empty ones.
    with np.errstate(all="ignore"):
        lowest_slope = np.where(highest > _SMALL, -1 / highest, 0.0)
        highest_slope = np.where(lowest < -_SMALL, -1 / lowest, 0.0)
        slope = bracketed_root(
            lambda slope: _tilted_mean(slope, share, x), lowest_slope, highest_slope
        )
        probability = share / _tilt(slope, x)
        # At an end of the range of slopes the mean may not be 0 yet, and the
        # probabilities add up to less than 1. The rest lies in an empty cell: that of
        # the highest x at the lowest slope, that of the lowest x at the highest slope.
        rest = np.maximum(1 - probability.sum(axis=1), 0)
        rest_square = np.where(slope == lowest_slope, rest * highest**2, 0.0)
        rest_square = np.where(slope == highest_slope, rest * lowest**2, rest_square)
        variance = np.sum(probability * x**2, axis=1) + rest_square
        score = mean * np.sqrt(n / variance)
        if cautious:
            # The likelihood ratio statistic 2 sum n_j log(share_j / p_j), in which
            # share_j / p_j is 1 + slope x_j.
            ratio = 2 * np.sum(counts * np.log(_tilt(slope, x)), axis=1)
            root = np.sqrt(np.maximum(ratio, 0))
            score = np.sign(mean) * np.fmin(np.abs(score), root)
    # no distribution over the cells has mean 0
    impossible = (highest <= _SMALL) | (lowest >= -_SMALL) | np.isnan(score)
    score = np.where(impossible, np.copysign(np.inf, mean), score)
    # at the estimate the mean is 0 but for rounding
    return np.where(np.abs(mean) <= _SMALL * np.abs(x).max(axis=1), 0.0, score)


def _tilted_mean(slope, share, x):
    """Return the mean (m,) of x under the tilted probabilities, the sum of share x / (1
    + slope x) over the cells, clipped to +-1e6.
    """
    total = np.sum(share * x / _tilt(slope, x), axis=1)
    return np.clip(total, -_LARGE, _LARGE)


def _tilt(slope, x):
    """Return 1 + slope x (m, n_cells) for slopes (m,), at least 1e-14."""
    return np.maximum(1 + slope[:, None] * x, _SMALL)
