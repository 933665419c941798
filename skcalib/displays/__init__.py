"""Pictures of calibration, as scikit-learn displays; matplotlib (extra ``plot``) is imported when one is drawn."""

from skcalib.displays._reliability import ReliabilityDisplay

__all__ = ["ReliabilityDisplay"]
