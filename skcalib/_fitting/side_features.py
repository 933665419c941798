"""Features besides the score in a logistic regression, or in the logarithm of a
temperature: a ridge on their coefficients, whose strengths the marginal likelihood
chooses or weights.
"""

from typing import NamedTuple, Self

import numpy as np
from scipy.special import softmax

from skcalib._solvers.logistic import fit_logistic, location_scale, logistic_loss
from skcalib._solvers.varying_temperature import VaryingTemperature

# The strengths of the ridge that are tried, per squared coefficient of a standardised
# feature. Infinity comes first: without features.
STRENGTHS = (np.inf, 1e4, 3e3, 1e3, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0)
# Added to the diagonal of a scaled Hessian, whose entries are 1, so that a singular one
# has a determinant above 0.
_ADDED_TO_DIAGONAL = 1e-10


class SideFeatures(NamedTuple):
    """The standardised features of the rows of a fit, `values` (n, d), with the `mean`
    and the standard `deviation` (d,) of each; that of a constant is infinite, so that
    its feature is 0.
    """

    values: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, features, sample_weight) -> Self:
        """Return the standardised features of rows (n, d) with weights (n,) or None."""
        pairs = [location_scale(column, sample_weight) for column in features.T]
        mean, deviation = map(np.array, zip(*pairs, strict=True))
        return cls((features - mean) / deviation, mean, deviation)

    def fit_logistic(
        self, features, targets, sample_weight, *, centre=None, penalty=None, lower=None
    ):
        """Fit a logistic regression on some features and the standardised ones.

        ``features(rows)`` returns other features (d, n_rows) of a slice of rows, which
        have a ridge of their own: ``penalty @ (coef - centre)**2 / 2`` with `centre`
        and `penalty` (d,), and `lower` bounds (d,), or None for none. `targets` and
        `sample_weight` are (n,).

        Returns
        -------
        coef : ndarray of shape (d,)
            Coefficients of the features of the callable.
        side_coef : ndarray of shape (n_features,)
            Coefficients of the standardised features.
        strength : float
            The chosen strength of the ridge; infinity if these coefficients are 0.
        """
        n_own = len(features(slice(0, 1)))  # features of the callable
        n_side = self.values.shape[1]  # standardised features
        centre = np.zeros(n_own) if centre is None else centre
        penalty = np.zeros(n_own) if penalty is None else penalty
        lower = np.full(n_own, -np.inf) if lower is None else lower
        rows = (targets, sample_weight)
        # 1. The fit without the standardised features, with the caller's own ridge.
        own_ridge = {"centre": centre, "penalty": penalty}
        coef = fit_logistic(features, *rows, lower=lower, **own_ridge)
        loss, hessian = logistic_loss(features, *rows, coef, **own_ridge)
        chosen = (coef, np.zeros(n_side), np.inf)
        least = negative_evidence(loss, hessian, 0, np.inf)

        def joined(chosen_rows):
            """Return all features (d + n_features, n_rows) of some rows."""
            return np.vstack((features(chosen_rows), self.values[chosen_rows].T))

        # 2. Fits with weaker and weaker ridges on them, each from the one before. The
        # one with the least negative evidence is chosen.
        start = np.concatenate((coef, np.zeros(n_side)))
        all_lower = np.concatenate((lower, np.full(n_side, -np.inf)))
        for strength in STRENGTHS[1:]:
            ridge = {
                "centre": np.concatenate((centre, np.zeros(n_side))),
                "penalty": np.concatenate((penalty, np.full(n_side, strength))),
            }
            start = fit_logistic(joined, *rows, lower=all_lower, start=start, **ridge)
            loss, hessian = logistic_loss(joined, *rows, start, **ridge)
            evidence = negative_evidence(loss, hessian, n_side, strength)
            if evidence < least:
                least = evidence
                chosen = (start[:n_own], start[n_own:], strength)
        return chosen

    def fit_log_factor(self, logits, codes, sample_weight):
        """Fit the factor of logits (n, K) whose logarithm is linear in the features.

        Unless the marginal likelihood is largest for an infinite ridge, which leaves
        the features out, the coefficients are the means of those of all strengths,
        weighted by it. It is flat for a temperature, about which a sample says less
        than about an event's log-odds: where it is largest, the ridge is often too
        weak.

        The arguments are those of a `VaryingTemperature`; the logits are already
        divided by the temperature without features.

        Returns
        -------
        log_factor : float
            The logarithm of the factor where the features have their means.
        side_coef : ndarray of shape (n_features,)
            Coefficients of the standardised features.
        strength : float
            The strength of the ridge with the largest marginal likelihood; infinity if
            these coefficients are 0.
        """
        n_rows, n_side = self.values.shape
        ones = np.ones((n_rows, 1))
        rows = (logits, codes, sample_weight)
        problem = VaryingTemperature(*rows, ones, np.zeros(1))
        loss, _, hessian = problem.derivatives(np.zeros(1))
        # If every row is classified right, no temperature is too low, and features
        # cannot say where it should be higher.
        if (logits.argmax(axis=1) == codes).all():
            return 0.0, np.zeros(n_side), np.inf
        start = np.zeros(1 + n_side)
        fits = [start]
        evidence = [-negative_evidence(loss, hessian, 0, np.inf)]
        for strength in STRENGTHS[1:]:
            penalty = np.concatenate(([0.0], np.full(n_side, strength)))
            features = np.hstack((ones, self.values))
            problem = VaryingTemperature(*rows, features, penalty)
            start, (loss, _, hessian) = problem.minimum(start)
            fits.append(start)
            evidence.append(-negative_evidence(loss, hessian, n_side, strength))
        strength = STRENGTHS[np.argmax(evidence)]
        if np.isinf(strength):
            log_factor, *side_coef = fits[0]
        else:
            log_factor, *side_coef = softmax(evidence) @ fits
        return float(log_factor), np.array(side_coef), strength


def negative_evidence(loss, hessian, n_features, strength):
    """Return minus the logarithm of the marginal likelihood of a ridge by Laplace's
    approximation, up to a constant: ``loss - d / 2 log(strength) + log|H| / 2``.

    Parameters
    ----------
    loss : float
        The log-loss, summed over the rows, with all ridges.
    hessian : ndarray of shape (d, d)
        Its second derivatives.
    n_features : int
        How many coefficients have the ridge.
    strength : float
        Its strength.
    """
    # The Hessian is singular where scores are equal, for instance. It is scaled to a
    # diagonal of ones, H = D C D with D = diag(scale), so that one small number, added
    # to the diagonal of C, is enough for all parameters. Then log|H| is
    # log|C| + 2 log|D|.
    curvature = hessian.diagonal()
    scale = np.sqrt(np.where(curvature > 0, curvature, 1))
    scaled = hessian / scale / scale[:, None]
    scaled += _ADDED_TO_DIAGONAL * np.eye(len(scale))
    _, log_determinant = np.linalg.slogdet(scaled)
    log_determinant += 2 * np.log(scale).sum()
    # Without features there is no prior: `strength` may then be infinite.
    log_strengths = 0.0
    if n_features > 0:
        log_strengths = n_features * np.log(strength)
    return loss + (log_determinant - log_strengths) / 2
