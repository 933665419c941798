"""Temperatures that depend on features: the log of each row's temperature is linear in
them.
"""

from typing import NamedTuple

import numpy as np

from skcalib._rows.blocks import row_blocks, taken
from skcalib._solvers.newton import damped_solution, line_search

_MAX_STEPS = 100
_LEAST_DECREMENT = 1e-20  # of a step, relative to the number of rows: the last one
_SURE_DECREMENT = 1e-9  # relative to the loss: no search, which rounding would mislead
_LARGEST_LOG_FACTOR = 50.0  # in units of the first guess


class VaryingTemperature(NamedTuple):
    """The log-loss of ``softmax(exp(features @ coef) * logits)``, plus a ridge.

    Attributes
    ----------
    logits : ndarray of shape (n, K)
        Logits; -inf for impossible classes.
    codes : ndarray of int, shape (n,)
        True class of each row.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    features : ndarray of shape (n, d)
        Features of the logarithm of the factor, the first of which is 1.
    penalty : ndarray of shape (d,)
        Ridge ``penalty @ coef**2 / 2`` on the summed loss.
    """

    logits: np.ndarray
    codes: np.ndarray
    sample_weight: np.ndarray | None
    features: np.ndarray
    penalty: np.ndarray

    def derivatives(self, coef):
        """Return the loss at coefficients (d,), its gradient (d,) and its expected
        Hessian (d, d).

        With b the factor of a row, p its probabilities and z its logits, the first
        derivative by log(b) is ``b (sum p z - z_true)``. The second derivative is this
        term, left out here because its mean is 0 for calibrated p, plus
        ``b^2 (sum p z^2 - (sum p z)^2)``.
        """
        gradient = self.penalty * coef
        hessian = np.diag(self.penalty)
        loss = 0.5 * coef @ gradient
        for rows in row_blocks(len(self.codes), self.logits.shape[1]):
            features = self.features[rows]
            log_factor = np.clip(
                features @ coef, -_LARGEST_LOG_FACTOR, _LARGEST_LOG_FACTOR
            )
            factor = np.exp(log_factor)
            # 1. The log-loss: log(sum exp(b z)) - b z_true, for the scaled logits b z.
            logits = factor[:, None] * self.logits[rows]
            true_logit = logits[np.arange(len(logits)), self.codes[rows]]
            largest = logits.max(axis=1, keepdims=True)
            exponentials = np.exp(logits - largest)
            total = exponentials.sum(axis=1)
            probability = exponentials / total[:, None]
            row_loss = np.log(total) + largest[:, 0] - true_logit
            # 2. Its derivatives by log(b): the mean of the scaled logits under p, less
            # that of the true class, and their variance. Impossible classes have the
            # logit -inf and the probability 0.
            finite = np.where(probability > 0, logits, 0)
            mean = (probability * finite).sum(axis=1)
            variance = (probability * (finite - mean[:, None]) ** 2).sum(axis=1)
            slope = mean - true_logit
            weight = taken(self.sample_weight, rows)
            if weight is not None:
                row_loss = weight * row_loss
                slope = weight * slope
                variance = weight * variance
            loss += row_loss.sum()
            gradient += slope @ features
            hessian += (features * variance[:, None]).T @ features
        return loss, gradient, hessian

    def minimum(self, start):
        """Return the coefficients (d,) of least loss from a start (d,), by Fisher's
        scoring, and the derivatives there.
        """
        coef = start
        current = self.derivatives(coef)
        for _ in range(_MAX_STEPS):
            loss, gradient, hessian = current
            step = damped_solution(hessian.copy(), gradient)
            decrement = gradient @ step
            if decrement <= _LEAST_DECREMENT * len(self.codes):
                break
            if decrement <= _SURE_DECREMENT * loss:
                coef = coef - step
                current = self.derivatives(coef)
                continue
            coef, found = line_search(
                self.derivatives, coef, step, loss, loss_of=lambda found: found[0]
            )
            if found is None:  # no shorter step lowers the loss
                break
            current = found
        return coef, current
