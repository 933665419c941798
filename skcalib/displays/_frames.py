"""Where a picture is drawn: axes, the strips below them, and the size of their text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skcalib.displays._style import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The `gid` of strips, which are low axes below a panel: a display that is drawn on top
# of another finds them by this.
BELOW = "skcalib-below"
_FULL_SIZE = 2.4  # inches: the side of a panel from which text has the user's size
SMALLEST_TEXT = 0.58  # text is never smaller than this share of the user's size
_PAD = 0.03  # inches around axes in figures of our own


class Frame(NamedTuple):
    """The axes of a figure and the size of its text.

    Parameters
    ----------
    axes : ndarray of Axes, shape (n_panels,)
        The axes of each panel.
    strips : list of list of Axes
        The axes below each panel, from the top.
    is_own : bool
        Whether the figure contains nothing else, so that its layout can make room for
        titles and a legend.
    n_columns : int
        Number of panels side by side.
    size : float
        Size of the text in points.
    width : float
        Width of a panel in inches.
    """

    axes: np.ndarray
    strips: list
    is_own: bool
    n_columns: int
    size: float
    width: float

    @property
    def figure(self):
        """The figure or subfigure that contains the axes."""
        return self.axes[0].figure

    @property
    def below(self):
        """All strips, panel by panel."""
        return list(chain.from_iterable(self.strips))

    @property
    def lowest(self):
        """The lowest axes of each panel."""
        columns = zip(self.axes, self.strips, strict=True)
        return [[ax, *strips][-1] for ax, strips in columns]


def frame_of_panels(
    ax: Axes | np.ndarray | Sequence[Axes] | None,
    n_panels: int = 1,
    strips: Sequence[float] = (),
) -> Frame:
    """Return the frame of square panels, each with strips below it.

    Parameters
    ----------
    ax : Axes, array of Axes or None
        None creates a figure. The area of a single Axes is used; it is divided if there
        are several panels. An array contains one axes for each panel.
    n_panels : int, default=1
        Number of panels.
    strips : sequence of float, default=()
        Height of each strip below a panel, in units of the panel's height.

    Returns
    -------
    frame : Frame
        The axes and the size of their text.

    Raises
    ------
    ValueError
        If the array contains fewer axes than there are panels.
    """
    if ax is None:
        return _new_frame(n_panels, strips)
    axes = np.ravel(np.asarray(ax, dtype=object))
    n_columns = 1
    # Axes that fill a figure with a layout are treated like a figure of our own.
    is_own = len(axes) == 1 and _fills_its_figure(axes[0])
    # The smallest axes decide about the size of the text.
    width, height = np.min([_inches(each) for each in axes], axis=0)
    is_single_axes = np.ndim(ax) == 0
    if is_single_axes and n_panels > 1:
        n_columns = _n_columns(n_panels)
        n_rows = ceil(n_panels / n_columns)
        # The rest is for titles, ticks and the spaces between the panels.
        width = 0.82 * width / n_columns
        height = 0.72 * height / n_rows
        axes = _divided(axes[0], n_panels, n_rows, n_columns, width, height)
        is_own = False
    if len(axes) < n_panels:
        raise ValueError(
            f"ax contains {len(axes)} axes but there are {n_panels} panels."
        )
    axes = np.array(axes[:n_panels], dtype=object)
    below = [_strips_below(each, strips) for each in axes]
    return Frame(
        axes=axes,
        strips=below,
        is_own=is_own,
        n_columns=n_columns,
        size=_text_size(width, height),
        width=width,
    )


def pair_frame(
    ax: Axes | np.ndarray | Sequence[Axes] | None, n_panels: int = 1
) -> Frame:
    """Return the frame of one or two panels that are wider than they are high.

    Parameters
    ----------
    ax : Axes, array of Axes or None
        The area of a single Axes is used, or one axes for each panel. None creates a
        figure.
    n_panels : int, default=1
        Number of panels: one, or two side by side.

    Returns
    -------
    frame : Frame
        The axes and the size of their text.
    """
    if ax is not None:
        return frame_of_panels(ax, n_panels)
    width, height = require_matplotlib().rcParams["figure.figsize"]
    # Two panels share a wider figure, .64 of the usual width each.
    width *= 0.8 if n_panels == 1 else 2 * 0.64
    height *= 0.9
    # The rest is for ticks and labels: about a fifth of the width and of the height.
    side = 0.8 * width / n_panels
    size = _text_size(side, 0.78 * height)
    return _drawn_frame(
        n_panels, strips=(), figure_size=(width, height), side=side, size=size
    )


def _divided(ax, n_panels, n_rows, n_columns, width, height):
    """Hide `ax`, and return new axes in its place for panels of `width` times `height`
    inches.
    """
    line = _line_height(_text_size(width, height))
    ax.set_axis_off()
    # The spaces between panels have room for a title and ticks (3.6 lines) and for
    # numbers (1 line). Matplotlib takes them in units of the size of a panel.
    grid = _place(ax).subgridspec(
        n_rows,
        n_columns,
        hspace=min(3.6 * line / height, 1),
        wspace=min(line / width, 1),
    )
    cells = [grid[divmod(i, n_columns)] for i in range(n_panels)]
    return [ax.figure.add_subplot(cell) for cell in cells]


def _new_frame(n_panels, strips):
    """Return the `Frame` of a new figure with room for the panels and the words around
    them. `strips` are the heights of the low axes below each panel, in units of its
    height.
    """
    matplotlib = require_matplotlib()
    n_columns = _n_columns(n_panels)
    figure_size = matplotlib.rcParams["figure.figsize"]
    users_width, users_height = figure_size
    is_users = list(figure_size) != list(matplotlib.rcParamsDefault["figure.figsize"])
    if n_panels == 1 and is_users:  # the size that the user has asked for is kept
        # Ticks and labels take about a tenth of the width, and with titles three tenths
        # of the height.
        side = 0.9 * users_width
        size = _text_size(side, 0.7 * users_height)
        return _drawn_frame(n_panels, strips, figure_size, side, size)
    # One panel and what stands around it make a figure that is higher than wide. Each
    # of several panels takes .4 of the usual width of a figure, and ticks and labels
    # take about .1 of it.
    share = 0.72 if n_panels == 1 else 0.12 + 0.4 * n_columns
    width = share * users_width
    side = (width - 0.1 * users_width) / n_columns  # of a square panel
    size = _text_size(side, side)
    line = _line_height(size)
    n_rows = ceil(n_panels / n_columns)
    # Each panel needs lines for its title and ticks (2.4), the figure for labels and
    # legend (4.2).
    panel_height = side * (0.93 + sum(strips)) + 2.4 * line
    height = n_rows * panel_height + 4.2 * line
    return _drawn_frame(n_panels, strips, (width, height), side, size)


def _drawn_frame(n_panels, strips, figure_size, side, size):
    """Return the frame of a new figure with a constrained layout. `figure_size` and
    `side`, a panel's width, are in inches; `size`, of the text, is in points.
    """
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=figure_size, layout="constrained")
    figure.get_layout_engine().set(w_pad=_PAD, h_pad=_PAD, hspace=0.02, wspace=0.03)
    n_columns = _n_columns(n_panels)
    n_rows = ceil(n_panels / n_columns)
    numbers = range(1, n_panels + 1)
    axes = [figure.add_subplot(n_rows, n_columns, number) for number in numbers]
    below = [_strips_below(ax, strips) for ax in axes]
    return Frame(
        axes=np.array(axes, dtype=object),
        strips=below,
        is_own=True,
        n_columns=n_columns,
        size=size,
        width=side,
    )


def _place(ax):
    """Return the `SubplotSpec` of axes; those in no grid get a grid of one cell in
    their position.
    """
    from matplotlib.gridspec import GridSpec

    if ax.get_subplotspec() is not None:
        return ax.get_subplotspec()
    left, bottom, right, top = ax.get_position(original=True).extents
    ends = {"left": left, "bottom": bottom, "right": right, "top": top}
    return GridSpec(1, 1, ax.figure, **ends)[0]


def _strips_of(ax):
    """Return the strips below `ax`, from the top: low axes with its horizontal axis and
    the `gid` BELOW.
    """
    sharing = ax.get_shared_x_axes().get_siblings(ax)
    strips = [strip for strip in sharing if strip.get_gid() == BELOW]
    return sorted(strips, key=lambda strip: -strip.get_position().y0)


def _strips_below(ax, heights):
    """Return new strips below `ax`, which shrinks to make room, or those of an earlier
    display. `heights` are in units of the height of the axes.
    """
    earlier_strips = _strips_of(ax)
    if earlier_strips or not heights:
        return earlier_strips[: len(heights)]
    ratios = [1, *heights]
    grid = _place(ax).subgridspec(len(ratios), 1, height_ratios=ratios, hspace=0.04)
    strips = []
    for row in range(1, len(ratios)):
        strips.append(ax.figure.add_subplot(grid[row], sharex=ax, gid=BELOW))
    if ax.get_subplotspec() is None:
        # No layout moves what was in no grid.
        for each in [ax, *strips]:
            each.set_in_layout(False)
    ax.set_subplotspec(grid[0])
    ax.tick_params(labelbottom=False)
    return strips


def _n_columns(n_panels):
    """Return how many panels stand side by side: up to three in one row, four two by
    two, more in rows of three or four, whichever fills the last row more.
    """
    if n_panels <= 3:
        return n_panels
    if n_panels == 4:
        return 2
    n_empty_by_4 = -n_panels % 4
    n_empty_by_3 = -n_panels % 3
    return 4 if n_empty_by_4 <= n_empty_by_3 else 3


def _fills_its_figure(ax):
    """Return whether axes stand alone in a figure whose layout makes room for words."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = ax.figure
    for neighbour in figure.axes:
        # Strips below the axes belong to them, and are no neighbours.
        if neighbour is not ax and neighbour.get_gid() != BELOW:
            return False
    if not isinstance(figure, Figure):
        return False
    return isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)


