"""What each recalibrator would gain on the rows of a report, by cross-validation."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from skcalib import recalibrators as catalogue
from skcalib._errors.proper_scores import LOSSES
from skcalib._fitting.folds import cross_validation_folds
from skcalib._report._statistics import MEAN_ABSOLUTE, Rows, mean
from skcalib.evaluation._gain import recalibrated_by_fold
from skcalib.metrics import calibration_error

N_FOLDS = 5
# of which a random sample is taken: the gains are known well enough from it
_MOST_ROWS = 20_000
_MOST_SCORES, _FEWEST_ROWS = 200_000, 4000  # of many classes
_MOST_SCORES_OF_STACK, _MOST_CLASSES_OF_MATRIX = 30_000, 20
# The library's recalibrators that a report compares, with their defaults, the simplest
# first.
OF_TWO_CLASSES = [
    "PriorShift",
    "TemperatureScaling",
    "PlattScaling",
    "BetaCalibration",
    "SplineCalibration",
    "IsotonicCalibration",
    "StackedRecalibrator",
]
OF_MORE_CLASSES = (
    "PriorShift",
    "TemperatureScaling",
    "VectorScaling",
    "DirichletCalibration",
    "StackedRecalibrator",
)
_N_CURVES, _NO_CURVE = 2, 0.2  # the last ones before the stack; p-value


def most_rows(classes):
    """Return how many rows the recalibrators are tried on."""
    if classes is None:
        return _MOST_ROWS
    return min(_MOST_ROWS, max(_MOST_SCORES // len(classes), _FEWEST_ROWS))


@dataclass(frozen=True, eq=False)
class Trial:
    """A recalibrator that was fitted on all folds but one, for each: losses (folds,
    rows) and what it predicts.

    `groups` are the segments of `column` with a map of their own; the `others` are
    "unchanged", or one map is "shared" by them.
    """

    name: str
    losses: dict
    probabilities: np.ndarray
    column: str | None = None
    groups: tuple = ()
    others: str | None = None


@dataclass(frozen=True, eq=False)
class TrialRows:
    """A sample of the rows of a report, on which recalibrators are tried.

    `segmentations` are the segments of the rows by name of their column.
    """

    rows: Rows
    segmentations: dict = field(default_factory=dict)
    seed: int = 0

    @classmethod
    def of(cls, table, name, seed):
        """Return a sample of the rows of a model, with scores in double precision."""
        sample = table.sample(most_rows(table.classes), seed)
        rows = table.forecasts(name)._replace(periods=table.periods).at(sample)
        rows = rows._replace(scores=rows.scores.astype(np.float64))
        segmentations = {
            column: names[sample] for column, names in table.segmentations.items()
        }
        return cls(rows, segmentations, seed)

    def at(self, rows):
        """Return some of the rows."""
        segmentations = {
            column: names[rows] for column, names in self.segmentations.items()
        }
        return TrialRows(self.rows.at(rows), segmentations, self.seed)

    @cached_property
    def units(self):
        """Codes of the units that differ by chance: clusters, or rows with weights of
        importance; else None.
        """
        if self.rows.clusters is not None:
            return np.unique(self.rows.clusters, return_inverse=True)[1]
        if self.rows.weight_type == "importance":
            return np.arange(len(self.codes))
        return None

    @cached_property
    def folds(self):
        """Folds that keep clusters whole; None where a class (of several: all but one)
        has fewer rows than folds.
        """
        counts = np.sort(np.bincount(self.codes, minlength=2))
        if counts[-2] < N_FOLDS:
            return None
        cv = N_FOLDS
        if self.rows.clusters is not None:
            n_clusters = self.units.max() + 1
            if n_clusters < N_FOLDS:
                return None
            shuffled = np.random.default_rng(self.seed).permutation(n_clusters)
            fold_of_row = shuffled[self.units] % N_FOLDS
            cv = [
                (np.flatnonzero(fold_of_row != k), np.flatnonzero(fold_of_row == k))
                for k in range(N_FOLDS)
            ]
        return cross_validation_folds(
            cv,
            self.columns,
            self.codes,
            self.rows.sample_weight,
            stratified=False,
            seed=self.seed,
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
    def tested_rows(self):
        """The places of the rows in the order of the folds, which is that of
        out-of-fold predictions.
        """
        return np.concatenate([fold.test for fold in self.folds])

    @cached_property
    def tested(self):
        """The rows in the order of the folds, with their weights there."""
        rows = self.rows.at(self.tested_rows)
        if rows.sample_weight is None:
            return rows
        weight = np.concatenate([fold.test_weight for fold in self.folds])
        return rows._replace(sample_weight=weight)

    def tested_segments(self, column):
        """Return the segments of a column in the order of the folds."""
        return self.segmentations[column][self.tested_rows]

    def unchanged(self):
        """Return the trial of the scores as they are."""
        return self._trial("as it is", [self.rows.scores] * len(self.folds))

    def trial(self, recalibrator, column=None, own=(), others="shared"):
        """Return the trial of a recalibrator; with a column, its segments `own` have a
        map of their own.
        """
        name = type(recalibrator).__name__
        if column is None:
            predicted = [self._predicted(recalibrator, fold) for fold in self.folds]
            return self._trial(name, predicted)
        segments = self.segmentations[column]
        is_own = np.isin(segments, own)
        groups = np.where(is_own, segments, "")
        recalibrator = catalogue.GroupwiseRecalibrator(recalibrator)
        if others == "shared":
            predicted = [
                self._predicted(recalibrator, fold, groups) for fold in self.folds
            ]
        else:
            predicted = self._predicted_for(is_own, recalibrator, groups)
        name = f"GroupwiseRecalibrator({name}())"
        return self._trial(name, predicted, column, tuple(own), others)

    def _predicted_for(self, is_own, recalibrator, groups):
        """Return what each fold predicts where only some of the rows are fitted to and
        recalibrated.
        """
        columns, codes = self.columns[is_own], self.codes[is_own]
        place = np.cumsum(is_own) - 1
        predicted = []
        for fold in self.folds:
            is_seen = is_own[fold.train]
            weight = fold.train_weight
            own_fold = fold._replace(
                train=place[fold.train[is_seen]],
                train_weight=None if weight is None else weight[is_seen],
            )
            scores = np.array(self.rows.scores)
            if is_seen.any():
                scores[is_own] = recalibrated_by_fold(
                    recalibrator, own_fold, columns, codes, groups[is_own]
                )
            predicted.append(scores)
        return predicted

    def _predicted(self, recalibrator, fold, groups=None):
        return recalibrated_by_fold(
            recalibrator, fold, self.columns, self.codes, groups
        )

    def _trial(self, name, predicted, column=None, groups=(), others=None):
        losses = {}
        for loss, function in LOSSES.items():
            by_fold = [function(scores, self.rows.labels) for scores in predicted]
            losses[loss] = np.array(by_fold)
        probabilities = np.concatenate(
            [
                scores[fold.test]
                for scores, fold in zip(predicted, self.folds, strict=True)
            ]
        )
        return Trial(name, losses, probabilities, column, groups, others)

    def out_of_fold(self, losses):
        """Return of losses (folds, rows) those of the fits without the row."""
        return np.concatenate(
            [loss[fold.test] for loss, fold in zip(losses, self.folds, strict=True)]
        )

    def gain(self, before, after, loss="log"):
        """Return how much lower the loss of one trial is than that of another, as
        `Rows.mean` does.
        """
        gains = before.losses[loss] - after.losses[loss]
        weight, total = self.rows.sample_weight, len(self.codes)
        by_unit = gains
        if weight is not None:
            total = weight.sum()
            # A row of weight 2 is two rows: their variances add up.
            scale = np.sqrt(weight) if self.units is None else weight
            by_unit = gains * scale
        if self.units is not None:
            by_unit = np.array([np.bincount(self.units, part) for part in by_unit])
        # The noise of the fits is the jackknife's, over the fits without one fold each:
        # see `gain_interval`.
        of_fits = (N_FOLDS - 1) * by_unit.var(axis=0).sum() / total**2
        return self.tested.mean(self.out_of_fold(gains), of_fits)

    def by_row(self, trial):
        """Return the out-of-fold log-loss of each row."""
        weight = self.tested.sample_weight
        if weight is None:
            weight = np.ones(len(self.tested_rows))
        losses = self.out_of_fold(trial.losses["log"])
        total = np.bincount(self.tested_rows, weight)
        return np.bincount(self.tested_rows, weight * losses) / total

    def loss(self, trial, loss="log"):
        """Return the mean out-of-fold loss of a trial."""
        return mean(self.out_of_fold(trial.losses[loss]), self.tested.sample_weight)

    def row(self, trial, before):
        """Return the scores of a recalibrator as a row of the table of candidates."""
        gain, gain_low, gain_high, _ = self.gain(before, trial)
        brier_gain, brier_low, brier_high, _ = self.gain(before, trial, "brier")
        task = self.predicted(trial)
        error = calibration_error(
            task.labels, task.scores, **MEAN_ABSOLUTE, **task.given
        )
        return {
            "name": trial.name,
            "segments": list(trial.groups),
            "others": trial.others,
            "log_loss": self.loss(trial),
            "gain": gain,
            "gain_low": gain_low,
            "gain_high": gain_high,
            "brier": self.loss(trial, "brier"),
            "brier_gain": brier_gain,
            "brier_gain_low": brier_low,
            "brier_gain_high": brier_high,
            "calibration_error": error,
        }

    def predicted(self, trial):
        """Return the binary problem of what a trial predicts out of fold."""
        return self.tested._replace(scores=trial.probabilities).task

    def maps(self, step=None):
        """Return the trials of the scores as they are and of the library's
        recalibrators, the simplest first.

        Without those that take long for so many classes; and without the stack where it
        would mix curves for nothing: where no curve beats the maps of one to three
        numbers by more than noise.
        """
        n_classes, found = self.columns.shape[1], [self.unchanged()]
        for kind in OF_TWO_CLASSES if n_classes == 1 else OF_MORE_CLASSES:
            if kind == "DirichletCalibration" and n_classes > _MOST_CLASSES_OF_MATRIX:
                continue
            if kind == "StackedRecalibrator" and not self._is_worth_a_stack(found):
                continue
            if step is not None:
                step(kind)
            found.append(self.trial(getattr(catalogue, kind)()))
        return found

    def _is_worth_a_stack(self, found):
        """Return whether a stack is tried after these trials."""
        if self.columns.shape[1] > 1:
            return self.columns.size <= _MOST_SCORES_OF_STACK
        simple, curves = found[:-_N_CURVES], found[-_N_CURVES:]
        pvalue = self.gain(self.best(simple), self.best(curves))[3]
        return pvalue <= _NO_CURVE

    def best(self, trials):
        """Return the trial with the lowest log-loss."""
        return min(trials, key=self.loss)
