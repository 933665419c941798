"""Calibration over time: whether it differs between two samples, and an alarm that may be looked at after every row."""

from skcalib.monitoring._change import calibration_change
from skcalib.monitoring._groups import GroupMonitors
from skcalib.monitoring._monitor import CalibrationMonitor

__all__ = ["CalibrationMonitor", "GroupMonitors", "calibration_change"]
