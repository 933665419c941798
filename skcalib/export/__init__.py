"""Fitted recalibrators outside Python: as JSON, SQL and ONNX."""

from skcalib.export._json import from_dict, to_dict
from skcalib.export._onnx import to_onnx
from skcalib.export._sql import to_sql

__all__ = ["from_dict", "to_dict", "to_onnx", "to_sql"]
