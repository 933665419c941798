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


class ClassProbabilities:
    """Probabilities of K classes in n samples, with differences that do not round where
    a probability is next to 1.

    Attributes
    ----------
    values : ndarray of shape (K, n)
        The probabilities p.
    top : tuple of ndarray of shape (n,)
        Index of the largest probability of each sample: class and sample.
    of_others : ndarray of shape (K, n)
        The sum 1 - p_k of the other classes' probabilities.
    minus_top : ndarray of shape (K, n)
        p - e_top: the probabilities, less 1 for the top class of each sample.
    """

    def __init__(self, values):
        self.values = values
        self.top = values.argmax(axis=0), np.arange(values.shape[1])
        # 1 less a probability next to 1 would be rounding: of the top class, the other
        # probabilities are summed instead.
        without_top = values.copy()
        without_top[self.top] = 0.0
        others_of_top = without_top.sum(axis=0)
        self.of_others = 1 - values
        self.of_others[self.top] = others_of_top
        self.minus_top = without_top
        self.minus_top[self.top] = -others_of_top

    def variances(self, of_logit, with_mean, of_mean, of_minus_top):
        """Return the variances (K, n) of the logit of each class less the mean logit
        ``p @ logits``.

        Parameters
        ----------
        of_logit : ndarray of shape (K, n)
            Variance of each logit.
        with_mean : ndarray of shape (K, n)
            Covariance of each logit with the mean logit.
        of_mean, of_minus_top : ndarray of shape (n,)
            Variance of the mean logit, and of ``(p - e_top) @ logits``: the mean logit
            less that of the top class.
        """
        variance = of_logit - 2 * with_mean
        variance += of_mean
        variance[self.top] = of_minus_top  # the other sum would cancel to rounding
        return variance

    def errors(self, variance):
        """Return the standard errors (K, n) of the log-odds from such variances, where
        rounding may have left less than 0.
        """
        deviation = np.sqrt(np.maximum(variance, 0.0))
        return deviation / np.maximum(self.of_others, _TINY)


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
        """Return the derivatives (n, n_parameters), by the parameters, of the sum of
        each row's logits times coefficients (n, K).
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
    def prepared(covariance):
        """Return the covariance (n_parameters, n_parameters) of the parameters in the
        form in which `variance` takes it, made once for all rows: here itself.
        """
        return covariance

    def variance(self, covariance, probabilities):
        """Return the variances (K, n) of the logit of each class less the mean logit,
        from a `prepared` covariance and `ClassProbabilities`.
        """
        # Logits less that of the top class have the same differences from their mean.
        from_top = self.scaled.T - self.scaled.T[probabilities.top]
        mean = _summed(probabilities.minus_top, from_top)
        of_log_factor = quadratic_form(covariance, self.features.T)
        return of_log_factor * (from_top - mean) ** 2


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
        """Return the derivatives (n, n_parameters), by the parameters, of the sum of
        each row's logits times coefficients (n, K).
        """
        product = np.stack((coefficient * self.features, coefficient), axis=-1)
        return product.reshape(len(product), -1)

    def logits(self, parameters):
        """Return the logits (n, K) with some parameters (n_parameters,)."""
        slope, intercept = parameters.reshape(-1, 2).T
        return self.features * slope + intercept

    def of_two_classes(self):
        """Return features (3, n), and the matrix (3, 4) with which they are the
        derivatives of the log-odds of the second of two classes.
        """
        first, second = self.features.T
        matrix = np.array([[-1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 1]])
        return np.stack((first, second, np.ones(len(first)))), matrix

    @staticmethod
    def prepared(covariance):
        """Return the covariance (2 K, 2 K) of the parameters with all slopes before all
        intercepts, as `variance` takes it.
        """
        order = np.arange(len(covariance)).reshape(-1, 2).T.ravel()
        return covariance[np.ix_(order, order)]

    def variance(self, covariance, probabilities):
        """Return the variances (K, n) of the logit of each class less the mean logit,
        from a `prepared` covariance and `ClassProbabilities`.
        """
        features = self.features.T
        n_classes = len(features)
        top_class, _ = probabilities.top
        # 1. Covariances (2 K, n) of the parameters with the mean logit, which is
        # (p - e_top) @ logits plus the logit of the top class. The derivatives of a
        # logit are its feature by the slope, and 1 by the intercept.
        minus_top = probabilities.minus_top
        derivatives = np.concatenate((minus_top * features, minus_top))
        with_minus_top = covariance @ derivatives
        with_mean = covariance[:, :n_classes].take(top_class, axis=1)
        with_mean *= features[probabilities.top]
        with_mean += covariance[:, n_classes:].take(top_class, axis=1)
        with_mean += with_minus_top
        # 2. Covariances (K, n) of the logits with the mean logit, and their variances.
        with_mean = features * with_mean[:n_classes] + with_mean[n_classes:]
        of_slope, of_intercept = covariance.diagonal().reshape(2, n_classes, 1)
        of_both = covariance[:n_classes, n_classes:].diagonal()[:, None]
        of_logit = (of_slope * features + 2 * of_both) * features + of_intercept
        return probabilities.variances(
            of_logit,
            with_mean,
            of_mean=_summed(probabilities.values, with_mean),
            of_minus_top=_summed(derivatives, with_minus_top),
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
        """Return the derivatives (n, n_parameters), by the parameters, of the sum of
        each row's logits times coefficients (n, K).
        """
        product = coefficient[:, :, None] * self.features[:, None]
        return product.reshape(len(product), -1)

    def logits(self, parameters):
        """Return the logits (n, K) with some parameters (n_parameters,)."""
        return self.features @ parameters.reshape(self.n_classes, -1).T

    def of_two_classes(self):
        """Return the features (b, n), and the matrix (b, 2 b) with which they are the
        derivatives of the log-odds of the second of two classes.
        """
        one = np.eye(self.features.shape[1])
        return self.features.T, np.hstack((-one, one))

    def prepared(self, covariance):
        """Return the covariance (K b, K b) of the parameters as `variance` takes it:
        the coefficients (class pairs, feature pairs) of products of two features.

        The covariance of the logits of two classes is a quadratic function of the b
        features. A pair of classes or of features may be twice the same one.
        """
        n_features = self.features.shape[1]
        one_class, other_class = _pairs(self.n_classes)
        first, second = _pairs(n_features)
        blocks = covariance.reshape(2 * (self.n_classes, n_features))
        blocks = blocks.transpose(0, 2, 1, 3)[one_class, other_class]
        # The product of two different features stands twice in the function, its square
        # once.
        coefficient = blocks[:, first, second] + blocks[:, second, first]
        coefficient[:, first == second] /= 2
        return coefficient

    def variance(self, covariance, probabilities):
        """Return the variances (K, n) of the logit of each class less the mean logit,
        from a `prepared` covariance and `ClassProbabilities`.
        """
        # 1. The covariances of the logits: by pair of classes (n_pairs, n), and as an
        # array (K, K, n).
        features = np.ascontiguousarray(self.features.T)
        first, second = _pairs(len(features))
        of_pair = covariance @ (features[first] * features[second])
        position = _positions(self.n_classes)
        of_logits = of_pair[position]
        # 2. Those of each logit with the mean logit (K, n), which is (p - e_top) @
        # logits plus the logit of the top class.
        minus_top = probabilities.minus_top
        with_minus_top = np.einsum("jkn,kn->jn", of_logits, minus_top)
        top_class, row = probabilities.top
        with_mean = with_minus_top + of_pair[position[:, top_class], row]
        return probabilities.variances(
            of_pair[position.diagonal()],
            with_mean,
            of_mean=_summed(probabilities.values, with_mean),
            of_minus_top=_summed(minus_top, with_minus_top),
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
    """Return the position (n, n) of each pair of numbers in `_pairs`, which has every
    pair once: (i, j) and (j, i) have one position.
    """
    first, second = _pairs(n)
    position = np.empty((n, n), dtype=np.intp)
    position[first, second] = position[second, first] = np.arange(len(first))
    return position
