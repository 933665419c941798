"""The sigmoid of least squared loss: the least of several minima."""

import numpy as np
from scipy.special import expit

from skcalib._rows.blocks import row_blocks
from skcalib._rows.condensed import condensed
from skcalib._solvers.newton import line_search

# Slopes and places of the middle, quantiles of the rows, at which a sigmoid is tried; and the number of cells of rows.
_SLOPES = 2.0 ** np.array([-2, -1, 0, 1, 2, 3, 4, 6, 8, 12])
_PLACES, _TRIED_CELLS, _TRIED_ROWS = 64, 512, 2048
_MOST_CANDIDATES, _MOST_STEPS = 6, 50
_LONGEST = 2.0  # step, relative to the coefficients: where the loss is flat Newton's would leave the range of float64
_INDISTINCT, _TINY = 1e-12, 1e-200
_SHOWN = 128 * np.finfo(float).eps  # relative gain of a sum over the rows that is above its rounding


def fit_squared_sigmoid(position, labels, sample_weight=None):
    """Return (slope, intercept) of least ``sum w (y - sigmoid(slope * x + intercept))^2``.

    The loss has several minima. Sigmoids of many slopes, with their middle between the rows, are tried on few cells of
    rows. The best one of each slope is followed by Newton's steps, on the cells, to a minimum, and the least of these
    on all rows. Where the least loss is that of a step between two rows, the slope is large but finite.

    Parameters
    ----------
    position : ndarray of shape (n,)
        The feature x, standardised.
    labels : ndarray of bool, shape (n,)
        Labels.
    sample_weight : ndarray of shape (n,), default=None
        Weights.
    """
    rows = position, labels, sample_weight
    cells = condensed(*rows, fewest_rows=_TRIED_ROWS, most_cells=_TRIED_CELLS)
    on_cells = _SquaredLoss(*cells)
    minima = [_minimised(on_cells, coef) for coef in _tried(on_cells)]
    coef = min(minima, key=lambda found: on_cells.derivatives(found)[0])
    for finer in (condensed(*rows), rows):
        if len(finer[0]) > len(cells[0]):
            cells, coef = finer, _minimised(_SquaredLoss(*finer), coef)
    return coef


def _tried(loss):
    """Return the best of the constant and, for each slope, of the sigmoids of that slope."""
    distinct = np.unique(loss.position)
    between = (distinct[1:] + distinct[:-1]) / 2 if len(distinct) > 1 else distinct
    between = between[np.unique(np.linspace(0, len(between) - 1, _PLACES).astype(int))]
    base_rate = np.clip(np.average(loss.labels, weights=loss.weight), 1e-12, 1 - 1e-12)
    tried = [np.array([0.0, np.log(base_rate / (1 - base_rate))])]
    losses = [loss.weight @ (base_rate - loss.labels) ** 2]
    for slope in (*_SLOPES, *-_SLOPES):
        probability = expit(slope * (loss.position - between[:, None]))
        of_place = (probability - loss.labels) ** 2 @ loss.weight
        best = np.argmin(of_place)
        tried.append(np.array([slope, -slope * between[best]]))
        losses.append(of_place[best])
    return [tried[k] for k in np.argsort(losses, kind="stable")[:_MOST_CANDIDATES]]


class _SquaredLoss:
    """The weighted squared loss of a sigmoid and its derivatives."""

    def __init__(self, position, labels, sample_weight):
        self.position, self.labels = position, labels
        self.weight = np.ones(len(position)) if sample_weight is None else sample_weight

    def derivatives(self, coef):
        """Return the loss, its gradient, its Hessian and the part of it that is never negative (Gauss and Newton)."""
        loss, sums, positive = 0.0, np.zeros(5), np.zeros(3)
        for rows in row_blocks(len(self.position)):
            x, weight = self.position[rows], self.weight[rows]
            probability = expit(coef[0] * x + coef[1])
            residual = probability - self.labels[rows]
            slope = probability * (1 - probability)
            loss += weight @ residual**2
            first = 2 * weight * residual * slope
            square = 2 * weight * slope**2
            second = square + first * (1 - 2 * probability)
            sums += [first @ x, first.sum(), second @ x**2, second @ x, second.sum()]
            positive += [square @ x**2, square @ x, square.sum()]
        return loss, sums[:2], sums[[2, 3, 3, 4]].reshape(2, 2), positive[[0, 1, 1, 2]].reshape(2, 2)


def _minimised(loss, coef):
    """Return the minimum that Newton's steps from `coef` lead to."""
    at_coef = loss.derivatives(coef)
    for _ in range(_MOST_STEPS):
        current, gradient, hessian, positive = at_coef
        scale = np.sqrt(np.maximum(positive.diagonal(), _TINY))
        scaled = hessian / scale / scale[:, None]
        convex = min(scaled[0, 0], np.linalg.det(scaled)) > _INDISTINCT
        scaled = scaled if convex else positive / scale / scale[:, None]
        step = np.linalg.lstsq(scaled, gradient / scale, rcond=_INDISTINCT)[0] / scale
        step /= max(1.0, np.abs(step).max() / (_LONGEST * (1 + np.abs(coef).max())))
        decrement = gradient @ step
        if decrement <= _SHOWN * current:
            return coef - step if convex else coef
        coef, at_coef = line_search(loss.derivatives, coef, step, current, loss_of=lambda found: found[0])
        if at_coef is None:
            return coef
    return coef
