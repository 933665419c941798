"""What each recalibrator would gain on the rows of a report, by cross-validation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skcalib import recalibrators as catalogue
from skcalib._errors.proper_scores import LOSSES
from skcalib._report._statistics import MEAN_ABSOLUTE, Rows, mean
from skcalib.evaluation._gain import recalibrated_by_fold
from skcalib.metrics import calibration_error
from skcalib.recalibrators._folds import cross_validation_folds

N_FOLDS = 5
_MOST_ROWS = (
    20_000  # of which a random sample is taken: the gains are known well enough from it
)
_MOST_SCORES, _FEWEST_ROWS = 200_000, 4000  # of many classes
_MOST_SCORES_OF_STACK, _MOST_CLASSES_OF_MATRIX = 30_000, 20
# The library's recalibrators that a report compares, with their defaults, the simplest first.
OF_TWO_CLASSES = "PriorShift TemperatureScaling PlattScaling BetaCalibration SplineCalibration IsotonicCalibration".split()
OF_TWO_CLASSES += ["StackedRecalibrator"]
OF_MORE_CLASSES = "PriorShift TemperatureScaling VectorScaling DirichletCalibration StackedRecalibrator".split()
_N_CURVES, _NO_CURVE = 2, 0.2  # the last ones before the stack; p-value
_SAVED = {"log": ("log_loss", "gain"), "brier": ("brier", "brier_gain")}


def most_rows(classes):
    """Return how many rows the recalibrators are tried on."""
    return (
        _MOST_ROWS
        if classes is None
        else min(_MOST_ROWS, max(_MOST_SCORES // len(classes), _FEWEST_ROWS))
    )


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

    rows: Rows

    @classmethod
    def of(cls, table, name, seed):
        """Return a sample of the rows of a model, with scores in double precision."""
        rows = table.forecasts(name)._replace(
            segments=table.segments, periods=table.periods
        )
        rows = rows.at(table.sample(most_rows(table.classes), seed))
        return cls(rows._replace(scores=rows.scores.astype(np.float64)))

    @cached_property
    def units(self):
        """Codes of the units that differ by chance: clusters, or rows with weights of importance; else None."""
        if self.rows.clusters is not None:
            return np.unique(self.rows.clusters, return_inverse=True)[1]
        return (
            np.arange(len(self.codes))
            if self.rows.weight_type == "importance"
            else None
        )

    @cached_property
    def folds(self):
        """Folds that keep clusters whole; None where a class (of several: all but one) has fewer rows than folds."""
        counts, cv = np.sort(np.bincount(self.codes, minlength=2)), N_FOLDS
        if self.rows.clusters is not None:
            n_clusters = self.units.max() + 1
            dealt = (
                np.random.default_rng(0).permutation(n_clusters)[self.units] % N_FOLDS
            )
            cv = [
                (np.flatnonzero(dealt != k), np.flatnonzero(dealt == k))
                for k in range(min(N_FOLDS, n_clusters))
            ]
        if counts[-2] < N_FOLDS or cv != N_FOLDS and len(cv) < N_FOLDS:
            return None
        return cross_validation_folds(
            cv, self.columns, self.codes, self.rows.sample_weight, stratified=False
        )

    @cached_property
    def codes(self):
        """Labels as numbers."""
        return self.rows.labels.astype(np.intp)

    @cached_property
    def columns(self):
        """Scores (n, C)."""
        return self.rows.scores.reshape(len(self.codes), -1)

    @cached_property
    def tested(self):
        """The rows in the order of the folds, which is that of out-of-fold predictions, with their weights there."""
        rows = self.rows.at(np.concatenate([fold.test for fold in self.folds]))
        if rows.sample_weight is None:
            return rows
        return rows._replace(
            sample_weight=np.concatenate([fold.test_weight for fold in self.folds])
        )

    def unchanged(self):
        """Return the trial of the scores as they are."""
        return self._trial("as it is", [self.rows.scores] * len(self.folds))

    def trial(self, recalibrator, own=None):
        """Return the trial of a recalibrator; with `own`, some segments, these have a map of their own."""
        groups, name = None, type(recalibrator).__name__
        if own is not None:
            groups = np.where(np.isin(self.rows.segments, own), self.rows.segments, "")
            recalibrator = catalogue.GroupwiseRecalibrator(recalibrator)
            name = f"GroupwiseRecalibrator({name}())"
        after = [
            recalibrated_by_fold(recalibrator, fold, self.columns, self.codes, groups)
            for fold in self.folds
        ]
        return self._trial(name, after, () if own is None else tuple(own))

    def _trial(self, name, after, groups=()):
        losses = {
            loss: np.array([LOSSES[loss](scores, self.rows.labels) for scores in after])
            for loss in LOSSES
        }
        probabilities = np.concatenate(
            [scores[fold.test] for scores, fold in zip(after, self.folds, strict=True)]
        )
        return Trial(name, losses, probabilities, groups)

    def out_of_fold(self, losses):
        """Return of losses (folds, rows) those of the fits without the row."""
        return np.concatenate(
            [loss[fold.test] for loss, fold in zip(losses, self.folds, strict=True)]
        )

    def gain(self, before, after, loss="log"):
        """Return how much lower the loss of one trial is than that of another, as `Rows.mean` does."""
        gains, weight, unit = (
            before.losses[loss] - after.losses[loss],
            self.rows.sample_weight,
            self.units,
        )
        own = (
            gains
            if weight is None
            else gains * (weight if unit is not None else np.sqrt(weight))
        )
        own = (
            own if unit is None else np.array([np.bincount(unit, part) for part in own])
        )
        # The noise of the fits is the jackknife's, over the fits without one fold each: see `gain_interval`.
        of_fits = (
            (N_FOLDS - 1)
            * own.var(axis=0).sum()
            / (len(self.codes) if weight is None else weight.sum()) ** 2
        )
        return self.tested.mean(self.out_of_fold(gains), of_fits)

    def by_row(self, trial):
        """Return the out-of-fold log-loss of each row."""
        row = np.concatenate([fold.test for fold in self.folds])
        weight = (
            np.ones(len(row))
            if self.tested.sample_weight is None
            else self.tested.sample_weight
        )
        return np.bincount(
            row, weight * self.out_of_fold(trial.losses["log"])
        ) / np.bincount(row, weight)

    def row(self, trial, before):
        """Return the scores of a recalibrator as a row of the table of candidates."""
        row = {"name": trial.name, "segments": list(trial.groups)}
        for loss, (key, gain) in _SAVED.items():
            row[key] = mean(
                self.out_of_fold(trial.losses[loss]), self.tested.sample_weight
            )
            row |= zip(
                (gain, f"{gain}_low", f"{gain}_high"),
                self.gain(before, trial, loss)[:3],
                strict=True,
            )
        task = self.predicted(trial)
        return {
            **row,
            "calibration_error": calibration_error(
                task.labels, task.scores, **MEAN_ABSOLUTE, **task.given
            ),
        }

    def predicted(self, trial):
        """Return the binary problem of what a trial predicts out of fold."""
        return self.tested._replace(scores=trial.probabilities).task

    def maps(self, step=None):
        """Return the trials of the scores as they are and of the library's recalibrators, the simplest first.

        Without those that take long for so many classes; and without the stack where it would mix curves for nothing:
        where no curve beats the maps of one to three numbers by more than noise.
        """
        n_classes, found = self.columns.shape[1], [self.unchanged()]
        for kind in OF_TWO_CLASSES if n_classes == 1 else OF_MORE_CLASSES:
            if kind == "DirichletCalibration" and n_classes > _MOST_CLASSES_OF_MATRIX:
                continue
            if kind == "StackedRecalibrator":
                simple, curves = found[:-_N_CURVES], found[-_N_CURVES:]
                if n_classes > 1 and self.columns.size > _MOST_SCORES_OF_STACK:
                    continue
                if (
                    n_classes == 1
                    and self.gain(self.best(simple), self.best(curves))[3] > _NO_CURVE
                ):
                    continue
            if step is not None:
                step(kind)
            found.append(self.trial(getattr(catalogue, kind)()))
        return found

    def best(self, trials):
        """Return the trial with the lowest log-loss."""
        return min(
            trials,
            key=lambda trial: mean(
                self.out_of_fold(trial.losses["log"]), self.tested.sample_weight
            ),
        )
