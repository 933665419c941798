"""What a group, or one of two samples, tells about its bias and calibration error."""

from typing import NamedTuple

import numpy as np

from skcalib._cells.cells import Cells
from skcalib._cells.reductions import (
    BinaryTask,
    BinnedTask,
    check_rows_or_bins,
)
from skcalib._cells.statistics import BinStatistics
from skcalib._errors.binned import (
    BinnedError,
)
from skcalib._inference.bias import (
    BiasTest,
    bins_bias_test,
    event_count_tails,
    half_pvalue,
    rows_bias_test,
)
from skcalib._inference.hypotheses import error_hypotheses
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
    """

    statistics: BinStatistics
    task: BinaryTask | None = None
    binning: BaseBinning | None = None
    cluster: np.ndarray | None = None
    importance: bool = False

    @property
    def n(self):
        """Effective number of rows; an int if each row counts once."""
        each_counts_once = np.array_equal(self.statistics.count, self.statistics.weight)
        if each_counts_once:
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

    def scores(self):
        """Return scores and weights of the rows or, if these are not known, of two
        points per bin that represent them.
        """
        if self.task is None:
            return Cells.of_bins(self.statistics).two_points()
        return self.task.scores, self.task.sample_weight

    def bias_test(self, confidence_level, alternative="two-sided"):
        """Return the `BiasTest` of mean score minus event frequency, and why it has no
        limits (otherwise an empty string).

        A one-sided `alternative` refers to the event frequency: "greater" or "less"
        than the scores predict. The confidence level applies to its single limit.
        """
        if alternative == "two-sided":
            return self._two_sided_bias_test(confidence_level)
        # A limit of level L is that of a two-sided interval of level 2 L - 1, which
        # leaves out 1 - L on either side.
        test, reason = self._two_sided_bias_test(2 * confidence_level - 1)
        if reason:
            return test, reason
        bias = self.mean_score - self.event_frequency
        is_greater = alternative == "greater"
        if is_greater:
            is_on_side = bias < 0
        else:
            is_on_side = bias > 0
        pvalue = half_pvalue(test.pvalue, is_on_side)
        # Independent rows have the exact p-value of one side.
        if self.cluster is None and not self.importance:
            scores, weight = self.scores()
            events = self.statistics.weighted_label.sum()
            at_least, at_most = event_count_tails(scores, events, weight)
            pvalue = one_side(at_least, at_most, alternative)
        bias_pvalue = half_pvalue(test.bias_pvalue, is_on_side)
        if test.bias_pvalue == test.pvalue:
            # The residuals vary as a common shift says: both tests are the same.
            bias_pvalue = pvalue
        # The other limit is the bias that a frequency of 1, or of 0, would make.
        if is_greater:
            low = self.mean_score - 1
            high = test.high
        else:
            low = test.low
            high = self.mean_score
        return BiasTest(float(pvalue), low, high, float(bias_pvalue)), ""

    def _two_sided_bias_test(self, confidence_level):
        """Return the two-sided `BiasTest` of mean score minus event frequency, and why
        it has no limits (else an empty text). Clusters and importance weights need the
        rows.
        """
        scores, weight = self.scores()
        if self.task is not None and (self.importance or self.cluster is not None):
            return rows_bias_test(
                scores,
                self.task.labels,
                confidence_level,
                weight,
                importance=self.importance,
                cluster=self.cluster,
            )
        test = bins_bias_test(
            self.statistics,
            scores,
            weight,
            confidence_level,
            importance=self.importance,
        )
        return test, ""

    def error_hypotheses(self, params, resampling):
        """Return the binned calibration error of the sample, and the `Hypotheses` for
        its limits.

        `params` contains `norm` and `method` of the error; `resampling` specifies the
        draws.
        """
        is_binned = self.task is None or self._bins_tell_all(params["method"])
        if is_binned:
            data = BinnedTask(self.statistics)
            error = BinnedError(binning=None, **params)
        else:
            # The rows of the binary problem, as data with two classes.
            scores, labels, weight = self.task
            data = check_rows_or_bins(
                labels, scores, sample_weight=weight, multiclass="auto", drop=False
            )
            error = BinnedError(binning=self.binning, **params)
        resampling = resampling._replace(cluster=self.cluster)
        hypotheses = error_hypotheses(error, data, resampling)
        if is_binned:
            # Computed already: what draws of bins are compared by is the power itself.
            power = hypotheses.observed
        else:
            power = error.observed(data)
        return error.from_power(power), hypotheses

    def _bins_tell_all(self, method):
        """Return whether the sums of the bins give the same error as the rows, which
        takes longer.
        """
        is_plain = self.cluster is None and self.task.sample_weight is None
        return is_plain and method != "label_binned" and not self.binning.needs_labels


def one_side(greater, less, alternative):
    """Return the p-values (m,) of an alternative, given the p-values of both sides.

    "two-sided" gives twice the smaller one, at most 1.
    """
    if alternative == "two-sided":
        return np.minimum(2 * np.minimum(greater, less), 1.0)
    if alternative == "greater":
        return greater
    return less
