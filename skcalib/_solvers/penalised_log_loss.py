"""The penalised log-loss of affine scaling, and its Newton step."""

from functools import partial

import numpy as np

from skcalib._input.tensors import namespace_of, widest_dtype
from skcalib._solvers.block_loss import BlockLoss
from skcalib._solvers.conjugate_gradients import Preconditioner, conjugate_gradients
from skcalib._solvers.newton import damped_factor
from skcalib._solvers.sums import blocks_of, row_weights

TOLERANCE = 1e-16  # of twice the loss still to be gained, in nats per row
_DAMPING = 1e-8  # of the Hessian's diagonal, for directions without curvature
_LEAST_WEIGHT = 1e-30  # relative to the sum: single precision has little below
_LARGEST_DENSE_HESSIAN = 500  # parameters, or twice as many where rows are no fewer
_RIDGE_FOR_SINGLE_PRECISION = 1e-6  # of the curvature
# If no more than half of this is left to be gained, in nats per row, the Hessian is
# nearly the last one, whose factor then solves for the next step with a few products.
_SMALL_GAIN = 1e-4
_FEW_PRODUCTS = 8
_LARGEST_IN_SINGLE = 1e6
# Features of so few are kept in double precision: 2 MB at most. Each step takes them
# several times.
_FEW_LOGITS = 1 << 18
# Probabilities, one per row and class: more are not kept between the loss and the
# Hessian, but computed again.
MOST_KEPT = 1 << 27


