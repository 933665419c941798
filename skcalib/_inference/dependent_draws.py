"""Draws of event frequencies that depend on each other: one label per row for many classes, clusters of rows."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skcalib._cells.cells import Cells
from skcalib._inference.count_draws import block_sizes
from skcalib._input.warn import warn

FEW_EVENTS = 40  # expected, below which the dependence within clusters is not known well enough for the level
_CORRELATIONS = np.array([0, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.99])
_QUANTILES = ndtri((np.arange(100) + 0.5) / 100)  # of what the rows of a cluster share
_LEAST, _ROUNDS = 1e-12, 10  # probability of a class, and turns that fit rows and cells to each other
_KEPT = 1 << 23  # random numbers that are kept in memory

# Rows, and scores of them, that show how the counts of classes depend on each other; more are thinned to these.
_ROWS, _SCORES = 20_000, 1 << 21


def exclusive_draws(rows, n_cells, n_draws, rng):
    """Return uniform numbers behind the counts of cells whose rows belong to one class each.

    Labels are drawn row by row at the scores: an event in one class is a non-event in the others. The rank of each
    cell's count among the draws is the random number behind the count, for other frequencies, too.

    Parameters
    ----------
    rows : RowsInCells
        The rows, by class.
    n_cells : int
        Number of cells.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    uniforms : ndarray of shape (n_draws, n_cells)
        For `CountDraws`.
    """
    (n, n_columns), weight = rows.cell.shape, rows.sample_weight
    most, cell_of, probability = min(_ROWS, max(_SCORES // n_columns, 1)), rows.cell, rows.scores
    if n > most or weight is not None:
        share = None if weight is None else weight / weight.sum()
        drawn = rng.choice(n, min(n, most), replace=weight is not None, p=share)
        cell_of, probability = cell_of[drawn], probability[drawn]
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    cumulative = cumulative[:, :-1] / cumulative[:, -1:]
    numbers = np.arange(len(cell_of))
    counts = np.empty((n_draws, n_cells))
    for count in counts:
        labels = np.count_nonzero(cumulative <= rng.random_sample((len(numbers), 1)), axis=1)
        count[:] = np.bincount(cell_of[numbers, labels], minlength=n_cells)
    counts += rng.random_sample(counts.shape)  # ties in random order
    ranks = counts.argsort(axis=0).argsort(axis=0)
    return (ranks + rng.random_sample(counts.shape)) / n_draws


class RowsInCells(NamedTuple):
    """The rows of all groups, by binary problem (n, n_tasks): cells, scores and labels; and their weights or None."""

    cell: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None


class ClusterDraws:
    """Draws in which the labels of a cluster depend on each other by a normal copula with one factor.

    A row is an event where ``sqrt(r) z + sqrt(1 - r) e`` lies below the quantile of its probability, z the normal
    deviate of its cluster and e its own: the probabilities stay what they are. The correlation r >= 0 is that for which
    the squares of the clusters' sums of residuals are on average as large as those of the residuals about s + d. They
    are divided by the clusters' weights, so that a large cluster does not stand for all.

    Parameters
    ----------
    cells : Cells
        The cells.
    rows : RowsInCells
        The rows; the events of several problems exclude each other.
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
        n, n_tasks = rows.cell.shape
        self._mean_score, self._cell, self._scores = cells.mean_score, rows.cell, rows.scores.astype(np.float64)
        expected = min(self._scores.sum(axis=0).min(), (1 - self._scores).sum(axis=0).min())
        if expected < FEW_EVENTS:
            warn(
                f"clusters=: {expected:.2g} events or non-events are expected. Below about {FEW_EVENTS} the dependence "
                "of the rows within a cluster is not known well enough, and the level is not held."
            )
        self._cluster = np.unique(cluster, return_inverse=True)[1]
        weight = np.repeat(np.ones(n) if rows.sample_weight is None else rows.sample_weight, n_tasks)
        cell = rows.cell.ravel()
        self._means = csr_array(
            (weight / cells.weight[cell], (cell, np.arange(n * n_tasks))), (len(cells.weight), n * n_tasks)
        )
        fitted = np.clip(self._scores + deviation[rows.cell], 0, 1)
        code = (self._cluster[:, None] * n_tasks + np.arange(n_tasks)).ravel()
        self.correlation = cluster_correlation(self._scores.ravel(), (rows.labels - fitted).ravel(), weight, code)
        self.n_draws = n_draws
        self._sizes, self._seed = block_sizes(n_draws, n * n_tasks), rng.randint(np.iinfo(np.int32).max)
        self._kept = [self._latent(k) for k in range(len(self._sizes))] if n_draws * n <= _KEPT else None

    def __call__(self, frequency, c=0):
        """Yield blocks of event frequencies drawn for frequencies (m,)."""
        n_tasks = self._scores.shape[1]
        least = 0 if n_tasks == 1 else _LEAST
        probability = np.clip(self._scores + (frequency - self._mean_score)[self._cell], least, 1)
        if n_tasks > 1:
            # Rows that are scaled to sum to 1 no longer have the frequencies as means of the cells: fit both in turn.
            for _ in range(_ROUNDS):
                probability /= probability.sum(axis=1, keepdims=True)
                probability *= (np.maximum(frequency, _LEAST) / (self._means @ probability.ravel()))[self._cell]
            probability = np.cumsum(probability, axis=1)
            probability /= probability[:, -1:]
        threshold = ndtri(probability)
        for k in range(len(self._sizes)):
            below = (self._latent(k) if self._kept is None else self._kept[k])[..., None] < threshold
            labels = below if n_tasks == 1 else np.diff(below, axis=-1, prepend=False)
            yield (self._means @ labels.reshape(len(labels), -1).T.astype(np.float64)).T

    def _latent(self, k):
        rng, size = np.random.default_rng([self._seed, k]), self._sizes[k]
        shared = rng.standard_normal((size, self._cluster.max() + 1), dtype=np.float32)[:, self._cluster]
        own = rng.standard_normal((size, len(self._cluster)), dtype=np.float32)
        return np.float32(self.correlation**0.5) * shared + np.float32((1 - self.correlation) ** 0.5) * own


