"""Multinomial logistic regression that starts from given logits and is held near them:
the engine of affine scaling.
"""

import math
from functools import cached_property, partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skcalib._input.warn import warn
from skcalib._rows.blocks import row_blocks, weights_or_ones
from skcalib._solvers.newton import damped_solution, line_search

_MAX_STEPS = 60
_MAX_PRODUCTS = 500  # of the Hessian with a vector, in one step
TOLERANCE = 1e-16  # of twice the loss still to be gained, in nats per row
_WARM_TOLERANCE = 1e-7  # of the fit in single precision that gives the start
_WORTH_A_WARNING = 1e-9  # twice the loss that a fit leaves, in nats per row
_DAMPING = 1e-8  # of the Hessian's diagonal, for directions without curvature
_LEAST_SPREAD = 1e-3  # of a feature about its mean, relative to its square
_LEAST_WEIGHT = 1e-30  # relative to the sum: single precision has little below
_LARGEST_DENSE_HESSIAN = 500  # parameters, or twice as many where rows are no fewer
_RIDGE_FOR_SINGLE_PRECISION = 1e-6  # of the curvature
# Probabilities, one per row and class: more are not kept between the loss and the
# Hessian, but computed again.
MOST_KEPT = 1 << 27


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
    def apply(parameters, features):
        """Return the logits (K, n) of features (K + 1, n): for each class its slope
        times its feature, plus its intercept.
        """
        coef, intercept = parameters.reshape(2, -1, 1)
        logits = coef * features[:-1]
        logits += intercept
        return logits

    @staticmethod
    def adjoint(residual, features):
        """Return the gradient (2 K,), by the parameters, of a sum of losses with the
        derivatives `residual` (K, n) by the logits.
        """
        gradient_of_coef = np.vecdot(residual, features[:-1])
        gradient_of_intercept = residual @ features[-1]
        return np.concatenate((gradient_of_coef, gradient_of_intercept))

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
        n_classes = len(root)
        x = features[:-1]
        # The slope of class k has the derivative x_k, the intercept has 1. First every
        # entry is -root_k root_l times both derivatives, summed over the rows.
        root_of_parameters = np.concatenate((root * x, root))
        hessian = root_of_parameters @ root_of_parameters.T
        np.negative(hessian, out=hessian)
        # Then the entries of a class with itself are set: `variance` in place of the
        # difference w p - root^2, which would lose digits. Axes: slope or intercept,
        # class, slope or intercept, class.
        by_kind = hessian.reshape(2, n_classes, 2, n_classes)
        k = np.arange(n_classes)
        variance_x = variance * x
        slope_by_intercept = variance_x.sum(axis=1)
        by_kind[0, k, 0, k] = np.vecdot(variance_x, x)
        by_kind[0, k, 1, k] = slope_by_intercept
        by_kind[1, k, 0, k] = slope_by_intercept
        by_kind[1, k, 1, k] = variance.sum(axis=1)
        return hessian

    @staticmethod
    def moves(inverse, residual, features):
        """Return how much the logits of each column change if the parameters change by
        ``inverse @ gradient``, with the gradient of that column's own loss; (K, n).

        `residual` (K, n) holds the derivatives of the losses by the logits.
        """
        x = features[:-1]
        gradients = np.concatenate((residual * x, residual))  # (2 K, n)
        coef, intercept = np.split(inverse @ gradients, 2)
        return coef * x + intercept


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
    def apply(parameters, features):
        """Return the logits (K, n) of features (K + 1, n)."""
        return parameters.reshape(-1, len(features)) @ features

    @staticmethod
    def adjoint(residual, features):
        """Return the gradient (K (K + 1),), by the parameters, of a sum of losses with
        the derivatives `residual` (K, n) by the logits.
        """
        return (residual @ features.T).ravel()

    @staticmethod
    def hessian(variance, root, features):
        """Return the Hessian (n_parameters, n_parameters), by the parameters, of the
        summed log-loss.

        The arguments are those of `DiagonalMap.hessian`: with weight w and probability
        p, `variance` (K, n) is ``w p (1 - p)`` and `root` (K, n) is ``sqrt(w) p``.
        """
        n_classes = len(root)
        n_features = len(features)
        # The coefficient of feature i for class k and that of feature j for class m
        # have the entry: sum over the rows of W_km x_i x_j, with W the Hessian by the
        # logits. It stays the same if k and m, or i and j, are exchanged. So only pairs
        # k <= m and i <= j are summed, which takes .7 of the time of all pairs.
        k, m = np.triu_indices(n_classes)
        i, j = np.triu_indices(n_features)
        sums = 0  # (pairs of classes, pairs of features)
        for rows in row_blocks(root.shape[1], 2 * len(i)):
            hessian_by_logits = -root[k, rows] * root[m, rows]
            hessian_by_logits[k == m] = variance[:, rows]
            products = features[i, rows] * features[j, rows]
            sums += hessian_by_logits @ products.T
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
        gradients = residual[:, None] * features  # (K, K + 1, n)
        n_parameters = len(inverse)
        changes = inverse @ gradients.reshape(n_parameters, -1)
        changes = changes.reshape(gradients.shape)
        # A logit changes by the sum over the features of change times feature.
        return np.einsum("kjn,jn->kn", changes, features)


