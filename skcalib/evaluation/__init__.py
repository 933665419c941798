"""Evaluation: gain from recalibration, comparison of models, statistics to report."""

from skcalib.evaluation._adjust import adjust_pvalues
from skcalib.evaluation._advise import advise
from skcalib.evaluation._by_cluster import calibration_by_cluster
from skcalib.evaluation._compare import compare
from skcalib.evaluation._cross_validate import cross_validate
from skcalib.evaluation._gain import recalibration_gain
from skcalib.evaluation._mean import mean_interval
from skcalib.evaluation._refinement import refinement_loss
from skcalib.evaluation._sample_size import validation_sample_size
from skcalib.evaluation._summary import calibration_summary
from skcalib.evaluation._update_test import update_test
from skcalib.evaluation._weights import describe_weights

__all__ = [
    "adjust_pvalues",
    "advise",
    "calibration_by_cluster",
    "calibration_summary",
    "compare",
    "cross_validate",
    "describe_weights",
    "mean_interval",
    "recalibration_gain",
    "refinement_loss",
    "update_test",
    "validation_sample_size",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
