"""How the K logits of a softmax depend on the parameters of a map, and what the
covariance of these says about the log-odds of each class.

The log-odds of class k of probabilities p have the derivatives ``(e_k - p) / (1 -
p_k)`` by the logits, where e_k is 1 for class k and 0 elsewhere. Where p_k is next to
1, ``e_k - p`` must be made of the other probabilities.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from skcalib._intervals.sandwich import quadratic_form

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
        """Return the variances (K, n) of the logit of each class less the mean logit,
        from quadratic forms of the covariance of the logits: of e_k (K, n), of e_k with
        p (K, n), of p (n,) and of the deviation (n,).
        """
        variance = of_class - 2 * with_mean
        variance += of_mean
        variance[self.top] = of_deviation
        return variance

    def errors(self, variance):
        """Return the standard errors (K, n) of the log-odds from such variances, where
        rounding may have left less than 0.
        """
        return np.sqrt(np.maximum(variance, 0.0)) / np.maximum(self.rest, _TINY)


class OneFactor(NamedTuple):
    """Logits (n, K) of which each row has a factor: the logarithm of the factor is
    linear, with the parameters, in features (n, d).
    """

    scaled: np.ndarray
    features: np.ndarray

    @property
    def n_parameters(self):
        return self.features.shape[1]

    @property
    def n_classes(self):
        return self.scaled.shape[1]

    @property
    def numbers_per_row(self):
        """Size of the largest arrays of `variance`, per row."""
        return max(self.n_classes, self.n_parameters)

    def of_rows(self, rows):
        """Return the design of some rows."""
        return OneFactor(self.scaled[rows], self.features[rows])

    def combined(self, coefficient):
        """Return the derivatives (n, n_parameters) of the sum of the logits times
        coefficients (n, K).
        """
        total = np.einsum("nk,nk->n", coefficient, self.scaled)
        return total[:, None] * self.features

    def of_two_classes(self):
        """Return features (d, n), and the matrix (d, n_parameters) with which they are
        the derivatives of the log-odds of the second of two classes.
        """
        log_odds = np.diff(self.scaled.T, axis=0)
        return log_odds * self.features.T, np.eye(self.n_parameters)

    @staticmethod
    def form_of(covariance):
        """Return what `variance` takes of a covariance (n_parameters, n_parameters) of
        the parameters.
        """
        return covariance

    def variance(self, form, shares):
        """Return the variances (K, n) of `Shares.variances`."""
        scaled = self.scaled.T
        scaled = scaled - scaled[shares.top]
        mean = _summed(shares.deviation, scaled)
        return quadratic_form(form, self.features.T) * (scaled - mean) ** 2


class OwnSlopes(NamedTuple):
    """Logits with a slope and an intercept for each class, of features (n, K).

    The parameters of one class follow those of another.
    """

    features: np.ndarray

    @property
    def n_classes(self):
        return self.features.shape[1]

    @property
    def n_parameters(self):
        return 2 * self.n_classes

    numbers_per_row = n_parameters

    def of_rows(self, rows):
        """Return the design of some rows."""
        return OwnSlopes(self.features[rows])

    def combined(self, coefficient):
        """See `OneFactor`."""
        product = np.stack((coefficient * self.features, coefficient), axis=-1)
        return product.reshape(len(product), -1)

    def logits(self, parameters):
        """Return the logits (n, K) with some parameters (n_parameters,)."""
        slope, intercept = parameters.reshape(-1, 2).T
        return self.features * slope + intercept

    def of_two_classes(self):
        """See `OneFactor`."""
        first, second = self.features.T
        matrix = np.array([[-1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 1]])
        return np.stack((first, second, np.ones(len(first)))), matrix

    @staticmethod
    def form_of(covariance):
        """See `OneFactor`: the slopes before the intercepts."""
        order = np.arange(len(covariance)).reshape(-1, 2).T.ravel()
        return covariance[np.ix_(order, order)]

    def variance(self, form, shares):
        """See `OneFactor`."""
        slope = self.features.T
        n_classes = len(slope)
        top, _ = shares.top
        # 1. The covariances of the parameters with the sum of the logits times the
        # deviation, and with the mean logit: that sum and the logit of the top class.
        deviation = np.concatenate((shares.deviation * slope, shares.deviation))
        with_deviation = form @ deviation
        with_mean = form[:, :n_classes].take(top, axis=1)
        with_mean *= slope[shares.top]
        with_mean += form[:, n_classes:].take(top, axis=1)
        with_mean += with_deviation
        # 2. Those of the logits.
        with_mean = slope * with_mean[:n_classes] + with_mean[n_classes:]
        of_slope, of_intercept = form.diagonal().reshape(2, n_classes, 1)
        of_both = form[:n_classes, n_classes:].diagonal()[:, None]
        return shares.variances(
            (of_slope * slope + 2 * of_both) * slope + of_intercept,
            with_mean,
            _summed(shares.probability, with_mean),
            _summed(deviation, with_deviation),
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
        """See `OneFactor`."""
        product = coefficient[:, :, None] * self.features[:, None]
        return product.reshape(len(product), -1)

    def logits(self, parameters):
        """Return the logits (n, K) with some parameters (n_parameters,)."""
        return self.features @ parameters.reshape(self.n_classes, -1).T

    def of_two_classes(self):
        """See `OneFactor`."""
        one = np.eye(self.features.shape[1])
        return self.features.T, np.hstack((-one, one))

    def form_of(self, covariance):
        """See `OneFactor`: the covariance of the logits of two classes is a quadratic
        function of the b features. Its coefficients, a row for each pair of classes,
        belong to the products of two features.
        """
        n_features = self.features.shape[1]
        one_class, other_class = _pairs(self.n_classes)
        first, second = _pairs(n_features)
        blocks = covariance.reshape(2 * (self.n_classes, n_features))
        blocks = blocks.transpose(0, 2, 1, 3)[one_class, other_class]
        coefficient = blocks[:, first, second] + blocks[:, second, first]
        coefficient[:, first == second] /= 2
        return coefficient

    def variance(self, form, shares):
        """See `OneFactor`."""
        # 1. The covariances of the logits of each pair of classes.
        features = np.ascontiguousarray(self.features.T)
        first, second = _pairs(len(features))
        of_pair = form @ (features[first] * features[second])
        position = _positions(self.n_classes)
        # 2. Those with the sum of the logits times the deviation, and with the mean
        # logit: that sum and the logit of the top class.
        of_two = of_pair[position]
        with_deviation = np.einsum("jkn,kn->jn", of_two, shares.deviation)
        top, row = shares.top
        with_mean = with_deviation + of_pair[position[:, top], row]
        return shares.variances(
            of_pair[position.diagonal()],
            with_mean,
            _summed(shares.probability, with_mean),
            _summed(shares.deviation, with_deviation),
        )


def _summed(one, other):
    """Return the sums (n,) of the products of two arrays (d, n) over their rows."""
    return np.einsum("dn,dn->n", one, other)


@cache
def _pairs(n):
    """Return the first and the second of each pair of n numbers, which may be equal."""
    return np.triu_indices(n)


@cache
def _positions(n):
    """Return the position (n, n) of each pair in `_pairs`."""
    first, second = _pairs(n)
    position = np.empty((n, n), dtype=np.intp)
    position[first, second] = position[second, first] = np.arange(len(first))
    return position
