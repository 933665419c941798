"""Covariance of the coefficients of a logistic regression, from the steps that the fit
takes where one row, or one cluster of rows, is left out.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skcalib._input.label_weights import LabelWeights, weight_of_event
from skcalib._intervals.few_events import FEWEST_FOR_SPREAD, effective_events

# With fewer degrees of freedom a few rows carry the variance.
_FEWEST_DEGREES = 4.0
# If the scores imply a standard error that is more than this multiple of the estimated
# one, the rows that carry it have not shown their events.
_LARGEST_RATIO = 4.0
# Up to there, the standard error is at least the implied one over this number: an
# estimate that is smaller is small because its events are missing. It is the smallest
# number (of 1, 1.25, ...) that leaves the median width as it is.
_USUAL_RATIO = 1.5
# What a row leaves of the leverage 1, at least.
_NO_REST = 1e-12
# Events of clusters count by a design effect whose excess over 1 is larger than
# estimated. By the estimate 9 of 800 data sets of 30 much alike clusters had enough of
# them, by chance, and limits that were wrong; by this factor none, where 96 % of those
# with six little alike clusters keep their limits.
_DEPENDENCE_FACTOR = 4 / 3
_ONE_DECIDES = (
    "without one of the rows or clusters, the others do not determine the fit"
)


class Sandwich(NamedTuple):
    """Covariance (d, d) of the coefficients of a fit to the log-odds, the degrees of
    freedom (d,) of the variances, and for each coefficient the reason why it has no
    standard error, else an empty text.
    """

    covariance: np.ndarray
    degrees: np.ndarray
    reasons: tuple[str, ...]


def fisher_covariance(design, fitted, weight):
    """Return the covariance (d, d) of the coefficients of a logistic regression whose
    model holds: the inverse of Fisher's information for the features (d, n), the
    fitted probabilities (n,) and weights (n,) that count rows.
    """
    information = (design * (weight * (fitted * (1 - fitted)))) @ design.T
    return np.linalg.inv(information)


class UnitSums(NamedTuple):
    """Sums over the rows of each independent unit, a row or a cluster: the score
    functions (G, d) of d coefficients, and Fisher's information (G, d, d).
    """

    score: np.ndarray
    information: np.ndarray


def unit_sums(design, residual, curvature, unit):
    """Return the `UnitSums` of a logistic regression: the sums over the rows of each
    independent unit, a row or a cluster, of score functions and information.

    `design` (d, n) are the features; `residual` and `curvature` (n,) the weighted
    residuals and variances of the labels; `unit` (n,) the code of each row's unit.
    """
    n_units = int(unit.max()) + 1
    n_features = len(design)
    score = np.empty((n_units, n_features))
    information = np.empty((n_units, n_features, n_features))
    for i, feature in enumerate(design):
        score[:, i] = np.bincount(unit, residual * feature)
        for j, other in enumerate(design):
            information[:, i, j] = np.bincount(unit, curvature * feature * other)
    return UnitSums(score, information)


def left_out_steps(unit_score, unit_information, information):
    """Return the steps (G, d) that the coefficients take where one of the units of
    `UnitSums` is left out, for the information (d, d) of all, with the curvature of a
    ridge.

    Raises LinAlgError where one unit determines a coefficient alone.
    """
    # Without unit g the coefficients move by about (A - A_g)^-1 S_g.
    steps = np.linalg.solve(information - unit_information, unit_score[:, :, None])
    return steps[:, :, 0]


def left_out_covariance(steps):
    """Return the covariance (d, d) of coefficients from `left_out_steps` (G, d): CR3,
    and HC3 where a unit is a row.
    """
    n_units = len(steps)
    return (n_units - 1) / n_units * steps.T @ steps


def left_out_covariance_of_cells(design, residual, curvature, share, inverse):
    """Return HC3, the covariance (d, d) of `left_out_covariance` where each row stands
    for many independent units that are alike.

    Parameters
    ----------
    design : ndarray of shape (d, n)
        Features of the rows.
    residual, curvature : ndarray of shape (n,)
        Weighted residual and variance of the labels of each row.
    share : ndarray of shape (n,)
        One over the number of units in the row.
    inverse : ndarray of shape (d, d)
        Inverse of the information.
    """
    # (A - c x x')^-1 x = A^-1 x / (1 - h) with the leverage h = c x' A^-1 x
    leverage = share * curvature * quadratic_form(inverse, design)
    steps = inverse @ design * (share * residual / np.maximum(1 - leverage, _NO_REST))
    return (steps / share) @ steps.T


def mean_degrees(design, variance, unit, inverse):
    """Return Satterthwaite's degrees of freedom of the mean variance of the log-odds
    over the samples, at most one less than the number of units.

    `variance` (n,) is that of each row's part in the score function, if labels are
    independent; `unit` are the units' codes, and `inverse` is that of the information.
    """
    of_unit = np.bincount(unit, variance * quadratic_form(inverse, design))
    return float(min(satterthwaite(of_unit), len(of_unit) - 1))


def quadratic_form(matrix, design):
    """Return ``x @ matrix @ x`` for each column x of a design (d, n), as (n,)."""
    product = matrix @ design
    product *= design
    return product.sum(axis=0)


@dataclass(frozen=True)
class LogisticRows:
    """Rows to which a logistic regression was fitted.

    Parameters
    ----------
    design : ndarray of shape (d, n)
        Features of the rows.
    labels, fitted, scores : ndarray of shape (n,)
        Labels (0 or 1), the fitted probabilities and the given ones.
    weight : ndarray of shape (n,)
        Positive weights.
    importance : bool
        Whether a row was seen once whatever its weight. False: weights count rows.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster, 0 to G - 1; None means that rows are independent.
    label_weights : LabelWeights, default=None
        What importance weights say about the labels; None if that is not known.
    """

    design: np.ndarray
    labels: np.ndarray
    fitted: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    importance: bool
    cluster: np.ndarray | None
    label_weights: LabelWeights | None = None

    @property
    def unit(self):
        """The independent unit of each row, (n,): its cluster, or the row itself."""
        if self.cluster is None:
            return np.arange(len(self.labels))
        return self.cluster

    @property
    def row_variance_weight(self):
        """What the variance of each row's label is multiplied by in the variance of the
        weighted sum, (n,): the squared weight, the product of the weights of both
        labels if they are known, or the weight if it counts independent rows.
        """
        if not self.importance:
            return self.weight
        if self.label_weights is None or not self.label_weights.is_known:
            # The weight of the other label is estimated.
            ratio = weight_of_event(self.weight, self.labels, self.scores)
            return self.weight**2 * ratio ** np.where(self.labels, -1, 1)
        return self.weight * self.label_weights.other

    def sandwich(self):
        """Return the `Sandwich` covariance of the coefficients, from each unit left out
        in turn: HC3 if the units are rows, CR3 if they are clusters.

        A row of weight 50 among rows of weight 1 leaves few degrees of freedom. Weights
        1 / s, s the probability of the event, leave few as well, but the estimated
        variance does not show it if such events are too rare to be seen: it is then
        small beside the variance that the scores imply.

        References
        ----------
        MacKinnon and White (1985), Some heteroskedasticity-consistent covariance matrix
        estimators with improved finite sample properties. Bell and McCaffrey (2002),
        Bias reduction in standard errors for linear regression with multi-stage
        samples.
        """
        unit = self.unit
        n_units = int(unit.max()) + 1
        n_features = len(self.design)
        fitted_variance = self.fitted * (1 - self.fitted)
        residual = self.weight * (self.labels - self.fitted)
        sums = unit_sums(self.design, residual, self.weight * fitted_variance, unit)
        information = sums.information.sum(axis=0)
        try:
            covariance = left_out_covariance(left_out_steps(*sums, information))
            direction = np.linalg.solve(information, self.design)
        except np.linalg.LinAlgError:
            nothing = np.full((n_features, n_features), np.nan)
            return Sandwich(nothing, nothing[0], (_ONE_DECIDES,) * n_features)
        # The variance that the labels of each unit add to a coefficient, if they are
        # independent and have the given probabilities (`promised`), or the fitted ones
        # (`expected`).
        label_weight = self.row_variance_weight * direction**2
        given_variance = self.scores * (1 - self.scores)
        degrees = np.full(n_features, n_units - 1.0)
        widening = np.ones(n_features)
        reasons = []
        for i in range(n_features):
            promised = np.bincount(unit, label_weight[i] * given_variance)
            expected = np.bincount(unit, label_weight[i] * fitted_variance)
            for variance in (promised, expected):
                degrees[i] = min(degrees[i], satterthwaite(variance))
            # The standard error that the scores imply over the estimated one; infinite
            # for clusters in which all residuals cancel.
            error_ratio = np.inf
            if covariance[i, i] > 0:
                error_ratio = np.sqrt(promised.sum() / covariance[i, i])
                widening[i] = max(error_ratio / _USUAL_RATIO, 1)
            reason = self._too_few_events() or _untrusted(degrees[i], error_ratio)
            reasons.append(reason)
        covariance = covariance * np.outer(widening, widening)
        return Sandwich(covariance, degrees, tuple(reasons))

    def _too_few_events(self):
        """Return why clusters may hold too few events (or non-events, where these are
        rarer) for a variance between clusters, else "". The number is cautious: if rows
        of a cluster are much alike, few data sets hold enough by an estimate, and
        nearly all of these by chance.
        """
        if self.cluster is None:
            return ""
        residual = self.labels - self.fitted
        n_effective = effective_events(
            self.labels,
            self.weight,
            self.importance,
            self.cluster,
            residual,
            dependence_factor=_DEPENDENCE_FACTOR,
        )
        return too_few_events(n_effective)


def too_few_events(n_effective):
    """Return why there is no variance between clusters whose rarer label is worth
    `n_effective` independent samples, else "".
    """
    if n_effective >= FEWEST_FOR_SPREAD:
        return ""
    return (
        f"within the clusters, the rarer label amounts to {n_effective:.2g}"
        f" independent samples, fewer than {FEWEST_FOR_SPREAD:g}"
    )


def satterthwaite(variance):
    """Return the degrees of freedom of a sum of independent variances (n_units,)."""
    return variance.sum() ** 2 / np.sum(variance**2)


def too_few_degrees(degrees):
    """Return why a variance with these degrees of freedom is not reliable, else ""."""
    if degrees >= _FEWEST_DEGREES * (1 - 1e-9):
        return ""
    return (
        "a few rows or clusters carry most of the weight: the variance estimate has"
        f" {degrees:.2g} degrees of freedom, fewer than {_FEWEST_DEGREES:g}"
    )


def _untrusted(degrees, error_ratio):
    """Return why a variance with these degrees of freedom is not reliable, else "";
    `error_ratio` is the standard error that the scores imply over the estimated one.
    """
    reason = too_few_degrees(degrees)
    if not reason and error_ratio > _LARGEST_RATIO:
        reason = (
            "the standard error that the scores imply is more than"
            f" {_LARGEST_RATIO:g} times the observed one, which is based on"
            " rows with hardly any events"
        )
    return reason
