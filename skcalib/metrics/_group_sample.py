"""What a group, or one of two samples, tells about its bias and calibration error."""

from typing import NamedTuple

import numpy as np

from skcalib._cells.binned import BinnedTask, check_rows_or_bins
from skcalib._cells.cells import Cells
from skcalib._cells.statistics import BinStatistics
from skcalib._cells.tasks import BinaryTask
from skcalib._errors.binned import BinnedError
from skcalib._inference.bias import (
    bins_bias_problem,
    bins_bias_test,
    rows_bias_test,
)
from skcalib._inference.hypotheses import error_hypotheses
from skcalib._inference.shift_test import problem_bias_test
from skcalib._input.label_weights import LabelWeights, few_effective_events
from skcalib.binning import BaseBinning


class Sample(NamedTuple):
    """Group of rows, or one of two samples that are compared.

    Parameters
    ----------
    statistics : BinStatistics
        The sums of its rows by bin.
    task : BinaryTask or None
        Its rows as a binary problem, if they are known.
    binning : BaseBinning or None
        The strategy that formed the bins.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster.
    importance : bool
        Whether the weights are importance weights rather than counts of rows.
    label_weights : LabelWeights or None
        What importance weights of the rows say about their labels.
    """

    statistics: BinStatistics
    task: BinaryTask | None = None
    binning: BaseBinning | None = None
    cluster: np.ndarray | None = None
    importance: bool = False
    label_weights: LabelWeights | None = None

    @property
    def n(self):
        """Number of rows, an int; a float with weights: the sum of frequency weights,
        or the effective number of rows for importance weights.
        """
        has_unit_weights = np.array_equal(self.statistics.count, self.statistics.weight)
        if has_unit_weights:
            return int(self.statistics.count.sum())
        return self.statistics.total_weight

    @property
    def mean_score(self):
        """Mean score of the rows."""
        return self.statistics.weighted_score.sum() / self.statistics.total_weight

    @property
    def event_frequency(self):
        """Share of the rows that are events."""
        return self.statistics.weighted_label.sum() / self.statistics.total_weight

    @property
    def few_events(self):
        """Why the variance cannot be estimated from the observed residuals: importance
        weights leave too few effective events or non-events. "" if it can be.
        """
        weights = self.label_weights
        # Weights that are all equal count as none.
        if self.task is None or weights is None or weights.form == "constant":
            return ""
        if not weights.is_known:
            return weights.reason(self.task.labels)
        return few_effective_events(
            self.task.labels, weights.weight, "observed residuals are compared"
        )

    @property
    def _draws_residuals(self):
        """Whether observed residuals take the place of drawn labels: a drawn label's
        weight must be known, and within a cluster weights and labels may depend on each
        other.
        """
        weights = self.label_weights
        if weights is None or weights.form == "constant":
            return False
        return not weights.is_known or self.cluster is not None

    @property
    def reason_without_limits(self):
        """Why the limits of the error are NaN; "" where they are not."""
        if self._draws_residuals:
            return self.few_events
        return ""

    def scores_and_weights(self):
        """Return scores and weights (None for equal ones) of the rows. If only the bin
        sums are known: those of two points per bin that represent its rows.
        """
        if self.task is None:
            return Cells.of_bins(self.statistics).two_points()
        return self.task.scores, self.task.sample_weight

    def bias_test(self, confidence_level):
        """Test whether the bias, mean score minus event frequency, is 0.

        Returns
        -------
        test : BiasTest
            P-values and limits.
        reason : str
            Why there are no limits; empty if there are.
        """
        if self.has_independent_rows:
            return problem_bias_test(self.bias_problem(), confidence_level), ""
        scores, weight = self.scores_and_weights()
        # Clusters and importance weights are those of rows, if the rows are known.
        if self.task is not None:
            return rows_bias_test(
                scores,
                self.task.labels,
                confidence_level,
                weight,
                label_weights=self.label_weights,
                cluster=self.cluster,
            )
        test = bins_bias_test(
            self.statistics, scores, weight, confidence_level, importance=True
        )
        return test, ""

    @property
    def has_independent_rows(self):
        """Whether weights count rows, and rows do not depend on each other."""
        return self.cluster is None and not self.importance

    def bias_problem(self):
        """Return the `BiasProblem` of independent rows."""
        return bins_bias_problem(self.statistics, *self.scores_and_weights())

    def error_and_hypotheses(self, params, resampling):
        """Return the binned calibration error of the rows, a float, and the
        `Hypotheses` from which `inverted_limits` computes its confidence interval.

        `params` is a dict of the error's `norm` and `method`; `resampling` says what is
        drawn for the interval.
        """
        resampling = resampling._replace(cluster=self.cluster)
        # The bin sums are all that is known, or are enough and faster: without weights
        # and clusters, and if neither the bins nor the method "label_binned" depends on
        # the labels of single rows.
        are_bins_enough = self.task is None or (
            self.cluster is None
            and self.task.sample_weight is None
            and params["method"] != "label_binned"
            and not self.binning.needs_labels
        )
        if are_bins_enough:
            # The rows are in bins already, so that no binning is needed.
            error = BinnedError(binning=None, **params)
            data = BinnedTask(self.statistics, importance=self.importance)
            hypotheses = error_hypotheses(error, data, resampling)
            # `observed` is the p-th power of the error of these data.
            return error.from_power(hypotheses.observed), hypotheses
        # The rows of the binary problem, as data with two classes.
        error = BinnedError(binning=self.binning, **params)
        scores, labels, weight = self.task
        data = check_rows_or_bins(
            labels, scores, sample_weight=weight, multiclass="auto", drop=False
        )._replace(label_weights=self.label_weights)
        hypotheses = error_hypotheses(error, data, resampling)
        return error.from_power(error.observed(data)), hypotheses


def pvalue_of_sides(greater, less, alternative):
    """Return the p-values (m,) for an alternative, "greater", "less" or "two-sided",
    given the one-sided p-values (m,) of "greater" and of "less".

    "two-sided" gives twice the smaller one, at most 1.
    """
    if alternative == "two-sided":
        return np.minimum(2 * np.minimum(greater, less), 1.0)
    if alternative == "greater":
        return greater
    return less
