"""Draws in which the labels of a row depend on each other: classes that exclude each
other, or several labels that are correlated.
"""

from typing import NamedTuple

import numpy as np

from skcalib._input.tensors import as_array, library_of
from skcalib._rows.namespaces import (
    as_double,
    count_true,
    entries_of_columns,
    placed,
    row_cumulative_sums,
    sums_by_code,
)
from skcalib._rows.normal_quantiles import normal_quantiles

# correlations of two labels that are tried
_LABEL_CORRELATIONS = np.linspace(-0.95, 0.95, 77)
# (row, label) pairs from which labels that depend on each other are drawn; more rows
# are thinned to these
_PAIRS = 1 << 17
# Rows, and (row, class) scores, from which labels that exclude each other are drawn;
# more rows are thinned to these.
_ROWS, _SCORES = 20_000, 1 << 21
# Labels are drawn on a device if the counts of all draws are this few, or fewer numbers
# than those of the rows.
_FEW_COUNTS = 1 << 19
_ROOT_OF_TWO_PI = float(np.sqrt(2 * np.pi))


class RowsInCells(NamedTuple):
    """The rows of all groups, with a column for each class or label, on the device of
    the scores.

    Each column is a binary problem of its own, with its own cells.

    Parameters
    ----------
    cell : ndarray of int, shape (n, n_columns)
        Number of the cell that the score lies in; the cells of the second column are
        numbered after those of the first, and so on.
    scores : ndarray of shape (n, n_columns)
        Probabilities.
    labels : ndarray of bool, shape (n, n_columns)
        Events.
    sample_weight : ndarray of shape (n,) or None
        Weights of the rows.
    copula : ndarray of shape (n_columns, n_columns) or None
        Dependence of the labels of a row; see `label_copula`. None where the labels of
        a row exclude each other.
    """

    cell: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
    copula: np.ndarray | None = None

    def at(self, positions):
        """Return the cells and scores of some rows, at positions of NumPy, without
        weights.
        """
        xp = library_of(self.cell)
        rows = placed(xp, positions, self.cell, dtype=xp.int64)
        cell = xp.take(self.cell, rows, axis=0)
        scores = xp.take(self.scores, rows, axis=0)
        labels = xp.take(self.labels, rows, axis=0)
        return RowsInCells(cell, scores, labels, None, self.copula)

    def for_counts(self, n_draws, n_cells):
        """Return the cells and the scores on their device or, if they are fewer numbers
        than the counts of all draws, as arrays of NumPy.
        """
        n_rows, n_columns = self.cell.shape
        n_counts = n_draws * n_cells
        are_few = n_cells <= n_rows and n_counts <= _FEW_COUNTS
        if are_few or n_counts <= 2 * n_rows * n_columns:
            return self.cell, self.scores
        return _copied_by_column(self.cell), _copied_by_column(self.scores)


