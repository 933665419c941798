"""Many rows as fewer weighted ones: rows with one label and nearly equal log-odds are replaced by their mean."""

import numpy as np

from skcalib._rows.blocks import row_blocks

_FEWEST_ROWS, _ROWS_A_CELL, _MOST_CELLS = 1 << 15, 4, 1 << 15
# Probabilities have log-odds from -36 to 36. Wider ones would make the cells too wide to be exact.
_WIDEST = 80.0


def condensed(log_odds, labels, sample_weight, *, fewest_rows=_FEWEST_ROWS, most_cells=_MOST_CELLS):
    """Return log-odds, labels and weights of fewer rows, for fits of a smooth function of the log-odds.

    The range is cut into cells of equal width, at most .005 for 32,768 rows and .0025 from 131,072 on. The rows of a
    cell and a label become one row with their total weight. The error of a sum over the rows is of second order in that
    width: less than a millionth of a log-loss for each row. That is enough to compare fits, and to start one.

    Parameters
    ----------
    log_odds : ndarray of shape (n,)
        Log-odds. Where they span more than 80, or there are few, all rows are returned as they are.
    labels : ndarray of bool, shape (n,)
        Labels.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    fewest_rows, most_cells : int
        From how many rows on, and the most cells.
    """
    low, high = float(log_odds.min()), float(log_odds.max())
    if len(log_odds) < fewest_rows or high - low > _WIDEST:
        return log_odds, labels, sample_weight
    n_cells = min(most_cells, 1 << (len(log_odds) // _ROWS_A_CELL).bit_length())
    cells_per_unit = (n_cells - 0.5) / (high - low) if high > low else 0.0
    weight, total = np.zeros(2 * n_cells), np.zeros(2 * n_cells)
    for rows in row_blocks(len(log_odds), at_least=2 * n_cells):
        cell = ((log_odds[rows] - low) * cells_per_unit).astype(np.intp)
        cell *= 2
        cell += labels[rows]
        row_weight = None if sample_weight is None else sample_weight[rows]
        weighted = log_odds[rows] if row_weight is None else row_weight * log_odds[rows]
        weight += np.bincount(cell, row_weight, 2 * n_cells)
        total += np.bincount(cell, weighted, 2 * n_cells)
    held = np.flatnonzero(weight)
    return np.clip(total[held] / weight[held], low, high), held % 2 == 1, weight[held]
