"""The binned errors with their parameters, as intervals and tests know them."""

from typing import NamedTuple

from skcalib._input.scalars import resolve_norm
from skcalib.binning import BaseBinning, EqualWidth, MonotonicSweep, check_binning
from skcalib.metrics._groupwise import groupwise_calibration_error
from skcalib.metrics._sweep import sweep_calibration_error
from skcalib.metrics._table import metric_of

__all__ = ["BinnedError"]

_BY_GROUP = {
    "norm": 1,
    "binning": EqualWidth(15),
    "method": "plugin",
    "groups": "predicted_class",
    "reduce": "max",
}


class BinnedError(NamedTuple):
    """A binned error with its parameters; see `calibration_error` and `groupwise_calibration_error`."""

    norm: float
    binning: BaseBinning
    method: str
    multiclass: str = "auto"
    class_weight: object = None
    squared: bool = False
    groups: object = None
    reduce: str | None = None

    @classmethod
    def from_metric(cls, metric, params):
        """Return the binned error that a metric with parameters is, or None."""
        row = metric_of(metric)
        defaults = _BY_GROUP if metric is groupwise_calibration_error else row and row.binned
        if defaults is None:
            return None
        options = {**defaults, **params}
        if metric is sweep_calibration_error:
            options["binning"] = MonotonicSweep(options.pop("base", None))
        binning = check_binning(options["binning"], defaults["binning"])
        return cls(**{**options, "norm": resolve_norm(options["norm"]), "binning": binning})

    @property
    def is_sweep(self):
        """Whether it is the sweep's error, whose bins are made anew for each draw of the labels."""
        return isinstance(self.binning, MonotonicSweep) and self.method == "plugin" and self.groups is None
