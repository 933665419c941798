"""Building blocks for your own displays: models, axes, curves and text.

The how-to guide contains a complete example. These names are public and as stable as
the base classes of recalibrators.
"""

from skcalib.displays._finish import finish
from skcalib.displays._frames import Frame, frame_of_panels, pair_frame, size_text
from skcalib.displays._layout import keep_inside
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.displays._style import (
    colors,
    curve_styles,
    draw_band,
    draw_curve,
    error_bars,
    reference_style,
    styled,
)
from skcalib.displays._words import matplotlib_text

__all__ = [
    "Frame",
    "FromEstimator",
    "colors",
    "curve_styles",
    "draw_band",
    "draw_curve",
    "error_bars",
    "finish",
    "frame_of_panels",
    "keep_inside",
    "matplotlib_text",
    "named_models",
    "pair_frame",
    "reference_style",
    "size_text",
    "styled",
]
