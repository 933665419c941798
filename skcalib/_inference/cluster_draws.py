"""Draws in which the labels of the rows of a cluster depend on each other."""

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skcalib._cells.cells import Cells
from skcalib._inference.cluster_cells import (
    ClusterCellDraws,
    score_grades,
    shifted_scores,
    weight_products,
)
from skcalib._inference.label_dependence import RowsInCells, label_copula
from skcalib._inference.uniform_blocks import MOST_STORED, block_sizes
from skcalib._input.warn import warn
from skcalib._rows.blocks import effective_size, weights_or_ones
from skcalib._rows.sorting import distinct_values

# With fewer expected events or non-events the dependence within clusters is not known
# well enough for the test to hold its level.
FEW_EVENTS = 40
# Correlations within clusters at which the expected squares of cluster sums are
# computed, and quantiles of the normal deviate that the rows of a cluster share.
_CORRELATIONS = np.array([0, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.99])
_QUANTILES = ndtri((np.arange(100) + 0.5) / 100)
# More than 8,192 rows are taken together by their scores, in 64 grades, where only the
# correlation is sought.
_ROWS_OF_GRADES, _GRADES = 1 << 13, 64
# The most cells whose draws need no rows: their correlations are a matrix.
MOST_CELLS = 1 << 10
# The smallest probability of a class, and how often rows and cells are fitted to each
# other in turn.
_LEAST, _ROUNDS = 1e-12, 10


def drawn_by_cell(n_rows, n_columns, n_draws):
    """Return whether the draws of rows in clusters are made cell by cell, because those
    of all rows would not fit into memory.
    """
    return n_columns == 1 and n_rows * n_draws > MOST_STORED


def cluster_draws(cells, rows, deviation, cluster, n_draws, rng):
    """Return what draws event frequencies of cells (groups of rows with near scores)
    whose rows are in clusters: `ClusterDraws` row by row, or for many rows with one
    column `ClusterCellDraws`.

    `cells` are m `Cells`, and `rows` their `RowsInCells`; `deviation` (m,) is the
    observed event frequency minus score, `cluster` (n,) the code of each row's cluster;
    `rng` draws `n_draws` times.
    """
    n_rows, n_columns = rows.cell.shape
    few_cells = len(cells.weight) <= MOST_CELLS
    if not (few_cells and drawn_by_cell(n_rows, n_columns, n_draws)):
        return ClusterDraws(cells, rows, deviation, cluster, n_draws, rng)
    scores = rows.scores.astype(np.float64)
    _warn_of_few_events(scores)
    _, code = distinct_values(cluster)
    weight = weights_or_ones(rows.sample_weight, n_rows)
    fitted = np.clip(scores + deviation[rows.cell], 0, 1)
    correlation = cluster_correlation(fitted[:, 0], rows.labels[:, 0], weight, code)
    return ClusterCellDraws(cells, rows, code, weight, correlation, n_draws, rng)


