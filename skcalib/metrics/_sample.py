"""A sample whose bias and error are asked for: rows of one event, or the sums of their bins alone."""

from typing import NamedTuple

import numpy as np

from skcalib._cells.cells import Cells
from skcalib._cells.reductions import BinaryTask, BinnedTask, check_rows_or_bins
from skcalib._cells.statistics import BinStatistics
from skcalib._inference.bias import bias_test, cluster_bias_test
from skcalib._inference.hypotheses import error_hypotheses
from skcalib.binning import BaseBinning
from skcalib.metrics._errors import calibration_error
from skcalib.metrics._table import metric_of


class Sample(NamedTuple):
    """The bins of a sample, and its rows, their binning and clusters, or None."""

    statistics: BinStatistics
    task: BinaryTask | None = None
    binning: BaseBinning | None = None
    cluster: np.ndarray | None = None

    @property
    def n(self):
        """How many rows the sample is worth: an int where each row counts once."""
        counts = np.array_equal(self.statistics.count, self.statistics.weight)
        return int(self.statistics.count.sum()) if counts else self.statistics.total_weight

    @property
    def mean_score(self):
        """Mean score of the rows."""
        return self.statistics.weighted_score.sum() / self.statistics.total_weight

    @property
    def event_frequency(self):
        """Share of the rows that have the event."""
        return self.statistics.weighted_label.sum() / self.statistics.total_weight

    def scores(self):
        """Return scores and weights, of two points a bin where the rows are not known."""
        if self.task is None:
            return Cells.of_bins(self.statistics).two_points()
        return self.task.scores, self.task.sample_weight

    def bias_test(self, confidence_level):
        """Return the `BiasTest` of mean score minus event frequency."""
        scores, weight = self.scores()
        if self.cluster is not None:
            return cluster_bias_test(scores, self.task.labels, self.cluster, confidence_level, weight)
        events, variance = self.statistics.weighted_label.sum(), self.statistics.total_residual_variance
        return bias_test(scores, events, confidence_level, weight, variance)

    def error_hypotheses(self, params, resampling):
        """Return the calibration error with these parameters, and the hypotheses about it."""
        params = {"binning": self.binning, **params}
        is_binned = self.task is None or self._bins_tell_all(params["method"])
        if is_binned:
            data, params["binning"] = BinnedTask(self.statistics), None
        else:
            scores, labels, weight = self.task
            data = check_rows_or_bins(labels, scores, sample_weight=weight, multiclass="auto", drop=False)
        error = metric_of(calibration_error).error(params)
        hypotheses = error_hypotheses(error, data, resampling._replace(cluster=self.cluster))
        return error.value(hypotheses.observed if is_binned else error.observed(data)), hypotheses

    def _bins_tell_all(self, method):
        """Return whether the sums of the bins give the same error as the rows, which takes longer."""
        is_plain = self.cluster is None and self.task.sample_weight is None
        return is_plain and method != "label_binned" and not self.binning.needs_labels
