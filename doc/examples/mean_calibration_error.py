"""Calibration-in-the-large: how far the scores are off on the whole."""

import numpy as np

from skcalib._cells.cells import Cells
from skcalib._errors.power import Error, Power, error_value
from skcalib.binning import FixedEdges

__all__ = ["MeanPower", "mean_calibration_error"]


class MeanPower(Power):
    """The distance of the mean score from the event frequency."""

    is_binned = True

    @classmethod
    def of_task(cls, task, most=None, **params):
        """Take one bin in place of the distinct scores: a BinStatistics may stand for the rows."""
        return cls(Cells.of_bins(task.statistics(FixedEdges([0, 1]))), **params)

    def power(self, frequency):
        """Map event frequencies of the cells (..., m) to the error (...)."""
        return np.abs((frequency - self.scores) @ self.share)


def mean_calibration_error(
    y_true,
    y_proba=None,
    *,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Distance of the mean score from the event frequency: the binned error with one bin."""
    error = Error(MeanPower, {}, multiclass=multiclass, class_weight=class_weight)
    return error_value(
        error,
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


mean_calibration_error.power = MeanPower
