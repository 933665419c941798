"""Calibration-in-the-large: absolute difference between mean score and event
frequency.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from skcalib.binning import FixedEdges
from skcalib.metrics import CalibrationError, ErrorPower, Metric, register_metric

__all__ = ["MeanError", "mean_calibration_error"]


class MeanPower(ErrorPower):
    """Absolute difference between the mean score and the event frequency."""

    is_binned = True

    def power(self, frequency):
        """Return the error for event frequencies (..., m) of the cells."""
        return np.abs((frequency - self.scores) @ self.share)


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanError(CalibrationError):
    """Error of a single bin that contains all scores."""

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
    """Return the absolute difference between the mean score and the event frequency."""
    error = MeanError(multiclass=multiclass, class_weight=class_weight)
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


register_metric(Metric(mean_calibration_error, MeanError))
