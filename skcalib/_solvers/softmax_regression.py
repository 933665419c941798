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
TOLERANCE = 1e-16  # of twice the loss still to be gained, in nats a row
_WARM_TOLERANCE = 1e-7  # of the fit in single precision that gives the start
_WORTH_A_WARNING = 1e-9
_DAMPING = 1e-8
_LEAST_SPREAD = 1e-3  # of a feature about its mean, relative to its square
_LEAST_WEIGHT = 1e-30  # relative to the sum: single precision has little below
_LARGEST_DENSE_HESSIAN = 500  # parameters, or twice as many where rows are no fewer
_RIDGE_FOR_SINGLE_PRECISION = 1e-6  # of the curvature
# numbers: of more logits the probabilities are computed again where they are needed
MOST_KEPT = 1 << 27


class DiagonalMap:
    """The linear map from a slope and an intercept a class to logits, and its adjoint.

    Features are (K + 1, n), the last of them 1; logits are (K, n).
    """

    @classmethod
    def identity(cls, n_classes):
        return cls.packed(np.ones(n_classes), np.zeros(n_classes))

    @staticmethod
    def packed(coef, intercept):
        return np.concatenate((coef, intercept))

    @staticmethod
    def unpacked(parameters):
        return np.split(parameters, 2)

    @staticmethod
    def apply(parameters, features):
        coef, intercept = parameters.reshape(2, -1, 1)
        logits = coef * features[:-1]
        logits += intercept
        return logits

    @staticmethod
    def adjoint(residual, features):
        return np.concatenate(
            (np.vecdot(residual, features[:-1]), residual @ features[-1])
        )

    @staticmethod
    def hessian(variance, root, features):
        """Return the sum over the columns of the derivatives of
        ``diag(variance) - outer(root, root)``, K by K each.

        The diagonal of that matrix is given by `variance` alone: it is the difference
        of nearly equal numbers.
        """
        both = np.concatenate((root * features[:-1], root))
        hessian = both @ both.T
        np.negative(hessian, out=hessian)
        quadrants = hessian.reshape(2, len(root), 2, len(root))
        diagonal = np.arange(len(root))
        weighted = variance * features[:-1]
        quadrants[0, diagonal, 0, diagonal] = np.vecdot(weighted, features[:-1])
        quadrants[0, diagonal, 1, diagonal] = quadrants[1, diagonal, 0, diagonal] = (
            weighted.sum(axis=1)
        )
        quadrants[1, diagonal, 1, diagonal] = variance.sum(axis=1)
        return hessian

    @staticmethod
    def moves(inverse, residual, features):
        """Return how the logits of each column move by a matrix times the adjoint of
        its own residual, (K, n).
        """
        x = features[:-1]
        coef, intercept = np.split(
            inverse @ np.concatenate((residual * x, residual)), 2
        )
        return coef * x + intercept


class MatrixMap:
    """The linear map from a matrix, with a column of intercepts, to logits, and its
    adjoint.

    Features are (K + 1, n), the last of them 1; logits are (K, n).
    """

    @classmethod
    def identity(cls, n_classes):
        return cls.packed(np.eye(n_classes), np.zeros(n_classes))

    @staticmethod
    def packed(coef, intercept):
        return np.column_stack((coef, intercept)).ravel()

    @staticmethod
    def unpacked(parameters):
        # of K (K + 1) numbers
        matrix = parameters.reshape(math.isqrt(len(parameters)), -1)
        return matrix[:, :-1], matrix[:, -1]

    @staticmethod
    def apply(parameters, features):
        return parameters.reshape(-1, len(features)) @ features

    @staticmethod
    def adjoint(residual, features):
        return (residual @ features.T).ravel()

    @staticmethod
    def hessian(variance, root, features):
        """Return the sum over the columns of the derivatives of
        ``diag(variance) - outer(root, root)``, K by K each.
        """
        classes = np.triu_indices(len(root))
        columns = np.triu_indices(len(features))
        # one for each pair of classes and pair of features: .7 of the time of a product
        # of all with all
        sums = 0
        for rows in row_blocks(root.shape[1], 2 * len(columns[0])):
            covariance = -root[classes[0], rows] * root[classes[1], rows]
            covariance[classes[0] == classes[1]] = variance[:, rows]
            sums += (
                covariance @ (features[columns[0], rows] * features[columns[1], rows]).T
            )
        hessian = sums[_square(classes)[:, None, :, None], _square(columns)[:, None, :]]
        return hessian.reshape(root.shape[0] * features.shape[0], -1)

    @staticmethod
    def moves(inverse, residual, features):
        """Return how the logits of each column move by a matrix times the adjoint of
        its own residual, (K, n).
        """
        gradients = (residual[:, None] * features).reshape(len(inverse), -1)
        return np.einsum(
            "kjn,jn->kn",
            (inverse @ gradients).reshape(len(residual), *features.shape),
            features,
        )


