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
    """The bins of a sample, its rows, their binning and clusters, or None, and whether
    weights are of importance.
    """

    statistics: BinStatistics
    task: BinaryTask | None = None
    binning: BaseBinning | None = None
    cluster: np.ndarray | None = None
    importance: bool = False

    @property
    def n(self):
        """How many rows the sample is worth: an int where each row counts once."""
        counts = np.array_equal(self.statistics.count, self.statistics.weight)
        if counts:
            return int(self.statistics.count.sum())
        return self.statistics.total_weight

    @property
    def mean_score(self):
        """Mean score of the rows."""
        return self.statistics.weighted_score.sum() / self.statistics.total_weight

    @property
    def event_frequency(self):
        """Share of the rows that have the event."""
        return self.statistics.weighted_label.sum() / self.statistics.total_weight

    def scores(self):
        """Return scores and weights, of two points a bin where the rows are not
        known.
        """
        if self.task is None:
            return Cells.of_bins(self.statistics).two_points()
        return self.task.scores, self.task.sample_weight

    def bias_test(self, confidence_level, alternative="two-sided"):
        """Return the `BiasTest` of mean score minus event frequency, and why it has no
        limits.
        """
        if alternative == "two-sided":
            return self._two_sided_bias_test(confidence_level)
        # A one-sided limit is that of a two-sided interval with twice as much outside.
        test, reason = self._two_sided_bias_test(2 * confidence_level - 1)
        bias = self.mean_score - self.event_frequency
        if alternative == "greater":  # of the event frequency
            is_on_side = bias < 0
        else:
            is_on_side = bias > 0
        pvalue = half_pvalue(test.pvalue, is_on_side)
        if not reason and self.cluster is None and not self.importance:
            scores, weight = self.scores()
            events = self.statistics.weighted_label.sum()
            pvalue = one_side(*event_count_tails(scores, events, weight), alternative)
        bias_pvalue = half_pvalue(test.bias_pvalue, is_on_side)
        if test.bias_pvalue == test.pvalue:
            bias_pvalue = pvalue
        if reason:
            low = np.nan if alternative == "greater" else test.low
            high = test.high if alternative == "greater" else np.nan
            return BiasTest(1.0, low, high, 1.0), reason
        # The other limit is the bias that a frequency of 1 or 0 would make.
        if alternative == "greater":
            low = self.mean_score - 1
            high = test.high
        else:
            low = test.low
            high = self.mean_score
        return BiasTest(float(pvalue), low, high, float(bias_pvalue)), reason

    def _two_sided_bias_test(self, confidence_level):
        """Return the two-sided `BiasTest`, of rows where clusters or importance weights
        need them, and why it has no limits.
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
        """Return the calibration error with these parameters, and the hypotheses about
        it.
        """
        params = {"binning": self.binning, **params}
        is_binned = self.task is None or self._bins_tell_all(params["method"])
        if is_binned:
            data = BinnedTask(self.statistics)
            params["binning"] = None
        else:
            scores, labels, weight = self.task
            data = check_rows_or_bins(
                labels, scores, sample_weight=weight, multiclass="auto", drop=False
            )
        error = BinnedError(**params)
        hypotheses = error_hypotheses(
            error, data, resampling._replace(cluster=self.cluster)
        )
        if is_binned:
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
    """Return the p-values of an alternative for those of both sides."""
    if alternative == "two-sided":
        return np.minimum(2 * np.minimum(greater, less), 1.0)
    return greater if alternative == "greater" else less
