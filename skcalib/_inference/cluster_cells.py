"""Draws of the event frequencies of cells whose rows depend on each other within
clusters, at a cost that depends on the numbers of cells and draws, not of rows.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.special import betaincinv, ndtr, ndtri

from skcalib._inference.uniform_blocks import MOST_STORED, block_sizes

# Grades of all cells together, at least one in each cell.
_GRADES = 256
# The largest clusters have deviates that are drawn. The sums of the others are normal.
_DRAWN_CLUSTERS = 256
# Deviates of clusters are rounded to the middles of this many intervals, and those that
# are not drawn averaged over these points.
_INTERVALS, _POINTS = 64, 200
_FARTHEST = 3.6  # beyond which a deviate counts to the outermost interval
_FARTHEST_POINT = 5.0
# A beta distribution with a smaller parameter, or with a larger skewness, is too far
# from a normal one.
_LEAST_PARAMETER, _LARGEST_SKEWNESS = 3, 0.5
# Added to a correlation matrix, which may have eigenvalues of 0 but for rounding.
_RIDGE = 1e-9
# A frequency this near to the hypothetical one is reached, and how often it is sought.
_LEAST, _ROUNDS = 1e-12, 10
_ROWS_OF_BLOCK = 1 << 12  # clusters that are multiplied at a time


class ClusterCellDraws:
    """Draws of `ClusterDraws` for rows with one column, cell by cell.

    The rows of a cell with nearly the same score are a grade, and have one probability,
    that of their mean score. Given the normal deviates z of the clusters, the number of
    events of a cell is a sum over grades and clusters of n p(z), known without drawing
    any row, and a rest whose variance is known. Drawn are the z of the 256 largest
    clusters. The rest is that of the rows, and of all other clusters, whose sum is
    nearly normal: the frequency of a cell has a beta distribution about its mean, and
    the normal deviates from which those of all cells are made are correlated.

    Parameters
    ----------
    cells : Cells
        The m cells.
    rows : RowsInCells
        The rows, with one column.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster, from 0 on.
    weight : ndarray of shape (n,)
        Weights.
    correlation : float
        The correlation r of the normal deviates of the rows of a cluster.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.
    """

    def __init__(self, cells, rows, cluster, weight, correlation, n_draws, rng):
        # The rows have one column: the cell of each row (n,), and its score (n,).
        n_cells = len(cells.weight)
        self.correlation = correlation
        self.n_draws = n_draws
        cell = rows.cell[:, 0]
        scores = rows.scores[:, 0].astype(np.float64)
        self._cell_weight = cells.weight
        self._mean_score = cells.mean_score
        # 1. The grades, groups of rows of a cell with nearly the same score: the cell,
        # the weight and the mean score of each, (n_grades,).
        grade, cell_of_grade = _grades(scores, cell, n_cells)
        n_grades = len(cell_of_grade)
        self._cell = cell_of_grade
        # Where the grades of each cell begin: every cell has one.
        self._starts = np.searchsorted(cell_of_grade, np.arange(n_cells))
        self._weight = np.bincount(grade, weight, n_grades)
        self._scores = np.bincount(grade, weight * scores, n_grades) / self._weight
        # Sums of squared weights, to which the variance that the rows add to the number
        # of events of a grade is proportional.
        self._squared_weight = np.bincount(grade, weight**2, n_grades)
        # 2. The clusters. Of the largest ones, whose deviates are drawn, the weight of
        # each grade is kept, (n_drawn_clusters, n_grades); of the others the sums over
        # clusters of the products of the weights of two grades.
        by_cluster = csr_array((weight, (cluster, grade)))
        largest_first = np.argsort(-np.bincount(cluster, weight), kind="stable")
        drawn_clusters = by_cluster[largest_first[:_DRAWN_CLUSTERS]]
        self._drawn = drawn_clusters.toarray().astype(np.float32)
        self._products = weight_products(by_cluster[largest_first[_DRAWN_CLUSTERS:]])
        # 3. Draws come in blocks. The weights by interval of z are kept if memory
        # allows; else they are made again from the seed.
        n_numbers = _INTERVALS * n_grades
        self._sizes = block_sizes(n_draws, n_numbers)
        self._seed = rng.randint(np.iinfo(np.int32).max)
        self._stored_blocks = None
        if n_draws * n_numbers <= 4 * MOST_STORED:
            self._stored_blocks = [self._block(k) for k in range(len(self._sizes))]

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of event frequencies of the m cells, drawn for
        hypothetical event probabilities (m,) of the cells.

        `c` is not used; it is an argument because `CountDraws` has it.
        """
        shift = frequency - self._mean_score
        # The matrix (m, n_grades) takes values of grades to the means of cells.
        share = self._weight / self._cell_weight[self._cell]
        share_matrix = csr_array((share, (self._cell, np.arange(len(share)))))
        threshold = ndtri(
            shifted_scores(self._scores, self._cell, share_matrix, frequency, shift)
        )
        # The mean of each cell, given the drawn z, is a sum over their intervals.
        width = 2 * _FARTHEST / _INTERVALS
        middles = -_FARTHEST + width * (np.arange(_INTERVALS) + 0.5)
        by_interval = self._given_z(threshold, middles, width).astype(np.float32)
        variance, root = self._noise_given_z(threshold)
        # The expected events of the clusters whose z are not drawn.
        others = self._weight - self._drawn.sum(axis=0, dtype=np.float64)
        other_events = self._by_cell(others * ndtr(threshold))
        spread = frequency * (1 - frequency)
        # The variance given the drawn z, in proportion to f (1 - f).
        relative = np.divide(
            variance, spread, out=np.zeros(len(spread)), where=spread > 0
        )
        for k in range(len(self._sizes)):
            if self._stored_blocks is None:
                weights, normal = self._block(k)
            else:
                weights, normal = self._stored_blocks[k]
            # A product for each grade, which takes half as long as one `einsum`.
            events = np.matmul(weights, by_interval[:, :, None])[:, :, 0].T
            mean = (self._by_cell(events) + other_events) / self._cell_weight
            # A frequency of 0 or 1 is that of all draws, but for rounding.
            mean = np.where(spread > 0, mean.clip(0, 1), frequency)
            yield _beta_draws(mean, np.minimum(relative, 1.0), normal @ root.T)

    def _given_z(self, threshold, points, width):
        """Return the probabilities (n_grades, n_points) of events in clusters whose z
        lies within `width` / 2 of each point.
        """
        r = self.correlation
        # A uniform z within its interval adds the variance width^2 / 12.
        scale = np.sqrt(1 - r + r * width**2 / 12)
        return ndtr((threshold[:, None] - np.sqrt(r) * points) / scale)

    def _noise_given_z(self, threshold):
        """Return the variances (m,) of the cells' event frequencies if the deviates z
        of the drawn clusters are given, and a root (m, m) of their correlation matrix.
        `threshold` (n_grades,) are the normal quantiles of the events' probabilities.
        """
        width = 2 * _FARTHEST_POINT / _POINTS
        points = -_FARTHEST_POINT + width * (np.arange(_POINTS) + 0.5)
        # The normal probability of each point z, and the event probability given z.
        share = np.exp(-(points**2) / 2)
        share /= share.sum()
        probability = self._given_z(threshold, points, width)
        # Covariances of the numbers of events of grades: from the deviates of the
        # clusters that are not drawn, and on the diagonal also from the rows.
        centred = probability - (probability @ share)[:, None]
        covariance = self._products * ((centred * share) @ centred.T)
        label_variance = (probability * (1 - probability)) @ share
        row_part = self._squared_weight * label_variance
        covariance[np.diag_indices_from(covariance)] += row_part
        # Those of the event frequencies of cells.
        covariance = self._by_cell(self._by_cell(covariance).T)
        covariance /= np.outer(self._cell_weight, self._cell_weight)
        variance = covariance.diagonal().copy()
        deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
        correlation = covariance / np.outer(deviation, deviation)
        correlation[np.diag_indices_from(correlation)] = 1 + _RIDGE
        return variance, np.linalg.cholesky(correlation)

    def _block(self, k):
        """Return the k-th block: the weight of each grade by the interval of its
        clusters' z, float32 (n_grades, draws, 64), and a normal deviate of each cell,
        (draws, m).
        """
        rng = np.random.default_rng([self._seed, k])
        n_draws = self._sizes[k]
        n_clusters = len(self._drawn)
        z = rng.standard_normal((n_draws, n_clusters))
        interval = np.floor((z / _FARTHEST + 1) / 2 * _INTERVALS)
        interval = interval.clip(0, _INTERVALS - 1).astype(np.intp)
        row = interval + _INTERVALS * np.arange(n_draws)[:, None]
        # A matrix that adds up the clusters of each draw and interval.
        of_interval = csr_array(
            (
                np.ones(z.size, dtype=np.float32),
                (row.ravel(), np.tile(np.arange(n_clusters), n_draws)),
            ),
            (n_draws * _INTERVALS, n_clusters),
        )
        weights = np.ascontiguousarray((of_interval @ self._drawn).T)
        weights = weights.reshape(-1, n_draws, _INTERVALS)
        return weights, rng.standard_normal((n_draws, len(self._cell_weight)))

    def _by_cell(self, values):
        """Return the sums (..., m) over the grades of each cell for their values (...,
        n_grades).
        """
        return np.add.reduceat(values, self._starts, axis=-1)


