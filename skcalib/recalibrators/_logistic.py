"""Weighted logistic regression on a few features by Newton's method: the engine of the parametric maps."""

from typing import NamedTuple

import numpy as np

from skcalib._blocks import row_blocks
from skcalib._links import expit

_WARM_START_ROWS = 5000  # a sample of about so many rows gives the start
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
    centre = np.zeros(features.shape[1]) if start is None else np.asarray(start, dtype=np.float64)
    ridge = np.zeros_like(centre) if penalty is None else np.asarray(penalty, dtype=np.float64)
    ridge = np.diag(ridge) if ridge.ndim == 1 else ridge
    lower = np.full_like(centre, -np.inf) if lower is None else lower
    weight = np.ones(len(targets)) if sample_weight is None else sample_weight
    loss = _PenalisedLogLoss(features, targets, weight, centre, ridge)
    coef, current = centre, loss.value(centre)
    if len(targets) > 2 * _WARM_START_ROWS:
        sample = loss.of_sample(len(targets) // _WARM_START_ROWS)
        warm = _minimised(sample, centre, sample.value(centre), lower)
        better = loss.value(warm)
        coef, current = (warm, better) if better < current else (coef, current)
    return _minimised(loss, coef, current, lower)


class _PenalisedLogLoss(NamedTuple):
    """The weighted log-loss with its ridge, and its derivatives, summed block by block."""

    features: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    centre: np.ndarray
    ridge: np.ndarray

    def of_sample(self, step):
        """Return the loss of every so many rows, with as much less of the ridge."""
        rows = slice(None, None, step)
        return self._replace(
            features=self.features[rows],
            targets=self.targets[rows],
            weight=self.weight[rows],
            ridge=self.ridge / step,
        )

    def value(self, coef):
        """Return the loss."""
        total = 0.5 * (coef - self.centre) @ self.ridge @ (coef - self.centre)
        for rows in row_blocks(*self.features.shape):
            log_odds = self.features[rows] @ coef
            softplus = np.maximum(log_odds, 0) + np.log1p(np.exp(-np.abs(log_odds)))
            total += self.weight[rows] @ (softplus - self.targets[rows] * log_odds)
        return total

    def derivatives(self, coef):
        """Return the gradient and the Hessian."""
        gradient, hessian = self.ridge @ (coef - self.centre), self.ridge.copy()
        for rows in row_blocks(*self.features.shape):
            block, weight = self.features[rows], self.weight[rows]
            probability = expit(block @ coef)
            gradient += block.T @ (weight * (probability - self.targets[rows]))
            hessian += (block.T * (weight * probability * (1 - probability))) @ block
        return gradient, hessian


def _minimised(loss, coef, current, lower):
    """Return the coefficients of least loss by Newton steps from `coef`, whose loss is `current`."""
    for _ in range(_MAX_STEPS):
        gradient, hessian = loss.derivatives(coef)
        step = _newton_step(hessian, gradient, free=(coef > lower) | (gradient < 0))
        if gradient @ step <= 1e-22 * loss.weight.sum():  # Newton decrement: twice the loss still to be gained
            break
        if gradient @ step <= 2 * np.finfo(float).eps * current:  # less than the loss can show: the last step
            return np.maximum(coef - step, lower)
        coef, proposed = line_search(loss.value, coef, step, current, lower)
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
