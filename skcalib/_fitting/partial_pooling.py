"""Many classes against the rest, each held near one map for all: partial pooling by a
ridge.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, logsumexp

from skcalib._fitting.ridge_path import RidgeChoice, ridges_to_try
from skcalib._rows.blocks import row_blocks, taken, total_weight, weights_or_ones
from skcalib._rows.links import log_odds_against_rest
from skcalib._solvers.leave_one_out import inverse_hessian, left_out_log_odds
from skcalib._solvers.logistic import fit_logistic, platt_targets

# Slopes are measured against those of the pooled map. For a model that ranks the wrong
# way round this is their lower limit, relative to 1 / (typical log-odds).
_SMALLEST_RELATIVE = 1e-3
# What ``class_pooling="auto"`` tries, the strongest first. More classes keep the first:
# what sets their few rows apart in the calibration set may be nothing elsewhere.
_AUTO_POOLINGS = (1.0, 0.3, 0.1, 0.03)
_MOST_CLASSES = 50
_LEAST_BLOCK = 500  # rows of all classes that are left out at a time


class ClassProblems(NamedTuple):
    """The binary problems of K classes, one against the rest: `log_odds` and `labels`
    (K, n), and `sample_weight` (n,) or None.

    Where classes are impossible in some rows, weights are (K, n), and 0 there.
    """

    log_odds: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None

    @classmethod
    def of_classes(cls, probabilities, codes, sample_weight, is_impossible=None):
        """Return the problems of probabilities (n, K), without those of impossible
        classes `is_impossible` (n, K).
        """
        if is_impossible is not None:
            weight = weights_or_ones(sample_weight, len(codes))
            # (K, n): a row has the weight 0 in the problems of its impossible classes
            sample_weight = weight * ~is_impossible.T
        log_odds_of = log_odds_against_rest(probabilities)
        log_odds = np.stack([log_odds_of(column) for column in probabilities.T])
        labels = np.arange(len(log_odds))[:, None] == codes
        return cls(log_odds, labels, sample_weight)

    @property
    def root_mean_square(self):
        """The root mean square of the log-odds over all problems."""
        if self._is_by_class:  # weights (K, n), which differ between the problems
            mean = np.average(self.log_odds**2, weights=self.sample_weight)
            return float(np.sqrt(mean))
        # sums over the classes, one for each row (n,)
        sums_of_squares = np.einsum("kn,kn->n", self.log_odds, self.log_odds)
        mean_squares = sums_of_squares / len(self.log_odds)
        return float(np.sqrt(np.average(mean_squares, weights=self.sample_weight)))

    @property
    def flat(self):
        """Log-odds (K n,), labels (K n,) and weights (K n,) or None of all the
        problems, one after the other.
        """
        # Weights (n,) of the rows are repeated for each problem.
        weight = self.sample_weight
        if weight is not None:
            weight = np.broadcast_to(weight, self.log_odds.shape).ravel()
        return self.log_odds.ravel(), self.labels.ravel(), weight

    @property
    def _is_by_class(self):
        """Whether each problem has weights of its own."""
        return self.sample_weight is not None and self.sample_weight.ndim == 2

    def _weight_of(self, k):
        """Return the weights (n,) of the rows in the problem of class `k`, or None."""
        if self._is_by_class:
            return self.sample_weight[k]
        return self.sample_weight

    def fit_pooled(self, features, smooth=False, **options):
        """Return the coefficients (d,) of one map for all the problems.

        ``features(log_odds)`` returns the features (d, m) of log-odds (m,); `smooth`
        asks for Platt's targets; `options` are a ridge, bounds and the like, keywords
        of `fit_logistic`.
        """
        log_odds, labels, weight = self.flat
        return fit_logistic(
            lambda rows: features(log_odds[rows]),
            self._targets(labels, smooth),
            weight,
            **options,
        )

    def fit_near(self, pooled, class_pooling, near=None):
        """Return the coefficients of each class's map, held near those of the
        `PooledMap` by a ridge: a list of K arrays (d,).

        The ridge on the summed log-loss is ``class_pooling * K * |pooled.distance @
        (coef - pooled.coef)|^2 / 2``. The fits start from `near`, if it is given: K
        arrays of coefficients fitted with another ridge.
        """
        penalty = self._penalty(pooled, class_pooling)
        coefs = []
        for k, (features, targets) in enumerate(self._features_and_targets(pooled)):
            start = None
            if near is not None:
                start = near[k]
            coef = fit_logistic(
                features,
                targets,
                self._weight_of(k),
                start=start,
                centre=pooled.coef,
                penalty=penalty,
                lower=pooled.lower,
            )
            coefs.append(coef)
        return coefs

    def fit_path(self, pooled):
        """Return the class pooling, the strength of the ridge toward a `PooledMap`,
        that predicts best, and the coefficients of each class's map with it: a list of
        K arrays (d,).
        """
        n_classes, n_rows = self.log_odds.shape
        poolings = _AUTO_POOLINGS
        if n_classes > _MOST_CLASSES:
            poolings = _AUTO_POOLINGS[:1]
        poolings = ridges_to_try(
            poolings, total_weight(self._row_weight, n_rows), n_classes
        )
        choice = RidgeChoice()
        fits = []
        coefs = None  # each fit starts from the last
        for class_pooling in poolings:
            coefs = self.fit_near(pooled, class_pooling, near=coefs)
            fits.append(coefs)
            choice.add(self.leave_one_out_loss(pooled, class_pooling, coefs))
            if choice.is_done:
                break
        return poolings[choice.best], fits[choice.best]

    def leave_one_out_loss(self, pooled, class_pooling, coefs):
        """Return the log-loss, summed over the rows, of the probabilities that each row
        has by the fits to the other rows.

        `coefs` is a list of the K fits (d,) to all rows, made with this `class_pooling`
        toward the `PooledMap`. The fit without a row is one Newton step from there. The
        pooled map stays what it is: one row of K problems hardly moves it.
        """
        n_classes, n_rows = self.log_odds.shape
        penalty = self._penalty(pooled, class_pooling)
        problems = list(self._features_and_targets(pooled))
        # What the Newton steps need of each class's fit.
        inverse_hessians = []
        for k, ((features, _), coef) in enumerate(zip(problems, coefs, strict=True)):
            inverse_hessians.append(
                inverse_hessian(features, n_rows, self._weight_of(k), coef, penalty)
            )
        loss = 0.0
        for rows in row_blocks(n_rows, n_classes, at_least=_LEAST_BLOCK):
            labels = self.labels[:, rows]
            # The logarithm of each row's probability in the problem of each class, by
            # the fit without this row: (K, rows of the block).
            log_proba = np.empty(labels.shape)
            for k, (features, targets) in enumerate(problems):
                left_out = left_out_log_odds(
                    features(rows),
                    targets[rows],
                    taken(self._weight_of(k), rows),
                    coefs[k],
                    inverse_hessians[k],
                )
                log_expit(left_out, out=log_proba[k])
            # Impossible classes have the weight 0 there, and the probability 0.
            if self._is_by_class:
                log_proba[self.sample_weight[:, rows] == 0] = -np.inf
            # The K probabilities of a row are divided by their sum. Each row has one
            # true label, so that the mask takes one entry per row.
            log_proba_of_label = log_proba.T[labels.T]
            losses = logsumexp(log_proba, axis=0) - log_proba_of_label
            weight = taken(self._row_weight, rows)
            if weight is None:
                loss += losses.sum()
            else:
                loss += weight @ losses
        return float(loss)

    def _features_and_targets(self, pooled):
        """Yield, for each problem, the function that returns the features of a slice of
        the rows, and the targets (n,).
        """
        for column, labels in zip(self.log_odds, self.labels, strict=True):
            targets = self._targets(labels, pooled.smooth_targets)
            yield _features_of(column, pooled), targets

    def _penalty(self, pooled, class_pooling):
        """Return the matrix (d, d) of the ridge on the squared distance that
        ``pooled.distance`` measures.
        """
        n_classes = len(self.log_odds)
        return class_pooling * n_classes * pooled.distance.T @ pooled.distance

    def _targets(self, labels, smooth):
        """Return labels (n,) as targets; with `smooth`, Platt's targets by the counts
        of all problems together.
        """
        if not smooth:
            return labels
        # Over all problems each row is an event once, and a non-event K - 1 times, or
        # less often where classes are impossible.
        n_classes, n_events = self.log_odds.shape
        if self.sample_weight is not None:
            n_events = self._row_weight.sum()
        n_others = (n_classes - 1) * n_events
        if self._is_by_class:
            n_others = self.sample_weight.sum() - n_events
        return platt_targets(labels, counts=(n_others, n_events))

    @property
    def _row_weight(self):
        """The weights of the rows (n,), or None: the largest by problem, which is 0
        where the class is impossible.
        """
        if self._is_by_class:
            return self.sample_weight.max(axis=0)
        return self.sample_weight


class PooledMap(NamedTuple):
    """One map for the problems of all classes: `features` of log-odds (m,) as (d, m),
    and their coefficients (d,).

    `distance` (d, d) takes coefficients to the coordinates in which the ridge measures
    deviations; `lower` (d,) are bounds of the coefficients; `smooth_targets` asks for
    Platt's targets; `ends` are the lowest and the highest log-odds, for maps that end
    there.
    """

    features: Callable
    coef: np.ndarray
    distance: np.ndarray
    lower: np.ndarray | None = None
    smooth_targets: bool = False
    ends: tuple[float, ...] = ()


def slope_unit(slope, problems):
    """Return what deviations of a slope are measured against: the pooled slope,
    positive and not next to 0.
    """
    return max(abs(slope), _SMALLEST_RELATIVE / problems.root_mean_square)


def _features_of(log_odds, pooled):
    """Return the function that gives the features (d, m) of a slice of the rows."""
    return lambda rows: pooled.features(log_odds[rows])
