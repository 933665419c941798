"""Multinomial logistic regression that starts from given logits and is held near them: the engine of affine scaling."""

import warnings

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from skcalib._blocks import row_blocks
from skcalib.recalibrators._logistic import line_search

_MAX_STEPS = 60
_MAX_PRODUCTS = 500  # of the Hessian with a vector, in one step
_TOLERANCE = 1e-14  # of the Newton decrement, twice the loss still to be gained, in nats a row
_WORTH_A_WARNING = 1e-9
_DAMPING = 1e-8


class DiagonalMap:
    """The linear map from slopes and intercepts (2 K numbers) to logits (n, K), and its adjoint."""

    def __init__(self, features):
        self.features = features
        self.identity = np.ones(features.shape[1])

    def unpacked(self, parameters):
        return np.split(parameters, 2)

    def apply(self, coef, intercept):
        logits = self.features * coef
        logits += intercept
        return logits

    def adjoint(self, residual):
        return np.concatenate((np.einsum("ij,ij->j", residual, self.features), residual.sum(axis=0)))

    def weighted_squares(self, weight):
        return np.concatenate((np.einsum("ij,ij,ij->j", weight, self.features, self.features), weight.sum(axis=0)))


class MatrixMap:
    """The linear map from a matrix and intercepts (K K + K numbers) to logits (n, K), and its adjoint."""

    def __init__(self, features):
        self.features = features
        self.identity = np.eye(features.shape[1])

    def unpacked(self, parameters):
        n_classes = len(self.identity)
        return parameters[:-n_classes].reshape(n_classes, n_classes), parameters[-n_classes:]

    def apply(self, coef, intercept):
        logits = self.features @ coef.T
        logits += intercept
        return logits

    def adjoint(self, residual):
        return np.concatenate(((residual.T @ self.features).ravel(), residual.sum(axis=0)))

    def weighted_squares(self, weight):
        return np.concatenate(((weight.T @ self.features**2).ravel(), weight.sum(axis=0)))


def fit_softmax_regression(affine_map, start, codes, sample_weight, penalty):
    """Return the parameters whose logits, added to those of `start`, have the least penalised log-loss.

    Newton's method, with steps from conjugate gradients: the Hessian is only needed as a product with a vector.
    """
    loss = _PenalisedLogLoss(affine_map, start, codes, sample_weight, penalty)
    parameters = np.zeros(len(penalty))
    current = loss.value(parameters)
    for _ in range(_MAX_STEPS):
        step, decrement = loss.newton_step(parameters)
        parameters, proposed = line_search(loss.value, parameters, step, current)
        if proposed >= current or decrement <= _TOLERANCE:
            break
        current = proposed
    if decrement > _WORTH_A_WARNING:
        warnings.warn(
            f"The fit stopped with about {decrement / 2:.1g} nats a row still to be gained: without a ridge the "
            "optimum lies at infinity where classes are separable. A positive strength makes it finite.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return parameters


class _PenalisedLogLoss:
    """The mean log-loss plus ridge as a function of the parameters of an affine map, and its Newton step."""

    def __init__(self, affine_map, start, codes, sample_weight, penalty):
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight
        self.penalty = 2 * penalty / weight.sum()  # the curvature of the ridge
        weight = weight / weight.sum()
        self.blocks = [
            _BlockLoss(type(affine_map)(affine_map.features[rows]), start[rows], codes[rows], weight[rows])
            for rows in row_blocks(*start.shape)
        ]

    def value(self, parameters):
        return sum(block.value(parameters) for block in self.blocks) + 0.5 * self.penalty @ parameters**2

    def newton_step(self, parameters):
        """Return Newton's step and twice the loss that it promises to gain."""
        gradient, curvature = np.sum([block.derivatives(parameters) for block in self.blocks], axis=0)
        gradient += self.penalty * parameters
        curvature += self.penalty
        curvature[curvature == 0] = 1
        # Directions that change no probability have no curvature: a little is added, for the step alone.
        ridge = self.penalty + _DAMPING * curvature

        def hessian_product(direction):
            return sum(block.hessian_product(direction) for block in self.blocks) + ridge * direction

        norm = np.sqrt(gradient @ (gradient / curvature))
        if norm == 0:
            return gradient, 0.0
        shape = (len(parameters), len(parameters))
        step, _ = cg(
            LinearOperator(shape, matvec=hessian_product),
            gradient,
            rtol=min(0.1, np.sqrt(norm)),
            maxiter=_MAX_PRODUCTS,
            M=LinearOperator(shape, matvec=lambda direction: direction / curvature),
        )
        return step, gradient @ step


class _BlockLoss:
    """The log-loss of a block of rows, small enough for the cache, and its derivatives."""

    def __init__(self, affine_map, start, codes, weight):
        self.affine_map, self.weight = affine_map, weight
        self.label = np.arange(len(codes)), codes
        self.start = self._from_label(start.copy())

    def value(self, parameters):
        likelihood, top = self._likelihood(parameters)
        likelihood[self.label] = 0
        # log(exp(-top) + the others) as log1p, since of a sure and right row only the others count
        return self.weight @ (top + np.log1p(likelihood.sum(axis=1) + np.expm1(-top)))

    def derivatives(self, parameters):
        """Return the gradient and the diagonal of the Hessian, and keep the probabilities for its products."""
        probability, _ = self._likelihood(parameters)
        probability /= probability.sum(axis=1, keepdims=True)
        self.probability, self.weighted = probability, self.weight[:, None] * probability
        residual = self.weighted.copy()  # weight times (probability - [label])
        residual[self.label] = 0
        residual[self.label] = -residual.sum(axis=1)  # from the others, which are the smaller
        return self.affine_map.adjoint(residual), self.affine_map.weighted_squares(self.weighted * (1 - probability))

    def hessian_product(self, direction):
        """Return the Hessian, at the parameters of the last `derivatives`, times a direction."""
        change = self._from_label(self.affine_map.apply(*self.affine_map.unpacked(direction)))
        change -= np.vecdot(self.probability, change)[:, None]
        change *= self.weighted
        return self.affine_map.adjoint(change)

    def _likelihood(self, parameters):
        """Return the likelihood of each class relative to that of the best one, and its logit above the label's."""
        logits = self._from_label(self.affine_map.apply(*self.affine_map.unpacked(parameters)))
        logits += self.start
        top = logits.max(axis=1)
        logits -= top[:, None]
        return np.exp(logits, out=logits), top

    def _from_label(self, logits):
        """Return the logits, in place, minus that of each row's label: a sure and right row then loses no digits."""
        logits -= logits[self.label][:, None]
        return logits