def cluster_labels(probability, codes, weight, resampling):
    """Yield codes of labels (n,) drawn for probabilities (n, K), with the dependence that clusters of `codes` show."""
    n, n_classes = probability.shape
    labels = codes[:, None] == np.arange(n_classes)
    cell = np.arange(n * n_classes).reshape(n, n_classes)
    cells = Cells.of_scores(probability.ravel(), np.ones(cell.size), labels.ravel())  # a row is a cell in each class
    bias = np.tile(np.average(labels - probability, axis=0, weights=weight), n)
    rows = RowsInCells(cell, probability, labels, weight)
    draws = ClusterDraws(cells, rows, bias, resampling.cluster, resampling.n_draws, resampling.rng)
    for block in draws(cells.mean_score):
        yield from block.reshape(-1, n, n_classes).argmax(axis=2)


def cluster_correlation(scores, residual, weight, cluster):
    """Return the correlation at which the squares of the clusters' sums are on average as large as they are."""
    mass = np.bincount(cluster, weight)
    n_clusters = max(mass.sum() ** 2 / (mass @ mass), 2.0)  # of equal size; their mean is fitted

    def squares(values):
        return np.sum(np.bincount(cluster, weight * values) ** 2 / mass)

    observed = squares(residual) * n_clusters / (n_clusters - 1)
    quantile = ndtri(scores)
    expected, own = [], weight**2 / mass[cluster]
    for correlation in _CORRELATIONS:
        total = 0.0
        for z in _QUANTILES:
            given = ndtr((quantile - correlation**0.5 * z) / (1 - correlation) ** 0.5)
            total += squares(given - scores) + own @ (given * (1 - given))
        expected.append(total / len(_QUANTILES))
        if observed <= total / len(_QUANTILES):
            break
    return float(np.interp(observed, np.maximum.accumulate(expected), _CORRELATIONS[: len(expected)]))
