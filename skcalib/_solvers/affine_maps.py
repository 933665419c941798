"""Affine maps of features to logits: one slope for each class, or a matrix."""

import math

import numpy as np

from skcalib._input.tensors import as_array, like, namespace_of
from skcalib._solvers.sums import blocks_of


class DiagonalMap:
    """The linear map from a slope and an intercept per class to logits, and its
    adjoint.

    Features are (K + 1, n), one row of the data in each column, and the last feature is
    1; logits are (K, n). Parameters are a vector (2 K,): slopes, then intercepts.
    """

    @classmethod
    def identity(cls, n_classes):
        """Return the parameters whose logits are the features."""
        return cls.packed(np.ones(n_classes), np.zeros(n_classes))

    @staticmethod
    def packed(coef, intercept):
        """Return the parameters of slopes (K,) and intercepts (K,)."""
        return np.concatenate((coef, intercept))

    @staticmethod
    def unpacked(parameters):
        """Return the slopes (K,) and intercepts (K,) of parameters."""
        return np.split(parameters, 2)

    @staticmethod
    def by_class(parameters):
        """Return the parameters in the order of the classes: slope and intercept of the
        first, and so on.
        """
        return parameters.reshape(2, -1).T.ravel()

    @staticmethod
    def apply(parameters, features):
        """Return the logits (K, n) of features (K + 1, n): for each class its slope
        times its feature, plus its intercept.
        """
        xp = namespace_of(features)
        coef_and_intercept = xp.reshape(parameters, (2, -1, 1))
        logits = coef_and_intercept[0, ...] * features[:-1, ...]
        logits += coef_and_intercept[1, ...]
        return logits

    @staticmethod
    def adjoint(residual, features):
        """Return the gradient (2 K,), by the parameters, of a sum of losses with the
        derivatives `residual` (K, n) by the logits.
        """
        xp = namespace_of(features)
        gradient_of_coef = xp.vecdot(residual, features[:-1, ...])
        gradient_of_intercept = residual @ features[-1, ...]
        return xp.concat((gradient_of_coef, gradient_of_intercept))

    @staticmethod
    def hessian(variance, root, features):
        """Return the Hessian (2 K, 2 K), by the parameters, of the summed log-loss.

        Parameters
        ----------
        variance : ndarray of shape (K, n)
            ``w p (1 - p)`` of each class and row, with weight w and probability p.
        root : ndarray of shape (K, n)
            ``sqrt(w) p``. The Hessian of a row's loss by its logits has
            ``-root[k] * root[l]`` for classes k and l that differ, and `variance[k]`
            for k = l.
        features : ndarray of shape (K + 1, n)
            The features.
        """
        xp = namespace_of(features)
        n_classes = root.shape[0]
        x = features[:-1, ...]
        # The parameters are the slopes of all classes, then their intercepts. The logit
        # of class k has the derivative x_k by its slope, and 1 by its intercept.
        # 1. Every entry as for two different classes: -root_k root_l times both
        # derivatives, summed over the rows.
        root_of_parameters = xp.concat((root * x, root))
        hessian, _ = as_array(root_of_parameters @ root_of_parameters.T)
        hessian = -hessian
        # 2. The entries of the parameters of one class k, with `variance` in place of
        # -root_k root_k. (It is w p - root_k^2, a difference that would lose digits.)
        variance_x = variance * x
        slope_by_slope, _ = as_array(xp.vecdot(variance_x, x))
        slope_by_intercept, _ = as_array(xp.sum(variance_x, axis=1))
        intercept_by_intercept, _ = as_array(xp.sum(variance, axis=1))
        slopes = np.arange(n_classes)
        intercepts = slopes + n_classes
        hessian[slopes, slopes] = slope_by_slope
        hessian[slopes, intercepts] = slope_by_intercept
        hessian[intercepts, slopes] = slope_by_intercept
        hessian[intercepts, intercepts] = intercept_by_intercept
        return hessian

    @staticmethod
    def moves(inverse, residual, features):
        """Return how much the logits of each column change if the parameters change by
        ``inverse @ gradient``, with the gradient of that column's own loss; (K, n).

        `residual` (K, n) holds the derivatives of the losses by the logits.
        """
        xp = namespace_of(features)
        x = features[:-1, ...]
        n_classes = x.shape[0]
        gradients = xp.concat((residual * x, residual))  # (2 K, n)
        changes = inverse @ gradients
        return changes[:n_classes, ...] * x + changes[n_classes:, ...]


