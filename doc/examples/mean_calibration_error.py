"""Calibration-in-the-large: how far the scores are off on the whole."""

from skcalib.binning import FixedEdges
from skcalib.metrics._bin_free import error_over_tasks

__all__ = ["mean_calibration_error"]


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
    return error_over_tasks(
        _mean_gap,
        1,
        y_true,
        y_proba,
        multiclass=multiclass,
        class_weight=class_weight,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def _mean_gap(task):
    bins = task.statistics(FixedEdges([0, 1]))
    return abs(bins.weighted_score.sum() - bins.weighted_label.sum()) / bins.total_weight
