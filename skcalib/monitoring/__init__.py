"""Calibration over time: changes, alarms, and performance before labels are known."""

from skcalib.monitoring._autocorrelation import error_autocorrelation
from skcalib.monitoring._change import calibration_change
from skcalib.monitoring._estimated_performance import estimated_performance
from skcalib.monitoring._groups import GroupMonitors
from skcalib.monitoring._monitor import CalibrationMonitor
from skcalib.monitoring._trend import calibration_trend

__all__ = [
    "CalibrationMonitor",
    "GroupMonitors",
    "calibration_change",
    "calibration_trend",
    "error_autocorrelation",
    "estimated_performance",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