def shifted_scores(scores, cell, share_matrix, frequency, first_shift):
    """Return scores (n,), shifted by one number in each cell so that their mean there
    is the hypothetical event frequency (m,).

    Shifted scores are clipped to [0, 1], which changes the mean: the other scores of
    the cell are then shifted further, by Newton's method. Its steps do not overshoot,
    because the mean is a concave function of an upward shift, and a convex one of a
    downward shift.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of rows, or of grades.
    cell : ndarray of int, shape (n,)
        The cell of each.
    share_matrix : csr_array of shape (m, n)
        Takes values (n,) to their weighted means in the cells.
    frequency : ndarray of shape (m,)
        The event frequencies.
    first_shift : ndarray of shape (m,)
        Frequency minus mean score.
    """
    # Frequencies of 0 and 1 are reached by all rows at once, not in the limit.
    shift = np.where(frequency <= 0, -1.0, first_shift)
    shift = np.where(frequency >= 1, 1.0, shift)
    for _ in range(_ROUNDS):
        probability = np.clip(scores + shift[cell], 0, 1)
        missing = frequency - share_matrix @ probability
        if np.abs(missing).max() < _LEAST:
            break
        # The derivative of the mean is the share of the cell's rows that can still move
        # in the direction that is needed.
        must_rise = missing[cell] > 0
        can_move = np.where(must_rise, probability < 1, probability > 0)
        slope = share_matrix @ can_move.astype(np.float64)
        step = np.divide(missing, slope, out=np.zeros_like(missing), where=slope > 0)
        shift = shift + step
    return probability


