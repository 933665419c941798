"""Forest plots: rows with a name, a mark and an interval for each model, those that are
significant filled.
"""

from typing import NamedTuple

import numpy as np

from skcalib._verdicts import count_words, rounded
from skcalib.displays._frames import Frame, size_text
from skcalib.displays._layout import keep_inside
from skcalib.displays._style import (
    canonical_keywords,
    colors,
    mark,
    neutral,
    reference_style,
    require_matplotlib,
)
from skcalib.displays._words import (
    cut,
    cut_apart,
    cut_middle,
    matplotlib_text,
)

_LONGEST_NAME = 28  # letters of a line of a name that are shown


class ForestMarks(NamedTuple):
    """The marks of one model in a forest plot.

    Parameters
    ----------
    limits : ndarray of shape (3, n_rows)
        Estimates, their lower and their upper limits.
    is_significant : ndarray of bool, shape (n_rows,)
        Which rows have a significant estimate.
    """

    limits: np.ndarray
    is_significant: np.ndarray


def draw_forest(
    display,
    ax,
    models,
    names,
    label,
    *,
    counts=None,
    significance_level,
    legend,
    bar_kw=None,
    legend_kw=None,
):
    """Draw a forest plot: one row for each name, the first at the top, with a mark and
    an interval for each model. Set the artists as attributes of the display.

    Parameters
    ----------
    display : object
        The display.
    ax : matplotlib Axes or None
        Axes to draw on.
    models : dict of ForestMarks
        The estimates of each model, by its name.
    names : list of str
        Names of the rows.
    label : callable
        Takes the `Frame` and returns the label below the axes, which may depend on
        their width.
    counts : ndarray of shape (n_rows,), default=None
        Numbers of samples, written at the right.
    significance_level : float
        Named in the legend.
    legend : bool
        Whether there is a legend.
    bar_kw, legend_kw : dict or None
        The user's keywords of the intervals and of the legend.
    """
    # The height of a row, in lines of text: that of its name, or of its marks.
    lines_of_name = max(name.count("\n") + 1 for name in names)
    lines_of_marks = 1 + len(models) // 2
    frame = _frame(ax, len(names), max(lines_of_name, lines_of_marks))
    (axes,) = frame.axes
    display.ax_ = axes
    display.figure_ = frame.figure
    display.intervals_ = []
    axes.axvline(0, **reference_style())
    is_single = len(models) == 1
    # How far below the middle of a row each mark stands, in heights of a row: .3 apart,
    # closer for more than two models, so that all stand within .72.
    centred = np.arange(len(models)) - (len(models) - 1) / 2
    offsets = 0.3 * centred * min(1, 2.4 / len(models))
    users_keywords = canonical_keywords(bar_kw)
    for rank, (model, marks) in enumerate(models.items()):
        is_significant = marks.is_significant
        # Marks of significant rows are filled, those of the others are outlines.
        if is_single:  # the significant rows have a colour
            color = colors(2)[1]
            open_color = neutral(0.6)
            name = f"adjusted p < {rounded(significance_level)}"
            open_name = "not significant"
        else:  # each model has a colour, and its name stands once in the legend
            color = colors(len(models))[rank]
            open_color = color
            name = matplotlib_text(model)
            open_name = None if is_significant.any() else name
        _, marker = mark(rank)
        style = {"fmt": marker, "markersize": 0.45 * frame.size, "elinewidth": 1.2}
        filled = {**style, "color": color, "markerfacecolor": color, "label": name}
        outline = {
            **style,
            "color": open_color,
            "markerfacecolor": "none",
            "label": open_name,
        }
        for rows, look in (
            (np.flatnonzero(is_significant), filled),
            (np.flatnonzero(~is_significant), outline),
        ):
            if len(rows) > 0:
                heights = rows + offsets[rank]
                estimate, low, high = marks.limits[:, rows]
                # Not below 0: an estimate may lie outside its limits.
                lengths = np.maximum(0, [estimate - low, high - estimate])
                keywords = {"xerr": lengths, **look, **users_keywords}
                bars = axes.errorbar(estimate, heights, **keywords)
                display.intervals_.append(bars)
    size_text(frame)
    _name_rows(frame, names, counts, label(frame))
    display.legend_ = None
    if legend:
        title = None
        if not is_single:
            title = f"filled: adjusted p < {rounded(significance_level)}"
        options = {**_legend_options(frame, title), **canonical_keywords(legend_kw)}
        display.legend_ = axes.legend(**options)
    keep_inside(frame)
    return display


