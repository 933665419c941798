"""Room for words: what covers a curve, leaves the figure or lies on other axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skcalib.displays._style import CURVE

if TYPE_CHECKING:
    from skcalib.displays._frames import Frame

# Labels of at most this share of their axes, as these stand before the layout, stay
# shorter than them.
_SHORT = 0.75
_TOUCHING = 2  # pixels by which boxes of words may overlap unseen


# A box is Matplotlib's `Bbox`, in pixels of the figure.


def overlap(box, other):
    """Return whether two boxes overlap by more than can be seen."""
    width = min(box.x1, other.x1) - max(box.x0, other.x0)
    height = min(box.y1, other.y1) - max(box.y0, other.y0)
    return min(width, height) > _TOUCHING


def neighbours(frame):
    """Return the boxes of the figure's other axes, each with its labels and ticks.

    Axes that lie on those of the frame (twins, insets, a colour bar of the frame, the
    axes that the panels were made from) are left out.
    """
    ours = [ax.get_window_extent() for ax in [*frame.axes, *frame.below]]
    boxes = []
    for ax in frame.figure.figure.axes:
        if ax in frame.axes or ax in frame.below or not ax.axison:
            continue
        if ax.get_label() == "<colorbar>":
            continue
        inside = ax.get_window_extent()
        if not any(overlap(inside, box) for box in ours):
            boxes.append(ax.get_tightbbox())
    return boxes


def keep_inside(frame: Frame) -> None:
    """Make room for text in a figure without a layout engine (``plt.subplots``).

    The layout of the figure is computed once if text of the frame extends beyond the
    figure or overlaps other axes.

    Parameters
    ----------
    frame : Frame
        The axes.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.transforms import Bbox

    figure = frame.figure.figure
    in_grid = frame.axes[0].get_subplotspec() is not None
    if figure.get_layout_engine() is not None or not in_grid:
        return
    figure.draw_without_rendering()
    boxes = [ax.get_tightbbox() for ax in [*frame.axes, *frame.below]]
    words = Bbox.union(boxes)
    room = frame.figure.bbox
    leaves = np.any(words.min < room.min) or np.any(words.max > room.max)
    collides = False
    for neighbour in neighbours(frame):
        collides = collides or any(overlap(box, neighbour) for box in boxes)
    if leaves or collides:
        ConstrainedLayoutEngine().execute(figure)
        figure.draw_without_rendering()
    for ax in frame.lowest:
        # A label that leaves the figure at the right is no longer centred: it ends
        # where its axes end.
        if ax.xaxis.label.get_window_extent().x1 > room.x1:
            ax.set_xlabel(ax.get_xlabel(), loc="right")


def drop_long_labels(frame, legend=None):
    """Remove labels of axes that are more than a tenth longer than the axes. `legend`
    is the one for which the layout will make room, or None.

    If the labels below a row of panels are too long, the middle one stays, up to 1.6
    times the width of its axes: it has room at both sides once the others are gone.
    """
    if _has_short_labels(frame, legend):
        return
    frame.figure.figure.draw_without_rendering()  # to know the sizes
    named = [ax for ax in frame.lowest if ax.get_xlabel()]
    longest = 0.0  # in units of the width of the axes
    for ax in named:
        label = ax.xaxis.label.get_window_extent()
        longest = max(longest, label.width / ax.get_window_extent().width)
    if longest > 1.1:
        middle = named[(len(named) - 1) // 2]
        for ax in named:
            if ax is not middle or longest > 1.6:
                ax.set_xlabel("")
    for ax in [*frame.axes, *frame.below]:
        label = ax.yaxis.label.get_window_extent()
        if label.height > 1.1 * ax.get_window_extent().height:
            ax.set_ylabel("")


def _has_short_labels(frame, legend):
    """Return whether all labels are so short that any layout has room for them: it need
    not be computed then, which takes half of the time of a picture.
    """
    share = _SHORT
    if legend is not None:
        share *= 1 - legend.get_window_extent().height / frame.figure.bbox.height
    for ax in [*frame.axes, *frame.below]:
        box = ax.get_window_extent()
        if ax.get_aspect() != "auto":
            return False
        if ax.get_xlabel() and ax.xaxis.label.get_window_extent().width > (
            _SHORT * box.width
        ):
            return False
        if ax.get_ylabel() and ax.yaxis.label.get_window_extent().height > (
            share * box.height
        ):
            return False
    return True


def covers_a_curve(ax, box):
    """Return whether a box lies on a curve of a display in these axes."""
    for line in ax.lines:
        if line.get_gid() == CURVE:
            path = line.get_path().transformed(line.get_transform())
            if path.intersects_bbox(box, filled=False):
                return True
    return False


def is_free(ax, box):
    """Return whether a box lies inside axes and on no line, interval or legend."""
    lower_left_and_upper_right = box.get_points()
    area = ax.get_window_extent()
    if area.count_contains(lower_left_and_upper_right) < 2:
        return False
    legend = ax.get_legend()
    if legend is not None and box.overlaps(legend.get_window_extent()):
        return False
    for line in ax.lines:
        path = line.get_path().transformed(line.get_transform())
        if path.intersects_bbox(box, filled=False):
            return False
    for collection in ax.collections:
        for path in collection.get_paths():
            outline = path.transformed(collection.get_transform())
            if outline.intersects_bbox(box, filled=True):
                return False
    return True
