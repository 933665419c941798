"""Evaluation: what recalibrating would gain, models side by side, and the numbers that reports on a model have."""

from skcalib.evaluation._compare import compare
from skcalib.evaluation._gain import recalibration_gain
from skcalib.evaluation._summary import calibration_summary

__all__ = ["calibration_summary", "compare", "recalibration_gain"]
