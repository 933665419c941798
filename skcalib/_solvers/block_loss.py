"""The log-loss of a block of rows, with its first and second derivatives."""

from functools import cached_property

import numpy as np


class BlockLoss:
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
        Precision of the Hessian; set by `PenalisedLogLoss`.
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
        `Preconditioner`.
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