class ClusterDraws:
    """Draws in which the labels of a cluster depend on each other by a normal copula
    with one factor.

    A row is an event where ``sqrt(r) z + sqrt(1 - r) e`` lies below the quantile of its
    probability, z the normal deviate of its cluster and e its own: the probabilities
    stay what they are. The correlation r >= 0 is that for which the squares of the
    clusters' sums of residuals are on average as large as those of the residuals about
    s + d. They are divided by the clusters' weights, so that a large cluster does not
    stand for all.

    Parameters
    ----------
    cells : Cells
        The cells.
    rows : RowsInCells
        The rows. The events of several problems exclude each other, or have the
        dependence of the rows' `copula`: clusters then share a deviate for each label.
    deviation : ndarray of shape (m,)
        The observed deviation d.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.

    Warns
    -----
    UserWarning
        Where fewer than 40 events or non-events are expected.
    """

    def __init__(self, cells, rows, deviation, cluster, n_draws, rng):
        n, n_columns = rows.cell.shape
        # Of each row and column: the number of its cell, and its score, (n, n_columns).
        self._cell = rows.cell
        self._scores = rows.scores.astype(np.float64)
        _warn_of_few_events(self._scores)
        self._mean_score = cells.mean_score  # of each cell, (m,)
        # Code of each row's cluster, from 0 on, (n,).
        _, self._cluster = distinct_values(cluster)
        weight = np.repeat(weights_or_ones(rows.sample_weight, n), n_columns)
        # A matrix (m, n * n_columns): its product with the values of all rows and
        # columns is their weighted mean in each cell.
        cell = rows.cell.ravel()
        self._mean_matrix = csr_array(
            (weight / cells.weight[cell], (cell, np.arange(n * n_columns))),
            (len(cells.weight), n * n_columns),
        )
        # The correlation of normal deviates within a cluster, from the labels and score
        # + deviation, the observed deviation of the row's cell. Each column has
        # clusters of its own: the pair (cluster, column) is one number.
        fitted = np.clip(self._scores + deviation[rows.cell], 0, 1)
        column_cluster = self._cluster[:, None] * n_columns + np.arange(n_columns)
        self.correlation = cluster_correlation(
            fitted.ravel(),
            rows.labels.ravel(),
            weight,
            column_cluster.ravel(),
        )
        # The dependence of several labels of a row, (n_columns, n_columns); None if the
        # columns are classes, of which a row has one, or if there is one column.
        self._copula = rows.copula
        self.n_draws = n_draws
        self._sizes = block_sizes(n_draws, n * n_columns)  # draws in each block
        self._seed = rng.randint(np.iinfo(np.int32).max)
        # The normal deviates of all blocks if they fit into memory, else None: those of
        # a block are then made again from the seed when they are needed.
        self._stored_deviates = None
        n_deviates = n
        if rows.copula is not None:
            n_deviates = n * n_columns
        if n_draws * n_deviates <= MOST_STORED:
            self._stored_deviates = [
                self._normal_deviates(k) for k in range(len(self._sizes))
            ]

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of event frequencies of the m cells, drawn for
        hypothetical event probabilities (m,) of the cells.

        `c` is not used; it is an argument because `CountDraws` has it.
        """
        n_columns = self._scores.shape[1]
        are_classes = n_columns > 1 and self._copula is None
        probability = self._probabilities(frequency, are_classes)
        threshold = ndtri(probability)  # (n, n_columns)
        for k in range(len(self._sizes)):
            if self._stored_deviates is None:
                deviates = self._normal_deviates(k)
            else:
                deviates = self._stored_deviates[k]
            # An event where the row's normal deviate is below the threshold of its
            # probability: (draws, n, n_columns).
            is_event = deviates < threshold
            if are_classes:
                # The thresholds of the classes increase. The drawn class is the first
                # whose threshold lies above the deviate.
                is_event = np.diff(is_event, axis=-1, prepend=False)
            # The mean in each cell, from columns of all rows and columns, one for each
            # draw.
            n_drawn = len(is_event)
            columns = is_event.reshape(n_drawn, -1).T.astype(np.float64)
            yield (self._mean_matrix @ columns).T

    def _probabilities(self, frequency, are_classes):
        """Return probabilities (n, n_columns) whose means in the cells are hypothetical
        event frequencies (m,): the scores, shifted cell by cell.

        If the columns are classes, of which a row has one, they sum to 1, and their
        cumulative sums are returned.
        """
        shift = frequency - self._mean_score
        if self._scores.shape[1] == 1:
            probability = shifted_scores(
                self._scores[:, 0],
                self._cell[:, 0],
                self._mean_matrix,
                frequency,
                shift,
            )
            return probability[:, None]
        shifted = self._scores + shift[self._cell]
        if not are_classes:
            return np.clip(shifted, 0, 1)
        probability = np.clip(shifted, _LEAST, 1)
        # Scaling the rows to the sum 1 changes the means in the cells, and scaling the
        # cells changes the sums: both in turn (iterative proportional fitting).
        for _ in range(_ROUNDS):
            probability /= probability.sum(axis=1, keepdims=True)
            mean_in_cell = self._mean_matrix @ probability.ravel()
            factor = np.maximum(frequency, _LEAST) / mean_in_cell
            probability *= factor[self._cell]
        cumulative = np.cumsum(probability, axis=1)
        cumulative /= cumulative[:, -1:]
        return cumulative

    def _normal_deviates(self, k):
        """Return the normal deviates of the k-th block of draws, float32 (draws,
        n_rows, 1 or L): one for each row, or for each of its L labels.

        For the correlation r within clusters, a deviate is sqrt(r) times one of the
        cluster plus sqrt(1 - r) times one of the row.
        """
        rng = np.random.default_rng([self._seed, k])
        n_draws = self._sizes[k]
        n_deviates = 1
        if self._copula is not None:
            n_deviates = len(self._copula)
        n_clusters = self._cluster.max() + 1
        cluster_shape = (n_draws, n_clusters, n_deviates)
        cluster_deviates = rng.standard_normal(cluster_shape, dtype=np.float32)
        row_shape = (n_draws, len(self._cluster), n_deviates)
        row_deviates = rng.standard_normal(row_shape, dtype=np.float32)
        cluster_factor = np.float32(self.correlation**0.5)
        row_factor = np.float32((1 - self.correlation) ** 0.5)
        deviates = cluster_factor * cluster_deviates[:, self._cluster]
        deviates = deviates + row_factor * row_deviates
        if self._copula is None:
            return deviates
        # The matrix of `label_copula` gives the labels of a row their correlations.
        return deviates @ self._copula.T.astype(np.float32)


def cluster_labels(probability, codes, weight, resampling):
    """Yield labels of all rows, drawn from their probabilities with the dependence that
    the observed labels show within clusters.

    Parameters
    ----------
    probability : ndarray of shape (n, K)
        Probability of each class, or of each of several labels.
    codes : ndarray of int, shape (n,), or of bool, shape (n, K)
        Observed class of each row, or which labels it has.
    weight : ndarray of shape (n,) or None
        Weights.
    resampling : Resampling
        Number of draws, random numbers and clusters.

    Yields
    ------
    drawn : ndarray of int, shape (n,), or of bool, shape (n, K)
        Drawn labels in the form of `codes`.
    """
    n, n_classes = probability.shape
    is_multilabel = codes.ndim == 2
    if is_multilabel:
        labels = codes
    else:
        labels = codes[:, None] == np.arange(n_classes)
    # `ClusterDraws` draws event frequencies of cells. Each pair of a row and a class is
    # made a cell of its own, so that its drawn frequency, 0 or 1, is a label.
    cell = np.arange(n * n_classes).reshape(n, n_classes)
    cells = Cells.of_scores(probability.ravel(), np.ones(cell.size), labels.ravel())
    # The event frequency of a class differs from the scores by the mean residual, which
    # is taken to be the same for all rows.
    class_deviation = np.average(labels - probability, axis=0, weights=weight)
    copula = None
    if is_multilabel:
        deviation = np.broadcast_to(class_deviation, (n, n_classes))
        copula = label_copula(probability, labels, weight, deviation)
    draws = ClusterDraws(
        cells,
        RowsInCells(cell, probability, labels, weight, copula),
        np.tile(class_deviation, n),
        resampling.cluster,
        resampling.n_draws,
        resampling.rng,
    )
    for block in draws(cells.mean_score):
        is_event = block.reshape(-1, n, n_classes) > 0  # (draws, n, K)
        if is_multilabel:
            yield from is_event
        else:
            yield from is_event.argmax(axis=2)


def cluster_correlation(fitted, labels, weight, cluster):
    """Return the correlation r, within clusters, of normal deviates from which labels
    are drawn: the r at which residuals of one cluster are as similar as observed.

    The model: a label is an event where ``sqrt(r) z + sqrt(1 - r) e`` lies below the
    normal quantile of its probability, z a normal deviate of the cluster and e one of
    the row. The sum over clusters of (sum of w residual)^2 / (sum of w) grows with r;
    the r is returned at which its expectation is the observed sum.

    Parameters
    ----------
    fitted : ndarray of shape (n,)
        Probabilities that fit the labels, such as score + observed deviation. With
        miscalibrated ones, wrong variances would be taken for dependence.
    labels : ndarray of bool, shape (n,)
        Events. A residual is the label minus the fitted probability.
    weight : ndarray of shape (n,)
        Weights w.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster, from 0 on.

    Returns
    -------
    correlation : float
        From 0 to .99.
    """
    cluster_weight = np.bincount(cluster, weight)
    # The effective number of clusters: the clusters of equal weight they are worth.
    n_clusters = effective_size(cluster_weight.sum(), cluster_weight @ cluster_weight)
    n_clusters = max(n_clusters, 2.0)

    def sum_of_squares(values):
        """Return the sum over clusters of (sum of w value)^2 / (sum of w)."""
        sums = np.bincount(cluster, weight * values)
        return np.sum(sums**2 / cluster_weight)

    # The residuals are about a fitted mean: one degree of freedom less.
    observed = sum_of_squares(labels - fitted) * n_clusters / (n_clusters - 1)
    # The expected sum of squares for larger and larger correlations, up to the first
    # that reaches the observed one. Given z the rows of a cluster are independent, with
    # probabilities p(z): the expectation given z is the sum of squares of p(z) - fitted
    # plus the variance of the labels. It is averaged over 100 quantiles of z.
    variance_weight = weight**2 / cluster_weight[cluster]
    if len(fitted) > _ROWS_OF_GRADES:
        # Rows with nearly the same probability are taken together.
        grade = score_grades(fitted, _GRADES)
        grade_weight = np.bincount(grade, weight)
        fitted = np.bincount(grade, weight * fitted) / grade_weight
        variance_weight = np.bincount(grade, variance_weight)
        # The sum of squares becomes v' P v for values v by grade, with P the sums over
        # clusters of the products of the weights of two grades, over the cluster's.
        scaled_weight = weight / np.sqrt(cluster_weight)[cluster]
        products = weight_products(csr_array((scaled_weight, (cluster, grade))))

        def sum_of_squares(values):
            """Return the sum of squares as above, for values by grade."""
            return values @ products @ values

    quantile = ndtri(fitted)
    expected = []
    for correlation in _CORRELATIONS:
        total = 0.0
        for z in _QUANTILES:
            threshold = (quantile - correlation**0.5 * z) / (1 - correlation) ** 0.5
            probability = ndtr(threshold)
            variance = probability * (1 - probability)
            total += sum_of_squares(probability - fitted) + variance_weight @ variance
        expected.append(total / len(_QUANTILES))
        if observed <= expected[-1]:
            break
    rising = np.maximum.accumulate(expected)
    return float(np.interp(observed, rising, _CORRELATIONS[: len(expected)]))


def _warn_of_few_events(scores):
    """Warn if fewer than `FEW_EVENTS` events or non-events are expected in a column of
    scores (n, n_columns).
    """
    n_events = scores.sum(axis=0)
    expected = min(n_events.min(), (len(scores) - n_events).min())
    if expected < FEW_EVENTS:
        warn(
            f"clusters=: {expected:.2g} events or non-events are expected. With fewer"
            f" than about {FEW_EVENTS}, the dependence within clusters cannot be"
            " estimated well enough, so the test may not keep its level."
        )
