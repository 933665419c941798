"""Evaluation: what recalibrating would gain, and the numbers that reports on a model have."""

from skcalib.evaluation._gain import recalibration_gain
from skcalib.evaluation._summary import calibration_summary

__all__ = ["calibration_summary", "recalibration_gain"]
