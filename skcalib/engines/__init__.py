"""Calibration where the predictions are stored: Parquet files, data frames, warehouses
and clusters.

A table is reduced to bin statistics, weighted scores or a fitted recalibrator. The
predictions of a fitted recalibrator are added to a table as a column. All metrics are
those of `skcalib.metrics`. The extra ``engine`` is required.
"""

from skcalib.engines._scan import scan
from skcalib.engines._table import PredictionTable

__all__ = ["PredictionTable", "scan"]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
