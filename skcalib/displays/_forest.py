"""Forest plots: rows with a name, a mark and an interval for each model, those that are significant filled."""

import numpy as np

from skcalib.displays._frames import Frame, keep_inside, size_text
from skcalib.displays._style import (
    canonical_keywords,
    colors,
    format_count,
    mark,
    matplotlib_text,
    neutral,
    require_matplotlib,
)

_LONGEST_NAME = 28  # letters of a line of a name that are shown


def draw_forest(
    display, ax, models, names, words, *, counts=None, significance_level, legend, bar_kw=None, legend_kw=None
):
    """Draw one row for each name, the first at the top, and set the artists as attributes of the display.

    `models` has, by the name of the model, the estimates of all rows with their limits, shape (3, n_rows), and which
    rows are significant. `words` makes the text below the axes from the frame; `counts` stand at the right.
    """
    lines = max(max(name.count("\n") + 1 for name in names), 1 + len(models) // 2)
    frame = _frame(ax, len(names), lines)
    display.ax_, display.figure_, display.intervals_ = frame.axes[0], frame.figure, []
    display.ax_.axvline(0, color=neutral(0.75), linewidth=1, linestyle=(0, (1, 1.5)))
    offsets = 0.3 * (np.arange(len(models)) - (len(models) - 1) / 2) * min(1, 2.4 / len(models))
    for rank, (model, (limits, significant)) in enumerate(models.items()):
        for chosen, filled in ((significant, True), (~significant, False)):
            if chosen.any():
                label, color = _look(models, rank, model, filled, significance_level)
                style = {"color": color, "filled": filled, "fmt": mark(rank)[1], "label": label}
                heights = np.flatnonzero(chosen) + offsets[rank]
                display.intervals_.append(_draw_intervals(frame, heights, limits[:, chosen], bar_kw, **style))
    size_text(frame)
    _name_rows(frame, names, counts, words(frame))
    handles = _handles(frame, models, significance_level) if len(models) > 1 else None
    display.legend_ = _explain(frame, legend_kw, handles) if legend else None
    keep_inside(frame)
    return display


def _frame(ax, n_rows, lines):
    """Return axes with room for the rows and their names, and the text size that fits there."""
    plt = require_matplotlib()
    base = plt.rcParams["font.size"]
    if ax is None:
        width = plt.rcParams["figure.figsize"][0]
        text = base * min(1, width / 4)  # in narrow figures it is smaller
        line = (0.3 + 1.4 * lines) * text / 72 * (1 if n_rows <= 30 else 0.75)
        figure, ax = plt.subplots(figsize=(width, 1.3 + line * n_rows), layout="constrained")
    box = ax.get_window_extent()
    width, height = box.width / ax.figure.dpi, box.height / ax.figure.dpi
    room = 72 * height / n_rows / (1.25 * lines)
    size = float(np.clip(min(base, room, base * width / 3), 0.4 * base, base))
    return Frame(np.array([ax], dtype=object), [[]], False, 1, size, width)


def _look(models, rank, model, filled, significance_level):
    """Return the label and the colour of one kind of marks: of a single model the significant ones have a colour."""
    if len(models) > 1:
        return matplotlib_text(model), colors(len(models))[rank]
    if filled:
        return f"adjusted p < {significance_level:g}", colors(2)[1]
    return "not significant", neutral(0.6)


def _draw_intervals(frame, heights, limits, bar_kw, *, color, filled, **keywords):
    """Draw marks with intervals and return their container. An estimate may lie outside its limits."""
    estimate, low, high = limits
    lengths = np.maximum(0, np.stack((estimate - low, high - estimate)))
    keywords |= {"color": color, "markersize": 0.45 * frame.size, "elinewidth": 1.2}
    keywords |= {"markerfacecolor": color if filled else "none"}
    return frame.axes[0].errorbar(estimate, heights, xerr=lengths, **{**keywords, **canonical_keywords(bar_kw)})


def _name_rows(frame, names, counts, words):
    """Name the rows, the first at the top, with `words` below and numbers of rows at the right."""
    ax, heights = frame.axes[0], np.arange(len(names))
    ax.set_yticks(heights, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if frame.width < 4:
        words = words.replace(" (percentage points)", "\n(percentage points)")
    ax.set_xlabel(words, size=frame.size)
    if counts is not None:
        sizes = ax.secondary_yaxis("right")
        sizes.set_yticks(heights, [format_count(count) for count in counts])
        sizes.tick_params(labelsize=0.8 * frame.size, length=0, labelcolor=neutral(0.75))
        sizes.set_ylabel("Rows", size=frame.size, color=neutral(0.75))


def _handles(frame, models, significance_level):
    """Return the entries of the legend for several models, whose fill is explained once."""
    from matplotlib.lines import Line2D

    keywords = {"linestyle": "none", "markersize": 0.45 * frame.size}
    handles = [
        Line2D([], [], color=color, marker=mark(rank)[1], label=matplotlib_text(model), **keywords)
        for rank, (model, color) in enumerate(zip(models, colors(len(models)), strict=True))
    ]
    for face, label in (
        (neutral(0.6), f"filled: adjusted p < {significance_level:g}"),
        ("none", "open: not significant"),
    ):
        handles.append(Line2D([], [], color=neutral(0.6), marker="o", markerfacecolor=face, label=label, **keywords))
    return handles


def _explain(frame, legend_kw, handles):
    """Return the legend above the axes: of some handles, or (None) of all that is drawn."""
    options = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "frameon": False}
    options |= {"fontsize": 0.85 * frame.size, "handletextpad": 0.3, "ncols": 1 if frame.width < 4 else 2}
    if handles is not None:
        options["handles"] = handles
    return frame.axes[0].legend(**{**options, **canonical_keywords(legend_kw)})


def short_name(name, *, separator=None, most_lines=1):
    """Return a name as it is shown: lines cut to some letters, broken at a separator where there may be several."""
    lines = [name] if separator is None else _lines(name.split(separator), separator, most_lines)
    return "\n".join(matplotlib_text(_cut(line)) for line in lines)


def _lines(parts, separator, most_lines):
    lines = [parts[0]]
    for part in parts[1:]:
        joined = lines[-1] + separator + part
        if len(joined) <= _LONGEST_NAME or len(lines) == most_lines:
            lines[-1] = joined
        else:
            lines[-1] += separator.rstrip()
            lines.append(part)
    return lines


def _cut(line):
    return line if len(line) <= _LONGEST_NAME else line[: _LONGEST_NAME - 1] + "…"
