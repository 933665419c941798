"""Calibration where the predictions live: Parquet files, data frames, warehouses and
clusters.

A table becomes bin statistics, weighted scores or a fitted recalibrator; a fitted
recalibrator becomes a column. All metrics are those of `skcalib.metrics`. Needs the
extra ``engine``: ``pip install "skcalib[engine]"``.
"""

from skcalib.engines._scan import scan
from skcalib.engines._table import PredictionTable

__all__ = ["PredictionTable", "scan"]