def _square(pairs):
    """Return the symmetric table that names for two indices their place among the pairs
    of an upper triangle.
    """
    table = np.empty((pairs[0][-1] + 1,) * 2, dtype=np.intp)
    table[pairs] = table[pairs[::-1]] = np.arange(len(pairs[0]))
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
        About the inverse Hessian of the penalised log-loss a row. It changes the number
        of steps and not what is found.
    tolerance : float, default=1e-16
        Of twice the loss still to be gained, in nats a row.
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
    """Return the parameters of least loss, by Newton steps, and about twice the loss
    that they leave.
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
        # less than the loss can show
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
    near : _Preconditioner or None
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
        n_classes = len(affine_map.unpacked(centre)[1])
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
        self.norm = 1.0  # of the gradient at the last step by conjugate gradients
        self.preconditioner = None  # the one that was given
        self.near = None  # and that of the last step

    def _can_be_single(self):
        """Return whether the ridge is large enough beside the curvature for single
        precision.
        """
        least = self.penalty.min()
        if least == 0:
            return False
        # at most
        curvature = 0
        for block in self.blocks:
            curvature += np.max(np.square(block.features()) @ block.weight)
        curvature = curvature / 4
        return least > _RIDGE_FOR_SINGLE_PRECISION * curvature

    def evaluate(self, parameters):
        """Return the loss, and keep its gradient, and the probabilities for the
        Hessian.
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
        """Return Newton's step, twice the loss that it promises to gain, and the
        relative residual.
        """
        step, residual = (
            self._dense_step() if self.is_dense else self._conjugate_gradient_step()
        )
        return step, self.gradient @ step, residual

    def reach(self, direction):
        """Return how far a direction moves a logit, at most."""
        return max(block.reach(direction) for block in self.blocks)

    def _dense_step(self):
        hessian = sum(block.hessian() for block in self.blocks)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        return damped_solution(hessian, self.gradient), 0.0

    def _conjugate_gradient_step(self):
        """Return a step towards the minimum, solved for by conjugate gradients, and the
        relative residual of the solution.
        """
        # in the last steps it hardly changes
        if self.near is None or self.dtype == self.blocks[0].dtype:
            second = first = 0
            for block in self.blocks:
                second_of_block, first_of_block = block.moments()
                second = second + second_of_block
                first = first + first_of_block
            self.near = _Preconditioner(self.affine_map, second, first, self.penalty)
        ridge = self.penalty + _DAMPING * self.near.diagonal
        if self.preconditioner is None:
            solve = self.near.solve
        else:
            solve = self.preconditioner.__matmul__
        norm = np.sqrt(self.gradient @ solve(self.gradient))
        if norm == 0:
            return self.gradient, 0.0

        def hessian_product(direction):
            product = sum(block.hessian_product(direction) for block in self.blocks)
            return product + ridge * direction

        # Eisenstat and Walker (1996): solve only as accurately as the outer iteration
        # can use. The squared residual is the gain that is left over, so a hundredth of
        # the tolerance is small enough.
        shrunk = (norm / self.norm) ** 2
        enough = 0.1 * self.tolerance**0.5 / norm
        residual = min(0.1, max(shrunk, enough))
        self.norm = norm
        return _conjugate_gradients(hessian_product, solve, self.gradient, residual)


class _Preconditioner:
    """About the inverse of the Hessian, for conjugate gradients: a block a class, from
    sums over the rows.

    The block of a class is the covariance of its features, of which the diagonal is
    kept, plus their mean times itself, which is kept whole: where rows are alike the
    mean is nearly all, and it also tells the slope of a class from its intercept.
    Without the mean such rows take several times as many products.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`.
    second, first : ndarray of shape (n_parameters,)
        The diagonal of the Hessian, and the sums that belong to each feature and the
        intercept of its class.
    penalty : ndarray of shape (n_parameters,)
        The curvature of the ridge.
    """

    def __init__(self, affine_map, second, first, penalty):
        self.diagonal = np.where(second + penalty > 0, second + penalty, 1)
        coef, total = affine_map.unpacked(second)  # the feature of the intercept is 1
        classes = np.arange(len(total))
        # The class that each parameter belongs to.
        self.owner = affine_map.packed(
            (np.zeros_like(coef, dtype=np.intp).T + classes).T, classes
        )
        total = np.where(total > 0, total, 1)[self.owner]
        self.spread = (
            np.maximum(second - first**2 / total, _LEAST_SPREAD * second) + penalty
        )
        self.spread[self.spread == 0] = 1
        mean = first / np.sqrt(total)
        self.scaled = mean / self.spread
        self.size = 1 + np.bincount(self.owner, mean * self.scaled)

    def solve(self, direction):
        """Return the inverse times a direction (Sherman and Morrison, 1950)."""
        along = np.bincount(self.owner, self.scaled * direction) / self.size
        return direction / self.spread - self.scaled * along[self.owner]


