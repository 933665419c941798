"""A certified threshold around a frozen recalibrator, as ways out write it: what `predict` gives."""

from typing import NamedTuple

from sklearn.frozen import FrozenEstimator

from skcalib._defaults import check_fitted
from skcalib.decisions import CertifiedThresholdClassifier
from skcalib.decisions._certified import ANSWERS

_ROUNDING = 1e-12  # of a probability, in which ways out may differ: one at the threshold is at it everywhere
_NEVER = 2.0  # in place of an infinite threshold


class Decision(NamedTuple):
    """From which probability on which label is given: of the event, or of the predicted class, else the last label."""

    threshold: float
    labels: list
    is_event: bool

    @property
    def otherwise(self):
        """The number of the label of rows below the threshold."""
        return 0 if self.is_event else len(self.labels) - 1


def split_decision(estimator):
    """Return the recalibrator, and the decision that is made by it: None for a recalibrator alone."""
    if not isinstance(estimator, CertifiedThresholdClassifier):
        return estimator, None
    check_fitted(estimator)
    inner, labels = estimator.estimator_, estimator.classes_.tolist()
    while isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    is_event = estimator.promise not in ANSWERS
    labels += [] if is_event else [estimator._abstain_label()]
    if len({type(label) for label in labels}) > 1:
        raise ValueError(f"abstain_label must be of the type of the classes outside Python, found the labels {labels}.")
    return inner, Decision(float(min(estimator.threshold_ - _ROUNDING, _NEVER)), labels, is_event)
