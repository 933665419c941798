"""Where a picture is drawn: axes and the strips below them, the size of their text, titles and legends."""

from itertools import product
from math import ceil
from textwrap import fill
from typing import NamedTuple

import numpy as np

from skcalib.displays._style import CURVE, canonical_keywords, require_matplotlib

# Marks on artists: a display that is drawn on top of another recognises what is there.
_BELOW, _LEGEND = "skcalib-below", "skcalib-legend"
_FULL_SIZE = 2.4  # inches: the side of a panel from which text has the user's size
_EXPLAINED, _MOST_INSIDE = (
    1.8,
    5,
)  # inches and entries: a legend inside less room, or of more, has no explanations
_SMALLEST = 0.58  # text is never smaller than this share of the user's size
_LETTER = 0.56  # mean width of a letter in units of the font size
_LEGEND_SHARE = (
    0.16  # of the height of a figure that a legend with explanations may take
)
_PAD = 0.03  # inches around axes in figures of our own


class Frame(NamedTuple):
    """The axes of a picture.

    `axes` has one entry per panel, and `strips` the list of axes below each panel. `is_own` means that the figure holds
    nothing else, and that its layout makes room for titles and a legend. `size` is the size of text in points and
    `width` the width of a panel in inches.
    """

    axes: np.ndarray
    strips: list
    is_own: bool
    n_columns: int
    size: float
    width: float

    @property
    def figure(self):
        """The figure, or the part of one, that holds the axes."""
        return self.axes[0].figure

    @property
    def below(self):
        """All strips, panel by panel."""
        return [strip for strips in self.strips for strip in strips]

    @property
    def lowest(self):
        """The axes of each panel that stand at its bottom."""
        return [
            [ax, *strips][-1] for ax, strips in zip(self.axes, self.strips, strict=True)
        ]


def frame_of_panels(ax, n_panels=1, strips=()):
    """Return the frame of `n_panels` square panels with strips below, whose heights are in units of a panel's height.

    `ax` is None (a new figure), one axes (its place is used, and divided among several panels), or an array with one
    axes per panel.
    """
    if ax is None:
        return _new_frame(n_panels, strips)
    given = np.ravel(np.asarray(ax, dtype=object))
    n_columns, is_own = 1, len(given) == 1 and _fills_its_figure(given[0])
    width, height = np.min([_inches(one) for one in given], axis=0)
    if np.ndim(ax) == 0 and n_panels > 1:
        n_columns = _n_columns(n_panels)
        n_rows = ceil(n_panels / n_columns)
        width, height = 0.82 * width / n_columns, 0.72 * height / n_rows
        ax.set_axis_off()
        line = 1.35 * _text_size(width, height) / 72
        spaces = {"hspace": min(3.6 * line / height, 1), "wspace": min(line / width, 1)}
        grid, is_own = _place(ax).subgridspec(n_rows, n_columns, **spaces), False
        given = [
            ax.figure.add_subplot(grid[divmod(i, n_columns)]) for i in range(n_panels)
        ]
    if len(given) < n_panels:
        raise ValueError(f"ax holds {len(given)} axes but there are {n_panels} panels.")
    given = np.array(given[:n_panels], dtype=object)
    return Frame(
        given,
        [_below(one, strips) for one in given],
        is_own,
        n_columns,
        _text_size(width, height),
        width,
    )


def pair_frame(ax, n_panels=1):
    """Return the frame of one panel, or of two side by side that are wider than high."""
    if ax is not None:
        return frame_of_panels(ax, n_panels)
    width, height = require_matplotlib().rcParams["figure.figsize"]
    width, height = 0.8 * width * (1 if n_panels == 1 else 1.6), 0.9 * height
    side = 0.8 * width / n_panels
    return _drawn_frame(
        n_panels, (), (width, height), side, _text_size(side, 0.78 * height)
    )


def _new_frame(n_panels, strips):
    plt = require_matplotlib()
    n_columns = _n_columns(n_panels)
    width, height = given = plt.rcParams["figure.figsize"]
    if n_panels == 1 and list(given) != list(
        plt.rcParamsDefault["figure.figsize"]
    ):  # the user's own size is kept
        side = width - 0.1 * given[0]
        return _drawn_frame(
            n_panels, strips, given, side, _text_size(side, 0.7 * height)
        )
    # One panel and what stands around it make a figure that is higher than wide; small multiples are smaller.
    width *= 0.72 if n_panels == 1 else 0.12 + 0.4 * n_columns
    side = (width - 0.1 * given[0]) / n_columns
    size = _text_size(side, side)
    line = 1.35 * size / 72
    height = (
        ceil(n_panels / n_columns) * (side * (0.93 + sum(strips)) + 2.4 * line)
        + 4.2 * line
    )
    return _drawn_frame(n_panels, strips, (width, height), side, size)


