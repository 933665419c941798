"""How every picture looks: colours and marks that survive print and colour-vision deficiency, axes, legends."""

from math import ceil
from typing import NamedTuple

import numpy as np

__all__ = [
    "CURVE",
    "Frame",
    "colors",
    "count_axis",
    "canonical_keywords",
    "grid_frame",
    "legend_outside",
    "mark",
    "neutral",
    "percent",
    "matplotlib_text",
    "plural",
    "probability_axes",
    "require_matplotlib",
    "format_count",
    "short_count",
    "single_frame",
    "single_or_pair",
]

# Okabe and Ito (2008), without yellow, which vanishes on white, in an order whose greys differ, too.
_OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# The second and third way to tell curves apart: line style and marker.
_MARKS = (
    ("-", "o"),
    ("--", "s"),
    ("-.", "^"),
    (":", "D"),
    ((0, (5, 1, 1, 1, 1, 1)), "v"),
    ((0, (8, 2)), "P"),
    ("-", "X"),
)


# Marks on artists, by which a display drawn on top of another knows what is there.
CURVE, BELOW, _LEGEND = "skcalib-curve", "skcalib-below", "skcalib-legend"
_NOTHING = 1e-3  # height of a row that is kept free
_SMALLEST_SIDE = 0.23  # of a panel in a grid, in inches per point of the font: words must fit above it


def require_matplotlib():
    """Return `matplotlib.pyplot`, or raise with what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Displays need matplotlib: pip install "skcalib[plot]".') from error
    return plt


def colors(n_colors):
    """Return so many colours: the user's cycle where there is one, else Okabe and Ito's."""
    plt = require_matplotlib()
    from matplotlib import rcParamsDefault

    cycle = plt.rcParams["axes.prop_cycle"]
    own = cycle.by_key().get("color") if cycle != rcParamsDefault["axes.prop_cycle"] else None
    palette = own or _OKABE_ITO
    return [palette[i % len(palette)] for i in range(n_colors)]


def mark(rank):
    """Return line style and marker of the model of that rank: with its colour no two of the first 49 look the same."""
    return _MARKS[(rank + rank // len(_MARKS)) % len(_MARKS)]


def neutral(opacity):
    """Return the colour of the text, thinned to `opacity` by the background: greys that suit dark styles as well."""
    plt = require_matplotlib()
    from matplotlib.colors import to_hex, to_rgb

    text, background = (np.array(to_rgb(plt.rcParams[name])) for name in ("axes.labelcolor", "axes.facecolor"))
    return to_hex(opacity * text + (1 - opacity) * background)


def canonical_keywords(given):
    """Return the user's keywords of an artist with the names that ours have (``lw`` is ``linewidth``)."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return {} if given is None else normalize_kwargs(normalize_kwargs(given, Line2D), Patch)


class Frame(NamedTuple):
    """Where a picture is drawn.

    `axes` has one entry a panel and `below` as many or none. `is_own` says that nothing else is in the figure and that
    its layout makes room. `grid` is what the given axes' place was divided by, its last row free for the legend; it is
    None in a figure of its own and where no place was divided.
    """

    axes: np.ndarray
    below: list
    is_own: bool
    grid: object

    @property
    def n_columns(self):
        """Number of panels side by side, 1 if each is in a place of its own."""
        divided = len(self.axes) > 1 and (self.is_own or self.grid is not None)
        return self.axes[0].get_subplotspec().get_gridspec().ncols if divided else 1


def single_frame(ax, *, height_below=None, figsize=None):
    """Return the frame of one panel: the given axes or new ones, with axes below in units of its side if wanted."""
    plt = require_matplotlib()
    if ax is None:
        _, ax = plt.subplots(layout="constrained", figsize=figsize)
    is_own = ax.figure.axes == [ax] and _is_constrained(ax.figure)
    below, grid = ([], None) if height_below is None else _split(ax, height_below)
    return Frame(np.array([ax], dtype=object), below, is_own, grid)


