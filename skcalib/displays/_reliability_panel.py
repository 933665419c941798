"""The artists of one panel of a reliability diagram."""

import itertools

import numpy as np

from skcalib.displays._style import CURVE, bar_key, draw_band, error_bars, neutral, probability_axes, reference_style

# A mark by which a display drawn on top of another knows what is there.
_REFERENCE = "skcalib-reference"
HISTOGRAM_HEIGHT = 0.25  # in units of the height of the diagram
_VISIBLE = 0.03  # of the largest bar: what can be told from none
_WIDE, _SPARSE = 0.25, 0.1  # shares: of the axes, and of the rows that would be there if they were spread evenly


def n_curves(ax):
    """Return how many curves displays have drawn in the axes before."""
    return sum(line.get_gid() == CURVE for line in ax.lines)


def draw_reference(ax, limits, line_kw):
    """Draw the diagonal unless it is there, give both axes one range, and return the line."""
    for line in ax.lines:
        if line.get_gid() == _REFERENCE:
            low, high = ax.get_xlim()
            probability_axes(ax, (max(0, min(low, limits[0])), min(1, max(high, limits[1]))))
            return line
    probability_axes(ax, limits)
    (line,) = ax.plot([0, 1], [0, 1], **reference_style(line_kw, gid=_REFERENCE))
    return line


def draw_consistency(ax, curve, color, fill_kw):
    """Draw the band within which a calibrated model would stay and return it: only its outline under another band."""
    if curve.band is not None:
        keywords = {"facecolor": "none", "edgecolor": neutral(0.5), "linewidth": 0.8, "linestyle": (0, (4, 2))}
    elif color is None:
        keywords = {"facecolor": neutral(0.16), "linewidth": 0}
    else:
        keywords = {"facecolor": color, "linewidth": 0, "alpha": 0.12}
    band = curve.consistency
    return ax.fill_between(band.scores, band.low, band.high, **{**keywords, "zorder": 1, **fill_kw})


def draw_intervals(ax, curve, color, alone, keywords):
    """Draw the intervals of the bins, as bars of a single curve and else as a light band, and the curve's own band."""
    drawn = []
    if curve.bars is not None and (alone or curve.band is None):
        mean, frequency, low, high = _points(ax, curve, *curve.bars)
        bars = (mean, frequency, low, high) if alone else (mean, low, high)
        drawn.append((error_bars if alone else draw_band)(ax, *bars, color, keywords))
        missing = np.isnan([np.nan, *mean, np.nan])
        lonely = missing[:-2] & missing[2:] & ~missing[1:-1]
        if not alone and lonely.any():  # a band needs neighbours
            error_bars(ax, *(part[lonely] for part in (mean, frequency, low, high)), color, None)
    if curve.band is not None:
        keywords = keywords if curve.bars is None else {}  # those are of bars
        drawn.append(draw_band(ax, *curve.band, color, keywords))
    return drawn


def draw_curve(ax, curve, color, mark, line_kw, label):
    """Draw the event frequencies and return the line."""
    linestyle, marker = mark
    keywords = {"color": color, "linestyle": linestyle, "linewidth": 1.6, "zorder": 3, "label": label, "gid": CURVE}
    statistics = curve.statistics
    if curve.smooth is not None:
        if curve.has_bins:
            points = {"color": color, "marker": marker, "markersize": 4.5, "markeredgewidth": 0, "linestyle": "none"}
            ax.plot(*_points(ax, curve), zorder=3, **points)
        (line,) = ax.plot(curve.band.scores, curve.smooth, **{**keywords, **line_kw})
    elif curve.is_step:
        # From the lowest to the highest score, not over bins without rows at either end.
        edges = np.clip(statistics.edges, curve.consistency.scores[0], curve.consistency.scores[-1])
        frequency = np.append(statistics.event_frequency, statistics.event_frequency[-1])
        (line,) = ax.plot(edges, frequency, **{**keywords, "drawstyle": "steps-post", **line_kw})
    else:
        keywords |= {"marker": marker, "markersize": 4.5, "markeredgewidth": 0}
        (line,) = ax.plot(*_points(ax, curve), **{**keywords, **line_kw})
    return line


