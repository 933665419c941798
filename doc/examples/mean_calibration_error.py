"""Calibration-in-the-large: how far the scores are off on the whole."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from skcalib.binning import FixedEdges
from skcalib.metrics import CalibrationError, ErrorPower, Metric, register_metric

__all__ = ["MeanError", "mean_calibration_error"]


class MeanPower(ErrorPower):
    """The distance of the mean score from the event frequency."""

    is_binned = True

    def power(self, frequency):
        """Return the error for event frequencies (..., m) of the cells."""
        return np.abs((frequency - self.scores) @ self.share)


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanError(CalibrationError):
    """The error of one bin that holds all scores."""

    def of_task(self, task, most=None):
        """Return the power of one binary problem."""
        return MeanPower(task.bin_cells(FixedEdges([0, 1])))


def mean_calibration_error(
    y_true,
    y_proba=None,
    *,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Distance of the mean score from the event frequency."""
    error = MeanError(multiclass=multiclass, class_weight=class_weight)
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


register_metric(Metric(mean_calibration_error, MeanError))
