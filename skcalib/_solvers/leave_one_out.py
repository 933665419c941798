"""Leave-one-out log-losses of penalised softmax and logistic regressions, from one
Newton step a row.
"""

import numpy as np
from scipy.special import expit

from skcalib._input.tensors import like, namespace_of, widest_dtype
from skcalib._rows.blocks import row_blocks
from skcalib._solvers.newton import damped_solution
from skcalib._solvers.sums import (
    blocks_of,
    cast,
    column_dots,
    column_softmax,
    log_sum_exp,
    row_weights,
    true_entries,
    weighted_sums,
)

_LARGEST_LEVERAGE = 0.95  # of a row: beyond it, one Newton step says too little


def leave_one_out_loss(affine_map, features, codes, sample_weight, parameters, penalty):
    """Return the log-loss, summed over the rows, of each row under a softmax regression
    fitted to the other rows.

    These fits are approximated by one Newton step from the fit to all rows. X_i is the
    linear map from the parameters to the logits of row i, g_i the gradient of its loss
    and H the Hessian of the penalised loss of all rows. Without row i the logits of
    that row would move by ``d_i = X_i H^-1 g_i`` if the Hessian stayed the same. It
    loses the part of row i, which makes the step larger: with
    ``W_i = diag(p_i) - p_i p_i'`` and the leverage
    ``h_i = d_i' W_i d_i / ((p_i - y_i)' d_i)``, the logits move by
    ``d_i / (1 - h_i)``.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`: how parameters and features give the logits.
    features : callable
        ``features(rows)`` returns the features of a slice of the rows, (K + 1, n_rows);
        the last one is 1.
    codes : ndarray of shape (n,)
        Class of each row.
    sample_weight : ndarray of shape (n,) or None
        Positive weights. A row with a weight above 1 stands for this number of rows;
        one of them is left out.
    parameters : ndarray of shape (n_parameters,)
        The minimum of the penalised loss.
    penalty : ndarray of shape (n_parameters,)
        Strength of the ridge ``penalty @ (parameters - centre)**2`` on the summed loss.

    Returns
    -------
    loss : float
        Weighted sum, in nats.
    """
    xp = namespace_of(codes)
    n_rows = codes.shape[0]
    weight = row_weights(sample_weight, codes)
    _, intercept = affine_map.unpacked(parameters)
    n_classes = len(intercept)
    blocks = blocks_of(codes, n_rows, n_classes * (n_classes + 1))
    hessian = log_loss_hessian(affine_map, features, codes, sample_weight, parameters)
    hessian_of_ridge = 2 * np.diag(penalty)
    inverse = damped_solution(hessian + hessian_of_ridge, np.eye(len(hessian)))
    inverse = like(codes, inverse)
    parameters = like(codes, parameters)
    widest = widest_dtype(codes)
    loss = 0.0
    # Arrays of a block are (K, n_rows), or (n_rows,) where the classes are summed over.
    for rows in blocks:
        block = features(rows)
        logits = affine_map.apply(parameters, block)
        probability = column_softmax(logits)
        classes = like(codes, np.arange(n_classes))
        is_true = classes[:, None] == codes[None, rows]
        residual = probability - cast(is_true, widest)  # p_i - y_i
        move = affine_map.moves(inverse, residual, block)  # d_i
        # d' W d = E[d^2] - E[d]^2 under the row's probabilities
        p_times_move = probability * move
        mean = xp.sum(p_times_move, axis=0)
        variance = column_dots(p_times_move, move) - mean**2
        residual_times_move = column_dots(residual, move)  # (p - y)' d
        # The leverage is their ratio; 0 for a row that does not move.
        is_positive = residual_times_move > 0
        numerator = xp.where(is_positive, variance, xp.zeros_like(variance))
        denominator = xp.where(is_positive, residual_times_move, xp.ones_like(variance))
        leverage = numerator / denominator
        # A row with a weight above 1 stands for several rows, of which one is left out.
        left_out_weight = xp.clip(weight[rows], 0.0, 1.0)
        leverage = xp.clip(left_out_weight * leverage, 0.0, _LARGEST_LEVERAGE)
        logits += move * (left_out_weight / (1 - leverage))
        true_logit = true_entries(logits.T, codes[rows])
        row_losses = log_sum_exp(logits, axis=0) - true_logit
        loss += weighted_sums(weight[rows], row_losses)[0]
    return float(loss)


