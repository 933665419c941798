"""Recalibrators that are fitted without each fold in turn, and what they gain."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from skcalib._errors.proper_scores import LOSSES
from skcalib._fitting.gains import (
    NO_GAIN,
    ONE_LABEL,
    Design,
    Gain,
    expected_variance,
    has_two_classes,
    mean_gain,
    unfitted_reason,
    variance_of_fits,
)
from skcalib._fitting.wrapped import class_parameters, design_parameters, fitted_clone
from skcalib._input.device_scores import DeviceScores
from skcalib._input.label_weights import LabelWeights
from skcalib._intervals.influence import Spread
from skcalib._rows.blocks import taken, weights_or_ones
from skcalib._solvers.sums import chosen


class Candidate(NamedTuple):
    """What a recalibrator predicts out of fold.

    Attributes
    ----------
    probabilities : ndarray or DeviceScores, of shape (n,) or (n, n_classes)
        Out-of-fold probability of the event, or of each class.
    losses : dict of ndarray of shape (n_fits, n)
        By the name of the loss: the loss of every sample under each fit, also of the
        samples that it was fitted to.
    """

    probabilities: np.ndarray
    losses: dict


@dataclass(frozen=True, eq=False)
class CrossFits:
    """Samples and their folds, by which recalibrators are compared.

    Parameters
    ----------
    scores : array of shape (n, C)
        What recalibrators are fitted to, NumPy's or a tensor.
    codes : ndarray of int, shape (n,)
        Labels as column indices; 1 for the event.
    unchanged : ndarray or DeviceScores, of shape (n,) or (n, n_classes)
        The probabilities before recalibration: of the event, or of each class. They
        stay on a device if the scores are a tensor.
    divisions : list of list of Fold
        Divisions of the samples into folds. With several, each sample lies in one fold
        of each.
    design : Design
        Weights and clusters.
    classes : ndarray of shape (n_classes,)
        The labels that recalibrators are fitted to.
    label_weights : LabelWeights, default=None
        What importance weights say about the labels; None if that is not known.
    loss_names : tuple of str, default=("log", "brier")
        The losses that are computed.
    """

    scores: np.ndarray
    codes: np.ndarray
    unchanged: np.ndarray
    divisions: list
    design: Design
    classes: np.ndarray
    label_weights: LabelWeights | None = None
    loss_names: tuple = tuple(LOSSES)

    @property
    def folds(self):
        """The folds of all divisions: a fit each."""
        return [fold for division in self.divisions for fold in division]

    def candidate(self, recalibrator, groups=None, show_progress=None, known=None):
        """Fit a recalibrator without each fold, and return its `Candidate`.

        `groups` (n,) go to recalibrators whose `fit` takes them. `show_progress` is
        called with a text before each fit. `known` is the `Candidate` of the same
        recalibrator for the first of the `divisions`, whose fits are not repeated.
        """
        losses_by_fit = {loss: [] for loss in self.loss_names}
        mean = _MeanOfFolds(self.unchanged)
        n_known = 0
        if known is not None:
            losses_by_fit = {loss: [*known.losses[loss]] for loss in self.loss_names}
            n_known = len(losses_by_fit[self.loss_names[0]])
            for fold in self.folds[:n_known]:
                mean.add(known.probabilities, fold)
        for k, fold in enumerate(self.folds[n_known:], start=n_known):
            if show_progress is not None:
                show_progress(f"fit {k + 1} of {len(self.folds)}")
            # With training samples of one class there is nothing to fit.
            probabilities = self.unchanged
            if has_two_classes(self.codes[fold.train]):
                probabilities = self._refitted(recalibrator, fold, groups)
            for loss, by_fit in losses_by_fit.items():
                by_fit.append(LOSSES[loss](probabilities, self.codes))
            mean.add(probabilities, fold)
        losses = {loss: np.array(by_fit) for loss, by_fit in losses_by_fit.items()}
        return Candidate(mean.value(), losses)

    def uncalibrated(self):
        """Return the `Candidate` that leaves all scores unchanged."""
        losses = {}
        for loss in self.loss_names:
            same = LOSSES[loss](self.unchanged, self.codes)
            losses[loss] = np.broadcast_to(same, (len(self.folds), len(same)))
        unchanged = self.unchanged
        if isinstance(unchanged, np.ndarray):
            unchanged = unchanged.astype(np.float64)
        return Candidate(unchanged, losses)

    def _refitted(self, recalibrator, fold, groups):
        """Return the probabilities of all samples, (n,) of the event or (n, n_classes),
        by a recalibrator that is fitted to the training samples of a fold.
        """
        unfitted = clone(recalibrator)
        # The classes are named, since the training samples may lack one of them.
        unfitted.set_params(**class_parameters(unfitted, self.classes))
        fit_options = {}
        options = {}
        if groups is not None and has_fit_parameter(recalibrator, "groups"):
            fit_options["groups"] = groups[fold.train]
            options["groups"] = groups
        cluster = taken(self.design.cluster, fold.train)
        fit_options |= design_parameters(recalibrator, self.design.importance, cluster)
        fitted = fitted_clone(
            unfitted,
            chosen(self.scores, fold.train),
            self.classes[self.codes[fold.train]],
            fold.train_weight,
            **fit_options,
        )
        probabilities = fitted.predict_proba(self.scores, **options)
        if isinstance(self.unchanged, DeviceScores):
            return self.unchanged.with_values(probabilities)
        if self.unchanged.ndim == 1:
            probabilities = probabilities[:, 1]
        return probabilities

    def held_out(self, by_fit):
        """Return the out-of-fold values of the samples and their `Design` (weights and
        clusters), from values (n_fits, n) of all samples under each fit.

        The copies of a sample of the integer frequency weight w may lie in several
        folds: it then has a value and a part of its weight in each. With several
        divisions, its value is the mean over them.
        """
        by_division = []
        first_fit = 0
        for folds in self.divisions:
            values = []
            for k, fold in enumerate(folds, start=first_fit):
                values.append(by_fit[k][fold.test])
            by_division.append(np.concatenate(values))
            first_fit += len(folds)
        if len(self.divisions) == 1:
            return by_division[0], self.design.of_folds(self.divisions[0])
        mean = np.zeros(len(self.codes))
        for values, folds in zip(by_division, self.divisions, strict=True):
            rows = np.concatenate([fold.test for fold in folds])
            mean[rows] += values / len(self.divisions)
        return mean, self.design

    def losses(self, candidate, loss):
        """Return the out-of-fold loss of each sample, (n,), for a `Candidate` and the
        name of a loss.
        """
        values, held_out_design = self.held_out(candidate.losses[loss])
        if len(self.divisions) > 1:
            return values  # one for each sample: its mean over the divisions
        # One division gives a value for each part of a sample's weight: copies of a
        # sample that counts several times may lie in several folds. The mean over them:
        rows = np.concatenate([fold.test for fold in self.divisions[0]])
        weight = weights_or_ones(held_out_design.sample_weight, len(rows))
        return np.bincount(rows, weight * values) / np.bincount(rows, weight)

    def mean_loss(self, candidate, loss):
        """Return the weighted mean of the out-of-fold losses."""
        values, design = self.held_out(candidate.losses[loss])
        return float(np.average(values, weights=design.sample_weight))

    def gain(self, before, after, loss):
        """Return the mean out-of-fold loss of the candidate `before` minus that of the
        candidate `after`, as a `Gain`.
        """
        if before is after:
            return NO_GAIN
        reason = unfitted_reason(self.codes, self.folds)
        if reason == ONE_LABEL:
            return Gain(np.nan, Spread(np.nan, np.nan, reason))
        if self.label_weights is not None and self.unchanged.ndim == 1:
            reason = reason or self.label_weights.reason(self.codes)
        gains = before.losses[loss] - after.losses[loss]
        out_of_fold, design = self.held_out(gains)
        # The mean gain varies with the samples that it is tested on and with those that
        # were fitted to.
        n_folds = len(self.divisions[0])
        return mean_gain(
            out_of_fold,
            design,
            variance_of_fits(gains, n_folds, self.design),
            expected_variance(
                before.probabilities,
                after.probabilities,
                loss,
                self.design,
                self.label_weights,
            ),
            reason,
        )


class _MeanOfFolds:
    """The out-of-fold probabilities of samples, summed up fold by fold: the weighted
    mean over the folds in which a sample is a test sample.

    Parameters
    ----------
    unchanged : ndarray or DeviceScores
        The probabilities before recalibration. The mean has their shape, and is an
        array or on their device as they are.
    """

    def __init__(self, unchanged):
        self._unchanged = unchanged
        # The sums, over the folds, of the weights (n,) and of the weighted
        # probabilities of the test samples.
        self._weight = np.zeros(len(unchanged))
        self._total = 0.0
        if isinstance(unchanged, np.ndarray):
            self._total = np.zeros(unchanged.shape)

    def add(self, probabilities, fold):
        """Add the probabilities of the test samples of a fold; `probabilities` are
        those of all samples.
        """
        test_weight = weights_or_ones(fold.test_weight, len(fold.test))
        self._weight[fold.test] += test_weight
        if isinstance(probabilities, np.ndarray):
            self._total[fold.test] += (test_weight * probabilities[fold.test].T).T
            return
        # Samples stay on a device: those of other folds are added with the weight 0.
        weight = np.zeros(len(self._weight))
        weight[fold.test] = test_weight
        self._total = self._total + probabilities.times_rows(weight)

    def value(self):
        """Return the weighted mean of each sample's probabilities over the folds that
        were added, an array or `DeviceScores`.
        """
        if isinstance(self._unchanged, np.ndarray):
            return (self._total.T / self._weight).T
        total = self._unchanged.with_values(self._total)
        return total.with_values(total.times_rows(1 / self._weight))
