"""How the K logits of a softmax depend on the parameters of a map, and what the
covariance of these says about the log-odds of each class.

The log-odds of class k of probabilities p have the derivatives ``(e_k - p) / (1 -
p_k)`` by the logits, where e_k is 1 for class k and 0 elsewhere. Where p_k is next to
1, ``e_k - p`` must be made of the other probabilities.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

_TINY = np.finfo(np.float64).tiny


class Shares:
    """Probabilities (K, n) of K classes in n samples, and what a class leaves.

    Attributes
    ----------
    probability : ndarray of shape (K, n)
        The probabilities.
    top : tuple of ndarray of shape (n,)
        Position of the largest probability of each sample: class and sample.
    rest : ndarray of shape (K, n)
        The sum of the other classes' probabilities.
    deviation : ndarray of shape (K, n)
        The probabilities, less 1 for the top class.
    """

    def __init__(self, probability):
        self.probability = probability
        self.top = probability.argmax(axis=0), np.arange(probability.shape[1])
        others = probability.copy()
        others[self.top] = 0.0
        rest_of_top = others.sum(axis=0)
        self.rest = 1 - probability
        self.rest[self.top] = rest_of_top
        self.deviation = others
        self.deviation[self.top] = -rest_of_top

    def variances(self, of_class, with_mean, of_mean, of_deviation):
        """Return the variances (K, n) of the log-odds from quadratic forms of the
        covariance of the logits: of e_k (K, n), of e_k with p (K, n), of p (n,) and of
        the deviation (n,).
        """
        variance = of_class - 2 * with_mean + of_mean
        variance[self.top] = of_deviation
        return variance / self.divisor

    @cached_property
    def divisor(self):
        """The squares (K, n) of the rests, which are not 0."""
        return np.maximum(self.rest, np.sqrt(_TINY)) ** 2


class OneSlope(NamedTuple):
    """Logits that are one parameter times features (n, K)."""

    features: np.ndarray

    @property
    def n_parameters(self):
        return 1

    @property
    def numbers_per_row(self):
        """Size of the largest arrays of `variance`, per row."""
        return self.features.shape[1]

    def of_rows(self, rows):
        """Return the design of some rows."""
        return OneSlope(self.features[rows])

    def combined(self, coefficient):
        """Return the derivatives (n, n_parameters) of the sum of the logits times
        coefficients (n, K).
        """
        return np.sum(coefficient * self.features, axis=1, keepdims=True)

    def of_two_classes(self):
        """Return features (d, n), and the matrix (d, n_parameters) with which they are
        the derivatives of the log-odds of the second of two classes.
        """
        return np.diff(self.features.T, axis=0), np.ones((1, 1))

    @staticmethod
    def form_of(covariance):
        """Return what `variance` takes of a covariance (n_parameters, n_parameters) of
        the parameters.
        """
        return covariance

    def variance(self, form, shares):
        """Return the variances (K, n) of the log-odds of K classes in `Shares`."""
        features = self.features.T
        features = features - features[shares.top]
        mean = np.sum(shares.deviation * features, axis=0)
        return form[0, 0] * (features - mean) ** 2 / shares.divisor


class OwnSlopes(NamedTuple):
    """Logits with a slope and an intercept for each class, of features (n, K).

    The parameters of one class follow those of another.
    """

    features: np.ndarray

    @property
    def n_parameters(self):
        return 2 * self.features.shape[1]

    numbers_per_row = n_parameters

    def of_rows(self, rows):
        """Return the design of some rows."""
        return OwnSlopes(self.features[rows])

    def combined(self, coefficient):
        """See `OneSlope`."""
        product = np.stack((coefficient * self.features, coefficient), axis=-1)
        return product.reshape(len(product), -1)

    def logits(self, parameters):
        """Return the logits (n, K) with some parameters (n_parameters,)."""
        slope, intercept = parameters.reshape(-1, 2).T
        return self.features * slope + intercept

    def of_two_classes(self):
        """See `OneSlope`."""
        first, second = self.features.T
        matrix = np.array([[-1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 1]])
        return np.stack((first, second, np.ones(len(first)))), matrix

    @staticmethod
    def form_of(covariance):
        """See `OneSlope`."""
        return covariance

    def variance(self, form, shares):
        """See `OneSlope`."""
        slope = self.features.T
        n_classes, n_rows = slope.shape
        mean = _slopes_and_intercepts(shares.probability, slope)
        deviation = _slopes_and_intercepts(shares.deviation, slope)
        with_mean = form @ mean
        of_mean = np.sum(mean * with_mean, axis=0)
        of_deviation = np.sum(deviation * (form @ deviation), axis=0)
        with_mean = with_mean.reshape(n_classes, 2, n_rows)
        of_class = form.reshape(n_classes, 2, n_classes, 2).diagonal(axis1=0, axis2=2)
        of_slope, of_both, _, of_intercept = of_class.reshape(4, n_classes, 1)
        return shares.variances(
            (of_slope * slope + 2 * of_both) * slope + of_intercept,
            slope * with_mean[:, 0] + with_mean[:, 1],
            of_mean,
            of_deviation,
        )


class SharedFeatures(NamedTuple):
    """Logits that are each a linear function, with its own parameters, of the same
    features (n, b) in `n_classes` classes.

    The parameters of one class follow those of another.
    """

    features: np.ndarray
    n_classes: int

    @classmethod
    def of_logits(cls, logits):
        """Return the design whose features are logits (n, K) and ones."""
        return cls(np.column_stack((logits, np.ones(len(logits)))), logits.shape[1])

    @property
    def n_parameters(self):
        return self.n_classes * self.features.shape[1]

    numbers_per_row = n_parameters

    def of_rows(self, rows):
        """Return the design of some rows."""
        return SharedFeatures(self.features[rows], self.n_classes)

    def combined(self, coefficient):
        """See `OneSlope`."""
        product = coefficient[:, :, None] * self.features[:, None]
        return product.reshape(len(product), -1)

    def logits(self, parameters):
        """Return the logits (n, K) with some parameters (n_parameters,)."""
        return self.features @ parameters.reshape(self.n_classes, -1).T

    def of_two_classes(self):
        """See `OneSlope`."""
        one = np.eye(self.features.shape[1])
        return self.features.T, np.hstack((-one, one))

    def form_of(self, covariance):
        """See `OneSlope`: the covariance of the logits of two classes is a quadratic
        function of the b features. Its coefficients, a row for each pair of classes,
        belong to the products of two features.
        """
        n_features = self.features.shape[1]
        one_class, other_class = np.triu_indices(self.n_classes)
        first, second = np.triu_indices(n_features)
        blocks = covariance.reshape(2 * (self.n_classes, n_features))
        blocks = blocks.transpose(0, 2, 1, 3)[one_class, other_class]
        coefficient = blocks[:, first, second] + blocks[:, second, first]
        coefficient[:, first == second] /= 2
        return coefficient

    def variance(self, form, shares):
        """See `OneSlope`."""
        # 1. The covariances of the logits of each pair of classes.
        features = np.ascontiguousarray(self.features.T)
        first, second = np.triu_indices(len(features))
        of_pair = form @ (features[first] * features[second])
        one_class, other_class = np.triu_indices(self.n_classes)
        pair = np.empty((self.n_classes, self.n_classes), dtype=np.intp)
        pair[one_class, other_class] = np.arange(len(one_class))
        pair[other_class, one_class] = pair[one_class, other_class]
        # 2. Those with the mean and with the deviation.
        with_mean = np.zeros_like(shares.probability)
        with_deviation = np.zeros_like(shares.probability)
        for k in range(self.n_classes):
            with_class = of_pair[pair[k]]
            with_mean += with_class * shares.probability[k]
            with_deviation += with_class * shares.deviation[k]
        return shares.variances(
            of_pair[pair.diagonal()],
            with_mean,
            np.sum(shares.probability * with_mean, axis=0),
            np.sum(shares.deviation * with_deviation, axis=0),
        )


def _slopes_and_intercepts(coefficient, slope):
    """Return the derivatives (2 K, n) of the sum of logits times coefficients (K, n)
    by the slopes, with features (K, n), and intercepts of the classes.
    """
    product = np.stack((coefficient * slope, coefficient), axis=1)
    return product.reshape(-1, slope.shape[1])