def log_loss_hessian(affine_map, features, codes, sample_weight, parameters):
    """Return the Hessian of the summed log-loss by the parameters of an affine map,
    without that of a ridge.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`: how parameters and features give the logits.
    features : callable
        ``features(rows)`` returns the features of a slice of the rows, (K + 1, n_rows);
        the last one is 1.
    codes : array of shape (n,)
        Class of each row, where the features are.
    sample_weight : array of shape (n,) or None
        Positive weights.
    parameters : ndarray of shape (n_parameters,)
        Where the Hessian is taken.

    Returns
    -------
    hessian : ndarray of shape (n_parameters, n_parameters)
    """
    xp = namespace_of(codes)
    hessian = 0.0
    _, intercept = affine_map.unpacked(parameters)
    n_classes = len(intercept)
    # at least as many rows as classes: enough for one efficient matrix product
    parameters = like(codes, parameters)
    for rows in blocks_of(codes, codes.shape[0], n_classes, at_least=n_classes):
        block = features(rows)
        weight = root_of_weight = 1.0
        if sample_weight is not None:
            weight = sample_weight[rows]
            root_of_weight = xp.sqrt(weight)
        # The Hessian of a row's loss by its logits is w (diag(p) - p p'): w p (1 - p)
        # on the diagonal, and minus the products of sqrt(w) p elsewhere.
        logits = affine_map.apply(parameters, block)
        probability = column_softmax(logits)
        variance = weight * probability * (1 - probability)
        root = probability * root_of_weight
        hessian = hessian + affine_map.hessian(variance, root, block)
    return hessian


def left_out_log_odds(features, targets, sample_weight, coef, inverse):
    """Return the log-odds of rows by penalised logistic regressions on the other rows.

    The Hessian without a row is the one with it less a matrix of rank 1, so that
    Newton's first step has a closed form (Sherman and Morrison, 1950): with
    ``h = x' H^-1 x``, the log-odds move by ``h (p - y) / (1 - p (1 - p) h)``.

    Parameters
    ----------
    features : ndarray of shape (d, n)
        Features, one row in each column.
    targets : ndarray of shape (n,)
        Event indicators or probabilities.
    sample_weight : ndarray of shape (n,) or None
        Positive weights. A row with a weight above 1 stands for this number of rows;
        one of them is left out.
    coef : ndarray of shape (d,)
        The minimum of the penalised loss.
    inverse : ndarray of shape (d, d)
        The inverse of its Hessian there.

    Returns
    -------
    log_odds : ndarray of shape (n,)
        Of each row, by the fit without it.
    """
    log_odds = coef @ features
    probability = expit(log_odds)
    leverage = np.einsum("in,in->n", inverse @ features, features)  # h of each row
    if sample_weight is not None:
        # One of the rows that a row stands for is left out.
        leverage *= np.minimum(sample_weight, 1)
    remaining = 1 - probability * (1 - probability) * leverage
    log_odds += leverage * (probability - targets) / remaining
    return log_odds


def inverse_hessian(features, n_rows, sample_weight, coef, penalty):
    """Return the inverse of the Hessian of a penalised logistic regression.

    Parameters
    ----------
    features : callable
        ``features(rows)`` returns the features of a slice of the rows, (d, n_rows).
    n_rows : int
        Number of rows.
    sample_weight : ndarray of shape (n,) or None
        Positive weights.
    coef : ndarray of shape (d,)
        Where the Hessian is taken.
    penalty : ndarray of shape (d, d)
        The Hessian of the ridge.

    Returns
    -------
    inverse : ndarray of shape (d, d)
        The pseudo-inverse where nothing determines a coefficient.
    """
    hessian = penalty
    for rows in row_blocks(n_rows, len(coef)):
        block = features(rows)
        probability = expit(coef @ block)
        curvature = probability * (1 - probability)
        if sample_weight is not None:
            curvature *= sample_weight[rows]
        hessian = hessian + (block * curvature) @ block.T
    return np.linalg.pinv(hessian, hermitian=True)
