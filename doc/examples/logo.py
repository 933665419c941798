"""The logo of the site: python doc/examples/logo.py [FILE.svg].

The logo shows the diagonal, and below it the calibration curve of scores that are too
high. The tile has its own background, so that one file works on light pages, on dark
pages and as a favicon. Strokes are at least two pixels wide at 32 x 32.
"""

import sys
from pathlib import Path

import numpy as np

FILE = Path(__file__).parents[1] / "_static" / "logo.svg"
SIZE, MARGIN = 32, 6
BLUE, YELLOW = "#0072B2", "#F0E442"  # of Okabe and Ito (2008)


def place(score, frequency):
    """Convert a point of the unit square to the coordinates of the drawing."""
    side = SIZE - 2 * MARGIN
    return f"{MARGIN + side * score:.2f} {SIZE - MARGIN - side * frequency:.2f}"


def event_frequency(score):
    """Return the event frequency at scores that are too high."""
    return score**3


def drawing():
    """Return the SVG."""
    scores = np.linspace(0, 1, 25)
    curve = " L".join(place(score, event_frequency(score)) for score in scores)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}"'
        f' width="{SIZE}" height="{SIZE}" role="img" aria-label="skcalib">',
        f'<rect width="{SIZE}" height="{SIZE}" rx="6" fill="{BLUE}"/>',
        '<g fill="none" stroke-linecap="round" stroke-linejoin="round">',
        f'<path d="M{place(0, 0)} L{place(1, 1)}" stroke="#fff" stroke-width="2.4"/>',
        f'<path d="M{curve}" stroke="{YELLOW}" stroke-width="3"/>',
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    path.write_text(drawing(), encoding="utf-8")
