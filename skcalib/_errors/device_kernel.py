"""The kernel calibration error of scores that stay on a device: pairs are summed there,
and only the order of the rows and 512 of them are copied.
"""

import numpy as np

from skcalib._input.tensors import as_array

_TILE = 1 << 12  # rows that are paired with as many others at a time


def sorted_distinct(scores):
    """Return the order (n,) that sorts the rows of `DeviceScores` by their first
    column, then by the second, and so on; and the code (n,) of the distinct row at each
    place of this order, from 0 on.
    """
    xp = scores.xp
    order = xp.arange(len(scores), device=scores.device)
    # One stable sort for each column, the first one last: it counts most.
    for k in reversed(range(scores.shape[1])):
        column = xp.take(scores.columns(slice(k, k + 1))[:, 0], order)
        order = xp.take(order, xp.argsort(column, stable=True))
    order, _ = as_array(order)
    # A new code begins where a row differs from the one before it. Each block is
    # compared together with the last row of the block before.
    in_order = scores[order]
    differs_from_previous = np.zeros(len(order), dtype=bool)
    previous_row = None
    for rows, block in in_order.blocks:
        first_compared = rows.start
        if previous_row is None:
            first_compared += 1  # the first of all rows has no row before it
        else:
            block = xp.concat((previous_row, block))
        differs, _ = as_array(xp.any(block[1:, :] != block[:-1, :], axis=1))
        differs_from_previous[first_compared : rows.stop] = differs
        previous_row = block[-1:, :]
    return order, np.cumsum(differs_from_previous)


def sums_of_pairs(scores, codes, weight, bandwidth):
    """Return the sum over all ordered pairs of rows of kernel times product of weighted
    residuals, and the squared length (n,) of the residual of each row: the indicator of
    its label less its probabilities.

    Parameters
    ----------
    scores : DeviceScores
        Probabilities (n, K).
    codes : ndarray of int, shape (n,)
        The column of each row's label.
    weight : ndarray of shape (n,)
        Weights.
    bandwidth : float
        The kernel is ``exp(-distance / bandwidth)``.
    """
    xp = scores.xp
    n = len(scores)
    proba = xp.astype(scores.columns(slice(None)), scores.sum_dtype)
    row_sum = xp.sum(proba, axis=1)
    classes = xp.arange(scores.shape[1], device=scores.device)
    label = xp.asarray(codes.astype(np.int64), device=scores.device)
    residual = xp.astype(classes[None, :] == label[:, None], proba.dtype) - proba
    squares, _ = as_array(xp.sum(residual**2, axis=1))
    residual = residual * scores.moved(weight)[:, None]
    # The matrix of all pairs is symmetric: only tiles on its diagonal and above it are
    # computed, and those above count twice.
    total = 0.0
    for start in range(0, n, _TILE):
        rows = slice(start, min(start + _TILE, n))
        for first in range(start, n, _TILE):
            others = slice(first, min(first + _TILE, n))
            # The total variation distance of p and q, half the sum of |p - q|, is
            # (sum p + sum q) / 2 - sum min(p, q).
            half_sums = (row_sum[rows, None] + row_sum[None, others]) / 2
            sum_of_minima = xp.zeros_like(half_sums)
            for k in range(scores.shape[1]):
                sum_of_minima += xp.minimum(
                    proba[rows, k][:, None], proba[None, others, k]
                )
            distance = half_sums - sum_of_minima
            kernel = xp.exp(xp.clip(distance, 0, None) / -bandwidth)
            products = residual[rows, :] @ residual[others, :].T
            sum_of_tile = float(xp.sum(kernel * products))
            if first == start:
                total += sum_of_tile
            else:
                total += 2 * sum_of_tile
    return total, squares
