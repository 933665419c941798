"""What each recalibrator would gain on the rows of a report, by cross-validation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import stdtr, stdtrit

from skcalib import recalibrators as catalogue
from skcalib._errors.proper_scores import LOSSES
from skcalib._report._forecasts import binary_task
from skcalib._report._statistics import CONFIDENCE_LEVEL, REPORT_BINNING, given, mean
from skcalib.evaluation._gain import recalibrated_by_fold
from skcalib.metrics import calibration_error
from skcalib.recalibrators._folds import cross_validation_folds

N_FOLDS = 5
_MOST_ROWS = 20_000  # of which a random sample is taken: the gains are known well enough from it
_MOST_SCORES = 400_000
_MOST_CLASSES_OF_STACK = 20
# The library's recalibrators that a report compares, with their defaults, the simplest first.
OF_TWO_CLASSES = (
    "PriorShift",
    "TemperatureScaling",
    "PlattScaling",
    "BetaCalibration",
    "SplineCalibration",
    "IsotonicCalibration",
    "StackedRecalibrator",
)
OF_MORE_CLASSES = (
    "PriorShift",
    "TemperatureScaling",
    "VectorScaling",
    "DirichletCalibration",
    "StackedRecalibrator",
)
_SAVED = {"log": ("log_loss", "gain"), "brier": ("brier", "brier_gain")}


def most_rows(classes):
    """Return how many rows the recalibrators are tried on."""
    return _MOST_ROWS if classes is None else min(_MOST_ROWS, max(_MOST_SCORES // len(classes), 2000))


@dataclass(frozen=True, eq=False)
class Trial:
    """A recalibrator that was fitted on all folds but one, for each: losses (folds, rows) and what it predicts.

    `groups` are those with a map of their own.
    """

    name: str
    losses: dict
    probabilities: np.ndarray
    groups: tuple = ()


@dataclass(frozen=True, eq=False)
class TrialRows:
    """A sample of the rows of a report, on which recalibrators are tried."""

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None = None
    segments: np.ndarray | None = None
    periods: np.ndarray | None = None
    clusters: np.ndarray | None = None

    def at(self, rows):
        """Return some of the rows."""
        parts = (self.scores, self.labels, self.weight, self.segments, self.periods, self.clusters)
        return TrialRows(*(None if part is None else part[rows] for part in parts))

    @cached_property
    def folds(self):
        """Folds that keep clusters whole; None where a class (of several: all but one) has fewer rows than folds."""
        counts = np.sort(np.bincount(self.codes, minlength=2))
        if counts[-2] < N_FOLDS:
            return None
        cv = N_FOLDS
        if self.clusters is not None:
            _, cluster = np.unique(self.clusters, return_inverse=True)
            if cluster.max() + 1 < N_FOLDS:
                return None
            dealt = np.random.default_rng(0).permutation(cluster.max() + 1)[cluster] % N_FOLDS
            cv = [(np.flatnonzero(dealt != k), np.flatnonzero(dealt == k)) for k in range(N_FOLDS)]
        return cross_validation_folds(cv, self.columns, self.codes, self.weight)

    @cached_property
    def codes(self):
        """Labels as numbers."""
        return self.labels.astype(np.intp)

    @cached_property
    def columns(self):
        """Scores (n, C) in double precision."""
        return self.scores.astype(np.float64).reshape(len(self.labels), -1)

    @cached_property
    def tested(self):
        """Rows in the order of the folds: the order of out-of-fold predictions."""
        return np.concatenate([fold.test for fold in self.folds])

    @cached_property
    def tested_weight(self):
        """Weights in the order of the folds."""
        return None if self.weight is None else np.concatenate([fold.test_weight for fold in self.folds])

    def unchanged(self):
        """Return the trial of the scores as they are."""
        return self._trial("as it is", [self.scores.astype(np.float64)] * len(self.folds))

    def trial(self, recalibrator, name=None, own=None):
        """Return the trial of a recalibrator; with `own`, some segments, these have a map of their own."""
        groups, name = None, name or type(recalibrator).__name__
        if own is not None:
            groups = np.where(np.isin(self.segments, own), self.segments, "")
            recalibrator = catalogue.GroupwiseRecalibrator(recalibrator)
            name = f"GroupwiseRecalibrator({name}())"
        after = [recalibrated_by_fold(recalibrator, fold, self.columns, self.codes, groups) for fold in self.folds]
        return self._trial(name, after, () if own is None else tuple(own))

    def _trial(self, name, after, groups=()):
        losses = {loss: np.array([LOSSES[loss](scores, self.labels) for scores in after]) for loss in LOSSES}
        probabilities = np.concatenate([scores[fold.test] for scores, fold in zip(after, self.folds, strict=True)])
        return Trial(name, losses, probabilities, groups)

    def out_of_fold(self, losses):
        """Return of losses (folds, rows) those of the fits without the row."""
        return np.concatenate([loss[fold.test] for loss, fold in zip(losses, self.folds, strict=True)])

    def gain(self, before, after, loss="log"):
        """Return how much lower the loss of a trial is than that of another: see `mean_gain`."""
        gains = before.losses[loss] - after.losses[loss]
        cluster = None if self.clusters is None else self.clusters[self.tested]
        # The noise of the fits is the jackknife's, over the fits without one fold each: see `gain_interval`.
        own = gains if self.weight is None else gains * self.weight
        if cluster is not None:
            codes = np.unique(self.clusters, return_inverse=True)[1]
            of_fits = sum(np.array([np.bincount(codes, part) for part in own]).var(axis=0))
        else:
            of_fits = np.average(gains.var(axis=0), weights=self.weight)
        return mean_gain(self.out_of_fold(gains), self.tested_weight, cluster, (N_FOLDS - 1) * of_fits)

    def by_row(self, trial):
        """Return the out-of-fold log-loss of each row."""
        weight = np.ones(len(self.tested)) if self.weight is None else self.tested_weight
        total = np.bincount(self.tested, weight * self.out_of_fold(trial.losses["log"]))
        return total / np.bincount(self.tested, weight)

    def row(self, trial, before):
        """Return the scores of a recalibrator as a row of the table of candidates."""
        row, labels = {"name": trial.name}, self.labels[self.tested]
        for loss, (key, gain) in _SAVED.items():
            row[key] = mean(self.out_of_fold(trial.losses[loss]), self.tested_weight)
            found, _ = self.gain(before, trial, loss)
            row |= {name.replace("gain", gain): value for name, value in found.items()}
        task = binary_task(trial.probabilities, labels, self.tested_weight)
        error = calibration_error(task.labels, task.scores, binning=REPORT_BINNING, **given(task))
        return {**row, "calibration_error": error}

    def maps(self, step=None):
        """Return the trials of the library's recalibrators, the simplest first."""
        found = [self.unchanged()]
        for kind in OF_TWO_CLASSES if self.columns.shape[1] == 1 else OF_MORE_CLASSES:
            if kind == "StackedRecalibrator" and self.columns.shape[1] > _MOST_CLASSES_OF_STACK:
                continue
            if step is not None:
                step(kind)
            found.append(self.trial(getattr(catalogue, kind)()))
        return found


def mean_gain(gains, weight, clusters=None, of_fits=0.0):
    """Return a mean with its interval, by names, and the one-sided p-value of a mean that is not above 0.

    Weights count as repeated rows. `of_fits` is the variance that the noise of the fits adds: to that of a row, or with
    clusters to that of the sum of all rows.
    """
    weight = np.ones(len(gains)) if weight is None else weight
    estimate, total, freedom = np.average(gains, weights=weight), weight.sum(), np.inf
    if clusters is None:
        variance = (np.average((gains - estimate) ** 2, weights=weight) + of_fits) / max(total - 1, 1)
    else:
        sums = np.bincount(np.unique(clusters, return_inverse=True)[1], weight * (gains - estimate))
        freedom = max(len(sums) - 1, 1)
        variance = (sums @ sums * (freedom + 1) / freedom + of_fits) / total**2
    error = np.sqrt(variance)
    half = stdtrit(freedom, (1 + CONFIDENCE_LEVEL) / 2) * error
    pvalue = float(stdtr(freedom, -estimate / error)) if error > 0 else 1.0
    return {"gain": float(estimate), "gain_low": float(estimate - half), "gain_high": float(estimate + half)}, pvalue
