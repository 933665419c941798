"""Many classes against the rest, each held near one map for all: partial pooling by a ridge."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, logsumexp

from skcalib._input.sklearn_private import StrOptions
from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import log_odds_against_rest
from skcalib._solvers.leave_one_out import inverse_hessian, left_out_log_odds
from skcalib._solvers.logistic import fit_logistic, platt_targets
from skcalib.recalibrators._alpha_path import best_on_path, tried
from skcalib.recalibrators._attributes import number
from skcalib.recalibrators._base import RIDGE, BinaryRecalibrator
from skcalib.recalibrators._clipping import ClippedRecalibrator

# Slopes are measured against those of the pooled map. For a model that ranks the wrong way round this is their lower
# limit, relative to 1 / (typical log-odds).
_SMALLEST_RELATIVE = 1e-3
# What ``class_pooling="auto"`` tries, the strongest first. More classes keep the first: what sets their few rows apart
# in the calibration set may be nothing elsewhere.
_AUTO_POOLINGS = (1.0, 0.3, 0.1, 0.03)
_MOST_CLASSES = 50
_LEAST_BLOCK = 500  # rows of all classes that are left out at a time


class ClassProblems(NamedTuple):
    """The binary problems of K classes, one against the rest: log-odds and labels (K, n), weights (n,) or None."""

    log_odds: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None

    @classmethod
    def of_classes(cls, probabilities, codes, sample_weight):
        """Return the problems of probabilities (n, K)."""
        of_classes = np.stack(
            [*map(log_odds_against_rest(probabilities), probabilities.T)]
        )
        return cls(
            of_classes, np.arange(len(of_classes))[:, None] == codes, sample_weight
        )

    @property
    def root_mean_square(self):
        """The typical log-odds over all problems."""
        squares = np.einsum("kn,kn->n", self.log_odds, self.log_odds) / len(
            self.log_odds
        )
        return float(np.sqrt(np.average(squares, weights=self.sample_weight)))

    @property
    def flat(self):
        """Log-odds, labels and weights of all the problems as one."""
        weight = (
            None
            if self.sample_weight is None
            else np.tile(self.sample_weight, len(self.log_odds))
        )
        return self.log_odds.ravel(), self.labels.ravel(), weight

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

        The ridge on the summed log-loss is ``class_pooling * K * |distance @ (coef - pooled coef)|^2 / 2``. The fits
        start from `near`, those with another ridge, if they are given.
        """
        options = {
            "start": pooled.coef,
            "penalty": self._penalty(pooled, class_pooling),
            "lower": pooled.lower,
        }
        near = near or [None] * len(self.log_odds)
        return [
            fit_logistic(features, targets, self.sample_weight, near=start, **options)
            for (features, targets), start in zip(
                self._of_each(pooled), near, strict=True
            )
        ]

    def fit_path(self, pooled):
        """Return the class pooling that predicts best, and the coefficients of each class's map with it."""
        n_classes, n_rows = self.log_odds.shape
        poolings = _AUTO_POOLINGS if n_classes <= _MOST_CLASSES else _AUTO_POOLINGS[:1]
        poolings, path = (
            tried(poolings, range(n_rows), self.sample_weight, n_classes),
            [],
        )

        def losses():
            for class_pooling in poolings:
                path.append(
                    self.fit_near(pooled, class_pooling, path[-1] if path else None)
                )
                yield self.leave_one_out_loss(pooled, class_pooling, path[-1])

        best = best_on_path(losses())
        return poolings[best], path[best]

    def leave_one_out_loss(self, pooled, class_pooling, coefs):
        """Return the log-loss, summed over the rows, of normalised forecasts by the fits to the other rows.

        The pooled map stays what it is: one row of K problems hardly moves it.
        """
        n_classes, n_rows = self.log_odds.shape
        penalty, loss = self._penalty(pooled, class_pooling), 0.0
        parts = [
            (
                features,
                targets,
                coef,
                inverse_hessian(features, n_rows, self.sample_weight, coef, penalty),
            )
            for (features, targets), coef in zip(
                self._of_each(pooled), coefs, strict=True
            )
        ]
        for rows in row_blocks(n_rows, n_classes, at_least=_LEAST_BLOCK):
            labels = self.labels[:, rows]
            weight = None if self.sample_weight is None else self.sample_weight[rows]
            log_proba = np.empty(labels.shape)
            for out, (features, targets, coef, inverse) in zip(
                log_proba, parts, strict=True
            ):
                log_expit(
                    left_out_log_odds(
                        features(rows), targets[rows], weight, coef, inverse
                    ),
                    out=out,
                )
            losses = logsumexp(log_proba, axis=0) - log_proba.T[labels.T]
            loss += losses.sum() if weight is None else weight @ losses
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
        """Return labels as targets, or Platt's with the counts of all problems together."""
        if not smooth:
            return labels
        n_classes, n = self.log_odds.shape
        positives = n if self.sample_weight is None else self.sample_weight.sum()
        return platt_targets(labels, counts=((n_classes - 1) * positives, positives))


class PooledMap(NamedTuple):
    """One map for the problems of all classes: `features` of log-odds (m,) as (d, m), and their coefficients.

    `distance` is the matrix from coefficients to the coordinates in which the ridge measures deviations; `lower` are
    bounds of the coefficients; `ends` are the lowest and the highest log-odds, for maps that end there.
    """

    features: Callable
    coef: np.ndarray
    distance: np.ndarray
    lower: np.ndarray | None = None
    smooth_targets: bool = False
    ends: tuple[float, ...] = ()


class PartiallyPooledRecalibrator(ClippedRecalibrator, BinaryRecalibrator):
    """Base of the one-vs-rest methods that are logistic regressions on features of the log-odds.

    A subclass defines ``_fit_pooled(problems)``, which returns the `PooledMap`, and ``_set_map(coef, *ends)``, which
    sets the fitted attributes from a class's coefficients; beside the two functions for one event.
    """

    class_pooling: [RIDGE, StrOptions({"auto"})] = "auto"

    _scale = "log_odds"
    _attributes = {"class_pooling_": number}

    @property
    def _pools_classes(self):
        held = isinstance(self.class_pooling, str) or self.class_pooling > 0
        return held and self.multiclass == "ovr" and len(self.classes_) > 2

    @property
    def _needs_classes(self):
        # A class without rows uses the common map. A fit to rows of one class alone would predict only 0 and 1.
        return "two" if self._pools_classes else "all"

    def _fit_scores(self, scores, codes, sample_weight):
        self.class_pooling_ = 0.0
        super()._fit_scores(scores, codes, sample_weight)

    def _fit_parts(self, probabilities, codes, sample_weight):
        if not self._pools_classes:
            return super()._fit_parts(probabilities, codes, sample_weight)
        problems = ClassProblems.of_classes(probabilities, codes, sample_weight)
        pooled, parts = (
            self._fit_pooled(problems),
            [self._part() for _ in self.classes_],
        )
        if isinstance(self.class_pooling, str):
            self.class_pooling_, coefs = problems.fit_path(pooled)
        else:
            self.class_pooling_, coefs = (
                float(self.class_pooling),
                problems.fit_near(pooled, self.class_pooling),
            )
        for part, coef in zip(parts, coefs, strict=True):
            part._set_map(coef, *pooled.ends)
        return parts


def slope_unit(slope, problems):
    """Return what deviations of a slope are measured against: the pooled slope, positive and not next to 0."""
    return max(abs(slope), _SMALLEST_RELATIVE / problems.root_mean_square)


def _features_of(log_odds, pooled):
    return lambda rows: pooled.features(log_odds[rows])
