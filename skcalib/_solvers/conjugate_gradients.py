"""Conjugate gradients for the Newton step of affine scaling, with a preconditioner."""

import numpy as np

_MAX_PRODUCTS = 500  # of the Hessian with a vector, in one step
_LEAST_SPREAD = 1e-3  # of a feature about its mean, relative to its square


class Preconditioner:
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


def conjugate_gradients(product, solve, target, residual, most_products=_MAX_PRODUCTS):
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
    most_products : int, default=500
        The number of products after which to give up.

    Returns
    -------
    solution : ndarray of shape (d,)
    residual : float
        The relative residual: that asked for, or 1 if it was not reached with
        `most_products`.
    """
    solution = np.zeros_like(target)
    remainder = target.copy()  # target - matrix @ solution
    solved = solve(remainder)
    direction = solved.copy()
    squared_norm = remainder @ solved
    small_enough = residual**2 * squared_norm
    for _ in range(most_products):
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
