"""The log-loss of a block of rows, with its first and second derivatives."""

from functools import cached_property

import numpy as np

from skcalib._input.tensors import as_array, like, namespace_of
from skcalib._rows.namespaces import exponential
from skcalib._solvers.sums import cast, column_dots, true_entries


class BlockLoss:
    """The log-loss of a block of rows, small enough for the cache, and its derivatives.

    Arrays are (K, n_rows): operations run along the rows, because there are many more
    rows than classes. They are where the features are, NumPy's or tensors on a device;
    parameters and their derivatives are NumPy's.

    Parameters
    ----------
    affine_map : type
        `DiagonalMap` or `MatrixMap`: how parameters and features give logits.
    features : callable
        Without arguments; returns the features of the rows as a new array
        (K + 1, n_rows), of float64 where the device has it.
    codes : array of int, shape (n_rows,)
        Class of each row.
    weight : array of shape (n_rows,)
        Weights; those of all blocks sum to 1.
    keeps_probabilities : bool, default=True
        Whether the weighted probabilities of the last `evaluate`, and the features in
        single precision, stay in memory. False: they are computed again where the
        Hessian needs them.
    keeps_features : bool, default=False
        Whether the features stay in memory in double precision as well.
    is_impossible : array of bool, shape (K, n_rows), default=None
        Classes that have no part in the softmax of their row.

    Attributes
    ----------
    dtype : type
        Precision of the Hessian, `np.float32` or `np.float64`; set by
        `PenalisedLogLoss`.
    parameters : ndarray of shape (n_parameters,)
        Those of the last `evaluate`, at which the Hessian is taken.
    probability_of_others : array of shape (n_rows,)
        1 minus the probability of the row's true class there.
    """

    def __init__(
        self,
        affine_map,
        features,
        codes,
        weight,
        keeps_probabilities=True,
        keeps_features=False,
        is_impossible=None,
    ):
        self.affine_map = affine_map  # from parameters and features to logits
        self.features = features  # a function without arguments
        self.weight = weight
        self.keeps_probabilities = keeps_probabilities
        self.keeps_features = keeps_features
        self.is_impossible = is_impossible
        self.codes = codes
        self.xp = namespace_of(codes)
        if self.xp is np:
            # selects the entry of each row's true class from an array (K, n_rows)
            self._true_class = (codes, np.arange(len(codes)))
        self.dtype = np.float64

    @cached_property
    def features_in_single_precision(self):
        """The features (K + 1, n_rows) as float32."""
        return cast(self.features(), np.float32)

    @cached_property
    def _kept_features(self):
        return self.features()

    @property
    def largest_feature(self):
        """The largest absolute value of a feature."""
        return float(self.xp.max(self.xp.abs(self._features(np.float64))))

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
        gradient, _ = as_array(gradient)
        return float(value), gradient

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
        xp = self.xp
        dtype = parameters.dtype
        features = self._features(dtype)
        # 1. Logits, less the largest of each row.
        logits = self.affine_map.apply(like(features, parameters), features)
        logits = self._with_impossible(logits, -np.inf)
        true_logit = true_entries(logits.T, self.codes)
        largest = xp.max(logits, axis=0)
        true_logit -= largest
        logits -= largest

        # 2. Their exponentials, kept well above subnormal numbers, which are slow. That
        # of the true class is left out of the sum over the others.
        likelihood = exponential(xp, logits)
        least = 1e8 * float(np.finfo(self.dtype).tiny)
        if xp is np:
            np.maximum(likelihood, least, out=likelihood)
        else:
            likelihood = xp.clip(likelihood, least, 1.0)
        likelihood = self._with_impossible(likelihood, 0.0)
        likelihood = self._with_true(likelihood, 0.0)
        ones = like(features, np.ones(likelihood.shape[0], dtype))
        others = ones @ likelihood  # faster than a sum along the first axis

        # 3. The loss of a row, log(exp(true_logit) + others) - true_logit. By log1p the
        # sum of the others keeps its digits where it is small beside 1.
        row_loss = xp.log1p(others + xp.expm1(true_logit)) - true_logit
        value = self.weight @ self._in_double(row_loss)

        # 4. The gradient. The residual is weight times (probability - 1) for the true
        # class, which is minus the probability of the others, and weight times
        # probability for the others.
        true_likelihood = xp.exp(true_logit)
        total = true_likelihood + others
        scale = cast(self.weight, dtype) / total
        likelihood *= scale
        residual = self._with_true(likelihood, -others * scale)
        gradient = self.affine_map.adjoint(residual, features)

        # 5. Weight times probability, also for the true class.
        weighted = self._with_true(residual, true_likelihood * scale)
        self.probability_of_others = others / total
        if dtype != self.dtype:
            weighted = cast(weighted, self.dtype)
        return value, gradient, weighted

    def moments(self):
        """Return the sums over the rows of ``w p (1 - p) x**2`` and of
        ``w p (1 - p) x`` for each parameter, (n_parameters,) each; see
        `Preconditioner`.
        """
        features = self._features(self.dtype)
        variance = self._variance(self.weighted)
        second, _ = as_array(self.affine_map.adjoint(variance, features * features))
        first, _ = as_array(self.affine_map.adjoint(variance, features))
        return second.astype(np.float64), first.astype(np.float64)

    def hessian(self):
        """Return the Hessian (n_parameters, n_parameters) at the parameters of the last
        `evaluate`.
        """
        weighted = self.weighted
        # sqrt(w) p, in single precision if the probabilities are
        root = weighted / self.xp.sqrt(cast(self.weight, self.dtype))
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
        logit_change = self._logit_change(direction, features)
        mean = column_dots(weighted, logit_change)  # w times the mean
        mean /= self._weight_as(mean)
        # in the memory of `logit_change`, which is not needed any more
        logit_change -= mean
        logit_change *= weighted
        product, _ = as_array(self.affine_map.adjoint(logit_change, features))
        return product

    def largest_logit_change(self, step):
        """Return the largest change of a logit of the block if `step` (n_parameters,)
        is added to the parameters.
        """
        change = self._logit_change(step, self._features(self.dtype))
        return float(self.xp.max(self.xp.abs(change)))

    def _logit_change(self, step, features):
        """Return how much the logits change (K, n_rows) if `step` (n_parameters,) is
        added to the parameters.
        """
        parameters = like(features, step.astype(self.dtype))
        return self.affine_map.apply(parameters, features)

    def _features(self, dtype):
        """Return the features (K + 1, n_rows) as float32 or float64. The former are
        kept if memory allows: the Hessian takes them again and again.
        """
        if dtype == np.float32 and self.keeps_probabilities:
            return self.features_in_single_precision
        if dtype == np.float32:
            return cast(self.features(), dtype)
        return self._kept_features if self.keeps_features else self.features()

    def _with_impossible(self, values, new):
        """Return values (K, n_rows), overwritten, with the number `new` for impossible
        classes.
        """
        if self.is_impossible is None:
            return values
        if self.xp is np:
            values[self.is_impossible] = new
            return values
        return self.xp.where(self.is_impossible, new, values)

    def _with_true(self, values, new):
        """Return values (K, n_rows), overwritten, with `new`, a number or an array
        (n_rows,), for the true class of each row.
        """
        if self.xp is np:
            values[self._true_class] = new
            return values
        classes = like(values, np.arange(values.shape[0]))
        return self.xp.where(classes[:, None] == self.codes[None, :], new, values)

    def _in_double(self, values):
        """Return values (n_rows,) in the precision of the weights."""
        if self.xp is np:
            return values
        return self.xp.astype(values, self.weight.dtype)

    def _weight_as(self, values):
        """Return the weights (n_rows,) in the precision of values, for tensors, which
        are not converted unasked.
        """
        if self.xp is np:
            return self.weight
        return self.xp.astype(self.weight, values.dtype)

    def _variance(self, weighted):
        """Return weight * probability * (1 - probability), (K, n_rows), from `weighted`
        (K, n_rows), which is weight * probability.
        """
        one_minus_probability = weighted / -cast(self.weight, self.dtype)
        one_minus_probability += 1
        # For the true class it is known without the rounding of a subtraction.
        others = cast(self.probability_of_others, self.dtype)
        one_minus_probability = self._with_true(one_minus_probability, others)
        one_minus_probability *= weighted
        return one_minus_probability