def rows_to_draw(n_rows, n_classes, sample_weight, rng):
    """Return the positions of the rows for `exclusive_draws`, a random sample of many
    rows, or of weighted ones; None for all of them.
    """
    most_rows = min(_ROWS, max(_SCORES // n_classes, 1))
    if n_rows <= most_rows and sample_weight is None:
        return None
    return _sampled_rows(n_rows, most_rows, sample_weight, rng)


def exclusive_draws(rows, n_cells, n_draws, rng):
    """Return uniform random numbers for `CountDraws` that make the counts of cells
    depend on each other, where each row has exactly one of several classes.

    An event in one class is a non-event in all others. For each draw, every row gets a
    class drawn from its scores, and the events of each cell are counted. The rank of a
    count among the draws of its cell, divided by their number, is the uniform number.
    From it `CountDraws` makes a count for any event frequency, and the dependence
    between cells stays.

    Parameters
    ----------
    rows : RowsInCells
        The rows at `rows_to_draw`, with a column for each class.
    n_cells : int
        Number of cells of all classes.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    uniforms : ndarray of shape (n_draws, n_cells)
        Numbers in [0, 1].
    """
    cell, scores = rows.for_counts(n_draws, n_cells)
    xp = library_of(cell)
    # The classes of a row divide [0, 1) in proportion to their probabilities. `limits`
    # are the upper ends of all parts but the last.
    cumulative = row_cumulative_sums(xp, scores)
    limits = cumulative[:, :-1] / cumulative[:, -1:]
    n_rows = cell.shape[0]
    counts = np.empty((n_draws, n_cells))
    for draw in range(n_draws):
        uniform = placed(xp, rng.random_sample((n_rows, 1)), limits)
        drawn_class = count_true(xp, limits <= uniform)
        drawn_cell = entries_of_columns(xp, cell, drawn_class)
        counts[draw] = _counts(xp, drawn_cell, n_cells)
    return _ranks_as_uniforms(counts, rng)


def _copied_by_column(values):
    """Return values (n, K) as an array of NumPy, copied from a device column by
    column.
    """
    if isinstance(values, np.ndarray):
        return values
    columns = [as_array(values[:, k])[0] for k in range(values.shape[1])]
    return np.stack(columns, axis=1)


def _counts(xp, cells, n_cells):
    """Return how often each of `n_cells` cells occurs among cells (n,), as an array of
    NumPy.
    """
    if xp is np:
        return np.bincount(cells, minlength=n_cells)
    counts, _ = as_array(sums_by_code(xp, cells, [xp.ones_like(cells)], n_cells))
    return counts[0]


def values_of_cells(values, cell):
    """Return the value (n, n_columns) of the cell of each row and column, for values
    (n_cells,) of NumPy.
    """
    xp = library_of(cell)
    if xp is np:
        return values[cell]
    values = xp.asarray(values, device=cell.device)
    return xp.reshape(xp.take(values, xp.reshape(cell, (-1,))), cell.shape)


def label_copula(scores, labels, weight, deviation=0.0):
    """Return a matrix A (L, L) for drawing the L labels of a row with the dependence
    that the observed labels show: the columns of ``e @ A.T`` have the right
    correlations if e (n, L) holds independent normal deviates.

    A row has label j where its j-th deviate lies below the normal quantile of the
    label's probability. The covariance of two labels with the quantiles a and b is a
    series in the correlation r of their deviates: ``phi(a) phi(b) (r + a b r^2 / 2 +
    (a^2 - 1)(b^2 - 1) r^3 / 6)``. For each pair of labels the r is taken at which the
    sum of the series over the rows is the observed sum of products of residuals.

    Parameters
    ----------
    scores : ndarray of shape (n, L)
        Probabilities of the labels.
    labels : ndarray of bool, shape (n, L)
        Which labels the rows have.
    weight : ndarray of shape (n,) or None
        Weights.
    deviation : ndarray of shape (n, L), default=0.0
        Event frequency minus score: residuals are label - (score + deviation).

    Returns
    -------
    root : ndarray of shape (L, L)
        A, with ``A @ A.T`` the correlation matrix of the deviates.
    """
    xp = library_of(scores)
    fitted = xp.clip(as_double(xp, scores) + deviation, 0, 1)
    residual = as_double(xp, labels) - fitted
    quantile = normal_quantiles(xp, fitted)
    density = xp.exp(-(quantile**2) / 2) / _ROOT_OF_TWO_PI
    # A label that is certain depends on nothing.
    quantile = xp.where(density == 0, xp.zeros_like(quantile), quantile)
    weights = 1.0
    if weight is not None:
        weights = placed(xp, weight[:, None], fitted)

    def sums_of_products(values):
        """Return the weighted sums over rows (L, L) of the products of two columns."""
        return as_array((weights * values).T @ values)[0]

    # 1. The sum of the series for each pair of labels and each of 77 correlations r
    # from -.95 to .95, (77, L, L). For each pair the r is taken whose sum is nearest to
    # the observed one.
    r = _LABEL_CORRELATIONS[:, None, None]
    expected = r * sums_of_products(density)
    expected += r**2 / 2 * sums_of_products(density * quantile)
    expected += r**3 / 6 * sums_of_products(density * (quantile**2 - 1))
    nearest = np.abs(expected - sums_of_products(residual)).argmin(axis=0)
    correlation = _LABEL_CORRELATIONS[nearest]
    np.fill_diagonal(correlation, 1)
    # 2. Correlations that are estimated pair by pair need not be those of any normal
    # vector. Negative eigenvalues are replaced by 0, and the rows of the root are
    # scaled so that the variances are 1 again.
    eigenvalues, eigenvectors = np.linalg.eigh(correlation)
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0))
    return root / np.linalg.norm(root, axis=1, keepdims=True)


