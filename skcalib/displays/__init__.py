"""Plots as scikit-learn display objects; they require matplotlib (extra plot)."""

from skcalib.displays._bin_count import BinCountDisplay
from skcalib.displays._change import ChangeDisplay
from skcalib.displays._comparison import ComparisonDisplay
from skcalib.displays._cumulative import CumulativeDifferenceDisplay
from skcalib.displays._decision_curve import DecisionCurveDisplay
from skcalib.displays._estimator_bias import EstimatorBiasDisplay
from skcalib.displays._groups import GroupDisplay
from skcalib.displays._monitor import MonitorDisplay
from skcalib.displays._multicalibration import MulticalibrationDisplay
from skcalib.displays._murphy import MurphyDisplay
from skcalib.displays._reliability import ReliabilityDisplay
from skcalib.displays._risk_coverage import RiskCoverageDisplay
from skcalib.displays._segments import SegmentDisplay
from skcalib.displays._validity import ValidityDisplay

__all__ = [
    "BinCountDisplay",
    "ChangeDisplay",
    "ComparisonDisplay",
    "CumulativeDifferenceDisplay",
    "DecisionCurveDisplay",
    "EstimatorBiasDisplay",
    "GroupDisplay",
    "MonitorDisplay",
    "MulticalibrationDisplay",
    "MurphyDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SegmentDisplay",
    "ValidityDisplay",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
