"""Weighted logistic regression on a few features by Newton's method: the engine of the parametric maps."""

import numpy as np

from skcalib._links import expit

_MAX_STEPS = 100
_MAX_HALVINGS = 40


def fit_logistic(features, targets, sample_weight=None, *, start=None, penalty=None, lower=None):
    """Return the coefficients that minimise the weighted log-loss, plus an optional ridge.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        Features, scaled to the order of 1; an intercept is a column of ones.
    targets : ndarray of shape (n,)
        Event indicators or probabilities in [0, 1].
    sample_weight : ndarray of shape (n,), default=None
        Weights.
    start : ndarray of shape (d,), default=None
        Where to start, zero if not given; also the point that the ridge pulls to.
    penalty : ndarray of shape (d,) or (d, d), default=None
        Strength of the ridge ``(coef - start) @ penalty @ (coef - start) / 2`` on the summed loss; a vector is the
        diagonal.
    lower : ndarray of shape (d,), default=None
        Lower bounds of the coefficients, minus infinity for none; `start` must respect them.

    Returns
    -------
    coef : ndarray of shape (d,)
        Coefficients. Where the classes are separable and nothing penalises, a finite point of tiny loss.
    """
    weight = np.ones(len(targets)) if sample_weight is None else sample_weight
    centre = np.zeros(features.shape[1]) if start is None else np.asarray(start, dtype=np.float64)
    ridge = np.zeros_like(centre) if penalty is None else np.asarray(penalty, dtype=np.float64)
    ridge = np.diag(ridge) if ridge.ndim == 1 else ridge
    lower = np.full_like(centre, -np.inf) if lower is None else lower

    def loss(coef):
        log_odds = features @ coef
        ridge_term = 0.5 * (coef - centre) @ ridge @ (coef - centre)
        return weight @ (np.logaddexp(0, log_odds) - targets * log_odds) + ridge_term

    coef, current = centre, loss(centre)
    for _ in range(_MAX_STEPS):
        probability = expit(features @ coef)
        gradient = features.T @ (weight * (probability - targets)) + ridge @ (coef - centre)
        curvature = weight * probability * (1 - probability)
        hessian = (features.T * curvature) @ features + ridge
        step = _newton_step(hessian, gradient, free=(coef > lower) | (gradient < 0))
        if gradient @ step <= 1e-22 * weight.sum():  # Newton decrement: twice the loss still to be gained
            break
        if gradient @ step <= 2 * np.finfo(float).eps * current:  # less than the loss can show: the last step
            return np.maximum(coef - step, lower)
        coef, proposed = line_search(loss, coef, step, current, lower)
        if proposed >= current:
            break
        current = proposed
    return coef


def _newton_step(hessian, gradient, free):
    """Return Newton's step in the free coefficients: those on their bound that would leave it stay."""
    step = np.zeros_like(gradient)
    step[free] = np.linalg.lstsq(hessian[np.ix_(free, free)], gradient[free], rcond=None)[0]
    return step


def line_search(loss, coef, step, current, lower=-np.inf):
    """Return the first of the points a full, a half, a quarter ... step down that lowers the loss, and its loss.

    Points beyond a lower bound are moved onto it (the projected Newton method of Bertsekas).
    """
    for halving in range(_MAX_HALVINGS):
        proposal = np.maximum(coef - step * 0.5**halving, lower)
        value = loss(proposal)
        if value < current:
            return proposal, value
    return coef, current