def _points(ax, curve, *columns):
    """Return mean scores and event frequencies of the bins with rows, and columns beside them.

    Where a line would cross a quarter of the axes with next to no rows, a missing point breaks it.
    """
    seen, histogram = curve.statistics.weight > 0, curve.histogram
    columns = [part[seen] for part in (curve.statistics.mean_score, curve.statistics.event_frequency, *columns)]
    gaps = []
    for i, (start, stop) in enumerate(itertools.pairwise(columns[0]), start=1):
        between = histogram.weight[(histogram.edges[:-1] > start) & (histogram.edges[1:] < stop)]
        width = (stop - start) / np.ptp(ax.get_xlim())
        if width > _WIDE and len(between) and between.sum() < _SPARSE * width * histogram.weight.sum():
            gaps.append(i)
    return [np.insert(column, gaps, np.nan) for column in columns]


def guard_points(curve):
    """Return points (m, 2) along the intervals of a curve, which no words may cover."""
    statistics = curve.statistics
    seen = statistics.weight > 0
    mean, frequency = statistics.mean_score[seen], statistics.event_frequency[seen]
    points = [np.column_stack((mean, frequency))] if curve.has_bins else []
    if curve.bars is not None:
        low, high = (limit[seen] for limit in curve.bars)
        points += [np.column_stack((mean, low + share * (high - low))) for share in np.linspace(0, 1, 7)]
    if curve.band is not None:
        at = np.linspace(curve.band.scores[0], curve.band.scores[-1], 120)
        low, high = (np.interp(at, curve.band.scores, limit) for limit in curve.band[1:])
        points += [np.column_stack((at, low + share * (high - low))) for share in np.linspace(0, 1, 9)]
    return np.concatenate(points)


def key_handles(level, *, bars, band, consistency, overlay, split):
    """Return what the legend explains once for all curves, in grey: labels and handles."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    grey = neutral(0.75)
    keys = {"perfect calibration": Line2D([], [], color=grey, linewidth=1, linestyle=(0, (1, 1.5)))}
    if consistency == "fill":
        keys[f"{level} consistency band"] = Patch(facecolor=neutral(0.16))
    elif consistency == "outline":
        keys[f"{level} consistency band"] = Line2D([], [], color=neutral(0.5), linewidth=0.8, linestyle=(0, (4, 2)))
    if bars and not overlay:
        keys[f"{level} interval"] = bar_key(grey)
    elif bars or band:
        keys[f"{level} interval"] = Patch(facecolor=neutral(0.3))
    if split:
        events, others = split
        keys |= {events: Patch(facecolor=neutral(0.6)), others: Patch(facecolor="none", edgecolor=grey, hatch="////")}
    return keys


def histogram_scale_of(histograms):
    """Return "log" where most bars of a histogram could not be seen beside the largest, else "linear"."""
    for histogram in histograms:
        bars = histogram.weight[histogram.weight > 0]
        if np.median(bars) < _VISIBLE * bars.max():
            return "log"
    return "linear"


def scale_histogram(ax, scale, *, size):
    """Make room for numbers of rows, upwards and downwards, and write few and short ones."""
    from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, MaxNLocator

    if scale == "log":
        ax.set_yscale("symlog", linthresh=1)  # defined for empty bins, and downwards
        ax.yaxis.set_major_locator(FixedLocator([0, *(sign * 10**k for k in range(1, 16, 2) for sign in (1, -1))]))
    else:
        ax.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    short = EngFormatter(sep="")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda number, _: short(abs(number))))
    height = ax.get_window_extent().height / ax.figure.figure.dpi
    if height < 2.2 * size / 72:  # no room for numbers above each other
        ax.set_yticks([])


def draw_histogram(ax, curve, color, mark, *, split, filled, stairs_kw):
    """Draw the histogram of the scores, events upwards and the rest downwards if split; return the steps."""
    statistics = curve.histogram
    keywords = {"edgecolor": color, "linewidth": 0.8}
    keywords |= {"facecolor": color, "fill": True, "alpha": 0.75} if filled else {"fill": False, "linestyle": mark[0]}
    if not split:
        return [ax.stairs(statistics.weight, statistics.edges, **{**keywords, **stairs_kw})]
    events, others = statistics.weighted_label, statistics.weight - statistics.weighted_label
    pale = {"facecolor": "none", "hatch": "////", "alpha": 0.75} if filled else {}
    ax.axhline(0, color=neutral(0.75), linewidth=0.8)
    return [
        ax.stairs(events, statistics.edges, **{**keywords, **stairs_kw}),
        ax.stairs(-others, statistics.edges, **{**keywords, **pale, **stairs_kw}),
    ]
