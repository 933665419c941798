"""Draws for weights of importance, which depend on the label: the drawn label changes
the weight, or, where that weight is unknown, residuals take the place of labels.
"""

import numpy as np
from scipy.sparse import csr_array

from skcalib._inference.uniform_blocks import block_sizes
from skcalib._rows.sorting import distinct_values


class SampledLabelDraws:
    """Draws of the event frequencies of cells from labels that are drawn row by row
    with their probabilities in the sample, each with the weight of its label.

    Frequencies are hypothetical ones plus weighted means of drawn residuals: sums of w
    (y - f), over the observed weight of the cell, and times the observed total weight
    over the drawn one. They may lie outside [0, 1].

    Parameters
    ----------
    cells : Cells
        The m cells.
    rows : RowsInCells
        The rows, with one column.
    label_weights : LabelWeights
        The weights of both labels of each row.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.
    """

    def __init__(self, cells, rows, label_weights, n_draws, rng):
        self._cells = cells  # groups of rows with near scores
        self._cell = rows.cell[:, 0]  # the number of each row's cell, (n,)
        self._scores = rows.scores[:, 0].astype(np.float64)
        self._labels = rows.labels[:, 0]
        self._label_weights = label_weights
        self.n_draws = n_draws
        # Draws come in blocks of these numbers of draws, made anew from the seed.
        self._sizes = block_sizes(n_draws, len(self._cell))
        self._seed = rng.randint(np.iinfo(np.int32).max)

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of event frequencies of the m cells, drawn for
        hypothetical ones (m,).

        `c` is not used; it is an argument because `CountDraws` has it.
        """
        weight = self._cells.weight
        n_rows = len(self._cell)
        shift = frequency - self._cells.mean_score
        probability = np.clip(self._scores + shift[self._cell], 0, 1)
        # The probability of an event in the sample, where labels are weighted, and the
        # weight of each row with and without an event.
        in_sample, with_event, without_event = self._label_weights.event_probability(
            probability, self._labels
        )
        # The sum of w (y - p) over the rows of a cell, with the weight w1 of a row with
        # an event and w0 without: minus the sum of w0 p if there is no event, and
        # w1 (1 - p) + w0 p more for each event.
        no_event = -np.bincount(self._cell, without_event * probability, len(weight))
        of_event = with_event * (1 - probability) + without_event * probability
        by_cell = csr_array(
            (of_event, (self._cell, np.arange(n_rows))), (len(weight), n_rows)
        )
        for k, size in enumerate(self._sizes):
            rng = np.random.default_rng([self._seed, k])
            uniform = rng.random((n_rows, size), dtype=np.float32)
            is_event = (uniform < in_sample[:, None]).astype(np.float64)
            sums = no_event[:, None] + by_cell @ is_event  # (m, draws)
            total = without_event.sum() + (with_event - without_event) @ is_event
            scale = weight.sum() / total
            yield frequency + (sums * scale / weight[:, None]).T


class MultiplierDraws:
    """Draws of the event frequencies of cells as the hypothetical ones plus weighted
    means of residuals, each multiplied by a random sign (Rademacher).

    A residual is the label minus the hypothetical probability of its row. Rows of one
    cluster have one sign, and so have the columns of a row. Frequencies may lie outside
    [0, 1].

    Parameters
    ----------
    cells : Cells
        The m cells.
    rows : RowsInCells
        The rows.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.
    """

    def __init__(self, cells, rows, cluster, n_draws, rng):
        n_rows, n_columns = rows.cell.shape
        self._rows = rows
        self._mean_score = cells.mean_score
        # The share of a row in its cell, (n, n_columns).
        self._share = rows.sample_weight[:, None] / cells.weight[rows.cell]
        # The independent unit of each row, itself or its cluster, has one sign.
        unit = np.arange(n_rows)
        if cluster is not None:
            _, unit = distinct_values(cluster)
        self._unit = np.repeat(unit, n_columns)
        self._n_units = int(unit.max()) + 1
        self.n_draws = n_draws
        self._sizes = block_sizes(n_draws, self._n_units)
        self._seed = rng.randint(np.iinfo(np.int32).max)

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of event frequencies of the m cells, drawn for
        hypothetical ones (m,).

        `c` is not used; it is an argument because `CountDraws` has it.
        """
        rows = self._rows
        # Residuals about the hypothesis: the scores, shifted in each cell.
        shift = frequency - self._mean_score
        residual = self._share * (rows.labels - rows.scores - shift[rows.cell])
        # What each unit (a row or a cluster) adds to each cell, (m, n_units). Entries
        # with the same indices are added up by the sparse matrix.
        by_unit = csr_array(
            (residual.ravel(), (rows.cell.ravel(), self._unit)),
            (len(frequency), self._n_units),
        )
        # Residuals of G units vary less than errors by about 1 - 1 / G.
        small_sample = np.sqrt(self._n_units / max(self._n_units - 1, 1))
        for k, size in enumerate(self._sizes):
            rng = np.random.default_rng([self._seed, k])
            signs = rng.integers(0, 2, (self._n_units, size), dtype=np.int8)
            means = by_unit @ (2.0 * signs - 1.0)  # (m, draws)
            yield frequency + small_sample * means.T
