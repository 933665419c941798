"""Fitted recalibrators outside Python: as JSON and as SQL expressions."""

from skcalib.export._json import from_dict, to_dict
from skcalib.export._sql import to_sql

__all__ = ["from_dict", "to_dict", "to_sql"]
