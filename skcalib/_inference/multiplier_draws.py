"""Draws for weights whose value for the other label is unknown: labels cannot be drawn,
and observed residuals are multiplied by random signs.
"""

import numpy as np
from scipy.sparse import csr_array

from skcalib._inference.uniform_blocks import block_sizes


class MultiplierDraws:
    """Draws of the event frequencies of cells as the hypothetical ones plus weighted
    means of residuals, each multiplied by a random sign (Rademacher).

    A residual is the label minus the hypothetical probability of its row. Rows of one
    cluster have one sign, and so have the columns of a row.

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
        unit = np.arange(n_rows)
        if cluster is not None:
            unit = np.unique(cluster, return_inverse=True)[1]
        self._unit = np.repeat(unit, n_columns)
        self._n_units = int(unit.max()) + 1
        self.n_draws = n_draws
        self._sizes = block_sizes(n_draws, self._n_units)
        self._seed = rng.randint(np.iinfo(np.int32).max)

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of event frequencies of the m cells, drawn for
        hypothetical ones (m,); they may lie outside [0, 1].

        `c` is not used; it is an argument because `CountDraws` has it.
        """
        rows = self._rows
        shift = frequency - self._mean_score
        residual = self._share * (rows.labels - rows.scores - shift[rows.cell])
        # What each unit adds to each cell, (m, n_units); equal entries are added up.
        by_unit = csr_array(
            (residual.ravel(), (rows.cell.ravel(), self._unit)),
            (len(frequency), self._n_units),
        )
        # Signs of few units are too regular without the usual factor.
        small_sample = np.sqrt(self._n_units / max(self._n_units - 1, 1))
        for k, size in enumerate(self._sizes):
            signs = _signs(self._seed, k, (self._n_units, size))
            yield frequency + small_sample * (by_unit @ signs).T


def _signs(seed, k, shape):
    """Return random signs, -1.0 or 1.0, for the k-th block: the same for a seed."""
    bits = np.random.default_rng([seed, k]).integers(0, 2, shape, dtype=np.int8)
    return 2.0 * bits - 1.0