def _pair_numbers(size):
    """Return a symmetric table (size, size): entry [k, m] is the position of the pair
    (k, m), or (m, k), in ``np.triu_indices(size)``, which lists pairs with k <= m.
    """
    lower, upper = np.triu_indices(size)
    positions = np.arange(len(lower))
    table = np.empty((size, size), dtype=np.intp)
    table[lower, upper] = positions
    table[upper, lower] = positions
    return table


# BLAS sometimes flags a product of finite single-precision numbers as invalid: the same
# fit passes when it is repeated. A product that is not finite is no step: the line
# search takes only what lowers the loss.
@np.errstate(invalid="ignore")
def fit_softmax_regression(
    affine_map,
    features,
    codes,
    sample_weight=None,
    *,
    centre,
    penalty,
    start=None,
    preconditioner=None,
    tolerance=TOLERANCE,
    is_impossible=None,
):
    """Return the parameters of an affine map of least log-loss, with a ridge that pulls
    them to a centre.

    Newton's method. With a strong enough ridge, most steps are made in single
    precision, and the last ones in double precision; conjugate gradients solve for the
    step, which takes only products of the Hessian with vectors. Otherwise the Hessian
    may be close to singular: it is then factorised, in double precision, unless there
    are too many parameters.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`: what the parameters stand for.
    features : callable
        ``features(rows)`` returns the features of a slice of the rows as a new float64
        array (K + 1, n_rows); the last one is 1.
    codes : ndarray of shape (n,)
        Class of each row.
    sample_weight : ndarray of shape (n,), default=None
        Positive weights.
    centre : ndarray of shape (n_parameters,)
        The point that the ridge pulls to.
    penalty : ndarray of shape (n_parameters,)
        Strength of the ridge ``penalty @ (parameters - centre)**2`` on the summed loss.
    start : ndarray of shape (n_parameters,), default=None
        Where to start; None means the centre.
    preconditioner : ndarray of shape (n_parameters, n_parameters), default=None
        Approximate inverse of the Hessian of the penalised log-loss per row, for
        conjugate gradients. It changes the number of steps and not what is found.
    tolerance : float, default=1e-16
        The fit ends when twice the loss that can still be gained, in nats per row, is
        at most this.
    is_impossible : ndarray of bool, shape (n, K), default=None
        Classes that are impossible in their rows, and have no part in the softmax.

    Returns
    -------
    parameters : ndarray of shape (n_parameters,)
        Where the classes are separable and nothing penalises, a finite point of tiny
        loss.
    """
    loss = _PenalisedLogLoss(
        affine_map,
        features,
        codes,
        sample_weight,
        centre,
        penalty,
        tolerance,
        is_impossible,
    )
    parameters = start
    if start is None:
        parameters = centre
    # The loss chooses single precision if the ridge keeps its Hessian well conditioned.
    # After most of the steps it is switched to double precision for the last ones.
    if loss.dtype == np.float32:
        loss.preconditioner = preconditioner
        parameters, _ = _minimised(loss, parameters, _WARM_TOLERANCE)
        loss.dtype = np.float64
    parameters, twice_loss_left = _minimised(loss, parameters, tolerance)
    if twice_loss_left > _WORTH_A_WARNING:
        message = (
            f"The fit stopped with about {twice_loss_left / 2:.1g} nats a row still to"
            " be gained"
        )
        if penalty.min() == 0:
            message += (
                ": without a ridge the optimum lies at infinity where classes are"
                " separable. A positive alpha makes it finite"
            )
        warn(f"{message}.", ConvergenceWarning)
    return parameters


