"""Many classes against the rest, each held near one map for all: partial pooling by a
ridge.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, logsumexp

from skcalib._fitting.ridge_path import best_on_path, tried
from skcalib._rows.blocks import row_blocks, taken, weights_or_ones
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
    """The binary problems of K classes, one against the rest: log-odds and labels (K,
    n), weights (n,) or None.

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
            sample_weight = weight * ~is_impossible.T
        log_odds_of = log_odds_against_rest(probabilities)
        log_odds = np.stack([log_odds_of(column) for column in probabilities.T])
        labels = np.arange(len(log_odds))[:, None] == codes
        return cls(log_odds, labels, sample_weight)

    @property
    def root_mean_square(self):
        """The typical log-odds over all problems."""
        if self._is_by_class:
            mean = np.average(self.log_odds**2, weights=self.sample_weight)
            return float(np.sqrt(mean))
        of_rows = np.einsum("kn,kn->n", self.log_odds, self.log_odds)
        squares = of_rows / len(self.log_odds)
        return float(np.sqrt(np.average(squares, weights=self.sample_weight)))

    @property
    def flat(self):
        """Log-odds, labels and weights of all the problems as one."""
        weight = self.sample_weight
        if weight is not None:
            weight = np.broadcast_to(weight, self.log_odds.shape).ravel()
        return self.log_odds.ravel(), self.labels.ravel(), weight

    @property
    def _is_by_class(self):
        """Whether each problem has weights of its own."""
        return self.sample_weight is not None and self.sample_weight.ndim == 2

    def _weight_of(self, k):
        """Return the weights of the rows in the problem of a class."""
        return self.sample_weight[k] if self._is_by_class else self.sample_weight

    def fit_pooled(self, features, smooth=False, **options):
        """Return the coefficients of one map for all the problems."""
        log_odds, labels, weight = self.flat
        return fit_logistic(
            lambda rows: features(log_odds[rows]),
            self._targets(labels, smooth),
            weight,
            **options,
        )

    def fit_near(self, pooled, class_pooling, near=None):
        """Return the coefficients of each class's map, held near the pooled one.

        The ridge on the summed log-loss is
        ``class_pooling * K * |distance @ (coef - pooled coef)|^2 / 2``. The fits start
        from `near`, those with another ridge, if they are given.
        """
        penalty = self._penalty(pooled, class_pooling)
        if near is None:
            near = [None] * len(self.log_odds)
        return [
            fit_logistic(
                features,
                targets,
                self._weight_of(k),
                near=start,
                start=pooled.coef,
                penalty=penalty,
                lower=pooled.lower,
            )
            for k, ((features, targets), start) in enumerate(
                zip(self._of_each(pooled), near, strict=True)
            )
        ]

    def fit_path(self, pooled):
        """Return the class pooling that predicts best, and the coefficients of each
        class's map with it.
        """
        n_classes, n_rows = self.log_odds.shape
        poolings = _AUTO_POOLINGS if n_classes <= _MOST_CLASSES else _AUTO_POOLINGS[:1]
        poolings = tried(poolings, range(n_rows), self._row_weight, n_classes)
        path = []

        def losses():
            """Fit with each class pooling in turn, and yield the loss."""
            coefs = None
            for class_pooling in poolings:
                # each fit starts from the last
                coefs = self.fit_near(pooled, class_pooling, near=coefs)
                path.append(coefs)
                yield self.leave_one_out_loss(pooled, class_pooling, coefs)

        best = best_on_path(losses())
        return poolings[best], path[best]

    def leave_one_out_loss(self, pooled, class_pooling, coefs):
        """Return the log-loss, summed over the rows, of normalised forecasts by the
        fits to the other rows.

        The pooled map stays what it is: one row of K problems hardly moves it.
        """
        n_classes, n_rows = self.log_odds.shape
        penalty = self._penalty(pooled, class_pooling)
        problems = list(self._of_each(pooled))
        # What a Newton step without a row needs of each class's fit.
        inverse_hessians = []
        for k, ((features, _), coef) in enumerate(zip(problems, coefs, strict=True)):
            inverse_hessians.append(
                inverse_hessian(features, n_rows, self._weight_of(k), coef, penalty)
            )
        loss = 0.0
        for rows in row_blocks(n_rows, n_classes, at_least=_LEAST_BLOCK):
            labels = self.labels[:, rows]
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
            if self._is_by_class:
                log_proba[self.sample_weight[:, rows] == 0] = -np.inf
            # The K probabilities of a row are divided by their sum.
            losses = logsumexp(log_proba, axis=0) - log_proba.T[labels.T]
            weight = taken(self._row_weight, rows)
            if weight is None:
                loss += losses.sum()
            else:
                loss += weight @ losses
        return float(loss)

    def _of_each(self, pooled):
        """Yield the features of slices of the rows and the targets of each problem."""
        for column, labels in zip(self.log_odds, self.labels, strict=True):
            yield (
                _features_of(column, pooled),
                self._targets(labels, pooled.smooth_targets),
            )

    def _penalty(self, pooled, class_pooling):
        return class_pooling * len(self.log_odds) * pooled.distance.T @ pooled.distance

    def _targets(self, labels, smooth):
        """Return labels as targets, or Platt's with the counts of all problems
        together.
        """
        if not smooth:
            return labels
        # Over all problems each row is an event once, and a non-event K - 1 times, or
        # less often where classes are impossible.
        n_classes, n_rows = self.log_odds.shape
        n_events = n_rows if self.sample_weight is None else self._row_weight.sum()
        n_others = (n_classes - 1) * n_events
        if self._is_by_class:
            n_others = self.sample_weight.sum() - n_events
        return platt_targets(labels, counts=(n_others, n_events))

    @property
    def _row_weight(self):
        """The weights of the rows: each is possible for its own class at least."""
        if self._is_by_class:
            return self.sample_weight.max(axis=0)
        return self.sample_weight


class PooledMap(NamedTuple):
    """One map for the problems of all classes: `features` of log-odds (m,) as (d, m),
    and their coefficients.

    `distance` is the matrix from coefficients to the coordinates in which the ridge
    measures deviations; `lower` are bounds of the coefficients; `ends` are the lowest
    and the highest log-odds, for maps that end there.
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
    return lambda rows: pooled.features(log_odds[rows])
