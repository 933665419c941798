"""Where a picture is drawn: axes and the strips below them, the size of their text, titles and legends."""

from math import ceil
from textwrap import fill
from typing import NamedTuple

import numpy as np

from skcalib.displays._style import CURVE, canonical_keywords, require_matplotlib

# Marks on artists: a display that is drawn on top of another recognises what is there.
BELOW, _LEGEND, _GUARD = "skcalib-below", "skcalib-legend", "skcalib-guard"
_FULL_SIZE = 2.4  # inches: the side of a panel from which text has the user's size
_EXPLAINED, _MOST_INSIDE = 1.8, 5  # inches and entries: a legend inside less room, or of more, has no explanations
_SMALLEST = 0.58  # text is never smaller than this share of the user's size
_LETTER = 0.56  # mean width of a letter in units of the font size
_LEGEND_SHARE = 0.16  # of the height of a figure that a legend with explanations may take
_PAD = 0.03  # inches around axes in figures of our own
_LEAST_SHARE = 0.25  # of given axes that is left where words need the rest


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


def frame_of_panels(ax, n_panels, strips=()):
    """Return the frame of `n_panels` panels with strips below, whose heights are in units of a panel's height.

    `ax` is None (a new figure), one axes (its place is used, and divided among several panels), or an array with one
    axes per panel.
    """
    if ax is None:
        return _new_frame(n_panels, strips)
    given = np.ravel(np.asarray(ax, dtype=object))
    if np.ndim(ax) == 0 and n_panels > 1:
        return _divided_frame(ax, n_panels, strips)
    if len(given) < n_panels:
        raise ValueError(f"ax holds {len(given)} axes but there are {n_panels} panels.")
    given = given[:n_panels]
    is_own = len(given) == 1 and _fills_its_figure(given[0])
    width, height = np.min([_inches(one) for one in given], axis=0)
    below = [_below(one, strips) for one in given]
    return Frame(given, below, is_own, 1, _text_size(width, height), width)


def pair_frame(ax, n_panels=1):
    """Return the frame of one panel, or of two side by side that are wider than high."""
    if ax is not None:
        return frame_of_panels(ax, n_panels)
    plt = require_matplotlib()
    width, height = plt.rcParams["figure.figsize"]
    width = 0.8 * width * (1 if n_panels == 1 else 1.6)
    _, axes = plt.subplots(1, n_panels, figsize=(width, 0.9 * height), layout="constrained", squeeze=False)
    side = 0.8 * width / n_panels
    return Frame(axes[0], [[] for _ in axes[0]], True, n_panels, _text_size(side, 0.7 * height), side)


def _new_frame(n_panels, strips):
    plt = require_matplotlib()
    n_columns = _n_columns(n_panels)
    n_rows = ceil(n_panels / n_columns)
    width, height = given = plt.rcParams["figure.figsize"]
    is_default = list(given) == list(plt.rcParamsDefault["figure.figsize"])
    # One panel and what stands around it make a figure that is higher than wide; small multiples are smaller.
    if n_panels > 1 or is_default:
        width *= 0.72 if n_panels == 1 else 0.12 + 0.4 * n_columns
    side = (width - 0.1 * given[0]) / n_columns
    size = _text_size(side, side if n_panels > 1 or is_default else 0.7 * height)
    line = 1.35 * size / 72
    if n_panels > 1 or is_default:
        height = n_rows * (side * (0.93 + sum(strips)) + 2.4 * line) + 4.2 * line
    figure = plt.figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=_PAD, h_pad=_PAD, hspace=0.02, wspace=0.03)
    axes, below = _panels(figure, figure.add_gridspec(n_rows, n_columns), n_panels, strips)
    return Frame(axes, below, True, n_columns, size, side)


def _divided_frame(ax, n_panels, strips):
    n_columns = _n_columns(n_panels)
    n_rows = ceil(n_panels / n_columns)
    width, height = _inches(ax)
    width, height = width / n_columns, height / n_rows
    size = _text_size(0.8 * width, 0.7 * height)
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(f"ax must be one of a grid (plt.subplots) to be divided among {n_panels} panels.")
    ax.set_axis_off()
    line = 1.35 * size / 72
    grid = place.subgridspec(
        n_rows, n_columns, hspace=min(3.6 * line / (0.7 * height), 1), wspace=min(1.2 * line / width, 1)
    )
    axes, below = _panels(ax.figure, grid, n_panels, strips)
    return Frame(axes, below, False, n_columns, size, 0.85 * width)


