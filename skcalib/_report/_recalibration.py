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
_CURVES = ("SplineCalibration", "IsotonicCalibration")
# The stack is not fitted if the curves beat the simpler maps with a larger p-value.
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
class Candidate:
    """A recalibrator that was fitted without each fold in turn, and its losses.

    Attributes
    ----------
    name : str
        Its name.
    losses : dict of ndarray of shape (n_divisions * N_FOLDS, n_rows)
        By the name of the loss ("log", "brier"): the loss of every sample under the fit
        without each fold, also of the samples that it was fitted to.
    probabilities : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Out-of-fold probabilities in the first division, in the order of its folds.
    column : str or None
        Column of segments, if it maps by segment.
    segments : tuple of str
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
    segments: tuple = ()
    others: str | None = None
    recalibrator: object | None = None

    @property
    def n_divisions(self):
        """Number of divisions into folds that it was fitted on."""
        return len(self.losses["log"]) // N_FOLDS


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Samples of a report and their folds, by which recalibrators are compared.

    Attributes
    ----------
    rows : Rows
        The samples.
    segmentations : dict of ndarray of shape (n_rows,)
        Segment of each sample, by the name of the column.
    seed : int
        Seed for the folds.
    n_divisions : int
        How often the samples are divided into folds.
    """

    rows: Rows
    segmentations: dict = field(default_factory=dict)
    seed: int = 0
    n_divisions: int = 1

    @classmethod
    def of(cls, table, name, seed, n_divisions=None):
        """Return the cross-validation of a model on the rows of a `ReportTable`, or on
        a random sample of them if there are many.

        `name` is the name of the model, `n_divisions` how often the rows are divided
        into folds. None means up to three times for small tables, and once for large
        ones, for several classes and for weighted rows (copies of a weighted row may
        lie in several folds, so that losses cannot be averaged over divisions by row).
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

    def at(self, selected):
        """Return the cross-validation of some of the samples: those of a mask (n_rows,)
        or of an array of positions.
        """
        segmentations = {}
        for column, names in self.segmentations.items():
            segmentations[column] = names[selected]
        return CrossValidation(
            self.rows.at(selected), segmentations, self.seed, self.n_divisions
        )

    @cached_property
    def units(self):
        """Integer code of the independent unit that each sample belongs to, (n_rows,):
        its cluster or, with importance weights, the sample itself.

        None without clusters and importance weights: each sample then stands for as
        many independent ones as its frequency weight says.
        """
        if self.rows.clusters is not None:
            _, codes = np.unique(self.rows.clusters, return_inverse=True)
            return codes
        if self.rows.weight_type == "importance":
            return np.arange(len(self.codes))
        return None

    @property
    def folds(self):
        """The folds of the first random division of the samples, a list of `Fold`; None
        if there are too few samples.
        """
        if self.divisions is None:
            return None
        return self.divisions[0]

    @cached_property
    def divisions(self):
        """Different random divisions of the samples into folds: a list of `n_divisions`
        lists of `Fold`.

        None if fewer than two classes have as many samples as there are folds, or if
        there are fewer clusters than folds.
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
        """Return the k-th random division of the samples into folds, a list of `Fold`;
        it is kept for later calls.
        """
        if k not in self._known_divisions:
            self._known_divisions[k] = self._new_division(k)
        return self._known_divisions[k]

    def _new_division(self, k):
        """Divide the samples into folds at random, and return the list of `Fold`.

        `k` is the number of the division, and decides its seed: that of the report for
        0, else one that is drawn from it and k. All samples of a cluster lie in one
        fold.
        """
        seed = self.seed
        if k > 0:
            seed = int(np.random.default_rng([self.seed, k]).integers(2**31))
        cv = N_FOLDS
        if self.rows.clusters is not None:
            cv = self._folds_of_clusters(seed)
        # Not stratified: with equal class frequencies in all folds, a recalibrator that
        # fits the noise in these frequencies would look better than it is.
        return cross_validation_folds(
            cv,
            self.columns,
            self.codes,
            self.rows.sample_weight,
            stratified=False,
            seed=seed,
        )

    def _folds_of_clusters(self, seed):
        """Return pairs of positions (training, test), one for each fold, such that each
        cluster lies in one fold: clusters in random order are dealt to the folds in
        turn.
        """
        n_clusters = self.units.max() + 1
        random_rank = np.random.default_rng(seed).permutation(n_clusters)
        fold_of_row = random_rank[self.units] % N_FOLDS
        folds = []
        for fold in range(N_FOLDS):
            is_test = fold_of_row == fold
            folds.append((np.flatnonzero(~is_test), np.flatnonzero(is_test)))
        return folds

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
    def fold_order(self):
        """The positions of the samples in the order of out-of-fold predictions: those
        of the first fold (of the first division), then those of the second, and so on.
        """
        return np.concatenate([fold.test for fold in self.folds])

    @cached_property
    def in_fold_order(self):
        """The samples in the order of `fold_order`, as `Rows`.

        A sample with a frequency weight may be in several folds, in each with a part of
        its weight: these parts are the weights here.
        """
        rows = self.rows.at(self.fold_order)
        if rows.sample_weight is None:
            return rows
        weight = np.concatenate([fold.test_weight for fold in self.folds])
        return rows._replace(sample_weight=weight)

    def segments_in_fold_order(self, column):
        """Return each sample's segment by a column, in the order of `fold_order`."""
        return self.segmentations[column][self.fold_order]

    def unchanged(self):
        """Return the `Candidate` of the unchanged scores."""
        same_for_each_fold = [self.rows.scores] * len(self.all_folds)
        return self._with_losses("as it is", same_for_each_fold)

    def candidate(self, recalibrator, column=None, segments=(), others="shared"):
        """Fit a recalibrator without each fold, and return it as `Candidate`.

        Parameters
        ----------
        recalibrator : recalibrator
            Unfitted.
        column : str, default=None
            Column of segments; None means one map for all samples.
        segments : iterable of str, default=()
            The segments of the column that get a map of their own.
        others : {"shared", "unchanged"}, default="shared"
            What all other segments get: one map together, or their scores as they are.
        """
        name = type(recalibrator).__name__
        segments = tuple(segments)
        if column is None:
            others = None
        else:
            name = f"GroupwiseRecalibrator({name}())"
            recalibrator = catalogue.GroupwiseRecalibrator(recalibrator)
        predictions = self._predictions(
            recalibrator, self.all_folds, column, segments, others
        )
        candidate = self._with_losses(name, predictions, column, segments, others)
        return replace(candidate, recalibrator=recalibrator)

    def with_more_divisions(self, candidate):
        """Return a candidate with losses from 12 divisions of the samples into folds,
        for a decision that is close. It is returned unchanged if it has them already,
        or if the samples are divided only once.
        """
        if self.n_divisions == 1 or candidate.n_divisions >= _CLOSE_DIVISIONS:
            return candidate
        folds = []
        for k in range(candidate.n_divisions, _CLOSE_DIVISIONS):
            folds += self._division(k)
        if candidate.recalibrator is None:  # the unchanged scores
            predictions = [self.rows.scores] * len(folds)
        else:
            predictions = self._predictions(
                candidate.recalibrator,
                folds,
                candidate.column,
                candidate.segments,
                candidate.others,
            )
        losses = {}
        for name, further in self._losses(predictions).items():
            losses[name] = np.concatenate((candidate.losses[name], further))
        return replace(candidate, losses=losses)

    def _predictions(self, recalibrator, folds, column, segments, others):
        """Return a list of the probabilities of all samples, one array for each fold:
        by the recalibrator that is fitted without the fold.

        Without a `column` of segments, one map is fitted to all samples. With one, each
        of its `segments` has a map of its own. The other segments are then fitted as
        one group if `others` is "shared", and keep their scores if it is "unchanged".
        """
        if column is None:
            return [self._predicted(recalibrator, fold) for fold in folds]
        segment_of_row = self.segmentations[column]
        is_mapped = np.isin(segment_of_row, segments)
        # The segments without a map of their own are one group, called "".
        groups = np.where(is_mapped, segment_of_row, "")
        if others == "shared":
            return [self._predicted(recalibrator, fold, groups) for fold in folds]
        return self._predictions_of_some(is_mapped, recalibrator, groups, folds)

    def _predictions_of_some(self, is_mapped, recalibrator, groups, folds):
        """Return a list of the probabilities of all samples, one array for each fold,
        where only the samples with True in `is_mapped` (n_rows,) are used to fit the
        recalibrator and are recalibrated. All others keep their scores.

        `groups` (n_rows,) is the segment of each sample.
        """
        columns = self.columns[is_mapped]
        codes = self.codes[is_mapped]
        # From positions among all samples to positions among the mapped ones.
        position = np.full(len(is_mapped), -1)
        position[is_mapped] = np.arange(len(codes))
        predictions = []
        for fold in folds:
            is_trained = is_mapped[fold.train]  # of the samples outside the fold
            fold_of_mapped = fold._replace(
                train=position[fold.train[is_trained]],
                train_weight=taken(fold.train_weight, is_trained),
            )
            scores = np.array(self.rows.scores)
            if is_trained.any():
                scores[is_mapped] = recalibrated_by_fold(
                    recalibrator, fold_of_mapped, columns, codes, groups[is_mapped]
                )
            predictions.append(scores)
        return predictions

    def _predicted(self, recalibrator, fold, groups=None):
        """Return the probabilities of all samples by the recalibrator that is fitted
        without a fold.
        """
        return recalibrated_by_fold(
            recalibrator, fold, self.columns, self.codes, groups
        )

    def _with_losses(self, name, predictions, column=None, segments=(), others=None):
        """Return a `Candidate` from its predictions, those of `_predictions` for the
        folds of all divisions; for the other arguments see `candidate`.
        """
        losses = self._losses(predictions)
        # Out-of-fold probabilities are those of the first division alone.
        out_of_fold = []
        for k, fold in enumerate(self.folds):
            out_of_fold.append(predictions[k][fold.test])
        return Candidate(
            name, losses, np.concatenate(out_of_fold), column, segments, others
        )

    def _losses(self, predictions):
        """Return the loss of each sample by the fit without each fold, a dict from the
        name of the loss to an array (n_folds, n_rows).

        `predictions` is a list of the probabilities of all samples, one for each fold.
        """
        losses = {}
        for loss, function in LOSSES.items():
            by_fold = [function(scores, self.rows.labels) for scores in predictions]
            losses[loss] = np.array(by_fold)
        return losses

    def out_of_fold(self, losses):
        """Return the out-of-fold loss of each sample, averaged over the divisions, in
        the order of `fold_order`.

        `losses` (n_divisions * N_FOLDS, n_rows) are those of all samples under the fit
        without each fold; of these, each sample's loss by the fit without its own fold
        is taken.
        """
        by_division = []
        for k in range(len(losses) // N_FOLDS):
            folds = self._division(k)
            division_losses = losses[k * N_FOLDS : (k + 1) * N_FOLDS]
            held_out = []
            for fold_losses, fold in zip(division_losses, folds, strict=True):
                held_out.append(fold_losses[fold.test])
            held_out = np.concatenate(held_out)
            if k > 0:
                # From the order of these folds to that of the first division. Each
                # sample is in one fold only: weighted samples, whose copies may be in
                # several, are divided once.
                by_row = np.empty(len(self.codes))
                by_row[np.concatenate([fold.test for fold in folds])] = held_out
                held_out = by_row[self.fold_order]
            by_division.append(held_out)
        return np.mean(by_division, axis=0)

    def gain(self, before, after, loss="log"):
        """Return how much lower the mean out-of-fold loss of the candidate `after` is
        than that of the candidate `before`, as `MeanEstimate`; its p-value is that of
        "there is no gain".

        The variance of the gain is that of a mean over the samples, plus that of the
        fits, which depend on the samples they had.
        """
        # If one has been fitted on more divisions, those of both are compared.
        n_folds = N_FOLDS * min(before.n_divisions, after.n_divisions)
        gains = before.losses[loss][:n_folds] - after.losses[loss][:n_folds]
        expected_variance = 0.0
        if loss == "log":
            expected_variance = self._expected_variance(before, after)
        return self.in_fold_order.mean(
            self.out_of_fold(gains),
            more_variance=self._fit_variance(gains),
            expected_variance=expected_variance,
        )

    def _fit_variance(self, gains):
        """Return the variance of a mean gain that is due to the fits, by the jackknife.

        `gains` (n_folds, n_rows) is the gain of every sample under the fit without each
        fold. With K folds, the jackknife variance is K - 1 times the variance over the
        fits; it is summed over independent units, which are clusters or samples.
        """
        weight = self.rows.sample_weight
        total = total_weight(weight, len(self.codes))
        if weight is None:
            weighted = gains
        elif self.units is None:
            # A frequency weight w is w independent samples, whose variances add up to
            # w v: the variance of the gain times the square root of w.
            weighted = gains * np.sqrt(weight)
        else:
            weighted = gains * weight
        if self.units is None:
            unit_sums = weighted
        else:
            # (n_folds, n_units)
            unit_sums = np.array([np.bincount(self.units, fold) for fold in weighted])
        return (N_FOLDS - 1) * unit_sums.var(axis=0).sum() / total**2

    def _expected_variance(self, before, after):
        """Return the variance that the mean gain in log-loss of the candidate `after`
        over `before` would have if labels were drawn with the probabilities of
        `before`.

        It takes account of rare labels that the sample happens not to have: scores of
        .999 that were all right so far do not prove that 1 is better.
        """
        labels = self.in_fold_order.labels
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
        weight = self.in_fold_order.sample_weight
        if weight is None:
            return variance.sum() / len(variance) ** 2
        # A frequency weight w is w independent samples, whose variances add up. An
        # importance weight w multiplies one sample, and its variance by the square.
        factor = weight
        if self.rows.weight_type == "importance":
            factor = weight**2
        return factor @ variance / weight.sum() ** 2

    def log_loss_by_row(self, candidate):
        """Return the out-of-fold log-loss of each sample, (n_rows,), in the order of
        `rows`.

        Where the copies of a weighted sample are in several folds, it is the weighted
        mean over these.
        """
        weight = self.in_fold_order.sample_weight
        if weight is None:
            weight = np.ones(len(self.fold_order))
        losses = self.out_of_fold(candidate.losses["log"])
        weighted_sum = np.bincount(self.fold_order, weight * losses)
        return weighted_sum / np.bincount(self.fold_order, weight)

    def mean_loss(self, candidate, loss="log"):
        """Return the mean out-of-fold loss of a candidate."""
        losses = self.out_of_fold(candidate.losses[loss])
        return mean(losses, self.in_fold_order.sample_weight)

    def table_row(self, candidate, unchanged):
        """Return the losses and gains of a candidate as a dict, a row of the page's
        table of recalibrators; gains are over the candidate `unchanged`.
        """
        gain = self.gain(unchanged, candidate)
        brier_gain = self.gain(unchanged, candidate, "brier")
        event_rows = self.event_rows(candidate)
        error = calibration_error(
            event_rows.labels,
            event_rows.scores,
            **MEAN_ABSOLUTE,
            **event_rows.metric_options,
        )
        return {
            "name": candidate.name,
            "segments": list(candidate.segments),
            "others": candidate.others,
            "log_loss": self.mean_loss(candidate),
            "gain": gain.estimate,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "brier": self.mean_loss(candidate, "brier"),
            "brier_gain": brier_gain.estimate,
            "brier_gain_low": brier_gain.low,
            "brier_gain_high": brier_gain.high,
            "calibration_error": error,
        }

    def event_rows(self, candidate):
        """Return the samples with the out-of-fold probabilities of a candidate, as
        `Rows` of one event, in the order of `fold_order`. With several classes the
        event is that the predicted class is right.
        """
        return self.in_fold_order._replace(scores=candidate.probabilities).event_rows

    def candidates(self, show_progress=None):
        """Return a list of `Candidate`, the simplest first: the unchanged scores, then
        the library's recalibrators, each with one map for all samples.

        Recalibrators that take long with many classes are left out, and so is the stack
        (the average of several recalibrators) where it is unlikely to be better.
        `show_progress` is called with the name of each recalibrator before it is
        fitted.
        """
        n_columns = self.columns.shape[1]
        names = OF_TWO_CLASSES if n_columns == 1 else OF_MORE_CLASSES
        found = [self.unchanged()]
        for name in names:
            if name == "DirichletCalibration" and n_columns > _MOST_CLASSES_OF_MATRIX:
                continue
            if name == "StackedRecalibrator" and not self._is_worth_a_stack(found):
                continue
            if show_progress is not None:
                show_progress(name)
            recalibrator = getattr(catalogue, name)()
            found.append(self.candidate(recalibrator))
        return found

    def _is_worth_a_stack(self, candidates):
        """Return whether to fit a stack, given the simpler candidates.

        With several classes: if there are few enough scores to fit it in time. With one
        event: if the better one of two curves (spline and isotonic) shows signs of a
        gain over the best map with fewer parameters.
        """
        if self.columns.shape[1] > 1:
            return self.columns.size <= _MOST_SCORES_OF_STACK
        simple = []
        curves = []
        for candidate in candidates:
            if candidate.name in _CURVES:
                curves.append(candidate)
            else:
                simple.append(candidate)
        return self.gain(self.best(simple), self.best(curves)).pvalue <= _NO_CURVE

    def best(self, candidates):
        """Return the candidate with the lowest log-loss."""
        return min(candidates, key=self.mean_loss)
