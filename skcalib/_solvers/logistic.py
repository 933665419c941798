"""Weighted logistic regression on a few features by Newton's method, and the sigmoid of
least squared loss.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skcalib._rows.blocks import (
    condensed,
    row_blocks,
    taken,
    total_weight,
    weights_or_ones,
)
from skcalib._solvers.newton import line_search

# A start from every 16th row changes how many steps all rows take, and not where they
# end: fits of 1,000,000 rows take .5 to .7 of the time.
_SAMPLE_ROWS = 2000  # the least number of rows that a start is worth being fitted on
# a start is fitted to every 16th row, from a start of its own, and so on
_SAMPLE_STEP = 16
# decrement of a start: far less than the log-likelihood that its rows are off by chance
_SETTLED_SAMPLE = 1e-2
_LARGEST_LOG_ODDS = 700.0  # beyond it the exponential leaves the range of float64
_MAX_STEPS = 100
# The decrement of a Newton step is gradient @ step, about twice the loss that it gains.
# Below this one per unit of weight nothing is left to gain.
_SETTLED = 1e-22
# a decrement below it that is not halved by a step is rounding: near the optimum steps
# square it
_NOISE = 1e-6
# relative gain of a loss, a sum over the rows, that is above its rounding
_SHOWN = 128 * np.finfo(float).eps
_NO_ROOM = 1e-6  # a coefficient that is closer to its bound than this is on it
_INDISTINCT = 1e-13  # relative curvature of a direction that is rounding alone
# The sigmoid of least squared loss: slopes at which it is tried, and at how many
# quantiles of the rows its middle is;
_SLOPES = 2.0 ** np.array([-2, -1, 0, 1, 2, 3, 4, 6, 8, 12])
_PLACES = 64
# the number of cells that rows are condensed to for the trial, if there are more rows
# than the second;
_TRIED_CELLS = 512
_TRIED_ROWS = 2048
# how many of the best ones are followed to a minimum;
_MOST_CANDIDATES = 6
# and the relative curvature that is rounding alone.
_LEAST_CURVATURE = 1e-12


def fit_logistic(
    features,
    targets,
    sample_weight=None,
    *,
    start=None,
    penalty=None,
    lower=None,
    offset=None,
    near=None,
):
    """Return the coefficients that minimise the weighted log-loss, plus an optional
    ridge.

    Parameters
    ----------
    features : ndarray of shape (n, d) or callable
        Features, scaled to the order of 1; an intercept is a column of ones. A callable
        gives the features of a slice of the rows, (d, m). They are then made block by
        block in each pass, and not kept.
    targets : ndarray of shape (n,)
        Event indicators, which may be boolean, or probabilities in [0, 1].
    sample_weight : ndarray of shape (n,), default=None
        Weights.
    start : ndarray of shape (d,), default=None
        Where to start, zero if not given; also the point that the ridge pulls to.
    penalty : ndarray of shape (d,) or (d, d), default=None
        Strength of the ridge ``(coef - start) @ penalty @ (coef - start) / 2`` on the
        summed loss; a vector is the diagonal.
    lower : ndarray of shape (d,), default=None
        Lower bounds of the coefficients, minus infinity for none; `start` must respect
        them.
    offset : ndarray of shape (n,), default=None
        What is added to the log-odds of each row, zero if not given.
    near : ndarray of shape (d,), default=None
        Coefficients that are near the best ones, such as those for another penalty: the
        steps begin there.

    Returns
    -------
    coef : ndarray of shape (d,)
        Coefficients. Where the classes are separable and nothing penalises, a finite
        point of tiny loss.
    """
    if not callable(features):
        features = _feature_blocks(features)
    if start is None:
        # one coefficient for each feature, counted at the first row
        centre = np.zeros(len(features(slice(0, 1))))
    else:
        centre = np.asarray(start, dtype=np.float64)
    if penalty is None:
        ridge = np.zeros_like(centre)
    else:
        ridge = np.asarray(penalty, dtype=np.float64)
    if ridge.ndim == 1:
        # a vector of strengths is the diagonal of the ridge matrix
        ridge = np.diag(ridge)
    if lower is None:
        lower = np.full_like(centre, -np.inf)
    loss = _PenalisedLogLoss(features, targets, sample_weight, centre, ridge, offset)
    # Without coefficients near the optimum, a start is looked for.
    if near is None:
        coef, at_coef = _start(loss, lower)
    else:
        coef = near
        at_coef = loss.derivatives(near)
    return minimised(loss, coef, at_coef, lower)


def location_scale(values, sample_weight):
    """Return the weighted mean of values (n,) and their weighted standard deviation,
    which is infinite where it is mere rounding, so that dividing by it gives 0.
    """
    centre = np.average(values, weights=sample_weight)
    scale = np.sqrt(np.average((values - centre) ** 2, weights=sample_weight))
    if scale <= 1e-12 * np.abs(centre):
        # The values are equal up to rounding: deviations divided by infinity are 0.
        scale = np.inf
    return centre, scale


def platt_targets(labels, sample_weight=None, counts=None):
    """Return Platt's (1999) smoothed targets (n,): ``(N+ + 1) / (N+ + 2)`` for events
    and ``1 / (N- + 2)`` for the others.

    `labels` are boolean. N- and N+ are the weights of the two classes, or the pair
    `counts` if it is given.
    """
    if counts is None:
        counts = np.bincount(labels, sample_weight, 2)
    negatives, positives = counts
    return np.where(labels, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def platt_doubt(codes, weight, n_classes):
    """Return the share of each row (n,) that Platt's targets give to classes other than
    its own, of class indices `codes` (n,).

    For two classes the share is 1 / (weight of the row's class + 2), as in
    `platt_targets`; for more classes it is 1 / (weight of all rows + 2).
    """
    if n_classes == 2:
        weight_of_class = np.bincount(codes, weight, 2)
        return 1 / (weight_of_class[codes] + 2)
    return np.full(len(codes), 1 / (total_weight(weight, len(codes)) + 2))


class _PenalisedLogLoss(NamedTuple):
    """The summed weighted log-loss plus ridge, and its derivatives, block by block.

    The fields are as in `fit_logistic`: `features` gives blocks (d, m), `targets`,
    `weight` and `offset` are (n,), `centre` is (d,) and `ridge` (d, d).
    """

    features: Callable
    targets: np.ndarray
    weight: np.ndarray | None
    centre: np.ndarray
    ridge: np.ndarray
    offset: np.ndarray | None = None

    def of_sample(self, step):
        """Return the loss of every `step`-th row, with the ridge reduced in
        proportion.
        """
        rows = slice(None, None, step)
        return self._replace(
            features=_feature_blocks(self.features(rows).T),
            targets=self.targets[rows],
            weight=taken(self.weight, rows),
            ridge=self.ridge / step,
            offset=taken(self.offset, rows),
        )

    @property
    def total_weight(self):
        """The sum of the weights."""
        if self.weight is None:
            return len(self.targets)
        return float(self.weight.sum())

    def derivatives(self, coef):
        """Return the loss, its gradient (d,) and its Hessian (d, d), in one pass."""
        gradient = self.ridge @ (coef - self.centre)
        hessian = self.ridge.copy()
        loss = 0.5 * (coef - self.centre) @ gradient
        for rows in row_blocks(len(self.targets), len(coef)):
            features = self.features(rows)
            weight = taken(self.weight, rows)
            if self.offset is None:
                log_odds = coef @ features
            else:
                log_odds = coef @ features + self.offset[rows]
            row_loss, residual, curvature = _row_derivatives(
                log_odds, self.targets[rows]
            )
            if weight is None:
                loss += row_loss.sum()
            else:
                loss += weight @ row_loss
                residual *= weight
                curvature *= weight
            gradient += features @ residual
            hessian += (features * curvature) @ features.T
        return loss, gradient, hessian


def _feature_blocks(features):
    """Return the callable that gives blocks (d, m) of features (n, d)."""
    return lambda rows: np.ascontiguousarray(features[rows].T)


def _row_derivatives(log_odds, targets):
    """Return each row's log-loss and its first two derivatives in the log-odds, (n,)
    each.

    With z the log-odds they are ``log(1 + exp(z)) - y z``, ``p - y`` and
    ``p (1 - p)``. One exponential per row serves all three.
    """
    odds_against = np.exp(-np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))
    probability = 1 / (1 + odds_against)
    # log(1 + exp(z)) = log(1 + exp(-|z|)) + max(z, 0)
    row_loss = np.log1p(np.minimum(odds_against, 1 / odds_against))
    row_loss += np.maximum(log_odds, 0)
    row_loss -= targets * log_odds
    residual = probability - targets
    # p (1 - p) = p^2 (1 - p) / p, with (1 - p) / p the odds against
    curvature = probability
    curvature *= odds_against * probability
    return row_loss, residual, curvature


def _start(loss, lower):
    """Return coefficients to start from and `loss.derivatives` there.

    They are the optimum for every 16th row, if there are many rows and the loss is
    lower there than at the centre of the ridge; otherwise that centre.
    """
    origin = loss.derivatives(loss.centre)
    if len(loss.targets) < _SAMPLE_ROWS * _SAMPLE_STEP:
        return loss.centre, origin
    sample = loss.of_sample(_SAMPLE_STEP)
    sample_start, at_start = _start(sample, lower)
    coef = minimised(sample, sample_start, at_start, lower, settled=_SETTLED_SAMPLE)
    at_coef = loss.derivatives(coef)
    if at_coef[0] < origin[0]:
        return coef, at_coef
    return loss.centre, origin


def minimised(loss, coef, at_coef, lower, settled=0.0):
    """Return the coefficients (d,) of least loss within their bounds, by Newton steps.

    Parameters
    ----------
    loss : object
        Has `total_weight` and ``derivatives(coef)``: the loss, its gradient and its
        Hessian.
    coef : ndarray of shape (d,)
        Where the steps begin.
    at_coef : tuple
        The derivatives there.
    lower : ndarray of shape (d,)
        Lower bounds.
    settled : float, default=0.0
        A step whose decrement, twice the loss still to be gained, is below it is the
        last one.
    """
    decrement = np.inf
    for _ in range(_MAX_STEPS):
        current, gradient, hessian = at_coef
        previous_decrement = decrement
        step = _newton_step(hessian, gradient, room=coef - lower)
        decrement = gradient @ step
        nothing_left = decrement <= _SETTLED * loss.total_weight
        # Near the optimum a step squares the decrement: one that is tiny and not even
        # halved is rounding.
        only_rounding = previous_decrement / 2 < decrement < _NOISE
        if nothing_left or only_rounding:
            break
        # The loss cannot show so small a gain, so no line search can judge the step.
        if decrement <= max(_SHOWN * current, settled):
            return np.maximum(coef - step, lower)
        coef, at_coef = line_search(
            loss.derivatives, coef, step, current, lower, loss_of=itemgetter(0)
        )
        if at_coef is None:
            break
    return coef


def _newton_step(hessian, gradient, room):
    """Return the step (d,), to be subtracted, to the lowest point of the loss's
    parabola within the bounds: ``step <= room``.

    `room` (d,) is how far each coefficient is above its lower bound.

    Coefficients that have no room and fall go onto their bound. A hair above the bound
    is no room: no step of the others would be short enough for the line search. One
    that reaches its bound on the way to the lowest point stays there, and the others go
    on to the lowest point that is left.
    """
    free = (room > _NO_ROOM) | (gradient < 0)
    step = np.where(free, 0, room)
    while free.any():
        # The step to the lowest point of the parabola in the free coefficients, with
        # the others where they are.
        to_lowest = np.where(free, 0, step)
        gradient_left = gradient - hessian @ to_lowest
        to_lowest[free] = _solved(hessian[np.ix_(free, free)], gradient_left[free])
        beyond = np.flatnonzero(free & (to_lowest > room))
        if not len(beyond):
            return to_lowest
        # The way there ends where the first one reaches its bound.
        way_to_bound = (room - step)[beyond]
        share = way_to_bound / (to_lowest - step)[beyond]
        first = beyond[np.argmin(share)]
        step += share.min() * (to_lowest - step)
        step[first] = room[first]
        free[first] = False
    return step


def _solved(hessian, gradient):
    """Return Newton's step ``pinv(hessian) @ gradient`` (d,).

    The system is scaled to a unit diagonal first. The least-squares solution of least
    norm shares directions that rows do not tell from each other, as for equal scores,
    alike between the coefficients.
    """
    curvature = hessian.diagonal()
    scale = 1 / np.sqrt(np.where(curvature > 0, curvature, 1))
    scaled_hessian = hessian * scale * scale[:, None]
    solution, *_ = np.linalg.lstsq(scaled_hessian, scale * gradient, rcond=_INDISTINCT)
    return scale * solution


def fit_squared_sigmoid(position, labels, sample_weight=None):
    """Return (slope, intercept) of least
    ``sum w (y - sigmoid(slope * x + intercept))^2``.

    The loss has several minima. Sigmoids of many slopes, with their middle between the
    rows, are tried on few cells of rows. The best one of each slope is followed by
    Newton's steps, on the cells, to a minimum, and the least of these on all rows.
    Where the least loss is that of a step between two rows, the slope is large but
    finite.

    Parameters
    ----------
    position : ndarray of shape (n,)
        The feature x, standardised.
    labels : ndarray of bool, shape (n,)
        Labels.
    sample_weight : ndarray of shape (n,), default=None
        Weights.

    Returns
    -------
    coef : ndarray of shape (2,)
        Slope and intercept.
    """
    # Triples of positions, labels and weights. A cell is rows of one label with nearly
    # the same position.
    rows = (position, labels, sample_weight)
    cells = condensed(*rows, fewest_rows=_TRIED_ROWS, most_cells=_TRIED_CELLS)
    loss_on_cells = _SquaredLoss(*cells)
    minima = [_followed(loss_on_cells, coef) for coef in _tried(loss_on_cells)]

    def loss_of(coef):
        """Return the squared loss on the cells."""
        loss, _, _ = loss_on_cells.derivatives(coef)
        return loss

    coef = min(minima, key=loss_of)
    # The best minimum is followed on finer cells, then on the rows themselves.
    n_cells = len(cells[0])
    for finer in (condensed(*rows), rows):
        if len(finer[0]) > n_cells:
            n_cells = len(finer[0])
            coef = _followed(_SquaredLoss(*finer), coef)
    return coef


def _tried(loss):
    """Return the (slope, intercept) pairs of least loss among the constant and, for
    each of a few slopes, the sigmoid with the best middle: at most six, best first.
    """
    # Middles of the sigmoids: between two neighbouring positions, at some of these
    # places.
    distinct = np.unique(loss.position)
    middles = distinct
    if len(distinct) > 1:
        middles = (distinct[1:] + distinct[:-1]) / 2
    places = np.linspace(0, len(middles) - 1, _PLACES).astype(int)
    middles = middles[np.unique(places)]
    # The constant first, then for each slope the sigmoid with the best middle.
    # inside (0, 1), so that its log-odds are finite where all labels are equal
    base_rate = np.clip(np.average(loss.labels, weights=loss.weight), 1e-12, 1 - 1e-12)
    tried = [np.array([0.0, np.log(base_rate / (1 - base_rate))])]
    losses = [loss.weight @ (base_rate - loss.labels) ** 2]
    for slope in (*_SLOPES, *-_SLOPES):
        # (number of middles, number of cells)
        probability = expit(slope * (loss.position - middles[:, None]))
        loss_of_middle = (probability - loss.labels) ** 2 @ loss.weight
        best = np.argmin(loss_of_middle)
        tried.append(np.array([slope, -slope * middles[best]]))
        losses.append(loss_of_middle[best])
    best_first = np.argsort(losses, kind="stable")
    return [tried[k] for k in best_first[:_MOST_CANDIDATES]]


class _SquaredLoss:
    """The weighted squared loss of a sigmoid and its derivatives.

    Positions, boolean labels and weights are (n,).
    """

    def __init__(self, position, labels, sample_weight):
        # what the sigmoid is a function of, the events, and the weights, (n,) each
        self.position = position
        self.labels = labels
        self.weight = weights_or_ones(sample_weight, len(position))

    @property
    def total_weight(self):
        """The sum of the weights."""
        return float(self.weight.sum())

    def derivatives(self, coef):
        """Return the loss, its gradient (2,) and its Hessian (2, 2), at the slope and
        intercept `coef`.

        Where the Hessian is not positive definite, its Gauss-Newton part takes its
        place.
        """
        loss = 0.0
        gradient = np.zeros(2)
        hessian = np.zeros((2, 2))
        gauss_newton = np.zeros((2, 2))
        for rows in row_blocks(len(self.position)):
            weight = self.weight[rows]
            features = np.stack((self.position[rows], np.ones(len(weight))))
            probability = expit(coef @ features)
            residual = probability - self.labels[rows]
            slope = probability * (1 - probability)
            loss += weight @ residual**2
            # of w (p - y)^2 by the log-odds: its first derivative, and the part of its
            # second one that is never negative
            first = 2 * weight * residual * slope
            square = 2 * weight * slope**2
            second = square + first * (1 - 2 * probability)
            gradient += features @ first
            hessian += features * second @ features.T
            gauss_newton += features * square @ features.T
        # A 2 x 2 matrix is positive definite if its first entry and determinant are >
        # 0.
        least = _LEAST_CURVATURE * gauss_newton[0, 0]
        is_convex = (
            hessian[0, 0] > least
            and np.linalg.det(hessian) > least * gauss_newton[1, 1]
        )
        if not is_convex:
            hessian = gauss_newton
        return loss, gradient, hessian


def _followed(loss, coef):
    """Return the minimum that Newton's steps from `coef` lead to."""
    return minimised(loss, coef, loss.derivatives(coef), np.full(2, -np.inf))