def _legend_options(frame, title):
    """Return the keywords of a legend above the axes, with a title or None."""
    options = {
        "loc": "lower left",
        "bbox_to_anchor": (0, 1),
        "borderaxespad": 0.2,
        "frameon": False,
        "fontsize": 0.85 * frame.size,
        "handletextpad": 0.3,
        "ncols": 1 if frame.width < 4 else 2,
    }
    if title is not None:
        options.update(title=title, title_fontsize=0.85 * frame.size, alignment="left")
    return options


def _name_rows(frame, names, counts, label):
    """Write the names of the rows at the left, the first at the top, their numbers of
    samples `counts` (or None) at the right, and the label below the axes.
    """
    ax = frame.axes[0]
    heights = np.arange(len(names))
    ax.set_yticks(heights, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if frame.width < 4:  # inches
        label = label.replace(" (percentage points)", "\n(percentage points)")
    ax.set_xlabel(label, size=frame.size)
    if counts is not None:
        sizes = ax.secondary_yaxis("right")
        sizes.set_yticks(heights, [count_words(count) for count in counts])
        sizes.tick_params(
            labelsize=0.8 * frame.size, length=0, labelcolor=neutral(0.75)
        )
        sizes.set_ylabel("Rows", size=frame.size, color=neutral(0.75))


def _frame(ax, n_rows, n_lines):
    """Return the `Frame` of the given axes, or of a new figure with room for rows of
    `n_lines` lines of text, with the size of text that fits.
    """
    rc = require_matplotlib().rcParams
    base = rc["font.size"]
    if ax is None:
        from matplotlib import pyplot as plt

        width = rc["figure.figsize"][0]
        text_size = base * min(1, width / 4)  # in narrow figures it is smaller
        # In inches: lines of text with a gap between rows, less for many rows.
        row_height = (0.3 + 1.4 * n_lines) * text_size / 72
        if n_rows > 30:
            row_height *= 0.75
        height = 1.3 + row_height * n_rows  # 1.3 for the legend and the label
        _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    box = ax.get_window_extent()
    width = box.width / ax.figure.dpi
    height = box.height / ax.figure.dpi
    # The size of text, in points, that the height of a line allows; axes narrower than
    # 3 inches have smaller text, too.
    fitting_size = 72 * height / n_rows / (1.25 * n_lines)
    size = float(np.clip(min(base, fitting_size, base * width / 3), 0.4 * base, base))
    return Frame(
        axes=np.array([ax], dtype=object),
        strips=[[]],
        is_own=False,
        n_columns=1,
        size=size,
        width=width,
    )


def places(shown, names):
    """Return the positions (n_shown,) of the names that are shown among all `names`
    (n,) of a table.
    """
    position = {name: i for i, name in enumerate(names.tolist())}
    return np.array([position[name] for name in shown])


def short_names(names, *, separator=None):
    """Return names cut to at most 28 letters in each line, different ones still
    different; a long name is broken into two lines at a separator.
    """
    for cutter in (cut, cut_middle):
        short = []
        for name in names:
            lines = [cutter(line, _LONGEST_NAME) for line in _broken(name, separator)]
            short.append("\n".join(lines))
        if len(set(short)) == len(set(names)):
            return [matplotlib_text(name) for name in short]
    numbered = cut_apart(names, _LONGEST_NAME)
    return [matplotlib_text(name) for name in numbered]


def _broken(name, separator):
    """Return the lines of a name: two if it is long and has a separator, which ends the
    first line.
    """
    if separator is None or separator not in name or len(name) <= _LONGEST_NAME:
        return [name]
    # The last separator that leaves the first line short enough, or else the first.
    last_fitting = name.rfind(separator, 0, _LONGEST_NAME + 1)
    first = name.find(separator)
    end = max(last_fitting, first) + len(separator)
    return [name[:end].rstrip(), name[end:]]