def single_or_pair(ax, n_panels):
    """Return the frame of one panel or of two, side by side, that need not be squares."""
    if n_panels == 1:
        return single_frame(np.ravel(np.asarray(ax, dtype=object))[0] if np.ndim(ax) else ax)
    if ax is not None:
        return grid_frame(ax, n_panels)
    plt = require_matplotlib()
    width, height = plt.rcParams["figure.figsize"]
    width = max(1.4 * width, 2.4 * _SMALLEST_SIDE * plt.rcParams["font.size"])
    _, axes = plt.subplots(1, n_panels, figsize=(width, height), layout="constrained")
    return Frame(axes, [], True, None)


def grid_frame(ax, n_panels, *, height_below=None):
    """Return the frame of small multiples; `ax` may be as many axes, one whose place is divided among them, or None."""
    plt = require_matplotlib()
    if ax is not None and np.ndim(ax):
        given = np.asarray(ax, dtype=object).ravel()
        if len(given) < n_panels:
            raise ValueError(f"ax holds {len(given)} axes but there are {n_panels} panels.")
        frames = [single_frame(panel, height_below=height_below) for panel in given[:n_panels]]
        return Frame(given[:n_panels], [below for frame in frames for below in frame.below], False, frames[0].grid)
    n_columns = _n_columns(n_panels)
    n_rows = ceil(n_panels / n_columns)
    ratios = ([1, height_below] if height_below else [1]) * n_rows
    if ax is None:
        side = max(0.42 * plt.rcParams["figure.figsize"][0], _SMALLEST_SIDE * plt.rcParams["font.size"])
        # A little too low for its width: the layout finds the top of squares more easily than their bottom.
        size = side * n_columns, side * (1.06 + (height_below or 0)) * n_rows + 0.22 * side
        figure = plt.figure(figsize=size, layout="constrained")
        grid = figure.add_gridspec(len(ratios), n_columns, height_ratios=ratios)
    else:
        ax.set_axis_off()
        figure = ax.figure
        grid = ax.get_subplotspec().subgridspec(len(ratios) + 1, n_columns, height_ratios=[*ratios, _NOTHING])
    panels, below = [], []
    for row, column in (divmod(i, n_columns) for i in range(n_panels)):
        panels.append(figure.add_subplot(grid[2 * row if height_below else row, column]))
        if height_below:
            below.append(figure.add_subplot(grid[2 * row + 1, column], sharex=panels[-1]))
            _stack(panels[-1], below[-1], height_below)
        if ax is None:
            panels[-1].set_anchor("NW")
    return Frame(np.array(panels, dtype=object), below, ax is None, None if ax is None else grid)


def _n_columns(n_panels):
    if n_panels <= 4:
        return 3 if n_panels == 3 else min(n_panels, 2)
    return 3 if n_panels in (5, 6, 9) else 4


def _is_constrained(figure):
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return isinstance(figure, Figure) and isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)


def _split(ax, height):
    """Return axes below `ax`, in its place and with its scores, and the grid that divides it."""
    place = ax.get_subplotspec()
    for other in ax.get_shared_x_axes().get_siblings(ax):
        if other.get_gid() == BELOW:
            return [other], None if place is None else place.get_gridspec()
    if place is None:
        grid, box = None, ax.get_position(original=True)
        below = ax.figure.add_axes((box.x0, box.y0, box.width, 0.2 * box.height), sharex=ax)
        ax.set_position((box.x0, box.y0 + 0.25 * box.height, box.width, 0.75 * box.height))
    else:
        grid = place.subgridspec(3, 1, height_ratios=(1, height, _NOTHING))
        ax.set_subplotspec(grid[0])
        below = ax.figure.add_subplot(grid[1], sharex=ax)
    _stack(ax, below, height)
    return [below], grid


def _stack(ax, below, height):
    """Let square axes stand on flat ones of the same width."""
    below.set_gid(BELOW)
    below.set_box_aspect(height)
    ax.set_anchor("SW")
    below.set_anchor("NW")
    ax.tick_params(labelbottom=False)


