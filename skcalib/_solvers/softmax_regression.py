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
        """Return the logits (K, n)."""
        coef, intercept = parameters.reshape(2, -1, 1)
        logits = coef * features[:-1]
        logits += intercept
        return logits

    @staticmethod
    def adjoint(residual, features):
        """Return the gradient by the parameters of a sum of losses, from its
        derivatives by the logits, `residual` (K, n).
        """
        gradient_of_coef = np.vecdot(residual, features[:-1])
        gradient_of_intercept = residual @ features[-1]
        return np.concatenate((gradient_of_coef, gradient_of_intercept))

    @staticmethod
    def hessian(variance, root, features):
        """Return the Hessian (2 K, 2 K) by the parameters of a sum of losses.

        The loss of column i has the Hessian (K, K) by its logits
        ``diag(variance_i) - outer(root_i, root_i)`` outside of the diagonal, and
        `variance_i` itself on it: the difference of nearly equal numbers would lose
        digits. Both arrays are (K, n).
        """
        n_classes = len(root)
        # derivatives of the logits by slopes and intercepts, each times `root`
        both = np.concatenate((root * features[:-1], root))
        hessian = both @ both.T
        np.negative(hessian, out=hessian)
        # four quadrants: slopes or intercepts by slopes or intercepts
        quadrants = hessian.reshape(2, n_classes, 2, n_classes)
        diagonal = np.arange(n_classes)
        weighted = variance * features[:-1]
        mixed = weighted.sum(axis=1)
        quadrants[0, diagonal, 0, diagonal] = np.vecdot(weighted, features[:-1])
        quadrants[0, diagonal, 1, diagonal] = mixed
        quadrants[1, diagonal, 0, diagonal] = mixed
        quadrants[1, diagonal, 1, diagonal] = variance.sum(axis=1)
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
        """Return the logits (K, n)."""
        return parameters.reshape(-1, len(features)) @ features

    @staticmethod
    def adjoint(residual, features):
        """Return the gradient by the parameters of a sum of losses, from its
        derivatives by the logits, `residual` (K, n).
        """
        return (residual @ features.T).ravel()

    @staticmethod
    def hessian(variance, root, features):
        """Return the Hessian (n_parameters, n_parameters) of a sum of losses; see
        `DiagonalMap.hessian`.
        """
        # The entry for class k and feature i, class l and feature j, is the sum over
        # the columns of W_kl x_i x_j, with W the Hessian by the logits. It is symmetric
        # in k, l and in i, j: only the upper triangles are summed, which takes .7 of
        # the time of all products.
        class_k, class_l = np.triu_indices(len(root))
        feature_i, feature_j = np.triu_indices(len(features))
        sums = 0  # (pairs of classes, pairs of features)
        for rows in row_blocks(root.shape[1], 2 * len(feature_i)):
            covariance = -root[class_k, rows] * root[class_l, rows]
            covariance[class_k == class_l] = variance[:, rows]
            products = features[feature_i, rows] * features[feature_j, rows]
            sums += covariance @ products.T
        # axes k, i, l, j
        pair_of_classes = _pair_numbers(class_k, class_l)[:, None, :, None]
        pair_of_features = _pair_numbers(feature_i, feature_j)[:, None, :]
        hessian = sums[pair_of_classes, pair_of_features]
        return hessian.reshape(root.shape[0] * features.shape[0], -1)

    @staticmethod
    def moves(inverse, residual, features):
        """Return how much the logits of each column change if the parameters change by
        ``inverse @ gradient``, with the gradient of that column's own loss; (K, n).

        `residual` (K, n) holds the derivatives of the losses by the logits.
        """
        # (K, K + 1, n), with the first two axes flattened to the parameters
        gradients = (residual[:, None] * features).reshape(len(inverse), -1)
        changes = (inverse @ gradients).reshape(len(residual), *features.shape)
        return np.einsum("kjn,jn->kn", changes, features)


