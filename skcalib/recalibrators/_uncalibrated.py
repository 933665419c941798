"""The scores unchanged, as a recalibrator: what others are compared with."""

from skcalib.maps import class_probabilities
from skcalib.recalibrators._logit import LogitRecalibrator


class Uncalibrated(LogitRecalibrator):
    """Recalibrator that returns the scores unchanged, as probabilities.

    Parameters
    ----------
    input : {"probability", "logit"}, default="probability"
        Scale of the scores.
    classes : array-like, default=None
        Labels of the columns.
    """

    _needs_classes = "any"
    _keeps_decisions = True
    _leaves_impossible_out = True

    def _fit_logits(self, logits, codes, sample_weight):
        return self

    def _map(self, logits):
        return class_probabilities(logits)