def _panels(figure, grid, n_panels, strips):
    """Return the axes of the panels and of the strips below each."""
    axes, below = [], []
    for row, column in (divmod(i, grid.ncols) for i in range(n_panels)):
        parts = _parts(grid[row, column], strips)
        axes.append(figure.add_subplot(parts[0]))
        below.append([_strip(figure, part, axes[-1]) for part in parts[1:]])
    return np.array(axes, dtype=object), below


def _parts(place, strips):
    if not strips:
        return [place]
    grid = place.subgridspec(1 + len(strips), 1, height_ratios=[1, *strips], hspace=0.04)
    return [grid[i] for i in range(1 + len(strips))]


def _strip(figure, place, upper):
    strip = figure.add_subplot(place, sharex=upper, gid=BELOW)
    upper.tick_params(labelbottom=False)
    return strip


def _below(ax, strips):
    """Return strips below given axes, in their place; strips of an earlier display are used again."""
    earlier = [other for other in ax.get_shared_x_axes().get_siblings(ax) if other.get_gid() == BELOW]
    if earlier or not strips:
        return sorted(earlier, key=lambda other: -other.get_position().y0)[: len(strips)]
    place = ax.get_subplotspec()
    if place is not None:
        parts = _parts(place, strips)
        ax.set_subplotspec(parts[0])
        return [_strip(ax.figure, part, ax) for part in parts[1:]]
    box = ax.get_position(original=True)
    unit = box.height / (1.04 + 1.04 * sum(strips))
    ax.set_position((box.x0, box.y1 - unit, box.width, unit))
    below, top = [], box.y1 - unit
    for strip in strips:
        below.append(ax.figure.add_axes((box.x0, top - 1.04 * strip * unit, box.width, strip * unit), sharex=ax))
        below[-1].set_gid(BELOW)
        top -= 1.04 * strip * unit
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
    others = [one for one in figure.axes if one is not ax and one.get_gid() != BELOW]
    return not others and isinstance(figure, Figure) and isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine)


def _inches(ax):
    """Return the width and the height of axes, with the strips below them."""
    place = ax.get_subplotspec()
    below = [one for one in ax.get_shared_x_axes().get_siblings(ax) if one.get_gid() == BELOW]
    if place is not None and below:
        place = place.get_topmost_subplotspec()
    box = ax.get_position(original=True) if place is None else place.get_position(ax.figure)
    figure = ax.figure.bbox
    return box.width * figure.width / ax.figure.dpi, box.height * figure.height / ax.figure.dpi


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
    return all(_inches(one)[1] >= height for one in np.ravel(np.asarray(ax, dtype=object)))