def _minimised(loss, parameters, tolerance):
    """Minimise a `_PenalisedLogLoss` by Newton steps from `parameters` (n_parameters,).

    The steps end when twice the loss that can still be gained is at most `tolerance`,
    or when rounding hides the gain.

    Returns
    -------
    parameters : ndarray of shape (n_parameters,)
        The parameters found.
    twice_loss_left : float
        About twice the loss that can still be gained from there, in nats per row.
    """
    current = loss.evaluate(parameters)
    for _ in range(_MAX_STEPS):
        if current <= tolerance:  # no loss is below 0
            return parameters, current
        # The decrement, gradient @ step, is about twice the loss that can be gained.
        step, decrement, residual = loss.newton_step()
        if decrement <= tolerance**0.5:
            # Close to the optimum the step can be taken without evaluating the loss:
            # log-loss is self-concordant (Bach 2010), which bounds what is left after
            # the step by the largest change of a logit.
            logit_change = loss.largest_logit_change(step)
            left_after_step = decrement * (residual + logit_change) ** 2
            if logit_change < 0.1 and left_after_step <= tolerance:
                return parameters - step, left_after_step
        # The loss cannot show a gain below its own rounding.
        if decrement <= max(tolerance, np.finfo(loss.dtype).eps * current):
            break
        parameters, loss_there = line_search(loss.evaluate, parameters, step, current)
        if loss_there is None:  # no shorter step lowers the loss
            break
        current = loss_there
    return parameters, decrement


