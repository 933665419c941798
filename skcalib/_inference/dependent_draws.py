"""Draws of event frequencies that depend on each other: one label per row for many classes, one sign a cluster."""

import numpy as np
from scipy.sparse import coo_array

from skcalib._inference.count_draws import CountDraws, block_sizes

__all__ = ["ClusterDraws", "one_label_a_row"]

_ROWS = 20_000  # rows that show how the counts of classes depend on each other; more are thinned to these


def one_label_a_row(cells, cell_of, probability, n_draws, rng):
    """Return draws in which a row belongs to one class: its event in one class is a non-event in the others.

    Labels are drawn row by row at the scores. The rank of each cell's count among the draws is the random number
    behind the count for other frequencies.

    Parameters
    ----------
    cells : Cells
        The cells of all classes.
    cell_of : ndarray of int, shape (n, K)
        Cell of each row, by class.
    probability : ndarray of shape (n, K)
        Scores of the classes.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    draws : CountDraws
        Draws of the cells' event frequencies.
    """
    n, n_cells = len(probability), len(cells.weight)
    if n > _ROWS:
        rows = rng.choice(n, _ROWS, replace=False)
        cell_of, probability = cell_of[rows], probability[rows]
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    cumulative = cumulative[:, :-1] / cumulative[:, -1:]
    rows = np.arange(len(cell_of))
    counts = np.empty((n_draws, n_cells))
    for count in counts:
        labels = np.count_nonzero(cumulative <= rng.random_sample((len(rows), 1)), axis=1)
        count[:] = np.bincount(cell_of[rows, labels], minlength=n_cells)
    counts += rng.random_sample(counts.shape)  # ties in random order
    ranks = counts.argsort(axis=0).argsort(axis=0)
    return CountDraws(cells, n_draws, rng, (ranks + rng.random_sample(counts.shape)) / n_draws)


class ClusterDraws:
    """Draws in which whole clusters of rows keep or change the sign of their residuals.

    The residuals under the hypothesis ``f = s + c d`` are ``y - f``, with the observed d; from c = 1 on they stay
    as they are there.

    Parameters
    ----------
    cells : Cells
        The cells.
    cell_of : ndarray of int, shape (n, K)
        Cell of each row, by binary problem.
    residual : ndarray of shape (n, K)
        Label minus score, by row.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster.
    deviation : ndarray of shape (m,)
        The observed deviation d.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.
    """

    def __init__(self, cells, cell_of, residual, sample_weight, cluster, deviation, n_draws, rng):
        present, code = np.unique(cluster, return_inverse=True)
        n_classes = cell_of.shape[1]
        weight = np.ones(len(code)) if sample_weight is None else sample_weight
        index = np.repeat(code, n_classes), cell_of.ravel()
        shape = len(present), len(cells.weight)

        def by_cluster(values):
            mass = (weight[:, None] * values / cells.weight[cell_of]).ravel()
            return coo_array((mass, index), shape=shape).tocsr()

        self._residual, self._shift = by_cluster(residual), by_cluster(deviation[cell_of])
        self._sizes, self._seed = block_sizes(n_draws, max(shape)), rng.randint(np.iinfo(np.int32).max)

    def __call__(self, frequency, c):
        """Yield blocks of event frequencies drawn for frequencies (m,)."""
        change = self._residual - min(c, 1.0) * self._shift
        for k, size in enumerate(self._sizes):
            signs = 1.0 - 2 * np.random.default_rng([self._seed, k]).integers(0, 2, (size, change.shape[0]))
            yield frequency + signs @ change
