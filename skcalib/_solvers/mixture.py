"""Mixtures of forecasts: the weights of greatest likelihood."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from skcalib._input.tensors import as_array, like, namespace_of
from skcalib._solvers.sums import row_weights

_MAX_STEPS = 100
_MAX_HALVINGS = 30
# Twice the log-loss, in nats a row, that a last step may still gain: it is taken in
# full, and converges quadratically.
_LEAST_DECREMENT = 1e-12
# Share of the Hessian's trace that keeps it invertible where two forecasts are the
# same.
_RIDGE = 1e-10


def fit_mixture_weights(likelihoods, sample_weight=None):
    """Return the weights, nonnegative and of sum 1, under which a mixture of forecasts
    has the greatest likelihood.

    Sequential quadratic programming (Kim, Carbonetto, Stephens and Anitescu 2020, A
    fast algorithm for maximum likelihood estimation of mixture proportions): each step
    minimises the second-order expansion of
    ``-mean(log(likelihoods @ weights)) + sum(weights)`` over weights that are only
    nonnegative. The minimiser sums to 1 of itself.

    Parameters
    ----------
    likelihoods : array of shape (n, m)
        Probability that each of m forecasts gives the label of each row, with a
        positive one in every row; NumPy's or a tensor.
    sample_weight : array of shape (n,), default=None
        Weights of the rows, where the likelihoods are.

    Returns
    -------
    weights : ndarray of shape (m,)
        Weights of the forecasts.
    """
    xp = namespace_of(likelihoods)
    share = row_weights(sample_weight, likelihoods)  # of each row
    share = share / xp.sum(share)
    # One factor per row does not move the optimum.
    likelihoods = likelihoods / xp.max(likelihoods, axis=1, keepdims=True)

    def loss(weights):
        """Return the function to minimise, the mean negative log-likelihood plus the
        sum of the weights; infinite if a row has probability 0.
        """
        # The sum of the weights stands for the condition that it is 1: it is 1 at the
        # minimum.
        with np.errstate(divide="ignore"):
            mixture = likelihoods @ like(likelihoods, weights)
            return weights.sum() - float(share @ xp.log(mixture))

    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    current = loss(weights)
    for _ in range(_MAX_STEPS):
        mixture = likelihoods @ like(likelihoods, weights)
        ratio = likelihoods / mixture[:, None]  # (n, m)
        gradient = 1 - as_array(share @ ratio)[0]
        hessian, _ = as_array((ratio.T * share) @ ratio)
        step = _quadratic_minimiser(hessian, gradient, weights) - weights
        if -gradient @ step <= _LEAST_DECREMENT:
            # the last step: it gains less than the rounding of the loss
            weights = weights + step
            break
        # The step is halved until it lowers the loss.
        for halving in range(_MAX_HALVINGS):
            proposal = weights + step * 0.5**halving
            if loss(proposal) < current:
                weights = proposal
                break
        current = loss(weights)
    return weights / weights.sum()


def _quadratic_minimiser(hessian, gradient, at):
    """Return the nonnegative v (m,) that minimises the quadratic function
    ``gradient @ (v - at) + (v - at) @ hessian @ (v - at) / 2``.

    With ``R' R = hessian`` it is half of ``|R v - target|^2`` plus a constant, for
    ``target = R at - inv(R') gradient``: nonnegative least squares.
    """
    # keeps the Hessian invertible where two forecasts are the same
    ridge = _RIDGE * np.trace(hessian) * np.eye(len(at))
    factor = cholesky(hessian + ridge)
    target = factor @ at - solve_triangular(factor, gradient, trans="T")
    minimiser, _ = nnls(factor, target)
    return minimiser