def copula_draws(rows, n_cells, n_draws, rng):
    """Return uniform random numbers for `CountDraws` that make the counts of cells
    depend on each other, where a row may have several labels.

    For each draw, every row gets labels drawn from its scores, with the dependence that
    the observed labels show, and the events of each cell are counted. The rank of a
    count among the draws of its cell, divided by their number, is the uniform number;
    see `exclusive_draws`.

    Parameters
    ----------
    rows : RowsInCells
        The rows, with a column for each label, and the dependence of the labels.
    n_cells : int
        Number of cells of all labels.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    uniforms : ndarray of shape (n_draws, n_cells)
        Numbers in [0, 1].
    """
    n_rows, n_labels = rows.cell.shape
    most_rows = max(_PAIRS // n_labels, 1)
    # Many rows, and weighted ones, are replaced by a random sample of them.
    if n_rows > most_rows or rows.sample_weight is not None:
        rows = rows.at(_sampled_rows(n_rows, most_rows, rows.sample_weight, rng))
    cell, scores = rows.for_counts(n_draws, n_cells)
    xp = library_of(cell)
    # A label is drawn where a normal deviate lies below the quantile of its score.
    threshold = normal_quantiles(xp, as_double(xp, scores))
    counts = np.empty((n_draws, n_cells))
    label_draws = _copula_labels(threshold, rows.copula, n_draws, rng)
    for draw, labels in enumerate(label_draws):
        counts[draw] = _counts(xp, cell[labels], n_cells)
    return _ranks_as_uniforms(counts, rng)


def drawn_labels(data, n_draws, rng):
    """Yield labels of all rows, boolean (n, L), drawn `n_draws` times from the scores.

    `data` are `ScoredLabels` of rows that may have several labels. The labels of a row
    depend on each other as the observed residuals do, label minus score minus the
    label's mean residual.
    """
    scores = data.scores.astype(np.float64)
    mean_residual = np.average(data.labels - scores, axis=0, weights=data.sample_weight)
    copula = label_copula(scores, data.labels, data.sample_weight, mean_residual)
    yield from _copula_labels(normal_quantiles(np, scores), copula, n_draws, rng)


def _copula_labels(threshold, copula, n_draws, rng):
    """Yield drawn labels, boolean (n, L): a row has those whose normal deviates, with
    the dependence of `label_copula`, are below the threshold (n, L).
    """
    xp = library_of(threshold)
    for _ in range(n_draws):
        deviates = rng.standard_normal(threshold.shape) @ copula.T
        yield placed(xp, deviates, threshold) < threshold


def _sampled_rows(n, most, weight, rng):
    """Return the indices of at most `most` of n rows: without weights none comes twice;
    with weights they are drawn with replacement.
    """
    share = None
    if weight is not None:
        share = weight / weight.sum()
    return rng.choice(n, min(n, most), replace=weight is not None, p=share)


def _ranks_as_uniforms(counts, rng):
    """Return uniform random numbers (n_draws, n_cells) in the order of each column's
    counts, which are overwritten: (rank + u) / n_draws, the rank from 0 and u uniform
    in [0, 1).
    """
    # Tied counts are ranked at random: a number below 1 is added to each.
    counts += rng.random_sample(counts.shape)
    uniforms = rng.random_sample(counts.shape)
    # Cell by cell, which takes half the time of ranks along the first axis.
    rank = np.empty(counts.shape[::-1], dtype=np.int32)
    in_order = np.arange(len(counts), dtype=np.int32)
    for rank_of_cell, counts_of_cell in zip(rank, counts.T, strict=True):
        rank_of_cell[counts_of_cell.argsort()] = in_order
    uniforms += rank.T
    uniforms /= len(counts)
    return uniforms