def score_grades(scores, n_grades):
    """Return the grade (n,) of each of n scores: its rank divides them into `n_grades`
    of about equal numbers.
    """
    rank = np.empty(len(scores), dtype=np.intp)
    rank[np.argsort(scores)] = np.arange(len(scores))
    return rank * n_grades // len(scores)


def _grades(scores, cell, n_cells):
    """Return the grade (n,) of each row, and the cell (n_grades,) of each grade. Grades
    are equal parts of a cell by the ranks of its scores; `cell` (n,) is that of each
    row.
    """
    per_cell = max(_GRADES // n_cells, 1)
    # Scores are at most 1, so that cells stay apart.
    order = np.argsort(2.0 * cell + scores)
    size = np.bincount(cell, minlength=n_cells)
    rank = np.empty(len(scores), dtype=np.intp)
    rank[order] = np.arange(len(scores))
    rank -= (np.cumsum(size) - size)[cell]  # from 0 within its cell
    grade = cell * per_cell + rank * per_cell // size[cell]
    # A cell with few rows has fewer grades.
    used, grade = np.unique(grade, return_inverse=True)
    return grade, used // per_cell


def weight_products(by_cluster):
    """Return the sums over clusters (n_grades, n_grades) of the products of two
    columns, for a sparse matrix of weights (n_clusters, n_grades).
    """
    n_clusters, n_grades = by_cluster.shape
    if 8 * by_cluster.nnz < n_clusters * n_grades:
        return (by_cluster.T @ by_cluster).toarray()
    products = np.zeros((n_grades, n_grades))
    for start in range(0, n_clusters, _ROWS_OF_BLOCK):
        block = by_cluster[start : start + _ROWS_OF_BLOCK].toarray()
        products += block.T @ block
    return products


def _beta_draws(mean, relative, normal):
    """Return quantiles (draws, m) of beta distributions with means (draws, m) and
    variances `relative` (m,) times mean (1 - mean), at standard normal deviates.
    """
    drawn = mean.copy()  # what is drawn where nothing varies
    varies = np.flatnonzero(relative > 0)
    # The two parameters of a distribution add up to 1 / relative - 1.
    total = np.maximum(1 / relative[varies] - 1, 1e-6)
    center = mean[:, varies]
    a = center * total
    b = (1 - center) * total
    x = normal[:, varies]
    # A beta distribution that is nearly normal: the expansion of Cornish and Fisher.
    with np.errstate(divide="ignore", invalid="ignore"):
        product = a * b
        skewness = 2 * (b - a) * np.sqrt((total + 1) / product) / (total + 2)
        kurtosis = 6 * ((a - b) ** 2 * (total + 1) - product * (total + 2))
        kurtosis /= product * (total + 2) * (total + 3)
        deviation = np.sqrt(center * (1 - center) / (total + 1))
        square = x**2
        steps = x + (square - 1) * skewness / 6
        steps += x * (square - 3) * kurtosis / 24
        steps -= x * (2 * square - 5) * skewness**2 / 36
        values = center + deviation * steps
    # Others by the exact quantile. Where the mean is 0 or 1 there is no distribution.
    least = np.minimum(a, b)
    is_normal = (least >= _LEAST_PARAMETER) & (np.abs(skewness) <= _LARGEST_SKEWNESS)
    exact = ~is_normal & (least > 0)
    values[exact] = betaincinv(a[exact], b[exact], ndtr(x[exact]))
    drawn[:, varies] = np.where(least > 0, values, center).clip(0, 1)
    return drawn
