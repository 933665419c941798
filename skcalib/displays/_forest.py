"""Forest plots: rows with a name, a mark and an interval each, those that are significant filled, and their sizes."""

import numpy as np

from skcalib.displays._frames import Frame
from skcalib.displays._style import canonical_keywords, format_count, matplotlib_text, neutral, require_matplotlib

_LONGEST_NAME = 28  # letters of a line of a name that are shown


def forest_frame(ax, n_rows, *, lines=1):
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


def draw_zero(ax):
    """Draw the line of no deviation."""
    ax.axvline(0, color=neutral(0.75), linewidth=1, linestyle=(0, (1, 1.5)))


def draw_intervals(frame, heights, limits, label, color, marker, *, filled, bar_kw):
    """Draw marks with intervals and return their container.

    `limits` holds the estimates, the lower and the upper limits. An estimate may lie outside its limits.
    """
    estimate, low, high = limits
    lengths = np.maximum(0, np.stack((estimate - low, high - estimate)))
    keywords = {"fmt": marker, "color": color, "markersize": 0.45 * frame.size, "elinewidth": 1.2, "label": label}
    keywords |= {"markerfacecolor": color if filled else "none"}
    return frame.axes[0].errorbar(estimate, heights, xerr=lengths, **{**keywords, **canonical_keywords(bar_kw)})


def name_rows(frame, names, counts, words):
    """Name the rows, the first at the top, with their numbers of rows at the right and `words` below."""
    ax, heights = frame.axes[0], np.arange(len(names))
    ax.set_yticks(heights, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    if frame.width < 4:
        words = words.replace(" (percentage points)", "\n(percentage points)")
    ax.set_xlabel(words, size=frame.size)
    sizes = ax.secondary_yaxis("right")
    sizes.set_yticks(heights, [format_count(count) for count in counts])
    sizes.tick_params(labelsize=0.8 * frame.size, length=0, labelcolor=neutral(0.75))
    sizes.set_ylabel("Rows", size=frame.size, color=neutral(0.75))


def explain(frame, legend_kw, handles=None):
    """Return the legend above the axes: of all that is drawn, or of some handles."""
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