def _drawn_frame(n_panels, strips, figure_size, side, size):
    figure, n_columns = (
        require_matplotlib().figure(figsize=figure_size, layout="constrained"),
        _n_columns(n_panels),
    )
    figure.get_layout_engine().set(w_pad=_PAD, h_pad=_PAD, hspace=0.02, wspace=0.03)
    axes = [
        figure.add_subplot(ceil(n_panels / n_columns), n_columns, i + 1)
        for i in range(n_panels)
    ]
    return Frame(
        np.array(axes, dtype=object),
        [_below(ax, strips) for ax in axes],
        True,
        n_columns,
        size,
        side,
    )


def _place(ax):
    """Return the cell of a grid that axes fill. Axes in no grid get a grid of one cell, where they are."""
    from matplotlib.gridspec import GridSpec

    if ax.get_subplotspec() is None:
        left, bottom, right, top = ax.get_position(original=True).extents
        return GridSpec(
            1, 1, ax.figure, left=left, bottom=bottom, right=right, top=top
        )[0]
    return ax.get_subplotspec()


def _strips_of(ax):
    """Return the strips that a display has drawn below axes, from the top."""
    strips = [
        one
        for one in ax.get_shared_x_axes().get_siblings(ax)
        if one.get_gid() == _BELOW
    ]
    return sorted(strips, key=lambda one: -one.get_position().y0)


def _below(ax, strips):
    """Return strips below axes, in their place; strips of an earlier display are used again."""
    earlier = _strips_of(ax)
    if earlier or not strips:
        return earlier[: len(strips)]
    grid = _place(ax).subgridspec(
        1 + len(strips), 1, height_ratios=[1, *strips], hspace=0.04
    )
    below = [
        ax.figure.add_subplot(grid[1 + i], sharex=ax, gid=_BELOW)
        for i in range(len(strips))
    ]
    for one in (
        [ax, *below] if ax.get_subplotspec() is None else ()
    ):  # no layout moves what was in no grid
        one.set_in_layout(False)
    ax.set_subplotspec(grid[0])
    ax.tick_params(labelbottom=False)
    return below


def _n_columns(n_panels):
    """Return how many panels stand side by side: a full last row where there is one, at most four."""
    if n_panels <= 4:
        return 2 if n_panels == 4 else n_panels
    return min((4, 3), key=lambda columns: (-n_panels % columns, -columns))


def _fills_its_figure(ax):
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = ax.figure
    others = [one for one in figure.axes if one is not ax and one.get_gid() != _BELOW]
    return (
        not others
        and isinstance(figure, Figure)
        and isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)
    )


def _inches(ax):
    """Return the width and the height of axes, with the strips below them."""
    place = _place(ax).get_topmost_subplotspec() if _strips_of(ax) else _place(ax)
    box, figure = place.get_position(ax.figure), ax.figure.bbox
    return (
        box.width * figure.width / ax.figure.dpi,
        box.height * figure.height / ax.figure.dpi,
    )


def _text_size(width, height):
    plt = require_matplotlib()
    share = min(width, 1.2 * height) / _FULL_SIZE
    return plt.rcParams["font.size"] * float(np.clip(share, _SMALLEST, 1))


def size_text(frame):
    """Give the labels and ticks of all axes the frame's text size."""
    for ax in [*frame.axes, *frame.below]:
        ax.tick_params(labelsize=0.9 * frame.size, length=min(3.5, 0.35 * frame.size))
        for axis in (ax.xaxis, ax.yaxis):
            axis.label.set_size(frame.size)
            axis.labelpad = 0.3 * frame.size


def has_room(ax, height):
    """Return whether the place of a picture (given axes or a new figure) is at least this many inches high."""
    if ax is None:
        return require_matplotlib().rcParams["figure.figsize"][1] >= height
    return all(
        _inches(one)[1] >= height for one in np.ravel(np.asarray(ax, dtype=object))
    )


