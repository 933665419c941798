"""Fitted recalibrators outside Python: as SQL expressions."""

from skcalib.export._sql import to_sql

__all__ = ["to_sql"]
