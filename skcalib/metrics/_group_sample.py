"""What a group, or one of two samples, tells about its bias and calibration error."""

from typing import NamedTuple

import numpy as np

from skcalib._cells.binned import BinnedTask, check_rows_or_bins
from skcalib._cells.cells import Cells
from skcalib._cells.statistics import BinStatistics
from skcalib._cells.tasks import BinaryTask
from skcalib._errors.binned import (
    BinnedError,
)
from skcalib._inference.bias import (
    bins_bias_problem,
    bins_bias_test,
    half_pvalue,
    rows_bias_test,
)
from skcalib._inference.event_counts import event_count_tails
from skcalib._inference.hypotheses import error_hypotheses
from skcalib._inference.shift_test import BiasTest, bias_tests
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
        """Why importance weights leave too few effective events, or non-events, for the
        observed squares of residuals; "" where they do not.
        """
        weights = self.label_weights
        if self.task is None or weights is None or weights.form == "constant":
            return ""
        if not weights.is_known:
            return weights.reason(self.task.labels)
        return few_effective_events(
            self.task.labels, weights.weight, "observed residuals are compared"
        )

    @property
    def _draws_residuals(self):
        """Whether observed residuals take the place of drawn labels: the weight of a
        drawn label must be known, and within a cluster weights and labels may depend on
        each other.
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
        tests, reasons = bias_tests_of([self], confidence_level)
        return BiasTest(*(float(values[0]) for values in tests)), reasons[0]

    @property
    def has_independent_rows(self):
        """Whether weights count rows, and rows do not depend on each other."""
        return self.cluster is None and not self.importance

    def _dependent_bias_test(self, confidence_level):
        """Return the two-sided `BiasTest` of rows in clusters or with importance
        weights, and why it has no limits.
        """
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

    def error_and_hypotheses(self, params, resampling):
        """Return the binned calibration error of the rows, a float, and the
        `Hypotheses` from which `inverted_limits` computes its confidence interval.

        `params` is a dict of the error's `norm` and `method`; `resampling` says what is
        drawn for the interval.
        """
        resampling = resampling._replace(cluster=self.cluster)
        if self.task is None or self._bins_are_enough(params["method"]):
            # Computed from the bin sums: they are all that is known, or are enough. The
            # rows are in bins already, so that no binning is needed.
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

    def _bins_are_enough(self, method):
        """Return whether the error computed from the bin sums, which is faster, is the
        same as from the rows: without weights and clusters, and if neither the bins nor
        the method "label_binned" depends on the labels of single rows.
        """
        is_plain = self.cluster is None and self.task.sample_weight is None
        return is_plain and method != "label_binned" and not self.binning.needs_labels


def bias_tests_of(samples, confidence_level, alternative="two-sided"):
    """Test for each sample whether its bias, mean score minus event frequency, is 0.

    Parameters
    ----------
    samples : list of Sample
        The samples.
    confidence_level : float
        Level of the interval or, for a one-sided alternative, of its one limit.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        "greater" means a greater event frequency than the scores predict, hence a bias
        below 0; "less" means a smaller one.

    Returns
    -------
    tests : BiasTest
        P-values and limits, arrays (n_samples,).
    reasons : list of str
        Why there are no limits; empty where there are.
    """
    level = confidence_level
    if alternative != "two-sided":
        # A limit of level L is that of a two-sided interval of level 2 L - 1, which
        # leaves out 1 - L on either side.
        level = 2 * confidence_level - 1
    found = np.empty((4, len(samples)))
    reasons = [""] * len(samples)
    independent = [k for k, one in enumerate(samples) if one.has_independent_rows]
    if independent:
        problems = []
        for k in independent:
            problems.append(
                bins_bias_problem(
                    samples[k].statistics, *samples[k].scores_and_weights()
                )
            )
        found[:, independent] = bias_tests(problems, level)
    for k in sorted(set(range(len(samples))) - set(independent)):
        found[:, k], reasons[k] = samples[k]._dependent_bias_test(level)
    if alternative == "two-sided":
        return BiasTest(*found), reasons
    mean_score = np.array([sample.mean_score for sample in samples])
    bias = mean_score - np.array([sample.event_frequency for sample in samples])
    is_greater = alternative == "greater"
    is_on_side = bias < 0 if is_greater else bias > 0
    pvalue, low, high, bias_pvalue = found
    one_sided = half_pvalue(pvalue, is_on_side)
    if independent:
        # Rows are independent: the tails of the number of events are known.
        at_least, at_most = event_count_tails(
            [(problem.scores, problem.weight) for problem in problems],
            np.array([problem.events for problem in problems], dtype=np.float64),
        )
        one_sided[independent] = pvalue_of_sides(at_least, at_most, alternative)
    # `pvalue` tests calibration: the labels then have the variance s (1 - s).
    # `bias_pvalue` tests a bias of 0, and allows for residuals that vary more: where
    # they do not vary more than under calibration, both tests are the same.
    one_sided_bias = np.where(
        bias_pvalue == pvalue,
        one_sided,
        half_pvalue(bias_pvalue, is_on_side),
    )
    # The other limit is the bias if the event frequency were 1, or 0.
    has_limits = np.array([not reason for reason in reasons])
    if is_greater:
        low = np.where(has_limits, mean_score - 1, low)
    else:
        high = np.where(has_limits, mean_score, high)
    return BiasTest(
        np.where(has_limits, one_sided, pvalue),
        low,
        high,
        np.where(has_limits, one_sided_bias, bias_pvalue),
    ), reasons


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