def finish(
    display,
    frame,
    keys,
    x_label,
    y_label,
    *,
    titles=None,
    legend=True,
    legend_kw=None,
    **words,
):
    """Name the axes and panels, write the words of `add_words`, and size all text to the frame; return the display.

    In a grid only the axes at its border are named. `keys` are left out without `legend`. The display gets the
    attributes `ax_`, `figure_` and `legend_`.
    """
    last_row = (len(frame.axes) - 1) // frame.n_columns
    for i, (ax, lowest) in enumerate(zip(frame.axes, frame.lowest, strict=True)):
        if i // frame.n_columns == last_row:
            lowest.set_xlabel(x_label)
        if i % frame.n_columns == 0:
            ax.set_ylabel(y_label)
        if titles is not None:
            ax.set_title(
                titles[i], fontsize=0.9 * frame.size, loc="left", pad=0.35 * frame.size
            )
    size_text(frame)
    display.figure_, display.ax_ = (
        frame.figure,
        frame.axes if len(frame.axes) > 1 else frame.axes[0],
    )
    display.legend_ = add_words(
        frame, keys if legend else {}, legend_kw=canonical_keywords(legend_kw), **words
    )
    _drop_long_labels(frame)
    keep_inside(frame)
    return display


def _drop_long_labels(frame):
    """Remove names of axes that are longer than their axes once the layout is made; of horizontal ones one stays."""
    frame.figure.figure.draw_without_rendering()
    named = [ax for ax in frame.lowest if ax.get_xlabel()]
    excess = [
        ax.xaxis.label.get_window_extent().width / ax.get_window_extent().width
        for ax in named
    ]
    for ax in named if max(excess, default=0) > 1.1 else ():
        if ax is not named[(len(named) - 1) // 2] or max(excess) > 1.6:
            ax.set_xlabel("")
    for ax in [*frame.axes, *frame.below]:
        if (
            ax.yaxis.label.get_window_extent().height
            > 1.1 * ax.get_window_extent().height
        ):
            ax.set_ylabel("")


def keep_inside(frame):
    """Make the layout of a figure that has no layout engine (``plt.subplots``) once, if words leave the figure."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.transforms import Bbox

    figure = frame.figure.figure
    if (
        figure.get_layout_engine() is None
        and frame.axes[0].get_subplotspec() is not None
    ):
        figure.draw_without_rendering()
        words, room = (
            Bbox.union([ax.get_tightbbox() for ax in [*frame.axes, *frame.below]]),
            frame.figure.bbox,
        )
        if np.any(words.min < room.min) or np.any(words.max > room.max):
            ConstrainedLayoutEngine().execute(figure)
            figure.draw_without_rendering()
        for ax in frame.lowest:
            if (
                ax.xaxis.label.get_window_extent().x1 > room.x1
            ):  # the name ends with its axes, and begins before them
                ax.set_xlabel(ax.get_xlabel(), loc="right")


def shortened(text, frame, *, width=None, size=None):
    """Return each line of a text cut to what fits `width` inches (of a panel) at `size` points."""
    width = frame.width if width is None else width
    most = max(4, int(width / (_LETTER * (frame.size if size is None else size) / 72)))
    return "\n".join(
        line if len(line) <= most else line[: most - 1] + "…"
        for line in text.split("\n")
    )


def fitting(variants, frame, *, width=None, size=None):
    """Return the first of several texts that fits `width` inches at `size` points; the last one is cut to fit."""
    cut = [shortened(text, frame, width=width, size=size) for text in variants]
    return next(
        (text for text, short in zip(variants, cut, strict=True) if text == short),
        cut[-1],
    )


def add_words(
    frame, keys, *, caption=None, note=None, with_curves=True, legend_kw=None
):
    """Write the caption of a single curve above the axes and the legend of all else; return the legend or None.

    In a figure of its own the legend stands below the axes, where the layout makes room. In given axes it stands
    inside, where matplotlib finds the fewest data. What does not fit is left out, the explanations first.

    Parameters
    ----------
    frame : Frame
        The axes.
    keys : dict
        Labels and handles of what is explained once for all curves.
    caption : list of str, default=None
        Words about the only curve: the longest first, shorter ones for less room.
    note : str, default=None
        Title of the legend.
    with_curves : bool, default=True
        Whether the legend has an entry for each curve.
    legend_kw : dict, default=None
        The user's keywords.
    """
    figure, first = frame.figure, frame.axes[0]
    for earlier in [*figure.legends, *first.get_children()]:
        if earlier.get_gid() == _LEGEND:
            earlier.remove()
    curves = {}
    for ax in frame.axes if with_curves else ():
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if handle.get_gid() == CURVE:
                curves.setdefault(label, handle)
    if caption is not None:  # a curve that is no longer the only one loses its title
        is_single, size = len(curves) == 1, 0.95 * frame.size
        first.set_title(
            fitting(caption, frame, size=size) if is_single else "",
            loc="left",
            fontsize=size,
        )
        curves = {} if is_single else curves
    options = {
        "frameon": False,
        "fontsize": 0.85 * frame.size,
        "title_fontsize": 0.85 * frame.size,
    }
    options |= {
        "handlelength": 1.6,
        "columnspacing": 1.2,
        "handletextpad": 0.5,
        "borderaxespad": 0.3,
    }
    options |= legend_kw or {}
    labels = {**curves, **keys}
    if not frame.is_own:
        is_explained = frame.width >= _EXPLAINED and len(labels) <= _MOST_INSIDE
        return _legend_inside(frame, labels if is_explained else curves, note, options)
    names = {label.rsplit(": ", 1)[0]: handle for label, handle in curves.items()}
    names = names if len(names) == len(curves) else curves
    share = _LEGEND_SHARE + 0.05 * len(curves)
    return _legend_below(
        figure,
        ((labels, note, share), (curves, note, 0.4), (names, None, 0.4)),
        options,
    )


def _legend_below(figure, variants, options):
    """Return a legend below the axes in as many columns as fit, or None if there is nothing to write.

    The variants, each entries and a title, may take these shares of the height of the figure: the first that fits
    is written.
    """
    for labels, title, share in variants:
        for n_columns in range(len(labels) or bool(title), 0, -1):
            given = {
                "loc": "outside lower center",
                "ncols": n_columns,
                "title": title,
                **options,
            }
            legend = figure.legend(labels.values(), labels.keys(), **given)
            legend.set_gid(_LEGEND)
            box = legend.get_window_extent()
            if "ncols" in options or (
                box.width <= figure.bbox.width
                and box.height <= share * figure.bbox.height
            ):
                return legend
            legend.remove()
    return None


def _legend_inside(frame, labels, note, options):
    """Return a legend inside the first axes, through which data shine that it cannot avoid."""
    if not labels and note is None:
        return None
    size = 0.85 * frame.size
    words = [
        shortened(label, frame, width=0.75 * frame.width, size=size) for label in labels
    ]
    title = (
        None
        if note is None
        else shortened(note, frame, width=0.9 * frame.width, size=size)
    )
    given = {"loc": "best", "title": title, "alignment": "left", **options}
    legend = frame.axes[0].legend(labels.values(), words, **given)
    legend.set(gid=_LEGEND, zorder=5, frame_on=True)
    legend.get_frame().set(alpha=0.75, linewidth=0)
    return legend


def add_numbers(ax, texts, frame):
    """Write the first of several texts that fits into a corner of axes and covers nothing that is drawn there.

    The last one goes above the axes where none fits.
    """
    from matplotlib.offsetbox import AnchoredText

    corners = ("upper left", "lower right", "upper right", "lower left")
    for share, text, corner in product((0.85, _SMALLEST), texts[:-1], corners):
        box = ax.add_artist(
            AnchoredText(text, corner, frameon=False, prop={"size": share * frame.size})
        )
        if not _covers(ax, box.get_window_extent()):
            return
        box.remove()
    title, size = ax.get_title(loc="left"), 0.7 * frame.size
    words = fill(texts[-1], int(frame.width / (_LETTER * size / 72)))
    ax.set_title(
        "\n".join(filter(None, [title, words])),
        loc="left",
        fontsize=size,
        pad=0.3 * size,
    )


def _covers(ax, box):
    """Return whether a box leaves axes, or covers a line, an interval or the legend in them."""
    legend, place = ax.get_legend(), ax.get_window_extent()
    if place.count_contains(box.get_points()) < 2:
        return True
    if legend is not None and box.overlaps(legend.get_window_extent()):
        return True
    artists = [(one, one.get_path(), False) for one in ax.lines]
    artists += [(one, path, True) for one in ax.collections for path in one.get_paths()]
    return any(
        path.transformed(one.get_transform()).intersects_bbox(box, filled)
        for one, path, filled in artists
    )
