"""The curvature of a penalised softmax regression, and its inverse, which speeds up a fit to nearly the same rows."""

from contextlib import suppress

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import softmax

from skcalib._rows.blocks import row_blocks

_DAMPING = 1e-10
_MOST_PARAMETERS = 1000  # of a Hessian that is inverted as a whole
_MOST_NUMBERS = 10_000_000  # in the blocks of a larger one
_LEAST_VARIANCE = 1e-3  # of a class's indicator, in a row that counts for its block


def log_loss_hessian(affine_map, features, n_rows, sample_weight, parameters):
    """Return the Hessian of the summed log-loss at the parameters of an affine map.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`: what the parameters stand for.
    features : callable
        ``features(rows)`` returns those of a slice of the rows, (K + 1, n_rows), the last of them 1.
    n_rows : int
        Number of rows.
    sample_weight : ndarray of shape (n,) or None
        Positive weights.
    parameters : ndarray of shape (n_parameters,)
        Where.

    Returns
    -------
    hessian : ndarray of shape (n_parameters, n_parameters)
        Without the ridge's part.
    """
    hessian, n_classes = 0.0, len(affine_map.unpacked(parameters)[1])
    for rows in row_blocks(n_rows, n_classes, at_least=n_classes):  # enough of them for one matrix product
        block = features(rows)
        weight = 1.0 if sample_weight is None else sample_weight[rows]
        probability = softmax(affine_map.apply(parameters, block), axis=0)
        variance = weight * probability * (1 - probability)
        hessian = hessian + affine_map.hessian(variance, probability * np.sqrt(weight), block)
    return hessian


def inverse_curvature(affine_map, features, n_rows, sample_weight, parameters, penalty):
    """Return an approximate inverse of the Hessian of the penalised mean log-loss, which multiplies vectors by ``@``.

    With up to 1000 parameters the inverse is exact. With more parameters each class has a block of its own, and the
    links between classes are left out. The block uses only the rows in which the class is in doubt. The result is None
    if the blocks are too large as well.

    Parameters
    ----------
    affine_map, features, n_rows, sample_weight, parameters
        As in `log_loss_hessian`.
    penalty : ndarray of shape (n_parameters,)
        Positive strength of the ridge ``penalty @ (parameters - centre)**2`` on the summed loss.

    Returns
    -------
    inverse : ndarray, object with ``@``, or None
        For vectors (n_parameters,).
    """
    total = n_rows if sample_weight is None else sample_weight.sum()
    if len(penalty) <= _MOST_PARAMETERS:
        hessian = log_loss_hessian(affine_map, features, n_rows, sample_weight, parameters)
        hessian[np.diag_indices_from(hessian)] += 2 * penalty
        return total * damped_inverse(hessian)
    n_classes = len(affine_map.unpacked(parameters)[1])
    if len(penalty) < n_classes**2 or len(penalty) * (n_classes + 1) > _MOST_NUMBERS:
        return None
    return _BlockDiagonal(total, _blocks(affine_map, features, n_rows, sample_weight, parameters, penalty))


class _BlockDiagonal:
    """The inverse of a block-diagonal matrix, from its blocks (K, K + 1, K + 1), times a number."""

    def __init__(self, factor, blocks):
        self.inverses = factor * np.linalg.inv(blocks)

    def __matmul__(self, vector):
        return (self.inverses @ vector.reshape(len(self.inverses), -1, 1)).ravel()


def _blocks(affine_map, features, n_rows, sample_weight, parameters, penalty):
    n_classes = len(affine_map.unpacked(parameters)[1])
    blocks = 2 * np.eye(n_classes + 1) * penalty.reshape(n_classes, -1, 1)
    for rows in row_blocks(n_rows, n_classes):
        block = features(rows)
        probability = softmax(affine_map.apply(parameters, block), axis=0)
        variance, block = probability * (1 - probability), block.astype(np.float32)
        for of_class, curvature in zip(variance, blocks, strict=True):
            doubtful = np.flatnonzero(of_class > _LEAST_VARIANCE)
            weighted = of_class[doubtful] * (1.0 if sample_weight is None else sample_weight[rows][doubtful])
            root = block[:, doubtful] * np.sqrt(weighted.astype(np.float32))
            curvature += root @ root.T
    return blocks


def damped_inverse(hessian):
    """Return the inverse of a matrix that may be singular where the loss does not depend on the parameters."""
    scale = 1 / np.sqrt(np.maximum(hessian.diagonal(), np.finfo(float).tiny))
    hessian *= scale[:, None] * scale
    # Features that are equal up to rounding leave curvatures below 0: the damping grows until it outweighs them.
    for damping in _DAMPING * 100.0 ** np.arange(10):
        np.fill_diagonal(hessian, 1 + damping)
        with suppress(LinAlgError):
            return cho_solve(cho_factor(hessian), np.eye(len(hessian))) * (scale[:, None] * scale)
    raise AssertionError("a matrix of numbers up to 1 with 1e8 on its diagonal is positive definite")
