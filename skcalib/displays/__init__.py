"""Pictures of calibration, as scikit-learn displays; matplotlib (extra ``plot``) is imported when one is drawn."""

from skcalib.displays._bin_count import BinCountDisplay
from skcalib.displays._estimator_bias import EstimatorBiasDisplay
from skcalib.displays._reliability import ReliabilityDisplay
from skcalib.displays._validity import ValidityDisplay

__all__ = ["BinCountDisplay", "EstimatorBiasDisplay", "ReliabilityDisplay", "ValidityDisplay"]