def probability_axes(ax, limits):
    """Make the axes a square whose sides are the same probabilities, with room for what lies on the border."""
    low, high = limits
    margin = 0.02 * (high - low)
    ax.set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
    ax.set_box_aspect(1)
    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))


def count_axis(ax):
    """Give axes over counts a logarithmic scale with numbers as people write them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda number, _: format_count(number)))


def legend_outside(frame, title, legend_kw):
    """Put one legend of all that is labelled outside the axes, where it cannot hide data, and return it.

    In a figure of its own the layout makes room for it: beside the axes where the figure is wider than tall, else at
    the bottom. Else it takes a part of the given axes' place.
    """
    figure = frame.axes[0].figure
    earlier = [legend for legend in figure.legends if legend.get_gid() == _LEGEND]
    for legend in earlier:
        legend.remove()
    handles = _legend_handles([*frame.axes[:1], *frame.below[:1]])
    options = {"handles": handles.values(), "labels": handles.keys(), "title": title, "frameon": False}
    if frame.is_own or earlier:
        width, height = figure.get_size_inches()
        beside = len(frame.axes) == 1 and width > 1.15 * height
        options["loc"] = "outside right center" if beside else "outside lower center"
        options["ncols"] = 1 if beside else max(1, min(len(handles), int(width / 2.8)))
        legend = figure.legend(**{**options, **legend_kw})
    else:
        legend = _legend_axes(frame, handles, title).legend(**{**options, "loc": "lower center", **legend_kw})
    legend.set_gid(_LEGEND)
    return legend


def _legend_axes(frame, handles, title):
    """Return axes without content that are as high as the legend, in the place of the given axes."""
    ax, grid = frame.axes[0], frame.grid
    place = ax.get_subplotspec()
    if place is None:
        return (frame.below or frame.axes)[0]
    if grid is None:
        grid = place.subgridspec(2, 1, height_ratios=(1, _NOTHING))
        ax.set_subplotspec(grid[0])
    for other in ax.figure.axes:
        if other.get_gid() == _LEGEND and other.get_subplotspec().get_gridspec() is grid:
            other.remove()
    lines = sum(label.count("\n") + 1.5 for label in [*handles, *([] if title is None else [title])])
    height = (1.2 * lines + 5) * ax.xaxis.label.get_size() / 72  # with the axes' labels, in inches
    available = place.get_topmost_subplotspec().get_position(ax.figure).height * ax.figure.figure.get_size_inches()[1]
    others = grid.get_height_ratios()[:-1]
    grid.set_height_ratios([*others, sum(others) * min(height / max(available - height, 0.01), 1)])
    for other in ax.figure.axes:  # without a layout engine axes keep the place that they were made with
        if other.get_subplotspec() is not None and other.get_subplotspec().get_gridspec() is grid:
            other.set_subplotspec(other.get_subplotspec())
    legend_axes = ax.figure.add_subplot(grid[-1, :], gid=_LEGEND)
    legend_axes.set_axis_off()
    return legend_axes


def _legend_handles(axes):
    """Return the labelled artists by label, one each: curves with markers first."""
    handles = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return dict(sorted(handles.items(), key=lambda item: getattr(item[1], "get_gid", lambda: None)() != CURVE))


def matplotlib_text(name):
    """Return a user's name as matplotlib shows it unchanged: no formula between dollars, no hidden label."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def format_count(number):
    """Return a number of rows as people write it."""
    return f"{number:,.0f}" if float(number).is_integer() or number >= 100 else f"{number:,.4g}"


def plural(noun, number):
    """Return the noun's form after a number."""
    return noun if number == 1 else noun + "s"


def short_count(number):
    """Return a number of rows as briefly as can be without rounding: 1.6k."""
    return f"{number / 1000:,.10g}k" if number >= 1000 else f"{number:g}"


def percent(value):
    """Return a share as a percentage: two significant digits or tenths."""
    value = 100 * value
    digits = 1 if abs(value) >= 0.95 or value == 0 else 2
    return f"{value:.{digits}f}"
