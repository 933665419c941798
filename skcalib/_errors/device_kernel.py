"""The kernel calibration error of scores that stay on a device, and its draws: pairs
are summed there, and only the order of the rows and 512 of them are copied.
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
            kernel = _kernel(xp, proba[rows, :], proba[others, :], bandwidth)
            products = residual[rows, :] @ residual[others, :].T
            sum_of_tile = float(xp.sum(kernel * products))
            if first == start:
                total += sum_of_tile
            else:
                total += 2 * sum_of_tile
    return total, squares


def _kernel(xp, first, second, bandwidth):
    """Return ``exp(-distance / bandwidth)`` (b, c) for the rows of probabilities (b, K)
    and (c, K).
    """
    # The total variation distance of p and q, half the sum of |p - q|, is
    # (sum p + sum q) / 2 - sum min(p, q).
    half_sums = (xp.sum(first, axis=1)[:, None] + xp.sum(second, axis=1)[None, :]) / 2
    sum_of_minima = xp.zeros_like(half_sums)
    for k in range(first.shape[1]):
        sum_of_minima += xp.minimum(first[:, k][:, None], second[:, k][None, :])
    distance = half_sums - sum_of_minima
    return xp.exp(xp.clip(distance, 0, None) / -bandwidth)


class DevicePairSum:
    """The sum over pairs of different rows of kernel times product of residuals, as a
    function of the labels: what `_PairSum` is, for rows without weights on a device.

    Parameters
    ----------
    scores : DeviceScores
        Probabilities (n, K).
    landmarks : ndarray of shape (m, K)
        The landmarks.
    inverse_root : ndarray of shape (m, n_features)
        What the kernel with the landmarks is multiplied by, which gives the features.
    bandwidth : float
        That of the kernel.
    """

    def __init__(self, scores, landmarks, inverse_root, bandwidth):
        self.scores = scores
        xp = scores.xp
        dtype = scores.sum_dtype
        landmarks = xp.asarray(landmarks, dtype=dtype, device=scores.device)
        inverse_root = xp.asarray(inverse_root, dtype=dtype, device=scores.device)
        features = []
        for _, block in scores.blocks_of(_TILE):
            kernel = _kernel(xp, xp.astype(block, dtype), landmarks, bandwidth)
            features.append(xp.astype(kernel @ inverse_root, xp.float32))
        self.features = xp.concat(features)

    def of_drawn_labels(self, uniform):
        """Return the sum for labels drawn from the probabilities: of each row that in
        whose part of [0, 1) the number `uniform` (n,) falls.
        """
        xp = self.scores.xp
        uniform = self.scores.moved(uniform)

        def drawn(block, rows):
            cumulative = xp.cumulative_sum(block, axis=1)
            is_below = cumulative / cumulative[:, -1:] <= uniform[rows, None]
            return xp.sum(xp.astype(is_below, xp.int64), axis=1)

        return self._sum(drawn)

    def of_labels(self, codes):
        """Return the sum for labels (n,) of NumPy, as column numbers."""
        codes = self.scores.xp.asarray(
            codes.astype(np.int64), device=self.scores.device
        )
        return self._sum(lambda block, rows: codes[rows])

    def _sum(self, codes_of):
        """Return the sum for the labels ``codes_of(block, rows)`` of the rows of each
        block.
        """
        xp = self.scores.xp
        classes = xp.arange(self.scores.shape[1], device=self.scores.device)
        # The sum of residual times feature, (K, n_features), whose square is the sum
        # over all pairs; and what pairs of a row with itself add to that.
        total = 0.0
        self_pairs = 0.0
        for rows, block in self.scores.blocks_of(_TILE):
            block = xp.astype(block, self.scores.sum_dtype)
            features = xp.astype(self.features[rows, :], block.dtype)
            is_label = classes[None, :] == codes_of(block, rows)[:, None]
            residual = xp.astype(is_label, block.dtype) - block
            total = residual.T @ features + total
            squares = xp.sum(residual**2, axis=1) * xp.sum(features**2, axis=1)
            self_pairs += float(xp.sum(squares))
        return float(xp.sum(total**2)) - self_pairs