class MatrixMap:
    """The linear map from a matrix, with a column of intercepts, to logits, and its
    adjoint.

    Features are (K + 1, n), one row of the data in each column, and the last feature is
    1; logits are (K, n). Parameters are a vector (K (K + 1),): the rows of the matrix
    one after the other, each with its intercept last.
    """

    @classmethod
    def identity(cls, n_classes):
        """Return the parameters whose logits are the features."""
        return cls.packed(np.eye(n_classes), np.zeros(n_classes))

    @staticmethod
    def packed(coef, intercept):
        """Return the parameters of a matrix (K, K) and intercepts (K,)."""
        return np.column_stack((coef, intercept)).ravel()

    @staticmethod
    def unpacked(parameters):
        """Return the matrix (K, K) and the intercepts (K,) of parameters."""
        n_classes = math.isqrt(len(parameters))  # of K (K + 1) numbers
        matrix = parameters.reshape(n_classes, -1)
        return matrix[:, :-1], matrix[:, -1]

    @staticmethod
    def by_class(parameters):
        """Return the parameters in the order of the classes, which they have."""
        return parameters

    @staticmethod
    def apply(parameters, features):
        """Return the logits (K, n) of features (K + 1, n)."""
        xp = namespace_of(features)
        return xp.reshape(parameters, (-1, features.shape[0])) @ features

    @staticmethod
    def adjoint(residual, features):
        """Return the gradient (K (K + 1),), by the parameters, of a sum of losses with
        the derivatives `residual` (K, n) by the logits.
        """
        return namespace_of(features).reshape(residual @ features.T, (-1,))

    @staticmethod
    def hessian(variance, root, features):
        """Return the Hessian (n_parameters, n_parameters), by the parameters, of the
        summed log-loss.

        The arguments are those of `DiagonalMap.hessian`: with weight w and probability
        p, `variance` (K, n) is ``w p (1 - p)`` and `root` (K, n) is ``sqrt(w) p``.
        """
        xp = namespace_of(features)
        n_classes = root.shape[0]
        n_features = features.shape[0]
        # The coefficient of feature i for class k and that of feature j for class m
        # have the entry: sum over the rows of W_km x_i x_j, with W the Hessian by the
        # logits. It stays the same if k and m, or i and j, are exchanged. So only pairs
        # k <= m and i <= j are summed, which takes .7 of the time of all pairs.
        pairs_of_classes = np.triu_indices(n_classes)
        is_same_class = pairs_of_classes[0] == pairs_of_classes[1]
        first_of_pair = like(root, pairs_of_classes[0])
        n_pairs_of_features = n_features * (n_features + 1) // 2
        sums = 0  # (pairs of classes, pairs of features)
        for rows in blocks_of(root, root.shape[1], 2 * n_pairs_of_features):
            hessian_by_logits = _products_of_pairs(root[:, rows])
            hessian_by_logits *= -1
            if xp is np:
                hessian_by_logits[is_same_class] = variance[:, rows]
            else:
                hessian_by_logits = xp.where(
                    like(root, is_same_class[:, None]),
                    xp.take(variance[:, rows], first_of_pair, axis=0),
                    hessian_by_logits,
                )
            products = _products_of_pairs(features[:, rows])
            sums_of_block, _ = as_array(hessian_by_logits @ products.T)
            sums += sums_of_block
        # Spread the sums over an array with the axes k, i, m, j.
        pair_of_classes = _pair_numbers(n_classes)[:, None, :, None]
        pair_of_features = _pair_numbers(n_features)[None, :, None, :]
        hessian = sums[pair_of_classes, pair_of_features]
        return hessian.reshape(n_classes * n_features, -1)

    @staticmethod
    def moves(inverse, residual, features):
        """Return how much the logits of each column change if the parameters change by
        ``inverse @ gradient``, with the gradient of that column's own loss; (K, n).

        `residual` (K, n) holds the derivatives of the losses by the logits.
        """
        # of each parameter (class k, feature j) and column: residual_k * x_j
        xp = namespace_of(features)
        gradients = residual[:, None, :] * features[None, ...]  # (K, K + 1, n)
        n_parameters = inverse.shape[0]
        changes = inverse @ xp.reshape(gradients, (n_parameters, -1))
        changes = xp.reshape(changes, gradients.shape)
        # A logit changes by the sum over the features of change times feature.
        if xp is np:
            return np.einsum("kjn,jn->kn", changes, features)
        return xp.sum(changes * features[None, ...], axis=1)


def _products_of_pairs(values):
    """Return the products of each two rows of values (m, n), and their squares, in the
    order of ``np.triu_indices(m)``: (m (m + 1) / 2, n).
    """
    m, n = values.shape
    xp = namespace_of(values)
    if xp is not np:
        first, second = (like(values, of_pair) for of_pair in np.triu_indices(m))
        return xp.take(values, first, axis=0) * xp.take(values, second, axis=0)
    # Each product is written to its place: gathering both factors of all pairs first
    # takes longer than the products.
    products = np.empty((m * (m + 1) // 2, n), dtype=values.dtype)
    start = 0
    for i in range(m):
        stop = start + m - i
        np.multiply(values[i], values[i:], out=products[start:stop])
        start = stop
    return products


def _pair_numbers(size):
    """Return a symmetric table (size, size) of the position of each pair in
    ``np.triu_indices(size)``.
    """
    lower, upper = np.triu_indices(size)
    positions = np.arange(len(lower))
    table = np.empty((size, size), dtype=np.intp)
    table[lower, upper] = positions
    table[upper, lower] = positions
    return table