def drop_long_labels(frame):
    """Remove names of axes that are longer than their axes once the layout is made; of horizontal ones one stays."""
    frame.figure.figure.draw_without_rendering()
    named = [ax for ax in [*frame.axes, *frame.below] if ax.get_xlabel()]
    if any(ax.xaxis.label.get_window_extent().width > 1.1 * ax.get_window_extent().width for ax in named):
        for ax in named:
            is_kept = ax is named[(len(named) - 1) // 2]
            if not is_kept or ax.xaxis.label.get_window_extent().width > 1.6 * ax.get_window_extent().width:
                ax.set_xlabel("")
    for ax in [*frame.axes, *frame.below]:
        if ax.yaxis.label.get_window_extent().height > 1.1 * ax.get_window_extent().height:
            ax.set_ylabel("")
    keep_inside(frame)


def finish(frame, keys, x_label, y_label, *, legend=True, legend_kw=None, **words):
    """Name the first axes, write the words of `add_words` and size all text to the frame; return the legend or None."""
    frame.axes[0].set(xlabel=x_label, ylabel=y_label)
    size_text(frame)
    written = add_words(frame, keys, legend_kw=canonical_keywords(legend_kw), **words) if legend else None
    drop_long_labels(frame)
    return written


def keep_inside(frame):
    """Make axes smaller whose words leave the figure, where no layout engine does so (``plt.subplots`` has none).

    Matplotlib's constrained layout, made once, would not do: it leaves out the width of names of axes, which leave a
    narrow figure, and axes that are in no grid.
    """
    if frame.figure.figure.get_layout_engine() is None:
        for _ in range(3):  # a name that is centred below its axes moves with them
            if not _pushed_inside(frame.figure, [*frame.axes, *frame.below]):
                break


def _pushed_inside(figure, axes):
    """Shrink the box around all axes by as much as their words leave the figure; return whether that was needed."""
    figure.figure.draw_without_rendering()
    words = np.array([box.extents for box in (ax.get_tightbbox() for ax in axes) if box is not None])  # pixels
    places = np.array([ax.get_position(original=True).extents for ax in axes])  # shares of the figure
    size, edge = [figure.bbox.width, figure.bbox.height], _PAD * figure.figure.dpi
    # How far words stick out on the left and below, on the right and above.
    low = (edge + figure.bbox.min - words[:, :2].min(axis=0)).clip(0) / size
    high = (edge + words[:, 2:].max(axis=0) - figure.bbox.max).clip(0) / size
    # The box from `start` to `end` becomes the one from `start + low` to `end - high`. Each axes keeps its place in it.
    start, end = places[:, :2].min(axis=0), places[:, 2:].max(axis=0)
    share = (end - start - low - high) / (end - start)
    if share.min() == 1 or share.min() < _LEAST_SHARE:  # all is well, or there is no room at all
        return False
    for ax, place in zip(axes, places, strict=True):
        ax.set_position([*(start + low + share * (place[:2] - start)), *(share * (place[2:] - place[:2]))])
        ax.set_in_layout(True)
    return True


def shortened(text, frame, *, width=None, size=None):
    """Return each line of a text cut to what fits `width` inches (of a panel) at `size` points."""
    width = frame.width if width is None else width
    most = max(4, int(width / (_LETTER * (frame.size if size is None else size) / 72)))
    return "\n".join(line if len(line) <= most else line[: most - 1] + "…" for line in text.split("\n"))


def fitting(variants, frame, *, width=None, size=None):
    """Return the first of several texts that fits `width` inches at `size` points; the last one is cut to fit."""
    for text in variants:
        if shortened(text, frame, width=width, size=size) == text:
            return text
    return shortened(variants[-1], frame, width=width, size=size)


def add_words(frame, keys, *, caption=None, note=None, with_curves=True, legend_kw=None):
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
    for earlier in [*figure.legends, *[one for one in first.get_children() if one.get_gid() == _LEGEND]]:
        if earlier.get_gid() == _LEGEND:
            earlier.remove()
    curves = _curve_handles(frame.axes) if with_curves else {}
    is_single = caption is not None and len(curves) == 1
    if caption is not None:  # a curve that is no longer the only one loses its title
        size = 0.95 * frame.size
        first.set_title(fitting(caption, frame, size=size) if is_single else "", loc="left", fontsize=size)
    options = {"frameon": False, "fontsize": 0.85 * frame.size, "title_fontsize": 0.85 * frame.size}
    options |= {"handlelength": 1.6, "columnspacing": 1.2, "handletextpad": 0.5, "borderaxespad": 0.3}
    options |= legend_kw or {}
    labels = {**({} if is_single else curves), **keys}
    needed = {label: handle for label, handle in labels.items() if label not in keys}
    if not frame.is_own:
        is_explained = frame.width >= _EXPLAINED and len(labels) <= _MOST_INSIDE
        return _legend_inside(frame, labels if is_explained else needed, note, options)
    names = {label.rsplit(": ", 1)[0]: handle for label, handle in needed.items()}
    names = names if len(names) == len(needed) else needed
    for shown, share in ((labels, _LEGEND_SHARE + 0.05 * len(needed)), (needed, 0.4), (names, 0.4)):
        if shown or note:
            legend = _legend_below(figure, shown, note if shown is not names else None, options, share)
            if legend is not None:
                return legend
    return None


def add_numbers(ax, texts, frame, guard):
    """Write the first of several texts into a corner of axes that fits there without covering data or words.

    The last one goes above the axes where none fits.
    """
    legend = ax.get_legend()
    if legend is not None:
        (left, bottom), (right, top) = _fixed(legend, ax).get_points()
        words = np.stack(np.meshgrid(np.linspace(left, right, 9), np.linspace(bottom, top, 9)), axis=-1).reshape(-1, 2)
        guard = [*guard, ax.transData.inverted().transform(words)]
    _set_guard(ax, guard)
    for text, share in [(text, share) for text in texts[:-1] for share in (0.85, _SMALLEST)]:
        options = {"title": text, "title_fontsize": share * frame.size, "alignment": "left", "frameon": False}
        box = ax.legend([], [], loc="best", **options)
        box.set_in_layout(False)  # the axes, which are placed by now, stay as they are
        if not _covers_data(ax, box):
            _fixed(box, ax)
            break
        box.remove()
    else:
        title, size = ax.get_title(loc="left"), 0.7 * frame.size
        words = fill(texts[-1], int(frame.width / (_LETTER * size / 72)))
        ax.set_title("\n".join(filter(None, [title, words])), loc="left", fontsize=size, pad=0.3 * size)
    if legend is not None:  # axes keep the last one alone
        if (box := ax.get_legend()) is not None and box is not legend:
            ax.legend_ = None
            ax.add_artist(box)
        ax.legend_ = legend


def _fixed(legend, ax):
    """Keep a legend where it stands, whatever is drawn later, and return its place in pixels."""
    box = legend.get_window_extent()
    legend.set(loc=tuple(ax.transAxes.inverted().transform(box.min)), bbox_to_anchor=(0, 0, 1, 1))
    legend.borderaxespad = 0
    return box


def _set_guard(ax, guard):
    """Put the points where no legend may stand on an invisible line, which matplotlib's "best" place avoids."""
    for line in [line for line in ax.lines if line.get_gid() == _GUARD]:
        guard = [line.get_xydata(), *guard]
        line.remove()
    if len(guard):
        limits = ax.get_xlim(), ax.get_ylim()
        points = np.concatenate(guard)
        ax.plot(points[:, 0], points[:, 1], linestyle="none", visible=False, gid=_GUARD, label="_guard")
        ax.set(xlim=limits[0], ylim=limits[1])


def _curve_handles(axes):
    handles = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if handle.get_gid() == CURVE:
                handles.setdefault(label, handle)
    return handles


def _legend_below(figure, labels, note, options, share):
    """Return a legend below the axes, in as many columns as fit; None if it would take too much of the figure."""
    for n_columns in range(len(labels) or 1, 0, -1):
        given = {"loc": "outside lower center", "ncols": n_columns, "title": note, **options}
        legend = figure.legend(labels.values(), labels.keys(), **given)
        legend.set_gid(_LEGEND)
        box = legend.get_window_extent()
        if "ncols" in options or (box.width <= figure.bbox.width and box.height <= share * figure.bbox.height):
            return legend
        legend.remove()
    return None


def _legend_inside(frame, labels, note, options):
    """Return a legend inside the first axes, through which data shine that it cannot avoid."""
    if not labels and note is None:
        return None
    size = 0.85 * frame.size
    words = [shortened(label, frame, width=0.75 * frame.width, size=size) for label in labels]
    title = None if note is None else shortened(note, frame, width=0.9 * frame.width, size=size)
    given = {"loc": "best", "title": title, "alignment": "left", **options}
    legend = frame.axes[0].legend(labels.values(), words, **given)
    legend.set(gid=_LEGEND, zorder=5, frame_on=True)
    legend.get_frame().set(alpha=0.75, linewidth=0)
    return legend


def _covers_data(ax, legend):
    box, place = legend.get_window_extent(), ax.get_window_extent()
    if box.width > place.width or box.height > 0.6 * place.height:
        return True
    for line in ax.lines:
        path = line.get_transform().transform_path(line.get_path())
        if line.get_gid() == CURVE and path.intersects_bbox(box, filled=False):
            return True
        if line.get_gid() == _GUARD and box.count_contains(path.vertices):
            return True
    return False
