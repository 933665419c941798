"""Evaluation: what recalibrating would gain."""

from skcalib.evaluation._gain import recalibration_gain

__all__ = ["recalibration_gain"]