def _conjugate_gradients(product, solve, target, residual):
    """Return the vector whose product with a matrix is the target, and the relative
    residual, in the norm of `solve`.

    `solve` is nearly the inverse of the matrix. The residual is 1 where the products
    that may be taken do not do.
    """
    found = np.zeros_like(target)
    left = target.copy()
    solved = solve(left)
    direction = solved.copy()
    square = left @ solved
    enough = residual**2 * square
    for _ in range(_MAX_PRODUCTS):
        change = product(direction)
        length = square / (direction @ change)
        found += length * direction
        left -= length * change
        solved = solve(left)
        before = square
        square = left @ solved
        if square <= enough:
            return found, residual
        direction *= square / before
        direction += solved
    return found, 1.0


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
        # The index of each row's own class in an array (K, n_rows).
        self.label = codes, np.arange(len(codes))
        self.dtype = np.float64  # of the Hessian; set from outside

    @cached_property
    def single(self):
        """The features in single precision, kept because the Hessian takes them again
        and again.
        """
        return self.features().astype(np.float32)

    def evaluate(self, parameters):
        """Return the loss and its gradient, and keep the weighted probabilities, or the
        parameters that make them.
        """
        value, gradient, weighted = self._evaluated(parameters)
        self.at = parameters
        self.kept = weighted if self.keeps_probabilities else None
        return value, gradient

    @property
    def weighted(self):
        """The weighted probabilities at the parameters of the last `evaluate`."""
        if self.kept is None:
            return self._evaluated(self.at.astype(self.dtype))[2]
        return self.kept

    def _evaluated(self, parameters):
        """Return the loss of the block, its gradient, and the weighted probabilities
        (K, n) at some parameters.

        One array holds the log-likelihoods, then their exponentials, then the
        residuals: memory is what takes time here.
        """
        features = self._features(parameters.dtype)
        likelihood = self.affine_map.apply(parameters, features)
        if self.is_impossible is not None:
            likelihood[self.is_impossible] = -np.inf
        true = likelihood[self.label]
        top = likelihood.max(axis=0)
        true -= top
        likelihood -= top
        np.exp(likelihood, out=likelihood)
        # subnormal numbers are slow
        np.maximum(likelihood, 1e8 * np.finfo(self.dtype).tiny, out=likelihood)
        if self.is_impossible is not None:
            likelihood[self.is_impossible] = 0
        likelihood[self.label] = 0
        others = np.ones(len(likelihood), parameters.dtype) @ likelihood
        # log(exp(true) + the others) as log1p, since of a sure and right row only the
        # others count
        value = self.weight @ (np.log1p(others + np.expm1(true)) - true)
        true = np.exp(true)
        scale = self.weight.astype(parameters.dtype) / (true + others)
        likelihood *= scale
        likelihood[self.label] = -others * scale  # weight times (probability - [label])
        gradient = self.affine_map.adjoint(likelihood, features)
        likelihood[self.label] = true * scale
        self.others = others / (true + others)
        return value, gradient, likelihood.astype(self.dtype, copy=False)

    def moments(self):
        """Return the diagonal of the Hessian at the last parameters, and its part for
        the features themselves.
        """
        features = self._features(self.dtype)
        variance = self._variance(self.weighted)
        second = self.affine_map.adjoint(variance, features * features)
        first = self.affine_map.adjoint(variance, features)
        return second.astype(np.float64), first.astype(np.float64)

    def hessian(self):
        """Return the Hessian, at the parameters of the last `evaluate`."""
        weighted = self.weighted
        root = weighted / np.sqrt(self.weight)
        return self.affine_map.hessian(
            self._variance(weighted), root, self._features(self.dtype)
        )

    def hessian_product(self, direction):
        """Return the Hessian, at the parameters of the last `evaluate`, times a
        direction.

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
        return np.abs(
            self.affine_map.apply(direction.astype(self.dtype), features)
        ).max()

    def _features(self, dtype):
        if dtype == np.float32 and self.keeps_probabilities:
            return self.single
        return self.features().astype(dtype, copy=False)

    def _variance(self, weighted):
        """Return weight * probability * (1 - probability)."""
        variance = weighted / -self.weight.astype(self.dtype)
        variance += 1
        variance[self.label] = self.others
        variance *= weighted
        return variance
