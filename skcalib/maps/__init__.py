"""Calibration maps as expressions built from nodes.

Each recalibrator's `_map` builds such an expression. `predict_proba`, the engines, and
the exports to SQL, ONNX and JavaScript interpret it.
"""

from skcalib.maps import checks as checks
from skcalib.maps._calibration_map import (
    CalibrationMap,
    calibration_map,
    has_map,
    map_of,
)
from skcalib.maps._choices import Choice, GroupOf, Largest, Place
from skcalib.maps._class_functions import (
    Affine,
    Centred,
    LogNormalized,
    LogOddsAgainstRest,
    Normalized,
    Possible,
    RowMax,
    Softmax,
    Spread,
)
from skcalib.maps._combinations import Columns, Mixture, OneColumn, Times
from skcalib.maps._forms import (
    class_probabilities,
    clipped_probability,
    just_below,
    linear_form,
    log_probabilities,
    normalized_rows,
    piecewise_polynomial,
    predicted_class,
    step_function,
    two_logits,
)
from skcalib.maps._leaves import Features, RowKey, Scores
from skcalib.maps._node import Node, Rows
from skcalib.maps._value_functions import (
    Clip,
    Exp,
    Expit,
    Log,
    LogOdds,
    LogSides,
    Pieces,
    Scaled,
)

__all__ = [
    "Affine",
    "CalibrationMap",
    "Centred",
    "Choice",
    "Clip",
    "Columns",
    "Exp",
    "Expit",
    "Features",
    "GroupOf",
    "Largest",
    "Log",
    "LogNormalized",
    "LogOdds",
    "LogOddsAgainstRest",
    "LogSides",
    "Mixture",
    "Node",
    "Normalized",
    "OneColumn",
    "Pieces",
    "Place",
    "Possible",
    "RowKey",
    "RowMax",
    "Rows",
    "Scaled",
    "Scores",
    "Softmax",
    "Spread",
    "Times",
    "just_below",
    "calibration_map",
    "has_map",
    "clipped_probability",
    "predicted_class",
    "linear_form",
    "log_probabilities",
    "map_of",
    "normalized_rows",
    "piecewise_polynomial",
    "class_probabilities",
    "step_function",
    "two_logits",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
