"""How models are compared by one metric: mean losses and means over pairs sample by
sample, other errors by their intervals, any other function by a bootstrap.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import hstack
from sklearn.utils import check_random_state

from skcalib._cells.reductions import binary_tasks
from skcalib._errors.error import ClassPowers
from skcalib._errors.proper_scores import (
    LOSSES,
    brier_score,
    largest_brier,
    log_loss,
)
from skcalib._inference.bootstrap import basic_limits
from skcalib._inference.differences import square_and_add
from skcalib._inference.results import IntervalEstimate
from skcalib._input.device_scores import DeviceScores
from skcalib._input.label_weights import is_importance
from skcalib._intervals.few_events import effective_events
from skcalib._intervals.influence import (
    Influence,
    cluster_codes,
)
from skcalib._intervals.rare import mean_loss_interval
from skcalib.evaluation._equal_losses import (
    EqualLosses,
    EqualSquares,
    too_few_labels,
)
from skcalib.evaluation._paired_differences import (
    Mean,
    is_mean_over_pairs,
    mean_over_pairs,
    paired_difference,
    with_pvalue,
)
from skcalib.metrics import calibration_error_interval
from skcalib.metrics._interval import unwrapped_metric
from skcalib.metrics._registry import metric_of


class Line(NamedTuple):
    """A line of the table for a model and a metric, without their names and the
    adjusted p-value: the metric with its limits, the difference from the reference with
    its limits and p-value, and why limits are NaN.
    """

    estimate: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    pvalue: float
    reason: str


class ComparedModels(NamedTuple):
    """The samples of all models, and how they are compared.

    Attributes
    ----------
    y_true : array-like
        The user's labels.
    models : dict
        The user's probabilities by name.
    data : dict of ScoredLabels
        Validated samples by the name of the model, those of weight zero among them.
    reference : str
        Name of the reference.
    reading : dict
        Arguments of metrics: weights, `pos_label`, `labels`.
    options : dict
        Arguments of `calibration_error_interval`: `weight_type`, `clusters` (codes or
        None), `confidence_level`, `n_resamples` and `random_state` (a seed).
    label_weights : LabelWeights or None
        What importance weights say about the labels; None if weights count samples.
    """

    y_true: object
    models: dict
    data: dict
    reference: str
    reading: dict
    options: dict
    label_weights: object

    def lines(self, metric):
        """Return a `Line` for each model: the metric with its interval, and the
        difference from the reference with its interval and p-value.
        """
        intervals, differences = self._intervals_and_differences(metric)
        lines = []
        for name in self.models:
            interval = intervals[name]
            reason = interval.reason if np.isnan(interval.low) else ""
            if name == self.reference:
                # A difference of 0 from itself, with p-value 1.
                lines.append(Line(*interval, 0.0, 0.0, 0.0, 1.0, reason))
                continue
            difference, pvalue = differences[name]
            if np.isnan(difference.low):
                reason = difference.reason or reason
            lines.append(Line(*interval, *difference, pvalue, reason))
        return lines

    def _others(self):
        return [name for name in self.models if name != self.reference]

    def _intervals_and_differences(self, metric):
        """Return by model the `IntervalEstimate` of the metric and, without the
        reference, a pair (`IntervalEstimate` of the difference from it, p-value).

        Mean losses and means over pairs are compared row by row, other errors of the
        library by their intervals alone, and any other function by a bootstrap.
        """
        # The function of the library, or of the user, and the options that a partial
        # gives it.
        function, params = unwrapped_metric(metric, params={})
        if function in (log_loss, brier_score):
            loss = "brier" if function is brier_score else "log"
            intervals, means = self._mean_losses(loss)
            return intervals, self._paired_differences(means, loss)
        # What the library knows of its errors: None for any other function.
        known_metric = metric_of(function)
        if known_metric is None:
            return self._bootstrapped(partial(function, **params))
        error = known_metric.error_of(params)
        options = {"metric": metric, **self.reading, **self.options}
        intervals = {}
        for name, y_proba in self.models.items():
            scores = self.data[name].scores
            if isinstance(scores, DeviceScores):
                y_proba = scores  # with what was copied already
            intervals[name] = calibration_error_interval(
                self.y_true, y_proba, **options
            )
        if not is_mean_over_pairs(error):
            return intervals, self._independent_differences(intervals)
        means = {}
        for name, data in self.data.items():
            means[name] = self._mean_over_pairs(error, data)
            intervals[name] = intervals[name]._replace(estimate=means[name].estimate)
        return intervals, self._paired_differences(means)

    def _paired_differences(self, means, loss=None):
        """Return, by model, the difference of its `Mean` from that of the reference,
        with its p-value: compared row by row, or pair by pair. `loss` is the name of a
        loss, None for pairs.
        """
        level = self.options["confidence_level"]
        reference = means[self.reference]
        differences = {}
        for name in self._others():
            # `few_events` tests the difference where too few events are observed for
            # the spread of the differences to be known.
            if loss is None:
                weights = self.label_weights
                is_constant = weights is None or weights.form == "constant"
                is_unequal = self.options["clusters"] is not None or not is_constant
                observed = means[name].observed_events
                observed = min(observed, reference.observed_events)
                few_events = EqualSquares(observed, is_unequal)
            else:
                label_weights = self.label_weights
                if label_weights is not None:
                    label_weights = label_weights[self.data[self.reference].kept]
                few_events = EqualLosses(
                    loss,
                    self._of_positive_weight(self.data[name])[0],
                    self._of_positive_weight(self.data[self.reference])[0],
                    reference.influence,
                    label_weights,
                )
            differences[name] = paired_difference(
                means[name], reference, level, few_events
            )
        return differences

    def _independent_differences(self, intervals):
        """Return by model the difference from the reference and its p-value, from both
        intervals as if they were independent: this is conservative.
        """
        differences = {}
        for name in self._others():
            difference, centre = square_and_add(
                intervals[name], intervals[self.reference]
            )
            differences[name] = with_pvalue(
                difference, centre, self.options["confidence_level"]
            )
        return differences

    def _mean_losses(self, loss_name):
        """Return the `IntervalEstimate` of the mean "brier" or "log" loss, and the
        `Mean` with the influence of each row, both as dicts by model.
        """
        level = self.options["confidence_level"]
        intervals = {}
        means = {}
        for name, model_data in self.data.items():
            data, cluster = self._of_positive_weight(model_data)
            loss = LOSSES[loss_name](data.scores, data.labels)
            estimate = float(np.average(loss, weights=data.sample_weight))
            # The influence of a row on its mean loss is its loss less the mean.
            influence = Influence(
                loss - estimate,
                data.sample_weight,
                is_importance(self.options["weight_type"]),
                cluster,
            )
            if loss_name == "brier":
                largest = largest_brier(data.scores)
                low, high, reason = mean_loss_interval(loss, largest, influence, level)
            else:  # there is no largest log-loss
                low, high, reason = influence.interval(estimate, level)
                low = max(low, 0.0)  # no loss is negative
                reason = reason or too_few_labels(data.labels, influence)
            if reason:
                low = high = np.nan
            intervals[name] = IntervalEstimate(estimate, low, high, reason=reason)
            means[name] = Mean(estimate, influence)
        return intervals, means

    def _bootstrapped(self, metric):
        """Return the same two dicts as `_intervals_and_differences` for any function of
        labels and probabilities, by a basic bootstrap.

        All models and differences have the same resamples, so that the comparison is
        paired.
        """
        # Resamples of few events vary as the scores do, not as the labels.
        data, cluster = self._of_positive_weight(self.data[self.reference])
        importance = is_importance(self.options["weight_type"])
        residual = np.zeros(len(data.labels))
        influence = Influence(residual, data.sample_weight, importance, cluster)
        reason = too_few_labels(data.labels, influence, is_unknown=True)
        # The metric of each model as a function of ``sample_weight=``.
        metric_by_model = {}
        intervals = {}
        for name, y_proba in self.models.items():
            of_model = partial(metric, self.y_true, y_proba, **self.reading)
            metric_by_model[name] = of_model
            intervals[name] = self._bootstrap_interval(of_model, reason)
        differences = {}
        for name in self._others():
            of_difference = partial(
                _difference, metric_by_model[name], metric_by_model[self.reference]
            )
            interval = self._bootstrap_interval(of_difference, reason)
            differences[name] = (interval, np.nan)
            if not reason:
                differences[name] = with_pvalue(
                    interval, interval.estimate, self.options["confidence_level"]
                )
        return intervals, differences

    def _bootstrap_interval(self, metric, reason):
        """Return the `IntervalEstimate` of a function by a basic bootstrap, without
        limits for a `reason`. ``metric(sample_weight=weights)`` is the value in a
        resample.
        """
        estimate = float(metric())
        if reason:
            return IntervalEstimate(estimate, np.nan, np.nan, reason=reason)
        # A seed, so that the resamples are the same in each call.
        rng = check_random_state(self.options["random_state"])
        limits = basic_limits(
            metric,
            self.data[self.reference],
            estimate,
            self.options["confidence_level"],
            self.options["n_resamples"],
            rng,
            cluster=self.options["clusters"],
        )
        return IntervalEstimate(estimate, *limits)

    def _of_positive_weight(self, data):
        """Return the samples of positive weight, and the codes of their clusters or
        None.
        """
        rows = data.kept
        cluster = self.options["clusters"]
        if cluster is None:
            return data.at(rows), None
        return data.at(rows), cluster_codes(cluster[rows])

    def _mean_over_pairs(self, error, data):
        """Return the unbiased squared error of one model as a `Mean` over pairs of
        independent units in a bin, with the jackknife influence of the units.

        A unit is a cluster, or a row (each copy of it, for frequency weights). `error`
        is the `BinnedError` or `GroupwiseError`, `data` the `ScoredLabels` of the
        model.
        """
        data, unit = self._of_positive_weight(data)
        is_clustered = unit is not None
        if not is_clustered:
            data = self._each_copy_a_row(data)
            unit = np.arange(len(data.scores))
        mass = np.bincount(unit, data.sample_weight)  # weight of each unit
        names, unit = np.unique(unit, return_inverse=True)  # from 0, without gaps
        # An entry for each binary problem: each class of a marginal error, or the only
        # problem there is. The sums are arrays (n_units, n_bins).
        means = []
        influences = []
        unit_sums = []
        events = []
        for task in binary_tasks(data, error.multiclass, pooled=True):
            # In a pooled problem a sample has a row for each class.
            unit_of_row = np.repeat(unit, task.n_columns)
            mean, influence, sums = mean_over_pairs(
                task, unit_of_row, len(names), error
            )
            means.append(mean)
            influences.append(influence)
            unit_sums.append(sums)
            observed = effective_events(
                task.labels,
                task.sample_weight,
                is_importance(self.options["weight_type"]),
                unit_of_row if is_clustered else None,
                residual=task.labels - task.scores,
            )
            events.append(observed)
        # `classes` combines the numbers of the problems, by the weights of their
        # classes in the error.
        classes = ClassPowers.of(data, error)
        # A term of the mean is a product of two sums of a class: each sum gets the root
        # of the weight.
        factors = [1.0]
        if classes.weight is not None:
            factors = np.sqrt(classes.weight)
        weighted_sums = []
        for factor, sums in zip(factors, unit_sums, strict=True):
            weighted_sums.append(factor * sums)
        return Mean(
            estimate=float(classes.combine(np.stack(means, axis=-1))),
            influence=classes.combine(np.stack(influences, axis=-1)),
            sums=hstack(weighted_sums, format="csr"),
            cluster_mass=mass if is_clustered else None,
            mass=mass,
            observed_events=max(events),
        )

    def _each_copy_a_row(self, data):
        """Return the samples, each repeated as often as its frequency weight says."""
        if data.sample_weight is None or is_importance(self.options["weight_type"]):
            return data
        copies = data.sample_weight.astype(np.intp)
        repeated = data.at(np.repeat(np.arange(len(data.scores)), copies))
        return repeated._replace(sample_weight=None)


def _difference(metric, reference_metric, **weights):
    """Return the difference of two functions of ``sample_weight=``, which is given or
    not.
    """
    return metric(**weights) - reference_metric(**weights)