def _pair_numbers(first, second):
    """Return the symmetric table (m, m) of the number of each pair of indices in the
    lists `first` and `second`, which are those of an upper triangle.
    """
    size = first[-1] + 1
    numbers = np.arange(len(first))
    table = np.empty((size, size), dtype=np.intp)
    table[first, second] = numbers
    table[second, first] = numbers
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

    Newton's method. With a ridge, single precision gives the start, and conjugate
    gradients the steps: they need only products of the Hessian with a vector. Without
    one the Hessian, which may be close to singular, is factorised.

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
        About the inverse Hessian of the penalised log-loss per row. It changes the
        number of steps and not what is found.
    tolerance : float, default=1e-16
        Of twice the loss still to be gained, in nats per row.
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
    if loss.dtype == np.float32:
        # The ridge keeps the Hessian well conditioned: most steps are in single
        # precision, and double precision makes the last ones.
        loss.preconditioner = preconditioner
        parameters, _ = _minimised(loss, parameters, _WARM_TOLERANCE)
        loss.dtype = np.float64
    parameters, left = _minimised(loss, parameters, tolerance)
    if left > _WORTH_A_WARNING:
        message = (
            f"The fit stopped with about {left / 2:.1g} nats a row still to be gained"
        )
        if penalty.min() == 0:
            message += (
                ": without a ridge the optimum lies at infinity where classes are"
                " separable. A positive alpha makes it finite"
            )
        warn(f"{message}.", ConvergenceWarning)
    return parameters