class PenalisedLogLoss:
    """The mean log-loss plus ridge as a function of the parameters of an affine map,
    and its Newton step.

    The parameters are those of `fit_softmax_regression`.

    Attributes
    ----------
    penalty : ndarray of shape (n_parameters,)
        Curvature of the ridge: twice its strength, over the sum of the weights.
    blocks : list of BlockLoss
        The log-loss of each block of rows.
    dtype, last_dtype : type
        `dtype` is what the loss and its gradient are evaluated in, `last_dtype` that of
        the last steps. The Hessian, which only says how to get to the optimum, is in
        single precision throughout if there is a ridge that keeps it from being close
        to singular.
    gradient : ndarray of shape (n_parameters,)
        At the parameters of the last `evaluate`.
    is_dense : bool
        Whether the Hessian is factorised; else its products with vectors are enough.
    solve : callable or None
        ``solve(vector)`` is the vector times the inverse of the Hessian that was last
        factorised.
    gradient_norm : float
        ``sqrt(gradient @ solve(gradient))`` at the last step by conjugate gradients,
        where `solve` applies the preconditioner; 1 before the first step.
    preconditioner : ndarray of shape (n_parameters, n_parameters) or None
        Approximate inverse of the Hessian, if the caller knows one.
    own_preconditioner : Preconditioner or None
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
        xp = namespace_of(codes)
        n_rows = codes.shape[0]
        weight = row_weights(sample_weight, codes)
        total = float(xp.sum(weight))
        # The loss is a mean over the rows: weights, and with them the ridge, are
        # divided by the sum of the weights. A ridge ``penalty * deviation**2`` has the
        # curvature ``2 * penalty``.
        self.penalty = 2 * penalty / total
        weight = xp.clip(weight / total, _LEAST_WEIGHT, 1.0)
        self.centre = centre
        self.affine_map = affine_map
        self.tolerance = tolerance
        self.blocks = self._blocks_of_rows(features, codes, weight, is_impossible)
        # that of the last steps: a device may have no other than float32
        self.last_dtype = widest_dtype(codes)
        self.dtype = self.last_dtype
        if self._can_be_single():
            self.dtype = np.float32
        self._set_dtype_of_hessian(self.dtype)
        # Above this number of parameters a factorised Hessian costs more than products
        # with it, unless there are many rows: these make each product dear.
        most_parameters = _LARGEST_DENSE_HESSIAN
        if n_rows >= _LARGEST_DENSE_HESSIAN:
            most_parameters *= 2
        self.is_dense = self.dtype == np.float64 and len(penalty) <= most_parameters
        # What `_dense_step` keeps from one step to the next: a function that solves a
        # system with the Hessian.
        self.solve = None
        # what `_conjugate_gradient_step` keeps
        self.gradient_norm = 1.0
        self.preconditioner = None
        self.own_preconditioner = None

    def _blocks_of_rows(self, features, codes, weight, is_impossible):
        """Return a list with the `BlockLoss` of each block of rows.

        ``features(rows)`` returns the features of a slice of rows, `codes` (n,) are
        the classes, and `weight` (n,) sums to 1; `is_impossible` (n, K), or None, says
        which classes have no part in the softmax of their row.
        """
        n_rows = codes.shape[0]
        _, intercept = self.affine_map.unpacked(self.centre)
        n_classes = len(intercept)
        keeps_probabilities = n_rows * n_classes <= MOST_KEPT
        blocks = []
        # `row_blocks` expects numbers of 8 bytes, and most steps are made in single
        # precision, with 4 bytes: half the number of classes gives the right size.
        for rows in blocks_of(codes, n_rows, (n_classes + 1) // 2):
            impossible_in_block = None
            if is_impossible is not None:
                impossible_in_block = is_impossible[rows, ...].T
            block = BlockLoss(
                self.affine_map,
                partial(features, rows),
                codes[rows],
                weight[rows],
                keeps_probabilities,
                n_rows * n_classes <= _FEW_LOGITS,
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
            features = block.features()
            xp = namespace_of(features)
            mean_square += float(xp.max(xp.square(features) @ block.weight))
        return least_ridge > _RIDGE_FOR_SINGLE_PRECISION * (mean_square / 4)

    def _set_dtype_of_hessian(self, dtype):
        for block in self.blocks:
            block.dtype = dtype
            vars(block).pop("features_in_single_precision", None)  # memory

    def take_first_step_in_single_precision(self):
        """Compute the first Hessian that is factorised in single precision, in less
        time, if its numbers allow it: the longest step need not be exact.
        """
        if self.is_dense:
            largest = max(block.largest_feature for block in self.blocks)
            if largest < _LARGEST_IN_SINGLE:
                self._set_dtype_of_hessian(np.float32)

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
        return step, self.gradient @ step, residual

    def _dense_step(self):
        """Return Newton's step (n_parameters,) by a factorised Hessian, and its
        relative residual.

        Near the optimum, the factor of an earlier step is the preconditioner of
        conjugate gradients: the unpenalised fit of 10,000 rows of ten classes takes .9
        of the time.
        """
        squared_norm = np.inf
        if self.solve is not None:
            squared_norm = self.gradient @ self.solve(self.gradient)
        if squared_norm <= _SMALL_GAIN:
            gradient_norm = np.sqrt(squared_norm)
            # Newton's steps square the distance. Less than a hundredth of the tolerance
            # need not be gained.
            residual = max(0.1 * self.tolerance**0.5 / gradient_norm, gradient_norm)
            step, residual = conjugate_gradients(
                self._hessian_product,
                self.solve,
                self.gradient,
                residual,
                most_products=_FEW_PRODUCTS,
            )
            if residual < 1:
                return step, residual
        self.solve = None  # its factor is as large as the Hessian
        hessian = sum(block.hessian() for block in self.blocks)
        hessian = hessian.astype(np.float64, copy=False)
        hessian[np.diag_indices_from(hessian)] += self.penalty
        self._set_dtype_of_hessian(self.dtype)
        self.solve = damped_factor(hessian)
        return self.solve(self.gradient), 0.0

    def _hessian_product(self, direction):
        """Return the Hessian, with its ridge, times a vector (n_parameters,)."""
        product = sum(block.hessian_product(direction) for block in self.blocks)
        return product + self.penalty * direction

    def largest_logit_change(self, step):
        """Return the largest change of a logit, over all rows and classes, if `step`
        (n_parameters,) is added to the parameters.
        """
        return max(block.largest_logit_change(step) for block in self.blocks)

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
        damping = _DAMPING * self.own_preconditioner.diagonal
        if self.preconditioner is None:
            solve = self.own_preconditioner.solve
        else:
            solve = self.preconditioner.__matmul__
        gradient_norm = np.sqrt(self.gradient @ solve(self.gradient))
        if gradient_norm == 0:
            return self.gradient, 0.0

        def hessian_product(direction):
            """Return the damped Hessian times a vector (n_parameters,)."""
            return self._hessian_product(direction) + damping * direction

        # Eisenstat and Walker (1996): far from the optimum a rough step is as good as
        # an exact one. The relative residual that is allowed is the square of the
        # factor by which the gradient's norm has changed since the last step, at most
        # .1. The squared residual is the gain that a step misses: it need not be below
        # a hundredth of the tolerance.
        squared_shrinkage = (gradient_norm / self.gradient_norm) ** 2
        small_enough = 0.1 * self.tolerance**0.5 / gradient_norm
        residual = min(0.1, max(squared_shrinkage, small_enough))
        self.gradient_norm = gradient_norm
        return conjugate_gradients(hessian_product, solve, self.gradient, residual)

    def _new_preconditioner(self):
        """Return the `Preconditioner` at the parameters of the last `evaluate`."""
        second_moments = 0
        first_moments = 0
        for block in self.blocks:
            second, first = block.moments()
            second_moments = second_moments + second
            first_moments = first_moments + first
        return Preconditioner(
            self.affine_map, second_moments, first_moments, self.penalty
        )
