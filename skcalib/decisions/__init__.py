"""From a probability to a decision: certified thresholds, costs, net benefit."""

from skcalib.decisions._certified import CertifiedThreshold
from skcalib.decisions._certified_threshold import (
    certified_abstention,
    certified_threshold,
)
from skcalib.decisions._classifier import CertifiedThresholdClassifier
from skcalib.decisions._expected_cost import ExpectedCostClassifier, mean_cost
from skcalib.decisions._net_benefit import net_benefit
from skcalib.decisions._routing import certified_routing

__all__ = [
    "CertifiedThreshold",
    "CertifiedThresholdClassifier",
    "ExpectedCostClassifier",
    "certified_abstention",
    "certified_routing",
    "certified_threshold",
    "mean_cost",
    "net_benefit",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