def _minimised(loss, parameters, tolerance):
    """Return the parameters of least loss, by Newton steps from `parameters`, and about
    twice the loss that they leave, in nats per row.
    """
    current = loss.evaluate(parameters)
    for _ in range(_MAX_STEPS):
        if current <= tolerance:  # no loss is below 0
            return parameters, current
        step, decrement, residual = loss.newton_step()
        if decrement <= tolerance**0.5:
            # Bound on the gain that is left after a step, because the log-loss is
            # self-concordant (Bach 2010). The loss then need not be computed.
            reach = loss.reach(step)
            left = decrement * (residual + reach) ** 2
            if reach < 0.1 and left <= tolerance:
                return parameters - step, left
        # The loss cannot show a gain below its own rounding.
        if decrement <= max(tolerance, np.finfo(loss.dtype).eps * current):
            break
        parameters, proposed = line_search(loss.evaluate, parameters, step, current)
        if proposed is None:
            break
        current = proposed
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
    norm : float
        Of the gradient at the last step by conjugate gradients, in the norm of the
        preconditioner.
    preconditioner : ndarray of shape (n_parameters, n_parameters) or None
        About the inverse of the Hessian, if the caller knows one.
    own_preconditioner : _Preconditioner or None
        About the inverse of the Hessian at an earlier step.
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
        self.tolerance = tolerance
        weight = weights_or_ones(sample_weight, n_rows)
        # the curvature of the ridge, for a loss that is a mean over the rows
        self.centre = centre
        self.penalty = 2 * penalty / weight.sum()
        weight = np.maximum(weight / weight.sum(), _LEAST_WEIGHT)
        self.affine_map = affine_map
        _, intercept = affine_map.unpacked(centre)
        n_classes = len(intercept)
        keeps_probabilities = n_rows * n_classes <= MOST_KEPT
        # Blocks of half a megabyte in single precision.
        self.blocks = []
        for rows in row_blocks(n_rows, (n_classes + 1) // 2):
            impossible_in_block = None
            if is_impossible is not None:
                impossible_in_block = is_impossible[rows].T
            block = _BlockLoss(
                affine_map,
                partial(features, rows),
                codes[rows],
                weight[rows],
                keeps_probabilities,
                impossible_in_block,
            )
            self.blocks.append(block)
        self.dtype = np.float64
        if self._can_be_single():
            self.dtype = np.float32
        for block in self.blocks:
            block.dtype = self.dtype
        # Above this number of parameters a factorised Hessian costs too much. Many
        # rows, over which each Hessian is summed, pay for a larger one.
        largest = _LARGEST_DENSE_HESSIAN
        if n_rows >= _LARGEST_DENSE_HESSIAN:
            largest *= 2
        self.is_dense = self.dtype == np.float64 and len(penalty) <= largest
        self.norm = 1.0
        self.preconditioner = None
        self.own_preconditioner = None

    def _can_be_single(self):
        """Return whether the ridge is large enough beside the curvature for single
        precision.
        """
        least_ridge = self.penalty.min()
        if least_ridge == 0:
            return False
        # p (1 - p) is at most 1/4, and so is the curvature over the mean square of the
        # largest feature.
        mean_square = 0
        for block in self.blocks:
            mean_square += np.max(np.square(block.features()) @ block.weight)
        return least_ridge > _RIDGE_FOR_SINGLE_PRECISION * (mean_square / 4)

    def evaluate(self, parameters):
        """Return the loss at parameters; keep its gradient, and the probabilities,
        which `newton_step` needs.
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
        """Return Newton's step (n_parameters,), to be subtracted, twice the loss that
        it promises to gain, and the relative residual of the step.
        """
        if self.is_dense:
            step, residual = self._dense_step()
        else:
            step, residual = self._conjugate_gradient_step()
        decrement = self.gradient @ step
        return step, decrement, residual

    def reach(self, direction):
        """Return how far a direction moves a logit, at most."""
        return max(block.reach(direction) for block in self.blocks)

    def _dense_step(self):
        """Return Newton's step by a factorised Hessian, and its residual, 0."""
        hessian = sum(block.hessian() for block in self.blocks)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        return damped_solution(hessian, self.gradient), 0.0

    def _conjugate_gradient_step(self):
        """Return a step towards the minimum, solved for by conjugate gradients, and the
        relative residual of the solution.
        """
        # The preconditioner hardly changes in the last steps, which are in double
        # precision: that of the steps in single precision is kept for them.
        if self.own_preconditioner is None or self.dtype == self.blocks[0].dtype:
            second_moments = 0
            first_moments = 0
            for block in self.blocks:
                second, first = block.moments()
                second_moments = second_moments + second
                first_moments = first_moments + first
            self.own_preconditioner = _Preconditioner(
                self.affine_map, second_moments, first_moments, self.penalty
            )
        ridge = self.penalty + _DAMPING * self.own_preconditioner.diagonal
        if self.preconditioner is None:
            solve = self.own_preconditioner.solve
        else:
            solve = self.preconditioner.__matmul__
        norm = np.sqrt(self.gradient @ solve(self.gradient))
        if norm == 0:
            return self.gradient, 0.0

        def hessian_product(direction):
            """Return the Hessian, with its ridge, times a vector (n_parameters,)."""
            product = sum(block.hessian_product(direction) for block in self.blocks)
            return product + ridge * direction

        # Eisenstat and Walker (1996): solve only as accurately as the outer iteration
        # can use, by how much the gradient has shrunk since the last step. The squared
        # residual is the gain that is left over, so a hundredth of the tolerance is
        # small enough.
        squared_shrinkage = (norm / self.norm) ** 2
        small_enough = 0.1 * self.tolerance**0.5 / norm
        residual = min(0.1, max(squared_shrinkage, small_enough))
        self.norm = norm
        return _conjugate_gradients(hessian_product, solve, self.gradient, residual)


class _Preconditioner:
    """About the inverse of the Hessian, for conjugate gradients: one block per class,
    from sums over the rows.

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
    """

    def __init__(self, affine_map, second, first, penalty):
        diagonal = second + penalty
        self.diagonal = np.where(diagonal > 0, diagonal, 1)
        # The feature of an intercept is 1: its second moment is the class's total
        # weight, the sum of w p (1 - p).
        coef, total = affine_map.unpacked(second)
        classes = np.arange(len(total))
        # Transposed, the numbers of the classes (K,) broadcast along the last axis:
        # each coefficient gets the number of its class.
        class_of_coef = (np.zeros_like(coef, dtype=np.intp).T + classes).T
        self.class_of = affine_map.packed(class_of_coef, classes)
        total = np.where(total > 0, total, 1)[self.class_of]
        # the total weight times the variance of each feature
        spread = np.maximum(second - first**2 / total, _LEAST_SPREAD * second)
        self.spread = spread + penalty
        self.spread[self.spread == 0] = 1
        # For the inverse of diag(spread) + outer(mean, mean): mean / spread, and the
        # denominator of Sherman and Morrison's formula for each class (K,).
        mean = first / np.sqrt(total)
        self.scaled_mean = mean / self.spread
        self.denominator = 1 + np.bincount(self.class_of, mean * self.scaled_mean)

    def solve(self, direction):
        """Return the inverse times a direction (n_parameters,), by the formula of
        Sherman and Morrison (1950) for each class.
        """
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
        The relative residual, in the norm of `solve`, at which to stop.

    Returns
    -------
    solution : ndarray of shape (d,)
    residual : float
        The one given, or 1 where the most products were not enough.
    """
    solution = np.zeros_like(target)
    remainder = target.copy()  # target - matrix @ solution
    solved = solve(remainder)
    direction = solved.copy()
    square = remainder @ solved  # squared norm of the remainder
    small_enough = residual**2 * square
    for _ in range(_MAX_PRODUCTS):
        change = product(direction)
        length = square / (direction @ change)
        solution += length * direction
        remainder -= length * change
        solved = solve(remainder)
        previous_square = square
        square = remainder @ solved
        if square <= small_enough:
            return solution, residual
        direction *= square / previous_square
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
    label : tuple
        Index of each row's own class in an array (K, n_rows).
    dtype : type
        Precision of the Hessian; set by `_PenalisedLogLoss`.
    parameters : ndarray of shape (n_parameters,)
        Those of the last `evaluate`, at which the Hessian is taken.
    others : ndarray of shape (n_rows,)
        1 minus the probability of the row's own class there.
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
        self.is_impossible = is_impossible
        self.affine_map = affine_map
        self.features = features
        self.weight = weight
        self.keeps_probabilities = keeps_probabilities
        self.label = (codes, np.arange(len(codes)))
        self.dtype = np.float64

    @cached_property
    def single(self):
        """The features in single precision, kept because the Hessian takes them again
        and again.
        """
        return self.features().astype(np.float32)

    def evaluate(self, parameters):
        """Return the loss and its gradient (n_parameters,); keep the parameters, and
        the weighted probabilities unless they are too many.
        """
        value, gradient, weighted = self._evaluated(parameters)
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
        _, _, weighted = self._evaluated(self.parameters.astype(self.dtype))
        return weighted

    def _evaluated(self, parameters):
        """Return the loss of the block at some parameters, its gradient, and weight
        times probability (K, n_rows).

        One array, `likelihood`, contains the logits, then their exponentials, then the
        weighted residuals, then the weighted probabilities: memory is what takes time
        here.
        """
        features = self._features(parameters.dtype)
        # logits, less the largest of each row
        likelihood = self.affine_map.apply(parameters, features)
        if self.is_impossible is not None:
            likelihood[self.is_impossible] = -np.inf
        true = likelihood[self.label]
        top = likelihood.max(axis=0)
        true -= top
        likelihood -= top
        np.exp(likelihood, out=likelihood)
        # Subnormal numbers are slow: exponentials are kept well above them.
        np.maximum(likelihood, 1e8 * np.finfo(self.dtype).tiny, out=likelihood)
        if self.is_impossible is not None:
            likelihood[self.is_impossible] = 0
        likelihood[self.label] = 0
        # the sum over the other classes of the row
        others = np.ones(len(likelihood), parameters.dtype) @ likelihood
        # log(exp(true) + others) as log1p: where the true class has nearly all the
        # probability, the small sum of the others decides
        value = self.weight @ (np.log1p(others + np.expm1(true)) - true)
        true = np.exp(true)
        scale = self.weight.astype(parameters.dtype) / (true + others)
        likelihood *= scale
        # weight times (probability - [true class]), which for the true class is minus
        # the probability of the others
        likelihood[self.label] = -others * scale
        gradient = self.affine_map.adjoint(likelihood, features)
        likelihood[self.label] = true * scale
        self.others = others / (true + others)
        return value, gradient, likelihood.astype(self.dtype, copy=False)

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

        A direction changes the logits of a row by some z (K,), and its gradient by
        w p (z - mean of z under p).
        """
        features = self._features(self.dtype)
        weighted = self.weighted  # w p, (K, n)
        change = self.affine_map.apply(direction.astype(self.dtype), features)
        mean = np.einsum("kn,kn->n", weighted, change)
        mean /= self.weight
        change -= mean
        change *= weighted
        return self.affine_map.adjoint(change, features)

    def reach(self, direction):
        """Return how far a direction moves a logit, at most."""
        features = self._features(self.dtype)
        change = self.affine_map.apply(direction.astype(self.dtype), features)
        return np.abs(change).max()

    def _features(self, dtype):
        """Return the features (K + 1, n_rows) in a precision."""
        if dtype == np.float32 and self.keeps_probabilities:
            return self.single
        return self.features().astype(dtype, copy=False)

    def _variance(self, weighted):
        """Return weight * probability * (1 - probability), (K, n_rows), from weight *
        probability.
        """
        # 1 - probability: minus the probability, plus 1
        variance = weighted / -self.weight.astype(self.dtype)
        variance += 1
        # 1 - probability of the true class, without the rounding of the subtraction
        variance[self.label] = self.others
        variance *= weighted
        return variance
