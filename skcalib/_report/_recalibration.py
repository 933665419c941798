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
# A *division* assigns the rows to folds. Small tables are divided several times, since
# otherwise the advice would depend on which rows share a fold: up to 3 times, as long
# as the rows of all divisions together are not more than 15,000.
_MOST_DIVISIONS = 3
_MOST_ROWS_DIVIDED = 15_000
_CLOSE_DIVISIONS = 12  # divisions if a decision is close
# Larger tables are sampled: the gains are known well enough from this number of rows.
_MOST_ROWS = 20_000
# With many classes the sample has at most this number of scores, but at least so many
# rows.
_MOST_SCORES = 200_000
_FEWEST_ROWS = 4000
# With more classes a matrix, and with more scores a stack, takes too long to fit.
_MOST_CLASSES_OF_MATRIX = 20
_MOST_SCORES_OF_STACK = 30_000
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
_N_CURVES = 2  # the last recalibrators before the stack are curves
# The stack is not tried if the curves beat the simpler maps with a larger p-value.
_NO_CURVE = 0.2


def most_rows(classes):
    """Return how many rows the recalibrators are tried on at most.

    `classes` are the names of the classes, None for one event. With many classes the
    rows are fewer, since each has a score for every class.
    """
    if classes is None:
        return _MOST_ROWS
    return min(_MOST_ROWS, max(_MOST_SCORES // len(classes), _FEWEST_ROWS))


@dataclass(frozen=True, eq=False)
class Trial:
    """A recalibrator that was fitted without each fold in turn.

    Attributes
    ----------
    name : str
        Its name.
    losses : dict of ndarray of shape (n_divisions * N_FOLDS, n_rows)
        By the name of the loss: losses of all rows under the fit without each fold.
    probabilities : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Out-of-fold probabilities in the first division, in the order of its folds.
    column : str or None
        Column of segments, if it maps by segment.
    groups : tuple of str
        The segments that have a map of their own.
    others : {"unchanged", "shared"} or None
        What the other segments have: their scores, or one map.
    recalibrator : recalibrator or None
        Unfitted; None for the scores unchanged.
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

    Attributes
    ----------
    rows : Rows
        The rows.
    segmentations : dict of ndarray of shape (n_rows,)
        Segment of each row, by the name of the column.
    seed : int
        Seeds the folds.
    n_divisions : int
        How often the rows are divided into folds.
    """

    rows: Rows
    segmentations: dict = field(default_factory=dict)
    seed: int = 0
    n_divisions: int = 1

    @classmethod
    def of(cls, table, name, seed, n_divisions=None):
        """Return a sample of the rows of a model, with scores in double precision.

        By default few rows are divided into folds up to three times, many once. Rows
        of several classes are divided once, and so are weighted rows: their copies may
        lie in several folds, so that divisions could not be averaged by row.
        """
        sample = table.sample(most_rows(table.classes), seed)
        rows = table.forecasts(name)._replace(periods=table.periods)
        rows = rows.at(sample)
        rows = rows._replace(scores=rows.scores.astype(np.float64))
        segmentations = {}
        for column, names in table.segmentations.items():
            segmentations[column] = names[sample]
        if n_divisions is None:
            n_divisions = 1
            if table.classes is None and rows.sample_weight is None:
                # As many as keep the rows of all divisions together few enough.
                n_divisions = _MOST_ROWS_DIVIDED // max(len(rows.labels), 1)
                n_divisions = min(max(n_divisions, 1), _MOST_DIVISIONS)
        return cls(rows, segmentations, seed, n_divisions)

    def at(self, rows):
        """Return some of the rows: those of a mask or of an array of positions."""
        segmentations = {}
        for column, names in self.segmentations.items():
            segmentations[column] = names[rows]
        return TrialRows(self.rows.at(rows), segmentations, self.seed, self.n_divisions)

    @cached_property
    def units(self):
        """Code of each row's independent unit, (n_rows,): its cluster, or the row
        itself with importance weights.

        None for rows that are independent and count as often as their frequency weight
        says.
        """
        if self.rows.clusters is not None:
            return np.unique(self.rows.clusters, return_inverse=True)[1]
        if self.rows.weight_type == "importance":
            return np.arange(len(self.codes))
        return None

    @property
    def folds(self):
        """The folds of the first random division of the rows, a list of `Fold`; None if
        there are too few rows.
        """
        if self.divisions is None:
            return None
        return self.divisions[0]

    @cached_property
    def divisions(self):
        """Different random divisions of the rows into folds: `n_divisions` lists of
        `Fold`.

        None if fewer than two classes have as many rows as there are folds, or if there
        are fewer clusters than folds.
        """
        class_counts = np.sort(np.bincount(self.codes, minlength=2))
        second_largest = class_counts[-2]
        if second_largest < N_FOLDS:
            return None
        if self.rows.clusters is not None:
            n_clusters = self.units.max() + 1
            if n_clusters < N_FOLDS:
                return None
        return [self._division(k) for k in range(self.n_divisions)]

    @cached_property
    def _known_divisions(self):
        """A dict of the divisions made so far, from their number to a list of `Fold`.

        It is filled by `_division`.
        """
        return {}

    def _division(self, k):
        """Return the k-th random division of the rows into folds, a list of `Fold`; it
        is kept for later calls.
        """
        if k not in self._known_divisions:
            self._known_divisions[k] = self._new_division(k)
        return self._known_divisions[k]

    def _new_division(self, k):
        """Divide the rows into folds at random, and return the list of `Fold`.

        All rows of a cluster lie in one fold. Each division has a seed of its own:
        division 0 that of the report, the others one that is drawn from it and k.
        """
        seed = self.seed
        if k > 0:
            seed = int(np.random.default_rng([self.seed, k]).integers(2**31))
        cv = N_FOLDS
        if self.rows.clusters is not None:
            n_clusters = self.units.max() + 1
            # Clusters in random order are dealt to the folds in turn.
            place_of_cluster = np.random.default_rng(seed).permutation(n_clusters)
            fold_of_row = place_of_cluster[self.units] % N_FOLDS
            cv = []
            for fold in range(N_FOLDS):
                is_test = fold_of_row == fold
                cv.append((np.flatnonzero(~is_test), np.flatnonzero(is_test)))
        # Folds with the class frequencies of the other rows would reward a fit to the
        # noise of these frequencies.
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
        """The folds of all divisions, in one list."""
        return list(chain.from_iterable(self.divisions))

    @cached_property
    def codes(self):
        """Labels as column indices, (n_rows,)."""
        return self.rows.labels.astype(np.intp)

    @cached_property
    def columns(self):
        """Scores (n_rows, n_columns): one column for an event, else one per class."""
        return self.rows.scores.reshape(len(self.codes), -1)

    @cached_property
    def tested_rows(self):
        """The positions of the rows in the order of out-of-fold predictions: those of
        the first fold (of the first division), then those of the second, and so on.
        """
        return np.concatenate([fold.test for fold in self.folds])

    @cached_property
    def tested(self):
        """The rows in the order of `tested_rows`.

        A weighted row may be in several folds, in each with a part of its weight: these
        parts are the weights here.
        """
        rows = self.rows.at(self.tested_rows)
        if rows.sample_weight is None:
            return rows
        weight = np.concatenate([fold.test_weight for fold in self.folds])
        return rows._replace(sample_weight=weight)

    def tested_segments(self, column):
        """Return the segment of each row by a column, in the order of `tested_rows`."""
        return self.segmentations[column][self.tested_rows]

    def unchanged(self):
        """Return the `Trial` of the unchanged scores."""
        return self._trial("as it is", [self.rows.scores] * len(self.all_folds))

    def trial(self, recalibrator, column=None, segments=(), others="shared"):
        """Return the `Trial` of a recalibrator.

        Without a `column` one map is fitted to all rows. With one, each of these
        `segments` of the column has a map of its own, and `others` says what is done in
        all other segments: "shared" fits one map to them, "unchanged" keeps their
        scores.
        """
        name = type(recalibrator).__name__
        segments = tuple(segments)
        if column is None:
            others = None
        else:
            name = f"GroupwiseRecalibrator({name}())"
            recalibrator = catalogue.GroupwiseRecalibrator(recalibrator)
        predicted = self._predictions(
            recalibrator, self.all_folds, column, segments, others
        )
        trial = self._trial(name, predicted, column, segments, others)
        return replace(trial, recalibrator=recalibrator)

    def with_more_divisions(self, trial):
        """Return a trial that is fitted on 12 divisions of the rows into folds, for a
        decision that is close. It is returned unchanged if it has them already, or if
        the rows are divided only once.
        """
        if self.n_divisions == 1 or trial.n_divisions >= _CLOSE_DIVISIONS:
            return trial
        divisions = range(trial.n_divisions, _CLOSE_DIVISIONS)
        folds = list(chain.from_iterable(self._division(k) for k in divisions))
        predicted = [self.rows.scores] * len(folds)  # those of the unchanged scores
        if trial.recalibrator is not None:
            predicted = self._predictions(
                trial.recalibrator, folds, trial.column, trial.groups, trial.others
            )
        losses = {}
        for name, further in self._losses(predicted).items():
            losses[name] = np.concatenate((trial.losses[name], further))
        return replace(trial, losses=losses)

    def _predictions(self, recalibrator, folds, column, segments, others):
        """Return a list of the probabilities of all rows by the fit without each fold;
        see `trial` for `column`, `segments` and `others`.
        """
        if column is None:
            return [self._predicted(recalibrator, fold) for fold in folds]
        segment_of_row = self.segmentations[column]
        is_mapped = np.isin(segment_of_row, segments)
        # The segments without a map of their own are one group, called "".
        groups = np.where(is_mapped, segment_of_row, "")
        if others == "shared":
            return [self._predicted(recalibrator, fold, groups) for fold in folds]
        return self._predicted_for(is_mapped, recalibrator, groups, folds)

    def _predicted_for(self, is_mapped, recalibrator, groups, folds):
        """Return a list with the probabilities of all rows for each fold, where only
        the rows with True in `is_mapped` (n_rows,) are recalibrated: by a fit to those
        among them that are outside the fold. All other rows keep their scores.

        `groups` (n_rows,) is the segment of each row.
        """
        columns = self.columns[is_mapped]
        codes = self.codes[is_mapped]
        # The position of a mapped row among the mapped rows.
        position = np.cumsum(is_mapped) - 1
        predicted = []
        for fold in folds:
            is_trained = is_mapped[fold.train]  # of the rows outside the fold
            fold_of_mapped = fold._replace(
                train=position[fold.train[is_trained]],
                train_weight=taken(fold.train_weight, is_trained),
            )
            scores = np.array(self.rows.scores)
            if is_trained.any():
                scores[is_mapped] = recalibrated_by_fold(
                    recalibrator, fold_of_mapped, columns, codes, groups[is_mapped]
                )
            predicted.append(scores)
        return predicted

    def _predicted(self, recalibrator, fold, groups=None):
        """Return the probabilities of all rows by the fit without a fold."""
        return recalibrated_by_fold(
            recalibrator, fold, self.columns, self.codes, groups
        )

    def _trial(self, name, predicted, column=None, groups=(), others=None):
        """Return a `Trial` from a list of the probabilities of all rows by the fit
        without each fold, of all divisions.
        """
        losses = self._losses(predicted)
        # Only the folds of the first division: the list is longer.
        held_out = []
        for scores, fold in zip(predicted, self.folds, strict=False):
            held_out.append(scores[fold.test])
        probabilities = np.concatenate(held_out)
        return Trial(name, losses, probabilities, column, groups, others)

    def _losses(self, predicted):
        """Return the losses of all rows under the predictions of each fold's fit,
        (n_folds, n_rows), by the name of the loss.
        """
        losses = {}
        for loss, function in LOSSES.items():
            by_fold = [function(scores, self.rows.labels) for scores in predicted]
            losses[loss] = np.array(by_fold)
        return losses

    def out_of_fold(self, losses):
        """Return the out-of-fold losses of the rows, averaged over the divisions, in
        the order of `tested_rows`.

        `losses` (n_divisions * N_FOLDS, n_rows) are those of all rows under each fit.
        """
        by_division = []
        for k in range(len(losses) // N_FOLDS):
            folds = self._division(k)
            division_losses = losses[k * N_FOLDS : (k + 1) * N_FOLDS]
            tested = []
            for fold_losses, fold in zip(division_losses, folds, strict=True):
                tested.append(fold_losses[fold.test])
            tested = np.concatenate(tested)
            if k > 0:
                # From the order of these folds to that of the first division. Each row
                # is tested once: weighted rows, whose copies may be tested in several
                # folds, have a single division.
                by_row = np.empty(len(self.codes))
                by_row[np.concatenate([fold.test for fold in folds])] = tested
                tested = by_row[self.tested_rows]
            by_division.append(tested)
        return np.mean(by_division, axis=0)

    def gain(self, before, after, loss="log"):
        """Return (gain, low, high, p-value) of the trial `after` over `before`: how
        much lower its mean out-of-fold loss is, with an interval, and the p-value of
        "there is no gain".

        The variance of the gain is that of the mean over the rows, plus that of the
        fits, which depend on the rows they had.
        """
        # A trial on more divisions than the other is compared on those of both.
        n_folds = N_FOLDS * min(before.n_divisions, after.n_divisions)
        gains = before.losses[loss][:n_folds] - after.losses[loss][:n_folds]
        weight = self.rows.sample_weight
        total = total_weight(weight, len(self.codes))
        # The gain of each fold's fit on each independent unit (a row or a cluster), a
        # sum over its rows: (n_folds, n_units).
        by_unit = gains
        if weight is not None and self.units is None:
            # A row of weight w is w rows, whose variances add up: w times its square.
            by_unit = gains * np.sqrt(weight)
        elif weight is not None:
            by_unit = gains * weight
        if self.units is not None:
            by_unit = np.array([np.bincount(self.units, fold) for fold in by_unit])
        # The variance due to the fits, by the jackknife over K fits without one fold
        # each: K - 1 times the variance of a unit's gain over the fits, summed over the
        # units.
        fit_variance = (N_FOLDS - 1) * by_unit.var(axis=0).sum() / total**2
        expected_variance = 0.0
        if loss == "log":
            expected_variance = self._expected_variance(before, after)
        return self.tested.mean(
            self.out_of_fold(gains),
            more_variance=fit_variance,
            expected_variance=expected_variance,
        )

    def _expected_variance(self, before, after):
        """Return the variance that the mean gain in log-loss of the trial `after` over
        `before` would have if labels were drawn with the probabilities of `before`.

        It takes account of rare labels that the sample happens not to have: scores of
        .999 that were all right so far do not prove that 1 is better.
        """
        labels = self.tested.labels
        frequency = before.probabilities
        log_loss = LOSSES["log"]
        if frequency.ndim == 1:
            # Bernoulli: p (1 - p) times the squared difference of the gains with both
            # labels.
            gain_by_label = []
            for label in (np.zeros_like(labels), np.ones_like(labels)):
                loss_before = log_loss(frequency, label)
                gain_by_label.append(loss_before - log_loss(after.probabilities, label))
            if_no_event, if_event = gain_by_label
            variance = frequency * (1 - frequency) * (if_event - if_no_event) ** 2
        else:
            # The gain with each class as the label, (n_rows, n_classes).
            gain_by_class = log_probability(after.probabilities) - log_probability(
                frequency
            )
            mean_gain = np.sum(frequency * gain_by_class, axis=1)
            mean_square = np.sum(frequency * gain_by_class**2, axis=1)
            variance = mean_square - mean_gain**2
        weight = self.tested.sample_weight
        if weight is None:
            return variance.sum() / len(variance) ** 2
        # A frequency weight w is w independent rows, whose variances add up. An
        # importance weight w multiplies one row, and its variance by the square.
        factor = weight
        if self.rows.weight_type == "importance":
            factor = weight**2
        return factor @ variance / weight.sum() ** 2

    def by_row(self, trial):
        """Return the out-of-fold log-loss of each row, in the order of the rows.

        Where the copies of a weighted row are tested in several folds, it is the
        weighted mean over these.
        """
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
        """Return the results of a trial as a dict, a row of the table of candidates;
        `before` is the trial of the unchanged scores.
        """
        gain, gain_low, gain_high, _ = self.gain(before, trial)
        brier_gain, brier_low, brier_high, _ = self.gain(before, trial, "brier")
        event_rows = self.predicted(trial)
        error = calibration_error(
            event_rows.labels,
            event_rows.scores,
            **MEAN_ABSOLUTE,
            **event_rows.metric_options,
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
        """Return the out-of-fold probabilities of a trial as `Rows` of one event, in
        the order of `tested_rows`.
        """
        return self.tested._replace(scores=trial.probabilities).event_rows

    def maps(self, step=None):
        """Return the trials of the unchanged scores and of the library's recalibrators,
        the simplest first. `step` is called with the name of each before it is tried.

        Recalibrators that take long with many classes are left out, and so is the stack
        if no curve beats the maps with one to three parameters by more than noise.
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

    def _is_worth_a_stack(self, trials):
        """Return whether a stack is tried after these trials, the curves the last two.

        With several classes it is if the scores are few enough to be fitted in time;
        with one event, if the better curve may beat the best simpler map.
        """
        if self.columns.shape[1] > 1:
            return self.columns.size <= _MOST_SCORES_OF_STACK
        simple = trials[:-_N_CURVES]
        curves = trials[-_N_CURVES:]
        *_, pvalue = self.gain(self.best(simple), self.best(curves))
        return pvalue <= _NO_CURVE

    def best(self, trials):
        """Return the trial with the lowest log-loss."""
        return min(trials, key=self.loss)