class _PenalisedLogLoss:
    """The mean log-loss plus ridge as a function of the parameters of an affine map,
    and its Newton step.

    The parameters are those of `fit_softmax_regression`.

    Attributes
    ----------
    penalty : ndarray of shape (n_parameters,)
        Curvature of the ridge: twice its strength, over the sum of the weights.
    blocks : list of _BlockLoss
        The log-loss of each block of rows.
    dtype : type
        What the loss and its gradient are evaluated in. The Hessian, which only says
        how to get to the optimum, is in single precision throughout if there is a ridge
        that keeps it from being close to singular.
    gradient : ndarray of shape (n_parameters,)
        At the parameters of the last `evaluate`.
    is_dense : bool
        Whether the Hessian is factorised; else its products with vectors are enough.
    gradient_norm : float
        ``sqrt(gradient @ solve(gradient))`` at the last step by conjugate gradients,
        where `solve` applies the preconditioner; 1 before the first step.
    preconditioner : ndarray of shape (n_parameters, n_parameters) or None
        Approximate inverse of the Hessian, if the caller knows one.
    own_preconditioner : _Preconditioner or None
        Approximate inverse of the Hessian at this step or an earlier one, computed
        here.
    """

    def __init__(
        self,
        affine_map,
        features,
        codes,
        sample_weight,
        centre,
        penalty,
        tolerance=TOLERANCE,
        is_impossible=None,
    ):
        n_rows = len(codes)
        weight = weights_or_ones(sample_weight, n_rows)
        # The loss is a mean over the rows: weights, and with them the ridge, are
        # divided by the sum of the weights. A ridge ``penalty * deviation**2`` has the
        # curvature ``2 * penalty``.
        self.penalty = 2 * penalty / weight.sum()
        weight = np.maximum(weight / weight.sum(), _LEAST_WEIGHT)
        self.centre = centre
        self.affine_map = affine_map
        self.tolerance = tolerance
        self.blocks = self._blocks_of_rows(features, codes, weight, is_impossible)
        self.dtype = np.float64
        if self._can_be_single():
            self.dtype = np.float32
        for block in self.blocks:
            block.dtype = self.dtype
        # Above this number of parameters a factorised Hessian costs more than products
        # with it, unless there are many rows: these make each product dear.
        most_parameters = _LARGEST_DENSE_HESSIAN
        if n_rows >= _LARGEST_DENSE_HESSIAN:
            most_parameters *= 2
        self.is_dense = self.dtype == np.float64 and len(penalty) <= most_parameters
        # what `_conjugate_gradient_step` keeps from one step to the next
        self.gradient_norm = 1.0
        self.preconditioner = None
        self.own_preconditioner = None

    def _blocks_of_rows(self, features, codes, weight, is_impossible):
        """Return a list with the `_BlockLoss` of each block of rows; `weight` (n,) sums
        to 1, and the other arguments are those of `fit_softmax_regression`.
        """
        n_rows = len(codes)
        _, intercept = self.affine_map.unpacked(self.centre)
        n_classes = len(intercept)
        keeps_probabilities = n_rows * n_classes <= MOST_KEPT
        blocks = []
        # `row_blocks` expects numbers of 8 bytes, and most steps are made in single
        # precision, with 4 bytes: half the number of classes gives the right size.
        for rows in row_blocks(n_rows, (n_classes + 1) // 2):
            impossible_in_block = None
            if is_impossible is not None:
                impossible_in_block = is_impossible[rows].T
            block = _BlockLoss(
                self.affine_map,
                partial(features, rows),
                codes[rows],
                weight[rows],
                keeps_probabilities,
                impossible_in_block,
            )
            blocks.append(block)
        return blocks

    def _can_be_single(self):
        """Return whether the ridge is large enough, relative to the curvature of the
        log-loss, for a Hessian in single precision.
        """
        least_ridge = self.penalty.min()
        if least_ridge == 0:
            return False
        # The curvature by a coefficient is the mean of p (1 - p) x^2, at most a quarter
        # of the mean of x^2. The sum of the blocks' largest means is a bound for all
        # features x.
        mean_square = 0
        for block in self.blocks:
            mean_square += np.max(np.square(block.features()) @ block.weight)
        return least_ridge > _RIDGE_FOR_SINGLE_PRECISION * (mean_square / 4)

    def evaluate(self, parameters):
        """Return the loss at parameters (n_parameters,), in nats per row.

        Its gradient and the probabilities there are kept for `newton_step`.
        """
        deviation = parameters - self.centre
        rounded = parameters.astype(self.dtype)
        value = 0.5 * self.penalty @ deviation**2
        self.gradient = self.penalty * deviation
        for block in self.blocks:
            block_value, block_gradient = block.evaluate(rounded)
            value += block_value
            self.gradient += block_gradient
        return value

    def newton_step(self):
        """Return Newton's step from the parameters of the last `evaluate`.

        Returns
        -------
        step : ndarray of shape (n_parameters,)
            About ``inv(hessian) @ gradient``, to be subtracted from the parameters.
        decrement : float
            ``gradient @ step``, about twice the loss that the step gains, in nats per
            row.
        residual : float
            Relative residual of ``hessian @ step = gradient``; 0 if it was solved
            directly.
        """
        if self.is_dense:
            step, residual = self._dense_step()
        else:
            step, residual = self._conjugate_gradient_step()
        decrement = self.gradient @ step
        return step, decrement, residual

    def largest_logit_change(self, step):
        """Return the largest change of a logit, over all rows and classes, if `step`
        (n_parameters,) is added to the parameters.
        """
        return max(block.largest_logit_change(step) for block in self.blocks)

    def _dense_step(self):
        """Return Newton's step by a factorised Hessian, and its residual, 0."""
        hessian = sum(block.hessian() for block in self.blocks)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        return damped_solution(hessian, self.gradient), 0.0

    def _conjugate_gradient_step(self):
        """Return Newton's step (n_parameters,), approximately, by preconditioned
        conjugate gradients, and its relative residual.

        The preconditioner of the caller is used if there is one, otherwise one that is
        computed here.
        """
        # Each step in the precision of the Hessian, `block.dtype`, gets its own
        # preconditioner. In the last steps of a fit, in double precision with a Hessian
        # in single precision, it would hardly change: the latest one is used again.
        in_last_steps = self.dtype != self.blocks[0].dtype
        if self.own_preconditioner is None or not in_last_steps:
            self.own_preconditioner = self._new_preconditioner()
        ridge = self.penalty + _DAMPING * self.own_preconditioner.diagonal
        if self.preconditioner is None:
            solve = self.own_preconditioner.solve
        else:
            solve = self.preconditioner.__matmul__
        gradient_norm = np.sqrt(self.gradient @ solve(self.gradient))
        if gradient_norm == 0:
            return self.gradient, 0.0

        def hessian_product(direction):
            """Return the Hessian, with its ridge, times a vector (n_parameters,)."""
            product = sum(block.hessian_product(direction) for block in self.blocks)
            return product + ridge * direction

        # Eisenstat and Walker (1996): far from the optimum a rough step is as good as
        # an exact one. The relative residual that is allowed is the square of the
        # factor by which the gradient's norm has changed since the last step, at most
        # .1. The squared residual is the gain that a step misses: it need not be below
        # a hundredth of the tolerance.
        squared_shrinkage = (gradient_norm / self.gradient_norm) ** 2
        small_enough = 0.1 * self.tolerance**0.5 / gradient_norm
        residual = min(0.1, max(squared_shrinkage, small_enough))
        self.gradient_norm = gradient_norm
        return _conjugate_gradients(hessian_product, solve, self.gradient, residual)

    def _new_preconditioner(self):
        """Return the `_Preconditioner` at the parameters of the last `evaluate`."""
        second_moments = 0
        first_moments = 0
        for block in self.blocks:
            second, first = block.moments()
            second_moments = second_moments + second
            first_moments = first_moments + first
        return _Preconditioner(
            self.affine_map, second_moments, first_moments, self.penalty
        )


class _Preconditioner:
    """An approximate inverse of the Hessian, for conjugate gradients: one block per
    class, from sums over the rows.

    The block of a class is a diagonal matrix plus one of rank 1,
    ``diag(spread) + outer(mean, mean)``: of the covariance of the features only the
    diagonal, of their mean all products. Where rows are alike the mean is nearly all,
    and it also tells the slope of a class from its intercept. Without the mean such
    rows take several times as many products.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`.
    second, first : ndarray of shape (n_parameters,)
        Sums over the rows of ``w p (1 - p) x**2`` (the diagonal of the Hessian) and of
        ``w p (1 - p) x``, with x the feature of a parameter and p the probability of
        its class.
    penalty : ndarray of shape (n_parameters,)
        The curvature of the ridge.

    Attributes
    ----------
    diagonal : ndarray of shape (n_parameters,)
        The diagonal of the Hessian, 1 where it is 0.
    class_of : ndarray of int, shape (n_parameters,)
        The class that each parameter belongs to.
    spread, scaled_mean : ndarray of shape (n_parameters,)
        `spread` of the formula above, and mean / spread.
    denominator : ndarray of shape (K,)
        ``1 + sum(mean**2 / spread)`` over the parameters of each class.
    """

    def __init__(self, affine_map, second, first, penalty):
        diagonal = second + penalty
        self.diagonal = np.where(diagonal > 0, diagonal, 1)
        # The feature of an intercept is 1: its second moment is the sum of w p (1 - p)
        # over the rows, the total of the class.
        coef, total_of_class = affine_map.unpacked(second)
        # Each coefficient gets the number of its class, its index along the first axis:
        # `coef` is (K,) or (K, K).
        classes = np.arange(len(total_of_class))
        class_of_coef = np.empty(coef.shape, dtype=np.intp)
        class_of_coef.T[...] = classes
        self.class_of = affine_map.packed(class_of_coef, classes)
        # per parameter, as all that follows, (n_parameters,)
        total = np.where(total_of_class > 0, total_of_class, 1)[self.class_of]
        # The sum of w p (1 - p) x^2 is `total` times (variance of x + squared mean of
        # x): `spread` is the part of the variance, `mean` the root of the other one.
        mean = first / np.sqrt(total)
        spread = np.maximum(second - first**2 / total, _LEAST_SPREAD * second)
        self.spread = spread + penalty
        self.spread[self.spread == 0] = 1
        # Sherman and Morrison: the inverse of diag(spread) + outer(mean, mean) is
        # diag(1 / spread) - outer(scaled_mean, scaled_mean) / denominator.
        self.scaled_mean = mean / self.spread
        self.denominator = 1 + np.bincount(self.class_of, mean * self.scaled_mean)

    def solve(self, direction):
        """Return the approximate inverse of the Hessian times `direction`, both of
        shape (n_parameters,).

        For the parameters of one class it is the inverse of ``diag(spread) +
        outer(mean, mean)``, by the formula of Sherman and Morrison (1950).
        """
        # scaled_mean @ direction / denominator, for each class (K,)
        along_mean = np.bincount(self.class_of, self.scaled_mean * direction)
        along_mean /= self.denominator
        return direction / self.spread - self.scaled_mean * along_mean[self.class_of]


def _conjugate_gradients(product, solve, target, residual):
    """Solve ``matrix @ solution = target`` by preconditioned conjugate gradients
    (Hestenes and Stiefel, 1952).

    Parameters
    ----------
    product : callable
        ``product(vector)`` returns ``matrix @ vector``; the matrix is positive
        definite.
    solve : callable
        ``solve(vector)`` returns about ``inv(matrix) @ vector``: the preconditioner.
    target : ndarray of shape (d,)
        The right side.
    residual : float
        Relative residual at which to stop, in the norm
        ``sqrt(remainder @ solve(remainder))``.

    Returns
    -------
    solution : ndarray of shape (d,)
    residual : float
        The residual asked for, or 1 if the allowed number of products did not reach
        it.
    """
    solution = np.zeros_like(target)
    remainder = target.copy()  # target - matrix @ solution
    solved = solve(remainder)
    direction = solved.copy()
    squared_norm = remainder @ solved
    small_enough = residual**2 * squared_norm
    for _ in range(_MAX_PRODUCTS):
        change = product(direction)
        length = squared_norm / (direction @ change)
        solution += length * direction
        remainder -= length * change
        solved = solve(remainder)
        previous_squared_norm = squared_norm
        squared_norm = remainder @ solved
        if squared_norm <= small_enough:
            return solution, residual
        # the next direction, conjugate to those before
        direction *= squared_norm / previous_squared_norm
        direction += solved
    return solution, 1.0


class _BlockLoss:
    """The log-loss of a block of rows, small enough for the cache, and its derivatives.

    Arrays are (K, n_rows): operations run along the rows, because there are many more
    rows than classes.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`: how parameters and features give logits.
    features : callable
        Without arguments; returns the features of the rows as a new float64 array
        (K + 1, n_rows).
    codes : ndarray of int, shape (n_rows,)
        Class of each row.
    weight : ndarray of shape (n_rows,)
        Weights; those of all blocks sum to 1.
    keeps_probabilities : bool, default=True
        Whether the weighted probabilities of the last `evaluate`, and the features in
        single precision, stay in memory. False: they are computed again where the
        Hessian needs them.
    is_impossible : ndarray of bool, shape (K, n_rows), default=None
        Classes that have no part in the softmax of their row.

    Attributes
    ----------
    true_class : tuple of two ndarrays of shape (n_rows,)
        Index that selects the entry of each row's true class from an array
        (K, n_rows).
    dtype : type
        Precision of the Hessian; set by `_PenalisedLogLoss`.
    parameters : ndarray of shape (n_parameters,)
        Those of the last `evaluate`, at which the Hessian is taken.
    probability_of_others : ndarray of shape (n_rows,)
        1 minus the probability of the row's true class there.
    """

    def __init__(
        self,
        affine_map,
        features,
        codes,
        weight,
        keeps_probabilities=True,
        is_impossible=None,
    ):
        self.affine_map = affine_map
        self.features = features
        self.weight = weight
        self.keeps_probabilities = keeps_probabilities
        self.is_impossible = is_impossible
        # selects the entry of each row's true class from an array (K, n_rows)
        self.true_class = (codes, np.arange(len(codes)))
        self.dtype = np.float64

    @cached_property
    def features_in_single_precision(self):
        """The features (K + 1, n_rows) as float32."""
        return self.features().astype(np.float32)

    def evaluate(self, parameters):
        """Return the weighted sum of the log-losses of the block, and its gradient
        (n_parameters,).

        The parameters, and the weighted probabilities unless they take too much memory,
        are kept for the Hessian.
        """
        value, gradient, weighted = self._loss_and_probabilities(parameters)
        self.parameters = parameters
        self._kept_weighted = None
        if self.keeps_probabilities:
            self._kept_weighted = weighted
        return value, gradient

    @property
    def weighted(self):
        """Weight times probability (K, n_rows), at the parameters of the last
        `evaluate`.
        """
        if self._kept_weighted is not None:
            return self._kept_weighted
        rounded = self.parameters.astype(self.dtype)
        _, _, weighted = self._loss_and_probabilities(rounded)
        return weighted

    def _loss_and_probabilities(self, parameters):
        """Return the weighted sum of the log-losses of the block at `parameters`
        (n_parameters,), its gradient (n_parameters,), and weight times probability
        (K, n_rows).

        The logits, their exponentials, the weighted residuals and the weighted
        probabilities take turns in the memory of one array (K, n_rows): new memory
        would cost more time than the arithmetic.
        """
        features = self._features(parameters.dtype)
        # 1. Logits, less the largest of each row.
        logits = self.affine_map.apply(parameters, features)
        if self.is_impossible is not None:
            logits[self.is_impossible] = -np.inf
        true_logit = logits[self.true_class]
        largest = logits.max(axis=0)
        true_logit -= largest
        logits -= largest

        # 2. Their exponentials, kept well above subnormal numbers, which are slow. That
        # of the true class is left out of the sum over the others.
        likelihood = np.exp(logits, out=logits)
        np.maximum(likelihood, 1e8 * np.finfo(self.dtype).tiny, out=likelihood)
        if self.is_impossible is not None:
            likelihood[self.is_impossible] = 0
        likelihood[self.true_class] = 0
        ones = np.ones(len(likelihood), parameters.dtype)
        others = ones @ likelihood  # faster than a sum along the first axis

        # 3. The loss of a row, log(exp(true_logit) + others) - true_logit. By log1p the
        # sum of the others keeps its digits where it is small beside 1.
        row_loss = np.log1p(others + np.expm1(true_logit)) - true_logit
        value = self.weight @ row_loss

        # 4. The gradient. The residual is weight times (probability - 1) for the true
        # class, which is minus the probability of the others, and weight times
        # probability for the others.
        true_likelihood = np.exp(true_logit)
        total = true_likelihood + others
        scale = self.weight.astype(parameters.dtype) / total
        likelihood *= scale
        residual = likelihood
        residual[self.true_class] = -others * scale
        gradient = self.affine_map.adjoint(residual, features)

        # 5. Weight times probability, also for the true class.
        weighted = residual
        weighted[self.true_class] = true_likelihood * scale
        self.probability_of_others = others / total
        return value, gradient, weighted.astype(self.dtype, copy=False)

    def moments(self):
        """Return the sums over the rows of ``w p (1 - p) x**2`` and of
        ``w p (1 - p) x`` for each parameter, (n_parameters,) each; see
        `_Preconditioner`.
        """
        features = self._features(self.dtype)
        variance = self._variance(self.weighted)
        second = self.affine_map.adjoint(variance, features * features)
        first = self.affine_map.adjoint(variance, features)
        return second.astype(np.float64), first.astype(np.float64)

    def hessian(self):
        """Return the Hessian (n_parameters, n_parameters) at the parameters of the last
        `evaluate`.
        """
        weighted = self.weighted
        root = weighted / np.sqrt(self.weight)  # sqrt(w) p
        features = self._features(self.dtype)
        return self.affine_map.hessian(self._variance(weighted), root, features)

    def hessian_product(self, direction):
        """Return the Hessian, at the parameters of the last `evaluate`, times a
        direction (n_parameters,).

        Where parameters move in a direction, the logits of a row move by some z (K,),
        and the derivatives of its loss by the logits by
        ``w p (z - mean of z under p)``.
        """
        features = self._features(self.dtype)
        weighted = self.weighted  # w p, (K, n_rows)
        logit_change = self.affine_map.apply(direction.astype(self.dtype), features)
        mean = np.einsum("kn,kn->n", weighted, logit_change)  # w times the mean
        mean /= self.weight
        # in the memory of `logit_change`, which is not needed any more
        logit_change -= mean
        residual_change = np.multiply(logit_change, weighted, out=logit_change)
        return self.affine_map.adjoint(residual_change, features)

    def largest_logit_change(self, step):
        """Return the largest change of a logit of the block if `step` (n_parameters,)
        is added to the parameters.
        """
        features = self._features(self.dtype)
        logit_change = self.affine_map.apply(step.astype(self.dtype), features)
        return np.abs(logit_change).max()

    def _features(self, dtype):
        """Return the features (K + 1, n_rows) in a precision, float32 or float64.

        Those in single precision are kept from call to call, unless memory is short:
        the Hessian takes them again and again.
        """
        if dtype == np.float32 and self.keeps_probabilities:
            return self.features_in_single_precision
        return self.features().astype(dtype, copy=False)

    def _variance(self, weighted):
        """Return weight * probability * (1 - probability), (K, n_rows), from `weighted`
        (K, n_rows), which is weight * probability.
        """
        one_minus_probability = weighted / -self.weight.astype(self.dtype)
        one_minus_probability += 1
        # For the true class it is known without the rounding of a subtraction.
        one_minus_probability[self.true_class] = self.probability_of_others
        one_minus_probability *= weighted
        return one_minus_probability
