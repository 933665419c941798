"""What each recalibrator would gain on the rows of a report, by cross-validation."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np

from skcalib import recalibrators as catalogue
from skcalib._errors.proper_scores import LOSSES
from skcalib._fitting.folds import cross_validation_folds
from skcalib._report._statistics import MEAN_ABSOLUTE, Rows, mean
from skcalib._rows.blocks import taken, total_weight
from skcalib._rows.links import log_probability
from skcalib.evaluation._gain import recalibrated_by_fold
from skcalib.metrics import calibration_error

N_FOLDS = 5
# A few rows are divided into folds several times: which rows share a fold would
# decide the advice otherwise.
_MOST_DIVISIONS, _MOST_ROWS_DIVIDED = 3, 15_000
_CLOSE_DIVISIONS = 12  # where a decision is close
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
    """A recalibrator that was fitted on all folds but one, for each: losses (folds of
    all divisions, rows), and what it predicts out of the folds of the first division.

    `groups` are the segments of `column` with a map of their own; the `others` are
    "unchanged", or one map is "shared" by them.
    """

    name: str
    losses: dict
    probabilities: np.ndarray
    column: str | None = None
    groups: tuple = ()
    others: str | None = None
    recalibrator: object | None = None

    @property
    def n_divisions(self):
        """Number of divisions into folds that it was fitted on."""
        return len(self.losses["log"]) // N_FOLDS


@dataclass(frozen=True, eq=False)
class TrialRows:
    """A sample of the rows of a report, on which recalibrators are tried.

    `segmentations` are the segments of the rows by name of their column.
    """

    rows: Rows
    segmentations: dict = field(default_factory=dict)
    seed: int = 0
    n_divisions: int = 1

    @classmethod
    def of(cls, table, name, seed, n_divisions=None):
        """Return a sample of the rows of a model, with scores in double precision.

        They are divided into folds once, or up to three times where they are few and
        have no weights, which would divide rows themselves.
        """
        sample = table.sample(most_rows(table.classes), seed)
        rows = table.forecasts(name)._replace(periods=table.periods).at(sample)
        rows = rows._replace(scores=rows.scores.astype(np.float64))
        segmentations = {
            column: names[sample] for column, names in table.segmentations.items()
        }
        if n_divisions is None:
            n_divisions = 1
            if table.classes is None and rows.sample_weight is None:
                n_divisions = _MOST_ROWS_DIVIDED // max(len(rows.labels), 1)
                n_divisions = min(max(n_divisions, 1), _MOST_DIVISIONS)
        return cls(rows, segmentations, seed, n_divisions)

    def at(self, rows):
        """Return some of the rows."""
        segmentations = {
            column: names[rows] for column, names in self.segmentations.items()
        }
        return TrialRows(self.rows.at(rows), segmentations, self.seed, self.n_divisions)

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

    @property
    def folds(self):
        """The folds of the first division; None where there are too few rows."""
        return None if self.divisions is None else self.divisions[0]

    @cached_property
    def divisions(self):
        """The first divisions into folds that keep clusters whole; None where a class
        (of several: all but one) has fewer rows than folds.
        """
        counts = np.sort(np.bincount(self.codes, minlength=2))
        if counts[-2] < N_FOLDS:
            return None
        if self.rows.clusters is not None:
            n_clusters = self.units.max() + 1
            if n_clusters < N_FOLDS:
                return None
        return [self._division(k) for k in range(self.n_divisions)]

    @cached_property
    def _known_divisions(self):
        return {}

    def _division(self, k):
        """Return the folds of a division; the first one has the seed of the report."""
        if k not in self._known_divisions:
            self._known_divisions[k] = self._new_division(k)
        return self._known_divisions[k]

    def _new_division(self, k):
        seed = self.seed
        if k > 0:
            seed = int(np.random.default_rng([self.seed, k]).integers(2**31))
        cv = N_FOLDS
        if self.rows.clusters is not None:
            n_clusters = self.units.max() + 1
            shuffled = np.random.default_rng(seed).permutation(n_clusters)
            fold_of_row = shuffled[self.units] % N_FOLDS
            cv = []
            for fold in range(N_FOLDS):
                is_test = fold_of_row == fold
                cv.append((np.flatnonzero(~is_test), np.flatnonzero(is_test)))
        return cross_validation_folds(
            cv,
            self.columns,
            self.codes,
            self.rows.sample_weight,
            stratified=False,
            seed=seed,
        )

    @property
    def all_folds(self):
        """The folds of all divisions."""
        return list(chain.from_iterable(self.divisions))

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
        return self._trial("as it is", [self.rows.scores] * len(self.all_folds))

    def trial(self, recalibrator, column=None, own=(), others="shared"):
        """Return the trial of a recalibrator; with a column, its segments `own` have a
        map of their own.
        """
        name = type(recalibrator).__name__
        if column is not None:
            name = f"GroupwiseRecalibrator({name}())"
            recalibrator = catalogue.GroupwiseRecalibrator(recalibrator)
        own, others = tuple(own), None if column is None else others
        predicted = self._predictions(recalibrator, self.all_folds, column, own, others)
        trial = self._trial(name, predicted, column, own, others)
        return replace(trial, recalibrator=recalibrator)

    def closely(self, trial):
        """Return a trial on more divisions into folds, for a decision that is close;
        on those that it has where the rows are divided once.
        """
        if self.n_divisions == 1 or trial.n_divisions >= _CLOSE_DIVISIONS:
            return trial
        divisions = range(trial.n_divisions, _CLOSE_DIVISIONS)
        folds = [fold for k in divisions for fold in self._division(k)]
        predicted = [self.rows.scores] * len(folds)
        if trial.recalibrator is not None:
            predicted = self._predictions(
                trial.recalibrator, folds, trial.column, trial.groups, trial.others
            )
        losses = {
            name: np.concatenate((trial.losses[name], more))
            for name, more in self._losses(predicted).items()
        }
        return replace(trial, losses=losses)

    def _predictions(self, recalibrator, folds, column, own, others):
        """Return what each fold predicts for all rows."""
        if column is None:
            return [self._predicted(recalibrator, fold) for fold in folds]
        segments = self.segmentations[column]
        is_own = np.isin(segments, own)
        groups = np.where(is_own, segments, "")
        if others == "shared":
            return [self._predicted(recalibrator, fold, groups) for fold in folds]
        return self._predicted_for(is_own, recalibrator, groups, folds)

    def _predicted_for(self, is_own, recalibrator, groups, folds):
        """Return what each fold predicts where only some of the rows are fitted to and
        recalibrated.
        """
        columns = self.columns[is_own]
        codes = self.codes[is_own]
        place = np.cumsum(is_own) - 1
        predicted = []
        for fold in folds:
            is_seen = is_own[fold.train]
            weight = fold.train_weight
            own_fold = fold._replace(
                train=place[fold.train[is_seen]],
                train_weight=taken(weight, is_seen),
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
        """Return a `Trial` of the scores that each fold's fit gives all rows."""
        losses = self._losses(predicted)
        # the forecasts of rows by the fit that has not seen them, fold after fold
        held_out = []
        for scores, fold in zip(predicted, self.folds, strict=False):
            held_out.append(scores[fold.test])
        probabilities = np.concatenate(held_out)
        return Trial(name, losses, probabilities, column, groups, others)

    def _losses(self, predicted):
        """Return the losses of the predictions of each fold, by name."""
        losses = {}
        for loss, function in LOSSES.items():
            by_fold = [function(scores, self.rows.labels) for scores in predicted]
            losses[loss] = np.array(by_fold)
        return losses

    def out_of_fold(self, losses):
        """Return of losses (folds of all divisions, rows) those of the fits without the
        row, on average over the divisions, in the order of the first one.
        """
        found = []
        for k in range(len(losses) // N_FOLDS):
            folds = self._division(k)
            of_division = losses[k * N_FOLDS : (k + 1) * N_FOLDS]
            tested = np.concatenate(
                [loss[fold.test] for loss, fold in zip(of_division, folds, strict=True)]
            )
            if k > 0:
                # In another order, each row once: divisions that divide rows are alone.
                by_row = np.empty(len(self.codes))
                by_row[np.concatenate([fold.test for fold in folds])] = tested
                tested = by_row[self.tested_rows]
            found.append(tested)
        return np.mean(found, axis=0)

    def gain(self, before, after, loss="log"):
        """Return how much lower the loss of one trial is than that of another, as
        `Rows.mean` does.
        """
        # Trials on more divisions than the other are compared on those of both.
        n_folds = N_FOLDS * min(before.n_divisions, after.n_divisions)
        gains = before.losses[loss][:n_folds] - after.losses[loss][:n_folds]
        weight = self.rows.sample_weight
        total = total_weight(weight, len(self.codes))
        # By fold and independent unit, a row or a cluster.
        by_unit = gains
        if weight is not None and self.units is None:
            # A row of weight 2 is two rows: their variances add up.
            by_unit = gains * np.sqrt(weight)
        elif weight is not None:
            by_unit = gains * weight
        if self.units is not None:
            by_unit = np.array([np.bincount(self.units, fold) for fold in by_unit])
        # The noise of the fits is the jackknife's, over the fits without one fold each:
        # see `gain_interval`.
        of_fits = (N_FOLDS - 1) * by_unit.var(axis=0).sum() / total**2
        surprise = 0.0
        if loss == "log":
            surprise = self._surprise(before, after)
        return self.tested.mean(self.out_of_fold(gains), of_fits, surprise)

    def _surprise(self, before, after):
        """Return the variance of the mean gain of log-loss if the probabilities before
        were right.

        It counts the rare rows that a map speaks against and that a sample happens not
        to have: scores of .999 that were all right so far do not prove that 1 is
        better.
        """
        labels = self.tested.labels
        frequency = before.probabilities
        log_loss = LOSSES["log"]
        # The variance of the gain if the label is drawn with the probability before.
        if frequency.ndim == 1:
            gain_of_label = []
            for label in (np.zeros_like(labels), np.ones_like(labels)):
                loss_before = log_loss(frequency, label)
                gain_of_label.append(loss_before - log_loss(after.probabilities, label))
            difference = gain_of_label[1] - gain_of_label[0]
            by_row = frequency * (1 - frequency) * difference**2
        else:
            gain_of = log_probability(after.probabilities) - log_probability(frequency)
            mean_gain = np.sum(frequency * gain_of, axis=1)
            by_row = np.sum(frequency * gain_of**2, axis=1) - mean_gain**2
        weight = self.tested.sample_weight
        if weight is None:
            return by_row.sum() / len(by_row) ** 2
        if self.rows.weight_type == "importance":
            weight_in_variance = weight**2
        else:
            weight_in_variance = weight
        return weight_in_variance @ by_row / weight.sum() ** 2

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
        n_columns = self.columns.shape[1]
        kinds = OF_TWO_CLASSES if n_columns == 1 else OF_MORE_CLASSES
        trials = [self.unchanged()]
        for kind in kinds:
            if kind == "DirichletCalibration" and n_columns > _MOST_CLASSES_OF_MATRIX:
                continue
            if kind == "StackedRecalibrator" and not self._is_worth_a_stack(trials):
                continue
            if step is not None:
                step(kind)
            trials.append(self.trial(getattr(catalogue, kind)()))
        return trials

    def _is_worth_a_stack(self, found):
        """Return whether a stack is tried after these trials."""
        if self.columns.shape[1] > 1:
            return self.columns.size <= _MOST_SCORES_OF_STACK
        simple = found[:-_N_CURVES]
        curves = found[-_N_CURVES:]
        pvalue = self.gain(self.best(simple), self.best(curves))[3]
        return pvalue <= _NO_CURVE

    def best(self, trials):
        """Return the trial with the lowest log-loss."""
        return min(trials, key=self.loss)
