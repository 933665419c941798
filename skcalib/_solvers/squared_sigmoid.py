"""The sigmoid of least squared loss: the least of several minima."""

import numpy as np
from scipy.special import expit

from skcalib._rows.blocks import condensed, row_blocks
from skcalib._solvers.logistic import minimised

# Slopes and places of the middle, quantiles of the rows, at which a sigmoid is tried; and the number of cells of rows.
_SLOPES = 2.0 ** np.array([-2, -1, 0, 1, 2, 3, 4, 6, 8, 12])
_PLACES, _TRIED_CELLS, _TRIED_ROWS = 64, 512, 2048
_MOST_CANDIDATES = 6
_INDISTINCT = 1e-12  # relative curvature that is rounding alone


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
    minima = [_followed(on_cells, coef) for coef in _tried(on_cells)]
    coef = min(minima, key=lambda found: on_cells.derivatives(found)[0])
    for finer in (condensed(*rows), rows):
        if len(finer[0]) > len(cells[0]):
            cells, coef = finer, _followed(_SquaredLoss(*finer), coef)
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

    @property
    def total_weight(self):
        """The sum of the weights."""
        return float(self.weight.sum())

    def derivatives(self, coef):
        """Return the loss, its gradient, and its Hessian: where that is not convex the part of Gauss and Newton."""
        loss, gradient, whole, part = 0.0, np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
        for rows in row_blocks(len(self.position)):
            features, weight = np.stack((self.position[rows], np.ones(len(self.weight[rows])))), self.weight[rows]
            probability = expit(coef @ features)
            residual = probability - self.labels[rows]
            slope = probability * (1 - probability)
            loss += weight @ residual**2
            first = 2 * weight * residual * slope
            square = 2 * weight * slope**2
            gradient += features @ first
            whole += features * (square + first * (1 - 2 * probability)) @ features.T
            part += features * square @ features.T
        least = _INDISTINCT * part.diagonal()
        convex = whole[0, 0] > least[0] and np.linalg.det(whole) > least[0] * part[1, 1]
        return loss, gradient, whole if convex else part


def _followed(loss, coef):
    """Return the minimum that Newton's steps from `coef` lead to."""
    return minimised(loss, coef, loss.derivatives(coef), np.full(2, -np.inf))
