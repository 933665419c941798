"""Weighted logistic regression on a few features by Newton's method, and the sigmoid of
least squared loss.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skcalib._input.tensors import like, namespace_of
from skcalib._rows.blocks import (
    condensed,
    row_blocks,
    taken,
    weights_or_ones,
)
from skcalib._solvers.newton import line_search
from skcalib._solvers.sums import chosen, class_sums

# A start from every 16th row changes how many steps all rows take, and not where they
# end: fits of 1,000,000 rows take .5 to .7 of the time.
_SAMPLE_ROWS = 2000  # the least number of rows that a start is worth being fitted on
# a start is fitted to every 16th row, from a start of its own, and so on
_SAMPLE_STEP = 16
# decrement of the last step of a start: far less than the log-likelihood that its rows
# are off by chance
_LAST_OF_SAMPLE = 1e-2
_LARGEST_LOG_ODDS = 700.0  # beyond it the exponential leaves the range of float64
_MAX_STEPS = 100
# The decrement of a Newton step is gradient @ step, about twice the loss that it gains.
# Below this one per unit of weight nothing is left to gain.
_NOTHING_LEFT = 1e-22
# a decrement below it that is not halved by a step is rounding: near the optimum steps
# square it
_NOISE = 1e-6
# of a loss, a sum over the rows, relative to it
_ROUNDING_OF_LOSS = 128 * np.finfo(float).eps
# The decrement, per unit of weight, above which steps that end have not found the
# minimum; and the largest change of a log-odds by one of the careful steps that follow.
_MUCH_LEFT = 1e-6
_LARGEST_CHANGE = 5.0
# Curvature of the loss per unit of weight that features of up to 45 can cause; those of
# log-odds are 36 at most.
_MOST_CURVATURE = 500.0
_NO_ROOM = 1e-6  # a coefficient that is closer to its bound than this is on it
_INDISTINCT = 1e-13  # relative curvature of a direction that is rounding alone
# Change of the log-odds by a step that ends a fit with Jeffreys' prior.
_SETTLED = 1e-5
# The sigmoid of least squared loss: slopes at which it is tried, and at how many
# quantiles of the rows its middle is;
_SLOPES = 2.0 ** np.array([-2, -1, 0, 1, 2, 3, 4, 6, 8, 12])
_PLACES = 64
# the number of cells that rows are condensed to for the trial, if there are more rows
# than the second;
_COARSE_CELLS = 512
_COARSE_ROWS = 2048
# how many of the best ones are followed to a minimum;
_MOST_CANDIDATES = 6
# and the relative curvature that is rounding alone.
_LEAST_CURVATURE = 1e-12


def fit_logistic(
    features,
    targets,
    sample_weight=None,
    *,
    centre=None,
    penalty=None,
    lower=None,
    offset=None,
    start=None,
):
    """Return the coefficients (d,) of a logistic regression: those of least weighted
    log-loss plus ridge.

    Parameters
    ----------
    features : ndarray of shape (n, d) or callable
        Features, scaled to the order of 1; an intercept is a column of ones. Or a
        callable: ``features(rows)`` returns the features of a slice of the rows, with
        one row of the data in each column, (d, n_rows). They are then made block by
        block in each pass, and not kept.
    targets : ndarray of shape (n,)
        Event indicators, which may be boolean, or probabilities in [0, 1].
    sample_weight : ndarray of shape (n,), default=None
        Weights.
    centre : ndarray of shape (d,), default=None
        The point that the ridge pulls to; None means zero.
    penalty : ndarray of shape (d,) or (d, d), default=None
        Strength of the ridge ``(coef - centre) @ penalty @ (coef - centre) / 2`` on the
        summed loss; a vector is the diagonal of the matrix. None means no ridge.
    lower : ndarray of shape (d,), default=None
        Lower bounds of the coefficients, minus infinity for none; `centre` and `start`
        must respect them.
    offset : ndarray of shape (n,), default=None
        What is added to the log-odds of each row, zero if not given.
    start : ndarray of shape (d,), default=None
        Where the steps begin, such as the coefficients for another penalty. None means
        the centre, or with many rows the fit to a sample of them.

    Returns
    -------
    coef : ndarray of shape (d,)
        Coefficients. Where the classes are separable and nothing penalises, a finite
        point of tiny loss.
    """
    if not callable(features):
        features = _feature_blocks(features)
    if centre is None:
        # one coefficient for each feature, counted at the first row
        centre = np.zeros(len(features(slice(0, 1))))
    else:
        centre = np.asarray(centre, dtype=np.float64)
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
    if start is None:
        start, derivatives = _starting_point(loss, lower)
    else:
        derivatives = loss.derivatives(start)
    return _log_loss_minimum(loss, start, derivatives, lower)


def logistic_loss(
    features, targets, sample_weight, coef, *, centre, penalty, offset=None
):
    """Return the weighted log-loss plus ridge of a logistic regression at coefficients
    (d,), and its Hessian (d, d).

    ``features(rows)`` returns the features (d, n_rows) of a slice of rows; `targets`,
    `sample_weight` and `offset`, which is added to the log-odds, are (n,), the last two
    perhaps None. The ridge ``penalty @ (coef - centre)**2 / 2`` has `centre` and
    `penalty` (d,).
    """
    ridge = np.diag(penalty)
    loss = _PenalisedLogLoss(features, targets, sample_weight, centre, ridge, offset)
    value, _, hessian = loss.derivatives(coef)
    return value, hessian


def fit_jeffreys(design, labels, weight, start, centre=None, penalty=None):
    """Return the coefficients (d,) of greatest likelihood times Jeffreys' prior, which
    are finite where the classes are separable.

    Its score function is that of a fit in which each row is an event and a non-event
    once more, each with half its leverage as weight [1]_.

    Parameters
    ----------
    design : ndarray of shape (d, n)
        Features.
    labels, weight : ndarray of shape (n,)
        Event indicators, and weights.
    start : ndarray of shape (d,)
        Where the steps begin.
    centre, penalty : ndarray of shape (d,) and (d, d), default=None
        The ridge ``(coef - centre) @ penalty @ (coef - centre) / 2`` on the summed
        loss; None for none.

    References
    ----------
    .. [1] Firth (1993), Bias reduction of maximum likelihood estimates.
    """
    ridge = 0.0 if penalty is None else penalty
    coef = start
    for _ in range(_MAX_STEPS):
        # 1. The leverage of each row at the present coefficients.
        fitted = expit(coef @ design)
        curvature = weight * fitted * (1 - fitted)
        inverse = inverse_curvature((design * curvature) @ design.T + ridge)
        leverage = curvature * np.einsum("in,in->n", inverse @ design, design)
        # 2. A fit in which each row has the weight and the events of the two more rows.
        augmented_weight = weight + leverage
        targets = (weight * labels + leverage / 2) / augmented_weight
        previous = coef
        coef = fit_logistic(
            design.T,
            targets,
            augmented_weight,
            centre=centre,
            penalty=penalty,
            start=coef,
        )
        # 3. It ends when no log-odds change any more.
        if np.abs((coef - previous) @ design).max() < _SETTLED:
            break
    return coef


def inverse_curvature(curvature):
    """Return the inverse of a matrix (d, d) that is positive, or nearly so; it is huge
    in directions without curvature.
    """
    # The matrix is scaled to a diagonal of ones, so that one least eigenvalue suits all
    # directions.
    scale = np.sqrt(np.diag(curvature))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(curvature / np.outer(scale, scale))
    values = np.maximum(values, _LEAST_CURVATURE * max(values[-1], 1.0))
    return (vectors / values) @ vectors.T / np.outer(scale, scale)


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
    """Return how far Platt's target for each row's true class is below 1, (n,).

    For two classes that is 1 / (weight of the row's class + 2), as in `platt_targets`;
    for more classes it is 1 / (weight of all rows + 2). `codes` (n,) are the class
    indices of the rows, `weight` (n,) their weights or None.
    """
    xp = namespace_of(codes)
    if n_classes == 2:
        (weight_of_class,) = class_sums(codes, 2, weight)
        return chosen(like(codes, 1 / (weight_of_class + 2)), codes)
    n_rows = codes.shape[0]
    total = n_rows
    if weight is not None:
        total = float(xp.sum(weight))
    return like(codes, np.full(n_rows, 1 / (total + 2)))


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

    def of_every(self, step):
        """Return the loss of a sample, every `step`-th row, with the ridge divided by
        `step`, so that it keeps its weight relative to the rows.
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

    def largest_change(self, step):
        """Return the largest change, over all rows, that a step (d,) makes to the
        log-odds.
        """
        changes = [
            np.abs(step @ self.features(rows)).max()
            for rows in row_blocks(len(self.targets), len(step))
        ]
        return max(changes)

    def derivatives(self, coef):
        """Return the loss at the coefficients (d,), its gradient (d,) and its Hessian
        (d, d), in one pass over the rows.
        """
        # those of the ridge, to which the rows are added
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
    """Return each row's log-loss and its first two derivatives in the log-odds z, (n,)
    each, from one exponential per row: ``log(1 + exp(z)) - y z``, ``p - y`` and ``p (1
    - p)``.
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


def _starting_point(loss, lower):
    """Return coefficients (d,) from which to minimise the loss, and its derivatives
    there: with few rows the centre of the ridge; with many the optimum for every 16th
    row, found in the same way, unless the loss is higher there.
    """
    at_centre = loss.derivatives(loss.centre)
    if len(loss.targets) < _SAMPLE_ROWS * _SAMPLE_STEP:
        return loss.centre, at_centre
    sample = loss.of_every(_SAMPLE_STEP)
    sample_start, sample_derivatives = _starting_point(sample, lower)
    coef = _log_loss_minimum(
        sample, sample_start, sample_derivatives, lower, last_decrement=_LAST_OF_SAMPLE
    )
    at_coef = loss.derivatives(coef)
    loss_at_centre, *_ = at_centre
    loss_at_coef, *_ = at_coef
    if loss_at_coef < loss_at_centre:
        return coef, at_coef
    return loss.centre, at_centre


def _log_loss_minimum(loss, start, derivatives, lower, last_decrement=0.0):
    """Return the coefficients (d,) of least loss above the bounds `lower` (d,), by
    Newton steps from `start` (d,); `derivatives` are those of the loss there. Steps end
    once about half of `last_decrement`, at most, can still be gained.

    If all probabilities are 0 or 1 up to rounding, the loss has no curvature, and a
    Newton step is too long for any line search. If the steps end at such coefficients,
    a second search begins at 0 (or at the bounds), whose steps change no log-odds by
    more than `_LARGEST_CHANGE`.
    """
    coef, is_stuck = _newton_minimum(loss, start, derivatives, lower, last_decrement)
    if not is_stuck:
        return coef
    origin = np.maximum(np.zeros_like(coef), lower)
    careful, _ = _newton_minimum(
        loss,
        origin,
        loss.derivatives(origin),
        lower,
        last_decrement,
        change_of_step=loss.largest_change,
    )
    loss_at_coef, *_ = loss.derivatives(coef)
    loss_at_careful, *_ = loss.derivatives(careful)
    return careful if loss_at_careful < loss_at_coef else coef


def _newton_minimum(
    loss, start, derivatives, lower, last_decrement=0.0, change_of_step=None
):
    """Return the coefficients (d,) of least loss above the bounds `lower` (d,), by
    Newton steps from `start` (d,), and whether the steps ended although much could be
    gained.

    ``loss.derivatives(coef)`` returns the loss, its gradient and its Hessian;
    `derivatives` are those at `start`. After a step whose decrement, ``gradient @
    step``, about twice what can still be gained, is at most `last_decrement`, they end.
    If ``change_of_step(step)`` gives the largest change of a row's log-odds, steps are
    cut to `_LARGEST_CHANGE`.
    """
    coef = start
    decrement = np.inf
    for _ in range(_MAX_STEPS):
        current, gradient, hessian = derivatives
        previous_decrement = decrement
        step = _newton_step(hessian, gradient, room=coef - lower)
        decrement = gradient @ step
        nothing_left = decrement <= _NOTHING_LEFT * loss.total_weight
        # Near the optimum a step squares the decrement: one that is tiny and not even
        # halved is rounding.
        only_rounding = previous_decrement / 2 < decrement < _NOISE
        if nothing_left or only_rounding:
            return coef, _is_flat(loss, gradient, decrement, room=coef - lower)
        # So small a gain is lost in the rounding of the loss: the step is taken without
        # a line search.
        if decrement <= max(_ROUNDING_OF_LOSS * current, last_decrement):
            is_stuck = _is_flat(loss, gradient, decrement, room=coef - lower)
            return np.maximum(coef - step, lower), is_stuck
        if change_of_step is not None:
            step *= _LARGEST_CHANGE / max(change_of_step(step), _LARGEST_CHANGE)
        coef, derivatives = line_search(
            loss.derivatives, coef, step, current, lower, loss_of=itemgetter(0)
        )
        if derivatives is None:  # no shorter step lowers the loss
            break
    return coef, bool(decrement > _MUCH_LEFT * loss.total_weight)


def _is_flat(loss, gradient, decrement, room):
    """Return whether the steps have ended on a slope without curvature instead of at
    the minimum.

    The loss of a row has at most the curvature ``weight * feature**2 / 4``. So along
    one coefficient at least the squared gradient, divided by twice the sum of these,
    can be gained. On such a slope that is far more than half the decrement, the gain
    that Newton's step expects. `room` (d,) is the distance from the bounds.
    """
    # At its lower bound, a coefficient can only increase.
    can_move = (room > _NO_ROOM) | (gradient < 0)
    steepest = np.abs(gradient[can_move]).max(initial=0.0)
    twice_least_gain = steepest**2 / (_MOST_CURVATURE * loss.total_weight)
    much_left = _MUCH_LEFT * loss.total_weight
    return bool(twice_least_gain > max(10 * decrement, much_left))


def _newton_step(hessian, gradient, room):
    """Return Newton's step (d,), to be subtracted: the minimum of ``-gradient @ step +
    step @ hessian @ step / 2`` with ``step <= room`` (d,), the distances from the lower
    bounds; near it where several bounds are met, whose coefficients are held there.
    """
    # A coefficient that is next to its bound and would fall is put on it: the little
    # room would cut the steps of the others short.
    is_free = (room > _NO_ROOM) | (gradient < 0)
    step = np.where(is_free, 0, room)
    while is_free.any():
        # The minimum by the free coefficients, with the others held.
        target = np.where(is_free, 0, step)
        gradient_left = gradient - hessian @ target
        free_hessian = hessian[np.ix_(is_free, is_free)]
        target[is_free] = _pseudo_solution(free_hessian, gradient_left[is_free])
        beyond = np.flatnonzero(is_free & (target > room))
        if not len(beyond):
            return target
        # Go towards it until the first coefficient meets its bound, and hold that one.
        share_of_way = (room - step)[beyond] / (target - step)[beyond]
        first = beyond[np.argmin(share_of_way)]
        step += share_of_way.min() * (target - step)
        step[first] = room[first]
        is_free[first] = False
    return step


def _pseudo_solution(hessian, gradient):
    """Return ``pinv(hessian) @ gradient`` (d,), with the Hessian scaled to a unit
    diagonal. If the data cannot distinguish two coefficients, both get the same step.
    """
    curvature = hessian.diagonal()
    scale = 1 / np.sqrt(np.where(curvature > 0, curvature, 1))
    scaled_hessian = hessian * scale * scale[:, None]
    solution, *_ = np.linalg.lstsq(scaled_hessian, scale * gradient, rcond=_INDISTINCT)
    return scale * solution


def fit_squared_sigmoid(position, labels, sample_weight=None):
    """Return the (slope, intercept) that minimises
    ``sum w (y - sigmoid(slope * x + intercept))^2``.

    The loss has several minima. To find the least, sigmoids of many slopes and places
    are compared on condensed rows (cells: rows of one label with nearly equal x,
    counted by their weight). Newton's steps lead from the best few to minima, and from
    the best minimum on to that of all rows. Where a step function between two rows
    would be best, the slope is large but finite.

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
    # Each level is a triple of positions, labels and weights, the last one of the rows
    # themselves.
    rows = (position, labels, sample_weight)
    coarse = condensed(*rows, fewest_rows=_COARSE_ROWS, most_cells=_COARSE_CELLS)
    fine = condensed(*rows)
    loss_on_coarse = _SquaredLoss(*coarse)
    coef = None
    least_loss = np.inf
    for candidate in _candidates(loss_on_coarse):
        minimum = _local_minimum(loss_on_coarse, candidate)
        loss, _, _ = loss_on_coarse.derivatives(minimum)
        if coef is None or loss < least_loss:
            coef = minimum
            least_loss = loss
    # The best minimum is refined on each level that has more cells than the last.
    n_cells = len(coarse[0])
    for level in (fine, rows):
        if len(level[0]) > n_cells:
            n_cells = len(level[0])
            coef = _local_minimum(_SquaredLoss(*level), coef)
    return coef


def _candidates(loss):
    """Return at most six starts (slope, intercept) for minimising a `_SquaredLoss`,
    best first: of the constant and, for each of a few slopes, the sigmoid with the best
    midpoint, where it is 1/2.
    """
    # Midpoints are tried halfway between neighbouring positions, at up to `_PLACES`
    # quantiles.
    distinct = np.unique(loss.position)
    midpoints = distinct
    if len(distinct) > 1:
        midpoints = (distinct[1:] + distinct[:-1]) / 2
    places = np.linspace(0, len(midpoints) - 1, _PLACES).astype(int)
    midpoints = midpoints[np.unique(places)]
    # The constant forecast, kept off 0 and 1 so that its log-odds are finite.
    base_rate = np.clip(np.average(loss.labels, weights=loss.weight), 1e-12, 1 - 1e-12)
    candidates = [np.array([0.0, np.log(base_rate / (1 - base_rate))])]
    losses = [loss.weight @ (base_rate - loss.labels) ** 2]
    # The best midpoint for each slope, rising and falling.
    for slope in (*_SLOPES, *-_SLOPES):
        # (n_midpoints, n_cells)
        probability = expit(slope * (loss.position - midpoints[:, None]))
        loss_of_midpoint = (probability - loss.labels) ** 2 @ loss.weight
        best = np.argmin(loss_of_midpoint)
        candidates.append(np.array([slope, -slope * midpoints[best]]))
        losses.append(loss_of_midpoint[best])
    best_first = np.argsort(losses, kind="stable")
    return [candidates[k] for k in best_first[:_MOST_CANDIDATES]]


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
        intercept `coef` (2,).

        Where the Hessian is not positive definite, its Gauss-Newton approximation is
        returned instead, so that Newton's step always leads downhill.
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
            loss += weight @ residual**2
            # Derivatives by the log-odds. That of p is p' = p (1 - p), and those of
            # w (p - y)^2 are 2 w (p - y) p' and 2 w p'^2 + 2 w (p - y) p' (1 - 2 p).
            # The first term of the second one is never negative.
            p_prime = probability * (1 - probability)
            first = 2 * weight * residual * p_prime
            nonnegative = 2 * weight * p_prime**2
            second = nonnegative + first * (1 - 2 * probability)
            gradient += features @ first
            hessian += features * second @ features.T
            gauss_newton += features * nonnegative @ features.T
        # A 2 x 2 matrix is positive definite if its first entry and its determinant are
        # positive, here by more than rounding.
        rounding = _LEAST_CURVATURE * gauss_newton[0, 0]
        is_positive_definite = (
            hessian[0, 0] > rounding
            and np.linalg.det(hessian) > rounding * gauss_newton[1, 1]
        )
        if not is_positive_definite:
            hessian = gauss_newton
        return loss, gradient, hessian


def _local_minimum(loss, start):
    """Return the (slope, intercept) of the minimum of a `_SquaredLoss` that Newton's
    steps from `start` lead to.
    """
    no_bounds = np.full(2, -np.inf)
    coef, _ = _newton_minimum(loss, start, loss.derivatives(start), no_bounds)
    return coef