def _inches(ax):
    """Return the width and the height of axes in inches, with the strips below them."""
    place = _place(ax)
    # Axes with strips share a grid with them, which fills their former place.
    if _strips_of(ax):
        place = place.get_topmost_subplotspec()
    box = place.get_position(ax.figure)
    figure = ax.figure.bbox
    dpi = ax.figure.dpi
    return box.width * figure.width / dpi, box.height * figure.height / dpi


def _line_height(size):
    """Return the height in inches of a line of text of a size in points."""
    return 1.35 * size / 72


def _text_size(width, height):
    """Return the size of text in points for a panel in inches: the user's, or a share
    in a small panel.
    """
    # A panel is judged by its width, unless it is much lower than wide.
    share = min(width, 1.2 * height) / _FULL_SIZE
    users_size = require_matplotlib().rcParams["font.size"]
    return users_size * float(np.clip(share, SMALLEST_TEXT, 1))


def size_text(frame: Frame) -> None:
    """Set the labels and ticks of all axes to the text size of the frame.

    Parameters
    ----------
    frame : Frame
        The axes.
    """
    for ax in [*frame.axes, *frame.below]:
        ax.tick_params(labelsize=0.9 * frame.size, length=min(3.5, 0.35 * frame.size))
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_size(frame.size)
            axis.labelpad = 0.3 * frame.size


def has_room(ax, height):
    """Return whether the place of a picture (given axes or a new figure) is at least
    this many inches high.
    """
    if ax is None:
        return require_matplotlib().rcParams["figure.figsize"][1] >= height
    axes = np.ravel(np.asarray(ax, dtype=object))
    return all(_inches(each)[1] >= height for each in axes)
