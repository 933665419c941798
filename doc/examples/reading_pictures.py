"""Pictures of the page on reading a reliability diagram: python
doc/examples/reading_pictures.py [FOLDER].
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from skcalib.displays import ReliabilityDisplay


def rows(n_rows=4000, seed=0):
    """Labels, and the log-odds of their true probabilities."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-0.5, 1.5, n_rows)
    return rng.random(n_rows) < expit(log_odds), log_odds


def parts_of_a_diagram():
    """Annotated diagram of an overconfident model."""
    y, log_odds = rows(2500)
    figure, ax = plt.subplots(figsize=(7, 7), layout="constrained")
    display = ReliabilityDisplay.from_predictions(
        y, expit(2 * log_odds), ax=ax, random_state=0, legend=False
    )
    curve, histogram = display.ax_, display.figure_.axes[-1]
    points = display.lines_[0].get_xydata()
    label = {
        "bbox": {"boxstyle": "round", "fc": "white", "ec": "0.6"},
        "ha": "center",
        "va": "center",
    }
    arrow = {"arrowprops": {"arrowstyle": "->", "color": "0.2"}}
    curve.annotate(
        "a point: the event\nfrequency of one bin",
        points[-5],
        (0.84, 0.36),
        **label,
        **arrow,
    )
    curve.annotate(
        "its interval", points[-3] + (0, 0.04), (0.62, 0.93), **label, **arrow
    )
    curve.annotate(
        "the diagonal: calibrated", (0.2, 0.2), (0.28, 0.72), **label, **arrow
    )
    curve.annotate(
        "the grey band: calibrated\nmodels stay inside",
        (0.5, 0.45),
        (0.5, 0.1),
        **label,
        **arrow,
    )
    histogram.annotate(
        "the histogram: here are most rows", (0.03, 150), (0.5, 300), **label, **arrow
    )
    return figure


def four_shapes():
    """Four shapes: flatter, steeper, below and above the diagonal."""
    y, log_odds = rows()
    models = {
        "overconfident": expit(2 * log_odds),
        "underconfident": expit(0.5 * log_odds),
        "too high": expit(log_odds + 1),
        "too low": expit(log_odds - 1),
    }
    figure, axes = plt.subplots(2, 2, figsize=(9, 10.5), layout="constrained")
    for ax, (name, y_proba) in zip(axes.flat, models.items(), strict=True):
        ReliabilityDisplay.from_predictions(
            y, y_proba, name=name, ax=ax, legend=False, random_state=0
        )
    return figure


def chance():
    """A calibrated model, evaluated on few and on many samples."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 5.4), layout="constrained")
    for ax, n_rows in zip(axes, (200, 5000), strict=True):
        y, log_odds = rows(n_rows)
        ReliabilityDisplay.from_predictions(
            y, expit(log_odds), name="calibrated", ax=ax, legend=False, random_state=0
        )
    return figure


PICTURES = {one.__name__: one for one in (parts_of_a_diagram, four_shapes, chance)}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "doc/pictures")
    for name, draw in PICTURES.items():
        draw().savefig(folder / f"{name}.png", dpi=160)
