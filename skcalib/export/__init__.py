"""Export of fitted recalibrators to JSON, SQL, ONNX, JavaScript and plain Python."""

from skcalib.export._javascript import to_javascript
from skcalib.export._json import from_dict, to_dict
from skcalib.export._onnx import to_onnx
from skcalib.export._python import to_python
from skcalib.export._skl2onnx import register_skl2onnx_converters
from skcalib.export._sql import to_sql
from skcalib.export._sql_table import to_sql_table

__all__ = [
    "from_dict",
    "register_skl2onnx_converters",
    "to_dict",
    "to_javascript",
    "to_onnx",
    "to_python",
    "to_sql",
    "to_sql_table",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
